//! Control state: pauses, holds and the operator's stop, as a person sees and changes them (P8, PRO-17).

use axum::Json as Sent;
use axum::extract::{Extension, State};
use base::{DutyId, HoldId, PauseId};
use engine::{Context, control};
use serde::Deserialize;
use serde_json::{Value, json};
use store::device::Device;
use store::{OwnerTx, Result, Tx};
use uuid::Uuid;

use crate::App;
use crate::auth::Caller;
use crate::body::{Json, Named};
use crate::duties::Write;
use crate::idempotent::{Answer, Ask, Order, Outcome, target, write};
use crate::problem::Problem;

/// Characters of a message that a hold repeats.
const SAID_CHARS: usize = 400;

/// What is stopped, paused and held, and how far the agent goes by itself.
pub(crate) async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> std::result::Result<Sent<Value>, Problem> {
    let owner = caller.device.owner;
    Ok(Sent(app.web.cx.store.read(move |tx| view(tx, owner)).await?))
}

fn view(tx: &mut Tx<'_>, owner: base::OwnerId) -> Result<Value> {
    let of = store::owner::get(tx, owner)?;
    let user = store::owner::principal(tx, owner, store::owner::PrincipalKind::User)?.id;
    let mut pauses = Vec::new();
    for pause in store::hold::pauses(tx, owner)? {
        let title = pause.duty.map(|duty| engine::trace::title(tx, owner, duty)).transpose()?;
        pauses.push(json!({
            "id": pause.id,
            "duty": pause.duty,
            "title": title,
            "by": if pause.placed_by == user { "user" } else { "policy" },
            "created_at": pause.created_at,
        }));
    }
    let mut holds = Vec::new();
    for hold in store::hold::placed(tx, owner)? {
        let event = store::event::get(tx, hold.event)?;
        let text = store::event::body_text(tx, event.body)?;
        holds.push(json!({
            "id": hold.id,
            "event": hold.event,
            "text": text.chars().take(SAID_CHARS).collect::<String>(),
            "verdict": hold.verdict,
            "asked_at": hold.asked_at,
            "created_at": hold.created_at,
        }));
    }
    Ok(json!({
        "system_stop": store::hold::is_stopped(tx)?,
        "pauses": pauses,
        "holds": holds,
        "dial": of.dial,
        "seq": of.change_seq,
    }))
}

/// A pause of one duty, or of everything.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseWrite {
    id: Uuid,
    duty: Option<DutyId>,
}

/// The person pauses a duty, or everything. It goes to the head of the queue of writes. A repeat pauses nothing
/// again; it tells whether the pause still stands.
pub(crate) async fn pause(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(asked): Json<PauseWrite>,
) -> std::result::Result<Sent<Value>, Problem> {
    let duty = asked.duty;
    let ask = Ask {
        id: asked.id,
        operation: "pause",
        target: duty.map(base::Id::uuid),
        content: Vec::new(),
    };
    let work = move |cx: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let changed = control::pause(cx, tx, device, duty)?;
        let owner = tx.owner();
        let placed = store::hold::pauses(tx, owner)?.into_iter().find(|pause| pause.duty == duty);
        let id = placed.map(|pause| pause.id);
        let frame = json!({"pause": id, "duty": duty, "seq": tx.seq()});
        Ok(Outcome::of(changed, Answer::plain(frame)))
    };
    let mut body = write(&app, caller, Order::First, ask, work).await?.body;
    if let Some(id) = body["pause"].as_str().and_then(|id| id.parse::<PauseId>().ok()) {
        let pause = app.web.cx.store.read(move |tx| store::hold::get_pause(tx, id)).await?;
        body["state"] = json!(pause.state.word());
    }
    Ok(Sent(body))
}

/// The person lifts a pause.
pub(crate) async fn lift(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<PauseId>,
    Json(asked): Json<Write>,
) -> std::result::Result<Sent<Value>, Problem> {
    let ask = Ask { id: asked.id, operation: "lift", target: target(id), content: Vec::new() };
    let work = move |_: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let changed = control::lift(tx, device, id)?;
        Ok(Outcome::of(changed, Answer::plain(json!({"pause": id, "seq": tx.seq()}))))
    };
    Ok(Sent(write(&app, caller, Order::InTurn, ask, work).await?.body))
}

/// The person says that a held message is not a stop.
pub(crate) async fn release(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<HoldId>,
    Json(asked): Json<Write>,
) -> std::result::Result<Sent<Value>, Problem> {
    let ask = Ask { id: asked.id, operation: "release", target: target(id), content: Vec::new() };
    let work = move |_: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let changed = control::release(tx, device, id)?;
        Ok(Outcome::of(changed, Answer::plain(json!({"hold": id, "seq": tx.seq()}))))
    };
    Ok(Sent(write(&app, caller, Order::InTurn, ask, work).await?.body))
}

/// The person says that a held message is a stop: everything is paused. Like a pause it waits for
/// nothing.
pub(crate) async fn promote(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<HoldId>,
    Json(asked): Json<Write>,
) -> std::result::Result<Sent<Value>, Problem> {
    let ask = Ask { id: asked.id, operation: "promote", target: target(id), content: Vec::new() };
    let work = move |cx: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let changed = control::promote(cx, tx, device, id)?;
        Ok(Outcome::of(changed, Answer::plain(json!({"hold": id, "seq": tx.seq()}))))
    };
    let owner = caller.device.owner;
    let mut body = write(&app, caller, Order::First, ask, work).await?.body;
    let pauses = app.web.cx.store.read(move |tx| store::hold::pauses(tx, owner)).await?;
    body["paused"] = json!(pauses.iter().any(|pause| pause.duty.is_none()));
    Ok(Sent(body))
}

/// The operator's stop, or its end.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopWrite {
    id: Uuid,
    stopped: bool,
}

/// Stops everything of every owner, or lets it go on. The switch is turned and the request put on record
/// in one transaction, so that an answer is kept of what was done and of nothing else. A stop is turned
/// again when it is asked again; an end that was done counts once, so that a late repeat of it does not undo
/// a newer stop.
pub(crate) async fn system_stop(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(asked): Json<StopWrite>,
) -> std::result::Result<Sent<Value>, Problem> {
    let stopped = asked.stopped;
    let content: &[u8] = if stopped { b"stop" } else { b"go on" };
    let ask = Ask { id: asked.id, operation: "system_stop", target: None, content: vec![content] };
    let work = move |_: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        control::system_stop(tx, device, stopped)?;
        Ok(Outcome::Done(Answer::plain(json!({"seq": tx.seq()}))))
    };
    let device = caller.device.clone();
    let owner = device.owner;
    let answered = write(&app, caller, Order::Operator, ask, work).await?;
    if stopped && !answered.first {
        let cx = &app.web.cx;
        let again = move |tx: &mut OwnerTx<'_, '_>| control::system_stop(tx, &device, stopped);
        cx.store.operate(owner, cx.uuid(), again).await?;
    }
    let now = app.web.cx.store.read(store::hold::is_stopped).await?;
    let mut body = answered.body;
    body["system_stop"] = json!(now);
    Ok(Sent(body))
}
