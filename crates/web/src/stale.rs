//! What a person is told whose tap came too late: what changed about the card since it was drawn, old
//! against new, and the card as it is now (UX rule 8).

use base::{ActionId, Digest, ProposalId};
use domain::schedule::zone;
use domain::state::{ActionState, ProposalState};
use domain::words::{self, Language};
use serde::Serialize;
use serde_json::Value;
use store::action::Action;
use store::device::Device;
use store::owner::{Owner, PrincipalKind};
use store::proposal::{Proposal, ProposalKind};
use store::{OwnerTx, Result};

use crate::idempotent::Outcome;
use crate::views::action::Seen;
use crate::views::{self, Reader, corrupt};

/// What changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Stale {
    /// The differences, a line each, in the owner's language.
    changes: Vec<String>,
    /// The card that counts now: the one tapped, or a newer one in its place.
    card: Value,
}

/// The newest questions that are looked through for another one about the same duty.
const LOOKED_THROUGH: i64 = 200;

/// A conflict about an action, with what changed if its card is not what was shown. A supervisor is told of
/// the card that they tapped and of nothing else: other cards, and who decided, are the owner's.
pub(crate) fn action(
    cx: &engine::Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: ActionId,
    shown: Option<Digest>,
    what: String,
) -> Result<Outcome> {
    let (owner, now) = (store::owner::locked(tx)?, tx.now());
    let tapped = store::action::get(tx, id)?;
    let other = shown.filter(|shown| *shown != tapped.digest);
    if tapped.state == ActionState::AwaitingApproval && other.is_none() {
        return Ok(Outcome::Conflict(what));
    }
    let reader = Reader::of(&owner, device.kind);
    let language = reader.language;
    let mut said = vec![words::said(&what, language)];
    let lane = match device.kind {
        PrincipalKind::Supervisor => Vec::new(),
        PrincipalKind::User | PrincipalKind::Policy => {
            said.extend(decided_on(tx, &owner, &tapped)?);
            store::action::open(tx, tapped.session)?
        }
    };
    // What was shown is another action of the lane; or a newer card has taken the place of this one.
    let mut lane = lane.into_iter();
    let (old, new) = match other {
        Some(digest) => (lane.find(|one| one.digest == digest), Some(tapped.clone())),
        None => (Some(tapped.clone()), lane.rfind(|one| follows(one, &tapped))),
    };
    let is_newer = new.as_ref().is_some_and(|new| new.id != tapped.id);
    said.extend(is_newer.then(|| words::newer_card(language).to_owned()));
    let mut changes = Vec::new();
    if let (Some(old), Some(new)) = (&old, &new)
        && let (Some(old), Some(new)) =
            (views::action::content(tx, old)?, views::action::content(tx, new)?)
    {
        changes = words::differences(&old, &new, language);
    }
    let seen = Seen { owner: &owner, limits: &cx.limits, now };
    let answer = views::action::whole(tx, &seen, new.map_or(id, |new| new.id))?;
    let card = views::with_words(tx, answer, reader)?;
    Ok(Outcome::Stale(said.join(language.pick(" ", "")), Stale { changes, card }))
}

/// Whether a card that waits has taken the place of another.
fn follows(one: &Action, before: &Action) -> bool {
    let asked = |action: &Action| words::Asked {
        session: action.session,
        tool: action.tool.clone(),
        errand: action.errand.clone(),
        at: action.created_at,
    };
    one.state == ActionState::AwaitingApproval && words::takes_place(&asked(one), &asked(before))
}

/// Where the owner decided an action's card, if they did.
fn decided_on(tx: &mut OwnerTx<'_, '_>, owner: &Owner, action: &Action) -> Result<Option<String>> {
    let Some(counts) = action.approval else { return Ok(None) };
    let last = store::approval::get(tx, counts)?;
    let (Some(device), Some(decided_at)) = (last.device, last.decided_at) else { return Ok(None) };
    let name = store::device::get(tx, owner.id, device)?.name;
    let line = words::approval_line(last.state, owner.language());
    elsewhere(owner, &name, decided_at, line).map(Some)
}

fn elsewhere(owner: &Owner, device: &str, at: base::Timestamp, line: &str) -> Result<String> {
    let zone = zone(&owner.zone).map_err(|error| corrupt("the owner's zone", error))?;
    let at = words::at(owner.language(), &zone, at);
    Ok(words::decided_elsewhere(device, &at, line, owner.language()))
}

/// The same about a question.
pub(crate) fn proposal(
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: ProposalId,
    shown: Option<Digest>,
    what: String,
) -> Result<Outcome> {
    let (owner, now) = (store::owner::locked(tx)?, tx.now());
    let tapped = store::proposal::get(tx, owner.id, id)?;
    let other = shown.filter(|shown| *shown != tapped.digest);
    let language = owner.language();
    let all = store::proposal::all(tx, owner.id, LOOKED_THROUGH)?;
    let newer = all.iter().find(|one| takes_place(one, &tapped));
    if tapped.state == ProposalState::Open && other.is_none() && newer.is_none() {
        return Ok(Outcome::Conflict(what));
    }
    let (old, new) = match other {
        Some(digest) => (all.iter().find(|one| one.digest == digest), Some(&tapped)),
        None => (Some(&tapped), newer),
    };
    let changes = match (old, new) {
        (Some(old), Some(new)) => differences(tx, old, new, language)?,
        (_, _) => Vec::new(),
    };
    let mut said = vec![words::said(&what, language)];
    if let Some(device) = tapped.decided_by {
        let name = store::device::get(tx, owner.id, device)?.name;
        let line = words::proposal_line(views::question(tapped.kind), tapped.state, language);
        said.push(elsewhere(&owner, &name, tapped.moved_at, line)?);
    }
    let now_counts = new.unwrap_or(&tapped).clone();
    said.extend((now_counts.id != id).then(|| words::newer_card(language).to_owned()));
    let answer = views::proposal(tx, &owner, &now_counts, now)?;
    let card = views::with_words(tx, answer, Reader::of(&owner, device.kind))?;
    Ok(Outcome::Stale(said.join(language.pick(" ", "")), Stale { changes, card }))
}

/// Whether a card about a duty asks anew what another asked. Two new duties of one conversation are two.
fn takes_place(one: &Proposal, before: &Proposal) -> bool {
    one.state == ProposalState::Open
        && one.created_at > before.created_at
        && one.kind == before.kind
        && match before.kind {
            ProposalKind::NewDuty => false,
            ProposalKind::ChangeDuty | ProposalKind::CloseDuty => one.duty == before.duty,
        }
}

fn differences(
    tx: &mut OwnerTx<'_, '_>,
    old: &Proposal,
    new: &Proposal,
    language: Language,
) -> Result<Vec<String>> {
    if old.kind == ProposalKind::CloseDuty || new.kind == ProposalKind::CloseDuty {
        return Ok(Vec::new());
    }
    let (old, new) = (views::read_draft(tx, old.content)?, views::read_draft(tx, new.content)?);
    let (Some(old), Some(new)) = (old, new) else { return Ok(Vec::new()) };
    Ok(domain::draft::Change::between(&old, &new, language).lines)
}
