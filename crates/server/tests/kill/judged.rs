//! The judge must be able to say no: a small story without any kill passes, and with one record
//! altered it does not.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use base::Digest;
use domain::event::EventKind;
use domain::state::{RunState, WorkItemState};

use crate::judge::{Records, everything};
use crate::late::rest;
use crate::person::{Known, Person};
use crate::stage::{Engine, NEVER_MS, Stage};

/// An alteration of what is on record, or of what the person knows.
type Lie = fn(&mut Records, &mut Known);

const LIES: &[(&str, Lie)] = &[
    ("an acknowledged message is lost", |records, _| {
        let at = records.events.iter().position(|(e, ..)| e.kind == EventKind::UserMessage);
        drop(records.events.remove(at.unwrap()));
    }),
    ("an acknowledged message has other words", |_, known| {
        known.acknowledged.values_mut().next().unwrap().push('!');
    }),
    ("a message came in twice", |records, _| records.events.push(records.events[0].clone())),
    ("an input waits", |records, _| item(records, WorkItemState::Pending)),
    ("an input was given up", |records, _| item(records, WorkItemState::Failed)),
    ("an input has no disposition", |records, _| records.events[0].0.disposition = None),
    ("another run handled it", |records, _| {
        let other = records.runs.iter().map(|(run, _)| run.id).max();
        let item = records.events[0].2.as_mut().unwrap();
        item.run = other.filter(|id| item.run != Some(*id)).or(Some(records.runs[0].0.id));
    }),
    ("a change number is missing", |records, _| records.changes.retain(|change| change.seq != 3)),
    ("a change number is too many", |records, _| records.owner.change_seq -= 1),
    ("an audit entry is missing", |records, _| drop(records.audit.remove(0))),
    ("an audit entry was altered", |records, _| records.audit[0].noun.push('x')),
    ("the audit chain was cut", |records, _| drop(records.audit.pop())),
    ("the audit head is another", |records, _| records.owner.audit_head = Digest::ZERO),
    ("a run failed", |records, _| records.runs[0].0.state = RunState::Failed),
    ("a run is lost", |records, _| records.runs[0].0.state = RunState::Lost),
    ("a run is missing", |records, _| drop(records.runs.remove(0))),
    ("a fence did not grow", |records, _| records.runs[1].0.fence = records.runs[0].0.fence),
    ("a session is held", |records, _| {
        let session = records.sessions.values_mut().next().unwrap();
        session.holder = Some(base::IdSource::new([1; 32]).next(session.created_at));
    }),
    ("a step is missing", |records, _| drop(records.runs[0].1.pop())),
    ("a call was journaled twice", |records, _| {
        let steps = &mut records.runs[0].1;
        let call = steps[2].call_id.clone();
        steps[3].call_id = call;
    }),
    ("a call spoke twice", |records, _| records.messages.push(records.messages[0].clone())),
    ("a wake-up was not booked", |records, _| records.spent.wakeups -= 1),
    ("a question was booked twice", |records, _| records.spent.model_calls += 1),
    ("a journaled question was asked again", |records, _| {
        let mut again = records.asked[0].clone();
        again.answer_id = Some("another".into());
        records.asked.push(again);
    }),
    ("a question was given up", |records, _| {
        let mut other = records.asked[0].clone();
        other.request_digest = Some(Digest::ZERO);
        records.asked.push(other);
    }),
];

fn item(records: &mut Records, state: WorkItemState) {
    records.events[0].2.as_mut().unwrap().state = state;
}

#[test]
fn the_judge_sees_every_lie() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (stage, person) = runtime.block_on(play());
    let known = person.known();
    let mut known = known.lock().unwrap();
    everything(&Records::read(&stage), &known);
    let honest = known.acknowledged.clone();
    let believed = LIES.iter().filter(|(_, lie)| {
        let mut records = Records::read(&stage);
        lie(&mut records, &mut known);
        let judged = catch_unwind(AssertUnwindSafe(|| everything(&records, &known)));
        known.acknowledged = honest.clone();
        judged.is_ok()
    });
    let believed: Vec<&str> = believed.map(|(what, _)| *what).collect();
    assert_eq!(believed, Vec::<&str>::new());
}

async fn play() -> (Arc<Stage>, Person) {
    let stage = Arc::new(Stage::set(Engine::Sqlite, NEVER_MS).await.unwrap());
    let mut person = Person::new(stage.clone(), 3);
    let mut server = stage.start();
    stage.ready(&mut server).await;
    person.note().await;
    person.note().await;
    rest(&stage, &mut server).await;
    server.stop().await;
    (stage, person)
}
