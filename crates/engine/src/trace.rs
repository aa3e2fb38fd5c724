//! The whole chain of one event, from its source to what a person was told (EVT-15): collected from
//! records in one read, so that it shows one instant.

use base::{BodyId, DutyId, EventId, OwnerId, RunId, SessionId, Timestamp};
use domain::event::{Class, Dial, EventKind, How, Trust};
use domain::hold::Verdict;
use domain::state::{HoldState, MessageState, RunState, WorkItemState};
use serde::Serialize;
use store::event::Event;
use store::link::{Attribution, Link};
use store::source::SourceKind;
use store::{Result, Tx};
use uuid::Uuid;

mod said;

/// Characters of an event's content that a trace repeats.
const EXCERPT_CHARS: usize = 300;
/// Messages of one run that a trace names.
const MESSAGES_MAX: usize = 100;

/// Everything on record about one event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trace {
    /// The event itself.
    pub event: Facts,
    /// The way in that it took.
    pub source: Way,
    /// The event of another lane that this one repeats.
    pub origin: Option<EventId>,
    /// The matters that it concerns, and by whose word.
    pub links: Vec<Matter>,
    /// What the small model said of it.
    pub attribution: Option<Asked>,
    /// Events of other lanes that say the same there.
    pub related: Vec<Related>,
    /// Its place in a queue, with the four times.
    pub work_item: Option<Item>,
    /// The runs that took it in, here and in other lanes.
    pub runs: Vec<Wakeup>,
    /// What the dial let the agent do, or would have.
    pub proactive: Option<Note>,
    /// What it holds back, if it is a message of the user.
    pub hold: Option<Held>,
    /// The chain in words, in the order in which it happened.
    pub words: Vec<String>,
}

/// The event itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// Its id.
    pub id: EventId,
    /// What it is.
    pub kind: EventKind,
    /// Its id at its source.
    pub external_id: String,
    /// What subscriptions match.
    pub topic: Option<String>,
    /// What waits match.
    pub key: Option<String>,
    /// How far its channel is trusted.
    pub trust: Trust,
    /// The first characters of its content.
    pub excerpt: String,
    /// When it was accepted.
    pub received_at: Timestamp,
    /// Whether it came late.
    pub late: bool,
    /// What became of it.
    pub disposition: Option<String>,
    /// When that was.
    pub handled_at: Option<Timestamp>,
}

/// A way in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Way {
    /// Its id.
    pub id: base::SourceId,
    /// Its name.
    pub name: String,
    /// Which kind.
    pub kind: SourceKind,
}

/// One matter that an event concerns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matter {
    /// By whose word.
    pub how: How,
    /// The wait, the subscription, the note, or the event itself.
    pub record: Uuid,
    /// The lane.
    pub session: SessionId,
    /// Its duty; `None`: the conversation.
    pub duty: Option<DutyId>,
    /// The duty's title.
    pub title: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// A question to the small model and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Asked {
    /// Which model.
    pub model: String,
    /// The candidates in the order shown.
    pub candidates: Vec<Candidate>,
    /// Its own words.
    pub answer: Option<String>,
    /// Why it, or a part of it, did not count.
    pub refused: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// A duty that an event might have concerned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// The duty.
    pub duty: DutyId,
    /// Its title.
    pub title: String,
    /// Whether it was taken.
    pub chosen: bool,
}

/// An event that says the same in another lane.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Related {
    /// The event.
    pub event: EventId,
    /// The lane.
    pub session: Option<SessionId>,
    /// The lane's duty.
    pub duty: Option<DutyId>,
    /// What became of it there.
    pub disposition: Option<String>,
}

/// A work item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    /// Its id.
    pub id: base::WorkItemId,
    /// Where it stands.
    pub state: WorkItemState,
    /// Its place in the queue.
    pub class: Option<Class>,
    /// In which lane.
    pub session: Option<SessionId>,
    /// Fruitless runs.
    pub attempts: u32,
    /// Received.
    pub received_at: Timestamp,
    /// Delivered into a run.
    pub delivered_at: Option<Timestamp>,
    /// Read by the model.
    pub read_at: Option<Timestamp>,
    /// Handled, recorded or given up.
    pub done_at: Option<Timestamp>,
}

/// A run that took the event in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wakeup {
    /// The run.
    pub id: RunId,
    /// For which duty.
    pub duty: Option<DutyId>,
    /// Where it stands.
    pub state: RunState,
    /// Why it ended as it did.
    pub reason: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What it said.
    pub messages: Vec<Spoken>,
}

/// A message of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spoken {
    /// The message.
    pub id: base::MessageId,
    /// Where it stands.
    pub state: MessageState,
    /// Its text.
    pub text: String,
    /// When.
    pub at: Timestamp,
}

/// A note of the dial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Note {
    /// Its id.
    pub id: base::ProactiveId,
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

/// A hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Held {
    /// Its id.
    pub id: base::HoldId,
    /// Where it stands.
    pub state: HoldState,
    /// What the model said of the message.
    pub verdict: Option<Verdict>,
}

/// Collects the chain of an event.
///
/// # Errors
/// `Missing("event")` if the owner has no such event.
pub fn collect(tx: &mut Tx<'_>, owner: OwnerId, id: EventId) -> Result<Trace> {
    let event = store::event::get(tx, id)?;
    if event.owner != owner {
        return Err(store::StoreError::Missing("event"));
    }
    let of = store::owner::get(tx, owner)?;
    let zone = domain::schedule::zone(&of.zone)
        .map_err(|error| store::StoreError::Corrupt(error.to_string()))?;
    let source = store::source::get(tx, event.source)?;
    let linked = store::link::of_event(tx, id)?;
    let others = others(tx, of.timer_source, &event, &linked)?;
    let runs = runs(tx, owner, id, &others)?;
    let mut trace = Trace {
        source: Way { id: source.id, name: source.name, kind: source.kind },
        origin: origin(&event),
        links: matters(tx, owner, linked)?,
        attribution: asked(tx, owner, id)?,
        related: others.into_iter().map(related).collect(),
        work_item: store::work_item::of_event(tx, id)?.map(item),
        runs,
        proactive: note(tx, id)?,
        hold: store::hold::of_event(tx, id)?.map(|hold| Held {
            id: hold.id,
            state: hold.state,
            verdict: hold.verdict,
        }),
        event: facts(tx, event)?,
        words: Vec::new(),
    };
    trace.words = said::words(&trace, &zone);
    Ok(trace)
}

fn facts(tx: &mut Tx<'_>, event: Event) -> Result<Facts> {
    let text = store::event::body_text(tx, event.body)?;
    Ok(Facts {
        id: event.id,
        kind: event.kind,
        external_id: event.external_id,
        topic: event.topic,
        key: event.key,
        trust: event.trust,
        excerpt: text.chars().take(EXCERPT_CHARS).collect(),
        received_at: event.received_at,
        late: event.late,
        disposition: event.disposition,
        handled_at: event.handled_at,
    })
}

/// The event that this one repeats in its lane, by the id that the router gave it.
fn origin(event: &Event) -> Option<EventId> {
    let ours = matches!(event.kind, EventKind::Related | EventKind::WaitSatisfied);
    let named = event.external_id.strip_prefix("related:").filter(|_| ours)?;
    base::parse_id(named.split(':').next().unwrap_or_default()).ok()
}

/// The events of other lanes that say the same as this one.
fn others(
    tx: &mut Tx<'_>,
    timer: base::SourceId,
    event: &Event,
    links: &[Link],
) -> Result<Vec<Event>> {
    let mut found: Vec<Event> = Vec::new();
    for link in links {
        let name = format!("related:{}:{}", event.id, link.session);
        let other = store::event::by_external(tx, timer, &name)?;
        found.extend(other.filter(|other| found.iter().all(|known| known.id != other.id)));
    }
    Ok(found)
}

fn related(event: Event) -> Related {
    Related {
        event: event.id,
        session: event.session,
        duty: event.duty,
        disposition: event.disposition,
    }
}

fn matters(tx: &mut Tx<'_>, owner: OwnerId, links: Vec<Link>) -> Result<Vec<Matter>> {
    let mut matters = Vec::new();
    for link in links {
        let title = link.duty.map(|duty| title(tx, owner, duty)).transpose()?;
        let Link { session, duty, how, record, at, .. } = link;
        matters.push(Matter { how, record, session, duty, title, at });
    }
    Ok(matters)
}

/// A duty's title as the user confirmed it; a note of that once it was erased.
pub fn title(tx: &mut Tx<'_>, owner: OwnerId, duty: DutyId) -> Result<String> {
    let erased = || "(erased)".to_owned();
    let duty = store::duty::get(tx, owner, duty)?;
    let content: BodyId = store::duty::version(tx, duty.id)?.content;
    let Some(bytes) = store::event::body(tx, content)? else { return Ok(erased()) };
    let draft = serde_json::from_slice::<domain::draft::Draft>(&bytes);
    Ok(draft.map_or_else(|_| erased(), |draft| draft.title))
}

fn asked(tx: &mut Tx<'_>, owner: OwnerId, id: EventId) -> Result<Option<Asked>> {
    let Some(known) = store::link::attribution(tx, id)? else { return Ok(None) };
    let Attribution { candidates, chosen, model, answer, refused, at, .. } = known;
    let ids = |text: &str| serde_json::from_str::<Vec<DutyId>>(text).unwrap_or_default();
    let chosen = ids(&chosen);
    let mut shown = Vec::new();
    for duty in ids(&candidates) {
        let title = title(tx, owner, duty)?;
        shown.push(Candidate { duty, title, chosen: chosen.contains(&duty) });
    }
    let answer = answer.map(|body| store::event::body_text(tx, body)).transpose()?;
    Ok(Some(Asked { model, candidates: shown, answer, refused, at }))
}

fn item(item: store::work_item::WorkItem) -> Item {
    Item {
        id: item.id,
        state: item.state,
        class: item.class,
        session: item.session,
        attempts: item.attempts,
        received_at: item.created_at,
        delivered_at: item.delivered_at,
        read_at: item.read_at,
        done_at: item.done_at,
    }
}

/// The runs that took the event in, in its own lane first.
fn runs(tx: &mut Tx<'_>, owner: OwnerId, id: EventId, others: &[Event]) -> Result<Vec<Wakeup>> {
    let mut wakeups: Vec<Wakeup> = Vec::new();
    for event in std::iter::once(id).chain(others.iter().map(|other| other.id)) {
        let run = store::work_item::of_event(tx, event)?.and_then(|item| item.run);
        let Some(run) = run else { continue };
        if wakeups.iter().all(|known| known.id != run) {
            wakeups.push(wakeup(tx, owner, run)?);
        }
    }
    Ok(wakeups)
}

fn wakeup(tx: &mut Tx<'_>, owner: OwnerId, run: RunId) -> Result<Wakeup> {
    let run = store::run::get(tx, run)?;
    let mut messages = Vec::new();
    for entry in store::message::of_run(tx, owner, run.id)?.into_iter().take(MESSAGES_MAX) {
        let text = store::event::body_text(tx, entry.body)?;
        let (id, state, at) = (entry.id, entry.state, entry.created_at);
        messages.push(Spoken { id, state, text, at });
    }
    Ok(Wakeup {
        id: run.id,
        duty: run.duty,
        state: run.state,
        reason: run.reason,
        started_at: run.started_at,
        ended_at: run.ended_at,
        messages,
    })
}

fn note(tx: &mut Tx<'_>, id: EventId) -> Result<Option<Note>> {
    Ok(store::proactive::of_event(tx, id)?.map(|note| Note {
        id: note.id,
        dial: note.dial,
        situation: note.situation,
        disturb: note.disturb,
        reach: note.reach,
        release: note.release,
        at: note.at,
    }))
}
