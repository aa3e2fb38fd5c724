//! Control: what only the user can do (DEL-07, DEL-14). No model has a handle to anything here.

use base::{DeviceId, Digest, DutyId, MicroUsd, ProposalId};
use domain::draft::Draft;
use domain::event::{EventKind, Trust};
use domain::schedule::{Rule, zone};
use domain::state::{DutyState, ProposalState, ScheduleState, TaskVersionState, WaitState};
use store::device::Device;
use store::duty::{Duty, TaskVersion};
use store::event::NewBody;
use store::proposal::{Proposal, ProposalKind};
use store::schedule::Schedule;
use store::session::SessionKind;
use store::{OwnerTx, Result, StoreError};

use crate::intake::{Incoming, accept};
use crate::notice::MONTH_FAULT;
use crate::setup::{self, Offer, session};
use crate::{Context, assemble};

/// What came of a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// As the user wished; this is the proposal now.
    Done(Box<Proposal>),
    /// Not possible any more, with what happened instead.
    Conflict(String),
}

/// The user says yes to exactly what was shown.
pub fn confirm(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: ProposalId,
    shown: Digest,
) -> Result<Decided> {
    let proposal = match open(tx, id)? {
        Ok(proposal) => proposal,
        Err(conflict) => return Ok(conflict),
    };
    if proposal.digest != shown {
        return Ok(Decided::Conflict(
            "This is not what was shown to you. Open the card again and decide on what it says now."
                .into(),
        ));
    }
    let by = Some((device.principal, device.id));
    store::proposal::end(tx, &proposal, ProposalState::Confirmed, by)?;
    match (proposal.kind, proposal.duty) {
        (ProposalKind::CloseDuty, Some(duty)) => close(tx, device, duty)?,
        (ProposalKind::NewDuty, _) | (ProposalKind::CloseDuty, None) => {
            start(cx, tx, device, &proposal)?;
        }
    }
    decided(cx, tx, &proposal)
}

/// The user says no.
pub fn decline(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: ProposalId,
) -> Result<Decided> {
    let owner = tx.owner();
    let proposal = match open(tx, id)? {
        Ok(proposal) => proposal,
        Err(conflict) => return Ok(conflict),
    };
    let by = Some((device.principal, device.id));
    store::proposal::end(tx, &proposal, ProposalState::Declined, by)?;
    if let Some(duty) = proposal.duty {
        let duty = store::duty::get(tx, owner, duty)?;
        if duty.state == DutyState::CloseProposed {
            store::duty::advance(tx, &duty, DutyState::Active, Some(device.principal))?;
        }
    }
    decided(cx, tx, &proposal)
}

/// The proposal, if it can still be decided; expiry is a comparison here, not a timer's word.
fn open(
    tx: &mut OwnerTx<'_, '_>,
    id: ProposalId,
) -> Result<std::result::Result<Proposal, Decided>> {
    let owner = tx.owner();
    let proposal = store::proposal::get(tx, owner, id)?;
    let over = proposal.expires_at <= tx.now();
    let conflict = match proposal.state {
        ProposalState::Open if !over => return Ok(Ok(proposal)),
        ProposalState::Open | ProposalState::Expired => {
            "The time for this decision has passed. Nothing was changed."
        }
        ProposalState::Confirmed => "You have confirmed this already.",
        ProposalState::Declined => "You have declined this already. Nothing was changed.",
        ProposalState::Withdrawn => "This no longer applies. Nothing was changed.",
    };
    Ok(Err(Decided::Conflict(conflict.into())))
}

/// Tells whoever waits for the decision.
fn decided(cx: &Context, tx: &mut OwnerTx<'_, '_>, proposal: &Proposal) -> Result<Decided> {
    let owner = tx.owner();
    let now = store::proposal::get(tx, owner, proposal.id)?;
    let source = store::owner::locked(tx)?.timer_source;
    let incoming = Incoming {
        source,
        external_id: format!("proposal:{}", proposal.id),
        kind: EventKind::ProposalDecided,
        key: Some(proposal.id.to_string()),
        trust: Trust::System,
        content: format!("proposal {}: {} by the user", proposal.id, now.state).into_bytes(),
        media: "text/plain; charset=utf-8",
        provenance: format!("proposal:{}", proposal.id),
        session: None,
        duty: None,
        late: false,
    };
    accept(cx, tx, incoming)?;
    Ok(Decided::Done(Box::new(now)))
}

/// Turns a confirmed draft into a duty with its first version, its lane and its schedules.
fn start(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    proposal: &Proposal,
) -> Result<()> {
    let corrupt = |e: String| StoreError::Corrupt(format!("proposal {}: {e}", proposal.id));
    let bytes = store::event::body(tx, proposal.content)?.unwrap_or_default();
    let draft: Draft = serde_json::from_slice(&bytes).map_err(|e| corrupt(e.to_string()))?;
    let until_at = draft.until_at().map_err(|e| corrupt(e.to_string()))?;
    let (owner, now) = (tx.owner(), tx.now());
    let lane = session(cx.id(), owner, SessionKind::Duty, now);
    let duty = Duty {
        id: cx.id(),
        owner,
        agent: lane.agent.clone(),
        session: lane.id,
        state: DutyState::Active,
        proposal: proposal.id,
        created_at: now,
        moved_at: now,
    };
    let version = TaskVersion {
        id: cx.id(),
        owner,
        duty: duty.id,
        n: 1,
        state: TaskVersionState::Current,
        content: proposal.content,
        digest: proposal.digest,
        conditions: u32::try_from(draft.conditions.len()).unwrap_or(u32::MAX),
        until_at,
        confirmed_by: device.principal,
        created_at: now,
        moved_at: now,
    };
    store::session::insert(tx, &lane)?;
    store::duty::insert(tx, &duty, &version)?;
    for wakeup in &draft.schedules {
        let zone = zone(&store::owner::get(tx, owner)?.zone).map_err(|e| corrupt(e.to_string()))?;
        let next_slot = wakeup.rule.next_after(&zone, now).map_err(|e| corrupt(e.to_string()))?;
        let prompt = NewBody {
            id: cx.id(),
            bytes: wakeup.prompt.as_bytes().to_vec(),
            media: "text/plain; charset=utf-8",
            provenance: format!("proposal:{}", proposal.id),
            trust: Trust::User,
        };
        let schedule = Schedule {
            id: cx.id(),
            owner,
            duty: duty.id,
            task_version: version.id,
            session: lane.id,
            rule: serde_json::to_string(&wakeup.rule).map_err(|e| corrupt(e.to_string()))?,
            prompt: prompt.id,
            next_slot,
            last_slot: None,
            last_late: false,
            until_at,
            state: ScheduleState::Active,
            created_at: now,
            moved_at: now,
        };
        store::event::put_body(tx, prompt)?;
        store::schedule::insert(tx, &schedule)?;
    }
    Ok(())
}

/// Ends a duty for good: its version, its schedules, its waits.
fn close(tx: &mut OwnerTx<'_, '_>, device: &Device, id: DutyId) -> Result<()> {
    let owner = tx.owner();
    let duty = store::duty::get(tx, owner, id)?;
    store::duty::advance(tx, &duty, DutyState::Closed, Some(device.principal))?;
    let version = store::duty::version(tx, id)?;
    store::duty::advance_version(tx, version.id, TaskVersionState::Ended)?;
    end_wakeups(tx, &duty, ScheduleState::Closed)
}

fn end_wakeups(tx: &mut OwnerTx<'_, '_>, duty: &Duty, to: ScheduleState) -> Result<()> {
    for schedule in store::schedule::of_duty(tx, duty.id)? {
        if matches!(schedule.state, ScheduleState::Active | ScheduleState::Paused) {
            store::schedule::advance(tx, schedule.id, to, schedule.next_slot)?;
        }
    }
    for wait in store::wait::open(tx, duty.session, i64::MAX)? {
        store::wait::end(tx, wait.id, WaitState::Cancelled, None)?;
    }
    Ok(())
}

/// What came of stopping or resuming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// As the user wished.
    Done,
    /// Not possible, and why.
    Conflict(String),
}

/// The user stops a duty: it wakes no more, and a run of it ends at its next step.
pub fn stop(tx: &mut OwnerTx<'_, '_>, device: &Device, id: DutyId) -> Result<Changed> {
    let owner = tx.owner();
    let duty = store::duty::get(tx, owner, id)?;
    match duty.state {
        DutyState::Stopped => Ok(Changed::Done),
        DutyState::Closed => Ok(Changed::Conflict("This duty is closed; nothing runs.".into())),
        DutyState::Active | DutyState::CloseProposed => {
            store::duty::advance(tx, &duty, DutyState::Stopped, Some(device.principal))?;
            if let Some(closing) = store::proposal::closing(tx, id)? {
                store::proposal::end(tx, &closing, ProposalState::Withdrawn, None)?;
            }
            end_wakeups(tx, &duty, ScheduleState::Paused)?;
            Ok(Changed::Done)
        }
    }
}

/// The user lets a stopped duty go on, from its next slot after now.
pub fn resume(tx: &mut OwnerTx<'_, '_>, device: &Device, id: DutyId) -> Result<Changed> {
    let owner = tx.owner();
    let duty = store::duty::get(tx, owner, id)?;
    match duty.state {
        DutyState::Active | DutyState::CloseProposed => Ok(Changed::Done),
        DutyState::Closed => Ok(Changed::Conflict(
            "This duty is closed. Ask for a new one; the old one stays readable.".into(),
        )),
        DutyState::Stopped => {
            store::duty::advance(tx, &duty, DutyState::Active, Some(device.principal))?;
            let corrupt = |e: String| StoreError::Corrupt(e);
            let zone = zone(&store::owner::locked(tx)?.zone).map_err(|e| corrupt(e.to_string()))?;
            for schedule in store::schedule::of_duty(tx, id)? {
                if schedule.state == ScheduleState::Paused {
                    let rule: Rule =
                        serde_json::from_str(&schedule.rule).map_err(|e| corrupt(e.to_string()))?;
                    let next =
                        rule.next_after(&zone, tx.now()).map_err(|e| corrupt(e.to_string()))?;
                    store::schedule::advance(tx, schedule.id, ScheduleState::Active, next)?;
                }
            }
            Ok(Changed::Done)
        }
    }
}

/// What the user may set for themselves (DESIGN 8). `None` leaves it as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Settings {
    /// How the agent addresses them.
    pub name: Option<String>,
    /// IANA zone of schedules, months and shown times.
    pub zone: Option<String>,
    /// What the models may cost in a calendar month. Zero allows only what costs nothing.
    pub month_cap: Option<MicroUsd>,
}

/// The user sets their name, zone or cap. What waited for a higher cap goes on at once; schedules in
/// force get their next slot in the new zone, counted from now.
pub fn settings(tx: &mut OwnerTx<'_, '_>, device: &Device, wish: &Settings) -> Result<Changed> {
    let owner = store::owner::locked(tx)?;
    let name = wish.name.as_ref().unwrap_or(&owner.name);
    let place = wish.zone.as_ref().unwrap_or(&owner.zone);
    let cap = wish.month_cap.unwrap_or(owner.month_cap_micro_usd);
    let zone = match zone(place) {
        Ok(zone) => zone,
        Err(error) => return Ok(Changed::Conflict(error.to_string())),
    };
    if cap < MicroUsd(0) {
        return Ok(Changed::Conflict("A cap cannot be below zero; name another amount.".into()));
    }
    let moved = *place != owner.zone;
    if moved || *name != owner.name {
        store::owner::rename(tx, name, place)?;
    }
    if moved {
        replan(tx, &zone)?;
    }
    if cap != owner.month_cap_micro_usd {
        store::owner::set_cap(tx, cap)?;
    }
    // Without the names: the audit chain holds digests only.
    let digest = Digest::of_parts([name.as_bytes(), place.as_bytes(), &cap.0.to_be_bytes()]);
    tx.audit(Some(device.principal), "settings", owner.id, Some(digest));
    lift(tx)?;
    Ok(Changed::Done)
}

/// Gives every schedule in force its next slot in this zone. A slot that has come already is left to
/// the timer, else it would be lost.
fn replan(tx: &mut OwnerTx<'_, '_>, zone: &jiff::tz::TimeZone) -> Result<()> {
    let (owner, now) = (tx.owner(), tx.now());
    for duty in store::duty::all(tx, owner, i64::MAX)? {
        for schedule in store::schedule::of_duty(tx, duty.id)? {
            if schedule.state != ScheduleState::Active || schedule.next_slot <= now {
                continue;
            }
            let corrupt = |e: String| StoreError::Corrupt(format!("schedule {}: {e}", schedule.id));
            let rule: Rule =
                serde_json::from_str(&schedule.rule).map_err(|e| corrupt(e.to_string()))?;
            let next = rule.next_after(zone, now).map_err(|e| corrupt(e.to_string()))?;
            store::schedule::replan(tx, schedule.id, next)?;
        }
    }
    Ok(())
}

/// Ends what a month's cap held back, if it is not reached any more.
fn lift(tx: &mut OwnerTx<'_, '_>) -> Result<()> {
    let owner = store::owner::locked(tx)?;
    let month = assemble::month(&owner, tx.now())?;
    if assemble::is_capped(&owner, store::ledger::month(tx, owner.id, &month)?.micro_usd) {
        return Ok(());
    }
    let open = store::fault::all_open(tx, owner.id)?;
    let held = open.iter().filter(|fault| fault.key.starts_with(MONTH_FAULT));
    let mut any = false;
    for fault in held {
        store::fault::close(tx, &fault.key)?;
        any = true;
    }
    if any { store::session::wake_all(tx) } else { Ok(()) }
}

/// The user asks for a code with which one more device of theirs can be paired.
pub fn offer_code(cx: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device) -> Result<Offer> {
    // The code is a secret of few bits, so not even its digest is kept in the chain.
    tx.audit(Some(device.principal), "offer", device.id, None);
    setup::offer_code(cx, tx)
}

/// The user ends the access of one of their devices, which may be the one that asks.
pub fn revoke(tx: &mut OwnerTx<'_, '_>, device: &Device, id: DeviceId) -> Result<Device> {
    let owner = tx.owner();
    store::device::get(tx, owner, id)?;
    store::device::revoke(tx, id, Some(device.principal))?;
    store::device::get(tx, owner, id)
}
