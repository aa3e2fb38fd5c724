//! The server's own words for states: fact first, then time, then the next step (UX rules 1 and 2).

use base::Timestamp;
use jiff::tz::TimeZone;

use crate::effect::{CardLine, Content};
use crate::schedule::local_words;
use crate::state::{ActionState, DutyState};

/// Whether a character commands a screen, draws lines of its own or turns the reading direction: in
/// what a person decides by it could hide or fake something.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// A text of others in one line of a card: at most so many characters, with what could hide something
/// shown as `\u{200b}`.
pub fn on_one_line(text: &str, max: usize) -> String {
    let mut shown = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == max {
            shown.push('…');
            break;
        }
        match c {
            '\n' | '\t' => shown.push(' '),
            c if is_harmful(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// What is known of a duty when its one-line state is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DutyFacts {
    /// Its state.
    pub state: DutyState,
    /// Whether a run of its session is under way.
    pub running: bool,
    /// Its next wake-up, by schedule or due wait.
    pub next_wake: Option<Timestamp>,
    /// When it last looked.
    pub last_run: Option<Timestamp>,
}

/// One line on where a duty stands.
pub fn duty_line(facts: DutyFacts, zone: &TimeZone) -> String {
    let at = |instant| local_words(zone, instant);
    match facts.state {
        DutyState::CloseProposed => "Waiting for your decision: is it done?".into(),
        DutyState::Stopped => "Stopped by you. It wakes no more; resume it to go on.".into(),
        DutyState::Closed => "Closed. You confirmed that it is done.".into(),
        DutyState::Active if facts.running => "Working on it now.".into(),
        DutyState::Active => match (facts.last_run, facts.next_wake) {
            (Some(last), Some(next)) => format!("Checked {} · next {}", at(last), at(next)),
            (None, Some(next)) => format!("Waiting · first look {}", at(next)),
            (Some(last), None) => format!("Checked {} · no further wake-up is set", at(last)),
            (None, None) => "Waiting for your next message.".into(),
        },
    }
}

/// Lines of a card that a sentence about it repeats.
const FOLDED_LINES_MAX: usize = 20;
/// Characters of one of their values; the card has the whole.
const FOLDED_VALUE_MAX: usize = 400;

/// One line on what an action would do or has done: the operation, and what its card shows, folded.
pub fn operation(content: &Content) -> String {
    let folded =
        |line: &CardLine| format!("{} {}", line.label, on_one_line(&line.value, FOLDED_VALUE_MAX));
    let mut lines: Vec<String> = content.card.iter().take(FOLDED_LINES_MAX).map(folded).collect();
    if let more @ 1.. = content.card.len().saturating_sub(FOLDED_LINES_MAX) {
        lines.push(format!("{more} more on its card"));
    }
    let amount = content.amount().map(|amount| format!(" for {amount}")).unwrap_or_default();
    match lines.is_empty() {
        true => format!("{}{amount}", content.operation),
        false => format!("{}{amount} ({})", content.operation, lines.join(", ")),
    }
}

/// What a card for a release says above its buttons.
pub fn asks(content: &Content, why: &str) -> String {
    format!("Release this? {}. {why} If you do nothing, nothing happens.", operation(content))
}

/// A request that nobody decided.
pub fn lapsed(content: &Content) -> String {
    format!(
        "The time to decide has passed: {}. Nothing was done. Ask again whenever you like.",
        operation(content)
    )
}

/// The card at the end of looking: a person says what they know.
pub fn did_it_happen(content: &Content, contradiction: Option<&str>) -> String {
    let why = match contradiction {
        Some(what) => format!("What I was told and what is there do not fit: {what}."),
        None => "I could not find out.".to_owned(),
    };
    format!(
        "Did this happen? {}. {why} I do not send it again. Say that it happened, that it did not, or \
         let me keep looking; if you do nothing, I keep looking.",
        operation(content)
    )
}

/// Where an action stands, in a few words. Sent is not done, and confirmed is not in force.
pub fn action_state(state: ActionState) -> &'static str {
    match state {
        ActionState::Proposed => "being looked at",
        ActionState::AwaitingApproval => "waiting for the person",
        ActionState::Authorized => "released, not sent yet",
        ActionState::Admitted => "about to be sent",
        ActionState::Dispatched => "sent, no answer yet",
        ActionState::Unknown => "sent, being checked",
        ActionState::Accepted => "confirmed, evidence is looked for",
        ActionState::Effective => "in force",
        ActionState::Blocked => "did not happen",
        ActionState::Denied => "refused by the person",
        ActionState::Expired => "expired, nothing happened",
        ActionState::Superseded => "no longer wanted, nothing happened",
        ActionState::Withdrawn => "withdrawn, nothing happened",
        ActionState::Cancelled => "stopped before it was sent",
        ActionState::Abandoned => "given up, nothing happened",
    }
}

/// Notices that the server itself writes; they contain no text of a model (USR-01).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice<'a> {
    /// A work item was given up.
    Poison {
        /// Fruitless runs.
        attempts: u32,
        /// What it was.
        what: &'a str,
    },
    /// A run reached its budget.
    Budget {
        /// Which budget and how much, as `40 of 40 steps`.
        what: &'a str,
    },
    /// The month's cap is reached: no run starts until it is raised or the month ends.
    MonthCap {
        /// How much, as `US$5.00 of US$5.00`.
        what: &'a str,
    },
    /// The model cannot be asked.
    Model {
        /// The class and remedy.
        reason: &'a str,
    },
    /// A polled source cannot be read.
    Source {
        /// Its name.
        name: &'a str,
        /// Why, with the remedy.
        reason: &'a str,
    },
    /// A source has been silent for longer than the user expects.
    Silent {
        /// Its name.
        name: &'a str,
        /// Since when.
        since: &'a str,
    },
    /// A connector is broken in a way that waiting does not mend.
    Connector {
        /// Its name.
        name: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// A message holds everything back for longer than it should.
    Held {
        /// Since when.
        since: &'a str,
    },
    /// The model and the stop check do not agree about a message.
    IsItAStop {
        /// The message.
        said: &'a str,
    },
    /// What was sent has no answer yet.
    BeingChecked {
        /// The operation.
        what: &'a str,
    },
    /// Facts from outside were taken into a new version of a duty.
    Adopted {
        /// What differs.
        lines: &'a str,
    },
    /// A state lasts too long.
    Stuck {
        /// What.
        what: &'a str,
        /// Since when.
        since: &'a str,
    },
}

impl Notice<'_> {
    /// The sentence shown.
    pub fn text(&self) -> String {
        match self {
            Notice::Poison { attempts, what } => format!(
                "I gave up on {what} after {attempts} tries. Nothing else is affected; send it again to retry."
            ),
            Notice::Budget { what } => {
                format!(
                    "Stopped: the budget of this one run is used up ({what}). What I reached is saved; \
                     send a message to go on."
                )
            }
            Notice::MonthCap { what } => {
                format!(
                    "On hold: this month's cap is used up ({what}). Everything is kept and goes on \
                     next month. To go on now, raise the cap: under More on the page, or with \
                     \"adjutant set --cap-usd AMOUNT\"."
                )
            }
            Notice::Model { reason } => {
                format!(
                    "I cannot reach the model: {reason}. Everything is kept and goes on by itself."
                )
            }
            Notice::Source { name, reason } => {
                format!(
                    "I cannot read the source {name}: {reason}. Nothing is lost; I go on trying. \
                     See \"adjutant source list\"."
                )
            }
            Notice::Silent { name, since } => {
                format!(
                    "Nothing has come from {name} since {since}, which is longer than you expect. \
                     Look whether it still sends, or change it with \"adjutant source\"."
                )
            }
            Notice::Connector { name, reason } => {
                format!(
                    "The connector {name} is broken: {reason}. I do not go round it by other ways; \
                     what needs it waits until it works again."
                )
            }
            Notice::Held { since } => {
                format!(
                    "Held since {since}: until it is settled whether your message says stop, nothing \
                     is done outside. Settle it with one tap under Now, or with \"adjutant hold\"."
                )
            }
            Notice::IsItAStop { said } => {
                format!(
                    "Does this mean stop? \"{said}\" Until you answer, nothing is done outside. \
                     Answer with one tap under Now, or with \"adjutant hold\"."
                )
            }
            Notice::BeingChecked { what } => {
                format!(
                    "Being checked: {what}. It was sent and no answer is certain yet. I look it up and \
                     do not send it again."
                )
            }
            Notice::Adopted { lines } => {
                format!(
                    "News from outside changed what this duty goes by: {lines}. What it may do is as \
                     before. Tell me if that is wrong."
                )
            }
            Notice::Stuck { what, since } => {
                format!(
                    "No progress since {since}: {what}. See \"adjutant doctor\" for what to do."
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Notice;

    #[test]
    fn every_notice_begins_with_the_fact_and_ends_with_what_can_be_done() {
        let said = [
            Notice::Poison { attempts: 5, what: "\"hello\"" },
            Notice::Budget { what: "40 of 40 steps" },
            Notice::MonthCap { what: "US$5.00 of US$5.00" },
            Notice::Model { reason: "it does not answer just now" },
            Notice::Stuck { what: "work item pending", since: "Monday 2026-11-30 08:00" },
            Notice::Source { name: "news", reason: "the server answers 404" },
            Notice::Silent { name: "shop", since: "Monday 2026-11-30 08:00" },
            Notice::Connector { name: "mail", reason: "its server refuses the key" },
            Notice::Held { since: "Monday 2026-11-30 08:00" },
            Notice::IsItAStop { said: "wait" },
            Notice::BeingChecked { what: "hotel.book_hotel" },
            Notice::Adopted { lines: "Goal: \"at nine\" becomes \"at ten\"" },
        ]
        .map(|notice| notice.text());
        let wanted = [
            "I gave up on \"hello\" after 5 tries. Nothing else is affected; send it again to retry.",
            "Stopped: the budget of this one run is used up (40 of 40 steps). What I reached is saved; \
             send a message to go on.",
            "On hold: this month's cap is used up (US$5.00 of US$5.00). Everything is kept and goes on \
             next month. To go on now, raise the cap: under More on the page, or with \"adjutant set \
             --cap-usd AMOUNT\".",
            "I cannot reach the model: it does not answer just now. Everything is kept and goes on by \
             itself.",
            "No progress since Monday 2026-11-30 08:00: work item pending. See \"adjutant doctor\" for \
             what to do.",
            "I cannot read the source news: the server answers 404. Nothing is lost; I go on trying. \
             See \"adjutant source list\".",
            "Nothing has come from shop since Monday 2026-11-30 08:00, which is longer than you expect. \
             Look whether it still sends, or change it with \"adjutant source\".",
            "The connector mail is broken: its server refuses the key. I do not go round it by other \
             ways; what needs it waits until it works again.",
            "Held since Monday 2026-11-30 08:00: until it is settled whether your message says stop, \
             nothing is done outside. Settle it with one tap under Now, or with \"adjutant hold\".",
            "Does this mean stop? \"wait\" Until you answer, nothing is done outside. Answer with one \
             tap under Now, or with \"adjutant hold\".",
            "Being checked: hotel.book_hotel. It was sent and no answer is certain yet. I look it up and \
             do not send it again.",
            "News from outside changed what this duty goes by: Goal: \"at nine\" becomes \"at ten\". What \
             it may do is as before. Tell me if that is wrong.",
        ];
        assert_eq!(said, wanted);
    }
}
