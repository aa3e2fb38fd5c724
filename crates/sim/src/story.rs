//! What a story is: a script for the model, what the person does and when, and what must come of it.

use std::fmt;

use base::Timestamp;
use domain::state::ActionState;
use engine::world::Found;
use model::ModelError;
use store::source::SourceKind;
use testkit::hotel::{Fault, Tool};

use crate::dump::Records;
use crate::world::HotelEnd;

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
    /// So many milliseconds after any run was seen to begin.
    Runs(u64),
    /// So many milliseconds after a pause was seen.
    Paused(u64),
    /// So many milliseconds after a hold was seen that a person must settle.
    Held(u64),
    /// So many milliseconds after an action was in this state, or had passed it: the person happens to act
    /// then, whatever their device shows.
    Action(ActionState, u64),
}

/// What the person does about a booking in a variant of the stories with a hotel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Play {
    /// Nothing.
    None,
    /// Pauses everything before admission, and lifts it later.
    PauseBefore,
    /// Pauses everything between admission and attempt.
    PauseBetween,
    /// Pauses everything after the attempt.
    PauseAfter,
    /// Says stop between admission and attempt; the hold becomes a pause.
    StopMessage,
    /// Says something harmless then; the hold is released.
    Harmless,
    /// Takes the action back between admission and attempt.
    Withdraw,
    /// Stops the duty then.
    StopDuty,
    /// Nothing; the agent tries again with another offer when it hears that nothing happened.
    Again,
    /// Releases it on its card.
    Approve,
    /// Releases it when the time is over.
    ApproveLate,
    /// Releases it while everything is paused, and again once that is lifted.
    ApprovePaused,
    /// Refuses it on its card.
    Deny,
}

/// A variant of the stories with a hotel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// How the vendor goes wrong, on the first call of a tool.
    pub fault: Option<(Tool, Fault)>,
    /// What the person does.
    pub play: Play,
}

/// Something that the outside sends, and sends again until it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parcel {
    /// Through the source of this name.
    pub source: &'static str,
    /// The sender's id.
    pub id: &'static str,
    /// Its natural key.
    pub key: Option<&'static str>,
    /// What kind of thing happened.
    pub topic: Option<&'static str>,
    /// What it says.
    pub text: &'static str,
}

impl Parcel {
    /// As the ingress gives it to the intake.
    pub fn found(&self) -> Found {
        Found {
            external_id: self.id.to_owned(),
            key: self.key.map(str::to_owned),
            topic: self.topic.map(str::to_owned),
            content: self.text.as_bytes().to_vec(),
            media: "text/plain; charset=utf-8".to_owned(),
            links: Vec::new(),
        }
    }
}

/// Something that a polled source shows from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Milliseconds after the story's start.
    pub at_ms: u64,
    /// In the source with this configuration.
    pub source: &'static str,
    /// Its id there.
    pub id: &'static str,
    /// What it says.
    pub text: &'static str,
}

impl Entry {
    /// As a look finds it.
    pub fn found(&self) -> Found {
        let Entry { source, id, text, .. } = *self;
        Parcel { source, id, key: None, topic: None, text }.found()
    }
}

impl Case {
    /// Whether the vendor keeps the promises of its manifest.
    pub fn keeps_promises(&self) -> bool {
        self.fault.is_none_or(|(_, fault)| fault.keeps_promises())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            Some((tool, fault)) => write!(f, "{fault:?} on {} × {:?}", tool.as_str(), self.play),
            None => write!(f, "honest × {:?}", self.play),
        }
    }
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
    /// Pauses everything.
    Pause,
    /// Lifts the oldest pause.
    Lift,
    /// Says by a tap that the oldest hold that waits for a person is no stop.
    Release,
    /// Releases the newest action with what its card shows.
    Approve,
    /// Refuses the newest action.
    Deny,
    /// Takes the newest action back.
    Withdraw,
    /// Adds a way in: its kind and its name, which is its configuration too.
    Source(SourceKind, &'static str),
    /// Somebody outside sends something.
    Deliver(Parcel),
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
    /// What the hotel came to, where there is one.
    pub hotel: Option<HotelEnd>,
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
    /// The small model's rules.
    pub small: &'static str,
    /// How the small model fails.
    pub small_outages: Vec<Outage>,
    /// What the notice board says, each from so many milliseconds after the start on. Empty: it cannot
    /// be read.
    pub board: Vec<(u64, &'static str)>,
    /// What polled sources show.
    pub entries: Vec<Entry>,
    /// The hotel in it, if there is one.
    pub hotel: Option<Case>,
    /// A worker that takes in a text with this word dies.
    pub deadly: Option<&'static str>,
    /// Whether the outcome is as it must be.
    pub check: fn(&Outcome) -> Result<(), String>,
}
