//! Stops: pauses, the user's own word on a hold, and the operator's stop (PRO-17, G-26).

use base::{DutyId, HoldId, PauseId};
use domain::state::{DutyState, HoldState};
use store::device::Device;
use store::{OwnerTx, Result};

use super::Changed;
use crate::{Context, hold};

/// The user pauses a duty, or everything: nothing is done outside for it until they lift it. What they
/// mean needs no model, so every hold ends with it.
pub fn pause(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    duty: Option<DutyId>,
) -> Result<Changed> {
    let owner = tx.owner();
    if let Some(id) = duty
        && store::duty::get(tx, owner, id)?.state == DutyState::Closed
    {
        return Ok(Changed::Conflict("This duty is closed; nothing runs.".into()));
    }
    let pause = hold::pause(cx, tx, device.principal, duty)?;
    if duty.is_none() {
        for held in store::hold::placed(tx, owner)? {
            hold::end(tx, held.id, device.principal, Some(pause))?;
        }
    }
    Ok(Changed::Done)
}

/// The user lifts a pause.
pub fn lift(tx: &mut OwnerTx<'_, '_>, device: &Device, id: PauseId) -> Result<Changed> {
    let pause = store::hold::get_pause(tx, id)?;
    if pause.owner != tx.owner() {
        return Err(store::StoreError::Missing("pause"));
    }
    // Lifted twice is lifted.
    if store::hold::lift(tx, id, device.principal)? {
        // What was released before the pause goes through full admission again (ADM-34).
        store::action::wake(tx)?;
    }
    Ok(Changed::Done)
}

/// The user says that a message of theirs is not a stop.
pub fn release(tx: &mut OwnerTx<'_, '_>, device: &Device, id: HoldId) -> Result<Changed> {
    match placed(tx, id)? {
        HoldState::Placed => {
            hold::end(tx, id, device.principal, None)?;
            Ok(Changed::Done)
        }
        HoldState::Released => Ok(Changed::Done),
        HoldState::Promoted => Ok(Changed::Conflict(
            "This message was taken for a stop already, and a pause stands. Lift the pause.".into(),
        )),
    }
}

/// The user says that a message of theirs is a stop: everything is paused.
pub fn promote(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: HoldId,
) -> Result<Changed> {
    match placed(tx, id)? {
        HoldState::Promoted => Ok(Changed::Done),
        HoldState::Placed | HoldState::Released => {
            let pause = hold::pause(cx, tx, device.principal, None)?;
            hold::end(tx, id, device.principal, Some(pause))?;
            Ok(Changed::Done)
        }
    }
}

fn placed(tx: &mut OwnerTx<'_, '_>, id: HoldId) -> Result<HoldState> {
    let hold = store::hold::get(tx, id)?;
    match hold.owner == tx.owner() {
        true => Ok(hold.state),
        false => Err(store::StoreError::Missing("hold")),
    }
}

/// The operator stops everything of every owner, or lets it go on; inside `Store::operate`, which holds the
/// installation's row before the owner's. `false`: it stood so already.
pub fn system_stop(tx: &mut OwnerTx<'_, '_>, device: &Device, stopped: bool) -> Result<bool> {
    let owner = tx.owner();
    let turned = store::hold::system_stop(tx, stopped)?;
    tx.changed(owner);
    let verb = if stopped { "system_stop" } else { "system_go_on" };
    tx.audit(Some(device.principal), verb, owner, None);
    Ok(turned)
}
