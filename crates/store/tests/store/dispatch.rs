//! The second cut line, on both engines: attempts, permits, and the operator's stop beside admissions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;

use base::Digest;
use domain::state::{ActionState, AttemptState};
use store::action::Action;
use store::attempt::Said;
use store::{Store, StoreError};
use testkit::stores::{Harness, each_engine};

use crate::effect_records::*;
use crate::effects::{STATES, read_action, verbs};
use crate::fixtures::{Gate, everywhere, now, uuid};
use crate::raw::Raw;

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
        action.escalated_at = None;
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
        let elsewhere = "this belongs in a write of kind Dispatch".to_owned();
        let usual = h.write(good()).map(|_| ());
        assert_eq!(usual, Err(StoreError::Refused(elsewhere.clone())));
        let urgent = h.store.write_urgent(h.owner, uuid(&h), good());
        let urgent = testkit::stores::block_on(urgent).map(|_| ());
        assert_eq!(urgent, Err(StoreError::Refused(elsewhere.clone())));
        let admission = h.store.admit(h.owner, uuid(&h), good());
        let admission = testkit::stores::block_on(admission).map(|_| ());
        assert_eq!(admission, Err(StoreError::Refused(elsewhere)));

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
