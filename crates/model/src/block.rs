//! One chat message, serialised exactly once. Its bytes are what is stored, hashed and sent.

use std::borrow::Cow;
use std::sync::Arc;

use base::Digest;
use serde::{Deserialize, Serialize};

use crate::estimate_tokens;
use crate::vendor::{Origin, Vendor};

/// One chat message (or the array of tool definitions) as JSON text that never changes again.
///
/// The stored form is that of OpenAI Chat Completions, whatever the wire; an assistant message may have
/// one more field, its last: what only the vendor of that answer can read. The wires render a block
/// from these bytes and nothing else. In JSON a block is a string that holds its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The JSON text, byte for byte as it was serialised.
    pub bytes: Arc<str>,
    /// SHA-256 of `bytes`.
    pub digest: Digest,
    /// [`estimate_tokens`] of `bytes`.
    pub tokens: u64,
}

impl Block {
    /// Takes text that was serialised before, as it was stored. The text is not parsed.
    pub fn from_stored(text: String) -> Block {
        let digest = Digest::of(text.as_bytes());
        let tokens = estimate_tokens(&text);
        Block { bytes: Arc::from(text), digest, tokens }
    }

    /// Reads the message back out of its bytes.
    pub fn message(&self) -> Result<Message, BlockError> {
        let fail = |why: String| BlockError { digest: self.digest, why };
        let wire: WireMessage =
            serde_json::from_str(&self.plain()).map_err(|error| fail(error.to_string()))?;
        wire.into_message().map_err(|missing| fail(format!("it lacks \"{missing}\"")))
    }

    /// The same message as JSON that any vendor can read.
    ///
    /// The vendor's field is found without parsing: in a JSON string its quotes would be escaped, so
    /// these bytes stand nowhere else.
    pub(crate) fn plain(&self) -> Cow<'_, str> {
        match self.bytes.find(VENDOR_FIELD) {
            Some(at) => Cow::Owned(format!("{}}}", &self.bytes[..at])),
            None => Cow::Borrowed(&self.bytes),
        }
    }

    /// The message as [`crate::Wire::Chat`] sends it: plain, and with its thinking to whom that is of.
    pub(crate) fn chat(&self, origin: Origin<'_>) -> Cow<'_, str> {
        let plain = self.plain();
        match self.vendor().and_then(|own| own.first_item(origin)) {
            // One object more in the object.
            Some(item) => {
                let (open, fields) =
                    (&plain[..plain.len() - 1], item.get().trim_start_matches('{'));
                Cow::Owned(format!("{open},{fields}"))
            }
            None => plain,
        }
    }

    /// What only the vendor of this answer can read, if it sent such.
    pub(crate) fn vendor(&self) -> Option<Vendor> {
        self.bytes.contains(VENDOR_FIELD).then_some(())?;
        serde_json::from_str::<WireMessage>(&self.bytes).ok()?.vendor
    }
}

impl Serialize for Block {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.bytes)
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Block::from_stored)
    }
}

/// A stored block that is no chat message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("block {digest} is no chat message: {why}; restore the row from a backup")]
pub struct BlockError {
    /// Which block.
    pub digest: Digest,
    /// What is wrong with it.
    pub why: String,
}

/// A chat message by its role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Standing instructions.
    System(String),
    /// What the harness tells the model: a run's tail.
    User(String),
    /// What the model answered.
    Assistant {
        /// Private text; never an empty string.
        text: Option<String>,
        /// The tools it wants called, in the order it named them.
        tool_calls: Vec<ToolCall>,
    },
    /// The result of one tool call.
    Tool {
        /// The [`ToolCall::id`] it answers.
        call_id: String,
        /// What the tool returned.
        text: String,
    },
}

impl Message {
    /// Serialises the message, always with the same bytes for the same message.
    pub fn to_block(&self) -> Block {
        self.with_vendor(None)
    }

    /// As [`Message::to_block`], with what only the vendor of this answer can read.
    pub(crate) fn with_vendor(&self, vendor: Option<Vendor>) -> Block {
        let message = WireMessage { vendor, ..WireMessage::from_message(self) };
        let text = match serde_json::to_string(&message) {
            Ok(text) => text,
            // Only a map with keys that are no strings, or a failing writer, could get here.
            Err(error) => unreachable!("a message of strings always serialises: {error}"),
        };
        Block::from_stored(text)
    }
}

/// One call the model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's own name for this call; the tool result refers to it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as JSON text, exactly as the model wrote them (perhaps not valid JSON).
    pub arguments: String,
}

/// A message in wire form. Fields are written in this order.
#[derive(Serialize, Deserialize)]
pub(crate) struct WireMessage {
    role: Role,
    #[serde(default)]
    pub(crate) content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_calls: Option<Vec<WireToolCall>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vendor: Option<Vendor>,
}

/// How the last field of a [`WireMessage`] begins.
const VENDOR_FIELD: &str = r#","vendor":{"wire":"#;

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct WireToolCall {
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default, rename = "type")]
    kind: ToolKind,
    pub(crate) function: WireFunction,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ToolKind {
    #[default]
    Function,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct WireFunction {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) arguments: String,
}

impl WireMessage {
    fn from_message(message: &Message) -> WireMessage {
        let plain = |role, text: &str| WireMessage {
            role,
            content: Some(text.to_owned()),
            tool_calls: None,
            tool_call_id: None,
            vendor: None,
        };
        match message {
            Message::System(text) => plain(Role::System, text),
            Message::User(text) => plain(Role::User, text),
            Message::Tool { call_id, text } => {
                WireMessage { tool_call_id: Some(call_id.clone()), ..plain(Role::Tool, text) }
            }
            Message::Assistant { text, tool_calls } => {
                let text = text.clone().filter(|text| !text.is_empty());
                let calls: Vec<_> = tool_calls.iter().map(WireToolCall::from_call).collect();
                // Several servers refuse null content in a message without tool calls.
                let content = if calls.is_empty() { Some(text.unwrap_or_default()) } else { text };
                let tool_calls = (!calls.is_empty()).then_some(calls);
                let (tool_call_id, vendor) = (None, None);
                WireMessage { role: Role::Assistant, content, tool_calls, tool_call_id, vendor }
            }
        }
    }

    fn into_message(self) -> Result<Message, &'static str> {
        Ok(match self.role {
            Role::System => Message::System(self.content.ok_or("content")?),
            Role::User => Message::User(self.content.ok_or("content")?),
            Role::Tool => Message::Tool {
                call_id: self.tool_call_id.ok_or("tool_call_id")?,
                text: self.content.ok_or("content")?,
            },
            Role::Assistant => Message::Assistant {
                text: self.content.filter(|text| !text.is_empty()),
                tool_calls: self
                    .tool_calls
                    .unwrap_or_default()
                    .into_iter()
                    .map(WireToolCall::into_call)
                    .collect(),
            },
        })
    }
}

impl WireToolCall {
    fn from_call(call: &ToolCall) -> WireToolCall {
        let function = WireFunction { name: call.name.clone(), arguments: call.arguments.clone() };
        WireToolCall { id: call.id.clone(), kind: ToolKind::Function, function }
    }

    pub(crate) fn into_call(self) -> ToolCall {
        ToolCall { id: self.id, name: self.function.name, arguments: self.function.arguments }
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, Message, ToolCall};

    #[track_caller]
    fn check(message: Message, stored: &str) {
        let block = message.to_block();
        assert_eq!(&*block.bytes, stored);
        assert_eq!(block.message(), Ok(message));
        let json = serde_json::to_string(&block).unwrap();
        assert_eq!(serde_json::from_str::<Block>(&json).unwrap(), block);
    }

    #[test]
    fn messages_have_one_stored_form() {
        check(
            Message::System("Be \"quiet\".".into()),
            r#"{"role":"system","content":"Be \"quiet\"."}"#,
        );
        check(Message::User("每天\n看".into()), r#"{"role":"user","content":"每天\n看"}"#);
        check(
            Message::Tool { call_id: "c1".into(), text: "{}".into() },
            r#"{"role":"tool","content":"{}","tool_call_id":"c1"}"#,
        );
        check(
            Message::Assistant { text: None, tool_calls: vec![] },
            r#"{"role":"assistant","content":""}"#,
        );
        let call = ToolCall { id: "c1".into(), name: "ask".into(), arguments: r#"{"a":1}"#.into() };
        check(
            Message::Assistant { text: None, tool_calls: vec![call] },
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"ask","arguments":"{\"a\":1}"}}]}"#,
        );
    }

    #[test]
    fn a_block_that_is_no_message_says_why() {
        let why = |text: &str| Block::from_stored(text.to_owned()).message().unwrap_err().why;
        assert_eq!(why(r#"{"role":"tool","content":"x"}"#), "it lacks \"tool_call_id\"");
        assert_eq!(why(r#"{"role":"user","content":null}"#), "it lacks \"content\"");
        assert!(why("[]").contains("invalid"), "{}", why("[]"));
    }
}
