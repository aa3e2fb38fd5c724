//! A server that is a process of ours: its the handshake, the list of tools, and calls with a limit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation,
    PaginatedRequestParams, ProtocolVersion,
};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService, ServiceError};
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::timeout;

use super::content::Answer;
use super::lines::{Seen, WatchedLines};
use super::process::Process;
use super::{
    MESSAGE_BYTES_MAX, Offered, PAGES_MAX, TOOLS_MAX, list_name, rejected, timed_out, too_many,
};
use crate::connectors::{Command, ConnectLimits};
use crate::error::ConnectError;
use crate::text::cut;

/// A server process that has answered `initialize`. Dropping it kills the process.
pub(crate) struct StdioConnection {
    server: String,
    limits: ConnectLimits,
    seen: Arc<Seen>,
    service: RunningService<RoleClient, ClientConfig>,
    tools: OnceCell<BTreeMap<String, Offered>>,
    /// Taken by the one who ends it; locked for that instant only.
    process: Mutex<Option<Process>>,
}

impl StdioConnection {
    /// Starts the process and shakes hands, within `start_ms`.
    pub(super) async fn open(
        server: &str,
        command: &Command,
        limits: &ConnectLimits,
    ) -> Result<StdioConnection, ConnectError> {
        let (process, stdin, stdout) = Process::start(server, command)?;
        let seen = Arc::new(Seen::default());
        let lines = WatchedLines::new(stdout, limits.message_bytes_max, Arc::clone(&seen));
        let transport = AsyncRwTransport::new_client(lines, stdin)
            .with_max_line_length(limits.message_bytes_max);
        // No capabilities: a server can neither ask our model nor our user through this connection.
        let client = Implementation::new("adjutant", env!("CARGO_PKG_VERSION"));
        let client = ClientConfig::new(ClientCapabilities::default(), client)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
        let limit = Duration::from_millis(limits.start_ms);
        let service = match timeout(limit, client.serve(transport)).await {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(handshake_error(server, limits, &seen, &error)),
            Err(_) => {
                return Err(ConnectError::Silent {
                    server: server.to_owned(),
                    limit_ms: limits.start_ms,
                    garbage: seen.garbage(),
                });
            }
        };
        Ok(StdioConnection {
            server: server.to_owned(),
            limits: limits.clone(),
            seen,
            service,
            tools: OnceCell::new(),
            process: Mutex::new(Some(process)),
        })
    }

    /// The process has not closed its end, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        !self.service.is_transport_closed()
    }

    /// The tools the server offers, asked once per connection.
    pub(super) async fn tools(&self) -> Result<&BTreeMap<String, Offered>, ConnectError> {
        self.tools.get_or_try_init(|| self.list_in_time()).await
    }

    /// The same, asked anew.
    pub(super) async fn list_in_time(&self) -> Result<BTreeMap<String, Offered>, ConnectError> {
        let limit = Duration::from_millis(self.limits.start_ms);
        let listed = timeout(limit, self.list()).await;
        listed.map_err(|_| timed_out("tools/list".to_owned(), limit))?
    }

    /// Calls a tool and waits at most `limit`; then the server is told that nobody waits any more.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<Answer, ConnectError> {
        let name = format!("{}.{tool}", self.server);
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let unsupported =
            |what: &str| ConnectError::Unsupported { tool: name.clone(), what: what.to_owned() };
        match timeout(limit, self.service.call_tool_once(request)).await {
            Ok(Ok(CallToolResponse::Complete(result))) => Ok(Answer::new(result)),
            Ok(Ok(CallToolResponse::InputRequired(_))) => {
                Err(unsupported("a question to the user"))
            }
            Ok(Ok(CallToolResponse::Task(_))) => Err(unsupported("a task to be polled")),
            Ok(Ok(_)) => Err(unsupported("an unknown kind of result")),
            Ok(Err(error)) => Err(self.service_error(name, error)),
            Err(_) => Err(timed_out(name, limit)),
        }
    }

    /// Closes the server's input and waits for its end; kills it after `stop_ms`.
    pub(super) async fn close(&self) {
        let limit = Duration::from_millis(self.limits.stop_ms);
        let Some(process) = self.process.lock().await.take() else { return };
        self.service.cancellation_token().cancel();
        process.end(limit).await;
    }

    async fn list(&self) -> Result<BTreeMap<String, Offered>, ConnectError> {
        let mut tools = BTreeMap::new();
        let mut cursor = None;
        for _page in 0..PAGES_MAX {
            let request = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self
                .service
                .list_tools(Some(request))
                .await
                .map_err(|error| self.service_error(list_name(&self.server), error))?;
            tools.extend(page.tools.into_iter().map(|tool| {
                let description = tool.description.unwrap_or_default().into_owned();
                let parameters = Value::Object((*tool.input_schema).clone()).to_string();
                (tool.name.into_owned(), Offered { description, parameters })
            }));
            cursor = page.next_cursor;
            if cursor.is_none() && tools.len() <= TOOLS_MAX {
                return Ok(tools);
            }
            if tools.len() > TOOLS_MAX {
                break;
            }
        }
        Err(too_many(&self.server))
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "an enum of the SDK's; every other variant is reported by its own text"
    )]
    fn service_error(&self, tool: String, error: ServiceError) -> ConnectError {
        match error {
            ServiceError::McpError(error) => {
                rejected(&self.server, tool, error.code.0, error.message.into_owned())
            }
            ServiceError::TransportSend(_) | ServiceError::TransportClosed
                if self.seen.too_large() =>
            {
                ConnectError::TooLarge {
                    server: self.server.clone(),
                    limit_bytes: self.limits.message_bytes_max,
                }
            }
            ServiceError::TransportSend(_)
            | ServiceError::TransportClosed
            | ServiceError::Cancelled { .. } => ConnectError::Stopped {
                server: self.server.clone(),
                during: tool,
                garbage: self.seen.garbage(),
            },
            other => {
                ConnectError::Unsupported { tool, what: cut(other.to_string(), MESSAGE_BYTES_MAX) }
            }
        }
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "an enum of the SDK's; every other variant is reported by its own text"
)]
fn handshake_error(
    server: &str,
    limits: &ConnectLimits,
    seen: &Seen,
    error: &ClientInitializeError,
) -> ConnectError {
    let server = server.to_owned();
    match error {
        _ if seen.too_large() => {
            ConnectError::TooLarge { server, limit_bytes: limits.message_bytes_max }
        }
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => ConnectError::Stopped {
            server,
            during: "initialize".to_owned(),
            garbage: seen.garbage(),
        },
        other => {
            let reason = cut(other.to_string(), MESSAGE_BYTES_MAX);
            ConnectError::Handshake { server, reason }
        }
    }
}
