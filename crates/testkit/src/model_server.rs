//! A model server of the OpenAI kind that answers from a rule file, over real HTTP.
//!
//! Tests and the demo run it as a process of its own. It journals every question, so that a judge
//! can compare what the product says it asked with what was asked, and it fails on command.

mod fault;
mod journal;
mod wire;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use base::{Clock, Digest, Secret};
use model::{Answer, ModelError, Prices, Request, Script, ScriptedModel};
use serde_json::json;
use tokio::net::TcpListener;

pub use fault::Fault;
pub use journal::Asked;

use fault::Faults;
use journal::Journal;

/// The rules of the price watch, the story that the demo tells.
pub const PRICE_SCRIPT: &str = include_str!("../scripts/price.toml");

/// The rules of the kill tests: a watched price, numbered notes, a reminder.
pub const KILL_SCRIPT: &str = include_str!("../scripts/kill.toml");

/// What to serve, and within which limits.
#[derive(Debug, Clone)]
pub struct Config {
    /// The rules that answer.
    pub script: Script,
    /// The bearer token that callers must bring; `None` lets everyone in.
    pub key: Option<Secret>,
    /// Where one JSON line ([`Asked`]) per question is appended.
    pub journal: Option<PathBuf>,
    /// The most bytes of the journal; once it is full, questions are refused with 507.
    pub journal_bytes_max: u64,
    /// The most bytes of a request body; a longer one gets 413.
    pub body_bytes_max: usize,
    /// Adds to each answer's id the number of its line, `-7`, so that a repeated question gets an
    /// answer that can be told from the first.
    pub number_answers: bool,
    /// Stamps the journal.
    pub clock: Arc<dyn Clock>,
}

impl Config {
    /// No key, no journal, no numbers, 256 MiB of journal at most and 8 MiB per request; change the fields for
    /// others.
    pub fn new(script: Script, clock: Arc<dyn Clock>) -> Config {
        Config {
            script,
            key: None,
            journal: None,
            journal_bytes_max: 256 * 1024 * 1024,
            body_bytes_max: 8 * 1024 * 1024,
            number_answers: false,
            clock,
        }
    }
}

struct Server {
    model: ScriptedModel,
    key: Option<Secret>,
    clock: Arc<dyn Clock>,
    number_answers: bool,
    /// Held for one write; a line is never mixed with another.
    journal: Mutex<Journal>,
    /// Held to take or add faults only.
    faults: Mutex<Faults>,
}

/// Serves until the returned future is dropped. It fails only if the journal cannot be opened.
///
/// `POST /v1/chat/completions` (streamed or not), `GET /v1/models`, and `POST /faults` with
/// `{"next": [Fault, …]}`: each of the next questions meets one of them.
pub async fn serve(listener: TcpListener, config: Config) -> std::io::Result<()> {
    let journal = Journal::open(config.journal.as_deref(), config.journal_bytes_max)?;
    let server = Server {
        model: ScriptedModel::new(config.script, Prices::default()),
        key: config.key,
        clock: config.clock,
        number_answers: config.number_answers,
        journal: Mutex::new(journal),
        faults: Mutex::default(),
    };
    let router = Router::new()
        .route("/v1/chat/completions", post(complete))
        .route("/v1/models", get(models))
        .route("/faults", post(add_faults))
        .layer(DefaultBodyLimit::max(config.body_bytes_max))
        .with_state(Arc::new(server));
    axum::serve(listener, router).await
}

async fn complete(
    State(server): State<Arc<Server>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Err(refusal) = server.check_key(&headers) {
        return refusal;
    }
    let fault = server.faults.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(delay) = fault.as_ref().and_then(Fault::delay) {
        tokio::time::sleep(delay).await;
    }
    let request = Request::from_body(&body);
    let refusal = fault.as_ref().and_then(Fault::refusal);
    // A question that meets an ordered refusal never reaches the script.
    let mut answer = refusal.is_none().then(|| match &request {
        Ok(request) => server.model.answer(request),
        Err(error) => Err(ModelError::Malformed(error.to_string())),
    });
    let cut = fault.as_ref().and_then(|fault| fault.cut_after_bytes);
    let digest = request.ok().map(|request| request.digest());
    if let Err(error) = server.journal(&uri, &body, digest, answer.as_mut(), fault) {
        let message = format!("the journal cannot be written: {error}");
        return wire::error(StatusCode::INSUFFICIENT_STORAGE, "server_error", &message);
    }
    match (refusal, answer) {
        (Some(refusal), _) => refusal,
        (None, Some(Ok(answer))) => {
            wire::answer(&answer, wire::Options::read(&body), server.seconds(), cut)
        }
        (None, Some(Err(error))) => wire::model_error(&error),
        (None, None) => unreachable!("without an ordered refusal the script is asked"),
    }
}

async fn models(State(server): State<Arc<Server>>, headers: HeaderMap) -> Response {
    if let Err(refusal) = server.check_key(&headers) {
        return refusal;
    }
    let name = model::ChatModel::name(&server.model);
    let entry = json!({"id": name, "object": "model", "created": 0, "owned_by": "script"});
    axum::Json(json!({"object": "list", "data": [entry]})).into_response()
}

async fn add_faults(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Err(refusal) = server.check_key(&headers) {
        return refusal;
    }
    let added = server.faults.lock().unwrap_or_else(PoisonError::into_inner).add(&body);
    match added {
        Ok(waiting) => axum::Json(json!({"waiting": waiting})).into_response(),
        Err(what) => wire::error(StatusCode::BAD_REQUEST, "invalid_request_error", &what),
    }
}

impl Server {
    #[expect(clippy::result_large_err, reason = "the error is the answer itself")]
    fn check_key(&self, headers: &HeaderMap) -> Result<(), Response> {
        let Some(key) = &self.key else { return Ok(()) };
        let brought = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
        // Digests compare in a time that does not depend on the key.
        let wanted = Digest::of(format!("Bearer {}", key.expose()).as_bytes());
        match brought.map(Digest::of) {
            Some(brought) if brought == wanted => Ok(()),
            Some(_) | None => Err(wire::model_error(&ModelError::Authentication)),
        }
    }

    /// Adds a line and, where that is wanted, its number to the answer, both under one lock.
    fn journal(
        &self,
        uri: &Uri,
        body: &[u8],
        digest: Option<Digest>,
        mut answer: Option<&mut Result<Answer, ModelError>>,
        fault: Option<Fault>,
    ) -> std::io::Result<()> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if let (true, Some(Ok(answer))) = (self.number_answers, answer.as_deref_mut()) {
            answer.answer_id = format!("{}-{}", answer.answer_id, journal.next());
        }
        journal.add(self.asked(uri, body, digest, answer.as_deref(), fault))
    }

    fn asked(
        &self,
        uri: &Uri,
        body: &[u8],
        request_digest: Option<Digest>,
        answer: Option<&Result<Answer, ModelError>>,
        fault: Option<Fault>,
    ) -> Asked {
        let answered = answer.and_then(|answer| answer.as_ref().ok());
        let failed = answer.and_then(|answer| answer.as_ref().err());
        Asked {
            n: 0,
            at: self.clock.now(),
            request_digest,
            body_digest: Digest::of(body),
            answer_id: answered.map(|answer| answer.answer_id.clone()),
            tool_calls: answered.map(|answer| answer.tool_calls.clone()).unwrap_or_default(),
            path: uri.path().to_owned(),
            error: failed.map(|error| error.class().to_owned()),
            fault,
        }
    }

    fn seconds(&self) -> i64 {
        self.clock.now().micros().div_euclid(1_000_000)
    }
}
