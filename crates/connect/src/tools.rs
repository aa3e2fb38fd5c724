//! The tools of all connectors as the agent sees them, and the handle that a direct call needs.

use base::Timestamp;
use domain::effect::Effect;
use serde_json::{Map, Value};

use crate::manifest::ToolRule;
use crate::objects::id_of;
use crate::supervise::Provider;
use crate::text::cut;

/// Ids that the arguments of one call may name.
const NEEDS_MAX: usize = 200;
/// Bytes of a refused id that its refusal repeats.
const SHOWN_ID_BYTES_MAX: usize = 200;

/// One line of the tool index. Made from the manifests alone, so that it is the same at every start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolEntry {
    /// `server.tool`.
    pub name: String,
    /// What calling it does to the world.
    pub effect: Effect,
    /// The manifest's sentence about it; may be empty.
    pub description: String,
}

/// The arguments that a tool takes, as its server describes them. The texts are the server's own,
/// from outside: material, not instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSchema {
    /// `server.tool`.
    pub name: String,
    /// The server's description, or the manifest's where the server has none. Cut with a note.
    pub description: String,
    /// A JSON Schema object as JSON text.
    pub parameters: String,
}

/// Where an answer comes from: which rung of the ladder of TOOL-06 it stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A configured connector.
    Connector,
    /// The open web.
    Web,
}

/// An id that a tool's answer issued: the only kind of id that a later call may name (TOOL-15).
#[derive(Debug, Clone, PartialEq)]
pub struct Issued {
    /// The manifest's word for what it names, as in `quote`.
    pub kind: String,
    /// The id; a whole number is given as its decimal digits.
    pub id: String,
    /// The nearest object around the id in the answer, at most 16 KiB as JSON; null if there is
    /// none or it is larger.
    pub snapshot: Value,
    /// It counts until then, by what the manifest calls its expiry; one that can not be read is over.
    pub expires_at: Option<Timestamp>,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer {
    /// The text, at most [`crate::ConnectLimits::text_bytes_max`] bytes; what was cut is noted at its end.
    pub text: String,
    /// The tool itself reports that it failed. Such an answer issues nothing.
    pub is_error: bool,
    /// Where the text comes from, as in `mcp:prices.price`.
    pub provenance: String,
    /// The rung it stands on.
    pub level: Level,
    /// The ids that its manifest entry issues, by kind, then in the answer's order; at most 200.
    pub issued: Vec<Issued>,
}

/// An id in the arguments of a call that must have been issued before the call may be made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Needed {
    /// The argument it stands in.
    pub argument: String,
    /// The kind it must have been issued with; `None` where any kind does.
    pub kind: Option<String>,
    /// The id.
    pub id: String,
}

/// A call that only reads, not yet cleared: somebody has to say whether its ids were issued.
#[derive(Debug)]
pub struct Wanted {
    call: ReadTool,
    needs: Vec<Needed>,
    reveals: Vec<String>,
}

impl Wanted {
    /// Checks what can be checked without records: the effect, and that ids are ids.
    pub(crate) fn new(
        provider: &Provider,
        tool: &str,
        rule: &ToolRule,
        arguments: Map<String, Value>,
    ) -> Result<Wanted, Refusal> {
        let name = || format!("{}.{tool}", provider.name());
        let release = || Refusal::NeedsRelease {
            tool: name(),
            effect: rule.effect,
            reveals: rule.reveals.clone(),
        };
        if rule.effect != Effect::Read {
            return Err(release());
        }
        let mut needs = object_ids(&name(), rule, &arguments)?;
        // An id of a named kind is checked already, and more strictly.
        for argument in rule.reveals.iter().filter(|name| !rule.objects.contains_key(*name)) {
            let Some(value) = arguments.get(argument) else { continue };
            let ids = ids_in(value).ok_or_else(release)?;
            needs.extend(ids.into_iter().map(|id| Needed {
                argument: argument.clone(),
                kind: None,
                id,
            }));
        }
        bounded(&name(), &needs)?;
        let call = ReadTool { provider: provider.clone(), tool: tool.to_owned(), arguments };
        Ok(Wanted { call, needs, reveals: rule.reveals.clone() })
    }

    /// `server.tool`.
    pub fn name(&self) -> String {
        self.call.name()
    }

    /// The ids that must have been issued to whoever calls; at most 200.
    pub fn needs(&self) -> &[Needed] {
        &self.needs
    }

    /// Gives the handle if `issued` holds for every one of [`Wanted::needs`] (P5, TOOL-15).
    ///
    /// # Errors
    /// [`Refusal::NotIssued`] for an object, [`Refusal::NeedsRelease`] for an argument that would
    /// carry data out.
    pub fn cleared(self, issued: impl Fn(&Needed) -> bool) -> Result<ReadTool, Refusal> {
        match self.needs.into_iter().find(|needed| !issued(needed)) {
            None => Ok(self.call),
            Some(Needed { argument, kind: Some(kind), id }) => {
                Err(Refusal::NotIssued { tool: self.call.name(), argument, kind, id })
            }
            Some(Needed { kind: None, .. }) => Err(Refusal::NeedsRelease {
                tool: self.call.name(),
                effect: Effect::Read,
                reveals: self.reveals,
            }),
        }
    }
}

/// The ids in the arguments that take ids of a named kind.
pub(crate) fn object_ids(
    tool: &str,
    rule: &ToolRule,
    arguments: &Map<String, Value>,
) -> Result<Vec<Needed>, Refusal> {
    let mut needs = Vec::new();
    for (argument, kind) in &rule.objects {
        let Some(value) = arguments.get(argument) else { continue };
        let ids = ids_in(value).ok_or_else(|| Refusal::NotAnId {
            tool: tool.to_owned(),
            argument: argument.clone(),
            kind: kind.clone(),
        })?;
        let needed = |id| Needed { argument: argument.clone(), kind: Some(kind.clone()), id };
        needs.extend(ids.into_iter().map(needed));
    }
    Ok(needs)
}

/// Refuses a call that names more ids than one may.
pub(crate) fn bounded(tool: &str, needs: &[Needed]) -> Result<(), Refusal> {
    match needs.len() > NEEDS_MAX {
        true => Err(Refusal::TooManyIds { tool: tool.to_owned(), ids: needs.len() }),
        false => Ok(()),
    }
}

/// The ids in an argument's value: a text, a whole number, or a list of these. `None` for the rest.
fn ids_in(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => items.iter().map(id_of).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Some(vec![id_of(value)?])
        }
    }
}

/// The right to make one call that only reads, with exactly these arguments (P5).
///
/// Only [`Wanted::cleared`] gives one, for a manifest entry with `effect = "read"` whose ids were all
/// issued; [`crate::Connectors::call`] consumes it. It can not be made elsewhere:
///
/// ```compile_fail,E0451
/// fn forge() -> connect::ReadTool {
///     connect::ReadTool { provider: todo!(), tool: "buy".into(), arguments: Default::default() }
/// }
/// ```
///
/// nor given other arguments than those that were checked:
///
/// ```compile_fail,E0616
/// fn change(tool: &mut connect::ReadTool) {
///     tool.arguments.insert("quote".into(), "H-999".into());
/// }
/// ```
///
/// nor copied to be used twice:
///
/// ```compile_fail,E0277
/// fn needs_clone<T: Clone>() {}
/// needs_clone::<connect::ReadTool>();
/// ```
///
/// and there is no call without it, not even with a call that waits to be cleared:
///
/// ```compile_fail,E0308
/// async fn call(connectors: &connect::Connectors, wanted: connect::Wanted) {
///     let limit = std::time::Duration::from_secs(1);
///     let _ = connectors.call(wanted, limit).await;
/// }
/// ```
#[derive(Debug)]
pub struct ReadTool {
    provider: Provider,
    tool: String,
    arguments: Map<String, Value>,
}

impl ReadTool {
    /// `server.tool`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.provider.name(), self.tool)
    }

    pub(crate) fn into_parts(self) -> (Provider, String, Map<String, Value>) {
        (self.provider, self.tool, self.arguments)
    }
}

/// Why a tool can not be called directly. The text tells the model what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The tool is known and acts on the world, or carries data out.
    #[error("{}", needs_release(tool, *effect, reveals))]
    NeedsRelease {
        /// `server.tool`.
        tool: String,
        /// Its effect; a read is here only because of `reveals`.
        effect: Effect,
        /// The arguments that carry data to someone who does not have it.
        reveals: Vec<String>,
    },
    /// An id that no tool has issued to this task, wherever else it was seen.
    #[error("{}", not_issued(tool, argument, kind, id))]
    NotIssued {
        /// `server.tool`.
        tool: String,
        /// The argument it stood in.
        argument: String,
        /// The kind it would need to have.
        kind: String,
        /// The id, whole.
        id: String,
    },
    /// Something that can not be an id stood where an id must.
    #[error(
        "`{argument}` of `{tool}` takes the id of a {kind}, or a list of ids, as text. Copy it from \
         the answer of a tool"
    )]
    NotAnId {
        /// `server.tool`.
        tool: String,
        /// The argument.
        argument: String,
        /// The kind of object whose id it takes.
        kind: String,
    },
    /// More ids than one call may name.
    #[error("`{tool}` was given {ids} ids at once; give at most {NEEDS_MAX} and call it again")]
    TooManyIds {
        /// `server.tool`.
        tool: String,
        /// How many there were.
        ids: usize,
    },
    /// No manifest has an entry of that name.
    #[error("{}", unknown(tool, near))]
    Unknown {
        /// The name that was asked for.
        tool: String,
        /// At most three known names that look like it, the nearest first.
        near: Vec<String>,
    },
}

fn not_issued(tool: &str, argument: &str, kind: &str, id: &str) -> String {
    let id = cut(id.to_owned(), SHOWN_ID_BYTES_MAX);
    format!(
        "`{id}`, given to `{tool}` as `{argument}`, is no {kind} that a tool has issued to this task. \
         Only an id from a tool's own answer counts; one seen in a mail, on a page or in a summary \
         does not. Call the tool that finds the {kind}, and use the id it answers with."
    )
}

fn needs_release(tool: &str, effect: Effect, reveals: &[String]) -> String {
    match effect {
        Effect::Read => format!(
            "`{tool}` reads, but {} would carry data to someone who may not have it, so it is not called as \
             a read. Where a call of it can be proposed, call_tool proposes it, and it is made once the \
             person has released it.",
            reveals.join(", ")
        ),
        Effect::Reversible
        | Effect::Paid
        | Effect::Commitment
        | Effect::Outward
        | Effect::Authority
        | Effect::Human => format!(
            "`{tool}` is of tier {effect}: it acts on the world, so it is not called as a read. Where a \
             call of it can be proposed, call_tool proposes it, and it is made once it is released."
        ),
    }
}

fn unknown(tool: &str, near: &[String]) -> String {
    let names = if near.is_empty() {
        "No known name is near it; look in the list of tools".to_owned()
    } else {
        format!("Near names: {}", near.join(", "))
    };
    format!(
        "there is no tool `{tool}` in any manifest. {names}. A tool that its server offers but no \
         manifest names is called only by the person's release of each call: look it up with tool_schema \
         first, and `SERVER.*` for their names."
    )
}

/// At most three of `names` that look like `wanted`, the nearest first.
pub(crate) fn near_names<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    // A name from a model may be of any length; the comparison is quadratic.
    let wanted: String = wanted.chars().take(128).collect();
    let tail = |name: &str| name.rsplit('.').next().unwrap_or_default().to_lowercase();
    let mut found: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let distance = distance(&wanted, name).min(distance(&tail(&wanted), &tail(name)));
            (distance <= 1 + name.len() / 4).then_some((distance, name))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// How many characters must be put in, left out or replaced to make `b` out of `a`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::near_names;

    #[test]
    fn near_names_are_few_and_nearest_first() {
        let names = ["mail.search", "prices.buy", "prices.history", "prices.price"];
        let near = |wanted: &str| near_names(wanted, names.into_iter());
        assert_eq!(near("prices.prise"), ["prices.price"]);
        assert_eq!(near("price"), ["prices.price"]);
        assert_eq!(near("weather.tomorrow"), Vec::<String>::new());
    }
}
