//! The records at the end of a run: every one that the change sequence ever named.

use std::collections::BTreeMap;

use base::{ActionId, Digest, Id, OwnerId, SessionId, Timestamp};
use domain::effect::{Content, Sight};
use domain::event::Class;
use domain::state::{
    CheckState, DutyState, HoldState, MessageState, ProposalState, RunState, ScheduleState,
    WaitState, WorkItemState,
};
use serde_json::{Value, json};
use store::action::Action;
use store::approval::Approval;
use store::attempt::Attempt;
use store::check::CheckRun;
use store::duty::Duty;
use store::event::Event;
use store::grant::Grant;
use store::hold::{Hold, Pause};
use store::link::{Attribution, Link};
use store::message::{Message, MessageKind};
use store::owner::{Principal, PrincipalKind};
use store::proposal::Proposal;
use store::run::{Run, Step};
use store::schedule::Schedule;
use store::session::{PrefixChange, Session};
use store::source::Source;
use store::wait::Wait;
use store::work_item::WorkItem;
use store::{Result, Tx};
use uuid::Uuid;

use crate::world::HotelEnd;

/// Everything of one owner, oldest change first.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// Change numbers of all transactions, in order, each once.
    pub seqs: Vec<i64>,
    /// Events with their text and their work item.
    pub events: Vec<(Event, String, WorkItem)>,
    /// Runs with their steps and the steps' text.
    pub runs: Vec<(Run, Vec<(Step, String)>)>,
    /// Messages with their text.
    pub messages: Vec<(Message, String)>,
    /// Waits.
    pub waits: Vec<Wait>,
    /// Duties with their schedules.
    pub duties: Vec<(Duty, Vec<Schedule>)>,
    /// Proposals.
    pub proposals: Vec<Proposal>,
    /// Sessions with the changes of their prefix.
    pub sessions: Vec<(Session, Vec<PrefixChange>)>,
    /// The audit chain, and its head as the owner's row has it.
    pub audit: Vec<store::change::Audited>,
    /// The owner.
    pub owner: Option<store::owner::Owner>,
    /// Faults that are open.
    pub faults: Vec<String>,
    /// The user and the policy.
    pub principals: Vec<Principal>,
    /// Sources that are in use or that something came through.
    pub sources: Vec<Source>,
    /// Which matters events concern.
    pub links: Vec<Link>,
    /// What the small model said of events, with its answer's text.
    pub attributions: Vec<(Attribution, Option<String>)>,
    /// Looks that a program took.
    pub checks: Vec<CheckRun>,
    /// Holds.
    pub holds: Vec<Hold>,
    /// Pauses.
    pub pauses: Vec<Pause>,
    /// What the user allowed in advance.
    pub grants: Vec<Grant>,
    /// Intended effects, oldest first.
    pub actions: Vec<Effect>,
    /// The first and the last change of each record.
    pub changes: BTreeMap<Uuid, (i64, i64)>,
    /// Events that belonged to nothing and were noted.
    pub noted: Vec<store::proactive::Proactive>,
}

/// An intended effect with everything on its path.
#[derive(Debug, Clone)]
pub struct Effect {
    /// The action.
    pub action: Action,
    /// What was frozen, if its bytes can be read.
    pub content: Option<Content>,
    /// The digest of those bytes.
    pub bytes: Digest,
    /// Who released it, oldest first.
    pub approvals: Vec<Approval>,
    /// What was sent, in order.
    pub attempts: Vec<Attempt>,
}

fn effect(tx: &mut Tx<'_>, id: ActionId) -> Result<Effect> {
    let action = store::action::get(tx, id)?;
    let bytes = store::event::body(tx, action.content)?.unwrap_or_default();
    Ok(Effect {
        content: Content::read(&bytes).ok(),
        bytes: Digest::of(&bytes),
        approvals: store::approval::of_action(tx, id)?,
        attempts: store::attempt::of_action(tx, id)?,
        action,
    })
}

/// Reads everything of an owner.
pub fn read(tx: &mut Tx<'_>, owner: OwnerId) -> Result<Records> {
    let mut records = Records {
        owner: Some(store::owner::get(tx, owner)?),
        audit: store::change::audit(tx, owner, 0, i64::MAX)?,
        faults: store::fault::all_open(tx, owner)?.into_iter().map(|fault| fault.key).collect(),
        ..Records::default()
    };
    let mut seen: BTreeMap<(String, Uuid), ()> = BTreeMap::new();
    for change in store::change::after(tx, owner, 0, i64::MAX)? {
        if records.seqs.last() != Some(&change.seq) {
            records.seqs.push(change.seq);
        }
        let first = records.changes.get(&change.record).map_or(change.seq, |(first, _)| *first);
        records.changes.insert(change.record, (first, change.seq));
        if seen.insert((change.noun.clone(), change.record), ()).is_none() {
            one(tx, &mut records, owner, &change.noun, change.record)?;
        }
    }
    around(tx, &mut records, owner)?;
    // The main session changes no record of its own before its first prefix.
    let main = records.owner.as_ref().map(|owner| owner.main_session);
    if let Some(main) = main {
        session(tx, &mut records, main)?;
    }
    Ok(records)
}

/// What no change names: events that were accepted without the owner's lock, and what lies around.
fn around(tx: &mut Tx<'_>, records: &mut Records, owner: OwnerId) -> Result<()> {
    for kind in [PrincipalKind::User, PrincipalKind::Policy] {
        records.principals.push(store::owner::principal(tx, owner, kind)?);
    }
    let mut events =
        store::event::recent(tx, owner, (Timestamp::from_micros(i64::MAX), None), i64::MAX)?;
    events.reverse();
    for event in &events {
        if !records.events.iter().any(|(known, _, _)| known.id == event.id) {
            one(tx, records, owner, "event", event.id.uuid())?;
        }
        records.links.extend(store::link::of_event(tx, event.id)?);
        if let Some(said) = store::link::attribution(tx, event.id)? {
            let answer = said.answer.map(|body| store::event::body_text(tx, body)).transpose()?;
            records.attributions.push((said, answer));
        }
    }
    records.sources = store::source::in_use(tx, owner, i64::MAX)?;
    for event in &events {
        if !records.sources.iter().any(|known| known.id == event.source) {
            records.sources.push(store::source::get(tx, event.source)?);
        }
    }
    records.noted = store::proactive::latest(tx, owner, i64::MAX)?;
    records.noted.reverse();
    Ok(())
}

fn session(tx: &mut Tx<'_>, records: &mut Records, id: SessionId) -> Result<()> {
    if records.sessions.iter().all(|(known, _)| known.id != id) {
        let changes = store::session::prefix_changes(tx, id)?;
        records.sessions.push((store::session::get(tx, id)?, changes));
    }
    Ok(())
}

fn one(tx: &mut Tx<'_>, records: &mut Records, owner: OwnerId, noun: &str, id: Uuid) -> Result<()> {
    match noun {
        "event" => {
            let event = store::event::get(tx, Id::from_uuid(id))?;
            let text = store::event::body_text(tx, event.body)?;
            if let Some(item) = store::work_item::of_event(tx, event.id)? {
                records.events.push((event, text, item));
            }
        }
        "run" => {
            let run = store::run::get(tx, Id::from_uuid(id))?;
            let mut steps = Vec::new();
            for step in store::run::steps(tx, run.id)? {
                let text = store::event::body_text(tx, step.body)?;
                steps.push((step, text));
            }
            session(tx, records, run.session)?;
            records.runs.push((run, steps));
        }
        "message" => {
            let message = store::message::get(tx, Id::from_uuid(id))?;
            let text = store::event::body_text(tx, message.body)?;
            records.messages.push((message, text));
        }
        "action" => records.actions.push(effect(tx, Id::from_uuid(id))?),
        "hold" => records.holds.push(store::hold::get(tx, Id::from_uuid(id))?),
        "pause" => records.pauses.push(store::hold::get_pause(tx, Id::from_uuid(id))?),
        "wait" => records.waits.push(store::wait::get(tx, Id::from_uuid(id))?),
        "duty" => {
            let duty = store::duty::get(tx, owner, Id::from_uuid(id))?;
            let schedules = store::schedule::of_duty(tx, duty.id)?;
            for schedule in &schedules {
                let mut checks = store::check::of_schedule(tx, schedule.id, i64::MAX)?;
                checks.reverse();
                records.checks.extend(checks);
            }
            records.grants.extend(store::grant::of_duty(tx, duty.id)?);
            session(tx, records, duty.session)?;
            records.duties.push((duty, schedules));
        }
        "proposal" => {
            records.proposals.push(store::proposal::get(tx, owner, Id::from_uuid(id))?);
        }
        "session" => session(tx, records, Id::from_uuid(id))?,
        // Reached through the records above, or without a state of their own.
        _ => {}
    }
    Ok(())
}

fn micros(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, |at| json!(at.micros()))
}

impl Records {
    /// What the person was told, in the order of writing: who spoke, the text, whether it is late.
    pub fn told(&self) -> Vec<(MessageKind, &str, bool)> {
        self.messages.iter().map(|(m, text)| (m.kind, text.as_str(), m.late)).collect()
    }

    /// Each record as a line of the history: its noun and its fields.
    pub fn lines(&self) -> Vec<Value> {
        let mut lines = vec![json!({"noun": "changes", "seqs": self.seqs, "faults": self.faults})];
        if let Some(owner) = &self.owner {
            lines.push(json!({
                "noun": "owner", "id": owner.id, "change_seq": owner.change_seq,
                "audit_seq": owner.audit_seq, "audit_head": owner.audit_head,
                "main": owner.main_session,
            }));
        }
        lines.extend(self.audit.iter().map(|a| {
            json!({
                "noun": "audit", "n": a.n, "by": a.by, "verb": a.verb, "of": a.noun,
                "record": a.record.to_string(), "digest": a.digest, "hash": a.hash,
                "when": a.at.micros(),
            })
        }));
        for (session, changes) in &self.sessions {
            lines.push(session_line(session, changes));
        }
        for (event, text, item) in &self.events {
            lines.push(event_line(event, text, item));
        }
        for (run, steps) in &self.runs {
            lines.push(run_line(run));
            lines.extend(steps.iter().map(|(step, text)| step_line(step, text)));
        }
        lines.extend(self.messages.iter().map(|(message, text)| message_line(message, text)));
        lines.extend(self.waits.iter().map(wait_line));
        for (duty, schedules) in &self.duties {
            lines.push(json!({
                "noun": "duty", "id": duty.id, "session": duty.session, "state": duty.state,
                "proposal": duty.proposal,
            }));
            lines.extend(schedules.iter().map(schedule_line));
        }
        lines.extend(self.proposals.iter().map(|p| {
            json!({
                "noun": "proposal", "id": p.id, "run": p.run, "call": p.call_id, "state": p.state,
                "kind": p.kind.word(), "duty": p.duty, "digest": p.digest,
            })
        }));
        lines.extend(self.lines_around());
        lines
    }
}

impl Records {
    /// Control state, the ways in, and by whose word events came where they came.
    fn lines_around(&self) -> Vec<Value> {
        let mut lines: Vec<Value> = Vec::new();
        lines.extend(
            self.principals
                .iter()
                .map(|p| json!({"noun": "principal", "id": p.id, "kind": p.kind.word()})),
        );
        lines.extend(self.sources.iter().map(|s| {
            json!({
                "noun": "source", "id": s.id, "kind": s.kind, "name": s.name,
                "trust": s.trust.word(), "state": s.state,
            })
        }));
        lines.extend(self.links.iter().map(|link| {
            json!({
                "noun": "link", "event": link.event, "session": link.session, "duty": link.duty,
                "how": link.how.word(), "record": link.record.to_string(),
            })
        }));
        lines.extend(self.attributions.iter().map(|(said, answer)| {
            json!({
                "noun": "attribution", "event": said.event, "answer": answer,
                "candidates": list(&said.candidates), "chosen": list(&said.chosen),
                "refused": said.refused,
            })
        }));
        lines.extend(self.checks.iter().map(|check| {
            json!({
                "noun": "check", "id": check.id, "schedule": check.schedule,
                "slot": check.slot.micros(), "late": check.late, "missed": check.missed,
                "state": check.state, "created": check.created_at.micros(),
            })
        }));
        lines.extend(self.holds.iter().map(|hold| {
            json!({
                "noun": "hold", "id": hold.id, "event": hold.event, "state": hold.state,
                "verdict": hold.verdict.map(|verdict| verdict.word()), "by": hold.decided_by,
                "pause": hold.pause, "asked": micros(hold.asked_at),
                "created": hold.created_at.micros(), "moved": hold.moved_at.micros(),
            })
        }));
        lines.extend(self.pauses.iter().map(|pause| {
            json!({
                "noun": "pause", "id": pause.id, "duty": pause.duty, "state": pause.state,
                "placed_by": pause.placed_by, "lifted_by": pause.lifted_by,
                "created": pause.created_at.micros(), "moved": pause.moved_at.micros(),
                "seqs": self.seqs_of(pause.id.uuid()),
            })
        }));
        lines.extend(self.grants.iter().map(|grant| {
            json!({
                "noun": "grant", "id": grant.id, "duty": grant.duty, "tool": grant.tool,
                "state": grant.state, "times": grant.times, "each": grant.each_minor,
                "total": grant.total_minor, "reserved": grant.reserved_count,
                "reserved_minor": grant.reserved_minor, "spent": grant.spent_count,
                "spent_minor": grant.spent_minor, "confirmed_by": grant.confirmed_by,
            })
        }));
        lines.extend(self.actions.iter().flat_map(|effect| self.effect_lines(effect)));
        lines.extend(
            self.noted
                .iter()
                .map(|note| json!({"noun": "note", "event": note.event, "dial": note.dial.word()})),
        );
        lines
    }
}

impl Records {
    /// The numbers of the first and the last change of a record.
    pub fn seqs_of(&self, record: Uuid) -> Option<(i64, i64)> {
        self.changes.get(&record).copied()
    }

    fn effect_lines(&self, effect: &Effect) -> Vec<Value> {
        let action = &effect.action;
        let arguments = effect.content.as_ref().map(|content| content.call(None, ""));
        let mut lines = vec![json!({
            "noun": "action", "id": action.id, "duty": action.duty, "tool": action.tool,
            "session": action.session, "state": action.state, "digest": action.digest,
            "bytes": effect.bytes, "arguments": arguments, "errand": action.errand,
            "tier": action.tier.map(|tier| tier.word()), "reason": action.reason,
            "approval": action.approval, "draws_on": action.draws_on, "minor": action.minor,
            "receipt": action.receipt, "authority": action.authority,
            "contradicted": action.contradicted, "escalated": micros(action.escalated_at),
            "sent": micros(action.sent_at), "created": action.created_at.micros(),
            "due": micros(action.due_at), "run": action.run, "call": action.call_id,
        })];
        lines.extend(effect.approvals.iter().map(|a| {
            json!({
                "noun": "approval", "id": a.id, "action": a.action, "digest": a.digest,
                "state": a.state, "by": a.decided_by, "device": a.device, "grant": a.rests_on,
                "until": a.until_at.micros(), "seqs": self.seqs_of(a.id.uuid()),
            })
        }));
        lines.extend(effect.attempts.iter().map(|a| {
            json!({
                "noun": "attempt", "id": a.id, "action": a.action, "n": a.n,
                "operation": a.operation_id, "state": a.state, "receipt": a.receipt,
                "send_by": a.send_by.micros(), "created": a.created_at.micros(),
                "seqs": self.seqs_of(a.id.uuid()),
            })
        }));
        lines
    }
}

/// What the vendor of a story came to, as lines of the history.
pub fn hotel_lines(end: &HotelEnd) -> Vec<Value> {
    let mut lines: Vec<Value> = Vec::new();
    lines.extend(end.bookings.iter().map(|b| {
        json!({
            "noun": "booking", "number": b.confirmation_number, "operation": b.client_ref,
            "quote": b.quote.id, "guest": b.guest, "made": b.made_at.micros(),
            "cancelled_by": b.cancelled_by, "forgotten": b.forgotten,
        })
    }));
    lines.extend(end.reached.iter().map(|r| {
        json!({
            "noun": "reached", "operation": r.operation, "arguments": r.arguments,
            "when": r.at.micros(),
        })
    }));
    lines.extend(end.looked.iter().map(|l| {
        let (receipt, ended) = match &l.sight {
            Sight::Found { receipt, ended } => (Some(receipt), *ended),
            Sight::Absent | Sight::Unreadable(_) => (None, false),
        };
        json!({
            "noun": "looked", "operation": l.operation, "receipt": receipt, "ended": ended,
            "exists": l.exists, "when": l.at.micros(),
        })
    }));
    lines
}

/// A JSON list that stands in a column of text.
fn list(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn session_line(session: &Session, changes: &[PrefixChange]) -> Value {
    let changes: Vec<Value> = changes
        .iter()
        .map(|c| {
            json!({
                "run_n": c.run_n, "digest": c.digest, "window_start": c.window_start,
                "cause": c.cause,
            })
        })
        .collect();
    json!({
        "noun": "session", "id": session.id, "kind": session.kind.word(), "fence": session.fence,
        "runs": session.runs, "held": session.holder.is_some(), "prefixes": changes,
    })
}

fn event_line(event: &Event, text: &str, item: &WorkItem) -> Value {
    json!({
        "noun": "event", "id": event.id, "source": event.source, "external": event.external_id,
        "kind": event.kind, "key": event.key, "topic": event.topic, "trust": event.trust.word(),
        "late": event.late, "session": event.session,
        "duty": event.duty, "received": event.received_at.micros(),
        "disposition": event.disposition, "text": text,
        "item": {
            "id": item.id, "state": item.state, "attempts": item.attempts, "run": item.run,
            "session": item.session, "class": item.class.map(Class::word),
            "created": item.created_at.micros(), "delivered": micros(item.delivered_at),
            "read": micros(item.read_at), "done": micros(item.done_at),
        },
    })
}

fn run_line(run: &Run) -> Value {
    json!({
        "noun": "run", "id": run.id, "session": run.session, "n": run.n, "duty": run.duty,
        "state": run.state, "fence": run.fence, "prefix": run.prefix_digest,
        "window_start": run.window_start, "steps": run.steps, "started": run.started_at.micros(),
        "ended": micros(run.ended_at), "reason": run.reason,
    })
}

fn step_line(step: &Step, text: &str) -> Value {
    json!({
        "noun": "step", "run": step.run, "n": step.n, "kind": step.kind.word(), "tool": step.tool,
        "call": step.call_id, "answer": step.answer_id, "request": step.request_digest,
        "digest": step.digest, "when": step.at.micros(), "text": text,
    })
}

fn message_line(message: &Message, text: &str) -> Value {
    json!({
        "noun": "message", "id": message.id, "kind": message.kind.word(), "run": message.run,
        "call": message.call_id, "state": message.state, "late": message.late, "text": text,
        "duty": message.duty, "proposal": message.proposal, "action": message.action,
    })
}

fn wait_line(wait: &Wait) -> Value {
    json!({
        "noun": "wait", "id": wait.id, "state": wait.state, "kind": wait.kind, "key": wait.key,
        "due": wait.due_at.micros(), "by": wait.satisfied_by, "session": wait.session,
        "run": wait.run, "created": wait.created_at.micros(), "moved": wait.moved_at.micros(),
    })
}

fn schedule_line(schedule: &Schedule) -> Value {
    let rule: Value = serde_json::from_str(&schedule.rule).unwrap_or(Value::Null);
    json!({
        "noun": "schedule", "id": schedule.id, "duty": schedule.duty, "rule": rule,
        "state": schedule.state, "next": schedule.next_slot.micros(),
        "last": micros(schedule.last_slot), "created": schedule.created_at.micros(),
        "until": micros(schedule.until_at), "missed": schedule.run_missed.word(),
        "check": schedule.check_spec.is_some(),
    })
}

/// The states in which each kind of record may rest, as the stories ask for them.
impl Records {
    /// How many work items are in a state.
    pub fn items(&self, state: WorkItemState) -> usize {
        self.events.iter().filter(|(_, _, item)| item.state == state).count()
    }
    /// How many runs are in a state.
    pub fn run_count(&self, state: RunState) -> usize {
        self.runs.iter().filter(|(run, _)| run.state == state).count()
    }
    /// How many waits are in a state.
    pub fn wait_count(&self, state: WaitState) -> usize {
        self.waits.iter().filter(|wait| wait.state == state).count()
    }
    /// How many holds are in a state.
    pub fn hold_count(&self, state: HoldState) -> usize {
        self.holds.iter().filter(|hold| hold.state == state).count()
    }
    /// The states of all looks that a program took, in the order of their slots.
    pub fn check_states(&self) -> Vec<CheckState> {
        self.checks.iter().map(|check| check.state).collect()
    }
    /// What became of events from outside: their ids there and the dispositions' first words.
    pub fn dispositions(&self) -> Vec<(&str, &str)> {
        let outside = self.events.iter().filter(|(event, _, _)| event.kind.is_external());
        let mut found: Vec<(&str, &str)> = outside
            .map(|(event, _, _)| {
                let said = event.disposition.as_deref().unwrap_or("nothing");
                let said = if said.starts_with("handled by run") { "handled" } else { said };
                (event.external_id.as_str(), said)
            })
            .collect();
        found.sort_unstable();
        found
    }
    /// The states of all duties.
    pub fn duty_states(&self) -> Vec<DutyState> {
        self.duties.iter().map(|(duty, _)| duty.state).collect()
    }
    /// The states of all schedules.
    pub fn schedule_states(&self) -> Vec<ScheduleState> {
        self.duties.iter().flat_map(|(_, all)| all).map(|s| s.state).collect()
    }
    /// The states of all proposals.
    pub fn proposal_states(&self) -> Vec<ProposalState> {
        self.proposals.iter().map(|proposal| proposal.state).collect()
    }
    /// Messages that no device has.
    pub fn undelivered(&self) -> usize {
        self.messages.iter().filter(|(m, _)| m.state != MessageState::Delivered).count()
    }
}
