//! The HTTP API, its stream of signals, and the web page's files (DESIGN sections 3, 8 and 9).
//!
//! Every write is a transaction around a function of `engine`; nothing is decided here. Reads show
//! records. What a client may rely on stands in `openapi.json`, and a test holds both together.
//!
//! Absent here: any SQL, any model, any state of its own that matters after a restart. Counters of
//! tries and open streams are bounds, not facts.

mod actions;
mod answer;
mod audit;
mod auth;
mod body;
mod changes;
mod chat;
mod control;
mod copy;
mod demo;
mod devices;
mod duties;
mod events;
mod hooks;
mod idempotent;
mod me;
mod messages;
mod metrics;
mod problem;
mod proposals;
mod sources;
mod stale;
mod stream;
mod tools;
mod views;

pub mod page;
pub mod routes;
mod rules;
pub mod secrets;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use base::{Digest, OwnerId, Timestamp};
use engine::Context;
use engine::pump::Hints;
use tokio::sync::{Semaphore, watch};

use problem::Problem;

pub use answer::OPENAPI;
pub use copy::forget as forget_copy;

/// What the API needs from the process.
#[derive(Clone)]
pub struct WebState {
    /// The engine's context: records, time, identifiers, bounds.
    pub cx: Context,
    /// The owner that new devices are paired with.
    pub owner: OwnerId,
    /// The address that the server listens on, with the port it really has: Host and Origin are
    /// checked against it.
    pub listen: SocketAddr,
    /// The folder of this installation's own data, which no source may watch.
    pub data_dir: std::path::PathBuf,
    /// The secrets of sources.
    pub secrets: Arc<dyn secrets::Secrets>,
    /// The stages are told here of what is accepted without the owner's lock.
    pub hints: Arc<Hints>,
    /// The digest of the token that `/metrics` asks for.
    pub watcher: Digest,
    /// What the process knows of its machine.
    pub machine: Gauges,
    /// The demo, if this is one.
    pub demo: Option<Arc<dyn Demo>>,
}

/// Measures the machine: names of numbers, and the numbers. It may block for as long as a file takes.
pub type Gauges = Arc<dyn Fn() -> Vec<(&'static str, u64)> + Send + Sync>;

/// What only the demo has.
pub trait Demo: Send + Sync {
    /// Kills this very process at once.
    fn plug(&self);
    /// Where the story stands, in the form of `Demo` in `openapi.json`.
    fn state(&self) -> serde_json::Value;
}

/// Requests that may be under way at once; one more is told to come again.
const REQUESTS_MAX: usize = 256;
/// Deliveries of webhooks that may be under way at once, apart from those requests: a flood from
/// outside takes no place of a person's.
const HOOKS_MAX: usize = 32;
/// Streams that may be open at once.
const STREAMS_MAX: usize = 64;
/// How long a request may take until its answer begins.
const ANSWER_MS: u64 = 10_000;

/// The state of the router.
struct Shared {
    web: WebState,
    requests: Semaphore,
    hooks: Semaphore,
    /// Held for a count only.
    hooks_of: hooks::PlacesTaken,
    /// Deliveries to addresses that are no webhook's. Held for an addition only.
    unknown: Mutex<Unknown>,
    streams: Arc<Semaphore>,
    /// One copy of an owner's records is made at a time.
    copies: Arc<Semaphore>,
    /// Held for a comparison only, never across a wait.
    tries: Mutex<auth::Tries>,
    /// The last numbers; whoever asks while they are made waits for the same ones.
    measured: tokio::sync::Mutex<metrics::Measured>,
    stop: Option<watch::Receiver<bool>>,
}

impl Shared {
    fn new(web: WebState, stop: Option<watch::Receiver<bool>>) -> Self {
        Shared {
            web,
            requests: Semaphore::new(REQUESTS_MAX),
            hooks: Semaphore::new(HOOKS_MAX),
            hooks_of: hooks::PlacesTaken::default(),
            unknown: Mutex::default(),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            copies: Arc::new(Semaphore::new(1)),
            tries: Mutex::default(),
            measured: tokio::sync::Mutex::default(),
            stop,
        }
    }
}

/// Deliveries, since this start, to addresses that are no webhook's.
#[derive(Debug, Clone, Default)]
struct Unknown {
    refused: u64,
    refused_at: Option<Timestamp>,
}

type App = Arc<Shared>;

/// The whole API and the page, for `axum::serve`. Open streams last until their clients leave.
pub fn router(state: WebState) -> Router {
    build(state, None)
}

/// As [`router`]; open streams end when `stop` becomes true, so that a graceful shutdown ends too.
pub fn router_until(state: WebState, stop: watch::Receiver<bool>) -> Router {
    build(state, Some(stop))
}

fn build(web: WebState, stop: Option<watch::Receiver<bool>>) -> Router {
    let app = Arc::new(Shared::new(web, stop));
    routes::table(&app)
        .fallback(answer::page)
        .layer(from_fn_with_state(app.clone(), bounded))
        .layer(from_fn_with_state(app.clone(), auth::place))
        .layer(from_fn(problem::uniform))
        .layer(from_fn(answer::sealed))
        .with_state(app)
}

/// Bounds how many requests are under way and how long each may take.
async fn bounded(State(app): State<App>, request: Request, next: Next) -> Response {
    let lane = if routes::is_hook(request.uri()) { &app.hooks } else { &app.requests };
    let Ok(_permit) = lane.try_acquire() else {
        let detail = "Too many requests at once. Nothing happened; send this one again.";
        return Problem::not_done(detail).into_response();
    };
    let limit = Duration::from_millis(ANSWER_MS);
    tokio::time::timeout(limit, next.run(request)).await.unwrap_or_else(|_| {
        let detail =
            "No answer in time. Send the same request again, with the same id: it is done once.";
        Problem::unavailable(detail).into_response()
    })
}
