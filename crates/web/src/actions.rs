//! Actions: outside effects that were proposed, released, sent and settled, and the person's word on each
//! (ADM-06, ADM-14, ADM-21, ADM-23).

use axum::Json as Sent;
use axum::extract::{Extension, State};
use base::{ActionId, Digest};
use engine::Context;
use engine::control::{self, Changed, Shown, Statement};
use serde::Deserialize;
use serde_json::{Value, json};
use store::device::Device;
use store::owner::PrincipalKind;
use store::{OwnerTx, Result, Tx};
use uuid::Uuid;

use crate::App;
use crate::auth::Caller;
use crate::body::{Asked, Json, Named, check_limit};
use crate::duties::Write;
use crate::idempotent::{Ask, Order, Outcome, target, write};
use crate::problem::Problem;
use crate::stale;
use crate::views::{self, Reader, action::Seen};

/// Which part of the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    limit: Option<u32>,
}

const USUAL: u32 = 100;

/// The owner's actions, newest first, without their attempts; for a supervisor those that name them.
pub(crate) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Asked(part): Asked<Part>,
) -> std::result::Result<Sent<Value>, Problem> {
    let limit = check_limit(part.limit, USUAL)?;
    let (owner, limits) = (caller.device.owner, app.web.cx.limits.clone());
    let now = app.web.cx.clock.now();
    let read = move |tx: &mut Tx<'_>| {
        let of = store::owner::get(tx, owner)?;
        let seen = Seen { owner: &of, limits: &limits, now };
        let mut shown = Vec::new();
        let actions = match caller.device.kind {
            PrincipalKind::Supervisor => store::action::besides(tx, owner, limit)?,
            PrincipalKind::User | PrincipalKind::Policy => store::action::all(tx, owner, limit)?,
        };
        for action in actions {
            let answer = views::action::short(tx, &seen, &action)?;
            shown.push(views::with_words(tx, answer, Reader::of(&of, caller.device.kind))?);
        }
        Ok(json!({"actions": shown, "seq": of.change_seq}))
    };
    Ok(Sent(app.web.cx.store.read(read).await?))
}

/// How the person decided on the cards of each tool (UX rule 24).
pub(crate) async fn log(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> std::result::Result<Sent<Value>, Problem> {
    let owner = caller.device.owner;
    let read = move |tx: &mut Tx<'_>| store::approval::decisions(tx, owner);
    Ok(Sent(json!({"classes": app.web.cx.store.read(read).await?})))
}

/// Why an action is what it is: from the person's words to the evidence.
pub(crate) async fn explain(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<ActionId>,
) -> std::result::Result<Sent<Value>, Problem> {
    let owner = caller.device.owner;
    let read = move |tx: &mut Tx<'_>| engine::explain::collect(tx, owner, id);
    let explained = app.web.cx.store.read(read).await?;
    let shown = serde_json::to_value(explained)
        .map_err(|error| Problem::from(store::StoreError::Corrupt(error.to_string())))?;
    Ok(Sent(shown))
}

/// One action as it stands now, with what was sent for it.
pub(crate) async fn one(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<ActionId>,
) -> std::result::Result<Sent<Value>, Problem> {
    let (owner, limits) = (caller.device.owner, app.web.cx.limits.clone());
    let now = app.web.cx.clock.now();
    let kind = caller.device.kind;
    let read = move |tx: &mut Tx<'_>| {
        control::concerns(tx, kind, id)?;
        let of = store::owner::get(tx, owner)?;
        let answer = views::action::whole(tx, &Seen { owner: &of, limits: &limits, now }, id)?;
        views::with_words(tx, answer, Reader::of(&of, kind))
    };
    Ok(Sent(app.web.cx.store.read(read).await?))
}

/// A release, with the digest of the card that was shown, and the template that worded it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApproveWrite {
    id: Uuid,
    digest: String,
    template: Option<String>,
}

/// The person releases exactly what was shown, or the supervisor approves it besides.
pub(crate) async fn approve(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(action): Named<ActionId>,
    Json(asked): Json<ApproveWrite>,
) -> std::result::Result<Sent<Value>, Problem> {
    let content = vec![asked.digest.as_bytes()];
    let ask = Ask { id: asked.id, operation: "approve", target: target(action), content };
    // What is no digest is the digest of nothing that was ever shown, and meets the same refusal.
    let shown = Digest::from_hex(&asked.digest).unwrap_or(Digest::ZERO);
    let template = asked.template;
    let work = move |cx: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let shown_as = Shown { digest: shown, template };
        let changed = control::approve(tx, device, action, shown_as)?;
        outcome(cx, tx, device, action, Some(shown), changed)
    };
    Ok(Sent(write(&app, caller, Order::InTurn, ask, work).await?.body))
}

/// A refusal, if the person likes with a reason that the agent reads.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DenyWrite {
    id: Uuid,
    reason: Option<String>,
}

/// The person refuses, or the supervisor. Like a stop it waits for nothing.
pub(crate) async fn deny(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(action): Named<ActionId>,
    Json(asked): Json<DenyWrite>,
) -> std::result::Result<Sent<Value>, Problem> {
    let reason = asked.reason.clone();
    let content = asked.reason.iter().map(|reason| reason.as_bytes()).collect();
    let ask = Ask { id: asked.id, operation: "deny", target: target(action), content };
    let work = move |cx: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let changed = control::deny(cx, tx, device, action, reason)?;
        outcome(cx, tx, device, action, None, changed)
    };
    Ok(Sent(write(&app, caller, Order::First, ask, work).await?.body))
}

/// The person takes back what has not been sent. Like a stop it waits for nothing.
pub(crate) async fn withdraw(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(action): Named<ActionId>,
    Json(asked): Json<Write>,
) -> std::result::Result<Sent<Value>, Problem> {
    let ask =
        Ask { id: asked.id, operation: "withdraw", target: target(action), content: Vec::new() };
    let work = move |cx: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let changed = control::withdraw(cx, tx, device, action)?;
        outcome(cx, tx, device, action, None, changed)
    };
    Ok(Sent(write(&app, caller, Order::First, ask, work).await?.body))
}

/// What the person says of an effect that nobody could find out about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StateWrite {
    id: Uuid,
    statement: Statement,
}

/// The person says what became of it.
pub(crate) async fn state(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(action): Named<ActionId>,
    Json(asked): Json<StateWrite>,
) -> std::result::Result<Sent<Value>, Problem> {
    let statement = asked.statement;
    let word: &[u8] = match statement {
        Statement::Happened => b"happened",
        Statement::DidNot => b"did_not",
        Statement::KeepLooking => b"keep_looking",
    };
    let ask = Ask { id: asked.id, operation: "state", target: target(action), content: vec![word] };
    let work = move |cx: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let changed = control::state(cx, tx, device, action, statement)?;
        outcome(cx, tx, device, action, None, changed)
    };
    Ok(Sent(write(&app, caller, Order::InTurn, ask, work).await?.body))
}

/// The action as the decision left it.
fn outcome(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    action: ActionId,
    shown: Option<Digest>,
    changed: Changed,
) -> Result<Outcome> {
    match changed {
        Changed::Done => {}
        Changed::Conflict(what) => return stale::action(cx, tx, device, action, shown, what),
        Changed::NotYours(whose) => return Ok(Outcome::Forbidden(whose)),
    }
    let (owner, now, seq) = (store::owner::locked(tx)?, tx.now(), tx.seq());
    let mut answer =
        views::action::whole(tx, &Seen { owner: &owner, limits: &cx.limits, now }, action)?;
    answer.frame["seq"] = json!(seq);
    Ok(Outcome::Done(answer))
}
