//! One table of the configuration file, read key by key, so that every error names the key's path.

use std::path::{Path, PathBuf};

use base::MicroUsd;
use toml::{Table, Value};

use super::Problem;

/// Every key of the file by its path, but for those of the models. `limits.*` is added from
/// [`base::Limits`] itself.
pub(super) const KEYS: &[&str] = &[
    "data_dir",
    "listen",
    "log",
    "log_format",
    "database",
    "database.url",
    "database.node",
    "search",
    "search.provider",
    "search.base_url",
    "search.key_env",
    "search.key_file",
    "fetch",
    "fetch.allow",
    "mcp",
    "mcp.name",
    "mcp.command",
    "mcp.args",
    "mcp.env",
    "mcp.url",
    "mcp.key_env",
    "mcp.key_file",
    "mcp.manifest",
    "owner",
    "owner.name",
    "owner.zone",
    "owner.language",
    "limits",
];

/// The sections of models.
pub(super) const MODELS: &[&str] = &["model", "small", "reviewer"];

/// The keys of each of them.
pub(super) const MODEL_KEYS: &[&str] = &[
    "wire",
    "base_url",
    "model",
    "key_env",
    "key_file",
    "context_tokens",
    "max_output_tokens",
    "output_field",
    "effort",
    "input_usd_per_million",
    "cached_usd_per_million",
    "output_usd_per_million",
];

/// Names that differ from a mistyped key by at most this many letters are offered.
const NEAR_EDITS_MAX: usize = 2;

/// A table whose keys are all known. Values are taken out by name.
pub(super) struct Section<'a> {
    path: &'a str,
    table: Table,
    folder: &'a Path,
}

impl<'a> Section<'a> {
    /// Takes the table at `path` ("" is the whole file); refuses any key that is not in `known`.
    pub(super) fn new(
        path: &'a str,
        table: Table,
        folder: &'a Path,
        known: &[String],
    ) -> Result<Self, Problem> {
        for key in table.keys() {
            let full = join(path, key);
            if !known.contains(&full) {
                return Err(Problem::UnknownKey { near: near(&full, key, known), key: full });
            }
        }
        Ok(Section { path, table, folder })
    }

    /// The path of `key` from the top of the file, as errors show it.
    pub(super) fn full(&self, key: &str) -> String {
        join(self.path, key)
    }

    /// A text, if the key is there. Empty texts are refused: they are always a slip.
    pub(super) fn text(&self, key: &str) -> Result<Option<String>, Problem> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => {
                Err(self.bad(key, "is empty; give a value or leave the line out"))
            }
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.wrong(key, "a text in quotes", other)),
        }
    }

    /// A text that must be there; `remedy` says what to write.
    pub(super) fn required(&self, key: &str, remedy: &str) -> Result<String, Problem> {
        self.text(key)?
            .ok_or_else(|| Problem::Missing { key: self.full(key), remedy: remedy.into() })
    }

    /// A whole number of at least one.
    pub(super) fn count(&self, key: &str) -> Result<Option<u64>, Problem> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Integer(number)) => match u64::try_from(*number) {
                Ok(count) if count > 0 => Ok(Some(count)),
                Ok(_) | Err(_) => Err(self.bad(key, "must be a whole number of at least 1")),
            },
            Some(other) => Err(self.wrong(key, "a whole number", other)),
        }
    }

    /// A path; a relative one starts at the folder of the file, `~/` at the home folder `home`.
    pub(super) fn path(&self, key: &str, home: Option<&Path>) -> Result<Option<PathBuf>, Problem> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => Ok(Some(home.join(rest).components().collect())),
            (Some(_), None) => Err(self.bad(key, "starts with ~ but HOME is not set")),
            // Without "." parts, since the path is shown to people.
            (None, _) => Ok(Some(self.folder.join(text).components().collect())),
        }
    }

    /// US dollars as a decimal text with at most six places, such as "0.28".
    pub(super) fn usd(&self, key: &str) -> Result<Option<MicroUsd>, Problem> {
        let wanted = "a decimal text such as \"0.28\" (US dollars per million tokens)";
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => match micro_usd(text) {
                Some(amount) => Ok(Some(amount)),
                None => Err(self.bad(key, &format!("is \"{text}\"; write {wanted}"))),
            },
            Some(other) => Err(self.wrong(key, wanted, other)),
        }
    }

    /// A list of texts; empty if the key is absent.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, Problem> {
        let wanted = "a list of texts such as [\"a\", \"b\"]";
        match self.table.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| match item.as_str() {
                    Some(text) => Ok(text.to_string()),
                    None => Err(self.wrong(key, wanted, item)),
                })
                .collect(),
            Some(other) => Err(self.wrong(key, wanted, other)),
        }
    }

    /// A table below this one, written as `[key]`; empty if absent.
    pub(super) fn table(&self, key: &str) -> Result<Table, Problem> {
        match self.table.get(key) {
            None => Ok(Table::new()),
            Some(Value::Table(table)) => Ok(table.clone()),
            Some(other) => Err(self.wrong(key, &format!("a section [{}]", self.full(key)), other)),
        }
    }

    /// The tables written as `[[key]]`; none if absent.
    pub(super) fn tables(&self, key: &str) -> Result<Vec<Table>, Problem> {
        let wanted = format!("sections [[{}]] in double brackets", self.full(key));
        match self.table.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| match item.as_table() {
                    Some(table) => Ok(table.clone()),
                    None => Err(self.wrong(key, &wanted, item)),
                })
                .collect(),
            Some(other) => Err(self.wrong(key, &wanted, other)),
        }
    }

    /// Whether the key is in the file at all.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The error for a value of the right type that does not do.
    pub(super) fn bad(&self, key: &str, problem: &str) -> Problem {
        Problem::BadValue { key: self.full(key), problem: problem.into() }
    }

    fn wrong(&self, key: &str, wanted: &str, found: &Value) -> Problem {
        wrong_type(&self.full(key), wanted, found)
    }
}

/// The error for a value of another type than the key takes.
pub(super) fn wrong_type(key: &str, wanted: &str, found: &Value) -> Problem {
    let kind = match found {
        Value::String(_) => "a text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number with a point",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a section",
    };
    Problem::WrongType { key: key.into(), wanted: wanted.into(), found: kind.into() }
}

/// "model" and "key_env" make "model.key_env".
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

/// Known paths whose last word is `key` or nearly so, else the keys of the same section; at most
/// five.
fn near(full: &str, key: &str, known: &[String]) -> Vec<String> {
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_string();
    let parent = |path: &str| path.rsplit_once('.').map(|(parent, _)| parent.to_string());
    let mut found: Vec<(usize, bool, &String)> = known
        .iter()
        .map(|path| {
            let edits = strsim::damerau_levenshtein(&last(path), key);
            (edits, parent(path) != parent(full), path)
        })
        .filter(|(edits, _, path)| {
            *edits <= NEAR_EDITS_MAX || (key.len() > 3 && last(path).contains(key))
        })
        .collect();
    found.sort();
    let mut names: Vec<String> = found.into_iter().map(|(_, _, path)| path.clone()).collect();
    if names.is_empty() {
        names = known.iter().filter(|path| parent(path) == parent(full)).cloned().collect();
    }
    names.truncate(5);
    names
}

/// Reads "1", "0.28" or "2.500001" without a detour over floating point; `None` for anything else.
pub fn micro_usd(text: &str) -> Option<MicroUsd> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 6 {
        return None;
    }
    let micros: i64 = format!("{part:0<6}").parse().ok()?;
    let whole: i64 = whole.parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(micros).map(MicroUsd)
}
