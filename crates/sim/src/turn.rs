//! Who may go next, and what they do: one step of one stage, of a worker, or of whoever is outside.

use base::Clock as _;
use engine::{delivery, router, sweeper, timer};
use rand_chacha::rand_core::Rng as _;
use serde_json::json;

use crate::attack::Attack;
use crate::errands::Errand;
use crate::sim::{Crash, Sim, now};

/// From how many milliseconds on a stage's errand is overtaken by another.
const OVERTAKEN_MS: u64 = 10_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Router,
    Timer,
    Delivery,
    Sweeper,
    Watcher,
    Attribution,
    Checker,
    Review,
    Admission,
    Dispatcher,
    Reconciler,
    Claim,
    Worker(usize),
    Renew(usize),
    Errand(usize),
    Arrival(usize),
    Person,
}

/// Stages that may have something to do.
#[derive(Clone, Copy)]
pub(crate) struct Dirty {
    pub(crate) router: bool,
    timer: bool,
    delivery: bool,
    sweeper: bool,
    pub(crate) watcher: bool,
    pub(crate) attribution: bool,
    pub(crate) checker: bool,
    pub(crate) review: bool,
    pub(crate) admission: bool,
    pub(crate) dispatcher: bool,
    pub(crate) reconciler: bool,
    pub(crate) claim: bool,
}

pub(crate) const ALL_DIRTY: Dirty = Dirty {
    router: true,
    timer: true,
    delivery: true,
    sweeper: true,
    watcher: true,
    attribution: true,
    checker: true,
    review: true,
    admission: true,
    dispatcher: true,
    reconciler: true,
    claim: true,
};

impl Sim<'_> {
    /// Notes the commits since the last look; whatever changed may interest most stages.
    pub(crate) fn commits(&mut self) {
        let Some(signals) = &mut self.signals else { return };
        let seqs: Vec<i64> =
            std::iter::from_fn(|| signals.try_recv().ok()).map(|signal| signal.seq).collect();
        for seq in &seqs {
            self.note("commit", json!({"seq": seq}));
        }
        self.seqs_seen += seqs.len() as u64;
        if !seqs.is_empty() {
            let Dirty { timer, sweeper, watcher, .. } = self.dirty;
            let before = self.dirty;
            self.dirty = Dirty { timer, sweeper, watcher, ..ALL_DIRTY };
            if self.attack.is_some() {
                self.lose_hints(before);
            }
            let at = self.clock.now();
            if let Some(person) = &mut self.person {
                person.hint(at);
            }
        }
    }

    /// A hint may get lost: whoever missed it looks when everything rests. It also saves an attack most looks
    /// that find nothing.
    fn lose_hints(&mut self, before: Dirty) {
        let lost = self.rng.next_u64() & self.rng.next_u64();
        let mut n = 0;
        let mut hears = |was: bool| {
            n += 1;
            was || lost >> n & 1 == 1
        };
        self.dirty = Dirty {
            router: hears(before.router),
            delivery: hears(before.delivery),
            attribution: hears(before.attribution),
            checker: hears(before.checker),
            review: hears(before.review),
            admission: hears(before.admission),
            dispatcher: hears(before.dispatcher),
            reconciler: hears(before.reconciler),
            claim: hears(before.claim),
            ..before
        };
    }

    /// One step of whoever may go. `false`: everything rests and the story is over.
    pub(crate) fn turn(&mut self) -> Result<bool, Crash> {
        let millis = 1 + self.random(20);
        self.clock.advance_ms(millis);
        let steps = self.steps();
        if steps.is_empty() {
            return self.let_time_pass();
        }
        let at = self.random(steps.len() as u64) as usize;
        let Some(step) = steps.get(at).copied() else { return Ok(true) };
        if std::mem::take(&mut self.just_opened) {
            self.see_actions()?;
        }
        let seen = self.seqs_seen;
        self.step(step)?;
        self.commits();
        if self.seqs_seen != seen {
            self.see_actions()?;
        }
        Ok(true)
    }

    fn steps(&self) -> Vec<Step> {
        let at = self.clock.now();
        let dirty = self.dirty;
        let mut steps = Vec::new();
        // One errand of a kind at a time; one that takes very long is overtaken by another node's.
        let soon = at.plus_ms(OVERTAKEN_MS);
        let free = |is: fn(&Errand) -> bool| {
            !self.errands.iter().any(|errand| is(errand) && errand.ready_at <= soon)
        };
        let stages = [
            (dirty.router, Step::Router),
            (dirty.timer, Step::Timer),
            (dirty.delivery, Step::Delivery),
            (dirty.sweeper, Step::Sweeper),
            (dirty.watcher && free(Errand::is_look), Step::Watcher),
            (dirty.attribution && free(Errand::is_question), Step::Attribution),
            (dirty.checker && free(Errand::is_check), Step::Checker),
            (dirty.review && free(Errand::is_review), Step::Review),
            (dirty.admission, Step::Admission),
            (dirty.dispatcher && free(Errand::is_sending), Step::Dispatcher),
            (dirty.reconciler && free(Errand::is_look_up), Step::Reconciler),
            (dirty.claim, Step::Claim),
        ];
        steps.extend(stages.into_iter().filter(|(dirty, _)| *dirty).map(|(_, step)| step));
        for (n, worker) in self.workers.iter().enumerate() {
            if worker.ready_at <= at {
                steps.push(Step::Worker(n));
            } else if worker.renew_at <= at && !worker.hangs {
                steps.push(Step::Renew(n));
            }
        }
        let home = self.errands.iter().enumerate().filter(|(_, errand)| errand.ready_at <= at);
        steps.extend(home.map(|(n, _)| Step::Errand(n)));
        let arrived = self.sent.iter().enumerate().filter(|(_, sent)| sent.due <= at);
        steps.extend(arrived.map(|(n, _)| Step::Arrival(n)));
        let attacked = self.attack.as_ref().and_then(Attack::next).is_some_and(|next| next <= at);
        if attacked || self.person.as_ref().is_some_and(|person| person.ready(at)) {
            steps.push(Step::Person);
        }
        steps
    }

    fn step(&mut self, step: Step) -> Result<(), Crash> {
        let cx = self.cx();
        match step {
            Step::Router => {
                let more = now(router::pass(&cx));
                self.dirty.router = self.outcome("router", more)?;
            }
            Step::Timer => {
                let more = now(timer::pass(&cx));
                self.dirty.timer = self.outcome("timer", more)?;
            }
            Step::Delivery => {
                let more = now(delivery::pass(&cx));
                self.dirty.delivery = self.outcome("delivery", more)?;
            }
            Step::Sweeper => {
                let more = now(sweeper::pass(&cx));
                self.dirty.sweeper = self.outcome("sweeper", more)?;
                let alarms = now(sweeper::alarms(&cx));
                self.outcome("alarms", alarms)?;
            }
            Step::Watcher => self.look(&cx)?,
            Step::Attribution => self.question(&cx)?,
            Step::Checker => self.check(&cx)?,
            Step::Review => self.review(&cx)?,
            Step::Admission => self.admission(&cx)?,
            Step::Dispatcher => self.dispatch(&cx)?,
            Step::Reconciler => self.reconcile(&cx)?,
            Step::Errand(n) => self.record_errand(&cx, n)?,
            Step::Arrival(n) => self.arrive(n)?,
            Step::Claim => self.claim(&cx)?,
            Step::Worker(n) => self.work(&cx, n)?,
            Step::Renew(n) => self.renew(&cx, n)?,
            Step::Person => {
                if let Some(mut person) = self.person.take() {
                    let done = person.act(self);
                    self.person = Some(person);
                    done?;
                }
                Attack::act(self)?;
            }
        }
        Ok(())
    }
}
