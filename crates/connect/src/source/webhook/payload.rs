//! What a payload says: its topic, its key and the addresses in it.

use serde_json::{Map, Value};

use super::super::Scheme;
use super::HookError;

/// The longest key or topic, in bytes; what is longer names nothing that anyone would wait for.
const NAME_BYTES_MAX: usize = 400;
/// How many addresses are taken from one payload, and how long each may be.
const LINKS_MAX: usize = 20;
const LINK_BYTES_MAX: usize = 2_000;

/// Reads a body. It has to be an object: with anything shorter, a signed `id.time.body` could be
/// read as another id with another body.
pub(super) fn parse(body: &[u8]) -> Result<Value, HookError> {
    let value: Value = serde_json::from_slice(body).map_err(|error| HookError::BadJson {
        at: format!("line {}, column {}", error.line(), error.column()),
    })?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(HookError::BadJson { at: "it begins with something else".to_owned() })
    }
}

/// The text, number or truth value at a dotted path; a number in a path is a place in a list.
pub(super) fn text_at(payload: &Value, path: &str) -> Option<String> {
    let found = path.split('.').try_fold(payload, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })?;
    match found {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
    .filter(|text| is_name(text))
}

/// Short, and without anything that commands a screen or that a database refuses.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && !text.contains(char::is_control)
}

/// The event's name, with the action if there is one: `issues.opened`, `push`.
pub(super) fn github_topic(event: &str, payload: &Value) -> String {
    match text_at(payload, "action") {
        Some(action) => format!("{event}.{action}"),
        None => event.to_owned(),
    }
}

/// `owner/repo#number` for what concerns one issue, pull request or discussion, else `owner/repo`.
pub(super) fn github_key(payload: &Value) -> Option<String> {
    let repository = text_at(payload, "repository.full_name")?;
    let number = ["issue", "pull_request", "discussion"]
        .into_iter()
        .find_map(|kind| payload.get(kind)?.get("number")?.as_u64());
    Some(match number {
        Some(number) => format!("{repository}#{number}"),
        None => repository,
    })
}

/// Addresses in the payload, each once: what GitHub calls `html_url` (its other ones are for
/// programs), else every text that is an address.
pub(super) fn links(payload: &Value, scheme: Scheme) -> Vec<String> {
    let mut links = Vec::new();
    // Depth first with an explicit stack; the payload's size bounds it.
    let mut rest = vec![("", payload)];
    while let Some((name, value)) = rest.pop() {
        let wanted = match scheme {
            Scheme::Standard => true,
            Scheme::Github => name == "html_url",
        };
        match value {
            Value::String(text) if wanted && is_link(text) && !links.contains(text) => {
                links.push(text.clone());
            }
            Value::Array(items) => rest.extend(items.iter().rev().map(|item| (name, item))),
            Value::Object(fields) => rest.extend(in_order(fields)),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if links.len() == LINKS_MAX {
            break;
        }
    }
    links
}

fn in_order(fields: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    fields.iter().rev().map(|(name, value)| (name.as_str(), value))
}

/// Whether a text is a web address and nothing else. The guarded client judges it when it is
/// fetched.
fn is_link(text: &str) -> bool {
    (text.starts_with("https://") || text.starts_with("http://"))
        && text.len() <= LINK_BYTES_MAX
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}
