//! The owner's devices: which there are, one more, one less (DESIGN section 9).

use axum::Json as Sent;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use base::DeviceId;
use engine::{Context, control};
use serde::Deserialize;
use serde_json::{Value, json};
use store::OwnerTx;
use store::device::Device;
use store::owner::PrincipalKind;

use crate::App;
use crate::auth::Caller;
use crate::body::{Json, Named};
use crate::duties::Write;
use crate::idempotent::{Answer, Ask, Order, Outcome, target, write};
use crate::problem::Problem;

fn view(device: &Device, caller: DeviceId) -> Value {
    json!({
        "id": device.id,
        "name": device.name,
        "of": device.kind,
        "created_at": device.created_at,
        "revoked_at": device.revoked_at,
        "this": device.id == caller,
    })
}

/// All devices, revoked ones too, in order of pairing; for a supervisor their own.
pub(crate) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Sent<Value>, Problem> {
    let own = caller.device;
    let owner = own.owner;
    let mut all = app.web.cx.store.read(move |tx| store::device::all(tx, owner)).await?;
    if own.kind == PrincipalKind::Supervisor {
        all.retain(|device| device.kind == own.kind);
    }
    let shown: Vec<Value> = all.iter().map(|device| view(device, own.id)).collect();
    Ok(Sent(json!({"devices": shown})))
}

/// Ends a device's access. Like a stop it waits for nothing; the device's open streams end too.
pub(crate) async fn revoke(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<DeviceId>,
    Json(asked): Json<Write>,
) -> Result<Sent<Value>, Problem> {
    let ask = Ask { id: asked.id, operation: "revoke", target: target(id), content: Vec::new() };
    // The name is the person's own word and stands in the device's row alone.
    let work = move |_: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let revoked = match control::revoke(tx, device, id)? {
            Ok(revoked) => revoked,
            Err(no) => return Ok(Outcome::of(no, Answer::plain(Value::Null))),
        };
        let kept = json!({"id": revoked.id, "revoked_at": revoked.revoked_at, "seq": tx.seq()});
        Ok(Outcome::Done(Answer::plain(kept)))
    };
    Ok(Sent(write(&app, caller, Order::First, ask, work).await?.body))
}

/// For whose device a code is asked; without a word for one of the user's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CodeWrite {
    #[serde(default)]
    supervisor: bool,
}

/// Puts up a one-time code for one more device. The answer holds a secret, so it is not kept: asked
/// again, there is another code, and the former one is void.
pub(crate) async fn offer(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(asked): Json<CodeWrite>,
) -> Result<(StatusCode, Sent<Value>), Problem> {
    let (owner, token) = (caller.device.owner, caller.token);
    let kind = if asked.supervisor { PrincipalKind::Supervisor } else { PrincipalKind::User };
    let work = move |cx: &Context, tx: &mut OwnerTx<'_, '_>| {
        // The token may have been revoked since the request came.
        let device = store::device::by_token(tx, token)?;
        device.map(|device| control::offer_code(cx, tx, &device, kind)).transpose()
    };
    let offer = app.web.cx.write(owner, work).await?.ok_or_else(Problem::unauthorized)?;
    let offer = offer.map_err(Problem::from)?;
    let body = json!({
        "code": offer.code,
        "link": format!("http://{}/#code={}", app.web.listen, offer.code),
        "expires_at": offer.expires_at,
    });
    Ok((StatusCode::CREATED, Sent(body)))
}
