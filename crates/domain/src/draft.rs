//! What a duty asks for, as the model drafts it and the user confirms it (DEL-05, DEL-26).
//!
//! The draft is frozen as bytes when it is proposed; the card is rendered from those bytes and the
//! user's tap carries their digest. Nothing here is in force before that.

use base::{TimeError, Timestamp};
use jiff::tz::TimeZone;

use crate::schedule::{Rule, ScheduleError};

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
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Wakeup {
    /// When.
    #[serde(flatten)]
    pub rule: Rule,
    /// What the agent is told when it wakes.
    pub prompt: String,
}

/// The whole draft.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// A few words for lists.
    pub title: String,
    /// What the user wants, in their terms.
    pub goal: String,
    /// When it is done. Never empty.
    pub conditions: Vec<Condition>,
    /// When it wakes by itself.
    #[serde(default)]
    pub schedules: Vec<Wakeup>,
    /// After this instant it wakes no more (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// A line end in a short text, or a character that commands a screen or turns the reading direction.
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

impl Draft {
    /// Reads and checks the arguments of `propose_duty`.
    pub fn read(arguments: &str, zone: &TimeZone, now: Timestamp) -> Result<Self, DraftError> {
        let draft: Draft = serde_json::from_str(arguments)
            .map_err(|e| DraftError::Shape(e.to_string().chars().take(200).collect()))?;
        draft.check(zone, now)?;
        Ok(draft)
    }

    fn check(&self, zone: &TimeZone, now: Timestamp) -> Result<(), DraftError> {
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
            text("a schedule's prompt", &schedule.prompt, TEXT_MAX)?;
            schedule.rule.next_after(zone, now)?;
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

fn text(field: &'static str, value: &str, max: usize) -> Result<(), DraftError> {
    let length = value.trim().chars().count();
    if length == 0 || length > max {
        return Err(DraftError::Text { field, max });
    }
    // A person confirms what a card shows, so nothing in it may draw lines of its own.
    let one_line = max == TITLE_MAX;
    let harmful = |c: char| {
        (c.is_control() && (one_line || c != '\n'))
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    match value.chars().any(harmful) {
        true => {
            Err(DraftError::Character { field, lines: if one_line { " in one line" } else { "" } })
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"title":"Price watch","goal":"Tell me when it falls under 100",
        "conditions":[{"text":"the user ends it","evidence":"statement","authority":"user"}],
        "schedules":[{"kind":"weekdays","at":"08:00","prompt":"Look at the feed"}]}"#;

    fn read(arguments: &str) -> Result<Draft, String> {
        let now = Timestamp::parse("2027-03-01T00:00:00Z").unwrap();
        Draft::read(arguments, &TimeZone::UTC, now).map_err(|e| e.to_string())
    }

    #[test]
    fn a_draft_needs_conditions_and_times_that_exist() {
        let draft = read(GOOD).unwrap();
        assert_eq!(draft.schedules[0].rule.words(), "weekdays at 08:00");
        let without = GOOD.replace(
            r#"{"text":"the user ends it","evidence":"statement","authority":"user"}"#,
            "",
        );
        assert_eq!(
            read(&without),
            Err("a duty needs between 1 and 12 conditions, each with evidence and authority".into())
        );
        assert_eq!(
            read(&GOOD.replace("08:00", "8 o'clock")),
            Err("\"8 o'clock\" is no time of day; write it as 08:00".into())
        );
        assert!(read(&GOOD.replace("\"title\":\"Price watch\"", "\"title\":\" \"")).is_err());
        assert_eq!(
            read(&GOOD.replace("Price watch", "Price\\nDigest  0000")),
            Err("title has a character that may not stand there; write it in plain words in one line"
                .into())
        );
        assert!(read(&GOOD.replace("falls under", "falls\\nunder")).is_ok());
        assert!(read(&GOOD.replace("falls under", "falls \\u202e under")).is_err());
        let past = GOOD.replacen('{', r#"{"until":"2026-01-01T00:00:00Z","#, 1);
        assert!(read(&past).unwrap_err().contains("in the past"));
    }
}
