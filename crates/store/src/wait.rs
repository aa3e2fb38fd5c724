//! Waits: registered conditions with one identity and a final end (DEL-10, EVT-06).

use base::{DutyId, EventId, OwnerId, RunId, SessionId, TaskVersionId, Timestamp, WaitId};
use domain::state::WaitState;

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// A registered waiting condition.
    pub struct Wait in "wait" {
        /// Its id.
        pub id: WaitId,
        /// Whose.
        pub owner: OwnerId,
        /// The lane that it wakes.
        pub session: SessionId,
        /// For which duty.
        pub duty: Option<DutyId>,
        /// For which version of it.
        pub task_version: Option<TaskVersionId>,
        /// By which run.
        pub run: RunId,
        /// By which call of that run: a call registers once.
        pub call_id: String,
        /// The event that led to it: what came since may already answer it.
        pub cause_event: Option<EventId>,
        /// What kind of event meets it.
        pub kind: String,
        /// With which key.
        pub key: String,
        /// When it times out.
        pub due_at: Timestamp,
        /// Where it stands.
        pub state: WaitState,
        /// By which event it was met.
        pub satisfied_by: Option<EventId>,
        /// Since when.
        pub created_at: Timestamp,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

statements! { "wait":
    INSERT = insert Wait, "";
    BY_ID = hot select Wait, "WHERE id = $1";
    BY_KEY = hot select Wait, "WHERE owner = $1 AND kind = $2 AND key = $3 AND state = 'open'
        ORDER BY created_at, id";
    MET_BY = hot select Wait, "WHERE satisfied_by = $1 ORDER BY created_at, id";
    ENDED = hot select Wait, "WHERE owner = $1 AND kind = $2 AND key = $3 AND state <> 'open'
        ORDER BY moved_at DESC, id DESC LIMIT 1";
    DUE = hot "SELECT owner, id FROM wait WHERE state = 'open' AND due_at <= $1
        ORDER BY due_at, id LIMIT $2";
    OPEN = hot select Wait, "WHERE session = $1 AND state = 'open' ORDER BY created_at, id LIMIT $2";
    MOVE = hot "UPDATE wait SET state = $2, satisfied_by = $3, moved_at = $4
        WHERE id = $1 AND state = 'open'";
    OF_RUN = hot select Wait, "WHERE run = $1 ORDER BY call_id";
    NEXT_DUE = hot "SELECT MIN(due_at) FROM wait WHERE state = 'open'";
}

/// Registers a wait.
pub fn insert(tx: &mut OwnerTx<'_, '_>, wait: &Wait) -> Result<()> {
    tx.insert(&INSERT, wait)?;
    tx.changed(wait.id);
    Ok(())
}

/// One wait.
pub fn get(tx: &mut Tx<'_>, id: WaitId) -> Result<Wait> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("wait"))
}

/// Open waits for a kind and key.
pub fn by_key(tx: &mut OwnerTx<'_, '_>, kind: &str, key: &str) -> Result<Vec<Wait>> {
    let owner = tx.owner();
    tx.all(&BY_KEY, params![owner, kind, key])
}

/// The waits that an event met, such as those that were born satisfied by it.
pub fn met_by(tx: &mut Tx<'_>, event: EventId) -> Result<Vec<Wait>> {
    tx.all(&MET_BY, params![event])
}

/// The wait for a kind and key that ended last.
pub fn ended(tx: &mut OwnerTx<'_, '_>, kind: &str, key: &str) -> Result<Option<Wait>> {
    let owner = tx.owner();
    tx.one(&ENDED, params![owner, kind, key])
}

/// Open waits whose due time has passed.
pub fn due(tx: &mut Tx<'_>, now: Timestamp, limit: i64) -> Result<Vec<(OwnerId, WaitId)>> {
    let rows = tx.rows(&DUE, params![now, limit])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

/// A session's open waits.
pub fn open(tx: &mut Tx<'_>, session: SessionId, limit: i64) -> Result<Vec<Wait>> {
    tx.all(&OPEN, params![session, limit])
}

/// The waits that a run registered, whatever became of them.
pub fn of_run(tx: &mut Tx<'_>, run: RunId) -> Result<Vec<Wait>> {
    tx.all(&OF_RUN, params![run])
}

/// Ends an open wait; `false` if it had ended already.
pub fn end(
    tx: &mut OwnerTx<'_, '_>,
    id: WaitId,
    to: WaitState,
    by: Option<EventId>,
) -> Result<bool> {
    let now = tx.now();
    let ended = tx.run(&MOVE, params![id, to, by, now])? == 1;
    if ended {
        tx.changed(id);
    }
    Ok(ended)
}

/// The first due time of all open waits, for a clock that jumps.
pub fn next_due(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    tx.row(&NEXT_DUE, params![])?.map_or(Ok(None), |row| row.get(0))
}
