//! Owners: accounts, the unit of isolation and of locking; their principals and their nodes.

use base::{Digest, Incarnation, MicroUsd, OwnerId, PrincipalId, SessionId, SourceId, Timestamp};

use domain::event::Dial;
use domain::words::Language;

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::Tx;
use crate::value::{params, record, words};

record! {
    /// An account.
    pub struct Owner in "owner" {
        /// Its id.
        pub id: OwnerId,
        /// How the user is called.
        pub name: String,
        /// IANA time zone of schedules and quiet hours.
        pub zone: String,
        /// Number of its last change.
        pub change_seq: i64,
        /// Number of its last audit entry.
        pub audit_seq: i64,
        /// Hash of its last audit entry.
        pub audit_head: Digest,
        /// The conversation that 1:1 messages go to.
        pub main_session: SessionId,
        /// The source of timer events.
        pub timer_source: SourceId,
        /// How far the agent goes by itself where no duty asks for it.
        pub dial: Dial,
        /// In which language the server speaks to them; `None`: nobody has said, and it is English.
        pub language: Option<Language>,
        /// What its models may cost in a calendar month.
        pub month_cap_micro_usd: MicroUsd,
        /// When it was set up.
        pub created_at: Timestamp,
    }
}

impl Owner {
    /// The language in which the server speaks to them.
    pub fn language(&self) -> Language {
        self.language.unwrap_or_default()
    }
}

words! {
    /// Who may write control state.
    pub enum PrincipalKind {
        /// The person.
        User = "user",
        /// Someone who decides beside the person.
        Supervisor = "supervisor",
        /// A rule that is written down in this program.
        Policy = "policy",
    }
}

record! {
    /// Who may write control state.
    pub struct Principal in "principal" {
        /// Its id.
        pub id: PrincipalId,
        /// Whose.
        pub owner: OwnerId,
        /// Which kind.
        pub kind: PrincipalKind,
        /// How it is called.
        pub name: String,
        /// Since when.
        pub created_at: Timestamp,
    }
}

/// The two chains that the commit wrapper advances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub change_seq: i64,
    pub audit_seq: i64,
    pub audit_head: Digest,
}

statements! { "owner":
    LOCK = hot "SELECT change_seq, audit_seq, audit_head FROM owner WHERE id = $1 FOR UPDATE";
    ADVANCE = hot "UPDATE owner SET change_seq = $2, audit_seq = $3, audit_head = $4 WHERE id = $1";
    INSERT = insert Owner, "";
    BY_ID = hot select Owner, "WHERE id = $1";
    EVERY = select Owner, "ORDER BY created_at, id";
    INSERT_PRINCIPAL = insert Principal, "";
    PRINCIPAL = hot select Principal, "WHERE owner = $1 AND kind = $2";
    PRINCIPAL_BY_ID = hot select Principal, "WHERE id = $1";
    RENAME = "UPDATE owner SET name = $2, zone = $3 WHERE id = $1";
    DIAL = "UPDATE owner SET dial = $2 WHERE id = $1";
    LANGUAGE = "UPDATE owner SET language = $2 WHERE id = $1";
    CAP = "UPDATE owner SET month_cap_micro_usd = $2 WHERE id = $1";
}

pub(crate) fn lock(tx: &mut Tx<'_>, owner: OwnerId) -> Result<Head> {
    let row = tx.row(&LOCK, params![owner])?.ok_or(StoreError::Missing("owner"))?;
    Ok(Head { change_seq: row.get(0)?, audit_seq: row.get(1)?, audit_head: row.get(2)? })
}

pub(crate) fn advance(tx: &mut Tx<'_>, owner: OwnerId, head: Head) -> Result<()> {
    tx.run(&ADVANCE, params![owner, head.change_seq, head.audit_seq, head.audit_head]).map(|_| ())
}

/// Lease time as all nodes of a database see it.
pub(crate) fn database_now(tx: &mut Tx<'_>) -> Result<Timestamp> {
    tx.database_now()
}

/// Writes a new owner and its principals. Not under an owner's lock: there is none yet.
pub fn create(tx: &mut Tx<'_>, owner: &Owner, principals: &[Principal]) -> Result<()> {
    tx.insert(&INSERT, owner)?;
    for principal in principals {
        tx.insert(&INSERT_PRINCIPAL, principal)?;
    }
    Ok(())
}

/// One owner.
pub fn get(tx: &mut Tx<'_>, id: OwnerId) -> Result<Owner> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("owner"))
}

/// The owner whose lock is held.
pub fn locked(tx: &mut crate::OwnerTx<'_, '_>) -> Result<Owner> {
    let id = tx.owner();
    get(tx, id)
}

/// All owners, oldest first.
pub fn all(tx: &mut Tx<'_>) -> Result<Vec<Owner>> {
    tx.all(&EVERY, params![])
}

/// The owner's principal of a kind. Each exists once; a supervisor only once there was a device for one.
pub fn principal(tx: &mut Tx<'_>, owner: OwnerId, kind: PrincipalKind) -> Result<Principal> {
    tx.one(&PRINCIPAL, params![owner, kind])?.ok_or(StoreError::Missing("principal"))
}

/// Of which kind a principal is.
pub fn kind(tx: &mut Tx<'_>, id: PrincipalId) -> Result<PrincipalKind> {
    let found: Option<Principal> = tx.one(&PRINCIPAL_BY_ID, params![id])?;
    found.map(|principal| principal.kind).ok_or(StoreError::Missing("principal"))
}

/// Adds a principal.
pub fn add_principal(tx: &mut crate::OwnerTx<'_, '_>, principal: &Principal) -> Result<()> {
    tx.insert(&INSERT_PRINCIPAL, principal)?;
    tx.audit(None, principal.kind.word(), principal.id, None);
    Ok(())
}

/// Changes name and zone.
pub fn rename(tx: &mut crate::OwnerTx<'_, '_>, name: &str, zone: &str) -> Result<()> {
    let owner = tx.owner();
    tx.run(&RENAME, params![owner, name, zone])?;
    tx.changed(owner);
    Ok(())
}

/// Turns the dial.
pub fn set_dial(tx: &mut crate::OwnerTx<'_, '_>, dial: Dial) -> Result<()> {
    let owner = tx.owner();
    tx.run(&DIAL, params![owner, dial])?;
    tx.changed(owner);
    Ok(())
}

/// Changes the language in which the server speaks to them.
pub fn set_language(tx: &mut crate::OwnerTx<'_, '_>, language: Language) -> Result<()> {
    let owner = tx.owner();
    tx.run(&LANGUAGE, params![owner, language])?;
    tx.changed(owner);
    Ok(())
}

/// Changes what a calendar month may cost.
pub fn set_cap(tx: &mut crate::OwnerTx<'_, '_>, cap: MicroUsd) -> Result<()> {
    let owner = tx.owner();
    tx.run(&CAP, params![owner, cap])?;
    tx.changed(owner);
    Ok(())
}

/// Registers this start of a node and voids the leases of its former one: what the nodes of one
/// database do, and the simulator's on either engine.
pub(crate) fn start_node(
    client: &mut postgres::Client,
    node: &str,
    incarnation: Incarnation,
    now: Timestamp,
) -> Result<()> {
    use base::Id as _;
    let fail = |e: postgres::Error| StoreError::postgres("node", &e);
    let mut tx = client.transaction().map_err(fail)?;
    // A claim of the former start may still be on its way into the database, and would be overlooked:
    // every claim holds an owner's lock until it is there.
    tx.execute(WAIT_FOR_WRITES, &[]).map_err(fail)?;
    tx.execute(VOID_FORMER, &[&node]).map_err(fail)?;
    tx.execute(REGISTER, &[&node, &incarnation.uuid(), &now.micros()]).map_err(fail)?;
    tx.commit().map_err(fail)
}

const WAIT_FOR_WRITES: &str = "SELECT 1 FROM owner ORDER BY id FOR UPDATE";
const VOID_FORMER: &str = "UPDATE session SET holder = NULL, lease_until = NULL
    WHERE holder = (SELECT incarnation FROM node WHERE name = $1)";
const REGISTER: &str = "INSERT INTO node (name, incarnation, started_at) VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET incarnation = $2, started_at = $3";

/// The same on SQLite.
pub(crate) fn start_node_sqlite(
    connection: &mut rusqlite::Connection,
    node: &str,
    incarnation: Incarnation,
    now: Timestamp,
) -> Result<()> {
    use base::Id as _;
    let fail = |e: rusqlite::Error| StoreError::sqlite("node", &e);
    let tx = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(fail)?;
    tx.execute(VOID_FORMER, [node]).map_err(fail)?;
    let uuid = incarnation.uuid();
    tx.execute(REGISTER, (node, uuid.as_bytes(), now.micros())).map_err(fail)?;
    tx.commit().map_err(fail)
}
