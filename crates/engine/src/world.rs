//! The outside world as the stages see it. A turn may read it; the only way to change it takes a [`Permit`],
//! which is minted by the commit of an attempt and nowhere else (P5).

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use base::{Clock, Timestamp};
pub use connect::Needed as Need;
pub use connect::source::{Item as Found, Look};
pub use connect::{Acted, Intended, Issued};
use domain::effect::{Content, Observation, Sight, Spec};
use serde_json::{Map, Value};
use store::Permit;
pub use store::run::Level;

/// Something slow under way. Dropping it gives it up.
pub type Slow<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A read that may be made: its ids were checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool's full name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The ids that were checked.
    pub issued: Vec<Need>,
}

/// What a read came to. A failure is a text that says what to do next.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// What the model reads.
    pub text: String,
    /// The step of the ladder (TOOL-06).
    pub level: Level,
    /// Where the text comes from.
    pub provenance: String,
    /// Ids in it that become objects.
    pub issued: Vec<Issued>,
    /// The connector's health as this call showed it; `None`: it showed nothing.
    pub health: Option<Health>,
}

/// Whether a connector works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It answered.
    Works {
        /// Which.
        connector: String,
    },
    /// It is broken in a way that waiting does not mend, such as a refused key (TOOL-08).
    Broken {
        /// Which.
        connector: String,
        /// For people.
        why: String,
    },
}

/// Connectors and polled sources as the stages see them.
pub trait World: Send + Sync {
    /// The full names of all tools, from the manifests alone; `SERVER.*` stands for what a server offers
    /// without an entry.
    fn tools(&self) -> Vec<String>;
    /// What a read needs, or why a turn cannot make this call: it has an effect, or does not exist.
    fn needs(&self, tool: &str, arguments: &Map<String, Value>) -> Result<Vec<Need>, String>;
    /// The step of the ladder that a tool stands on.
    fn level(&self, tool: &str) -> Level;
    /// The connector that stands for a host, if one does: there is no way round it while it is broken.
    fn stands_for(&self, host: &str) -> Option<String>;
    /// How a tool is called.
    fn schema<'a>(&'a self, tool: &'a str) -> Slow<'a, String>;
    /// The JSON Schema of a tool's arguments, as its server says it now; `None`: it does not say.
    fn parameters<'a>(&'a self, _tool: &'a str) -> Slow<'a, Option<Value>> {
        Box::pin(async { None })
    }
    /// Calls a tool that only reads.
    fn read<'a>(&'a self, call: Call, limit: Duration) -> Slow<'a, Read>;
    /// The effect that a call would have; `None`: the tool only reads, or does not exist.
    fn intended(
        &self,
        _tool: &str,
        _arguments: &Map<String, Value>,
    ) -> Option<Result<Intended, String>> {
        None
    }
    /// What a call of a tool that reads would be as an action, because of what it reveals; `None`: it reveals
    /// nothing, or is no such tool.
    fn revealed(
        &self,
        _tool: &str,
        _arguments: &Map<String, Value>,
    ) -> Option<Result<Intended, String>> {
        None
    }
    /// Whether the manifest still says of a tool what it said when this was frozen.
    fn stands(&self, content: &Content) -> bool {
        self.spec(&content.operation).is_some_and(|spec| spec.entry == content.entry)
    }
    /// What the manifest says now of a tool with an effect; `None` also where it has no entry.
    fn spec(&self, _tool: &str) -> Option<Spec> {
        None
    }
    /// The manifest's entry of a tool.
    fn rule(&self, _tool: &str) -> Option<connect::ToolRule> {
        None
    }
    /// Sends what the permit names, once, before its time is over. A world that only reads sends nothing.
    fn act<'a>(
        &'a self,
        permit: Permit,
        _clock: &'a dyn Clock,
        _limit: Duration,
    ) -> Slow<'a, Acted> {
        let seen = Observation::NotSent(format!("there is no {}", permit.tool()));
        let (answer, issued) = (String::new(), Vec::new());
        Box::pin(async move { Acted { seen, answer, issued, refused_key: None } })
    }
    /// Looks up what became of an operation.
    fn find<'a>(&'a self, tool: &'a str, _operation: &'a str, _limit: Duration) -> Slow<'a, Sight> {
        Box::pin(async move { Sight::Unreadable(format!("there is no {tool}")) })
    }
    /// Looks at a polled source; a failure is a text with the remedy.
    fn look<'a>(
        &'a self,
        config: &'a str,
        cursor: Option<&'a str>,
        now: Timestamp,
    ) -> Slow<'a, Result<Look, String>>;
}

/// The connectors of the configuration, and the guarded client for what is polled.
#[derive(Debug)]
pub struct Outside {
    /// MCP servers and the built-in web tools.
    pub connectors: connect::Connectors,
    /// For addresses that somebody else chose.
    pub client: connect::guard::Client,
}

impl World for Outside {
    fn tools(&self) -> Vec<String> {
        let others = self.connectors.servers().map(|server| format!("{server}.*"));
        self.connectors.tools().iter().map(|entry| entry.name.clone()).chain(others).collect()
    }

    fn needs(&self, tool: &str, arguments: &Map<String, Value>) -> Result<Vec<Need>, String> {
        let wanted = self.connectors.wanted(tool, arguments.clone()).map_err(|e| e.to_string())?;
        Ok(wanted.needs().to_vec())
    }

    fn level(&self, tool: &str) -> Level {
        match self.connectors.level(tool) {
            connect::Level::Connector => Level::Connector,
            connect::Level::Web => Level::Web,
        }
    }

    fn stands_for(&self, host: &str) -> Option<String> {
        self.connectors.stands_for(host).map(str::to_owned)
    }

    fn schema<'a>(&'a self, tool: &'a str) -> Slow<'a, String> {
        Box::pin(async move {
            match self.connectors.schema(tool).await {
                Ok(schema) => format!(
                    "{}: {}\nArguments: {}",
                    schema.name, schema.description, schema.parameters
                ),
                Err(error @ connect::ConnectError::UnknownTool { .. }) => {
                    self.needs(tool, &Map::new()).err().unwrap_or_else(|| error.to_string())
                }
                Err(error) => error.to_string(),
            }
        })
    }

    fn parameters<'a>(&'a self, tool: &'a str) -> Slow<'a, Option<Value>> {
        Box::pin(async move {
            let schema = self.connectors.schema(tool).await.ok()?;
            serde_json::from_str(&schema.parameters).ok()
        })
    }

    fn read<'a>(&'a self, call: Call, limit: Duration) -> Slow<'a, Read> {
        Box::pin(async move {
            let Call { tool, arguments, issued } = call;
            let level = self.level(&tool);
            let plain = |text: String, health: Option<Health>| Read {
                text,
                level,
                provenance: tool.clone(),
                issued: Vec::new(),
                health,
            };
            let connector = tool.split('.').next().unwrap_or_default().to_owned();
            let cleared = self
                .connectors
                .wanted(&tool, arguments)
                .and_then(|wanted| wanted.cleared(|needed| issued.contains(needed)));
            let handle = match cleared {
                Ok(handle) => handle,
                Err(refusal) => return plain(refusal.to_string(), None),
            };
            match self.connectors.call(handle, limit).await {
                Ok(answer) if answer.is_error => {
                    plain(format!("The tool failed: {}", answer.text), None)
                }
                Ok(answer) => Read {
                    text: answer.text,
                    level,
                    provenance: answer.provenance,
                    issued: answer.issued,
                    health: Some(Health::Works { connector }),
                },
                Err(error @ connect::ConnectError::Authentication { .. }) => {
                    let why = error.to_string();
                    plain(why.clone(), Some(Health::Broken { connector, why }))
                }
                Err(error) => plain(error.to_string(), None),
            }
        })
    }

    fn intended(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Option<Result<Intended, String>> {
        let intended = self.connectors.intended(tool, arguments)?;
        Some(intended.map_err(|refusal| refusal.to_string()))
    }

    fn revealed(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Option<Result<Intended, String>> {
        let intended = self.connectors.revealed(tool, arguments)?;
        Some(intended.map_err(|refusal| refusal.to_string()))
    }

    fn stands(&self, content: &Content) -> bool {
        self.connectors.stands(&content.operation, content.effect, content.entry)
    }

    fn spec(&self, tool: &str) -> Option<Spec> {
        self.connectors.spec(tool)
    }

    fn rule(&self, tool: &str) -> Option<connect::ToolRule> {
        self.connectors.rule(tool).cloned()
    }

    fn act<'a>(&'a self, permit: Permit, clock: &'a dyn Clock, limit: Duration) -> Slow<'a, Acted> {
        Box::pin(self.connectors.act(permit, clock, limit))
    }

    fn find<'a>(&'a self, tool: &'a str, operation: &'a str, limit: Duration) -> Slow<'a, Sight> {
        Box::pin(self.connectors.find(tool, operation, limit))
    }

    fn look<'a>(
        &'a self,
        config: &'a str,
        cursor: Option<&'a str>,
        now: Timestamp,
    ) -> Slow<'a, Result<Look, String>> {
        Box::pin(async move {
            let config: connect::source::Config = serde_json::from_str(config)
                .map_err(|e| format!("the source's settings cannot be read ({e}); add it anew"))?;
            let limits = connect::source::SourceLimits::default();
            let look = connect::source::look(&self.client, &config, cursor, &limits, now).await;
            look.map_err(|error| error.to_string())
        })
    }
}

/// Bounds what is slow. Without a runtime, as in the simulator, nothing is slow and no clock runs.
pub(crate) async fn within<T>(limit_ms: u64, slow: impl Future<Output = T>) -> Option<T> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Some(slow.await);
    }
    tokio::time::timeout(Duration::from_millis(limit_ms), slow).await.ok()
}
