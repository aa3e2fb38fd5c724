//! Anthropic Messages. The first system block is `system`; calls' results and what the person says
//! stand in one `user` message between two of the model's, as this vendor wants parallel calls.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::failure::{self, ErrorBody};
use super::{WireSettings, broken_off, named, quoted, settled, told, unreadable, unreadable_block};
use crate::vendor::{Origin, Piece, pieces, plain_name};
use crate::{Answer, Finish, Message, ModelError, Request, Usage};

/// Says that everything up to here is to be cached. It is the last field of its object, so that the
/// bytes before it are the same with and without.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The request body. A turn's has two cache marks: after the system block, which tools and prefix end
/// with, and after the newest block, so that the next request reads all of this one from the cache. A
/// question without tools comes only once and has none.
pub(super) fn body(settings: &WireSettings, request: &Request) -> Result<Vec<u8>, ModelError> {
    let mark = if request.has_tools() { MARK } else { "" };
    let (model, limit) = (quoted(&settings.model), request.max_output_tokens);
    let mut out = format!(r#"{{"model":{model},"max_tokens":{limit},"stream":true"#);
    if let Some(effort) = settings.effort() {
        let effort = quoted(effort);
        out.push_str(&format!(
            r#","thinking":{{"type":"adaptive"}},"output_config":{{"effort":{effort}}}"#
        ));
    }
    let tools: Vec<String> = request.functions()?.iter().map(tool).collect();
    if !tools.is_empty() {
        out.push_str(&format!(r#","tools":[{}]"#, tools.join(",")));
    }
    let mut blocks = request.blocks.as_slice();
    if let Some((first, rest)) = blocks.split_first()
        && let Message::System(text) = first.message().map_err(unreadable_block)?
    {
        let text = quoted(&text);
        out.push_str(&format!(r#","system":[{{"type":"text","text":{text}{mark}}}]"#));
        blocks = rest;
    }
    out.push_str(r#","messages":["#);
    let mut contents = Contents { out, role: None };
    for block in blocks {
        match block.message().map_err(unreadable_block)? {
            Message::System(text) | Message::User(text) => contents.text(USER, &text),
            Message::Tool { call_id, text } => {
                // Nothing cannot be marked.
                let text = if text.trim().is_empty() { "(nothing)" } else { &text };
                let (id, text) = (quoted(&plain_name(&call_id)), quoted(text));
                let result = r#"{"type":"tool_result","tool_use_id":"#;
                contents.push(USER, &format!(r#"{result}{id},"content":{text}"#));
            }
            Message::Assistant { text, tool_calls } => {
                pieces(block, text, tool_calls, settings.origin())
                    .iter()
                    .for_each(|piece| contents.piece(piece));
            }
        }
    }
    Ok(contents.end(mark).into_bytes())
}

const USER: &str = "user";
const ASSISTANT: &str = "assistant";

/// The messages as far as they are written. The newest object still lacks its closing brace.
struct Contents {
    out: String,
    role: Option<&'static str>,
}

impl Contents {
    /// Adds an object that lacks its closing brace to the message of `role`, or to a new one.
    fn push(&mut self, role: &'static str, object: &str) {
        match self.role {
            Some(same) if same == role => self.out.push_str("},"),
            Some(_) => self.out.push_str("}]},"),
            None => {}
        }
        if self.role != Some(role) {
            self.out.push_str(&format!(r#"{{"role":"{role}","content":["#));
        }
        self.role = Some(role);
        self.out.push_str(object);
    }

    /// A text of nothing but blanks is refused, so it is left out.
    fn text(&mut self, role: &'static str, text: &str) {
        if !text.trim().is_empty() {
            self.push(role, &format!(r#"{{"type":"text","text":{}"#, quoted(text)));
        }
    }

    fn piece(&mut self, piece: &Piece) {
        match piece {
            Piece::Text { text, .. } => self.text(ASSISTANT, text),
            Piece::Call(call) => {
                let (id, name) = (quoted(&plain_name(&call.id)), quoted(&plain_name(&call.name)));
                let input = input(&call.arguments);
                let call =
                    format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}"#);
                self.push(ASSISTANT, &call);
            }
            Piece::Item(item) => {
                let object = item.get().trim();
                self.push(ASSISTANT, object.strip_suffix('}').unwrap_or(object));
            }
        }
    }

    /// The end: what a longer conversation does not begin with. Thinking takes no mark, so only a
    /// message to the model does.
    fn end(mut self, mark: &str) -> String {
        if self.role == Some(USER) {
            self.out.push_str(mark);
        }
        if self.role.is_some() {
            self.out.push_str("}]}");
        }
        self.out.push_str("]}");
        self.out
    }
}

fn tool(function: &crate::vendor::Function<'_>) -> String {
    let (name, description) = (quoted(&function.name), quoted(&function.description));
    let schema = function.parameters.map_or(r#"{"type":"object"}"#, RawValue::get);
    format!(r#"{{"name":{name},"description":{description},"input_schema":{schema}}}"#)
}

/// Arguments as the object that this wire wants, with the model's own bytes where they are one.
fn input(arguments: &str) -> String {
    if arguments.trim().is_empty() {
        return "{}".to_owned();
    }
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => arguments.trim().to_owned(),
        Err(_) => format!(r#"{{"unreadable":{}}}"#, quoted(arguments)),
    }
}

/// One event, or (with `content`) a whole answer.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    /// Of `message_start`.
    #[serde(default)]
    message: Option<Head>,
    #[serde(default)]
    index: usize,
    #[serde(default)]
    content_block: Option<Map<String, Value>>,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    id: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    content: Vec<Map<String, Value>>,
    #[serde(default)]
    stop_reason: Option<String>,
}

/// The fields of all kinds of delta; a kind that has none of them adds nothing.
#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    partial_json: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    signature: Option<String>,
    #[serde(default)]
    stop_reason: Option<String>,
}

/// Counts so far; each event repeats some of them.
#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
}

/// What has arrived of an answer.
#[derive(Default)]
pub(super) struct Assembly {
    answer_id: String,
    model: String,
    /// Each block by its index, as it began, and the JSON of a call's arguments so far.
    blocks: Vec<(usize, Map<String, Value>, String)>,
    /// Input, written to the cache, read from it, output.
    usage: Option<[u64; 4]>,
    stop_reason: Option<String>,
    done: bool,
}

impl super::Assembly for Assembly {
    fn take(&mut self, data: &[u8]) -> Result<(), ModelError> {
        let event: Event = serde_json::from_slice(data).map_err(|error| unreadable(&error))?;
        match event.kind.as_str() {
            "message_start" => event.message.into_iter().for_each(|head| self.begin(head)),
            // A server that answers whole although a stream was asked for.
            "message" => {
                self.begin(serde_json::from_slice(data).map_err(|error| unreadable(&error))?);
            }
            "content_block_start" => {
                let block = event.content_block.unwrap_or_default();
                self.blocks.push((event.index, block, String::new()));
            }
            "content_block_delta" => {
                event.delta.into_iter().for_each(|delta| self.add(event.index, delta));
            }
            "message_delta" => {
                self.count(event.usage);
                let reason = event.delta.and_then(|delta| delta.stop_reason);
                self.stop_reason = reason.or(self.stop_reason.take());
            }
            "message_stop" => self.done = true,
            "error" => return Err(failure::in_stream(&ErrorBody::read(data))),
            // "ping", "content_block_stop", and whatever the vendor adds.
            _ => {}
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn finish(
        self: Box<Self>,
        request: &Request,
        origin: Origin<'_>,
    ) -> Result<Answer, ModelError> {
        let reason = self.stop_reason.ok_or_else(broken_off)?;
        let answer_id = named(self.answer_id, request);
        let pieces = self.blocks.into_iter().filter_map(|(_, block, json)| piece(block, json));
        let (pieces, has_calls) = settled(pieces.collect(), &answer_id)?;
        let finish = match reason.as_str() {
            "refusal" => return Err(ModelError::Refused),
            "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            "end_turn" | "stop_sequence" | "tool_use" if has_calls => Finish::ToolCalls,
            "end_turn" | "stop_sequence" => Finish::Stop,
            other => {
                let other = failure::clipped(other);
                let what = format!("an answer without calls ends by \"{other}\"");
                return Err(ModelError::Malformed(what));
            }
        };
        let usage = self.usage.map(|[input, written, read, output]| Usage {
            input_tokens: input.saturating_add(written).saturating_add(read),
            cached_tokens: read,
            output_tokens: output,
        });
        let answer = Answer::of_pieces(pieces, origin, finish);
        Ok(told(answer, request, (answer_id, self.model), usage, origin.model))
    }
}

impl Assembly {
    fn begin(&mut self, head: Head) {
        (self.answer_id, self.model, self.stop_reason) = (head.id, head.model, head.stop_reason);
        self.count(head.usage);
        let whole = head.content.into_iter().enumerate();
        self.blocks = whole.map(|(n, block)| (n, block, String::new())).collect();
    }

    fn add(&mut self, index: usize, delta: Delta) {
        let Some((_, block, json)) = self.blocks.iter_mut().rfind(|(n, ..)| *n == index) else {
            return;
        };
        json.push_str(&delta.partial_json.unwrap_or_default());
        let fields =
            [("text", delta.text), ("thinking", delta.thinking), ("signature", delta.signature)];
        for (name, more) in fields {
            let Some(more) = more else { continue };
            match block.get_mut(name) {
                Some(Value::String(text)) => text.push_str(&more),
                Some(_) | None => drop(block.insert(name.to_owned(), Value::String(more))),
            }
        }
    }

    /// Counts only grow, and an event that leaves one out, or gives it as nought, says nothing of it.
    fn count(&mut self, usage: Option<WireUsage>) {
        let Some(usage) = usage else { return };
        let new = [
            usage.input_tokens,
            usage.cache_creation_input_tokens,
            usage.cache_read_input_tokens,
            usage.output_tokens,
        ];
        let known = self.usage.get_or_insert_default();
        known.iter_mut().zip(new).for_each(|(known, new)| *known = (*known).max(new.unwrap_or(0)));
    }
}

/// What a block is to us. Blocks of other kinds come only of tools of the vendor, which nobody
/// offers.
fn piece(block: Map<String, Value>, json: String) -> Option<Piece> {
    let text = |name| block.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    match text("type").as_str() {
        "text" => Some(Piece::text(text("text"))),
        "tool_use" => {
            let whole = || block.get("input").map(Value::to_string).unwrap_or_default();
            let arguments = if json.is_empty() { whole() } else { json };
            let (id, name) = (text("id"), text("name"));
            Some(Piece::Call(crate::ToolCall { id, name, arguments }))
        }
        "thinking" | "redacted_thinking" => {
            serde_json::value::to_raw_value(&block).ok().map(Piece::Item)
        }
        _ => None,
    }
}
