//! Answers and refusals in the words of the OpenAI protocol.

use std::io;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use model::{Answer, Finish, ModelError, ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

/// How many characters of text or arguments one streamed part carries.
const PART_CHARS: usize = 12;

/// What a request asks about the form of its answer.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct Options {
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    stream_options: StreamOptions,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

impl Options {
    pub(super) fn read(body: &[u8]) -> Options {
        serde_json::from_slice(body).unwrap_or_default()
    }
}

/// An answer in the form asked for, broken off after `cut` bytes.
pub(super) fn answer(
    answer: &Answer,
    options: Options,
    created: i64,
    cut: Option<usize>,
) -> Response {
    let (kind, parts) = if options.stream {
        ("text/event-stream", events(answer, options.stream_options.include_usage, created))
    } else {
        ("application/json", vec![complete(answer, created)])
    };
    let stream = futures_util::stream::iter(broken_off(parts, cut));
    let mut response = Body::from_stream(stream).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The parts up to `cut` bytes, and then the failure that makes the server drop the connection.
fn broken_off(parts: Vec<String>, cut: Option<usize>) -> Vec<io::Result<Bytes>> {
    let mut left = cut.unwrap_or(usize::MAX);
    let mut sent = Vec::new();
    for part in parts {
        let part = Bytes::from(part);
        let length = part.len();
        sent.push(Ok(part.slice(..length.min(left))));
        if length > left {
            sent.push(Err(io::Error::other("this break was ordered")));
            break;
        }
        left -= length;
    }
    sent
}

fn finish_word(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    })
}

fn complete(answer: &Answer, created: i64) -> String {
    let message: Value = serde_json::from_str(&answer.block.bytes).unwrap_or_default();
    let finish = finish_word(answer.finish);
    json!({
        "id": answer.answer_id,
        "object": "chat.completion",
        "created": created,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage(answer.usage),
    })
    .to_string()
}

/// The answer as events: text first, then all tool calls at once, their arguments in turns.
fn events(answer: &Answer, with_usage: bool, created: i64) -> Vec<String> {
    let part = |choices: Value, usage: Value| {
        let part = json!({
            "id": answer.answer_id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": answer.model,
            "choices": choices,
            "usage": usage,
        });
        format!("data: {part}\n\n")
    };
    let delta = |delta: Value| part(json!([{"index": 0, "delta": delta}]), Value::Null);
    let mut events = vec![delta(json!({"role": "assistant", "content": null}))];
    for text in pieces(answer.text.as_deref().unwrap_or_default()) {
        events.push(delta(json!({"content": text})));
    }
    events.extend(
        call_parts(&answer.tool_calls).into_iter().map(|call| delta(json!({"tool_calls": [call]}))),
    );
    let end = json!([{"index": 0, "delta": {}, "finish_reason": finish_word(answer.finish)}]);
    events.push(part(end, Value::Null));
    if with_usage {
        events.push(part(json!([]), usage(answer.usage)));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// The beginnings of all calls, then a piece of each call's arguments in turn.
fn call_parts(calls: &[ToolCall]) -> Vec<Value> {
    let begin = |(n, call): (usize, &ToolCall)| {
        let function = json!({"name": call.name, "arguments": ""});
        json!({"index": n, "id": call.id, "type": "function", "function": function})
    };
    let mut parts: Vec<Value> = calls.iter().enumerate().map(begin).collect();
    let arguments: Vec<Vec<String>> = calls.iter().map(|call| pieces(&call.arguments)).collect();
    let turns = arguments.iter().map(Vec::len).max().unwrap_or(0);
    for turn in 0..turns {
        let in_turn = arguments.iter().enumerate().filter_map(|(n, pieces)| {
            let piece = pieces.get(turn)?;
            Some(json!({"index": n, "function": {"arguments": piece}}))
        });
        parts.extend(in_turn);
    }
    parts
}

fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PART_CHARS).map(|piece| piece.iter().collect()).collect()
}

/// A refusal of the script, as a provider would send it.
pub(super) fn model_error(failure: &ModelError) -> Response {
    let words = failure.to_string();
    match failure {
        ModelError::Retry { .. } => error(StatusCode::SERVICE_UNAVAILABLE, "overloaded", &words),
        ModelError::Authentication => error(StatusCode::UNAUTHORIZED, "invalid_api_key", &words),
        ModelError::Quota => error(StatusCode::TOO_MANY_REQUESTS, "insufficient_quota", &words),
        ModelError::Context => error(StatusCode::BAD_REQUEST, "context_length_exceeded", &words),
        ModelError::History => error(StatusCode::BAD_REQUEST, "invalid_encrypted_content", &words),
        ModelError::Refused => error(StatusCode::BAD_REQUEST, "content_filter", &words),
        ModelError::Malformed(what) => error(StatusCode::BAD_REQUEST, "invalid_request", what),
    }
}

/// An error body of the protocol.
pub(super) fn error(status: StatusCode, code: &str, message: &str) -> Response {
    let error = json!({"message": message, "type": "error", "param": null, "code": code});
    (status, axum::Json(json!({ "error": error }))).into_response()
}
