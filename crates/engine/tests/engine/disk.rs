//! A disk that gets full: the person is told once, what comes from outside is asked to come later, and they
//! themselves are heard as ever.

use domain::state::ActionState;
use engine::control::{self, Changed};
use engine::intake::Receipt;
use engine::world::Look;
use store::source::SourceKind;

use crate::effects::Room;
use crate::outside::{Desk, desk, found};
use crate::support::{Talk, now};

const MIB: u64 = 1 << 20;

fn measured(talk: &Talk, mib: u64) -> Vec<String> {
    let before = talk.said().len();
    now(engine::disk::measured(&talk.cx, mib * MIB)).unwrap();
    talk.said().into_iter().skip(before).map(|(_, text)| text).collect()
}

fn seq(talk: &Talk) -> i64 {
    talk.read(store::owner::get).change_seq
}

#[test]
fn the_person_is_told_once_and_again_only_after_it_got_better() {
    let desk = desk();
    let talk = &desk.talk;
    let low = |mib: u64| {
        format!(
            "The server's disk gets full: {mib} MiB are left. Below 128 MiB nothing new from outside is \
             taken in. Make room there."
        )
    };
    assert_eq!(measured(talk, 512), [""; 0]);
    assert_eq!(measured(talk, 511), [low(511)]);
    let told = seq(talk);
    // What comes and goes by a little is no news, and nothing is written over it.
    for mib in [500, 600, 511, 1_023, 400] {
        assert_eq!(measured(talk, mib), [""; 0], "{mib}");
    }
    assert_eq!(seq(talk), told);
    assert_eq!(measured(talk, 1_024), [""; 0]);
    assert_eq!(measured(talk, 400), [low(400)]);
    let full = measured(talk, 127);
    assert!(full.len() == 1 && full[0].contains("nearly full: 127 MiB"), "{full:?}");
    // Both at once on a disk that fills in one go.
    let other = crate::outside::desk();
    assert_eq!(measured(&other.talk, 0).len(), 2);
}

fn looks(desk: &Desk, id: &str) -> i64 {
    let look = Look { items: vec![found(id, None, None, id)], cursor: id.into(), more: false };
    desk.talk.world.found("config of news", Ok(look));
    desk.talk.clock.advance_ms(120_000);
    let events = || desk.talk.read(store::event::unhandled);
    let before = events();
    now(engine::watcher::pass(&desk.talk.cx)).unwrap();
    events() - before
}

#[test]
fn nothing_new_from_outside_is_taken_in_while_it_is_nearly_full_and_all_of_it_afterwards() {
    let desk = desk();
    let hub = desk.source(SourceKind::Webhook, "hub");
    desk.source(SourceKind::Feed, "news");
    assert!(matches!(desk.deliver(hub, found("1", None, None, "one")), Some(Receipt::New { .. })));
    assert_eq!(looks(&desk, "a"), 1);
    measured(&desk.talk, 127);
    assert_eq!(desk.deliver(hub, found("2", None, None, "two")), None);
    let known = desk.deliver(hub, found("1", None, None, "one"));
    assert!(matches!(known, Some(Receipt::Known { .. })), "{known:?}");
    assert_eq!(looks(&desk, "b"), 0);
    // Their own words are stored and answered.
    desk.talk.say("hello");
    assert!(!desk.talk.turn().is_empty());
    measured(&desk.talk, 255);
    assert_eq!(desk.deliver(hub, found("2", None, None, "two")), None, "not by a little");
    measured(&desk.talk, 256);
    assert!(matches!(desk.deliver(hub, found("2", None, None, "two")), Some(Receipt::New { .. })));
    assert_eq!(looks(&desk, "b"), 1);
}

#[test]
fn a_decision_and_a_stop_count_on_a_disk_that_is_nearly_full() {
    let room = Room::honest();
    room.ask();
    room.stages();
    measured(&room.talk, 1);
    assert_eq!(room.approve(), Changed::Done);
    room.stages();
    assert_eq!(room.state(), ActionState::Admitted);
    assert_eq!(room.tap(|cx, tx, device| control::pause(cx, tx, device, None)), Changed::Done);
    room.after_ms(5_000);
    assert_eq!((room.state(), room.sent()), (ActionState::Cancelled, Vec::new()));
}
