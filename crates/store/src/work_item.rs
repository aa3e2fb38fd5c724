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
    UNROUTED_FOR = hot "SELECT w.id FROM event e JOIN work_item w ON w.event = e.id
        WHERE e.owner = $1 AND e.kind = $2 AND e.key = $3 AND w.state = 'unrouted'
        ORDER BY e.received_at, e.id LIMIT 1";
    BY_ID = hot select WorkItem, "WHERE id = $1";
    ENQUEUE = hot "UPDATE work_item SET session = $2, class = $3, state = $4, attempts = 0,
          moved_at = $5
        WHERE id = $1 AND state IN ('unrouted', 'attributing')";
    ATTRIBUTE = hot "UPDATE work_item SET state = 'attributing', moved_at = $2
        WHERE id = $1 AND state = 'unrouted'";
    ATTRIBUTING = hot "SELECT owner, id FROM work_item WHERE state = 'attributing' AND moved_at <= $1
        ORDER BY moved_at, id LIMIT $2";
    PUT_OFF = hot "UPDATE work_item SET attempts = attempts + 1, moved_at = $2
        WHERE id = $1 AND state = 'attributing'";
    HOLD_BACK = hot "UPDATE work_item SET moved_at = $2 WHERE id = $1 AND state = 'attributing'";
    NEXT_ATTRIBUTION = hot "SELECT MIN(moved_at) FROM work_item WHERE state = 'attributing'";
    OF_CLASS = hot select WorkItem, "WHERE session = $1 AND class = $2 AND state = 'pending'
        ORDER BY created_at, id LIMIT $3";
    BACKGROUND = hot select WorkItem, "WHERE session = $1 AND state = 'background'
        ORDER BY created_at, id LIMIT $2";
    CLAIM = hot "UPDATE work_item SET state = 'claimed', run = $2, delivered_at = $3, moved_at = $3
        WHERE id = $1 AND state IN ('pending', 'background')";
    OF_RUN = hot select WorkItem, "WHERE run = $1 ORDER BY created_at, id";
    CLAIMED = hot select WorkItem, "WHERE run = $1 AND state = 'claimed' ORDER BY created_at, id";
    READ = hot "UPDATE work_item SET read_at = $2
        WHERE run = $1 AND state = 'claimed' AND read_at IS NULL RETURNING event";
    DONE = hot "UPDATE work_item SET state = 'done', done_at = $2, moved_at = $2 WHERE id = $1";
    BACK = hot "UPDATE work_item SET run = NULL,
          state = CASE WHEN class = 'background' THEN 'background' ELSE 'pending' END, attempts = $2, moved_at = $3
        WHERE id = $1 AND state = 'claimed'";
    COUNT = hot "UPDATE work_item SET attempts = $2 WHERE id = $1";
    FAIL = "UPDATE work_item SET state = 'failed', done_at = $2, moved_at = $2
        WHERE id = $1 AND state IN ('pending', 'background')";
}

/// Adds an item.
pub fn insert(tx: &mut OwnerTx<'_, '_>, item: &WorkItem) -> Result<()> {
    tx.insert(&INSERT, item)?;
    tx.changed(item.id);
    Ok(())
}

/// The same without the owner's lock, beside an event that is accepted so.
pub(crate) fn insert_unlocked(tx: &mut Tx<'_>, item: &WorkItem) -> Result<()> {
    tx.insert(&INSERT, item).map(|_| ())
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

/// The first item with a kind and key that nobody has routed: an answer that has come.
pub fn unrouted_for(tx: &mut OwnerTx<'_, '_>, kind: &str, key: &str) -> Result<Option<WorkItemId>> {
    let owner = tx.owner();
    let row = tx.row(&UNROUTED_FOR, params![owner, kind, key])?;
    row.map(|row| row.get(0)).transpose()
}

/// Puts an item into a session's queue, or beside it to be read along. `false`: somebody else did.
pub fn enqueue(
    tx: &mut OwnerTx<'_, '_>,
    id: WorkItemId,
    session: SessionId,
    class: Class,
) -> Result<bool> {
    let now = tx.now();
    let state = match class {
        Class::User | Class::External | Class::Timer => WorkItemState::Pending,
        Class::Background => WorkItemState::Background,
    };
    let moved = tx.run(&ENQUEUE, params![id, session, class, state, now])? == 1;
    if moved {
        tx.changed(id);
    }
    Ok(moved)
}

/// Leaves it to the small model which of the router's candidates an item concerns.
pub fn attribute(tx: &mut OwnerTx<'_, '_>, id: WorkItemId) -> Result<()> {
    let now = tx.now();
    if tx.run(&ATTRIBUTE, params![id, now])? == 1 {
        tx.changed(id);
    }
    Ok(())
}

/// Items that the small model is to be asked about, oldest first. One that it gave no answer for is
/// due again at its `moved_at`.
pub fn attributing(
    tx: &mut Tx<'_>,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<(OwnerId, WorkItemId)>> {
    let rows = tx.rows(&ATTRIBUTING, params![now, limit])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

/// The small model gave no answer: asked again at `next`.
pub fn put_off(tx: &mut OwnerTx<'_, '_>, id: WorkItemId, next: Timestamp) -> Result<()> {
    tx.run(&PUT_OFF, params![id, next]).map(|_| ())
}

/// The small model may not be asked before `next`; that counts as no try.
pub fn hold_back(tx: &mut OwnerTx<'_, '_>, id: WorkItemId, next: Timestamp) -> Result<()> {
    tx.run(&HOLD_BACK, params![id, next]).map(|_| ())
}

/// When the small model is to be asked next, for a clock that jumps.
pub fn next_attribution(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    tx.row(&NEXT_ATTRIBUTION, params![])?.map_or(Ok(None), |row| row.get(0))
}

/// A session's queue: the first `limit` of each class in order of arrival, so that however much came
/// from outside, a person's message is among them.
pub fn pending(tx: &mut Tx<'_>, session: SessionId, limit: i64) -> Result<Vec<WorkItem>> {
    let mut found: Vec<WorkItem> = Vec::new();
    for class in [Class::User, Class::External, Class::Timer] {
        found.extend(tx.all::<WorkItem>(&OF_CLASS, params![session, class, limit])?);
    }
    found.sort_by_key(|item| (item.created_at, item.id));
    Ok(found)
}

/// A person's messages in a session's queue, in order of arrival.
pub fn from_people(tx: &mut Tx<'_>, session: SessionId, limit: i64) -> Result<Vec<WorkItem>> {
    tx.all(&OF_CLASS, params![session, Class::User, limit])
}

/// What a session's next run reads along.
pub fn background(tx: &mut Tx<'_>, session: SessionId, limit: i64) -> Result<Vec<WorkItem>> {
    tx.all(&BACKGROUND, params![session, limit])
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

/// What a run took in last, whatever became of it.
pub fn of_run(tx: &mut Tx<'_>, run: RunId) -> Result<Vec<WorkItem>> {
    tx.all(&OF_RUN, params![run])
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
