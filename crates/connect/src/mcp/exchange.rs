//! One message to a server over HTTP, and its answer. Nothing is ever sent twice from here.

use std::error::Error as _;
use std::fmt;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;

use super::sse::Events;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Bytes of a session id that are kept.
const SESSION_BYTES_MAX: usize = 1_024;

/// Where a server is, and what lets us in.
pub(super) struct Peer {
    http: reqwest::Client,
    url: Url,
    authorization: Option<HeaderValue>,
    message_bytes_max: usize,
}

/// An error as the protocol sends it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct RpcError {
    #[serde(default)]
    pub(super) code: i32,
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    pub(super) data: Value,
}

/// The answer to one request.
#[derive(Debug)]
pub(super) struct Reply {
    /// The session that the server has opened with it.
    pub(super) session: Option<HeaderValue>,
    /// The status and the error of a refusal, or the result.
    pub(super) outcome: Result<Value, (StatusCode, RpcError)>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// There was no connection, so nothing was sent; the system's words.
    Unreachable(String),
    /// A status that is no success, without an error of the protocol.
    Status(StatusCode),
    /// The connection ended before the answer was whole, perhaps before it began.
    Broken,
    /// The answer is longer than the limit.
    TooLarge,
    /// The answer is none of this protocol.
    Strange(String),
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("at", &self.place()).finish_non_exhaustive()
    }
}

impl Peer {
    /// # Errors
    /// What is wrong with the address or the key.
    pub(super) fn new(
        url: &str,
        key: Option<&base::Secret>,
        http: reqwest::Client,
        message_bytes_max: usize,
    ) -> Result<Peer, String> {
        let url: Url = url.parse().map_err(|error| format!("is no address ({error})"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("must begin with https:// (or http:// on this machine)".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must hold no user and no password; give a key apart from it".to_owned());
        }
        let bearer = |key: &base::Secret| {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose())).ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        let authorization = match key {
            None => None,
            Some(key) => Some(bearer(key).ok_or("has a key with characters no header can hold")?),
        };
        Ok(Peer { http, url, authorization, message_bytes_max })
    }

    /// The address without its query, which may hold something secret.
    pub(super) fn place(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.to_string()
    }

    /// Sends a request and waits for the answer that carries its id.
    pub(super) async fn ask(
        &self,
        id: u64,
        message: &Value,
        headers: HeaderMap,
    ) -> Result<Reply, Fault> {
        let response = self.post(message, headers).await?;
        let status = response.status();
        let session = response.headers().get(SESSION).filter(|id| visible(id)).cloned();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let streamed = kind.eq_ignore_ascii_case("text/event-stream");
        if !status.is_success() {
            let error = self.whole(response).await.ok().and_then(|body| refusal(&body));
            let error = error.ok_or(Fault::Status(status))?;
            return Ok(Reply { session, outcome: Err((status, error)) });
        }
        let outcome = if streamed {
            self.streamed(id, response).await?
        } else if kind.eq_ignore_ascii_case("application/json") {
            let body = self.whole(response).await?;
            let message = serde_json::from_slice(&body).map_err(|_| Fault::Broken)?;
            let odd = || Fault::Strange("no answer to what was asked".to_owned());
            outcome_of(id, message).ok_or_else(odd)?
        } else {
            let kind: String = kind.chars().take(100).collect();
            return Err(Fault::Strange(format!("content of type `{kind}`")));
        };
        Ok(Reply { session, outcome: outcome.map_err(|error| (status, error)) })
    }

    /// Sends a message that is not answered.
    pub(super) async fn tell(&self, message: &Value, headers: HeaderMap) -> Result<(), Fault> {
        let status = self.post(message, headers).await?.status();
        if status.is_success() { Ok(()) } else { Err(Fault::Status(status)) }
    }

    /// Tells the server that a session is over. It need not care.
    pub(super) async fn end_session(&self, headers: HeaderMap) {
        let request = self.with_key(self.http.delete(self.url.clone()).headers(headers));
        if let Err(error) = request.send().await {
            tracing::debug!(error = %said(error), "a session was not ended");
        }
    }

    async fn post(&self, message: &Value, headers: HeaderMap) -> Result<Response, Fault> {
        let request = self
            .http
            .post(self.url.clone())
            .headers(headers)
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(message.to_string());
        let sent = self.with_key(request).send().await;
        sent.map_err(|error| match error.is_connect() {
            true => Fault::Unreachable(said(error)),
            false => Fault::Broken,
        })
    }

    fn with_key(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value.clone()),
            None => request,
        }
    }

    /// The body, as long as it keeps the limit.
    async fn whole(&self, mut response: Response) -> Result<Vec<u8>, Fault> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|_| Fault::Broken)? {
            if body.len() + chunk.len() > self.message_bytes_max {
                return Err(Fault::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Reads events until one is the answer; notifications before it are skipped. The limit holds
    /// for all of them together.
    async fn streamed(
        &self,
        id: u64,
        mut response: Response,
    ) -> Result<Result<Value, RpcError>, Fault> {
        let mut events = Events::default();
        let mut bytes = 0;
        while let Some(chunk) = response.chunk().await.map_err(|_| Fault::Broken)? {
            bytes += chunk.len();
            if bytes > self.message_bytes_max {
                return Err(Fault::TooLarge);
            }
            events.push(&chunk);
            while let Some(data) = events.next() {
                let message = serde_json::from_slice(&data).ok();
                if let Some(outcome) = message.and_then(|message| outcome_of(id, message)) {
                    return Ok(outcome);
                }
            }
        }
        Err(Fault::Broken)
    }
}

/// The result or error of the request with this id; an error may also have none.
fn outcome_of(id: u64, mut message: Value) -> Option<Result<Value, RpcError>> {
    let own = message.get("id").is_some_and(|found| *found == id);
    if own && let Some(result) = message.get_mut("result") {
        return Some(Ok(result.take()));
    }
    let nobody = message.get("id").is_none_or(Value::is_null);
    let error = message.get_mut("error").filter(|_| own || nobody)?.take();
    serde_json::from_value(error).ok().map(Err)
}

/// The error in the body of a refusal, whichever request it names.
fn refusal(body: &[u8]) -> Option<RpcError> {
    let mut message: Value = serde_json::from_slice(body).ok()?;
    let error = message.get_mut("error")?.take();
    if !error.is_object() {
        return None;
    }
    serde_json::from_value(error).ok()
}

fn visible(id: &HeaderValue) -> bool {
    id.len() <= SESSION_BYTES_MAX && id.as_bytes().iter().all(|byte| matches!(byte, 0x21..=0x7e))
}

/// An error of the client in one line, with its causes and without the address.
fn said(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
