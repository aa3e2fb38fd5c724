//! Approvals: who released an action, what exactly, in which scope and until when (ADM-10, ADM-11).

use base::{
    ActionId, ApprovalId, DeviceId, Digest, GrantId, OwnerId, PrincipalId, TaskVersionId, Timestamp,
};
use domain::state::ApprovalState;

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// One approval, or the request for one.
    pub struct Approval in "approval" {
        /// Its id.
        pub id: ApprovalId,
        /// Whose.
        pub owner: OwnerId,
        /// Of which action, and of no other (ADM-13).
        pub action: ActionId,
        /// Of exactly this content.
        pub digest: Digest,
        /// In this version.
        pub task_version: Option<TaskVersionId>,
        /// Until when: to decide, and then to be used.
        pub until_at: Timestamp,
        /// The grant that a policy's approval rests on.
        pub rests_on: Option<GrantId>,
        /// The card's template and version, or the policy's.
        pub template: String,
        /// When it was asked for or given.
        pub created_at: Timestamp,
        /// Where it stands.
        pub state: ApprovalState,
        /// Who decided.
        pub decided_by: Option<PrincipalId>,
        /// From which device.
        pub device: Option<DeviceId>,
        /// Why not, in the person's words.
        pub reason: Option<String>,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

statements! { "approval":
    INSERT = hot insert Approval, "";
    BY_ID = hot select Approval, "WHERE id = $1";
    OF_ACTION = hot select Approval, "WHERE action = $1 ORDER BY created_at, id";
    MOVE = hot "UPDATE approval SET state = $2, decided_by = COALESCE($3, decided_by),
        device = COALESCE($4, device), reason = COALESCE($5, reason), moved_at = $6
        WHERE id = $1 AND state = $7";
}

/// Adds a request, or what the policy released.
pub fn insert(tx: &mut OwnerTx<'_, '_>, approval: &Approval) -> Result<()> {
    tx.insert(&INSERT, approval)?;
    tx.changed(approval.id);
    tx.audit(approval.decided_by, approval.state.word(), approval.id, Some(approval.digest));
    Ok(())
}

/// One approval.
pub fn get(tx: &mut Tx<'_>, id: ApprovalId) -> Result<Approval> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("approval"))
}

/// All of an action, oldest first.
pub fn of_action(tx: &mut Tx<'_>, action: ActionId) -> Result<Vec<Approval>> {
    tx.all(&OF_ACTION, params![action])
}

/// What a person's tap adds to an approval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tap {
    /// Who.
    pub by: Option<PrincipalId>,
    /// From which device.
    pub device: Option<DeviceId>,
    /// Why not.
    pub reason: Option<String>,
}

/// Moves an approval on; `false` if it no longer stands where the caller saw it.
pub fn advance(
    tx: &mut OwnerTx<'_, '_>,
    approval: &Approval,
    to: ApprovalState,
    tap: Tap,
) -> Result<bool> {
    // Staying is no move: what is used once would be used again.
    if approval.state == to {
        return Ok(false);
    }
    let now = tx.now();
    let by = tap.by;
    let of = params![approval.id, to, by, tap.device, tap.reason, now, approval.state];
    let moved = tx.run(&MOVE, of)? == 1;
    if moved {
        tx.changed(approval.id);
        tx.audit(by, to.word(), approval.id, Some(approval.digest));
    }
    Ok(moved)
}
