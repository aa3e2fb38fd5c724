//! Waits: registered once, ended once, and met by what came before them too (DEL-10, EVT-08).

use base::{Timestamp, WaitId};
use domain::event::Trust;
use domain::state::WaitState;
use model::ToolCall;
use store::event::Event;
use store::wait::Wait;
use store::{OwnerTx, Result, StoreError};

use crate::Context;
use crate::worker::Work;

/// What is awaited.
pub(super) struct Awaited {
    pub kind: String,
    pub key: String,
    pub due_at: Timestamp,
}

/// What registering came to.
pub(super) enum Registered {
    /// It is open.
    Open { wait: WaitId, due_at: Timestamp },
    /// It was met already, with what the event says.
    Met { wait: WaitId, event: Box<Event>, text: String },
    /// Its time has passed: nothing was registered.
    Past { due_at: Timestamp },
}

impl Registered {
    /// The trust of what is said: an event's own text is in it.
    pub(super) fn trust(&self) -> Trust {
        match self {
            Registered::Met { event, .. } => event.trust.min(Trust::System),
            Registered::Open { .. } | Registered::Past { .. } => Trust::System,
        }
    }

    /// For the model.
    pub(super) fn said(&self) -> String {
        match self {
            Registered::Open { wait, due_at } => {
                format!("Wait {wait} is registered until {due_at}. You are woken once.")
            }
            Registered::Met { wait, event, text } => {
                format!("Wait {wait} is met already, by event {}: {text}", event.id)
            }
            Registered::Past { due_at } => {
                format!("Not registered: {due_at} has passed. Name a later time.")
            }
        }
    }
}

/// Registers a wait for the run's lane.
pub(super) fn register(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    awaited: Awaited,
) -> Result<Registered> {
    let Awaited { kind, key, due_at } = awaited;
    if due_at <= tx.now() {
        return Ok(Registered::Past { due_at });
    }
    let id: WaitId = cx.id();
    let cause = store::work_item::claimed(tx, work.run.id)?.first().map(|item| item.event);
    let since = match cause {
        Some(event) => store::event::get(tx, event)?.received_at,
        None => work.run.started_at,
    };
    // What it waits for may have come already (EVT-08): then it is born satisfied and wakes nobody,
    // because this very turn is told. What the turn has in its input does not count: whoever was woken
    // by an event and awaits another one of its key would be met by the first for ever.
    let met = store::event::by_key(tx, &kind, &key, since, work.run.id)?;
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
        None => Registered::Open { wait: id, due_at },
        Some(event) => {
            let text = store::event::body_text(tx, event.body)?;
            Registered::Met { wait: id, event: Box::new(event), text }
        }
    })
}

/// Withdraws a wait of the run's own lane: what another one waits for is not this one's to give up (P6).
pub(super) fn cancel(tx: &mut OwnerTx<'_, '_>, work: &Work, id: WaitId) -> Result<String> {
    match store::wait::get(tx, id) {
        Ok(wait) if wait.session != work.run.session => Ok(no_wait(id)),
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
