//! Ends of a run that are not its turn's own: what becomes of its items and its open calls.

use domain::event::Trust;
use domain::queue::{self, After};
use domain::state::RunState;
use domain::words::Notice;
use store::run::{self, Run, Step};
use store::work_item::{self, WorkItem};
use store::{OwnerTx, Result};

use super::record::{step, store_block};
use crate::notice::{self, About};
use crate::{Context, assemble};

/// Ends a run as failed: its items go back with one more fruitless run counted, or are given up. It
/// counts whatever steps the run had made, since the next run begins from zero: an answer that is
/// refused at the third step would else be refused for ever (DUR-08).
pub(super) fn fail_items(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    run: &Run,
    why: &str,
) -> Result<()> {
    count_back(cx, tx, run)?;
    close_calls(cx, tx, run)?;
    let state =
        if run.state == RunState::Running { RunState::Failed } else { RunState::Interrupted };
    run::end(tx, run.id, state, Some(why))
}

/// Puts a run's items back with one more fruitless run counted, or gives them up, which is told. Gives the
/// most fruitless runs that any of them had had before.
pub(super) fn count_back(cx: &Context, tx: &mut OwnerTx<'_, '_>, run: &Run) -> Result<u32> {
    let mut tried = 0;
    for item in work_item::claimed(tx, run.id)? {
        tried = tried.max(item.attempts);
        match queue::after_failure(item.attempts, false, cx.limits.poison_attempts) {
            After::Retry { attempts } => work_item::back(tx, &item, attempts)?,
            After::GiveUp => give_up(cx, tx, run, &item)?,
        }
    }
    Ok(tried)
}

fn give_up(cx: &Context, tx: &mut OwnerTx<'_, '_>, run: &Run, item: &WorkItem) -> Result<()> {
    let attempts = item.attempts + 1;
    work_item::back(tx, item, attempts)?;
    work_item::fail(tx, item)?;
    store::event::dispose(tx, item.event, &format!("failed: given up after {attempts} tries"))?;
    let event = store::event::get(tx, item.event)?;
    let text = assemble::cut(store::event::body_text(tx, event.body)?, 120);
    let what = format!("\"{text}\"");
    let about = About { duty: run.duty, ..About::default() };
    notice::server(cx, tx, run.session, &Notice::Poison { attempts, what: &what }, about)?;
    Ok(())
}

/// Ends a run early: its items wait again, uncounted, and join the next run (QUE-14).
pub(super) fn put_back(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    run: &Run,
    state: RunState,
    why: &str,
) -> Result<()> {
    for item in work_item::claimed(tx, run.id)? {
        work_item::back(tx, &item, item.attempts)?;
    }
    close_calls(cx, tx, run)?;
    run::end(tx, run.id, state, Some(why))
}

/// Answers the calls that will not be made, so that history stays a conversation that a model accepts.
pub(super) fn close_calls(cx: &Context, tx: &mut OwnerTx<'_, '_>, run: &Run) -> Result<()> {
    let turn = assemble::load(tx, run.id)?.turn;
    for (n, call) in (run.steps..).zip(turn.unanswered()) {
        let text = "Not run: the turn ended before this call.".to_owned();
        let block = model::Message::Tool { call_id: call.id.clone(), text }.to_block();
        let step = Step {
            tool: Some(call.name.clone()),
            call_id: Some(call.id.clone()),
            ..step(cx, tx, run, n, run::StepKind::Tool, &block)
        };
        store_block(tx, &step, &block, Trust::System, "worker")?;
        run::append(tx, &step)?;
    }
    Ok(())
}
