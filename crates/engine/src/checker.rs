//! Checker: the look that a program takes for a schedule before anybody is woken. Unchanged is a row, and
//! neither a run nor a model (SKL-04, G-23).

use base::{BodyId, CheckId, OwnerId};
use domain::draft::{Check, Verdict, check_verdict};
use domain::event::Trust;
use domain::schedule::Due;
use domain::state::{CheckState, ScheduleState};
use store::check::CheckRun;
use store::event::NewBody;
use store::schedule::Schedule;
use store::{OwnerTx, Result, StoreError};

use crate::pump::{each, unless_stopped};
use crate::timer::announce;
use crate::world::{Call, Health, Read};
use crate::{Context, assemble, notice, tools};

const BATCH: i64 = 16;
/// Looks that fail before the agent is told that it cannot be read.
const TRIES: u32 = 3;

/// Takes the looks that are due. `true`: there may be more.
pub async fn pass(cx: &Context) -> Result<bool> {
    let now = cx.clock.now();
    let found =
        cx.store.read(move |tx| unless_stopped(tx, |tx| store::check::due(tx, now, BATCH))).await?;
    let more = found.len() as i64 == BATCH;
    let one = |(owner, id)| async move {
        let Some(look) = claim(cx, owner, id).await? else { return Ok(()) };
        let read = perform(cx, &look).await;
        cx.write(owner, move |cx, tx| record(cx, tx, &look, read)).await
    };
    each(found, one).await?;
    Ok(more)
}

/// A look to take.
#[derive(Debug, Clone)]
pub struct Look {
    id: CheckId,
    /// What is read.
    pub check: Check,
}

/// The look, if it is still to be taken. One whose schedule ended meanwhile ends with it.
pub async fn claim(cx: &Context, owner: OwnerId, id: CheckId) -> Result<Option<Look>> {
    cx.write(owner, move |cx, tx| {
        let run = store::check::get(tx, id)?;
        if run.state != CheckState::Due {
            return Ok(None);
        }
        let schedule = store::schedule::get(tx, run.schedule)?;
        if schedule.state != ScheduleState::Active && schedule.state != ScheduleState::Expired {
            store::check::end(tx, id, CheckState::Unchanged, None)?;
            return Ok(None);
        }
        let check = spec(tx, &schedule)?;
        let needs = cx.world.needs(&check.tool, &check.arguments).unwrap_or_default();
        if let Some(refusal) = tools::way_round(cx, tx, &check.tool, &needs)? {
            failed(cx, tx, &run, &schedule, &refusal)?;
            return Ok(None);
        }
        Ok(Some(Look { id, check }))
    })
    .await
}

fn spec(tx: &mut OwnerTx<'_, '_>, schedule: &Schedule) -> Result<Check> {
    let spec = schedule.check_spec.ok_or(StoreError::Missing("check of a schedule"))?;
    let bytes = store::event::body(tx, spec)?.unwrap_or_default();
    serde_json::from_slice(&bytes).map_err(|e| StoreError::Corrupt(e.to_string()))
}

/// Reads. The card showed the tool and all its arguments, so the person's tap issued the ids in them.
pub async fn perform(cx: &Context, look: &Look) -> std::result::Result<Read, String> {
    let Check { tool, arguments, .. } = &look.check;
    let issued = cx.world.needs(tool, arguments)?;
    let call = Call { tool: tool.clone(), arguments: arguments.clone(), issued };
    let limit = std::time::Duration::from_millis(cx.limits.tool_call_ms);
    Ok(cx.world.read(call, limit).await)
}

/// Compares and decides whether anybody is woken.
pub fn record(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    look: &Look,
    read: std::result::Result<Read, String>,
) -> Result<()> {
    let run = store::check::get(tx, look.id)?;
    if run.state != CheckState::Due {
        return Ok(());
    }
    let schedule = store::schedule::get(tx, run.schedule)?;
    let read = match read {
        Ok(read) => read,
        Err(why) => return failed(cx, tx, &run, &schedule, &why),
    };
    notice::health(cx, tx, read.health.as_ref())?;
    match &read.health {
        Some(Health::Works { .. }) => {}
        // A failure is a text; what it says is for people.
        Some(Health::Broken { .. }) | None => {
            return failed(cx, tx, &run, &schedule, &read.text);
        }
    }
    let last = match schedule.check_last {
        Some(body) => Some(store::event::body_text(tx, body)?),
        None => None,
    };
    let (was, now) = match check_verdict(&look.check, last.as_deref(), &read.text) {
        Verdict::Unreadable(why) => return failed(cx, tx, &run, &schedule, &why),
        Verdict::Unchanged { now } => (None, now),
        Verdict::Met { was, now } => (Some(was), now),
    };
    let answer = keep(cx, tx, &run, &now)?;
    store::schedule::remember(tx, schedule.id, answer)?;
    let Some(was) = was else {
        return store::check::end(tx, run.id, CheckState::Unchanged, Some(answer)).map(|_| ());
    };
    store::check::end(tx, run.id, CheckState::Met, Some(answer))?;
    let was = was.map(|was| format!("; before it was {}", shown(was))).unwrap_or_default();
    let seen = format!(
        "\nA program looked and woke you: {} {}{was}.",
        look.check.words(domain::words::Language::En),
        format_args!("(now {})", shown(now))
    );
    announce(cx, tx, &schedule, &slot(&run, &schedule), &seen)
}

/// Tried again a few times; then the agent is told, since silence would look like "unchanged".
fn failed(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    run: &CheckRun,
    schedule: &Schedule,
    why: &str,
) -> Result<()> {
    if run.attempts + 1 < TRIES {
        let next = tx.now().plus_ms(cx.backoff_ms(run.attempts + 1));
        return store::check::tried(tx, run.id, next);
    }
    let answer = keep(cx, tx, run, why)?;
    store::check::end(tx, run.id, CheckState::Failed, Some(answer))?;
    let why = shown(why.to_owned());
    let seen =
        format!("\nA program could not look for you ({why}); what it would have seen is unknown.");
    announce(cx, tx, schedule, &slot(run, schedule), &seen)
}

fn slot(run: &CheckRun, schedule: &Schedule) -> Due {
    Due { slot: run.slot, missed: run.missed, late: run.late, next: schedule.next_slot }
}

/// What a text from outside may take of the agent's input.
fn shown(text: String) -> String {
    assemble::cut(text, 400)
}

fn keep(cx: &Context, tx: &mut OwnerTx<'_, '_>, run: &CheckRun, text: &str) -> Result<BodyId> {
    let body = NewBody::text(cx.id(), text, format!("check:{}", run.id), Trust::Outside);
    let id = body.id;
    store::event::put_body(tx, body)?;
    Ok(id)
}
