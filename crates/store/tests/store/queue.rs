//! Where an item waits: unrouted, with the small model, beside a lane, in its queue; and whom it wakes.

use base::{Timestamp, WorkItemId};
use domain::event::Class;
use domain::state::WorkItemState;
use store::session::Claimable;
use store::work_item::WorkItem;
use testkit::stores::{Harness, each_engine};

use crate::fixtures::*;
use crate::raw::Raw;
use crate::world::*;

fn get(h: &Harness, id: WorkItemId) -> WorkItem {
    h.read(move |tx| store::work_item::get(tx, id)).unwrap()
}

fn enqueue(h: &Harness, id: WorkItemId, class: Class) -> bool {
    let main = h.main;
    h.write(move |tx| store::work_item::enqueue(tx, id, main, class)).unwrap()
}

/// An accepted item that nobody has routed.
fn unrouted(h: &Harness, external_id: &str) -> WorkItem {
    let delivery = delivery(h, h.device, external_id, "");
    let item = delivery.item.clone();
    h.unowned(move |tx| delivery.accept(tx)).unwrap();
    item
}

#[test]
fn what_nobody_has_routed_is_counted_up_to_a_bound() {
    each_engine(|h| {
        let items: Vec<_> = (0..5).map(|n| unrouted(&h, &format!("m{n}")).id).collect();
        let backlog = |most| h.read(move |tx| store::source::backlog(tx, most)).unwrap();
        assert_eq!([backlog(1), backlog(3), backlog(5), backlog(9)], [1, 3, 5, 5]);
        let asked = items[1];
        h.write(move |tx| store::work_item::attribute(tx, asked)).unwrap();
        assert!(enqueue(&h, items[0], Class::External));
        assert_eq!([backlog(2), backlog(9)], [2, 3]);
    });
}

#[test]
fn an_item_is_put_into_a_queue_once_and_only_by_who_still_places_it() {
    each_engine(|h| {
        let mut item = unrouted(&h, "m1");
        let (id, owner, main) = (item.id, h.owner, h.main);
        let lists = |h: &Harness| {
            let now = now(h);
            h.read(move |tx| {
                Ok((
                    store::work_item::unrouted(tx, 9)?,
                    store::work_item::attributing(tx, now, 9)?,
                    store::work_item::next_attribution(tx)?,
                ))
            })
            .unwrap()
        };
        assert_eq!(lists(&h), (vec![(owner, id)], vec![], None));
        let at = h.clock.advance_ms(1);
        let attribute = || h.write(move |tx| store::work_item::attribute(tx, id)).unwrap();
        attribute();
        (item.state, item.moved_at) = (WorkItemState::Attributing, at);
        assert_eq!(get(&h, id), item);
        assert_eq!(lists(&h), (vec![], vec![(owner, id)], Some(at)));

        let next = at.plus_ms(1_000);
        h.write(move |tx| store::work_item::put_off(tx, id, next)).unwrap();
        (item.attempts, item.moved_at) = (1, next);
        assert_eq!(get(&h, id), item);
        assert_eq!(lists(&h), (vec![], vec![], Some(next)));
        let at = h.clock.advance_ms(1_000);
        assert_eq!(lists(&h), (vec![], vec![(owner, id)], Some(next)));

        // What the small model failed at is no fruitless run of the lane.
        assert!(enqueue(&h, id, Class::External));
        item.state = WorkItemState::Pending;
        (item.session, item.class) = (Some(main), Some(Class::External));
        (item.attempts, item.moved_at) = (0, at);
        assert_eq!((get(&h, id), lists(&h)), (item.clone(), (vec![], vec![], None)));
        h.clock.advance_ms(1);
        let seq = change_seq(&h);
        attribute();
        let again = [Class::User, Class::Background].map(|class| enqueue(&h, id, class));
        assert_eq!((again, get(&h, id), change_seq(&h)), ([false; 2], item.clone(), seq));

        let run = run(&h, main, 0);
        let (run_id, seen) = (run.id, item.clone());
        h.write(move |tx| {
            store::run::insert(tx, &run)?;
            store::work_item::claim(tx, &seen, run_id)
        })
        .unwrap();
        assert!(!enqueue(&h, id, Class::External), "a run holds it");
        h.write(move |tx| store::work_item::done(tx, &item)).unwrap();
        assert!(!enqueue(&h, id, Class::External), "it is done");
    });
}

#[test]
fn what_is_read_along_waits_beside_its_lane_and_goes_back_there() {
    each_engine(|h| {
        let main = h.main;
        let mut item = unrouted(&h, "m1");
        let id = item.id;
        let at = h.clock.advance_ms(1);
        assert!(enqueue(&h, id, Class::Background));
        (item.session, item.class) = (Some(main), Some(Class::Background));
        (item.state, item.moved_at) = (WorkItemState::Background, at);
        let lists = |h: &Harness| {
            let now = now(h);
            h.read(move |tx| {
                Ok((
                    store::work_item::background(tx, main, 9)?,
                    store::work_item::pending(tx, main, 9)?,
                    store::session::claimable(tx, now, now, now, 9)?,
                ))
            })
            .unwrap()
        };
        assert_eq!(lists(&h), (vec![item.clone()], vec![], vec![]));

        let run = run(&h, main, 0);
        let run_id = run.id;
        h.write(move |tx| store::run::insert(tx, &run)).unwrap();
        let claim = |seen: &WorkItem| {
            let seen = seen.clone();
            h.write(move |tx| store::work_item::claim(tx, &seen, run_id)).unwrap();
        };
        let back = |seen: &WorkItem, attempts| {
            let seen = seen.clone();
            h.write(move |tx| store::work_item::back(tx, &seen, attempts)).unwrap();
        };
        let claimed = || h.read(move |tx| store::work_item::claimed(tx, run_id)).unwrap();
        let at = h.clock.advance_ms(1);
        claim(&item);
        (item.state, item.run) = (WorkItemState::Claimed, Some(run_id));
        (item.delivered_at, item.moved_at) = (Some(at), at);
        assert_eq!((lists(&h).0, claimed()), (vec![], vec![item.clone()]));

        let at = h.clock.advance_ms(1);
        back(&item, 2);
        (item.state, item.run) = (WorkItemState::Background, None);
        (item.attempts, item.moved_at) = (2, at);
        assert_eq!((lists(&h).0, lists(&h).1), (vec![item.clone()], vec![]));

        claim(&item);
        back(&item, 3);
        let at = h.clock.advance_ms(1);
        let seen = item.clone();
        h.write(move |tx| store::work_item::fail(tx, &seen)).unwrap();
        (item.state, item.attempts) = (WorkItemState::Failed, 3);
        (item.delivered_at, item.done_at, item.moved_at) = (Some(at.minus_ms(1)), Some(at), at);
        assert_eq!((get(&h, id), lists(&h).0), (item, vec![]));
    });
}

#[test]
fn an_event_of_no_concern_is_recorded_and_wakes_nobody() {
    each_engine(|h| {
        let mut item = unrouted(&h, "m1");
        let (id, seen) = (item.id, item.clone());
        let at = h.clock.advance_ms(1);
        h.write(move |tx| store::work_item::done(tx, &seen)).unwrap();
        (item.state, item.done_at, item.moved_at) = (WorkItemState::Done, Some(at), at);
        assert_eq!(get(&h, id), item);
        assert_eq!(h.read(move |tx| store::session::claimable(tx, at, at, at, 9)), Ok(vec![]));
    });
}

#[test]
fn what_came_from_outside_waits_for_its_companions_and_people_and_times_do_not() {
    each_engine(|h| {
        let claimable = |merged: Timestamp| {
            let now = now(&h);
            h.read(move |tx| store::session::claimable(tx, now, now, merged, 9)).unwrap()
        };
        let main = |person| vec![Claimable { owner: h.owner, session: h.main, person }];
        let start = now(&h);
        let before = start.minus_ms(1);
        arrived(&h, "outside", Class::External);
        assert_eq!(claimable(before), vec![]);
        assert_eq!(claimable(start), main(false));
        let timer = arrived(&h, "timer", Class::Timer);
        assert_eq!(claimable(before), main(false));
        let item = get(&h, timer);
        h.write(move |tx| store::work_item::done(tx, &item)).unwrap();
        assert_eq!(claimable(before), vec![]);
        // A person does not wait, and takes along what does: the whole queue is the run's.
        let person = arrived(&h, "person", Class::User);
        assert_eq!(claimable(before), main(true));
        let session = h.main;
        let queue = h.read(move |tx| store::work_item::pending(tx, session, 9)).unwrap();
        let classes: Vec<_> = queue.iter().map(|item| item.class).collect();
        assert_eq!(classes, [Some(Class::External), Some(Class::User)]);
        let people = h.read(move |tx| store::work_item::from_people(tx, session, 9)).unwrap();
        assert_eq!(people, vec![get(&h, person)]);
    });
}

/// Puts this many items from outside into the owner's queue, each a millisecond younger.
fn flood(h: &Harness, raw: &mut Raw, items: i64) {
    let (owner, main, at) = (raw.id(h.owner), raw.id(h.main), now(h).micros());
    let (id, numbers) = match raw {
        Raw::Sqlite(_) => (
            "randomblob(16)",
            format!(
                "(WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers
                 WHERE n < {items}) SELECT n FROM numbers) AS numbers"
            ),
        ),
        Raw::Postgres(_) => {
            ("gen_random_uuid()", format!("generate_series(1, {items}) AS numbers (n)"))
        }
    };
    raw.run(&format!(
        "INSERT INTO work_item (id, owner, event, session, class, state, attempts, created_at, moved_at)
         SELECT {id}, {owner}, {id}, {main}, 'external', 'pending', 0, {at} + n * 1000, {at}
         FROM {numbers}; ANALYZE"
    ))
    .unwrap();
}

#[test]
fn a_persons_message_is_in_the_queue_however_much_came_from_outside_before_it() {
    const FLOOD: i64 = 10_000;
    each_engine(|h| {
        let mut raw = Raw::beside(&h);
        flood(&h, &mut raw, FLOOD);
        let at = h.clock.advance_ms(u64::try_from(2 * FLOOD).unwrap());
        let person = arrived(&h, "person", Class::User);
        let (owner, session) = (h.owner, h.main);
        // Each a read of its own, and a read ends within a second.
        let queue = h.read(move |tx| store::work_item::pending(tx, session, 20)).unwrap();
        let classes: Vec<_> = queue.iter().filter_map(|item| item.class).collect();
        assert_eq!(classes, [&[Class::External; 20][..], &[Class::User]].concat());
        assert_eq!(queue.last().map(|item| item.id), Some(person));
        let claimable = h.read(move |tx| store::session::claimable(tx, at, at, at, 9));
        assert_eq!(claimable, Ok(vec![Claimable { owner, session, person: true }]));

        // And what is read of the queue does not grow with it.
        let of_class = |sql: &&&store::Sql| sql.name == "work_item.OF_CLASS";
        let statements = store::statements();
        let sql = statements.iter().find(of_class).unwrap();
        let lane = raw.id(session);
        let bound =
            |text: &str| text.replace("$1", &lane).replace("$2", "'external'").replace("$3", "20");
        let (plan, wanted) = match &mut raw {
            Raw::Sqlite(connection) => {
                let plan = format!("EXPLAIN QUERY PLAN {}", bound(sql.sqlite()));
                let mut statement = connection.prepare(&plan).unwrap();
                let lines = statement.raw_query().mapped(|row| row.get(3));
                let lines: Vec<String> = lines.map(|line| line.unwrap()).collect();
                (lines, "SEARCH work_item USING INDEX work_item_pending (session=? AND class=?)")
            }
            Raw::Postgres(_) => (
                raw.texts(&format!("EXPLAIN {}", bound(sql.postgres()))),
                "Index Scan using work_item_pending on work_item",
            ),
        };
        assert!(plan.iter().any(|line| line.contains(wanted)), "{plan:#?}");
        let whole = |line: &String| {
            line.trim() == "USE TEMP B-TREE FOR ORDER BY" || {
                line.contains("Sort  (") && !line.contains("Incremental Sort")
            }
        };
        assert!(!plan.iter().any(whole), "{plan:#?}");
    });
}
