//! What a rule can look at: the messages of a request, and which of them belong to this run.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Message, ModelError, Request, ToolCall};

/// The tool through which others are called by name.
const CALL_TOOL: &str = "call_tool";

/// The messages of a request. The newest one in the user's role is the run's tail; what follows it
/// is this run.
pub(super) struct View {
    messages: Vec<Message>,
    /// How many messages stand before the tail.
    history: usize,
}

impl View {
    pub(super) fn of(request: &Request) -> Result<View, ModelError> {
        let messages = request.blocks.iter().map(|block| block.message());
        let messages = messages.collect::<Result<Vec<_>, _>>();
        let messages = messages.map_err(|error| ModelError::Malformed(error.to_string()))?;
        let tail = messages.iter().rposition(|message| matches!(message, Message::User(_)));
        let history = tail.unwrap_or(messages.len());
        Ok(View { messages, history })
    }

    pub(super) fn last(&self) -> Option<&Message> {
        self.messages.last()
    }

    /// The newest message in the user's role.
    pub(super) fn tail(&self) -> Option<&str> {
        match self.messages.get(self.history)? {
            Message::User(text) => Some(text),
            Message::System(_) | Message::Assistant { .. } | Message::Tool { .. } => None,
        }
    }

    /// The texts of all messages.
    pub(super) fn everything(&self) -> impl Iterator<Item = String> {
        self.messages.iter().map(text_of)
    }

    /// The texts before the tail, newest first, without the standing instructions.
    pub(super) fn seen(&self) -> impl Iterator<Item = String> {
        let is_said = |message: &&Message| !matches!(message, Message::System(_));
        self.messages[..self.history].iter().rev().filter(is_said).map(text_of)
    }

    /// The calls of this run.
    pub(super) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.messages[self.history..].iter().flat_map(calls_of)
    }

    /// The newest result in this run of a tool, named directly or through `call_tool`.
    pub(super) fn result(&self, tool: &str) -> Option<&str> {
        let calls = self.messages.iter().flat_map(calls_of);
        let calls: BTreeMap<&str, &ToolCall> = calls.map(|call| (&*call.id, call)).collect();
        self.messages[self.history..].iter().rev().find_map(|message| match message {
            Message::Tool { call_id, text } => {
                calls.get(&**call_id).filter(|call| is_of(call, tool)).map(|_| text.as_str())
            }
            Message::System(_) | Message::User(_) | Message::Assistant { .. } => None,
        })
    }
}

/// Whether a call goes to `tool`, directly or through `call_tool`.
pub(super) fn is_of(call: &ToolCall, tool: &str) -> bool {
    if call.name == tool {
        return true;
    }
    let inner = || serde_json::from_str::<Value>(&call.arguments).ok();
    call.name == CALL_TOOL && inner().is_some_and(|inner| inner["name"] == tool)
}

fn calls_of(message: &Message) -> &[ToolCall] {
    match message {
        Message::Assistant { tool_calls, .. } => tool_calls,
        Message::System(_) | Message::User(_) | Message::Tool { .. } => &[],
    }
}

/// All words of a message, the calls of an assistant included, one per line.
fn text_of(message: &Message) -> String {
    match message {
        Message::System(text) | Message::User(text) | Message::Tool { text, .. } => text.clone(),
        Message::Assistant { text, tool_calls } => {
            let mut words = text.clone().unwrap_or_default();
            for call in tool_calls {
                words = format!("{words}\n{} {}", call.name, call.arguments);
            }
            words
        }
    }
}
