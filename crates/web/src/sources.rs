//! Sources: which ways in there are, one more, one less, and whether one works (EVT-12, PRO-13).

mod check;
mod view;

use axum::Json as Sent;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use base::{Secret, SourceId, Timestamp};
use connect::source::Config;
use domain::state::SourceState;
use engine::Context;
use engine::control::{self, NewSource};
use serde::Deserialize;
use serde_json::{Value, json};
use store::device::Device;
use store::source::Source;
use store::{OwnerTx, Tx};
use uuid::Uuid;

use crate::App;
use crate::auth::Caller;
use crate::body::{Asked, Empty, Json, Named};
use crate::hooks::{self, off_thread};
use crate::idempotent::{Answer, Ask, Order, Outcome, target, write};
use crate::problem::{Problem, sentence};
use crate::secrets::{FORMER_MAX, Rotation};

/// How long the former secret of a source stays valid after a change.
const ROTATION_MS: u64 = 24 * 3_600_000;
/// How long a look at a source may take for `test`, within the time of an answer.
const LOOK_MS: u64 = 8_000;
/// Sources in one answer.
const SOURCES_MAX: i64 = 1_000;

/// All sources in use, oldest first, with their health by what they received.
pub(crate) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Sent<Value>, Problem> {
    let owner = caller.device.owner;
    let read = move |tx: &mut Tx<'_>| {
        let sources = store::source::in_use(tx, owner, SOURCES_MAX)?;
        sources.into_iter().map(|source| view::seen(tx, source)).collect::<store::Result<Vec<_>>>()
    };
    let seen = app.web.cx.store.read(read).await?;
    let (kept, now) = (app.web.secrets.clone(), app.web.cx.clock.now());
    let listen = app.web.listen;
    let looking = move || Ok(view::shown(seen, kept.as_ref(), listen, now));
    let unknown = app.unknown.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let sources = off_thread(looking).await?;
    let unknown = json!({"refused": unknown.refused, "refused_at": unknown.refused_at});
    Ok(Sent(json!({"sources": sources, "unknown": unknown})))
}

/// A way in that a person wants.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceWrite {
    id: Uuid,
    name: String,
    config: Config,
    secret: Option<String>,
    every_ms: Option<u64>,
    expect_ms: Option<u64>,
}

/// Adds a source. Its secret is kept before its record is, and is in no answer.
pub(crate) async fn add(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(asked): Json<SourceWrite>,
) -> Result<(StatusCode, Sent<Value>), Problem> {
    let SourceWrite { id, name, config, secret, every_ms, expect_ms } = asked;
    control::check_source_name(&name).map_err(Problem::bad)?;
    let secret = check::secret(&config, secret.as_deref())?;
    check::time("every_ms", every_ms)?;
    check::time("expect_ms", expect_ms)?;
    let every_ms = check::look(&app, &config, every_ms)?;
    let (kind, config) = check::place(&app, config).await?;
    let config = serde_json::to_string(&config).map_err(|error| Problem::bad(error.to_string()))?;
    let new = NewSource { kind, name, config, every_ms, expect_ms };
    // Without the secret: not even a digest of it is kept.
    let content = json!([new.name, new.config, new.every_ms, new.expect_ms]).to_string();
    let ask = Ask { id, operation: "add_source", target: None, content: vec![content.as_bytes()] };
    let source: SourceId = app.web.cx.id();
    if let Some(secret) = secret.clone() {
        let kept = app.web.secrets.clone();
        off_thread(move || kept.put(source, &secret)).await?;
    }
    let work = move |_: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let changed = control::add_source(tx, device, source, new)?;
        Ok(Outcome::of(changed, Answer::plain(json!({"id": source, "seq": tx.seq()}))))
    };
    let answered = write(&app, caller, Order::InTurn, ask, work).await;
    let certainly_not = match &answered {
        Ok(answered) => answered.body["id"] != json!(source),
        Err(problem) => problem.wrote_nothing(),
    };
    if certainly_not && secret.is_some() {
        forget(&app, source).await?;
    }
    let answered = answered?;
    let mut body = answered.body;
    let added: SourceId = serde_json::from_value(body["id"].clone())
        .map_err(|error| Problem::from(store::StoreError::Corrupt(error.to_string())))?;
    if let Some(secret) = secret {
        if !answered.first {
            check_same(&app, added, &secret).await?;
        }
        body["address"] = json!(view::address(app.web.listen, added));
    } else {
        body["address"] = Value::Null;
    }
    let status = if answered.first { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Sent(body)))
}

async fn forget(app: &App, source: SourceId) -> Result<(), Problem> {
    let kept = app.web.secrets.clone();
    off_thread(move || kept.remove(source)).await
}

/// A repeat must bring the same secret too.
async fn check_same(app: &App, source: SourceId, secret: &Secret) -> Result<(), Problem> {
    let known = hooks::secrets(app, source).await?;
    // Of a source that was removed meanwhile, none is left to compare.
    if known.is_empty() || known.iter().any(|known| known.expose() == secret.expose()) {
        return Ok(());
    }
    Err(Problem::conflict(
        "This id was used for another request. Nothing was changed; send this one under a new id.",
    ))
}

/// The client-made id of a removal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Removal {
    id: Uuid,
}

/// Takes a source out of use, with its secret and its subscriptions; its events stay.
pub(crate) async fn remove(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(source): Named<SourceId>,
    Asked(removal): Asked<Removal>,
) -> Result<Sent<Value>, Problem> {
    let ask = Ask {
        id: removal.id,
        operation: "remove_source",
        target: target(source),
        content: Vec::new(),
    };
    let work = move |_: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let changed = control::remove_source(tx, device, source)?;
        Ok(Outcome::of(changed, Answer::plain(json!({"id": source, "seq": tx.seq()}))))
    };
    let answered = write(&app, caller, Order::InTurn, ask, work).await?;
    forget(&app, source).await?;
    Ok(Sent(answered.body))
}

/// A new secret for a source.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateWrite {
    id: Uuid,
    secret: String,
}

/// Gives a webhook a new secret; the former one stays valid for a day, so that the sender can be told.
/// The secret is kept before the request is on record, as [`add`] does.
pub(crate) async fn rotate(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<SourceId>,
    Json(asked): Json<RotateWrite>,
) -> Result<Sent<Value>, Problem> {
    let source = mine(&app, &caller, id).await?;
    let config: Config = config(&source)?;
    let Some(secret) = check::secret(&config, Some(&asked.secret))? else {
        return Err(Problem::bad("Only a webhook has a secret."));
    };
    let rotation = match is_known(&app, &caller, asked.id).await? {
        // What the first one did is on record, and may have been followed by another change.
        true => None,
        false => Some(keep(&app, id, &secret).await?),
    };
    let ask =
        Ask { id: asked.id, operation: "rotate_source", target: target(id), content: Vec::new() };
    let work = move |_: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let now = store::source::get(tx, id)?;
        if now.state != SourceState::Active {
            return Ok(Outcome::Conflict("This source was removed; add another one.".into()));
        }
        let Some(KeptSecret { former_until: until, .. }) = rotation else {
            let forgotten = "The answer to this request is kept no longer; send it under a new id.";
            return Ok(Outcome::Conflict(forgotten.into()));
        };
        tx.audit(Some(device.principal), "rotate", id, None);
        let frame = json!({"id": id, "former_until": until, "seq": tx.seq()});
        Ok(Outcome::Done(Answer::plain(frame)))
    };
    let answered = write(&app, caller, Order::InTurn, ask, work).await;
    let certainly_not = match &answered {
        Ok(answered) => !answered.first,
        Err(problem) => problem.wrote_nothing(),
    };
    if certainly_not && rotation.is_some_and(|kept| kept.changed) {
        let (kept, secret) = (app.web.secrets.clone(), secret.clone());
        off_thread(move || kept.withdraw(id, &secret)).await?;
    }
    let answered = answered?;
    if !answered.first {
        check_same(&app, id, &secret).await?;
    }
    Ok(Sent(answered.body))
}

/// Whether a request of this device's id was answered before.
async fn is_known(app: &App, caller: &Caller, id: Uuid) -> Result<bool, Problem> {
    let device = caller.device.id;
    let read = move |tx: &mut Tx<'_>| store::device::request(tx, device, id);
    Ok(app.web.cx.store.read(read).await?.is_some())
}

/// A new secret that is kept, and not on record yet.
#[derive(Clone, Copy)]
struct KeptSecret {
    changed: bool,
    former_until: Timestamp,
}

/// Keeps a new secret, before its record is made: after a crash in between, a repeat of the request
/// finds it and makes the record; the other way round nobody would have it.
async fn keep(app: &App, id: SourceId, secret: &Secret) -> Result<KeptSecret, Problem> {
    let now = app.web.cx.clock.now();
    let until = now.plus_ms(ROTATION_MS);
    let (kept, secret) = (app.web.secrets.clone(), secret.clone());
    match off_thread(move || kept.rotate(id, &secret, now, until)).await? {
        Rotation::Newest { changed, former_until } => {
            Ok(KeptSecret { changed, former_until: former_until.unwrap_or(now) })
        }
        Rotation::Former => Err(Problem::conflict(
            "A newer secret has taken the place of this one. Nothing was changed; make another one with \
             \"adjutant source rotate\".",
        )),
        Rotation::TooMany { until } => Err(Problem::conflict(format!(
            "{FORMER_MAX} former secrets of this source are valid still, the first of them until {until}. \
             Nothing was changed, since its sender may use any of them. Wait until then; if one of them \
             has become known, remove the source and add it again."
        ))),
    }
}

/// The owner's source in use of this id.
async fn mine(app: &App, caller: &Caller, id: SourceId) -> Result<Source, Problem> {
    let owner = caller.device.owner;
    let source = app.web.cx.store.read(move |tx| store::source::get(tx, id)).await?;
    let in_use = source.state == SourceState::Active && source.config.is_some();
    match source.owner == owner && in_use {
        true => Ok(source),
        false => Err(Problem::missing("source")),
    }
}

fn config(source: &Source) -> Result<Config, Problem> {
    serde_json::from_str(source.config.as_deref().unwrap_or_default()).map_err(|error| {
        Problem::from(store::StoreError::Corrupt(format!("a source's config: {error}")))
    })
}

/// Tries a source without storing anything: a look at what is polled, a signed sample for a webhook.
pub(crate) async fn test(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<SourceId>,
    Json(Empty {}): Json<Empty>,
) -> Result<Sent<Value>, Problem> {
    let source = mine(&app, &caller, id).await?;
    let config = config(&source)?;
    let mut tried = match &config {
        Config::Webhook { scheme, .. } => sent_to_itself(&app, &source, *scheme).await?,
        Config::Folder { .. } | Config::Feed { .. } | Config::Url { .. } => {
            looked_at(&app, &source).await
        }
    };
    if let Config::Webhook { recheck: Some(_), .. } = &config {
        let looked = looked_at(&app, &source).await;
        tried["ok"] = json!(tried["ok"] == true && looked["ok"] == true);
        for part in ["found", "more"] {
            tried[part] = looked[part].clone();
        }
        if tried["problem"].is_null() {
            tried["problem"] = looked["problem"].clone();
        }
    }
    Ok(Sent(tried))
}

async fn looked_at(app: &App, source: &Source) -> Value {
    let config = source.config.as_deref().unwrap_or_default();
    let now = app.web.cx.clock.now();
    let looking = app.web.cx.world.look(config, source.cursor.as_deref(), now);
    let limit = std::time::Duration::from_millis(LOOK_MS);
    let looked = tokio::time::timeout(limit, looking).await;
    match looked.unwrap_or_else(|_| Err("it did not answer in time; try again later".into())) {
        Ok(look) => json!({
            "ok": true,
            "status": null,
            "found": look.items.iter().map(view::found).collect::<Vec<_>>(),
            "more": look.more,
            "problem": null,
        }),
        Err(why) => json!({
            "ok": false, "status": null, "found": [], "more": false, "problem": sentence(&why),
        }),
    }
}

/// Sends a signed sample through the very handler that the sender's requests meet.
async fn sent_to_itself(
    app: &App,
    source: &Source,
    scheme: connect::source::Scheme,
) -> Result<Value, Problem> {
    let now = app.web.cx.clock.now();
    let secrets = hooks::secrets(app, source.id).await?;
    let sample = secrets.first().and_then(|secret| {
        hooks::sample_request(source.id, scheme, secret, app.web.cx.uuid(), now)
    });
    let told = |status: Option<u16>, problem: Option<String>| {
        json!({"ok": problem.is_none(), "status": status, "found": [], "more": false,
            "problem": problem})
    };
    let Some(sample) = sample else {
        let what = "This source has no secret that can be used. Give it one with \"adjutant source rotate\".";
        return Ok(told(None, Some(what.into())));
    };
    let came = hooks::take(State(app.clone()), Named(source.id), sample).await;
    Ok(match came {
        Ok(response) => told(Some(response.status().as_u16()), None),
        Err(problem) => told(Some(problem.status().as_u16()), Some(problem.detail().to_owned())),
    })
}
