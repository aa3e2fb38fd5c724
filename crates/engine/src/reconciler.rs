//! Reconciler: finds out what became of what was sent, by the operation's own id (ADM-22..24, ADM-33, ADM-36).
//!
//! It only looks, so it goes on while everything is paused. What it cannot settle in time it puts before
//! the person, as it does with what turns up after it was settled; nothing here sends anything again.

use std::time::Duration;

use base::{ActionId, OwnerId, Timestamp};
use domain::effect::{Finding, Settled, Sight, reconcile};
use domain::state::{ActionState, AttemptState};
use domain::words::{self, Notice};
use store::action::Action;
use store::attempt::{self, Said};
use store::{OwnerTx, Result};

use crate::dispatcher::unknown;
use crate::effect::{can_look_up, held, settled};
use crate::{Context, notice};

const BATCH: i64 = 16;
const WATCHED: [ActionState; 4] =
    [ActionState::Dispatched, ActionState::Unknown, ActionState::Accepted, ActionState::Blocked];

/// What is to be looked at now.
pub async fn due(cx: &Context) -> Result<Vec<(OwnerId, ActionId)>> {
    let now = cx.clock.now();
    let find = move |tx: &mut store::Tx<'_>| {
        let mut found = Vec::new();
        for state in WATCHED {
            found.extend(store::action::due(tx, state, now, BATCH)?);
        }
        Ok(found)
    };
    cx.store.read(find).await
}

/// Looks at one of them.
pub async fn one(cx: &Context, owner: OwnerId, id: ActionId) -> Result<()> {
    let Some(look) = claim(cx, owner, id).await? else { return Ok(()) };
    let sight = perform(cx, &look).await;
    cx.write(owner, move |cx, tx| record(cx, tx, &look, sight)).await
}

/// An operation to look up.
#[derive(Debug, Clone)]
pub struct Look {
    action: ActionId,
    /// The tool that made it.
    pub tool: String,
    /// Under which id the outside knows it.
    pub operation: String,
    /// When the look began.
    at: Timestamp,
}

/// What is to be looked up, if it still is; the next look is set before this one begins.
pub async fn claim(cx: &Context, owner: OwnerId, id: ActionId) -> Result<Option<Look>> {
    cx.write(owner, move |cx, tx| take(cx, tx, id)).await
}

fn take(cx: &Context, tx: &mut OwnerTx<'_, '_>, id: ActionId) -> Result<Option<Look>> {
    let mut action = store::action::get(tx, id)?;
    let now = tx.now();
    let watched = WATCHED.contains(&action.state);
    if !watched || action.due_at.is_none_or(|at| at > now) {
        return Ok(None);
    }
    if action.state == ActionState::Blocked && action.not_before.is_some() {
        return Ok(None);
    }
    let can_look_up = can_look_up(cx, tx, &action)?;
    if action.state == ActionState::Dispatched {
        return forgotten(cx, tx, &mut action, can_look_up);
    }
    let late = is_late(cx, now, &action, can_look_up);
    match action.state {
        ActionState::Unknown => tell(cx, tx, &mut action, late)?,
        ActionState::Accepted => tell_confirmed(cx, tx, &mut action, late)?,
        ActionState::Proposed
        | ActionState::AwaitingApproval
        | ActionState::Authorized
        | ActionState::Admitted
        | ActionState::Dispatched
        | ActionState::Effective
        | ActionState::Blocked
        | ActionState::Denied
        | ActionState::Expired
        | ActionState::Superseded
        | ActionState::Withdrawn
        | ActionState::Cancelled
        | ActionState::Abandoned => {}
    }
    let was = action.state;
    action.tries = action.tries.saturating_add(1);
    action.due_at = can_look_up.then(|| now.plus_ms(cx.backoff_ms(action.tries)));
    store::action::put(tx, &action, was, None)?;
    let operation = attempt::of_action(tx, id)?.pop().map(|attempt| attempt.operation_id);
    Ok(operation.filter(|_| can_look_up).map(|operation| Look {
        action: id,
        tool: action.tool,
        operation,
        at: now,
    }))
}

/// Its dispatcher is gone: started without a result is unknown (ADM-22).
fn forgotten(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &mut Action,
    can_look_up: bool,
) -> Result<Option<Look>> {
    let why = match can_look_up {
        true => "no answer is on record",
        false => "no answer is on record, and there is no way to look it up",
    };
    if let Some(attempt) = attempt::of_action(tx, action.id)?.pop()
        && attempt.state == AttemptState::Registered
    {
        let said = Said { reason: Some(why.into()), ..Said::default() };
        attempt::advance(tx, &attempt, AttemptState::Unknown, said)?;
    }
    unknown(cx, tx, action, why.into())?;
    Ok(None)
}

/// Whether looking has lasted for as long as it may, or is not possible at all.
fn is_late(cx: &Context, now: Timestamp, action: &Action, can_look_up: bool) -> bool {
    let since = action.sent_at.unwrap_or(action.moved_at);
    !can_look_up || since.plus_ms(cx.limits.reconcile_ms) <= now
}

/// Tells whoever waits, once, that it was confirmed and that no evidence could be had: it stays confirmed, and
/// is never shown as in force by that.
fn tell_confirmed(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &mut Action,
    late: bool,
) -> Result<()> {
    if action.escalated_at.is_some() || !late {
        return Ok(());
    }
    action.escalated_at = Some(tx.now());
    action.reason = Some("its vendor confirmed it; no evidence could be had yet".into());
    settled(cx, tx, action)
}

/// Tells the person that it is being checked, and at the deadline asks them.
fn tell(cx: &Context, tx: &mut OwnerTx<'_, '_>, action: &mut Action, late: bool) -> Result<()> {
    if action.escalated_at.is_some() {
        return Ok(());
    }
    let now = tx.now();
    let since = action.sent_at.unwrap_or(action.moved_at);
    if late {
        return escalate(cx, tx, action, None);
    }
    if since.plus_ms(cx.limits.unknown_told_ms) <= now {
        let held = held(tx, action.id)?;
        let what = words::operation(&held.content, store::owner::locked(tx)?.language());
        let notice = Notice::BeingChecked { what: &what };
        notice::fault(cx, tx, action.session, &fault(action.id), &notice)?;
    }
    Ok(())
}

/// The fault of an unknown effect.
pub(crate) fn fault(action: ActionId) -> String {
    format!("unknown:{action}")
}

/// Puts it before the person, once: it happened, it did not, or keep looking.
fn escalate(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &mut Action,
    contradiction: Option<&str>,
) -> Result<()> {
    action.escalated_at = Some(tx.now());
    let held = held(tx, action.id)?;
    let text = |language| words::did_it_happen(&held.content, contradiction, language);
    notice::action(cx, tx, action, text)?;
    settled(cx, tx, action)
}

/// Looks.
pub async fn perform(cx: &Context, look: &Look) -> Sight {
    let limit = Duration::from_millis(cx.limits.tool_call_ms);
    cx.world.find(&look.tool, &look.operation, limit).await
}

/// Takes what was seen as far as it proves something.
pub fn record(cx: &Context, tx: &mut OwnerTx<'_, '_>, look: &Look, sight: Sight) -> Result<()> {
    let mut action = store::action::get(tx, look.action)?;
    if !WATCHED.contains(&action.state) || action.state == ActionState::Dispatched {
        return Ok(());
    }
    let settled_after_ms = cx.world.spec(&action.tool).and_then(|spec| spec.settled_after_ms);
    let last = attempt::of_action(tx, action.id)?.pop();
    let sent_by = last.as_ref().map_or(action.moved_at, |attempt| attempt.answer_by);
    let blocked = last.filter(|attempt| attempt.state == AttemptState::Blocked);
    let seen = Settled {
        state: action.state,
        receipt: action.receipt.clone(),
        sent_by,
        settled_after_ms,
        contradicted: action.contradicted,
        refused: blocked.and_then(|attempt| attempt.reason),
    };
    // What was seen was so when the look began, and perhaps no longer.
    match reconcile(&seen, &sight, look.at) {
        Finding::Again => Ok(()),
        Finding::Confirmed => {
            action.due_at = once_more(cx, &action, tx.now());
            store::action::put(tx, &action, action.state, None)
        }
        Finding::Effective { receipt } => effective(cx, tx, &mut action, receipt),
        Finding::Blocked { why } => {
            let was = action.state;
            action.state = ActionState::Blocked;
            action.reason = Some(why);
            action.authority = Some("outside".into());
            (action.not_before, action.due_at) = (None, once_more(cx, &action, tx.now()));
            store::action::put(tx, &action, was, None)?;
            end(tx, &action, AttemptState::Blocked)?;
            store::fault::close(tx, &fault(action.id))?;
            settled(cx, tx, &action)
        }
        Finding::Contradiction { why } => contradicted(cx, tx, &mut action, &why),
    }
}

/// When what did not happen is looked at again: a vendor may do late what it promised to do no more, and the
/// person has to know (ADM-23). Each time it is twice as old, until the reconcile deadline.
fn once_more(cx: &Context, action: &Action, now: Timestamp) -> Option<Timestamp> {
    let sent = action.sent_at?;
    let age_ms = u64::try_from(now.since(sent).as_millis()).unwrap_or(u64::MAX);
    (age_ms < cx.limits.reconcile_ms).then(|| now.plus_ms(age_ms.max(cx.limits.retry_ms)))
}

/// Evidence: accepted, if it was not yet, and in force.
fn effective(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &mut Action,
    receipt: String,
) -> Result<()> {
    in_force(tx, action, receipt)?;
    settled(cx, tx, action)
}

/// The same, for whoever tells it in other words.
pub(crate) fn in_force(
    tx: &mut OwnerTx<'_, '_>,
    action: &mut Action,
    receipt: String,
) -> Result<()> {
    action.receipt = Some(receipt);
    action.authority = Some("outside".into());
    action.due_at = None;
    action.reason = None;
    if action.state != ActionState::Accepted {
        let was = action.state;
        action.state = ActionState::Accepted;
        store::action::put(tx, action, was, None)?;
        end(tx, action, AttemptState::Accepted)?;
    }
    action.state = ActionState::Effective;
    store::action::put(tx, action, ActionState::Accepted, None)?;
    store::fault::close(tx, &fault(action.id))
}

/// What was said and what is there do not fit: nothing is shown as in force, and the person decides.
pub(crate) fn contradicted(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &mut Action,
    why: &str,
) -> Result<()> {
    let was = action.state;
    action.state = ActionState::Unknown;
    action.contradicted = true;
    action.authority = None;
    action.reason = Some(why.to_owned());
    action.tries = 0;
    action.due_at = Some(tx.now().plus_ms(cx.limits.retry_max_ms));
    action.escalated_at = Some(tx.now());
    store::action::put(tx, action, was, None)?;
    escalate(cx, tx, action, Some(why))
}

/// The last attempt's own end, if it has none yet.
fn end(tx: &mut OwnerTx<'_, '_>, action: &Action, to: AttemptState) -> Result<()> {
    match attempt::of_action(tx, action.id)?.pop() {
        Some(attempt) if attempt.state == AttemptState::Unknown => {
            let said = Said {
                reason: action.reason.clone(),
                receipt: action.receipt.clone(),
                answer: attempt.answer,
            };
            attempt::advance(tx, &attempt, to, said).map(|_| ())
        }
        Some(_) | None => Ok(()),
    }
}
