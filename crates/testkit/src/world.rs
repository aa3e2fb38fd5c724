//! A world in memory: tools that answer what a test says, and polled sources with what they hold.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base::{Clock, Digest, Timestamp};
use domain::effect::{Content, Effect, Observation, Sight, Spec};
use engine::world::{Acted, Call, Health, Intended, Issued, Level, Look, Need, Read, Slow, World};
use serde_json::{Map, Value};
use store::Permit;

/// One tool of a [`FakeWorld`].
#[derive(Debug, Clone, Default)]
pub struct FakeTool {
    /// Arguments that must be issued ids, with their kind.
    pub objects: Vec<(String, String)>,
    /// Arguments that carry data out, if they are no issued ids.
    pub reveals: Vec<String>,
    /// Answers, first to last; the last one stays.
    pub answers: Vec<String>,
    /// Ids that every answer issues, with their kind.
    pub issues: Vec<(String, String)>,
    /// What is known of these ids, by id.
    pub snapshots: BTreeMap<String, Value>,
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
    effects: BTreeMap<String, FakeEffect>,
    expiring: BTreeMap<String, Timestamp>,
    refuses_key: Option<String>,
    sent: Vec<Sent>,
}

/// A tool with an effect.
#[derive(Debug, Clone)]
pub struct FakeEffect {
    /// What its manifest says.
    pub spec: Spec,
    /// What is seen of each sending, first to last; the last one stays.
    pub seen: Vec<Observation>,
    /// What each look sees, first to last; the last one stays.
    pub sights: Vec<Sight>,
}

/// A request that reached the world.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// The tool.
    pub tool: String,
    /// Under which id.
    pub operation: String,
    /// With which arguments.
    pub arguments: Map<String, Value>,
}

/// The digest of a tool's entry.
fn entry(tool: &FakeTool) -> Digest {
    Digest::of(tool.reveals.concat().as_bytes())
}

/// The next of some answers; the last one stays.
fn next<T: Clone>(answers: &mut Vec<T>) -> Option<T> {
    match answers.len() {
        0 => None,
        1 => answers.first().cloned(),
        _ => Some(answers.remove(0)),
    }
}

impl FakeWorld {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds or replaces a tool.
    pub fn tool(&self, name: &str, tool: FakeTool) {
        self.state().tools.insert(name.to_owned(), tool);
    }

    /// From then on an issued id counts no more.
    pub fn expires(&self, id: &str, at: Timestamp) {
        self.state().expiring.insert(id.to_owned(), at);
    }

    /// Adds or replaces a tool with an effect.
    pub fn effect(&self, effect: FakeEffect) {
        self.state().effects.insert(effect.spec.tool.clone(), effect);
    }

    /// Whether every sending finds from now on that its connector does not accept our key, and its words.
    pub fn refuses_key(&self, why: Option<&str>) {
        self.state().refuses_key = why.map(str::to_owned);
    }

    /// What reached the world, in order.
    pub fn sent(&self) -> Vec<Sent> {
        self.state().sent.clone()
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
        let state = self.state();
        state.tools.keys().chain(state.effects.keys()).cloned().collect()
    }

    fn needs(&self, tool: &str, arguments: &Map<String, Value>) -> Result<Vec<Need>, String> {
        let state = self.state();
        let known = state.tools.get(tool).ok_or_else(|| format!("there is no {tool}"))?;
        let need = |(argument, kind): &(String, String)| {
            let id = arguments.get(argument).and_then(Value::as_str)?.to_owned();
            Some(Need { argument: argument.clone(), kind: Some(kind.clone()), id })
        };
        let revealed = known.reveals.iter().filter_map(|argument| {
            let id = arguments.get(argument).and_then(Value::as_str)?.to_owned();
            Some(Need { argument: argument.clone(), kind: None, id })
        });
        Ok(known.objects.iter().filter_map(need).chain(revealed).collect())
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
            let expiring = state.expiring.clone();
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
            let text = next(&mut tool.answers).unwrap_or_default();
            let expiring = &expiring;
            let issued = tool.issues.iter().map(|(kind, id)| Issued {
                kind: kind.clone(),
                id: id.clone(),
                snapshot: tool.snapshots.get(id).cloned().unwrap_or(Value::Null),
                expires_at: expiring.get(id).copied(),
            });
            read(text, issued.collect(), Health::Works { connector })
        })
    }

    fn intended(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Option<Result<Intended, String>> {
        let spec = self.spec(tool)?;
        let need = |(argument, kind): (&String, &String)| {
            let id = arguments.get(argument).and_then(Value::as_str)?.to_owned();
            Some(Need { argument: argument.clone(), kind: Some(kind.clone()), id })
        };
        let needs = spec.objects.iter().filter_map(need).collect();
        Some(Ok(Intended { spec, needs }))
    }

    fn revealed(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Option<Result<Intended, String>> {
        let state = self.state();
        let known = state.tools.get(tool).filter(|known| !known.reveals.is_empty())?;
        let spec = Spec {
            tool: tool.to_owned(),
            effect: Effect::Outward,
            entry: entry(known),
            objects: BTreeMap::new(),
            amount: None,
            currency: None,
            recipients: Vec::new(),
            once_per: arguments.keys().cloned().collect(),
            card: Vec::new(),
            operation: None,
            undo: None,
            can_look_up: false,
            settled_after_ms: None,
            idempotent_ms: None,
        };
        Some(Ok(Intended { spec, needs: Vec::new() }))
    }

    fn stands(&self, content: &Content) -> bool {
        let state = self.state();
        let effect = state.effects.get(&content.operation).map(|effect| effect.spec.entry);
        let read = || state.tools.get(&content.operation).map(entry);
        effect.or_else(read) == Some(content.entry)
    }

    fn spec(&self, tool: &str) -> Option<Spec> {
        self.state().effects.get(tool).map(|effect| effect.spec.clone())
    }

    fn act<'a>(
        &'a self,
        permit: Permit,
        clock: &'a dyn Clock,
        _limit: Duration,
    ) -> Slow<'a, Acted> {
        Box::pin(async move {
            let mut state = self.state();
            let tool = permit.tool().to_owned();
            let refused_key = state.refuses_key.clone();
            let acted = |seen| Acted {
                seen,
                answer: "an answer of a test".into(),
                issued: Vec::new(),
                refused_key,
            };
            if state.tools.contains_key(&tool) {
                let (operation, arguments) = (permit.operation_id().into(), permit.arguments(None));
                state.sent.push(Sent { tool: tool.clone(), operation, arguments });
                let answers = state.tools.get_mut(&tool).map(|tool| &mut tool.answers);
                return match answers.and_then(next) {
                    Some(answer) => Acted { answer, ..acted(Observation::Answered) },
                    None => acted(Observation::Lost("no answer".into())),
                };
            }
            let Some(effect) = state.effects.get_mut(&tool) else {
                return acted(Observation::NotSent(format!("there is no {tool}")));
            };
            if clock.now() > permit.send_by() {
                return acted(Observation::NotSent("too late".into()));
            }
            let seen = next(&mut effect.seen);
            let arguments = permit.arguments(effect.spec.operation.as_deref());
            let operation = permit.operation_id().to_owned();
            if !matches!(seen, Some(Observation::NotSent(_))) {
                state.sent.push(Sent { tool, operation, arguments });
            }
            acted(seen.unwrap_or(Observation::Lost("no answer".into())))
        })
    }

    fn find<'a>(&'a self, tool: &'a str, _op: &'a str, _limit: Duration) -> Slow<'a, Sight> {
        Box::pin(async move {
            let mut state = self.state();
            let sight = state.effects.get_mut(tool).and_then(|effect| next(&mut effect.sights));
            sight.unwrap_or(Sight::Unreadable("no connector".into()))
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

/// Looks once at everything that the stages of the effect path have to do, one after the other.
///
/// # Errors
/// The store's, at the first action that fails.
pub async fn effect_stages(cx: &engine::Context) -> store::Result<()> {
    for (owner, id) in engine::review::due(cx).await? {
        engine::review::one(cx, owner, id).await?;
    }
    engine::admission::pass(cx).await?;
    for (owner, id) in engine::dispatcher::due(cx).await? {
        engine::dispatcher::one(cx, owner, id).await?;
    }
    for (owner, id) in engine::reconciler::due(cx).await? {
        engine::reconciler::one(cx, owner, id).await?;
    }
    Ok(())
}
