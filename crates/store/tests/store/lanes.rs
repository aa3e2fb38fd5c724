//! What may happen once, happens once: deduplication, the fence, the queue, waits, slots, proposals and
//! faults.

use base::{Clock as _, EventId, Incarnation, WorkItemId};
use domain::event::{Class, EventKind};
use domain::state::{
    ProposalState, RunState, ScheduleState, TaskVersionState, WaitState, WorkItemState,
};
use store::event::Accepted;
use store::session::Claimable;
use store::{Result, StoreError};
use testkit::stores::{Harness, block_on, each_engine};

use crate::fixtures::*;

#[test]
fn an_event_is_accepted_once_per_source_and_external_id() {
    everywhere(|h| {
        let first = event(&h, h.device, "m1");
        let again = event(&h, h.device, "m1");
        let other_source = event(&h, h.timer, "m1");
        let other_id = event(&h, h.device, "m2");
        let accept = |event: &store::event::Event| {
            let event = event.clone();
            h.write(move |tx| store::event::accept(tx, &event)).unwrap()
        };
        let known = Accepted::Known(Box::new(first.clone()));
        let found = [accept(&first), accept(&again), accept(&other_source), accept(&other_id)];
        assert_eq!(found, [Accepted::New, known, Accepted::New, Accepted::New]);
    });
}

#[test]
fn an_event_that_comes_many_times_at_once_is_stored_once() {
    each_engine(|h| {
        const TIMES: usize = 16;
        let answers: Vec<_> = (0..TIMES)
            .map(|_| {
                let event = event(&h, h.device, "m1");
                let work = move |tx: &mut store::OwnerTx<'_, '_>| {
                    Ok((event.id, store::event::accept(tx, &event)?))
                };
                h.store.write(h.owner, uuid(&h), work)
            })
            .collect();
        let answers: Vec<(EventId, Accepted)> =
            answers.into_iter().map(|answer| block_on(answer).unwrap()).collect();
        let source = h.device;
        let stored = h.read(move |tx| store::event::by_external(tx, source, "m1")).unwrap();
        let stored = stored.expect("one event");
        for (id, accepted) in answers {
            let wanted = match id == stored.id {
                true => Accepted::New,
                false => Accepted::Known(Box::new(stored.clone())),
            };
            assert_eq!(accepted, wanted);
        }
    });
}

#[test]
fn an_event_is_disposed_of_once_and_found_by_its_key() {
    everywhere(|h| {
        let mut events = [event(&h, h.device, "a"), event(&h, h.device, "b")];
        for event in &mut events {
            event.key = Some("order:7".into());
        }
        let early = h.clock.now();
        events[1].received_at = early.plus_ms(5);
        let (ids, owner) = ([events[0].id, events[1].id], h.owner);
        h.write(move |tx| events.iter().try_for_each(|e| store::event::accept(tx, e).map(|_| ())))
            .unwrap();
        assert_eq!(h.read(move |tx| store::event::unhandled(tx, owner)), Ok(2));
        let dispose = |how: &'static str| {
            h.clock.advance_ms(10);
            h.write(move |tx| store::event::dispose(tx, ids[0], how)).unwrap();
            let event = h.read(move |tx| store::event::get(tx, ids[0])).unwrap();
            (event.disposition, event.handled_at)
        };
        let once = (Some("handled".to_owned()), Some(early.plus_ms(10)));
        assert_eq!([dispose("handled"), dispose("again")], [once.clone(), once]);
        assert_eq!(h.read(move |tx| store::event::unhandled(tx, owner)), Ok(1));
        let by_key = |kind: &'static str, key: &'static str, since| {
            let run = h.id();
            let found = h.write(move |tx| store::event::by_key(tx, kind, key, since, run)).unwrap();
            found.map(|event| event.id)
        };
        let message = EventKind::UserMessage.word();
        let found = [
            by_key(message, "order:7", early),
            by_key(message, "order:7", early.plus_ms(1)),
            by_key(message, "order:7", early.plus_ms(6)),
            by_key(message, "order:8", early),
            by_key(EventKind::ScheduleDue.word(), "order:7", early),
        ];
        assert_eq!(found, [Some(ids[0]), Some(ids[1]), None, None, None]);
    });
}

const LEASE_MS: u64 = 30_000;

fn take(h: &Harness, holder: Incarnation) -> Result<Option<i64>> {
    let main = h.main;
    h.write(move |tx| store::session::take(tx, main, holder, LEASE_MS))
}

#[test]
fn only_the_newest_fence_may_commit() {
    everywhere(|h| {
        let (a, b) = (h.id::<Incarnation>(), h.id::<Incarnation>());
        let hold = |lease| h.write(move |tx| store::session::hold(tx, lease, LEASE_MS));
        let first = lease(&h, 1, a);
        assert_eq!([take(&h, a), take(&h, b)], [Ok(Some(1)), Ok(None)]);
        assert_eq!(hold(first), Ok(()));
        // The right number in other hands is not a claim.
        assert_eq!(hold(lease(&h, 1, b)), Err(StoreError::Fenced));
        h.clock.advance_ms(LEASE_MS - 1);
        assert_eq!(take(&h, b), Ok(None));
        h.clock.advance_ms(1);
        assert_eq!(take(&h, b), Ok(Some(2)));
        assert_eq!(hold(first), Err(StoreError::Fenced));
        // The same process's former claim is another worker's, and counts as little.
        assert_eq!(hold(lease(&h, 1, b)), Err(StoreError::Fenced));
        assert_eq!(hold(lease(&h, 3, b)), Err(StoreError::Fenced));
        let until = h.clock.now().plus_ms(500);
        let release = |lease| h.write(move |tx| store::session::release(tx, lease, until, 3));
        assert_eq!(release(first), Err(StoreError::Fenced));
        assert_eq!(release(lease(&h, 2, b)), Ok(()));
        assert_eq!(hold(lease(&h, 2, b)), Err(StoreError::Fenced));
        let main = h.main;
        let session = h.read(move |tx| store::session::get(tx, main)).unwrap();
        let wanted = store::session::Session {
            fence: 2,
            not_before: until,
            model_failures: 3,
            ..h.main_record()
        };
        assert_eq!(session, wanted);
        // Back-off: nobody claims before its time.
        assert_eq!(take(&h, a), Ok(None));
        h.clock.advance_ms(500);
        assert_eq!(take(&h, a), Ok(Some(3)));
    });
}

#[test]
fn a_fenced_worker_writes_nothing_of_what_it_wrote_before() {
    everywhere(|h| {
        let holder = h.id();
        take(&h, holder).unwrap();
        let run = run(&h, h.main, 0);
        let (body, step) = step(&h, run.id, 0, "late");
        let (id, body_id) = (run.id, body.id);
        h.write(move |tx| store::run::insert(tx, &run)).unwrap();
        let late = h.write(move |tx| {
            store::event::put_body(tx, body)?;
            store::run::add_step(tx, &step, Default::default(), 7)
        });
        assert_eq!(late, Err(StoreError::Fenced));
        let left =
            h.read(move |tx| Ok((store::run::steps(tx, id)?, store::run::get(tx, id)?.steps)));
        assert_eq!(left, Ok((vec![], 0)));
        let body = h.read(move |tx| store::event::body(tx, body_id));
        assert_eq!(body, Err(StoreError::Missing("body")));
    });
}

#[test]
fn a_lease_that_ran_out_is_listed_and_voided_once() {
    everywhere(|h| {
        let (main, owner) = (h.main, h.owner);
        take(&h, h.id()).unwrap();
        let expired = |h: &Harness| {
            let now = h.clock.now();
            h.read(move |tx| store::session::expired(tx, now, 10)).unwrap()
        };
        let void = |h: &Harness| h.write(move |tx| store::session::void(tx, main)).unwrap();
        assert_eq!((expired(&h), void(&h)), (vec![], false));
        h.clock.advance_ms(LEASE_MS);
        assert_eq!((expired(&h), void(&h)), (vec![(owner, main)], true));
        assert_eq!((expired(&h), void(&h)), (vec![], false));
    });
}

#[test]
fn another_start_of_the_process_voids_its_former_leases() {
    everywhere(|h| {
        let holder = h.id();
        let h = h.reopen(|options| options.incarnation = holder);
        assert_eq!(take(&h, holder), Ok(Some(1)));
        let h = h.reopen(|_| {});
        let main = h.main;
        let session = h.read(move |tx| store::session::get(tx, main)).unwrap();
        assert_eq!(session, store::session::Session { fence: 1, ..h.main_record() });
    });
}

fn accept(
    h: &Harness,
    external: &str,
    state: WorkItemState,
    class: Class,
) -> store::work_item::WorkItem {
    let event = event(h, h.device, external);
    let mut item = work_item(h, event.id, state);
    item.class = item.class.map(|_| class);
    let stored = item.clone();
    h.write(move |tx| {
        store::event::accept(tx, &event)?;
        store::work_item::insert(tx, &stored)
    })
    .unwrap();
    item
}

#[test]
fn a_work_item_goes_its_way_and_keeps_its_four_points() {
    everywhere(|h| {
        let mut item = accept(&h, "m1", WorkItemState::Unrouted, Class::User);
        let get = |id: WorkItemId| h.read(move |tx| store::work_item::get(tx, id)).unwrap();
        let (id, owner, main) = (item.id, h.owner, h.main);
        assert_eq!(h.read(|tx| store::work_item::unrouted(tx, 10)), Ok(vec![(owner, id)]));
        let enqueue = || h.write(move |tx| store::work_item::enqueue(tx, id, main, Class::User));
        let at = h.clock.advance_ms(1);
        assert_eq!([enqueue(), enqueue()], [Ok(true), Ok(false)]);
        item.session = Some(main);
        item.class = Some(Class::User);
        item.state = WorkItemState::Pending;
        item.moved_at = at;
        assert_eq!(get(id), item);

        let run = run(&h, main, 0);
        let run_id = run.id;
        h.write(move |tx| store::run::insert(tx, &run)).unwrap();
        let at = h.clock.advance_ms(1);
        let seen = item.clone();
        let claim = |seen: store::work_item::WorkItem| {
            h.write(move |tx| store::work_item::claim(tx, &seen, run_id))
        };
        assert_eq!(claim(seen.clone()), Ok(()));
        assert_eq!(claim(seen), Err(StoreError::Missing("pending work item")));
        item.state = WorkItemState::Claimed;
        item.run = Some(run_id);
        item.delivered_at = Some(at);
        item.moved_at = at;
        assert_eq!(h.read(move |tx| store::work_item::claimed(tx, run_id)), Ok(vec![item.clone()]));

        let at = h.clock.advance_ms(1);
        h.write(move |tx| store::work_item::read(tx, run_id)).unwrap();
        h.clock.advance_ms(1);
        h.write(move |tx| store::work_item::read(tx, run_id)).unwrap();
        item.read_at = Some(at);
        assert_eq!(get(id), item);

        let at = h.clock.advance_ms(1);
        let seen = item.clone();
        h.write(move |tx| store::work_item::back(tx, &seen, 1)).unwrap();
        item.state = WorkItemState::Pending;
        item.run = None;
        item.attempts = 1;
        item.moved_at = at;
        assert_eq!(get(id), item);

        let at = h.clock.advance_ms(1);
        let seen = item.clone();
        h.write(move |tx| store::work_item::fail(tx, &seen)).unwrap();
        item.state = WorkItemState::Failed;
        item.done_at = Some(at);
        item.moved_at = at;
        assert_eq!(get(id), item);
        // Failed is for good: the schema's second wall stops a program that forgets it.
        let seen = item.clone();
        let revived = h.write(move |tx| store::work_item::done(tx, &seen));
        assert!(matches!(revived, Err(StoreError::Refused(_))), "{revived:?}");
        assert_eq!(get(id), item);
    });
}

#[test]
fn a_queue_is_in_order_of_arrival_and_people_make_their_session_first() {
    everywhere(|h| {
        let (duty, _) = stored_duty(&h);
        let lane = duty.session;
        let mut items = Vec::new();
        for (external, class) in
            [("a", Class::External), ("b", Class::Timer), ("c", Class::External)]
        {
            items.push(accept(&h, external, WorkItemState::Pending, class));
            h.clock.advance_ms(1);
        }
        let (main, owner) = (h.main, h.owner);
        // The first of each class.
        assert_eq!(
            h.read(move |tx| store::work_item::pending(tx, main, 1)),
            Ok(items[..2].to_vec())
        );
        assert_eq!(h.read(move |tx| store::work_item::from_people(tx, main, 2)), Ok(vec![]));

        let event = event(&h, h.device, "d");
        let mut theirs = work_item(&h, event.id, WorkItemState::Pending);
        theirs.session = Some(lane);
        theirs.class = Some(Class::User);
        let stored = theirs.clone();
        h.write(move |tx| {
            store::event::accept(tx, &event)?;
            store::work_item::insert(tx, &stored)
        })
        .unwrap();
        assert_eq!(h.read(move |tx| store::work_item::from_people(tx, lane, 2)), Ok(vec![theirs]));
        let claimable = |h: &Harness| {
            let now = h.clock.now();
            h.read(move |tx| store::session::claimable(tx, now, now, now, 10)).unwrap()
        };
        let one = |session, person| Claimable { owner, session, person };
        assert_eq!(claimable(&h), [one(lane, true), one(main, false)]);
        take(&h, h.id()).unwrap();
        assert_eq!(claimable(&h), [one(lane, true)]);
        h.clock.advance_ms(LEASE_MS);
        assert_eq!(claimable(&h), [one(lane, true), one(main, false)]);
    });
}

#[test]
fn a_run_that_lost_its_worker_makes_its_session_claimable_and_is_resumed() {
    everywhere(|h| {
        let (main, owner) = (h.main, h.owner);
        assert_eq!(h.write(move |tx| store::session::next_run(tx, main)), Ok(0));
        assert_eq!(h.write(move |tx| store::session::next_run(tx, main)), Ok(1));
        let mut run = run(&h, main, 0);
        let (stored, id) = (run.clone(), run.id);
        h.write(move |tx| store::run::insert(tx, &stored)).unwrap();
        let second = crate::fixtures::run(&h, main, 1);
        let both = h.write(move |tx| store::run::insert(tx, &second));
        assert!(
            matches!(both, Err(StoreError::Duplicate(_))),
            "one open run per session: {both:?}"
        );

        let at = h.clock.advance_ms(1);
        h.write(move |tx| store::run::lose(tx, main)).unwrap();
        run.state = RunState::Lost;
        run.moved_at = at;
        assert_eq!(h.read(move |tx| store::run::open(tx, main)), Ok(Some(run.clone())));
        let claimable = h.read(move |tx| store::session::claimable(tx, at, at, at, 10)).unwrap();
        assert_eq!(claimable, [Claimable { owner, session: main, person: false }]);

        let at = h.clock.advance_ms(1);
        h.write(move |tx| store::run::claim(tx, id, 5)).unwrap();
        run.state = RunState::Running;
        run.fence = 5;
        run.moved_at = at;
        assert_eq!(h.read(move |tx| store::run::last(tx, main)), Ok(Some(run.clone())));

        let at = h.clock.advance_ms(1);
        h.write(move |tx| store::run::end(tx, id, RunState::Completed, None)).unwrap();
        run.state = RunState::Completed;
        run.reason = None;
        run.ended_at = Some(at);
        run.moved_at = at;
        assert_eq!(h.read(move |tx| store::run::recent(tx, main, 9)), Ok(vec![run]));
        assert_eq!(h.read(move |tx| store::run::open(tx, main)), Ok(None));
    });
}

#[test]
fn history_is_in_the_order_of_runs_and_steps_and_within_its_window() {
    everywhere(|h| {
        let main = h.main;
        for n in 0..3 {
            let run = run(&h, main, n);
            let id = run.id;
            // Written backwards: the order is that of the numbers, not of the rows.
            let mut steps: Vec<_> =
                (0..3).map(|k| step(&h, id, k, &format!("run {n} step {k}"))).collect();
            steps.reverse();
            h.write(move |tx| {
                store::run::insert(tx, &run)?;
                for (body, step) in steps {
                    store::event::put_body(tx, body)?;
                    store::run::add_step(tx, &step, Default::default(), 1)?;
                }
                store::run::end(tx, id, RunState::Completed, None)
            })
            .unwrap();
        }
        let texts = |from, until| {
            let blocks = h.read(move |tx| store::run::history(tx, main, from, until)).unwrap();
            let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap()).unwrap();
            blocks.into_iter().map(|block| text(block.bytes)).collect::<Vec<_>>()
        };
        let all: Vec<String> =
            (1..3).flat_map(|n| (0..3).map(move |k| format!("run {n} step {k}"))).collect();
        assert_eq!((texts(1, 3), texts(3, 9)), (all, vec![]));
        let sizes = h.read(move |tx| store::run::sizes(tx, main, 0, 2));
        assert_eq!(sizes, Ok(vec![(0, 33), (1, 33)]));
    });
}

#[test]
fn a_wait_ends_once_and_a_call_registers_once() {
    everywhere(|h| {
        let mut wait = wait(&h, "call-1");
        let (stored, id, owner, main) = (wait.clone(), wait.id, h.owner, h.main);
        let mut again = stored.clone();
        again.id = h.id();
        h.write(move |tx| store::wait::insert(tx, &stored)).unwrap();
        let twice = h.write(move |tx| store::wait::insert(tx, &again));
        assert!(matches!(twice, Err(StoreError::Duplicate(_))), "{twice:?}");
        let lists = |h: &Harness| {
            let now = h.clock.now();
            let key = h.write(|tx| store::wait::by_key(tx, "user_message", "key:1")).unwrap();
            let read = move |tx: &mut store::Tx<'_>| {
                Ok((store::wait::due(tx, now, 9)?, store::wait::open(tx, main, 9)?))
            };
            let (due, open) = h.read(read).unwrap();
            (key, due, open)
        };
        assert_eq!(lists(&h), (vec![wait.clone()], vec![], vec![wait.clone()]));
        assert_eq!(h.read(store::wait::next_due), Ok(Some(wait.due_at)));
        let at = h.clock.advance_ms(60_000);
        assert_eq!(lists(&h), (vec![wait.clone()], vec![(owner, id)], vec![wait.clone()]));
        let by = h.id();
        let end = |to, by| h.write(move |tx| store::wait::end(tx, id, to, by));
        let ends = [end(WaitState::Satisfied, Some(by)), end(WaitState::TimedOut, None)];
        assert_eq!(ends, [Ok(true), Ok(false)]);
        wait.state = WaitState::Satisfied;
        wait.satisfied_by = Some(by);
        wait.moved_at = at;
        assert_eq!(h.read(move |tx| store::wait::get(tx, id)), Ok(wait));
        assert_eq!(lists(&h), (vec![], vec![], vec![]));
        assert_eq!(h.read(store::wait::next_due), Ok(None));
    });
}

#[test]
fn a_slot_fires_once_and_not_while_its_duty_is_stopped() {
    everywhere(|h| {
        let (duty, version) = stored_duty(&h);
        let mut schedule = schedule(&h, duty.id, version.id);
        let (stored, id, owner) = (schedule.clone(), schedule.id, h.owner);
        h.write(move |tx| store::schedule::insert(tx, &stored)).unwrap();
        let due = |h: &Harness| {
            let now = h.clock.now();
            h.read(move |tx| store::schedule::due(tx, now, 9)).unwrap()
        };
        assert_eq!(due(&h), []);
        let slot = h.clock.advance_ms(60_000);
        assert_eq!(due(&h), [(owner, id)]);
        let fire = |seen: &store::schedule::Schedule| {
            let seen = seen.clone();
            let next = slot.plus_ms(1_000);
            h.write(move |tx| store::schedule::fire(tx, &seen, slot, next, false))
        };
        assert_eq!([fire(&schedule), fire(&schedule)], [Ok(true), Ok(false)]);
        schedule.last_slot = Some(slot);
        schedule.next_slot = slot.plus_ms(1_000);
        schedule.last_late = false;
        assert_eq!(h.read(move |tx| store::schedule::get(tx, id)), Ok(schedule.clone()));
        assert_eq!(h.read(store::schedule::next_due), Ok(Some(schedule.next_slot)));
        let next = schedule.next_slot;
        h.write(move |tx| store::schedule::advance(tx, id, ScheduleState::Paused, next)).unwrap();
        h.clock.advance_ms(1_000);
        assert_eq!((due(&h), fire(&schedule)), (vec![], Ok(false)));
        assert_eq!(h.read(store::schedule::next_due), Ok(None));
    });
}

#[test]
fn a_proposal_ends_once_and_one_at_a_time_may_ask_to_close_a_duty() {
    everywhere(|h| {
        let (duty, _) = stored_duty(&h);
        let mut first = proposal(&h, "call-1", Some(duty.id));
        let second = proposal(&h, "call-2", Some(duty.id));
        let (stored, id, owner, user) = (first.clone(), first.id, h.owner, h.user);
        let insert =
            |p: store::proposal::Proposal| h.write(move |tx| store::proposal::insert(tx, &p));
        insert(stored).unwrap();
        let both = insert(second.clone());
        assert!(matches!(both, Err(StoreError::Duplicate(_))), "{both:?}");
        assert_eq!(h.read(store::proposal::open_count), Ok(1));
        let at = h.clock.advance_ms(60_000);
        let due = h.read(move |tx| store::proposal::due(tx, at, 9));
        assert_eq!(due, Ok(vec![(owner, id)]));
        let device = h.id();
        let end = |to, by| {
            let seen = first.clone();
            h.write(move |tx| store::proposal::end(tx, &seen, to, by))
        };
        let ends = [
            end(ProposalState::Confirmed, Some((user, device))),
            end(ProposalState::Expired, None),
        ];
        assert_eq!(ends, [Ok(true), Ok(false)]);
        first.state = ProposalState::Confirmed;
        first.decided_by = Some(device);
        first.moved_at = at;
        insert(second.clone()).unwrap();
        let all = h.read(move |tx| store::proposal::all(tx, owner, 9)).unwrap();
        assert_eq!(all.len(), 2);
        assert!(all.contains(&first) && all.contains(&second));
    });
}

#[test]
fn a_duty_moves_only_from_the_state_that_was_seen() {
    everywhere(|h| {
        use domain::state::DutyState::{Active, CloseProposed, Closed, Stopped};
        let (mut duty, mut version) = stored_duty(&h);
        let (id, owner, user, version_id) = (duty.id, h.owner, h.user, version.id);
        let advance = |seen: &store::duty::Duty, to| {
            let seen = seen.clone();
            h.write(move |tx| store::duty::advance(tx, &seen, to, Some(user)))
        };
        let at = h.clock.advance_ms(1);
        assert_eq!(advance(&duty, CloseProposed), Ok(true));
        assert_eq!(advance(&duty, Stopped), Ok(false));
        duty.state = CloseProposed;
        duty.moved_at = at;
        assert_eq!(h.read(move |tx| store::duty::get(tx, owner, id)), Ok(duty.clone()));
        assert_eq!(advance(&duty, Closed), Ok(true));
        duty.state = Closed;
        let illegal = advance(&duty, Stopped);
        assert!(matches!(illegal, Err(StoreError::Refused(_))), "{illegal:?}");
        assert_eq!(advance(&duty, Active), Ok(true));

        let at = h.clock.advance_ms(1);
        let ended = TaskVersionState::Ended;
        h.write(move |tx| store::duty::advance_version(tx, version_id, ended)).unwrap();
        version.state = ended;
        version.moved_at = at;
        // Without one in force, the last one is shown.
        assert_eq!(h.read(move |tx| store::duty::version(tx, id)), Ok(version));
    });
}

#[test]
fn a_fault_is_new_once_until_it_is_mended() {
    everywhere(|h| {
        let owner = h.owner;
        let ids = [uuid(&h), uuid(&h), uuid(&h), uuid(&h)];
        let open = |at: usize, key: &'static str| {
            let id = ids[at];
            h.write(move |tx| store::fault::open(tx, id, key, &format!("seen {at}"))).unwrap()
        };
        let first = h.clock.now();
        assert_eq!([open(0, "model"), open(1, "model"), open(2, "disk")], [true, false, true]);
        let fault = |id, key: &str, detail: &str, times| store::fault::Fault {
            id,
            owner,
            key: key.into(),
            detail: detail.into(),
            times,
            state: domain::state::FaultState::Open,
            created_at: first,
            moved_at: first,
        };
        let mut wanted =
            vec![fault(ids[0], "model", "seen 1", 2), fault(ids[2], "disk", "seen 2", 1)];
        wanted.sort_by_key(|fault| fault.id);
        assert_eq!(h.read(move |tx| store::fault::all_open(tx, owner)), Ok(wanted));
        h.write(|tx| store::fault::close(tx, "model")).unwrap();
        assert!(open(3, "model"));
    });
}
