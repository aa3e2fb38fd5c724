//! A look that a program makes before anybody is woken: a read call and a comparison.
//!
//! A look *meets* its test when it is so now and was not so at the look before; so a price that
//! stays below its mark wakes once, and again after it has been above it.

use base::Digest;
use serde_json::{Map, Number, Value};

use crate::words::Language;

/// What a program looks at, and what must have come of it for the agent to be woken.
///
/// As JSON
/// `{"tool":"feed.price","arguments":{"item":"x"},"path":"price","when":"below","value":100}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "CheckForm", into = "CheckForm")]
pub struct Check {
    /// The full name of a read tool.
    pub tool: String,
    /// The call's arguments.
    pub arguments: Map<String, Value>,
    /// Where in the JSON answer to look: names of fields and numbers of items, with dots between.
    /// `None`: the whole text.
    pub path: Option<String>,
    /// What must have come of it.
    pub test: Test,
}

/// What must have come of a look.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Test {
    /// Another value than at the look before. The first look is only remembered.
    Changed,
    /// A number below this one.
    Below(Number),
    /// A number above this one.
    Above(Number),
    /// A text with this in it, whatever the case of its letters.
    Contains(String),
}

/// What came of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody is woken.
    Unchanged {
        /// What is to be remembered now.
        now: String,
    },
    /// The agent is woken.
    Met {
        /// What was remembered of the look before, if there was one.
        was: Option<String>,
        /// What is to be remembered now.
        now: String,
    },
    /// The answer could not be compared, and why. What was remembered stays.
    Unreadable(String),
}

/// Why a look cannot be made. The model reads these and drafts again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// A comparison without its number.
    #[error("a check with \"{0}\" needs a number as its value, such as 100")]
    Number(&'static str),
    /// A search without its text.
    #[error("a check with \"contains\" needs a text as its value")]
    Text,
    /// A value where none belongs.
    #[error("a check with \"changed\" has no value; leave it out")]
    Unwanted,
}

#[derive(Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckForm {
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    when: When,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
}

#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum When {
    Changed,
    Below,
    Above,
    Contains,
}

impl TryFrom<CheckForm> for Check {
    type Error = CheckError;

    fn try_from(form: CheckForm) -> Result<Self, CheckError> {
        let CheckForm { tool, arguments, path, when, value } = form;
        let number = |word| match &value {
            Some(Value::Number(number)) => Ok(number.clone()),
            Some(Value::String(text)) => serde_json::from_str(text).map_err(|_| word),
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {
                Err(word)
            }
        };
        let test = match when {
            When::Changed if value.is_some() => return Err(CheckError::Unwanted),
            When::Changed => Test::Changed,
            When::Below => Test::Below(number("below").map_err(CheckError::Number)?),
            When::Above => Test::Above(number("above").map_err(CheckError::Number)?),
            When::Contains => {
                let text = value.as_ref().and_then(Value::as_str).filter(|text| !text.is_empty());
                Test::Contains(text.ok_or(CheckError::Text)?.to_owned())
            }
        };
        Ok(Check { tool, arguments, path, test })
    }
}

impl From<Check> for CheckForm {
    fn from(check: Check) -> Self {
        let Check { tool, arguments, path, test } = check;
        let (when, value) = match test {
            Test::Changed => (When::Changed, None),
            Test::Below(number) => (When::Below, Some(Value::Number(number))),
            Test::Above(number) => (When::Above, Some(Value::Number(number))),
            Test::Contains(text) => (When::Contains, Some(Value::String(text))),
        };
        CheckForm { tool, arguments, path, when, value }
    }
}

/// Longer values are remembered by their digest, in bytes.
const REMEMBERED_MAX: usize = 500;
/// Of a line that contains what was searched for, in characters.
const LINE_MAX: usize = 200;

impl Check {
    /// What an answer says at the path, in the form to be remembered until the next look: the
    /// value, or its digest if it is long; a number as text; the first line that contains the text
    /// searched for, empty if none does. The error says why there is no such thing in the answer.
    pub fn reading(&self, answer: &str) -> Result<String, String> {
        let found = match &self.path {
            None => Value::String(answer.to_owned()),
            Some(path) => at_path(answer, path)?,
        };
        let text = match &found {
            Value::String(text) => text.clone(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => found.to_string(),
        };
        match &self.test {
            Test::Changed if text.len() > REMEMBERED_MAX => {
                Ok(format!("{} bytes with digest {}", text.len(), Digest::of(text.as_bytes())))
            }
            Test::Changed => Ok(text),
            Test::Below(_) | Test::Above(_) => {
                let text = text.trim();
                let shown: String = text.chars().take(40).collect();
                number(text).map(|_| text.to_owned()).ok_or(format!("\"{shown}\" is no number"))
            }
            Test::Contains(wanted) => {
                let wanted = wanted.to_lowercase();
                let line = text.lines().find(|line| line.to_lowercase().contains(&wanted));
                let within = || text.to_lowercase().contains(&wanted).then_some(wanted.as_str());
                let line = line.or_else(within).unwrap_or_default();
                Ok(line.trim().chars().take(LINE_MAX).collect())
            }
        }
    }

    fn holds(&self, reading: &str) -> bool {
        let compared = |mark: &Number| Some((number(reading)?, mark.as_f64()?));
        match &self.test {
            Test::Changed => false,
            Test::Below(mark) => compared(mark).is_some_and(|(read, mark)| read < mark),
            Test::Above(mark) => compared(mark).is_some_and(|(read, mark)| read > mark),
            Test::Contains(_) => !reading.is_empty(),
        }
    }

    pub(super) fn arguments_text(&self) -> String {
        Value::Object(self.arguments.clone()).to_string()
    }

    /// The look in plain words, for cards: `feed.price {"item":"x"} price is below 100`.
    pub fn words(&self, language: Language) -> String {
        let test = match (&self.test, language) {
            (Test::Changed, _) => language.pick("has changed", "有变化").to_owned(),
            (Test::Below(mark), Language::En) => format!("is below {mark}"),
            (Test::Below(mark), Language::Zh) => format!("低于 {mark}"),
            (Test::Above(mark), Language::En) => format!("is above {mark}"),
            (Test::Above(mark), Language::Zh) => format!("高于 {mark}"),
            (Test::Contains(text), Language::En) => format!("contains \"{text}\""),
            (Test::Contains(text), Language::Zh) => format!("含有“{text}”"),
        };
        let (tool, arguments) = (&self.tool, self.arguments_text());
        match (self.path.as_deref(), language) {
            (path, Language::En) => {
                format!("{} of {tool} {arguments} {test}", path.unwrap_or("its answer"))
            }
            (Some(path), Language::Zh) => format!("{tool} {arguments} 的 {path} {test}"),
            (None, Language::Zh) => format!("{tool} {arguments} 的答复{test}"),
        }
    }
}

/// Whether a look wakes anybody, given the [`reading`](Check::reading) of the look before.
pub fn check_verdict(check: &Check, last: Option<&str>, answer: &str) -> Verdict {
    let now = match check.reading(answer) {
        Ok(now) => now,
        Err(why) => return Verdict::Unreadable(why),
    };
    let met = match check.test {
        Test::Changed => last.is_some_and(|last| last != now),
        Test::Below(_) | Test::Above(_) | Test::Contains(_) => {
            check.holds(&now) && !last.is_some_and(|last| check.holds(last))
        }
    };
    match met {
        true => Verdict::Met { was: last.map(str::to_owned), now },
        false => Verdict::Unchanged { now },
    }
}

/// A finite number, as JSON or plain text writes it. Compared as a 64-bit float: two amounts of the
/// same digits are equal, which is what a mark needs.
fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse().ok().filter(|number: &f64| plain && number.is_finite())
}

fn at_path(answer: &str, path: &str) -> Result<Value, String> {
    let found: Value =
        serde_json::from_str(answer).map_err(|_| "the answer is no JSON".to_owned())?;
    let value = crate::path::get(&found, path).cloned();
    value.ok_or_else(|| format!("the answer has nothing at \"{path}\""))
}
