//! What the two revisions demand of a request, and the tools that are offered.

use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Asked, Revision, STATELESS, Shared, WITH_SESSION};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const PARAM: &str = "mcp-param-";

/// What a message says, before it is judged.
pub(super) fn asked(method: &Method, headers: &HeaderMap, message: &Value) -> Asked {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let called = message["method"].as_str().unwrap_or_default();
    let tool = message["params"]["name"].as_str().map(|tool| format!(" {tool}"));
    let mirrored = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(PARAM)?;
        Some((name.to_owned(), decoded(value.to_str().ok()?)))
    });
    Asked {
        what: match *method {
            Method::POST => format!("{called}{}", tool.unwrap_or_default()),
            _ => method.to_string(),
        },
        key: header("authorization").and_then(|key| key.strip_prefix("Bearer ")).map(str::to_owned),
        session: header(SESSION.as_str()).map(str::to_owned),
        version: header("mcp-protocol-version").map(str::to_owned),
        mirrored: mirrored.collect(),
        done: false,
    }
}

/// Refuses a request that lacks what its revision demands.
#[expect(clippy::result_large_err, reason = "the error is the answer itself")]
pub(super) fn check(shared: &Shared, headers: &HeaderMap, message: &Value) -> Result<(), Response> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let accepted = header("accept");
    if !accepted.contains("application/json") || !accepted.contains("text/event-stream") {
        return Err(StatusCode::NOT_ACCEPTABLE.into_response());
    }
    match shared.revision {
        Revision::Stateless => stateless(&header, message),
        Revision::Sessions => session(shared, &header, message),
    }
}

#[expect(clippy::result_large_err, reason = "the error is the answer itself")]
fn stateless<'a>(header: &dyn Fn(&str) -> &'a str, message: &Value) -> Result<(), Response> {
    let (id, params) = (&message["id"], &message["params"]);
    let bad = |code: i32, text: &str| Err(error(StatusCode::BAD_REQUEST, id, code, text));
    let meta = &params["_meta"];
    let version = header("mcp-protocol-version");
    if meta["io.modelcontextprotocol/protocolVersion"] != version {
        let unsupported = json!({ "jsonrpc": "2.0", "id": id, "error": {
            "code": -32_022,
            "message": "Unsupported protocol version",
            "data": { "supported": [STATELESS], "requested": version },
        }});
        if version.is_empty() || version == WITH_SESSION {
            return Err((StatusCode::BAD_REQUEST, axum::Json(unsupported)).into_response());
        }
        return bad(-32_020, "Header mismatch: MCP-Protocol-Version");
    }
    if !meta["io.modelcontextprotocol/clientCapabilities"].is_object() {
        return bad(-32_602, "clientCapabilities is missing");
    }
    if message["method"] != header("mcp-method") {
        return bad(-32_020, "Header mismatch: Mcp-Method");
    }
    if message["method"] == "tools/call" && params["name"] != decoded(header("mcp-name")) {
        return bad(-32_020, "Header mismatch: Mcp-Name");
    }
    let region = params["arguments"]["region"].as_str().unwrap_or_default();
    if region != decoded(header("mcp-param-region")) {
        return bad(-32_020, "Header mismatch: Mcp-Param-Region");
    }
    Ok(())
}

#[expect(clippy::result_large_err, reason = "the error is the answer itself")]
fn session<'a>(
    shared: &Shared,
    header: &dyn Fn(&str) -> &'a str,
    message: &Value,
) -> Result<(), Response> {
    let named = header(SESSION.as_str());
    let called = message["method"].as_str().unwrap_or_default();
    if called == "initialize" && named.is_empty() {
        return Ok(());
    }
    if named.is_empty() {
        let text = "Bad Request: Mcp-Session-Id header is required";
        return Err(error(StatusCode::BAD_REQUEST, &Value::Null, -32_000, text));
    }
    let mut inner = shared.lock();
    let Some(ready) = inner.sessions.get_mut(named) else {
        return Err(error(StatusCode::NOT_FOUND, &Value::Null, -32_001, "Session not found"));
    };
    if header("mcp-protocol-version") != WITH_SESSION {
        let text = "Bad Request: Unsupported protocol version";
        return Err(error(StatusCode::BAD_REQUEST, &Value::Null, -32_000, text));
    }
    if called == "notifications/initialized" {
        *ready = true;
    }
    if *ready {
        return Ok(());
    }
    let text = "Bad Request: Server not initialized";
    Err(error(StatusCode::BAD_REQUEST, &Value::Null, -32_000, text))
}

/// What is not POST: a session may be ended, and there is no stream to listen to.
pub(super) fn not_post(shared: &Shared, method: &Method, asked: &Asked) -> Response {
    let session = asked.session.as_deref().unwrap_or_default();
    let ended = *method == Method::DELETE
        && shared.revision == Revision::Sessions
        && shared.lock().sessions.remove(session).is_some();
    if ended { StatusCode::OK } else { StatusCode::METHOD_NOT_ALLOWED }.into_response()
}

/// The tools, in two pages.
pub(super) fn list(revision: Revision, params: &Value) -> Value {
    let tool = |name: &str, properties: Value| {
        json!({ "name": name, "description": format!("{name}."), "inputSchema": {
            "type": "object", "properties": properties,
        }})
    };
    let text = json!({ "type": "string" });
    let region = json!({ "type": "string", "x-mcp-header": "Region" });
    let first = [
        tool("echo", json!({ "text": text, "region": region })),
        // Its mark is wrong, so it must not be used.
        tool("spoiled", json!({ "a": { "type": "number", "x-mcp-header": "A" } })),
    ];
    let second = ["offers", "refused", "ask"].map(|name| tool(name, json!({})));
    let mut page = match params["cursor"].as_str() {
        Some("second") => json!({ "tools": second }),
        _ => json!({ "tools": first, "nextCursor": "second" }),
    };
    if revision == Revision::Stateless {
        page["resultType"] = json!("complete");
        page["ttlMs"] = json!(0);
        page["cacheScope"] = json!("private");
    }
    page
}

#[expect(clippy::result_large_err, reason = "the error is the answer itself")]
pub(super) fn call(revision: Revision, message: &Value) -> Result<Value, Response> {
    let params = &message["params"];
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    let mut result = match params["name"].as_str().unwrap_or_default() {
        "echo" => {
            let said = params["arguments"]["text"].as_str().unwrap_or_default();
            json!({ "content": text(&format!("Echo: {said}")) })
        }
        "offers" => json!({
            "content": text("Two offers."),
            "structuredContent": { "offers": [
                { "id": "H-1", "total": "97.50" }, { "id": "H-2", "total": "120.00" },
            ]},
        }),
        "refused" => json!({ "isError": true, "content": text("Shop API: 401 Unauthorized") }),
        "ask" => json!({ "resultType": "input_required", "inputRequests": {} }),
        other => {
            let text = format!("Unknown tool: {other}");
            return Err(error(StatusCode::OK, &message["id"], -32_602, &text));
        }
    };
    if revision == Revision::Stateless && result["resultType"].is_null() {
        result["resultType"] = json!("complete");
    }
    Ok(result)
}

/// An answer as a stream: an event without data, a notification, a comment, and the answer.
pub(super) fn events(answer: &str) -> String {
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {
        "level": "info", "data": "working",
    }});
    format!("id: 1\ndata:\n\nevent: message\ndata: {notice}\n\n: alive\n\ndata: {answer}\n\n")
}

pub(super) fn error(status: StatusCode, id: &Value, code: i32, message: &str) -> Response {
    let error = json!({ "code": code, "message": message });
    (status, axum::Json(json!({ "jsonrpc": "2.0", "id": id, "error": error }))).into_response()
}

/// The text of a header's value, which may be encoded.
fn decoded(value: &str) -> String {
    let inner = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let bytes = inner.and_then(|inner| STANDARD.decode(inner).ok());
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| value.to_owned())
}
