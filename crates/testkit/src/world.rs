//! A world in memory: tools that answer what a test says, and polled sources with what they hold.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base::Timestamp;
use engine::world::{Call, Health, Issued, Level, Look, Need, Read, Slow, World};
use serde_json::{Map, Value};

/// One tool of a [`FakeWorld`].
#[derive(Debug, Clone, Default)]
pub struct FakeTool {
    /// Arguments that must be issued ids, with their kind.
    pub objects: Vec<(String, String)>,
    /// Answers, first to last; the last one stays.
    pub answers: Vec<String>,
    /// Ids that every answer issues, with their kind.
    pub issues: Vec<(String, String)>,
    /// Whether its server refuses our key.
    pub broken: bool,
}

/// The world. Every call is counted.
#[derive(Debug, Default)]
pub struct FakeWorld(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    tools: BTreeMap<String, FakeTool>,
    calls: Vec<(String, Map<String, Value>)>,
    looks: BTreeMap<String, VecDeque<Result<Look, String>>>,
    hosts: BTreeMap<String, String>,
}

impl FakeWorld {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds or replaces a tool.
    pub fn tool(&self, name: &str, tool: FakeTool) {
        self.state().tools.insert(name.to_owned(), tool);
    }

    /// What the next look at a source with this configuration finds.
    pub fn found(&self, config: &str, look: Result<Look, String>) {
        self.state().looks.entry(config.to_owned()).or_default().push_back(look);
    }

    /// A connector that stands for a host.
    pub fn host(&self, host: &str, connector: &str) {
        self.state().hosts.insert(host.to_owned(), connector.to_owned());
    }

    /// The calls that were made, in order.
    pub fn calls(&self) -> Vec<(String, Map<String, Value>)> {
        self.state().calls.clone()
    }
}

impl World for FakeWorld {
    fn tools(&self) -> Vec<String> {
        self.state().tools.keys().cloned().collect()
    }

    fn needs(&self, tool: &str, arguments: &Map<String, Value>) -> Result<Vec<Need>, String> {
        let state = self.state();
        let known = state.tools.get(tool).ok_or_else(|| format!("there is no {tool}"))?;
        let need = |(argument, kind): &(String, String)| {
            let id = arguments.get(argument).and_then(Value::as_str)?.to_owned();
            Some(Need { argument: argument.clone(), kind: Some(kind.clone()), id })
        };
        Ok(known.objects.iter().filter_map(need).collect())
    }

    fn level(&self, tool: &str) -> Level {
        if tool.starts_with("web.") { Level::Web } else { Level::Connector }
    }

    fn stands_for(&self, host: &str) -> Option<String> {
        self.state().hosts.get(host).cloned()
    }

    fn schema<'a>(&'a self, tool: &'a str) -> Slow<'a, String> {
        Box::pin(async move { format!("{tool}: a tool of a test") })
    }

    fn read<'a>(&'a self, call: Call, _limit: Duration) -> Slow<'a, Read> {
        Box::pin(async move {
            let level = self.level(&call.tool);
            let connector = call.tool.split('.').next().unwrap_or_default().to_owned();
            let mut state = self.state();
            state.calls.push((call.tool.clone(), call.arguments.clone()));
            let read = |text: String, issued, health| Read {
                text,
                level,
                provenance: format!("fake:{}", call.tool),
                issued,
                health: Some(health),
            };
            let Some(tool) = state.tools.get_mut(&call.tool) else {
                return Read {
                    health: None,
                    ..read("no such tool".into(), Vec::new(), Health::Works { connector })
                };
            };
            if tool.broken {
                let why = format!("the server of {connector} refuses the key");
                return read(why.clone(), Vec::new(), Health::Broken { connector, why });
            }
            let text = match tool.answers.len() {
                0 => String::new(),
                1 => tool.answers[0].clone(),
                _ => tool.answers.remove(0),
            };
            let issued = tool.issues.iter().map(|(kind, id)| Issued {
                kind: kind.clone(),
                id: id.clone(),
                snapshot: Value::Null,
                expires_at: None,
            });
            read(text, issued.collect(), Health::Works { connector })
        })
    }

    fn look<'a>(
        &'a self,
        config: &'a str,
        cursor: Option<&'a str>,
        _now: Timestamp,
    ) -> Slow<'a, Result<Look, String>> {
        Box::pin(async move {
            let next = self.state().looks.get_mut(config).and_then(VecDeque::pop_front);
            let cursor = cursor.unwrap_or_default().to_owned();
            next.unwrap_or(Ok(Look { items: Vec::new(), cursor, more: false }))
        })
    }
}
