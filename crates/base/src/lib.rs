//! What every crate may know: identifiers, time, money, limits, digests and secrets.
//!
//! Nothing here reads a file, opens a socket or knows what a duty is.

mod amount;
mod digest;
mod id;
mod limits;
mod money;
mod secret;
mod time;

pub use amount::{Amount, AmountError, Currency};
pub use digest::Digest;
pub use id::{
    ActionId, ApprovalId, AttemptId, BodyId, CheckId, DeviceId, DutyId, EventId, GrantId, HoldId,
    IdSource, Incarnation, MessageId, ObjectId, OwnerId, PauseId, PrincipalId, ProactiveId,
    ProposalId, RuleId, RunId, ScheduleId, SessionId, SituationId, SourceId, SubscriptionId,
    TaskVersionId, WaitId, WorkItemId, parse_id,
};
pub use id::{Id, IdError};
pub use limits::Limits;
pub use money::MicroUsd;
pub use secret::{Secret, SecretError};
pub use time::{Clock, SystemClock, TimeError, Timestamp};
