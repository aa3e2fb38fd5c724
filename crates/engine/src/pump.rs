//! The one loop shape that all stages share: wait for a hint or the tick, then work until nothing is
//! left. A hint may be lost; the tick finds the row.

use std::collections::{BTreeMap, HashSet};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::{ActionId, OwnerId, SessionId, Timestamp};
use store::session::Claimable;
use store::{Result, StoreError};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use crate::sweeper::Stopped;
use crate::worker::{self, Action, Recorded, Work};
use crate::{
    Context, admission, attribution, checker, delivery, dispatcher, reconciler, review, router,
    sweeper, timer, tools, watcher,
};

/// Hints to the stages that there may be something to do.
#[derive(Debug, Default)]
pub struct Hints {
    router: Notify,
    attribution: Notify,
    watcher: Notify,
    timer: Notify,
    checker: Notify,
    worker: Notify,
    review: Notify,
    admission: Notify,
    dispatcher: Notify,
    reconciler: Notify,
    delivery: Notify,
    sweeper: Notify,
    alarms: Notify,
    /// When each stage last came to the end of a pass.
    beats: Beats,
}

type Beats = Mutex<BTreeMap<&'static str, Timestamp>>;

/// Stages that ask nobody, so that none of their passes lasts.
const QUICK: [&str; 10] = [
    "router",
    "timer",
    "worker",
    "review",
    "admission",
    "dispatcher",
    "reconciler",
    "delivery",
    "sweeper",
    "alarms",
];
/// After this long without the end of a pass such a stage is taken for stuck.
const STUCK_MS: u64 = 60_000;

impl Hints {
    /// How long ago each stage came to the end of a pass, in seconds.
    pub fn ages_s(&self, now: Timestamp) -> Vec<(&'static str, u64)> {
        let beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        beats.iter().map(|(stage, at)| (*stage, now.since(*at).as_secs())).collect()
    }

    /// A stage that should have passed by now and has not, or has not begun.
    pub fn stuck(&self, now: Timestamp) -> Option<&'static str> {
        let beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = |stage: &&str| beats.get(stage).is_some_and(|at| now < at.plus_ms(STUCK_MS));
        QUICK.into_iter().find(|stage| !passed(stage))
    }

    /// Something changed: all stages look.
    pub fn all(&self) {
        let hints = [
            &self.router,
            &self.attribution,
            &self.watcher,
            &self.timer,
            &self.checker,
            &self.worker,
            &self.review,
            &self.admission,
            &self.dispatcher,
            &self.reconciler,
            &self.delivery,
        ];
        for hint in hints {
            hint.notify_one();
        }
    }
}

/// Runs all stages until `stop` becomes true, then lets what is under way reach its next record.
pub async fn run(cx: Context, hints: Arc<Hints>, stop: watch::Receiver<bool>) {
    let mut stages = JoinSet::new();
    stages.spawn(listen(cx.clone(), hints.clone(), stop.clone()));
    let each = |cx: &Context, hints: &Arc<Hints>| (cx.clone(), hints.clone(), stop.clone());
    let (c, h, s) = each(&cx, &hints);
    stages.spawn(async move {
        stage(&c, (&h.router, &h.beats), s, "router", || router::pass(&c)).await
    });
    let (c, h, s) = each(&cx, &hints);
    stages.spawn(async move {
        stage(&c, (&h.attribution, &h.beats), s, "attribution", || attribution::pass(&c)).await;
    });
    let (c, h, s) = each(&cx, &hints);
    stages.spawn(async move {
        stage(&c, (&h.watcher, &h.beats), s, "watcher", || watcher::pass(&c)).await
    });
    let (c, h, s) = each(&cx, &hints);
    stages.spawn(
        async move { stage(&c, (&h.timer, &h.beats), s, "timer", || timer::pass(&c)).await },
    );
    let (c, h, s) = each(&cx, &hints);
    stages.spawn(async move {
        stage(&c, (&h.checker, &h.beats), s, "checker", || checker::pass(&c)).await
    });
    let (c, h, s) = each(&cx, &hints);
    let hands = Hands::new();
    stages.spawn(async move {
        let one = |owner, id, cx: Context| async move { review::one(&cx, owner, id).await };
        let one = |owner, id| one(owner, id, c.clone());
        let pass = || hands.take(&h, review::due(&c), one);
        stage(&c, (&h.review, &h.beats), s, "review", pass).await;
    });
    let (c, h, s) = each(&cx, &hints);
    stages.spawn(async move {
        stage(&c, (&h.admission, &h.beats), s, "admission", || admission::pass(&c)).await;
    });
    let (c, h, s) = each(&cx, &hints);
    let hands = Hands::new();
    stages.spawn(async move {
        let one = |owner, id, cx: Context| async move { dispatcher::one(&cx, owner, id).await };
        let one = |owner, id| one(owner, id, c.clone());
        let pass = || hands.take(&h, dispatcher::due(&c), one);
        stage(&c, (&h.dispatcher, &h.beats), s, "dispatcher", pass).await;
    });
    let (c, h, s) = each(&cx, &hints);
    let hands = Hands::new();
    stages.spawn(async move {
        let one = |owner, id, cx: Context| async move { reconciler::one(&cx, owner, id).await };
        let one = |owner, id| one(owner, id, c.clone());
        let pass = || hands.take(&h, reconciler::due(&c), one);
        stage(&c, (&h.reconciler, &h.beats), s, "reconciler", pass).await;
    });
    let (c, h, s) = each(&cx, &hints);
    stages.spawn(async move {
        stage(&c, (&h.delivery, &h.beats), s, "delivery", || delivery::pass(&c)).await
    });
    let (c, h, s) = each(&cx, &hints);
    stages.spawn(async move {
        stage(&c, (&h.sweeper, &h.beats), s, "sweeper", || sweeper::pass(&c)).await
    });
    let (c, h, s) = each(&cx, &hints);
    stages.spawn(async move {
        stage(&c, (&h.alarms, &h.beats), s, "alarms", || sweeper::alarms(&c)).await
    });
    let crew = Arc::new(Crew::default());
    let (c, h, s) = each(&cx, &hints);
    stages.spawn(async move {
        stage(&c, (&h.worker, &h.beats), s, "worker", || hire(&c, &crew, &h)).await;
        // Workers in the middle of a step are left to reach its record; the process then ends.
    });
    // A stage ends when it is told to. One that ends otherwise is a defect, and going on without it
    // would leave its rows to nobody: the process ends and is started again.
    while let Some(ended) = stages.join_next().await {
        if let Err(panic) = ended {
            tracing::error!(%panic, "a stage died");
            return;
        }
    }
}

/// Takes what a stage found, one by one. One that fails leaves the others their turn: its row stays where
/// it is, is tried again at the next pass, and is told by its custody's alarm if that goes on.
pub(crate) async fn each<T, F>(found: Vec<T>, mut take: impl FnMut(T) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let mut first = Ok(());
    for one in found {
        match take(one).await {
            Ok(()) => {}
            Err(StoreError::Closed) => return Err(StoreError::Closed),
            Err(error) => first = first.and(Err(error)),
        }
    }
    first
}

/// What a stage that asks or looks outside by itself finds to do: nothing while the operator has stopped
/// everything. Read together, so that it costs no read of its own; admission reads the row under its lock.
pub(crate) fn unless_stopped<T>(
    tx: &mut store::Tx<'_>,
    find: impl FnOnce(&mut store::Tx<'_>) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    if store::hold::is_stopped(tx)? { Ok(Vec::new()) } else { find(tx) }
}

async fn listen(cx: Context, hints: Arc<Hints>, mut stop: watch::Receiver<bool>) {
    let mut signals = cx.store.signals();
    loop {
        tokio::select! {
            // A lagging receiver has missed hints, not records: look at everything.
            heard = signals.recv() => match heard {
                Ok(_) | Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => hints.all(),
                Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
            },
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

async fn stage<F>(
    cx: &Context,
    (hint, beats): (&Notify, &Beats),
    mut stop: watch::Receiver<bool>,
    name: &'static str,
    pass: impl Fn() -> F,
) where
    F: Future<Output = Result<bool>>,
{
    let tick = Duration::from_millis(cx.limits.tick_ms);
    loop {
        if *stop.borrow() {
            return;
        }
        let passed = pass().await;
        if passed.is_ok() {
            let mut beats = beats.lock().unwrap_or_else(PoisonError::into_inner);
            beats.insert(name, cx.clock.now());
        }
        match passed {
            Ok(true) => continue,
            Ok(false) => {}
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(stage = name, %error, "tried again at the next tick"),
        }
        tokio::select! {
            () = hint.notified() => {}
            () = tokio::time::sleep(tick) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// Requests of one stage that may be under way at once: a vendor that is slow holds up nobody else's.
const HANDS_MAX: usize = 16;

/// The requests of one stage that are under way.
struct Hands(Arc<Semaphore>);

impl Hands {
    fn new() -> Self {
        Hands(Arc::new(Semaphore::new(HANDS_MAX)))
    }

    /// Begins with as many of what is due as may be under way; each ends by itself and has everybody look
    /// again, but one that failed, which is still due: that would be tried again at once and for ever. Two
    /// that take the same row are told apart by its claim.
    async fn take<F>(
        &self,
        hints: &Arc<Hints>,
        due: impl Future<Output = Result<Vec<(OwnerId, ActionId)>>>,
        one: impl Fn(OwnerId, ActionId) -> F,
    ) -> Result<bool>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        if self.0.available_permits() == 0 {
            return Ok(false);
        }
        for (owner, id) in due.await? {
            let Ok(hand) = self.0.clone().try_acquire_owned() else { break };
            let (work, hints) = (one(owner, id), hints.clone());
            tokio::spawn(async move {
                let done = work.await;
                drop(hand);
                match done {
                    Ok(()) => hints.all(),
                    Err(error) => {
                        tracing::warn!(action = %id, %error, "tried again at the next tick");
                    }
                }
            });
        }
        Ok(false)
    }
}

/// Sessions that this process is running.
#[derive(Debug, Default)]
struct Crew(Mutex<HashSet<SessionId>>);

impl Crew {
    fn held(&self) -> std::sync::MutexGuard<'_, HashSet<SessionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Claims sessions up to the number of workers; one more is kept free for people.
async fn hire(cx: &Context, crew: &Arc<Crew>, hints: &Arc<Hints>) -> Result<bool> {
    let now = cx.clock.now();
    let limit = cx.limits.workers as i64 * 2 + 2;
    let merged = now.minus_ms(cx.limits.merge_ms);
    let claimable =
        move |tx: &mut store::Tx<'_>| store::session::claimable(tx, now, now, merged, limit);
    for claimable in cx.store.read(claimable).await? {
        let room = cx.limits.workers + usize::from(claimable.person);
        {
            let mut held = crew.held();
            if held.len() >= room || !held.insert(claimable.session) {
                continue;
            }
        }
        let (cx, crew, hints) = (cx.clone(), crew.clone(), hints.clone());
        tokio::spawn(async move {
            look_after(&cx, claimable).await;
            crew.held().remove(&claimable.session);
            hints.worker.notify_one();
        });
    }
    Ok(false)
}

/// Has a session's run worked on, and gives the session back if the worker fails or panics.
async fn look_after(cx: &Context, claimable: Claimable) {
    let Claimable { owner, session, .. } = claimable;
    let working = cx.clone();
    // A task of its own, so that a panic ends that task and nothing else.
    let worked = tokio::spawn(async move { employ(&working, owner, session).await }).await;
    let why = match worked {
        Ok(Ok(())) => return,
        Ok(Err(error)) => {
            tracing::warn!(%session, %error, "a run stopped; its next claim goes on from its records");
            Stopped::from(&error)
        }
        Err(panic) => {
            tracing::error!(%session, %panic, "a worker died; its session is given back");
            Stopped::Dead("a worker panicked".into())
        }
    };
    let let_go = cx.write(owner, move |cx, tx| sweeper::let_go(cx, tx, session, &why)).await;
    if let Err(error) = let_go {
        // The database takes nothing now. A lease runs out by itself; until it takes something again,
        // this session is left alone for a while instead of being tried without a pause.
        tracing::warn!(%session, %error, "a session could not be given back");
        tokio::time::sleep(Duration::from_millis(cx.limits.retry_ms)).await;
    }
}

async fn employ(cx: &Context, owner: OwnerId, session: SessionId) -> Result<()> {
    let Some(mut work) = worker::claim(cx, owner, session).await? else {
        return Ok(());
    };
    while step(cx, &mut work).await? == Recorded::Goes {}
    Ok(())
}

/// One step of a run: decide, perform with the lease renewed, record.
async fn step(cx: &Context, work: &mut Work) -> Result<Recorded> {
    match worker::next(cx, work) {
        Action::End(outcome) => worker::record_end(cx, work, outcome).await,
        Action::Tool(call, plan) => {
            let plan = tools::clear(cx, work, plan).await?;
            match holding(cx, work, tools::perform(cx, plan)).await? {
                Some(done) => worker::record_tool(cx, work, call, done).await,
                None => Ok(Recorded::Over),
            }
        }
        Action::Ask(request) => {
            let heard = |_bytes: u64| {};
            let limit = Duration::from_millis(cx.limits.model_call_ms);
            let ask = async {
                let asked = tokio::time::timeout(limit, cx.model.ask(&request, &heard)).await;
                asked.unwrap_or_else(|_| Err(model::ModelError::retry("no answer in time")))
            };
            match holding(cx, work, ask).await? {
                None => Ok(Recorded::Over),
                Some(Ok(answer)) => worker::record_answer(cx, work, request.digest(), answer).await,
                Some(Err(error)) => worker::record_failure(cx, work, error).await,
            }
        }
    }
}

/// Performs something slow while the lease is renewed. `None`: the run was interrupted, and what was
/// under way is dropped (QUE-13).
async fn holding<T>(cx: &Context, work: &Work, slow: impl Future<Output = T>) -> Result<Option<T>> {
    let mut slow = std::pin::pin!(slow);
    let mut renewal = tokio::time::interval(Duration::from_millis(cx.limits.lease_renew_ms));
    renewal.reset();
    loop {
        tokio::select! {
            // What is done is taken before anything else is looked at.
            biased;
            done = &mut slow => return Ok(Some(done)),
            _ = renewal.tick() => {}
            spoken = called_off(cx, work) => spoken?,
        }
        let held = work.clone();
        let renewed =
            cx.write(work.lease.owner, move |cx, tx| worker::renew(cx, tx, &held)).await?;
        if renewed == Recorded::Over {
            return Ok(None);
        }
    }
}

/// Waits until something that may interrupt the run is on record. It only reads, so that it neither
/// renews a lease nor wakes anybody while nothing has happened.
async fn called_off(cx: &Context, work: &Work) -> Result<()> {
    let mut signals = cx.store.signals();
    loop {
        let held = work.clone();
        let reading = cx.clone();
        let found = cx.store.read(move |tx| worker::foreseen(&reading, tx, &held)).await?;
        let wait_ms = match found {
            worker::Foreseen::Now => return Ok(()),
            worker::Foreseen::InMs(ms) => ms,
            worker::Foreseen::Nothing => cx.limits.lease_renew_ms,
        };
        // A hint that is lost costs one renewal period at most.
        drop(tokio::time::timeout(Duration::from_millis(wait_ms), signals.recv()).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_fails_is_not_looked_at_again_at_once() {
        let (hints, hands) = (Arc::new(Hints::default()), Hands::new());
        let rows = || async {
            Ok(vec![(
                base::Id::from_uuid(uuid::Uuid::nil()),
                base::Id::from_uuid(uuid::Uuid::nil()),
            )])
        };
        let looks_again = async |done: Result<()>| {
            let taken = hands.take(&hints, rows(), |_, _| std::future::ready(done.clone())).await;
            assert_eq!(taken, Ok(false));
            // All hands are free again, so the work has ended.
            let all = u32::try_from(HANDS_MAX).unwrap();
            drop(hands.0.acquire_many(all).await);
            tokio::task::yield_now().await;
            let now = Duration::from_millis(0);
            tokio::time::timeout(now, hints.dispatcher.notified()).await.is_ok()
        };
        assert!(looks_again(Ok(())).await);
        assert!(!looks_again(Err(StoreError::Missing("content"))).await);
    }

    #[tokio::test]
    async fn one_row_that_fails_leaves_the_others_their_turn() {
        let mut taken = Vec::new();
        let outcome = each(vec![1, 2, 3], |n| {
            taken.push(n);
            async move { if n == 1 { Err(StoreError::Missing("source")) } else { Ok(()) } }
        });
        assert_eq!((outcome.await, taken), (Err(StoreError::Missing("source")), vec![1, 2, 3]));
    }
}
