//! Webhooks: what a sender signed with the secret that it shares with us is accepted, and nothing else
//! (EVT-02..04, EVT-13).
//!
//! There is no token here: the signature is the authentication. Before it is checked, one source is
//! looked up, one small file is read and one body of bounded size; of what is refused only a number
//! stays.

mod sample;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use base::{Secret, SourceId};
use connect::source::{Config, Item, webhook};
use domain::state::SourceState;
use engine::intake::{self, Receipt};
use serde_json::{Value, json};
use store::StoreError;
use store::source::{Source, SourceKind};

use crate::App;
use crate::body::{Named, read};
use crate::problem::{Problem, sentence};
use crate::secrets::SecretsError;

pub(crate) use sample::{Sample, request as sample_request};

/// How soon a sender may come again when too much waits for the router.
const BACKLOG_RETRY_S: u32 = 30;
/// Bodies of one source that may be under way at once.
const BODIES_MAX: usize = 8;
/// How long a body may take.
const BODY_MS: u64 = 5_000;

/// Takes a delivery in. 202: stored now; 200: the same was stored before.
pub(crate) async fn take(
    State(app): State<App>,
    Named(id): Named<SourceId>,
    request: Request,
) -> Result<Response, Problem> {
    let Some(source) = hook(&app, id).await? else {
        unknown(&app);
        return Err(Problem::missing("source"));
    };
    let is_sample = request.extensions().get::<Sample>().is_some();
    let delivered = deliver(&app, &source, is_sample, request).await;
    if let Err(problem) = &delivered
        && problem.is_refusal()
        && !is_sample
    {
        let now = app.web.cx.clock.now();
        let counting = move |tx: &mut store::Tx<'_>| store::source::refused(tx, id, now);
        app.web.cx.store.write_unowned(counting).await?;
        tracing::info!(source = %id, status = problem.status().as_u16(), "a delivery was refused");
    }
    delivered
}

/// The webhook of this id that is in use; everything else looks the same from outside.
async fn hook(app: &App, id: SourceId) -> Result<Option<Source>, Problem> {
    let found = app.web.cx.store.read(move |tx| store::source::get(tx, id)).await;
    match found {
        Ok(source) => {
            let in_use = source.state == SourceState::Active && source.config.is_some();
            Ok(Some(source).filter(|source| in_use && source.kind == SourceKind::Webhook))
        }
        Err(StoreError::Missing(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn unknown(app: &App) {
    let mut unknown = app.unknown.lock().unwrap_or_else(PoisonError::into_inner);
    unknown.refused = unknown.refused.saturating_add(1);
    unknown.refused_at = Some(app.web.cx.clock.now());
}

async fn deliver(
    app: &App,
    source: &Source,
    is_sample: bool,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let place = Place::take(&app.hooks_of, source.id)?;
    let body = in_time(read(body, webhook::BODY_BYTES_MAX)).await?;
    drop(place);
    let secrets = secrets(app, source.id).await?;
    let item = checked(app, source, &secrets, &parts.headers, &body)?;
    if is_sample {
        let (topic, key) = (item.topic, item.key);
        return Ok(answer(
            StatusCode::ACCEPTED,
            json!({"event": null, "topic": topic, "key": key}),
        ));
    }
    match intake::outside(&app.web.cx, source, item).await? {
        Some(Receipt::New { event, .. }) => {
            // Accepted without the owner's lock, which is what tells the stages otherwise.
            app.web.hints.all();
            Ok(answer(StatusCode::ACCEPTED, json!({"event": event})))
        }
        Some(Receipt::Known { event }) => Ok(answer(StatusCode::OK, json!({"event": event}))),
        Some(Receipt::Conflict) => Err(Problem::conflict(
            "This id was delivered before with other content. Nothing was changed; send it under an id \
             of its own.",
        )),
        None => Err(Problem::later(
            "Too much waits to be looked at, or the disk is nearly full. Nothing was stored; send it again \
             later.",
            BACKLOG_RETRY_S,
        )),
    }
}

/// A body that comes too slowly takes a place from the others.
async fn in_time(
    reading: impl Future<Output = Result<Vec<u8>, Problem>>,
) -> Result<Vec<u8>, Problem> {
    let limit = std::time::Duration::from_millis(BODY_MS);
    tokio::time::timeout(limit, reading).await.unwrap_or_else(|_| {
        Err(Problem::not_done(format!(
            "The body did not come within {} s. Nothing was stored; send it again.",
            BODY_MS / 1_000
        )))
    })
}

/// How many bodies of each source are under way.
pub(crate) type PlacesTaken = Mutex<BTreeMap<SourceId, usize>>;

/// A place among the bodies of one source, so that its sender takes none of the others'.
struct Place<'a> {
    taken: &'a PlacesTaken,
    source: SourceId,
}

impl<'a> Place<'a> {
    fn take(taken: &'a PlacesTaken, source: SourceId) -> Result<Self, Problem> {
        let mut places = taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = places.entry(source).or_default();
        if *count >= BODIES_MAX {
            return Err(Problem::not_done(
                "Too many deliveries of this source at once. Nothing was stored; send it again.",
            ));
        }
        *count += 1;
        Ok(Place { taken, source })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut places = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = places.get_mut(&self.source) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                places.remove(&self.source);
            }
        }
    }
}

fn answer(status: StatusCode, body: Value) -> Response {
    (status, axum::Json(body)).into_response()
}

/// The secrets of a source that are valid now. Files block, so they are read off the runtime's threads.
pub(crate) async fn secrets(app: &App, id: SourceId) -> Result<Vec<Secret>, Problem> {
    let (kept, now) = (app.web.secrets.clone(), app.web.cx.clock.now());
    off_thread(move || kept.read(id, now)).await
}

/// Runs work on the secrets' files where it may block.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SecretsError> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            tracing::error!(%error, "the secrets of the sources");
            Err(Problem::not_done(sentence(&error.to_string())))
        }
        Err(error) => {
            tracing::error!(%error, "work on a secret died");
            Err(Problem::unavailable("The server failed. Send the same request again."))
        }
    }
}

/// Checks who sent it and when, and reads what it says.
fn checked(
    app: &App,
    source: &Source,
    secrets: &[Secret],
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Item, Problem> {
    let corrupt = |what: String| Problem::from(StoreError::Corrupt(format!("a source: {what}")));
    let config = source.config.as_deref().unwrap_or_default();
    let (scheme, key, topic) = match serde_json::from_str(config) {
        Ok(Config::Webhook { scheme, key, topic, .. }) => (scheme, key, topic),
        Ok(Config::Folder { .. } | Config::Feed { .. } | Config::Url { .. }) => {
            return Err(corrupt(format!("{} is no webhook", source.id)));
        }
        Err(error) => return Err(corrupt(error.to_string())),
    };
    let pairs = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let headers = webhook::Headers::new(pairs);
    let now = app.web.cx.clock.now();
    webhook::verify(scheme, secrets, &headers, body, now, key.as_deref(), topic.as_deref())
        .map_err(|error| Problem::of_hook(error.status(), &error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up_and_its_place_is_free_again() {
        let taken = PlacesTaken::default();
        let source: SourceId = base::IdSource::new([3; 32]).next(base::Timestamp::from_micros(0));
        let places: Vec<_> = (0..BODIES_MAX).map(|_| Place::take(&taken, source)).collect();
        assert!(places.iter().all(Result::is_ok));
        let full = Place::take(&taken, source).err().expect("no place");
        assert_eq!(full.status(), StatusCode::SERVICE_UNAVAILABLE);
        let begun = tokio::time::Instant::now();
        let slow = in_time(std::future::pending()).await.expect_err("given up");
        assert_eq!((slow.status(), slow.wrote_nothing()), (StatusCode::SERVICE_UNAVAILABLE, true));
        assert_eq!(begun.elapsed().as_millis(), u128::from(BODY_MS));
        drop(places);
        assert!(taken.lock().expect("no panic").is_empty());
        assert!(Place::take(&taken, source).is_ok());
    }
}
