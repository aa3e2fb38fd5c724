//! A server at an address: which revision of the protocol it speaks, its session if it has one, and
//! calls with a limit.
//!
//! The revisions differ in what stands around a request. Up to 2025-11-25 a handshake opens a session
//! whose id goes with every request; from 2026-07-28 on every request carries all there is to know.
//! In both, one request is one POST whose answer is a JSON body or a stream of events. A stream that
//! breaks is not resumed and nothing is sent again: whoever asked decides whether to ask anew.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::timeout;

use super::content::Answer;
use super::exchange::{Fault, Peer, Reply, RpcError, SESSION};
use super::headers::{Mirrored, encoded, for_call, mirrored};
use super::{
    MESSAGE_BYTES_MAX, Offered, PAGES_MAX, Sending, TOOLS_MAX, list_name, rejected, timed_out,
    too_many,
};
use crate::connectors::{Address, ConnectLimits};
use crate::error::ConnectError;
use crate::text::cut;

/// The revision without sessions.
const STATELESS: &str = "2026-07-28";
/// The revisions with a session, the newest first.
const WITH_SESSION: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Errors that only a server of the stateless revision sends: a header that does not fit, a
/// capability of ours that is missing, a revision that it does not speak.
const HEADER_MISMATCH: i32 = -32_020;
const MISSING_CAPABILITY: i32 = -32_021;
const UNSUPPORTED_VERSION: i32 = -32_022;

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// A server at an address that has answered once.
pub(crate) struct HttpConnection {
    server: String,
    limits: ConnectLimits,
    peer: Peer,
    next_id: AtomicU64,
    era: Era,
    tools: OnceCell<Listed>,
}

enum Era {
    Stateless,
    /// Locked across a handshake, so that calls that find the session gone share the next one; never
    /// across a call.
    Sessions(Mutex<Option<Arc<Session>>>),
}

struct Session {
    version: &'static str,
    /// A server may do without.
    id: Option<HeaderValue>,
}

pub(super) struct Listed {
    pub(super) offered: BTreeMap<String, Offered>,
    mirrored: BTreeMap<String, Vec<Mirrored>>,
}

/// What a server that was asked for its revisions turned out to be.
enum Probed {
    Stateless,
    Sessions,
}

/// # Errors
/// What is wrong with the address or the key.
pub(super) fn peer(at: &Address, limits: &ConnectLimits) -> Result<Peer, String> {
    Peer::new(&at.url, at.key.as_ref(), at.http.clone(), limits.message_bytes_max)
}

impl HttpConnection {
    /// Finds out the revision, and opens a session where it has them, within `start_ms`.
    pub(super) async fn open(
        server: &str,
        at: &Address,
        limits: &ConnectLimits,
    ) -> Result<HttpConnection, ConnectError> {
        let unreachable = |place: String, reason: String| ConnectError::Unreachable {
            server: server.to_owned(),
            place,
            reason,
        };
        let peer = peer(at, limits).map_err(|problem| unreachable("mcp.url".into(), problem))?;
        let mut connection = HttpConnection {
            server: server.to_owned(),
            limits: limits.clone(),
            peer,
            next_id: AtomicU64::new(1),
            era: Era::Stateless,
            tools: OnceCell::new(),
        };
        let opened = async {
            if let Probed::Sessions = connection.probe().await? {
                let session = connection.initialize().await?;
                connection.era = Era::Sessions(Mutex::new(Some(Arc::new(session))));
            }
            Ok(())
        };
        let opened = timeout(Duration::from_millis(limits.start_ms), opened).await;
        match opened {
            Ok(Ok(())) => Ok(connection),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                let reason = format!("no answer within {} ms", limits.start_ms);
                Err(unreachable(connection.peer.place(), reason))
            }
        }
    }

    /// The tools the server offers, asked once per connection.
    pub(super) async fn tools(&self) -> Result<&BTreeMap<String, Offered>, ConnectError> {
        self.listed().await.map(|listed| &listed.offered)
    }

    /// Makes sure that the next call can leave at once: its schema is known, or its session alive.
    pub(super) async fn ready(&self) -> Result<(), ConnectError> {
        let Era::Sessions(_) = &self.era else { return self.listed().await.map(|_listed| ()) };
        let limit = Duration::from_millis(self.limits.start_ms);
        let headers = HeaderMap::new();
        let asked = self.ask("ping", json!({}), &headers, "ping", Sending::Again);
        match timeout(limit, asked).await.map_err(|_| timed_out("ping".to_owned(), limit))? {
            // A server that does not know the question has answered too.
            Ok(_)
            | Err(
                ConnectError::Rejected { .. }
                | ConnectError::Status { .. }
                | ConnectError::Unsupported { .. },
            ) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Calls a tool and waits at most `limit`. Dropping the connection tells a server of the stateless
    /// revision that nobody waits any more.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
        sending: Sending,
    ) -> Result<Answer, ConnectError> {
        let name = format!("{}.{tool}", self.server);
        let mut headers = HeaderMap::new();
        if let Era::Stateless = self.era {
            // The headers of a call follow from the tool's schema, so that has to be known first.
            let long = |argument: String| ConnectError::TooLong { tool: name.clone(), argument };
            let marked = self.listed().await?.mirrored.get(tool).map_or(&[][..], Vec::as_slice);
            for (header, value) in for_call(marked, &arguments).map_err(long)? {
                headers.insert(header, value);
            }
            headers.insert(NAME, encoded(tool).ok_or_else(|| long("name".to_owned()))?);
        }
        let params = json!({ "name": tool, "arguments": arguments });
        let asked = self.ask("tools/call", params, &headers, &name, sending);
        let result = timeout(limit, asked).await.map_err(|_| timed_out(name.clone(), limit))??;
        let unsupported =
            |what: &str| ConnectError::Unsupported { tool: name.clone(), what: what.to_owned() };
        match result.get("resultType").map(|kind| kind.as_str().unwrap_or_default()) {
            None | Some("complete") => {}
            Some("input_required") => return Err(unsupported("a question to the user")),
            Some("task") => return Err(unsupported("a task to be polled")),
            Some(_) => return Err(unsupported("an unknown kind of result")),
        }
        match serde_json::from_value::<CallToolResult>(result) {
            Ok(result) => Ok(Answer::new(result)),
            Err(_) => Err(unsupported("an unknown kind of result")),
        }
    }

    /// Ends the session, if there is one.
    pub(super) async fn close(&self) {
        let Era::Sessions(session) = &self.era else { return };
        let Some(session) = session.lock().await.take().filter(|session| session.id.is_some())
        else {
            return;
        };
        let limit = Duration::from_millis(self.limits.stop_ms);
        // Whether it cares or not: nothing depends on it.
        let _ = timeout(limit, self.peer.end_session(session.headers())).await;
    }

    async fn listed(&self) -> Result<&Listed, ConnectError> {
        self.tools.get_or_try_init(|| self.list_in_time()).await
    }

    /// The same, asked anew.
    pub(super) async fn list_in_time(&self) -> Result<Listed, ConnectError> {
        let limit = Duration::from_millis(self.limits.start_ms);
        let listed = timeout(limit, self.list()).await;
        listed.map_err(|_| timed_out("tools/list".to_owned(), limit))?
    }

    async fn list(&self) -> Result<Listed, ConnectError> {
        let name = list_name(&self.server);
        let mut listed = Listed { offered: BTreeMap::new(), mirrored: BTreeMap::new() };
        let mut params = json!({});
        for _page in 0..PAGES_MAX {
            let headers = HeaderMap::new();
            let mut page = self.ask("tools/list", params, &headers, &name, Sending::Again).await?;
            let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else {
                let what = "no list of tools".to_owned();
                return Err(ConnectError::Unsupported { tool: name, what });
            };
            for tool in tools {
                self.keep(&mut listed, &tool);
            }
            if listed.offered.len() > TOOLS_MAX {
                break;
            }
            match page.get("nextCursor").filter(|cursor| cursor.is_string()) {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok(listed),
            }
        }
        Err(too_many(&self.server))
    }

    /// Keeps a tool that has a name, unless its marks are wrong.
    fn keep(&self, listed: &mut Listed, tool: &Value) {
        let text = |field: &str| tool.get(field).and_then(Value::as_str).unwrap_or_default();
        let (name, schema) = (text("name").to_owned(), tool.get("inputSchema"));
        let schema = schema.cloned().unwrap_or_else(|| json!({ "type": "object" }));
        let marked = match self.era {
            Era::Stateless => mirrored(&schema),
            Era::Sessions(_) => Ok(Vec::new()),
        };
        match marked {
            Ok(marked) if !name.is_empty() => {
                let description = text("description").to_owned();
                let offered = Offered { description, parameters: schema.to_string() };
                listed.mirrored.insert(name.clone(), marked);
                listed.offered.insert(name, offered);
            }
            Ok(_) => {}
            Err(reason) => {
                let name = cut(name, MESSAGE_BYTES_MAX);
                tracing::warn!(server = self.server, name, reason, "a tool is not usable");
            }
        }
    }

    /// Asks for the revisions. Whoever does not know the question has sessions.
    async fn probe(&self) -> Result<Probed, ConnectError> {
        let headers = stateless_headers("server/discover");
        let reply = match self.send("server/discover", stateless(json!({})), headers).await {
            Ok(reply) => reply,
            Err(fault) => match fault {
                Fault::Status(status) if !is_final(status) => return Ok(Probed::Sessions),
                Fault::Strange(_) => return Ok(Probed::Sessions),
                Fault::Status(_) | Fault::Unreachable(_) | Fault::Broken | Fault::TooLarge => {
                    return Err(self.fault("server/discover".to_owned(), fault));
                }
            },
        };
        let versions = match reply.outcome {
            Ok(found) => found.get("supportedVersions").cloned().unwrap_or_default(),
            Err((status, error)) if is_final(status) => {
                return Err(self.refused("server/discover".to_owned(), status, error));
            }
            Err((_, error)) => match error.code {
                UNSUPPORTED_VERSION => error.data.get("supported").cloned().unwrap_or_default(),
                HEADER_MISMATCH | MISSING_CAPABILITY => return Err(self.handshake(error.message)),
                _ => return Ok(Probed::Sessions),
            },
        };
        let versions: Vec<&str> =
            versions.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if versions.contains(&STATELESS) {
            Ok(Probed::Stateless)
        } else if versions.is_empty() || versions.iter().any(|v| WITH_SESSION.contains(v)) {
            Ok(Probed::Sessions)
        } else {
            Err(self.handshake(format!("it speaks only {}", versions.join(", "))))
        }
    }

    /// Opens a session.
    async fn initialize(&self) -> Result<Session, ConnectError> {
        let params = json!({
            "protocolVersion": WITH_SESSION[0],
            // None: a server can neither ask our model nor our user through this connection.
            "capabilities": {},
            "clientInfo": client(),
        });
        let during = || "initialize".to_owned();
        let reply = self.send("initialize", params, HeaderMap::new()).await;
        let reply = reply.map_err(|fault| self.fault(during(), fault))?;
        let result = match reply.outcome {
            Ok(result) => result,
            Err((status, error)) if is_final(status) => {
                return Err(self.refused(during(), status, error));
            }
            Err((_, error)) => return Err(self.handshake(error.message)),
        };
        let wanted = result.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let Some(version) = WITH_SESSION.into_iter().find(|version| *version == wanted) else {
            return Err(self.handshake(format!("it answered with revision `{wanted}`")));
        };
        let session = Session { version, id: reply.session };
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let told = self.peer.tell(&told, session.headers()).await;
        told.map_err(|fault| self.fault("notifications/initialized".to_owned(), fault))?;
        Ok(session)
    }

    /// The session there is, or a new one.
    async fn session(
        &self,
        sessions: &Mutex<Option<Arc<Session>>>,
    ) -> Result<Arc<Session>, ConnectError> {
        let mut current = sessions.lock().await;
        if let Some(session) = &*current {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(self.initialize().await?);
        *current = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Asks one thing and gives its result. A server that says it does not know our session has done
    /// nothing, so a read goes out once more, in a new session; anything else stands. What may leave
    /// only once opens no session either, since that would make it late.
    async fn ask(
        &self,
        method: &str,
        params: Value,
        headers: &HeaderMap,
        during: &str,
        sending: Sending,
    ) -> Result<Value, ConnectError> {
        let failed = |fault| self.fault(during.to_owned(), fault);
        let sessions = match &self.era {
            Era::Stateless => {
                let mut all = stateless_headers(method);
                all.extend(headers.clone());
                let reply = self.send(method, stateless(params), all).await.map_err(failed)?;
                return self.result(during, reply);
            }
            Era::Sessions(sessions) => sessions,
        };
        let session = match sending {
            Sending::Again => self.session(sessions).await?,
            Sending::Once => sessions.lock().await.clone().ok_or_else(|| {
                failed(Fault::Unreachable("the session has just ended".to_owned()))
            })?,
        };
        let sent = self.send(method, params.clone(), session.headers()).await;
        if sending == Sending::Once || !session.is_lost(&sent) {
            return self.result(during, sent.map_err(failed)?);
        }
        {
            let mut current = sessions.lock().await;
            if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, &session)) {
                *current = None;
            }
        }
        let session = self.session(sessions).await?;
        let sent = self.send(method, params, session.headers()).await;
        self.result(during, sent.map_err(failed)?)
    }

    async fn send(&self, method: &str, params: Value, headers: HeaderMap) -> Result<Reply, Fault> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.peer.ask(id, &message, headers).await
    }

    fn result(&self, during: &str, reply: Reply) -> Result<Value, ConnectError> {
        reply.outcome.map_err(|(status, error)| self.refused(during.to_owned(), status, error))
    }

    fn refused(&self, during: String, status: StatusCode, error: RpcError) -> ConnectError {
        if is_final(status) {
            let reason =
                cut(format!("HTTP {}: {}", status.as_u16(), error.message), MESSAGE_BYTES_MAX);
            return ConnectError::Authentication { server: self.server.clone(), reason };
        }
        rejected(&self.server, during, error.code, error.message)
    }

    fn fault(&self, during: String, fault: Fault) -> ConnectError {
        let server = self.server.clone();
        match fault {
            Fault::Unreachable(reason) => {
                ConnectError::Unreachable { server, place: self.peer.place(), reason }
            }
            Fault::Status(status) if is_final(status) => {
                let reason = format!("HTTP {}", status.as_u16());
                ConnectError::Authentication { server, reason }
            }
            Fault::Status(status) => ConnectError::Status { tool: during, status: status.as_u16() },
            Fault::Broken => ConnectError::Broken { server, during },
            Fault::TooLarge => {
                ConnectError::TooLarge { server, limit_bytes: self.limits.message_bytes_max }
            }
            Fault::Strange(what) => ConnectError::Unsupported { tool: during, what },
        }
    }

    fn handshake(&self, reason: String) -> ConnectError {
        let reason = cut(reason, MESSAGE_BYTES_MAX);
        ConnectError::Handshake { server: self.server.clone(), reason }
    }
}

impl Session {
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(VERSION, HeaderValue::from_static(self.version));
        if let Some(id) = &self.id {
            headers.insert(SESSION, id.clone());
        }
        headers
    }

    /// Whether the answer says that the server does not know this session. By the protocol that is
    /// status 404; some servers say it with 400 and in words.
    fn is_lost(&self, sent: &Result<Reply, Fault>) -> bool {
        let (status, message) = match sent {
            Ok(Reply { outcome: Err((status, error)), .. }) => (*status, error.message.as_str()),
            Err(Fault::Status(status)) => (*status, ""),
            Ok(_) | Err(_) => return false,
        };
        let in_words = || message.to_lowercase().contains("session");
        self.id.is_some()
            && (status == StatusCode::NOT_FOUND
                || (status == StatusCode::BAD_REQUEST && in_words()))
    }
}

/// Whether the status says that our key is not accepted.
fn is_final(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

fn client() -> Value {
    json!({ "name": "adjutant", "version": env!("CARGO_PKG_VERSION") })
}

/// What every request of the stateless revision says about itself, put into its parameters.
fn stateless(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": client(),
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

fn stateless_headers(method: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(VERSION, HeaderValue::from_static(STATELESS));
    headers.extend(encoded(method).map(|method| (METHOD, method)));
    headers
}
