//! All configured connectors together: the tool index, schemas, and calls that only read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base::Secret;
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use crate::error::{ConfigError, ConnectError};
use crate::manifest::{Manifest, ToolRule};
use crate::mcp::Connection;
use crate::supervise::{BuiltIn, Provider, Server};
use crate::tools::{
    Level, ReadTool, Refusal, ToolAnswer, ToolEntry, ToolSchema, Wanted, near_names,
};
use crate::web::Web;

/// The name of the built-in connector.
const WEB: &str = "web";

/// One connector of the configuration.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Stands before the dot in the names of its tools.
    pub name: String,
    /// Where its server is.
    pub reach: Reach,
    /// What its tools do to the world.
    pub manifest: Manifest,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Reach {
    /// A process of ours that speaks MCP over its standard streams.
    Command(Command),
    /// A server that speaks MCP over streamable HTTP.
    Http(Address),
}

/// A program that is started when one of its tools is used.
#[derive(Clone)]
pub struct Command {
    /// The program, as a path or a name on PATH.
    pub program: String,
    /// Its arguments. They are visible to other users of the machine: no secrets here.
    pub args: Vec<String>,
    /// Its environment besides PATH, HOME and LANG, the only ones it inherits. `Debug` hides values.
    pub env: BTreeMap<String, String>,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .finish()
    }
}

/// The one address of a server over HTTP. Whether `http://` is near enough is for the configuration
/// to say; here both schemes are taken.
#[derive(Clone)]
pub struct Address {
    /// The whole URL of its endpoint. `Debug` hides it, since some carry a key.
    pub url: String,
    /// Sent as a bearer token with every request, and nowhere else.
    pub key: Option<Secret>,
    /// Follows no redirects, so that the key stays with the host it is for.
    pub http: reqwest::Client,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The bounds of every connector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectLimits {
    /// Bytes of an answer, a description or a schema that are handed on; the rest is cut.
    pub text_bytes_max: usize,
    /// Bytes of one message of a server, or of the whole answer to one request over HTTP; a longer
    /// one ends the process or the connection.
    pub message_bytes_max: usize,
    /// How long a server may take to answer `initialize`, and then to list its tools.
    pub start_ms: u64,
    /// How long a process may take to end by itself once its standard input is closed.
    pub stop_ms: u64,
    /// Calls under way at once per connector; further ones wait within their own limit.
    pub in_flight_max: usize,
    /// The rest before the second restart in a row; doubles up to `rest_max_ms`.
    pub rest_ms: u64,
    /// The longest rest between two starts.
    pub rest_max_ms: u64,
    /// Calls in a row without any answer after which a server is started or looked for again.
    pub unanswered_max: u32,
}

impl Default for ConnectLimits {
    fn default() -> Self {
        ConnectLimits {
            text_bytes_max: base::Limits::default().tool_text_bytes,
            message_bytes_max: 4 * 1024 * 1024,
            start_ms: 20_000,
            stop_ms: 2_000,
            in_flight_max: 4,
            rest_ms: 1_000,
            rest_max_ms: 60_000,
            unanswered_max: 3,
        }
    }
}

impl From<&base::Limits> for ConnectLimits {
    /// The process-wide bounds that also hold here.
    fn from(limits: &base::Limits) -> Self {
        ConnectLimits { text_bytes_max: limits.tool_text_bytes, ..ConnectLimits::default() }
    }
}

/// All connectors of one process. Nothing is started until a tool is used.
#[derive(Debug)]
pub struct Connectors {
    providers: BTreeMap<String, Provider>,
    entries: Vec<ToolEntry>,
    limits: ConnectLimits,
}

impl Connectors {
    /// Takes the configured connectors; starts nothing.
    ///
    /// # Errors
    /// [`ConfigError`] for a name that is not usable or used twice, and for an address that is none.
    pub fn new(configs: Vec<ServerConfig>, limits: ConnectLimits) -> Result<Self, ConfigError> {
        let mut connectors =
            Connectors { providers: BTreeMap::new(), entries: Vec::new(), limits: limits.clone() };
        for config in configs {
            let name = config.name.clone();
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
            if name.is_empty() || name.len() > 32 || !name.chars().all(plain) {
                return Err(ConfigError::Name { name });
            }
            Connection::check(&config, &limits)?;
            let server = Server::new(config, limits.clone());
            connectors.add(name, Provider::Server(Arc::new(server)))?;
        }
        Ok(connectors)
    }

    /// Adds the built-in connector `web`.
    ///
    /// # Errors
    /// [`ConfigError::Twice`] if a configured connector has its name.
    pub fn with_web(mut self, web: Web) -> Result<Self, ConfigError> {
        let built_in = BuiltIn::new(web, &self.limits)
            .map_err(|problem| ConfigError::BuiltIn { name: WEB.to_owned(), problem })?;
        self.add(WEB.to_owned(), Provider::Web(Arc::new(built_in)))?;
        Ok(self)
    }

    fn add(&mut self, name: String, provider: Provider) -> Result<(), ConfigError> {
        self.entries.extend(provider.manifest().tools().map(|(tool, rule)| ToolEntry {
            name: format!("{name}.{tool}"),
            effect: rule.effect,
            description: rule.description.clone(),
        }));
        self.entries.sort_by(|a, b| a.name.cmp(&b.name));
        match self.providers.insert(name.clone(), provider) {
            None => Ok(()),
            Some(_) => Err(ConfigError::Twice { name }),
        }
    }

    /// Every tool of every manifest, sorted by name. The same for the life of the process, whatever
    /// the servers do, because it stands in a cached prompt prefix.
    pub fn tools(&self) -> &[ToolEntry] {
        &self.entries
    }

    /// The configured servers, each of which may offer more than its manifest has entries for.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.providers.values().filter_map(|provider| match provider {
            Provider::Server(server) => Some(server.name()),
            Provider::Web(_) => None,
        })
    }

    /// Asks to call a tool that only reads with these arguments. What comes back names the ids that
    /// must have been issued; [`Wanted::cleared`] turns it into the handle for the call.
    ///
    /// # Errors
    /// [`Refusal`] for every other tool, and for arguments that can not be ids where ids are due; its
    /// text says what to do instead.
    pub fn wanted(&self, name: &str, arguments: Map<String, Value>) -> Result<Wanted, Refusal> {
        let Some((server, tool, rule)) = self.entry(name) else {
            let near = near_names(name, self.entries.iter().map(|entry| entry.name.as_str()));
            return Err(Refusal::Unknown { tool: name.to_owned(), near });
        };
        Wanted::new(server, tool, rule, arguments)
    }

    /// The connector that stands for a host or for a host above it, if its manifest says so. While
    /// that connector is broken there is no way round it through the web (TOOL-08).
    pub fn stands_for(&self, host: &str) -> Option<&str> {
        self.providers
            .values()
            .find(|provider| provider.manifest().covers(host))
            .map(Provider::name)
    }

    /// The rung of the ladder that a tool stands on (TOOL-06); one that nobody knows is a connector's.
    pub fn level(&self, name: &str) -> Level {
        match self.entry(name) {
            Some((Provider::Web(_), _, _)) => Level::Web,
            Some((Provider::Server(_), _, _)) | None => Level::Connector,
        }
    }

    /// The manifest entry of a tool, for whoever freezes an action.
    pub fn rule(&self, name: &str) -> Option<&ToolRule> {
        self.entry(name).map(|(_, _, rule)| rule)
    }

    /// The manifest of one connector.
    pub fn manifest(&self, server: &str) -> Option<&Manifest> {
        self.providers.get(server).map(Provider::manifest)
    }

    /// What arguments a tool takes, whatever its effect. Starts the server if need be; asked of it
    /// once per process start. A tool without an entry is asked for anew each time, and may be called once
    /// it was; `SERVER.*` gives their names.
    ///
    /// # Errors
    /// [`ConnectError`]; the tool may also have an entry but not be offered by its server.
    pub async fn schema(&self, name: &str) -> Result<ToolSchema, ConnectError> {
        let unknown = || ConnectError::UnknownTool { tool: name.to_owned() };
        let (provider, tool) = self.place(name).ok_or_else(unknown)?;
        match (provider.manifest().tool(tool), provider) {
            (Some(rule), _) => provider.schema(tool, &rule.description).await,
            (None, Provider::Server(server)) => server.strange_schema(tool).await,
            (None, Provider::Web(_)) => Err(unknown()),
        }
    }

    /// Calls a tool that only reads, and waits at most `limit` for its answer; a server that has to
    /// be started first has `start_ms` for that in addition.
    ///
    /// # Errors
    /// [`ConnectError`]. An answer in which the tool itself reports a failure is not an error here.
    pub async fn call(&self, tool: ReadTool, limit: Duration) -> Result<ToolAnswer, ConnectError> {
        // The handle brings its own server, so that a handle of other connectors can not reach a
        // server whose manifest says something else about the tool.
        let (server, tool, arguments) = tool.into_parts();
        server.call(&tool, arguments, limit).await
    }

    /// Starts every connector and compares its tools with its manifest, for `doctor`. Takes no longer
    /// than the slowest one; sorted by name.
    pub async fn check(&self) -> Vec<(String, Result<(), ConnectError>)> {
        let mut checks = JoinSet::new();
        for (name, provider) in &self.providers {
            let (name, provider) = (name.clone(), provider.clone());
            checks.spawn(async move { (name, provider.check().await) });
        }
        let mut results = checks.join_all().await;
        results.sort_by(|a, b| a.0.cmp(&b.0));
        results
    }

    /// Ends every process: closes its input, waits `stop_ms`, then kills it with its children. Later
    /// calls are refused.
    pub async fn shutdown(&self) {
        let mut ends = JoinSet::new();
        for provider in self.providers.values() {
            let provider = provider.clone();
            ends.spawn(async move { provider.shutdown().await });
        }
        ends.join_all().await;
    }

    /// The connector, and the tool's name there, whether it has an entry or not.
    pub(crate) fn place<'a, 'n>(&'a self, name: &'n str) -> Option<(&'a Provider, &'n str)> {
        let (server, tool) = name.split_once('.')?;
        Some((self.providers.get(server)?, tool))
    }

    /// The server, the tool's name there, and its rule.
    pub(crate) fn entry<'a, 'n>(
        &'a self,
        name: &'n str,
    ) -> Option<(&'a Provider, &'n str, &'a ToolRule)> {
        let (provider, tool) = self.place(name)?;
        Some((provider, tool, provider.manifest().tool(tool)?))
    }

    /// Bytes of an answer that are handed on.
    pub(crate) fn text_bytes_max(&self) -> usize {
        self.limits.text_bytes_max
    }
}
