//! One run of one story: one thread, one seed, virtual time.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

use base::{Clock as _, Id as _, IdSource, Incarnation, Limits, MicroUsd, OwnerId, Timestamp};
use engine::world::World;
use engine::{Context, setup};
use model::{ChatModel, Prices, Script, ScriptedModel};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde_json::json;
use store::device::Device;
use store::{CommitGate, Database, Options, OwnerTx, Store, StoreError};
use testkit::clock::FakeClock;

use crate::attack::Attack;
use crate::crew::Worker;
use crate::dump;
use crate::errands::Errand;
use crate::history::History;
use crate::person::Person;
use crate::points::Points;
use crate::senders::Sent;
use crate::story::{Outage, Outcome, Story};
use crate::turn::{ALL_DIRTY, Dirty};
use crate::world::SimWorld;

/// Polls a future that must be ready: an inline store answers at once.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("a future of the simulator waits for nothing"),
    }
}

/// Why a run of a story failed by itself, before any oracle.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The store refused something: a defect of the program under test.
    #[error("{stage}: {error}")]
    Store {
        /// Which stage.
        stage: &'static str,
        /// What it said.
        error: StoreError,
    },
    /// It went on for ever.
    #[error("no rest after {0} turns")]
    Restless(u64),
    /// The story or the folder is at fault.
    #[error("{0}")]
    SetUp(String),
}

/// How a run is to go.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The seed of everything.
    pub seed: u64,
    /// Crash points, counted from zero.
    pub crash_at: Vec<u64>,
    /// Whether faults are played by the seed: lost and late answers, dead workers, bad networks.
    pub faults: bool,
    /// PostgreSQL's address; SQLite without.
    pub postgres: Option<String>,
    /// Where the SQLite files go.
    pub folder: PathBuf,
    /// A database with the schema and nothing else, to begin with a copy of it.
    pub template: Option<PathBuf>,
}

/// What a run left.
#[derive(Debug)]
pub struct Ran {
    /// Its history.
    pub history: History,
    /// What came of it.
    pub outcome: Outcome,
    /// Points passed.
    pub points: u64,
    /// How often it crashed.
    pub crashes: u32,
}

pub(crate) enum Crash {
    Point,
    Failed(SimError),
}

/// A run under way.
pub struct Sim<'s> {
    pub(crate) story: &'s Story,
    pub(crate) plan: Plan,
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) ids: Arc<IdSource>,
    pub(crate) rng: ChaCha8Rng,
    pub(crate) points: Arc<Points>,
    pub(crate) history: History,
    pub(crate) world: Arc<SimWorld>,
    /// The world as the stages see it.
    outside: Arc<dyn World>,
    /// In an attack: who plays the models, the person and the vendors.
    pub(crate) attack: Option<Attack>,
    pub(crate) script: Script,
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) small: Script,
    small_model: Arc<dyn ChatModel>,
    pub(crate) cx: Option<Context>,
    pub(crate) owner: OwnerId,
    pub(crate) workers: Vec<Worker>,
    pub(crate) errands: Vec<Errand>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) person: Option<Person>,
    pub(crate) outages: Vec<Outage>,
    pub(crate) small_outages: Vec<Outage>,
    pub(crate) dirty: Dirty,
    pub(crate) asks: u64,
    pub(crate) opened: u32,
    pub(crate) opened_at: Timestamp,
    pub(crate) crashes: u32,
    pub(crate) faults_left: u32,
    /// Workers that may die by a fault: fewer than make an item look like poison.
    pub(crate) deaths_left: u32,
    pub(crate) flaked: bool,
    pub(crate) signals: Option<Signals>,
    /// Commits that were noted.
    pub(crate) seqs_seen: u64,
    /// Nobody has looked since the store was opened.
    pub(crate) just_opened: bool,
}

pub(crate) type Signals = tokio::sync::broadcast::Receiver<store::Signal>;

const TURNS_MAX: u64 = 60_000;
const FAULTS_MAX: u32 = 8;
pub(crate) fn options(
    database: Database,
    clock: Arc<FakeClock>,
    incarnation: Incarnation,
    gate: Option<Arc<dyn CommitGate>>,
) -> Options {
    Options {
        database,
        clock,
        incarnation,
        node: "sim".into(),
        inline: true,
        database_time: false,
        gate,
        on_fatal: Arc::new(|_| {}),
        pages_max: None,
    }
}

/// Makes an empty SQLite database with the schema.
///
/// # Errors
/// When the store cannot be opened.
pub fn prepare(file: &std::path::Path) -> store::Result<()> {
    let zero = Timestamp::from_micros(0);
    let incarnation = Incarnation::from_uuid(uuid::Uuid::nil());
    let database = Database::Sqlite(file.to_owned());
    Store::open(options(database, Arc::new(FakeClock::new(zero)), incarnation, None)).map(drop)
}

/// Runs a story.
pub fn run(story: &Story, plan: Plan) -> Result<Ran, SimError> {
    let mut sim = Sim::new(story, plan)?;
    let mut turns = 0;
    loop {
        turns += 1;
        if turns > TURNS_MAX {
            return Err(SimError::Restless(turns));
        }
        match sim.turn() {
            Ok(true) => {}
            Ok(false) => break,
            Err(Crash::Point) => sim.restart(2_000)?,
            Err(Crash::Failed(error)) => return Err(error),
        }
    }
    sim.finish()
}

impl<'s> Sim<'s> {
    fn new(story: &'s Story, plan: Plan) -> Result<Self, SimError> {
        Sim::build(story, plan, Arc::new(FakeClock::new(story.start)), None)
    }

    /// Opens the store and sets the owner up; `outside` in place of the story's own world.
    pub(crate) fn build(
        story: &'s Story,
        plan: Plan,
        clock: Arc<FakeClock>,
        outside: Option<Arc<dyn World>>,
    ) -> Result<Self, SimError> {
        let set_up = |e: String| SimError::SetUp(e);
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&plan.seed.to_be_bytes());
        let parse = |text| Script::parse(text).map_err(|e| set_up(e.to_string()));
        let (script, small) = (parse(story.script)?, parse(story.small)?);
        let prices = Prices { input: MicroUsd(1), cached: MicroUsd(1), output: MicroUsd(1) };
        let world = Arc::new(SimWorld::new(story, clock.clone()));
        let mut sim = Sim {
            story,
            outside: outside.unwrap_or_else(|| world.clone()),
            attack: None,
            world,
            clock,
            ids: Arc::new(IdSource::new(seed)),
            rng: ChaCha8Rng::from_seed(seed),
            points: Points::new(&plan.crash_at),
            history: History::default(),
            model: Arc::new(ScriptedModel::new(script.clone(), prices)),
            script,
            small_model: Arc::new(ScriptedModel::new(small.clone(), prices)),
            small,
            cx: None,
            owner: OwnerId::from_uuid(uuid::Uuid::nil()),
            workers: Vec::new(),
            errands: Vec::new(),
            sent: Vec::new(),
            person: None,
            outages: story.outages.clone(),
            small_outages: story.small_outages.clone(),
            dirty: ALL_DIRTY,
            asks: 0,
            opened: 0,
            opened_at: story.start,
            crashes: 0,
            faults_left: if plan.faults { FAULTS_MAX } else { 0 },
            deaths_left: if story.deadly.is_none() { 2 } else { 0 },
            flaked: false,
            signals: None,
            seqs_seen: 0,
            just_opened: false,
            plan,
        };
        let mut begin = json!({"story": story.name, "seed": sim.plan.seed, "utc_offset_s": 28_800});
        if let Some(case) = story.hotel {
            begin["variant"] = json!(case.to_string());
            begin["keeps"] = json!(case.keeps_promises());
        }
        sim.note("begin", begin);
        while let Err(crash) = sim.set_up() {
            match crash {
                Crash::Point => sim.close(2_000)?,
                Crash::Failed(error) => return Err(error),
            }
        }
        Ok(sim)
    }

    /// Opens the store and sets the owner up, once; a crash in between begins it again.
    fn set_up(&mut self) -> Result<(), Crash> {
        self.open().map_err(Crash::Failed)?;
        let cx = self.cx();
        let seed =
            setup::Seed { name: "Ann".into(), zone: "Asia/Hong_Kong".into(), language: None };
        let owner = self.outcome("set-up", now(setup::owner(&cx, seed)))?;
        self.owner = owner.id;
        let paired = self.write("set-up", |cx, tx| setup::add_device(cx, tx, "phone"))?;
        self.commits();
        self.person = Some(Person::new(self.story, paired.device));
        Ok(())
    }

    fn open(&mut self) -> Result<(), SimError> {
        let set_up = |e: String| SimError::SetUp(e);
        let database = match &self.plan.postgres {
            Some(url) => Database::Postgres(url.clone()),
            None => {
                let folder = self.plan.folder.join(self.opened.to_string());
                std::fs::create_dir_all(&folder).map_err(|e| set_up(e.to_string()))?;
                let file = folder.join("adjutant.db");
                if let (0, Some(template)) = (self.opened, &self.plan.template) {
                    std::fs::copy(template, &file).map_err(|e| set_up(e.to_string()))?;
                }
                let next = self.plan.folder.join((self.opened + 1).to_string());
                self.points.keep(&file, &next);
                Database::Sqlite(file)
            }
        };
        let incarnation: Incarnation = self.ids.next(self.clock.now());
        let gate: Arc<dyn CommitGate> = self.points.clone();
        let options = options(database, self.clock.clone(), incarnation, Some(gate));
        let store =
            Store::open(options).map_err(|error| SimError::Store { stage: "open", error })?;
        self.signals = Some(store.signals());
        self.cx = Some(Context {
            store,
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            limits: Limits::default(),
            incarnation,
            model: self.model.clone(),
            small: self.small_model.clone(),
            reviewer: self.small_model.clone(),
            max_output_tokens: 4_000,
            world: self.outside.clone(),
        });
        self.opened_at = self.clock.now();
        self.just_opened = true;
        self.note("open", json!({"incarnation": incarnation}));
        Ok(())
    }

    /// The person's device, for whoever takes their place: faults are played for as long as it lasts.
    pub(crate) fn take_device(&mut self, faults: u32) -> Option<Device> {
        (self.faults_left, self.deaths_left) = (faults, faults);
        self.history = History::silent();
        self.person.take().map(Person::into_device)
    }

    /// Everything in memory is gone, and what the disk did not hold. Time passes.
    fn close(&mut self, down_ms: u64) -> Result<(), SimError> {
        let point = self.points.take_crash();
        self.note("crash", json!({"point": point}));
        self.crashes += 1;
        self.workers.clear();
        self.errands.clear();
        self.cx = None;
        if self.plan.postgres.is_none() && point.is_some() {
            // What the disk held is beside it already.
            let closed = self.plan.folder.join(self.opened.to_string());
            std::fs::remove_dir_all(closed).map_err(|e| SimError::SetUp(e.to_string()))?;
            self.opened += 1;
        }
        if let Some(failure) = self.points.failure() {
            return Err(SimError::SetUp(failure));
        }
        self.clock.advance_ms(down_ms);
        Ok(())
    }

    /// Crashes and comes back.
    pub(crate) fn restart(&mut self, down_ms: u64) -> Result<(), SimError> {
        self.close(down_ms)?;
        self.open()?;
        self.dirty = ALL_DIRTY;
        if let Some(person) = &mut self.person {
            person.hint(self.clock.now());
        }
        Ok(())
    }

    pub(crate) fn cx(&self) -> Context {
        match &self.cx {
            Some(cx) => cx.clone(),
            None => unreachable!("the store is open between crashes"),
        }
    }

    pub(crate) fn note(&mut self, what: &str, fields: serde_json::Value) {
        self.history.note(what, self.clock.now(), fields);
    }

    pub(crate) fn random(&mut self, below: u64) -> u64 {
        self.rng.next_u64() % below.max(1)
    }

    /// One chance in `odds`, as long as faults are wanted and not used up.
    pub(crate) fn fault(&mut self, odds: u64) -> bool {
        let hit = self.faults_left > 0 && self.random(odds) == 0;
        self.faults_left -= u32::from(hit);
        hit
    }

    /// A transaction of the owner's, as one stage of the story makes it.
    pub(crate) fn write<T: Send + 'static>(
        &mut self,
        stage: &'static str,
        work: impl FnOnce(&Context, &mut OwnerTx<'_, '_>) -> store::Result<T> + Send + 'static,
    ) -> Result<T, Crash> {
        let written = now(self.cx().write(self.owner, work));
        self.outcome(stage, written)
    }

    /// Sorts a store's error into a crash or a defect.
    pub(crate) fn outcome<T>(
        &mut self,
        stage: &'static str,
        result: store::Result<T>,
    ) -> Result<T, Crash> {
        match result {
            Ok(value) => Ok(value),
            Err(StoreError::Closed) => Err(Crash::Point),
            Err(error) => Err(Crash::Failed(SimError::Store { stage, error })),
        }
    }

    /// A change interests workers: they look once the burst window has closed.
    pub(crate) fn spoken(&mut self) {
        let at = self.clock.now().plus_ms(Limits::default().burst_ms);
        for worker in &mut self.workers {
            worker.renew_at = worker.renew_at.min(at);
        }
    }

    fn finish(mut self) -> Result<Ran, SimError> {
        let cx = self.cx();
        let owner = self.owner;
        let records = now(cx.store.read(move |tx| dump::read(tx, owner)))
            .map_err(|error| SimError::Store { stage: "dump", error })?;
        if let Some(person) = &self.person
            && let Some(left) = person.unfinished()
        {
            return Err(SimError::SetUp(format!("the story ended before the person could {left}")));
        }
        if !self.sent.is_empty() {
            return Err(SimError::SetUp("the story ended before all was delivered".into()));
        }
        for line in records.lines() {
            self.note("row", line);
        }
        // What is under way at the vendor still happens.
        let end = self.clock.now().max(self.story.start.plus_ms(self.story.end_ms));
        let hotel = self.world.vendor.as_ref().map(|vendor| vendor.end(end));
        for line in hotel.iter().flat_map(dump::hotel_lines) {
            self.note("row", line);
        }
        self.note("end", json!({}));
        let faults = self.plan.faults;
        let rough = self.crashes > 0 || faults;
        Ok(Ran {
            history: self.history,
            outcome: Outcome { records, rough, faults, hotel },
            points: self.points.passed(),
            crashes: self.crashes,
        })
    }
}
