//! The plain history of a run, as the judge reads it: one JSON object a line.

use base::{Digest, Timestamp};
use serde_json::{Map, Value, json};

/// A history under way.
#[derive(Debug, Default)]
pub struct History {
    lines: Vec<String>,
    silent: bool,
}

impl History {
    /// One that keeps nothing.
    pub fn silent() -> History {
        History { lines: Vec::new(), silent: true }
    }

    /// Adds a line: what happened (`t`), when, and its other fields.
    pub fn note(&mut self, what: &str, at: Timestamp, fields: Value) {
        if self.silent {
            return;
        }
        let mut line = Map::new();
        line.insert("t".into(), json!(what));
        line.insert("at".into(), json!(at.micros()));
        if let Value::Object(fields) = fields {
            line.extend(fields);
        }
        self.lines.push(Value::Object(line).to_string());
    }

    /// All lines so far, each ended.
    pub fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// The digest of the whole history, ids included: the trace hash.
    pub fn hash(&self) -> Digest {
        Digest::of(self.text().as_bytes())
    }
}
