//! Proposals: questions that only the person decides, on exactly what was shown.

use axum::Json as Sent;
use axum::extract::{Extension, State};
use base::{Digest, ProposalId};
use domain::state::ProposalState;
use engine::control::{self, Decided};
use serde::Deserialize;
use serde_json::{Value, json};
use store::device::Device;
use store::{OwnerTx, Result, Tx};
use uuid::Uuid;

use crate::App;
use crate::auth::Caller;
use crate::body::{Asked, Json, Named};
use crate::duties::Write;
use crate::idempotent::{Ask, Order, Outcome, target, write};
use crate::problem::Problem;
use crate::stale;
use crate::views::{self, Reader};

/// Which proposals.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    state: Option<ProposalState>,
}

/// The newest proposals that are looked at for one answer.
const PROPOSALS_MAX: i64 = 500;

/// Proposals in order of creation.
pub(crate) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Asked(which): Asked<Which>,
) -> std::result::Result<Sent<Value>, Problem> {
    let (owner, now) = (caller.device.owner, app.web.cx.clock.now());
    let read = move |tx: &mut Tx<'_>| {
        let of = store::owner::get(tx, owner)?;
        let mut shown = Vec::new();
        for proposal in store::proposal::all(tx, owner, PROPOSALS_MAX)?.into_iter().rev() {
            let answer = views::proposal(tx, &of, &proposal, now)?;
            let state = &answer.frame["state"];
            if which.state.is_none_or(|wanted| *state == json!(wanted)) {
                shown.push(views::with_words(tx, answer, Reader::of(&of, caller.device.kind))?);
            }
        }
        Ok(json!({"proposals": shown}))
    };
    Ok(Sent(app.web.cx.store.read(read).await?))
}

/// One proposal as it stands now.
pub(crate) async fn one(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<ProposalId>,
) -> std::result::Result<Sent<Value>, Problem> {
    let (owner, now) = (caller.device.owner, app.web.cx.clock.now());
    let read = move |tx: &mut Tx<'_>| {
        let proposal = store::proposal::get(tx, owner, id)?;
        let of = store::owner::get(tx, owner)?;
        let answer = views::proposal(tx, &of, &proposal, now)?;
        views::with_words(tx, answer, Reader::of(&of, caller.device.kind))
    };
    Ok(Sent(app.web.cx.store.read(read).await?))
}

/// A yes, with the digest of the card that was shown.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfirmWrite {
    id: Uuid,
    digest: String,
}

/// The person agrees to exactly what was shown.
pub(crate) async fn confirm(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(proposal): Named<ProposalId>,
    Json(asked): Json<ConfirmWrite>,
) -> std::result::Result<Sent<Value>, Problem> {
    let content = vec![asked.digest.as_bytes()];
    let ask = Ask { id: asked.id, operation: "confirm", target: target(proposal), content };
    // What is no digest is the digest of nothing that was ever shown, and meets the same refusal.
    let shown = Digest::from_hex(&asked.digest).unwrap_or(Digest::ZERO);
    let answered = write(&app, caller, Order::InTurn, ask, move |cx, tx, device| {
        let decided = control::confirm(cx, tx, device, proposal, shown)?;
        outcome(tx, device, proposal, Some(shown), decided)
    });
    Ok(Sent(answered.await?.body))
}

/// The person says no.
pub(crate) async fn decline(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(proposal): Named<ProposalId>,
    Json(asked): Json<Write>,
) -> std::result::Result<Sent<Value>, Problem> {
    let ask =
        Ask { id: asked.id, operation: "decline", target: target(proposal), content: Vec::new() };
    let answered = write(&app, caller, Order::InTurn, ask, move |cx, tx, device| {
        let decided = control::decline(cx, tx, device, proposal)?;
        outcome(tx, device, proposal, None, decided)
    });
    Ok(Sent(answered.await?.body))
}

fn outcome(
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: ProposalId,
    shown: Option<Digest>,
    decided: Decided,
) -> Result<Outcome> {
    let proposal = match decided {
        Decided::Done(proposal) => proposal,
        Decided::Conflict(what) => return stale::proposal(tx, device, id, shown, what),
    };
    let (owner, now) = (store::owner::locked(tx)?, tx.now());
    views::proposal(tx, &owner, &proposal, now).map(Outcome::Done)
}
