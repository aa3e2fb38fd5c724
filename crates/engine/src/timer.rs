//! Timer: turns schedules, waits and proposals whose time has come into events and ends.
//!
//! A slot's event has the external id `schedule:<id>:<slot>`, so it exists once; the next slot is
//! computed from the slot. After an outage all passed slots collapse to one late catch-up.

use base::{ProposalId, ScheduleId, Timestamp, WaitId};
use domain::event::{EventKind, Trust};
use domain::schedule::{Due, Rule, due, local_words, zone};
use domain::state::{CheckState, DutyState, ProposalState, ScheduleState, WaitState};
use store::check::CheckRun;
use store::proposal::ProposalKind;
use store::schedule::Schedule;
use store::{OwnerTx, Result, StoreError};

use crate::intake::{Content, Incoming, accept};
use crate::pump::each;
use crate::{Context, notice, router};

const BATCH: i64 = 64;

/// Fires what is due. `true`: there may be more.
pub async fn pass(cx: &Context) -> Result<bool> {
    let now = cx.clock.now();
    let (schedules, waits, proposals) = cx
        .store
        .read(move |tx| {
            Ok((
                store::schedule::due(tx, now, BATCH)?,
                store::wait::due(tx, now, BATCH)?,
                store::proposal::due(tx, now, BATCH)?,
            ))
        })
        .await?;
    let most = schedules.len().max(waits.len()).max(proposals.len());
    // One that cannot be read leaves all others their time.
    let fired =
        each(schedules, |(owner, id)| cx.write(owner, move |cx, tx| fire(cx, tx, id))).await;
    let met = each(waits, |(owner, id)| cx.write(owner, move |cx, tx| time_out(cx, tx, id))).await;
    let over =
        each(proposals, |(owner, id)| cx.write(owner, move |cx, tx| expire(cx, tx, id))).await;
    fired.and(met).and(over)?;
    Ok(most as i64 == BATCH)
}

/// Fires one schedule, if it is due now.
pub fn fire(cx: &Context, tx: &mut OwnerTx<'_, '_>, id: ScheduleId) -> Result<()> {
    let schedule = store::schedule::get(tx, id)?;
    if schedule.state != ScheduleState::Active {
        return Ok(());
    }
    let owner = store::owner::locked(tx)?;
    let unreadable = |e: String| StoreError::Corrupt(format!("schedule {id}: {e}"));
    let rule: Rule = serde_json::from_str(&schedule.rule).map_err(|e| unreadable(e.to_string()))?;
    let zone = zone(&owner.zone).map_err(|e| unreadable(e.to_string()))?;
    // No slot lies past the schedule's end, also when nobody looked until after it.
    let now = tx.now();
    let end = schedule.until_at.map_or(now, |until| until.min(now));
    let due = due(&rule, &zone, schedule.next_slot, end).map_err(|e| unreadable(e.to_string()))?;
    let Some(mut due) = due else {
        if schedule.until_at.is_some_and(|until| schedule.next_slot > until) {
            store::schedule::advance(tx, id, ScheduleState::Expired, schedule.next_slot)?;
        }
        return Ok(());
    };
    due.late |= due.slot.plus_ms(domain::schedule::LATE_AFTER_MS) < now;
    if store::schedule::fire(tx, &schedule, due.slot, due.next, due.late)? {
        slot(cx, tx, &schedule, &due)?;
    }
    if schedule.until_at.is_some_and(|until| due.next > until) {
        store::schedule::advance(tx, id, ScheduleState::Expired, due.next)?;
    }
    Ok(())
}

/// A slot that has come: recorded alone, looked at by a program first, or told to the agent.
fn slot(cx: &Context, tx: &mut OwnerTx<'_, '_>, schedule: &Schedule, due: &Due) -> Result<()> {
    if !due.wakes(schedule.run_missed, tx.now()) {
        tracing::info!(schedule = %schedule.id, "a late slot is skipped, as its owner wishes");
        return Ok(());
    }
    if schedule.check_spec.is_none() {
        return announce(cx, tx, schedule, due, "");
    }
    let check = CheckRun {
        id: cx.id(),
        owner: tx.owner(),
        schedule: schedule.id,
        slot: due.slot,
        late: due.late,
        missed: due.missed,
        state: CheckState::Due,
        attempts: 0,
        answer: None,
        created_at: tx.now(),
        moved_at: tx.now(),
    };
    store::check::insert(tx, &check)
}

/// Wakes the schedule's lane for a slot, once. `seen`: what a program saw when it looked first.
pub(crate) fn announce(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    schedule: &Schedule,
    due: &Due,
    seen: &str,
) -> Result<()> {
    let owner = store::owner::locked(tx)?;
    let zone = zone(&owner.zone).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let slot_words = local_words(&zone, due.slot);
    let prompt = store::event::body_text(tx, schedule.prompt)?;
    let missed = match due.missed {
        0 => String::new(),
        1.. => format!(" (stands for {} earlier ones that were missed)", due.missed_words()),
    };
    let text = format!("slot {slot_words}{missed}: {prompt}{seen}");
    let incoming = Incoming {
        source: owner.timer_source,
        external_id: format!("schedule:{}:{}", schedule.id, due.slot.micros()),
        kind: EventKind::ScheduleDue,
        key: None,
        topic: None,
        trust: Trust::System,
        content: Content::text(text, format!("schedule:{}", schedule.id)),
        links: Vec::new(),
        session: Some(schedule.session),
        duty: Some(schedule.duty),
        late: due.late,
    };
    accept(cx, tx, incoming).map(|_| ())
}

/// Ends one wait whose due time has passed. An answer that has come and that the router has not got to
/// is an answer all the same, so it is routed first and the wait is met (EVT-06).
pub fn time_out(cx: &Context, tx: &mut OwnerTx<'_, '_>, id: WaitId) -> Result<()> {
    let wait = store::wait::get(tx, id)?;
    if wait.due_at > tx.now() || wait.state != WaitState::Open {
        return Ok(());
    }
    if let Some(answer) = store::work_item::unrouted_for(tx, &wait.kind, &wait.key)? {
        router::route(cx, tx, answer)?;
    }
    if !store::wait::end(tx, id, WaitState::TimedOut, None)? {
        return Ok(());
    }
    let owner = store::owner::locked(tx)?;
    let late = wait.due_at.plus_ms(domain::schedule::LATE_AFTER_MS) < tx.now();
    let incoming = Incoming {
        source: owner.timer_source,
        external_id: format!("wait:{id}"),
        kind: EventKind::WaitTimedOut,
        key: None,
        topic: None,
        trust: Trust::System,
        content: Content::text(
            format!("{} \"{}\" did not come by {}", wait.kind, wait.key, wait.due_at),
            format!("wait:{id}"),
        ),
        links: Vec::new(),
        session: Some(wait.session),
        duty: wait.duty,
        late,
    };
    accept(cx, tx, incoming).map(|_| ())
}

/// Ends one proposal that nobody decided in time. Silence is not a no.
pub fn expire(cx: &Context, tx: &mut OwnerTx<'_, '_>, id: ProposalId) -> Result<()> {
    let owner = tx.owner();
    let proposal = store::proposal::get(tx, owner, id)?;
    let over: Timestamp = proposal.expires_at;
    if over > tx.now() || !store::proposal::end(tx, &proposal, ProposalState::Expired, None)? {
        return Ok(());
    }
    if let (ProposalKind::CloseDuty, Some(duty)) = (proposal.kind, proposal.duty) {
        let duty = store::duty::get(tx, owner, duty)?;
        if duty.state == DutyState::CloseProposed {
            store::duty::advance(tx, &duty, DutyState::Active, None)?;
        }
    }
    notice::expired(cx, tx, &proposal)
}
