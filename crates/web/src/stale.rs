//! What a person is told whose tap came too late: what changed about the card since it was drawn, old
//! against new, and the card as it is now (UX rule 8).

use base::{ActionId, Digest, ProposalId};
use domain::schedule::zone;
use domain::state::{ActionState, ProposalState};
use domain::words::{self, Language};
use serde::Serialize;
use serde_json::Value;
use store::action::Action;
use store::owner::Owner;
use store::proposal::{Proposal, ProposalKind};
use store::{OwnerTx, Result};

use crate::idempotent::Outcome;
use crate::views::action::Seen;
use crate::views::{self, corrupt};

/// What changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Stale {
    /// The differences, a line each, in the owner's language.
    changes: Vec<String>,
    /// The card that counts now: the one tapped, or a newer one in its place.
    card: Value,
}

/// The newest records that are looked through for another card of the same errand.
const LOOKED_THROUGH: i64 = 200;

/// A conflict about an action, with what changed if its card is not what was shown.
pub(crate) fn action(
    cx: &engine::Context,
    tx: &mut OwnerTx<'_, '_>,
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
    let language = owner.language();
    let all = store::action::all(tx, owner.id, LOOKED_THROUGH)?;
    // What was shown is another action of theirs; or a newer card has taken the place of this one.
    let (old, new) = match other {
        Some(digest) => (all.into_iter().find(|one| one.digest == digest), Some(tapped.clone())),
        None => (Some(tapped.clone()), all.into_iter().find(|one| follows(one, &tapped))),
    };
    let mut said = vec![words::said(&what, language)];
    said.extend(decided_on(tx, &owner, &tapped)?);
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
    let card = views::with_words(tx, answer, language)?;
    Ok(Outcome::Stale(said.join(language.pick(" ", "")), Stale { changes, card }))
}

/// Whether a card asks about the same errand and came later.
fn follows(one: &Action, before: &Action) -> bool {
    one.state == ActionState::AwaitingApproval
        && one.created_at > before.created_at
        && one.session == before.session
        && one.tool == before.tool
}

/// Where an action's card was decided, if a person did.
fn decided_on(tx: &mut OwnerTx<'_, '_>, owner: &Owner, action: &Action) -> Result<Option<String>> {
    let Some(last) = store::approval::of_action(tx, action.id)?.pop() else { return Ok(None) };
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
    let card = views::with_words(tx, answer, language)?;
    Ok(Outcome::Stale(said.join(language.pick(" ", "")), Stale { changes, card }))
}

/// Whether a card about a duty asks anew what another asked.
fn takes_place(one: &Proposal, before: &Proposal) -> bool {
    one.state == ProposalState::Open
        && one.created_at > before.created_at
        && one.kind == before.kind
        && match before.kind {
            ProposalKind::NewDuty => one.session == before.session,
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
