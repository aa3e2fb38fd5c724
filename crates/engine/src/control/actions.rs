//! The person's word on an action: release, refuse, take back, and what became of it (ADM-14, ADM-21).

use base::{ActionId, Digest};
use domain::effect::taken_back;
use domain::state::{ActionState, ApprovalState, AttemptState};
use domain::words;
use store::action::Action;
use store::approval::{self, Approval, Tap};
use store::attempt::{self, Said};
use store::device::Device;
use store::owner::PrincipalKind;
use store::{OwnerTx, Result, StoreError, Tx};

use super::Changed;
use crate::effect::{drop_action, settled};
use crate::{Context, reconciler};

/// Characters of a reason that are kept.
const REASON_MAX: usize = 500;
/// Characters of a template's name that are kept.
const TEMPLATE_MAX: usize = 64;

/// The card before whoever taps.
pub struct Shown {
    /// Of what would be sent.
    pub digest: Digest,
    /// The template, its version and the language, as the device says; what is longer than a template's name is
    /// cut off. `None`: it says nothing.
    pub template: Option<String>,
}

impl From<Digest> for Shown {
    fn from(digest: Digest) -> Self {
        Shown { digest, template: None }
    }
}

/// The person releases exactly what was shown. A tap while it is paused does nothing and must be repeated:
/// it could else take effect long after they meant it (G-08).
pub fn approve(
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: ActionId,
    shown: impl Into<Shown>,
) -> Result<Changed> {
    let shown = shown.into();
    let (mut action, request) = match open(tx, device, id)? {
        Ok(open) => open,
        Err(conflict) => return Ok(conflict),
    };
    if request.digest != shown.digest {
        return Ok(Changed::Conflict(
            "This is not what was shown to you. Open the card again and decide on what it says now."
                .into(),
        ));
    }
    let owner = tx.owner();
    let pauses = store::hold::pauses(tx, owner)?;
    if pauses.iter().any(|pause| pause.duty.is_none() || pause.duty == action.duty) {
        return Ok(Changed::Conflict(
            "It is paused, so nothing was released. Lift the pause, then release it again.".into(),
        ));
    }
    if store::hold::is_stopped(tx)? {
        return Ok(Changed::Conflict(
            "The operator has stopped everything, so nothing was released. Release it again when that \
             is lifted."
                .into(),
        ));
    }
    let shown = shown.template.map(|shown| words::on_one_line(&shown, TEMPLATE_MAX));
    let tap = Tap { by: Some(device.principal), device: Some(device.id), reason: None, shown };
    approval::advance(tx, &request, ApprovalState::Granted, tap)?;
    let was = action.state;
    // The supervisor's word alone takes it nowhere: it stands besides the release that is needed anyway.
    if request.kind == PrincipalKind::User {
        action.state = ActionState::Authorized;
    }
    if action.state == ActionState::Authorized {
        action.due_at = Some(tx.now());
        action.reason = None;
    }
    store::action::put(tx, &action, was, Some(device.principal))?;
    Ok(Changed::Done)
}

/// The person says no, if they like with a reason that the agent reads.
pub fn deny(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: ActionId,
    reason: Option<String>,
) -> Result<Changed> {
    let (mut action, request) = match open(tx, device, id)? {
        Ok(open) => open,
        Err(conflict) => return Ok(conflict),
    };
    let reason = reason.map(|reason| words::on_one_line(reason.trim(), REASON_MAX));
    let reason = reason.filter(|reason| !reason.is_empty());
    let by = Some(device.principal);
    let tap = Tap { by, device: Some(device.id), reason: reason.clone(), shown: None };
    approval::advance(tx, &request, ApprovalState::Denied, tap)?;
    let (to, who) = match request.kind {
        PrincipalKind::Supervisor => (ActionState::Withdrawn, "the supervisor refused it"),
        PrincipalKind::User | PrincipalKind::Policy => {
            (ActionState::Denied, "the person refused it")
        }
    };
    let why = match (request.kind, reason) {
        (PrincipalKind::Supervisor, Some(reason)) => format!("{who}: {reason}"),
        (PrincipalKind::User | PrincipalKind::Policy, Some(reason)) => reason,
        (_, None) => who.to_owned(),
    };
    drop_action(cx, tx, &mut action, to, &why, by)?;
    Ok(Changed::Done)
}

/// The action and the request that is this device's to decide, if it still can be; the time is compared here.
fn open(
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: ActionId,
) -> Result<std::result::Result<(Action, Approval), Changed>> {
    let (kind, now) = (device.kind, tx.now());
    concerns(tx, kind, id)?;
    let action = own(tx, id)?;
    let unsent = matches!(action.state, ActionState::AwaitingApproval | ActionState::Authorized);
    let request = match (kind, action.approval) {
        (PrincipalKind::Supervisor, _) => approval::besides(tx, id)?,
        (PrincipalKind::User, Some(request)) => Some(approval::get(tx, request)?),
        (PrincipalKind::User, None) | (PrincipalKind::Policy, _) => None,
    };
    let open =
        |request: &Approval| request.kind == kind && request.state == ApprovalState::Requested;
    if unsent && let Some(request) = request.filter(open) {
        if request.until_at <= now || action.expires_at.is_some_and(|at| at <= now) {
            let said = "The time for this decision has passed. Nothing was done.";
            return Ok(Err(Changed::Conflict(said.into())));
        }
        return Ok(Ok((action, request)));
    }
    Ok(Err(Changed::Conflict(format!(
        "This can no longer be decided: it is {}.",
        words::action_state(action.state)
    ))))
}

/// An action that never asked for a supervisor's approval is not there for them.
pub fn concerns(tx: &mut Tx<'_>, kind: PrincipalKind, id: ActionId) -> Result<()> {
    match kind {
        PrincipalKind::Supervisor if approval::besides(tx, id)?.is_none() => {
            Err(StoreError::Missing("action"))
        }
        PrincipalKind::Supervisor | PrincipalKind::User | PrincipalKind::Policy => Ok(()),
    }
}

/// An action of this owner.
fn own(tx: &mut OwnerTx<'_, '_>, id: ActionId) -> Result<Action> {
    let action = store::action::get(tx, id)?;
    match action.owner == tx.owner() {
        true => Ok(action),
        false => Err(StoreError::Missing("action")),
    }
}

/// The person takes an action back. Before the attempt it ends; after it, it can only be dealt with (ADM-16).
pub fn withdraw(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: ActionId,
) -> Result<Changed> {
    let mut action = own(tx, id)?;
    let by = Some(device.principal);
    if let Some(to) = taken_back(action.state, ActionState::Withdrawn, never_left(&action)) {
        drop_action(cx, tx, &mut action, to, "the person took it back", by)?;
        return Ok(Changed::Done);
    }
    match action.state {
        ActionState::Dispatched | ActionState::Unknown => Ok(Changed::Conflict(
            "It has been sent already; what became of it is being checked. It can then be undone by an \
             action of its own."
                .into(),
        )),
        ActionState::Accepted | ActionState::Effective => Ok(Changed::Conflict(
            "It has happened already. It can be undone by an action of its own: ask for that.".into(),
        )),
        ActionState::Withdrawn | ActionState::Cancelled | ActionState::Abandoned => {
            Ok(Changed::Done)
        }
        ActionState::Proposed
        | ActionState::AwaitingApproval
        | ActionState::Authorized
        | ActionState::Admitted
        | ActionState::Blocked
        | ActionState::Denied
        | ActionState::Expired
        | ActionState::Superseded => Ok(Changed::Conflict(format!(
            "Nothing is left to take back: it is {}.",
            words::action_state(action.state)
        ))),
    }
}

/// What the person says of an effect that nobody could find out about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statement {
    /// It happened.
    Happened,
    /// It did not.
    DidNot,
    /// Keep looking.
    KeepLooking,
}

/// The person says what became of it. Their word settles it; evidence against it opens it again (ADM-23).
pub fn state(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: ActionId,
    statement: Statement,
) -> Result<Changed> {
    let mut action = own(tx, id)?;
    if action.state != ActionState::Unknown {
        return Ok(Changed::Conflict(format!(
            "This is settled already: it is {}.",
            words::action_state(action.state)
        )));
    }
    let by = Some(device.principal);
    let (to, attempt_to) = match statement {
        Statement::KeepLooking => {
            action.due_at = Some(tx.now());
            store::action::put(tx, &action, ActionState::Unknown, by)?;
            return Ok(Changed::Done);
        }
        Statement::Happened => (ActionState::Accepted, AttemptState::Unknown),
        Statement::DidNot => (ActionState::Blocked, AttemptState::Blocked),
    };
    action.state = to;
    action.authority = Some("user".into());
    action.reason = Some("the person said so".into());
    action.not_before = None;
    // Evidence may still come. Where it spoke against itself before, only the person's word is left.
    let again = tx.now().plus_ms(cx.limits.retry_max_ms);
    action.due_at = (!action.contradicted).then_some(again);
    store::action::put(tx, &action, ActionState::Unknown, by)?;
    if let Some(last) = attempt::of_action(tx, id)?.pop()
        && last.state == AttemptState::Unknown
        && attempt_to != AttemptState::Unknown
    {
        let said = Said { reason: action.reason.clone(), answer: last.answer, receipt: None };
        attempt::advance(tx, &last, attempt_to, said)?;
    }
    store::fault::close(tx, &reconciler::fault(id))?;
    settled(cx, tx, &action)?;
    Ok(Changed::Done)
}

/// What a duty still owes: it cannot be closed before (DEL-20).
pub(super) fn owed(tx: &mut OwnerTx<'_, '_>, session: base::SessionId) -> Result<Vec<String>> {
    let line = |action: &Action| {
        format!("{} ({}): {}", action.tool, action.id, words::action_state(action.state))
    };
    Ok(store::action::open(tx, session)?.iter().map(line).collect())
}

/// Ends everything of a lane that has not been sent, as `to` where nobody had admitted it yet: its duty is
/// stopped, or a newer version is in force. What was sent goes on being reconciled (DEL-21).
pub(super) fn drop_unsent(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    session: base::SessionId,
    to: ActionState,
    why: &str,
    by: Option<base::PrincipalId>,
) -> Result<()> {
    for mut action in store::action::open(tx, session)? {
        if let Some(to) = taken_back(action.state, to, never_left(&action)) {
            drop_action(cx, tx, &mut action, to, why, by)?;
        }
    }
    Ok(())
}

/// Whether it was tried and certainly never left: only then is there a time to send it again.
fn never_left(action: &Action) -> bool {
    action.state == ActionState::Blocked && action.not_before.is_some()
}
