//! Intake: accepts what comes in, durably, before anything acts on it (EVT-03, EVT-04).
//!
//! A user's 1:1 message is accepted and routed in one transaction, so that it is never behind the
//! router. Everything else waits unrouted.

use base::{Digest, DutyId, EventId, SessionId, SourceId, WorkItemId};
use domain::event::{Arrival, EventKind, Trust};
use domain::state::WorkItemState;
use store::device::Device;
use store::event::{Accepted, Event, NewBody};
use store::work_item::WorkItem;
use store::{OwnerTx, Result};
use uuid::Uuid;

use crate::{Context, router};

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
    /// The trust of the source.
    pub trust: Trust,
    /// Its content.
    pub content: Vec<u8>,
    /// Media type of the content.
    pub media: &'static str,
    /// Where the content came from.
    pub provenance: String,
    /// The session it belongs to by its source's own word.
    pub session: Option<SessionId>,
    /// The duty it belongs to.
    pub duty: Option<DutyId>,
    /// Whether it is late.
    pub late: bool,
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
    let (event_id, item_id) = (cx.id(), cx.id());
    let digest = Digest::of(&incoming.content);
    let body = NewBody {
        id: cx.id(),
        bytes: incoming.content,
        media: incoming.media,
        provenance: incoming.provenance,
        trust: incoming.trust,
    };
    let event = Event {
        id: event_id,
        owner: tx.owner(),
        source: incoming.source,
        external_id: incoming.external_id,
        kind: incoming.kind,
        key: incoming.key,
        trust: incoming.trust,
        body: body.id,
        digest,
        session: incoming.session,
        duty: incoming.duty,
        late: incoming.late,
        received_at: tx.now(),
        seq: tx.seq(),
        disposition: None,
        handled_at: None,
    };
    match store::event::accept(tx, &event)? {
        Accepted::Known(known) if known.digest == digest => Ok(Receipt::Known { event: known.id }),
        Accepted::Known(_) => Ok(Receipt::Conflict),
        Accepted::New => {
            store::event::put_body(tx, body)?;
            let item = WorkItem {
                id: item_id,
                owner: tx.owner(),
                event: event_id,
                session: None,
                class: None,
                state: WorkItemState::Unrouted,
                attempts: 0,
                run: None,
                created_at: tx.now(),
                delivered_at: None,
                read_at: None,
                done_at: None,
                moved_at: tx.now(),
            };
            store::work_item::insert(tx, &item)?;
            Ok(Receipt::New { event: event_id, item: item_id })
        }
    }
}

/// Accepts a 1:1 message of the user and routes it at once.
pub fn message(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    client_id: Uuid,
    text: &str,
) -> Result<Receipt> {
    let source = store::event::source(tx, device.source)?;
    let incoming = Incoming {
        source: source.id,
        external_id: client_id.to_string(),
        kind: EventKind::UserMessage,
        key: None,
        trust: source.trust,
        content: text.as_bytes().to_vec(),
        media: "text/plain; charset=utf-8",
        provenance: format!("device:{}", device.id),
        session: None,
        duty: None,
        late: false,
    };
    let receipt = accept(cx, tx, incoming)?;
    if let Receipt::New { event, item } = receipt {
        let main = store::owner::locked(tx)?.main_session;
        let arrival =
            Arrival { kind: EventKind::UserMessage, trust: source.trust, belongs_to: None, main };
        router::apply(tx, event, item, domain::event::route(arrival))?;
        // A person does not wait for a back-off that something else caused.
        store::session::wake(tx, main)?;
    }
    Ok(receipt)
}
