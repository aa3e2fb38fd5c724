//! One identifier type per noun, so that a duty's id cannot be passed where a run's is wanted.
//!
//! All are UUIDv7: sortable by the time they were made, and made outside the transaction that stores
//! them, so that a commit whose answer was lost can be settled by reading them back.

use std::fmt;
use std::sync::Mutex;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use uuid::Uuid;

use crate::Timestamp;

/// What all identifier types share. Implemented by the macro below only.
pub trait Id: Copy + Ord + fmt::Display + Send + Sync + 'static {
    /// The glossary's word for the noun, such as `duty`.
    const NOUN: &'static str;
    /// Wraps a UUID that was read from a column.
    fn from_uuid(uuid: Uuid) -> Self;
    /// The UUID to store.
    fn uuid(self) -> Uuid;
}

/// A text that is no identifier of the wanted noun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no {noun} id; it looks like 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
pub struct IdError {
    /// The noun whose id was expected.
    pub noun: &'static str,
    /// What was given instead.
    pub text: String,
}

/// Reads an identifier from the text that its `Display` writes.
pub fn parse_id<T: Id>(text: &str) -> Result<T, IdError> {
    Uuid::try_parse(text)
        .map(T::from_uuid)
        .map_err(|_| IdError { noun: T::NOUN, text: text.chars().take(80).collect() })
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $noun:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl Id for $name {
            const NOUN: &'static str = $noun;
            fn from_uuid(uuid: Uuid) -> Self { $name(uuid) }
            fn uuid(self) -> Uuid { self.0 }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($noun, ":{}"), self.0)
            }
        }
        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> { parse_id(text) }
        }
    )*};
}

ids! {
    /// An account: the unit of isolation and of locking.
    OwnerId = "owner";
    /// Who may write control state: the user, a supervisor, the policy.
    PrincipalId = "principal";
    /// A client with a scoped, revocable token.
    DeviceId = "device";
    /// A configured way in for events.
    SourceId = "source";
    /// Anything that can wake the agent.
    EventId = "event";
    /// Content from people and from outside, kept apart so that it can be erased alone.
    BodyId = "body";
    /// A conversation lane and the unit of scheduling.
    SessionId = "session";
    /// What a session still has to look at.
    WorkItemId = "work_item";
    /// One wake-up.
    RunId = "run";
    /// A whole delegation.
    DutyId = "duty";
    /// One version of what a duty asks for.
    TaskVersionId = "task_version";
    /// A registered waiting condition.
    WaitId = "wait";
    /// A future wake-up that repeats.
    ScheduleId = "schedule";
    /// A standing wait for events of a source.
    SubscriptionId = "subscription";
    /// A look that a program takes for a schedule.
    CheckId = "check";
    /// An id that the tool layer issued.
    ObjectId = "object";
    /// What a user's message holds back.
    HoldId = "hold";
    /// A pause.
    PauseId = "pause";
    /// A judgement of where a matter stands.
    SituationId = "situation";
    /// A note of what the dial allowed.
    ProactiveId = "proactive";
    /// What a person is told.
    MessageId = "message";
    /// A draft that only the user can turn into control state.
    ProposalId = "proposal";
    /// What was allowed, within which limits, until when.
    GrantId = "grant";
    /// A supervisor's rule.
    RuleId = "rule";
    /// An intended outside effect, its content frozen.
    ActionId = "action";
    /// Who released an action, what exactly, and until when.
    ApprovalId = "approval";
    /// One actual sending.
    AttemptId = "attempt";
    /// One start of one process; a lease names it, so that leases of a dead process are known.
    Incarnation = "incarnation";
}

/// Makes identifiers from the time and a seeded stream of random bits.
///
/// The time is a parameter and the seed is too, so that the simulator makes the same ids each time.
pub struct IdSource {
    random: Mutex<ChaCha8Rng>,
}

impl IdSource {
    /// Starts the stream. Production passes 32 bytes from the operating system.
    pub fn new(seed: [u8; 32]) -> Self {
        IdSource { random: Mutex::new(ChaCha8Rng::from_seed(seed)) }
    }

    /// The next identifier, stamped with `now` in whole milliseconds.
    pub fn next<T: Id>(&self, now: Timestamp) -> T {
        let millis = u64::try_from(now.micros() / 1_000).unwrap_or(0);
        T::from_uuid(uuid::Builder::from_unix_timestamp_millis(millis, &self.bytes()).into_uuid())
    }

    /// Ten random bytes: for one-time codes and the random part of identifiers.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        // A poisoned lock still guards a valid generator: no invariant spans two statements.
        self.random
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .fill_bytes(&mut bytes);
        bytes
    }
}

impl fmt::Debug for IdSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdSource(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::{DutyId, Id as _, IdSource, RunId, parse_id};
    use crate::Timestamp;

    #[test]
    fn the_same_seed_gives_the_same_ids_in_order_of_time() {
        let at = |micros| Timestamp::from_micros(micros);
        let (a, b) = (IdSource::new([7; 32]), IdSource::new([7; 32]));
        let first: DutyId = a.next(at(1_000_000));
        assert_eq!(first, b.next(at(1_000_000)));
        let second: DutyId = a.next(at(2_000_000));
        assert!(first < second, "ids sort by time");
        assert_eq!(first.uuid().get_version_num(), 7);
        assert_eq!(parse_id::<DutyId>(&first.to_string()), Ok(first));
        assert_eq!(
            parse_id::<RunId>("nope").map_err(|e| e.to_string()),
            Err("\"nope\" is no run id; it looks like 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01".into())
        );
    }
}
