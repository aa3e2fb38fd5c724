//! What holds the agent back: a hold per message, pauses, the operator's stop, and the dial. Each ends
//! once, and each end is in the audit chain.

use base::{HoldId, Id as _, PauseId, PrincipalId};
use domain::event::Dial;
use domain::hold::Verdict;
use domain::state::{HoldState, PauseState};
use store::StoreError;
use testkit::stores::{Harness, each_engine};

use crate::fixtures::*;
use crate::world::*;

/// Who did what to which record, by the audit chain.
fn audited(h: &Harness) -> Vec<(Option<PrincipalId>, String, String, uuid::Uuid)> {
    let owner = h.owner;
    let entries = h.read(move |tx| store::change::audit(tx, owner, 0, 99)).unwrap();
    entries.into_iter().map(|e| (e.by, e.verb, e.noun, e.record)).collect()
}

#[test]
fn a_message_places_one_hold_and_it_ends_once() {
    everywhere(|h| {
        let mut hold = hold(&h, h.id());
        let (stored, id, event, owner) = (hold.clone(), hold.id, hold.event, h.owner);
        h.write(move |tx| store::hold::place(tx, &stored)).unwrap();
        let second = crate::world::hold(&h, event);
        let twice = h.write(move |tx| store::hold::place(tx, &second));
        assert!(matches!(twice, Err(StoreError::Duplicate(_))), "{twice:?}");

        let placed = || h.read(move |tx| store::hold::placed(tx, owner));
        assert_eq!(placed(), Ok(vec![hold.clone()]));
        let judge = |verdict| h.write(move |tx| store::hold::judge(tx, id, verdict));
        judge(Verdict::NotAStop).unwrap();
        judge(Verdict::Stop).unwrap();
        let at = h.clock.advance_ms(1);
        let ask = || h.write(move |tx| store::hold::asked(tx, id));
        assert_eq!([ask(), ask()], [Ok(true), Ok(false)]);
        (hold.verdict, hold.asked_at) = (Some(Verdict::Stop), Some(at));
        assert_eq!(placed(), Ok(vec![hold.clone()]));

        let at = h.clock.advance_ms(1);
        let (pause, policy, user) = (h.id::<PauseId>(), h.policy, h.user);
        let promote = HoldState::Promoted;
        let ends = [
            h.write(move |tx| store::hold::end(tx, id, promote, policy, Some(pause))),
            h.write(move |tx| store::hold::end(tx, id, HoldState::Released, user, None)),
        ];
        assert_eq!(ends, [Ok(true), Ok(false)]);
        // A model that answers late says nothing any more, and nobody is asked.
        let seq = change_seq(&h);
        judge(Verdict::NotAStop).unwrap();
        assert_eq!((ask(), change_seq(&h)), (Ok(false), seq));
        (hold.state, hold.moved_at) = (promote, at);
        (hold.decided_by, hold.pause) = (Some(policy), Some(pause));
        let found = h.read(move |tx| {
            let unknown = store::hold::of_event(tx, base::EventId::from_uuid(id.uuid()))?;
            Ok((store::hold::get(tx, id)?, store::hold::of_event(tx, event)?, unknown))
        });
        assert_eq!(found, Ok((hold.clone(), Some(hold), None)));
        assert_eq!(placed(), Ok(vec![]));
        let end = (Some(policy), "promoted".to_owned(), HoldId::NOUN.to_owned(), id.uuid());
        assert_eq!(audited(&h), vec![end]);
    });
}

#[test]
fn a_duty_and_everything_have_one_pause_each_and_it_is_lifted_once() {
    everywhere(|h| {
        let (owner, user, policy, duty) = (h.owner, h.user, h.policy, h.id());
        let place = |pause: &store::hold::Pause| {
            let pause = pause.clone();
            h.write(move |tx| store::hold::pause(tx, &pause))
        };
        let mut pauses = Vec::new();
        for covered in [Some(duty), Some(h.id()), None] {
            h.clock.advance_ms(1);
            let placed = pause(&h, covered);
            assert_eq!(place(&placed), Ok(()));
            pauses.push(placed);
        }
        for covered in [Some(duty), None] {
            let twice = place(&pause(&h, covered));
            assert!(matches!(twice, Err(StoreError::Duplicate(_))), "{covered:?}: {twice:?}");
        }
        let in_force = || h.read(move |tx| store::hold::pauses(tx, owner));
        assert_eq!(in_force(), Ok(pauses.clone()));

        let at = h.clock.advance_ms(1);
        let (id, all) = (pauses[0].id, pauses[2].id);
        let lift = |id, by| h.write(move |tx| store::hold::lift(tx, id, by));
        assert_eq!(
            [lift(id, user), lift(id, policy), lift(all, user)].map(Result::unwrap),
            [true, false, true]
        );
        let mut lifted = pauses.remove(0);
        (lifted.state, lifted.lifted_by, lifted.moved_at) = (PauseState::Lifted, Some(user), at);
        assert_eq!(h.read(move |tx| store::hold::get_pause(tx, id)), Ok(lifted));
        let left = vec![pauses.remove(0)];
        assert_eq!(in_force(), Ok(left.clone()));
        // What was lifted may be paused again.
        let again = [pause(&h, Some(duty)), pause(&h, None)];
        assert_eq!(again.each_ref().map(place), [Ok(()), Ok(())]);

        let entry = |verb: &str, id: PauseId| {
            (Some(user), verb.to_owned(), PauseId::NOUN.to_owned(), id.uuid())
        };
        let wanted = vec![
            entry("pause", id),
            entry("pause", left[0].id),
            entry("pause", all),
            entry("lift", id),
            entry("lift", all),
            entry("pause", again[0].id),
            entry("pause", again[1].id),
        ];
        assert_eq!(audited(&h), wanted);
    });
}

#[test]
fn the_operators_stop_stands_until_it_is_taken_back_whoever_starts() {
    each_engine(|h| {
        let stop = |h: &Harness, to| h.operate(move |tx| store::hold::system_stop(tx, to));
        let stopped = |h: &Harness| h.read(store::hold::is_stopped);
        assert_eq!((stopped(&h), stop(&h, false)), (Ok(false), Ok(false)));
        assert_eq!((stop(&h, true), stop(&h, true), stopped(&h)), (Ok(true), Ok(false), Ok(true)));
        let h = h.reopen(|_| {});
        assert_eq!((stopped(&h), stop(&h, false), stopped(&h)), (Ok(true), Ok(true), Ok(false)));
    });
}

#[test]
fn the_dial_is_turned_under_the_owners_lock() {
    each_engine(|h| {
        let owner = h.owner;
        for (n, dial) in (1..).zip([Dial::Off, Dial::Auto, Dial::Observe]) {
            h.write(move |tx| store::owner::set_dial(tx, dial)).unwrap();
            let found = h.read(move |tx| store::owner::get(tx, owner)).unwrap();
            let wanted = store::owner::Owner { dial, change_seq: n, ..h.owner_record() };
            assert_eq!(found, wanted);
        }
    });
}
