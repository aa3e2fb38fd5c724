//! After a restore: what was done outside since the backup was taken is not on record, and may have happened (P3).
//!
//! So before any stage runs, everything is paused, and whatever these records would still send is put before the
//! person again: they know, or can look, what the records cannot. What had left already is looked up as ever.

use domain::schedule::zone;
use domain::state::{ActionState, ApprovalState};
use domain::words::{self, Notice};
use store::action::Action;
use store::approval::{self, Tap};
use store::owner::PrincipalKind;
use store::{OwnerTx, Result, StoreError};

use crate::effect::{ask, end_approval, held};
use crate::notice::{self, About};
use crate::reconciler::contradicted;
use crate::{Context, hold};

/// Why a person is asked about what would be sent.
const MAYBE_SENT: &str = "These records come from a backup, and this may have been sent since then: look there before you decide.";
/// The same of what was tried before and certainly did not leave then.
const MAYBE_AGAIN: &str =
    "it was to be tried again when the backup was taken, and may have been sent since then";

/// Sees to owners whose records were put back, each in one transaction. To be called before the stages run.
/// Gives how many there were.
pub async fn settle(cx: &Context) -> Result<usize> {
    let owners = cx.store.read(store::backup::put_back_owners).await?;
    for owner in &owners {
        cx.write(*owner, one).await?;
    }
    Ok(owners.len())
}

fn one(cx: &Context, tx: &mut OwnerTx<'_, '_>) -> Result<()> {
    let Some(taken_at) = store::backup::take_mark(tx)? else { return Ok(()) };
    let of = store::owner::locked(tx)?;
    let policy = store::owner::principal(tx, of.id, PrincipalKind::Policy)?.id;
    tx.audit(Some(policy), "put_back", of.id, None);
    hold::pause(cx, tx, policy, None)?;
    for action in store::action::unsent(tx, of.id)? {
        doubt(cx, tx, action)?;
    }
    let zone = zone(&of.zone).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let taken = words::at(of.language(), &zone, taken_at);
    let notice = Notice::PutBack { taken: &taken };
    notice::server(cx, tx, of.main_session, &notice, About::default()).map(|_| ())
}

/// Puts one action that would still be sent before the person.
fn doubt(cx: &Context, tx: &mut OwnerTx<'_, '_>, action: Action) -> Result<()> {
    let mut held = match held(tx, action.id) {
        // Content that cannot be read is never sent.
        Err(StoreError::Corrupt(_)) => return Ok(()),
        held => held?,
    };
    match held.action.state {
        ActionState::Blocked => return contradicted(cx, tx, &mut held.action, MAYBE_AGAIN),
        ActionState::Admitted => {
            held.action.state = ActionState::Authorized;
            held.action.not_before = None;
            store::action::put(tx, &held.action, ActionState::Admitted, None)?;
        }
        ActionState::Proposed
        | ActionState::AwaitingApproval
        | ActionState::Authorized
        | ActionState::Dispatched
        | ActionState::Unknown
        | ActionState::Accepted
        | ActionState::Effective
        | ActionState::Denied
        | ActionState::Expired
        | ActionState::Superseded
        | ActionState::Withdrawn
        | ActionState::Cancelled
        | ActionState::Abandoned => {}
    }
    end_approval(tx, &held.action)?;
    // A question that stands is asked anew, with what is to be known now.
    for asked in approval::of_action(tx, held.action.id)? {
        if asked.state == ApprovalState::Requested {
            approval::advance(tx, &asked, ApprovalState::Cancelled, Tap::default())?;
        }
    }
    ask(cx, tx, &mut held, MAYBE_SENT.to_owned())
}
