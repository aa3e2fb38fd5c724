//! Events and bodies: what came in, and the content of people and of outside.

use base::Id as _;
use base::{BodyId, Digest, DutyId, EventId, OwnerId, RunId, SessionId, SourceId, Timestamp};
use domain::event::{AskedAbout, EventKind, Trust};

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// Content, apart from the records that name it, so that it can be erased alone.
    pub struct Body in "body" {
        /// Its id.
        pub id: BodyId,
        /// Whose.
        pub owner: OwnerId,
        /// The content; gone once erased.
        pub bytes: Option<Vec<u8>>,
        /// SHA-256 of the content, kept for ever.
        pub digest: Digest,
        /// Media type.
        pub media: String,
        /// Where it came from.
        pub provenance: String,
        /// The lowest trust of what it was made of.
        pub trust: Trust,
        /// When.
        pub created_at: Timestamp,
        /// When it was erased.
        pub erased_at: Option<Timestamp>,
    }
}

record! {
    /// Anything that can wake the agent.
    pub struct Event in "event" {
        /// Its id.
        pub id: EventId,
        /// Whose.
        pub owner: OwnerId,
        /// Through which source.
        pub source: SourceId,
        /// Unique within the source: a client's message id, `schedule:slot`, …
        pub external_id: String,
        /// What it is.
        pub kind: EventKind,
        /// What waits may match.
        pub key: Option<String>,
        /// What subscriptions may match: `issues.opened`.
        pub topic: Option<String>,
        /// Set by the ingress.
        pub trust: Trust,
        /// Its content.
        pub body: BodyId,
        /// Digest of its content: same id with other content is a conflict.
        pub digest: Digest,
        /// URLs that the ingress found in it, as a JSON list.
        pub links: Option<String>,
        /// The session it belongs to by its source's own word.
        pub session: Option<SessionId>,
        /// The duty it belongs to.
        pub duty: Option<DutyId>,
        /// Whether it came so late that the agent must say so.
        pub late: bool,
        /// When it was accepted.
        pub received_at: Timestamp,
        /// The owner's change number at that time; 0 for what was accepted without the owner's lock.
        pub seq: i64,
        /// The card that the user asks about in it, as `action:<id>` or `proposal:<id>`.
        pub about: Option<String>,
        /// What became of it; never empty once handled (EVT-10).
        pub disposition: Option<String>,
        /// When.
        pub handled_at: Option<Timestamp>,
    }
}

statements! { "event":
    INSERT = hot insert Event, "ON CONFLICT (source, external_id) DO NOTHING";
    BY_ID = hot select Event, "WHERE id = $1";
    BY_EXTERNAL = hot select Event, "WHERE source = $1 AND external_id = $2";
    BY_KEY = hot select Event, "WHERE owner = $1 AND kind = $2 AND key = $3 AND received_at >= $4
          AND NOT EXISTS (SELECT 1 FROM work_item w WHERE w.event = event.id AND w.run = $5)
        ORDER BY received_at, id LIMIT 1";
    DISPOSE = hot "UPDATE event SET disposition = $2, handled_at = $3
        WHERE id = $1 AND disposition IS NULL";
    ABOUT = "UPDATE event SET about = $2 WHERE id = $1";
    UNHANDLED = "SELECT COUNT(*) FROM event WHERE owner = $1 AND disposition IS NULL";
    INSERT_BODY = hot insert Body, "";
    BODY = hot select Body, "WHERE id = $1";
    ERASE = "UPDATE body SET bytes = NULL, erased_at = $3 WHERE id = $1 AND owner = $2 AND erased_at IS NULL";
    RECENT = hot select Event, "WHERE owner = $1 AND (received_at, id) < ($2, $3)
        ORDER BY received_at DESC, id DESC LIMIT $4";
}

/// Content to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBody {
    /// Its id, made outside the transaction.
    pub id: BodyId,
    /// The content.
    pub bytes: Vec<u8>,
    /// Media type.
    pub media: String,
    /// Where it came from.
    pub provenance: String,
    /// The lowest trust of what it was made of.
    pub trust: Trust,
}

impl NewBody {
    /// A plain text.
    pub fn text(id: BodyId, text: impl Into<String>, provenance: String, trust: Trust) -> Self {
        let bytes = text.into().into_bytes();
        NewBody { id, bytes, media: "text/plain; charset=utf-8".into(), provenance, trust }
    }
}

/// Stores content and gives its digest.
pub fn put_body(tx: &mut OwnerTx<'_, '_>, new: NewBody) -> Result<Digest> {
    let (owner, now) = (tx.owner(), tx.now());
    insert_body(tx, owner, now, new)
}

fn insert_body(tx: &mut Tx<'_>, owner: OwnerId, now: Timestamp, new: NewBody) -> Result<Digest> {
    let digest = Digest::of(&new.bytes);
    let body = Body {
        id: new.id,
        owner,
        bytes: Some(new.bytes),
        digest,
        media: new.media,
        provenance: new.provenance,
        trust: new.trust,
        created_at: now,
        erased_at: None,
    };
    tx.insert(&INSERT_BODY, &body)?;
    Ok(digest)
}

/// Reads content; `None` once it was erased.
pub fn body(tx: &mut Tx<'_>, id: BodyId) -> Result<Option<Vec<u8>>> {
    let body: Body = tx.one(&BODY, params![id])?.ok_or(StoreError::Missing("body"))?;
    Ok(body.bytes)
}

/// Reads content as text; what was erased reads as a note of that.
pub fn body_text(tx: &mut Tx<'_>, id: BodyId) -> Result<String> {
    let bytes = body(tx, id)?;
    Ok(bytes.map_or_else(|| "(erased)".into(), |b| String::from_utf8_lossy(&b).into_owned()))
}

/// The trust that a content was stored with.
pub fn trust(tx: &mut Tx<'_>, id: BodyId) -> Result<Trust> {
    let body: Body = tx.one(&BODY, params![id])?.ok_or(StoreError::Missing("body"))?;
    Ok(body.trust)
}

/// Erases content; records, digests and the audit chain stay.
pub fn erase_body(tx: &mut OwnerTx<'_, '_>, id: BodyId) -> Result<bool> {
    let (owner, now) = (tx.owner(), tx.now());
    Ok(tx.run(&ERASE, params![id, owner, now])? == 1)
}

/// What accepting an event came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepted {
    /// It is new and stored.
    New,
    /// Its source sent it before (EVT-04); this is the stored one.
    Known(Box<Event>),
}

/// Stores an event once per (source, external id).
pub fn accept(tx: &mut OwnerTx<'_, '_>, event: &Event) -> Result<Accepted> {
    let accepted = insert(tx, event)?;
    if accepted == Accepted::New {
        tx.changed(event.id);
    }
    Ok(accepted)
}

/// The same without the owner's lock, together with its content and its work item: what a source is
/// acknowledged for (EVT-03). The router's change tells of it.
pub fn accept_unlocked(
    tx: &mut Tx<'_>,
    event: &Event,
    content: NewBody,
    item: &crate::work_item::WorkItem,
) -> Result<Accepted> {
    let accepted = insert(tx, event)?;
    if accepted == Accepted::New {
        insert_body(tx, event.owner, event.received_at, content)?;
        crate::work_item::insert_unlocked(tx, item)?;
    }
    Ok(accepted)
}

fn insert(tx: &mut Tx<'_>, event: &Event) -> Result<Accepted> {
    if tx.insert(&INSERT, event)? {
        crate::source::heard(tx, event)?;
        return Ok(Accepted::New);
    }
    let known = tx.one(&BY_EXTERNAL, params![event.source, event.external_id])?;
    known.map(|k| Accepted::Known(Box::new(k))).ok_or(StoreError::Missing("event"))
}

/// Says what became of an event, once.
pub fn dispose(tx: &mut OwnerTx<'_, '_>, id: EventId, disposition: &str) -> Result<()> {
    let now = tx.now();
    tx.run(&DISPOSE, params![id, disposition, now])?;
    tx.changed(id);
    Ok(())
}

/// Notes the card that the user asks about in it.
pub fn set_about(tx: &mut OwnerTx<'_, '_>, id: EventId, about: AskedAbout) -> Result<()> {
    tx.run(&ABOUT, params![id, about.to_string()])?;
    Ok(())
}

/// One event.
pub fn get(tx: &mut Tx<'_>, id: EventId) -> Result<Event> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("event"))
}

/// The event that a source sent under this id.
pub fn by_external(tx: &mut Tx<'_>, source: SourceId, external_id: &str) -> Result<Option<Event>> {
    tx.one(&BY_EXTERNAL, params![source, external_id])
}

/// The first event with a key that came at or after `since`: for waits that are registered late. What
/// stands in the input of `run`, which registers the wait, is no answer to it: it is what led to it.
pub fn by_key(
    tx: &mut OwnerTx<'_, '_>,
    kind: &str,
    key: &str,
    since: Timestamp,
    run: RunId,
) -> Result<Option<Event>> {
    let owner = tx.owner();
    tx.one(&BY_KEY, params![owner, kind, key, since, run])
}

/// An owner's events before an instant, newest first. With an event of that instant: those before it in
/// the same order, so that a page ends anywhere.
pub fn recent(
    tx: &mut Tx<'_>,
    owner: OwnerId,
    before: (Timestamp, Option<EventId>),
    limit: i64,
) -> Result<Vec<Event>> {
    let (at, event) = before;
    // No event's id comes before the nil one.
    let event = event.unwrap_or(EventId::from_uuid(uuid::Uuid::nil()));
    tx.all(&RECENT, params![owner, at, event, limit])
}

/// Events of an owner that have no disposition yet.
pub fn unhandled(tx: &mut Tx<'_>, owner: OwnerId) -> Result<i64> {
    tx.row(&UNHANDLED, params![owner])?.map_or(Ok(0), |row| row.get(0))
}
