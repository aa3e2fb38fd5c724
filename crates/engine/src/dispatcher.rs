//! Dispatcher: the second cut line. Recheck, register the attempt, commit, and only then send (ADM-16..18).

use std::time::Duration;

use base::{ActionId, AttemptId, Digest, OwnerId};
use domain::effect::{Observation, Outcome, Recall, Refusal, admit, judge, recall};
use domain::event::Trust;
use domain::state::{ActionState, AttemptState};
use store::action::Action;
use store::attempt::{self, Attempt, Registered, Said};
use store::event::NewBody;
use store::{OwnerTx, Permit, Result};

use crate::effect::{
    Held, answered, can_look_up, control, drop_action, forbid, held, settled, use_up,
};
use crate::reconciler::contradicted;
use crate::world::{Acted, Health};
use crate::{Context, notice, reconciler, tools};

const BATCH: i64 = 16;

/// What was admitted and may leave now.
pub async fn due(cx: &Context) -> Result<Vec<(OwnerId, ActionId)>> {
    let now = cx.clock.now();
    cx.store.read(move |tx| store::action::due(tx, ActionState::Admitted, now, BATCH)).await
}

/// Sends one of them.
pub async fn one(cx: &Context, owner: OwnerId, id: ActionId) -> Result<()> {
    let Some(permit) = claim(cx, owner, id).await? else { return Ok(()) };
    let attempt = permit.attempt();
    let acted = perform(cx, permit).await;
    cx.write(owner, move |cx, tx| record(cx, tx, attempt, acted)).await
}

/// Rechecks everything that time can change and commits the attempt: the permit is for that one alone.
pub async fn claim(cx: &Context, owner: OwnerId, id: ActionId) -> Result<Option<Permit>> {
    let with = cx.clone();
    cx.store.dispatch(owner, cx.uuid(), move |tx| register(&with, tx, id)).await
}

fn register(cx: &Context, tx: &mut OwnerTx<'_, '_>, id: ActionId) -> Result<Option<Registered>> {
    let mut held = held(tx, id)?;
    let now = tx.now();
    let is_due = held.action.due_at.is_some_and(|at| at <= now);
    if held.action.state != ActionState::Admitted || !is_due {
        return Ok(None);
    }
    let control = control(tx, &held)?;
    if let Err(refusal) = admit(&held.standing(cx), &control, now) {
        recalled(cx, tx, &mut held, &refusal)?;
        return Ok(None);
    }
    use_up(tx, &held.action)?;
    let n = attempt::of_action(tx, id)?.len() as i64 + 1;
    let send_by = now.plus_ms(cx.limits.send_by_ms);
    let attempt = Attempt {
        id: cx.id(),
        owner: tx.owner(),
        action: id,
        n,
        operation_id: if n == 1 { id.to_string() } else { format!("{id}.{n}") },
        dispatcher: cx.incarnation,
        send_by,
        answer_by: send_by.plus_ms(cx.limits.effect_call_ms),
        created_at: now,
        state: AttemptState::Registered,
        reason: None,
        receipt: None,
        answer: None,
        moved_at: now,
    };
    attempt::register(tx, &mut held.action, attempt, &held.bytes).map(Some)
}

/// The recheck found a reason not to send: a pause cancels for good, a hold sends it back (ADM-16 b).
fn recalled(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    held: &mut Held,
    refusal: &Refusal,
) -> Result<()> {
    let why = refusal.to_string();
    match recall(refusal) {
        Recall::Cancel if *refusal == Refusal::Forbidden => {
            forbid(cx, tx, held, ActionState::Cancelled)
        }
        Recall::Cancel => drop_action(cx, tx, &mut held.action, ActionState::Cancelled, &why, None),
        Recall::Return => {
            let action = &mut held.action;
            action.state = ActionState::Authorized;
            action.not_before = None;
            action.due_at = Some(tx.now().plus_ms(cx.limits.admission_retry_ms));
            action.reason = Some(why);
            store::action::put(tx, action, ActionState::Admitted, None)
        }
    }
}

/// Sends it. Whoever crashes here leaves an attempt without an answer: unknown, never "did not happen".
pub async fn perform(cx: &Context, permit: Permit) -> Acted {
    let limit = Duration::from_millis(cx.limits.effect_call_ms);
    cx.world.act(permit, cx.clock.as_ref(), limit).await
}

/// Records what came of an attempt, by its id; also an answer that came when it was called unknown.
pub fn record(cx: &Context, tx: &mut OwnerTx<'_, '_>, id: AttemptId, acted: Acted) -> Result<()> {
    let attempt = attempt::get(tx, id)?;
    let mut action = store::action::get(tx, attempt.action)?;
    let open = matches!(attempt.state, AttemptState::Registered | AttemptState::Unknown);
    let same = matches!(action.state, ActionState::Dispatched | ActionState::Unknown);
    if !open || !same {
        return late(cx, tx, &mut action, acted.seen);
    }
    notice::health(cx, tx, shown(&action.tool, &acted).as_ref())?;
    let text = acted.answer;
    let body = NewBody::text(cx.id(), text.clone(), format!("attempt:{id}"), Trust::Outside);
    let answer = Some(body.id);
    store::event::put_body(tx, body)?;
    let can_look_up = can_look_up(cx, tx, &action)?;
    match judge(acted.seen, can_look_up) {
        Outcome::Accepted { receipt } => {
            let said = Said { receipt: Some(receipt.clone()), answer, reason: None };
            attempt::advance(tx, &attempt, AttemptState::Accepted, said)?;
            tools::of_effect(cx, tx, &action, &acted.issued)?;
            accepted(cx, tx, &mut action, receipt, can_look_up)
        }
        Outcome::Answered => {
            let receipt = format!("answer {}", Digest::of(text.as_bytes()));
            let said = Said { receipt: Some(receipt.clone()), answer, reason: None };
            attempt::advance(tx, &attempt, AttemptState::Accepted, said)?;
            tools::of_effect(cx, tx, &action, &acted.issued)?;
            reconciler::in_force(tx, &mut action, receipt)?;
            answered(cx, tx, &action, &text)
        }
        Outcome::Blocked { why, again } => {
            let said = Said { reason: Some(why.clone()), answer, receipt: None };
            attempt::advance(tx, &attempt, AttemptState::Blocked, said)?;
            let again = again && attempt.n < i64::from(cx.limits.attempts_max);
            blocked(cx, tx, &mut action, why, again)
        }
        Outcome::Refused { why } => {
            let said = Said { reason: Some(why.clone()), answer, receipt: None };
            attempt::advance(tx, &attempt, AttemptState::Blocked, said)?;
            unknown(cx, tx, &mut action, why)
        }
        Outcome::Unknown { why } if attempt.state == AttemptState::Registered => {
            let said = Said { reason: Some(why.clone()), answer, receipt: None };
            attempt::advance(tx, &attempt, AttemptState::Unknown, said)?;
            unknown(cx, tx, &mut action, why)
        }
        Outcome::Unknown { .. } => Ok(()),
    }
}

/// A receipt that came when somebody had spoken already: it completes their yes, and speaks against their no.
fn late(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &mut Action,
    seen: Observation,
) -> Result<()> {
    let Observation::Receipt(receipt) = seen else { return Ok(()) };
    match action.state {
        ActionState::Accepted if action.receipt.is_none() => {
            action.receipt = Some(receipt);
            store::action::put(tx, action, ActionState::Accepted, None)
        }
        ActionState::Blocked if action.not_before.is_none() => {
            let why = format!("it was taken for not done, and yet {receipt} was confirmed");
            contradicted(cx, tx, action, &why)
        }
        ActionState::Unknown if !action.contradicted => {
            let why = format!("it was refused, and yet {receipt} was confirmed");
            contradicted(cx, tx, action, &why)
        }
        ActionState::Proposed
        | ActionState::AwaitingApproval
        | ActionState::Authorized
        | ActionState::Admitted
        | ActionState::Dispatched
        | ActionState::Unknown
        | ActionState::Accepted
        | ActionState::Effective
        | ActionState::Blocked
        | ActionState::Denied
        | ActionState::Expired
        | ActionState::Superseded
        | ActionState::Withdrawn
        | ActionState::Cancelled
        | ActionState::Abandoned => Ok(()),
    }
}

/// What a sending showed of its connector's health (TOOL-08).
fn shown(tool: &str, acted: &Acted) -> Option<Health> {
    let connector = tool.split('.').next().unwrap_or_default().to_owned();
    match (&acted.refused_key, &acted.seen) {
        (Some(why), _) => Some(Health::Broken { connector, why: why.clone() }),
        (None, Observation::Receipt(_) | Observation::Answered | Observation::Refused(_)) => {
            Some(Health::Works { connector })
        }
        (None, Observation::NotSent(_) | Observation::Other(_) | Observation::Lost(_)) => None,
    }
}

/// The outside confirmed it. In force it is once evidence says so; without a way to look, that is all.
fn accepted(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &mut Action,
    receipt: String,
    can_look_up: bool,
) -> Result<()> {
    let was = action.state;
    action.state = ActionState::Accepted;
    action.receipt = Some(receipt);
    action.authority = Some("outside".into());
    action.reason = None;
    action.tries = 0;
    action.due_at = can_look_up.then(|| tx.now().plus_ms(cx.limits.retry_ms));
    store::action::put(tx, action, was, None)?;
    if can_look_up { Ok(()) } else { settled(cx, tx, action) }
}

/// Certainly nothing happened. What never left may be sent again, after a new admission.
fn blocked(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &mut Action,
    why: String,
    again: bool,
) -> Result<()> {
    let was = action.state;
    action.state = ActionState::Blocked;
    action.reason = Some(why);
    action.tries = 0;
    if again {
        let next = tx.now().plus_ms(cx.backoff_ms(1));
        (action.not_before, action.due_at) = (Some(next), Some(next));
        return store::action::put(tx, action, was, None);
    }
    action.authority = Some("outside".into());
    (action.not_before, action.due_at) = (None, None);
    store::fault::close(tx, &reconciler::fault(action.id))?;
    store::action::put(tx, action, was, None)?;
    settled(cx, tx, action)
}

/// Nobody knows. The reconciler looks; the model is never asked whether to send it again.
pub(crate) fn unknown(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &mut Action,
    why: String,
) -> Result<()> {
    let was = action.state;
    action.state = ActionState::Unknown;
    action.reason = Some(why);
    action.tries = 0;
    action.due_at = Some(tx.now().plus_ms(cx.limits.retry_ms));
    store::action::put(tx, action, was, None)
}
