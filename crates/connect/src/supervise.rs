//! One connector over its whole life: started or looked for when used, restarted after a death, left alone for a
//! while after several, and ended with this process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use base::Digest;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use crate::connectors::{ConnectLimits, ServerConfig};
use crate::error::ConnectError;
use crate::manifest::{Manifest, ManifestError, ToolRule, is_tool_name, undescribed};
use crate::mcp::{Answer, Connection, Offered, Sending, refuses_key};
use crate::objects::{Found, issued};
use crate::text::cut;
use crate::tools::{Level, ToolAnswer, ToolSchema};
use crate::web::{WEB_MANIFEST, Web, WebError};

/// Whoever answers the calls of one connector.
#[derive(Debug, Clone)]
pub(crate) enum Provider {
    /// A configured server.
    Server(Arc<Server>),
    /// The web, which needs no server.
    Web(Arc<BuiltIn>),
}

impl Provider {
    pub(crate) fn name(&self) -> &str {
        match self {
            Provider::Server(server) => server.name(),
            Provider::Web(_) => "web",
        }
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        match self {
            Provider::Server(server) => server.manifest(),
            Provider::Web(built_in) => &built_in.manifest,
        }
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<ToolAnswer, ConnectError> {
        match self {
            Provider::Server(server) => server.call(tool, arguments, limit).await,
            Provider::Web(built_in) => built_in.call(tool, &arguments, limit).await,
        }
    }

    /// Sends a read that was released because of what it reveals; see [`Server::send`].
    pub(crate) async fn send(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        in_time: impl Fn() -> bool,
        limit: Duration,
    ) -> Result<ToolAnswer, Unanswered> {
        match self {
            Provider::Server(server) => {
                let answer = server.send(tool, arguments, in_time, limit).await?;
                server.read(tool, &answer).map_err(Unanswered::Sent)
            }
            Provider::Web(built_in) => built_in.send(tool, &arguments, in_time, limit).await,
        }
    }

    pub(crate) async fn schema(
        &self,
        tool: &str,
        description: &str,
    ) -> Result<ToolSchema, ConnectError> {
        match self {
            Provider::Server(server) => server.schema(tool, description).await,
            Provider::Web(_) => built_in_schema(tool, description),
        }
    }

    pub(crate) async fn check(&self) -> Result<(), ConnectError> {
        match self {
            Provider::Server(server) => server.check().await,
            Provider::Web(built_in) => built_in
                .manifest
                .tools()
                .try_for_each(|(tool, _)| built_in_schema(tool, "").map(|_schema| ())),
        }
    }

    pub(crate) async fn shutdown(&self) {
        match self {
            Provider::Server(server) => server.shutdown().await,
            Provider::Web(_) => {}
        }
    }
}

fn built_in_schema(tool: &str, description: &str) -> Result<ToolSchema, ConnectError> {
    let name = format!("web.{tool}");
    match Web::parameters(tool) {
        Some(parameters) => {
            Ok(ToolSchema { name, description: description.to_owned(), parameters })
        }
        None => Err(ConnectError::NotOffered { tool: name }),
    }
}

/// The web with what its manifest says about it.
pub(crate) struct BuiltIn {
    web: Web,
    manifest: Manifest,
    text_bytes_max: usize,
    in_flight_max: usize,
    places: Semaphore,
}

impl fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltIn").field("manifest", &self.manifest.digest()).finish_non_exhaustive()
    }
}

impl BuiltIn {
    pub(crate) fn new(web: Web, limits: &ConnectLimits) -> Result<BuiltIn, ManifestError> {
        let in_flight_max = limits.in_flight_max.max(1);
        Ok(BuiltIn {
            web,
            manifest: Manifest::parse(WEB_MANIFEST)?,
            text_bytes_max: limits.text_bytes_max,
            in_flight_max,
            places: Semaphore::new(in_flight_max),
        })
    }

    async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        limit: Duration,
    ) -> Result<ToolAnswer, ConnectError> {
        let _place = self.place(limit).await?;
        self.answer(tool, arguments, limit).await
    }

    async fn send(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        in_time: impl Fn() -> bool,
        limit: Duration,
    ) -> Result<ToolAnswer, Unanswered> {
        let _place = self.place(limit).await.map_err(Unanswered::Unsent)?;
        if !in_time() {
            return Err(Unanswered::Late);
        }
        self.answer(tool, arguments, limit).await.map_err(Unanswered::Sent)
    }

    /// A place among the calls under way.
    async fn place(&self, limit: Duration) -> Result<SemaphorePermit<'_>, ConnectError> {
        let busy = || ConnectError::Busy { server: "web".into(), in_flight: self.in_flight_max };
        // The semaphore is never closed, so only the limit can make this fail.
        let place = timeout(limit, self.places.acquire()).await;
        place.ok().and_then(Result::ok).ok_or_else(busy)
    }

    async fn answer(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        limit: Duration,
    ) -> Result<ToolAnswer, ConnectError> {
        let server = || "web".to_owned();
        let name = format!("web.{tool}");
        let answer = self.web.call(tool, arguments, limit).await.map_err(|error| match error {
            WebError::UnknownTool { .. } => ConnectError::NotOffered { tool: name },
            WebError::Arguments { reason, .. } => {
                ConnectError::Rejected { tool: name, code: -32_602, message: reason }
            }
            WebError::TimedOut { limit_ms, .. } => ConnectError::TimedOut { tool: name, limit_ms },
            WebError::Authentication => ConnectError::Authentication {
                server: server(),
                reason: "the search provider does not accept it".to_owned(),
            },
        })?;
        // A page is named by the address it came from in the end.
        let source = answer.data.get("final_url").and_then(Value::as_str).unwrap_or(tool);
        let provenance = format!("web:{source}");
        let (text, is_error) = (answer.text, answer.is_error);
        let said = Said { text, is_error, provenance, level: Level::Web };
        Ok(said.answer(self.manifest.tool(tool), self.text_bytes_max, || Some(answer.data)))
    }
}

/// A configured server and, while it runs, the connection to its process.
pub(crate) struct Server {
    config: ServerConfig,
    limits: ConnectLimits,
    places: Semaphore,
    /// Held across a start, so that callers who come meanwhile share its outcome; never across a call.
    state: Mutex<State>,
    /// What the server offered without an entry in its manifest when it was asked last; `None`: not yet.
    strangers: std::sync::Mutex<Option<BTreeMap<String, Digest>>>,
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
        let strangers = std::sync::Mutex::default();
        Server { config, limits, places, state: Mutex::default(), strangers }
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
        let answer = self.ask(tool, arguments, limit).await?;
        self.read(tool, &answer)
    }

    /// An answer as the caller of a read gets it.
    fn read(&self, tool: &str, answer: &Answer) -> Result<ToolAnswer, ConnectError> {
        if let Some(refused) = self.refuses_key(answer) {
            return Err(refused);
        }
        let (text, is_error) = (answer.text(), answer.is_error());
        let said = Said {
            text,
            is_error,
            provenance: format!("mcp:{}.{tool}", self.name()),
            level: Level::Connector,
        };
        Ok(said.answer(self.manifest().tool(tool), self.limits.text_bytes_max, || answer.data()))
    }

    /// Whether an answer says that our key is not accepted.
    pub(crate) fn refuses_key(&self, answer: &Answer) -> Option<ConnectError> {
        let reason = answer.text();
        (answer.is_error() && refuses_key(&reason))
            .then(|| ConnectError::Authentication { server: self.name().to_owned(), reason })
    }

    /// The tools that the server offers now and that its manifest has no entry for.
    pub(crate) async fn strangers(&self) -> Result<BTreeMap<String, Offered>, ConnectError> {
        let connection = self.connection().await?;
        let offered = connection.tools_now().await;
        self.take_note(&connection, &offered).await;
        let mut offered = offered?;
        offered.retain(|tool, _| self.manifest().tool(tool).is_none() && is_tool_name(tool));
        let digest = |(tool, offered): (&String, &Offered)| {
            let name = format!("{}.{tool}", self.name());
            (tool.clone(), undescribed(&name, &offered.parameters))
        };
        let known = offered.iter().map(digest).collect();
        *self.strangers.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        Ok(offered)
    }

    /// What stands for the entry of a tool without one, by the last look at what the server offers. `None`:
    /// nobody has looked yet.
    pub(crate) fn stranger(&self, tool: &str) -> Option<Option<Digest>> {
        let known = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map(|known| known.get(tool).copied())
    }

    /// Calls a tool that only reads, and gives its answer as it came.
    pub(crate) async fn ask(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<Answer, ConnectError> {
        let _place = self.place(limit).await?;
        let connection = self.connection().await?;
        let result = connection.call(tool, arguments, limit, Sending::Again).await;
        self.take_note(&connection, &result).await;
        result
    }

    /// Sends a call that acts, once or not at all, and waits at most `limit` for its answer. All that
    /// can take long comes before; `in_time` is asked at the last moment.
    pub(crate) async fn send(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        in_time: impl Fn() -> bool,
        limit: Duration,
    ) -> Result<Answer, Unanswered> {
        let _place = self.place(limit).await.map_err(Unanswered::Unsent)?;
        let connection = self.connection().await.map_err(Unanswered::Unsent)?;
        let ready = connection.ready().await;
        self.take_note(&connection, &ready).await;
        ready.map_err(Unanswered::Unsent)?;
        if !in_time() {
            return Err(Unanswered::Late);
        }
        let result = connection.call(tool, arguments, limit, Sending::Once).await;
        self.take_note(&connection, &result).await;
        result.map_err(Unanswered::Sent)
    }

    /// A place among the calls under way.
    async fn place(&self, limit: Duration) -> Result<SemaphorePermit<'_>, ConnectError> {
        // The semaphore is never closed, so only the limit can make this fail.
        let place = timeout(limit, self.places.acquire()).await;
        place.ok().and_then(Result::ok).ok_or_else(|| ConnectError::Busy {
            server: self.name().to_owned(),
            in_flight: self.limits.in_flight_max.max(1),
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

    /// The same of a tool without an entry; of `*`, the names of all of them.
    pub(crate) async fn strange_schema(&self, tool: &str) -> Result<ToolSchema, ConnectError> {
        let strangers = self.strangers().await?;
        let name = format!("{}.{tool}", self.name());
        let each = "The person releases each call of it, one by one, and says what came of it";
        if tool == "*" {
            let names: Vec<String> =
                strangers.keys().map(|tool| format!("{}.{tool}", self.name())).collect();
            let description = match names.is_empty() {
                true => {
                    "The manifest describes every tool of this server; there are no others".into()
                }
                false => format!("No manifest describes these. {each}: {}", names.join(", ")),
            };
            let description = cut(description, self.limits.text_bytes_max);
            return Ok(ToolSchema { name, description, parameters: "look each of them up".into() });
        }
        let Some(Offered { description, parameters }) = strangers.get(tool) else {
            return Err(ConnectError::UnknownTool { tool: name });
        };
        let description = format!("No manifest describes this tool. {each}. {description}");
        Ok(ToolSchema {
            name,
            description: cut(description, self.limits.text_bytes_max),
            parameters: bounded_schema(parameters, self.limits.text_bytes_max),
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

/// Why a call that acts has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// It did not leave: the moment until which it could had passed.
    Late,
    /// It certainly never left.
    Unsent(ConnectError),
    /// It left, or may have.
    Sent(ConnectError),
}

/// An answer before its ids are taken out and its text is cut.
struct Said {
    text: String,
    is_error: bool,
    provenance: String,
    level: Level,
}

impl Said {
    /// A failure issues nothing; `data` is asked for only if the rule issues something.
    fn answer(
        self,
        rule: Option<&ToolRule>,
        text_bytes_max: usize,
        data: impl FnOnce() -> Option<Value>,
    ) -> ToolAnswer {
        let Said { text, is_error, provenance, level } = self;
        let found = match rule.filter(|rule| !rule.issues.is_empty() && !is_error) {
            Some(rule) => issued(rule, data().as_ref()),
            None => Found::default(),
        };
        let (text, issued) = found.beside(text, text_bytes_max);
        ToolAnswer { text, is_error, provenance, level, issued }
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
