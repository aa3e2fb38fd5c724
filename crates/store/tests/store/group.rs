//! SQLite's group commit: what several closures under one fsync may do to each other, when their
//! answers go out, who is served first, and that no caller waits for ever.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use store::{Result, StoreError};
use testkit::stores::{Harness, block_on, each_engine};

use crate::fixtures::*;

/// A store whose commits are counted.
fn gated() -> (Harness, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let given = gate.clone();
    let h = Harness::sqlite(false, move |options| options.gate = Some(given));
    gate.commits.store(0, Ordering::SeqCst);
    (h, gate)
}

#[test]
fn a_panic_and_a_failure_in_a_group_take_nothing_else_with_them() {
    let (h, gate) = gated();
    let go = occupy(&h);
    let ((first, put_first), (second, put_second)) = (put(&h, "first"), put(&h, "second"));
    let ((panics, put_panics), (fails, put_fails)) = (put(&h, "panics"), put(&h, "fails"));
    let (main, one, two) = (h.main, h.id(), h.id());
    let write_first = h.store.write(h.owner, uuid(&h), put_first);
    let panicking = h.store.write(h.owner, uuid(&h), move |tx| -> Result<()> {
        // A statement with RETURNING must not keep its savepoint from being undone.
        store::session::take(tx, main, one, 1_000)?;
        put_panics(tx)?;
        panic!("a planted panic");
    });
    let failing = h.store.write(h.owner, uuid(&h), move |tx| -> Result<()> {
        assert_eq!(store::session::take(tx, main, two, 1_000), Ok(Some(1)));
        put_fails(tx)?;
        Err(StoreError::Fenced)
    });
    let write_second = h.store.write(h.owner, uuid(&h), move |tx| {
        put_second(tx)?;
        Ok(tx.seq())
    });
    drop(go);
    assert_eq!(block_on(write_first), Ok(()));
    assert_eq!(block_on(panicking), Err(StoreError::Panicked));
    assert_eq!(block_on(failing), Err(StoreError::Fenced));
    assert_eq!(block_on(write_second), Ok(2));
    // The occupying closure's group, and one for all four.
    assert_eq!(gate.commits.load(Ordering::SeqCst), 2);
    let stored = [first, panics, fails, second].map(|id| is_stored(&h, id));
    assert_eq!(stored, [true, false, false, true]);
    let session = h.read(move |tx| store::session::get(tx, main));
    assert_eq!(session, Ok(h.main_record()));
}

#[test]
fn no_answer_goes_out_before_the_commit() {
    let (h, gate) = gated();
    let go = occupy(&h);
    let (_, put_one) = put(&h, "one");
    let mut wrote = pin!(h.store.write(h.owner, uuid(&h), put_one));
    let mut failed = pin!(h.store.write(h.owner, uuid(&h), |_| Err::<(), _>(StoreError::Fenced)));
    let (come, has_come) = channel();
    let (leave, may_go) = channel();
    let (come_first, has_come_first) = channel();
    let (leave_first, may_go_first) = channel();
    *gate.hold.lock().unwrap() = Some((come_first, may_go_first));
    drop(go);
    // The first commit is the occupying closure's own; the next is theirs.
    has_come_first.recv().unwrap();
    *gate.hold.lock().unwrap() = Some((come, may_go));
    leave_first.send(()).unwrap();
    has_come.recv().unwrap();
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(wrote.as_mut().poll(&mut context), Poll::Pending);
    // A refusal may rest on what another closure of the group wrote, so it waits too.
    assert_eq!(failed.as_mut().poll(&mut context), Poll::Pending);
    leave.send(()).unwrap();
    assert_eq!(block_on(wrote), Ok(()));
    assert_eq!(block_on(failed), Err(StoreError::Fenced));
}

#[test]
fn urgent_work_goes_to_the_head_of_the_queue_in_its_own_order() {
    let (h, _) = gated();
    let go = occupy(&h);
    let order: Arc<Mutex<Vec<&str>>> = Arc::default();
    let note = |word: &'static str| {
        let order = order.clone();
        move |_: &mut store::OwnerTx<'_, '_>| {
            order.lock().unwrap().push(word);
            Ok(())
        }
    };
    let answers = [("a", false), ("b", false), ("stop", true), ("c", false), ("stop too", true)]
        .map(|(word, urgent)| match urgent {
            true => Box::pin(h.store.write_urgent(h.owner, uuid(&h), note(word))),
            false => {
                let ordinary = h.store.write(h.owner, uuid(&h), note(word));
                Box::pin(ordinary) as std::pin::Pin<Box<dyn Future<Output = Result<()>>>>
            }
        });
    drop(go);
    for answer in answers {
        assert_eq!(block_on(answer), Ok(()));
    }
    assert_eq!(*order.lock().unwrap(), ["stop", "stop too", "a", "b", "c"]);
}

#[test]
fn a_full_queue_refuses_at_once_and_still_takes_a_stop() {
    let (h, _) = gated();
    let go = occupy(&h);
    let mut answers = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    let refused = loop {
        let mut answer = Box::pin(h.store.write(h.owner, uuid(&h), |_| Ok(())));
        if let Poll::Ready(answer) = answer.as_mut().poll(&mut context) {
            break answer;
        }
        answers.push(answer);
        assert!(answers.len() < 100_000, "no bound");
    };
    let text = "too much waits already; nothing happened";
    assert_eq!(refused, Err(StoreError::Unavailable(text.into())));
    let (stop, put_stop) = put(&h, "stop");
    let stopped = h.store.write_urgent(h.owner, uuid(&h), put_stop);
    drop(go);
    assert_eq!(block_on(stopped), Ok(()));
    assert!(is_stored(&h, stop));
    for answer in answers {
        assert_eq!(block_on(answer), Ok(()));
    }
}

#[test]
fn closing_does_what_was_queued_and_then_lets_go() {
    each_engine(|h| {
        let go = occupy(&h);
        let (queued, put_queued) = put(&h, "queued");
        let answer = h.store.write(h.owner, uuid(&h), put_queued);
        drop(go);
        let h = h.reopen(|_| {});
        assert_eq!(block_on(answer), Ok(()));
        assert!(is_stored(&h, queued));
    });
}

#[test]
fn a_closure_may_hold_the_last_handle_of_its_own_store() {
    each_engine(|h| {
        let (done, is_done) = channel();
        let (go, may_go) = channel::<()>();
        let (store, owner) = (h.store.clone(), h.owner);
        let answer = h.store.write(owner, uuid(&h), move |_| {
            may_go.recv().unwrap();
            drop(store);
            done.send(()).unwrap();
            Ok(())
        });
        drop(answer);
        // Neither handle is left outside when the closure drops its own.
        std::thread::scope(|scope| {
            scope.spawn(|| drop(h));
            go.send(()).unwrap();
            is_done.recv().unwrap();
        });
    });
}

#[test]
fn after_a_crash_every_caller_is_told_and_a_new_start_finds_what_was_committed() {
    let gate = Arc::new(Gate::default());
    let given = gate.clone();
    let h = Harness::sqlite(false, move |options| options.gate = Some(given));
    let go = occupy(&h);
    let (lost, put_lost) = put(&h, "lost");
    let lost_answer = h.store.write(h.owner, uuid(&h), put_lost);
    gate.crash_before.store(true, Ordering::SeqCst);
    drop(go);
    assert_eq!(block_on(lost_answer), Err(StoreError::Closed));
    let (never, put_never) = put(&h, "never");
    assert_eq!(h.write(put_never), Err(StoreError::Closed));
    let h = h.reopen(|_| {});
    assert_eq!([lost, never].map(|id| is_stored(&h, id)), [false, false]);
    let (kept, put_kept) = put(&h, "kept");
    h.write(put_kept).unwrap();
    assert!(is_stored(&h, kept));
}

#[test]
fn a_crash_gate_without_threads_crashes_before_or_after_a_commit_on_both_engines() {
    for (crash_before, wanted) in [(true, false), (false, true)] {
        let check = |h: Harness| {
            let gate = Arc::new(Gate::default());
            let given = gate.clone();
            let h = h.reopen(move |options| options.gate = Some(given));
            // A read is no commit: the crash points of both engines have the same numbers.
            assert!(!is_stored(&h, h.id()));
            assert_eq!(gate.commits.load(Ordering::SeqCst), 0);
            let (before, put_before) = put(&h, "before");
            h.write(put_before).unwrap();
            gate.crash_before.store(crash_before, Ordering::SeqCst);
            gate.crash_after.store(!crash_before, Ordering::SeqCst);
            let (at, put_at) = put(&h, "at");
            assert_eq!(h.write(put_at), Err(StoreError::Closed));
            assert_eq!(h.write(|_| Ok(())), Err(StoreError::Closed));
            assert_eq!(h.read(|_| Ok(())), Err(StoreError::Closed));
            assert_eq!(gate.commits.load(Ordering::SeqCst), 2);
            let h = h.reopen(|_| {});
            assert_eq!([before, at].map(|id| is_stored(&h, id)), [true, wanted]);
            let (later, put_later) = put(&h, "later");
            h.write(put_later).unwrap();
            assert!(is_stored(&h, later));
            assert_eq!(change_seq(&h), if wanted { 3 } else { 2 });
        };
        testkit::stores::each_engine_inline(check);
    }
}

#[test]
fn a_read_ends_within_its_second_in_one_statement_or_in_many() {
    each_engine(|h| {
        let owner = h.owner;
        let many = h.read(move |tx| -> Result<()> {
            loop {
                store::owner::get(tx, owner)?;
            }
        });
        assert_eq!(many, Err(StoreError::Busy));
        let mut raw = crate::raw::Raw::beside(&h);
        let columns = "NULL AS id, NULL AS owner, '' AS key, '' AS detail, 1 AS times,
                       'open' AS state, 1 AS created_at, 1 AS moved_at";
        raw.run("DROP TABLE fault").unwrap();
        raw.run(&match &raw {
            // Counts up for ever and finds nothing.
            crate::raw::Raw::Sqlite(_) => format!(
                "CREATE VIEW fault AS WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
                 SELECT {} FROM c WHERE x < 0",
                columns.replace("NULL AS owner", "CAST(x AS BLOB) AS owner")
            ),
            crate::raw::Raw::Postgres(_) => format!(
                "CREATE VIEW fault AS SELECT {} FROM pg_sleep(60)",
                columns.replace("NULL AS", "gen_random_uuid() AS")
            ),
        })
        .unwrap();
        let one = h.read(move |tx| store::fault::all_open(tx, owner));
        assert_eq!(one, Err(StoreError::Busy));
        // The connection is as good as before.
        assert!(h.read(move |tx| store::owner::get(tx, owner)).is_ok());
    });
}

#[test]
fn a_read_is_one_picture_whatever_is_written_meanwhile() {
    each_engine(|h| {
        let owner = h.owner;
        let ((begun, begins), (go, goes)) = (channel(), channel());
        let read = h.store.read(move |tx| {
            let before = store::owner::get(tx, owner)?;
            begun.send(()).unwrap();
            goes.recv().unwrap();
            Ok((before, store::owner::get(tx, owner)?))
        });
        begins.recv().unwrap();
        h.write(|tx| store::owner::rename(tx, "Eve", "UTC")).unwrap();
        go.send(()).unwrap();
        let (before, after) = block_on(read).unwrap();
        assert_eq!((before.name.as_str(), &before), ("Ada", &after));
        assert_eq!(h.read(move |tx| store::owner::get(tx, owner)).unwrap().name, "Eve");
    });
}

#[test]
fn what_a_read_writes_is_not_kept() {
    everywhere(|h| {
        let other =
            testkit::stores::new_session(h.id(), h.owner, store::session::SessionKind::Duty);
        let id = other.id;
        // Refused or undone: a read has no owner's lock, so nothing of it may stay.
        drop(h.read(move |tx| store::session::insert(tx, &other)));
        let found = h.read(move |tx| store::session::get(tx, id));
        assert_eq!(found, Err(StoreError::Missing("session")));
    });
}
