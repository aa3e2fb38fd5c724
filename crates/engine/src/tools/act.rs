//! A call with an effect becomes an action: frozen in the step's own commit, and nothing is sent by it (DEL-08).

use base::ActionId;
use domain::effect::{Object, freeze};
use domain::event::{EventKind, Trust};
use model::ToolCall;
use serde_json::{Map, Value};
use store::action::{Action, ActionObject, Origin};
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
    let undone = undone(cx, tx, work, tool, &found)?;
    let frozen = match freeze(&wish.spec, arguments, &found, run.task_version, undone) {
        Ok(frozen) => frozen,
        Err(error) => return Ok(refuse(error.to_string())),
    };
    let body = NewBody {
        id: cx.id(),
        bytes: frozen.bytes.clone(),
        media: "application/json".into(),
        provenance: format!("run:{}:action", run.id),
        trust: Trust::Outside,
    };
    let origin = Origin {
        id: cx.id(),
        owner: tx.owner(),
        session: run.session,
        duty: run.duty,
        run: run.id,
        call_id: call.id.clone(),
        content: body.id,
    };
    let action = Action::proposed(origin, &frozen, tx.now());
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

/// The action that this one would undo: its receipt is named, and its manifest says that this tool does it
/// (ADM-27).
fn undone(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    tool: &str,
    found: &[Object],
) -> Result<Option<ActionId>> {
    for object in found {
        let done = store::action::by_receipt(tx, work.run.session, &object.id)?;
        let undoes = |done: &Action| {
            cx.world.spec(&done.tool).is_some_and(|spec| spec.undo.as_deref() == Some(tool))
        };
        if let Some(done) = done.filter(undoes) {
            return Ok(Some(done.id));
        }
    }
    Ok(None)
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
