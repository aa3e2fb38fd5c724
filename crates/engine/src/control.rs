//! Control: what only the user can do (DEL-07, DEL-14). No model has a handle to anything here.

mod actions;
mod duty;
mod holds;
mod rules;
mod settings;
mod sources;
mod version;

use base::{DeviceId, Digest, ProposalId};
use domain::event::{EventKind, Trust};
use domain::schedule::zone;
use domain::state::{DutyState, ProposalState};
use store::device::Device;
use store::owner::PrincipalKind;
use store::proposal::{Proposal, ProposalKind};
use store::{OwnerTx, Result, StoreError};

use crate::Context;
use crate::intake::{Content, Incoming, accept};
use crate::setup::{self, Offer};

pub use actions::{Shown, Statement, approve, concerns, deny, state, withdraw};
pub use duty::{resume, stop};
pub use holds::{lift, pause, promote, release, system_stop};
pub use rules::{RULES, add_rule, end_rule};
pub use settings::{Settings, settings};
pub use sources::{NewSource, SOURCE_MS, add_source, check_source_name, remove_source};
pub(crate) use version::adopt;

/// What came of a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// As the user wished; this is the proposal now.
    Done(Box<Proposal>),
    /// Not possible any more, with what happened instead.
    Conflict(String),
}

/// The user says yes to exactly what was shown.
pub fn confirm(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: ProposalId,
    shown: Digest,
) -> Result<Decided> {
    let proposal = match open(tx, id)? {
        Ok(proposal) => proposal,
        Err(conflict) => return Ok(conflict),
    };
    if proposal.digest != shown {
        return Ok(Decided::Conflict(
            "This is not what was shown to you. Open the card again and decide on what it says now."
                .into(),
        ));
    }
    if let Some(why) = impossible(tx, &proposal)? {
        return Ok(Decided::Conflict(why));
    }
    let by = Some((device.principal, device.id));
    store::proposal::end(tx, &proposal, ProposalState::Confirmed, by)?;
    match (proposal.kind, proposal.duty) {
        (ProposalKind::CloseDuty, Some(duty)) => duty::close(tx, device, duty)?,
        (ProposalKind::ChangeDuty, Some(duty)) => version::change(cx, tx, device, &proposal, duty)?,
        (ProposalKind::NewDuty | ProposalKind::ChangeDuty | ProposalKind::CloseDuty, _) => {
            version::start(cx, tx, device, &proposal)?;
        }
    }
    decided(cx, tx, &proposal)
}

/// Why what was proposed cannot be confirmed as things stand now.
fn impossible(tx: &mut OwnerTx<'_, '_>, proposal: &Proposal) -> Result<Option<String>> {
    let Some(duty) = proposal.duty else { return Ok(None) };
    let duty = store::duty::get(tx, proposal.owner, duty)?;
    match proposal.kind {
        ProposalKind::NewDuty => Ok(None),
        ProposalKind::ChangeDuty => {
            let version = store::duty::version(tx, duty.id)?;
            let over = !matches!(duty.state, DutyState::Active | DutyState::CloseProposed);
            if over || version.created_at > proposal.created_at {
                return Ok(Some(
                    "This was drafted for a version of the duty that is no longer in force. Ask for the \
                     change again."
                        .into(),
                ));
            }
            Ok(None)
        }
        ProposalKind::CloseDuty => {
            let owed = actions::owed(tx, duty.session)?;
            Ok((!owed.is_empty()).then(|| {
                let owed = owed.join("; ");
                format!(
                    "It cannot be closed yet, since it still owes: {owed}. Settle or take these back first."
                )
            }))
        }
    }
}

/// The user says no.
pub fn decline(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: ProposalId,
) -> Result<Decided> {
    let owner = tx.owner();
    let proposal = match open(tx, id)? {
        Ok(proposal) => proposal,
        Err(conflict) => return Ok(conflict),
    };
    let by = Some((device.principal, device.id));
    store::proposal::end(tx, &proposal, ProposalState::Declined, by)?;
    if let (ProposalKind::CloseDuty, Some(duty)) = (proposal.kind, proposal.duty) {
        let duty = store::duty::get(tx, owner, duty)?;
        if duty.state == DutyState::CloseProposed {
            store::duty::advance(tx, &duty, DutyState::Active, Some(device.principal))?;
        }
    }
    decided(cx, tx, &proposal)
}

/// The proposal, if it can still be decided; expiry is a comparison here, not a timer's word.
fn open(
    tx: &mut OwnerTx<'_, '_>,
    id: ProposalId,
) -> Result<std::result::Result<Proposal, Decided>> {
    let owner = tx.owner();
    let proposal = store::proposal::get(tx, owner, id)?;
    let over = proposal.expires_at <= tx.now();
    let conflict = match proposal.state {
        ProposalState::Open if !over => return Ok(Ok(proposal)),
        ProposalState::Open | ProposalState::Expired => {
            "The time for this decision has passed. Nothing was changed."
        }
        ProposalState::Confirmed => "You have confirmed this already.",
        ProposalState::Declined => "You have declined this already. Nothing was changed.",
        ProposalState::Withdrawn => "This no longer applies. Nothing was changed.",
    };
    Ok(Err(Decided::Conflict(conflict.into())))
}

/// Tells whoever waits for the decision.
fn decided(cx: &Context, tx: &mut OwnerTx<'_, '_>, proposal: &Proposal) -> Result<Decided> {
    let owner = tx.owner();
    let now = store::proposal::get(tx, owner, proposal.id)?;
    let source = store::owner::locked(tx)?.timer_source;
    let incoming = Incoming {
        source,
        external_id: format!("proposal:{}", proposal.id),
        kind: EventKind::ProposalDecided,
        key: Some(proposal.id.to_string()),
        topic: None,
        trust: Trust::System,
        content: Content::text(
            format!("proposal {}: {} by the user", proposal.id, now.state),
            format!("proposal:{}", proposal.id),
        ),
        links: Vec::new(),
        session: None,
        duty: None,
        late: false,
    };
    accept(cx, tx, incoming)?;
    Ok(Decided::Done(Box::new(now)))
}

/// The owner's zone.
fn zone_of(tx: &mut OwnerTx<'_, '_>) -> Result<jiff::tz::TimeZone> {
    let owner = store::owner::locked(tx)?;
    zone(&owner.zone).map_err(|e| StoreError::Corrupt(e.to_string()))
}

/// What came of a change, or why there was none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// As the user wished.
    Done,
    /// Not possible, and why.
    Conflict(String),
    /// Not for this device to do, and whose it is.
    NotYours(&'static str),
}

const CODES: &str = "Only whoever runs the machine lets a supervisor in: \"adjutant pair --supervisor\" there, \
     with the token that the server left in its data folder.";
const DEVICES: &str = "A device of the supervisor is revoked by another one of theirs, or by \"adjutant revoke\" \
     on the machine where the server runs; a device of the owner by the owner's own.";

/// The user asks for a code with which one more device of theirs can be paired; whoever runs the machine, for
/// one of the supervisor's.
pub fn offer_code(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    kind: PrincipalKind,
) -> Result<std::result::Result<Offer, Changed>> {
    if !may_admit(device, kind) {
        return Ok(Err(Changed::NotYours(CODES)));
    }
    // The code is a secret of few bits, so not even its digest is kept in the chain.
    tx.audit(Some(device.principal), "offer", device.id, None);
    setup::offer(cx, tx, kind).map(Ok)
}

/// The user ends the access of one of their devices, which may be the one that asks; whoever runs the machine,
/// and the supervisor, that of one of the supervisor's.
pub fn revoke(
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: DeviceId,
) -> Result<std::result::Result<Device, Changed>> {
    let owner = tx.owner();
    let ended = store::device::get(tx, owner, id)?;
    if ended.principal != device.principal && !may_admit(device, ended.kind) {
        return Ok(Err(Changed::NotYours(DEVICES)));
    }
    store::device::revoke(tx, id, Some(device.principal))?;
    store::device::get(tx, owner, id).map(Ok)
}

/// Whether a device may let in, and turn out, devices of this kind of principal.
fn may_admit(device: &Device, kind: PrincipalKind) -> bool {
    match kind {
        PrincipalKind::User => device.kind == PrincipalKind::User,
        PrincipalKind::Supervisor => device.operator,
        PrincipalKind::Policy => false,
    }
}
