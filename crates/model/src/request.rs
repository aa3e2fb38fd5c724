//! What is asked: stored blocks, joined byte for byte into a request body.

use base::Digest;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::vendor::{Function, Origin, Tool};
use crate::{Block, ModelError, OutputField, Wire};

/// One question to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The messages, oldest first.
    pub blocks: Vec<Block>,
    /// The JSON array of tool definitions, serialised once; `[]` for none.
    pub tools: Block,
    /// The most tokens the answer may have.
    pub max_output_tokens: u32,
}

/// A body that is no Chat Completions request.
#[derive(Debug, thiserror::Error)]
#[error("this is no chat completions request: {0}; send \"model\" and \"messages\" as JSON")]
pub struct RequestError(#[from] serde_json::Error);

impl Request {
    /// The request body for a server of the OpenAI kind, answered as a stream.
    ///
    /// Everything before the messages depends on the model, the limit and the tools only, and the
    /// messages come last: as long as those stay, the body of a longer conversation starts with all
    /// bytes of the shorter one up to its last message, so a provider's prefix cache keeps (CTX-05,
    /// CTX-06).
    pub fn body(&self, model: &str) -> Vec<u8> {
        self.body_for(model, OutputField::MaxTokens, None)
    }

    /// As [`Request::body`], with the output limit under the name that the server wants, and with a
    /// word for how much the model is to think.
    pub(crate) fn body_for(
        &self,
        model: &str,
        output_field: OutputField,
        effort: Option<&str>,
    ) -> Vec<u8> {
        let origin = Origin { wire: Wire::Chat, model };
        let model = serde_json::Value::from(model).to_string();
        let limit_name = output_field.name();
        let limit = self.max_output_tokens;
        let mut body = format!(
            r#"{{"model":{model},"stream":true,"stream_options":{{"include_usage":true}},"{limit_name}":{limit}"#
        );
        if let Some(effort) = effort {
            let effort = serde_json::Value::from(effort);
            body.push_str(&format!(r#","reasoning_effort":{effort}"#));
        }
        if self.has_tools() {
            // A server refuses `parallel_tool_calls` in a request without tools.
            body.push_str(r#","parallel_tool_calls":true,"tools":"#);
            body.push_str(&self.tools.bytes);
        }
        body.push_str(r#","messages":["#);
        for (n, block) in self.blocks.iter().enumerate() {
            if n > 0 {
                body.push(',');
            }
            body.push_str(&block.chat(origin));
        }
        body.push_str("]}");
        body.into_bytes()
    }

    /// Reads a request back from a body, each block with the very bytes it has there. This is how a
    /// server gets the same [`Request::digest`] as its client.
    pub fn from_body(body: &[u8]) -> Result<Request, RequestError> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            messages: Vec<&'a RawValue>,
            #[serde(borrow, default)]
            tools: Option<&'a RawValue>,
            #[serde(default, alias = "max_completion_tokens")]
            max_tokens: Option<u32>,
        }
        let body: Body<'_> = serde_json::from_slice(body)?;
        let stored = |raw: &RawValue| Block::from_stored(raw.get().to_owned());
        Ok(Request {
            blocks: body.messages.into_iter().map(stored).collect(),
            tools: body.tools.map_or_else(|| Block::from_stored("[]".to_owned()), stored),
            max_output_tokens: body.max_tokens.unwrap_or(u32::MAX),
        })
    }

    /// The identity of the question, whatever the model: the same blocks, tools and limit give the
    /// same digest.
    pub fn digest(&self) -> Digest {
        let limit = self.max_output_tokens.to_be_bytes();
        let fixed = [&limit[..], self.tools.digest.as_bytes()];
        let blocks = self.blocks.iter().map(|block| &block.digest.as_bytes()[..]);
        Digest::of_parts(fixed.into_iter().chain(blocks))
    }

    /// The estimated tokens of all blocks and tools.
    pub fn tokens(&self) -> u64 {
        self.blocks.iter().fold(self.tools.tokens, |sum, block| sum.saturating_add(block.tokens))
    }

    /// The tools, read for a wire that spells them in another way.
    pub(crate) fn functions(&self) -> Result<Vec<Function<'_>>, ModelError> {
        let tools: Vec<Tool<'_>> = serde_json::from_str(&self.tools.bytes).map_err(|error| {
            ModelError::Malformed(format!("the tools are no array of functions: {error}"))
        })?;
        Ok(tools.into_iter().map(|tool| tool.function).collect())
    }

    /// The name of the prefix that the requests of one conversation share; `None` for a question
    /// without tools, which stands alone.
    pub(crate) fn prefix_name(&self) -> Option<String> {
        let first = self.blocks.first().filter(|_| self.has_tools())?;
        let parts = [&self.tools.digest.as_bytes()[..], &first.digest.as_bytes()[..]];
        Some(Digest::of_parts(parts).to_string()[..32].to_owned())
    }

    pub(crate) fn has_tools(&self) -> bool {
        let inner = self.tools.bytes.trim().strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        !inner.is_none_or(|inner| inner.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::Request;
    use crate::{Block, Message};

    fn request(blocks: usize, tools: &str) -> Request {
        let block = |n: usize| Message::User(format!("message {n}")).to_block();
        Request {
            blocks: (0..blocks).map(block).collect(),
            tools: Block::from_stored(tools.to_owned()),
            max_output_tokens: 100,
        }
    }

    #[test]
    fn a_longer_conversation_starts_with_the_bytes_of_the_shorter_one() {
        for tools in ["[]", r#"[{"type":"function","function":{"name":"ask"}}]"#] {
            let long = request(9, tools).body("m");
            for n in 1..9 {
                let short = request(n, tools).body("m");
                let shared = short.strip_suffix(b"]}").unwrap();
                assert_eq!(&long[..shared.len()], shared);
            }
        }
    }

    #[test]
    fn the_body_is_a_chat_completions_request() {
        let text = |request: &Request| String::from_utf8(request.body("a\"b")).unwrap();
        assert_eq!(
            text(&request(2, " [ ] ")),
            r#"{"model":"a\"b","stream":true,"stream_options":{"include_usage":true},"max_tokens":100,"messages":[{"role":"user","content":"message 0"},{"role":"user","content":"message 1"}]}"#
        );
        assert_eq!(
            text(&request(1, "[{}]")),
            r#"{"model":"a\"b","stream":true,"stream_options":{"include_usage":true},"max_tokens":100,"parallel_tool_calls":true,"tools":[{}],"messages":[{"role":"user","content":"message 0"}]}"#
        );
    }

    #[test]
    fn a_body_reads_back_as_the_same_request() {
        for tools in ["[]", r#"[{"type" : "function"}]"#] {
            let asked = request(3, tools);
            let read = Request::from_body(&asked.body("m")).unwrap();
            assert_eq!((&read, read.digest()), (&asked, asked.digest()));
        }
        assert!(Request::from_body(b"{}").is_err());
        assert_ne!(request(2, "[]").digest(), request(3, "[]").digest());
        assert_ne!(request(2, "[]").digest(), request(2, "[{}]").digest());
    }
}
