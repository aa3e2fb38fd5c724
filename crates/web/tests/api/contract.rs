//! `openapi.json` and the router say the same, both ways; and every answer of every test has the form
//! that the document gives it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Map, Value};
use web::routes::{Access, ROUTES};

use crate::client::{Ask, Reply, send};
use crate::server::Server;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../openapi.json")).expect("openapi.json")
});

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}"))
}

fn operations() -> Vec<(String, String, &'static Value)> {
    let mut found = Vec::new();
    for (path, methods) in object(&DOCUMENT["paths"]) {
        for (method, operation) in object(methods) {
            found.push((method.to_uppercase(), path.clone(), operation));
        }
    }
    found
}

fn fits(pattern: &str, path: &str) -> bool {
    let (a, b): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.starts_with('{') || a == b)
}

/// Fails unless the document names this status for this operation and the body has its form.
pub fn check(ask: &Ask, reply: &Reply) {
    let path = ask.path.split('?').next().unwrap_or_default();
    let found = operations().into_iter().find(|(m, p, _)| *m == ask.method && fits(p, path));
    let problem = resolve(&DOCUMENT["components"]["schemas"]["Problem"]);
    let Some((_, _, operation)) = found else {
        if reply.status >= 400 {
            matches(problem, &reply.json(), path);
        }
        return;
    };
    let answers = &operation["responses"];
    let named = answers.get(reply.status.to_string());
    let named = resolve(
        named.unwrap_or_else(|| panic!("{} is not named for {ask:?}: {reply:?}", reply.status)),
    );
    let media = reply.header("content-type").expect("a media type").split(';').next();
    let form = named["content"].get(media.unwrap_or_default());
    let form = form.unwrap_or_else(|| panic!("{media:?} is not named for {path}: {reply:?}"));
    if media.is_some_and(|media| media.ends_with("json")) {
        matches(&form["schema"], &reply.json(), path);
    }
}

fn resolve(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(pointer) => {
            let found = DOCUMENT.pointer(pointer.trim_start_matches('#'));
            resolve(found.unwrap_or_else(|| panic!("{pointer} leads nowhere")))
        }
        None => value,
    }
}

/// The part of JSON Schema that the document uses.
fn matches(schema: &'static Value, value: &Value, at: &str) {
    if let Err(what) = verdict(schema, value, at) {
        panic!("{what}\n{value:#}");
    }
}

fn verdict(schema: &'static Value, value: &Value, at: &str) -> Result<(), String> {
    let schema = resolve(schema);
    if let Some(ways) = schema["oneOf"].as_array() {
        let fitting = ways.iter().filter(|way| verdict(way, value, at).is_ok()).count();
        return if fitting == 1 {
            Ok(())
        } else {
            Err(format!("{at} fits {fitting} of its forms"))
        };
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return Err(format!("{at} has no type in the document"));
        }
    };
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if !types.contains(&is) {
        return Err(format!("{at} is {is}, not {types:?}"));
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return Err(format!("{at} is {value}, not one of {}", schema["enum"]));
    }
    let text = value.as_str().unwrap_or_default();
    let read = match (is, schema["format"].as_str()) {
        ("string", Some("date-time")) => {
            base::Timestamp::parse(text).map(|_| ()).map_err(|e| e.to_string())
        }
        ("string", Some("uuid")) => {
            base::parse_id::<base::EventId>(text).map(|_| ()).map_err(|e| e.to_string())
        }
        _ => Ok(()),
    };
    read.map_err(|what| format!("{at}: {what}"))?;
    if value.as_i64() < schema["minimum"].as_i64() && is == "integer" {
        return Err(format!("{at} is {value}, under {}", schema["minimum"]));
    }
    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
        verdict(&schema["items"], item, &format!("{at}[{n}]"))?;
    }
    let Some(fields) = value.as_object() else { return Ok(()) };
    for name in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(name.as_str().unwrap_or_default()) {
            return Err(format!("{at} lacks {name}"));
        }
    }
    for (name, field) in fields {
        match schema["properties"].get(name) {
            Some(form) => verdict(form, field, &format!("{at}.{name}"))?,
            None if schema["additionalProperties"] == false => {
                return Err(format!("{at} has {name}, which the document does not know"));
            }
            None => {}
        }
    }
    Ok(())
}

#[test]
fn the_document_and_the_table_name_the_same_operations_with_the_same_access() {
    let documented: BTreeSet<_> = operations()
        .into_iter()
        .map(|(method, path, operation)| {
            (method, path, operation["security"] == Value::Array(vec![]))
        })
        .collect();
    let routed: BTreeSet<_> = ROUTES
        .iter()
        .map(|r| {
            (
                r.verb.word().to_owned(),
                r.path.to_owned(),
                matches!(r.access, Access::Open | Access::Signed),
            )
        })
        .collect();
    assert_eq!(documented, routed);
    assert_eq!(routed.len(), ROUTES.len(), "an operation is in the table twice");
}

#[test]
fn every_operation_of_the_document_is_answered_and_nothing_else() {
    let server = Server::start();
    for (method, path, operation) in operations() {
        let method = match method.as_str() {
            "GET" => "GET",
            "DELETE" => "DELETE",
            _ => "POST",
        };
        let path = path.replace("{id}", &server.id());
        let ask = Ask { method, ..Ask::get(path.clone()) };
        let reply = server.ask(&ask);
        let open = operation["security"] == Value::Array(vec![]);
        let wanted = match (open, method) {
            (false, _) => 401,
            // No stage runs here.
            (true, _) if path == "/readyz" => 503,
            (true, "GET") => 200,
            // No such webhook.
            (true, _) if path.starts_with("/v1/hooks/") => 404,
            // No body: refused as such, after it was routed.
            (true, _) => 400,
        };
        assert_eq!(reply.status, wanted, "{method} {path}");
    }
    for path in ["/v1", "/v1/", "/v1/duties/", "/v1/unknown", "/v1/chat/a/b", "/favicon.ico"] {
        let reply = server.ask(&Ask::get(path));
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (404, Some("application/problem+json")),
            "{path}"
        );
    }
    let wrong = send(server.address, &Ask { method: "DELETE", ..Ask::get("/v1/me") });
    assert_eq!(wrong.status, 405);
    assert_eq!(wrong.header("content-type"), Some("application/problem+json"));
    assert!(wrong.header("allow").is_some_and(|allow| allow.contains("GET")), "{wrong:?}");
}
