//! The turn: what a model sees, what it may ask for, and what happens next.
//!
//! Everything here is a pure function of records that somebody else has read: the same records give
//! the same bytes (CTX-03), and the state of a turn is a fold over its stored steps and nothing else.
//! It can propose; it has no handle with which to act, and it knows no SQL.

mod context;
mod intent;
mod tail;
mod tools;
mod turn;
mod window;

pub use context::{Prefix, Profile, Terms, prefix, readable};
pub use intent::{Intent, Mistake, Records, SituationNote};
pub use tail::{DutyNote, Input, Tail};
pub use tools::{BUILT_IN, definitions, schema_of};
pub use turn::{Budget, Next, Outcome, StepKind, Turn};
pub use window::window_start;

/// The version of the harness: prompts, tools and loop. Only a run of the same version is resumed.
pub const HARNESS: &str = concat!("adjutant-", env!("CARGO_PKG_VERSION"), "-2");
