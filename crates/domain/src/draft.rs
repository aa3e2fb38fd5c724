//! What a duty asks for, as the model drafts it and the user confirms it (DEL-05, DEL-26).
//!
//! The draft is frozen as bytes when it is proposed; the card is rendered from those bytes and the
//! user's tap carries their digest. Nothing here is in force before that. The frozen bytes hold the
//! normal form: a rule written in plain words stands there as the program understood it.

mod change;
mod check;
mod form;

use base::{TimeError, Timestamp};
use jiff::tz::TimeZone;

pub use change::{Change, becomes};
pub use check::{Check, CheckError, Test, Verdict, check_verdict};
use form::{DraftForm, WakeupForm};

use crate::effect::{GRANTS_MAX, GrantDraft, GrantError};
use crate::event::Mode;
use crate::schedule::{Missed, Rule, ScheduleError};
use crate::words::Language;

/// Which evidence ends a condition, and who is believed about it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// What must be true.
    pub text: String,
    /// What shows it, such as `receipt` or `statement`.
    pub evidence: String,
    /// Whose word counts, such as `user` or `airline`.
    pub authority: String,
}

/// A wake-up that the duty needs, with what to do then.
///
/// As JSON `{"when":"weekdays 8:00","prompt":"…"}`, or with the fields of a [`Rule`] in place of
/// `when`, and with `run_missed` and `check` if wanted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "WakeupForm", into = "WakeupForm")]
pub struct Wakeup {
    /// When.
    pub rule: Rule,
    /// What the agent is told when it wakes.
    pub prompt: String,
    /// What becomes of slots that passed while nobody could fire them.
    pub run_missed: Missed,
    /// What a program looks at first; without a change it wakes nobody.
    pub check: Option<Check>,
}

/// Events of a source that the duty is for (PRO-14).
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscription {
    /// The source's name, such as `github`.
    pub source: String,
    /// Only this topic, or all below a prefix that ends in `.*`; see
    /// [`covers`](crate::event::covers).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Whether an event wakes the duty or is only read along.
    #[serde(default = "wake")]
    pub mode: Mode,
    /// What the agent is told with each event.
    pub prompt: String,
}

fn wake() -> Mode {
    Mode::Wake
}

/// The whole draft.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "DraftForm", into = "DraftForm")]
pub struct Draft {
    /// A few words for lists.
    pub title: String,
    /// What the user wants, in their terms.
    pub goal: String,
    /// When it is done. Never empty.
    pub conditions: Vec<Condition>,
    /// When it wakes by itself.
    pub schedules: Vec<Wakeup>,
    /// Which events it is for.
    pub subscriptions: Vec<Subscription>,
    /// What it may do outside without asking again. Empty: every effect asks.
    pub grants: Vec<GrantDraft>,
    /// After this instant it wakes no more (RFC 3339).
    pub until: Option<String>,
}

/// Why a draft cannot be shown to the user. The model reads these and drafts again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// Not the expected fields.
    #[error("the draft does not have the fields of propose_duty: {0}")]
    Shape(String),
    /// An empty or oversized text.
    #[error("{field} must have between 1 and {max} characters")]
    Text {
        /// Which.
        field: &'static str,
        /// The most characters it may have.
        max: usize,
    },
    /// A line end in a short text, or a character that commands a screen or turns the reading
    /// direction.
    #[error("{field} has a character that may not stand there; write it in plain words{lines}")]
    Character {
        /// Which.
        field: &'static str,
        /// ` in one line`, where only one is allowed.
        lines: &'static str,
    },
    /// No condition, or too many.
    #[error("a duty needs between 1 and {max} conditions, each with evidence and authority")]
    Conditions {
        /// The most it may have.
        max: usize,
    },
    /// Too many schedules.
    #[error("a duty has at most {max} schedules")]
    Schedules {
        /// The most it may have.
        max: usize,
    },
    /// A schedule that cannot be computed.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// A wake-up without a time.
    #[error("a schedule needs a time; write it as \"when\":\"weekdays 8:00\"")]
    When,
    /// A wake-up with its time in two forms.
    #[error("give a schedule either \"when\" or \"kind\" with its fields, not both")]
    WhenTwice,
    /// A look that cannot be made.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// Too many subscriptions.
    #[error("a duty has at most {max} subscriptions")]
    Subscriptions {
        /// The most it may have.
        max: usize,
    },
    /// Too many grants.
    #[error("a duty has at most {max} grants")]
    Grants {
        /// The most it may have.
        max: usize,
    },
    /// A grant that cannot be given.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// A topic that covers nothing that could be meant.
    #[error("\"{0}\" is no topic; write it whole, or as a prefix such as issues.*")]
    Topic(String),
    /// An end that is no time.
    #[error(transparent)]
    Until(#[from] TimeError),
    /// An end that has passed.
    #[error("until lies in the past; leave it out or name a later time")]
    Past,
}

const TITLE_MAX: usize = 80;
const TEXT_MAX: usize = 2_000;
const LIST_MAX: usize = 12;
const SUBSCRIPTIONS_MAX: usize = 20;

impl Draft {
    /// Reads and checks the arguments of `propose_duty`.
    pub fn read(arguments: &str, zone: &TimeZone, now: Timestamp) -> Result<Self, DraftError> {
        let form: DraftForm = serde_json::from_str(arguments)
            .map_err(|e| DraftError::Shape(e.to_string().chars().take(200).collect()))?;
        let draft = Draft::try_from(form)?;
        draft.check(zone, now)?;
        Ok(draft)
    }

    /// A routine: a duty that wakes at its times until the person ends it (SKL-03). Its goal is
    /// what the agent is told when it wakes. To be checked like any other draft.
    pub fn routine(name: &str, wakeup: Wakeup, until: Option<String>) -> Self {
        Draft {
            title: name.to_owned(),
            goal: wakeup.prompt.clone(),
            conditions: vec![Condition {
                text: "The person ends it".into(),
                evidence: "statement".into(),
                authority: "user".into(),
            }],
            schedules: vec![wakeup],
            subscriptions: Vec::new(),
            grants: Vec::new(),
            until,
        }
    }

    /// Whether the draft may be shown to the user: texts, bounds, and times that are still to come.
    pub fn check(&self, zone: &TimeZone, now: Timestamp) -> Result<(), DraftError> {
        text("title", &self.title, TITLE_MAX)?;
        text("goal", &self.goal, TEXT_MAX)?;
        if self.conditions.is_empty() || self.conditions.len() > LIST_MAX {
            return Err(DraftError::Conditions { max: LIST_MAX });
        }
        for condition in &self.conditions {
            text("a condition's text", &condition.text, TEXT_MAX)?;
            text("a condition's evidence", &condition.evidence, TITLE_MAX)?;
            text("a condition's authority", &condition.authority, TITLE_MAX)?;
        }
        if self.schedules.len() > LIST_MAX {
            return Err(DraftError::Schedules { max: LIST_MAX });
        }
        for schedule in &self.schedules {
            schedule.check(zone, now)?;
        }
        if self.subscriptions.len() > SUBSCRIPTIONS_MAX {
            return Err(DraftError::Subscriptions { max: SUBSCRIPTIONS_MAX });
        }
        for subscription in &self.subscriptions {
            subscription.check()?;
        }
        if self.grants.len() > GRANTS_MAX {
            return Err(DraftError::Grants { max: GRANTS_MAX });
        }
        for grant in &self.grants {
            text("a grant's tool", &grant.tool, TITLE_MAX)?;
            grant.check()?;
        }
        match self.until_at()? {
            Some(until) if until <= now => Err(DraftError::Past),
            Some(_) | None => Ok(()),
        }
    }

    /// The end, if it has one.
    pub fn until_at(&self) -> Result<Option<Timestamp>, TimeError> {
        self.until.as_deref().map(Timestamp::parse).transpose()
    }
}

impl Wakeup {
    fn check(&self, zone: &TimeZone, now: Timestamp) -> Result<(), DraftError> {
        text("a schedule's prompt", &self.prompt, TEXT_MAX)?;
        self.rule.next_after(zone, now)?;
        let Some(check) = &self.check else { return Ok(()) };
        text("a check's tool", &check.tool, TITLE_MAX)?;
        text("a check's arguments", &check.arguments_text(), TEXT_MAX)?;
        if let Some(path) = &check.path {
            text("a check's path", path, TITLE_MAX)?;
        }
        match &check.test {
            Test::Contains(wanted) => text("a check's value", wanted, TITLE_MAX),
            Test::Changed | Test::Below(_) | Test::Above(_) => Ok(()),
        }
    }

    /// The wake-up in plain words, for cards and lists: its times, and what a program looks at
    /// first.
    pub fn words(&self, language: Language) -> String {
        let missed = match self.run_missed {
            Missed::Once => "",
            Missed::Skip => language.pick("; not late", "；错过不补"),
        };
        let only_if = language.pick("; only if ", "；仅当 ");
        let look = self.check.as_ref().map(|check| format!("{only_if}{}", check.words(language)));
        format!("{}{missed}{}", self.rule.words(language), look.unwrap_or_default())
    }
}

impl Subscription {
    fn check(&self) -> Result<(), DraftError> {
        text("a subscription's source", &self.source, TITLE_MAX)?;
        text("a subscription's prompt", &self.prompt, TEXT_MAX)?;
        let Some(topic) = &self.topic else { return Ok(()) };
        text("a subscription's topic", topic, TITLE_MAX)?;
        let prefix = topic.strip_suffix(".*").unwrap_or(topic);
        match prefix.is_empty() || prefix.contains('*') {
            true => Err(DraftError::Topic(topic.clone())),
            false => Ok(()),
        }
    }

    /// The subscription in plain words, for cards and lists.
    pub fn words(&self, language: Language) -> String {
        let topic = self.topic.as_deref().unwrap_or(language.pick("any", "全部主题"));
        let along = match self.mode {
            Mode::Wake => "",
            Mode::Background => language.pick(", only read along", "，只顺带读取"),
        };
        match language {
            Language::En => format!("events of {} ({topic}){along}", self.source),
            Language::Zh => format!("来自 {} 的事件（{topic}）{along}", self.source),
        }
    }
}

fn text(field: &'static str, value: &str, max: usize) -> Result<(), DraftError> {
    let length = value.trim().chars().count();
    if length == 0 || length > max {
        return Err(DraftError::Text { field, max });
    }
    // A person confirms what a card shows, so nothing in it may draw lines of its own.
    let one_line = max == TITLE_MAX;
    let harmful = |c: char| crate::words::is_harmful(c) && (one_line || c != '\n');
    match value.chars().any(harmful) {
        true => {
            Err(DraftError::Character { field, lines: if one_line { " in one line" } else { "" } })
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
