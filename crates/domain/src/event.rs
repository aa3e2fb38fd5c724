//! What can wake the agent, and where an event goes (EVT-01, EVT-02, EVT-07, QUE-04).

use std::fmt;
use std::str::FromStr;

use base::{ActionId, ProposalId, SessionId, Timestamp};

/// How far the channel that an event came through is trusted. Set by the ingress, never by content.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Anyone may have written it.
    Outside,
    /// This program made it from its own records.
    System,
    /// An authenticated device of the user.
    User,
}

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A 1:1 message of the user.
    UserMessage,
    /// A slot of a schedule came due.
    ScheduleDue,
    /// A wait's due time passed before it was met.
    WaitTimedOut,
    /// A wait was met by an event that went to another lane.
    WaitSatisfied,
    /// The user decided on a proposal.
    ProposalDecided,
    /// An action came to its end, or its outcome stays unknown.
    ActionSettled,
    /// A signed delivery of a webhook.
    Webhook,
    /// A file appeared or changed in a watched folder.
    File,
    /// A new entry of a feed.
    FeedEntry,
    /// A polled page changed.
    PageChanged,
    /// An event of another lane concerns this one too (EVT-11).
    Related,
}

impl EventKind {
    /// Whether it came from outside, through a source that the user set up.
    pub const fn is_external(self) -> bool {
        match self {
            EventKind::Webhook
            | EventKind::File
            | EventKind::FeedEntry
            | EventKind::PageChanged => true,
            EventKind::UserMessage
            | EventKind::ScheduleDue
            | EventKind::WaitTimedOut
            | EventKind::WaitSatisfied
            | EventKind::ProposalDecided
            | EventKind::ActionSettled
            | EventKind::Related => false,
        }
    }
}

/// How an event enters a session (QUE-15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It starts a run.
    Wake,
    /// It wakes nobody; the next run reads it along.
    Background,
}

/// How far the agent goes by itself where no duty asks for it. Never widens permission.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Dial {
    /// Nothing is looked at.
    Off,
    /// It notes what it would have done.
    #[default]
    Observe,
    /// It looks, and may remind, ask and prepare.
    Auto,
}

/// By whose word an event concerns a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// A wait had its kind and key.
    Wait,
    /// A subscription covers its source and topic.
    Subscription,
    /// The small model chose among the router's candidates.
    Attribution,
    /// The dial stands on auto.
    Dial,
}

/// The classes of the queue, first to last (QUE-03, QUE-04).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A 1:1 message of the authenticated user.
    User,
    /// External events and helpers' reports, in order of arrival.
    External,
    /// Timers.
    Timer,
    /// Wakes nobody; the session's next run reads it along (QUE-15).
    Background,
}

/// Words for the columns that hold these; the same as in JSON.
macro_rules! words {
    ($($name:ident: $($variant:ident = $word:literal),*;)*) => {$(
        impl $name {
            /// The stored word.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }
            /// Reads the stored word.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some($name::$variant),)* _ => None }
            }
        }
    )*};
}

words! {
    Trust: Outside = "outside", System = "system", User = "user";
    Class: User = "user", External = "external", Timer = "timer", Background = "background";
    EventKind: UserMessage = "user_message", ScheduleDue = "schedule_due",
        WaitTimedOut = "wait_timed_out", WaitSatisfied = "wait_satisfied",
        ProposalDecided = "proposal_decided",
        ActionSettled = "action_settled", Webhook = "webhook", File = "file",
        FeedEntry = "feed_entry", PageChanged = "page_changed", Related = "related";
    Mode: Wake = "wake", Background = "background";
    Dial: Off = "off", Observe = "observe", Auto = "auto";
    How: Wait = "wait", Subscription = "subscription", Attribution = "attribution", Dial = "dial";
}

/// What the router may know of an event: never its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// What it is.
    pub kind: EventKind,
    /// How it came in.
    pub trust: Trust,
    /// The session of the duty, wait or proposal that it belongs to, if that still stands.
    pub belongs_to: Option<SessionId>,
    /// The owner's own conversation.
    pub main: SessionId,
}

/// Where an event goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Into this session's queue.
    Enqueue {
        /// The lane.
        session: SessionId,
        /// The place in its queue.
        class: Class,
    },
    /// Recorded, wakes nobody.
    Record {
        /// Why, for the trace.
        reason: &'static str,
    },
}

/// Decides where an event goes, from its kind and channel alone.
pub fn route(arrival: Arrival) -> Route {
    match arrival.kind {
        EventKind::UserMessage if arrival.trust == Trust::User => {
            Route::Enqueue { session: arrival.main, class: Class::User }
        }
        EventKind::UserMessage => {
            Route::Record { reason: "a message that did not come from a device of the user" }
        }
        EventKind::ProposalDecided | EventKind::ActionSettled => match arrival.belongs_to {
            Some(session) => Route::Enqueue { session, class: Class::External },
            None => Route::Record { reason: "nobody waits for it; the next turn sees it" },
        },
        EventKind::Webhook
        | EventKind::File
        | EventKind::FeedEntry
        | EventKind::PageChanged
        | EventKind::Related => match arrival.belongs_to {
            Some(session) => Route::Enqueue { session, class: Class::External },
            None => Route::Record { reason: "it concerns no duty" },
        },
        EventKind::ScheduleDue | EventKind::WaitTimedOut | EventKind::WaitSatisfied => {
            match arrival.belongs_to {
                Some(session) => Route::Enqueue { session, class: Class::Timer },
                None => Route::Record { reason: "what it belonged to has ended" },
            }
        }
    }
}

/// Whether a subscription's topic covers an event's: the same, all, or all below a prefix (`issues.*`).
pub fn covers(wanted: Option<&str>, topic: Option<&str>) -> bool {
    match (wanted, topic) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wanted), Some(topic)) => match wanted.strip_suffix(".*") {
            None => wanted == topic,
            Some(prefix) => {
                topic == prefix
                    || topic.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'))
            }
        },
    }
}

/// Whether nothing has come since an instant for as long as something should have (EVT-12).
pub fn is_overdue(since: Timestamp, expect_ms: u64, now: Timestamp) -> bool {
    since.plus_ms(expect_ms) <= now
}

/// A card that the user asks about in a message; on record as `action:<id>` or `proposal:<id>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskedAbout {
    /// Of an action.
    Action(ActionId),
    /// Of a question about a duty.
    Proposal(ProposalId),
}

impl fmt::Display for AskedAbout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskedAbout::Action(id) => write!(f, "action:{id}"),
            AskedAbout::Proposal(id) => write!(f, "proposal:{id}"),
        }
    }
}

impl FromStr for AskedAbout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let no_card = || format!("{text:?} names no card");
        match text.split_once(':').ok_or_else(no_card)? {
            ("action", id) => id.parse().map(AskedAbout::Action).map_err(|_| no_card()),
            ("proposal", id) => id.parse().map(AskedAbout::Proposal).map_err(|_| no_card()),
            _ => Err(no_card()),
        }
    }
}

/// What the router found out about an event from outside, from records alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Lanes that it concerns by an open wait or a subscription in force.
    pub lanes: usize,
    /// A wait that it met before it was routed: the run that registered it has been told.
    pub met_before: bool,
    /// A wait for its kind and key that has ended.
    pub ended: bool,
    /// Duties that it might concern.
    pub candidates: usize,
    /// How far the agent goes by itself.
    pub dial: Dial,
}

/// What becomes of an event from outside (EVT-06, EVT-07).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// It goes to the lanes that were found.
    Lanes,
    /// Recorded: it answered a wait when that was registered.
    Answered,
    /// Recorded: what waited for it has ended.
    Late,
    /// The small model is asked which of the candidates it concerns.
    Attribute,
    /// It belongs to nothing; the dial says what that means.
    Unclaimed(Dial),
}

/// Places an event from outside. Its text is not an input: shouting changes nothing.
pub fn place(found: Found) -> Placement {
    match found {
        Found { lanes: 1.., .. } => Placement::Lanes,
        Found { met_before: true, .. } => Placement::Answered,
        Found { ended: true, .. } => Placement::Late,
        Found { dial: Dial::Off, .. } => Placement::Unclaimed(Dial::Off),
        Found { candidates: 1.., .. } => Placement::Attribute,
        Found { dial, .. } => Placement::Unclaimed(dial),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::IdSource;

    #[test]
    fn only_the_users_own_device_makes_a_user_item() {
        let ids = IdSource::new([1; 32]);
        let [main, other]: [SessionId; 2] =
            [ids.next(Timestamp::from_micros(0)), ids.next(Timestamp::from_micros(0))];
        let kinds = [
            EventKind::UserMessage,
            EventKind::ScheduleDue,
            EventKind::WaitTimedOut,
            EventKind::WaitSatisfied,
            EventKind::ProposalDecided,
            EventKind::ActionSettled,
            EventKind::Webhook,
            EventKind::File,
            EventKind::FeedEntry,
            EventKind::PageChanged,
            EventKind::Related,
        ];
        for kind in kinds {
            assert_eq!(EventKind::parse(kind.word()), Some(kind));
            for trust in [Trust::Outside, Trust::System, Trust::User] {
                for belongs_to in [None, Some(other)] {
                    let routed = route(Arrival { kind, trust, belongs_to, main });
                    let is_user = matches!(routed, Route::Enqueue { class: Class::User, .. });
                    assert_eq!(is_user, kind == EventKind::UserMessage && trust == Trust::User);
                }
            }
        }
    }

    #[test]
    fn topics_are_covered_whole_or_below_a_prefix() {
        let wanted = [None, Some("issues"), Some("issues.*"), Some("issues.opened")];
        let topics = [None, Some("issues"), Some("issues.opened"), Some("issues2.opened")];
        let table = wanted.map(|wanted| topics.map(|topic| covers(wanted, topic)));
        assert_eq!(
            table,
            [
                [true, true, true, true],
                [false, true, false, false],
                [false, true, true, false],
                [false, false, true, false],
            ]
        );
    }

    #[test]
    fn an_event_is_placed_by_records_in_a_fixed_order() {
        let found = |lanes, met_before, ended, candidates, dial| {
            place(Found { lanes, met_before, ended, candidates, dial })
        };
        use Dial::{Auto, Observe, Off};
        assert_eq!(found(2, true, true, 3, Off), Placement::Lanes);
        assert_eq!(found(0, true, true, 3, Auto), Placement::Answered);
        assert_eq!(found(0, false, true, 3, Auto), Placement::Late);
        assert_eq!(found(0, false, false, 3, Observe), Placement::Attribute);
        assert_eq!(found(0, false, false, 3, Off), Placement::Unclaimed(Off));
        assert_eq!(found(0, false, false, 0, Auto), Placement::Unclaimed(Auto));
    }
}
