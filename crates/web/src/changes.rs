//! What changed after a number: which records to read again, and no content (CLI-04, CLI-05).

use axum::Json;
use axum::extract::{Extension, State};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::App;
use crate::auth::Caller;
use crate::body::{Asked, PAGE_MAX, check_limit, check_seq};
use crate::chat::whole;
use crate::problem::Problem;

/// Which part of the sequence.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    after: Option<u64>,
    limit: Option<u32>,
}

/// Changes in order, whole transactions only. `seq` in the answer is what to ask after next.
pub(crate) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Asked(part): Asked<Part>,
) -> Result<Json<Value>, Problem> {
    let limit = check_limit(part.limit, PAGE_MAX)?;
    let after = check_seq(part.after.unwrap_or(0))?;
    let owner = caller.device.owner;
    let read = move |tx: &mut store::Tx<'_>| {
        let head = store::owner::get(tx, owner)?.change_seq;
        Ok((head, store::change::after(tx, owner, after, limit)?))
    };
    let (head, mut changes) = app.web.cx.store.read(read).await?;
    // The sequence has no gaps, so a missing first number was there once.
    let gone = changes.first().map_or(after < head, |first| first.seq > after.saturating_add(1));
    if gone {
        return Err(Problem::gone());
    }
    let numbers: Vec<i64> = changes.iter().map(|change| change.seq).collect();
    changes.truncate(whole(&numbers, usize::try_from(limit).unwrap_or(usize::MAX)));
    let last = changes.last().map_or(head, |change| change.seq);
    let shown: Vec<Value> =
        changes.iter().map(|c| json!({"seq": c.seq, "noun": c.noun, "id": c.record})).collect();
    Ok(Json(json!({"changes": shown, "seq": last, "more": last < head})))
}
