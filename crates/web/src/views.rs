//! How records look to a client: made in this one place, from records alone (P4).

pub(crate) mod action;
mod heard;

use base::{BodyId, Timestamp};
use domain::draft::Draft;
use domain::event::AskedAbout;
use domain::schedule::{Rule, month, zone};
use domain::state::{DutyState, ProposalState, RunState, ScheduleState};
use domain::words::{self, DutyFacts, Language, Question, duty_line};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::duty::Duty;
use store::ledger::Totals;
use store::message::Entry;
use store::owner::{Owner, PrincipalKind};
use store::proposal::{Proposal, ProposalKind};
use store::run::Run;
use store::schedule::Schedule;
use store::wait::Wait;
use store::{Result, StoreError, Tx};

use crate::idempotent::Answer;

/// Runs of a duty that are shown, newest first.
const RUNS_SHOWN: i64 = 20;
/// Open waits of a duty that are shown.
const WAITS_SHOWN: i64 = 100;

pub(crate) fn corrupt(what: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("{what}: {error}"))
}

/// Who reads an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader {
    /// In which language.
    pub language: Language,
    /// For whom their device speaks: a supervisor reads less.
    pub kind: PrincipalKind,
}

impl Reader {
    /// A device of this kind, in the owner's language.
    pub(crate) fn of(owner: &Owner, kind: PrincipalKind) -> Self {
        Reader { language: owner.language(), kind }
    }
}

/// One line of the conversation.
pub(crate) fn entry(entry: &Entry) -> Value {
    json!({
        "seq": entry.seq,
        "kind": entry.kind,
        "id": entry.id,
        "text": entry.text,
        "at": entry.at,
        "state": entry.state,
        "duty": entry.duty,
        "proposal": entry.proposal,
        "action": entry.action,
        "about": entry.about.as_deref().and_then(|about| about.parse::<AskedAbout>().ok()),
        "late": entry.late,
    })
}

/// What the month has cost so far.
pub(crate) fn spent(tx: &mut Tx<'_>, owner: &Owner, now: Timestamp) -> Result<Totals> {
    let zone = zone(&owner.zone).map_err(|e| corrupt("the time zone", e))?;
    store::ledger::month(tx, owner.id, &month(&zone, now))
}

/// The owner with what was spent this month.
pub(crate) fn month_so_far(tx: &mut Tx<'_>, owner: &Owner, now: Timestamp) -> Result<Value> {
    let spent = spent(tx, owner, now)?;
    let mut shown = serde_json::to_value(spent).map_err(|e| corrupt("the ledger", e))?;
    shown["cap_micro_usd"] = json!(owner.month_cap_micro_usd);
    Ok(shown)
}

/// A duty without its words; see [`with_words`].
pub(crate) fn duty(tx: &mut Tx<'_>, owner: &Owner, duty: &Duty) -> Result<Answer> {
    let zone = zone(&owner.zone).map_err(|e| corrupt("the owner's zone", e))?;
    let version = store::duty::version(tx, duty.id)?;
    let schedules = store::schedule::of_duty(tx, duty.id)?;
    let waits = store::wait::open(tx, duty.session, WAITS_SHOWN)?;
    let runs = store::run::of_duty(tx, duty.id, RUNS_SHOWN)?;
    let spent = store::ledger::duty(tx, duty.id)?;
    let next_wake = next_wake(duty, &schedules, &waits);
    let facts = DutyFacts {
        state: duty.state,
        running: runs.iter().any(|run| run.state == RunState::Running),
        next_wake,
        last_run: runs.iter().find_map(|run| run.ended_at),
    };
    let prompts = schedules.iter().map(|schedule| schedule.prompt).collect();
    let checks: Vec<Value> =
        schedules.iter().map(|schedule| heard::check(tx, schedule)).collect::<Result<_>>()?;
    let language = owner.language();
    let mut schedules: Vec<Value> =
        schedules.iter().map(|one| schedule(one, language)).collect::<Result<_>>()?;
    for (schedule, check) in schedules.iter_mut().zip(checks) {
        schedule["check"] = check;
    }
    let frame = json!({
        "id": duty.id,
        "state": duty.state,
        "version": version.n,
        "created_at": duty.created_at,
        "next_wake": next_wake,
        "ends_at": version.until_at,
        "waits": waits.iter().map(wait).collect::<Vec<_>>(),
        "schedules": schedules,
        "pause": heard::pause(tx, duty)?,
        "subscriptions": heard::subscriptions(tx, duty)?,
        "situations": heard::situations(tx, duty)?,
        "grants": heard::grants(tx, duty)?,
        "runs": runs.iter().map(run).collect::<Vec<_>>(),
        "spent_micro_usd": spent,
        "state_line": duty_line(facts, &zone, language),
    });
    Ok(Answer { draft: Some(version.content), prompts, ..Answer::plain(frame) })
}

fn next_wake(duty: &Duty, schedules: &[Schedule], waits: &[Wait]) -> Option<Timestamp> {
    match duty.state {
        DutyState::Active | DutyState::CloseProposed => {}
        DutyState::Stopped | DutyState::Closed => return None,
    }
    let slots = schedules.iter().filter_map(next_slot);
    slots.chain(waits.iter().map(|wait| wait.due_at)).min()
}

fn next_slot(schedule: &Schedule) -> Option<Timestamp> {
    let over = schedule.until_at.is_some_and(|until| until < schedule.next_slot);
    (schedule.state == ScheduleState::Active && !over).then_some(schedule.next_slot)
}

fn schedule(schedule: &Schedule, language: Language) -> Result<Value> {
    let rule: Rule = serde_json::from_str(&schedule.rule).map_err(|e| corrupt("a schedule", e))?;
    Ok(json!({
        "id": schedule.id,
        "words": rule.words(language),
        "next_slot": next_slot(schedule),
        "state": schedule.state,
        "late_last": schedule.last_late,
    }))
}

fn wait(wait: &Wait) -> Value {
    json!({
        "id": wait.id,
        "kind": wait.kind,
        "key": wait.key,
        "due_at": wait.due_at,
        "state": wait.state,
    })
}

fn run(run: &Run) -> Value {
    json!({
        "id": run.id,
        "state": run.state,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "steps": run.steps,
        "input_tokens": run.input_tokens,
        "output_tokens": run.output_tokens,
        "micro_usd": run.micro_usd,
    })
}

/// A proposal without its words, as it stands at `now`; see [`with_words`].
pub(crate) fn proposal(
    tx: &mut Tx<'_>,
    owner: &Owner,
    proposal: &Proposal,
    now: Timestamp,
) -> Result<Answer> {
    let zone = zone(&owner.zone).map_err(|e| corrupt("the owner's zone", e))?;
    let over = proposal.state == ProposalState::Open && proposal.expires_at <= now;
    // Expiry is a comparison with the clock; the timer only records it.
    let state = if over { ProposalState::Expired } else { proposal.state };
    let (draft, reason) = match (proposal.kind, proposal.duty) {
        (ProposalKind::CloseDuty, Some(duty)) => {
            (store::duty::version(tx, duty)?.content, Some(proposal.content))
        }
        (ProposalKind::NewDuty | ProposalKind::ChangeDuty, _) | (ProposalKind::CloseDuty, None) => {
            (proposal.content, None)
        }
    };
    let (language, asked) = (owner.language(), question(proposal.kind));
    let (why, afterwards) = words::proposal_card(asked, language);
    let until = words::at(language, &zone, proposal.expires_at);
    // A decided card keeps the first times that it showed when it was decided.
    let seen_at = if proposal.state == ProposalState::Open { now } else { proposal.moved_at };
    let Plan { schedules, ends_at, reach } = match proposal.kind {
        ProposalKind::NewDuty | ProposalKind::ChangeDuty => {
            plan(tx, draft, &zone, seen_at, language)?
        }
        ProposalKind::CloseDuty => Plan::default(),
    };
    let frame = json!({
        "id": proposal.id,
        "kind": match proposal.kind {
            ProposalKind::NewDuty => "new_duty",
            ProposalKind::ChangeDuty => "change_duty",
            ProposalKind::CloseDuty => "close_duty",
        },
        "duty": proposal.duty,
        "schedules": schedules,
        "subscriptions": [],
        "grants": [],
        "reach": reach,
        "changes": [],
        "ends_at": ends_at,
        "until": proposal.expires_at,
        "why": why,
        "if_nothing": words::proposal_if_nothing(asked, &until, language),
        "afterwards": afterwards,
        "words": words::proposal_line(asked, state, language),
        "digest": proposal.digest,
        "state": state,
        "created_at": proposal.created_at,
    });
    let before = before(tx, proposal)?;
    Ok(Answer { draft: Some(draft), before, reason, ..Answer::plain(frame) })
}

/// The version that a change would take the place of: the one that it was drafted for, so that a decided
/// card keeps what it showed.
fn before(tx: &mut Tx<'_>, proposal: &Proposal) -> Result<Option<BodyId>> {
    let (ProposalKind::ChangeDuty, Some(duty)) = (proposal.kind, proposal.duty) else {
        return Ok(None);
    };
    let versions = store::duty::versions(tx, duty)?;
    let drafted = versions.iter().rev().find(|version| version.created_at <= proposal.created_at);
    Ok(drafted.map(|version| version.content))
}

/// What a draft would change, line by line.
fn changes(
    tx: &mut Tx<'_>,
    before: Option<BodyId>,
    draft: Option<&Draft>,
    language: Language,
) -> Result<Vec<String>> {
    let (Some(before), Some(new)) = (before, draft) else { return Ok(Vec::new()) };
    let old = read_draft(tx, before)?;
    Ok(old.map_or_else(Vec::new, |old| domain::draft::Change::between(&old, new, language).lines))
}

/// What the card of a proposal asks.
pub(crate) fn question(kind: ProposalKind) -> Question {
    match kind {
        ProposalKind::NewDuty => Question::Start,
        ProposalKind::ChangeDuty => Question::Change,
        ProposalKind::CloseDuty => Question::Close,
    }
}

/// What a drafted duty would do by itself.
#[derive(Default)]
struct Plan {
    /// When it would wake, each with its first time.
    schedules: Vec<Value>,
    /// When it would end.
    ends_at: Option<Timestamp>,
    /// The most that could ever happen without asking again (DEL-26).
    reach: Option<String>,
}

/// Works that out from a draft; nothing once it was erased.
fn plan(
    tx: &mut Tx<'_>,
    draft: BodyId,
    zone: &jiff::tz::TimeZone,
    after: Timestamp,
    language: Language,
) -> Result<Plan> {
    let Some(draft) = read_draft(tx, draft)? else { return Ok(Plan::default()) };
    let shown = |wakeup: &domain::draft::Wakeup| {
        let first = wakeup.rule.next_after(zone, after).ok();
        json!({
            "words": wakeup.rule.words(language),
            "first": first,
            "run_missed": wakeup.run_missed,
            "check": null,
        })
    };
    let ends_at = draft.until_at().map_err(|e| corrupt("a draft's end", e))?;
    let reach = Some(domain::effect::reach(&draft, zone, after).words(zone, language));
    Ok(Plan { schedules: draft.schedules.iter().map(shown).collect(), ends_at, reach })
}

/// The draft in a body; `None` once it was erased.
pub(crate) fn read_draft(tx: &mut Tx<'_>, body: BodyId) -> Result<Option<Draft>> {
    let Some(bytes) = store::event::body(tx, body)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|e| corrupt("a draft", e))
}

/// Puts onto the card of a new duty all else that a confirmation puts in force: what a program looks
/// at before each wake-up, with the arguments that it hands over, whole; which events are heard; and
/// what may be done without asking again.
fn planned(frame: &mut Value, draft: &Draft, language: Language) {
    let schedules = frame["schedules"].as_array_mut().into_iter().flatten();
    for (schedule, wakeup) in schedules.zip(&draft.schedules) {
        schedule["words"] = json!(wakeup.words(language));
        schedule["run_missed"] = json!(wakeup.run_missed);
        schedule["check"] = wakeup.check.as_ref().map_or(Value::Null, |check| {
            // As text: a reader that turned numbers into its own would show other ones.
            let arguments = Value::Object(check.arguments.clone()).to_string();
            json!({"tool": check.tool, "arguments": arguments, "words": check.words(language)})
        });
    }
    let heard = draft.subscriptions.iter().map(|one| {
        json!({
            "source": one.source,
            "topic": one.topic,
            "mode": one.mode,
            "prompt": one.prompt,
            "words": one.words(language),
        })
    });
    frame["subscriptions"] = heard.collect();
    frame["grants"] = draft.grants.iter().map(|grant| grant.words(language)).collect();
}

/// Why a duty may be closed, as the model put it.
#[derive(Deserialize)]
struct Reason {
    reason: String,
}

const ERASED: &str = "(erased)";

/// What the agent is told at each schedule, in their order.
fn prompts(tx: &mut Tx<'_>, bodies: &[BodyId], draft: Option<&Draft>) -> Result<Vec<String>> {
    if bodies.is_empty() {
        let told = |wakeup: &domain::draft::Wakeup| wakeup.prompt.clone();
        return Ok(draft.map_or_else(Vec::new, |draft| draft.schedules.iter().map(told).collect()));
    }
    let mut told = Vec::new();
    for body in bodies {
        let bytes = store::event::body(tx, *body)?;
        told.push(bytes.map_or_else(
            || ERASED.to_owned(),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        ));
    }
    Ok(told)
}

/// Puts the words of the bodies into an answer: title, goal, conditions, prompts, checks and
/// subscriptions of a draft, and for a closing the reason, which is what the person confirms.
pub(crate) fn with_words(tx: &mut Tx<'_>, answer: Answer, reader: Reader) -> Result<Value> {
    let language = reader.language;
    let Answer { mut frame, draft, before, reason, prompts: bodies, action } = answer;
    if let Some(action) = action {
        return action::with_words(tx, frame, action, reader);
    }
    let Some(body) = draft else { return Ok(frame) };
    let draft = read_draft(tx, body)?;
    let mut told = prompts(tx, &bodies, draft.as_ref())?.into_iter();
    for schedule in frame["schedules"].as_array_mut().into_iter().flatten() {
        schedule["prompt"] = json!(told.next().unwrap_or_else(|| ERASED.to_owned()));
    }
    if before.is_some() {
        frame["changes"] = json!(changes(tx, before, draft.as_ref(), language)?);
    }
    let planned_by = |kind: &Value| kind == "new_duty" || kind == "change_duty";
    match draft.as_ref().filter(|_| planned_by(&frame["kind"])) {
        Some(draft) => planned(&mut frame, draft, language),
        None => heard::with_words(tx, &mut frame, language)?,
    }
    let mut goal = draft.as_ref().map_or(ERASED, |draft| &draft.goal).to_owned();
    if let Some(body) = reason {
        let bytes = store::event::body(tx, body)?;
        let read = |bytes: Vec<u8>| serde_json::from_slice::<Reason>(&bytes).map(|r| r.reason);
        goal = bytes
            .map_or_else(|| Ok(ERASED.to_owned()), read)
            .map_err(|e| corrupt("a reason", e))?;
    }
    let words = Map::from_iter([
        ("title".to_owned(), json!(draft.as_ref().map_or(ERASED, |draft| &draft.title))),
        ("goal".to_owned(), json!(goal)),
        ("conditions".to_owned(), json!(draft.map_or_else(Vec::new, |draft| draft.conditions))),
    ]);
    if let Some(object) = frame.as_object_mut() {
        object.extend(words);
    }
    Ok(frame)
}
