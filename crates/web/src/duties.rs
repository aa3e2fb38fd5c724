//! Duties: what is delegated, and the person's own switch for each.

use axum::Json as Sent;
use axum::extract::{Extension, State};
use base::DutyId;
use engine::control::{self, Changed};
use serde::Deserialize;
use serde_json::{Value, json};
use store::device::Device;
use store::{OwnerTx, Result, Tx};
use uuid::Uuid;

use crate::App;
use crate::auth::Caller;
use crate::body::{Json, Named};
use crate::idempotent::{Answer, Ask, Order, Outcome, target, write};
use crate::problem::Problem;
use crate::views::{self, Reader};

/// A write without content of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    pub id: Uuid,
}

/// Duties in one answer.
const DUTIES_MAX: i64 = 1_000;

fn view(tx: &mut Tx<'_>, owner: base::OwnerId, id: DutyId) -> Result<Answer> {
    let duty = store::duty::get(tx, owner, id)?;
    let owner = store::owner::get(tx, owner)?;
    views::duty(tx, &owner, &duty)
}

/// All duties, oldest first.
pub(crate) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> std::result::Result<Sent<Value>, Problem> {
    let owner = caller.device.owner;
    let read = move |tx: &mut Tx<'_>| {
        let of = store::owner::get(tx, owner)?;
        let mut shown = Vec::new();
        for duty in store::duty::all(tx, owner, DUTIES_MAX)? {
            let answer = views::duty(tx, &of, &duty)?;
            shown.push(views::with_words(tx, answer, Reader::of(&of, caller.device.kind))?);
        }
        Ok(json!({"duties": shown}))
    };
    Ok(Sent(app.web.cx.store.read(read).await?))
}

/// One duty as it stands now.
pub(crate) async fn one(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<DutyId>,
) -> std::result::Result<Sent<Value>, Problem> {
    let owner = caller.device.owner;
    let read = move |tx: &mut Tx<'_>| {
        let answer = view(tx, owner, id)?;
        let of = store::owner::get(tx, owner)?;
        views::with_words(tx, answer, Reader::of(&of, caller.device.kind))
    };
    Ok(Sent(app.web.cx.store.read(read).await?))
}

/// The person stops a duty. It goes to the head of the queue of writes.
pub(crate) async fn stop(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<DutyId>,
    Json(asked): Json<Write>,
) -> std::result::Result<Sent<Value>, Problem> {
    switch(&app, caller, Order::First, "stop", id, asked.id, control::stop).await
}

/// The person lets a stopped duty go on.
pub(crate) async fn resume(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<DutyId>,
    Json(asked): Json<Write>,
) -> std::result::Result<Sent<Value>, Problem> {
    switch(&app, caller, Order::InTurn, "resume", id, asked.id, resumed).await
}

fn resumed(
    _: &engine::Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    duty: DutyId,
) -> Result<Changed> {
    control::resume(tx, device, duty)
}

type Switch = fn(&engine::Context, &mut OwnerTx<'_, '_>, &Device, DutyId) -> Result<Changed>;

async fn switch(
    app: &App,
    caller: Caller,
    order: Order,
    operation: &'static str,
    duty: DutyId,
    id: Uuid,
    turn: Switch,
) -> std::result::Result<Sent<Value>, Problem> {
    let ask = Ask { id, operation, target: target(duty), content: Vec::new() };
    let work = move |cx: &engine::Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let owner = tx.owner();
        let changed = turn(cx, tx, device, duty)?;
        Ok(Outcome::of(changed, view(tx, owner, duty)?))
    };
    let (owner, kind) = (caller.device.owner, caller.device.kind);
    let answered = write(app, caller, order, ask, work).await?;
    if answered.first {
        return Ok(Sent(answered.body));
    }
    // What the first answer said may be over: a repeat is told how the duty stands now.
    let read = move |tx: &mut Tx<'_>| {
        let answer = view(tx, owner, duty)?;
        let of = store::owner::get(tx, owner)?;
        views::with_words(tx, answer, Reader::of(&of, kind))
    };
    Ok(Sent(app.web.cx.store.read(read).await?))
}
