//! What a payload says: its topic, its key and where GitHub shows what it is about.

use serde::de::IgnoredAny;
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
///
/// JSON by its grammar is taken even where a value of it has no meaning here, since its sender would be
/// refused for ever: half of a pair of surrogates is read as U+FFFD, a number beyond all bounds as its text.
/// What is nested more than 127 deep stays refused: that is a limit.
pub(super) fn parse(body: &[u8]) -> Result<Value, HookError> {
    let at = |error: serde_json::Error| HookError::BadJson {
        at: format!("line {}, column {}", error.line(), error.column()),
    };
    let text = std::str::from_utf8(body).map_err(|error| HookError::BadJson {
        at: format!("byte {} is none of UTF-8", error.valid_up_to() + 1),
    })?;
    let value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(_) => {
            serde_json::from_str::<IgnoredAny>(text).map_err(at)?;
            match text.trim_start().starts_with('{') {
                true => serde_json::from_str(&mended(text)).map_err(at)?,
                false => Value::Null,
            }
        }
    };
    if value.is_object() {
        Ok(value)
    } else {
        Err(HookError::BadJson { at: "it begins with something else".to_owned() })
    }
}

/// JSON whose every string and number can be read: what cannot is replaced by what is nearest to it.
fn mended(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut quoted = false;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\\' if quoted => escape(rest, &mut out),
            '-' | '0'..='9' if !quoted => number(rest, &mut out),
            c => {
                out.push(c);
                quoted ^= c == '"';
                c.len_utf8()
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// Copies an escape; half of a pair of surrogates becomes U+FFFD. Gives its length.
fn escape(rest: &str, out: &mut String) -> usize {
    let unit = |at: usize| {
        let digits = rest.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (copied, length) = match (unit(0), unit(6)) {
        (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (rest.get(..12), 12),
        (Some(0xD800..=0xDFFF), _) => (Some("\\ufffd"), 6),
        (Some(_), _) => (rest.get(..6), 6),
        (None, _) => (rest.get(..2), 2),
    };
    out.push_str(copied.unwrap_or_default());
    length
}

/// Copies a number; one beyond all bounds becomes a text. Gives its length.
fn number(rest: &str, out: &mut String) -> usize {
    let is_part = |c: char| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
    let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let number = rest.get(..length).unwrap_or_default();
    match serde_json::from_str::<Value>(number) {
        Ok(_) => out.push_str(number),
        Err(_) => out.push_str(&Value::from(number).to_string()),
    }
    length
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(body: &str, path: &str) -> Result<Option<String>, HookError> {
        parse(body.as_bytes()).map(|payload| text_at(&payload, path))
    }

    #[test]
    fn json_that_no_value_can_hold_is_read_as_far_as_it_goes() {
        let cases = [
            (r#"{"a": "x", "b": "\ud800"}"#, "a", Some("x")),
            (r#"{"a": "x\ud83d\ude00y\udc00", "b": 1}"#, "a", Some("x😀y\u{FFFD}")),
            (
                r#"{"a": "\\", "\ud800": "-1e999", "b": {"c": [1e400, -2.5E+999, 3]}}"#,
                "b.c.0",
                Some("1e400"),
            ),
            (r#"{"b": {"c": [1e400, -2.5E+999, 3]}, "a": "\\"}"#, "b.c.2", Some("3")),
            (r#"{"a": "the \"1e400\" of \u0041"  , "b": 1e400}"#, "a", Some("the \"1e400\" of A")),
        ];
        for (body, path, wanted) in cases {
            assert_eq!(at(body, path), Ok(wanted.map(str::to_owned)), "{body}");
        }
        let no_object = r#"["\ud800"]"#;
        let broken = [
            no_object,
            r#"{"a": 1e400"#,
            r#"{"a": +1e400}"#,
            r#"{"a": 1.e400}"#,
            r#"{"a": "\ud8"}"#,
        ];
        for body in broken {
            assert!(matches!(at(body, "a"), Err(HookError::BadJson { .. })), "{body}");
        }
        let latin = parse(b"{\"a\": \"\xe9\"}");
        assert!(matches!(latin, Err(HookError::BadJson { at }) if at.starts_with("byte 8 ")));
    }
}
