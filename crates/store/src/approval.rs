//! Approvals: who released an action, what exactly, in which scope and until when (ADM-10, ADM-11).

use std::collections::BTreeMap;

use base::{
    ActionId, ApprovalId, DeviceId, Digest, GrantId, OwnerId, PrincipalId, TaskVersionId, Timestamp,
};
use domain::state::ApprovalState;
use domain::words::{Asked, takes_place};

use crate::action::Action;
use crate::error::{Result, StoreError};
use crate::owner::PrincipalKind;
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
        /// Who is asked, or released it: the supervisor's stands besides one of the others.
        pub kind: PrincipalKind,
        /// Of exactly this content.
        pub digest: Digest,
        /// In this version.
        pub task_version: Option<TaskVersionId>,
        /// Until when: to decide, and then to be used.
        pub until_at: Timestamp,
        /// The grant that a policy's approval rests on.
        pub rests_on: Option<GrantId>,
        /// The card's template and version and the language that counted when it was asked, or the policy's.
        pub template: String,
        /// The same as it was before whoever released it, as their device says; `None`: it said nothing.
        pub shown: Option<String>,
        /// When it was asked for or given.
        pub created_at: Timestamp,
        /// Where it stands.
        pub state: ApprovalState,
        /// Who decided.
        pub decided_by: Option<PrincipalId>,
        /// From which device.
        pub device: Option<DeviceId>,
        /// When somebody decided.
        pub decided_at: Option<Timestamp>,
        /// Why not, in the person's words.
        pub reason: Option<String>,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

impl Approval {
    /// The question to whom it names: exactly this content, in this version, until then.
    pub fn request(
        id: ApprovalId,
        action: &Action,
        kind: PrincipalKind,
        template: &str,
        until_at: Timestamp,
        now: Timestamp,
    ) -> Self {
        Approval {
            id,
            owner: action.owner,
            action: action.id,
            kind,
            digest: action.digest,
            task_version: action.task_version,
            until_at,
            rests_on: None,
            template: template.to_owned(),
            shown: None,
            created_at: now,
            state: ApprovalState::Requested,
            decided_by: None,
            device: None,
            decided_at: None,
            reason: None,
            moved_at: now,
        }
    }

    /// The same as it is once somebody said yes.
    pub fn granted(self, by: PrincipalId) -> Self {
        let decided_at = Some(self.created_at);
        Approval { state: ApprovalState::Granted, decided_by: Some(by), decided_at, ..self }
    }
}

statements! { "approval":
    INSERT = hot insert Approval, "";
    BY_ID = hot select Approval, "WHERE id = $1";
    OF_ACTION = hot select Approval,
        "WHERE action = $1 ORDER BY created_at, kind = 'supervisor', id";
    MOVE = hot "UPDATE approval SET state = $2, decided_by = COALESCE($3, decided_by),
        device = COALESCE($4, device), reason = COALESCE($5, reason), moved_at = $6,
        shown = COALESCE($9, shown),
        decided_at = CASE WHEN $8 THEN $6 ELSE decided_at END WHERE id = $1 AND state = $7";
    LOG = "SELECT a.tool, p.state, p.created_at, p.decided_at, a.session, p.digest, a.errand
        FROM approval p JOIN action a ON a.id = p.action
        WHERE p.owner = $1 AND p.kind = 'user' ORDER BY p.created_at DESC, p.id DESC LIMIT $2";
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

/// All of an action, oldest first; of two at once the supervisor's last.
pub fn of_action(tx: &mut Tx<'_>, action: ActionId) -> Result<Vec<Approval>> {
    tx.all(&OF_ACTION, params![action])
}

/// The supervisor's newest approval of an action, or the request for it: the one that counts.
pub fn besides(tx: &mut Tx<'_>, action: ActionId) -> Result<Option<Approval>> {
    let mut all = of_action(tx, action)?;
    all.retain(|approval| approval.kind == PrincipalKind::Supervisor);
    Ok(all.pop())
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
    /// The template, its version and the language of the card before them.
    pub shown: Option<String>,
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
    let decides = matches!(to, ApprovalState::Granted | ApprovalState::Denied);
    let was = approval.state;
    let of = params![approval.id, to, by, tap.device, tap.reason, now, was, decides, tap.shown];
    let moved = tx.run(&MOVE, of)? == 1;
    if moved {
        tx.changed(approval.id);
        tx.audit(by, to.word(), approval.id, Some(approval.digest));
    }
    Ok(moved)
}

/// How a person decided on the cards of one tool (UX rule 24).
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Decisions {
    /// The tool: the class of the card.
    pub tool: String,
    /// Cards that were shown.
    pub shown: i64,
    /// Released.
    pub approved: i64,
    /// Of those that were not released: asked again within an hour, with other content.
    pub edited: i64,
    /// Refused.
    pub refused: i64,
    /// Nobody decided in time.
    pub expired: i64,
    /// Still open, or no longer wanted.
    pub open: i64,
    /// Seconds from the card to the decision, the median of those that were decided.
    pub median_seconds: Option<i64>,
}

/// Cards that are looked at: the newest.
const LOG_MAX: i64 = 5_000;
/// What is asked again so soon is the same wish in another form.
const EDITED_MS: u64 = 3_600_000;

/// What the newest cards of each tool came to: a person who releases everything within a second no longer
/// reads.
pub fn decisions(tx: &mut Tx<'_>, owner: OwnerId) -> Result<Vec<Decisions>> {
    let mut log: BTreeMap<String, (Decisions, Vec<i64>)> = BTreeMap::new();
    // Newest first, so that the last of them that took a card's place is the one that followed.
    let mut newer: Vec<(Asked, Digest)> = Vec::new();
    for row in tx.rows(&LOG, params![owner, LOG_MAX])? {
        let (tool, state): (String, ApprovalState) = (row.get(0)?, row.get(1)?);
        let (shown_at, digest): (Timestamp, Digest) = (row.get(2)?, row.get(5)?);
        let (one, seconds) = log.entry(tool.clone()).or_default();
        let asked = Asked { session: row.get(4)?, tool, errand: row.get(6)?, at: shown_at };
        one.shown += 1;
        match state {
            ApprovalState::Granted | ApprovalState::Consumed | ApprovalState::Voided => {
                one.approved += 1;
            }
            ApprovalState::Denied => one.refused += 1,
            ApprovalState::Expired => one.expired += 1,
            ApprovalState::Requested | ApprovalState::Cancelled => one.open += 1,
        }
        if let Some(decided_at) = row.get::<Option<Timestamp>>(3)? {
            seconds.push(i64::try_from(decided_at.since(shown_at).as_secs()).unwrap_or(i64::MAX));
        }
        let soon = shown_at.plus_ms(EDITED_MS);
        let mut soon = newer.iter().rev().take_while(|(card, _)| card.at <= soon);
        let followed = soon.find(|(card, _)| takes_place(card, &asked));
        let edited = matches!(state, ApprovalState::Denied | ApprovalState::Cancelled)
            && followed.is_some_and(|(_, other)| *other != digest);
        one.edited += i64::from(edited);
        newer.push((asked, digest));
    }
    let whole = |(tool, (mut one, mut seconds)): (String, (Decisions, Vec<i64>))| {
        seconds.sort_unstable();
        one.median_seconds = seconds.get(seconds.len() / 2).copied();
        Decisions { tool, ..one }
    };
    Ok(log.into_iter().map(whole).collect())
}
