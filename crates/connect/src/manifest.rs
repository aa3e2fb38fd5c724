//! Connector manifests: what each tool of a server does to the world (DESIGN section 6).
//!
//! A manifest is written by the person who configures the connector, never by the server. It is
//! read strictly: a key that is not known is refused, because a misspelt `reveals` would otherwise
//! quietly widen what a tool may do.

mod check;

use std::collections::BTreeMap;

use base::Digest;
use domain::effect::Effect;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use check::duration_ms;
use check::{check_references, check_rule};

/// Bytes of one manifest text.
const MANIFEST_BYTES_MAX: usize = 256 * 1024;
/// Bytes of one tool's name.
const TOOL_NAME_BYTES_MAX: usize = 64;

/// Hosts that one manifest may name.
const HOSTS_MAX: usize = 50;
/// Bytes of a host's name, by the rules of DNS.
const HOST_BYTES_MAX: usize = 253;

/// One entry of a manifest, `[tool.NAME]`. Everything but `effect` may be left out. The default is what holds of a
/// tool without an entry.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Where the amount stands that limits are checked against: `ARGUMENT.path` in the snapshot of the
    /// object that the argument names. Without one no grant covers a paid call.
    #[serde(default)]
    pub amount: Option<String>,
    /// Where its currency stands, in the same form, or the code itself, as in `EUR`.
    #[serde(default)]
    pub currency: Option<String>,
    /// Arguments that name who receives it.
    #[serde(default)]
    pub recipients: Vec<String>,
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
    /// The answers by which the vendor promises that nothing happened.
    #[serde(default)]
    pub refused: Option<OneOf>,
    /// Ids in the answer that become objects: kind of object → path, as in `offers[].id`.
    #[serde(default)]
    pub issues: BTreeMap<String, String>,
    /// Until when an issued id counts: kind of object → path in its snapshot, where RFC 3339 stands.
    #[serde(default)]
    pub expires: BTreeMap<String, String>,
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
    /// Path of the receipt in that tool's answer; left out, it is the entry's own.
    #[serde(default)]
    pub receipt: Option<String>,
    /// The answers by which an operation that was found has ended without effect, as a cancelled booking.
    #[serde(default)]
    pub ended: Option<OneOf>,
}

/// Answers that are told by the value at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneOf {
    /// Where the value stands, as in `error.code`.
    pub path: String,
    /// The texts it may have; a number or a truth value stands as JSON writes it.
    pub values: Vec<String>,
}

impl OneOf {
    /// Which of the values stands there.
    pub(crate) fn found(&self, answer: &Value) -> Option<&str> {
        let found = match domain::path::get(answer, &self.path)? {
            Value::String(text) => text.clone(),
            value @ (Value::Bool(_) | Value::Number(_)) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        self.values.iter().find(|value| **value == found).map(String::as_str)
    }
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
                hosts = host_names(value)?;
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
                let path = entry_path(&name)?;
                tools.insert(name, read(&path, entry)?);
            }
        }
        Manifest::of(hosts, tools)
    }

    /// Checks what was read elsewhere, as an entry that a server hands out.
    ///
    /// # Errors
    /// As [`Manifest::parse`], but for the text.
    pub fn of(
        hosts: Vec<String>,
        tools: BTreeMap<String, ToolRule>,
    ) -> Result<Manifest, ManifestError> {
        let hosts = checked_hosts(hosts)?;
        for (name, rule) in &tools {
            check_rule(&entry_path(name)?, rule)?;
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

/// What stands for the entry of a tool that has none: its name and its schema. No entry has this digest, so what
/// was released counts no more once there is one, or once the schema is another.
pub(crate) fn undescribed(name: &str, parameters: &str) -> Digest {
    Digest::of_parts([b"no entry".as_slice(), name.as_bytes(), parameters.as_bytes()])
}

/// Whether a tool may have this name: it stands in prompts and on cards.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    (1..=TOOL_NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(plain)
}

fn value_error(path: &str, reason: String) -> ManifestError {
    ManifestError::Value { path: path.to_owned(), reason }
}

fn no_hosts() -> ManifestError {
    let reason = format!(
        "must be a list of at most {HOSTS_MAX} host names, as in [\"api.example.org\"]: no \
         scheme, no port, no `*` (a host stands for those below it too)"
    );
    value_error("hosts", reason)
}

fn host_names(value: toml::Value) -> Result<Vec<String>, ManifestError> {
    let toml::Value::Array(items) = value else { return Err(no_hosts()) };
    items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(no_hosts)).collect()
}

/// The hosts that the connector stands for, in lower case.
fn checked_hosts(mut hosts: Vec<String>) -> Result<Vec<String>, ManifestError> {
    for host in &mut hosts {
        host.make_ascii_lowercase();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        let whole = !host.starts_with('.') && !host.ends_with('.') && host.contains('.');
        if !whole || host.len() > HOST_BYTES_MAX || !host.chars().all(plain) {
            return Err(no_hosts());
        }
    }
    if hosts.len() > HOSTS_MAX {
        return Err(no_hosts());
    }
    hosts.sort();
    hosts.dedup();
    Ok(hosts)
}

/// The path of an entry whose name a tool may have; every complaint carries it with the key's.
fn entry_path(name: &str) -> Result<String, ManifestError> {
    let path = format!("tool.{name}");
    if !is_tool_name(name) {
        let reason = "a tool's name has 1 to 64 letters, digits, or characters of `_-./`";
        return Err(value_error(&path, reason.to_owned()));
    }
    Ok(path)
}

/// Reads an entry, and names the key that was unknown or has a value of the wrong form.
fn read(path: &str, value: toml::Value) -> Result<ToolRule, ManifestError> {
    value.try_into().map_err(|error: toml::de::Error| {
        // The parser tells the keys down to the wrong one, but only at the end of its text.
        let text = error.to_string();
        let keys = text.trim_end().rsplit_once("\nin `").and_then(|(_, at)| at.strip_suffix('`'));
        let path = keys.map_or_else(|| path.to_owned(), |keys| format!("{path}.{keys}"));
        let message = error.message();
        match message.strip_prefix("unknown field `").and_then(|rest| rest.split_once("`, ")) {
            Some((field, allowed)) => ManifestError::UnknownKey {
                path: format!("{path}.{field}"),
                allowed: allowed.to_owned(),
            },
            None => value_error(&path, message.to_owned()),
        }
    })
}
