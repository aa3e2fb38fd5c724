//! Router: attributes accepted events to sessions, by their kind and by the waits they meet (EVT-06).

use base::{EventId, WorkItemId};
use domain::event::{Arrival, EventKind, Route, Trust};
use domain::state::{WaitState, WorkItemState};
use store::event::Event;
use store::wait::Wait;
use store::{OwnerTx, Result};

use crate::Context;
use crate::intake::{Incoming, accept};

const BATCH: i64 = 64;

/// Routes what nobody has routed. `true`: there may be more.
pub async fn pass(cx: &Context) -> Result<bool> {
    let found = cx.store.read(|tx| store::work_item::unrouted(tx, BATCH)).await?;
    for (owner, item) in &found {
        let item = *item;
        cx.write(*owner, move |cx, tx| route(cx, tx, item)).await?;
    }
    Ok(found.len() as i64 == BATCH)
}

/// Routes one item, under the owner's lock.
pub fn route(cx: &Context, tx: &mut OwnerTx<'_, '_>, item: WorkItemId) -> Result<()> {
    let item = store::work_item::get(tx, item)?;
    if item.state != WorkItemState::Unrouted {
        return Ok(());
    }
    let event = store::event::get(tx, item.event)?;
    let mut belongs_to = event.session;
    if let Some(key) = &event.key {
        for wait in store::wait::by_key(tx, event.kind.word(), key)? {
            if !store::wait::end(tx, wait.id, WaitState::Satisfied, Some(event.id))? {
                continue;
            }
            match belongs_to {
                None => belongs_to = Some(wait.session),
                Some(lane) if lane == wait.session => {}
                // The event goes to one lane; a wait of another is told by an event of its own.
                Some(_) => announce(cx, tx, &event, &wait)?,
            }
        }
    }
    let main = store::owner::locked(tx)?.main_session;
    let arrival = Arrival { kind: event.kind, trust: event.trust, belongs_to, main };
    apply(tx, event.id, item.id, domain::event::route(arrival))
}

/// Tells a wait's lane that it was met, when the event itself went to another lane.
fn announce(cx: &Context, tx: &mut OwnerTx<'_, '_>, event: &Event, wait: &Wait) -> Result<()> {
    let incoming = Incoming {
        source: store::owner::locked(tx)?.timer_source,
        external_id: format!("wait:{}", wait.id),
        kind: EventKind::WaitSatisfied,
        key: None,
        trust: event.trust.min(Trust::System),
        content: store::event::body_text(tx, event.body)?.into_bytes(),
        media: "text/plain; charset=utf-8",
        provenance: format!("event:{}", event.id),
        session: Some(wait.session),
        duty: wait.duty,
        late: event.late,
    };
    accept(cx, tx, incoming).map(|_| ())
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
        }
        Route::Record { reason } => {
            let item = store::work_item::get(tx, item)?;
            store::work_item::done(tx, &item)?;
            store::event::dispose(tx, event, &format!("recorded: {reason}"))?;
        }
    }
    Ok(())
}
