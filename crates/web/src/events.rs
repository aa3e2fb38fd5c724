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

/// Where a page ends: an instant, and if events of that instant are on it, the last of them. As text
/// `2026-11-30T08:00:00Z` or `2026-11-30T08:00:00Z,ID`.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: Timestamp,
    event: Option<EventId>,
}

impl Place {
    fn read(text: &str) -> std::result::Result<Self, Problem> {
        let (at, event) = match text.split_once(',') {
            Some((at, event)) => (at, Some(event)),
            None => (text, None),
        };
        let at = Timestamp::parse(at).map_err(|error| Problem::bad(format!("before: {error}.")))?;
        let wrong = |_| Problem::bad("before: write a time, or what the last page gave as before.");
        let event = event.map(base::parse_id::<EventId>).transpose().map_err(wrong)?;
        Ok(Place { at, event })
    }
}

/// Events, newest first. `before` in the answer is what to ask for next.
pub(crate) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Asked(part): Asked<Part>,
) -> std::result::Result<Json<Value>, Problem> {
    let limit = check_limit(part.limit, USUAL)?;
    let before = match part.before.as_deref() {
        None => Place { at: Timestamp::from_micros(i64::MAX), event: None },
        Some(text) => Place::read(text)?,
    };
    let owner = caller.device.owner;
    let read = move |tx: &mut Tx<'_>| {
        let (events, more) = newest(tx, owner, before, limit)?;
        let last = events.last().filter(|_| more);
        let next = last.map(|event| format!("{},{}", event.received_at, event.id));
        let shown: Vec<Value> =
            events.iter().map(|event| view(tx, event)).collect::<Result<_>>()?;
        Ok(json!({"events": shown, "before": next, "more": more}))
    };
    Ok(Json(app.web.cx.store.read(read).await?))
}

/// `limit` events, and whether there are more.
fn newest(
    tx: &mut Tx<'_>,
    owner: OwnerId,
    before: Place,
    limit: i64,
) -> Result<(Vec<Event>, bool)> {
    let before = (before.at, before.event);
    let mut events = store::event::recent(tx, owner, before, limit.saturating_add(1))?;
    let at = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = events.len() > at;
    events.truncate(at);
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
