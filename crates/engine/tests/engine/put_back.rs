//! Records that were put back from a backup: nothing that may have been sent since then is sent by itself (P3).

use std::path::Path;

use base::Clock as _;
use domain::effect::{Observation, Sight};
use domain::state::ActionState;
use engine::control::{self, Changed};
use testkit::stores::TempFolder;

use crate::effects::Room;
use crate::outside::Small;
use crate::support::now;

/// Takes a backup of a room as it stands and makes a room of it, elsewhere, whose world is given.
fn put_back(room: &Room, sight: Sight) -> Room {
    let folder = TempFolder::new();
    let file = folder.path().join("backup.db");
    let at = room.talk.clock.now();
    let none = || Ok(store::backup::Files::new());
    store::backup::back_up(&room.file(), &file, at, none).unwrap();
    let sound = store::backup::verify(&file).unwrap();
    assert_eq!((sound.taken_at, sound.owners, sound.files), (at, 1, 0));
    assert!(sound.audited > 0);
    restored(&file, at, sight)
}

fn restored(file: &Path, at: base::Timestamp, sight: Sight) -> Room {
    let folder = TempFolder::new();
    store::backup::put_back(file, &folder.path().join("adjutant.db")).unwrap();
    let room = reviewed(Room::of(folder, at, &Observation::Receipt("C-2".into()), sight));
    assert_eq!(now(engine::put_back::settle(&room.talk.cx)), Ok(1));
    assert_eq!(now(engine::put_back::settle(&room.talk.cx)), Ok(0), "once");
    room
}

fn review(room: &Room) {
    for (owner, id) in now(engine::review::due(&room.talk.cx)).unwrap() {
        now(engine::review::one(&room.talk.cx, owner, id)).unwrap();
    }
}

fn admit(room: &Room) {
    now(engine::admission::pass(&room.talk.cx)).unwrap();
}

/// Each state in which an action may still be sent, how it gets there, and where it stands once put back.
type Case = (ActionState, fn() -> Room, ActionState);

fn reviewed(mut room: Room) -> Room {
    let allow = || Ok(r#"{"verdict":"allow","why":""}"#);
    room.talk.cx.reviewer = Small::says(&[allow(), allow(), allow()]);
    room
}

fn within_a_grant() -> Room {
    let room = reviewed(Room::honest());
    room.duty("3000.00 each, 9000.00 in all, 3 times");
    room
}

const CASES: [Case; 5] = [
    (ActionState::Proposed, within_a_grant, ActionState::AwaitingApproval),
    (
        ActionState::AwaitingApproval,
        || {
            let room = Room::honest();
            room.ask();
            room.stages();
            room
        },
        ActionState::AwaitingApproval,
    ),
    (
        ActionState::Authorized,
        || {
            let room = within_a_grant();
            review(&room);
            room
        },
        ActionState::AwaitingApproval,
    ),
    (
        ActionState::Admitted,
        || {
            let room = within_a_grant();
            review(&room);
            admit(&room);
            room
        },
        ActionState::AwaitingApproval,
    ),
    (
        ActionState::Blocked,
        || {
            let down = Observation::NotSent("the connector is down".into());
            let there = Observation::Receipt("C-1".into());
            let room = reviewed(Room::with(&[down, there], &[Sight::Absent], true));
            room.duty("3000.00 each, 9000.00 in all, 3 times");
            room.stages();
            room.after_ms(5_000);
            room
        },
        ActionState::Unknown,
    ),
];

#[test]
fn what_may_have_been_sent_since_the_backup_is_not_sent_again_by_itself() {
    for (state, begin, wanted) in CASES {
        let room = begin();
        assert_eq!(room.state(), state);
        let back = put_back(&room, Sight::Absent);
        // What went on after the backup sent it: of that the records that were put back know nothing.
        for _ in 0..4 {
            if room.state() == ActionState::AwaitingApproval {
                room.approve();
            }
            room.after_ms(60_000);
        }
        assert!(!room.sent().is_empty(), "{state}");

        assert_eq!(back.state(), wanted, "{state}");
        let said: Vec<String> = back.talk.said().into_iter().rev().map(|(_, text)| text).collect();
        // Both are of one transaction.
        assert!(said[..2].iter().all(|text| text.contains("backup")), "{state}: {said:?}");
        assert!(said[..2].iter().any(|text| text.starts_with("Everything is paused")), "{said:?}");
        let pauses = back.talk.read(store::hold::pauses);
        let [pause] = pauses.as_slice() else { panic!("{pauses:?}") };
        assert_eq!(pause.duty, None);
        for _ in 0..4 {
            back.after_ms(60_000);
        }
        let id = pause.id;
        back.tap(move |_, tx, device| control::lift(tx, device, id));
        for _ in 0..4 {
            back.after_ms(60_000);
        }
        assert_eq!((back.state(), back.sent()), (wanted, Vec::new()), "{state}");
        if wanted == ActionState::AwaitingApproval {
            assert_eq!(back.approve(), Changed::Done);
            back.stages();
            back.after_ms(5_000);
            assert_eq!(back.sent().len(), 1, "{state}: the person's own word sends it");
        }
        let owner = back.talk.read(store::owner::get);
        let chain = back.talk.read(move |tx, id| {
            store::change::verify(tx, id, store::change::Verified::default(), 1_000)
        });
        assert_eq!(chain.map(|at| at.hash), Ok(owner.audit_head), "{state}");
    }
}

#[test]
fn what_had_left_at_the_backup_is_looked_up_under_the_pause_and_a_duty_goes_on_after_it() {
    let room = reviewed(Room::honest());
    let (_, session) = room.duty("3000.00 each, 9000.00 in all, 3 times");
    room.stages();
    room.talk.clock.advance_ms(5_000);
    let owner = room.talk.device.owner;
    let id = room.only().id;
    let permit = now(engine::dispatcher::claim(&room.talk.cx, owner, id)).unwrap();
    assert!(permit.is_some(), "{:?}", room.only());
    let back = put_back(&room, Sight::Found { receipt: "C-1".into(), ended: false });
    for _ in 0..4 {
        back.after_ms(60_000);
    }
    assert_eq!((back.state(), back.sent()), (ActionState::Effective, Vec::new()));
    let pause = back.talk.read(store::hold::pauses).remove(0).id;
    back.tap(move |_, tx, device| control::lift(tx, device, pause));
    back.slot(session);
    assert_eq!(back.actions().len(), 2, "its next slot ran");
    for _ in 0..3 {
        back.after_ms(6_000);
    }
    assert_eq!(back.sent().len(), 1);
}
