//! OpenAI Chat Completions: an answer put together from the parts of a stream, or from one complete
//! body. The request is [`Request::body_for`].

use serde::Deserialize;
use serde_json::value::RawValue;

use super::failure::{self, ErrorBody};
use super::{TOOL_CALLS_MAX, broken_off, named, quoted, settled, told, too_many_calls, unreadable};
use crate::vendor::{Origin, Piece};
use crate::{Answer, Finish, ModelError, Request, ToolCall, Usage};

/// A part of a streamed answer, or (with `message` for `delta`) the whole of one.
#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u32,
    #[serde(default, alias = "message")]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    /// Not of OpenAI: what DeepSeek, Kimi and others thought, and want back beside its calls.
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallPart>>,
}

#[derive(Deserialize)]
struct CallPart {
    #[serde(default)]
    index: Option<u32>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionPart>,
}

#[derive(Deserialize)]
struct FunctionPart {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    /// DeepSeek's name for the cached part.
    #[serde(default)]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

impl WireUsage {
    fn usage(&self) -> Usage {
        let details = self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        let cached = details.or(self.prompt_cache_hit_tokens).unwrap_or(0);
        Usage {
            input_tokens: self.prompt_tokens,
            cached_tokens: cached.min(self.prompt_tokens),
            output_tokens: self.completion_tokens,
        }
    }
}

/// What has arrived of an answer.
#[derive(Default)]
pub(super) struct Assembly {
    answer_id: String,
    model: String,
    text: String,
    refusal: String,
    reasoning: Option<String>,
    calls: Vec<(Option<u32>, ToolCall)>,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    done: bool,
}

impl super::Assembly for Assembly {
    fn take(&mut self, data: &[u8]) -> Result<(), ModelError> {
        if data == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        let part: Part = serde_json::from_slice(data).map_err(|error| unreadable(&error))?;
        if let Some(error) = part.error {
            return Err(failure::in_stream(&error));
        }
        let fill = |field: &mut String, value: Option<String>| {
            if field.is_empty() {
                *field = value.unwrap_or_default();
            }
        };
        fill(&mut self.answer_id, part.id);
        fill(&mut self.model, part.model);
        if let Some(usage) = part.usage {
            self.usage = Some(usage.usage());
        }
        for choice in part.choices.into_iter().filter(|choice| choice.index == 0) {
            self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
            if let Some(delta) = choice.delta {
                self.take_delta(delta)?;
            }
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
        let reason = self.finish_reason.ok_or_else(broken_off)?;
        if self.text.is_empty() && !self.refusal.is_empty() {
            return Err(ModelError::Refused);
        }
        let finish = finish_of(&reason, !self.calls.is_empty())?;
        let answer_id = named(self.answer_id, request);
        let thought = self.reasoning.map(|text| {
            let field = format!(r#"{{"reasoning_content":{}}}"#, quoted(&text));
            RawValue::from_string(field).map(Piece::Item)
        });
        let thought = thought.transpose().map_err(|error| unreadable(&error))?;
        let calls = self.calls.into_iter().map(|(_, call)| Piece::Call(call));
        let pieces = thought.into_iter().chain([Piece::text(self.text)]).chain(calls).collect();
        let (pieces, _) = settled(pieces, &answer_id)?;
        let answer = Answer::of_pieces(pieces, origin, finish);
        Ok(told(answer, request, (answer_id, self.model), self.usage, origin.model))
    }
}

impl Assembly {
    fn take_delta(&mut self, delta: Delta) -> Result<(), ModelError> {
        self.text.push_str(delta.content.as_deref().unwrap_or_default());
        self.refusal.push_str(delta.refusal.as_deref().unwrap_or_default());
        if let Some(more) = delta.reasoning_content {
            self.reasoning.get_or_insert_default().push_str(&more);
        }
        for part in delta.tool_calls.unwrap_or_default() {
            let call = self.call_of(&part)?;
            if let Some(function) = part.function {
                call.name.push_str(function.name.as_deref().unwrap_or_default());
                call.arguments.push_str(function.arguments.as_deref().unwrap_or_default());
            }
        }
        Ok(())
    }

    /// The call that a part belongs to: the newest one with its index, or the newest one at all if
    /// the server sends no index. A part that brings a new id starts a new call, since some servers
    /// number all their calls zero.
    fn call_of(&mut self, part: &CallPart) -> Result<&mut ToolCall, ModelError> {
        let id = part.id.as_deref().filter(|id| !id.is_empty());
        let known = self.calls.iter().rposition(|(index, call)| {
            (part.index.is_none() || *index == part.index) && id.is_none_or(|id| id == call.id)
        });
        let place = match known {
            Some(place) => place,
            None if self.calls.len() == TOOL_CALLS_MAX => return Err(too_many_calls()),
            None => {
                let id = id.unwrap_or_default().to_owned();
                let call = ToolCall { id, name: String::new(), arguments: String::new() };
                self.calls.push((part.index, call));
                self.calls.len() - 1
            }
        };
        Ok(&mut self.calls[place].1)
    }
}

fn finish_of(reason: &str, has_calls: bool) -> Result<Finish, ModelError> {
    Ok(match reason {
        "length" => Finish::Length,
        "content_filter" => Finish::ContentFilter,
        // Some servers end an answer with tool calls by "stop".
        "stop" | "tool_calls" | "function_call" if has_calls => Finish::ToolCalls,
        "stop" => Finish::Stop,
        "tool_calls" | "function_call" => {
            let what = "the answer ends for tool calls but has none";
            return Err(ModelError::Malformed(what.to_owned()));
        }
        "insufficient_system_resource" => {
            return Err(ModelError::retry("the server ran out of capacity inside its answer"));
        }
        other => {
            let other = failure::clipped(other);
            return Err(ModelError::Malformed(format!("unknown finish_reason \"{other}\"")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::Assembly;
    use crate::vendor::Origin;
    use crate::wire::Assembly as _;
    use crate::{Answer, Block, Finish, Message, ModelError, Request, ToolCall, Usage, Wire};

    fn request() -> Request {
        let tools = Block::from_stored("[]".to_owned());
        let blocks = vec![Message::User("hi".to_owned()).to_block()];
        Request { blocks, tools, max_output_tokens: 10 }
    }

    fn assembled(parts: &[&str]) -> Result<Answer, ModelError> {
        let mut assembly = Box::<Assembly>::default();
        parts.iter().try_for_each(|part| assembly.take(part.as_bytes()))?;
        assembly.finish(&request(), Origin { wire: Wire::Chat, model: "asked" })
    }

    fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
        ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
    }

    #[test]
    fn parallel_calls_come_together_by_index() {
        let answer = assembled(&[
            r#"{"id":"a1","model":"m1","choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}"#,
            r#"{"id":"a1","choices":[{"delta":{"tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"one","arguments":""}}]}}]}"#,
            r#"{"id":"a1","choices":[{"delta":{"tool_calls":[{"index":1,"id":"c1","function":{"name":"two","arguments":"{\"b\""}}]}}]}"#,
            r#"{"id":"a1","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}},{"index":1,"function":{"arguments":":2}"}}]}}]}"#,
            r#"{"id":"a1","choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
            r#"{"id":"a1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":5}}}"#,
            "[DONE]",
        ]);
        let calls = vec![call("c0", "one", r#"{"a":1}"#), call("c1", "two", r#"{"b":2}"#)];
        let mut expected = Answer::new(None, calls, Finish::ToolCalls);
        expected.usage = Usage { input_tokens: 9, cached_tokens: 5, output_tokens: 4 };
        expected.model = "m1".into();
        expected.answer_id = "a1".into();
        assert_eq!(answer, Ok(expected));
    }

    #[test]
    fn what_a_model_thought_goes_back_to_it_beside_its_calls() {
        let answer = assembled(&[
            r#"{"id":"a","choices":[{"delta":{"reasoning_content":"Look \"","content":null}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_content":"first"}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"one"}}]},"finish_reason":"tool_calls"}]}"#,
        ]);
        let answer = answer.unwrap();
        let calls = vec![call("c", "one", "{}")];
        let plain = Message::Assistant { text: None, tool_calls: calls.clone() }.to_block();
        assert_eq!((answer.text, answer.tool_calls), (None, calls));
        let own = plain.bytes.replace("]}", r#"],"reasoning_content":"Look \"first"}"#);
        let sent = |block: Block, model: &str| {
            let body = Request { blocks: vec![block], ..request() }.body(model);
            let body = String::from_utf8(body).unwrap();
            body.split_once(r#""messages":["#).unwrap().1.strip_suffix("]}").unwrap().to_owned()
        };
        assert_eq!(sent(answer.block.clone(), "asked"), own);
        assert_eq!(sent(answer.block, "other"), *plain.bytes);
    }

    #[test]
    fn servers_with_habits_of_their_own_are_understood() {
        // All calls numbered zero, whole at once, and ended by "stop".
        let zero = r#"{"id":"a","choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"one","arguments":"{}"}},{"index":0,"id":"y","function":{"name":"two"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"prompt_cache_hit_tokens":99}}"#;
        let answer = assembled(&[zero]).unwrap();
        assert_eq!(answer.tool_calls, [call("x", "one", "{}"), call("y", "two", "{}")]);
        let usage = Usage { input_tokens: 3, cached_tokens: 3, output_tokens: 1 };
        assert_eq!((answer.finish, answer.usage), (Finish::ToolCalls, usage));
        // A complete body without usage, ids and model.
        let whole = r#"{"choices":[{"index":0,"message":{"content":"ok","tool_calls":[{"function":{"name":"one","arguments":"{}"}}]},"finish_reason":"length"},{"index":1,"message":{"content":"other"}}]}"#;
        let answer = assembled(&[whole]).unwrap();
        let id = format!("answer-{}", request().digest());
        assert_eq!(answer.tool_calls, [call(&format!("call-0-{id}"), "one", "{}")]);
        let estimate = (request().tokens(), answer.block.tokens);
        assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), estimate);
        assert_eq!(
            (answer.finish, &*answer.model, answer.answer_id),
            (Finish::Length, "asked", id)
        );
    }

    #[test]
    fn an_answer_that_is_none_has_a_class() {
        let class = |parts: &[&str]| assembled(parts).unwrap_err().class();
        assert_eq!(class(&[]), "retry");
        assert_eq!(class(&[r#"{"choices":[{"delta":{"content":"half"}}]}"#, "[DONE]"]), "retry");
        assert_eq!(class(&[r#"{"choices":[{"del"#]), "retry");
        assert_eq!(class(&[r#"{"error":{"message":"overloaded"}}"#]), "retry");
        assert_eq!(class(&[r#"{"error":{"code":"context_length_exceeded"}}"#]), "context");
        assert_eq!(
            class(&[r#"{"choices":[{"delta":{"refusal":"No."},"finish_reason":"stop"}]}"#]),
            "refused"
        );
        assert_eq!(class(&["<html>"]), "malformed");
        assert_eq!(class(&[r#"{"choices":[{"finish_reason":"tool_calls"}]}"#]), "malformed");
        assert_eq!(class(&[r#"{"choices":[{"finish_reason":"mystery"}]}"#]), "malformed");
        let many: Vec<String> =
            (0..129).map(|n| format!(r#"{{"index":{n},"id":"c{n}"}}"#)).collect();
        let many = format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{}]}}}}]}}"#, many.join(","));
        assert_eq!(class(&[&many]), "malformed");
    }
}
