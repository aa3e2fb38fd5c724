//! Duties and the versions of what they ask for (DEL-01..03, DEL-05).

use base::{
    BodyId, Digest, DutyId, OwnerId, PrincipalId, ProposalId, SessionId, TaskVersionId, Timestamp,
};
use domain::state::{DutyState, TaskVersionState};

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// A whole delegation.
    pub struct Duty in "duty" {
        /// Its id.
        pub id: DutyId,
        /// Whose.
        pub owner: OwnerId,
        /// Which agent.
        pub agent: String,
        /// The lane of its wake-ups.
        pub session: SessionId,
        /// Where it stands.
        pub state: DutyState,
        /// The proposal that the user confirmed: a confirmation makes one duty.
        pub proposal: ProposalId,
        /// Since when.
        pub created_at: Timestamp,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

record! {
    /// One version of what a duty asks for. Never edited.
    pub struct TaskVersion in "task_version" {
        /// Its id.
        pub id: TaskVersionId,
        /// Whose.
        pub owner: OwnerId,
        /// Of which duty.
        pub duty: DutyId,
        /// Its number, from 1.
        pub n: i64,
        /// Where it stands.
        pub state: TaskVersionState,
        /// The draft as confirmed, frozen.
        pub content: BodyId,
        /// Its digest.
        pub digest: Digest,
        /// How many completion conditions it has: at least one.
        pub conditions: u32,
        /// When it ends by itself.
        pub until_at: Option<Timestamp>,
        /// Who confirmed it.
        pub confirmed_by: PrincipalId,
        /// When.
        pub created_at: Timestamp,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

statements! { "duty":
    INSERT = insert Duty, "";
    BY_ID = hot select Duty, "WHERE id = $1";
    ACTIVE = hot select Duty, "WHERE owner = $1 AND state = 'active' AND state <> 'closed'
        ORDER BY created_at DESC, id DESC LIMIT $2";
    OF_OWNER = hot select Duty, "WHERE owner = $1 ORDER BY created_at, id LIMIT $2";
    OF_SESSION = hot select Duty, "WHERE session = $1";
    MOVE = "UPDATE duty SET state = $2, moved_at = $3 WHERE id = $1 AND state = $4";
    INSERT_VERSION = insert TaskVersion, "";
    VERSION = hot select TaskVersion, "WHERE id = $1";
    CURRENT = hot select TaskVersion, "WHERE duty = $1 AND state = 'current'";
    VERSIONS = select TaskVersion, "WHERE duty = $1 ORDER BY n";
    MOVE_VERSION = "UPDATE task_version SET state = $2, moved_at = $3 WHERE id = $1";
    LAST = select TaskVersion, "WHERE duty = $1 ORDER BY n DESC LIMIT 1";
}

/// Adds a duty with its first version.
pub fn insert(tx: &mut OwnerTx<'_, '_>, duty: &Duty, version: &TaskVersion) -> Result<()> {
    tx.insert(&INSERT, duty)?;
    tx.insert(&INSERT_VERSION, version)?;
    tx.changed(duty.id);
    tx.audit(Some(version.confirmed_by), "confirm", version.id, Some(version.digest));
    Ok(())
}

/// One duty of the owner.
pub fn get(tx: &mut Tx<'_>, owner: OwnerId, id: DutyId) -> Result<Duty> {
    let duty: Option<Duty> = tx.one(&BY_ID, params![id])?;
    duty.filter(|duty| duty.owner == owner).ok_or(StoreError::Missing("duty"))
}

/// The duty whose lane this is.
pub fn of_session(tx: &mut Tx<'_>, session: SessionId) -> Result<Option<Duty>> {
    tx.one(&OF_SESSION, params![session])
}

/// The newest of an owner's duties in force, oldest of them first.
pub fn active(tx: &mut Tx<'_>, owner: OwnerId, limit: i64) -> Result<Vec<Duty>> {
    let mut duties: Vec<Duty> = tx.all(&ACTIVE, params![owner, limit])?;
    duties.reverse();
    Ok(duties)
}

/// An owner's duties, oldest first.
pub fn all(tx: &mut Tx<'_>, owner: OwnerId, limit: i64) -> Result<Vec<Duty>> {
    tx.all(&OF_OWNER, params![owner, limit])
}

/// The version in force, or the last one if the duty has ended.
pub fn version(tx: &mut Tx<'_>, duty: DutyId) -> Result<TaskVersion> {
    let current = tx.one(&CURRENT, params![duty])?;
    match current {
        Some(version) => Ok(version),
        None => tx.one(&LAST, params![duty])?.ok_or(StoreError::Missing("task version")),
    }
}

/// One version.
pub fn version_by_id(tx: &mut Tx<'_>, id: TaskVersionId) -> Result<TaskVersion> {
    tx.one(&VERSION, params![id])?.ok_or(StoreError::Missing("task version"))
}

/// All versions, oldest first.
pub fn versions(tx: &mut Tx<'_>, duty: DutyId) -> Result<Vec<TaskVersion>> {
    tx.all(&VERSIONS, params![duty])
}

/// Moves a duty on; `false` if it was no longer in the state the caller saw.
pub fn advance(
    tx: &mut OwnerTx<'_, '_>,
    duty: &Duty,
    to: DutyState,
    by: Option<PrincipalId>,
) -> Result<bool> {
    let now = tx.now();
    let moved = tx.run(&MOVE, params![duty.id, to, now, duty.state])? == 1;
    if moved {
        tx.changed(duty.id);
        tx.audit(by, to.word(), duty.id, None);
    }
    Ok(moved)
}

/// Moves a version on.
pub fn advance_version(
    tx: &mut OwnerTx<'_, '_>,
    id: TaskVersionId,
    to: TaskVersionState,
) -> Result<()> {
    let now = tx.now();
    tx.run(&MOVE_VERSION, params![id, to, now])?;
    tx.changed(id);
    Ok(())
}
