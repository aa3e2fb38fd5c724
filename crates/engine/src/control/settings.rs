//! What the user sets for themselves.

use base::{Digest, MicroUsd};
use domain::event::Dial;
use domain::schedule::{Rule, zone};
use domain::state::ScheduleState;
use domain::words::Language;
use store::device::Device;
use store::{OwnerTx, Result, StoreError};

use super::Changed;
use crate::assemble;
use crate::notice::MONTH_FAULT;

/// What the user may set for themselves (DESIGN 8). `None` leaves it as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Settings {
    /// How the agent addresses them.
    pub name: Option<String>,
    /// IANA zone of schedules, months and shown times.
    pub zone: Option<String>,
    /// What the models may cost in a calendar month. Zero allows only what costs nothing.
    pub month_cap: Option<MicroUsd>,
    /// How far the agent goes by itself where no duty asks for it.
    pub dial: Option<Dial>,
    /// In which language the server speaks to them.
    pub language: Option<Language>,
}

/// The user sets their name, zone, cap, dial or language. What waited for a higher cap goes on at once; schedules in
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
    let dial = wish.dial.unwrap_or(owner.dial);
    if dial != owner.dial {
        store::owner::set_dial(tx, dial)?;
    }
    let language = wish.language.unwrap_or_else(|| owner.language());
    if wish.language.is_some_and(|wanted| owner.language != Some(wanted)) {
        store::owner::set_language(tx, language)?;
    }
    // Without the names: the audit chain holds digests only.
    let cap_bytes = cap.0.to_be_bytes();
    let words = [dial.word().as_bytes(), language.word().as_bytes()];
    let digest =
        Digest::of_parts([name.as_bytes(), place.as_bytes(), &cap_bytes, words[0], words[1]]);
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
