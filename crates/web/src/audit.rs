//! The audit chain: everything that was decided, each entry hashed with the one before it.

use axum::Json;
use axum::extract::{Extension, State};
use serde_json::{Value, json};
use store::Tx;
use store::change::{Verified, verify};

use crate::App;
use crate::auth::Caller;
use crate::problem::Problem;

/// Entries of one read, which ends within a second.
const BATCH: i64 = 1_000;

/// Recomputes the owner's chain up to where it stood when this began.
pub(crate) async fn verified(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> std::result::Result<Json<Value>, Problem> {
    let (owner, store) = (caller.device.owner, &app.web.cx.store);
    let head = store.read(move |tx: &mut Tx<'_>| store::owner::get(tx, owner)).await?;
    let (mut at, mut broken) = (Verified::default(), None);
    while at.n < head.audit_seq && broken.is_none() {
        let limit = BATCH.min(head.audit_seq - at.n);
        let before = at;
        match store.read(move |tx: &mut Tx<'_>| verify(tx, owner, before, limit)).await? {
            // Entries that are missing at the end are seen by the number that the owner has.
            Ok(next) if next == before => broken = Some(before.n + 1),
            Ok(next) => at = next,
            Err(n) => broken = Some(n),
        }
    }
    if broken.is_none() && at.hash != head.audit_head {
        broken = Some(at.n);
    }
    Ok(Json(json!({"entries": at.n, "head": at.hash.to_string(), "broken": broken})))
}
