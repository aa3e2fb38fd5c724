//! A model that follows a readable rule file instead of weights, for tests and the demo (EVA-02).
//!
//! The rules are tried in order and the first one that applies decides; if none does, the model
//! says nothing. A rule looks like this; each part but the action may be left out:
//!
//! ```toml
//! [[rule]]
//! about = "words for the reader"
//! last = "tool"                     # whose message is newest: user, tool or assistant
//! user = 'Now: (?<day>\w+)'         # a pattern, or a list of them, in the run's tail
//! not_user = 'never mind'           # none of these may be in the tail
//! # the newest result of a tool in this run
//! tool = { name = "feed.price", result = '"price":(?<price>[0-9.]+)' }
//! called = "tool_schema"            # called in this run; a list means all of them
//! not_called = [{ tool = "send_to_user", arguments = 'price' }]
//! anywhere = 'pattern'              # in any message
//! seen = 'pattern'                  # in a message before the tail, newest first
//! not_seen = 'pattern'
//! compare = ["price < 100"]         # < <= > >= = != between captured numbers and plain ones
//! call = [{ tool = "send_to_user", arguments = { text = "$day: $price" } }]
//! say = "private text"
//! # or: error = "retry"             # context, authentication, quota, refused, malformed
//! ```
//!
//! A habit is a call that goes along with the first answer of each run whose tail has its pattern,
//! whatever rule decides; the first habit that applies and whose tool the request offers:
//!
//! ```toml
//! [[habit]]
//! user = ' from the user'
//! call = { tool = "settle_message", arguments = { stop = false } }
//! ```
//!
//! The tail is the newest message in the user's role, and what follows it is this run. A call
//! through `call_tool` counts as a call of the tool it names too. `$name` stands for what
//! `(?<name>…)` captured, `$$` for a dollar sign; `"$name:number"` becomes a number.

mod file;
mod fill;
mod rule;
mod scripted;
mod view;

pub use scripted::ScriptedModel;

use rule::{Action, Habit, Rule};
use view::View;

use crate::{Answer, Finish, ModelError, Request, ToolCall, Usage};

/// A rule file, read and checked. It has no memory: the same request always gets the same answer.
#[derive(Debug, Clone)]
pub struct Script {
    name: String,
    context_tokens: u64,
    habits: Vec<Habit>,
    rules: Vec<Rule>,
}

/// What is wrong with a rule file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the script: {what}")]
pub struct ScriptError {
    /// Counted from one.
    pub line: usize,
    /// What is wrong and what to write instead.
    pub what: String,
}

impl Script {
    /// Reads a rule file. Unknown words, patterns that do not compile, names that nothing captures
    /// and rules without an action are errors.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        file::parse(text)
    }

    /// The model's name, `scripted` unless the file says otherwise.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The estimated tokens that a request may have, 100 000 unless the file says otherwise.
    pub fn context_tokens(&self) -> u64 {
        self.context_tokens
    }

    /// Answers the body of a chat completions request.
    pub fn answer(&self, body: &[u8]) -> Result<Answer, ModelError> {
        let request = Request::from_body(body);
        self.answer_request(&request.map_err(|error| ModelError::Malformed(error.to_string()))?)
    }

    /// Answers a request. The ids in the answer come from the request's digest; the usage is an
    /// estimate without a cache.
    pub fn answer_request(&self, request: &Request) -> Result<Answer, ModelError> {
        if request.tokens() > self.context_tokens {
            return Err(ModelError::Context);
        }
        let view = View::of(request)?;
        let digest = request.digest().to_string();
        let id = &digest[..16];
        let found = self.rules.iter().find_map(|rule| Some((rule, rule.matches(&view)?)));
        let (say, calls) = match found {
            None => (None, Vec::new()),
            Some((rule, captures)) => match &rule.action {
                Action::Fail(failure) => return Err(failure.error()),
                Action::Answer { say, calls } => {
                    let numbered = calls.iter().enumerate();
                    let call = |(n, call): (usize, &rule::CallTemplate)| {
                        call.call(format!("call-{id}-{n}"), &captures)
                    };
                    let say = say.as_ref().map(|say| fill::text(say, &captures));
                    (say, numbered.map(call).collect())
                }
            },
        };
        let calls = self.with_habit(request, &view, id, calls);
        let finish = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        let mut answer = Answer::new(say, calls, finish);
        answer.usage = Usage {
            input_tokens: request.tokens(),
            cached_tokens: 0,
            output_tokens: answer.block.tokens,
        };
        answer.model = self.name.clone();
        answer.answer_id = format!("scripted-{id}");
        Ok(answer)
    }

    /// The calls of an answer, after the one of the habit that applies.
    fn with_habit(
        &self,
        request: &Request,
        view: &View,
        id: &str,
        calls: Vec<ToolCall>,
    ) -> Vec<ToolCall> {
        let Some(tail) = view.tail() else { return calls };
        let Some(habit) = self.habits.iter().find(|habit| habit.user.is_match(tail)) else {
            return calls;
        };
        let tool = &habit.call.tool;
        let offered = request.tools.bytes.contains(&format!("\"name\":\"{tool}\""));
        let called = |call: &ToolCall| view::is_of(call, tool);
        if !offered || view.calls().any(called) || calls.iter().any(called) {
            return calls;
        }
        let own = habit.call.call(format!("call-{id}-habit"), &Default::default());
        std::iter::once(own).chain(calls).collect()
    }
}

#[cfg(test)]
mod tests;
