//! One rule: when it applies, and what the scripted model then does.

use regex_lite::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::fill::{self, Captures};
use super::view::{View, is_of};
use crate::{Message, ModelError, ToolCall};

/// A rule that was checked: its patterns compile and its texts refer only to names they capture.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) last: Option<Last>,
    pub(super) user: Vec<Regex>,
    pub(super) not_user: Vec<Regex>,
    pub(super) tool: Option<(String, Regex)>,
    pub(super) called: Vec<CallTest>,
    pub(super) not_called: Vec<CallTest>,
    pub(super) anywhere: Option<Regex>,
    pub(super) seen: Option<Regex>,
    pub(super) not_seen: Option<Regex>,
    pub(super) compare: Vec<Comparison>,
    pub(super) action: Action,
}

/// A call that goes along with the first answer of each run whose tail has the pattern.
#[derive(Debug, Clone)]
pub(super) struct Habit {
    pub(super) user: Regex,
    pub(super) call: CallTemplate,
}

/// Whose message is the newest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Last {
    User,
    Tool,
    Assistant,
}

/// A call of this run by its tool, and by its arguments where that matters.
#[derive(Debug, Clone)]
pub(super) struct CallTest {
    pub(super) tool: String,
    pub(super) arguments: Option<Regex>,
}

/// A captured number against a number or another captured one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Comparison {
    pub(super) left: String,
    pub(super) sign: Sign,
    pub(super) right: Operand,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    Number(f64),
    Name(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// What a rule does.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Answer { say: Option<String>, calls: Vec<CallTemplate> },
    Fail(Failure),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallTemplate {
    pub(super) tool: String,
    #[serde(default = "no_arguments")]
    pub(super) arguments: Value,
}

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

/// The failures that a rule can play.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Failure {
    Retry,
    Context,
    Authentication,
    Quota,
    Refused,
    Malformed,
}

impl Failure {
    pub(super) fn error(self) -> ModelError {
        match self {
            Failure::Retry => ModelError::retry("a rule of the script says so"),
            Failure::Context => ModelError::Context,
            Failure::Authentication => ModelError::Authentication,
            Failure::Quota => ModelError::Quota,
            Failure::Refused => ModelError::Refused,
            Failure::Malformed => ModelError::Malformed("a rule of the script says so".to_owned()),
        }
    }
}

impl Rule {
    /// What the patterns captured, if every condition holds.
    pub(super) fn matches(&self, view: &View) -> Option<Captures> {
        let mut captures = Captures::new();
        let tail = view.tail().unwrap_or_default();
        let holds = self.last.is_none_or(|last| view.last().is_some_and(|m| last.is_role_of(m)))
            && self.user.iter().all(|pattern| capture(pattern, tail, &mut captures))
            && !self.not_user.iter().any(|pattern| pattern.is_match(tail))
            && self.called.iter().all(|test| view.calls().any(|call| test.holds(call)))
            && !self.not_called.iter().any(|test| view.calls().any(|call| test.holds(call)))
            && self.tool.as_ref().is_none_or(|(tool, pattern)| {
                view.result(tool).is_some_and(|text| capture(pattern, text, &mut captures))
            })
            && self.anywhere.as_ref().is_none_or(|pattern| {
                view.everything().any(|text| capture(pattern, &text, &mut captures))
            })
            && self.seen.as_ref().is_none_or(|pattern| {
                view.seen().any(|text| capture(pattern, &text, &mut captures))
            })
            && !self
                .not_seen
                .as_ref()
                .is_some_and(|pattern| view.seen().any(|text| pattern.is_match(&text)))
            && self.compare.iter().all(|comparison| comparison.holds(&captures));
        holds.then_some(captures)
    }
}

/// Whether `pattern` is found; keeps what its named groups found.
fn capture(pattern: &Regex, text: &str, captures: &mut Captures) -> bool {
    let Some(found) = pattern.captures(text) else { return false };
    for name in pattern.capture_names().flatten() {
        let words = found.name(name).map_or("", |words| words.as_str());
        captures.insert(name.to_owned(), words.to_owned());
    }
    true
}

impl Last {
    fn is_role_of(self, message: &Message) -> bool {
        match message {
            Message::System(_) => false,
            Message::User(_) => self == Last::User,
            Message::Assistant { .. } => self == Last::Assistant,
            Message::Tool { .. } => self == Last::Tool,
        }
    }
}

impl CallTest {
    fn holds(&self, call: &ToolCall) -> bool {
        let arguments = self.arguments.as_ref();
        is_of(call, &self.tool) && arguments.is_none_or(|pattern| pattern.is_match(&call.arguments))
    }
}

impl CallTemplate {
    pub(super) fn call(&self, id: String, captures: &Captures) -> ToolCall {
        let arguments = fill::value(&self.arguments, captures).to_string();
        ToolCall { id, name: fill::text(&self.tool, captures), arguments }
    }
}

impl Comparison {
    /// Reads `price < 100`.
    pub(super) fn parse(text: &str) -> Option<Comparison> {
        let mut words = text.split_whitespace();
        let (left, sign, right) = (words.next()?, words.next()?, words.next()?);
        let sign = match sign {
            "<" => Sign::Less,
            "<=" => Sign::LessOrEqual,
            ">" => Sign::Greater,
            ">=" => Sign::GreaterOrEqual,
            "=" => Sign::Equal,
            "!=" => Sign::NotEqual,
            _ => return None,
        };
        let right = match right.parse() {
            Ok(number) => Operand::Number(number),
            Err(_) => Operand::Name(right.to_owned()),
        };
        words.next().is_none().then(|| Comparison { left: left.to_owned(), sign, right })
    }

    /// False also where a side is no number.
    fn holds(&self, captures: &Captures) -> bool {
        let number =
            |name: &str| captures.get(name).and_then(|text| text.trim().parse::<f64>().ok());
        let right = match &self.right {
            Operand::Number(number) => Some(*number),
            Operand::Name(name) => number(name),
        };
        let Some((left, right)) = number(&self.left).zip(right) else { return false };
        match self.sign {
            Sign::Less => left < right,
            Sign::LessOrEqual => left <= right,
            Sign::Greater => left > right,
            Sign::GreaterOrEqual => left >= right,
            Sign::Equal => left == right,
            Sign::NotEqual => left != right,
        }
    }
}
