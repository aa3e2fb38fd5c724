//! The worker: batches, interruptions, budgets, poison, a model that is away (QUE-03..06, QUE-13, QUE-14,
//! DUR-01, DUR-02, DUR-08, DUR-12, CTX-15).

use crate::support::{Talk, now, start};
use base::{Limits, MicroUsd};
use domain::state::{RunState, WorkItemState};
use engine::worker::{self, Action, Recorded, Work};
use store::StoreError;
use testkit::stores::TempFolder;

const SCRIPT: &str = r#"
name = "worker"
context_tokens = 50_000

[[rule]]
user = 'from the user: watch'
not_called = "propose_duty"
[[rule.call]]
tool = "propose_duty"
[rule.call.arguments]
title = "Watch"
goal = "Look each day."
conditions = [{ text = "The user ends it.", evidence = "a message", authority = "user" }]
schedules = [{ kind = "daily", at = "09:00", prompt = "Look." }]

[[rule]]
user = 'from the user: await (?<key>\S+)'
not_called = "register_wait"
[[rule.call]]
tool = "register_wait"
[rule.call.arguments]
kind = "proposal_decided"
key = "$key"
due_at = "2027-06-01T00:00:00Z"

[[rule]]
user = 'from the user: away'
error = "retry"

[[rule]]
user = 'from the user: locked out'
error = "authentication"

[[rule]]
user = 'from the user: loop'
call = [{ tool = "read_records", arguments = { what = "spending" } }]

[[rule]]
user = 'from the user: quiet'
say = "this is private"

[[rule]]
user = '(?s)New:\n(?<new>.*)'
not_called = "send_to_user"
call = [
  { tool = "send_to_user", arguments = { text = "heard: $new" } },
  { tool = "finish_quietly", arguments = { reason = "said" } },
]
"#;

struct Room {
    talk: Talk,
    folder: TempFolder,
}

fn room(limits: Limits) -> Room {
    let folder = TempFolder::new();
    let talk = Talk::open(folder.path().join("room.db"), start(), 1, SCRIPT, limits);
    Room { talk, folder }
}

impl Room {
    /// The process is gone; another one opens the same records once the dead one's lease is over.
    fn restart(&mut self, seed: u8, limits: Limits) {
        self.talk.clock.advance_ms(60_000);
        let at = base::Clock::now(self.talk.clock.as_ref());
        self.talk = Talk::open(self.folder.path().join("room.db"), at, seed, SCRIPT, limits);
    }

    /// The states of the user's messages.
    fn heard(&self) -> Vec<String> {
        let entries = self.talk.read(|tx, owner| store::message::chat_after(tx, owner, 0, 1_000));
        entries.into_iter().filter(|e| e.kind == "user").map(|e| e.state).collect()
    }

    /// The states of the runs, oldest first.
    fn runs(&self) -> Vec<RunState> {
        let main = self.talk.main;
        let mut runs = self.talk.read(move |tx, _| store::run::recent(tx, main, 1_000));
        runs.reverse();
        runs.into_iter().map(|run| run.state).collect()
    }
}

fn ask(talk: &Talk, work: &Work) -> model::Request {
    match worker::next(&talk.cx, work) {
        Action::Ask(request) => request,
        other @ (Action::Tool(..) | Action::End(_)) => panic!("{other:?} instead of a question"),
    }
}

fn answer(talk: &Talk, request: &model::Request) -> model::Answer {
    now(talk.cx.model.ask(request, &|_| {})).unwrap()
}

#[test]
fn messages_in_quick_succession_are_one_turn() {
    let room = room(Limits::default());
    for text in ["add Li Si", "and Wang Wu", "and Zhao Liu"] {
        room.talk.say(text);
        room.talk.clock.advance_ms(300);
    }
    assert_eq!(room.talk.turn().len(), 1);
    assert_eq!(room.runs(), [RunState::Completed]);
    let said = room.talk.said();
    assert_eq!(said.len(), 1);
    for part in ["add Li Si", "and Wang Wu", "and Zhao Liu"] {
        assert!(said[0].1.contains(part), "{said:?}");
    }
    assert_eq!(room.heard(), ["handled", "handled", "handled"]);
}

#[test]
fn a_message_interrupts_once_its_burst_is_over_and_nothing_is_lost() {
    let room = room(Limits::default());
    room.talk.say("first");
    let mut work = room.talk.claim().unwrap();
    let request = ask(&room.talk, &work);
    assert_eq!(room.heard(), ["delivered"], "in a run, not yet read");
    room.talk.say("second");
    room.talk.clock.advance_ms(1_000);
    room.talk.say("third");
    // The window counts from the first of them and is not extended.
    room.talk.clock.advance_ms(499);
    let early = answer(&room.talk, &request);
    let recorded = now(worker::record_answer(&room.talk.cx, &mut work, request.digest(), early));
    assert_eq!(recorded, Ok(Recorded::Goes));
    assert_eq!(room.heard(), ["read", "received", "received"]);
    room.talk.clock.advance_ms(1);
    let Action::Tool(call, plan) = worker::next(&room.talk.cx, &work) else { panic!("a call") };
    let done = now(engine::tools::perform(&room.talk.cx, plan));
    let recorded = now(worker::record_tool(&room.talk.cx, &mut work, call, done));
    assert_eq!(recorded, Ok(Recorded::Over), "interrupted at the step's commit");
    assert_eq!(room.heard(), ["received", "received", "received"], "all wait again");

    room.talk.turn();
    assert_eq!(room.runs(), [RunState::Interrupted, RunState::Completed]);
    let said = room.talk.said();
    let all = &said.last().unwrap().1;
    assert!(["first", "second", "third"].iter().all(|text| all.contains(text)), "{said:?}");
    assert_eq!(said.len(), 2, "what was said before the interruption stands, and once");
    assert_eq!(room.heard(), ["handled", "handled", "handled"]);
}

#[test]
fn an_interrupt_is_read_at_the_commit_of_an_answer_too() {
    let room = room(Limits::default());
    room.talk.say("first");
    let mut work = room.talk.claim().unwrap();
    let request = ask(&room.talk, &work);
    let said = answer(&room.talk, &request);
    room.talk.say("second");
    room.talk.clock.advance_ms(1_500);
    let recorded = now(worker::record_answer(&room.talk.cx, &mut work, request.digest(), said));
    assert_eq!(recorded, Ok(Recorded::Over), "no call of this answer is made");
    assert_eq!((room.talk.said(), room.heard().len()), (vec![], 2));
    room.talk.turn();
    assert_eq!(room.talk.said().len(), 1);
}

#[test]
fn a_duty_that_is_stopped_while_the_model_thinks_says_nothing_more() {
    use engine::control;
    let room = room(Limits::default());
    let (talk, device) = (&room.talk, room.talk.device.clone());
    talk.say("watch it");
    talk.turn();
    let owner = device.owner;
    talk.confirm();
    talk.clock.advance_ms(24 * 3_600_000);
    for _ in 0..2 {
        now(engine::timer::pass(&talk.cx)).unwrap();
        now(engine::router::pass(&talk.cx)).unwrap();
    }
    let duty = talk.read(|tx, owner| store::duty::all(tx, owner, 1)).remove(0);
    let mut work = now(worker::claim(&talk.cx, owner, duty.session)).unwrap().unwrap();
    let request = ask(talk, &work);
    let said = answer(talk, &request);
    assert!(!said.tool_calls.is_empty(), "it would have spoken");
    let before = room.talk.said().len();
    let id = duty.id;
    now(talk.cx.write(owner, move |cx, tx| control::stop(cx, tx, &device, id))).unwrap();
    let recorded = now(worker::record_answer(&talk.cx, &mut work, request.digest(), said));
    assert_eq!(recorded, Ok(Recorded::Over));
    assert_eq!(room.talk.said().len(), before);
}

#[test]
fn an_answer_is_sent_back_as_it_came_until_its_vendor_refuses_that() {
    let room = room(Limits::default());
    let talk = &room.talk;
    talk.say("first");
    let mut work = talk.claim().unwrap();
    let request = ask(talk, &work);
    let said = answer(talk, &request);
    let own = r#","vendor":{"wire":"messages","model":"m","parts":[{"item":{"thinking":"so"}},"call","call"]}}"#;
    let stored = said.block.bytes.strip_suffix('}').unwrap().to_owned() + own;
    let said = model::Answer { block: model::Block::from_stored(stored.clone()), ..said };
    let recorded = now(worker::record_answer(&talk.cx, &mut work, request.digest(), said));
    assert_eq!(recorded, Ok(Recorded::Goes));
    talk.run(work);

    let holds = |work: &Work| ask(talk, work).blocks.iter().any(|block| *block.bytes == *stored);
    talk.say("second");
    let work = talk.claim().unwrap();
    assert!(holds(&work), "the next run reads it back from the records");
    let refused = model::ModelError::History;
    assert_eq!(now(worker::record_failure(&talk.cx, &work, refused)), Ok(Recorded::Over));
    let work = talk.claim().unwrap();
    assert!(!holds(&work), "the run after that goes without");
    talk.run(work);
    assert_eq!(room.heard(), ["handled", "handled"]);
    assert_eq!(talk.said().len(), 2);
}

#[test]
fn a_wait_is_met_by_what_came_between_its_cause_and_its_run() {
    use domain::state::WaitState;
    let room = room(Limits::default());
    let talk = &room.talk;
    talk.say("watch it");
    talk.turn();
    let card = talk.read(|tx, owner| store::proposal::all(tx, owner, 1)).remove(0);
    talk.clock.advance_ms(1_000);
    talk.say(&format!("await {}", card.id));
    talk.clock.advance_ms(1_000);
    // The decision comes after the message and before the run that reads it (EVT-08).
    talk.confirm();
    now(engine::router::pass(&talk.cx)).unwrap();
    talk.clock.advance_ms(1_000);
    talk.turn();
    let main = talk.main;
    let run = talk.read(move |tx, _| store::run::last(tx, main)).unwrap().id;
    let waits = talk.read(move |tx, _| store::wait::of_run(tx, run));
    let states: Vec<WaitState> = waits.iter().map(|wait| wait.state).collect();
    assert_eq!(states, [WaitState::Satisfied], "born satisfied");
}

#[test]
fn an_expired_card_cannot_be_decided_even_before_the_timer_has_seen_it() {
    use engine::control::{self, Decided};
    let room = room(Limits::default());
    let (talk, device) = (&room.talk, room.talk.device.clone());
    talk.say("watch it");
    talk.turn();
    let card = talk.read(|tx, owner| store::proposal::all(tx, owner, 1)).remove(0);
    let left = card.expires_at.since(base::Clock::now(talk.clock.as_ref())).as_millis();
    talk.clock.advance_ms(u64::try_from(left).unwrap());
    let (by, id, digest) = (device.clone(), card.id, card.digest);
    let yes =
        now(talk.cx.write(device.owner, move |cx, tx| control::confirm(cx, tx, &by, id, digest)));
    let by = device.clone();
    let no = now(talk.cx.write(device.owner, move |cx, tx| control::decline(cx, tx, &by, id)));
    for decided in [yes, no] {
        assert!(matches!(decided, Ok(Decided::Conflict(_))), "{decided:?}");
    }
    assert_eq!(talk.read(|tx, owner| store::duty::all(tx, owner, 1)), []);
}

#[test]
fn text_without_the_one_tool_stays_private() {
    let room = room(Limits::default());
    room.talk.say("quiet please");
    assert_eq!(room.talk.turn().len(), 1);
    assert_eq!((room.talk.said(), room.heard()), (vec![], vec!["handled".to_owned()]));
}

#[test]
fn a_worker_that_was_overtaken_leaves_no_trace() {
    let room = room(Limits::default());
    room.talk.say("hello");
    let mut old = room.talk.claim().unwrap();
    let request = ask(&room.talk, &old);
    assert_eq!(room.talk.claim().map(|w| w.lease), None, "a live lease is not taken");
    room.talk.clock.advance_ms(30_000);
    let new = room.talk.claim().unwrap();
    assert!(new.lease.fence > old.lease.fence);
    assert_eq!(new.run.id, old.run.id, "the same run, resumed");
    let stale = answer(&room.talk, &request);
    let recorded = now(worker::record_answer(&room.talk.cx, &mut old, request.digest(), stale));
    assert_eq!(recorded, Err(StoreError::Fenced));
    let id = old.run.id;
    let steps = room.talk.read(move |tx, _| store::run::steps(tx, id));
    assert_eq!(steps.len(), 1, "only the tail");
    room.talk.run(new);
    assert_eq!(room.talk.said().len(), 1);
}

#[test]
fn a_journaled_answer_is_used_and_not_asked_for_again() {
    let mut room = room(Limits::default());
    room.talk.say("hello");
    let mut work = room.talk.claim().unwrap();
    let request = ask(&room.talk, &work);
    let first = answer(&room.talk, &request);
    now(worker::record_answer(&room.talk.cx, &mut work, request.digest(), first)).unwrap();
    room.restart(2, Limits::default());
    let work = room.talk.claim().unwrap();
    assert!(
        matches!(worker::next(&room.talk.cx, &work), Action::Tool(call, _) if call.name == "send_to_user")
    );
    assert_eq!(room.talk.run(work).len(), 0, "nothing more to ask");
    assert_eq!((room.talk.said().len(), room.runs()), (1, vec![RunState::Completed]));
}

#[test]
fn each_budget_saves_the_scene_and_tells_the_user() {
    let bounds = [
        (Limits { run_steps: 5, ..Limits::default() }, "5 of 5 steps"),
        (Limits { run_tokens: 400, ..Limits::default() }, "of 400 tokens"),
        (Limits { run_micro_usd: 6_000, ..Limits::default() }, "of US$0.00"),
    ];
    for (limits, words) in bounds {
        let mut room = room(limits);
        room.talk.say("loop for ever");
        room.talk.turn();
        let said = room.talk.said();
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!(said[0].0, "notice");
        assert!(said[0].1.contains(words), "{said:?}");
        assert_eq!(room.runs(), [RunState::BudgetExhausted]);
        assert_eq!(room.heard(), ["handled"]);
        // What it reached is kept, and the history still is a conversation that can go on.
        room.restart(2, Limits::default());
        room.talk.say("go on");
        assert_eq!(room.talk.turn().len(), 1);
        assert_eq!(room.runs(), [RunState::BudgetExhausted, RunState::Completed]);
    }
}

#[test]
fn the_months_cap_holds_everything_and_is_told_once() {
    let limits = Limits { owner_month_micro_usd: 1, ..Limits::default() };
    let room = room(limits);
    room.talk.say("first");
    room.talk.turn();
    assert_eq!(room.runs(), [RunState::Completed], "below the cap when it began");
    for _ in 0..3 {
        room.talk.say("again");
        assert_eq!(room.talk.turn().len(), 0);
    }
    let notices = room.talk.said().into_iter().filter(|(kind, _)| kind == "notice").count();
    assert_eq!(notices, 1);
    assert_eq!(room.heard(), ["handled", "received", "received", "received"], "kept, not lost");
}

#[test]
fn an_item_whose_run_always_dies_ends_as_a_failure_that_is_shown() {
    let mut room = room(Limits::default());
    room.talk.say("poison");
    for seed in 2..=7 {
        // Each worker dies right after its claim, without one new step.
        drop(room.talk.claim());
        room.restart(seed, Limits::default());
    }
    assert_eq!(room.talk.claim().map(|w| w.run.id), None, "given up: nothing to claim");
    assert_eq!(room.heard(), ["failed"]);
    let said = room.talk.said();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].1.starts_with("I gave up on \"poison\" after 5 tries"), "{said:?}");
    // The session is free for the next item.
    room.talk.say("fine");
    room.talk.turn();
    assert_eq!(room.heard(), ["failed", "handled"]);
}

#[test]
fn a_suspect_does_not_take_its_neighbours_down() {
    let mut room = room(Limits::default());
    room.talk.say("good");
    room.talk.clock.advance_ms(1);
    room.talk.say("bad");
    for seed in 2..=3 {
        drop(room.talk.claim());
        room.restart(seed, Limits::default());
    }
    // Both are suspect now, so each runs alone and the first one gets through.
    let work = room.talk.claim().unwrap();
    let id = work.run.id;
    let held = room.talk.read(move |tx, _| store::work_item::claimed(tx, id));
    assert_eq!(held.len(), 1);
    room.talk.run(work);
    assert_eq!(room.heard(), ["handled", "received"]);
}

#[test]
fn an_outage_of_the_model_is_no_poison_and_is_told_once() {
    let room = room(Limits::default());
    room.talk.say("away");
    let mut tries = 0;
    for _ in 0..60 {
        tries += room.talk.turn().len();
        room.talk.clock.advance_ms(60_000);
    }
    assert!((10..30).contains(&tries), "{tries} tries in an hour, with a growing pause");
    assert_eq!(room.runs(), [RunState::Sleeping], "one run, put down and taken up again");
    let said = room.talk.said();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].1.starts_with("I cannot reach the model"), "{said:?}");
    // A new message does not wait for the pause, and takes the old one along.
    room.talk.say("hello");
    let waiting = room.talk.read(|tx, owner| {
        let owner = store::owner::get(tx, owner)?;
        store::session::get(tx, owner.main_session)
    });
    assert!(waiting.not_before <= base::Clock::now(room.talk.clock.as_ref()));
}

#[test]
fn a_refused_key_is_told_at_once() {
    let room = room(Limits::default());
    room.talk.say("locked out");
    room.talk.turn();
    let said = room.talk.said();
    assert!(said.len() == 1 && said[0].1.contains("refuses the key"), "{said:?}");
    assert_eq!(room.heard(), ["delivered"], "kept");
}

#[test]
fn costs_are_counted_per_run_and_month() {
    let room = room(Limits::default());
    room.talk.say("hello");
    room.talk.turn();
    let totals = room.talk.read(|tx, owner| store::ledger::month(tx, owner, "2027-03"));
    assert_eq!((totals.wakeups, totals.model_calls), (1, 1));
    assert!(totals.input_tokens > 500 && totals.output_tokens > 5);
    let spent = totals.input_tokens + totals.output_tokens;
    assert_eq!(totals.micro_usd, MicroUsd(i64::try_from(spent).unwrap()), "a dollar a million");
}

#[test]
fn items_of_a_run_are_done_only_when_it_ends() {
    let room = room(Limits::default());
    room.talk.say("hello");
    let mut work = room.talk.claim().unwrap();
    let states = |room: &Room| {
        let id = work.run.id;
        let items = room.talk.read(move |tx, _| store::work_item::claimed(tx, id));
        items.into_iter().map(|item| item.state).collect::<Vec<_>>()
    };
    assert_eq!(states(&room), [WorkItemState::Claimed]);
    let request = ask(&room.talk, &work);
    let said = answer(&room.talk, &request);
    now(worker::record_answer(&room.talk.cx, &mut work, request.digest(), said)).unwrap();
    let id = work.run.id;
    let held = room.talk.read(move |tx, _| store::work_item::claimed(tx, id));
    assert_eq!(held.len(), 1, "read is not handled");
    room.talk.run(work);
    assert_eq!(room.heard(), ["handled"]);
}
