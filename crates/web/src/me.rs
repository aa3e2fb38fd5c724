//! The server's health, who is asking, and what they set for themselves.

use axum::Json;
use axum::extract::{Extension, State};
use base::MicroUsd;
use domain::event::Dial;
use domain::words::Language;
use engine::Context;
use engine::control::{self, Settings};
use serde::Deserialize;
use serde_json::{Value, json};
use store::OwnerTx;
use store::device::Device;
use store::owner::PrincipalKind;
use uuid::Uuid;

use crate::App;
use crate::auth::Caller;
use crate::body::{self, check_name};
use crate::idempotent::{Answer, Ask, Order, Outcome, write};
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
    let (id, kind) = (caller.device.owner, caller.device.kind);
    let read = move |tx: &mut store::Tx<'_>| {
        let owner = store::owner::get(tx, id)?;
        // What the owner spends, and how far they let it go by itself, is theirs.
        let of_owner = match kind {
            PrincipalKind::Supervisor => None,
            PrincipalKind::User | PrincipalKind::Policy => {
                Some((owner.dial, views::month_so_far(tx, &owner, now)?))
            }
        };
        Ok((owner, of_owner))
    };
    let (owner, of_owner) = app.web.cx.store.read(read).await?;
    let mut shown = json!({
        "owner": owner.id,
        "of": kind,
        "name": owner.name,
        "zone": owner.zone,
        "language": owner.language(),
        "device": caller.device.id,
        "seq": owner.change_seq,
        "now": now,
        "demo": app.web.demo.is_some(),
    });
    if let Some((dial, month)) = of_owner {
        (shown["dial"], shown["month"]) = (json!(dial), month);
    }
    Ok(Json(shown))
}

/// What the owner wants otherwise; what is not named stays as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnerWrite {
    id: Uuid,
    name: Option<String>,
    zone: Option<String>,
    month_cap_micro_usd: Option<i64>,
    dial: Option<Dial>,
    language: Option<Language>,
}

/// The owner sets name, zone, cap, dial or language. `GET /v1/me` has them.
pub(crate) async fn set(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    body::Json(asked): body::Json<OwnerWrite>,
) -> Result<Json<Value>, Problem> {
    let OwnerWrite { id, name, zone, month_cap_micro_usd: cap, dial, language } = asked;
    let none = name.is_none() && zone.is_none() && cap.is_none();
    if none && dial.is_none() && language.is_none() {
        let what = "Name what to set: name, zone, month_cap_micro_usd, dial or language.";
        return Err(Problem::bad(what));
    }
    if let Some(cap) = cap.filter(|cap| *cap < 0) {
        return Err(Problem::bad(format!(
            "month_cap_micro_usd is {cap}; name 0 or more millionths of a US dollar."
        )));
    }
    if let Some(zone) = &zone {
        domain::schedule::zone(zone).map_err(|error| Problem::bad(format!("{error}.")))?;
    }
    let name = name.map(|name| check_name("the owner", &name)).transpose()?;
    let wish = Settings { name, zone, month_cap: cap.map(MicroUsd), dial, language };
    let content = serde_json::to_vec(&wish).map_err(|error| Problem::bad(error.to_string()))?;
    let ask = Ask { id, operation: "owner", target: None, content: vec![&content] };
    let work = move |_: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let changed = control::settings(tx, device, &wish)?;
        // Without the name: a kept answer holds no content.
        Ok(Outcome::of(changed, Answer::plain(json!({"seq": tx.seq()}))))
    };
    Ok(Json(write(&app, caller, Order::InTurn, ask, work).await?.body))
}
