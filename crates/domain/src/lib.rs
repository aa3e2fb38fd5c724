//! The nouns' states and every decision about them, as synchronous functions of values.
//!
//! No async, no SQL, no clock that is read, no vendor's name: whatever is decided here can be tried
//! with values alone, and the store repeats the transition tables as a second wall.

pub mod attribute;
pub mod draft;
pub mod effect;
pub mod event;
pub mod hold;
pub mod links;
pub mod path;
pub mod queue;
pub mod schedule;
pub mod situation;
pub mod state;
pub mod stop;
pub mod words;

pub use state::{Custody, Machine, Stage};
