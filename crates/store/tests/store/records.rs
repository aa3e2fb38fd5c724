//! Every record of every noun comes back as it was written; contents can be erased alone.

use base::{Clock as _, DeviceId, Digest, EventId, MicroUsd};
use domain::state::WorkItemState;
use store::StoreError;
use store::device::{Device, Request};
use store::event::Accepted;
use store::ledger::{LedgerEntry, LedgerKind, Totals};
use store::owner::PrincipalKind;
use store::run::{Spent, StepKind, StoredBlock};
use store::session::PrefixChange;
use testkit::stores::{Harness, each_engine};

use crate::fixtures::*;

#[test]
fn an_owner_reads_back_with_all_that_set_it_up() {
    everywhere(|h| {
        let (owner, main) = (h.owner, h.main);
        let (timer, device) = (h.timer, h.device);
        let found = h
            .read(move |tx| {
                use store::owner::PrincipalKind::{Policy, User};
                Ok((
                    (store::owner::get(tx, owner)?, store::owner::all(tx)?),
                    [
                        store::owner::principal(tx, owner, User)?,
                        store::owner::principal(tx, owner, Policy)?,
                    ],
                    store::session::get(tx, main)?,
                    [store::source::get(tx, timer)?, store::source::get(tx, device)?],
                ))
            })
            .unwrap();
        let record = h.owner_record();
        let wanted = (
            (record.clone(), vec![record]),
            h.principals(),
            h.main_record(),
            [h.source_record(timer), h.source_record(device)],
        );
        assert_eq!(found, wanted);
        h.write(|tx| store::owner::rename(tx, "Bob", "Asia/Shanghai")).unwrap();
        let renamed = h.read(move |tx| store::owner::get(tx, owner)).unwrap();
        let wanted = store::owner::Owner {
            name: "Bob".into(),
            zone: "Asia/Shanghai".into(),
            change_seq: 1,
            ..h.owner_record()
        };
        assert_eq!(renamed, wanted);
        let cap = MicroUsd(30_000_000);
        h.write(move |tx| store::owner::set_cap(tx, cap)).unwrap();
        let capped = h.read(move |tx| store::owner::get(tx, owner)).unwrap();
        let wanted = store::owner::Owner { month_cap_micro_usd: cap, change_seq: 2, ..wanted };
        assert_eq!(capped, wanted);
        let chinese = domain::words::Language::Zh;
        h.write(move |tx| store::owner::set_language(tx, chinese)).unwrap();
        let spoken = h.read(move |tx| store::owner::get(tx, owner)).unwrap();
        let wanted = store::owner::Owner { language: Some(chinese), change_seq: 3, ..wanted };
        assert_eq!(spoken, wanted);
        // Every back-off ends, and no session that rests for no reason is touched.
        let later = h.clock.now().plus_ms(60_000);
        h.write(move |tx| store::session::put_off(tx, main, later)).unwrap();
        h.write(store::session::wake_all).unwrap();
        let woken = h.read(move |tx| store::session::get(tx, main)).unwrap();
        assert_eq!(woken.not_before, h.clock.now());
    });
}

#[test]
fn what_does_not_exist_is_missing_and_another_owners_record_is_not_there() {
    everywhere(|h| {
        let (unknown, stranger) = (h.id(), h.id());
        let get = h.read(move |tx| store::event::get(tx, unknown));
        assert_eq!(get, Err(StoreError::Missing("event")));
        let other = testkit::stores::block_on(h.store.write(stranger, uuid(&h), |_| Ok(())));
        assert_eq!(other, Err(StoreError::Missing("owner")));
        let (duty, _) = stored_duty(&h);
        let foreign = h.read(move |tx| store::duty::get(tx, stranger, duty.id));
        assert_eq!(foreign, Err(StoreError::Missing("duty")));
    });
}

#[test]
fn events_items_and_waits_read_back_whole() {
    everywhere(|h| {
        let event = event(&h, h.device, "m1");
        let item = work_item(&h, event.id, WorkItemState::Pending);
        let wait = wait(&h, "call-1");
        let (e, i, w) = (event.clone(), item.clone(), wait.clone());
        let accepted = h
            .write(move |tx| {
                let accepted = store::event::accept(tx, &e)?;
                store::work_item::insert(tx, &i)?;
                store::wait::insert(tx, &w)?;
                Ok(accepted)
            })
            .unwrap();
        assert_eq!(accepted, Accepted::New);
        let (e, i, w, source) = (event.id, item.id, wait.id, h.device);
        let found = h
            .read(move |tx| {
                Ok((
                    store::event::get(tx, e)?,
                    store::event::by_external(tx, source, "m1")?,
                    store::work_item::get(tx, i)?,
                    store::work_item::of_event(tx, e)?,
                    store::wait::get(tx, w)?,
                    store::source::get(tx, source)?.received_at,
                ))
            })
            .unwrap();
        let heard = Some(event.received_at);
        assert_eq!(found, (event.clone(), Some(event), item.clone(), Some(item), wait, heard));
    });
}

#[test]
fn runs_and_steps_read_back_whole_and_count_what_they_spent() {
    everywhere(|h| {
        let run = run(&h, h.main, 0);
        let (body, step) = step(&h, run.id, 2, "a tool's result");
        let spent = Spent {
            input_tokens: 100,
            cached_tokens: 60,
            output_tokens: 7,
            micro_usd: MicroUsd(1_234),
        };
        let (r, s, id) = (run.clone(), step.clone(), run.id);
        h.write(move |tx| {
            store::run::insert(tx, &r)?;
            store::event::put_body(tx, body)?;
            store::run::add_step(tx, &s, spent, 1)
        })
        .unwrap();
        let found = h
            .read(move |tx| {
                Ok((
                    store::run::get(tx, id)?,
                    store::run::steps(tx, id)?,
                    store::run::blocks(tx, id)?,
                ))
            })
            .unwrap();
        let block = StoredBlock {
            kind: StepKind::Tool,
            call_id: Some("call-2".into()),
            digest: step.digest,
            tokens: 11,
            bytes: Some(b"a tool's result".to_vec()),
        };
        let counted = store::run::Run {
            steps: 1,
            tokens: 11,
            input_tokens: 100,
            cached_tokens: 60,
            output_tokens: 7,
            micro_usd: MicroUsd(1_234),
            ..run
        };
        assert_eq!(found, (counted, vec![step], vec![block]));
    });
}

#[test]
fn duties_versions_schedules_and_proposals_read_back_whole() {
    everywhere(|h| {
        let (duty, version) = stored_duty(&h);
        let schedule = schedule(&h, duty.id, version.id);
        let proposals = [proposal(&h, "call-1", None), proposal(&h, "call-2", Some(duty.id))];
        let (s, p) = (schedule.clone(), proposals.clone());
        h.write(move |tx| {
            store::schedule::insert(tx, &s)?;
            p.iter().try_for_each(|p| store::proposal::insert(tx, p))
        })
        .unwrap();
        let (owner, d, s, lane) = (h.owner, duty.id, schedule.id, duty.session);
        let p = [proposals[0].id, proposals[1].id];
        let found = h
            .read(move |tx| {
                Ok((
                    [Some(store::duty::get(tx, owner, d)?), store::duty::of_session(tx, lane)?],
                    store::duty::all(tx, owner, 10)?,
                    [store::duty::version(tx, d)?].to_vec(),
                    store::duty::versions(tx, d)?,
                    [store::schedule::get(tx, s)?].to_vec(),
                    store::schedule::of_duty(tx, d)?,
                    [
                        store::proposal::get(tx, owner, p[0])?,
                        store::proposal::get(tx, owner, p[1])?,
                    ],
                    store::proposal::closing(tx, d)?,
                ))
            })
            .unwrap();
        let wanted = (
            [Some(duty.clone()), Some(duty.clone())],
            vec![duty],
            vec![version.clone()],
            vec![version],
            vec![schedule.clone()],
            vec![schedule],
            proposals.clone(),
            Some(proposals[1].clone()),
        );
        assert_eq!(found, wanted);
    });
}

#[test]
fn messages_and_sessions_read_back_whole() {
    everywhere(|h| {
        let message = message(&h, "call-1", h.id(), 1);
        let m = message.clone();
        h.write(move |tx| store::message::insert(tx, &m)).unwrap();
        let (body, id, main) = (h.id(), message.id, h.main);
        let change = PrefixChange {
            run_n: 3,
            digest: Digest::of(b"prefix"),
            window_start: 2,
            sections: "profile=1".into(),
            cause: "the profile changed".into(),
            at: now(&h),
        };
        let c = change.clone();
        h.write(move |tx| store::session::change_prefix(tx, main, body, &c)).unwrap();
        let found = h
            .read(move |tx| {
                Ok((
                    store::message::get(tx, id)?,
                    store::session::get(tx, main)?,
                    store::session::prefix_changes(tx, main)?,
                ))
            })
            .unwrap();
        let session = store::session::Session {
            prefix: Some(body),
            prefix_digest: Some(change.digest),
            window_start: 2,
            ..h.main_record()
        };
        assert_eq!(found, (message, session, vec![change]));
    });
}

#[test]
fn a_device_is_found_by_its_token_and_a_code_pairs_once() {
    everywhere(|h| {
        let device = Device {
            id: h.id::<DeviceId>(),
            owner: h.owner,
            principal: h.user,
            kind: store::owner::PrincipalKind::User,
            source: h.device,
            name: "phone".into(),
            token_digest: Digest::of(b"token"),
            operator: true,
            created_at: now(&h),
            revoked_at: None,
        };
        let (d, owner) = (device.clone(), h.owner);
        h.write(move |tx| store::device::insert(tx, &d)).unwrap();
        let found = h
            .read(move |tx| {
                Ok((
                    store::device::by_token(tx, Digest::of(b"token"))?,
                    store::device::by_token(tx, Digest::of(b"guess"))?,
                    store::device::all(tx, owner)?,
                ))
            })
            .unwrap();
        assert_eq!(found, (Some(device.clone()), None, vec![device]));

        let (first, second) = (Digest::of(b"1"), Digest::of(b"2"));
        let until = now(&h).plus_ms(1_000);
        let offer = |code, kind| {
            h.write(move |tx| store::device::offer_code(tx, code, kind, until)).unwrap();
        };
        let (user, supervisor) = (PrincipalKind::User, PrincipalKind::Supervisor);
        let above = Digest::of(b"above");
        offer(above, supervisor);
        offer(first, user);
        offer(second, user);
        let redeem = |code| h.write(move |tx| store::device::redeem_code(tx, code)).unwrap();
        // The second code took the first one's place; it works once, and not when its time is over.
        let codes = [first, second, second, above, above];
        assert_eq!(codes.map(redeem), [None, Some(user), None, Some(supervisor), None]);
        let whose = h.read(move |tx| store::device::code_owner(tx, second)).unwrap();
        assert_eq!(whose, Some(h.owner));
        let third = Digest::of(b"3");
        offer(third, user);
        h.clock.advance_ms(1_000);
        assert_eq!(redeem(third), None);
    });
}

#[test]
fn a_request_keeps_its_first_answer_and_is_per_device() {
    everywhere(|h| {
        let (id, one, two) = (uuid(&h), h.id::<DeviceId>(), h.id::<DeviceId>());
        let first = Request { digest: Digest::of(b"a"), answer: "{\"n\":1}".into() };
        let other = Request { digest: Digest::of(b"b"), answer: "{\"n\":2}".into() };
        let answer = |device, request: &Request| {
            let request = request.clone();
            h.write(move |tx| store::device::answered(tx, device, id, &request))
        };
        assert_eq!(answer(one, &first), Ok(()));
        assert!(matches!(answer(one, &other), Err(StoreError::Duplicate(_))));
        assert_eq!(answer(two, &other), Ok(()));
        let kept = |device| h.read(move |tx| store::device::request(tx, device, id)).unwrap();
        assert_eq!([kept(one), kept(two), kept(h.id())], [Some(first), Some(other), None]);
    });
}

#[test]
fn the_ledger_adds_up_by_month_owner_and_duty() {
    everywhere(|h| {
        let duty = h.id();
        let entry = |month: &str, kind, duty, cost| LedgerEntry {
            id: uuid(&h),
            owner: h.owner,
            month: month.into(),
            run: Some(h.id()),
            duty,
            kind,
            model: "scripted".into(),
            input_tokens: 10,
            cached_tokens: 4,
            output_tokens: 3,
            micro_usd: MicroUsd(cost),
            at: now(&h),
        };
        let entries = [
            entry("2026-11", LedgerKind::Wakeup, Some(duty), 0),
            entry("2026-11", LedgerKind::Model, Some(duty), 5),
            entry("2026-11", LedgerKind::Model, None, 7),
            entry("2026-12", LedgerKind::Model, Some(duty), 11),
            // The small model's, before there is a run.
            LedgerEntry { run: None, ..entry("2026-11", LedgerKind::Attribution, None, 2) },
        ];
        let again = entries[0].clone();
        h.write(move |tx| entries.iter().try_for_each(|e| store::ledger::add(tx, e))).unwrap();
        let twice = h.write(move |tx| store::ledger::add(tx, &again));
        assert!(matches!(twice, Err(StoreError::Duplicate(_))), "{twice:?}");
        let owner = h.owner;
        let found = h
            .read(move |tx| {
                Ok((
                    store::ledger::month(tx, owner, "2026-11")?,
                    store::ledger::month(tx, owner, "2027-01")?,
                    store::ledger::all(tx, owner)?,
                    store::ledger::duty(tx, duty)?,
                ))
            })
            .unwrap();
        let sum = |wakeups, model_calls, entries: u64, cost| Totals {
            wakeups,
            model_calls,
            input_tokens: 10 * entries,
            cached_tokens: 4 * entries,
            output_tokens: 3 * entries,
            micro_usd: MicroUsd(cost),
        };
        let wanted = (sum(1, 3, 4, 14), Totals::default(), sum(1, 4, 5, 25), MicroUsd(16));
        assert_eq!(found, wanted);
    });
}

#[test]
fn an_erased_body_leaves_its_digest_and_every_record_that_names_it() {
    everywhere(|h| {
        let body = new_body(&h, "a secret");
        let run = run(&h, h.main, 0);
        let (step_body, step) = step(&h, run.id, 0, "a secret, said again");
        let (plain, said, id) = (body.id, step_body.id, run.id);
        let digest = h
            .write(move |tx| {
                store::run::insert(tx, &run)?;
                store::event::put_body(tx, step_body)?;
                store::run::add_step(tx, &step, Spent::default(), 1)?;
                store::event::put_body(tx, body)
            })
            .unwrap();
        assert_eq!(digest, Digest::of(b"a secret"));
        let erase = |id| h.write(move |tx| store::event::erase_body(tx, id)).unwrap();
        assert_eq!([erase(plain), erase(said), erase(plain)], [true, true, false]);
        let found = h
            .read(move |tx| {
                let blocks = store::run::blocks(tx, id)?;
                Ok((store::event::body(tx, plain)?, store::event::body_text(tx, plain)?, blocks))
            })
            .unwrap();
        let block = StoredBlock {
            kind: StepKind::Tail,
            call_id: None,
            digest: Digest::of(b"a secret, said again"),
            tokens: 11,
            bytes: None,
        };
        assert_eq!(found, (None, "(erased)".to_owned(), vec![block]));
    });
}

#[test]
fn outside_bytes_stay_bytes_and_a_text_with_a_nul_is_refused_on_both_engines() {
    each_engine(|h: Harness| {
        let mut body = new_body(&h, "");
        body.bytes = vec![0, 255, b'a', 0];
        let id = body.id;
        h.write(move |tx| store::event::put_body(tx, body)).unwrap();
        let found = h.read(move |tx| store::event::body(tx, id)).unwrap();
        assert_eq!(found, Some(vec![0, 255, b'a', 0]));
        let event = event(&h, h.device, "a\0b");
        let id: EventId = event.id;
        let refused = h.write(move |tx| store::event::accept(tx, &event).map(|_| ()));
        let text = "a text with a NUL; keep it as bytes";
        assert_eq!(refused, Err(StoreError::Refused(text.into())));
        assert_eq!(h.read(move |tx| store::event::get(tx, id)), Err(StoreError::Missing("event")));
    });
}
