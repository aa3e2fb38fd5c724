//! Answers about what comes in and what is held, as far as the command line shows them.

use base::Timestamp;
use serde::Deserialize;

/// A way in.
#[derive(Debug, Clone, Deserialize)]
pub struct Source {
    /// Its id.
    pub id: String,
    /// As the person named it.
    pub name: String,
    /// webhook, folder, feed or url.
    pub kind: String,
    /// Where a webhook's sender delivers to.
    #[serde(default)]
    pub address: Option<String>,
    /// Whether a webhook's secret is kept.
    #[serde(default)]
    pub secret: Option<String>,
    /// How often it is looked at.
    #[serde(default)]
    pub every_ms: Option<u64>,
    /// When something last came.
    #[serde(default)]
    pub received_at: Option<Timestamp>,
    /// Whether it has been silent for longer than expected.
    #[serde(default)]
    pub silent: bool,
    /// Deliveries that were refused.
    #[serde(default)]
    pub refused: u64,
    /// When the last of them was.
    #[serde(default)]
    pub refused_at: Option<Timestamp>,
    /// When it was last looked at with success.
    #[serde(default)]
    pub looked_at: Option<Timestamp>,
    /// When it is looked at next.
    #[serde(default)]
    pub next_look_at: Option<Timestamp>,
    /// Looks in a row that failed.
    #[serde(default)]
    pub failures: u64,
    /// Its last event.
    #[serde(default)]
    pub last_event: Option<String>,
}

/// All of them.
#[derive(Debug, Deserialize)]
pub struct Sources {
    /// Oldest first.
    pub sources: Vec<Source>,
    /// Deliveries to addresses that are no webhook's.
    #[serde(default)]
    pub unknown: Unknown,
}

/// Deliveries to nobody.
#[derive(Debug, Default, Deserialize)]
pub struct Unknown {
    /// How many since the server's start.
    #[serde(default)]
    pub refused: u64,
    /// When the last was.
    #[serde(default)]
    pub refused_at: Option<Timestamp>,
}

/// What came of trying a source.
#[derive(Debug, Deserialize)]
pub struct Tried {
    /// Whether it works.
    pub ok: bool,
    /// What the signed sample got.
    #[serde(default)]
    pub status: Option<u16>,
    /// What a look finds.
    #[serde(default)]
    pub found: Vec<Found>,
    /// Whether there is more.
    #[serde(default)]
    pub more: bool,
    /// What is wrong.
    #[serde(default)]
    pub problem: Option<String>,
}

/// One thing that a look found.
#[derive(Debug, Deserialize)]
pub struct Found {
    /// Its id there.
    pub external_id: String,
    /// What happened.
    #[serde(default)]
    pub topic: Option<String>,
    /// How large it is.
    #[serde(default)]
    pub bytes: u64,
}

/// One line of the list of events.
#[derive(Debug, Deserialize)]
pub struct EventLine {
    /// Its id.
    pub id: String,
    /// What it is.
    pub kind: String,
    /// The source's name.
    pub source: String,
    /// What happened.
    #[serde(default)]
    pub topic: Option<String>,
    /// When it was accepted.
    pub received_at: Timestamp,
    /// Where its work item stands.
    #[serde(default)]
    pub state: Option<String>,
    /// What became of it.
    #[serde(default)]
    pub disposition: Option<String>,
}

/// A page of them.
#[derive(Debug, Deserialize)]
pub struct Events {
    /// Newest first.
    pub events: Vec<EventLine>,
    /// What to ask for next.
    #[serde(default)]
    pub before: Option<String>,
}

/// What is stopped, paused and held.
#[derive(Debug, Deserialize)]
pub struct Control {
    /// The operator has stopped everything.
    pub system_stop: bool,
    /// In force.
    pub pauses: Vec<Pause>,
    /// In force.
    pub holds: Vec<Hold>,
}

/// A pause.
#[derive(Debug, Clone, Deserialize)]
pub struct Pause {
    /// Its id.
    pub id: String,
    /// `None`: everything.
    #[serde(default)]
    pub duty: Option<String>,
    /// The duty's title.
    #[serde(default)]
    pub title: Option<String>,
    /// user or policy.
    #[serde(default)]
    pub by: String,
    /// Since when.
    pub created_at: Timestamp,
}

/// A message that holds everything back.
#[derive(Debug, Clone, Deserialize)]
pub struct Hold {
    /// Its id.
    pub id: String,
    /// The message.
    #[serde(default)]
    pub text: String,
    /// Since when.
    pub created_at: Timestamp,
    /// When the person was asked.
    #[serde(default)]
    pub asked_at: Option<Timestamp>,
}

/// What the dial let the agent do, or would have.
#[derive(Debug, Deserialize)]
pub struct Observed {
    /// off, observe or auto.
    pub dial: String,
    /// Newest first.
    pub notes: Vec<Note>,
}

/// One note.
#[derive(Debug, Deserialize)]
pub struct Note {
    /// The event that belonged to nothing.
    pub event: String,
    /// What the situation is.
    pub situation: String,
    /// When it would disturb.
    pub disturb: String,
    /// How far it would go.
    pub reach: String,
    /// When.
    pub at: Timestamp,
}
