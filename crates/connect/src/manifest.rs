//! Connector manifests: what each tool of a server does to the world (DESIGN section 6).
//!
//! A manifest is written by the person who configures the connector, never by the server. It is
//! read strictly: a key that is not known is refused, because a misspelt `reveals` would otherwise
//! quietly widen what a tool may do.

use std::collections::BTreeMap;
use std::fmt;

use base::Digest;
use serde::{Deserialize, Serialize};

use crate::objects::steps;

/// Tools that one manifest may name.
const TOOLS_MAX: usize = 200;
/// Bytes of one manifest text.
const MANIFEST_BYTES_MAX: usize = 256 * 1024;
/// Bytes of one tool's description; it stands in every prompt.
const DESCRIPTION_BYTES_MAX: usize = 400;
/// Bytes of one tool's name.
const TOOL_NAME_BYTES_MAX: usize = 64;

/// Hosts that one manifest may name.
const HOSTS_MAX: usize = 50;
/// Bytes of a host's name, by the rules of DNS.
const HOST_BYTES_MAX: usize = 253;

/// What calling a tool does to the world; decides who has to release the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Reads only. May be called directly unless its arguments reveal something.
    Read,
    /// Changes something that a later call can undo.
    Reversible,
    /// Spends money or something else that can not be had back.
    Paid,
    /// Binds the user to a third party.
    Commitment,
    /// Sends something to a person or makes something public.
    Outward,
    /// Widens what may be done later.
    Authority,
    /// Only a person may do it, or nobody has said what it does.
    Human,
}

impl Effect {
    /// The word as it stands in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Reversible => "reversible",
            Effect::Paid => "paid",
            Effect::Commitment => "commitment",
            Effect::Outward => "outward",
            Effect::Authority => "authority",
            Effect::Human => "human",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One entry of a manifest, `[tool.NAME]`. Everything but `effect` may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRule {
    /// What calling the tool does.
    pub effect: Effect,
    /// One sentence for the model and for cards.
    #[serde(default)]
    pub description: String,
    /// Arguments that must be ids we issued: argument → kind of object.
    #[serde(default)]
    pub objects: BTreeMap<String, String>,
    /// Path of the amount that limits are checked against, taken from an object's snapshot.
    #[serde(default)]
    pub amount: Option<String>,
    /// Arguments that make a call another errand.
    #[serde(default)]
    pub once_per: Vec<String>,
    /// Paths that the approval card shows.
    #[serde(default)]
    pub card: Vec<String>,
    /// The argument in which our operation id travels.
    #[serde(default)]
    pub operation: Option<String>,
    /// How an unknown outcome is looked up.
    #[serde(default)]
    pub reconcile: Option<Reconcile>,
    /// Set only if the vendor promises that a repeated operation id has no second effect.
    #[serde(default)]
    pub idempotent: Option<Idempotent>,
    /// The tool that undoes this one.
    #[serde(default)]
    pub undo: Option<String>,
    /// Path of the receipt in the answer.
    #[serde(default)]
    pub receipt: Option<String>,
    /// Ids in the answer that become objects: kind of object → path, as in `offers[].id`.
    #[serde(default)]
    pub issues: BTreeMap<String, String>,
    /// Arguments that carry data to someone who does not have it. A read with any is an outward act.
    #[serde(default)]
    pub reveals: Vec<String>,
}

/// How the outcome of an operation is found out later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reconcile {
    /// The tool of the same server that looks an operation up.
    pub tool: String,
    /// The argument of that tool that takes our operation id.
    pub by: String,
    /// After this time "not found" means that nothing happened, as in `"30m"`.
    #[serde(default)]
    pub settled_after: Option<String>,
}

/// The vendor's promise about repeated operation ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idempotent {
    /// How long the promise holds after the first sending, as in `"24h"`.
    pub window: String,
}

/// Why a manifest was refused. The text names the key and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The text is not TOML.
    #[error("the manifest is not valid TOML: {reason}")]
    NotToml {
        /// The parser's words, with line and column.
        reason: String,
    },
    /// A key that no manifest has.
    #[error("unknown key `{path}` in the manifest; {allowed}. Correct or remove it")]
    UnknownKey {
        /// The whole path of the key, as in `tool.book_hotel.efect`.
        path: String,
        /// Which keys may stand there.
        allowed: String,
    },
    /// A key with a value of the wrong form, or a key that is missing.
    #[error("`{path}` in the manifest: {reason}")]
    Value {
        /// The path of the entry or key.
        path: String,
        /// What is wrong, and which values are allowed.
        reason: String,
    },
}

/// A checked manifest: its entries by tool name, and the digests that approvals refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    hosts: Vec<String>,
    tools: BTreeMap<String, ToolRule>,
    digest: Digest,
}

impl Manifest {
    /// Reads and checks a manifest.
    ///
    /// # Errors
    /// [`ManifestError`] for text that is not TOML, unknown keys, wrong values, references to tools
    /// without an entry, and a manifest over its limits (200 tools, 50 hosts, 256 KiB).
    pub fn parse(text: &str) -> Result<Manifest, ManifestError> {
        if text.len() > MANIFEST_BYTES_MAX {
            let reason = format!("longer than {MANIFEST_BYTES_MAX} bytes; split the connector");
            return Err(value_error("(whole file)", reason));
        }
        let root: toml::Table = toml::from_str(text)
            .map_err(|error| ManifestError::NotToml { reason: error.to_string() })?;
        let mut tools = BTreeMap::new();
        let mut hosts = Vec::new();
        for (key, value) in root {
            if key == "hosts" {
                hosts = hosts_of(value)?;
                continue;
            }
            if key != "tool" {
                let allowed = "at the top only `hosts` and [tool.NAME] tables are known".to_owned();
                return Err(ManifestError::UnknownKey { path: key, allowed });
            }
            let toml::Value::Table(entries) = value else {
                return Err(value_error("tool", "must be tables, as in [tool.search]".to_owned()));
            };
            for (name, entry) in entries {
                let rule = rule_of(&name, entry)?;
                tools.insert(name, rule);
            }
        }
        check_references(&tools)?;
        let mut parts: Vec<Vec<u8>> =
            tools.iter().map(|(name, rule)| canonical(name, rule)).collect();
        if !hosts.is_empty() {
            parts.push(serde_json::json!({ "hosts": hosts }).to_string().into_bytes());
        }
        let digest = Digest::of_parts(parts.iter().map(Vec::as_slice));
        Ok(Manifest { hosts, tools, digest })
    }

    /// All entries, sorted by name.
    pub fn tools(&self) -> impl Iterator<Item = (&str, &ToolRule)> {
        self.tools.iter().map(|(name, rule)| (name.as_str(), rule))
    }

    /// The entry of one tool. A tool without one is of tier human.
    pub fn tool(&self, name: &str) -> Option<&ToolRule> {
        self.tools.get(name)
    }

    /// Whether the connector stands for this host, or for a host above it.
    pub fn covers(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.hosts.iter().any(|own| {
            host.strip_suffix(own.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }

    /// The digest of all entries and hosts; comments and layout do not change it.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The digest of one entry, which an action freezes with its content.
    pub fn entry_digest(&self, name: &str) -> Option<Digest> {
        self.tools.get(name).map(|rule| Digest::of(&canonical(name, rule)))
    }
}

/// One entry as bytes that depend on its meaning only: fields in a fixed order, maps sorted.
fn canonical(name: &str, rule: &ToolRule) -> Vec<u8> {
    serde_json::json!({ "name": name, "rule": rule }).to_string().into_bytes()
}

fn value_error(path: &str, reason: String) -> ManifestError {
    ManifestError::Value { path: path.to_owned(), reason }
}

/// The hosts that the connector stands for, in lower case.
fn hosts_of(value: toml::Value) -> Result<Vec<String>, ManifestError> {
    let wanted = || {
        let reason = format!(
            "must be a list of at most {HOSTS_MAX} host names, as in [\"api.example.org\"]: no \
             scheme, no port, no `*` (a host stands for those below it too)"
        );
        value_error("hosts", reason)
    };
    let toml::Value::Array(items) = value else { return Err(wanted()) };
    let mut hosts = Vec::new();
    for item in items {
        let host = item.as_str().map(str::to_ascii_lowercase).ok_or_else(wanted)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        let whole = !host.starts_with('.') && !host.ends_with('.') && host.contains('.');
        if !whole || host.len() > HOST_BYTES_MAX || !host.chars().all(plain) {
            return Err(wanted());
        }
        hosts.push(host);
    }
    if hosts.len() > HOSTS_MAX {
        return Err(wanted());
    }
    hosts.sort();
    hosts.dedup();
    Ok(hosts)
}

/// Reads one entry; every complaint carries the whole path of the key.
fn rule_of(name: &str, mut entry: toml::Value) -> Result<ToolRule, ManifestError> {
    let path = format!("tool.{name}");
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    if name.is_empty() || name.len() > TOOL_NAME_BYTES_MAX || !name.chars().all(plain) {
        let reason = "a tool's name has 1 to 64 letters, digits, or characters of `_-./`";
        return Err(value_error(&path, reason.to_owned()));
    }
    // The two tables inside an entry are read by themselves, so that the path is whole.
    let inner = |entry: &mut toml::Value, key: &str| {
        entry.as_table_mut().and_then(|table| table.remove(key))
    };
    let reconcile = inner(&mut entry, "reconcile");
    let idempotent = inner(&mut entry, "idempotent");
    let mut rule: ToolRule = read(&path, entry)?;
    rule.reconcile = reconcile.map(|v| read(&format!("{path}.reconcile"), v)).transpose()?;
    rule.idempotent = idempotent.map(|v| read(&format!("{path}.idempotent"), v)).transpose()?;
    if rule.description.len() > DESCRIPTION_BYTES_MAX {
        let reason =
            format!("longer than {DESCRIPTION_BYTES_MAX} bytes; it stands in every prompt");
        return Err(value_error(&format!("{path}.description"), reason));
    }
    for (kind, places) in &rule.issues {
        steps(places).map_err(|reason| value_error(&format!("{path}.issues.{kind}"), reason))?;
    }
    Ok(rule)
}

/// Reads a table into a type that denies unknown fields, and names the field that was unknown.
fn read<T: serde::de::DeserializeOwned>(
    path: &str,
    value: toml::Value,
) -> Result<T, ManifestError> {
    value.try_into().map_err(|error: toml::de::Error| {
        let message = error.message();
        match message.strip_prefix("unknown field `").and_then(|rest| rest.split_once("`, ")) {
            Some((field, allowed)) => ManifestError::UnknownKey {
                path: format!("{path}.{field}"),
                allowed: allowed.to_owned(),
            },
            None => value_error(path, message.to_owned()),
        }
    })
}

/// An entry may only point at tools that the manifest says something about.
fn check_references(tools: &BTreeMap<String, ToolRule>) -> Result<(), ManifestError> {
    if tools.len() > TOOLS_MAX {
        return Err(value_error("tool", format!("more than {TOOLS_MAX} entries")));
    }
    for (name, rule) in tools {
        if let Some(undo) = rule.undo.as_ref().filter(|undo| !tools.contains_key(*undo)) {
            let reason = format!("there is no [tool.{undo}]; add its entry");
            return Err(value_error(&format!("tool.{name}.undo"), reason));
        }
        let Some(reconcile) = &rule.reconcile else { continue };
        if tools.get(&reconcile.tool).is_none_or(|found| found.effect != Effect::Read) {
            let reason =
                format!("[tool.{}] must be an entry with effect = \"read\"", reconcile.tool);
            return Err(value_error(&format!("tool.{name}.reconcile.tool"), reason));
        }
    }
    Ok(())
}
