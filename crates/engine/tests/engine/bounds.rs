//! What time and others change between a release and its sending is looked at again (ADM-04, ADM-05, ADM-18).

use base::{Clock as _, Digest, ObjectId};
use domain::effect::{Observation, Sight};
use domain::state::{ActionState, ApprovalState};
use engine::control::{self, Changed, Statement};
use engine::review;
use store::object::Object;

use crate::effects::{Room, conflict};
use crate::outside::Small;
use crate::support::now;

const DAY_MS: u64 = 24 * 3_600_000;

#[test]
fn a_tap_under_the_operators_stop_does_nothing_and_must_be_repeated() {
    let room = Room::honest();
    let id = room.ask().id;
    room.stages();
    room.talk.system_stop(true);
    assert!(conflict(room.approve()).contains("The operator has stopped everything"));
    assert_eq!(room.approvals(id)[0].state, ApprovalState::Requested);
    room.talk.system_stop(false);
    room.after_ms(60_000);
    assert_eq!((room.state(), room.sent().len()), (ActionState::AwaitingApproval, 0));
    assert_eq!(room.approve(), Changed::Done);
}

#[test]
fn two_that_were_released_one_by_one_are_admitted_only_if_they_fit_together() {
    let mut room = Room::honest();
    room.talk.cx.limits.approval_ms = 10 * DAY_MS;
    let allow = Ok(r#"{"verdict":"allow","why":""}"#);
    room.talk.cx.reviewer = Small::says(&[allow.clone(), allow]);
    let (_, session) = room.duty("3000.00 each, 5000.00 in all, 3 times");
    let reviewed = |room: &Room| {
        for (owner, id) in now(review::due(&room.talk.cx)).unwrap() {
            now(review::one(&room.talk.cx, owner, id)).unwrap();
        }
    };
    reviewed(&room);
    room.slot(session);
    reviewed(&room);
    let states = |room: &Room| -> Vec<ActionState> {
        room.actions().into_iter().map(|action| action.state).collect()
    };
    assert_eq!(states(&room), [ActionState::Authorized; 2]);
    room.stages();
    for _ in 0..10 {
        room.after_ms(10_000);
    }
    let mut ended = states(&room);
    ended.sort_unstable();
    assert_eq!(ended, [ActionState::AwaitingApproval, ActionState::Effective]);
    assert_eq!(room.sent().len(), 1);
}

#[test]
fn a_release_that_ends_before_the_sending_cancels_it() {
    let mut room = Room::honest();
    room.talk.cx.limits.approval_ms = 3_000;
    room.ask();
    room.stages();
    assert_eq!(room.approve(), Changed::Done);
    room.stages();
    assert_eq!(room.state(), ActionState::Admitted);
    room.after_ms(5_000);
    assert_eq!((room.state(), room.sent().len()), (ActionState::Cancelled, 0));
}

#[test]
fn an_offer_that_was_issued_again_at_another_price_is_not_the_one_that_was_released() {
    for (admitted, wanted) in [(false, ActionState::Withdrawn), (true, ActionState::Cancelled)] {
        let room = Room::honest();
        let action = room.ask();
        room.stages();
        assert_eq!(room.approve(), Changed::Done);
        if admitted {
            room.stages();
        }
        room.tap(move |cx, tx, device| {
            let object = Object {
                id: cx.id::<ObjectId>(),
                owner: device.owner,
                session: action.session,
                task_version: None,
                kind: "quote".into(),
                value: "q-1".into(),
                snapshot: None,
                digest: Digest::of(b"another price"),
                run: action.run,
                call_id: None,
                provenance: "test".into(),
                expires_at: None,
                created_at: tx.now().plus_ms(1),
            };
            store::object::issue(tx, &object)
        });
        room.after_ms(5_000);
        let after = room.only();
        assert_eq!((after.state, room.sent().len()), (wanted, 0));
        assert!(after.reason.unwrap().contains("is not what it was when it was issued"));
    }
}

#[test]
fn an_offer_that_expires_during_a_pause_ends_its_action_and_the_pause_nothing_else() {
    let room = Room::honest();
    room.talk.world.expires("q-1", room.talk.clock.now().plus_ms(1_200_000));
    room.ask();
    room.stages();
    assert_eq!(room.approve(), Changed::Done);
    let paused = room.tap(|cx, tx, device| control::pause(cx, tx, device, None));
    assert_eq!(paused, Changed::Done);
    room.after_ms(1_199_000);
    assert_eq!(room.state(), ActionState::Authorized);
    room.after_ms(1_000);
    assert_eq!(room.state(), ActionState::Expired);
    assert_eq!(room.only().due_at, None, "nobody looks at it again");
}

#[test]
fn an_approval_of_an_action_that_is_alike_counts_for_no_other() {
    let room = Room::honest();
    let first = room.ask();
    room.talk.say("book the room once more");
    room.talk.turn();
    let second = room.actions().remove(0);
    assert_eq!(first.digest, second.digest);
    room.stages();
    let (id, digest) = (first.id, first.digest);
    let released = room.tap(move |_, tx, device| control::approve(tx, device, id, digest));
    assert_eq!(released, Changed::Done);
    let approval = room.approvals(id)[0].id;
    room.tap(move |_, tx, device| {
        let mut other = store::action::get(tx, second.id)?;
        let own = store::approval::of_action(tx, second.id)?.remove(0);
        let tap = store::approval::Tap::default();
        store::approval::advance(tx, &own, ApprovalState::Cancelled, tap)?;
        // The one that was released is not looked at before the other.
        let mut released = store::action::get(tx, id)?;
        released.due_at = Some(tx.now().plus_ms(3_600_000));
        store::action::put(tx, &released, ActionState::Authorized, None)?;
        other.state = ActionState::Authorized;
        other.approval = Some(approval);
        other.due_at = Some(tx.now());
        store::action::put(tx, &other, ActionState::AwaitingApproval, Some(device.principal))
    });
    for _ in 0..10 {
        room.after_ms(10_000);
    }
    let states: Vec<_> = room.actions().into_iter().map(|action| action.state).collect();
    assert_eq!(states, [ActionState::AwaitingApproval, ActionState::Authorized]);
    assert_eq!(room.sent(), []);
}

#[test]
fn the_months_cap_holds_for_the_reviewer_and_a_person_is_asked() {
    let mut room = Room::honest();
    // This reviewer would panic if it were asked.
    room.talk.cx.reviewer = Small::says(&[]);
    room.duty("3000.00 each, 8200.00 in all, 3 times");
    room.tap(|_, tx, _| store::owner::set_cap(tx, base::MicroUsd(1)));
    room.stages();
    assert_eq!((room.state(), room.sent().len()), (ActionState::AwaitingApproval, 0));
    assert!(room.only().reason.unwrap().starts_with("This month's cap is used up"));
}

#[test]
fn what_is_confirmed_and_can_never_be_looked_up_is_told_at_the_deadline() {
    let down = Sight::Unreadable("down".into());
    let room = Room::with(&[Observation::Receipt("C-1".into())], &[down], true);
    room.ask();
    room.stages();
    room.approve();
    room.stages();
    room.after_ms(5_000);
    let news = |room: &Room| {
        now(engine::router::pass(&room.talk.cx)).unwrap();
        let bodies = room.talk.turn();
        bodies.iter().any(|body| String::from_utf8_lossy(body).contains("news of an action"))
    };
    room.after_ms(60_000);
    assert!(!news(&room));
    room.after_ms(DAY_MS);
    assert_eq!(room.state(), ActionState::Accepted);
    assert!(news(&room), "whoever waits for it is told what is known");
}

#[test]
fn evidence_against_the_persons_word_opens_it_again() {
    let down = Sight::Unreadable("down".into());
    let there = Sight::Found { receipt: "C-1".into(), ended: false };
    let room = Room::with(&[Observation::Lost("no answer".into())], &[down, there], true);
    let id = room.ask().id;
    room.stages();
    room.approve();
    room.stages();
    room.after_ms(5_000);
    room.after_ms(2_000);
    let said = room.tap(move |cx, tx, by| control::state(cx, tx, by, id, Statement::DidNot));
    assert_eq!((said, room.state()), (Changed::Done, ActionState::Blocked));
    room.after_ms(300_000);
    let action = room.only();
    assert_eq!((action.state, action.contradicted), (ActionState::Unknown, true));
    let card = room.talk.said().pop().unwrap().1;
    assert!(card.contains("Did this happen?") && card.contains("C-1"), "{card}");
}

#[test]
fn time_releases_no_hold() {
    for admitted in [false, true] {
        let mut room = Room::honest();
        room.talk.cx.limits.approval_ms = 10 * DAY_MS;
        room.ask();
        room.stages();
        assert_eq!(room.approve(), Changed::Done);
        if admitted {
            room.stages();
        }
        room.talk.say("how is it going?");
        for _ in 0..60 {
            room.after_ms(3_600_000);
        }
        assert_eq!((room.state(), room.sent().len()), (ActionState::Authorized, 0));
    }
}
