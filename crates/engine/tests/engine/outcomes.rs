//! What came of a sending: accepted, blocked or unknown, and how unknown ends (TOOL-04, TOOL-05, ADM-22..24).

use base::Clock as _;
use domain::effect::{Observation, Sight};
use domain::state::{ActionState, AttemptState};
use engine::control::{self, Changed, Statement};
use engine::reconciler;

use crate::effects::{Room, conflict};
use crate::outside::Small;
use crate::support::now;

#[test]
fn after_the_attempt_a_stop_changes_nothing_and_unknown_is_looked_up_and_never_sent_again() {
    let there = Sight::Found { receipt: "C-9".into(), ended: false };
    let lost = Observation::Lost("no answer".into());
    let room = Room::with(&[lost], &[Sight::Absent, Sight::Absent, there], true);
    room.ask();
    room.stages();
    room.approve();
    room.stages();
    room.after_ms(5_000);
    assert_eq!((room.state(), room.sent().len()), (ActionState::Unknown, 1));
    let paused = room.tap(|cx, tx, device| control::pause(cx, tx, device, None));
    assert_eq!(paused, Changed::Done);
    let id = room.only().id;
    let late = room.tap(move |cx, tx, device| control::withdraw(cx, tx, device, id));
    assert!(conflict(late).contains("has been sent already"));
    for _ in 0..3 {
        room.after_ms(300_000);
    }
    let action = room.only();
    assert_eq!((action.state, action.receipt.as_deref()), (ActionState::Effective, Some("C-9")));
    let attempts: Vec<_> =
        room.attempts(id).into_iter().map(|a| (a.n, a.state, a.receipt)).collect();
    assert_eq!(attempts, [(1, AttemptState::Accepted, Some("C-9".into()))]);
    assert_eq!(room.sent().len(), 1);
}

#[test]
fn not_there_means_nothing_before_the_promised_time_and_then_that_nothing_happened() {
    let lost = Observation::Lost("no answer".into());
    let room = Room::with(&[lost], &[Sight::Absent], true);
    room.ask();
    room.stages();
    room.approve();
    room.stages();
    room.after_ms(5_000);
    let mut told = Vec::new();
    for _ in 0..5 {
        room.after_ms(300_000);
        told.push(room.state());
    }
    assert_eq!(told, [ActionState::Unknown; 5]);
    let said = room.talk.said();
    let checking = said.iter().filter(|(_, text)| text.starts_with("Being checked")).count();
    assert_eq!(checking, 1, "once, after two minutes: {said:?}");
    // The promised half hour counts from the last moment at which the request may have been under way.
    let sent = room.attempts(room.only().id).remove(0);
    let until = sent.answer_by.plus_ms(1_800_000);
    let (id, owner) = (room.only().id, room.talk.device.owner);
    let look_at = |at: base::Timestamp, takes_ms: u64| {
        let ms = u64::try_from(at.since(room.talk.clock.now()).as_millis()).unwrap();
        room.talk.clock.advance_ms(ms);
        room.tap(move |cx, tx, device| control::state(cx, tx, device, id, Statement::KeepLooking));
        let look = now(reconciler::claim(&room.talk.cx, owner, id)).unwrap().unwrap();
        room.talk.clock.advance_ms(takes_ms);
        room.tap(move |cx, tx, _| reconciler::record(cx, tx, &look, Sight::Absent));
        (room.state(), room.sent().len())
    };
    assert!(sent.answer_by > sent.created_at);
    // A look shows what was there when it began.
    assert_eq!(look_at(until.minus_ms(1), 9_000), (ActionState::Unknown, 1));
    assert_eq!(look_at(until.plus_ms(9_000), 0), (ActionState::Blocked, 1));
}

#[test]
fn what_turns_up_after_the_promised_time_is_put_before_the_person() {
    let lost = Observation::Lost("no answer".into());
    let there = Sight::Found { receipt: "C-1".into(), ended: false };
    let mut sights = vec![Sight::Absent; 7];
    sights.push(there);
    let room = Room::with(&[lost], &sights, true);
    room.ask();
    room.stages();
    room.approve();
    room.stages();
    room.after_ms(5_000);
    for _ in 0..7 {
        room.after_ms(300_000);
    }
    assert_eq!(room.state(), ActionState::Blocked);
    // Once at an hour, when it is not there, and at two.
    room.after_ms(1_800_000);
    assert_eq!((room.state(), room.only().contradicted), (ActionState::Blocked, false));
    room.after_ms(3_900_000);
    assert_eq!((room.state(), room.only().contradicted), (ActionState::Unknown, true));
    let card = room.talk.said().pop().unwrap().1;
    assert!(card.contains("it was taken for not done, and yet C-1 is there"), "{card}");
    assert_eq!(room.sent().len(), 1);
}

#[test]
fn what_cannot_be_looked_up_is_settled_by_the_person() {
    for (statement, wanted) in [
        (Statement::Happened, ActionState::Accepted),
        (Statement::DidNot, ActionState::Blocked),
        (Statement::KeepLooking, ActionState::Unknown),
    ] {
        let room = Room::with(&[Observation::Other("?".into())], &[], false);
        room.ask();
        room.stages();
        room.approve();
        room.stages();
        room.after_ms(5_000);
        assert_eq!(room.state(), ActionState::Unknown);
        room.after_ms(2_000);
        let card = room.talk.said().pop().unwrap().1;
        assert!(card.starts_with("Did this happen? hotel.book for HKD 2 600.00"), "{card}");
        let id = room.only().id;
        let said = room.tap(move |cx, tx, device| control::state(cx, tx, device, id, statement));
        assert_eq!((said, room.state()), (Changed::Done, wanted));
        room.after_ms(3_600_000);
        assert_eq!((room.state(), room.sent().len()), (wanted, 1));
    }
}

#[test]
fn a_world_that_contradicts_itself_becomes_a_card_and_nothing_more_is_sent() {
    let there = Sight::Found { receipt: "C-1".into(), ended: false };
    let lies = Observation::Receipt("C-1".into());
    let lies = (lies, Sight::Absent, "C-1 was confirmed, and is not there");
    let refuses = Observation::Refused("sold out".into());
    let refuses = (refuses, there, "it was refused, and yet C-1 is there");
    for (seen, sight, wanted) in [lies, refuses] {
        let room = Room::with(&[seen], &[sight], true);
        room.ask();
        room.stages();
        room.approve();
        room.stages();
        room.after_ms(5_000);
        for _ in 0..8 {
            room.after_ms(300_000);
        }
        let action = room.only();
        assert_eq!((action.state, action.contradicted), (ActionState::Unknown, true));
        let card = room.talk.said().pop().unwrap().1;
        assert!(card.contains(wanted), "{card}");
        assert_eq!(room.sent().len(), 1);
    }
}

#[test]
fn what_certainly_never_left_is_sent_again_under_a_new_id_and_only_so_often() {
    let not_sent = Observation::NotSent("the connector is down".into());
    let there = Sight::Found { receipt: "C-1".into(), ended: false };
    let room = Room::with(
        &[not_sent.clone(), Observation::Receipt("C-1".into())],
        std::slice::from_ref(&there),
        true,
    );
    let id = room.ask().id;
    room.stages();
    room.approve();
    room.stages();
    for _ in 0..6 {
        room.after_ms(10_000);
    }
    let operations: Vec<String> = room.attempts(id).into_iter().map(|a| a.operation_id).collect();
    assert_eq!(operations, [id.to_string(), format!("{id}.2")]);
    assert_eq!((room.state(), room.sent().len()), (ActionState::Effective, 1));

    let room = Room::with(&[not_sent], &[there], true);
    let id = room.ask().id;
    room.stages();
    room.approve();
    room.stages();
    for _ in 0..30 {
        room.after_ms(10_000);
    }
    assert_eq!((room.attempts(id).len(), room.sent().len()), (3, 0));
    assert_eq!(room.state(), ActionState::Blocked);
}

#[test]
fn an_errand_is_not_sent_twice_while_the_first_is_unknown() {
    let mut room = Room::with(&[Observation::Lost("no answer".into())], &[Sight::Absent], true);
    let allow = Ok(r#"{"verdict":"allow","why":""}"#);
    room.talk.cx.reviewer = Small::says(&[allow.clone(), allow]);
    let (_, session) = room.duty("3000.00 each, 9000.00 in all, 3 times");
    room.stages();
    room.after_ms(5_000);
    let first = room.only();
    assert_eq!(first.state, ActionState::Unknown);
    room.slot(session);
    room.stages();
    room.after_ms(5_000);
    let second = room.actions().remove(0);
    let why = format!("action {} uses the same offer already; wait for what comes of it", first.id);
    assert_eq!((second.state, second.reason), (ActionState::Authorized, Some(why)));
    assert_eq!(room.sent().len(), 1);
}

#[test]
fn a_refusal_ends_its_errand_only_once_a_look_finds_nothing_either() {
    let there = Sight::Found { receipt: "C-1".into(), ended: false };
    let first_and_next = |sights: &[Sight]| {
        let seen = [Observation::Refused("sold out".into()), Observation::Receipt("C-2".into())];
        let mut room = Room::with(&seen, sights, true);
        let allow = Ok(r#"{"verdict":"allow","why":""}"#);
        room.talk.cx.reviewer = Small::says(&[allow.clone(), allow]);
        let (_, session) = room.duty("3000.00 each, 9000.00 in all, 3 times");
        room.stages();
        room.after_ms(5_000);
        let first = room.only();
        assert_eq!(
            (first.state, first.reason.as_deref()),
            (ActionState::Unknown, Some("sold out"))
        );
        room.slot(session);
        room.stages();
        for _ in 0..20 {
            room.after_ms(30_000);
        }
        let mut states: Vec<ActionState> =
            room.actions().into_iter().map(|action| action.state).collect();
        states.sort_unstable();
        (states, room.sent().len())
    };
    let unreadable = || Sight::Unreadable("503".into());
    let waits = (vec![ActionState::Authorized, ActionState::Unknown], 1);
    assert_eq!(first_and_next(&[unreadable()]), waits);
    // It is there all the same: nothing more goes out, and the person has the card.
    assert_eq!(first_and_next(&[unreadable(), there]).1, 1);
    let both = first_and_next(&[unreadable(), Sight::Absent]);
    assert_eq!((both.0.contains(&ActionState::Blocked), both.1), (true, 2));
}

/// In the person's own conversation, released by them, and sent.
fn sent(room: &Room) -> base::ActionId {
    let id = room.ask().id;
    room.stages();
    assert_eq!(room.approve(), Changed::Done);
    room.stages();
    room.after_ms(5_000);
    id
}

fn said(room: &Room, statement: Statement) {
    let id = room.only().id;
    let said = room.tap(move |cx, tx, device| control::state(cx, tx, device, id, statement));
    assert_eq!(said, Changed::Done);
}

#[test]
fn what_was_sent_by_another_entry_of_the_manifest_is_not_looked_up_by_this_one() {
    let lost = Observation::Lost("no answer".into());
    let room = Room::with(&[lost], &[Sight::Absent], false);
    sent(&room);
    room.after_ms(60_000);
    assert_eq!((room.state(), room.only().escalated_at.is_some()), (ActionState::Unknown, true));
    // The program starts again, and now there is a way to look: its operation id never travelled there.
    let mut spec = crate::effects::spec(true);
    spec.entry = base::Digest::of(b"a later entry");
    let effect = testkit::world::FakeEffect { spec, seen: vec![], sights: vec![Sight::Absent] };
    room.talk.world.effect(effect);
    said(&room, Statement::KeepLooking);
    for _ in 0..10 {
        room.after_ms(600_000);
    }
    assert_eq!(room.state(), ActionState::Unknown, "absence there proves nothing");
}

#[test]
fn stopping_a_duty_ends_what_would_be_sent_again() {
    let down = Observation::NotSent("the connector is down".into());
    let there = Sight::Found { receipt: "C-1".into(), ended: false };
    let mut room = Room::with(&[down, Observation::Receipt("C-1".into())], &[there], true);
    room.talk.cx.reviewer = Small::says(&[Ok(r#"{"verdict":"allow","why":""}"#)]);
    let (duty, _) = room.duty("3000.00 each, 9000.00 in all, 3 times");
    room.stages();
    room.after_ms(5_000);
    assert_eq!(room.state(), ActionState::Blocked);
    let paused = room.tap(|cx, tx, device| control::pause(cx, tx, device, None));
    assert_eq!(paused, Changed::Done);
    room.tap(move |cx, tx, device| control::stop(cx, tx, device, duty));
    assert_eq!((room.state(), room.sent().len()), (ActionState::Abandoned, 0));
}

#[test]
fn a_receipt_that_comes_after_somebodys_word_completes_it_or_speaks_against_it() {
    let late = |statement: Statement| {
        let room = Room::with(&[Observation::Receipt("C-1".into())], &[Sight::Absent], false);
        let id = room.ask().id;
        room.stages();
        assert_eq!(room.approve(), Changed::Done);
        room.stages();
        room.talk.clock.advance_ms(5_000);
        let owner = room.talk.device.owner;
        let permit = now(engine::dispatcher::claim(&room.talk.cx, owner, id)).unwrap().unwrap();
        let attempt = permit.attempt();
        let acted = now(engine::dispatcher::perform(&room.talk.cx, permit));
        room.after_ms(60_000);
        room.after_ms(60_000);
        assert_eq!(room.state(), ActionState::Unknown);
        said(&room, statement);
        room.tap(move |cx, tx, _| engine::dispatcher::record(cx, tx, attempt, acted));
        let action = room.only();
        (action.state, action.contradicted, action.receipt, room.talk.said().pop().unwrap().1)
    };
    let (state, contradicted, receipt, _) = late(Statement::Happened);
    assert_eq!((state, contradicted), (ActionState::Accepted, false));
    assert_eq!(receipt.as_deref(), Some("C-1"));
    let (state, contradicted, _, card) = late(Statement::DidNot);
    assert_eq!((state, contradicted), (ActionState::Unknown, true));
    assert!(card.contains("it was taken for not done, and yet C-1 was confirmed"), "{card}");
}

#[test]
fn a_further_sending_that_nobody_knows_of_has_a_card_of_its_own() {
    let lost = Observation::Lost("no answer".into());
    let down = Observation::NotSent("the connector is down".into());
    let room = Room::with(&[down, lost], &[], false);
    let id = room.ask().id;
    room.stages();
    assert_eq!(room.approve(), Changed::Done);
    room.stages();
    room.talk.clock.advance_ms(5_000);
    let owner = room.talk.device.owner;
    let permit = now(engine::dispatcher::claim(&room.talk.cx, owner, id)).unwrap().unwrap();
    let attempt = permit.attempt();
    let acted = now(engine::dispatcher::perform(&room.talk.cx, permit));
    let cards = |room: &Room| {
        let said = room.talk.said();
        said.iter().filter(|(_, text)| text.starts_with("Did this happen?")).count()
    };
    room.after_ms(60_000);
    room.after_ms(60_000);
    assert_eq!((room.state(), cards(&room)), (ActionState::Unknown, 1));
    room.tap(move |cx, tx, _| engine::dispatcher::record(cx, tx, attempt, acted));
    assert_eq!(room.state(), ActionState::Blocked);
    for _ in 0..6 {
        room.after_ms(60_000);
    }
    assert_eq!((room.state(), cards(&room)), (ActionState::Unknown, 2));
    said(&room, Statement::DidNot);
    let open = room.talk.read(store::fault::all_open);
    assert_eq!(open.len(), 0, "{open:?}");
}
