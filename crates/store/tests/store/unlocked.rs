//! Events that are accepted without the owner's lock: once per id whoever delivers, without a place in
//! the owner's order, and never lost to a wait that is registered at the same moment.

use std::sync::Barrier;
use std::sync::mpsc::channel;

use base::{Digest, EventId};
use domain::event::{Class, EventKind};
use domain::state::WaitState;
use store::event::Accepted;
use store::wait::Wait;
use store::{OwnerTx, StoreError};
use testkit::stores::{Harness, block_on, each_engine};

use crate::fixtures::*;
use crate::raw::Raw;
use crate::world::*;

/// What is stored of events.
fn counts(h: &Harness) -> [i64; 3] {
    let mut raw = Raw::beside(h);
    ["event", "work_item", "body"].map(|t| raw.number(&format!("SELECT COUNT(*) FROM {t}")))
}

/// The numbers of the owner's changes, each once.
fn numbers(h: &Harness) -> Vec<i64> {
    let owner = h.owner;
    let changes = h.read(move |tx| store::change::after(tx, owner, 0, 10_000)).unwrap();
    let mut numbers: Vec<i64> = changes.into_iter().map(|change| change.seq).collect();
    numbers.dedup();
    numbers
}

#[test]
fn a_delivery_is_stored_whole_once_and_a_repeat_is_known_by_its_digest() {
    everywhere(|h| {
        let first = delivery(&h, h.device, "d1", "one content");
        let (same, other) = (
            delivery(&h, h.device, "d1", "one content"),
            delivery(&h, h.device, "d1", "another content"),
        );
        let accept = |delivery: &Delivery| {
            let delivery = delivery.clone();
            h.unowned(move |tx| delivery.accept(tx)).unwrap()
        };
        let known = Accepted::Known(Box::new(first.event.clone()));
        let found = [accept(&first), accept(&same), accept(&other)];
        assert_eq!(found, [Accepted::New, known.clone(), known]);
        // The one with other content is told from a repeat by the digest of the stored one.
        assert_eq!(first.event.digest, Digest::of(b"one content"));
        assert_ne!(first.event.digest, other.event.digest);
        let (id, item, body, source) =
            (first.event.id, first.item.id, first.body.id, first.event.source);
        let found = h.read(move |tx| {
            Ok((
                store::event::get(tx, id)?,
                store::work_item::get(tx, item)?,
                store::event::body(tx, body)?,
                store::source::get(tx, source)?.received_at,
            ))
        });
        let (heard, bytes) = (first.event.received_at, first.body.bytes.clone());
        assert_eq!(found, Ok((first.event, first.item, Some(bytes), Some(heard))));
        assert_eq!(counts(&h), [1, 1, 1]);
    });
}

#[test]
fn a_delivery_that_was_held_up_does_not_make_its_source_look_silent() {
    each_engine(|h| {
        let early = delivery(&h, h.device, "early", "");
        let at = h.clock.advance_ms(5);
        let late = delivery(&h, h.device, "late", "");
        let source = h.device;
        for delivery in [late, early] {
            h.unowned(move |tx| delivery.accept(tx)).unwrap();
        }
        let heard = h.read(move |tx| Ok(store::source::get(tx, source)?.received_at));
        assert_eq!(heard, Ok(Some(at)));
    });
}

#[test]
fn eight_deliveries_of_one_id_at_once_make_one_event_with_one_item() {
    const AT_ONCE: usize = 8;
    const ROUNDS: usize = 5;
    each_engine(|h| {
        for round in 0..ROUNDS {
            let external_id = format!("round {round}");
            let deliveries: Vec<Delivery> = (0..AT_ONCE)
                .map(|n| delivery(&h, h.device, &external_id, &n.to_string()))
                .collect();
            let start = Barrier::new(AT_ONCE);
            let answers: Vec<Accepted> = std::thread::scope(|scope| {
                let threads: Vec<_> = deliveries
                    .iter()
                    .map(|delivery| {
                        let (h, start, delivery) = (&h, &start, delivery.clone());
                        scope.spawn(move || {
                            start.wait();
                            h.unowned(move |tx| delivery.accept(tx)).unwrap()
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let source = h.device;
            let stored = h.read(move |tx| store::event::by_external(tx, source, &external_id));
            let stored = stored.unwrap().unwrap();
            for (delivery, answer) in deliveries.iter().zip(answers) {
                let wanted = match delivery.event == stored {
                    true => Accepted::New,
                    false => Accepted::Known(Box::new(stored.clone())),
                };
                assert_eq!(answer, wanted);
            }
            assert_eq!(counts(&h), [i64::try_from(round + 1).unwrap(); 3]);
        }
    });
}

#[test]
fn an_accepted_event_takes_no_number_and_the_routers_write_takes_the_next() {
    const EACH: usize = 12;
    each_engine(|h| {
        let main = h.main;
        let route = move |tx: &mut OwnerTx<'_, '_>, delivery: &Delivery| {
            let moved = store::work_item::enqueue(tx, delivery.item.id, main, Class::External)?;
            store::event::dispose(tx, delivery.event.id, "queued")?;
            Ok((moved, tx.seq()))
        };
        let alone = delivery(&h, h.device, "alone", "");
        let accepted = alone.clone();
        h.unowned(move |tx| accepted.accept(tx)).unwrap();
        assert_eq!((change_seq(&h), numbers(&h)), (0, vec![]));
        assert_eq!(h.write(move |tx| route(tx, &alone)), Ok((true, 1)));
        assert_eq!((change_seq(&h), numbers(&h)), (1, vec![1]));
        // Two who deliver and one who routes, all at once.
        let (to_router, router) = channel::<Delivery>();
        std::thread::scope(|scope| {
            for who in 0..2 {
                let (h, to_router) = (&h, to_router.clone());
                scope.spawn(move || {
                    for n in 0..EACH {
                        let delivery = delivery(h, h.device, &format!("{who}:{n}"), "");
                        let accepted = delivery.clone();
                        h.unowned(move |tx| accepted.accept(tx)).unwrap();
                        to_router.send(delivery).unwrap();
                    }
                });
            }
            drop(to_router);
            for (delivery, seq) in router.iter().zip(2..) {
                assert_eq!(h.write(move |tx| route(tx, &delivery)), Ok((true, seq)));
            }
        });
        let last = i64::try_from(2 * EACH).unwrap() + 1;
        assert_eq!((change_seq(&h), numbers(&h)), (last, (1..=last).collect()));
        assert_eq!(h.read(|tx| store::work_item::unrouted(tx, 9)), Ok(vec![]));
    });
}

#[test]
fn a_delivery_that_fails_half_way_leaves_nothing() {
    each_engine(|h| {
        let mut delivery = delivery(&h, h.device, "d1", "content");
        // An item may not begin at its end: the schema's second wall.
        delivery.item.state = domain::state::WorkItemState::Done;
        let failed = h.unowned({
            let delivery = delivery.clone();
            move |tx| delivery.accept(tx)
        });
        assert!(matches!(failed, Err(StoreError::Refused(_))), "{failed:?}");
        assert_eq!(counts(&h), [0, 0, 0]);
        let source = h.device;
        let heard = h.read(move |tx| Ok(store::source::get(tx, source)?.received_at));
        assert_eq!(heard, Ok(None));
        delivery.item.state = domain::state::WorkItemState::Unrouted;
        assert_eq!(h.unowned(move |tx| delivery.accept(tx)), Ok(Accepted::New));
    });
}

const KIND: EventKind = EventKind::Webhook;

/// What the tool layer does: looks for an event that is there already, else leaves a wait open.
fn register(tx: &mut OwnerTx<'_, '_>, mut wait: Wait) -> store::Result<Option<EventId>> {
    let since = wait.created_at;
    let found = store::event::by_key(tx, KIND.word(), &wait.key, since)?.map(|event| event.id);
    if found.is_some() {
        (wait.state, wait.satisfied_by) = (WaitState::Satisfied, found);
    }
    store::wait::insert(tx, &wait)?;
    Ok(found)
}

/// What the router does with an event: ends the waits that are there.
fn meet(tx: &mut OwnerTx<'_, '_>, key: &str, event: EventId) -> store::Result<usize> {
    let waits = store::wait::by_key(tx, KIND.word(), key)?;
    for wait in &waits {
        assert!(store::wait::end(tx, wait.id, WaitState::Satisfied, Some(event))?);
    }
    Ok(waits.len())
}

fn wait_for(h: &Harness, external_id: &str) -> (Delivery, Wait) {
    let delivery = delivery(h, h.device, external_id, "answer");
    let mut wait = wait(h, external_id);
    wait.kind = KIND.word().into();
    wait.key = delivery.event.key.clone().unwrap();
    (delivery, wait)
}

#[test]
fn a_wait_finds_the_event_before_it_and_the_router_finds_the_wait_before_the_event() {
    everywhere(|h| {
        // The event commits first.
        let (delivery, wait) = wait_for(&h, "first");
        let (event, mut born) = (delivery.event.id, wait.clone());
        h.unowned(move |tx| delivery.accept(tx)).unwrap();
        assert_eq!(h.write(move |tx| register(tx, wait)), Ok(Some(event)));
        (born.state, born.satisfied_by) = (WaitState::Satisfied, Some(event));
        let key = born.key.clone();
        assert_eq!(h.write(move |tx| meet(tx, &key, event)), Ok(0));
        assert_eq!(h.read(move |tx| store::wait::met_by(tx, event)), Ok(vec![born.clone()]));

        // The wait commits first.
        let (delivery, wait) = wait_for(&h, "second");
        let (event, mut met, key) = (delivery.event.id, wait.clone(), wait.key.clone());
        assert_eq!(h.write(move |tx| register(tx, wait)), Ok(None));
        h.unowned(move |tx| delivery.accept(tx)).unwrap();
        let at = h.clock.advance_ms(1);
        assert_eq!(h.write(move |tx| meet(tx, &key, event)), Ok(1));
        (met.state, met.satisfied_by, met.moved_at) = (WaitState::Satisfied, Some(event), at);
        assert_eq!(h.read(move |tx| store::wait::met_by(tx, event)), Ok(vec![met.clone()]));

        // The one that ended last is the one for a late comer; an open one does not count.
        let mut later = wait_for(&h, "second").1;
        later.call_id = "later".into();
        let (key, other) = (met.key.clone(), born.key.clone());
        let ended = h.write(move |tx| {
            store::wait::insert(tx, &later)?;
            let one = store::wait::ended(tx, KIND.word(), &key)?;
            assert!(store::wait::end(tx, later.id, WaitState::Cancelled, None)?);
            let last = store::wait::ended(tx, KIND.word(), &key)?.map(|wait| wait.id);
            let unheard = store::wait::ended(tx, EventKind::File.word(), &key)?;
            let of_other = store::wait::ended(tx, KIND.word(), &other)?;
            Ok((one, last.is_some_and(|id| id == later.id.max(met.id)), unheard, of_other))
        });
        assert_eq!(ended, Ok((Some(met), true, None, Some(born))));
    });
}

#[test]
fn a_wait_under_way_sees_what_is_committed_beside_it() {
    each_engine(|h| {
        let (delivery, wait) = wait_for(&h, "beside");
        let (event, key) = (delivery.event.id, wait.key.clone());
        let (looked, has_looked) = channel();
        let (go, may_go) = channel::<()>();
        let registering = h.store.write(h.owner, uuid(&h), move |tx| {
            let since = wait.created_at;
            assert_eq!(store::event::by_key(tx, KIND.word(), &wait.key, since)?, None);
            looked.send(()).unwrap();
            may_go.recv().unwrap();
            register(tx, wait)
        });
        has_looked.recv().unwrap();
        let accepting = h.store.write_unowned(move |tx| delivery.accept(tx));
        // SQLite has one writer: there the event comes after the wait. PostgreSQL's has come before it.
        let found = if h.store.is_postgres() {
            assert_eq!(block_on(accepting), Ok(Accepted::New));
            go.send(()).unwrap();
            block_on(registering)
        } else {
            go.send(()).unwrap();
            let found = block_on(registering);
            assert_eq!(block_on(accepting), Ok(Accepted::New));
            found
        };
        let met = h.write(move |tx| meet(tx, &key, event));
        let wanted = if h.store.is_postgres() { (Some(event), 0) } else { (None, 1) };
        assert_eq!((found, met), (Ok(wanted.0), Ok(wanted.1)));
    });
}

#[test]
fn whoever_is_first_no_wait_misses_the_event_that_comes_at_the_same_moment() {
    const ROUNDS: usize = 24;
    each_engine(|h| {
        for round in 0..ROUNDS {
            let (delivery, wait) = wait_for(&h, &format!("round {round}"));
            let (event, id, key) = (delivery.event.id, wait.id, wait.key.clone());
            // The wait is registered while the event is accepted, while it is routed, or after that.
            let begins = round % 3;
            let (begin, may_begin) = channel();
            std::thread::scope(|scope| {
                let h = &h;
                scope.spawn(move || {
                    let reached = |point| (point == begins).then(|| begin.send(()).unwrap());
                    reached(0);
                    h.unowned(move |tx| delivery.accept(tx)).unwrap();
                    reached(1);
                    h.write(move |tx| meet(tx, &key, event)).unwrap();
                    reached(2);
                });
                scope.spawn(move || {
                    may_begin.recv().unwrap();
                    h.write(move |tx| register(tx, wait)).unwrap();
                });
            });
            let wait = h.read(move |tx| store::wait::get(tx, id)).unwrap();
            let how = (wait.state, wait.satisfied_by);
            assert_eq!(how, (WaitState::Satisfied, Some(event)), "round {round}");
        }
    });
}
