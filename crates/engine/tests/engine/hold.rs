//! Holds and pauses: placed by the message, judged by the model, decided by the policy or the user
//! (QUE-08..12, G-07, G-26).

use crate::support::{Talk, now, start};
use base::{HoldId, Limits};
use domain::hold::Verdict;
use domain::state::{DutyState, HoldState};
use engine::control::{self, Changed};
use store::hold::{Hold, Pause};
use testkit::stores::TempFolder;

const SCRIPT: &str = r#"
name = "hold"

[[rule]]
user = 'from the user: (?s).*(harmless|tickets|hotel)'
not_called = "settle_message"
call = [
  { tool = "settle_message", arguments = { stop = false } },
  { tool = "finish_quietly", arguments = { reason = "read" } },
]

[[rule]]
user = 'from the user: stop (?<what>.*)'
seen = 'duty (?<id>[0-9a-f-]{36}) "prices"'
not_called = "settle_message"
call = [
  { tool = "settle_message", arguments = { stop = true, duty = "$id" } },
  { tool = "finish_quietly", arguments = { reason = "read" } },
]

[[rule]]
user = 'from the user: .*(先别订|halt)'
not_called = "settle_message"
call = [
  { tool = "settle_message", arguments = { stop = true } },
  { tool = "finish_quietly", arguments = { reason = "read" } },
]

[[rule]]
user = 'from the user: watch (?<what>\w+)'
not_called = "propose_duty"
[[rule.call]]
tool = "propose_duty"
[rule.call.arguments]
title = "$what"
goal = "Watch $what."
conditions = [{ text = "The user ends it.", evidence = "statement", authority = "user" }]
"#;

struct Room {
    talk: Talk,
    folder: TempFolder,
}

fn room() -> Room {
    let folder = TempFolder::new();
    let talk = Talk::open(folder.path().join("r.db"), start(), 4, SCRIPT, Limits::default());
    Room { talk, folder }
}

impl Room {
    fn placed(&self) -> Vec<Hold> {
        self.talk.read(store::hold::placed)
    }

    fn pauses(&self) -> Vec<Pause> {
        self.talk.read(store::hold::pauses)
    }

    fn get(&self, id: HoldId) -> (HoldState, Option<Verdict>) {
        let hold = self.talk.read(move |tx, _| store::hold::get(tx, id));
        (hold.state, hold.verdict)
    }

    fn by_user<T: Send + 'static>(
        &self,
        work: impl FnOnce(
            &engine::Context,
            &mut store::OwnerTx<'_, '_>,
            &store::device::Device,
        ) -> store::Result<T>
        + Send
        + 'static,
    ) -> T {
        let device = self.talk.device.clone();
        now(self.talk.cx.write(device.owner, move |cx, tx| work(cx, tx, &device))).unwrap()
    }
}

#[test]
fn a_message_holds_until_model_and_check_agree_that_it_is_no_stop() {
    let room = room();
    room.talk.say("tickets booked?");
    let [hold] = &room.placed()[..] else { panic!("one hold, in the message's own transaction") };
    let hold = hold.id;
    room.talk.turn();
    assert_eq!(room.get(hold), (HoldState::Released, Some(Verdict::NotAStop)));
    assert_eq!((room.placed(), room.pauses()), (vec![], vec![]));
}

#[test]
fn the_model_alone_cannot_release_what_sounds_like_a_stop() {
    let room = room();
    room.talk.say("先别订 the hotel");
    room.talk.turn();
    let held = room.placed();
    assert_eq!((held.len(), held[0].verdict), (1, Some(Verdict::NotAStop)));
    assert!(held[0].asked_at.is_some());
    let asked = "Does this mean stop? \"先别订 the hotel\" Until you answer, nothing is done outside. \
                 Answer with one tap under Now, or with \"adjutant hold\".";
    assert_eq!(room.talk.said(), [("notice".to_owned(), asked.to_owned())]);
    // A day without an answer changes nothing: a hold never times out into "allowed".
    room.talk.clock.advance_ms(24 * 3_600_000);
    now(engine::sweeper::alarms(&room.talk.cx)).unwrap();
    let id = held[0].id;
    assert_eq!(room.get(id).0, HoldState::Placed);
    // One tap settles it.
    let done = room.by_user(move |_, tx, device| control::release(tx, device, id));
    assert_eq!((done, room.get(id).0), (Changed::Done, HoldState::Released));
}

#[test]
fn the_stop_check_reads_a_message_to_its_end() {
    let room = room();
    room.talk.say(&format!("harmless: {} 先别订", "the weather is fine today. ".repeat(20)));
    room.talk.turn();
    let held = room.placed();
    assert_eq!(held.len(), 1, "the model called it harmless; the check did not");
    assert!(held[0].asked_at.is_some());
    // And it reads the message itself, not what a card shows of it.
    room.talk.say(&format!("harmless: {}", "the weather is fine today. ".repeat(20)));
    room.talk.turn();
    assert_eq!(room.placed().len(), 1, "a long one that says nothing of the kind is released");
}

#[test]
fn a_message_that_was_erased_before_it_was_judged_releases_nothing() {
    let room = room();
    room.talk.say("tickets booked?");
    let work = room.talk.claim().unwrap();
    let event = room.placed()[0].event;
    room.by_user(move |_, tx, _| {
        let body = store::event::get(tx, event)?.body;
        store::event::erase_body(tx, body)
    });
    room.talk.run(work);
    let held = room.placed();
    assert_eq!((held.len(), held[0].verdict), (1, Some(Verdict::NotAStop)));
    assert!(held[0].asked_at.is_some(), "nobody can check it any more, so the user is asked");
}

#[test]
fn a_stop_becomes_a_pause_that_only_the_user_lifts() {
    let room = room();
    room.talk.say("先别订");
    room.talk.turn();
    let pauses = room.pauses();
    assert_eq!((room.placed().len(), pauses.len(), pauses[0].duty), (0, 1, None));
    // Stopping twice is one pause; a later harmless message lifts nothing.
    room.talk.say("halt");
    room.talk.turn();
    room.talk.say("harmless");
    room.talk.turn();
    assert_eq!(room.pauses(), pauses);
    let id = pauses[0].id;
    for _ in 0..2 {
        let lifted = room.by_user(move |_, tx, device| control::lift(tx, device, id));
        assert_eq!((lifted, room.pauses()), (Changed::Done, vec![]));
    }
}

#[test]
fn a_run_settles_the_messages_it_has_read_and_never_a_newer_one() {
    let room = room();
    room.talk.say("harmless");
    let work = room.talk.claim().unwrap();
    room.talk.clock.advance_ms(1);
    room.talk.say("halt it all");
    let newer = room.placed()[1].id;
    room.talk.run(work);
    assert_eq!(room.placed().iter().map(|hold| hold.id).collect::<Vec<_>>(), [newer]);
    room.talk.turn();
    assert_eq!((room.placed().len(), room.pauses().len()), (0, 1));
    // Nor one that the stop check would let go: only who read it can say what it meant.
    room.talk.say("harmless");
    let work = room.talk.claim().unwrap();
    room.talk.clock.advance_ms(1);
    room.talk.say("the red ones, I mean");
    let newer = room.placed()[1].id;
    room.talk.run(work);
    assert_eq!(room.placed().iter().map(|hold| hold.id).collect::<Vec<_>>(), [newer]);
    assert_eq!(room.get(newer), (HoldState::Placed, None));
}

#[test]
fn a_crash_before_the_verdict_leaves_the_hold_and_an_old_one_is_told() {
    let mut room = room();
    room.talk.say("harmless");
    drop(room.talk.claim().unwrap());
    room.talk.clock.advance_ms(61_000);
    let at = base::Clock::now(room.talk.clock.as_ref());
    let file = room.folder.path().join("r.db");
    room.talk = Talk::open(file, at, 5, SCRIPT, Limits::default());
    assert_eq!(room.placed().len(), 1, "it is a row, not a thought");
    room.talk.clock.advance_ms(10 * 60_000);
    now(engine::sweeper::alarms(&room.talk.cx)).unwrap();
    let said = room.talk.said();
    assert!(said.len() == 1 && said[0].1.starts_with("Held since Monday 2027-03-01"), "{said:?}");
    room.talk.clock.advance_ms(3_600_000);
    now(engine::sweeper::alarms(&room.talk.cx)).unwrap();
    let held = room.talk.said().iter().filter(|(_, text)| text.starts_with("Held since")).count();
    assert_eq!(held, 1, "told once");
}

#[test]
fn the_user_pauses_one_duty_or_everything_without_any_model() {
    let room = room();
    room.talk.say("watch prices");
    room.talk.turn();
    room.talk.confirm();
    assert_eq!(room.placed().len(), 1, "this turn said nothing about the message");
    let duty = room.talk.read(|tx, owner| store::duty::all(tx, owner, 1)).remove(0).id;
    let one = room.by_user(move |cx, tx, device| control::pause(cx, tx, device, Some(duty)));
    assert_eq!((one, room.placed().len()), (Changed::Done, 1), "the hold covers more than that");
    room.talk.clock.advance_ms(1);
    let all = room.by_user(|cx, tx, device| control::pause(cx, tx, device, None));
    assert_eq!((all, room.placed().len()), (Changed::Done, 0), "everything is paused instead");
    let scopes: Vec<_> = room.pauses().into_iter().map(|pause| pause.duty).collect();
    assert_eq!(scopes, [Some(duty), None]);
    let audit = room.talk.read(|tx, owner| store::change::audit(tx, owner, 0, 100));
    let verbs: Vec<&str> = audit.iter().map(|entry| entry.verb.as_str()).collect();
    assert!(verbs.ends_with(&["pause", "pause", "promoted"]), "{verbs:?}");
    let stopped = [room.talk.system_stop(true), room.talk.system_stop(true)];
    assert_eq!(stopped, [true, false]);
    assert!(room.talk.read(|tx, _| store::hold::is_stopped(tx)));
}

#[test]
fn a_duty_that_is_paused_while_everything_is_stays_so_when_the_rest_goes_on() {
    let room = room();
    room.talk.say("watch prices");
    room.talk.turn();
    room.talk.confirm();
    let duty = room.talk.read(|tx, owner| store::duty::all(tx, owner, 1)).remove(0).id;
    for scope in [None, Some(duty), None, Some(duty)] {
        room.by_user(move |cx, tx, device| control::pause(cx, tx, device, scope));
        room.talk.clock.advance_ms(1);
    }
    let scopes = |room: &Room| room.pauses().iter().map(|pause| pause.duty).collect::<Vec<_>>();
    assert_eq!(scopes(&room), [None, Some(duty)], "each once");
    let everything = room.pauses()[0].id;
    let lifted = room.by_user(move |_, tx, device| control::lift(tx, device, everything));
    assert_eq!((lifted, scopes(&room)), (Changed::Done, vec![Some(duty)]));
}

#[test]
fn the_model_narrows_a_stop_only_to_a_duty_in_force_that_the_message_names() {
    let told = |wish: &str, close: bool| {
        let room = room();
        room.talk.say("watch prices");
        room.talk.turn();
        room.talk.confirm();
        let duty = room.talk.read(|tx, owner| store::duty::all(tx, owner, 1)).remove(0);
        // It is named in an earlier turn's input.
        room.talk.say("harmless");
        room.talk.turn();
        if close {
            room.by_user(move |_, tx, device| {
                for to in [DutyState::CloseProposed, DutyState::Closed] {
                    let duty = store::duty::get(tx, device.owner, duty.id)?;
                    store::duty::advance(tx, &duty, to, Some(device.principal))?;
                }
                Ok(())
            });
        }
        room.talk.clock.advance_ms(1);
        room.talk.say(wish);
        let newest = room.placed().pop().unwrap().id;
        room.talk.turn();
        let scopes: Vec<bool> = room.pauses().iter().map(|pause| pause.duty.is_some()).collect();
        (scopes, room.get(newest).0)
    };
    assert_eq!(told("stop the prices", false), (vec![true], HoldState::Promoted));
    assert_eq!(told("stop it", false), (vec![false], HoldState::Promoted));
    assert_eq!(told("stop prices and everything else", false), (vec![false], HoldState::Promoted));
    // A duty that is over cannot take a stop: the hold stands, and nothing is let go.
    assert_eq!(told("stop the prices", true), (vec![], HoldState::Placed));
}

#[test]
fn control_state_stands_in_the_next_turns_input() {
    let room = room();
    room.talk.say("halt");
    room.talk.turn();
    room.talk.say("what now?");
    let bodies = room.talk.turn();
    let text = String::from_utf8_lossy(&bodies[0]).into_owned();
    assert!(
        text.contains("paused since Monday 2027-03-01 08:00: everything; only the person lifts it")
    );
    assert!(text.contains("holds everything back"), "this message's own hold");
}
