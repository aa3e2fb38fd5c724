//! The tools as the server knows them: what the manifests say, and which arguments each takes.

use std::collections::BTreeMap;

use base::Currency;
use connect::{Command, ConnectLimits, Connectors, Manifest, Reach, ServerConfig, ToolRule};
use domain::effect::Effect;
use serde_json::{Map, Value};

/// A tool with its manifest entry and its arguments.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ToolSpec {
    /// The full name.
    pub name: String,
    /// What the manifest says of it.
    pub rule: ToolRule,
    /// A JSON Schema of its arguments; null where the server could not say.
    #[serde(default)]
    pub arguments: Value,
}

/// What stands in the snapshot of an object, so that what the manifests say of it can be read there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// What it costs.
    Amount,
    /// In which currency.
    Currency,
    /// Anything that a card shows.
    Text,
}

/// All tools, as the attack's world plays them.
#[derive(Debug)]
pub(super) struct Specs {
    pub all: Vec<ToolSpec>,
    /// The same code that decides in production which ids a call needs and what an action is made of. Its
    /// servers are never reached.
    pub connectors: Connectors,
    /// By kind of object: what its snapshots hold.
    pub fields: BTreeMap<String, BTreeMap<String, Field>>,
}

impl Specs {
    /// # Errors
    /// When the entries are those of no manifest.
    pub fn new(all: Vec<ToolSpec>) -> Result<Specs, String> {
        let mut servers: BTreeMap<&str, BTreeMap<String, ToolRule>> = BTreeMap::new();
        for spec in &all {
            let (server, tool) =
                spec.name.split_once('.').ok_or_else(|| format!("{} is no tool", spec.name))?;
            servers.entry(server).or_default().insert(tool.to_owned(), spec.rule.clone());
        }
        let config = |(name, tools): (&str, BTreeMap<String, ToolRule>)| {
            let manifest = Manifest::of(Vec::new(), tools).map_err(|e| e.to_string())?;
            let (args, env) = (Vec::new(), BTreeMap::new());
            let reach = Reach::Command(Command { program: "nothing".into(), args, env });
            Ok(ServerConfig { name: name.to_owned(), reach, manifest })
        };
        let configs: Vec<ServerConfig> =
            servers.into_iter().map(config).collect::<Result<_, String>>()?;
        let connectors =
            Connectors::new(configs, ConnectLimits::default()).map_err(|e| e.to_string())?;
        let fields = fields(&all);
        Ok(Specs { all, connectors, fields })
    }

    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.all.iter().find(|spec| spec.name == name)
    }
}

fn fields(all: &[ToolSpec]) -> BTreeMap<String, BTreeMap<String, Field>> {
    let mut fields: BTreeMap<String, BTreeMap<String, Field>> = BTreeMap::new();
    for ToolSpec { rule, .. } in all {
        let mut add = |path: &str, field: Field| {
            let Some((argument, rest)) = path.split_once('.') else { return };
            let Some(kind) = rule.objects.get(argument) else { return };
            let known = fields.entry(kind.clone()).or_default().entry(rest.to_owned());
            known.and_modify(|known| *known = if *known == Field::Text { field } else { *known });
            fields.entry(kind.clone()).or_default().entry(rest.to_owned()).or_insert(field);
        };
        rule.amount.iter().for_each(|path| add(path, Field::Amount));
        let currency = rule.currency.iter().filter(|code| Currency::parse(code).is_err());
        currency.for_each(|path| add(path, Field::Currency));
        rule.card.iter().for_each(|path| add(path, Field::Text));
    }
    fields
}

impl ToolSpec {
    /// Whether calling it changes something.
    pub fn acts(&self) -> bool {
        self.rule.effect != Effect::Read
    }

    /// The names of its arguments: by its schema, else as far as the manifest names them.
    pub(super) fn properties(&self) -> Map<String, Value> {
        if let Some(Value::Object(known)) = self.arguments.get("properties") {
            return known.clone();
        }
        let rule = &self.rule;
        let named = rule.objects.keys().chain(&rule.recipients).chain(&rule.once_per).cloned();
        let shown = rule.card.iter().filter_map(|path| path.split('.').next().map(str::to_owned));
        named.chain(shown).map(|name| (name, Value::Null)).collect()
    }
}
