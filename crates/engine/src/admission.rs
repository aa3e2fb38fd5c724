//! Admission: the first cut line. A released action goes on only if every condition holds now (ADM-01..05).

use base::{ActionId, OwnerId, Timestamp};
use domain::effect::{Control, Refusal, admit, demanded};
use domain::state::{ActionState, ApprovalState};
use store::action::Action;
use store::approval::Approval;
use store::{OwnerTx, Result};

use crate::Context;
use crate::effect::{
    Held, PERSON_ASKED, ask, ask_besides, control, drop_action, end_approval, forbid, held, lapse,
};
use crate::pump::each;

const BATCH: i64 = 16;

/// Asks for what is released, and for what certainly did not leave. `true`: there may be more.
pub async fn pass(cx: &Context) -> Result<bool> {
    let now = cx.clock.now();
    let found = cx
        .store
        .read(move |tx| {
            let mut found = store::action::due(tx, ActionState::Authorized, now, BATCH)?;
            found.extend(store::action::retry(tx, now, BATCH)?);
            Ok(found)
        })
        .await?;
    let more = found.len() as i64 >= BATCH;
    each(found, |(owner, id)| decide(cx, owner, id)).await?;
    Ok(more)
}

/// Decides on one action, under the operator's lock and then the owner's.
pub async fn decide(cx: &Context, owner: OwnerId, id: ActionId) -> Result<()> {
    let with = cx.clone();
    cx.store.admit(owner, cx.uuid(), move |tx| record(&with, tx, id)).await
}

fn record(cx: &Context, tx: &mut OwnerTx<'_, '_>, id: ActionId) -> Result<()> {
    let mut held = held(tx, id)?;
    let (now, was) = (tx.now(), held.action.state);
    let is_due = held.action.due_at.is_some_and(|at| at <= now);
    let asks = match was {
        ActionState::Authorized => true,
        ActionState::Blocked => held.action.not_before.is_some(),
        ActionState::Proposed
        | ActionState::AwaitingApproval
        | ActionState::Admitted
        | ActionState::Dispatched
        | ActionState::Unknown
        | ActionState::Accepted
        | ActionState::Effective
        | ActionState::Denied
        | ActionState::Expired
        | ActionState::Superseded
        | ActionState::Withdrawn
        | ActionState::Cancelled
        | ActionState::Abandoned => false,
    };
    if !asks || !is_due {
        return Ok(());
    }
    let control = control(tx, &held)?;
    let Err(refusal) = admit(&held.standing(cx), &control, now) else {
        let undo_ms = held.content.effect.undo_ms(&cx.limits);
        let action = &mut held.action;
        action.state = ActionState::Admitted;
        action.not_before = Some(now.plus_ms(undo_ms));
        action.due_at = action.not_before;
        action.reason = None;
        return store::action::put(tx, action, was, None);
    };
    refused(cx, tx, &mut held, &refusal, &control)
}

/// A refusal by a stop changes nothing but the note of it; others end the action or ask anew (ADM-20).
fn refused(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    held: &mut Held,
    refusal: &Refusal,
    control: &Control,
) -> Result<()> {
    // A stop keeps it as it is; only its own expiry ends it meanwhile (ADM-20).
    let now = tx.now();
    let over = held.action.expires_at.is_some_and(|at| at <= now);
    let demanded = demanded(&control.rules, &held.content);
    let asked = store::approval::besides(tx, held.action.id)?;
    let is_over = |a: &Approval| a.state == ApprovalState::Requested && a.until_at <= now;
    if demanded.supervisor && asked.as_ref().is_some_and(is_over) {
        return lapse(cx, tx, held);
    }
    // What is forbidden is over at once, also under a stop.
    let refusal = match (over, demanded.forbid) {
        (true, _) => &Refusal::Expired,
        (false, true) => &Refusal::Forbidden,
        (false, false) => refusal,
    };
    let why = refusal.to_string();
    let released = held.action.state == ActionState::Authorized;
    if released && (refusal.is_passing() || *refusal == Refusal::SupervisorAsked) {
        // The supervisor's time goes on under a stop, like every deadline; it ends with the rule.
        let until = ask_besides(cx, tx, held, demanded)?;
        return wait(cx, tx, &mut held.action, why, until);
    }
    if refusal.is_passing() {
        return wait(cx, tx, &mut held.action, why, None);
    }
    if *refusal == Refusal::Forbidden {
        let to = if released { ActionState::Withdrawn } else { ActionState::Abandoned };
        return forbid(cx, tx, held, to);
    }
    if held.action.state == ActionState::Blocked {
        let to = ActionState::Abandoned;
        return drop_action(cx, tx, &mut held.action, to, &why, None);
    }
    let to = match refusal {
        Refusal::DutyOver | Refusal::Superseded => ActionState::Superseded,
        Refusal::Expired => ActionState::Expired,
        Refusal::NotReleased | Refusal::Limit(_) => {
            end_approval(tx, &held.action)?;
            return ask(cx, tx, held, format!("No grant of yours covers it: {why}."));
        }
        Refusal::PersonAsked => {
            end_approval(tx, &held.action)?;
            return ask(cx, tx, held, PERSON_ASKED.to_owned());
        }
        Refusal::ObjectGone(_)
        | Refusal::Forbidden
        | Refusal::Tampered
        | Refusal::Entry
        | Refusal::SystemStop
        | Refusal::Paused
        | Refusal::Held
        | Refusal::ObjectTaken(_)
        | Refusal::SupervisorAsked
        | Refusal::ErrandOpen(_) => ActionState::Withdrawn,
    };
    drop_action(cx, tx, &mut held.action, to, &why, None)
}

fn wait(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &mut Action,
    why: String,
    until: Option<Timestamp>,
) -> Result<()> {
    // Whatever ends the stop wakes it; the time is for a hint that was lost, its own expiry, or the end of a
    // question about it.
    let again = tx.now().plus_ms(cx.limits.admission_retry_ms);
    action.due_at = [action.expires_at, until].into_iter().flatten().chain([again]).min();
    action.reason = Some(why);
    store::action::put(tx, action, action.state, None)
}
