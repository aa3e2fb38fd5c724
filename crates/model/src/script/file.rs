//! The rule file: read strictly, every mistake with its line.

use regex_lite::Regex;
use serde::Deserialize;
use toml::Spanned;

use super::fill;
use super::rule::{
    Action, CallTemplate, CallTest, Comparison, Failure, Habit, Last, Operand, Rule,
};
use super::{Script, ScriptError};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "default_name")]
    name: String,
    #[serde(default = "default_context_tokens")]
    context_tokens: u64,
    #[serde(default)]
    habit: Vec<Spanned<HabitText>>,
    #[serde(default)]
    rule: Vec<Spanned<RuleText>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HabitText {
    user: String,
    call: CallTemplate,
}

fn default_name() -> String {
    "scripted".to_owned()
}

fn default_context_tokens() -> u64 {
    100_000
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    /// Words for whoever reads the file.
    #[serde(rename = "about", default)]
    _about: String,
    last: Option<Last>,
    #[serde(default)]
    user: OneOrMany<String>,
    #[serde(default)]
    not_user: OneOrMany<String>,
    tool: Option<ToolText>,
    #[serde(default)]
    called: OneOrMany<CallText>,
    #[serde(default)]
    not_called: OneOrMany<CallText>,
    anywhere: Option<String>,
    seen: Option<String>,
    not_seen: Option<String>,
    #[serde(default)]
    compare: Vec<String>,
    #[serde(default)]
    call: Vec<CallTemplate>,
    say: Option<String>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "one text, or a list of texts in brackets")]
enum OneOrMany<T> {
    // First, because a record of two texts would also be read from a list of two texts.
    Many(Vec<T>),
    One(T),
}

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        OneOrMany::Many(Vec::new())
    }
}

impl<T> OneOrMany<T> {
    fn items(&self) -> &[T] {
        match self {
            OneOrMany::One(item) => std::slice::from_ref(item),
            OneOrMany::Many(items) => items,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolText {
    name: String,
    #[serde(default)]
    result: String,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a tool's name, or { tool = \"name\", arguments = 'pattern' }")]
enum CallText {
    Tool(String),
    #[serde(rename_all = "snake_case")]
    Detailed(DetailedCall),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DetailedCall {
    tool: String,
    arguments: String,
}

/// Reads a whole file.
pub(super) fn parse(text: &str) -> Result<Script, ScriptError> {
    let file: File = toml::from_str(text).map_err(|error| ScriptError {
        line: line_at(text, error.span().map_or(0, |span| span.start)),
        what: error.message().to_owned(),
    })?;
    let rules = file.rule.iter().map(|rule| {
        let start = rule.span().start;
        checked(rule.get_ref())
            .map_err(|(field, what)| ScriptError { line: line_of_field(text, start, field), what })
    });
    let rules = rules.collect::<Result<Vec<_>, _>>()?;
    let habits = file.habit.into_iter().map(|habit| {
        let start = habit.span().start;
        let HabitText { user, call } = habit.into_inner();
        let user = pattern("user", &user).map_err(|(field, what)| ScriptError {
            line: line_of_field(text, start, field),
            what,
        })?;
        Ok(Habit { user, call })
    });
    let habits = habits.collect::<Result<Vec<_>, ScriptError>>()?;
    Ok(Script { name: file.name, context_tokens: file.context_tokens, habits, rules })
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// The line of a rule's field; the rule's own where the field is not found as `field = …`.
fn line_of_field(text: &str, rule_start: usize, field: &str) -> usize {
    let first = line_at(text, rule_start);
    let is_field = |line: &str| {
        line.trim_start().strip_prefix(field).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let lines = text.lines().skip(first - 1).enumerate();
    let mut rule_lines = lines.take_while(|(n, line)| *n == 0 || line.trim() != "[[rule]]");
    first + rule_lines.find(|(_, line)| is_field(line)).map_or(0, |(n, _)| n)
}

/// A mistake: the field, and what is wrong with it.
type Mistake = (&'static str, String);

fn pattern(field: &'static str, text: &str) -> Result<Regex, Mistake> {
    Regex::new(text).map_err(|error| (field, format!("{field} is no pattern: {error}")))
}

fn patterns(field: &'static str, texts: &OneOrMany<String>) -> Result<Vec<Regex>, Mistake> {
    texts.items().iter().map(|text| pattern(field, text)).collect()
}

fn one_pattern(field: &'static str, text: &Option<String>) -> Result<Option<Regex>, Mistake> {
    text.as_ref().map(|text| pattern(field, text)).transpose()
}

fn call_tests(field: &'static str, texts: &OneOrMany<CallText>) -> Result<Vec<CallTest>, Mistake> {
    let test = |text: &CallText| match text {
        CallText::Tool(tool) => Ok(CallTest { tool: tool.clone(), arguments: None }),
        CallText::Detailed(DetailedCall { tool, arguments }) => {
            let arguments = Some(pattern(field, arguments)?);
            Ok(CallTest { tool: tool.clone(), arguments })
        }
    };
    texts.items().iter().map(test).collect()
}

fn checked(text: &RuleText) -> Result<Rule, Mistake> {
    let tool = text.tool.as_ref();
    let tool =
        tool.map(|tool| Ok((tool.name.clone(), pattern("tool", &tool.result)?))).transpose()?;
    let compare = text.compare.iter().map(|words| {
        let what = || format!("\"{words}\" is no comparison; write it as \"price < 100\"");
        Comparison::parse(words).ok_or_else(|| ("compare", what()))
    });
    let rule = Rule {
        last: text.last,
        user: patterns("user", &text.user)?,
        not_user: patterns("not_user", &text.not_user)?,
        tool,
        called: call_tests("called", &text.called)?,
        not_called: call_tests("not_called", &text.not_called)?,
        anywhere: one_pattern("anywhere", &text.anywhere)?,
        seen: one_pattern("seen", &text.seen)?,
        not_seen: one_pattern("not_seen", &text.not_seen)?,
        compare: compare.collect::<Result<_, _>>()?,
        action: action(text)?,
    };
    check_names(&rule)?;
    Ok(rule)
}

fn action(text: &RuleText) -> Result<Action, Mistake> {
    let answers = text.say.is_some() || !text.call.is_empty();
    if let Some(call) = text.call.iter().find(|call| !call.arguments.is_object()) {
        let what = "{ name = value } in braces";
        return Err(("call", format!("the arguments of {} must be {what}", call.tool)));
    }
    match (text.error, answers) {
        (Some(failure), false) => Ok(Action::Fail(failure)),
        (None, true) => Ok(Action::Answer { say: text.say.clone(), calls: text.call.clone() }),
        (Some(_), true) => Err(("error", "a rule with error has neither call nor say".to_owned())),
        (None, false) => Err(("", "the rule does nothing; add call, say or error".to_owned())),
    }
}

/// Every name that a text or a comparison uses must be captured by a pattern of the same rule.
fn check_names(rule: &Rule) -> Result<(), Mistake> {
    let tool = rule.tool.iter().map(|(_, pattern)| pattern);
    let patterns = rule.user.iter().chain(tool).chain(&rule.anywhere).chain(&rule.seen);
    let known: Vec<&str> = patterns.flat_map(|pattern| pattern.capture_names().flatten()).collect();
    let check = |field, name: &str| {
        let what =
            || format!("nothing captures {name}; write (?<{name}>…) in a pattern of this rule");
        if known.contains(&name) { Ok(()) } else { Err((field, what())) }
    };
    for comparison in &rule.compare {
        check("compare", &comparison.left)?;
        if let Operand::Name(name) = &comparison.right {
            check("compare", name)?;
        }
    }
    if let Action::Answer { say, calls } = &rule.action {
        for name in say.iter().flat_map(|say| fill::names(say)) {
            check("say", name)?;
        }
        for call in calls {
            let names = fill::names(&call.tool).chain(fill::names_inside(&call.arguments));
            names.into_iter().try_for_each(|name| check("call", name))?;
        }
    }
    Ok(())
}
