//! Control: what only the user can do (DEL-07, DEL-14). No model has a handle to anything here.

mod actions;
mod duty;
mod holds;
mod settings;
mod sources;

use base::{DeviceId, Digest, ProposalId};
use domain::draft::{Draft, Wakeup};
use domain::effect::GrantDraft;
use domain::event::{EventKind, Trust};
use domain::schedule::zone;
use domain::state::{
    DutyState, GrantState, ProposalState, ScheduleState, SubscriptionState, TaskVersionState,
};
use store::device::Device;
use store::duty::{Duty, TaskVersion};
use store::event::NewBody;
use store::grant::Grant;
use store::proposal::{Proposal, ProposalKind};
use store::schedule::Schedule;
use store::session::SessionKind;
use store::subscription::Subscription;
use store::{OwnerTx, Result, StoreError};

use crate::intake::{Content, Incoming, accept};
use crate::setup::{self, Offer, session};
use crate::{Context, tools};

pub use actions::{Statement, approve, deny, state, withdraw};
pub use duty::{resume, stop};
pub use holds::{lift, pause, promote, release, system_stop};
pub use settings::{Settings, settings};
pub use sources::{NewSource, SOURCE_MS, add_source, check_source_name, remove_source};

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
    if let (ProposalKind::CloseDuty, Some(duty)) = (proposal.kind, proposal.duty) {
        let duty = store::duty::get(tx, proposal.owner, duty)?;
        let owed = actions::owed(tx, duty.session)?;
        if !owed.is_empty() {
            return Ok(Decided::Conflict(format!(
                "It cannot be closed yet, since it still owes: {}. Settle or take these back first.",
                owed.join("; ")
            )));
        }
    }
    let by = Some((device.principal, device.id));
    store::proposal::end(tx, &proposal, ProposalState::Confirmed, by)?;
    match (proposal.kind, proposal.duty) {
        (ProposalKind::CloseDuty, Some(duty)) => duty::close(tx, device, duty)?,
        (ProposalKind::NewDuty, _) | (ProposalKind::CloseDuty, None) => {
            start(cx, tx, device, &proposal)?;
        }
    }
    decided(cx, tx, &proposal)
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
    if let Some(duty) = proposal.duty {
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

/// Turns a confirmed draft into a duty with its first version, its lane and its schedules.
fn start(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    proposal: &Proposal,
) -> Result<()> {
    let corrupt = |e: String| StoreError::Corrupt(format!("proposal {}: {e}", proposal.id));
    let bytes = store::event::body(tx, proposal.content)?.unwrap_or_default();
    let draft: Draft = serde_json::from_slice(&bytes).map_err(|e| corrupt(e.to_string()))?;
    let until_at = draft.until_at().map_err(|e| corrupt(e.to_string()))?;
    let (owner, now) = (tx.owner(), tx.now());
    let lane = session(cx.id(), owner, SessionKind::Duty, now);
    let duty = Duty {
        id: cx.id(),
        owner,
        agent: lane.agent.clone(),
        session: lane.id,
        state: DutyState::Active,
        proposal: proposal.id,
        created_at: now,
        moved_at: now,
    };
    let version = TaskVersion {
        id: cx.id(),
        owner,
        duty: duty.id,
        n: 1,
        state: TaskVersionState::Current,
        content: proposal.content,
        digest: proposal.digest,
        conditions: u32::try_from(draft.conditions.len()).unwrap_or(u32::MAX),
        until_at,
        confirmed_by: device.principal,
        created_at: now,
        moved_at: now,
    };
    store::session::insert(tx, &lane)?;
    store::duty::insert(tx, &duty, &version)?;
    for wakeup in &draft.schedules {
        schedule(cx, tx, proposal, &version, &duty, wakeup)?;
    }
    subscribe(cx, tx, proposal, &duty, &version, &draft)?;
    for wanted in &draft.grants {
        grant(cx, tx, &version, wanted)?;
    }
    let text = String::from_utf8_lossy(&bytes);
    tools::of_delegation(cx, tx, (lane.id, version.id, proposal.run), &text)
}

/// Makes one of the draft's schedules.
fn schedule(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    proposal: &Proposal,
    version: &TaskVersion,
    duty: &Duty,
    wakeup: &Wakeup,
) -> Result<()> {
    let corrupt = |e: String| StoreError::Corrupt(format!("proposal {}: {e}", proposal.id));
    let now = tx.now();
    let next_slot =
        wakeup.rule.next_after(&zone_of(tx)?, now).map_err(|e| corrupt(e.to_string()))?;
    let prompt = text_body(cx, proposal, wakeup.prompt.clone());
    let check = match &wakeup.check {
        None => None,
        Some(check) => {
            let text = serde_json::to_string(check).map_err(|e| corrupt(e.to_string()))?;
            Some(text_body(cx, proposal, text))
        }
    };
    let schedule = Schedule {
        id: cx.id(),
        owner: duty.owner,
        duty: duty.id,
        task_version: version.id,
        session: duty.session,
        rule: serde_json::to_string(&wakeup.rule).map_err(|e| corrupt(e.to_string()))?,
        prompt: prompt.id,
        run_missed: wakeup.run_missed,
        check_spec: check.as_ref().map(|check| check.id),
        check_last: None,
        next_slot,
        last_slot: None,
        last_late: false,
        until_at: version.until_at,
        state: ScheduleState::Active,
        created_at: now,
        moved_at: now,
    };
    store::event::put_body(tx, prompt)?;
    if let Some(check) = check {
        store::event::put_body(tx, check)?;
    }
    store::schedule::insert(tx, &schedule)
}

/// Makes the draft's subscriptions. A source that is gone by now is left out: nothing comes from it.
fn subscribe(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    proposal: &Proposal,
    duty: &Duty,
    version: &TaskVersion,
    draft: &Draft,
) -> Result<()> {
    for wanted in &draft.subscriptions {
        let Some(source) = store::source::by_name(tx, duty.owner, &wanted.source)? else {
            tracing::warn!(source = wanted.source, "the source of a subscription was removed");
            continue;
        };
        let prompt = text_body(cx, proposal, wanted.prompt.clone());
        let subscription = Subscription {
            id: cx.id(),
            owner: duty.owner,
            duty: duty.id,
            task_version: version.id,
            session: duty.session,
            source: source.id,
            topic: wanted.topic.clone(),
            mode: wanted.mode,
            prompt: prompt.id,
            until_at: version.until_at,
            state: SubscriptionState::Active,
            created_at: tx.now(),
            moved_at: tx.now(),
        };
        store::event::put_body(tx, prompt)?;
        store::subscription::insert(tx, &subscription)?;
    }
    Ok(())
}

/// Makes one of the draft's grants: in force from this tap on, and never before (DEL-26).
fn grant(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    version: &TaskVersion,
    wanted: &GrantDraft,
) -> Result<()> {
    let corrupt = |e: String| StoreError::Corrupt(format!("grant of {}: {e}", version.id));
    let limit = |text: Option<&str>| wanted.limit(text).map_err(|e| corrupt(e.to_string()));
    let (each, total) = (limit(wanted.each.as_deref())?, limit(wanted.total.as_deref())?);
    let grant = Grant {
        id: cx.id(),
        owner: version.owner,
        duty: version.duty,
        task_version: version.id,
        tool: wanted.tool.clone(),
        times: i64::from(wanted.times),
        currency: wanted.currency.filter(|_| total.is_some()),
        each_minor: each.map(|each| each.minor),
        total_minor: total.map(|total| total.minor),
        recipients: serde_json::Value::from(wanted.to.clone()).to_string(),
        until_at: version.until_at,
        state: GrantState::Active,
        reserved_count: 0,
        reserved_minor: 0,
        spent_count: 0,
        spent_minor: 0,
        confirmed_by: version.confirmed_by,
        created_at: tx.now(),
        moved_at: tx.now(),
    };
    store::grant::insert(tx, &grant)
}

/// A text that the user confirmed.
fn text_body(cx: &Context, proposal: &Proposal, text: String) -> NewBody {
    NewBody::text(cx.id(), text, format!("proposal:{}", proposal.id), Trust::User)
}

/// The owner's zone.
fn zone_of(tx: &mut OwnerTx<'_, '_>) -> Result<jiff::tz::TimeZone> {
    let owner = store::owner::locked(tx)?;
    zone(&owner.zone).map_err(|e| StoreError::Corrupt(e.to_string()))
}

/// What came of stopping or resuming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// As the user wished.
    Done,
    /// Not possible, and why.
    Conflict(String),
}

/// The user asks for a code with which one more device of theirs can be paired.
pub fn offer_code(cx: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device) -> Result<Offer> {
    // The code is a secret of few bits, so not even its digest is kept in the chain.
    tx.audit(Some(device.principal), "offer", device.id, None);
    setup::offer_code(cx, tx)
}

/// The user ends the access of one of their devices, which may be the one that asks.
pub fn revoke(tx: &mut OwnerTx<'_, '_>, device: &Device, id: DeviceId) -> Result<Device> {
    let owner = tx.owner();
    store::device::get(tx, owner, id)?;
    store::device::revoke(tx, id, Some(device.principal))?;
    store::device::get(tx, owner, id)
}
