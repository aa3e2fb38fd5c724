//! The tools of all connectors as the agent sees them, and the handle that a direct call needs.

use std::sync::Arc;

use crate::manifest::{Effect, ToolRule};
use crate::supervise::Server;

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

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    /// The text, at most [`crate::ConnectLimits::text_bytes_max`] bytes; what was cut is noted at its end.
    pub text: String,
    /// The tool itself reports that it failed.
    pub is_error: bool,
    /// Where the text comes from, as in `mcp:prices.price`.
    pub provenance: String,
}

/// The right to call one tool that only reads (P5).
///
/// Only [`crate::Connectors::read_tool`] makes one, for a manifest entry with `effect = "read"` and
/// empty `reveals`; [`crate::Connectors::call`] consumes it. It can not be made elsewhere:
///
/// ```compile_fail,E0451
/// fn forge(server: std::sync::Arc<()>) -> connect::ReadTool {
///     connect::ReadTool { server: todo!(), tool: "buy".into() }
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
/// and there is no call without it:
///
/// ```compile_fail,E0308
/// async fn call(connectors: &connect::Connectors) {
///     let limit = std::time::Duration::from_secs(1);
///     let _ = connectors.call("prices.buy", Default::default(), limit).await;
/// }
/// ```
#[derive(Debug)]
pub struct ReadTool {
    server: Arc<Server>,
    tool: String,
}

impl ReadTool {
    /// The one place that makes a handle. `None` unless the rule only reads and reveals nothing.
    pub(crate) fn for_rule(server: &Arc<Server>, tool: &str, rule: &ToolRule) -> Option<ReadTool> {
        let free = rule.effect == Effect::Read && rule.reveals.is_empty();
        free.then(|| ReadTool { server: Arc::clone(server), tool: tool.to_owned() })
    }

    /// `server.tool`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.server.name(), self.tool)
    }

    pub(crate) fn into_parts(self) -> (Arc<Server>, String) {
        (self.server, self.tool)
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
    /// No manifest has an entry of that name.
    #[error("{}", unknown(tool, near))]
    Unknown {
        /// The name that was asked for.
        tool: String,
        /// At most three known names that look like it, the nearest first.
        near: Vec<String>,
    },
}

fn needs_release(tool: &str, effect: Effect, reveals: &[String]) -> String {
    // Releases are not part of this version: the text may not send the model looking for one.
    let next = "It needs a release by the person, which this version cannot ask for yet. Tell the \
                person with send_to_user what you would do, with all its details, and let them do it";
    match effect {
        Effect::Read => format!(
            "`{tool}` reads, but {} would carry data to someone who may not have it. {next}.",
            reveals.join(", ")
        ),
        Effect::Reversible
        | Effect::Paid
        | Effect::Commitment
        | Effect::Outward
        | Effect::Authority => {
            format!("`{tool}` is of tier {effect}: it acts on the world. {next}.")
        }
        Effect::Human => format!("`{tool}` is of tier human: only a person may do it. {next}."),
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
         manifest names is of tier human: ask the user to add an entry."
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
