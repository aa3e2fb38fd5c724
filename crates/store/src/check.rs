//! Checks: looks that a program takes for a schedule before anybody is woken.

use base::{BodyId, CheckId, OwnerId, ScheduleId, Timestamp};
use domain::state::CheckState;

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// One look.
    pub struct CheckRun in "check_run" {
        /// Its id.
        pub id: CheckId,
        /// Whose.
        pub owner: OwnerId,
        /// For which schedule.
        pub schedule: ScheduleId,
        /// For which slot.
        pub slot: Timestamp,
        /// Whether the slot fired late.
        pub late: bool,
        /// Earlier slots that it stands for.
        pub missed: u32,
        /// Where it stands.
        pub state: CheckState,
        /// Looks that failed.
        pub attempts: u32,
        /// What was read, or why nothing could be.
        pub answer: Option<BodyId>,
        /// When it came due.
        pub created_at: Timestamp,
        /// When its state last moved, or when it was last tried.
        pub moved_at: Timestamp,
    }
}

statements! { "check":
    INSERT = insert CheckRun, "ON CONFLICT (schedule, slot) DO NOTHING";
    BY_ID = hot select CheckRun, "WHERE id = $1";
    DUE = hot "SELECT owner, id FROM check_run WHERE state = 'due' AND moved_at <= $1
        ORDER BY moved_at, id LIMIT $2";
    OF_SCHEDULE = hot select CheckRun, "WHERE schedule = $1 ORDER BY slot DESC LIMIT $2";
    TRIED = hot "UPDATE check_run SET attempts = attempts + 1, moved_at = $2
        WHERE id = $1 AND state = 'due'";
    END = hot "UPDATE check_run SET state = $2, answer = $3, moved_at = $4
        WHERE id = $1 AND state = 'due'";
    NEXT_DUE = hot "SELECT MIN(moved_at) FROM check_run WHERE state = 'due'";
}

/// Adds a look, once per slot.
pub fn insert(tx: &mut OwnerTx<'_, '_>, check: &CheckRun) -> Result<()> {
    if tx.insert(&INSERT, check)? {
        tx.changed(check.id);
    }
    Ok(())
}

/// One look.
pub fn get(tx: &mut Tx<'_>, id: CheckId) -> Result<CheckRun> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("check"))
}

/// Looks to take, oldest first. One that failed is due again at its `moved_at`.
pub fn due(tx: &mut Tx<'_>, now: Timestamp, limit: i64) -> Result<Vec<(OwnerId, CheckId)>> {
    let rows = tx.rows(&DUE, params![now, limit])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

/// A schedule's last looks, newest first.
pub fn of_schedule(tx: &mut Tx<'_>, id: ScheduleId, limit: i64) -> Result<Vec<CheckRun>> {
    tx.all(&OF_SCHEDULE, params![id, limit])
}

/// A look that failed and is tried again at `next`.
pub fn tried(tx: &mut OwnerTx<'_, '_>, id: CheckId, next: Timestamp) -> Result<()> {
    if tx.run(&TRIED, params![id, next])? == 1 {
        tx.changed(id);
    }
    Ok(())
}

/// Ends a look; `false` if it had ended.
pub fn end(
    tx: &mut OwnerTx<'_, '_>,
    id: CheckId,
    to: CheckState,
    answer: Option<BodyId>,
) -> Result<bool> {
    let now = tx.now();
    let ended = tx.run(&END, params![id, to, answer, now])? == 1;
    if ended {
        tx.changed(id);
    }
    Ok(ended)
}

/// When the next look is due, for a clock that jumps.
pub fn next_due(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    tx.row(&NEXT_DUE, params![])?.map_or(Ok(None), |row| row.get(0))
}
