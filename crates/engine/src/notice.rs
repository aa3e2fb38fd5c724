//! Notices that the server itself writes, through the same delivery as everything else (USR-01).

use base::{ActionId, DutyId, MessageId, ProposalId, SessionId};
use domain::event::Trust;
use domain::state::MessageState;
use domain::words::{self, Language, Notice};
use store::action::Action;
use store::event::NewBody;
use store::message::{Message, MessageKind};
use store::owner::Owner;
use store::proposal::Proposal;
use store::run::Run;
use store::{OwnerTx, Result};

use crate::world::Health;
use crate::{Context, assemble};

/// What is said, and about what.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    pub duty: Option<DutyId>,
    pub proposal: Option<ProposalId>,
    pub action: Option<ActionId>,
    pub late: bool,
}

/// The key of the fault that a month's cap is reached begins with this; the month follows.
pub(crate) const MONTH_FAULT: &str = "month:";

/// Writes a message; the delivery stage takes it from there.
fn write(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    session: SessionId,
    said_by: Option<(&Run, &str)>,
    text: String,
    about: About,
) -> Result<MessageId> {
    let (kind, provenance, trust) = match said_by {
        Some((run, _)) => (MessageKind::Agent, format!("run:{}", run.id), Trust::Outside),
        None => (MessageKind::Notice, "server".to_owned(), Trust::System),
    };
    let body = NewBody::text(cx.id(), text, provenance, trust);
    let message = Message {
        id: cx.id(),
        owner: tx.owner(),
        session,
        kind,
        run: said_by.map(|(run, _)| run.id),
        call_id: said_by.map(|(_, call)| call.to_owned()),
        duty: about.duty,
        task_version: said_by.and_then(|(run, _)| run.task_version),
        proposal: about.proposal,
        action: about.action,
        late: about.late,
        body: body.id,
        state: MessageState::Generated,
        reason: None,
        seq: tx.seq(),
        created_at: tx.now(),
        queued_at: None,
        sent_at: None,
        delivered_at: None,
        delivered_to: None,
        moved_at: tx.now(),
    };
    store::event::put_body(tx, body)?;
    store::message::insert(tx, &message)?;
    Ok(message.id)
}

/// The model's own words, through `send_to_user`.
pub(crate) fn agent(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    run: &Run,
    call_id: &str,
    text: String,
    late: bool,
) -> Result<MessageId> {
    let about = About { duty: run.duty, late, ..About::default() };
    write(cx, tx, run.session, Some((run, call_id)), text, about)
}

/// A sentence from a template.
pub(crate) fn server(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    session: SessionId,
    notice: &Notice<'_>,
    about: About,
) -> Result<MessageId> {
    let text = notice.text(store::owner::locked(tx)?.language());
    write(cx, tx, session, None, text, about)
}

/// A card for a proposal, in the owner's language.
pub(crate) fn card(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    proposal: &Proposal,
    text: impl FnOnce(Language) -> String,
) -> Result<MessageId> {
    let text = text(store::owner::locked(tx)?.language());
    let about = About { duty: proposal.duty, proposal: Some(proposal.id), ..About::default() };
    write(cx, tx, proposal.session, None, text, about)
}

/// A card for an action, or news of it, in the owner's language.
pub(crate) fn action(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &Action,
    text: impl FnOnce(Language) -> String,
) -> Result<MessageId> {
    let text = text(store::owner::locked(tx)?.language());
    let about = About { duty: action.duty, action: Some(action.id), ..About::default() };
    write(cx, tx, action.session, None, text, about)
}

/// A proposal whose time ran out.
pub(crate) fn expired(cx: &Context, tx: &mut OwnerTx<'_, '_>, proposal: &Proposal) -> Result<()> {
    card(cx, tx, proposal, |language| words::proposal_lapsed(language).to_owned()).map(|_| ())
}

/// Opens a fault and tells the user once, however often it recurs.
pub(crate) fn fault(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    session: SessionId,
    key: &str,
    notice: &Notice<'_>,
) -> Result<()> {
    let text = notice.text(store::owner::locked(tx)?.language());
    if store::fault::open(tx, cx.uuid(), key, &text)? {
        server(cx, tx, session, notice, About::default())?;
    }
    Ok(())
}

/// Whether the month's cap is reached, so that no model may be asked; the user is told once a month.
pub(crate) fn capped(cx: &Context, tx: &mut OwnerTx<'_, '_>, owner: &Owner) -> Result<bool> {
    let month = assemble::month(owner, tx.now())?;
    let spent = store::ledger::month(tx, owner.id, &month)?.micro_usd;
    if !assemble::is_capped(owner, spent) {
        return Ok(false);
    }
    let what = format!("{spent} of {}", owner.month_cap_micro_usd);
    let key = format!("{MONTH_FAULT}{month}");
    fault(cx, tx, owner.main_session, &key, &Notice::MonthCap { what: &what })?;
    Ok(true)
}

/// The fault of a connector that is broken.
fn connector(name: &str) -> String {
    format!("connector:{name}")
}

/// Notes what a call showed of a connector's health: one that refuses our key is told once, and locked
/// for every way round it until it answers again (TOOL-08).
pub(crate) fn health(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    health: Option<&Health>,
) -> Result<()> {
    match health {
        None => Ok(()),
        Some(Health::Works { connector: name }) => store::fault::close(tx, &connector(name)),
        Some(Health::Broken { connector: name, why }) => {
            let main = store::owner::locked(tx)?.main_session;
            let notice = Notice::Connector { name, reason: why };
            fault(cx, tx, main, &connector(name), &notice)
        }
    }
}

/// Whether a connector is known to be broken.
pub(crate) fn is_broken(tx: &mut OwnerTx<'_, '_>, name: &str) -> Result<bool> {
    let (owner, key) = (tx.owner(), connector(name));
    Ok(store::fault::all_open(tx, owner)?.iter().any(|fault| fault.key == key))
}
