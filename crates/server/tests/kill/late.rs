//! A due time that passes while the program is down: it fires once right after the start and is
//! marked as late; of a recurring one, all passed slots collapse to the newest.

use std::sync::Arc;

use base::Timestamp;
use domain::event::EventKind;

use crate::judge::{self, Records, price_words};
use crate::person::Person;
use crate::stage::{Engine, NEVER_MS, Stage, millis};

#[test]
fn what_came_due_while_down_fires_once_and_is_late_sqlite() {
    check(Engine::Sqlite);
}

#[test]
fn what_came_due_while_down_fires_once_and_is_late_postgres() {
    check(Engine::Postgres);
}

fn check(engine: Engine) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some((stage, person)) = runtime.block_on(play(engine)) else { return };
    let records = Records::read(&stage);
    judge::everything(&records, &person.known().lock().unwrap());
    let reminder = "You wanted to be reminded.";
    assert_eq!(records.said(), [(price_words(wednesday()).as_str(), true), (reminder, true)]);
    let [schedule] = records.schedules.as_slice() else { panic!("{:?}", records.schedules) };
    assert_eq!((schedule.last_slot, schedule.last_late), (Some(wednesday()), true));
    let fired = |kind| -> Vec<(String, bool, String)> {
        let found = records.of_kind(kind);
        found.map(|(e, text, _)| (e.external_id.clone(), e.late, text.clone())).collect()
    };
    let slot = format!("schedule:{}:{}", schedule.id, wednesday().micros());
    let text = "slot Wednesday 2027-03-03 08:00 (stands for 2 earlier ones that were missed): \
                Tell the user the price of the slot's day.";
    assert_eq!(fired(EventKind::ScheduleDue), [(slot, true, text.to_owned())]);
    let waits: Vec<bool> = fired(EventKind::WaitTimedOut).iter().map(|wait| wait.1).collect();
    assert_eq!(waits, [true]);
    // The person's devices were told so, too.
    let heard = person.known().lock().unwrap().heard.clone();
    let expected = [(price_words(wednesday()), (1, true)), (reminder.to_owned(), (1, true))];
    assert_eq!(heard, expected.into_iter().collect());
}

fn wednesday() -> Timestamp {
    Timestamp::parse("2027-03-03T00:00:00Z").unwrap()
}

async fn play(engine: Engine) -> Option<(Arc<Stage>, Person)> {
    let stage = Arc::new(Stage::set(engine, NEVER_MS).await?);
    let mut person = Person::new(stage.clone(), 1);
    let mut server = stage.start();
    stage.ready(&mut server).await;
    person.say("watch the price").await;
    person.say("remind me at 2027-03-02T06:00:00Z").await;
    while !person.known().lock().unwrap().confirmed {
        person.confirm().await;
        tokio::time::sleep(millis(10)).await;
    }
    rest(&stage, &mut server).await;
    server.stop().await;
    // Down from Sunday evening to Wednesday morning, an hour after the third slot.
    stage.set_virtual_now(wednesday().plus_ms(3_600_000));
    let mut server = stage.start();
    let known = person.known();
    for _ in 0..1_000 {
        person.listen().await;
        if known.lock().unwrap().heard.len() >= 2 {
            break;
        }
        server.must_run();
        tokio::time::sleep(millis(10)).await;
    }
    rest(&stage, &mut server).await;
    person.listen().await;
    server.stop().await;
    Some((stage, person))
}

/// Waits until nothing has moved for half a second.
pub async fn rest(stage: &Stage, server: &mut crate::stage::Server) {
    let (mut last, mut still) = (0, 0);
    while still < 10 {
        let seq = stage.ready(server).await.seq;
        still = if seq == last { still + 1 } else { 0 };
        last = seq;
        tokio::time::sleep(millis(50)).await;
    }
}
