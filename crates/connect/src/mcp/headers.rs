//! What the stateless revision wants repeated in headers: names, and arguments that a tool's schema
//! marks with `x-mcp-header`.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

const MARK: &str = "x-mcp-header";
/// Headers that one tool may ask for.
const HEADERS_MAX: usize = 32;
/// Bytes of one value, encoded.
const VALUE_BYTES_MAX: usize = 4 * 1024;
/// The greatest whole number that every reader of JSON takes for the same.
const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// An argument that goes into a header as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirrored {
    header: HeaderName,
    /// The names of the properties that lead to it.
    path: Vec<String>,
}

/// The arguments that a schema marks.
///
/// # Errors
/// What is wrong with a mark; such a tool must not be used.
pub(super) fn mirrored(schema: &Value) -> Result<Vec<Mirrored>, String> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    if found.len() != marks(schema) {
        return Err(format!("{MARK} at a place that is not reached by `properties` alone"));
    }
    if found.len() > HEADERS_MAX {
        return Err(format!("more than {HEADERS_MAX} {MARK}"));
    }
    let names: BTreeSet<&str> = found.iter().map(|mirrored| mirrored.header.as_str()).collect();
    if names.len() < found.len() {
        return Err(format!("the same {MARK} twice"));
    }
    Ok(found)
}

/// Goes down the `properties` of a schema.
fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<Mirrored>,
) -> Result<(), String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(mark) = property.get(MARK) {
            let kind = property.get("type").and_then(Value::as_str);
            if !matches!(kind, Some("string" | "integer" | "boolean")) {
                return Err(format!(
                    "{MARK} on `{name}`, which is no text, whole number or boolean"
                ));
            }
            let header = mark.as_str().filter(|mark| !mark.is_empty());
            let header = header.and_then(|mark| format!("mcp-param-{mark}").parse().ok());
            let header = header.ok_or_else(|| format!("{MARK} on `{name}` is no header name"))?;
            found.push(Mirrored { header, path: path.clone() });
        }
        collect(property, path, found)?;
        path.pop();
    }
    Ok(())
}

/// Marks anywhere in a schema. A property may itself be named like the mark: then it is an object.
fn marks(schema: &Value) -> usize {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| usize::from(name == MARK && !value.is_object()) + marks(value))
            .sum(),
        Value::Array(items) => items.iter().map(marks).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The headers of one call.
///
/// # Errors
/// The name of an argument that is too long for a header.
pub(super) fn for_call<'a>(
    mirrored: &'a [Mirrored],
    arguments: &Map<String, Value>,
) -> Result<Vec<(&'a HeaderName, HeaderValue)>, String> {
    let mut headers = Vec::new();
    for Mirrored { header, path } in mirrored {
        let (first, rest) = path.split_first().ok_or_else(|| header.to_string())?;
        let value = rest.iter().fold(arguments.get(first), |value, name| value?.get(name));
        let Some(text) = value.and_then(plain) else { continue };
        headers.push((header, encoded(&text).ok_or_else(|| path.join("."))?));
    }
    Ok(headers)
}

/// The text of a value that has one.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => {
            let size = number.as_u64().or(number.as_i64().map(i64::unsigned_abs))?;
            (size <= SAFE_INTEGER_MAX).then(|| number.to_string())
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A text as a header's value; `None` if it is too long.
pub(super) fn encoded(text: &str) -> Option<HeaderValue> {
    let visible = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let padded = text.trim_matches([' ', '\t']).len() < text.len();
    let sentinel = text.starts_with("=?base64?") && text.ends_with("?=");
    let value = if visible && !padded && !sentinel {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(text))
    };
    if value.len() > VALUE_BYTES_MAX {
        return None;
    }
    HeaderValue::from_str(&value).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marked_arguments_become_headers() {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "x-mcp-header": { "type": "string" },
            "page": { "type": "object", "properties": {
                "size": { "type": "integer", "x-mcp-header": "Page-Size" },
                "all": { "type": "boolean", "x-mcp-header": "All" },
            }},
        }});
        let marked = mirrored(&schema).unwrap();
        let headers = |arguments: Value| {
            let arguments = arguments.as_object().cloned().unwrap();
            let line = |(name, value): (&HeaderName, HeaderValue)| {
                format!("{name}: {}", value.to_str().unwrap())
            };
            let found = for_call(&marked, &arguments);
            found.map(|found| found.into_iter().map(line).collect::<Vec<_>>())
        };
        let page = json!({ "region": "us-west1", "page": { "size": -7, "all": true } });
        let expected =
            ["mcp-param-all: true", "mcp-param-page-size: -7", "mcp-param-region: us-west1"];
        let mut found = headers(page).unwrap();
        found.sort();
        assert_eq!(found, expected);
        let absent = json!({ "region": null, "page": { "size": 1.5, "all": [true] } });
        assert_eq!(headers(absent), Ok(Vec::new()));
        assert_eq!(headers(json!({ "region": "x".repeat(5_000) })), Err("region".to_owned()));
    }

    #[test]
    fn a_bad_mark_spoils_its_tool() {
        let property = |property: Value| json!({ "properties": { "a": property } });
        for schema in [
            property(json!({ "type": "string", "x-mcp-header": "" })),
            property(json!({ "type": "string", "x-mcp-header": "a b" })),
            property(json!({ "type": "string", "x-mcp-header": "a\r\nb" })),
            property(json!({ "type": "string", "x-mcp-header": 7 })),
            property(json!({ "type": "number", "x-mcp-header": "A" })),
            property(
                json!({ "type": "array", "items": { "type": "string", "x-mcp-header": "A" } }),
            ),
            json!({ "oneOf": [property(json!({ "type": "string", "x-mcp-header": "A" }))] }),
            json!({ "properties": {
                "a": { "type": "string", "x-mcp-header": "A" },
                "b": { "type": "string", "x-mcp-header": "a" },
            }}),
        ] {
            assert!(mirrored(&schema).is_err(), "{schema}");
        }
    }

    /// The examples of the specification.
    #[test]
    fn what_no_header_can_hold_is_encoded() {
        for (text, value) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encoded(text).unwrap().to_str().unwrap(), value);
        }
    }
}
