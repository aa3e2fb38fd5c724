//! Router: attributes accepted events to lanes, by their kind, by the waits they meet and by the
//! subscriptions that cover them (EVT-06..11). It never reads an event's text.

use base::{DutyId, EventId, Id as _, SessionId, WorkItemId};
use domain::event::{Arrival, Class, Dial, EventKind, Found, How, Mode, Placement, Route, Trust};
use domain::event::{covers, place};
use domain::state::{WaitState, WorkItemState};
use store::event::Event;
use store::link::Link;
use store::owner::Owner;
use store::proactive::Proactive;
use store::{OwnerTx, Result};
use uuid::Uuid;

use crate::Context;
use crate::intake::{Content, Incoming, Receipt, accept};
use crate::pump::each;

const BATCH: i64 = 64;
/// Duties that the small model may choose among; an owner with more has the newest asked about.
const CANDIDATES_MAX: i64 = 20;

/// Routes what nobody has routed. `true`: there may be more.
pub async fn pass(cx: &Context) -> Result<bool> {
    let found = cx.store.read(|tx| store::work_item::unrouted(tx, BATCH)).await?;
    let more = found.len() as i64 == BATCH;
    each(found, |(owner, item)| cx.write(owner, move |cx, tx| route(cx, tx, item))).await?;
    Ok(more)
}

/// Routes one item, under the owner's lock.
pub fn route(cx: &Context, tx: &mut OwnerTx<'_, '_>, item: WorkItemId) -> Result<()> {
    let item = store::work_item::get(tx, item)?;
    if item.state != WorkItemState::Unrouted {
        return Ok(());
    }
    let event = store::event::get(tx, item.event)?;
    // Before its waits are met now: one that it met earlier was told when it was registered.
    let met_before = event.kind.is_external() && answered(tx, &event)?;
    let mut lanes = met(tx, &event)?;
    if !event.kind.is_external() {
        return by_kind(cx, tx, &event, item.id, &lanes);
    }
    lanes.extend(subscribed(tx, &event)?);
    let owner = store::owner::locked(tx)?;
    let found = Found {
        lanes: lanes.len(),
        met_before,
        ended: match &event.key {
            Some(key) => store::wait::ended(tx, event.kind.word(), key)?.is_some(),
            None => false,
        },
        // Who has a lane needs no candidates.
        candidates: if lanes.is_empty() { candidates(tx)?.len() } else { 0 },
        dial: owner.dial,
    };
    match place(found) {
        Placement::Lanes => deliver(cx, tx, &event, item.id, &lanes),
        Placement::Answered => answer(tx, &event, item.id),
        Placement::Late => {
            let reason = "late: what waited for it has ended";
            apply(tx, event.id, item.id, Route::Record { reason })
        }
        Placement::Attribute => store::work_item::attribute(tx, item.id),
        Placement::Unclaimed(dial) => {
            unclaimed(cx, tx, &event, item.id, dial, "it concerns no duty")
        }
    }
}

/// Whether an event that no lane has yet has met a wait: when that was registered.
pub(crate) fn answered(tx: &mut OwnerTx<'_, '_>, event: &Event) -> Result<bool> {
    Ok(!store::wait::met_by(tx, event.id)?.is_empty())
}

/// Records an event that has answered a wait already: the run that registered it has been told.
pub(crate) fn answer(tx: &mut OwnerTx<'_, '_>, event: &Event, item: WorkItemId) -> Result<()> {
    let reason = "it answered a wait at the moment that was registered";
    apply(tx, event.id, item, Route::Record { reason })
}

/// One matter that an event concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lane {
    pub session: SessionId,
    pub duty: Option<DutyId>,
    pub how: How,
    pub record: Uuid,
    pub mode: Mode,
}

/// Meets every open wait for the event's kind and key.
fn met(tx: &mut OwnerTx<'_, '_>, event: &Event) -> Result<Vec<Lane>> {
    let mut lanes = Vec::new();
    let Some(key) = &event.key else { return Ok(lanes) };
    for wait in store::wait::by_key(tx, event.kind.word(), key)? {
        if store::wait::end(tx, wait.id, WaitState::Satisfied, Some(event.id))? {
            let (how, record) = (How::Wait, wait.id.uuid());
            let (session, duty) = (wait.session, wait.duty);
            lanes.push(Lane { session, duty, how, record, mode: Mode::Wake });
        }
    }
    Ok(lanes)
}

/// The subscriptions in force that cover the event.
fn subscribed(tx: &mut OwnerTx<'_, '_>, event: &Event) -> Result<Vec<Lane>> {
    let now = tx.now();
    let all = store::subscription::of_source(tx, event.source)?;
    let hears = |s: &store::subscription::Subscription| {
        s.until_at.is_none_or(|until| now <= until)
            && covers(s.topic.as_deref(), event.topic.as_deref())
    };
    let lane = |s: store::subscription::Subscription| Lane {
        session: s.session,
        duty: Some(s.duty),
        how: How::Subscription,
        record: s.id.uuid(),
        mode: s.mode,
    };
    Ok(all.into_iter().filter(hears).map(lane).collect())
}

/// The duties that an event might concern: those in force, the newest last.
pub(crate) fn candidates(tx: &mut OwnerTx<'_, '_>) -> Result<Vec<store::duty::Duty>> {
    let owner = tx.owner();
    store::duty::active(tx, owner, CANDIDATES_MAX)
}

/// Routes what is not from outside: a message, a timer, a decision, an event of another lane.
fn by_kind(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    event: &Event,
    item: WorkItemId,
    lanes: &[Lane],
) -> Result<()> {
    let own = event.session;
    let first = own.or_else(|| lanes.first().map(|lane| lane.session));
    for lane in lanes {
        link(tx, event, lane)?;
        if Some(lane.session) != first {
            relate(cx, tx, event, lane)?;
        }
    }
    let main = store::owner::locked(tx)?.main_session;
    let arrival = Arrival { kind: event.kind, trust: event.trust, belongs_to: first, main };
    apply(tx, event.id, item, domain::event::route(arrival))
}

/// Brings an event to every lane that it concerns: the first gets the event itself, each other one an
/// event of its own that says the same.
pub(crate) fn deliver(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    event: &Event,
    item: WorkItemId,
    lanes: &[Lane],
) -> Result<()> {
    let woken = lanes.iter().find(|lane| lane.mode == Mode::Wake).or(lanes.first());
    let Some(first) = woken else { return Ok(()) };
    let mut told = vec![first.session];
    for lane in lanes {
        link(tx, event, lane)?;
        if !told.contains(&lane.session) {
            told.push(lane.session);
            // A lane that two subscriptions cover is woken if one of them wakes.
            let wakes = |other: &&Lane| other.session == lane.session && other.mode == Mode::Wake;
            relate(cx, tx, event, lanes.iter().find(wakes).unwrap_or(lane))?;
        }
    }
    apply(tx, event.id, item, Route::Enqueue { session: first.session, class: class(first.mode) })
}

fn class(mode: Mode) -> Class {
    match mode {
        Mode::Wake => Class::External,
        Mode::Background => Class::Background,
    }
}

fn link(tx: &mut OwnerTx<'_, '_>, event: &Event, lane: &Lane) -> Result<()> {
    let link = Link {
        event: event.id,
        session: lane.session,
        owner: event.owner,
        duty: lane.duty,
        how: lane.how,
        record: lane.record,
        at: tx.now(),
    };
    store::link::insert(tx, &link)
}

/// Tells a lane of an event that itself went to another one, and puts that into its queue at once: how
/// it enters is known here alone.
fn relate(cx: &Context, tx: &mut OwnerTx<'_, '_>, event: &Event, lane: &Lane) -> Result<()> {
    let (kind, class) = match lane.how {
        How::Wait => (EventKind::WaitSatisfied, Class::Timer),
        How::Subscription | How::Attribution | How::Dial => (EventKind::Related, class(lane.mode)),
    };
    let incoming = Incoming {
        source: store::owner::locked(tx)?.timer_source,
        external_id: format!("related:{}:{}", event.id, lane.session),
        kind,
        key: None,
        topic: event.topic.clone(),
        trust: event.trust.min(Trust::System),
        content: Content::Of { body: event.body, digest: event.digest },
        links: links(event),
        session: Some(lane.session),
        duty: lane.duty,
        late: event.late,
    };
    if let Receipt::New { event, item } = accept(cx, tx, incoming)? {
        apply(tx, event, item, Route::Enqueue { session: lane.session, class })?;
    }
    Ok(())
}

/// The URLs that the ingress found in an event.
pub(crate) fn links(event: &Event) -> Vec<String> {
    event.links.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// An event that belongs to nothing: the dial says whether the agent looks at it by itself, and a note
/// says what it did or would have done (PRO-01, PRO-16).
pub(crate) fn unclaimed(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    event: &Event,
    item: WorkItemId,
    dial: Dial,
    why: &str,
) -> Result<()> {
    let owner = store::owner::locked(tx)?;
    let done = match dial {
        Dial::Off => {
            return record(tx, event.id, item, &format!("ignored: {why}; the dial is off"));
        }
        Dial::Observe => format!("ignored: {why}; noted what the dial on auto would do"),
        Dial::Auto => String::new(),
    };
    let note = note(cx, tx, &owner, event, why)?;
    store::proactive::insert(tx, &note)?;
    if dial == Dial::Observe {
        return record(tx, event.id, item, &done);
    }
    let lane = Lane {
        session: owner.main_session,
        duty: None,
        how: How::Dial,
        record: note.id.uuid(),
        mode: Mode::Wake,
    };
    deliver(cx, tx, event, item, &[lane])
}

fn note(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    owner: &Owner,
    event: &Event,
    why: &str,
) -> Result<Proactive> {
    let source = store::source::get(tx, event.source)?;
    let topic = event.topic.as_deref().map(|topic| format!(" ({topic})")).unwrap_or_default();
    Ok(Proactive {
        id: cx.id(),
        owner: owner.id,
        event: event.id,
        dial: owner.dial,
        situation: format!("{} came from {}{topic}; {why}", event.kind.word(), source.name),
        disturb: "only if the run that looks at it has something to decide or to use".into(),
        reach: "look, remind, ask, prepare".into(),
        release: "the user, for everything beyond that".into(),
        at: tx.now(),
    })
}

/// Writes a routing decision.
pub fn apply(
    tx: &mut OwnerTx<'_, '_>,
    event: EventId,
    item: WorkItemId,
    route: Route,
) -> Result<()> {
    match route {
        Route::Enqueue { session, class } => {
            store::work_item::enqueue(tx, item, session, class)?;
            Ok(())
        }
        Route::Record { reason } => record(tx, event, item, &format!("recorded: {reason}")),
    }
}

/// Handles an event without waking anybody; the verdict stays (EVT-10).
fn record(tx: &mut OwnerTx<'_, '_>, event: EventId, item: WorkItemId, verdict: &str) -> Result<()> {
    let item = store::work_item::get(tx, item)?;
    store::work_item::done(tx, &item)?;
    store::event::dispose(tx, event, verdict)
}
