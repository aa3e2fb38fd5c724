//! What a payload says: its topic, its key and where GitHub shows what it is about.

use serde_json::Value;
use url::Url;

use super::super::{Scheme, at_home};
use super::HookError;
use crate::text::visible;

/// The longest key or topic, in bytes; what is longer names nothing that anyone would wait for.
const NAME_BYTES_MAX: usize = 400;
/// How many addresses are taken from one payload.
const LINKS_MAX: usize = 20;

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
    .map(|text| visible(&text))
    .filter(|text| (1..=NAME_BYTES_MAX).contains(&text.len()))
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

/// The addresses of a payload that become objects, each once (TOOL-15).
///
/// A payload of Standard Webhooks names none: whoever fills in a form at the sender writes addresses
/// into it. Of GitHub's it is the `html_url` of the repository and of what the event is about, a field
/// of the payload itself, and only below the repository's own address: GitHub makes those, on its own
/// host or on that of the enterprise that signed. A fork, a sender or a link in a text is none of them.
pub(super) fn links(payload: &Value, scheme: Scheme) -> Vec<String> {
    let shown = |value: &Value| value.get("html_url").and_then(Value::as_str).map(str::to_owned);
    let repository = match scheme {
        Scheme::Standard => None,
        Scheme::Github => payload.get("repository").and_then(shown),
    };
    let Some(home) = repository.and_then(|address| Url::parse(&address).ok()) else {
        return Vec::new();
    };
    let mut links = Vec::new();
    for address in payload.as_object().into_iter().flatten().filter_map(|(_, field)| shown(field)) {
        let Some(link) = at_home(&address, &home).filter(|link| is_below(link, &home)) else {
            continue;
        };
        if links.len() < LINKS_MAX && !links.iter().any(|known| known == link.as_str()) {
            links.push(String::from(link));
        }
    }
    links
}

/// Whether a path is that of the repository or goes on behind it; dots in it were resolved.
fn is_below(link: &Url, home: &Url) -> bool {
    let rest = link.path().strip_prefix(home.path().trim_end_matches('/'));
    link.query().is_none()
        && home.path().len() > 1
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
