//! Tools of the turn: what a call comes to, and the ones that take effect in the step's own commit.
//!
//! A tool of our own writes records and nothing else, in the transaction that journals its result, so it
//! happens exactly once. A tool that reads the world is cleared first (were its ids issued, may one go
//! there), performed outside, and its text journaled.

mod act;
mod objects;
mod propose;
mod records;
mod situation;
mod waits;

use agent::Intent;
use domain::event::Trust;
use domain::hold::Verdict;
use model::ToolCall;
use serde_json::{Map, Value};
use store::{OwnerTx, Result, StoreError};

use crate::worker::Work;
use crate::world::{Call, Intended, Level, Need, Read};
use crate::{Context, hold, notice};

pub(crate) use objects::{issue_urls, of_delegation, of_effect, way_round};

/// What a call needs.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Records only: no performing.
    Record(Intent),
    /// Nothing but this answer: a mistake or a refusal.
    Answer(String),
    /// Ask a connector how its tool is called.
    Schema(String),
    /// Call a connector's tool that only reads, once it is cleared.
    Read(Wish),
    /// Call it: it is cleared.
    Cleared(Wish),
    /// Freeze it as an action: it would have an effect.
    Act(Box<Intended>, Map<String, Value>),
}

/// A read that the model wishes.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// The tool's full name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The ids among them that must have been issued.
    pub needs: Vec<Need>,
    /// Why no cheaper way serves, in the model's words.
    pub why: Option<String>,
}

/// What was performed for a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// Nothing yet: the record does it.
    Record(Intent),
    /// A text of our own.
    Answer(String),
    /// How a connector's tool is called, in its server's words.
    Schema(String),
    /// What was read outside, and why there.
    Read(Read, Option<String>),
    /// Nothing: the record freezes it.
    Act(Box<Intended>, Map<String, Value>),
}

/// A tool's result as it is journaled.
pub(crate) struct Written {
    pub text: String,
    pub trust: Trust,
    pub level: Option<Level>,
    pub why: Option<String>,
}

/// Decides what a call needs.
pub fn plan(cx: &Context, call: &ToolCall) -> Plan {
    match Intent::read(&call.name, &call.arguments) {
        Err(mistake) => Plan::Answer(mistake.to_string()),
        Ok(Intent::ToolSchema { name }) => match agent::schema_of(&name) {
            Some(schema) => Plan::Answer(schema),
            None if is_offered(cx, &name) => Plan::Schema(name),
            None => Plan::Answer(cx.world.needs(&name, &Map::new()).err().unwrap_or_default()),
        },
        Ok(Intent::CallTool { name, arguments, why }) => {
            match cx.world.intended(&name, &arguments) {
                Some(Ok(intended)) => return Plan::Act(Box::new(intended), arguments),
                Some(Err(refusal)) => return Plan::Answer(refusal),
                None => {}
            }
            match cx.world.needs(&name, &arguments) {
                Err(refusal) => released(cx, &name, arguments, refusal),
                Ok(needs) => Plan::Read(Wish { tool: name, arguments, needs, why }),
            }
        }
        Ok(intent) => Plan::Record(intent),
    }
}

/// Whether a server may offer a tool: it has an entry, or is of a server that may offer more.
fn is_offered(cx: &Context, name: &str) -> bool {
    let tools = cx.world.tools();
    let of = |name: &str| name.split_once('.').map(|(server, _)| format!("{server}.*"));
    tools.iter().any(|tool| tool == name) || of(name).is_some_and(|of| tools.contains(&of))
}

/// What becomes of a read that may not be made as one: an action, if it is for what it reveals (P5).
fn released(cx: &Context, tool: &str, arguments: Map<String, Value>, refusal: String) -> Plan {
    match cx.world.revealed(tool, &arguments) {
        Some(Ok(intended)) => Plan::Act(Box::new(intended), arguments),
        Some(Err(refusal)) => Plan::Answer(refusal),
        None => Plan::Answer(refusal),
    }
}

/// Clears a read before it leaves: under the owner's lock, since what may be read is a decision. Everything
/// else passes as it is.
pub async fn clear(cx: &Context, work: &Work, plan: Plan) -> Result<Plan> {
    let Plan::Read(wish) = plan else { return Ok(plan) };
    if wish.needs.is_empty() {
        return Ok(Plan::Cleared(wish));
    }
    let held = work.clone();
    cx.write(work.lease.owner, move |cx, tx| {
        store::session::hold(tx, held.lease, cx.limits.lease_ms)?;
        if let Some(refusal) = objects::way_round(cx, tx, &wish.tool, &wish.needs)? {
            return Ok(Plan::Answer(refusal));
        }
        Ok(match objects::refusal(tx, &held, &wish)? {
            None => Plan::Cleared(wish),
            Some(refusal) => released(cx, &wish.tool, wish.arguments, refusal),
        })
    })
    .await
}

/// Performs what happens outside; reads only.
pub async fn perform(cx: &Context, plan: Plan) -> Done {
    let limit = std::time::Duration::from_millis(cx.limits.tool_call_ms);
    match plan {
        Plan::Record(intent) => Done::Record(intent),
        Plan::Answer(text) => Done::Answer(text),
        Plan::Act(intended, arguments) => Done::Act(intended, arguments),
        Plan::Schema(name) => Done::Schema(cx.world.schema(&name).await),
        Plan::Read(wish) => Done::Answer(format!("{} was not cleared; call it again.", wish.tool)),
        Plan::Cleared(Wish { tool, arguments, needs, why }) => {
            let call = Call { tool, arguments, issued: needs };
            Done::Read(cx.world.read(call, limit).await, why)
        }
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
    let own = |text: String| Written { text, trust: Trust::System, level: None, why: None };
    let intent = match done {
        Done::Answer(text) => return Ok(own(text)),
        Done::Schema(text) => {
            return Ok(Written { text, trust: Trust::Outside, level: None, why: None });
        }
        Done::Read(read, why) => {
            objects::issue(cx, tx, work, call, &read)?;
            notice::health(cx, tx, read.health.as_ref())?;
            let (text, level) = (read.text, Some(read.level));
            return Ok(Written { text, trust: Trust::Outside, level, why });
        }
        Done::Act(intended, arguments) => {
            return act::propose(cx, tx, work, call, &intended, &arguments).map(own);
        }
        Done::Record(intent) => intent,
    };
    // What was said outside stays of the outside, also when a record repeats it (DESIGN 9).
    let (mut level, mut trust) = (None, Trust::System);
    let text = match intent {
        Intent::SendToUser { text } => {
            let id = notice::agent(cx, tx, &work.run, &call.id, text, work.late)?;
            format!("Message {id} is on its way to the person.")
        }
        Intent::FinishQuietly { .. } => "Ended quietly.".into(),
        Intent::SettleMessage { stop, duty } => {
            let verdict = if stop { Verdict::Stop } else { Verdict::NotAStop };
            hold::judge(cx, tx, work, verdict, duty)?
        }
        Intent::NoteSituation { note } => {
            trust = Trust::Outside;
            situation::note(cx, tx, work, call, note)?
        }
        Intent::ProposeDuty { draft } => propose::duty(cx, tx, work, call, &draft)?,
        Intent::ProposeRoutine { draft } => propose::routine(cx, tx, work, call, &draft)?,
        Intent::ProposeClose { duty, reason } => propose::close(cx, tx, work, call, duty, reason)?,
        Intent::RegisterWait { kind, key, due_at } => {
            let awaited = waits::Awaited { kind, key, due_at };
            let registered = waits::register(cx, tx, work, call, awaited)?;
            trust = registered.trust();
            registered.said()
        }
        Intent::CancelWait { wait } => waits::cancel(tx, work, wait)?,
        Intent::ReadRecords { what } => {
            level = Some(Level::Records);
            trust = records::trust(what);
            records::read(tx, what)?
        }
        Intent::ToolSchema { name } | Intent::CallTool { name, .. } => {
            return Err(StoreError::Corrupt(format!("{name} was to be performed, not recorded")));
        }
    };
    Ok(Written { text, trust, level, why: None })
}
