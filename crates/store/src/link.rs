//! Links: which matters an event concerns and by whose word (EVT-11, EVT-15), and what the small model
//! said about it.

use base::{BodyId, DutyId, EventId, OwnerId, SessionId, Timestamp};
use domain::event::How;
use uuid::Uuid;

use crate::error::Result;
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// One matter that an event concerns.
    pub struct Link in "event_link" {
        /// The event.
        pub event: EventId,
        /// The lane it went to.
        pub session: SessionId,
        /// Whose.
        pub owner: OwnerId,
        /// The lane's duty.
        pub duty: Option<DutyId>,
        /// By whose word.
        pub how: How,
        /// The wait, the subscription, or the event itself.
        pub record: Uuid,
        /// When.
        pub at: Timestamp,
    }
}

record! {
    /// What the small model said of an event.
    pub struct Attribution in "attribution" {
        /// The event.
        pub event: EventId,
        /// Whose.
        pub owner: OwnerId,
        /// The candidates' duty ids as a JSON list, in the order shown.
        pub candidates: String,
        /// Which model.
        pub model: String,
        /// Its answer.
        pub answer: Option<BodyId>,
        /// The duties taken from it, as a JSON list.
        pub chosen: String,
        /// Why it, or a part of it, did not count.
        pub refused: Option<String>,
        /// When.
        pub at: Timestamp,
    }
}

statements! { "link":
    INSERT = insert Link, "ON CONFLICT (event, session, record) DO NOTHING";
    OF_EVENT = hot select Link, "WHERE event = $1 ORDER BY at, session, record";
    INSERT_ATTRIBUTION = insert Attribution, "";
    ATTRIBUTION = hot select Attribution, "WHERE event = $1";
}

/// Says that an event concerns a matter.
pub fn insert(tx: &mut OwnerTx<'_, '_>, link: &Link) -> Result<()> {
    tx.insert(&INSERT, link).map(|_| ())
}

/// The matters of an event.
pub fn of_event(tx: &mut Tx<'_>, event: EventId) -> Result<Vec<Link>> {
    tx.all(&OF_EVENT, params![event])
}

/// Stores what the small model said.
pub fn attribute(tx: &mut OwnerTx<'_, '_>, attribution: &Attribution) -> Result<()> {
    tx.insert(&INSERT_ATTRIBUTION, attribution).map(|_| ())
}

/// What the small model said of an event.
pub fn attribution(tx: &mut Tx<'_>, event: EventId) -> Result<Option<Attribution>> {
    tx.one(&ATTRIBUTION, params![event])
}
