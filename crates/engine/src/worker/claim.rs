//! Claim: takes a session's lease and begins or resumes its run.

use agent::HARNESS;
use base::{MicroUsd, SessionId};
use domain::event::{Class, EventKind};
use domain::queue::{self, After};
use domain::state::RunState;
use store::ledger::LedgerKind;
use store::run::{self, Run, Spent};
use store::session::{self, Lease};
use store::work_item::{self, WorkItem};
use store::{OwnerTx, Result, StoreError};

use super::Work;
use super::ends::{fail_items, put_back};
use super::interrupt::{STOPPED, is_over, newcomer, stopped};
use super::record::{ledger, step, store_block};
use crate::{Context, assemble, notice, router, tools};

/// Items of a session's queue that are looked at.
pub(super) const QUEUE_MAX: i64 = 500;

/// Claims a session and begins or resumes its run. `None`: nothing to do there, or somebody else has it.
pub async fn claim(cx: &Context, owner: base::OwnerId, session: SessionId) -> Result<Option<Work>> {
    let Some((lease, run)) = cx.write(owner, move |cx, tx| take(cx, tx, session)).await? else {
        return Ok(None);
    };
    let id = run.id;
    let (assembled, late) = cx
        .store
        .read(move |tx| {
            let mut late = false;
            for item in work_item::claimed(tx, id)? {
                late |= store::event::get(tx, item.event)?.late;
            }
            Ok((assemble::load(tx, id)?, late))
        })
        .await?;
    Ok(Some(Work { lease, run, late, blocks: assembled.blocks, turn: assembled.turn }))
}

fn take(cx: &Context, tx: &mut OwnerTx<'_, '_>, id: SessionId) -> Result<Option<(Lease, Run)>> {
    let owner = store::owner::locked(tx)?;
    if notice::capped(cx, tx, &owner)? {
        session::put_off(tx, id, tx.now().plus_ms(cx.limits.retry_max_ms))?;
        return Ok(None);
    }
    let Some(fence) = session::take(tx, id, cx.incarnation, cx.limits.lease_ms)? else {
        return Ok(None);
    };
    let lease = Lease { owner: owner.id, session: id, fence, holder: cx.incarnation };
    if let Some(open) = run::open(tx, id)?
        && let Some(run) = resume(cx, tx, &lease, open)?
    {
        return Ok(Some((lease, run)));
    }
    Ok(begin(cx, tx, &lease)?.map(|run| (lease, run)))
}

/// Takes an open run on, or ends it so that a new one can begin.
fn resume(cx: &Context, tx: &mut OwnerTx<'_, '_>, lease: &Lease, open: Run) -> Result<Option<Run>> {
    if open.harness != HARNESS {
        put_back(cx, tx, &open, RunState::Interrupted, "the program was upgraded")?;
        return Ok(None);
    }
    if stopped(tx, &open)? {
        put_back(cx, tx, &open, RunState::Interrupted, STOPPED)?;
        return Ok(None);
    }
    if store::hold::is_held_back(tx, open.owner, open.duty)?
        && work_item::claimed(tx, open.id)?.iter().any(|item| item.class != Some(Class::User))
    {
        put_back(cx, tx, &open, RunState::Interrupted, "it is paused")?;
        return Ok(None);
    }
    match open.state {
        RunState::Sleeping => {
            if newcomer(tx, &open)?.is_some() {
                put_back(cx, tx, &open, RunState::Interrupted, "a new message came")?;
                return Ok(None);
            }
        }
        RunState::Running | RunState::Lost => {
            if open.steps == open.claim_steps && died_in_vain(cx, tx, &open)? {
                return Ok(None);
            }
        }
        RunState::Completed
        | RunState::Interrupted
        | RunState::BudgetExhausted
        | RunState::Failed => return Err(StoreError::Corrupt("an open run has ended".into())),
    }
    run::claim(tx, open.id, lease.fence)?;
    run::get(tx, open.id).map(Some)
}

/// A worker died without one new step: counts it against the run's items. `true`: the run is over,
/// because an item is given up or must run alone.
fn died_in_vain(cx: &Context, tx: &mut OwnerTx<'_, '_>, run: &Run) -> Result<bool> {
    let items = work_item::claimed(tx, run.id)?;
    let counted =
        |item: &WorkItem| queue::after_failure(item.attempts, false, cx.limits.poison_attempts);
    let parts = |item: &WorkItem| match counted(item) {
        After::GiveUp => true,
        After::Retry { attempts } => items.len() > 1 && attempts >= queue::ALONE_FROM_ATTEMPTS,
    };
    if items.iter().any(parts) {
        fail_items(cx, tx, run, "the program stopped while it was being handled")?;
        return Ok(true);
    }
    for item in &items {
        work_item::count(tx, item, item.attempts + 1)?;
    }
    Ok(false)
}

/// Begins a new run with what waits in the session, or gives the session back.
fn begin(cx: &Context, tx: &mut OwnerTx<'_, '_>, lease: &Lease) -> Result<Option<Run>> {
    let session = session::get(tx, lease.session)?;
    let focus = assemble::focus(tx, session.id)?;
    let mut pending = work_item::pending(tx, session.id, QUEUE_MAX)?;
    pending.extend(work_item::background(tx, session.id, QUEUE_MAX)?);
    let over = focus.as_ref().is_some_and(|(duty, _)| is_over(duty.state));
    if over {
        for item in &pending {
            work_item::done(tx, item)?;
            store::event::dispose(tx, item.event, "recorded: its duty is no longer in force")?;
        }
    }
    // Under a stop only a person who speaks is answered; the rest is kept until it is lifted (PRO-17).
    if store::hold::is_held_back(tx, session.owner, focus.as_ref().map(|(duty, _)| duty.id))? {
        pending.retain(|item| item.class == Some(Class::User));
    }
    let batch = batch(cx, tx.now(), &pending);
    if over || batch.is_empty() {
        session::release(tx, *lease, session.not_before, session.model_failures)?;
        return Ok(None);
    }
    let owner = store::owner::get(tx, lease.owner)?;
    let n = session::next_run(tx, session.id)?;
    let scene = assemble::scene(tx, &owner, &session, &focus, &batch, cx.limits.message_bytes)?;
    let settled = assemble::settle_prefix(cx, tx, &owner, &session, &focus, n, scene.least())?;
    let (tail, trust, taken) = scene.begin(settled.tail_max);
    let run = Run {
        id: cx.id(),
        owner: owner.id,
        session: session.id,
        n,
        duty: focus.as_ref().map(|(duty, _)| duty.id),
        task_version: focus.as_ref().map(|(_, version)| version.id),
        state: RunState::Running,
        fence: lease.fence,
        harness: HARNESS.to_owned(),
        model: cx.model.name().to_owned(),
        prefix_digest: settled.digest,
        window_start: settled.window_start,
        steps: 0,
        claim_steps: 1,
        tokens: 0,
        input_tokens: 0,
        cached_tokens: 0,
        output_tokens: 0,
        micro_usd: MicroUsd(0),
        reason: None,
        started_at: tx.now(),
        ended_at: None,
        moved_at: tx.now(),
    };
    run::insert(tx, &run)?;
    // What does not fit waits for the next run.
    for item in batch.into_iter().take(taken) {
        work_item::claim(tx, item, run.id)?;
        issue_addresses(cx, tx, &run, item)?;
    }
    let first = step(cx, tx, &run, 0, run::StepKind::Tail, &tail);
    store_block(tx, &first, &tail, trust, "tail")?;
    run::add_step(tx, &first, Spent::default(), lease.fence)?;
    ledger(cx, tx, &run, LedgerKind::Wakeup, Spent::default())?;
    run::get(tx, run.id).map(Some)
}

/// What the next run would take in, in the order it reads it.
fn batch<'a>(cx: &Context, now: base::Timestamp, pending: &'a [WorkItem]) -> Vec<&'a WorkItem> {
    let waiting: Vec<queue::Waiting> = pending
        .iter()
        .filter_map(|item| {
            Some(queue::Waiting {
                class: item.class?,
                since: item.created_at,
                attempts: item.attempts,
            })
        })
        .collect();
    let (starvation_ms, items_max) = (cx.limits.starvation_ms, cx.limits.items_per_run);
    let order = queue::batch(&waiting, now, starvation_ms, items_max);
    order.into_iter().filter_map(|at| pending.get(at)).collect()
}

/// The addresses in the user's own words, and those that an ingress found, are objects of this run's
/// version: they may be fetched.
fn issue_addresses(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    run: &Run,
    item: &WorkItem,
) -> Result<()> {
    let event = store::event::get(tx, item.event)?;
    let urls = match event.kind {
        EventKind::UserMessage => domain::links::urls(&store::event::body_text(tx, event.body)?),
        EventKind::ScheduleDue
        | EventKind::WaitTimedOut
        | EventKind::WaitSatisfied
        | EventKind::ProposalDecided
        | EventKind::ActionSettled
        | EventKind::Webhook
        | EventKind::File
        | EventKind::FeedEntry
        | EventKind::PageChanged
        | EventKind::Related => router::links(&event),
    };
    tools::issue_urls(cx, tx, run, urls, &format!("event:{}", event.id))
}
