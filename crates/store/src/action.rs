//! Actions: intended outside effects, their content frozen as bytes (DEL-08, ADM-09).

use base::{
    ActionId, ApprovalId, BodyId, Currency, Digest, DutyId, GrantId, OwnerId, PrincipalId, RunId,
    SessionId, TaskVersionId, Timestamp,
};
use domain::effect::{Effect, Frozen, Tier};
use domain::state::ActionState;

use crate::error::{Result, StoreError};
use crate::grant::{self, Share};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// One action. What comes before `state` never changes.
    pub struct Action in "action" {
        /// Its id.
        pub id: ActionId,
        /// Whose.
        pub owner: OwnerId,
        /// The lane to tell.
        pub session: SessionId,
        /// For which duty.
        pub duty: Option<DutyId>,
        /// For which version of it.
        pub task_version: Option<TaskVersionId>,
        /// By which run.
        pub run: RunId,
        /// By which call: a call makes one action.
        pub call_id: String,
        /// The tool's full name.
        pub tool: String,
        /// What it does.
        pub effect: Effect,
        /// The frozen bytes.
        pub content: BodyId,
        /// Their digest.
        pub digest: Digest,
        /// What makes it another errand.
        pub errand: String,
        /// What it costs, in minor units.
        pub minor: Option<i64>,
        /// Of which currency.
        pub currency: Option<Currency>,
        /// The action that it undoes.
        pub compensates: Option<ActionId>,
        /// When the first of its objects stops counting.
        pub expires_at: Option<Timestamp>,
        /// When it was proposed.
        pub created_at: Timestamp,
        /// Where it stands.
        pub state: ActionState,
        /// Who has to release it; none until that is reviewed.
        pub tier: Option<Tier>,
        /// Why it stands where it does, in the server's words.
        pub reason: Option<String>,
        /// The grant that it draws on.
        pub draws_on: Option<GrantId>,
        /// The approval that counts.
        pub approval: Option<ApprovalId>,
        /// Not sent before.
        pub not_before: Option<Timestamp>,
        /// When its stage looks at it next; none: nobody need look.
        pub due_at: Option<Timestamp>,
        /// Looks or tries in this state.
        pub tries: u32,
        /// When its last attempt was made.
        pub sent_at: Option<Timestamp>,
        /// What the outside gave as proof.
        pub receipt: Option<String>,
        /// Whose word settled it: `outside` or `user`.
        pub authority: Option<String>,
        /// The outside contradicted itself.
        pub contradicted: bool,
        /// When the user was asked what became of it.
        pub escalated_at: Option<Timestamp>,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

/// Where an action comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// The action's id.
    pub id: ActionId,
    /// Whose.
    pub owner: OwnerId,
    /// In which lane.
    pub session: SessionId,
    /// For which duty.
    pub duty: Option<DutyId>,
    /// By which run.
    pub run: RunId,
    /// By which call.
    pub call_id: String,
    /// The body with its frozen bytes.
    pub content: BodyId,
}

impl Action {
    /// An action as it begins: its content frozen, nobody has looked at it.
    pub fn proposed(of: Origin, frozen: &Frozen, now: Timestamp) -> Self {
        let content = &frozen.content;
        let amount = content.amount();
        Action {
            id: of.id,
            owner: of.owner,
            session: of.session,
            duty: of.duty,
            task_version: content.task_version,
            run: of.run,
            call_id: of.call_id,
            tool: content.operation.clone(),
            effect: content.effect,
            content: of.content,
            digest: frozen.digest,
            errand: content.errand.clone(),
            minor: amount.map(|amount| amount.minor),
            currency: amount.map(|amount| amount.currency),
            compensates: content.compensates,
            expires_at: frozen.expires_at,
            created_at: now,
            state: ActionState::Proposed,
            tier: None,
            reason: None,
            draws_on: None,
            approval: None,
            not_before: None,
            due_at: Some(now),
            tries: 0,
            sent_at: None,
            receipt: None,
            authority: None,
            contradicted: false,
            escalated_at: None,
            moved_at: now,
        }
    }
}

record! {
    /// An issued object that an action names.
    pub struct ActionObject in "action_object" {
        /// The action.
        pub action: ActionId,
        /// The argument that names it.
        pub argument: String,
        /// Whose.
        pub owner: OwnerId,
        /// Its kind.
        pub kind: String,
        /// The id.
        pub value: String,
    }
}

statements! { "action":
    INSERT = hot insert Action, "";
    INSERT_OBJECT = hot insert ActionObject, "";
    BY_ID = hot select Action, "WHERE id = $1";
    BY_CALL = hot select Action, "WHERE run = $1 AND call_id = $2";
    OF_OWNER = hot select Action, "WHERE owner = $1 ORDER BY created_at DESC, id DESC LIMIT $2";
    BESIDES = hot select Action, "WHERE id IN (SELECT p.action FROM approval p
        WHERE p.owner = $1 AND p.kind = 'supervisor') ORDER BY created_at DESC, id DESC LIMIT $2";
    OF_DUTY = hot select Action, "WHERE duty = $1 ORDER BY created_at DESC, id DESC LIMIT $2";
    DUE = hot "SELECT owner, id FROM action WHERE state = $1 AND due_at <= $2
        AND (state <> 'blocked' OR not_before IS NULL) ORDER BY due_at, id LIMIT $3";
    RETRY = hot "SELECT owner, id FROM action WHERE state = 'blocked' AND due_at <= $1
        AND not_before IS NOT NULL ORDER BY due_at, id LIMIT $2";
    NEXT_DUE = "SELECT MIN(due_at) FROM action WHERE due_at IS NOT NULL";
    BY_RECEIPT = hot select Action, "WHERE session = $1 AND receipt = $2 AND state <> ''
        ORDER BY created_at DESC, id DESC LIMIT 1";
    ERRAND = hot "SELECT id FROM action WHERE session = $1 AND tool = $2 AND errand = $3
        AND (state IN ('admitted', 'dispatched', 'unknown')
            OR (state = 'blocked' AND not_before IS NOT NULL)) AND id <> $4 ORDER BY id LIMIT 1";
    TAKEN = hot "SELECT o.action FROM action_object o JOIN action a ON a.id = o.action
        WHERE o.owner = $1 AND o.kind = $2 AND o.value = $3 AND a.id <> $4
          AND (a.state IN ('admitted', 'dispatched', 'unknown')
            OR (a.state = 'blocked' AND a.not_before IS NOT NULL)) ORDER BY a.id LIMIT 1";
    PUT = hot "UPDATE action SET state = $2, tier = $3, reason = $4, draws_on = $5, approval = $6,
        not_before = $7, due_at = $8, tries = $9, sent_at = $10, receipt = $11, authority = $12,
        contradicted = $13, escalated_at = $14, moved_at = $15 WHERE id = $1 AND state = $16
        AND ($17 OR draws_on IS NOT DISTINCT FROM $5)";
    UNSENT = select Action, "WHERE owner = $1 AND state IN ('proposed', 'awaiting_approval',
        'authorized', 'admitted', 'blocked')
        AND (state <> 'blocked' OR not_before IS NOT NULL) ORDER BY created_at, id";
    WAKE = "UPDATE action SET due_at = $2 WHERE owner = $1 AND state = 'authorized'";
    WAKE_ALL = "UPDATE action SET due_at = $2
        WHERE owner = $1 AND state IN ('awaiting_approval', 'authorized')";
    OPEN = hot select Action, "WHERE session = $1 AND state IN ('proposed', 'awaiting_approval',
        'authorized', 'admitted', 'dispatched', 'unknown', 'blocked')
        AND (state <> 'blocked' OR not_before IS NOT NULL) ORDER BY created_at, id";
    ASKING = "SELECT COUNT(*) FROM action WHERE state = 'awaiting_approval'";
}

/// Adds an action with the objects that it names.
pub fn insert(tx: &mut OwnerTx<'_, '_>, action: &Action, objects: &[ActionObject]) -> Result<()> {
    tx.insert(&INSERT, action)?;
    for object in objects {
        tx.insert(&INSERT_OBJECT, object)?;
    }
    tx.changed(action.id);
    tx.audit(None, "propose", action.id, Some(action.digest));
    Ok(())
}

/// One action.
pub fn get(tx: &mut Tx<'_>, id: ActionId) -> Result<Action> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("action"))
}

/// The action that a call made.
pub fn of_call(tx: &mut Tx<'_>, run: RunId, call_id: &str) -> Result<Option<Action>> {
    tx.one(&BY_CALL, params![run, call_id])
}

/// The newest action of a lane that has this receipt.
pub fn by_receipt(tx: &mut Tx<'_>, session: SessionId, receipt: &str) -> Result<Option<Action>> {
    tx.one(&BY_RECEIPT, params![session, receipt])
}

/// An owner's actions, newest first.
pub fn all(tx: &mut Tx<'_>, owner: OwnerId, limit: i64) -> Result<Vec<Action>> {
    tx.all(&OF_OWNER, params![owner, limit])
}

/// An owner's actions that ever asked for a supervisor's approval, newest first.
pub fn besides(tx: &mut Tx<'_>, owner: OwnerId, limit: i64) -> Result<Vec<Action>> {
    tx.all(&BESIDES, params![owner, limit])
}

/// A duty's actions, newest first.
pub fn of_duty(tx: &mut Tx<'_>, duty: DutyId, limit: i64) -> Result<Vec<Action>> {
    tx.all(&OF_DUTY, params![duty, limit])
}

/// A lane's actions that are not settled, or may still be sent again, oldest first.
pub fn open(tx: &mut Tx<'_>, session: SessionId) -> Result<Vec<Action>> {
    tx.all(&OPEN, params![session])
}

/// An owner's actions that may still be sent, or sent again, oldest first.
pub fn unsent(tx: &mut Tx<'_>, owner: OwnerId) -> Result<Vec<Action>> {
    tx.all(&UNSENT, params![owner])
}

/// Actions in a state that its stage should look at now.
pub fn due(
    tx: &mut Tx<'_>,
    state: ActionState,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<(OwnerId, ActionId)>> {
    let rows = tx.rows(&DUE, params![state, now, limit])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

/// Actions that certainly did not leave and may be sent again now.
pub fn retry(tx: &mut Tx<'_>, now: Timestamp, limit: i64) -> Result<Vec<(OwnerId, ActionId)>> {
    let rows = tx.rows(&RETRY, params![now, limit])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

/// When the next of all actions is due.
pub fn next_due(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    tx.row(&NEXT_DUE, params![])?.map_or(Ok(None), |row| row.get(0))
}

/// How many actions of all owners wait for a person: a clock that jumps stands still for them.
pub fn asking_count(tx: &mut Tx<'_>) -> Result<i64> {
    tx.row(&ASKING, params![])?.map_or(Ok(0), |row| row.get(0))
}

/// An action of the same errand that is admitted, sent or unknown.
pub fn errand(tx: &mut Tx<'_>, action: &Action) -> Result<Option<ActionId>> {
    let of = params![action.session, action.tool, action.errand, action.id];
    tx.row(&ERRAND, of)?.map(|row| row.get(0)).transpose()
}

/// Another action that is admitted, sent, unknown or to be sent again and names the same object.
pub fn taken(
    tx: &mut Tx<'_>,
    action: &Action,
    kind: &str,
    value: &str,
) -> Result<Option<ActionId>> {
    let of = params![action.owner, kind, value, action.id];
    tx.row(&TAKEN, of)?.map(|row| row.get(0)).transpose()
}

/// Writes an action down as it now is and moves its share of the grant with it; `was` is the state that
/// the caller read under this lock.
///
/// # Errors
/// [`StoreError::Missing`] if it no longer stands there, or has a share of another grant, which would keep
/// it: only a defect can do that under the lock.
pub fn put(
    tx: &mut OwnerTx<'_, '_>,
    action: &Action,
    was: ActionState,
    by: Option<PrincipalId>,
) -> Result<()> {
    let now = tx.now();
    let moved_at = if was == action.state { action.moved_at } else { now };
    let written = tx.run(
        &PUT,
        params![
            action.id,
            action.state,
            action.tier,
            action.reason,
            action.draws_on,
            action.approval,
            action.not_before,
            action.due_at,
            action.tries,
            action.sent_at,
            action.receipt,
            action.authority,
            action.contradicted,
            action.escalated_at,
            moved_at,
            was,
            share(was) == Share::None
        ],
    )?;
    if written != 1 {
        return Err(StoreError::Missing("action in that state and on that grant"));
    }
    tx.changed(action.id);
    if was != action.state {
        tx.audit(by, action.state.word(), action.id, Some(action.digest));
        if let Some(grant) = action.draws_on {
            let shares = (share(was), share(action.state));
            grant::book(tx, grant, action.id, action.minor.unwrap_or(0), shares)?;
        }
    }
    Ok(())
}

/// What an action in a state has of its grant: what may have happened counts as spent until it is known
/// (ADM-05, G-32).
pub const fn share(state: ActionState) -> Share {
    match state {
        ActionState::Admitted | ActionState::Dispatched | ActionState::Unknown => Share::Reserved,
        ActionState::Accepted | ActionState::Effective => Share::Spent,
        ActionState::Proposed
        | ActionState::AwaitingApproval
        | ActionState::Authorized
        | ActionState::Blocked
        | ActionState::Denied
        | ActionState::Expired
        | ActionState::Superseded
        | ActionState::Withdrawn
        | ActionState::Cancelled
        | ActionState::Abandoned => Share::None,
    }
}

/// Admission looks at all released actions of the owner now: a stop of theirs ended.
pub fn wake(tx: &mut OwnerTx<'_, '_>) -> Result<()> {
    let (owner, now) = (tx.owner(), tx.now());
    tx.run(&WAKE, params![owner, now]).map(|_| ())
}

/// The same, and review looks at all that wait for a person: what is asked of them has changed.
pub fn wake_all(tx: &mut OwnerTx<'_, '_>) -> Result<()> {
    let (owner, now) = (tx.owner(), tx.now());
    tx.run(&WAKE_ALL, params![owner, now]).map(|_| ())
}
