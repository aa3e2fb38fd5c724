//! What is known of the world: ways in and their health, standing waits, links, looks, issued ids,
//! judgements. Every record comes back as it was written, and what may exist once exists once.

use base::{ObjectId, TaskVersionId};
use domain::event::How;
use domain::state::{CheckState, SourceState, SubscriptionState};
use store::StoreError;
use store::check::CheckRun;
use store::object::Object;
use store::source::Source;
use store::subscription::Subscription;
use testkit::stores::{Harness, each_engine};

use crate::fixtures::*;
use crate::world::*;

fn get(h: &Harness, source: &Source) -> Source {
    let id = source.id;
    h.read(move |tx| store::source::get(tx, id)).unwrap()
}

#[test]
fn a_source_tells_what_it_received_and_what_failed() {
    everywhere(|h| {
        let mut source = stored_source(&h, "news");
        let (id, owner) = (source.id, h.owner);
        // The device and the timer are ways in too, but none that the user has set up.
        let found = h.read(move |tx| {
            Ok((
                store::source::get(tx, id)?,
                store::source::in_use(tx, owner, 9)?,
                store::source::by_name(tx, owner, "news")?,
                store::source::by_name(tx, owner, "first")?,
                store::source::next_look(tx)?,
            ))
        });
        let all = vec![source.clone()];
        let wanted = (source.clone(), all, Some(source.clone()), None, source.next_look_at);
        assert_eq!(found, Ok(wanted));

        let due = |h: &Harness| {
            let now = now(h);
            h.read(move |tx| store::source::due(tx, now, 9)).unwrap()
        };
        assert_eq!(due(&h), vec![]);
        let at = h.clock.advance_ms(60_000);
        assert_eq!(due(&h), vec![(owner, id)]);
        let next = at.plus_ms(900_000);
        let failed = || h.write(move |tx| store::source::look_failed(tx, id, next));
        assert_eq!([failed(), failed()], [Ok(3), Ok(4)]);
        (source.failures, source.next_look_at) = (4, Some(next));
        assert_eq!((get(&h, &source), due(&h)), (source.clone(), vec![]));

        let at = h.clock.advance_ms(900_000);
        let next = at.plus_ms(900_000);
        h.write(move |tx| store::source::looked(tx, id, "etag:8", next)).unwrap();
        (source.failures, source.next_look_at) = (0, Some(next));
        (source.cursor, source.looked_at) = (Some("etag:8".into()), Some(at));
        assert_eq!(get(&h, &source), source);

        h.unowned(move |tx| store::source::refused(tx, id, at)).unwrap();
        (source.refused, source.refused_at) = (4, Some(at));
        assert_eq!(get(&h, &source), source);
    });
}

#[test]
fn a_removed_source_is_looked_at_no_more_and_its_name_is_free_again() {
    everywhere(|h| {
        let (mut source, owner) = (stored_source(&h, "news"), h.owner);
        let id = source.id;
        let insert = |source: Source| h.unowned(move |tx| store::source::insert(tx, &source));
        let mut again = crate::world::source(&h, "news");
        again.kind = store::source::SourceKind::Webhook;
        let taken = insert(again.clone());
        assert!(matches!(taken, Err(StoreError::Duplicate(_))), "of any kind: {taken:?}");

        let at = h.clock.advance_ms(60_000);
        let remove = || h.write(move |tx| store::source::remove(tx, id));
        assert_eq!([remove(), remove()], [Ok(true), Ok(false)]);
        let seq = change_seq(&h);
        // What was under way when it was removed changes nothing.
        h.write(move |tx| store::source::looked(tx, id, "late", at)).unwrap();
        assert_eq!(h.write(move |tx| store::source::look_failed(tx, id, at)), Ok(0));
        assert_eq!(change_seq(&h), seq);
        (source.state, source.moved_at) = (SourceState::Removed, at);
        (source.every_ms, source.next_look_at) = (None, None);
        let found = h.read(move |tx| {
            Ok((
                store::source::get(tx, id)?,
                store::source::in_use(tx, owner, 9)?,
                store::source::by_name(tx, owner, "news")?,
                store::source::due(tx, at.plus_ms(1_000_000), 9)?,
                store::source::next_look(tx)?,
            ))
        });
        assert_eq!(found, Ok((source, vec![], None, vec![], None)));

        assert_eq!(insert(again.clone()), Ok(()));
        let found = h.read(move |tx| store::source::by_name(tx, owner, "news"));
        assert_eq!(found, Ok(Some(again)));
    });
}

#[test]
fn a_subscription_feeds_its_duty_while_it_is_active() {
    each_engine(|h| {
        let ((duty, version), source) = (stored_duty(&h), stored_source(&h, "forge"));
        let first = subscription(&h, &duty, version.id, source.id);
        h.clock.advance_ms(1);
        let second = Subscription {
            topic: None,
            mode: domain::event::Mode::Background,
            until_at: None,
            ..subscription(&h, &duty, version.id, source.id)
        };
        let (duty, source, id) = (duty.id, source.id, first.id);
        let mut all = vec![first, second];
        let stored = all.clone();
        h.write(move |tx| stored.iter().try_for_each(|s| store::subscription::insert(tx, s)))
            .unwrap();
        let lists = || {
            h.read(move |tx| {
                Ok((
                    store::subscription::of_source(tx, source)?,
                    store::subscription::of_duty(tx, duty)?,
                ))
            })
            .unwrap()
        };
        assert_eq!(lists(), (all.clone(), all.clone()));
        let at = h.clock.advance_ms(1);
        let advance = |to| h.write(move |tx| store::subscription::advance(tx, id, to));
        advance(SubscriptionState::Paused).unwrap();
        (all[0].state, all[0].moved_at) = (SubscriptionState::Paused, at);
        assert_eq!(lists(), (all[1..].to_vec(), all.clone()));
        advance(SubscriptionState::Closed).unwrap();
        let revived = advance(SubscriptionState::Active);
        assert!(matches!(revived, Err(StoreError::Refused(_))), "{revived:?}");
    });
}

#[test]
fn an_event_may_concern_several_matters_each_by_its_own_word_and_once() {
    each_engine(|h| {
        let event = h.id();
        let mut links = vec![link(&h, event, h.main), link(&h, event, h.id())];
        h.clock.advance_ms(1);
        links.push(store::link::Link { how: How::Wait, record: uuid(&h), ..links[0].clone() });
        links[2].at = now(&h);
        links[..2].sort_by_key(|link| link.session);
        let attribution = attribution(&h, event);
        let other = store::link::Link { how: How::Dial, ..links[0].clone() };
        let (stored, said) = (links.clone(), attribution.clone());
        h.write(move |tx| {
            stored.iter().try_for_each(|link| store::link::insert(tx, link))?;
            store::link::attribute(tx, &said)?;
            // The same matter by the same record: the first word stands.
            store::link::insert(tx, &other)
        })
        .unwrap();
        let found = h.read(move |tx| {
            Ok((store::link::of_event(tx, event)?, store::link::attribution(tx, event)?))
        });
        assert_eq!(found, Ok((links, Some(attribution.clone()))));
        let twice = h.write(move |tx| store::link::attribute(tx, &attribution));
        assert!(matches!(twice, Err(StoreError::Duplicate(_))), "asked once: {twice:?}");
    });
}

#[test]
fn a_slot_is_looked_at_once_and_a_look_ends_once() {
    each_engine(|h| {
        let (duty, version) = stored_duty(&h);
        let schedule = schedule(&h, duty.id, version.id);
        let (of, start) = (schedule.id, now(&h));
        h.write(move |tx| store::schedule::insert(tx, &schedule)).unwrap();
        let mut check = check_run(&h, of, start);
        let again = check_run(&h, of, start);
        let next = CheckRun { moved_at: start.plus_ms(1), ..check_run(&h, of, start.plus_ms(1)) };
        let (id, owner) = (check.id, h.owner);
        let insert = |check: &CheckRun| {
            let check = check.clone();
            h.write(move |tx| store::check::insert(tx, &check)).unwrap();
        };
        [&next, &check].into_iter().for_each(insert);
        let seq = change_seq(&h);
        insert(&again);
        assert_eq!(change_seq(&h), seq, "the slot's second look is nothing new");
        let lists = |h: &Harness| {
            let now = now(h);
            h.read(move |tx| {
                let due = store::check::due(tx, now, 9)?;
                Ok((due, store::check::of_schedule(tx, of, 9)?, store::check::next_due(tx)?))
            })
            .unwrap()
        };
        let all = vec![next.clone(), check.clone()];
        assert_eq!(lists(&h), (vec![(owner, id)], all, Some(start)));
        h.clock.advance_ms(1);
        assert_eq!(lists(&h).0, vec![(owner, id), (owner, next.id)]);

        // It failed: tried again at its time.
        let later = start.plus_ms(5_000);
        h.write(move |tx| store::check::tried(tx, id, later)).unwrap();
        (check.attempts, check.moved_at) = (2, later);
        assert_eq!(h.read(move |tx| store::check::get(tx, id)), Ok(check.clone()));
        assert_eq!(lists(&h).0, vec![(owner, next.id)]);

        let answer = h.id();
        let end = |to| h.write(move |tx| store::check::end(tx, id, to, Some(answer)));
        let at = h.clock.advance_ms(5_000);
        assert_eq!([end(CheckState::Unchanged), end(CheckState::Met)], [Ok(true), Ok(false)]);
        h.write(move |tx| store::check::tried(tx, id, later)).unwrap();
        (check.state, check.answer, check.moved_at) = (CheckState::Unchanged, Some(answer), at);
        let left = (vec![(owner, next.id)], vec![next.clone(), check], Some(next.moved_at));
        assert_eq!(lists(&h), left);
    });
}

#[test]
fn a_schedule_remembers_what_its_look_read_and_takes_another_slot_while_it_is_active() {
    each_engine(|h| {
        use domain::state::ScheduleState::Paused;
        let (duty, version) = stored_duty(&h);
        let mut schedule = schedule(&h, duty.id, version.id);
        schedule.run_missed = domain::schedule::Missed::Skip;
        let (stored, id, read) = (schedule.clone(), schedule.id, h.id());
        let (next, later) = (now(&h).plus_ms(7), now(&h).plus_ms(8));
        h.write(move |tx| {
            store::schedule::insert(tx, &stored)?;
            store::schedule::remember(tx, id, read)?;
            store::schedule::replan(tx, id, next)?;
            store::schedule::advance(tx, id, Paused, next)?;
            store::schedule::replan(tx, id, later)
        })
        .unwrap();
        (schedule.check_last, schedule.next_slot, schedule.state) = (Some(read), next, Paused);
        assert_eq!(h.read(move |tx| store::schedule::get(tx, id)), Ok(schedule));
    });
}

#[test]
fn an_object_counts_by_lane_kind_version_and_expiry_and_the_newest_first() {
    each_engine(|h| {
        let (one, two) = (h.id::<TaskVersionId>(), h.id::<TaskVersionId>());
        let start = now(&h);
        let issue = |task_version, kind: &str, expires_at| {
            h.clock.advance_ms(1);
            let object = Object { task_version, expires_at, ..object(&h, kind, "Q-7") };
            let stored = object.clone();
            h.write(move |tx| store::object::issue(tx, &stored)).unwrap();
            object
        };
        let find = |session, version, value: &'static str, kind: Option<&'static str>, at| {
            let found =
                h.read(move |tx| store::object::find(tx, session, version, value, kind, at));
            found.unwrap()
        };
        let until = start.plus_ms(1_000);
        let quote = issue(Some(one), "quote", Some(until));
        let url = issue(Some(one), "url", None);
        let newer = issue(Some(two), "quote", None);
        // However often it was issued for another version since, or for a time that is over.
        let main: Vec<ObjectId> = (0..12).map(|_| issue(None, "url", Some(until)).id).collect();
        let id = |found: Option<Object>| found.map(|object| object.id);
        assert_eq!(find(h.main, Some(one), "Q-7", Some("quote"), start), Some(quote.clone()));
        let found = [
            id(find(h.main, Some(one), "Q-7", None, start)),
            id(find(h.main, Some(one), "Q-7", Some("url"), start)),
            id(find(h.main, Some(two), "Q-7", Some("quote"), start)),
            id(find(h.main, Some(two), "Q-7", Some("url"), start)),
            id(find(h.main, None, "Q-7", None, start)),
            id(find(h.main, None, "Q-7", Some("quote"), start)),
            // The last instant of its life, and the first one after.
            id(find(h.main, Some(one), "Q-7", Some("quote"), until.minus_ms(1))),
            id(find(h.main, Some(one), "Q-7", Some("quote"), until)),
            id(find(h.main, Some(h.id()), "Q-7", None, start)),
            id(find(h.main, Some(one), "q-7", None, start)),
            id(find(h.id(), Some(one), "Q-7", None, start)),
        ];
        let newest = main.last().copied();
        let wanted = [
            Some(url.id),
            Some(url.id),
            Some(newer.id),
            None,
            newest,
            None,
            Some(quote.id),
            None,
            None,
            None,
            None,
        ];
        assert_eq!(found, wanted);
        // Two at the same instant: the later id.
        let last = issue(Some(two), "quote", None);
        let beside = Object { id: h.id(), ..last };
        let (stored, id) = (beside.clone(), last.id.max(beside.id));
        h.write(move |tx| store::object::issue(tx, &stored)).unwrap();
        let found = find(h.main, Some(two), "Q-7", None, start).map(|object| object.id);
        assert_eq!(found, Some(id));
    });
}

#[test]
fn judgements_and_the_dials_notes_are_read_newest_first() {
    each_engine(|h| {
        let (owner, event) = (h.owner, h.id());
        let first = (situation(&h, "call-1"), proactive(&h, event));
        h.clock.advance_ms(1);
        let second = (situation(&h, "call-2"), proactive(&h, h.id()));
        let stored = [first.clone(), second.clone()];
        h.write(move |tx| {
            stored.iter().try_for_each(|(situation, note)| {
                store::situation::insert(tx, situation)?;
                store::proactive::insert(tx, note)
            })
        })
        .unwrap();
        let latest = |limit| {
            h.read(move |tx| {
                let situations = store::situation::latest(tx, owner, limit)?;
                Ok((situations, store::proactive::latest(tx, owner, limit)?))
            })
        };
        let both = (vec![second.0.clone(), first.0.clone()], vec![second.1.clone(), first.1]);
        assert_eq!([latest(9), latest(1)], [Ok(both), Ok((vec![second.0], vec![second.1]))]);
        let (mut judged, note) = (situation(&h, "call-1"), proactive(&h, event));
        judged.run = first.0.run;
        let twice = [
            h.write(move |tx| store::situation::insert(tx, &judged)),
            h.write(move |tx| store::proactive::insert(tx, &note)),
        ];
        let known = |found: &store::Result<()>| matches!(found, Err(StoreError::Duplicate(_)));
        assert!(twice.iter().all(known), "a call judges once, an event is noted once: {twice:?}");
    });
}
