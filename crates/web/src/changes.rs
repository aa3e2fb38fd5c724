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
    if is_gone(after, head, changes.first().map(|first| first.seq)) {
        return Err(Problem::gone());
    }
    let numbers: Vec<i64> = changes.iter().map(|change| change.seq).collect();
    changes.truncate(whole(&numbers, usize::try_from(limit).unwrap_or(usize::MAX)));
    let last = changes.last().map_or(head, |change| change.seq);
    let shown: Vec<Value> =
        changes.iter().map(|c| json!({"seq": c.seq, "noun": c.noun, "id": c.record})).collect();
    Ok(Json(json!({"changes": shown, "seq": last, "more": last < head})))
}

/// Whether changes after that number are missing: the sequence has no gaps, so they were there once.
fn is_gone(after: i64, head: i64, first: Option<i64>) -> bool {
    first.map_or(after < head, |first| first > after.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::is_gone;

    #[test]
    fn a_missing_first_number_was_there_once() {
        assert!(!is_gone(0, 0, None), "nothing has happened yet");
        assert!(!is_gone(7, 7, None), "nothing new");
        assert!(!is_gone(9, 7, None), "a client from another store; the answer's number tells it");
        assert!(!is_gone(3, 7, Some(4)));
        assert!(is_gone(3, 7, Some(5)));
        assert!(is_gone(3, 7, None));
    }
}
