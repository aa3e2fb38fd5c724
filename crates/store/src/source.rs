//! Sources: configured ways in, and their health by what they received (EVT-12).

use base::{EventId, OwnerId, SourceId, Timestamp};
use domain::event::Trust;
use domain::state::SourceState;

use crate::error::{Result, StoreError};
use crate::event::Event;
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record, words};

words! {
    /// The kinds of ways in.
    pub enum SourceKind {
        /// A device of the user.
        Device = "device",
        /// This program's own timers and records.
        Timer = "timer",
        /// Signed deliveries.
        Webhook = "webhook",
        /// Files of a watched folder.
        Folder = "folder",
        /// Entries of a feed.
        Feed = "feed",
        /// Changes of a page.
        Url = "url",
    }
}

record! {
    /// A configured way in.
    pub struct Source in "source" {
        /// Its id.
        pub id: SourceId,
        /// Whose.
        pub owner: OwnerId,
        /// Which kind.
        pub kind: SourceKind,
        /// Unique with the kind, among those in use.
        pub name: String,
        /// The trust of everything that comes through it (EVT-02).
        pub trust: Trust,
        /// Whether it is in use.
        pub state: SourceState,
        /// How it is reached, as JSON without secrets.
        pub config: Option<String>,
        /// How far a polled source was read; opaque.
        pub cursor: Option<String>,
        /// How often it is looked at; `None` for what is pushed.
        pub every_ms: Option<u64>,
        /// When it is looked at next.
        pub next_look_at: Option<Timestamp>,
        /// When it was last looked at with success.
        pub looked_at: Option<Timestamp>,
        /// Looks in a row that failed.
        pub failures: u32,
        /// Silence for longer than this is a fault.
        pub expect_ms: Option<u64>,
        /// When something last came: its health.
        pub received_at: Option<Timestamp>,
        /// What that was.
        pub last_event: Option<EventId>,
        /// Deliveries that were refused.
        pub refused: u64,
        /// When the last of them was.
        pub refused_at: Option<Timestamp>,
        /// Since when it exists.
        pub created_at: Timestamp,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

impl Source {
    /// A way in that nothing has come through, neither configured nor polled.
    pub fn new(
        id: SourceId,
        owner: OwnerId,
        kind: SourceKind,
        name: impl Into<String>,
        trust: Trust,
        now: Timestamp,
    ) -> Self {
        Source {
            id,
            owner,
            kind,
            name: name.into(),
            trust,
            state: SourceState::Active,
            config: None,
            cursor: None,
            every_ms: None,
            next_look_at: None,
            looked_at: None,
            failures: 0,
            expect_ms: None,
            received_at: None,
            last_event: None,
            refused: 0,
            refused_at: None,
            created_at: now,
            moved_at: now,
        }
    }
}

statements! { "source":
    INSERT = insert Source, "";
    BY_ID = hot select Source, "WHERE id = $1";
    // Two deliveries at once commit in either order; the later one counts.
    HEARD = hot "UPDATE source SET received_at = $2, last_event = $3
        WHERE id = $1 AND (received_at IS NULL OR received_at <= $2)";
    REFUSED = hot "UPDATE source SET refused = refused + 1, refused_at = $2 WHERE id = $1";
    IN_USE = hot select Source, "WHERE owner = $1 AND state = 'active' AND config IS NOT NULL
        ORDER BY created_at, id LIMIT $2";
    BY_NAME = hot select Source, "WHERE owner = $1 AND state = 'active' AND config IS NOT NULL
        AND name = $2 ORDER BY created_at LIMIT 1";
    DUE = hot "SELECT owner, id FROM source WHERE state = 'active' AND next_look_at <= $1
        ORDER BY next_look_at, id LIMIT $2";
    LOOKED = hot "UPDATE source SET cursor = $2, looked_at = $3, next_look_at = $4, failures = 0
        WHERE id = $1 AND state = 'active'";
    FAILED = hot "UPDATE source SET failures = failures + 1, next_look_at = $2
        WHERE id = $1 AND state = 'active' RETURNING failures";
    REMOVE = "UPDATE source SET state = 'removed', next_look_at = NULL, every_ms = NULL, moved_at = $2
        WHERE id = $1 AND state = 'active'";
    BACKLOG = hot "SELECT COUNT(*) FROM (SELECT 1 AS one FROM work_item w
        WHERE w.state = 'unrouted' LIMIT $1) AS waiting";
    NEXT_LOOK = hot "SELECT MIN(next_look_at) FROM source WHERE state = 'active'
        AND next_look_at IS NOT NULL";
}

/// Adds a way in.
pub fn insert(tx: &mut Tx<'_>, source: &Source) -> Result<()> {
    tx.insert(&INSERT, source).map(|_| ())
}

/// One source.
pub fn get(tx: &mut Tx<'_>, id: SourceId) -> Result<Source> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("source"))
}

/// The ways in that the user has set up, oldest first.
pub fn in_use(tx: &mut Tx<'_>, owner: OwnerId, limit: i64) -> Result<Vec<Source>> {
    tx.all(&IN_USE, params![owner, limit])
}

/// The one of them with this name.
pub fn by_name(tx: &mut Tx<'_>, owner: OwnerId, name: &str) -> Result<Option<Source>> {
    tx.one(&BY_NAME, params![owner, name])
}

/// Something came through it.
pub(crate) fn heard(tx: &mut Tx<'_>, event: &Event) -> Result<()> {
    tx.run(&HEARD, params![event.source, event.received_at, event.id]).map(|_| ())
}

/// Counts a delivery that was refused. Nothing else of it is kept.
pub fn refused(tx: &mut Tx<'_>, id: SourceId, at: Timestamp) -> Result<()> {
    tx.run(&REFUSED, params![id, at]).map(|_| ())
}

/// Polled sources whose next look has come.
pub fn due(tx: &mut Tx<'_>, now: Timestamp, limit: i64) -> Result<Vec<(OwnerId, SourceId)>> {
    let rows = tx.rows(&DUE, params![now, limit])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

/// A look that went well: how far it came, and when the next is.
pub fn looked(tx: &mut OwnerTx<'_, '_>, id: SourceId, cursor: &str, next: Timestamp) -> Result<()> {
    let now = tx.now();
    if tx.run(&LOOKED, params![id, cursor, now, next])? == 1 {
        tx.changed(id);
    }
    Ok(())
}

/// A look that failed; gives how many have in a row. 0: the source is no longer in use.
pub fn look_failed(tx: &mut OwnerTx<'_, '_>, id: SourceId, next: Timestamp) -> Result<u32> {
    let Some(row) = tx.row(&FAILED, params![id, next])? else { return Ok(0) };
    tx.mark_written();
    tx.changed(id);
    row.get(0)
}

/// Takes a way in out of use; `false` if it was already.
pub fn remove(tx: &mut OwnerTx<'_, '_>, id: SourceId) -> Result<bool> {
    let now = tx.now();
    let removed = tx.run(&REMOVE, params![id, now])? == 1;
    if removed {
        tx.changed(id);
    }
    Ok(removed)
}

/// How many accepted events nobody has routed yet, counted up to `most`: what an ingress refuses by.
pub fn backlog(tx: &mut Tx<'_>, most: i64) -> Result<i64> {
    tx.row(&BACKLOG, params![most])?.map_or(Ok(0), |row| row.get(0))
}

/// The first look of all polled sources, for a clock that jumps.
pub fn next_look(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    tx.row(&NEXT_LOOK, params![])?.map_or(Ok(None), |row| row.get(0))
}
