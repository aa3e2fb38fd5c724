//! Events: what came in, and the whole chain of each (EVT-15); and what the dial noted (PRO-01).

use axum::Json;
use axum::extract::{Extension, State};
use base::{EventId, OwnerId, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use store::event::Event;
use store::{Result, Tx};

use crate::App;
use crate::auth::Caller;
use crate::body::{Asked, Named, check_limit};
use crate::problem::Problem;

/// Which part of the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    before: Option<String>,
    limit: Option<u32>,
}

const USUAL: u32 = 50;
/// Events of one instant are never parted; one look brings no more than this many.
const SAME_TIME_MAX: i64 = 4_096;

/// Events, newest first. `before` in the answer is what to ask for next.
pub(crate) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Asked(part): Asked<Part>,
) -> std::result::Result<Json<Value>, Problem> {
    let limit = check_limit(part.limit, USUAL)?;
    let before = match part.before.as_deref().map(Timestamp::parse) {
        None => Timestamp::from_micros(i64::MAX),
        Some(Ok(before)) => before,
        Some(Err(error)) => return Err(Problem::bad(format!("before: {error}."))),
    };
    let owner = caller.device.owner;
    let read = move |tx: &mut Tx<'_>| {
        let (events, more) = newest(tx, owner, before, limit)?;
        let next = events.last().filter(|_| more).map(|event| event.received_at);
        let shown: Vec<Value> =
            events.iter().map(|event| view(tx, event)).collect::<Result<_>>()?;
        Ok(json!({"events": shown, "before": next, "more": more}))
    };
    Ok(Json(app.web.cx.store.read(read).await?))
}

/// `limit` events or a few more: those of one instant are not parted, since a client asks on by time.
fn newest(
    tx: &mut Tx<'_>,
    owner: OwnerId,
    before: Timestamp,
    limit: i64,
) -> Result<(Vec<Event>, bool)> {
    let most = limit.saturating_add(SAME_TIME_MAX);
    let mut events = store::event::recent(tx, owner, before, most)?;
    let at = usize::try_from(limit).unwrap_or(usize::MAX);
    let Some(last) = at.checked_sub(1).and_then(|at| events.get(at)).map(|e| e.received_at) else {
        return Ok((events, false));
    };
    let whole = events.iter().take_while(|event| event.received_at >= last).count();
    let more = whole < events.len();
    events.truncate(whole);
    Ok((events, more))
}

fn view(tx: &mut Tx<'_>, event: &Event) -> Result<Value> {
    let source = store::source::get(tx, event.source)?;
    let item = store::work_item::of_event(tx, event.id)?;
    Ok(json!({
        "id": event.id,
        "kind": event.kind,
        "source": source.name,
        "source_kind": source.kind,
        "external_id": event.external_id,
        "topic": event.topic,
        "key": event.key,
        "trust": event.trust,
        "late": event.late,
        "received_at": event.received_at,
        "state": item.map(|item| item.state),
        "disposition": event.disposition,
        "handled_at": event.handled_at,
    }))
}

/// The whole chain of one event.
pub(crate) async fn trace(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<EventId>,
) -> std::result::Result<Json<Value>, Problem> {
    let owner = caller.device.owner;
    let read = move |tx: &mut Tx<'_>| engine::trace::collect(tx, owner, id);
    let trace = app.web.cx.store.read(read).await?;
    let shown = serde_json::to_value(trace)
        .map_err(|error| Problem::from(store::StoreError::Corrupt(error.to_string())))?;
    Ok(Json(shown))
}

/// What the dial let the agent do by itself, or would have, newest first.
pub(crate) async fn observed(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Asked(part): Asked<Latest>,
) -> std::result::Result<Json<Value>, Problem> {
    let limit = check_limit(part.limit, USUAL)?;
    let owner = caller.device.owner;
    let read = move |tx: &mut Tx<'_>| {
        let dial = store::owner::get(tx, owner)?.dial;
        Ok((dial, store::proactive::latest(tx, owner, limit)?))
    };
    let (dial, notes) = app.web.cx.store.read(read).await?;
    let shown: Vec<Value> = notes
        .iter()
        .map(|note| {
            json!({
                "id": note.id,
                "event": note.event,
                "dial": note.dial,
                "situation": note.situation,
                "disturb": note.disturb,
                "reach": note.reach,
                "release": note.release,
                "at": note.at,
            })
        })
        .collect();
    Ok(Json(json!({"dial": dial, "notes": shown})))
}

/// How many of the newest.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Latest {
    limit: Option<u32>,
}
