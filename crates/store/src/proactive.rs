//! What the dial let the agent do by itself, or would have let it do (PRO-01).

use base::{EventId, OwnerId, ProactiveId, Timestamp};
use domain::event::Dial;

use crate::error::Result;
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// One note: the four questions of proactive work, answered.
    pub struct Proactive in "proactive" {
        /// Its id.
        pub id: ProactiveId,
        /// Whose.
        pub owner: OwnerId,
        /// The event that belonged to nothing.
        pub event: EventId,
        /// Where the dial stood.
        pub dial: Dial,
        /// What the situation is.
        pub situation: String,
        /// When it would disturb.
        pub disturb: String,
        /// How far it would go.
        pub reach: String,
        /// Who would release more.
        pub release: String,
        /// When.
        pub at: Timestamp,
    }
}

statements! { "proactive":
    INSERT = insert Proactive, "";
    OF_EVENT = hot select Proactive, "WHERE event = $1";
    LATEST = hot select Proactive, "WHERE owner = $1 ORDER BY at DESC, id DESC LIMIT $2";
}

/// Adds a note.
pub fn insert(tx: &mut OwnerTx<'_, '_>, note: &Proactive) -> Result<()> {
    tx.insert(&INSERT, note)?;
    tx.changed(note.id);
    Ok(())
}

/// The note of an event.
pub fn of_event(tx: &mut Tx<'_>, event: EventId) -> Result<Option<Proactive>> {
    tx.one(&OF_EVENT, params![event])
}

/// An owner's notes, newest first.
pub fn latest(tx: &mut Tx<'_>, owner: OwnerId, limit: i64) -> Result<Vec<Proactive>> {
    tx.all(&LATEST, params![owner, limit])
}
