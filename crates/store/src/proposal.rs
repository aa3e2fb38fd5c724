//! Proposals: drafts that only the user can turn into control state (DEL-07, DEL-26).

use base::{BodyId, DeviceId, Digest, DutyId, OwnerId, ProposalId, RunId, SessionId, Timestamp};
use domain::state::ProposalState;

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record, words};

words! {
    /// What confirming it does.
    pub enum ProposalKind {
        /// Makes a duty.
        NewDuty = "new_duty",
        /// Makes a new version of one.
        ChangeDuty = "change_duty",
        /// Closes one.
        CloseDuty = "close_duty",
    }
}

record! {
    /// A draft that waits for the user.
    pub struct Proposal in "proposal" {
        /// Its id.
        pub id: ProposalId,
        /// Whose.
        pub owner: OwnerId,
        /// The lane to tell of the decision.
        pub session: SessionId,
        /// By which run.
        pub run: RunId,
        /// By which call: a call proposes once.
        pub call_id: String,
        /// What confirming it does.
        pub kind: ProposalKind,
        /// The duty to change or close.
        pub duty: Option<DutyId>,
        /// The frozen content.
        pub content: BodyId,
        /// Its digest: the user's tap carries it.
        pub digest: Digest,
        /// The card's template and version.
        pub template: String,
        /// Where it stands.
        pub state: ProposalState,
        /// From which device it was decided.
        pub decided_by: Option<DeviceId>,
        /// Not decidable after this.
        pub expires_at: Timestamp,
        /// The owner's change number when it was made.
        pub seq: i64,
        /// When.
        pub created_at: Timestamp,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

statements! { "proposal":
    INSERT = insert Proposal, "";
    BY_ID = hot select Proposal, "WHERE id = $1";
    OF_OWNER = hot select Proposal, "WHERE owner = $1 ORDER BY created_at DESC, id LIMIT $2";
    DUE = hot "SELECT owner, id FROM proposal WHERE state = 'open' AND expires_at <= $1
        ORDER BY expires_at, id LIMIT $2";
    CLOSING = hot select Proposal, "WHERE duty = $1 AND state = 'open' AND kind = 'close_duty'";
    MOVE = "UPDATE proposal SET state = $2, decided_by = $3, moved_at = $4
        WHERE id = $1 AND state = 'open'";
    OPEN = "SELECT COUNT(*) FROM proposal WHERE state = 'open'";
}

/// Adds a proposal.
pub fn insert(tx: &mut OwnerTx<'_, '_>, proposal: &Proposal) -> Result<()> {
    tx.insert(&INSERT, proposal)?;
    tx.changed(proposal.id);
    tx.audit(None, "propose", proposal.id, Some(proposal.digest));
    Ok(())
}

/// One proposal of the owner.
pub fn get(tx: &mut Tx<'_>, owner: OwnerId, id: ProposalId) -> Result<Proposal> {
    let proposal: Option<Proposal> = tx.one(&BY_ID, params![id])?;
    proposal.filter(|p| p.owner == owner).ok_or(StoreError::Missing("proposal"))
}

/// An owner's proposals, newest first.
pub fn all(tx: &mut Tx<'_>, owner: OwnerId, limit: i64) -> Result<Vec<Proposal>> {
    tx.all(&OF_OWNER, params![owner, limit])
}

/// The open proposal to close a duty.
pub fn closing(tx: &mut Tx<'_>, duty: DutyId) -> Result<Option<Proposal>> {
    tx.one(&CLOSING, params![duty])
}

/// Open proposals whose time is over.
pub fn due(tx: &mut Tx<'_>, now: Timestamp, limit: i64) -> Result<Vec<(OwnerId, ProposalId)>> {
    let rows = tx.rows(&DUE, params![now, limit])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

/// Ends an open proposal; `false` if it had ended already.
pub fn end(
    tx: &mut OwnerTx<'_, '_>,
    proposal: &Proposal,
    to: ProposalState,
    by: Option<(base::PrincipalId, DeviceId)>,
) -> Result<bool> {
    let now = tx.now();
    let device = by.map(|(_, device)| device);
    let ended = tx.run(&MOVE, params![proposal.id, to, device, now])? == 1;
    if ended {
        tx.changed(proposal.id);
        tx.audit(by.map(|(who, _)| who), to.word(), proposal.id, Some(proposal.digest));
    }
    Ok(ended)
}

/// How many proposals of all owners wait for a person: a clock that jumps stands still for them.
pub fn open_count(tx: &mut Tx<'_>) -> Result<i64> {
    tx.row(&OPEN, params![])?.map_or(Ok(0), |row| row.get(0))
}
