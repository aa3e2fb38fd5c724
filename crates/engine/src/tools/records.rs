//! What `read_records` shows: facts, from records alone (QUE-18).

use agent::Records;
use domain::event::Trust;
use domain::schedule::{local_words, zone};
use store::{OwnerTx, Result, StoreError};

use crate::assemble;

const LIST_MAX: i64 = 50;

/// The trust of a list: some hold words of the model and of outside.
pub(super) fn trust(what: Records) -> Trust {
    match what {
        Records::Duties | Records::Schedules | Records::Sources | Records::Spending => {
            Trust::System
        }
        Records::Waits | Records::Situations | Records::Messages => Trust::Outside,
    }
}

/// Reads what is on record.
pub(super) fn read(tx: &mut OwnerTx<'_, '_>, what: Records) -> Result<String> {
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
        Records::Sources => {
            for source in store::source::in_use(tx, owner.id, LIST_MAX)? {
                let heard = source.received_at.map(|at| local_words(&zone, at));
                let heard = heard.unwrap_or_else(|| "nothing yet".into());
                lines.push(format!(
                    "source {} ({}): last received {heard}",
                    source.name,
                    source.kind.word()
                ));
            }
        }
        Records::Situations => {
            for judged in store::situation::latest(tx, owner.id, LIST_MAX)? {
                lines.push(super::situation::line(tx, &zone, &judged)?);
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
