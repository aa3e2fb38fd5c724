//! Random long paths of effects over the real store: people, stages, time, crashes and a world that may lie, in
//! any order (ADM-01..24, P3, P5, P8). The rules are checked by what was seen here, never by the engine's own
//! decisions.

use std::collections::{BTreeMap, BTreeSet};

use base::{ActionId, Clock as _, Limits, SessionId, Timestamp};
use domain::effect::{Demand, Observation, Rule, Sight};
use domain::state::ActionState;
use engine::control::{self, Changed, Statement};
use engine::world::Acted;
use engine::{admission, dispatcher, reconciler, review};
use serde_json::json;
use store::{Permit, StoreError, action::Action, device::Device};
use testkit::stores::TempFolder;
use testkit::world::{FakeEffect, FakeTool};

use crate::chance::Rng;
use crate::effects::{SCRIPT, spec};
use crate::outside::Small;
use crate::support::{Talk, now, start};

const MINUTE_MS: u64 = 60_000;
const SETTLED_AFTER_MS: u64 = 30 * MINUTE_MS;
/// The grant, in words and in numbers.
const GRANT: &str = "keep a room, at most 3000.00 each, 40000.00 in all, 20 times";
const GRANTED: (usize, i64) = (20, 4_000_000);

/// How often each thing happened.
#[derive(Debug, Default)]
struct Tally {
    cases: u64,
    moves: u64,
    taps: u64,
    stops: u64,
    crashes: u64,
    recalled: u64,
    sent: u64,
    by_policy: u64,
    unknown: u64,
    lies: u64,
    cards: u64,
    rules: u64,
    supervised: u64,
    ends: BTreeMap<ActionState, u64>,
}

/// What really happened to one operation, outside.
#[derive(Debug, Default, Clone)]
struct Real {
    booked: bool,
    /// When a request that crawls arrives.
    arrives: Option<Timestamp>,
    /// The world broke a promise of its manifest about it.
    lied: bool,
}

struct Table {
    talk: Talk,
    _scratch: TempFolder,
    rng: Rng,
    tally: Tally,
    lane: SessionId,
    outside: BTreeMap<String, Real>,
    permits: Vec<Permit>,
    /// Answers on their way to the record.
    answers: Vec<(base::AttemptId, Acted)>,
    tapped: BTreeSet<ActionId>,
    stopped: bool,
    boss: Device,
    /// The rules in force, and what their maker approved.
    rules: BTreeMap<base::RuleId, Demand>,
    approved: BTreeSet<ActionId>,
}

impl Table {
    fn new(seed: u64) -> Table {
        let scratch = TempFolder::in_memory().unwrap();
        let limits = Limits {
            reconcile_ms: 6 * 60 * MINUTE_MS,
            owner_month_micro_usd: i64::MAX,
            window_tokens: 1_500,
            ..Limits::default()
        };
        let talk = Talk::open(scratch.path().join("t.db"), start(), 0, SCRIPT, limits);
        let main = talk.main;
        let add = |cx: &engine::Context, tx: &mut store::OwnerTx<'_, '_>| {
            engine::setup::add_supervisor(cx, tx, "boss")
        };
        let boss = now(talk.cx.write(talk.device.owner, add)).unwrap().device;
        let mut table = Table {
            talk,
            _scratch: scratch,
            rng: Rng::new(seed),
            tally: Tally::default(),
            lane: main,
            outside: BTreeMap::new(),
            permits: Vec::new(),
            answers: Vec::new(),
            tapped: BTreeSet::new(),
            stopped: false,
            boss,
            rules: BTreeMap::new(),
            approved: BTreeSet::new(),
        };
        table.sees(Observation::Lost("no answer".into()), Sight::Absent);
        table.talk.say(GRANT);
        table.talk.turn();
        table.talk.confirm();
        table.lane = table.talk.read(|tx, owner| store::duty::all(tx, owner, 1)).remove(0).session;
        table
    }

    /// What the world answers next.
    fn sees(&self, seen: Observation, sight: Sight) {
        let mut spec = spec(true);
        spec.once_per = vec!["quote".into()];
        self.talk.world.effect(FakeEffect { spec, seen: vec![seen], sights: vec![sight] });
    }

    fn at(&self) -> Timestamp {
        self.talk.clock.now()
    }

    fn actions(&self) -> Vec<Action> {
        self.talk.read(|tx, owner| store::action::all(tx, owner, 500))
    }

    fn action(&self, id: ActionId) -> Action {
        self.talk.read(move |tx, _| store::action::get(tx, id))
    }

    /// Whether a stop of the person or the operator stands.
    fn is_stopped(&self) -> bool {
        self.stopped
            || self.talk.read(|tx, owner| {
                let pauses = store::hold::pauses(tx, owner)?;
                Ok(!pauses.is_empty() || !store::hold::placed(tx, owner)?.is_empty())
            })
    }

    /// A new action: in the conversation, where the person is asked, or in the duty, within its grant.
    fn propose(&mut self, case: u64) -> ActionId {
        let quote = format!("q-{case}");
        let known = json!({"id": quote, "total": "2600.00", "currency": "HKD", "hotel": "Harbour"});
        let search = FakeTool {
            answers: vec![format!("one room, {quote}")],
            issues: vec![("quote".into(), quote.clone())],
            snapshots: BTreeMap::from([(quote, known)]),
            ..FakeTool::default()
        };
        self.talk.world.tool("hotel.search", search);
        let says = *self.rng.pick(&["allow", "allow", "ask"]);
        let verdict = format!(r#"{{"verdict":"{says}","why":"x"}}"#);
        self.talk.cx.reviewer = Small::says(&[Ok(&verdict), Ok(&verdict)]);
        if self.rng.one_in(2) {
            self.talk.say("book the room");
            self.talk.turn();
        } else {
            self.talk.clock.advance_ms(24 * 60 * MINUTE_MS);
            now(engine::timer::pass(&self.talk.cx)).unwrap();
            now(engine::router::pass(&self.talk.cx)).unwrap();
            let owner = self.talk.device.owner;
            let work = now(engine::worker::claim(&self.talk.cx, owner, self.lane)).unwrap();
            self.talk.run(work.unwrap());
        }
        self.actions().first().unwrap().id
    }

    fn step(&mut self, id: ActionId) {
        self.tally.moves += 1;
        match self.rng.below(44) {
            0..6 => self.review(id),
            6..11 => now(admission::decide(&self.talk.cx, self.talk.device.owner, id)).unwrap(),
            11..17 => self.claim(id),
            17..21 => self.send(),
            21..25 => self.record(),
            25..28 => self.look(id),
            28 => self.crash(),
            29..31 => self.tap(id, true),
            31 => self.tap(id, false),
            32 => self.withdraw(id),
            33 => self.stop(),
            34..37 => self.go_on(),
            37 => self.talk.say("how is it going?"),
            38 => drop(self.talk.turn()),
            39 => self.rule(),
            40 => self.end_rules(),
            41..43 => self.supervise(id),
            _ => {
                let ms = *self.rng.pick(&[1_000, 6_000, 40_000, SETTLED_AFTER_MS]);
                self.talk.clock.advance_ms(ms);
            }
        }
        let ms = *self.rng.pick(&[1, 500, 2_500, 6_000]);
        self.talk.clock.advance_ms(ms);
    }

    fn review(&mut self, id: ActionId) {
        now(review::one(&self.talk.cx, self.talk.device.owner, id)).unwrap();
    }

    /// Both dispatchers may try; the attempt's commit is the claim.
    fn claim(&mut self, id: ActionId) {
        let stopped = self.is_stopped();
        let was = self.action(id).state;
        let owner = self.talk.device.owner;
        let permit = now(dispatcher::claim(&self.talk.cx, owner, id)).unwrap();
        if let Some(permit) = permit {
            assert!(!stopped, "an attempt under a stop");
            let rule = |demand| self.rules.values().any(|one| *one == demand);
            assert!(!rule(Demand::Forbid), "an attempt that a rule forbids");
            assert!(
                !rule(Demand::Person) || self.tapped.contains(&id),
                "the person did not decide"
            );
            let approved = self.approved.contains(&id);
            assert!(!rule(Demand::Supervisor) || approved, "the supervisor did not approve");
            self.tally.supervised += u64::from(rule(Demand::Supervisor));
            assert!(!self.is_stopped());
            self.permits.push(permit);
        } else if stopped && was == ActionState::Admitted {
            self.tally.recalled += 1;
        }
    }

    /// A request leaves, and the world does with it what it likes.
    fn send(&mut self) {
        if self.permits.is_empty() {
            return;
        }
        let permit = self.permits.remove(0);
        let (attempt, operation) = (permit.attempt(), permit.operation_id().to_owned());
        let receipt = || Observation::Receipt(format!("C-{operation}"));
        let lost = || Observation::Lost("no answer".into());
        let refused = || Observation::Refused("sold out".into());
        let later = |table: &mut Table, low: u64, high: u64| {
            Some(table.at().plus_ms(table.rng.between(low, high)))
        };
        let real = Real::default();
        let (seen, real) = match self.rng.below(16) {
            0..5 => (receipt(), Real { booked: true, ..real }),
            5..7 => (lost(), Real { booked: true, ..real }),
            7 => (lost(), real),
            8..10 => (refused(), real),
            10 => (Observation::NotSent("the connector is down".into()), real),
            11 => (lost(), Real { arrives: later(self, 1, SETTLED_AFTER_MS - 1), ..real }),
            12 => (Observation::Other("pardon?".into()), Real { booked: true, ..real }),
            13 => (receipt(), Real { lied: true, ..real }),
            14 => (refused(), Real { booked: true, lied: true, ..real }),
            _ => {
                let arrives = later(self, SETTLED_AFTER_MS + MINUTE_MS, 2 * SETTLED_AFTER_MS);
                (lost(), Real { arrives, lied: true, ..real })
            }
        };
        self.sees(seen, Sight::Absent);
        let before = self.talk.world.sent().len();
        let acted = now(dispatcher::perform(&self.talk.cx, permit));
        if self.talk.world.sent().len() > before {
            self.tally.sent += 1;
            self.tally.lies += u64::from(real.lied);
            let twice = self.outside.insert(operation, real);
            assert!(twice.is_none(), "one operation was sent twice");
        }
        if !self.rng.one_in(6) {
            self.answers.push((attempt, acted));
        }
    }

    fn record(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        let (attempt, acted) = self.answers.remove(0);
        let owner = self.talk.device.owner;
        now(self.talk.cx.write(owner, move |cx, tx| dispatcher::record(cx, tx, attempt, acted)))
            .unwrap();
    }

    fn arrive(&mut self) {
        let at = self.at();
        for real in self.outside.values_mut().filter(|real| real.arrives.is_some_and(|a| a <= at)) {
            (real.booked, real.arrives) = (true, None);
        }
    }

    /// One look, at what is there now; sometimes it cannot be taken.
    fn look(&mut self, id: ActionId) {
        self.arrive();
        let operation = self.talk.read(move |tx, _| store::attempt::of_action(tx, id)).pop();
        let Some(operation) = operation.map(|attempt| attempt.operation_id) else { return };
        let sight = match self.outside.get(&operation) {
            Some(real) if real.booked => {
                Sight::Found { receipt: format!("C-{operation}"), ended: false }
            }
            Some(_) | None => Sight::Absent,
        };
        let sight = if self.rng.one_in(5) { Sight::Unreadable("503".into()) } else { sight };
        self.sees(Observation::Lost("no answer".into()), sight);
        now(reconciler::one(&self.talk.cx, self.talk.device.owner, id)).unwrap();
    }

    /// Every dispatcher is gone, with what it had in hand.
    fn crash(&mut self) {
        self.permits.clear();
        self.answers.clear();
        self.tally.crashes += 1;
    }

    fn tap(&mut self, id: ActionId, approve: bool) {
        let (stopped, device) = (self.stopped, self.talk.device.clone());
        let paused =
            self.talk.read(|tx, owner| Ok(!store::hold::pauses(tx, owner)?.is_empty())) || stopped;
        let action = self.action(id);
        let digest = action.digest;
        let said = now(self.talk.cx.write(device.owner, move |cx, tx| match approve {
            true => control::approve(tx, &device, id, digest),
            false => control::deny(cx, tx, &device, id, None),
        }))
        .unwrap();
        if approve && said == Changed::Done && action.state == ActionState::AwaitingApproval {
            assert!(!paused, "a tap under a stop counted");
            self.tapped.insert(id);
            self.tally.taps += 1;
        }
    }

    /// The supervisor lays a rule over everything.
    fn rule(&mut self) {
        let most = Demand::Supervisor;
        let demand = *self.rng.pick(&[most, most, most, Demand::Person, Demand::Forbid]);
        self.demand(demand);
    }

    fn demand(&mut self, demand: Demand) {
        let terms = Rule { tool: "*".into(), effect: None, above: None, demand };
        let boss = self.boss.clone();
        let made = now(self
            .talk
            .cx
            .write(boss.owner, move |cx, tx| control::add_rule(cx, tx, &boss, &terms)));
        self.rules.insert(made.unwrap().unwrap().id, demand);
        self.tally.rules += 1;
    }

    fn end_rules(&mut self) {
        for id in std::mem::take(&mut self.rules).into_keys() {
            let boss = self.boss.clone();
            now(self.talk.cx.write(boss.owner, move |_, tx| control::end_rule(tx, &boss, id)))
                .unwrap();
        }
    }

    /// The supervisor decides on what names them, mostly with yes.
    fn supervise(&mut self, id: ActionId) {
        let (boss, digest, yes) = (self.boss.clone(), self.action(id).digest, !self.rng.one_in(5));
        let said = now(self.talk.cx.write(boss.owner, move |cx, tx| match yes {
            true => control::approve(tx, &boss, id, digest),
            false => control::deny(cx, tx, &boss, id, None),
        }));
        // What never asked them is none of their business.
        if said != Err(StoreError::Missing("action")) && said.unwrap() == Changed::Done && yes {
            self.approved.insert(id);
        }
    }

    fn withdraw(&mut self, id: ActionId) {
        let device = self.talk.device.clone();
        now(self.talk.cx.write(device.owner, move |cx, tx| control::withdraw(cx, tx, &device, id)))
            .unwrap();
    }

    fn stop(&mut self) {
        self.tally.stops += 1;
        let device = self.talk.device.clone();
        match self.rng.below(4) {
            0 => {
                self.talk.system_stop(true);
                self.stopped = true;
            }
            1 => self.talk.say("stop everything, do not book anything"),
            2 => {
                let held = self.talk.read(store::hold::placed);
                if let Some(hold) = held.into_iter().next() {
                    let promote = move |cx: &engine::Context, tx: &mut store::OwnerTx<'_, '_>| {
                        control::promote(cx, tx, &device, hold.id)
                    };
                    now(self.talk.cx.write(self.talk.device.owner, promote)).unwrap();
                }
            }
            _ => {
                let pause = move |cx: &engine::Context, tx: &mut store::OwnerTx<'_, '_>| {
                    control::pause(cx, tx, &device, None)
                };
                now(self.talk.cx.write(self.talk.device.owner, pause)).unwrap();
            }
        }
    }

    fn go_on(&mut self) {
        self.talk.system_stop(false);
        self.stopped = false;
        let device = self.talk.device.clone();
        let lift = move |_: &engine::Context, tx: &mut store::OwnerTx<'_, '_>| {
            let owner = tx.owner();
            for pause in store::hold::pauses(tx, owner)? {
                control::lift(tx, &device, pause.id)?;
            }
            for hold in store::hold::placed(tx, owner)? {
                control::release(tx, &device, hold.id)?;
            }
            Ok(())
        };
        now(self.talk.cx.write(self.talk.device.owner, lift)).unwrap();
    }

    /// Lets everything go on until the time of every promise and deadline is over.
    fn drain(&mut self, id: ActionId) {
        self.crash();
        self.go_on();
        self.end_rules();
        if self.rng.one_in(3) {
            self.demand(Demand::Supervisor);
        }
        if !self.rng.one_in(3) {
            self.review(id);
            self.tap(id, true);
        }
        for ms in [6_000, 60_000, 60_000, 60_000].into_iter().chain([20 * MINUTE_MS; 26]) {
            self.talk.clock.advance_ms(ms);
            self.review(id);
            self.supervise(id);
            now(admission::decide(&self.talk.cx, self.talk.device.owner, id)).unwrap();
            self.claim(id);
            self.send();
            self.record();
            self.look(id);
            if self.action(id).due_at.is_none() {
                break;
            }
        }
        // Whoever was not asked in time is not asked any more.
        self.withdraw(id);
        self.end_rules();
    }

    fn judge(&mut self, id: ActionId) {
        self.arrive();
        let action = self.action(id);
        let attempts = self.talk.read(move |tx, _| store::attempt::of_action(tx, id));
        let sent: Vec<&Real> =
            attempts.iter().filter_map(|a| self.outside.get(&a.operation_id)).collect();
        let saw = format!("{action:#?}\n{attempts:#?}\n{sent:?}");
        assert!(sent.len() <= 1, "more than one request: {saw}");
        let released = self.tapped.contains(&id) || action.draws_on.is_some();
        assert!(sent.is_empty() || released, "nobody released it: {saw}");
        let wanted: &[ActionState] = match sent.first() {
            None => &[
                ActionState::Abandoned,
                ActionState::Blocked,
                ActionState::Cancelled,
                ActionState::Denied,
                ActionState::Expired,
                ActionState::Withdrawn,
            ],
            Some(Real { lied: false, booked: true, .. }) => &[ActionState::Effective],
            Some(Real { lied: false, booked: false, .. }) => &[ActionState::Blocked],
            // It lied: in force with evidence alone, else before the person; a lie that got lost is none.
            Some(Real { booked: true, .. }) => &[ActionState::Unknown, ActionState::Effective],
            Some(_) if action.receipt.is_some() => &[ActionState::Unknown],
            Some(_) => &[ActionState::Blocked],
        };
        assert!(wanted.contains(&action.state), "{wanted:?}: {saw}");
        let by_policy = usize::from(action.draws_on.is_some() && !sent.is_empty());
        self.tally.by_policy += by_policy as u64;
        if action.state == ActionState::Unknown {
            assert!(action.escalated_at.is_some(), "no card: {saw}");
            self.tally.cards += 1;
            let booked = sent.first().is_some_and(|real| real.booked);
            let statement = if booked { Statement::Happened } else { Statement::DidNot };
            let device = self.talk.device.clone();
            let said = now(self
                .talk
                .cx
                .write(device.owner, move |cx, tx| control::state(cx, tx, &device, id, statement)));
            assert_eq!(said, Ok(Changed::Done));
            self.tally.unknown += 1;
        }
        *self.tally.ends.entry(action.state).or_default() += 1;
    }

    fn case(&mut self, case: u64) {
        let id = self.propose(case);
        for _ in 0..self.rng.between(8, 60) {
            self.step(id);
        }
        self.drain(id);
        self.judge(id);
        self.tally.cases += 1;
    }

    /// What the policy released of each grant, in all, against its card.
    fn judge_grants(&self) {
        let mut of: BTreeMap<base::GrantId, (usize, i64)> = BTreeMap::new();
        for action in self.actions() {
            let (grant, spent) = (action.draws_on, self.real(action.id));
            if let Some(grant) = grant.filter(|_| spent && !self.tapped.contains(&action.id)) {
                let sum = of.entry(grant).or_default();
                *sum = (sum.0 + 1, sum.1 + action.minor.unwrap());
            }
        }
        for (grant, (times, minor)) in of {
            assert!(times <= GRANTED.0 && minor <= GRANTED.1, "{grant}: {times} times, {minor}");
        }
    }

    fn real(&self, id: ActionId) -> bool {
        let attempts = self.talk.read(move |tx, _| store::attempt::of_action(tx, id));
        attempts.iter().any(|a| self.outside.get(&a.operation_id).is_some_and(|real| real.booked))
    }
}

/// Cases on one database: few enough that its lists stay short.
const CASES: u64 = 60;

impl Tally {
    fn add(&mut self, other: Tally) {
        let Tally { cases, moves, taps, stops, crashes, recalled, sent, .. } = other;
        let Tally { by_policy, unknown, lies, cards, rules, supervised, ends, .. } = other;
        self.cases += cases;
        self.moves += moves;
        self.taps += taps;
        self.stops += stops;
        self.crashes += crashes;
        self.recalled += recalled;
        self.sent += sent;
        self.by_policy += by_policy;
        self.unknown += unknown;
        self.lies += lies;
        self.cards += cards;
        self.rules += rules;
        self.supervised += supervised;
        for (state, n) in ends {
            *self.ends.entry(state).or_default() += n;
        }
    }
}

fn play(tables: std::ops::Range<u64>) -> Tally {
    let mut all = Tally::default();
    for seed in tables {
        let mut table = Table::new(seed);
        for case in 0..CASES {
            table.case(case);
        }
        table.judge_grants();
        all.add(table.tally);
    }
    all
}

#[test]
fn whatever_the_order_nothing_is_sent_twice_or_unreleased_and_each_end_is_true() {
    let all = play(0..4);
    eprintln!("{all:?}");
    let seen = [all.taps, all.stops, all.crashes, all.recalled, all.by_policy, all.lies, all.cards];
    let seen = [&seen[..], &[all.rules, all.supervised]].concat();
    assert!(seen.iter().all(|n| *n > 0), "{all:?}");
    assert!(all.ends.len() >= 6, "{all:?}");
}

#[test]
#[ignore = "long"]
fn long_hundred_thousand_paths_over_the_store() {
    let mut all = Tally::default();
    std::thread::scope(|scope| {
        let halves = [1_000..1_834, 1_834..2_667].map(|tables| scope.spawn(move || play(tables)));
        for half in halves {
            all.add(half.join().unwrap());
        }
    });
    eprintln!("{all:?}");
    assert!(all.cases >= 100_000, "{all:?}");
}
