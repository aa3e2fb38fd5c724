//! Grants, actions, approvals, attempts and permits through the store's one door, on both engines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;

use base::{ActionId, Digest, GrantId, Id as _};
use domain::effect::Used;
use domain::state::{ActionState, ApprovalState, AttemptState, GrantState};
use store::action::{Action, share};
use store::approval::Tap;
use store::attempt::Said;
use store::grant::{Grant, Share};
use store::{Store, StoreError};
use testkit::stores::{Harness, each_engine};

use crate::effect_records::*;
use crate::fixtures::{Gate, change_seq, everywhere, now, stored_duty, uuid};
use crate::raw::Raw;

/// Stores a grant of a duty of its own.
fn stored_grant(h: &Harness) -> Grant {
    let (duty, version) = stored_duty(h);
    let grant = grant(h, duty.id, version.id);
    let stored = grant.clone();
    h.write(move |tx| store::grant::insert(tx, &stored)).unwrap();
    grant
}

fn read_grant(h: &Harness, id: GrantId) -> Grant {
    h.read(move |tx| store::grant::get(tx, id)).unwrap()
}

fn read_action(h: &Harness, id: ActionId) -> Action {
    h.read(move |tx| store::action::get(tx, id)).unwrap()
}

fn verbs(h: &Harness, noun: &str) -> Vec<String> {
    let owner = h.owner;
    let entries = h.read(move |tx| store::change::audit(tx, owner, 0, 999)).unwrap();
    entries.into_iter().filter(|entry| entry.noun == noun).map(|entry| entry.verb).collect()
}

const STATES: [ActionState; 15] = [
    ActionState::Proposed,
    ActionState::AwaitingApproval,
    ActionState::Authorized,
    ActionState::Admitted,
    ActionState::Dispatched,
    ActionState::Unknown,
    ActionState::Accepted,
    ActionState::Blocked,
    ActionState::Effective,
    ActionState::Denied,
    ActionState::Expired,
    ActionState::Superseded,
    ActionState::Withdrawn,
    ActionState::Cancelled,
    ActionState::Abandoned,
];

#[test]
fn a_grant_is_kept_as_it_was_given_and_ends_once() {
    everywhere(|h| {
        let mut grant = stored_grant(&h);
        let (id, duty, user) = (grant.id, grant.duty, h.user);
        let by_duty = || {
            let of = move |tx: &mut store::Tx<'_>| {
                Ok((store::grant::active(tx, duty)?, store::grant::of_duty(tx, duty)?))
            };
            h.read(of).unwrap()
        };
        assert_eq!(read_grant(&h, id), grant);
        assert_eq!(by_duty(), (vec![grant.clone()], vec![grant.clone()]));
        let limits = grant.limits(None).unwrap();
        let wanted = domain::effect::Grant {
            tool: grant.tool.clone(),
            times: 3,
            currency: grant.currency,
            each: Some(300_000),
            total: Some(820_000),
            to: vec!["Ada".into()],
            until: grant.until_at,
            used: Used::default(),
        };
        assert_eq!(limits, wanted);

        let at = h.clock.advance_ms(1);
        let end = || h.write(move |tx| store::grant::end(tx, id, Some(user)));
        assert_eq!([end(), end()], [Ok(true), Ok(false)]);
        (grant.state, grant.moved_at) = (GrantState::Ended, at);
        assert_eq!(read_grant(&h, id), grant);
        assert_eq!(by_duty(), (vec![], vec![grant.clone()]));
        // What has ended covers nothing.
        assert_eq!(grant.limits(None).map(|limits| limits.times), Ok(0));
        assert_eq!(verbs(&h, "grant"), ["grant", "end"]);
        let missing = h.read(move |tx| store::grant::get(tx, GrantId::from_uuid(duty.uuid())));
        assert_eq!(missing, Err(StoreError::Missing("grant")));
        let odd = Grant { recipients: "Ada".into(), ..grant };
        assert!(matches!(odd.limits(None), Err(StoreError::Corrupt(_))));
    });
}

/// What an action in a state has of its grant, written out.
fn taken_of(state: ActionState) -> (i64, i64) {
    match state {
        ActionState::Admitted | ActionState::Dispatched | ActionState::Unknown => (1, 0),
        ActionState::Accepted | ActionState::Effective => (0, 1),
        ActionState::Proposed
        | ActionState::AwaitingApproval
        | ActionState::Authorized
        | ActionState::Blocked
        | ActionState::Denied
        | ActionState::Expired
        | ActionState::Superseded
        | ActionState::Withdrawn
        | ActionState::Cancelled
        | ActionState::Abandoned => (0, 0),
    }
}

#[test]
fn every_move_of_an_action_moves_its_share_of_the_grant() {
    each_engine(|h| {
        let mut moves = 0;
        let grant = stored_grant(&h);
        for (from, to) in ActionState::MACHINE.moves {
            let (from, to) = (ActionState::parse(from).unwrap(), ActionState::parse(to).unwrap());
            let action =
                Action { draws_on: Some(grant.id), ..action(&h, &format!("{from} to {to}")) };
            let stored = action.clone();
            h.write(move |tx| store::action::insert(tx, &stored, &[])).unwrap();
            let before = read_grant(&h, grant.id);
            let mut at = action.clone();
            for state in [&way_to(from)[..], &[to]].concat() {
                at = moved(&h, &at, &[state]);
                let (reserved, spent) = taken_of(state);
                let wanted = Grant {
                    reserved_count: before.reserved_count + reserved,
                    reserved_minor: before.reserved_minor + reserved * 260_000,
                    spent_count: before.spent_count + spent,
                    spent_minor: before.spent_minor + spent * 260_000,
                    ..before.clone()
                };
                assert_eq!(read_grant(&h, grant.id), wanted, "{from} > {to}, in {state}");
                // The decisions see what others use.
                let own = (reserved + spent > 0).then_some(260_000);
                let others = Used {
                    count: before.reserved_count + before.spent_count,
                    minor: before.reserved_minor + before.spent_minor,
                };
                assert_eq!(wanted.limits(own).map(|limits| limits.used), Ok(others));
            }
            assert_eq!(read_action(&h, action.id), at);
            moves += 1;
        }
        assert_eq!(moves, ActionState::MACHINE.moves.len());
    });
}

#[test]
fn shares_are_booked_whole_and_never_below_nothing_or_on_no_grant() {
    each_engine(|h| {
        let grant = stored_grant(&h);
        let (id, action) = (grant.id, h.id::<ActionId>());
        let book =
            |id, from, to| h.write(move |tx| store::grant::book(tx, id, action, 5, (from, to)));
        let used = || {
            let grant = read_grant(&h, id);
            (grant.reserved_count, grant.reserved_minor, grant.spent_count, grant.spent_minor)
        };
        let shares = [Share::None, Share::Reserved, Share::Spent];
        let at = |share| match share {
            Share::None => (0, 0, 0, 0),
            Share::Reserved => (1, 5, 0, 0),
            Share::Spent => (0, 0, 1, 5),
        };
        for from in shares {
            for to in shares {
                assert_eq!(book(id, Share::None, from), Ok(()));
                assert_eq!(used(), at(from));
                assert_eq!(book(id, from, to), Ok(()));
                assert_eq!(used(), at(to), "{from:?} > {to:?}");
                assert_eq!(book(id, to, Share::None), Ok(()));
                assert_eq!(used(), at(Share::None));
            }
        }
        for (from, to) in [(Share::Reserved, Share::None), (Share::Spent, Share::Reserved)] {
            assert!(matches!(book(id, from, to), Err(StoreError::Refused(_))), "{from:?}");
        }
        let nowhere = book(h.id(), Share::None, Share::Reserved);
        assert_eq!(nowhere, Err(StoreError::Missing("grant")));
        assert_eq!(read_grant(&h, id), grant);
    });
}

#[test]
fn an_action_keeps_the_grant_that_it_has_a_share_of() {
    each_engine(|h| {
        let (first, second) = (stored_grant(&h), stored_grant(&h));
        let action = stored_action(&h, "call-1");
        let put = |action: &Action, was| {
            let action = action.clone();
            h.write(move |tx| store::action::put(tx, &action, was, None))
        };
        let mut action = moved(&h, &action, &way_to(ActionState::Authorized));
        action.draws_on = Some(first.id);
        let action = moved(&h, &action, &[ActionState::Admitted]);
        let seq = change_seq(&h);
        for draws_on in [Some(second.id), None] {
            for state in [ActionState::Admitted, ActionState::Cancelled, ActionState::Dispatched] {
                let other = Action { draws_on, state, ..action.clone() };
                let refused = put(&other, ActionState::Admitted);
                let missing = StoreError::Missing("action in that state and on that grant");
                assert_eq!(refused, Err(missing), "{state} {draws_on:?}");
            }
        }
        assert_eq!((change_seq(&h), read_action(&h, action.id)), (seq, action.clone()));
        let back = moved(&h, &action, &[ActionState::Authorized]);
        let on = moved(&h, &Action { draws_on: Some(second.id), ..back }, &[ActionState::Admitted]);
        let reserved = [first, second].map(|grant| read_grant(&h, grant.id).reserved_minor);
        assert_eq!((reserved, on.draws_on.is_some()), ([0, 260_000], true));
    });
}

#[test]
fn an_action_is_found_by_everything_that_looks_for_it() {
    everywhere(|h| {
        let mut action = stored_action(&h, "call-1");
        let (owner, session, at) = (h.owner, h.main, h.clock.advance_ms(10));
        let (id, run, duty, was) = (action.id, action.run, action.duty.unwrap(), action.state);
        let found = |action: &Action| {
            let read = h.read(move |tx| {
                Ok((
                    store::action::of_call(tx, run, "call-1")?,
                    store::action::all(tx, owner, 9)?,
                    store::action::of_duty(tx, duty, 9)?,
                    store::action::open(tx, session)?,
                ))
            });
            let one = vec![action.clone()];
            let open = if action.state.is_terminal() { vec![] } else { one.clone() };
            assert_eq!(read, Ok((Some(action.clone()), one.clone(), one, open)));
        };
        found(&action);
        let due = |state, now| h.read(move |tx| store::action::due(tx, state, now, 9)).unwrap();
        assert_eq!(due(was, at), vec![(owner, id)]);
        assert_eq!(h.read(store::action::next_due), Ok(action.due_at));

        // Every column that may change.
        action = Action {
            state: ActionState::AwaitingApproval,
            tier: None,
            reason: None,
            draws_on: None,
            approval: None,
            not_before: None,
            due_at: Some(at.plus_ms(1)),
            tries: 7,
            sent_at: None,
            receipt: None,
            authority: Some("user".into()),
            contradicted: false,
            escalated_at: None,
            moved_at: at,
            ..action
        };
        let put = |action: &Action, was, by| {
            let action = action.clone();
            h.write(move |tx| store::action::put(tx, &action, was, by))
        };
        assert_eq!(put(&action, was, Some(h.user)), Ok(()));
        found(&action);
        assert_eq!(h.read(store::action::asking_count), Ok(1));
        assert_eq!((due(was, at), due(action.state, at)), (vec![], vec![]));
        assert_eq!(due(action.state, at.plus_ms(1)), vec![(owner, id)]);
        // Who read it in another state may not write it.
        let missing = Err(StoreError::Missing("action in that state and on that grant"));
        assert_eq!(put(&action, was, None), missing);
        // What stays where it was is not moved, and no event of the audit.
        h.clock.advance_ms(10);
        action.due_at = None;
        assert_eq!(put(&action, action.state, None), Ok(()));
        found(&action);
        assert_eq!(h.read(store::action::next_due), Ok(None));
        let end = Action { state: ActionState::Denied, moved_at: now(&h), ..action };
        assert_eq!(put(&end, ActionState::AwaitingApproval, Some(h.user)), Ok(()));
        assert_eq!(read_action(&h, id), end);
        assert_eq!(h.read(move |tx| store::action::open(tx, session)), Ok(vec![]));
        assert_eq!(h.read(store::action::asking_count), Ok(0));
        assert_eq!(verbs(&h, "action"), ["propose", "awaiting_approval", "denied"]);
    });
}

#[test]
fn a_call_makes_one_action_and_an_argument_names_one_object() {
    each_engine(|h| {
        let first = stored_action(&h, "call-1");
        let again = Action { run: first.run, ..action(&h, "call-1") };
        let twice = h.write(move |tx| store::action::insert(tx, &again, &[]));
        assert!(matches!(twice, Err(StoreError::Duplicate(_))), "{twice:?}");
        let second = action(&h, "call-2");
        let objects = ["q-3", "q-4"].map(|value| object(&h, second.id, "quote", value));
        let (id, stored) = (second.id, second.clone());
        let both = h.write(move |tx| store::action::insert(tx, &stored, &objects));
        assert!(matches!(both, Err(StoreError::Duplicate(_))), "{both:?}");
        let gone = h.read(move |tx| store::action::get(tx, id));
        assert_eq!(gone, Err(StoreError::Missing("action")));
    });
}

#[test]
fn only_what_is_admitted_sent_or_unknown_holds_its_errand_and_its_objects() {
    each_engine(|h| {
        let asks = Action { errand: "the errand".into(), ..action(&h, "asks") };
        for state in STATES {
            let other = Action {
                errand: "the errand".into(),
                run: asks.run,
                ..action(&h, &format!("other {state}"))
            };
            let (stored, object) = (other.clone(), object(&h, other.id, "offer", "q-3"));
            h.write(move |tx| store::action::insert(tx, &stored, &[object])).unwrap();
            let other = moved(&h, &other, &way_to(state));
            let (asked, own) = (asks.clone(), other.clone());
            let found = h.read(move |tx| {
                let elsewhere = Action { session: h_session(), ..asked.clone() };
                let tool = Action { tool: "hotel.cancel".into(), ..asked.clone() };
                let errand = Action { errand: "another".into(), ..asked.clone() };
                Ok((
                    [
                        store::action::errand(tx, &asked)?,
                        store::action::taken(tx, &asked, "quote", "q-3")?,
                    ],
                    [
                        // Not itself, and nothing that only looks like it.
                        store::action::errand(tx, &own)?,
                        store::action::errand(tx, &elsewhere)?,
                        store::action::errand(tx, &tool)?,
                        store::action::errand(tx, &errand)?,
                        store::action::taken(tx, &own, "quote", "q-3")?,
                        store::action::taken(tx, &asked, "quote", "q-4")?,
                        store::action::taken(tx, &asked, "room", "q-3")?,
                    ],
                ))
            });
            let holds = matches!(
                state,
                ActionState::Admitted | ActionState::Dispatched | ActionState::Unknown
            );
            let holder = holds.then_some(other.id);
            assert_eq!(found, Ok(([holder; 2], [None; 7])), "{state}");
            assert_eq!(share(state) == Share::Reserved, holds, "{state}");
            if holds {
                // Out of the way of the next.
                let end = match state {
                    ActionState::Admitted => vec![ActionState::Cancelled],
                    _ => vec![ActionState::Blocked],
                };
                moved(&h, &other, &end);
            }
        }
    });
}

/// A session that no action here is in.
fn h_session() -> base::SessionId {
    base::SessionId::from_uuid(uuid::Uuid::nil())
}

#[test]
fn two_sendings_of_one_errand_are_not_under_way_at_once() {
    each_engine(|h| {
        let [first, second] = ["call-1", "call-2"].map(|call| {
            let action = Action { errand: "one".into(), ..action(&h, call) };
            let stored = action.clone();
            h.write(move |tx| store::action::insert(tx, &stored, &[])).unwrap();
            moved(&h, &action, &way_to(ActionState::Authorized))
        });
        let first = moved(&h, &first, &[ActionState::Admitted]);
        let admit = || {
            let next = Action { state: ActionState::Admitted, ..second.clone() };
            h.write(move |tx| store::action::put(tx, &next, ActionState::Authorized, None))
        };
        assert!(matches!(admit(), Err(StoreError::Duplicate(_))));
        let first = moved(&h, &first, &[ActionState::Dispatched]);
        assert!(matches!(admit(), Err(StoreError::Duplicate(_))));
        moved(&h, &first, &[ActionState::Accepted]);
        assert_eq!(admit(), Ok(()));
    });
}

#[test]
fn the_end_of_a_stop_wakes_what_was_released_and_nothing_else() {
    each_engine(|h| {
        let mut wanted = Vec::new();
        for state in STATES {
            let action = Action { due_at: None, ..action(&h, &format!("call {state}")) };
            let stored = action.clone();
            h.write(move |tx| store::action::insert(tx, &stored, &[])).unwrap();
            let way = way_to(state);
            // One errand each, so all may be under way together.
            wanted.push(moved(&h, &action, &way));
        }
        let at = h.clock.advance_ms(5);
        h.write(store::action::wake).unwrap();
        for action in &mut wanted {
            action.due_at = (action.state == ActionState::Authorized).then_some(at);
            assert_eq!(read_action(&h, action.id), *action);
        }
    });
}

#[test]
fn an_approval_moves_on_and_is_used_once() {
    everywhere(|h| {
        let action = stored_action(&h, "call-1");
        let mut first = approval(&h, &action);
        let insert = |approval: &store::approval::Approval| {
            let approval = approval.clone();
            h.write(move |tx| store::approval::insert(tx, &approval))
        };
        assert_eq!(insert(&first), Ok(()));
        // One at a time is open.
        assert!(matches!(insert(&approval(&h, &action)), Err(StoreError::Duplicate(_))));
        let advance = |approval: &store::approval::Approval, to, tap: Tap| {
            let approval = approval.clone();
            h.write(move |tx| store::approval::advance(tx, &approval, to, tap))
        };
        let tap = Tap { by: Some(h.user), device: Some(h.id()), reason: Some("fine".into()) };
        let at = h.clock.advance_ms(1);
        // Nobody decided, or from nowhere: the schema's own word.
        for half in [Tap::default(), Tap { by: Some(h.user), ..Tap::default() }] {
            let refused = advance(&first, ApprovalState::Granted, half);
            assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
        }
        let seen = first.clone();
        assert_eq!(advance(&seen, ApprovalState::Granted, tap.clone()), Ok(true));
        (first.state, first.moved_at) = (ApprovalState::Granted, at);
        (first.decided_by, first.device) = (tap.by, tap.device);
        first.reason.clone_from(&tap.reason);
        let id = first.id;
        let get = || h.read(move |tx| store::approval::get(tx, id));
        assert_eq!(get(), Ok(first.clone()));
        // The second of two taps, from another device.
        assert_eq!(advance(&seen, ApprovalState::Denied, tap.clone()), Ok(false));
        assert_eq!(advance(&seen, ApprovalState::Granted, tap), Ok(false));
        let granted = first.clone();
        let use_it = |seen| advance(seen, ApprovalState::Consumed, Tap::default());
        assert_eq!(use_it(&granted), Ok(true));
        first.state = ApprovalState::Consumed;
        assert_eq!(get(), Ok(first.clone()));
        let seq = change_seq(&h);
        // Neither who saw it before nor who sees it now uses it again.
        assert_eq!([use_it(&granted), use_it(&first)], [Ok(false), Ok(false)]);
        let back = advance(&first, ApprovalState::Granted, Tap::default());
        assert!(matches!(back, Err(StoreError::Refused(_))), "{back:?}");
        assert_eq!((get(), change_seq(&h)), (Ok(first.clone()), seq));

        h.clock.advance_ms(1);
        let grant = stored_grant(&h);
        let mut second = approval(&h, &action);
        (second.state, second.decided_by) = (ApprovalState::Granted, Some(h.policy));
        (second.rests_on, second.template) = (Some(grant.id), "policy/1".into());
        assert_eq!(insert(&second), Ok(()));
        let action = action.id;
        let all = h.read(move |tx| store::approval::of_action(tx, action));
        assert_eq!(all, Ok(vec![first, second]));
        assert_eq!(verbs(&h, "approval"), ["requested", "granted", "consumed", "granted"]);
    });
}

/// An action at the first cut line.
fn admitted(h: &Harness, call_id: &str) -> Action {
    moved(h, &stored_action(h, call_id), &way_to(ActionState::Admitted))
}

fn attempts(h: &Harness, action: &Action) -> Vec<store::attempt::Attempt> {
    let id = action.id;
    h.read(move |tx| store::attempt::of_action(tx, id)).unwrap()
}

#[test]
fn a_permit_is_minted_by_a_dispatch_that_is_durable_and_says_what_was_frozen() {
    everywhere(|h| {
        let mut action = admitted(&h, "call-1");
        let attempt = attempt(&h, &action, 1);
        let (mut stored, one, bytes) = (action.clone(), attempt.clone(), frozen().bytes);
        let permit = h
            .dispatch(move |tx| {
                assert_eq!(tx.system_stop(), Ok(false));
                store::attempt::register(tx, &mut stored, one, &bytes).map(Some)
            })
            .unwrap()
            .unwrap();
        assert_eq!(attempts(&h, &action), vec![attempt.clone()]);
        (action.state, action.sent_at) = (ActionState::Dispatched, Some(attempt.created_at));
        (action.due_at, action.tries, action.reason) = (Some(attempt.answer_by), 0, None);
        assert_eq!(read_action(&h, action.id), action);
        let sent = permit.arguments(Some("client_ref"));
        let wanted = serde_json::json!({"quote": "q-3", "client_ref": attempt.operation_id});
        assert_eq!(serde_json::Value::Object(sent), wanted);
        assert_eq!(permit.arguments(None), frozen().content.arguments);
        let said = (permit.owner(), permit.tool(), permit.entry());
        assert_eq!(said, (h.owner, "hotel.book_hotel", Digest::of(b"entry")));
        let said = (permit.operation_id(), permit.send_by());
        assert_eq!(said, (attempt.operation_id.as_str(), attempt.send_by));
        // A dispatch whose recheck says no mints none.
        assert!(h.dispatch(|_| Ok(None)).unwrap().is_none());
        assert_eq!(verbs(&h, "attempt"), ["attempt"]);
    });
}

#[test]
fn an_attempt_is_registered_nowhere_else_and_only_for_its_own_admitted_action() {
    everywhere(|h| {
        let (action, other) = (admitted(&h, "call-1"), admitted(&h, "call-2"));
        let register = |action: &Action, attempt: store::attempt::Attempt, bytes: Vec<u8>| {
            let mut action = action.clone();
            move |tx: &mut store::OwnerTx<'_, '_>| {
                store::attempt::register(tx, &mut action, attempt, &bytes).map(Some)
            }
        };
        let good = || register(&action, attempt(&h, &action, 1), frozen().bytes);
        let refusal = |outcome: store::Result<Option<store::Permit>>| match outcome {
            Err(StoreError::Refused(text)) => text,
            other => panic!("{other:?}"),
        };
        let unlocked = "the operator's stop is not locked; use Store::admit".to_owned();
        let usual = h.write(good()).map(|_| ());
        assert_eq!(usual, Err(StoreError::Refused(unlocked.clone())));
        let urgent = h.store.write_urgent(h.owner, uuid(&h), good());
        let urgent = testkit::stores::block_on(urgent).map(|_| ());
        assert_eq!(urgent, Err(StoreError::Refused(unlocked)));

        let mut bytes = frozen().bytes;
        *bytes.last_mut().unwrap() = b' ';
        let tampered = h.dispatch(register(&action, attempt(&h, &action, 1), bytes));
        assert_eq!(refusal(tampered), "the bytes of an action are not the frozen ones");
        let own = "an attempt is registered for its own action";
        let strange = h.dispatch(register(&action, attempt(&h, &other, 1), frozen().bytes));
        assert_eq!(refusal(strange), own);
        let done = store::attempt::Attempt {
            state: AttemptState::Accepted,
            receipt: Some("r-0".into()),
            ..attempt(&h, &action, 1)
        };
        assert_eq!(refusal(h.dispatch(register(&action, done, frozen().bytes))), own);
        // Bytes that are the frozen ones and no content.
        let odd = Action { digest: Digest::of(b"{}"), ..action.clone() };
        let unread = h.dispatch(register(&odd, attempt(&h, &odd, 1), b"{}".to_vec()));
        assert!(matches!(unread, Err(StoreError::Corrupt(_))), "{unread:?}");
        // A time to send by that has passed when it is written.
        let late = store::attempt::Attempt { send_by: now(&h), ..attempt(&h, &action, 1) };
        let late = h.dispatch(register(&action, late, frozen().bytes));
        assert!(refusal(late).contains("CHECK") || h.store.is_postgres());

        assert_eq!(attempts(&h, &action), vec![]);
        assert_eq!([&action, &other].map(|a| read_action(&h, a.id)), [action.clone(), other]);
        // What is not at the first cut line does not pass the second.
        for state in STATES {
            if ActionState::MACHINE.allows(state.word(), "dispatched") {
                continue;
            }
            let at = moved(&h, &stored_action(&h, &format!("{state}")), &way_to(state));
            let attempt = attempt(&h, &at, 1);
            let refused = h.dispatch(register(&at, attempt, frozen().bytes));
            assert!(refusal(refused).contains("may not move that way"), "{state}");
            assert_eq!((attempts(&h, &at), read_action(&h, at.id)), (vec![], at));
        }
        // The same number twice, after one that did not leave.
        assert!(h.dispatch(good()).unwrap().is_some());
        let sent = read_action(&h, action.id);
        let again = moved(&h, &sent, &[ActionState::Blocked, ActionState::Admitted]);
        let same = h.dispatch(register(&again, attempt(&h, &again, 1), frozen().bytes));
        assert!(matches!(same, Err(StoreError::Duplicate(_))), "{same:?}");
        let next = h.dispatch(register(&again, attempt(&h, &again, 2), frozen().bytes));
        assert!(next.unwrap().unwrap().operation_id().ends_with(".2"));
        assert_eq!(attempts(&h, &action).len(), 2);
    });
}

#[test]
fn a_crash_at_the_commit_gives_no_permit() {
    for inline in [false, true] {
        for after in [false, true] {
            let gate = Arc::new(Gate::default());
            let set = |options: &mut store::Options| options.gate = Some(gate.clone());
            let on_both = [Some(Harness::sqlite(inline, set)), Harness::postgres(inline, set)];
            for h in on_both.into_iter().flatten() {
                let action = admitted(&h, "call-1");
                let one = attempt(&h, &action, 1);
                let (mut stored, registered) = (action.clone(), one.clone());
                let crash = if after { &gate.crash_after } else { &gate.crash_before };
                crash.store(true, Ordering::SeqCst);
                let bytes = frozen().bytes;
                let answer = h.dispatch(move |tx| {
                    store::attempt::register(tx, &mut stored, registered, &bytes).map(Some)
                });
                assert!(matches!(answer, Err(StoreError::Closed)), "{answer:?}");
                crash.store(false, Ordering::SeqCst);
                let h = h.reopen(|_| {});
                // On record means sent, as far as anybody may assume.
                let (wanted, state) = match after {
                    true => (vec![one], ActionState::Dispatched),
                    false => (vec![], ActionState::Admitted),
                };
                assert_eq!(attempts(&h, &action), wanted);
                assert_eq!(read_action(&h, action.id).state, state);
            }
        }
    }
}

#[test]
fn an_attempt_is_settled_once_and_late_answers_count_by_its_id() {
    everywhere(|h| {
        let action = admitted(&h, "call-1");
        let mut one = attempt(&h, &action, 1);
        let (mut stored, registered, bytes) = (action.clone(), one.clone(), frozen().bytes);
        let work = move |tx: &mut store::OwnerTx<'_, '_>| {
            store::attempt::register(tx, &mut stored, registered, &bytes).map(Some)
        };
        drop(h.dispatch(work).unwrap());
        let id = one.id;
        let get = || h.read(move |tx| store::attempt::get(tx, id));
        assert_eq!(get(), Ok(one.clone()));
        let advance = |seen: &store::attempt::Attempt, to, said: Said| {
            let seen = seen.clone();
            h.write(move |tx| store::attempt::advance(tx, &seen, to, said))
        };
        let registered = one.clone();
        let at = h.clock.advance_ms(1);
        let lost = Said { reason: Some("no answer".into()), ..Said::default() };
        assert_eq!(advance(&registered, AttemptState::Unknown, lost.clone()), Ok(true));
        (one.state, one.reason, one.moved_at) = (AttemptState::Unknown, lost.reason, at);
        assert_eq!(get(), Ok(one.clone()));
        assert_eq!(advance(&one, AttemptState::Unknown, Said::default()), Ok(false));
        // Accepted without a proof is a defect.
        let bare = advance(&one, AttemptState::Accepted, Said::default());
        assert!(matches!(bare, Err(StoreError::Refused(_))), "{bare:?}");
        let said = Said { reason: None, receipt: Some("r-1".into()), answer: Some(h.id()) };
        assert_eq!(advance(&registered, AttemptState::Accepted, said.clone()), Ok(false));
        assert_eq!(advance(&one, AttemptState::Accepted, said.clone()), Ok(true));
        (one.state, one.reason) = (AttemptState::Accepted, None);
        (one.receipt, one.answer) = (said.receipt, said.answer);
        assert_eq!(get(), Ok(one));
        assert_eq!(verbs(&h, "attempt"), ["attempt", "unknown", "accepted"]);
    });
}

/// Whether somebody waits for a lock in this database.
fn somebody_waits(raw: &mut Raw) -> bool {
    match raw {
        // One writer: whoever is not it waits in the store's own queue.
        Raw::Sqlite(_) => true,
        Raw::Postgres(_) => {
            let waits = "SELECT COUNT(*) FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'";
            raw.number(waits) > 0
        }
    }
}

#[test]
fn the_operators_stop_waits_for_an_admission_under_way_and_the_next_sees_it() {
    each_engine(|h| {
        let unlocked = h.write(|tx| store::hold::system_stop(tx, true));
        assert!(matches!(unlocked, Err(StoreError::Refused(_))), "{unlocked:?}");
        let mut raw = Raw::beside(&h);
        let ((come, has_come), (go, may_go)) = (channel(), channel::<()>());
        let (stopped, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)));
        std::thread::scope(|scope| {
            let (h, was, late) = (&h, seen.clone(), stopped.clone());
            let first = scope.spawn(move || {
                h.admit(move |tx| {
                    was.store(tx.system_stop()?, Ordering::SeqCst);
                    come.send(()).unwrap();
                    may_go.recv().unwrap();
                    // The stop has not gone by it.
                    Ok(late.load(Ordering::SeqCst))
                })
            });
            has_come.recv().unwrap();
            let set = stopped.clone();
            let operator = scope.spawn(move || {
                h.operate(move |tx| {
                    set.store(true, Ordering::SeqCst);
                    store::hold::system_stop(tx, true)
                })
            });
            let waits = (0..100_000).any(|_| somebody_waits(&mut raw));
            assert!(waits && !operator.is_finished());
            go.send(()).unwrap();
            assert_eq!(first.join().unwrap(), Ok(false));
            assert_eq!(operator.join().unwrap(), Ok(true));
        });
        assert!(!seen.load(Ordering::SeqCst));
        assert_eq!(h.admit(|tx| tx.system_stop()), Ok(true));
        assert_eq!(h.operate(|tx| store::hold::system_stop(tx, false)), Ok(true));
        assert_eq!(h.admit(|tx| tx.system_stop()), Ok(false));
    });
}

/// The id of a transaction.
fn number(n: u32) -> uuid::Uuid {
    uuid::Uuid::from_u128(n.into())
}

/// Rounds of each of the writers.
const ROUNDS: u32 = 200;

#[test]
fn stops_and_admissions_at_once_stand_in_one_order_and_never_block_each_other() {
    each_engine(|h| {
        let stands = Arc::new(AtomicBool::new(false));
        let (admissions, wrong) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (store, owner): (&Store, _) = (&h.store, h.owner);
        std::thread::scope(|scope| {
            let operator = stands.clone();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let (stands, to) = (operator.clone(), round % 2 == 0);
                    let done = store.operate(owner, number(round), move |tx| {
                        stands.store(to, Ordering::SeqCst);
                        store::hold::system_stop(tx, to)
                    });
                    assert_eq!(testkit::stores::block_on(done), Ok(true), "round {round}");
                }
            });
            for writer in 1..=2 {
                let (stands, admissions, wrong) =
                    (stands.clone(), admissions.clone(), wrong.clone());
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let (stands, wrong) = (stands.clone(), wrong.clone());
                        let txn = number(writer * 1_000 + round);
                        let done = store.admit(owner, txn, move |tx| {
                            let read = tx.system_stop()?;
                            let differs = read != stands.load(Ordering::SeqCst);
                            wrong.fetch_add(u32::from(differs), Ordering::SeqCst);
                            Ok(())
                        });
                        assert_eq!(testkit::stores::block_on(done), Ok(()), "round {round}");
                        admissions.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        let counts = [admissions, wrong].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(counts, [2 * ROUNDS, 0]);
    });
}
