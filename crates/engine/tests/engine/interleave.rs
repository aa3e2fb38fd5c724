//! Random interleavings of what may happen to waits: each ends once, no answer is lost, and nothing wakes
//! for a wait that has ended (EVT-06, EVT-08, DEL-10, P1, P6).
//!
//! A case is a row of random moves over three lanes, a few keys and the waits for them; then all that was
//! begun is finished, the time of what is still open passes, and the records are judged. Many cases share
//! a database, each with keys of its own.

mod judge;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use crate::chance::Rng;
use crate::support::{Talk, now, start};
use base::{Clock as _, EventId, Incarnation, Limits, RunId, SessionId, SourceId, SystemClock};
use base::{Timestamp, WaitId};
use domain::state::{RunState, WaitState};
use engine::control::{self, Changed, NewSource};
use engine::intake::{self, Receipt};
use engine::worker::{self, Action, Recorded, Work};
use engine::world::Found;
use model::{Answer, Finish, ModelError, ToolCall, Usage};
use store::StoreError;
use store::wait::Wait;
use testkit::stores::TempFolder;

const SCRIPT: &str = r#"
name = "interleave"

[[habit]]
user = ' from the user'
call = { tool = "settle_message", arguments = { stop = false } }

[[rule]]
user = 'from the user: keep an eye on (?<what>.*)'
not_called = "propose_duty"
[[rule.call]]
tool = "propose_duty"
[rule.call.arguments]
title = "$what"
goal = "Keep an eye on $what."
conditions = [{ text = "The user ends it.", evidence = "statement", authority = "user" }]
"#;

/// A small model that says anything.
#[derive(Debug)]
struct Chooser(Mutex<Rng>);

impl model::ChatModel for Chooser {
    fn ask<'a>(&'a self, _: &'a model::Request, _: &'a (dyn Fn(u64) + Sync)) -> model::Asking<'a> {
        let said = *self.0.lock().unwrap().pick(&["0", "1", "2", "1,2", "7", ""]);
        Box::pin(async move {
            if said.is_empty() {
                return Err(ModelError::retry("away"));
            }
            let usage = Usage { input_tokens: 10, cached_tokens: 0, output_tokens: 1 };
            Ok(Answer { usage, ..Answer::new(Some(said.into()), Vec::new(), Finish::Stop) })
        })
    }
    fn name(&self) -> &str {
        "small"
    }
    fn context_tokens(&self) -> u64 {
        4_000
    }
    fn prices(&self) -> model::Prices {
        let none = base::MicroUsd(0);
        model::Prices { input: none, cached: none, output: none }
    }
}

fn limits() -> Limits {
    Limits {
        // Crashes without end are another test's matter.
        poison_attempts: 1_000,
        owner_month_micro_usd: i64::MAX,
        window_tokens: 1_500,
        ..Limits::default()
    }
}

/// How often each thing happened.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    moves: u64,
    events: u64,
    messages: u64,
    crashes: u64,
    reopened: u64,
    fenced: u64,
    interrupted: u64,
    waits: u64,
    met: u64,
    born_met: u64,
    timed_out: u64,
    cancelled: u64,
    late: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        let Tally { moves, events, messages, crashes, reopened, fenced, interrupted, .. } = other;
        let Tally { waits, met, born_met, timed_out, cancelled, late, .. } = other;
        self.moves += moves;
        self.events += events;
        self.messages += messages;
        self.crashes += crashes;
        self.reopened += reopened;
        self.fenced += fenced;
        self.interrupted += interrupted;
        self.waits += waits;
        self.met += met;
        self.born_met += born_met;
        self.timed_out += timed_out;
        self.cancelled += cancelled;
        self.late += late;
    }
}

/// A database with its lanes, and the case that is played on it.
struct Table {
    talk: Talk,
    scratch: TempFolder,
    opened: u8,
    hub: SourceId,
    lanes: Vec<SessionId>,
    rng: Rng,
    tally: Tally,
    /// What workers hold; also some that were overtaken and do not know it.
    works: Vec<Work>,
    case: u64,
    keys: Vec<String>,
    named: u64,
    known: BTreeMap<WaitId, Wait>,
    events: Vec<EventId>,
    messages: Vec<EventId>,
    inputs: BTreeMap<RunId, BTreeSet<EventId>>,
    /// No new waits: what was begun is finished.
    closing: bool,
}

impl Table {
    fn new(seed: u64) -> Table {
        let scratch = TempFolder::in_memory().unwrap();
        let talk = Talk::open(scratch.path().join("t.db"), start(), 0, SCRIPT, limits());
        let mut table = Table {
            hub: talk.cx.id(),
            lanes: vec![talk.main],
            talk,
            scratch,
            opened: 0,
            rng: Rng::new(seed),
            tally: Tally::default(),
            works: Vec::new(),
            case: 0,
            keys: Vec::new(),
            named: 0,
            known: BTreeMap::new(),
            events: Vec::new(),
            messages: Vec::new(),
            inputs: BTreeMap::new(),
            closing: false,
        };
        table.set_up();
        table
    }

    fn set_up(&mut self) {
        let (device, hub) = (self.talk.device.clone(), self.hub);
        let (kind, name) = (store::source::SourceKind::Webhook, "hub".into());
        let new = NewSource { kind, name, config: "{}".into(), every_ms: None, expect_ms: None };
        let added = now(self
            .talk
            .cx
            .write(device.owner, move |_, tx| control::add_source(tx, &device, hub, new)));
        assert_eq!(added, Ok(Changed::Done));
        for what in ["the trip", "the boiler"] {
            self.talk.say(&format!("keep an eye on {what}"));
            self.talk.turn();
            self.talk.confirm();
            while now(engine::router::pass(&self.talk.cx)).unwrap() {}
            let duties = self.talk.read(|tx, owner| store::duty::all(tx, owner, 10));
            self.lanes.push(duties.last().unwrap().session);
            self.talk.clock.advance_ms(1_000);
        }
        self.choose();
    }

    fn choose(&mut self) {
        let seed = self.rng.below(u64::MAX);
        self.talk.cx.small = Arc::new(Chooser(Mutex::new(Rng::new(seed))));
    }

    fn at(&self) -> Timestamp {
        self.talk.clock.now()
    }

    // ---- moves ---------------------------------------------------------------------------------

    /// One random move.
    fn step(&mut self) {
        self.tally.moves += 1;
        match self.rng.below(34) {
            0..5 => self.event(),
            5..9 => self.route_one(),
            9 => self.attribute(),
            10 => self.say(),
            11..15 => self.claim(),
            15..27 => self.work_on(),
            27 => self.pass_time(120_000),
            28 => self.expire(),
            29 => self.expire_one(),
            30 => self.crash(),
            31 => self.overtake(),
            32 => self.interrupt(),
            _ => self.renew(),
        }
        self.talk.clock.advance_ms(1);
        self.watch();
    }

    fn pass_time(&mut self, most: u64) {
        let ms = self.rng.between(1, most);
        self.talk.clock.advance_ms(ms);
    }

    /// An event from outside: with a key of this case, with none, or one that was sent before.
    fn event(&mut self) {
        self.named += u64::from(!self.rng.one_in(12) || self.named == 0);
        let key = match self.named % 9 {
            0 => None,
            n => Some(self.keys[usize::try_from(n).unwrap() % self.keys.len()].clone()),
        };
        let found = Found {
            external_id: format!("{}-{}", self.case, self.named),
            key,
            topic: None,
            content: b"{}".to_vec(),
            media: "application/json".into(),
            links: Vec::new(),
        };
        let hub = self.hub;
        let source = self.talk.read(move |tx, _| store::source::get(tx, hub));
        match now(intake::outside(&self.talk.cx, &source, found)).unwrap() {
            Some(Receipt::New { event, .. }) => {
                self.events.push(event);
                self.tally.events += 1;
            }
            Some(Receipt::Known { event }) => assert!(self.events.contains(&event)),
            other => panic!("{other:?}"),
        }
    }

    fn route_one(&mut self) {
        let found = self.talk.read(|tx, _| store::work_item::unrouted(tx, 3));
        if !found.is_empty() {
            let (owner, item) = *self.rng.pick(&found);
            now(self.talk.cx.write(owner, move |cx, tx| engine::router::route(cx, tx, item)))
                .unwrap();
        }
    }

    /// One question to the small model; what it concerns may change before its answer is recorded.
    fn attribute(&mut self) {
        let at = self.at();
        let found = self.talk.read(move |tx, _| store::work_item::attributing(tx, at, 1));
        let Some((owner, item)) = found.first().copied() else { return };
        let cx = self.talk.cx.clone();
        let claimed = now(engine::attribution::claim(&cx, owner, item)).unwrap();
        let Some(question) = claimed else { return };
        let answer = now(engine::attribution::ask(&cx, &question));
        if !self.closing && self.rng.one_in(2) {
            self.work_on();
        }
        now(self
            .talk
            .cx
            .write(owner, move |cx, tx| engine::attribution::record(cx, tx, &question, answer)))
        .unwrap();
    }

    fn say(&mut self) {
        let (device, id) = (self.talk.device.clone(), self.talk.cx.uuid());
        let said = now(self
            .talk
            .cx
            .write(device.owner, move |cx, tx| intake::message(cx, tx, &device, id, "go on")));
        let Ok(Receipt::New { event, .. }) = said else { panic!("{said:?}") };
        self.messages.push(event);
        self.tally.messages += 1;
    }

    fn claim(&mut self) {
        let lane = *self.rng.pick(&self.lanes);
        self.claim_lane(lane);
    }

    fn claim_lane(&mut self, lane: SessionId) -> bool {
        let owner = self.talk.device.owner;
        let Some(work) = now(worker::claim(&self.talk.cx, owner, lane)).unwrap() else {
            return false;
        };
        let id = work.run.id;
        let items = self.talk.read(move |tx, _| store::work_item::claimed(tx, id));
        self.inputs.insert(id, items.into_iter().map(|item| item.event).collect());
        self.works.push(work);
        true
    }

    /// A random worker goes on by one step. One that was overtaken leaves no trace.
    fn work_on(&mut self) {
        if self.works.is_empty() {
            return;
        }
        let at = usize::try_from(self.rng.below(self.works.len() as u64)).unwrap();
        let mut work = self.works.swap_remove(at);
        match self.one_step(&mut work) {
            Ok(Recorded::Goes) => self.works.push(work),
            Ok(Recorded::Over) => {}
            Err(StoreError::Fenced) => {
                self.tally.fenced += 1;
                let session =
                    self.talk.read(move |tx, _| store::session::get(tx, work.lease.session));
                let holds = session.fence == work.lease.fence && session.holder.is_some();
                assert!(!holds, "a worker that holds its lane was fenced off");
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn one_step(&mut self, work: &mut Work) -> store::Result<Recorded> {
        let cx = self.talk.cx.clone();
        let recorded = match worker::next(&cx, work) {
            Action::End(outcome) => now(worker::record_end(&cx, work, outcome)),
            Action::Tool(call, plan) => {
                let done = now(engine::tools::perform(&cx, plan));
                let recorded = now(worker::record_tool(&cx, work, call, done));
                self.learn(work.run.id);
                recorded
            }
            Action::Ask(_) if !self.closing && self.rng.one_in(25) => {
                now(worker::record_failure(&cx, work, ModelError::retry("away")))
            }
            Action::Ask(request) => {
                let answer = self.answer(work.run.steps);
                now(worker::record_answer(&cx, work, request.digest(), answer))
            }
        }?;
        self.tally.interrupted += u64::from(recorded == Recorded::Over && !self.ended(work.run.id));
        Ok(recorded)
    }

    fn ended(&self, run: RunId) -> bool {
        let run = self.talk.read(move |tx, _| store::run::get(tx, run));
        run.state != RunState::Interrupted
    }

    /// What the model says: it awaits this and that, gives up waiting, or is done.
    fn answer(&mut self, step: u32) -> Answer {
        let mut calls = Vec::new();
        let mut call = |name: &str, arguments: serde_json::Value| {
            let id = format!("{step}-{}", calls.len());
            calls.push(ToolCall { id, name: name.into(), arguments: arguments.to_string() });
        };
        if step == 1 {
            call("settle_message", serde_json::json!({ "stop": false }));
        }
        if !self.closing {
            for _ in 0..self.rng.below(4).min(2) {
                let due_at = self.at().plus_ms(self.rng.between(1_000, 600_000));
                let key = format!("hub:{}", self.rng.pick(&self.keys));
                let (kind, due_at) = ("webhook", due_at.to_string());
                call(
                    "register_wait",
                    serde_json::json!({"kind": kind, "key": key, "due_at": due_at}),
                );
            }
            let known: Vec<WaitId> = self.known.keys().copied().collect();
            if !known.is_empty() && self.rng.one_in(8) {
                call("cancel_wait", serde_json::json!({ "wait": self.rng.pick(&known) }));
            }
        }
        if self.closing || self.rng.one_in(2) {
            call("finish_quietly", serde_json::json!({ "reason": "done" }));
        }
        Answer::new(None, calls, Finish::ToolCalls)
    }

    /// The waits that a run has registered.
    fn learn(&mut self, run: RunId) {
        for wait in self.talk.read(move |tx, _| store::wait::of_run(tx, run)) {
            self.known.entry(wait.id).or_insert(wait);
        }
    }

    fn expire(&mut self) {
        self.pass_time(200_000);
        while now(engine::timer::pass(&self.talk.cx)).unwrap() {}
    }

    /// The timer ends one wait, due or not.
    fn expire_one(&mut self) {
        let known: Vec<WaitId> = self.known.keys().copied().collect();
        if !known.is_empty() {
            let (wait, owner) = (*self.rng.pick(&known), self.talk.device.owner);
            now(self.talk.cx.write(owner, move |cx, tx| engine::timer::time_out(cx, tx, wait)))
                .unwrap();
        }
    }

    /// Everything in memory is gone. Sometimes the database is closed and opened too.
    fn crash(&mut self) {
        self.works.clear();
        self.tally.crashes += 1;
        if self.rng.one_in(10) {
            self.reopen();
        } else {
            self.talk.cx.incarnation = self.talk.cx.id::<Incarnation>();
            self.sweep();
        }
    }

    fn reopen(&mut self) {
        self.tally.reopened += 1;
        self.opened = self.opened.wrapping_add(1);
        let at = self.at().plus_ms(self.rng.between(1, 5_000));
        self.talk = Talk::open(self.scratch.path().join("t.db"), at, self.opened, SCRIPT, limits());
        self.choose();
    }

    /// Leases run out and are ended.
    fn sweep(&mut self) {
        self.talk.clock.advance_ms(limits().lease_ms + 1);
        while now(engine::sweeper::pass(&self.talk.cx)).unwrap() {}
    }

    /// Workers stall beyond their leases, and another one takes a lane over.
    fn overtake(&mut self) {
        self.sweep();
        self.claim();
    }

    /// A message whose burst window closes while runs are under way.
    fn interrupt(&mut self) {
        self.say();
        self.talk.clock.advance_ms(limits().burst_ms);
        self.renew();
    }

    fn renew(&mut self) {
        if self.works.is_empty() {
            return;
        }
        let at = usize::try_from(self.rng.below(self.works.len() as u64)).unwrap();
        let work = self.works.swap_remove(at);
        let (owner, held) = (work.lease.owner, work.clone());
        match now(self.talk.cx.write(owner, move |cx, tx| worker::renew(cx, tx, &held))) {
            Ok(Recorded::Goes) => self.works.push(work),
            Ok(Recorded::Over) => self.tally.interrupted += 1,
            Err(StoreError::Fenced) => self.tally.fenced += 1,
            Err(error) => panic!("{error}"),
        }
    }

    /// A wait that has ended stays as it ended.
    fn watch(&mut self) {
        if self.known.is_empty() {
            return;
        }
        let open: Vec<WaitId> = self.known.keys().copied().collect();
        let read = self.talk.read(move |tx, _| {
            open.into_iter().map(|id| store::wait::get(tx, id)).collect::<store::Result<Vec<_>>>()
        });
        for wait in read {
            let before = self.known.insert(wait.id, wait.clone()).unwrap();
            if before.state != WaitState::Open {
                assert_eq!(wait, before, "it had ended");
            }
        }
    }

    // ---- a case --------------------------------------------------------------------------------

    fn play(&mut self, case: u64) {
        self.case = case;
        self.keys = (0..self.rng.between(1, 3)).map(|n| format!("{case}-{n}")).collect();
        self.named = 0;
        self.known.clear();
        self.events.clear();
        self.messages.clear();
        self.inputs.clear();
        self.closing = false;
        // Somebody has to begin.
        if self.rng.one_in(2) {
            self.event();
            self.talk.clock.advance_ms(1);
        }
        self.say();
        if !self.claim_lane(self.talk.main) {
            self.sweep();
        }
        for _ in 0..self.rng.between(6, 18) {
            self.step();
        }
        self.finish();
        self.judge();
    }

    /// Finishes what was begun; then the time of what is still open passes.
    fn finish(&mut self) {
        self.closing = true;
        self.drain();
        self.talk.clock.advance_ms(600_000);
        while now(engine::timer::pass(&self.talk.cx)).unwrap() {}
        self.watch();
        self.drain();
        self.watch();
    }

    fn drain(&mut self) {
        for _ in 0..200 {
            while now(engine::router::pass(&self.talk.cx)).unwrap() {}
            self.attribute();
            while !self.works.is_empty() {
                self.work_on();
                self.talk.clock.advance_ms(1);
            }
            if self.quiet() {
                return;
            }
            // What came from outside has waited for its companions, and back-offs are over.
            let far = self.at().plus_ms(limits().retry_max_ms);
            let waiting =
                self.talk.read(move |tx, _| store::session::claimable(tx, far, far, far, 9));
            let claimed =
                waiting.into_iter().filter(|waits| self.claim_lane(waits.session)).count();
            if claimed == 0 {
                self.sweep();
            }
        }
        panic!("case {} does not come to rest", self.case);
    }

    fn quiet(&self) -> bool {
        let far = self.at().plus_ms(86_400_000);
        self.talk.read(move |tx, _| {
            Ok(store::work_item::unrouted(tx, 1)?.is_empty()
                && store::work_item::attributing(tx, far, 1)?.is_empty()
                && store::session::claimable(tx, far, far, far, 1)?.is_empty())
        })
    }
}

/// Cases that share a database.
const SHARED: u64 = 100;

/// Plays `count` cases from a seed, or as many as fit into the time.
fn play(seed: u64, count: u64, most_ms: u64) -> (u64, Tally) {
    let (until, mut sum, mut played) = (SystemClock.now().plus_ms(most_ms), Tally::default(), 0);
    while played < count && SystemClock.now() < until {
        let mut table = Table::new(seed.wrapping_add(played));
        for _ in 0..SHARED.min(count - played) {
            table.play(played);
            played += 1;
        }
        table.judge_all();
        sum.add(table.tally);
    }
    (played, sum)
}

#[test]
fn each_wait_ends_once_no_answer_is_lost_and_nothing_wakes_for_a_finished_one() {
    let (played, tally) = play(1, u64::MAX, 15_000);
    eprintln!("{played} interleavings: {tally:?}");
    let Tally { fenced, interrupted, met, born_met, timed_out, cancelled, late, .. } = tally;
    let each = [fenced, interrupted, met, born_met, timed_out, cancelled, late];
    assert!(each.iter().all(|count| *count > 0), "{tally:?}");
}

#[test]
#[ignore = "long: 100 000 cases on two threads, some 20 minutes of two cores without optimisation"]
fn long_interleavings_100_000() {
    let began = SystemClock.now();
    let halves = std::thread::scope(|scope| {
        let play = |seed| scope.spawn(move || play(seed, 50_000, 24 * 3_600_000));
        [play(1_000_000), play(2_000_000)].map(|half| half.join().unwrap())
    });
    let (mut played, mut tally) = (0, Tally::default());
    for (count, half) in halves {
        played += count;
        tally.add(half);
    }
    let seconds = SystemClock.now().since(began).as_secs();
    eprintln!("{played} interleavings in {seconds} s: {tally:?}");
    assert_eq!(played, 100_000);
}
