//! Grants, actions and approvals through the store's one door, on both engines.

use base::{ActionId, GrantId, Id as _};
use domain::effect::Used;
use domain::state::{ActionState, ApprovalState, GrantState, RuleState};
use store::StoreError;
use store::action::{Action, share};
use store::approval::{Approval, Tap};
use store::grant::{Grant, Share};
use store::owner::PrincipalKind;
use testkit::stores::{Harness, each_engine};

use crate::effect_records::*;
use crate::fixtures::{change_seq, everywhere, now, stored_duty};

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

pub fn read_action(h: &Harness, id: ActionId) -> Action {
    h.read(move |tx| store::action::get(tx, id)).unwrap()
}

pub fn verbs(h: &Harness, noun: &str) -> Vec<String> {
    let owner = h.owner;
    let entries = h.read(move |tx| store::change::audit(tx, owner, 0, 999)).unwrap();
    entries.into_iter().filter(|entry| entry.noun == noun).map(|entry| entry.verb).collect()
}

pub const STATES: [ActionState; 15] = [
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
fn only_what_is_admitted_sent_unknown_or_sent_again_holds_its_errand_and_its_objects() {
    each_engine(|h| {
        let asks = Action { errand: "the errand".into(), ..action(&h, "asks") };
        for state in STATES {
            let other = Action {
                errand: "the errand".into(),
                run: asks.run,
                not_before: None,
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
                let caught = state == ActionState::Admitted;
                let end = if caught { ActionState::Cancelled } else { ActionState::Blocked };
                moved(&h, &other, &[end]);
            }
        }
        // One that never left and is to be sent again is under way too.
        let again = Action { errand: "the errand".into(), run: asks.run, ..action(&h, "again") };
        let (stored, object) = (again.clone(), object(&h, again.id, "offer", "q-3"));
        h.write(move |tx| store::action::insert(tx, &stored, &[object])).unwrap();
        let mut again = moved(&h, &again, &way_to(ActionState::Blocked));
        again.not_before = Some(now(&h));
        let (id, asked) = (again.id, asks.clone());
        let found = h.write(move |tx| {
            store::action::put(tx, &again, ActionState::Blocked, None)?;
            let errand = store::action::errand(tx, &asked)?;
            Ok([errand, store::action::taken(tx, &asked, "quote", "q-3")?])
        });
        assert_eq!(found, Ok([Some(id); 2]));
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
        let tap = Tap {
            by: Some(h.user),
            device: Some(h.id()),
            reason: Some("fine".into()),
            shown: Some("action-2 zh".into()),
        };
        let at = h.clock.advance_ms(1);
        // Nobody decided, or from nowhere: the schema's own word.
        for half in [Tap::default(), Tap { by: Some(h.user), ..Tap::default() }] {
            let refused = advance(&first, ApprovalState::Granted, half);
            assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
        }
        let seen = first.clone();
        assert_eq!(advance(&seen, ApprovalState::Granted, tap.clone()), Ok(true));
        (first.state, first.moved_at) = (ApprovalState::Granted, at);
        (first.decided_by, first.device, first.decided_at) = (tap.by, tap.device, Some(at));
        first.reason.clone_from(&tap.reason);
        first.shown = Some("action-2 zh".into());
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

        // The supervisor's stands besides, and there is one of those at a time too.
        let kind = PrincipalKind::Supervisor;
        let besides = Approval { kind, ..approval(&h, &action) };
        assert_eq!(insert(&besides), Ok(()));
        let twice = insert(&Approval { kind, ..approval(&h, &action) });
        assert!(matches!(twice, Err(StoreError::Duplicate(_))), "{twice:?}");
        let of = action.id;
        assert_eq!(h.read(move |tx| store::approval::besides(tx, of)), Ok(Some(besides.clone())));
        assert_eq!(advance(&besides, ApprovalState::Cancelled, Tap::default()), Ok(true));

        h.clock.advance_ms(1);
        let grant = stored_grant(&h);
        let mut second = approval(&h, &action);
        (second.state, second.decided_by) = (ApprovalState::Granted, Some(h.policy));
        second.kind = PrincipalKind::Policy;
        (second.rests_on, second.template) = (Some(grant.id), "policy/1".into());
        assert_eq!(insert(&second), Ok(()));
        let action = action.id;
        let all = h.read(move |tx| store::approval::of_action(tx, action));
        let all: Vec<_> = all.unwrap().into_iter().filter(|a| a.kind != kind).collect();
        assert_eq!(all, vec![first, second]);
        let (asked, granted) = ("requested", "granted");
        assert_eq!(
            verbs(&h, "approval"),
            [asked, granted, "consumed", asked, "cancelled", granted]
        );
    });
}

#[test]
fn a_rule_is_written_once_counts_while_it_is_in_force_and_ends_once() {
    everywhere(|h| {
        let (first, mut second) = (crate::world::rule(&h), crate::world::rule(&h));
        (second.tool, second.above_minor, second.currency) = ("*".into(), None, None);
        let (a, b, owner, user) = (first.clone(), second.clone(), h.owner, h.user);
        h.write(move |tx| {
            store::rule::insert(tx, &a)?;
            store::rule::insert(tx, &b)
        })
        .unwrap();
        let active = || h.read(move |tx| store::rule::active(tx, owner)).unwrap();
        assert_eq!(active(), [first.clone(), second.clone()]);
        let terms = first.terms();
        assert_eq!(
            (terms.above.map(|above| above.minor), terms.demand),
            (Some(50_000), first.demand)
        );
        assert_eq!(second.terms().above, None);
        h.clock.advance_ms(1);
        let id = first.id;
        let end = || h.write(move |tx| store::rule::end(tx, id, user));
        assert_eq!([end(), end()], [Ok(true), Ok(false)]);
        assert_eq!(active(), [second]);
        let ended = h.read(move |tx| store::rule::get(tx, owner, id)).unwrap();
        assert_eq!((ended.state, ended.ended_by), (RuleState::Ended, Some(user)));
        let mut half = crate::world::rule(&h);
        half.currency = None;
        let refused = h.write(move |tx| store::rule::insert(tx, &half));
        assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
        assert_eq!(verbs(&h, "rule"), ["rule", "rule", "end"]);
    });
}

#[test]
fn a_rule_in_force_is_not_hidden_by_newer_ones_that_ended() {
    everywhere(|h| {
        let (stands, owner, user) = (crate::world::rule(&h), h.owner, h.user);
        h.clock.advance_ms(1);
        let newer = crate::world::rule(&h);
        let (a, b) = (stands.clone(), newer.clone());
        h.write(move |tx| {
            store::rule::insert(tx, &a)?;
            store::rule::insert(tx, &b)?;
            store::rule::end(tx, b.id, user)
        })
        .unwrap();
        let all = |limit| h.read(move |tx| store::rule::all(tx, owner, limit)).unwrap();
        assert_eq!(all(1), std::slice::from_ref(&stands));
        assert_eq!(all(9).iter().map(|rule| rule.id).collect::<Vec<_>>(), [stands.id, newer.id]);
    });
}
