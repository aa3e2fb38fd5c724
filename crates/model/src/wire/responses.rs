//! OpenAI Responses, with nothing stored at the server: each stored block is one or more items of
//! `input`, and reasoning goes back encrypted, as it came.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::failure::{self, ErrorBody};
use super::{WireSettings, broken_off, named, quoted, settled, told, unreadable, unreadable_block};
use crate::vendor::{Origin, Piece, pieces, plain_name};
use crate::{Answer, Finish, Message, ModelError, Request, ToolCall, Usage};

/// The smallest limit that this wire takes.
const OUTPUT_TOKENS_MIN: u32 = 16;

/// The request body.
pub(super) fn body(settings: &WireSettings, request: &Request) -> Result<Vec<u8>, ModelError> {
    let limit = request.max_output_tokens.max(OUTPUT_TOKENS_MIN);
    let model = quoted(&settings.model);
    let mut out =
        format!(r#"{{"model":{model},"stream":true,"store":false,"max_output_tokens":{limit}"#);
    if let Some(effort) = settings.effort() {
        out.push_str(&format!(r#","reasoning":{{"effort":{}}}"#, quoted(effort)));
    }
    // A model that does not reason refuses a request that asks for this.
    if settings.effort.as_deref() != Some(WireSettings::NO_EFFORT) {
        out.push_str(r#","include":["reasoning.encrypted_content"]"#);
    }
    if let Some(name) = request.prefix_name() {
        out.push_str(&format!(r#","prompt_cache_key":"{name}""#));
    }
    let tools: Vec<String> = request.functions()?.iter().map(tool).collect();
    if !tools.is_empty() {
        let tools = tools.join(",");
        out.push_str(&format!(r#","parallel_tool_calls":true,"tools":[{tools}]"#));
    }
    let mut input = Vec::new();
    for block in &request.blocks {
        match block.message().map_err(unreadable_block)? {
            Message::System(text) => input.push(message("system", &text, None)),
            Message::User(text) => input.push(message("user", &text, None)),
            Message::Tool { call_id, text } => {
                let (id, text) = (quoted(&plain_name(&call_id)), quoted(&text));
                let result = r#"{"type":"function_call_output","call_id":"#;
                input.push(format!(r#"{result}{id},"output":{text}}}"#));
            }
            Message::Assistant { text, tool_calls } => {
                let pieces = pieces(block, text, tool_calls, settings.origin());
                input.extend(pieces.into_iter().map(item));
            }
        }
    }
    out.push_str(&format!(r#","input":[{}]}}"#, input.join(",")));
    Ok(out.into_bytes())
}

fn message(role: &str, text: &str, phase: Option<&str>) -> String {
    let text = quoted(text);
    let phase = phase.map(|phase| format!(r#","phase":{}"#, quoted(phase))).unwrap_or_default();
    format!(r#"{{"type":"message","role":"{role}","content":{text}{phase}}}"#)
}

fn item(piece: Piece) -> String {
    match piece {
        Piece::Text { text, phase } => message("assistant", &text, phase.as_deref()),
        Piece::Call(call) => {
            let (id, name) = (quoted(&plain_name(&call.id)), quoted(&plain_name(&call.name)));
            let arguments = quoted(&call.arguments);
            let call = r#"{"type":"function_call","call_id":"#;
            format!(r#"{call}{id},"name":{name},"arguments":{arguments}}}"#)
        }
        Piece::Item(item) => item.get().to_owned(),
    }
}

fn tool(function: &crate::vendor::Function<'_>) -> String {
    let (name, description) = (quoted(&function.name), quoted(&function.description));
    let schema = function.parameters.map_or(r#"{"type":"object"}"#, RawValue::get);
    // Without the word, this wire takes every schema for a strict one, which forbids optional fields.
    format!(
        r#"{{"type":"function","name":{name},"description":{description},"parameters":{schema},"strict":false}}"#
    )
}

/// One event. Those that bring parts of an item say nothing that its end does not say again.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    item: Option<Map<String, Value>>,
    #[serde(default)]
    response: Option<Response>,
}

/// The answer as its last event has it, or as a server sends it whole.
#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    id: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    output: Vec<Map<String, Value>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<ErrorBody>,
    #[serde(default)]
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens: u64,
}

#[derive(Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: u64,
}

/// What has arrived of an answer.
#[derive(Default)]
pub(super) struct Assembly {
    items: Vec<Map<String, Value>>,
    last: Option<Response>,
}

impl super::Assembly for Assembly {
    fn take(&mut self, data: &[u8]) -> Result<(), ModelError> {
        if data == b"[DONE]" {
            return Ok(());
        }
        let event: Event = serde_json::from_slice(data).map_err(|error| unreadable(&error))?;
        match event.kind.as_str() {
            "response.output_item.done" => self.items.extend(event.item),
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.last = event.response;
            }
            "error" => return Err(failure::in_stream(&ErrorBody::read(data))),
            // A server that answers whole although a stream was asked for: no event has no type.
            "" => {
                self.last = Some(serde_json::from_slice(data).map_err(|error| unreadable(&error))?);
            }
            // Parts of items, and whatever the vendor adds.
            _ => {}
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.last.is_some()
    }

    fn finish(
        self: Box<Self>,
        request: &Request,
        origin: Origin<'_>,
    ) -> Result<Answer, ModelError> {
        let last = self.last.ok_or_else(broken_off)?;
        let reason = last.incomplete_details.map(|details| details.reason).unwrap_or_default();
        if last.status == "failed" || last.error.is_some() {
            return Err(failure::in_stream(&last.error.unwrap_or_default()));
        }
        let answer_id = named(last.id, request);
        // Some servers end a stream without the whole of it.
        let items = if self.items.is_empty() { last.output } else { self.items };
        let refused = items.iter().any(has_refusal);
        let pieces: Vec<Piece> = items.into_iter().filter_map(piece).collect();
        let (pieces, has_calls) = settled(pieces, &answer_id)?;
        if refused && !has_calls {
            return Err(ModelError::Refused);
        }
        let finish = match (last.status.as_str(), reason.as_str()) {
            ("completed", _) if has_calls => Finish::ToolCalls,
            ("completed", _) => Finish::Stop,
            ("incomplete", "max_output_tokens") => Finish::Length,
            ("incomplete", "content_filter") => Finish::ContentFilter,
            (status, reason) => {
                let end = failure::clipped(&format!("{status} {reason}"));
                return Err(ModelError::Malformed(format!("the answer ends by \"{end}\"")));
            }
        };
        let usage = last.usage.map(|usage| Usage {
            input_tokens: usage.input_tokens,
            cached_tokens: usage
                .input_tokens_details
                .map_or(0, |details| details.cached_tokens.min(usage.input_tokens)),
            output_tokens: usage.output_tokens,
        });
        let answer = Answer::of_pieces(pieces, origin, finish);
        Ok(told(answer, request, (answer_id, last.model), usage, origin.model))
    }
}

fn field<'a>(item: &'a Map<String, Value>, name: &str) -> &'a str {
    item.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The parts of a message.
fn parts(item: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let parts = item.get("content").and_then(Value::as_array).into_iter().flatten();
    parts.filter_map(Value::as_object)
}

fn has_refusal(item: &Map<String, Value>) -> bool {
    parts(item).any(|part| field(part, "type") == "refusal")
}

/// What an item is to us. Reasoning that is not encrypted would have to be stored at the server, and
/// nothing is; items of other kinds come only of tools of the vendor, which nobody offers.
fn piece(mut item: Map<String, Value>) -> Option<Piece> {
    let text = |name| field(&item, name).to_owned();
    match field(&item, "type") {
        "message" => {
            let text = parts(&item).map(|part| field(part, "text")).collect();
            let phase = Some(field(&item, "phase")).filter(|phase| !phase.is_empty());
            Some(Piece::Text { text, phase: phase.map(str::to_owned) })
        }
        "function_call" => {
            let (id, name, arguments) = (text("call_id"), text("name"), text("arguments"));
            Some(Piece::Call(ToolCall { id, name, arguments }))
        }
        "reasoning" if !field(&item, "encrypted_content").is_empty() => {
            // A field without a value may come, but may not go back.
            item.retain(|_, value| !value.is_null());
            serde_json::value::to_raw_value(&item).ok().map(Piece::Item)
        }
        _ => None,
    }
}
