//! Tools of the turn: what a call comes to, and the ones that take effect in the step's own commit.
//!
//! A tool of our own writes records and nothing else, in the transaction that journals its result, so it
//! happens exactly once. A tool that reads the world is performed outside and its text journaled.

use agent::{Intent, Records};
use base::{DutyId, Timestamp, WaitId};
use domain::draft::Draft;
use domain::event::Trust;
use domain::schedule::{local_words, zone};
use domain::state::{DutyState, ProposalState, WaitState};
use model::ToolCall;
use serde_json::{Map, Value};
use store::event::NewBody;
use store::proposal::{Proposal, ProposalKind};
use store::wait::Wait;
use store::{OwnerTx, Result, StoreError};

use crate::worker::Work;
use crate::{Context, assemble, notice};

/// What a call needs.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Records only: no performing.
    Record(Intent),
    /// Nothing but this answer: a mistake or a refusal.
    Answer(String),
    /// Ask a connector how its tool is called.
    Schema(String),
    /// Call a connector's tool that only reads.
    Read(String, Map<String, Value>),
}

/// What was performed for a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// Nothing yet: the record does it.
    Record(Intent),
    /// A text of our own.
    Answer(String),
    /// A text of the outside world.
    Read(String),
}

/// A tool's result as it is journaled.
pub(crate) struct Written {
    pub text: String,
    pub trust: Trust,
}

/// Decides what a call needs.
pub fn plan(cx: &Context, call: &ToolCall) -> Plan {
    match Intent::read(&call.name, &call.arguments) {
        Err(mistake) => Plan::Answer(mistake.to_string()),
        Ok(Intent::ToolSchema { name }) => match agent::schema_of(&name) {
            Some(schema) => Plan::Answer(schema),
            None if cx.world.tools().contains(&name) => Plan::Schema(name),
            None => Plan::Answer(cx.world.refusal(&name).unwrap_or_default()),
        },
        Ok(Intent::CallTool { name, arguments }) => match cx.world.refusal(&name) {
            Some(refusal) => Plan::Answer(refusal),
            None => Plan::Read(name, arguments),
        },
        Ok(intent) => Plan::Record(intent),
    }
}

/// Performs what happens outside; reads only.
pub async fn perform(cx: &Context, plan: Plan) -> Done {
    let limit = std::time::Duration::from_millis(cx.limits.tool_call_ms);
    match plan {
        Plan::Record(intent) => Done::Record(intent),
        Plan::Answer(text) => Done::Answer(text),
        Plan::Schema(name) => Done::Read(cx.world.schema(&name).await),
        Plan::Read(name, arguments) => Done::Read(cx.world.read(&name, arguments, limit).await),
    }
}

/// Records a call: writes what it asked for, and gives the text that the model reads.
pub(crate) fn record(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    done: Done,
) -> Result<Written> {
    let own = |text: String| Written { text, trust: Trust::System };
    let intent = match done {
        Done::Answer(text) => return Ok(own(text)),
        Done::Read(text) => return Ok(Written { text, trust: Trust::Outside }),
        Done::Record(intent) => intent,
    };
    let text = match intent {
        Intent::SendToUser { text } => {
            let id = notice::agent(cx, tx, &work.run, &call.id, text, work.late)?;
            format!("Message {id} is on its way to the person.")
        }
        Intent::FinishQuietly { .. } => "Ended quietly.".into(),
        Intent::ProposeDuty { draft } => propose_duty(cx, tx, work, call, &draft)?,
        Intent::ProposeClose { duty, reason } => propose_close(cx, tx, work, call, duty, reason)?,
        Intent::RegisterWait { kind, key, due_at } => {
            register_wait(cx, tx, work, call, kind, key, due_at)?
        }
        Intent::CancelWait { wait } => cancel_wait(tx, wait)?,
        Intent::ReadRecords { what } => read_records(tx, what)?,
        Intent::ToolSchema { name } | Intent::CallTool { name, .. } => {
            return Err(StoreError::Corrupt(format!("{name} was to be performed, not recorded")));
        }
    };
    Ok(own(text))
}

const PROPOSAL_LASTS_MS: u64 = 7 * 24 * 3_600_000;

fn proposal(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    duty: Option<DutyId>,
    content: Vec<u8>,
) -> Result<Proposal> {
    let body = NewBody {
        id: cx.id(),
        bytes: content,
        media: "application/json",
        provenance: format!("run:{}:proposal", work.run.id),
        trust: Trust::Outside,
    };
    let content = body.id;
    let digest = store::event::put_body(tx, body)?;
    let proposal = Proposal {
        id: cx.id(),
        owner: tx.owner(),
        session: work.run.session,
        run: work.run.id,
        call_id: call.id.clone(),
        kind: if duty.is_some() { ProposalKind::CloseDuty } else { ProposalKind::NewDuty },
        duty,
        content,
        digest,
        template: "proposal-1".into(),
        state: ProposalState::Open,
        decided_by: None,
        expires_at: tx.now().plus_ms(PROPOSAL_LASTS_MS),
        seq: tx.seq(),
        created_at: tx.now(),
        moved_at: tx.now(),
    };
    store::proposal::insert(tx, &proposal)?;
    Ok(proposal)
}

fn propose_duty(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    arguments: &str,
) -> Result<String> {
    let owner = store::owner::locked(tx)?;
    let zone = zone(&owner.zone).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let draft = match Draft::read(arguments, &zone, tx.now()) {
        Ok(draft) => draft,
        Err(error) => return Ok(format!("Not proposed: {error}. Correct it and propose again.")),
    };
    // The confirmed bytes are the draft as this program understood it, not as the model wrote it.
    let content =
        serde_json::to_vec(&draft).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let proposal = proposal(cx, tx, work, call, None, content)?;
    let text = format!("Start this duty? {}: {}", draft.title, draft.goal);
    notice::card(cx, tx, &proposal, text)?;
    Ok(format!(
        "Proposed as {}. It is not in force: the person decides on the card that they now see.",
        proposal.id
    ))
}

fn propose_close(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    duty: DutyId,
    reason: String,
) -> Result<String> {
    let duty = match store::duty::get(tx, work.lease.owner, duty) {
        Ok(duty) => duty,
        Err(StoreError::Missing(_)) => {
            return Ok(format!(
                "There is no duty {duty}. read_records with what=duties lists them."
            ));
        }
        Err(error) => return Err(error),
    };
    if duty.state != DutyState::Active {
        return Ok(format!(
            "Duty {} is {}; only an active one can be closed.",
            duty.id, duty.state
        ));
    }
    let content = serde_json::json!({"duty": duty.id, "reason": reason}).to_string();
    let proposal = proposal(cx, tx, work, call, Some(duty.id), content.into_bytes())?;
    store::duty::advance(tx, &duty, DutyState::CloseProposed, None)?;
    let version = store::duty::version(tx, duty.id)?;
    let title = assemble::draft(tx, &version)?.title;
    notice::card(cx, tx, &proposal, format!("Is \"{title}\" done? {reason}"))?;
    Ok(format!("Proposed as {}. The person decides.", proposal.id))
}

fn register_wait(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    kind: String,
    key: String,
    due_at: Timestamp,
) -> Result<String> {
    if due_at <= tx.now() {
        return Ok(format!("Not registered: {due_at} has passed. Name a later time."));
    }
    let id: WaitId = cx.id();
    let cause = store::work_item::claimed(tx, work.run.id)?.first().map(|item| item.event);
    let since = match cause {
        Some(event) => store::event::get(tx, event)?.received_at,
        None => work.run.started_at,
    };
    // What it waits for may have come already (EVT-08): then it is born satisfied and wakes nobody,
    // because this very turn is told.
    let met = store::event::by_key(tx, &kind, &key, since)?;
    let wait = Wait {
        id,
        owner: tx.owner(),
        session: work.run.session,
        duty: work.run.duty,
        task_version: work.run.task_version,
        run: work.run.id,
        call_id: call.id.clone(),
        cause_event: cause,
        kind,
        key,
        due_at,
        state: if met.is_some() { WaitState::Satisfied } else { WaitState::Open },
        satisfied_by: met.as_ref().map(|event| event.id),
        created_at: tx.now(),
        moved_at: tx.now(),
    };
    store::wait::insert(tx, &wait)?;
    Ok(match met {
        None => format!("Wait {id} is registered until {due_at}. You are woken once."),
        Some(event) => {
            let text = store::event::body_text(tx, event.body)?;
            format!("Wait {id} is met already, by event {}: {text}", event.id)
        }
    })
}

fn cancel_wait(tx: &mut OwnerTx<'_, '_>, id: WaitId) -> Result<String> {
    match store::wait::get(tx, id) {
        Ok(wait) if wait.owner != tx.owner() => Ok(no_wait(id)),
        Ok(_) if store::wait::end(tx, id, WaitState::Cancelled, None)? => {
            Ok(format!("Wait {id} is cancelled."))
        }
        Ok(wait) => Ok(format!("Wait {id} has ended already ({}).", wait.state)),
        Err(StoreError::Missing(_)) => Ok(no_wait(id)),
        Err(error) => Err(error),
    }
}

fn no_wait(id: WaitId) -> String {
    format!("There is no wait {id}. read_records with what=waits lists them.")
}

const LIST_MAX: i64 = 50;

fn read_records(tx: &mut OwnerTx<'_, '_>, what: Records) -> Result<String> {
    let owner = store::owner::locked(tx)?;
    let zone = zone(&owner.zone).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let mut lines = Vec::new();
    match what {
        Records::Duties => {
            for duty in store::duty::all(tx, owner.id, LIST_MAX)? {
                let version = store::duty::version(tx, duty.id)?;
                let title = assemble::draft(tx, &version)?.title;
                lines.push(format!("duty {} \"{title}\" v{}: {}", duty.id, version.n, duty.state));
            }
        }
        Records::Waits => {
            let duties = store::duty::all(tx, owner.id, LIST_MAX)?;
            let sessions = duties.iter().map(|duty| duty.session);
            for session in sessions.chain([owner.main_session]) {
                for wait in store::wait::open(tx, session, LIST_MAX)? {
                    let due = local_words(&zone, wait.due_at);
                    lines.push(format!(
                        "wait {}: {} \"{}\", due {due}",
                        wait.id, wait.kind, wait.key
                    ));
                }
            }
        }
        Records::Schedules => {
            for duty in store::duty::all(tx, owner.id, LIST_MAX)? {
                for schedule in store::schedule::of_duty(tx, duty.id)? {
                    let next = local_words(&zone, schedule.next_slot);
                    lines.push(format!(
                        "schedule {} of duty {}: {}, next {next}",
                        schedule.id, duty.id, schedule.state
                    ));
                }
            }
        }
        Records::Messages => {
            for entry in store::message::chat_before(tx, owner.id, i64::MAX, 20)? {
                let at = local_words(&zone, entry.at);
                lines.push(format!("{at} {} ({}): {}", entry.kind, entry.state, entry.text));
            }
        }
        Records::Spending => {
            let month = domain::schedule::month(&zone, tx.now());
            let t = store::ledger::month(tx, owner.id, &month)?;
            lines.push(format!(
                "{month}: {} wake-ups, {} model calls, {} of {}",
                t.wakeups, t.model_calls, t.micro_usd, owner.month_cap_micro_usd
            ));
        }
    }
    Ok(if lines.is_empty() { "Nothing on record.".into() } else { lines.join("\n") })
}
