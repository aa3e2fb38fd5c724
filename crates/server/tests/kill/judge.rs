//! Reads the database whole after a story, and the model server's journal, and holds one against
//! the other and against what the person knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{
    Clock as _, Digest, DutyId, EventId, Id as _, MessageId, RunId, SessionId, SystemClock,
    Timestamp,
};
use domain::event::EventKind;
use domain::state::{MessageState, RunState, WorkItemState};
use store::change::{Audited, Change};
use store::event::Event;
use store::ledger::Totals;
use store::message::{Message, MessageKind};
use store::owner::Owner;
use store::run::{Run, Step, StepKind};
use store::schedule::Schedule;
use store::session::Session;
use store::work_item::WorkItem;
use store::{Options, Store, Tx};
use testkit::model_server::Asked;
use testkit::stores::block_on;

use crate::person::{Known, noted};
use crate::stage::{START, Stage};

/// An event, its text and its work item.
pub type Input = (Event, String, Option<WorkItem>);

/// All that is on record.
pub struct Records {
    pub owner: Owner,
    pub changes: Vec<Change>,
    pub audit: Vec<Audited>,
    pub events: Vec<Input>,
    pub messages: Vec<(Message, String)>,
    pub runs: Vec<(Run, Vec<Step>)>,
    pub sessions: BTreeMap<SessionId, Session>,
    pub schedules: Vec<Schedule>,
    pub spent: Totals,
    pub asked: Vec<Asked>,
}

impl Records {
    /// Opens the database of a program that is down.
    pub fn read(stage: &Stage) -> Records {
        let options = Options {
            database: stage.database(),
            clock: Arc::new(SystemClock),
            incarnation: base::IdSource::new([9; 32]).next(SystemClock.now()),
            node: "judge".into(),
            inline: true,
            database_time: false,
            gate: None,
            on_fatal: Arc::new(|why| panic!("{why}")),
            pages_max: None,
        };
        let store = Store::open(options).unwrap();
        let text = std::fs::read_to_string(stage.journal()).unwrap_or_default();
        let asked = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let read = store.read(|tx| gather(tx, asked));
        block_on(read).unwrap()
    }

    pub fn said(&self) -> Vec<(&str, bool)> {
        let agent = self.messages.iter().filter(|(m, _)| m.kind == MessageKind::Agent);
        let mut said: Vec<_> = agent.map(|(m, text)| (text.as_str(), m.late)).collect();
        said.sort_unstable();
        said
    }

    pub fn of_kind(
        &self,
        kind: EventKind,
    ) -> impl Iterator<Item = &(Event, String, Option<WorkItem>)> {
        self.events.iter().filter(move |(event, ..)| event.kind == kind)
    }
}

fn gather(tx: &mut Tx<'_>, asked: Vec<Asked>) -> store::Result<Records> {
    let owners = store::owner::all(tx)?;
    assert_eq!(owners.len(), 1, "{owners:?}");
    let owner = owners.into_iter().next().unwrap();
    let mut changes = Vec::new();
    for from in (0..=owner.change_seq).step_by(1_000) {
        changes.extend(store::change::after(tx, owner.id, from, 1_000)?);
    }
    let audit = store::change::audit(tx, owner.id, 0, i64::MAX)?;
    let changed = |noun: &str| -> BTreeSet<_> {
        changes.iter().filter(|c| c.noun == noun).map(|c| c.record).collect()
    };
    let (mut events, mut messages, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for id in changed("event") {
        let event = store::event::get(tx, EventId::from_uuid(id))?;
        let text = store::event::body_text(tx, event.body)?;
        let item = store::work_item::of_event(tx, event.id)?;
        events.push((event, text, item));
    }
    for id in changed("message") {
        let message = store::message::get(tx, MessageId::from_uuid(id))?;
        let text = store::event::body_text(tx, message.body)?;
        messages.push((message, text));
    }
    let mut sessions = BTreeMap::new();
    for id in changed("run") {
        let run = store::run::get(tx, RunId::from_uuid(id))?;
        sessions.insert(run.session, store::session::get(tx, run.session)?);
        let steps = store::run::steps(tx, run.id)?;
        runs.push((run, steps));
    }
    runs.sort_by_key(|(run, _)| (run.session, run.n));
    let mut schedules = Vec::new();
    for id in changed("duty") {
        schedules.extend(store::schedule::of_duty(tx, DutyId::from_uuid(id))?);
    }
    let spent = store::ledger::all(tx, owner.id)?;
    Ok(Records { owner, changes, audit, events, messages, runs, sessions, schedules, spent, asked })
}

/// What must hold after any story: nothing lost, nothing twice, every book balanced.
pub fn everything(records: &Records, known: &Known) {
    what_is_on_record(records, known);
    answers(records);
}

/// The same without the model's own journal, which tells of no other program's questions.
pub fn what_is_on_record(records: &Records, known: &Known) {
    inputs(records, known);
    sequences(records);
    runs(records);
}

/// Every acknowledged message is one event that one run handled; and nothing else came in.
fn inputs(records: &Records, known: &Known) {
    let came: Vec<(&str, &str)> = records
        .of_kind(EventKind::UserMessage)
        .map(|(event, text, _)| (event.external_id.as_str(), text.as_str()))
        .collect();
    let stored: BTreeMap<&str, &str> = came.iter().copied().collect();
    assert_eq!(came.len(), stored.len(), "a message twice: {came:?}");
    for (id, text) in &known.acknowledged {
        assert_eq!(stored.get(id.as_str()), Some(&text.as_str()), "acknowledged and lost: {id}");
    }
    for (event, text, item) in &records.events {
        let item = item.as_ref().unwrap();
        let what = event.disposition.as_deref().unwrap_or("nothing");
        let by = item.run.map(|run| format!("handled by run {run}"));
        let recorded = event.kind == EventKind::ProposalDecided && what.starts_with("recorded");
        assert_eq!(item.state, WorkItemState::Done, "{event:?} {text}");
        assert!(recorded || by.as_deref() == Some(what), "{what}: {event:?} {text}");
    }
}

/// Change numbers without gaps, an audit chain without a break, each recomputed here.
fn sequences(records: &Records) {
    let seqs: BTreeSet<i64> = records.changes.iter().map(|change| change.seq).collect();
    let whole: BTreeSet<i64> = (1..=records.owner.change_seq).collect();
    let differ: Vec<_> = whole.symmetric_difference(&seqs).collect();
    assert!(differ.is_empty(), "change numbers up to {}: {differ:?}", records.owner.change_seq);
    let (mut n, mut hash) = (0, Digest::ZERO);
    for entry in &records.audit {
        n += 1;
        hash = link(hash, entry);
        assert_eq!((entry.n, entry.hash), (n, hash), "{entry:?}");
    }
    assert_eq!((n, hash), (records.owner.audit_seq, records.owner.audit_head));
}

fn link(before: Digest, entry: &Audited) -> Digest {
    let by = entry.by.map(|by| by.uuid().into_bytes().to_vec()).unwrap_or_default();
    let digest = entry.digest.map(|digest| digest.as_bytes().to_vec()).unwrap_or_default();
    Digest::of_parts([
        before.as_bytes().as_slice(),
        &entry.n.to_be_bytes(),
        &entry.at.micros().to_be_bytes(),
        &by,
        entry.verb.as_bytes(),
        entry.noun.as_bytes(),
        entry.record.as_bytes(),
        &digest,
    ])
}

/// Every run completed, numbered and fenced upwards in its session; its steps are whole.
fn runs(records: &Records) {
    let mut last: BTreeMap<SessionId, (i64, i64)> = BTreeMap::new();
    let mut model_steps = 0;
    for (run, steps) in &records.runs {
        assert_eq!(run.state, RunState::Completed, "{run:?}");
        let (n, fence) = last.insert(run.session, (run.n, run.fence)).unwrap_or((-1, 0));
        assert_eq!(run.n, n + 1, "{run:?}");
        assert!(run.fence > fence, "fence {fence}, then {run:?}");
        let numbers: Vec<u32> = steps.iter().map(|step| step.n).collect();
        assert_eq!(numbers, (0..run.steps).collect::<Vec<_>>(), "{run:?}");
        let calls: Vec<_> = steps.iter().filter_map(|step| step.call_id.as_ref()).collect();
        let once: BTreeSet<_> = calls.iter().collect();
        assert_eq!(calls.len(), once.len(), "a call twice: {steps:?}");
        model_steps += steps.iter().filter(|step| step.kind == StepKind::Model).count();
    }
    for (id, session) in &records.sessions {
        assert!(session.fence >= last[id].1 && session.holder.is_none(), "{session:?}");
    }
    let spent = (records.spent.wakeups, records.spent.model_calls);
    assert_eq!(spent, (records.runs.len() as u64, model_steps as u64));
    let calls: Vec<_> =
        records.messages.iter().filter_map(|(m, _)| m.run.map(|run| (run, &m.call_id))).collect();
    let once: BTreeSet<_> = calls.iter().collect();
    assert_eq!(calls.len(), once.len(), "a call spoke twice: {calls:?}");
}

/// The answer in the journal is the last that the model gave to that question: once journaled, it
/// was not asked again.
fn answers(records: &Records) {
    let mut last: BTreeMap<String, &str> = BTreeMap::new();
    for asked in &records.asked {
        let question = asked.request_digest.unwrap().to_string();
        last.insert(question, asked.answer_id.as_deref().unwrap());
    }
    let mut questions = BTreeSet::new();
    let steps = records.runs.iter().flat_map(|(_, steps)| steps);
    for step in steps.filter(|step| step.kind == StepKind::Model) {
        let question = step.request_digest.unwrap().to_string();
        let answer = step.answer_id.as_deref();
        assert_eq!(answer, last.get(&question).copied(), "asked again: {step:?}");
        assert!(questions.insert(question), "two steps for one question: {step:?}");
    }
    assert_eq!(questions.len(), last.len(), "a question was given up");
}

/// After the kill loop: also every note, every morning and every receipt.
pub fn kills(stage: &Stage, known: &Known) {
    let records = Records::read(stage);
    everything(&records, known);
    let slots = slots(&records);
    let mut expected: Vec<(String, bool)> = (1..=known.notes).map(|n| (noted(n), false)).collect();
    expected.extend(slots.iter().map(|slot| (price_words(*slot), false)));
    expected.sort_unstable();
    let said: Vec<(String, bool)> =
        records.said().into_iter().map(|(text, late)| (text.to_owned(), late)).collect();
    assert_eq!(said, expected);
    let once = |(text, late): &(String, bool)| (text.clone(), (1, *late));
    assert_eq!(known.heard, expected.iter().map(once).collect());
    let notices: Vec<_> =
        records.messages.iter().filter(|(m, _)| m.kind == MessageKind::Notice).collect();
    assert_eq!(notices.len(), 1, "one card and no more: {notices:?}");
    for (message, text) in &records.messages {
        assert_eq!(message.state, MessageState::Delivered, "{text}: {message:?}");
    }
    eprintln!(
        "  {} messages in, {} mornings, {} runs, {} steps, {} questions of which {} were lost to \
         a kill, {} transactions",
        known.acknowledged.len(),
        slots.len(),
        records.runs.len(),
        records.runs.iter().map(|(_, steps)| steps.len()).sum::<usize>(),
        records.asked.len(),
        records.asked.len() as u64 - records.spent.model_calls,
        records.owner.change_seq
    );
}

/// The mornings that fired: each working day from the first to the last, once.
fn slots(records: &Records) -> Vec<Timestamp> {
    const DAY_MS: u64 = 24 * 3_600_000;
    let [schedule] = records.schedules.as_slice() else { panic!("{:?}", records.schedules) };
    let last = schedule.last_slot.unwrap();
    // Eight in the morning in Hong Kong is midnight UTC; the story begins on a Sunday at noon.
    let monday = Timestamp::parse(START).unwrap().plus_ms(DAY_MS / 2);
    let days = (0..u64::MAX).map(|day| (day % 7, monday.plus_ms(day * DAY_MS)));
    let days = days.take_while(|(_, slot)| *slot <= last);
    let slots: Vec<_> = days.filter(|(weekday, _)| *weekday < 5).map(|(_, slot)| slot).collect();
    let id = |slot: &Timestamp| format!("schedule:{}:{}", schedule.id, slot.micros());
    let expected: BTreeSet<String> = slots.iter().map(id).collect();
    let mut fired = BTreeSet::new();
    for (event, text, _) in records.of_kind(EventKind::ScheduleDue) {
        assert!(fired.insert(event.external_id.clone()), "twice: {event:?}");
        assert!(!event.late && !text.contains("missed"), "{text}: {event:?}");
    }
    assert_eq!(fired, expected);
    slots
}

/// What is told on a morning.
pub fn price_words(slot: Timestamp) -> String {
    let day: jiff::civil::Date = slot.to_string()[..10].parse().unwrap();
    format!("The price on {day} is {}.", testkit::price_feed::price_on(day))
}
