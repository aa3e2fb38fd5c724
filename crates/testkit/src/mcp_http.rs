//! A tool server at an address, in both current revisions of MCP over HTTP, that misbehaves on command.
//!
//! It keeps to the published schema more strictly than most servers do: what a client must send and
//! does not is refused. It notes every message, so that a test can see that nothing came twice.

mod protocol;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What the tools of the server do to the world.
pub const MCP_HTTP_MANIFEST: &str = r#"
hosts = ["tools.example"]
[tool.echo]
effect = "read"
[tool.offers]
effect = "read"
issues = { offer = "offers[].id" }
[tool.refused]
effect = "read"
[tool.ask]
effect = "read"
"#;

/// The newest revision with sessions.
const WITH_SESSION: &str = "2025-11-25";
/// The revision without.
const STATELESS: &str = "2026-07-28";

/// What the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// 2025-11-25: a handshake opens a session.
    Sessions,
    /// 2026-07-28: every request stands alone.
    Stateless,
}

/// What the next request of one method meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It is done, and the connection breaks before the answer.
    Lose,
    /// It is done, and the stream with the answer breaks in the middle of it.
    BreakStream,
    /// It is done, and the answer has so many letters, in a stream or in one piece.
    Huge(usize, Form),
    /// It is never answered.
    Hang,
    /// It is refused with this status and without a body.
    Status(u16),
    /// It is refused with a redirect to this address.
    Redirect(String),
    /// All sessions end before it comes: it gets the 404 of the protocol.
    EndSessions,
    /// As [`Fault::EndSessions`], said with status 400 and in words.
    EndSessionsInWords,
    /// A web page comes instead.
    Page,
}

/// How an answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One JSON body.
    Json,
    /// A stream of events.
    Events,
}

/// One message, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// `tools/call echo`, `tools/list`, or the HTTP method where it is not POST.
    pub what: String,
    /// The bearer token.
    pub key: Option<String>,
    /// The session it named.
    pub session: Option<String>,
    /// The revision it named in its header.
    pub version: Option<String>,
    /// The `Mcp-Param-` headers, decoded, by the rest of their names.
    pub mirrored: BTreeMap<String, String>,
    /// Whether the tool was run.
    pub done: bool,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct McpHttp {
    url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    revision: Revision,
    key: Option<String>,
    /// Held for one look or note, never across an answer.
    state: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    asked: Vec<Asked>,
    faults: VecDeque<(String, Fault)>,
    /// Sessions by id, and whether the handshake was finished.
    sessions: BTreeMap<String, bool>,
    opened: u32,
}

impl McpHttp {
    /// Starts on a free port of this machine. With a key, nobody else is let in.
    pub async fn start(revision: Revision, key: Option<&str>) -> std::io::Result<McpHttp> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        let key = key.map(str::to_owned);
        let shared = Arc::new(Shared { revision, key, state: Mutex::default() });
        let router = Router::new().route("/mcp", any(answer)).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                unreachable!("axum serves until it is dropped: {error}");
            }
        });
        Ok(McpHttp { url, shared, task })
    }

    /// The address of its endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The next request of this method (`tools/call`, or `*` for any) meets a failure. Several wait in
    /// order.
    pub fn fail(&self, method: &str, fault: Fault) {
        self.shared.lock().faults.push_back((method.to_owned(), fault));
    }

    /// Every message since the last look.
    pub fn take_asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.shared.lock().asked)
    }
}

impl Drop for McpHttp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the first waiting failure that is meant for this method.
    fn fault(&self, method: &str) -> Option<Fault> {
        let mut inner = self.lock();
        let at = inner.faults.iter().position(|(of, _)| of == method || of == "*")?;
        inner.faults.remove(at).map(|(_, fault)| fault)
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let called = message["method"].as_str().unwrap_or_default().to_owned();
    let mut asked = protocol::asked(&method, &headers, &message);
    let fault = shared.fault(&called);
    if let Some(fault) = fault.clone()
        && let Some(refusal) = refusal(&shared, &fault)
    {
        shared.lock().asked.push(asked);
        return refusal;
    }
    if fault == Some(Fault::Hang) {
        shared.lock().asked.push(asked);
        return pending().await;
    }
    let keyless = shared.key.is_some() && shared.key != asked.key;
    let outcome = if keyless {
        Err(StatusCode::UNAUTHORIZED.into_response())
    } else if method == Method::POST {
        outcome(&shared, &headers, &message)
    } else {
        Err(protocol::not_post(&shared, &method, &asked))
    };
    asked.done = outcome.is_ok() && called == "tools/call";
    shared.lock().asked.push(asked);
    match outcome {
        Ok(result) => sent(&shared, &called, &message["id"], result, fault),
        Err(refusal) => refusal,
    }
}

/// A failure that comes before the request is looked at.
fn refusal(shared: &Shared, fault: &Fault) -> Option<Response> {
    match fault {
        Fault::Status(status) => {
            Some(StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY).into_response())
        }
        Fault::Redirect(to) => {
            let to = [(header::LOCATION, to.clone())];
            Some((StatusCode::TEMPORARY_REDIRECT, to).into_response())
        }
        Fault::Page => {
            let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
            Some((kind, "<html>It works!</html>").into_response())
        }
        Fault::EndSessions => {
            shared.lock().sessions.clear();
            None
        }
        Fault::EndSessionsInWords => {
            shared.lock().sessions.clear();
            let message = "Bad Request: No valid session ID provided";
            Some(protocol::error(StatusCode::BAD_REQUEST, &Value::Null, -32_000, message))
        }
        Fault::Lose | Fault::BreakStream | Fault::Huge(..) | Fault::Hang => None,
    }
}

/// What a request comes to: a result, or an answer of another kind.
#[expect(clippy::result_large_err, reason = "the error is the answer itself")]
fn outcome(shared: &Shared, headers: &HeaderMap, message: &Value) -> Result<Value, Response> {
    protocol::check(shared, headers, message)?;
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => Ok(json!({
            "protocolVersion": WITH_SESSION,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "testkit", "version": "1" },
        })),
        "notifications/initialized" => Err(StatusCode::ACCEPTED.into_response()),
        "server/discover" => Ok(json!({
            "resultType": "complete",
            "supportedVersions": [STATELESS],
            "capabilities": { "tools": {} },
            "ttlMs": 0,
            "cacheScope": "private",
        })),
        "tools/list" => Ok(protocol::list(shared.revision, &message["params"])),
        "tools/call" => protocol::call(shared.revision, message),
        other => {
            let text = format!("Method not found: {other}");
            let status = match shared.revision {
                Revision::Stateless => StatusCode::NOT_FOUND,
                Revision::Sessions => StatusCode::OK,
            };
            Err(protocol::error(status, &message["id"], -32_601, &text))
        }
    }
}

/// Puts a result on its way, or what a failure leaves of it.
fn sent(
    shared: &Shared,
    method: &str,
    id: &Value,
    mut result: Value,
    fault: Option<Fault>,
) -> Response {
    // Calls are answered in a stream, as most servers do; the rest in one piece.
    let mut form = if method == "tools/call" { Form::Events } else { Form::Json };
    if let Some(Fault::Huge(letters, wanted)) = fault {
        form = wanted;
        result["content"] = json!([{ "type": "text", "text": "a".repeat(letters) }]);
    }
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
    let mut response = match (form, fault) {
        (_, Some(Fault::Lose)) => broken(Form::Json, ""),
        (_, Some(Fault::BreakStream)) => {
            let events = protocol::events(&answer);
            broken(Form::Events, &events[..events.len() - answer.len() / 2])
        }
        (Form::Json, _) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        (Form::Events, _) => {
            let events: Vec<Result<String, Infallible>> = vec![Ok(protocol::events(&answer))];
            let body = Body::from_stream(stream::iter(events));
            ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
        }
    };
    if method == "initialize" {
        let mut inner = shared.lock();
        inner.opened += 1;
        let id = format!("session-{}", inner.opened);
        response.headers_mut().extend(id.parse().ok().map(|id| (protocol::SESSION, id)));
        inner.sessions.insert(id, false);
    }
    response
}

/// An answer whose connection breaks after `start`.
fn broken(form: Form, start: &str) -> Response {
    let kind = match form {
        Form::Json => "application/json",
        Form::Events => "text/event-stream",
    };
    let parts = vec![Ok(start.to_owned()), Err(std::io::Error::other("broken on command"))];
    ([(header::CONTENT_TYPE, kind)], Body::from_stream(stream::iter(parts))).into_response()
}
