//! What the user sets for themselves: the month's cap, the zone, and which devices speak for them.

use crate::support::{Talk, now, start};
use base::{Clock as _, Limits, MicroUsd, Timestamp};
use domain::state::ScheduleState;
use engine::control::{self, Changed, Decided, Settings};
use store::schedule::Schedule;
use testkit::stores::TempFolder;

const SCRIPT: &str = r#"
name = "settings"
context_tokens = 50_000

[[rule]]
user = '(?im)^- message \S+ from the user: watch'
not_called = "propose_duty"
[[rule.call]]
tool = "propose_duty"
[rule.call.arguments]
title = "Price watch"
goal = "Tell me when it falls under 100."
conditions = [{ text = "The user ends it.", evidence = "a message", authority = "user" }]
schedules = [
  { kind = "daily", at = "09:00", prompt = "Look at the feed." },
  { kind = "weekly", weekday = "friday", at = "18:00", prompt = "Sum up." },
]

[[rule]]
user = '(?s)New:'
not_called = "send_to_user"
call = [
  { tool = "send_to_user", arguments = { text = "heard" } },
  { tool = "finish_quietly", arguments = { reason = "said" } },
]
"#;

fn room(limits: Limits) -> (Talk, TempFolder) {
    let folder = TempFolder::new();
    let talk = Talk::open(folder.path().join("room.db"), start(), 1, SCRIPT, limits);
    (talk, folder)
}

fn set(talk: &Talk, wish: Settings) -> Changed {
    let device = talk.device.clone();
    let work = move |_: &engine::Context, tx: &mut store::OwnerTx<'_, '_>| {
        control::settings(tx, &device, &wish)
    };
    now(talk.cx.write(talk.device.owner, work)).unwrap()
}

fn cap(micro_usd: i64) -> Settings {
    Settings { month_cap: Some(MicroUsd(micro_usd)), ..Settings::default() }
}

fn zone(name: &str) -> Settings {
    Settings { zone: Some(name.to_owned()), ..Settings::default() }
}

/// A duty that the user has confirmed; its schedules in the order of the draft.
fn schedules(talk: &Talk) -> Vec<Schedule> {
    talk.read(|tx, owner| {
        let mut all = Vec::new();
        for duty in store::duty::all(tx, owner, 10)? {
            all.extend(store::schedule::of_duty(tx, duty.id)?);
        }
        all.sort_by_key(|schedule| schedule.rule.clone());
        Ok(all)
    })
}

fn delegate(talk: &Talk) {
    talk.say("watch the price");
    talk.turn();
    let device = talk.device.clone();
    let work = move |cx: &engine::Context, tx: &mut store::OwnerTx<'_, '_>| {
        let owner = tx.owner();
        let card = store::proposal::all(tx, owner, 1)?.remove(0);
        control::confirm(cx, tx, &device, card.id, card.digest)
    };
    let decided = now(talk.cx.write(talk.device.owner, work)).unwrap();
    assert!(matches!(decided, Decided::Done(_)), "{decided:?}");
}

fn slots(talk: &Talk) -> Vec<String> {
    schedules(talk).iter().map(|schedule| schedule.next_slot.to_string()).collect()
}

fn notices(talk: &Talk) -> Vec<String> {
    let said = talk.read(|tx, owner| store::message::chat_after(tx, owner, 0, 100));
    said.into_iter().filter(|entry| entry.kind == "notice").map(|entry| entry.text).collect()
}

fn faults(talk: &Talk) -> Vec<String> {
    let open = talk.read(store::fault::all_open);
    open.into_iter().map(|fault| fault.key).collect()
}

#[test]
fn a_raised_cap_lets_what_waited_go_on_at_once() {
    let (talk, _folder) = room(Limits { owner_month_micro_usd: 1, ..Limits::default() });
    talk.say("first");
    talk.turn();
    talk.say("second");
    assert_eq!(talk.turn().len(), 0, "the cap is reached");
    assert_eq!(faults(&talk), ["month:2027-03"]);
    let told = notices(&talk);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("this month's cap is used up (US$0.00 of US$0.00)"), "{told:?}");
    assert!(told[0].contains("adjutant set --cap-usd AMOUNT"), "{told:?}");

    // Still below what was spent: nothing goes on, and nothing is told again.
    assert_eq!(set(&talk, cap(2)), Changed::Done);
    assert!(talk.session().not_before > talk.clock.now());
    assert_eq!((talk.turn().len(), notices(&talk).len()), (0, 1));

    assert_eq!(set(&talk, cap(30_000_000)), Changed::Done);
    assert_eq!(faults(&talk), Vec::<String>::new());
    assert!(talk.session().not_before <= talk.clock.now());
    assert_eq!(talk.turn().len(), 1, "no clock has moved");

    // A later cap that is reached again is told again.
    assert_eq!(set(&talk, cap(1)), Changed::Done);
    talk.say("third");
    assert_eq!((talk.turn().len(), notices(&talk).len()), (0, 2));
    assert!(matches!(set(&talk, cap(-1)), Changed::Conflict(_)));
}

#[test]
fn another_zone_moves_the_schedules_in_force_and_is_named_in_the_prefix() {
    let (talk, _folder) = room(Limits::default());
    delegate(&talk);
    // 08:00 on Monday in Hong Kong, where the owner lives.
    assert_eq!(slots(&talk), ["2027-03-01T01:00:00.000000Z", "2027-03-05T10:00:00.000000Z"]);
    assert_eq!(set(&talk, zone("Europe/Berlin")), Changed::Done);
    assert_eq!(slots(&talk), ["2027-03-01T08:00:00.000000Z", "2027-03-05T17:00:00.000000Z"]);
    talk.say("hello");
    talk.turn();
    let main = talk.main;
    let changes = talk.read(move |tx, _| store::session::prefix_changes(tx, main));
    assert_eq!(changes.last().map(|change| change.cause.as_str()), Some("profile changed"));

    // What has come already is not lost by a move; the slot after it is the new zone's.
    talk.clock.set(Timestamp::parse("2027-03-01T08:00:01Z").unwrap());
    assert_eq!(set(&talk, zone("Asia/Hong_Kong")), Changed::Done);
    assert_eq!(slots(&talk), ["2027-03-01T08:00:00.000000Z", "2027-03-05T10:00:00.000000Z"]);
    now(engine::timer::pass(&talk.cx)).unwrap();
    assert_eq!(slots(&talk)[0], "2027-03-02T01:00:00.000000Z");

    // What is paused keeps its slot until it is resumed, and no zone is taken that does not exist.
    let device = talk.device.clone();
    now(talk.cx.write(talk.device.owner, move |cx, tx| {
        let owner = tx.owner();
        let duty = store::duty::all(tx, owner, 1)?.remove(0);
        control::stop(cx, tx, &device, duty.id)
    }))
    .unwrap();
    let before = schedules(&talk);
    assert!(before.iter().all(|schedule| schedule.state == ScheduleState::Paused));
    assert_eq!(set(&talk, zone("Europe/Berlin")), Changed::Done);
    assert_eq!(schedules(&talk), before);
    assert_eq!(
        set(&talk, zone("Mars/Crater")),
        Changed::Conflict("\"Mars/Crater\" is no time zone; write it as Asia/Hong_Kong".into())
    );
}

#[test]
fn what_is_set_is_audited_and_a_revoked_device_stays_in_the_list() {
    let (talk, _folder) = room(Limits::default());
    let audits = |talk: &Talk| {
        let all = talk.read(|tx, owner| store::change::audit(tx, owner, 0, 100));
        all.into_iter().map(|entry| (entry.verb, entry.by.is_some())).collect::<Vec<_>>()
    };
    let before = audits(&talk).len();
    let name = Settings { name: Some("Mei".into()), ..Settings::default() };
    assert_eq!(set(&talk, name), Changed::Done);
    let device = talk.device.clone();
    let revoked = now(talk.cx.write(talk.device.owner, move |cx, tx| {
        control::offer_code(cx, tx, &device, store::owner::PrincipalKind::User)?.unwrap();
        control::revoke(tx, &device, device.id)?.unwrap();
        control::revoke(tx, &device, device.id)
    }))
    .unwrap()
    .unwrap();
    assert_eq!(revoked.revoked_at, Some(talk.clock.now()));
    let wanted = ["settings", "offer", "revoke"].map(|verb| (verb.to_owned(), true));
    assert_eq!(audits(&talk)[before..], wanted);
    let owner = talk.read(store::owner::get);
    assert_eq!((owner.name.as_str(), owner.zone.as_str()), ("Mei", "Asia/Hong_Kong"));
    assert_eq!(talk.read(store::device::all), [revoked]);
}
