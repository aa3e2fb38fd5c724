//! One order per owner: the change sequence has no gaps and follows the commits, the audit chain holds
//! together and shows every edit, and a signal tells what was committed.

use std::sync::{Arc, Mutex};

use base::{Digest, Id as _, OwnerId};
use store::change::{Audited, Change};
use store::{OwnerTx, Result, StoreError};
use testkit::stores::{Harness, block_on, each_engine};
use uuid::Uuid;

use crate::fixtures::*;
use crate::raw::Raw;

/// What the owner's sequence says was changed, each transaction once.
fn changes(h: &Harness) -> Vec<Change> {
    let owner = h.owner;
    h.read(move |tx| store::change::after(tx, owner, 0, 1_000)).unwrap()
}

#[test]
fn eight_writers_at_once_leave_a_sequence_without_gaps_in_the_order_of_their_commits() {
    const WRITERS: u128 = 8;
    const WRITES: u128 = 25;
    each_engine(|h| {
        let mut signals = h.store.signals();
        // Every transaction notes the number it was given while it holds the owner's lock, so this
        // is the order in which they decided.
        let decided: Arc<Mutex<Vec<(i64, Uuid)>>> = Arc::default();
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (h, decided) = (&h, decided.clone());
                scope.spawn(move || {
                    for write in 0..WRITES {
                        let duty =
                            base::DutyId::from_uuid(Uuid::from_u128(writer * WRITES + write));
                        let decided = decided.clone();
                        let work = move |tx: &mut OwnerTx<'_, '_>| {
                            tx.changed(duty);
                            let noted = (tx.seq(), duty.uuid());
                            decided.lock().unwrap().push(noted);
                            Ok(tx.seq())
                        };
                        let seq = block_on(h.store.write(h.owner, uuid(h), work)).unwrap();
                        // What was answered is there for every reader from now on.
                        assert!(change_seq(h) >= seq);
                    }
                });
            }
        });
        let total = i64::try_from(WRITERS * WRITES).unwrap();
        let noted = decided.lock().unwrap().clone();
        let stored: Vec<(i64, Uuid)> =
            changes(&h).into_iter().map(|change| (change.seq, change.record)).collect();
        assert_eq!(stored, noted, "the order of decisions is the order of numbers");
        let numbers: Vec<i64> = stored.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(numbers, (1..=total).collect::<Vec<_>>());
        let mut told = Vec::new();
        while let Ok(signal) = signals.try_recv() {
            assert_eq!(signal.owner, h.owner);
            told.push(signal.seq);
        }
        told.sort_unstable();
        assert_eq!(told, numbers, "each commit is told once");
    });
}

#[test]
fn a_transaction_takes_one_number_and_none_if_it_wrote_nothing_or_failed() {
    everywhere(|h| {
        let (a, b, owner) = (h.id::<base::DutyId>(), h.id::<base::RunId>(), h.owner);
        h.write(move |tx| {
            tx.changed(a);
            tx.changed(b);
            tx.changed(a);
            Ok(())
        })
        .unwrap();
        let nothing: Result<OwnerId> = h.write(|tx| Ok(tx.owner()));
        assert_eq!(nothing, Ok(owner));
        let failed: Result<()> = h.write(move |tx| {
            tx.changed(a);
            Err(StoreError::Fenced)
        });
        assert_eq!(failed, Err(StoreError::Fenced));
        // A claim that comes too late changes nothing.
        let (main, one, two) = (h.main, h.id(), h.id());
        h.write(move |tx| store::session::take(tx, main, one, 1_000)).unwrap();
        h.write(move |tx| store::session::take(tx, main, two, 1_000)).unwrap();
        h.write(move |tx| {
            tx.changed(b);
            Ok(())
        })
        .unwrap();
        let change = |seq, noun: &str, record| Change { seq, noun: noun.into(), record };
        let wanted = [
            change(1, "duty", a.uuid()),
            change(1, "run", b.uuid()),
            // A write without a record to show still has its place in the sequence.
            change(2, "owner", owner.uuid()),
            change(3, "run", b.uuid()),
        ];
        assert_eq!(changes(&h), wanted);
        let page = h.read(move |tx| store::change::after(tx, owner, 1, 1)).unwrap();
        assert_eq!(page, wanted[2..3]);
    });
}

#[test]
fn a_statement_that_failed_ends_its_transaction_even_if_the_closure_goes_on() {
    everywhere(|h| {
        let (owner, source) = (h.owner, h.device);
        let (event_a, wait) = (event(&h, h.device, "a"), wait(&h, "call-1"));
        let (mut twice, stored) = (wait.clone(), wait.clone());
        twice.id = h.id();
        let went_on = h.write(move |tx| {
            store::event::accept(tx, &event_a)?;
            store::wait::insert(tx, &stored)?;
            let first = store::wait::insert(tx, &twice);
            assert!(matches!(first, Err(StoreError::Duplicate(_))), "{first:?}");
            // Deaf to the error: everything else ends too, and it cannot commit.
            let second = store::owner::get(tx, owner);
            assert_eq!(second, Err(StoreError::Ended));
            Ok(())
        });
        assert!(matches!(went_on, Err(StoreError::Duplicate(_))), "{went_on:?}");
        let handed_on: Result<()> = h.write(move |tx| {
            store::wait::insert(tx, &wait)?;
            drop(store::wait::insert(tx, &wait));
            store::owner::get(tx, owner).map(|_| ())
        });
        assert!(
            matches!(handed_on, Err(StoreError::Duplicate(_))),
            "the first error: {handed_on:?}"
        );
        let left = h.read(move |tx| {
            Ok((
                store::event::by_external(tx, source, "a")?,
                store::wait::next_due(tx)?,
                store::owner::get(tx, owner)?.change_seq,
            ))
        });
        assert_eq!(left, Ok((None, None, 0)));
    });
}

/// Writes audited changes: a proposal and its end by the user, then a duty.
fn some_history(h: &Harness) {
    let proposal = proposal(h, "call-1", None);
    let (user, device) = (h.user, h.id());
    h.write(move |tx| {
        store::proposal::insert(tx, &proposal)?;
        let to = domain::state::ProposalState::Confirmed;
        store::proposal::end(tx, &proposal, to, Some((user, device)))
    })
    .unwrap();
    stored_duty(h);
    let stranger = base::RunId::from_uuid(Uuid::from_u128(9));
    h.write(move |tx| {
        tx.audit(None, "look", stranger, None);
        Ok(())
    })
    .unwrap();
}

/// Checks the chain from the first entry to the owner's head, with code of its own.
fn verify(h: &Harness) -> std::result::Result<usize, String> {
    let owner = h.owner;
    let (entries, head) = h
        .read(move |tx| {
            Ok((store::change::audit(tx, owner, 0, 1_000)?, store::owner::get(tx, owner)?))
        })
        .unwrap();
    let mut previous = Digest::ZERO;
    for (at, entry) in (1_i64..).zip(&entries) {
        let Audited { n, by, verb, noun, record, digest, hash, at: time } = entry;
        let by = by.map(|by| by.uuid().as_bytes().to_vec()).unwrap_or_default();
        let digest = digest.map(|d| d.as_bytes().to_vec()).unwrap_or_default();
        let wanted = Digest::of_parts([
            previous.as_bytes().as_slice(),
            &n.to_be_bytes(),
            &time.micros().to_be_bytes(),
            &by,
            verb.as_bytes(),
            noun.as_bytes(),
            record.as_bytes(),
            &digest,
        ]);
        if *n != at || *hash != wanted {
            return Err(format!("entry {at} does not follow"));
        }
        previous = *hash;
    }
    let last = i64::try_from(entries.len()).unwrap();
    match (head.audit_seq, head.audit_head) == (last, previous) {
        true => Ok(entries.len()),
        false => Err("the head is not the last entry".into()),
    }
}

#[test]
fn the_audit_chain_verifies_and_every_edit_of_a_row_breaks_it() {
    everywhere(|h| {
        some_history(&h);
        assert_eq!(verify(&h), Ok(4));
        let mut raw = Raw::beside(&h);
        let (zero, user) = (raw.uuid(Uuid::nil()), raw.id(h.user));
        let (digest, none) = (raw.bytes(&[1; 32]), "NULL".to_owned());
        let zeros = raw.bytes(&[0; 32]);
        // Column, entry, another value, and the value that was there.
        let edits = [
            ("verb", 2, "'declined'".to_owned(), "'confirmed'".to_owned()),
            ("noun", 2, "'duty'".to_owned(), "'proposal'".to_owned()),
            ("principal", 1, user, none.clone()),
            ("principal", 4, zero, none.clone()),
            ("digest", 4, digest, none.clone()),
            ("digest", 4, zeros, none),
            ("at", 3, "at + 1".to_owned(), "at - 1".to_owned()),
        ];
        for (column, n, edited, was) in edits {
            let set = |value: &str| format!("UPDATE audit SET {column} = {value} WHERE n = {n}");
            raw.run(&set(&edited)).unwrap();
            let broken = Err(format!("entry {n} does not follow"));
            assert_eq!(verify(&h), broken, "{column} = {edited}");
            raw.run(&set(&was)).unwrap();
            assert_eq!(verify(&h), Ok(4));
        }
        raw.run("DELETE FROM audit WHERE n = 4").unwrap();
        assert_eq!(verify(&h), Err("the head is not the last entry".into()));
        raw.run("DELETE FROM audit WHERE n = 2").unwrap();
        assert_eq!(verify(&h), Err("entry 2 does not follow".into()));
    });
}
