//! The server's health, and who is asking.

use axum::Json;
use axum::extract::{Extension, State};
use serde_json::{Value, json};

use crate::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::views;

/// Whether the records can be read, and how far they have got.
pub(crate) async fn health(State(app): State<App>) -> Result<Json<Value>, Problem> {
    let owner = app.web.owner;
    let cx = &app.web.cx;
    let owner = cx.store.read(move |tx| store::owner::get(tx, owner)).await?;
    Ok(Json(json!({
        "ok": true,
        "version": env!("CARGO_PKG_VERSION"),
        "engine": if cx.store.is_postgres() { "postgresql" } else { "sqlite" },
        "seq": owner.change_seq,
        "now": cx.clock.now(),
    })))
}

/// The owner, this device, and what the month has cost.
pub(crate) async fn me(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    let now = app.web.cx.clock.now();
    let id = caller.device.owner;
    let read = move |tx: &mut store::Tx<'_>| {
        let owner = store::owner::get(tx, id)?;
        let month = views::month_so_far(tx, &owner, now)?;
        Ok((owner, month))
    };
    let (owner, month) = app.web.cx.store.read(read).await?;
    Ok(Json(json!({
        "owner": owner.id,
        "name": owner.name,
        "zone": owner.zone,
        "device": caller.device.id,
        "seq": owner.change_seq,
        "month": month,
        "now": now,
        "demo": app.web.demo.is_some(),
    })))
}
