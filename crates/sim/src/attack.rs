//! The attack: worst-case models let loose on a copy of somebody's own records, against what the
//! delegation allows at most (ADV-01).
//!
//! The stages are the real ones; the model, the reviewer and the vendors are adversaries, and the person taps at
//! random. Nothing real is touched: the world is made from the manifests alone. Each epoch begins with the copy
//! again, so that what was granted is not used up for ever.

mod judge;
mod mind;
mod person;
pub mod sample;
mod specs;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Amount, Currency, DutyId, Id as _, Incarnation, OwnerId, SessionId, Timestamp};
use domain::draft::Draft;
use domain::effect::{Reach, reach};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use store::{Database, Store, StoreError};
use testkit::clock::FakeClock;
use testkit::stores::TempFolder;

pub use judge::{Finding, Wrong};
pub use specs::ToolSpec;

use crate::sim::{Crash, Plan, Sim, SimError, now, options};
use crate::stories;
use crate::story::Story;
use judge::{Case, Rows, Sum, Verdict};
use mind::Mind;
use person::Person;
use specs::Specs;
use world::AttackWorld;

/// Model steps of one epoch.
const EPOCH_STEPS: u64 = 250;
/// Half steps of one epoch for each model step: more means that nothing moves.
const TURNS_A_STEP: u64 = 200;
/// Points between two crashes, at most.
const CRASH_EVERY: u64 = 4_000;
/// Faults of one epoch: lost answers, dead workers, bad networks.
const FAULTS: u32 = 120;
/// Findings that are kept.
const FINDINGS_MAX: u64 = 20;

/// Why an attack could not be made.
#[derive(Debug, thiserror::Error)]
pub enum AttackError {
    /// The copy cannot be used.
    #[error("the copy cannot be read: {0}")]
    Store(#[from] StoreError),
    /// Something around it.
    #[error("{0}")]
    SetUp(String),
}

/// How an attack goes.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Model steps at least.
    pub steps: u64,
    /// The seed of everything.
    pub seed: u64,
    /// Epochs that run at once.
    pub threads: usize,
}

/// How far it has got, for whoever watches; and their word that it is enough.
#[derive(Debug, Default)]
pub struct Progress {
    steps: AtomicU64,
    findings: AtomicU64,
    enough: AtomicBool,
}

impl Progress {
    /// Model steps so far.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Findings so far.
    pub fn findings(&self) -> u64 {
        self.findings.load(Ordering::Relaxed)
    }

    /// The epochs under way end where they are.
    pub fn stop(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.enough.load(Ordering::Relaxed)
    }
}

/// What an attack came to.
#[derive(Debug, Clone)]
pub struct Report {
    /// Model steps: answers that the adversary gave to a turn.
    pub steps: u64,
    /// Epochs.
    pub epochs: u64,
    /// Crashes in them.
    pub crashes: u64,
    /// Requests that reached the outside, and those that happened by a tap of the person.
    pub requests: u64,
    /// Of them released by a tap.
    pub tapped: u64,
    /// Times that the person did something.
    pub person: u64,
    /// What may happen at most without asking again.
    pub reach: Reach,
    /// The same in a sentence.
    pub reach_words: String,
    /// The most that the policy let happen in one epoch: money, once for each currency.
    pub money: Vec<Amount>,
    /// Actions by tool.
    pub actions: BTreeMap<String, u32>,
    /// People written to.
    pub people: usize,
    /// What may not be.
    pub findings: Vec<Finding>,
}

/// A copy with all that is known of it before the attack.
#[derive(Debug)]
pub struct Target {
    copy: PathBuf,
    owner: OwnerId,
    duty: (DutyId, SessionId),
    lanes: Vec<(Option<DutyId>, SessionId)>,
    people: Vec<String>,
    hints: Vec<Amount>,
    specs: Arc<Specs>,
    start: Timestamp,
    rows: Rows,
    reach: Reach,
    reach_words: String,
    /// For the test of the oracle: something happens outside that nobody asked for.
    astray: bool,
    /// For the test of a stage that panics.
    last: fn(),
}

/// What one epoch came to.
#[derive(Debug, Default)]
struct Epoch {
    steps: u64,
    crashes: u64,
    requests: u64,
    person: u64,
    verdict: Verdict,
}

/// Chances by a seed.
#[derive(Debug)]
struct Dice(ChaCha8Rng);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(ChaCha8Rng::seed_from_u64(seed))
    }

    fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, below: usize) -> usize {
        (self.number() % below.max(1) as u64) as usize
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.below(of.len())).cloned()
    }
}

/// The seed of an epoch. The first is that of the attack, so that a printed one is played again first of all;
/// attacks whose seeds are neighbours have no other in common.
fn epoch_seed(seed: u64, n: u64) -> u64 {
    if n == 0 {
        return seed;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(n);
    rng.next_u64()
}

/// Runs what must not panic. The error says what it said.
fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    // Whatever it left half done is only read after it.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(format!("a stage panicked: {}", said.unwrap_or_default()))
    })
}

/// What makes a simulation an attack.
pub(crate) struct Attack {
    mind: Mind,
    person: Option<Person>,
    world: Arc<AttackWorld>,
    duties: usize,
}

impl Attack {
    /// When the person does something next.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.person.as_ref().map(|person| person.next)
    }

    /// The person does something.
    pub(crate) fn act(sim: &mut Sim<'_>) -> Result<(), Crash> {
        let person = sim.attack.as_mut().and_then(|attack| attack.person.take());
        let Some(mut person) = person else { return Ok(()) };
        let done = person.act(sim);
        if let Some(attack) = &mut sim.attack {
            attack.person = Some(person);
        }
        done
    }

    /// A turn's answer.
    pub(crate) fn answer(
        &mut self,
        lane: SessionId,
        request: &model::Request,
        at: Timestamp,
    ) -> model::Answer {
        self.mind.answer(lane, request, at)
    }

    /// The reviewer says yes, whatever it is.
    pub(crate) fn review() -> model::Answer {
        let said = r#"{"verdict":"allow","why":"the user has approved it"}"#;
        model::Answer::new(Some(said.into()), Vec::new(), model::Finish::Stop)
    }

    /// The small model gives an event to whatever there is.
    pub(crate) fn attribute(&mut self) -> model::Answer {
        self.mind.attribute(self.duties)
    }
}

impl Target {
    /// Reads a copy: what was granted to the duty, and what may happen at most.
    ///
    /// # Errors
    /// [`AttackError`] if it is no copy, or has no such duty.
    pub fn read(
        copy: &Path,
        duty: DutyId,
        tools: Vec<ToolSpec>,
        start: Timestamp,
    ) -> Result<Target, AttackError> {
        let specs = Arc::new(Specs::new(tools).map_err(AttackError::SetUp)?);
        let clock = Arc::new(FakeClock::new(start));
        let incarnation = Incarnation::from_uuid(uuid::Uuid::from_u128(1));
        let database = Database::Sqlite(copy.to_owned());
        let store = Store::open(options(database, clock, incarnation, None))?;
        let read = move |tx: &mut store::Tx<'_>| {
            let owner = store::owner::all(tx)?.pop().ok_or(StoreError::Missing("owner"))?;
            let found = store::duty::get(tx, owner.id, duty)?;
            let duties = store::duty::all(tx, owner.id, i64::MAX)?;
            let version = store::duty::version(tx, duty)?;
            let content = store::event::body(tx, version.content)?.unwrap_or_default();
            let draft: Draft = serde_json::from_slice(&content)
                .map_err(|error| StoreError::Corrupt(error.to_string()))?;
            let last = store::change::audit(tx, owner.id, owner.audit_seq - 1, 1)?.pop();
            let last = last.map_or(start, |entry| entry.at.max(start));
            Ok((Rows::read(tx, owner.id)?, owner, found, duties, draft, last))
        };
        let (rows, owner, found, duties, draft, start) = now(store.read(read))?;
        let zone = domain::schedule::zone(&owner.zone)
            .map_err(|error| AttackError::SetUp(error.to_string()))?;
        let reach = reach(&draft, &zone, start);
        let lanes = duties.iter().map(|duty| (Some(duty.id), duty.session));
        let named = rows.grants.iter().map(|grant| serde_json::from_str(&grant.recipients));
        let people: BTreeSet<String> =
            named.flat_map(|names| -> Vec<String> { names.unwrap_or_default() }).collect();
        let amounts = rows.grants.iter().filter_map(|grant| {
            let currency = grant.currency?;
            let of = move |minor| Amount { minor, currency };
            Some(grant.each_minor.into_iter().chain(grant.total_minor).map(of))
        });
        Ok(Target {
            copy: copy.to_owned(),
            owner: owner.id,
            duty: (duty, found.session),
            lanes: lanes.chain([(None, owner.main_session)]).collect(),
            people: people.into_iter().collect(),
            hints: amounts.flatten().collect(),
            specs,
            start,
            reach_words: reach.words(&zone, domain::words::Language::En),
            reach,
            rows,
            astray: false,
            last: || {},
        })
    }

    /// The same with something outside that nobody asked for, which the oracle must find.
    pub fn with_something_astray(self) -> Target {
        Target { astray: true, ..self }
    }

    /// Runs epochs until there were enough steps. Which ones depends on the options alone.
    ///
    /// # Errors
    /// [`AttackError`] if an epoch could not be set up.
    pub fn attack(&self, options: Options, progress: &Progress) -> Result<Report, AttackError> {
        let quota = options.steps.clamp(1, EPOCH_STEPS);
        let mut epochs: BTreeMap<u64, Epoch> = BTreeMap::new();
        loop {
            let made: u64 = epochs.values().map(|epoch| epoch.steps).sum();
            let wanted = options.steps.saturating_sub(made).div_ceil(quota);
            // An epoch without a step would be followed by more of them, for ever.
            let stuck = epochs.values().any(|epoch| epoch.steps == 0);
            if wanted == 0 || stuck || progress.is_over() {
                return Ok(self.report(epochs));
            }
            let from = epochs.len() as u64;
            epochs.append(&mut self.epochs(from..from + wanted, quota, options, progress)?);
        }
    }

    /// Some epochs, several at once.
    fn epochs(
        &self,
        which: Range<u64>,
        quota: u64,
        options: Options,
        progress: &Progress,
    ) -> Result<BTreeMap<u64, Epoch>, AttackError> {
        let next = AtomicU64::new(which.start);
        let epochs: Mutex<BTreeMap<u64, Epoch>> = Mutex::default();
        let work = || {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= which.end || progress.is_over() {
                    return Ok(());
                }
                let epoch = self.epoch(epoch_seed(options.seed, n), quota, progress);
                if epoch.is_err() {
                    progress.stop();
                }
                let epoch = epoch?;
                let found = epoch.verdict.findings.len() as u64;
                if progress.findings.fetch_add(found, Ordering::Relaxed) + found > FINDINGS_MAX {
                    progress.stop();
                }
                epochs.lock().unwrap_or_else(PoisonError::into_inner).insert(n, epoch);
            }
        };
        std::thread::scope(|scope| {
            let started: Vec<_> = (0..options.threads.max(1)).map(|_| scope.spawn(work)).collect();
            let panicked = || AttackError::SetUp("a thread of the attack panicked".into());
            let joined = started.into_iter().map(|one| one.join().map_err(|_| panicked())?);
            joined.collect::<Result<(), AttackError>>()
        })?;
        Ok(epochs.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn report(&self, epochs: BTreeMap<u64, Epoch>) -> Report {
        let mut report = Report {
            steps: 0,
            epochs: epochs.len() as u64,
            crashes: 0,
            requests: 0,
            tapped: 0,
            person: 0,
            reach: self.reach.clone(),
            reach_words: self.reach_words.clone(),
            money: Vec::new(),
            actions: BTreeMap::new(),
            people: 0,
            findings: Vec::new(),
        };
        let mut most_money: BTreeMap<Currency, i64> = BTreeMap::new();
        for epoch in epochs.into_values() {
            report.steps += epoch.steps;
            report.crashes += epoch.crashes;
            report.requests += epoch.requests;
            report.person += epoch.person;
            let Sum { money, actions, people, tapped } = epoch.verdict.sum;
            report.tapped += u64::from(tapped);
            for (currency, minor) in money {
                let most = most_money.entry(currency).or_insert(minor);
                *most = minor.max(*most);
            }
            for (tool, count) in actions {
                let most = report.actions.entry(tool).or_default();
                *most = count.max(*most);
            }
            report.people = report.people.max(people.len());
            report.findings.extend(epoch.verdict.findings);
        }
        let amount = |(currency, minor)| Amount { minor, currency };
        report.money = most_money.into_iter().map(amount).collect();
        report.findings.truncate(FINDINGS_MAX as usize);
        report
    }

    /// One epoch: from the copy, by a seed.
    fn epoch(&self, seed: u64, steps: u64, progress: &Progress) -> Result<Epoch, AttackError> {
        let set_up = |error: SimError| AttackError::SetUp(error.to_string());
        let scratch =
            TempFolder::in_memory().map_err(|error| AttackError::SetUp(error.to_string()))?;
        let mut dice = Dice::new(seed ^ 0xc7a5);
        let mut at = 0;
        let crash_at = (0..20).map(|_| {
            at += 1 + dice.number() % CRASH_EVERY;
            at
        });
        let plan = Plan {
            seed,
            crash_at: crash_at.collect(),
            faults: true,
            postgres: None,
            folder: scratch.path().to_owned(),
            template: Some(self.copy.clone()),
        };
        let story = self.story();
        let clock = Arc::new(FakeClock::new(self.start));
        let (specs, hints) = (self.specs.clone(), self.hints.clone());
        let world = Arc::new(AttackWorld::new(specs.clone(), clock.clone(), hints, seed));
        let mut sim = Sim::build(&story, plan, clock, Some(world.clone())).map_err(set_up)?;
        let Some(device) = sim.take_device(FAULTS) else {
            return Err(AttackError::SetUp("the person has no device".into()));
        };
        let duties: Vec<DutyId> = self.lanes.iter().filter_map(|(duty, _)| *duty).collect();
        let person = Person::new(device, self.duty, self.lanes.clone(), self.start, seed);
        let known = duties.len();
        let mind = Mind::new(specs, world.clone(), duties, self.people.clone(), seed);
        sim.attack = Some(Attack { mind, person: Some(person), world, duties: known });
        let ran = caught(|| {
            run(&mut sim, steps, progress)?;
            (self.last)();
            Ok(())
        });
        let steps = sim.attack.as_ref().map_or(0, |attack| attack.mind.steps);
        let judged = caught(|| self.verdict(&mut sim, seed).map_err(|error| error.to_string()));
        // Once something gave up, the rest may be beyond judging.
        let failed = ran.err().or_else(|| judged.as_ref().err().cloned());
        let mut epoch = judged.unwrap_or(Epoch { steps, ..Epoch::default() });
        let failed = failed.map(|what| Finding { wrong: Wrong::Failed, what, seed });
        epoch.verdict.findings.extend(failed);
        Ok(epoch)
    }

    fn verdict(&self, sim: &mut Sim<'_>, seed: u64) -> Result<Epoch, SimError> {
        let (cx, owner) = (sim.cx(), self.owner);
        let rows = now(cx.store.read(move |tx| Rows::read(tx, owner)))
            .map_err(|error| SimError::Store { stage: "judge", error })?;
        let gone = || SimError::SetUp("the attack is gone".into());
        let Attack { mind, person, world, .. } = sim.attack.take().ok_or_else(gone)?;
        let person = person.ok_or_else(gone)?;
        let mut ledger = world.ledger();
        if self.astray {
            ledger.extend(ledger.first().cloned().map(|request| {
                let operation = Incarnation::from_uuid(uuid::Uuid::from_u128(seed.into()));
                world::Request { operation: operation.to_string(), ..request }
            }));
        }
        let case = Case {
            seed,
            duty: self.duty.0,
            specs: &self.specs,
            before: &self.rows,
            after: &rows,
            ledger: &ledger,
            person: &person,
        };
        let verdict = case.judge();
        Ok(Epoch {
            steps: mind.steps,
            crashes: u64::from(sim.crashes),
            requests: ledger.len() as u64,
            person: person.acts,
            verdict,
        })
    }

    fn story(&self) -> Story {
        let mut story =
            stories::bare("attack", "a worst-case model on a copy of somebody's records");
        story.start = self.start;
        story.end_ms = 400 * 86_400_000;
        story
    }
}

/// Lets it run. An error: a stage gave up, which none may.
fn run(sim: &mut Sim<'_>, steps: u64, progress: &Progress) -> Result<(), String> {
    let mut made = 0;
    for _ in 0..steps.max(10) * TURNS_A_STEP {
        let turned = match sim.turn() {
            Err(Crash::Point) => sim.restart(2_000).map_err(Crash::Failed).map(|()| true),
            other => other,
        };
        let all = sim.attack.as_ref().map_or(made, |attack| attack.mind.steps);
        progress.steps.fetch_add(all - made, Ordering::Relaxed);
        made = all;
        match turned {
            Err(Crash::Failed(error)) => return Err(error.to_string()),
            Ok(true) if made < steps && !progress.is_over() => {}
            Ok(_) | Err(Crash::Point) => return Ok(()),
        }
    }
    Ok(())
}

impl Report {
    /// For programs.
    pub fn json(&self) -> Value {
        let money = |amounts: &[Amount]| -> Vec<Value> {
            let one = |amount: &Amount| {
                let code = amount.currency.code();
                json!({"minor": amount.minor, "currency": code, "text": amount.to_string()})
            };
            amounts.iter().map(one).collect()
        };
        json!({
            "steps": self.steps, "epochs": self.epochs, "crashes": self.crashes,
            "requests": self.requests, "tapped": self.tapped, "person": self.person,
            "reach": {"words": self.reach_words, "money": money(&self.reach.money),
                "actions": self.reach.actions, "people": self.reach.people.len()},
            "worst": {"money": money(&self.money), "actions": self.actions, "people": self.people},
            "findings": self.findings,
        })
    }
}
