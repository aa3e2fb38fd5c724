//! The conversation, page by page.

use axum::Json;
use axum::extract::{Extension, State};
use base::{EventId, Id as _};
use serde::Deserialize;
use serde_json::{Value, json};
use store::message::{self, Entry};

use crate::App;
use crate::auth::Caller;
use crate::body::{Asked, Named, check_limit, check_seq};
use crate::problem::Problem;
use crate::views;

/// Which part of the conversation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    after: Option<u64>,
    before: Option<u64>,
    limit: Option<u32>,
}

const USUAL: u32 = 100;
/// Entries of one transaction share a number and are never parted; no transaction writes more.
const SHARED_MAX: i64 = 64;

/// Lines of the conversation, oldest first.
pub(crate) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Asked(part): Asked<Part>,
) -> Result<Json<Value>, Problem> {
    let limit = check_limit(part.limit, USUAL)?;
    let after = part.after.map(check_seq).transpose()?;
    let before = part.before.map(check_seq).transpose()?;
    if after.is_some() && before.is_some() {
        return Err(Problem::bad("Ask for after or for before, not for both."));
    }
    let owner = caller.device.owner;
    let read = move |tx: &mut store::Tx<'_>| {
        let seq = store::owner::get(tx, owner)?.change_seq;
        let most = limit.saturating_add(SHARED_MAX);
        let (entries, more) = match after {
            Some(after) => oldest(message::chat_after(tx, owner, after, most)?, limit),
            None => {
                let before = before.unwrap_or(i64::MAX);
                newest(message::chat_before(tx, owner, before, most)?, limit)
            }
        };
        let entries: Vec<Value> = entries.iter().map(views::entry).collect();
        Ok(json!({"entries": entries, "seq": seq, "more": more}))
    };
    Ok(Json(app.web.cx.store.read(read).await?))
}

/// The first entries of a list, whole numbers only.
fn oldest(mut entries: Vec<Entry>, limit: i64) -> (Vec<Entry>, bool) {
    let at = cut(&entries, limit);
    let more = at < entries.len();
    entries.truncate(at);
    (entries, more)
}

/// The last entries of a list, whole numbers only.
fn newest(mut entries: Vec<Entry>, limit: i64) -> (Vec<Entry>, bool) {
    entries.reverse();
    let (mut entries, more) = oldest(entries, limit);
    entries.reverse();
    (entries, more)
}

/// Where a list of at most `limit` entries ends, so that no number is parted: a client asks on by
/// number. At least one number is taken, even if it has more entries than that.
fn cut(entries: &[Entry], limit: i64) -> usize {
    let numbers: Vec<i64> = entries.iter().map(|entry| entry.seq).collect();
    whole(&numbers, usize::try_from(limit).unwrap_or(usize::MAX))
}

/// How many of the leading `numbers` to take, `limit` at most, without parting equal ones.
pub(crate) fn whole(numbers: &[i64], limit: usize) -> usize {
    let Some(next) = numbers.get(limit) else { return numbers.len() };
    match numbers.iter().position(|number| number == next) {
        // The first number alone is over the limit: it is taken whole.
        Some(0) => numbers.iter().take_while(|number| *number == next).count(),
        Some(start) => start,
        None => limit,
    }
}

/// One line of the conversation.
pub(crate) async fn one(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<EventId>,
) -> Result<Json<Value>, Problem> {
    let owner = caller.device.owner;
    let read = move |tx: &mut store::Tx<'_>| message::chat_entry(tx, owner, id.uuid());
    Ok(Json(views::entry(&app.web.cx.store.read(read).await?)))
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn a_page_ends_between_numbers() {
        let numbers = [1, 2, 2, 2, 5];
        let taken = [1, 2, 3, 4, 5, 6].map(|limit| whole(&numbers, limit));
        assert_eq!(taken, [1, 1, 1, 4, 5, 5]);
        assert_eq!(whole(&[2, 2, 2, 5], 1), 3, "one number alone is taken whole");
        assert_eq!(whole(&[], 1), 0);
    }
}
