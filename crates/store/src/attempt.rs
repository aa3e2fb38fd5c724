//! Attempts: each actual sending, on record before anything leaves (DEL-09, ADM-17, ADM-37).

use base::{ActionId, AttemptId, BodyId, Digest, Incarnation, OwnerId, Timestamp};
use domain::effect::Content;
use domain::state::{ActionState, AttemptState};

use crate::Order;
use crate::action::{self, Action};
use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// One attempt. What comes before `state` never changes.
    pub struct Attempt in "attempt" {
        /// Its id.
        pub id: AttemptId,
        /// Whose.
        pub owner: OwnerId,
        /// Of which action.
        pub action: ActionId,
        /// Its number, from 1.
        pub n: i64,
        /// Under which id the outside knows it.
        pub operation_id: String,
        /// Which start of which process sends it.
        pub dispatcher: Incarnation,
        /// Not sent later than this.
        pub send_by: Timestamp,
        /// From when on others may call it unknown.
        pub answer_by: Timestamp,
        /// When it was registered.
        pub created_at: Timestamp,
        /// Where it stands.
        pub state: AttemptState,
        /// Why.
        pub reason: Option<String>,
        /// What the outside gave as proof.
        pub receipt: Option<String>,
        /// The answer.
        pub answer: Option<BodyId>,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

statements! { "attempt":
    INSERT = hot insert Attempt, "";
    BY_ID = hot select Attempt, "WHERE id = $1";
    OF_ACTION = hot select Attempt, "WHERE action = $1 ORDER BY n";
    MOVE = hot "UPDATE attempt SET state = $2, reason = $3, receipt = $4, answer = $5, moved_at = $6
        WHERE id = $1 AND state = $7";
}

/// A registered attempt on its way to its commit. Only [`Store::dispatch`](crate::Store::dispatch) makes a
/// [`Permit`](crate::Permit) of it, and only once that is durable.
#[derive(Debug)]
pub struct Registered {
    pub(crate) attempt: Attempt,
    pub(crate) tool: String,
    pub(crate) content: Content,
}

/// Registers an attempt and moves its action over the second cut line.
///
/// # Errors
/// [`StoreError::Refused`] if the bytes are not the ones that were frozen, if the attempt is of another
/// action, and in any write that does not hold the operator's row.
pub fn register(
    tx: &mut OwnerTx<'_, '_>,
    action: &mut Action,
    attempt: Attempt,
    bytes: &[u8],
) -> Result<Registered> {
    // The recheck was asked under the operator's lock too, or this is no dispatch.
    tx.is_in(Order::Dispatch)?;
    if (attempt.action, attempt.owner, attempt.state)
        != (action.id, tx.owner(), AttemptState::Registered)
        || action.owner != tx.owner()
    {
        return Err(StoreError::Refused("an attempt is registered for its own action".into()));
    }
    if Digest::of(bytes) != action.digest {
        return Err(StoreError::Refused("the bytes of an action are not the frozen ones".into()));
    }
    let content = Content::read(bytes).map_err(StoreError::Corrupt)?;
    tx.insert(&INSERT, &attempt)?;
    tx.changed(attempt.id);
    tx.audit(None, "attempt", attempt.id, Some(action.digest));
    let was = action.state;
    action.state = ActionState::Dispatched;
    action.sent_at = Some(attempt.created_at);
    action.due_at = Some(attempt.answer_by);
    action.tries = 0;
    action.reason = None;
    // What the person was asked about an earlier sending, they were not asked about this one.
    action.escalated_at = None;
    action::put(tx, action, was, None)?;
    Ok(Registered { attempt, tool: action.tool.clone(), content })
}

/// One attempt.
pub fn get(tx: &mut Tx<'_>, id: AttemptId) -> Result<Attempt> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("attempt"))
}

/// An action's attempts, first to last.
pub fn of_action(tx: &mut Tx<'_>, action: ActionId) -> Result<Vec<Attempt>> {
    tx.all(&OF_ACTION, params![action])
}

/// What came of an attempt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said {
    /// Why.
    pub reason: Option<String>,
    /// The proof.
    pub receipt: Option<String>,
    /// The answer.
    pub answer: Option<BodyId>,
}

/// Records what came of it; `false` if it no longer stands where the caller saw it.
pub fn advance(
    tx: &mut OwnerTx<'_, '_>,
    attempt: &Attempt,
    to: AttemptState,
    said: Said,
) -> Result<bool> {
    // Staying is no move: what is used once would be used again.
    if attempt.state == to {
        return Ok(false);
    }
    let now = tx.now();
    let of = params![attempt.id, to, said.reason, said.receipt, said.answer, now, attempt.state];
    let moved = tx.run(&MOVE, of)? == 1;
    if moved {
        tx.changed(attempt.id);
        tx.audit(None, to.word(), attempt.id, None);
    }
    Ok(moved)
}
