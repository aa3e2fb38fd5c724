//! What came of a sending: exactly one of accepted, blocked and unknown, and how unknown ends (TOOL-04, ADM-22..24).

use base::Timestamp;

use crate::state::ActionState;

/// What the dispatcher saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// It certainly never left.
    NotSent(String),
    /// An answer with a receipt that can be queried.
    Receipt(String),
    /// An answer to what was only asked: it is its own evidence.
    Answered,
    /// An answer by which the vendor promises that nothing happened.
    Refused(String),
    /// Any other answer.
    Other(String),
    /// No answer.
    Lost(String),
}

/// What that comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The outside confirms it, with a receipt.
    Accepted {
        /// The receipt.
        receipt: String,
    },
    /// What was told is told, and its answer is all that was wanted.
    Answered,
    /// Certainly nothing happened.
    Blocked {
        /// Why.
        why: String,
        /// Whether it never left, so that the same may be sent again.
        again: bool,
    },
    /// The vendor says that nothing happened. It counts once a look finds nothing either; until then the action
    /// is unknown, so its errand stays open.
    Refused {
        /// Why.
        why: String,
    },
    /// Everything else.
    Unknown {
        /// What was seen.
        why: String,
    },
}

/// Anything that is not provably accepted or blocked is unknown (TOOL-05). `can_look_up`: whether a refusal can
/// be checked, for a vendor may err.
pub fn judge(seen: Observation, can_look_up: bool) -> Outcome {
    match seen {
        Observation::NotSent(why) => Outcome::Blocked { why, again: true },
        Observation::Receipt(receipt) => Outcome::Accepted { receipt },
        Observation::Answered => Outcome::Answered,
        Observation::Refused(why) if can_look_up => Outcome::Refused { why },
        Observation::Refused(why) => Outcome::Blocked { why, again: false },
        Observation::Other(why) | Observation::Lost(why) => Outcome::Unknown { why },
    }
}

/// What a look at the original operation saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// It is there.
    Found {
        /// Its receipt.
        receipt: String,
        /// Whether it has ended without effect, such as a booking that the hotel cancelled.
        ended: bool,
    },
    /// It is not there.
    Absent,
    /// The look itself failed.
    Unreadable(String),
}

/// An action whose operation is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Where it stands: unknown, accepted or blocked.
    pub state: ActionState,
    /// The receipt of its answer.
    pub receipt: Option<String>,
    /// The last moment at which its request may have been under way: the vendor's promise counts from then.
    pub sent_by: Timestamp,
    /// The manifest's promise: later than this, "not found" means that nothing happened.
    pub settled_after_ms: Option<u64>,
    /// The outside contradicted itself before: only what it confirmed and is there after all, or a person,
    /// settles it now.
    pub contradicted: bool,
    /// The answer by which the vendor promised that nothing happened, if it gave that one.
    pub refused: Option<String>,
}

/// What a look comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It is in force: the evidence matches.
    Effective {
        /// The receipt.
        receipt: String,
    },
    /// It did not happen, or has ended without effect.
    Blocked {
        /// Why.
        why: String,
    },
    /// What was said and what is there do not fit: a person is asked, nothing is sent again.
    Contradiction {
        /// What does not fit.
        why: String,
    },
    /// Nothing is proven; look again.
    Again,
    /// As it was said, and final: no more looks.
    Confirmed,
}

/// Compares what the outside shows now with what it said. "Not found yet" proves nothing before the
/// promised time has passed. `at`: when the look began.
pub fn reconcile(action: &Settled, sight: &Sight, at: Timestamp) -> Finding {
    let promised = action.settled_after_ms.is_some_and(|ms| action.sent_by.plus_ms(ms) <= at);
    match (action.state, sight) {
        (_, Sight::Unreadable(_)) => Finding::Again,
        (ActionState::Blocked, Sight::Found { ended: true, .. }) => Finding::Confirmed,
        (ActionState::Blocked, Sight::Found { receipt, ended: false }) => Finding::Contradiction {
            why: format!("it was taken for not done, and yet {receipt} is there"),
        },
        (ActionState::Blocked, Sight::Absent) if promised => Finding::Confirmed,
        (ActionState::Blocked, Sight::Absent) => Finding::Again,
        (_, Sight::Found { receipt, ended: true }) => {
            Finding::Blocked { why: format!("{receipt} has ended without effect") }
        }
        (ActionState::Accepted, Sight::Found { receipt, ended: false })
            if action.receipt.as_ref().is_some_and(|said| said != receipt) =>
        {
            let said = action.receipt.as_deref().unwrap_or_default();
            Finding::Contradiction { why: format!("{said} was confirmed, and {receipt} is there") }
        }
        (ActionState::Unknown, Sight::Found { receipt, ended: false })
            if action.refused.is_some() && !action.contradicted =>
        {
            Finding::Contradiction { why: format!("it was refused, and yet {receipt} is there") }
        }
        // What it never confirmed and yet has, the person settles; until they do, its errand stays open.
        (ActionState::Unknown, Sight::Found { receipt, ended: false })
            if action.contradicted && action.receipt.as_ref() != Some(receipt) =>
        {
            Finding::Again
        }
        (_, Sight::Found { receipt, ended: false }) => {
            Finding::Effective { receipt: receipt.clone() }
        }
        (ActionState::Accepted, Sight::Absent) if promised => Finding::Contradiction {
            why: format!(
                "{} was confirmed, and is not there",
                action.receipt.as_deref().unwrap_or("it")
            ),
        },
        (ActionState::Unknown, Sight::Absent) if !action.contradicted => match &action.refused {
            // Both say that nothing happened.
            Some(why) => Finding::Blocked { why: why.clone() },
            None if promised => {
                Finding::Blocked { why: "it is not there, and can no longer come".into() }
            }
            None => Finding::Again,
        },
        (_, Sight::Absent) => Finding::Again,
    }
}
