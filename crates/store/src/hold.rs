//! Holds and pauses: control state that stops admission (QUE-09..12), and the operator's stop.

use base::{DutyId, EventId, HoldId, OwnerId, PauseId, PrincipalId, Timestamp};
use domain::hold::Verdict;
use domain::state::{HoldState, PauseState};

use crate::Order;
use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// What a message of the user holds back until it is known whether it says stop.
    pub struct Hold in "hold" {
        /// Its id.
        pub id: HoldId,
        /// Whose.
        pub owner: OwnerId,
        /// The message.
        pub event: EventId,
        /// Where it stands.
        pub state: HoldState,
        /// What the model said of the message.
        pub verdict: Option<Verdict>,
        /// Who released or promoted it.
        pub decided_by: Option<PrincipalId>,
        /// The pause that took its place.
        pub pause: Option<PauseId>,
        /// When the user was asked because the model and the stop check do not agree.
        pub asked_at: Option<Timestamp>,
        /// When the message came.
        pub created_at: Timestamp,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

record! {
    /// A pause of a duty, or of everything.
    pub struct Pause in "pause" {
        /// Its id.
        pub id: PauseId,
        /// Whose.
        pub owner: OwnerId,
        /// Which duty; `None`: everything.
        pub duty: Option<DutyId>,
        /// Where it stands.
        pub state: PauseState,
        /// By whom.
        pub placed_by: PrincipalId,
        /// Who lifted it.
        pub lifted_by: Option<PrincipalId>,
        /// Since when.
        pub created_at: Timestamp,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

statements! { "hold":
    INSERT = hot insert Hold, "";
    BY_ID = hot select Hold, "WHERE id = $1";
    BY_EVENT = hot select Hold, "WHERE event = $1";
    PLACED = hot select Hold, "WHERE owner = $1 AND state = 'placed' ORDER BY created_at, id";
    NEWEST = hot select Hold, "WHERE owner = $1 AND state = 'placed'
        ORDER BY created_at DESC, id DESC LIMIT $2";
    JUDGE = hot "UPDATE hold SET verdict = $2 WHERE id = $1 AND state = 'placed'";
    ASKED = hot "UPDATE hold SET asked_at = $2
        WHERE id = $1 AND state = 'placed' AND asked_at IS NULL";
    END = hot "UPDATE hold SET state = $2, decided_by = $3, pause = $4, moved_at = $5
        WHERE id = $1 AND state = 'placed'";
    INSERT_PAUSE = insert Pause, "";
    PAUSE = hot select Pause, "WHERE id = $1";
    PAUSES = hot select Pause, "WHERE owner = $1 AND state = 'active' ORDER BY created_at, id";
    LIFT = "UPDATE pause SET state = 'lifted', lifted_by = $2, moved_at = $3
        WHERE id = $1 AND state = 'active'";
    SYSTEM_STOP = "UPDATE installation SET system_stop = $1 WHERE system_stop <> $1";
    STOPPED = "SELECT system_stop FROM installation";
    STOP_SHARED = "SELECT system_stop FROM installation FOR SHARE";
    STOP_LOCKED = "SELECT system_stop FROM installation FOR UPDATE";
}

/// Places a hold.
pub fn place(tx: &mut OwnerTx<'_, '_>, hold: &Hold) -> Result<()> {
    tx.insert(&INSERT, hold)?;
    tx.changed(hold.id);
    Ok(())
}

/// One hold.
pub fn get(tx: &mut Tx<'_>, id: HoldId) -> Result<Hold> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("hold"))
}

/// The hold of a message.
pub fn of_event(tx: &mut Tx<'_>, event: EventId) -> Result<Option<Hold>> {
    tx.one(&BY_EVENT, params![event])
}

/// The holds in force, oldest first.
pub fn placed(tx: &mut Tx<'_>, owner: OwnerId) -> Result<Vec<Hold>> {
    tx.all(&PLACED, params![owner])
}

/// The newest of the holds in force, oldest of them first.
pub fn newest(tx: &mut Tx<'_>, owner: OwnerId, limit: i64) -> Result<Vec<Hold>> {
    let mut holds: Vec<Hold> = tx.all(&NEWEST, params![owner, limit])?;
    holds.reverse();
    Ok(holds)
}

/// Notes what the model said of the message.
pub fn judge(tx: &mut OwnerTx<'_, '_>, id: HoldId, verdict: Verdict) -> Result<()> {
    if tx.run(&JUDGE, params![id, verdict])? == 1 {
        tx.changed(id);
    }
    Ok(())
}

/// Notes that the user is asked; `false` if they were before.
pub fn asked(tx: &mut OwnerTx<'_, '_>, id: HoldId) -> Result<bool> {
    let now = tx.now();
    let first = tx.run(&ASKED, params![id, now])? == 1;
    if first {
        tx.changed(id);
    }
    Ok(first)
}

/// Ends a hold; `false` if it had ended.
pub fn end(
    tx: &mut OwnerTx<'_, '_>,
    id: HoldId,
    to: HoldState,
    by: PrincipalId,
    pause: Option<PauseId>,
) -> Result<bool> {
    let now = tx.now();
    let ended = tx.run(&END, params![id, to, by, pause, now])? == 1;
    if ended {
        tx.changed(id);
        tx.audit(Some(by), to.word(), id, None);
    }
    Ok(ended)
}

/// Places a pause.
pub fn pause(tx: &mut OwnerTx<'_, '_>, pause: &Pause) -> Result<()> {
    tx.insert(&INSERT_PAUSE, pause)?;
    tx.changed(pause.id);
    tx.audit(Some(pause.placed_by), "pause", pause.id, None);
    Ok(())
}

/// One pause.
pub fn get_pause(tx: &mut Tx<'_>, id: PauseId) -> Result<Pause> {
    tx.one(&PAUSE, params![id])?.ok_or(StoreError::Missing("pause"))
}

/// The pauses in force, oldest first.
pub fn pauses(tx: &mut Tx<'_>, owner: OwnerId) -> Result<Vec<Pause>> {
    tx.all(&PAUSES, params![owner])
}

/// Whether nothing may run for a duty, or in the conversation, unless its person speaks: a pause covers it,
/// or the operator has stopped everything.
pub fn is_held_back(tx: &mut Tx<'_>, owner: OwnerId, duty: Option<DutyId>) -> Result<bool> {
    let covers = |pause: &Pause| pause.duty.is_none() || pause.duty == duty;
    Ok(is_stopped(tx)? || pauses(tx, owner)?.iter().any(covers))
}

/// Lifts a pause; `false` if it was lifted.
pub fn lift(tx: &mut OwnerTx<'_, '_>, id: PauseId, by: PrincipalId) -> Result<bool> {
    let now = tx.now();
    let lifted = tx.run(&LIFT, params![id, by, now])? == 1;
    if lifted {
        tx.changed(id);
        tx.audit(Some(by), "lift", id, None);
    }
    Ok(lifted)
}

/// The operator stops everything of every owner, or lets it go on: in [`crate::Store::operate`], which holds
/// the row. `false`: it stood so already.
pub fn system_stop(tx: &mut OwnerTx<'_, '_>, stopped: bool) -> Result<bool> {
    tx.is_in(Order::Operator)?;
    Ok(tx.run(&SYSTEM_STOP, params![stopped])? == 1)
}

pub(crate) fn stop_shared(tx: &mut Tx<'_>) -> Result<bool> {
    tx.row(&STOP_SHARED, params![])?.map_or(Ok(false), |row| row.get(0))
}

pub(crate) fn stop_locked(tx: &mut Tx<'_>) -> Result<bool> {
    tx.row(&STOP_LOCKED, params![])?.map_or(Ok(false), |row| row.get(0))
}

/// Whether the operator has stopped everything.
pub fn is_stopped(tx: &mut Tx<'_>) -> Result<bool> {
    tx.row(&STOPPED, params![])?.map_or(Ok(false), |row| row.get(0))
}
