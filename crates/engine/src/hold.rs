//! Holds: placed by each message of the user, settled by the policy once the model has read it (QUE-09..12).

use base::{DutyId, EventId, HoldId, PauseId, PrincipalId};
use domain::hold::{Settlement, Verdict, narrows, settle};
use domain::state::{DutyState, HoldState, PauseState};
use domain::stop::{StopCheck, stop_check};
use domain::words::Notice;
use store::hold::{Hold, Pause};
use store::owner::PrincipalKind;
use store::{OwnerTx, Result, StoreError};

use crate::notice::{self, About};
use crate::worker::Work;
use crate::{Context, assemble};

/// Places the hold of a message, in the message's own transaction.
pub(crate) fn place(cx: &Context, tx: &mut OwnerTx<'_, '_>, event: EventId) -> Result<()> {
    let hold = Hold {
        id: cx.id(),
        owner: tx.owner(),
        event,
        state: HoldState::Placed,
        verdict: None,
        decided_by: None,
        pause: None,
        asked_at: None,
        created_at: tx.now(),
        moved_at: tx.now(),
    };
    store::hold::place(tx, &hold)
}

/// Holds that a run's model can speak about: those of the messages in its own input, never of a newer
/// one (QUE-12).
fn read_by(tx: &mut OwnerTx<'_, '_>, work: &Work) -> Result<Vec<Hold>> {
    let mut holds = Vec::new();
    for item in store::work_item::claimed(tx, work.run.id)? {
        let hold = store::hold::of_event(tx, item.event)?;
        holds.extend(hold.filter(|hold| hold.state == HoldState::Placed));
    }
    Ok(holds)
}

/// The model says what it read in the messages of this run. The policy decides; the text says what came
/// of it.
pub(crate) fn judge(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    verdict: Verdict,
    duty: Option<DutyId>,
) -> Result<String> {
    let owner = tx.owner();
    let holds = read_by(tx, work)?;
    if holds.is_empty() {
        return Ok("No message of this turn holds anything back; nothing was changed.".into());
    }
    let meant = match duty {
        None => None,
        Some(id) => match in_force(tx, id)? {
            Some(title) => Some((id, title)),
            None => {
                return Ok(format!(
                    "There is no duty {id} in force. read_records with what=duties lists them; leave duty \
                     out if the person means everything."
                ));
            }
        },
    };
    let policy = store::owner::principal(tx, owner, PrincipalKind::Policy)?.id;
    let mut said = Vec::new();
    for hold in holds {
        store::hold::judge(tx, hold.id, verdict)?;
        let event = store::event::get(tx, hold.event)?;
        let text = store::event::body_text(tx, event.body)?;
        // What was erased cannot be checked, so nothing is released by it.
        let is_readable = store::event::body(tx, event.body)?.is_some();
        let sounds_like_stop = !is_readable || stop_check(&text) != StopCheck::Clear;
        said.push(match settle(verdict, sounds_like_stop) {
            Settlement::Promote => {
                let narrowed = meant.as_ref().filter(|(_, title)| narrows(&text, title));
                let duty = narrowed.map(|(id, _)| *id);
                let pause = pause(cx, tx, policy, duty)?;
                end(tx, hold.id, policy, Some(pause))?;
                match (duty, &meant) {
                    (Some(id), _) => {
                        format!("Paused: nothing is done for duty {id} until the person lifts it.")
                    }
                    (None, Some(_)) => "Paused: nothing is done for any duty until the person lifts it, \
                                        since the message does not name that one alone."
                        .into(),
                    (None, None) => {
                        "Paused: nothing is done for any duty until the person lifts it.".into()
                    }
                }
            }
            Settlement::Release => {
                end(tx, hold.id, policy, None)?;
                "Noted: not a stop. Nothing is held back by it any more.".into()
            }
            Settlement::Ask => {
                ask(cx, tx, &hold, &text)?;
                "It may be a stop all the same, so the person is asked with one tap. Until then nothing \
                 is done outside; you may read, think and answer."
                    .to_owned()
            }
        });
    }
    said.dedup();
    Ok(said.join("\n"))
}

/// The title of a duty that a pause can be about.
fn in_force(tx: &mut OwnerTx<'_, '_>, id: DutyId) -> Result<Option<String>> {
    let owner = tx.owner();
    let duty = match store::duty::get(tx, owner, id) {
        Ok(duty) if duty.state != DutyState::Closed => duty,
        Ok(_) | Err(StoreError::Missing(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let version = store::duty::version(tx, duty.id)?;
    assemble::draft(tx, &version).map(|draft| Some(draft.title))
}

/// Asks the person, once.
fn ask(cx: &Context, tx: &mut OwnerTx<'_, '_>, hold: &Hold, text: &str) -> Result<()> {
    if store::hold::asked(tx, hold.id)? {
        let main = store::owner::locked(tx)?.main_session;
        let said = assemble::cut(text.to_owned(), 120);
        notice::server(cx, tx, main, &Notice::IsItAStop { said: &said }, About::default())?;
    }
    Ok(())
}

/// A pause of a duty, or of everything; the one in force if there is one already.
pub(crate) fn pause(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    by: PrincipalId,
    duty: Option<DutyId>,
) -> Result<PauseId> {
    let owner = tx.owner();
    let in_force = store::hold::pauses(tx, owner)?;
    if let Some(pause) = in_force.into_iter().find(|pause| pause.duty == duty) {
        return Ok(pause.id);
    }
    let pause = Pause {
        id: cx.id(),
        owner,
        duty,
        state: PauseState::Active,
        placed_by: by,
        lifted_by: None,
        created_at: tx.now(),
        moved_at: tx.now(),
    };
    store::hold::pause(tx, &pause)?;
    Ok(pause.id)
}

/// Ends a hold. What it held back goes through full admission, and a pause that took its place stops that.
pub(crate) fn end(
    tx: &mut OwnerTx<'_, '_>,
    id: HoldId,
    by: PrincipalId,
    pause: Option<PauseId>,
) -> Result<bool> {
    let to = if pause.is_some() { HoldState::Promoted } else { HoldState::Released };
    let ended = store::hold::end(tx, id, to, by, pause)?;
    if ended {
        store::action::wake(tx)?;
    }
    Ok(ended)
}
