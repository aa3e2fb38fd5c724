//! The one place that knows MCP and `rmcp`: a connection to one server, over the standard streams of
//! a process of ours or over HTTP.

mod content;
mod exchange;
mod headers;
mod http;
mod lines;
mod process;
mod sse;
mod stdio;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

pub(crate) use content::Answer;
use http::HttpConnection;
use stdio::StdioConnection;

use crate::connectors::{ConnectLimits, Reach, ServerConfig};
use crate::error::{ConfigError, ConnectError};
use crate::text::cut;

/// Pages of a tool list that are read.
const PAGES_MAX: usize = 50;
/// Tools of one server that are kept.
const TOOLS_MAX: usize = 2_000;
/// Bytes of a server's error message that are handed on.
const MESSAGE_BYTES_MAX: usize = 500;

/// How often a call may leave us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    /// Once, whatever comes of it: it acts.
    Once,
    /// Again in a new session, where the server says that it does not know the old one.
    Again,
}

/// A tool as its server describes it.
pub(crate) struct Offered {
    pub(crate) description: String,
    /// JSON text.
    pub(crate) parameters: String,
}

/// An open connection to one server. Dropping it kills a process of ours.
pub(crate) enum Connection {
    /// A process that has answered `initialize`.
    Stdio(Box<StdioConnection>),
    /// A server at an address, of a revision that is known.
    Http(Box<HttpConnection>),
}

impl Connection {
    /// Looks whether a connection can be tried at all; opens nothing.
    pub(crate) fn check(config: &ServerConfig, limits: &ConnectLimits) -> Result<(), ConfigError> {
        match &config.reach {
            Reach::Command(_) => Ok(()),
            Reach::Http(at) => http::peer(at, limits)
                .map(|_peer| ())
                .map_err(|problem| ConfigError::Address { name: config.name.clone(), problem }),
        }
    }

    /// Starts the process or finds out the revision of the server, within `start_ms`.
    pub(crate) async fn open(
        config: &ServerConfig,
        limits: &ConnectLimits,
    ) -> Result<Connection, ConnectError> {
        match &config.reach {
            Reach::Command(command) => StdioConnection::open(&config.name, command, limits)
                .await
                .map(|connection| Connection::Stdio(Box::new(connection))),
            Reach::Http(at) => HttpConnection::open(&config.name, at, limits)
                .await
                .map(|connection| Connection::Http(Box::new(connection))),
        }
    }

    /// The process has not closed its end, as far as is known. An address is always there.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Connection::Stdio(connection) => connection.is_open(),
            Connection::Http(_) => true,
        }
    }

    /// The tools the server offers, asked once per connection.
    pub(crate) async fn tools(&self) -> Result<&BTreeMap<String, Offered>, ConnectError> {
        match self {
            Connection::Stdio(connection) => connection.tools().await,
            Connection::Http(connection) => connection.tools().await,
        }
    }

    /// The tools the server offers, asked anew: what it offered before may not be what it offers now.
    pub(crate) async fn tools_now(&self) -> Result<BTreeMap<String, Offered>, ConnectError> {
        match self {
            Connection::Stdio(connection) => connection.list_in_time().await,
            Connection::Http(connection) => connection.list_in_time().await.map(|l| l.offered),
        }
    }

    /// Does what has to come before a call that leaves at once, within `start_ms`.
    pub(crate) async fn ready(&self) -> Result<(), ConnectError> {
        match self {
            Connection::Stdio(_) => Ok(()),
            Connection::Http(connection) => connection.ready().await,
        }
    }

    /// Calls a tool and waits at most `limit`.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
        sending: Sending,
    ) -> Result<Answer, ConnectError> {
        match self {
            // A process knows no sessions, so nothing is ever sent twice.
            Connection::Stdio(connection) => connection.call(tool, arguments, limit).await,
            Connection::Http(connection) => connection.call(tool, arguments, limit, sending).await,
        }
    }

    /// Ends the process or the session; takes at most about `stop_ms`.
    pub(crate) async fn close(&self) {
        match self {
            Connection::Stdio(connection) => connection.close().await,
            Connection::Http(connection) => connection.close().await,
        }
    }
}

fn list_name(server: &str) -> String {
    format!("{server} tools/list")
}

fn timed_out(tool: String, limit: Duration) -> ConnectError {
    let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    ConnectError::TimedOut { tool, limit_ms }
}

fn too_many(server: &str) -> ConnectError {
    let what = format!("more than {PAGES_MAX} pages or {TOOLS_MAX} tools");
    ConnectError::Unsupported { tool: list_name(server), what }
}

/// An error of the protocol: the request was refused.
fn rejected(server: &str, tool: String, code: i32, message: String) -> ConnectError {
    let message = cut(message, MESSAGE_BYTES_MAX);
    if matches!(code, 401 | 403) || refuses_key(&message) {
        return ConnectError::Authentication { server: server.to_owned(), reason: message };
    }
    ConnectError::Rejected { tool, code, message }
}

/// Whether a server's short text about a failure says that it does not accept our credentials. The
/// protocol has no code for that, so the usual words have to do; a long text is about something else.
pub(crate) fn refuses_key(text: &str) -> bool {
    const WORDS: [&str; 15] = [
        "unauthorized",
        "unauthorised",
        "unauthenticated",
        "not authenticated",
        "authentication failed",
        "authentication required",
        "authentication error",
        "bad credentials",
        "invalid credentials",
        "invalid api key",
        "invalid access token",
        "invalid token",
        "invalid_token",
        "token expired",
        "expired token",
    ];
    let text = text.to_lowercase();
    text.len() <= MESSAGE_BYTES_MAX && WORDS.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::refuses_key;

    #[test]
    fn refused_keys_are_told_by_the_usual_words() {
        assert!(refuses_key("GitHub API error: 401 Unauthorized"));
        assert!(refuses_key("Bad credentials"));
        assert!(!refuses_key("no day 401"));
        assert!(!refuses_key(&format!("Unauthorized access is a theme. {}", "x".repeat(500))));
    }
}
