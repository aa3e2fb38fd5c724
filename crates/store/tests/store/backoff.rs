//! What waits on purpose, and what waits too long: back-off, sleeping runs, stuck rows.

use base::{Clock as _, Timestamp};
use domain::state::{CUSTODY, RunState, WorkItemState};
use store::session::Session;
use testkit::stores::Harness;

use crate::fixtures::*;

fn session(h: &Harness) -> Session {
    let main = h.main;
    h.read(move |tx| store::session::get(tx, main)).unwrap()
}

fn put_off(h: &Harness, until: Timestamp) {
    let main = h.main;
    h.write(move |tx| store::session::put_off(tx, main, until)).unwrap();
}

#[test]
fn a_back_off_counts_only_with_work_behind_it_and_ends_when_a_person_speaks() {
    everywhere(|h| {
        let (main, start) = (h.main, h.clock.now());
        let until = start.plus_ms(5_000);
        let next = |h: &Harness| {
            let now = h.clock.now();
            h.read(move |tx| store::session::next_backoff(tx, now)).unwrap()
        };
        put_off(&h, until);
        assert_eq!((session(&h).not_before, next(&h)), (until, None));

        let mut run = run(&h, main, 0);
        let (stored, id) = (run.clone(), run.id);
        h.write(move |tx| store::run::insert(tx, &stored)).unwrap();
        let at = h.clock.advance_ms(1);
        h.write(move |tx| store::run::sleep(tx, id, "no model")).unwrap();
        run.state = RunState::Sleeping;
        run.reason = Some("no model".into());
        run.moved_at = at;
        assert_eq!(h.read(move |tx| store::run::open(tx, main)), Ok(Some(run)));
        assert_eq!(next(&h), Some(until));
        let claimable = |h: &Harness| {
            let now = h.clock.now();
            h.read(move |tx| store::session::claimable(tx, now, now, now, 9)).unwrap().len()
        };
        assert_eq!(claimable(&h), 0);
        h.write(move |tx| store::session::wake(tx, main)).unwrap();
        assert_eq!((session(&h).not_before, next(&h), claimable(&h)), (at, None, 1));
        // A back-off that has ended is not moved to a later time.
        h.clock.advance_ms(1);
        h.write(move |tx| store::session::wake(tx, main)).unwrap();
        assert_eq!(session(&h), Session { not_before: at, ..h.main_record() });
    });
}

#[test]
fn a_closing_step_counts_without_a_fence_and_history_can_start_later() {
    everywhere(|h| {
        let (run, main) = (run(&h, h.main, 0), h.main);
        let (body, step) = step(&h, run.id, 0, "ended");
        let (id, stored) = (run.id, step.clone());
        h.write(move |tx| {
            store::run::insert(tx, &run)?;
            store::event::put_body(tx, body)?;
            store::run::append(tx, &stored)?;
            store::session::drop_history(tx, main, 4)
        })
        .unwrap();
        let found = h.read(move |tx| {
            let run = store::run::get(tx, id)?;
            Ok((store::run::steps(tx, id)?, run.steps, run.tokens))
        });
        assert_eq!(found, Ok((vec![step], 1, 11)));
        assert_eq!(session(&h), Session { window_start: 4, ..h.main_record() });
        assert_eq!(h.read(move |tx| store::session::last_prefix(tx, main)), Ok(None));
    });
}

#[test]
fn a_row_that_stays_too_long_is_found_by_its_owner_from_its_age_on() {
    everywhere(|h| {
        let (event, owner) = (event(&h, h.device, "m1"), h.owner);
        let item = work_item(&h, event.id, WorkItemState::Unrouted);
        let since = item.moved_at;
        h.write(move |tx| {
            store::event::accept(tx, &event)?;
            store::work_item::insert(tx, &item)
        })
        .unwrap();
        let overdue = |h: &Harness| -> Vec<(&str, Timestamp)> {
            let (mut found, now) = (Vec::new(), h.clock.now());
            for custody in CUSTODY {
                let oldest =
                    h.read(move |tx| store::stuck::oldest(tx, owner, custody, now)).unwrap();
                found.extend(oldest.map(|since| (custody.state, since)));
            }
            found
        };
        h.clock.advance_ms(59_999);
        assert_eq!(overdue(&h), []);
        h.clock.advance_ms(1);
        assert_eq!(overdue(&h), [("unrouted", since)]);
        let (stranger, now) = (h.id(), h.clock.now());
        for custody in CUSTODY {
            let theirs = h.read(move |tx| store::stuck::oldest(tx, stranger, custody, now));
            assert_eq!(theirs, Ok(None));
        }
    });
}
