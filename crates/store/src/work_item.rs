//! Work items: what a session still has to look at, from acceptance to a handled or failed end.

use base::{EventId, OwnerId, RunId, SessionId, Timestamp, WorkItemId};
use domain::event::Class;
use domain::state::WorkItemState;

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// One thing to look at. It belongs to exactly one event.
    pub struct WorkItem in "work_item" {
        /// Its id.
        pub id: WorkItemId,
        /// Whose.
        pub owner: OwnerId,
        /// The event.
        pub event: EventId,
        /// Where it was routed.
        pub session: Option<SessionId>,
        /// Its place in the queue.
        pub class: Option<Class>,
        /// Where it stands.
        pub state: WorkItemState,
        /// Fruitless runs.
        pub attempts: u32,
        /// The run that holds it, or handled it.
        pub run: Option<RunId>,
        /// Received.
        pub created_at: Timestamp,
        /// Delivered into a run.
        pub delivered_at: Option<Timestamp>,
        /// Read by the model.
        pub read_at: Option<Timestamp>,
        /// Handled, recorded or given up.
        pub done_at: Option<Timestamp>,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

statements! { "work_item":
    INSERT = hot insert WorkItem, "";
    BY_EVENT = hot select WorkItem, "WHERE event = $1";
    UNROUTED = hot "SELECT owner, id FROM work_item WHERE state = 'unrouted'
        ORDER BY created_at, id LIMIT $1";
    BY_ID = hot select WorkItem, "WHERE id = $1";
    ENQUEUE = hot "UPDATE work_item SET session = $2, class = $3, state = 'pending', moved_at = $4
        WHERE id = $1 AND state = 'unrouted'";
    PENDING = hot select WorkItem, "WHERE session = $1 AND state = 'pending'
        ORDER BY created_at, id LIMIT $2";
    FIRST_USER = hot "SELECT MIN(created_at) FROM work_item
        WHERE session = $1 AND state = 'pending' AND class = 'user' AND created_at > $2";
    CLAIM = hot "UPDATE work_item SET state = 'claimed', run = $2, delivered_at = $3, moved_at = $3
        WHERE id = $1 AND state = 'pending'";
    CLAIMED = hot select WorkItem, "WHERE run = $1 AND state = 'claimed' ORDER BY created_at, id";
    READ = hot "UPDATE work_item SET read_at = $2
        WHERE run = $1 AND state = 'claimed' AND read_at IS NULL RETURNING event";
    DONE = hot "UPDATE work_item SET state = 'done', done_at = $2, moved_at = $2 WHERE id = $1";
    BACK = hot "UPDATE work_item SET state = 'pending', run = NULL, attempts = $2, moved_at = $3
        WHERE id = $1 AND state = 'claimed'";
    COUNT = hot "UPDATE work_item SET attempts = $2 WHERE id = $1";
    FAIL = "UPDATE work_item SET state = 'failed', done_at = $2, moved_at = $2
        WHERE id = $1 AND state = 'pending'";
}

/// Adds an item.
pub fn insert(tx: &mut OwnerTx<'_, '_>, item: &WorkItem) -> Result<()> {
    tx.insert(&INSERT, item)?;
    tx.changed(item.id);
    Ok(())
}

/// The item of an event.
pub fn of_event(tx: &mut Tx<'_>, event: EventId) -> Result<Option<WorkItem>> {
    tx.one(&BY_EVENT, params![event])
}

/// One item.
pub fn get(tx: &mut Tx<'_>, id: WorkItemId) -> Result<WorkItem> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("work item"))
}

/// Items that nobody has routed, oldest first.
pub fn unrouted(tx: &mut Tx<'_>, limit: i64) -> Result<Vec<(OwnerId, WorkItemId)>> {
    let rows = tx.rows(&UNROUTED, params![limit])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

/// Puts an item into a session's queue. `false`: somebody else did.
pub fn enqueue(
    tx: &mut OwnerTx<'_, '_>,
    id: WorkItemId,
    session: SessionId,
    class: Class,
) -> Result<bool> {
    let now = tx.now();
    let moved = tx.run(&ENQUEUE, params![id, session, class, now])? == 1;
    if moved {
        tx.changed(id);
    }
    Ok(moved)
}

/// A session's queue, in order of arrival.
pub fn pending(tx: &mut Tx<'_>, session: SessionId, limit: i64) -> Result<Vec<WorkItem>> {
    tx.all(&PENDING, params![session, limit])
}

/// When the first waiting message of a person came that is later than `after`.
pub fn first_user(
    tx: &mut Tx<'_>,
    session: SessionId,
    after: Timestamp,
) -> Result<Option<Timestamp>> {
    tx.row(&FIRST_USER, params![session, after])?.map_or(Ok(None), |row| row.get(0))
}

/// Takes an item into a run.
pub fn claim(tx: &mut OwnerTx<'_, '_>, item: &WorkItem, run: RunId) -> Result<()> {
    let now = tx.now();
    tx.changed(item.event);
    match tx.run(&CLAIM, params![item.id, run, now])? {
        1 => Ok(()),
        _ => Err(StoreError::Missing("pending work item")),
    }
}

/// The items that a run holds.
pub fn claimed(tx: &mut Tx<'_>, run: RunId) -> Result<Vec<WorkItem>> {
    tx.all(&CLAIMED, params![run])
}

/// The model has read the run's input.
pub fn read(tx: &mut OwnerTx<'_, '_>, run: RunId) -> Result<()> {
    let now = tx.now();
    for row in tx.rows(&READ, params![run, now])? {
        tx.mark_written();
        tx.changed(row.get::<EventId>(0)?);
    }
    Ok(())
}

/// Handled.
pub fn done(tx: &mut OwnerTx<'_, '_>, item: &WorkItem) -> Result<()> {
    let now = tx.now();
    tx.run(&DONE, params![item.id, now])?;
    tx.changed(item.event);
    Ok(())
}

/// Back into the queue, with the new count of fruitless runs.
pub fn back(tx: &mut OwnerTx<'_, '_>, item: &WorkItem, attempts: u32) -> Result<()> {
    let now = tx.now();
    tx.run(&BACK, params![item.id, attempts, now])?;
    tx.changed(item.event);
    Ok(())
}

/// Counts a run that died without a new step while it held the item.
pub fn count(tx: &mut OwnerTx<'_, '_>, item: &WorkItem, attempts: u32) -> Result<()> {
    tx.run(&COUNT, params![item.id, attempts]).map(|_| ())
}

/// Given up. The item must be back in the queue.
pub fn fail(tx: &mut OwnerTx<'_, '_>, item: &WorkItem) -> Result<()> {
    let now = tx.now();
    tx.run(&FAIL, params![item.id, now])?;
    tx.changed(item.event);
    Ok(())
}
