//! Interruption: what ends a run from outside, read at each commit and each renewal of its lease.

use base::Timestamp;
use domain::queue;
use domain::state::{DutyState, RunState};
use store::run::{self, Run};
use store::session;
use store::work_item::{self, WorkItem};
use store::{OwnerTx, Result};

use super::claim::QUEUE_MAX;
use super::ends::put_back;
use super::record::failures_before;
use super::{Recorded, Work};
use crate::Context;

/// Why a run must end now, if it must: read at each commit and each renewal of the lease.
pub fn interruption(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
) -> Result<Option<&'static str>> {
    let first = newcomer(tx, &work.run)?;
    if queue::interrupts(first, tx.now(), cx.limits.burst_ms) {
        return Ok(Some("a new message came"));
    }
    Ok(stopped(tx, &work.run)?.then_some(STOPPED))
}

pub(super) const STOPPED: &str = "the user stopped the duty";

/// When the first message came that a run did not take in and the next one would. One that waits to
/// run alone came before, and does not end the run that goes ahead of it.
pub(super) fn newcomer(tx: &mut store::Tx<'_>, run: &Run) -> Result<Option<Timestamp>> {
    let pending = work_item::from_people(tx, run.session, QUEUE_MAX)?;
    let follows = |item: &&WorkItem| {
        item.attempts < queue::ALONE_FROM_ATTEMPTS && item.created_at >= run.started_at
    };
    Ok(pending.iter().filter(follows).map(|item| item.created_at).min())
}

/// What is on record that may interrupt a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreseen {
    /// Something that interrupts it now.
    Now,
    /// A burst of messages whose window closes in so many milliseconds.
    InMs(u64),
    /// Nothing.
    Nothing,
}

/// Looks whether a run is to be interrupted. A hint: the decision is [`interruption`]'s.
pub fn foreseen(cx: &Context, tx: &mut store::Tx<'_>, work: &Work) -> Result<Foreseen> {
    if stopped(tx, &work.run)? {
        return Ok(Foreseen::Now);
    }
    let Some(first) = newcomer(tx, &work.run)? else {
        return Ok(Foreseen::Nothing);
    };
    let left = first.plus_ms(cx.limits.burst_ms).since(cx.clock.now());
    match u64::try_from(left.as_millis()).unwrap_or(u64::MAX) {
        0 => Ok(Foreseen::Now),
        ms => Ok(Foreseen::InMs(ms)),
    }
}

pub(super) fn stopped(tx: &mut store::Tx<'_>, run: &Run) -> Result<bool> {
    match run.duty {
        None => Ok(false),
        Some(id) => Ok(is_over(store::duty::get(tx, run.owner, id)?.state)),
    }
}

/// Whether nothing is done for a duty in this state.
pub(super) fn is_over(state: DutyState) -> bool {
    match state {
        DutyState::Stopped | DutyState::Closed => true,
        DutyState::Active | DutyState::CloseProposed => false,
    }
}

/// Ends an interrupted run and gives the session back.
pub fn interrupt(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    why: &str,
) -> Result<Recorded> {
    let run = run::get(tx, work.run.id)?;
    let session = session::get(tx, work.lease.session)?;
    let failures = failures_before(cx, tx, &session, &run)?;
    put_back(cx, tx, &run, RunState::Interrupted, why)?;
    session::release(tx, work.lease, tx.now(), failures)?;
    Ok(Recorded::Over)
}

/// Renews the lease while something slow is under way. `Over`: the run was interrupted.
pub fn renew(cx: &Context, tx: &mut OwnerTx<'_, '_>, work: &Work) -> Result<Recorded> {
    session::hold(tx, work.lease, cx.limits.lease_ms)?;
    match interruption(cx, tx, work)? {
        None => Ok(Recorded::Goes),
        Some(why) => interrupt(cx, tx, work, why),
    }
}
