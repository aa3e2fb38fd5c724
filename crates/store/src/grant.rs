//! Grants: what the user allowed in advance, with what was reserved and spent of it (DEL-16, ADM-05, G-32).

use base::{ActionId, Currency, DutyId, GrantId, OwnerId, PrincipalId, TaskVersionId, Timestamp};
use domain::effect::Used;
use domain::state::GrantState;

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// One grant. Its limits never change: a new version of the duty brings new grants.
    pub struct Grant in "grants" {
        /// Its id.
        pub id: GrantId,
        /// Whose.
        pub owner: OwnerId,
        /// Of which duty.
        pub duty: DutyId,
        /// Of which version.
        pub task_version: TaskVersionId,
        /// The tool's full name.
        pub tool: String,
        /// Actions in all.
        pub times: i64,
        /// The currency of the limits.
        pub currency: Option<Currency>,
        /// Minor units of one action.
        pub each_minor: Option<i64>,
        /// Minor units of all actions.
        pub total_minor: Option<i64>,
        /// Who may receive, as a JSON list.
        pub recipients: String,
        /// Until when.
        pub until_at: Option<Timestamp>,
        /// Where it stands.
        pub state: GrantState,
        /// Admitted, sent or unknown actions.
        pub reserved_count: i64,
        /// Their minor units.
        pub reserved_minor: i64,
        /// Actions that took effect.
        pub spent_count: i64,
        /// Their minor units.
        pub spent_minor: i64,
        /// Who confirmed it.
        pub confirmed_by: PrincipalId,
        /// When.
        pub created_at: Timestamp,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

statements! { "grant":
    INSERT = insert Grant, "";
    BY_ID = hot select Grant, "WHERE id = $1";
    ACTIVE = hot select Grant, "WHERE duty = $1 AND state = 'active' ORDER BY created_at, id";
    OF_DUTY = select Grant, "WHERE duty = $1 ORDER BY created_at, id";
    RESERVE = hot "UPDATE grants SET reserved_count = reserved_count + 1,
        reserved_minor = reserved_minor + $2 WHERE id = $1";
    GIVE_BACK = hot "UPDATE grants SET reserved_count = reserved_count - 1,
        reserved_minor = reserved_minor - $2 WHERE id = $1";
    SPEND = hot "UPDATE grants SET reserved_count = reserved_count - 1,
        reserved_minor = reserved_minor - $2, spent_count = spent_count + 1,
        spent_minor = spent_minor + $2 WHERE id = $1";
    UNSPEND = "UPDATE grants SET reserved_count = reserved_count + 1,
        reserved_minor = reserved_minor + $2, spent_count = spent_count - 1,
        spent_minor = spent_minor - $2 WHERE id = $1";
    END = "UPDATE grants SET state = 'ended', moved_at = $2 WHERE id = $1 AND state = 'active'";
}

/// What an action takes of its grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Nothing.
    None,
    /// Kept for it while it may have happened.
    Reserved,
    /// It happened.
    Spent,
}

/// Adds a grant that the user confirmed.
pub fn insert(tx: &mut OwnerTx<'_, '_>, grant: &Grant) -> Result<()> {
    tx.insert(&INSERT, grant)?;
    tx.changed(grant.id);
    tx.audit(Some(grant.confirmed_by), "grant", grant.id, None);
    Ok(())
}

/// One grant.
pub fn get(tx: &mut Tx<'_>, id: GrantId) -> Result<Grant> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("grant"))
}

/// A duty's grants in force, oldest first.
pub fn active(tx: &mut Tx<'_>, duty: DutyId) -> Result<Vec<Grant>> {
    tx.all(&ACTIVE, params![duty])
}

/// All grants of a duty, oldest first.
pub fn of_duty(tx: &mut Tx<'_>, duty: DutyId) -> Result<Vec<Grant>> {
    tx.all(&OF_DUTY, params![duty])
}

/// Moves an action's share of its grant, in the transaction that moves the action.
///
/// # Errors
/// [`StoreError::Missing`] if there is no such grant: what an action takes must stand somewhere.
pub fn book(
    tx: &mut OwnerTx<'_, '_>,
    id: GrantId,
    action: ActionId,
    minor: i64,
    (from, to): (Share, Share),
) -> Result<()> {
    let sql = match (from, to) {
        (Share::None, Share::Reserved) => &RESERVE,
        (Share::Reserved, Share::None) => &GIVE_BACK,
        (Share::Reserved, Share::Spent) => &SPEND,
        (Share::Spent, Share::Reserved) => &UNSPEND,
        (Share::None, Share::None)
        | (Share::Reserved, Share::Reserved)
        | (Share::Spent, Share::Spent) => return Ok(()),
        (Share::None, Share::Spent) => {
            book(tx, id, action, minor, (Share::None, Share::Reserved))?;
            &SPEND
        }
        (Share::Spent, Share::None) => {
            book(tx, id, action, minor, (Share::Spent, Share::Reserved))?;
            &GIVE_BACK
        }
    };
    if tx.run(sql, params![id, minor])? != 1 {
        return Err(StoreError::Missing("grant"));
    }
    tx.changed(id);
    tx.changed(action);
    Ok(())
}

/// Ends a grant; `false` if it had ended.
pub fn end(tx: &mut OwnerTx<'_, '_>, id: GrantId, by: Option<PrincipalId>) -> Result<bool> {
    let now = tx.now();
    let ended = tx.run(&END, params![id, now])? == 1;
    if ended {
        tx.changed(id);
        tx.audit(by, "end", id, None);
    }
    Ok(ended)
}

impl Grant {
    /// As the decisions see it. `own`: whether the action that is asked about has its share already.
    pub fn limits(&self, own: Option<i64>) -> Result<domain::effect::Grant> {
        let to = serde_json::from_str(&self.recipients);
        let used = Used {
            count: self.reserved_count + self.spent_count - i64::from(own.is_some()),
            minor: self.reserved_minor + self.spent_minor - own.unwrap_or(0),
        };
        Ok(domain::effect::Grant {
            tool: self.tool.clone(),
            times: if self.state == GrantState::Active { self.times } else { 0 },
            currency: self.currency,
            each: self.each_minor,
            total: self.total_minor,
            to: to.map_err(|e: serde_json::Error| StoreError::Corrupt(e.to_string()))?,
            until: self.until_at,
            used,
        })
    }
}
