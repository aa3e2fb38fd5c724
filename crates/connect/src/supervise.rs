//! One connector over its whole life: started or looked for when used, restarted after a death, left alone for a
//! while after several, and ended with this process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, timeout};

use crate::connectors::{ConnectLimits, ServerConfig};
use crate::error::ConnectError;
use crate::manifest::Manifest;
use crate::mcp::{Connection, refuses_key};
use crate::objects::{Found, issued};
use crate::text::cut;
use crate::tools::{Level, ToolAnswer, ToolSchema};

/// A configured server and, while it runs, the connection to its process.
pub(crate) struct Server {
    config: ServerConfig,
    limits: ConnectLimits,
    places: Semaphore,
    /// Held across a start, so that callers who come meanwhile share its outcome; never across a call.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// Failed starts and deaths since the last answer.
    failures: u32,
    /// No start before this instant.
    rest_until: Option<Instant>,
    /// The last start failed because our key was refused; said again while there is no other.
    refused: Option<ConnectError>,
    /// Calls in a row that ran out of time.
    unanswered: u32,
    shut_down: bool,
}

impl State {
    /// Gives up the connection. The first failure costs no rest, so that a process that merely died
    /// between two calls is back at once; from the second on the rest doubles.
    fn fail(&mut self, limits: &ConnectLimits) {
        self.connection = None;
        self.unanswered = 0;
        self.failures = self.failures.saturating_add(1);
        let Some(doublings) = self.failures.checked_sub(2) else { return };
        let rest_ms = limits.rest_ms.saturating_mul(1 << doublings.min(20)).min(limits.rest_max_ms);
        self.rest_until = Some(Instant::now() + Duration::from_millis(rest_ms));
    }

    fn answered(&mut self) {
        self.failures = 0;
        self.unanswered = 0;
        self.rest_until = None;
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Server {
    pub(crate) fn new(config: ServerConfig, limits: ConnectLimits) -> Self {
        let places = Semaphore::new(limits.in_flight_max.max(1));
        Server { config, limits, places, state: Mutex::default() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.config.manifest
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<ToolAnswer, ConnectError> {
        let busy = || ConnectError::Busy {
            server: self.name().to_owned(),
            in_flight: self.limits.in_flight_max.max(1),
        };
        // The semaphore is never closed, so only the limit can make this fail.
        let place = timeout(limit, self.places.acquire()).await;
        let _place = place.ok().and_then(Result::ok).ok_or_else(busy)?;
        let connection = self.connection().await?;
        let result = connection.call(tool, arguments, limit).await;
        self.take_note(&connection, &result).await;
        let answer = result?;
        let (text, is_error) = (answer.text(), answer.is_error());
        if is_error && refuses_key(&text) {
            return Err(ConnectError::Authentication {
                server: self.name().to_owned(),
                reason: text,
            });
        }
        let issues = self.manifest().tool(tool).map(|rule| &rule.issues);
        let found = match issues.filter(|issues| !issues.is_empty() && !is_error) {
            Some(issues) => issued(issues, answer.data().as_ref()),
            None => Found::default(),
        };
        let room = self.limits.text_bytes_max.saturating_sub(found.notes.len());
        Ok(ToolAnswer {
            text: cut(text, room) + &found.notes,
            is_error,
            provenance: format!("mcp:{}.{tool}", self.name()),
            level: Level::Connector,
            issued: found.issued,
        })
    }

    pub(crate) async fn schema(
        &self,
        tool: &str,
        description: &str,
    ) -> Result<ToolSchema, ConnectError> {
        let connection = self.connection().await?;
        let listed = connection.tools().await;
        self.take_note(&connection, &listed).await;
        let name = format!("{}.{tool}", self.name());
        let Some(offered) = listed?.get(tool) else {
            return Err(ConnectError::NotOffered { tool: name });
        };
        let own = offered.description.as_str();
        let description = if own.is_empty() { description } else { own };
        Ok(ToolSchema {
            name,
            description: cut(description.to_owned(), self.limits.text_bytes_max),
            parameters: bounded_schema(&offered.parameters, self.limits.text_bytes_max),
        })
    }

    /// Starts the server if need be and looks for every tool of its manifest.
    pub(crate) async fn check(&self) -> Result<(), ConnectError> {
        let connection = self.connection().await?;
        let listed = connection.tools().await;
        self.take_note(&connection, &listed).await;
        let listed = listed?;
        match self.manifest().tools().find(|(tool, _)| !listed.contains_key(*tool)) {
            Some((tool, _)) => {
                Err(ConnectError::NotOffered { tool: format!("{}.{tool}", self.name()) })
            }
            None => Ok(()),
        }
    }

    pub(crate) async fn shutdown(&self) {
        let connection = {
            let mut state = self.state.lock().await;
            state.shut_down = true;
            state.connection.take()
        };
        if let Some(connection) = connection {
            connection.close().await;
        }
    }

    /// The running connection, or a new one.
    async fn connection(&self) -> Result<Arc<Connection>, ConnectError> {
        let mut state = self.state.lock().await;
        if state.shut_down {
            return Err(ConnectError::ShutDown { server: self.name().to_owned() });
        }
        match &state.connection {
            Some(connection) if connection.is_open() => return Ok(Arc::clone(connection)),
            Some(_) => state.fail(&self.limits),
            None => {}
        }
        let rest = state.rest_until.map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
            if let Some(refused) = &state.refused {
                return Err(refused.clone());
            }
            return Err(ConnectError::BackingOff {
                server: self.name().to_owned(),
                failures: state.failures,
                retry_ms: u64::try_from(rest.as_millis()).unwrap_or(u64::MAX),
            });
        }
        match Connection::open(&self.config, &self.limits).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.refused = None;
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(error) => {
                state.fail(&self.limits);
                let refused = matches!(error, ConnectError::Authentication { .. });
                state.refused = refused.then(|| error.clone());
                Err(error)
            }
        }
    }

    /// Draws the conclusions from an outcome for the next start.
    async fn take_note<T>(&self, connection: &Arc<Connection>, result: &Result<T, ConnectError>) {
        let mut state = self.state.lock().await;
        let current =
            state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection));
        if !current {
            return;
        }
        match result {
            Err(
                ConnectError::Stopped { .. }
                | ConnectError::Unreachable { .. }
                | ConnectError::Broken { .. }
                | ConnectError::Status { status: 429 | 500.., .. }
                | ConnectError::TooLarge { .. }
                | ConnectError::Start { .. }
                | ConnectError::Silent { .. }
                | ConnectError::Handshake { .. },
            ) => state.fail(&self.limits),
            Ok(_)
            | Err(
                ConnectError::Rejected { .. }
                | ConnectError::Unsupported { .. }
                | ConnectError::NotOffered { .. }
                | ConnectError::Status { .. }
                | ConnectError::Authentication { .. },
            ) => state.answered(),
            Err(ConnectError::TimedOut { .. }) => {
                state.unanswered += 1;
                if state.unanswered >= self.limits.unanswered_max {
                    state.fail(&self.limits);
                }
            }
            Err(
                ConnectError::UnknownTool { .. }
                | ConnectError::BackingOff { .. }
                | ConnectError::TooLong { .. }
                | ConnectError::Busy { .. }
                | ConnectError::ShutDown { .. },
            ) => {}
        }
    }
}

/// A schema that is too long is replaced rather than cut, because a cut one is not JSON any more.
fn bounded_schema(parameters: &str, bytes_max: usize) -> String {
    if parameters.len() <= bytes_max {
        return parameters.to_owned();
    }
    let note = format!(
        "the schema of this tool has {} bytes and is not shown; the tool's errors name what is wrong",
        parameters.len()
    );
    serde_json::json!({ "type": "object", "description": note }).to_string()
}
