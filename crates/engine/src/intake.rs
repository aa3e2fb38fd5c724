//! Intake: accepts what comes in, durably, before anything acts on it (EVT-03, EVT-04).
//!
//! A user's 1:1 message is accepted and routed in one transaction, together with its hold, so that it is
//! never behind the router. Everything else waits unrouted; what comes from outside is accepted without
//! the owner's lock, so that a flood of it delays nobody.

use base::{BodyId, Digest, DutyId, EventId, OwnerId, SessionId, SourceId, Timestamp, WorkItemId};
use domain::event::{Arrival, AskedAbout, EventKind, Trust};
use domain::state::WorkItemState;
use store::device::Device;
use store::event::{Accepted, Event, NewBody};
use store::source::{Source, SourceKind};
use store::work_item::WorkItem;
use store::{OwnerTx, Result, StoreError};
use uuid::Uuid;

use crate::world::Found;
use crate::{Context, disk, hold, router};

/// Something that came in.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// Through which source.
    pub source: SourceId,
    /// Its id there.
    pub external_id: String,
    /// What it is.
    pub kind: EventKind,
    /// What waits may match.
    pub key: Option<String>,
    /// What subscriptions may match.
    pub topic: Option<String>,
    /// The trust of the source.
    pub trust: Trust,
    /// Its content.
    pub content: Content,
    /// URLs in it, by the ingress.
    pub links: Vec<String>,
    /// The session it belongs to by its source's own word.
    pub session: Option<SessionId>,
    /// The duty it belongs to.
    pub duty: Option<DutyId>,
    /// Whether it is late.
    pub late: bool,
}

/// What an event says.
#[derive(Debug, Clone)]
pub enum Content {
    /// Something new.
    New {
        /// The bytes.
        bytes: Vec<u8>,
        /// Their media type.
        media: String,
        /// Where they came from.
        provenance: String,
    },
    /// What another event says: one body, so that it is erased once.
    Of {
        /// The body.
        body: BodyId,
        /// Its digest.
        digest: Digest,
    },
}

impl Content {
    /// A text of our own or of the user.
    pub fn text(text: impl Into<String>, provenance: impl Into<String>) -> Content {
        Content::New {
            bytes: text.into().into_bytes(),
            media: "text/plain; charset=utf-8".into(),
            provenance: provenance.into(),
        }
    }
}

/// What accepting came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// Stored now.
    New {
        /// The event.
        event: EventId,
        /// Its work item, unrouted.
        item: WorkItemId,
    },
    /// Stored before, with the same content: acknowledged again.
    Known {
        /// The event.
        event: EventId,
    },
    /// Stored before under this id with other content.
    Conflict,
}

/// Stores an event and its work item, once per (source, external id).
pub fn accept(cx: &Context, tx: &mut OwnerTx<'_, '_>, incoming: Incoming) -> Result<Receipt> {
    let (owner, now, seq) = (tx.owner(), tx.now(), tx.seq());
    let Written { event, body, item } = written(cx, owner, now, seq, incoming);
    match store::event::accept(tx, &event)? {
        Accepted::Known(known) => Ok(again(&known, event.digest)),
        Accepted::New => {
            if let Some(body) = body {
                store::event::put_body(tx, body)?;
            }
            store::work_item::insert(tx, &item)?;
            Ok(Receipt::New { event: event.id, item: item.id })
        }
    }
}

/// Accepts what a source delivered, without the owner's lock. Its trust is the source's, whatever its
/// text says (EVT-02). `None`: nothing is stored, since too much waits for the router already or the disk is nearly
/// full; the sender is to come back later.
pub async fn outside(cx: &Context, source: &Source, found: Found) -> Result<Option<Receipt>> {
    let most = i64::try_from(cx.limits.unrouted_max).unwrap_or(i64::MAX);
    let incoming = from_source(source, found)?;
    let (owner, now) = (source.owner, cx.clock.now());
    let Written { event, body, item } = written(cx, owner, now, 0, incoming);
    let (id, digest, item_id) = (event.id, event.digest, item.id);
    let body = body.ok_or_else(|| StoreError::Corrupt("a delivery without content".into()))?;
    let accepted = cx
        .store
        .write_unowned(move |tx| {
            // Whoever is known is answered, however much waits.
            if store::event::by_external(tx, event.source, &event.external_id)?.is_none()
                && store::source::backlog(tx, most)? >= most
            {
                return Ok(None);
            }
            if store::fault::is_open(tx, owner, disk::FULL)?
                && store::event::by_external(tx, event.source, &event.external_id)?.is_none()
            {
                return Ok(None);
            }
            store::event::accept_unlocked(tx, &event, body, &item).map(Some)
        })
        .await?;
    Ok(accepted.map(|accepted| match accepted {
        Accepted::Known(known) => again(&known, digest),
        Accepted::New => Receipt::New { event: id, item: item_id },
    }))
}

/// An event as its source's ingress makes it: the key is the source's own, so that no source can meet
/// what waits for another (EVT-05).
pub(crate) fn from_source(source: &Source, found: Found) -> Result<Incoming> {
    let kind = match source.kind {
        SourceKind::Webhook => EventKind::Webhook,
        SourceKind::Folder => EventKind::File,
        SourceKind::Feed => EventKind::FeedEntry,
        SourceKind::Url => EventKind::PageChanged,
        SourceKind::Device | SourceKind::Timer => {
            let why = format!("source {} takes nothing from outside", source.id);
            return Err(StoreError::Corrupt(why));
        }
    };
    Ok(Incoming {
        source: source.id,
        external_id: found.external_id,
        kind,
        key: found.key.map(|key| format!("{}:{key}", source.name)),
        topic: found.topic,
        trust: source.trust,
        content: Content::New {
            bytes: found.content,
            media: found.media,
            provenance: format!("source:{}", source.name),
        },
        links: found.links,
        session: None,
        duty: None,
        late: false,
    })
}

fn again(known: &Event, digest: Digest) -> Receipt {
    match known.digest == digest {
        true => Receipt::Known { event: known.id },
        false => Receipt::Conflict,
    }
}

struct Written {
    event: Event,
    body: Option<NewBody>,
    item: WorkItem,
}

/// The rows of an event. Ids come from outside the transaction.
fn written(cx: &Context, owner: OwnerId, now: Timestamp, seq: i64, incoming: Incoming) -> Written {
    let (event_id, body_id): (EventId, BodyId) = (cx.id(), cx.id());
    let (body_id, digest, body) = match incoming.content {
        Content::Of { body, digest } => (body, digest, None),
        Content::New { bytes, media, provenance } => {
            let digest = Digest::of(&bytes);
            let trust = incoming.trust;
            (body_id, digest, Some(NewBody { id: body_id, bytes, media, provenance, trust }))
        }
    };
    let links =
        (!incoming.links.is_empty()).then(|| serde_json::Value::from(incoming.links).to_string());
    let event = Event {
        id: event_id,
        owner,
        source: incoming.source,
        external_id: incoming.external_id,
        kind: incoming.kind,
        key: incoming.key,
        topic: incoming.topic,
        trust: incoming.trust,
        body: body_id,
        digest,
        links,
        session: incoming.session,
        duty: incoming.duty,
        late: incoming.late,
        received_at: now,
        seq,
        about: None,
        disposition: None,
        handled_at: None,
    };
    let item = WorkItem {
        id: cx.id(),
        owner,
        event: event_id,
        session: None,
        class: None,
        state: WorkItemState::Unrouted,
        attempts: 0,
        run: None,
        created_at: now,
        delivered_at: None,
        read_at: None,
        done_at: None,
        moved_at: now,
    };
    Written { event, body, item }
}

/// A message that asks about a card: taken in like every other, with a reference that the run reads. It
/// decides nothing (UX rule 4).
pub fn question(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    client_id: Uuid,
    text: &str,
    about: AskedAbout,
) -> Result<Receipt> {
    let owner = tx.owner();
    match about {
        AskedAbout::Action(id) if store::action::get(tx, id)?.owner != owner => {
            return Err(StoreError::Missing("action"));
        }
        AskedAbout::Action(_) => {}
        AskedAbout::Proposal(id) => drop(store::proposal::get(tx, owner, id)?),
    }
    let receipt = message(cx, tx, device, client_id, text)?;
    if let Receipt::New { event, .. } = receipt {
        store::event::set_about(tx, event, about)?;
    }
    Ok(receipt)
}

/// Accepts a 1:1 message of the user, places its hold, and routes it at once (QUE-09).
pub fn message(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    client_id: Uuid,
    text: &str,
) -> Result<Receipt> {
    let source = store::source::get(tx, device.source)?;
    let incoming = Incoming {
        source: source.id,
        external_id: client_id.to_string(),
        kind: EventKind::UserMessage,
        key: None,
        topic: None,
        trust: source.trust,
        content: Content::text(text, format!("device:{}", device.id)),
        links: Vec::new(),
        session: None,
        duty: None,
        late: false,
    };
    let receipt = accept(cx, tx, incoming)?;
    if let Receipt::New { event, item } = receipt {
        hold::place(cx, tx, event)?;
        let main = store::owner::locked(tx)?.main_session;
        let arrival =
            Arrival { kind: EventKind::UserMessage, trust: source.trust, belongs_to: None, main };
        router::apply(tx, event, item, domain::event::route(arrival))?;
        // A person does not wait for a back-off that something else caused.
        store::session::wake(tx, main)?;
    }
    Ok(receipt)
}
