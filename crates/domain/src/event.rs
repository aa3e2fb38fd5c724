//! What can wake the agent, and where an event goes (EVT-01, EVT-02, EVT-07, QUE-04).

use base::SessionId;

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

/// The kinds of events that exist by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A 1:1 message of the user.
    UserMessage,
    /// A slot of a schedule came due.
    ScheduleDue,
    /// A wait's due time passed before it was met.
    WaitTimedOut,
    /// A wait was met by an event that had come before it was registered, or comes now.
    WaitSatisfied,
    /// The user decided on a proposal.
    ProposalDecided,
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
    Class: User = "user", External = "external", Timer = "timer";
    EventKind: UserMessage = "user_message", ScheduleDue = "schedule_due",
        WaitTimedOut = "wait_timed_out", WaitSatisfied = "wait_satisfied",
        ProposalDecided = "proposal_decided";
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
        EventKind::ProposalDecided => match arrival.belongs_to {
            Some(session) => Route::Enqueue { session, class: Class::External },
            None => Route::Record { reason: "nobody waits for it; the next turn sees it" },
        },
        EventKind::ScheduleDue | EventKind::WaitTimedOut | EventKind::WaitSatisfied => {
            match arrival.belongs_to {
                Some(session) => Route::Enqueue { session, class: Class::Timer },
                None => Route::Record { reason: "what it belonged to has ended" },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{IdSource, Timestamp};

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
}
