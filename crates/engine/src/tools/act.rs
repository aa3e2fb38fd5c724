//! A call with an effect becomes an action: frozen in the step's own commit, and nothing is sent by it (DEL-08).

use domain::effect::{Object, freeze};
use domain::event::{EventKind, Trust};
use domain::state::ActionState;
use model::ToolCall;
use serde_json::{Map, Value};
use store::action::{Action, ActionObject};
use store::event::NewBody;
use store::{OwnerTx, Result};

use super::{objects, waits};
use crate::Context;
use crate::worker::Work;
use crate::world::Intended;

/// Actions of one lane that may be open at once: a loop must not fill a person's page with cards.
const OPEN_MAX: usize = 20;
/// How long a lane waits for news of an action at most.
const WAIT_MS: u64 = 8 * 24 * 3_600_000;

/// Freezes a call as an action and registers the wait for its end.
pub(super) fn propose(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    wish: &Intended,
    arguments: &Map<String, Value>,
) -> Result<String> {
    let run = &work.run;
    let tool = &wish.spec.tool;
    let refuse = |why: String| format!("Not proposed: {why}.");
    if store::action::open(tx, run.session)?.len() >= OPEN_MAX {
        let why = format!("{OPEN_MAX} actions are open already; wait for what comes of them");
        return Ok(refuse(why));
    }
    let mut found = Vec::new();
    for need in &wish.needs {
        match objects::issued(tx, work, need)? {
            Some(object) => found.push(object),
            None => return Ok(objects::not_issued(need)),
        }
    }
    let frozen = match freeze(&wish.spec, arguments, &found, run.task_version, None) {
        Ok(frozen) => frozen,
        Err(error) => return Ok(refuse(error.to_string())),
    };
    let body = NewBody {
        id: cx.id(),
        bytes: frozen.bytes,
        media: "application/json".into(),
        provenance: format!("run:{}:action", run.id),
        trust: Trust::Outside,
    };
    let amount = frozen.content.amount();
    let action = Action {
        id: cx.id(),
        owner: tx.owner(),
        session: run.session,
        duty: run.duty,
        task_version: run.task_version,
        run: run.id,
        call_id: call.id.clone(),
        tool: tool.clone(),
        effect: wish.spec.effect,
        content: body.id,
        digest: frozen.digest,
        errand: frozen.content.errand.clone(),
        minor: amount.map(|amount| amount.minor),
        currency: amount.map(|amount| amount.currency),
        compensates: None,
        expires_at: frozen.expires_at,
        created_at: tx.now(),
        state: ActionState::Proposed,
        tier: None,
        reason: None,
        draws_on: None,
        approval: None,
        not_before: None,
        due_at: Some(tx.now()),
        tries: 0,
        sent_at: None,
        receipt: None,
        authority: None,
        contradicted: false,
        escalated_at: None,
        moved_at: tx.now(),
    };
    store::event::put_body(tx, body)?;
    store::action::insert(tx, &action, &named(&action, &found))?;
    let awaited = waits::Awaited {
        kind: EventKind::ActionSettled.word().to_owned(),
        key: action.id.to_string(),
        due_at: tx.now().plus_ms(WAIT_MS),
    };
    waits::register(cx, tx, work, call, awaited)?;
    Ok(format!(
        "Proposed as action {}. Nothing has happened yet: it is released within what the person granted, \
         or by the person on a card that they see now. You are woken with what came of it; do not promise \
         it, do not propose it again, and go on with what does not depend on it.",
        action.id
    ))
}

fn named(action: &Action, found: &[Object]) -> Vec<ActionObject> {
    let row = |object: &Object| ActionObject {
        action: action.id,
        argument: object.argument.clone(),
        owner: action.owner,
        kind: object.kind.clone(),
        value: object.id.clone(),
    };
    found.iter().map(row).collect()
}
