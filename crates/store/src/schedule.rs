//! Schedules: wake-ups that repeat. Each is an authorization and ends with its duty.

use base::{BodyId, DutyId, OwnerId, ScheduleId, SessionId, TaskVersionId, Timestamp};
use domain::schedule::Missed;
use domain::state::ScheduleState;

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// A wake-up that repeats in the owner's zone.
    pub struct Schedule in "schedule" {
        /// Its id.
        pub id: ScheduleId,
        /// Whose.
        pub owner: OwnerId,
        /// For which duty.
        pub duty: DutyId,
        /// By which version of it.
        pub task_version: TaskVersionId,
        /// The lane that it wakes.
        pub session: SessionId,
        /// The rule, as JSON of `domain::schedule::Rule`.
        pub rule: String,
        /// What the agent is told.
        pub prompt: BodyId,
        /// What becomes of slots that were missed.
        pub run_missed: Missed,
        /// A look that decides by program whether anybody is woken: JSON of `domain::draft::Check`.
        pub check_spec: Option<BodyId>,
        /// What the last look read.
        pub check_last: Option<BodyId>,
        /// The next slot.
        pub next_slot: Timestamp,
        /// The last slot that fired.
        pub last_slot: Option<Timestamp>,
        /// Whether it fired late.
        pub last_late: bool,
        /// No slot after this.
        pub until_at: Option<Timestamp>,
        /// Where it stands.
        pub state: ScheduleState,
        /// Since when.
        pub created_at: Timestamp,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

statements! { "schedule":
    INSERT = insert Schedule, "";
    BY_ID = hot select Schedule, "WHERE id = $1";
    DUE = hot "SELECT owner, id FROM schedule WHERE state = 'active' AND next_slot <= $1
        ORDER BY next_slot, id LIMIT $2";
    FIRE = hot "UPDATE schedule SET next_slot = $2, last_slot = $3, last_late = $4
        WHERE id = $1 AND state = 'active' AND next_slot = $5";
    OF_DUTY = hot select Schedule, "WHERE duty = $1 ORDER BY created_at, id";
    MOVE = "UPDATE schedule SET state = $2, next_slot = $3, moved_at = $4 WHERE id = $1";
    REPLAN = "UPDATE schedule SET next_slot = $2 WHERE id = $1 AND state = 'active'";
    READ = hot "UPDATE schedule SET check_last = $2 WHERE id = $1";
    NEXT_DUE = hot "SELECT MIN(next_slot) FROM schedule WHERE state = 'active'";
}

/// Adds a schedule.
pub fn insert(tx: &mut OwnerTx<'_, '_>, schedule: &Schedule) -> Result<()> {
    tx.insert(&INSERT, schedule)?;
    tx.changed(schedule.id);
    Ok(())
}

/// One schedule.
pub fn get(tx: &mut Tx<'_>, id: ScheduleId) -> Result<Schedule> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("schedule"))
}

/// Schedules whose next slot has come.
pub fn due(tx: &mut Tx<'_>, now: Timestamp, limit: i64) -> Result<Vec<(OwnerId, ScheduleId)>> {
    let rows = tx.rows(&DUE, params![now, limit])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

/// Moves to the next slot; `false` if it fired already.
pub fn fire(
    tx: &mut OwnerTx<'_, '_>,
    schedule: &Schedule,
    slot: Timestamp,
    next: Timestamp,
    late: bool,
) -> Result<bool> {
    let values = params![schedule.id, next, slot, late, schedule.next_slot];
    let fired = tx.run(&FIRE, values)? == 1;
    if fired {
        tx.changed(schedule.id);
    }
    Ok(fired)
}

/// A duty's schedules.
pub fn of_duty(tx: &mut Tx<'_>, duty: DutyId) -> Result<Vec<Schedule>> {
    tx.all(&OF_DUTY, params![duty])
}

/// Moves a schedule on, with the next slot that it then has.
pub fn advance(
    tx: &mut OwnerTx<'_, '_>,
    id: ScheduleId,
    to: ScheduleState,
    next_slot: Timestamp,
) -> Result<()> {
    let now = tx.now();
    tx.run(&MOVE, params![id, to, next_slot, now])?;
    tx.changed(id);
    Ok(())
}

/// Gives an active schedule another next slot: the zone changed. It stays where it stands.
pub fn replan(tx: &mut OwnerTx<'_, '_>, id: ScheduleId, next_slot: Timestamp) -> Result<()> {
    if tx.run(&REPLAN, params![id, next_slot])? > 0 {
        tx.changed(id);
    }
    Ok(())
}

/// Remembers what a look read.
pub fn remember(tx: &mut OwnerTx<'_, '_>, id: ScheduleId, answer: BodyId) -> Result<()> {
    tx.run(&READ, params![id, answer]).map(|_| ())
}

/// The first slot of all active schedules, for a clock that jumps.
pub fn next_due(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    tx.row(&NEXT_DUE, params![])?.map_or(Ok(None), |row| row.get(0))
}
