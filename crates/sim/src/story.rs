//! What a story is: a script for the model, what the person does and when, and what must come of it.

use base::Timestamp;
use model::ModelError;

use crate::dump::Records;

/// When the person does the next thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So many milliseconds after the story's start.
    At(u64),
    /// So many milliseconds after the last thing.
    After(u64),
    /// So many milliseconds after a card that waits for a decision was seen.
    Card(u64),
    /// So many milliseconds after a run of a duty was seen to begin.
    DutyRuns(u64),
}

/// What the person, or the power supply, does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Sends a message.
    Send(&'static str),
    /// Confirms the oldest open card.
    Confirm,
    /// Declines the oldest open card.
    Decline,
    /// Stops the first duty.
    Stop,
    /// Resumes the first duty.
    Resume,
    /// The process is gone for so many milliseconds.
    Down(u64),
}

/// A model that fails: from a time on, for a number of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Milliseconds after the story's start.
    pub from_ms: u64,
    /// How many calls fail.
    pub asks: u32,
    /// How.
    pub error: ModelError,
}

/// What came of a run of a story.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The records at the end.
    pub records: Records,
    /// Whether crashes or faults were played, so that only what must hold then is asked.
    pub rough: bool,
    /// Whether it was faults, with their late messages and hanging workers.
    pub faults: bool,
}

/// A story.
#[derive(Debug, Clone)]
pub struct Story {
    /// Its name on the command line.
    pub name: &'static str,
    /// In a sentence.
    pub about: &'static str,
    /// The model's rules.
    pub script: &'static str,
    /// Where the clock stands at first.
    pub start: Timestamp,
    /// When it is over, in milliseconds after the start, even if something is due later.
    pub end_ms: u64,
    /// What happens, in order.
    pub acts: Vec<(When, Act)>,
    /// How the model fails.
    pub outages: Vec<Outage>,
    /// A worker that takes in a text with this word dies.
    pub deadly: Option<&'static str>,
    /// Whether the outcome is as it must be.
    pub check: fn(&Outcome) -> Result<(), String>,
}
