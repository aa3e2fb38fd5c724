//! A duty's end, stop and resumption: with it go its schedules, subscriptions and waits (PRO-14).

use base::DutyId;
use domain::schedule::Rule;
use domain::state::{
    ActionState, DutyState, ProposalState, ScheduleState, SubscriptionState, TaskVersionState,
    WaitState,
};
use store::device::Device;
use store::duty::Duty;
use store::{OwnerTx, Result, StoreError};

use super::actions::drop_unsent;
use super::{Changed, zone_of};
use crate::Context;

/// Ends a duty for good: its version, its schedules, its waits.
pub(super) fn close(tx: &mut OwnerTx<'_, '_>, device: &Device, id: DutyId) -> Result<()> {
    let owner = tx.owner();
    let duty = store::duty::get(tx, owner, id)?;
    store::duty::advance(tx, &duty, DutyState::Closed, Some(device.principal))?;
    let version = store::duty::version(tx, id)?;
    store::duty::advance_version(tx, version.id, TaskVersionState::Ended)?;
    for grant in store::grant::active(tx, id)? {
        store::grant::end(tx, grant.id, Some(device.principal))?;
    }
    // A pause of what is over would be shown for ever.
    for pause in store::hold::pauses(tx, owner)? {
        if pause.duty == Some(id) {
            store::hold::lift(tx, pause.id, device.principal)?;
        }
    }
    end_waits(tx, &duty)?;
    end_wakeups(tx, &duty, ScheduleState::Closed)
}

/// Ends or pauses what wakes a duty. Its waits end with it, but not with one of its versions.
pub(super) fn end_wakeups(tx: &mut OwnerTx<'_, '_>, duty: &Duty, to: ScheduleState) -> Result<()> {
    for schedule in store::schedule::of_duty(tx, duty.id)? {
        if matches!(schedule.state, ScheduleState::Active | ScheduleState::Paused) {
            store::schedule::advance(tx, schedule.id, to, schedule.next_slot)?;
        }
    }
    let heard = match to {
        ScheduleState::Paused => SubscriptionState::Paused,
        ScheduleState::Active | ScheduleState::Closed | ScheduleState::Expired => {
            SubscriptionState::Closed
        }
    };
    for subscription in store::subscription::of_duty(tx, duty.id)? {
        if matches!(subscription.state, SubscriptionState::Active | SubscriptionState::Paused) {
            store::subscription::advance(tx, subscription.id, heard)?;
        }
    }
    Ok(())
}

fn end_waits(tx: &mut OwnerTx<'_, '_>, duty: &Duty) -> Result<()> {
    for wait in store::wait::open(tx, duty.session, i64::MAX)? {
        store::wait::end(tx, wait.id, WaitState::Cancelled, None)?;
    }
    Ok(())
}

/// The user stops a duty: it wakes no more, a run of it ends at its next step, and nothing of it that has not
/// been sent will be.
pub fn stop(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: DutyId,
) -> Result<Changed> {
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
            let (why, by) = ("its duty was stopped", Some(device.principal));
            drop_unsent(cx, tx, duty.session, ActionState::Withdrawn, why, by)?;
            end_waits(tx, &duty)?;
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
            let zone = zone_of(tx)?;
            for schedule in store::schedule::of_duty(tx, id)? {
                if schedule.state == ScheduleState::Paused {
                    let rule: Rule =
                        serde_json::from_str(&schedule.rule).map_err(|e| corrupt(e.to_string()))?;
                    let next =
                        rule.next_after(&zone, tx.now()).map_err(|e| corrupt(e.to_string()))?;
                    store::schedule::advance(tx, schedule.id, ScheduleState::Active, next)?;
                }
            }
            for subscription in store::subscription::of_duty(tx, id)? {
                if subscription.state == SubscriptionState::Paused {
                    let to = SubscriptionState::Active;
                    store::subscription::advance(tx, subscription.id, to)?;
                }
            }
            Ok(Changed::Done)
        }
    }
}
