//! Review: who has to release an action, and the reviewer's word where its tier asks for one (PRO-08..12).
//!
//! Inside a grant the policy releases it, on record; otherwise a person is asked. The reviewer sees the
//! frozen action and the delegation, never the agent's reasoning, and can only hold back.

use base::{ActionId, GrantId, OwnerId};
use domain::effect::{Demanded, Gate, Limit, Verdict, read_verdict, tier};
use domain::state::{ActionState, TaskVersionState};
use model::{Answer, ModelError, Request};
use store::approval::Approval;
use store::ledger::LedgerKind;
use store::owner::PrincipalKind;
use store::{OwnerTx, Result};

use crate::effect::{
    Held, PERSON_ASKED, ask, ask_besides, decide_until, drop_action, held, lapse, ruled,
};
use crate::pump::unless_stopped;
use crate::{Context, aside, notice};

const BATCH: i64 = 16;
/// Tokens that the reviewer's answer may have.
const ANSWER_TOKENS_MAX: u32 = 200;
/// The rule by which the policy releases, with its version (ADM-11).
const POLICY: &str = "policy-1: inside a grant";

/// What was proposed and nobody has looked at, and requests whose time is over.
pub async fn due(cx: &Context) -> Result<Vec<(OwnerId, ActionId)>> {
    let now = cx.clock.now();
    let find = move |tx: &mut store::Tx<'_>| {
        let new =
            |tx: &mut store::Tx<'_>| store::action::due(tx, ActionState::Proposed, now, BATCH);
        let mut found = unless_stopped(tx, new)?;
        found.extend(store::action::due(tx, ActionState::AwaitingApproval, now, BATCH)?);
        Ok(found)
    };
    cx.store.read(find).await
}

/// Reviews one of them, or ends its request.
pub async fn one(cx: &Context, owner: OwnerId, id: ActionId) -> Result<()> {
    let Some(review) = claim(cx, owner, id).await? else { return Ok(()) };
    let answer = perform(cx, &review).await;
    cx.write(owner, move |cx, tx| record(cx, tx, &review, answer)).await
}

/// An action that the reviewer is asked about.
#[derive(Debug, Clone)]
pub struct Review {
    action: ActionId,
    grant: GrantId,
    /// What the reviewer is asked.
    pub request: Request,
}

/// Decides by the tier, or ends a request whose time is over. `Some`: the reviewer is to be asked first.
pub async fn claim(cx: &Context, owner: OwnerId, id: ActionId) -> Result<Option<Review>> {
    cx.write(owner, move |cx, tx| decide(cx, tx, id)).await
}

fn decide(cx: &Context, tx: &mut OwnerTx<'_, '_>, id: ActionId) -> Result<Option<Review>> {
    let mut held = held(tx, id)?;
    let now = tx.now();
    if held.action.due_at.is_none_or(|at| at > now) {
        return Ok(None);
    }
    if held.action.state == ActionState::AwaitingApproval {
        asked(cx, tx, &mut held)?;
    }
    if held.action.state != ActionState::Proposed {
        return Ok(None);
    }
    if over(cx, tx, &mut held)? {
        return Ok(None);
    }
    let Some(demanded) = ruled(cx, tx, &mut held)? else { return Ok(None) };
    let (grant, limit) = covering(tx, &held)?;
    let tier = tier(held.content.effect, grant.is_some());
    held.action.tier = Some(tier);
    match (tier.gate(), grant) {
        (_, Some(_)) if demanded.person => {
            ask(cx, tx, &mut held, PERSON_ASKED.to_owned())?;
            Ok(None)
        }
        (Gate::Policy, Some(grant)) => {
            release(cx, tx, &mut held, (grant, demanded), None)?;
            Ok(None)
        }
        (Gate::Review, Some(grant)) => {
            // The cap holds for the reviewer too; without it a person has to look.
            let owner = store::owner::locked(tx)?;
            if notice::capped(cx, tx, &owner)? {
                let why = "This month's cap is used up, so the reviewer was not asked.".to_owned();
                ask(cx, tx, &mut held, why)?;
                return Ok(None);
            }
            let request = question(tx, &held)?;
            // Whoever crashes now leaves it to be reviewed again after this time.
            held.action.due_at = Some(now.plus_ms(2 * cx.limits.review_ms));
            store::action::put(tx, &held.action, ActionState::Proposed, None)?;
            Ok(Some(Review { action: id, grant, request }))
        }
        (Gate::Person, _) | (_, None) => {
            let why = limit.map_or_else(
                || "No grant of yours covers it.".to_owned(),
                |limit| format!("No grant of yours covers it: {limit}."),
            );
            ask(cx, tx, &mut held, why)?;
            Ok(None)
        }
    }
}

/// Ends an action whose version or time is over.
fn over(cx: &Context, tx: &mut OwnerTx<'_, '_>, held: &mut Held) -> Result<bool> {
    let current = match held.action.task_version {
        Some(id) => store::duty::version_by_id(tx, id)?.state == TaskVersionState::Current,
        None => true,
    };
    if !current {
        let why = "a newer version of its duty is in force";
        drop_action(cx, tx, &mut held.action, ActionState::Superseded, why, None)?;
        return Ok(true);
    }
    let expired = held.action.expires_at.is_some_and(|at| at <= tx.now());
    if expired {
        let why = "what it names has expired";
        drop_action(cx, tx, &mut held.action, ActionState::Expired, why, None)?;
    }
    Ok(expired)
}

/// The first grant that covers it, or the bound of the last one that does not.
fn covering(tx: &mut OwnerTx<'_, '_>, held: &Held) -> Result<(Option<GrantId>, Option<Limit>)> {
    let Some(duty) = held.action.duty else { return Ok((None, None)) };
    let (now, mut crossed) = (tx.now(), None);
    for grant in store::grant::active(tx, duty)? {
        if grant.tool != held.action.tool || Some(grant.task_version) != held.action.task_version {
            continue;
        }
        match grant.limits(None)?.covers(&held.content, now) {
            Ok(()) => return Ok((Some(grant.id), None)),
            Err(limit) => crossed = Some(limit),
        }
    }
    Ok((None, crossed))
}

/// The policy releases it: an approval like every other, by the policy's own principal (ADM-11).
fn release(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    held: &mut Held,
    (grant, demanded): (GrantId, Demanded),
    reviewed: Option<String>,
) -> Result<()> {
    let owner = tx.owner();
    let policy = store::owner::principal(tx, owner, PrincipalKind::Policy)?.id;
    let until = decide_until(cx, &held.action, tx.now());
    let kind = PrincipalKind::Policy;
    let request = Approval::request(cx.id(), &held.action, kind, POLICY, until, tx.now());
    let approval = Approval { rests_on: Some(grant), reason: reviewed, ..request.granted(policy) };
    store::approval::insert(tx, &approval)?;
    ask_besides(cx, tx, held, demanded)?;
    let action = &mut held.action;
    let was = action.state;
    action.state = ActionState::Authorized;
    action.approval = Some(approval.id);
    action.draws_on = Some(grant);
    action.due_at = Some(tx.now());
    action.reason = None;
    store::action::put(tx, action, was, Some(policy))
}

/// What the reviewer sees: the frozen bytes, the delegation, and where each object came from (G-34).
fn question(tx: &mut OwnerTx<'_, '_>, held: &Held) -> Result<Request> {
    let delegation = match held.action.duty {
        Some(duty) => {
            let version = store::duty::version(tx, duty)?;
            store::event::body_text(tx, version.content)?
        }
        None => "none".to_owned(),
    };
    let mut objects = String::new();
    for object in &held.content.objects {
        let action = &held.action;
        let (session, version, now) = (action.session, action.task_version, tx.now());
        let kind = Some(object.kind.as_str());
        let found = store::object::find(tx, session, version, &object.id, kind, now)?;
        let from = found.map_or_else(|| "nowhere".to_owned(), |found| found.provenance);
        objects.push_str(&format!("{} {}: issued by {from}\n", object.kind, object.id));
    }
    let action = String::from_utf8_lossy(&held.bytes);
    let text = domain::effect::review_question(&delegation, &action, &objects);
    Ok(aside::question(text, ANSWER_TOKENS_MAX))
}

/// Asks the reviewer, for as long as that may take.
pub async fn perform(cx: &Context, review: &Review) -> std::result::Result<Answer, ModelError> {
    aside::ask(cx.reviewer.as_ref(), &review.request, cx.limits.review_ms).await
}

/// Takes the reviewer's word: nothing against it lets the policy release; anything else asks the person.
pub fn record(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    review: &Review,
    answer: std::result::Result<Answer, ModelError>,
) -> Result<()> {
    let mut held = held(tx, review.action)?;
    if held.action.state != ActionState::Proposed {
        return Ok(());
    }
    let verdict = match answer {
        Err(error) => Verdict::Against(format!("it gave no answer ({error})")),
        Ok(answer) => {
            let of = (LedgerKind::Review, held.action.duty);
            aside::spend(cx, tx, cx.reviewer.as_ref(), of, &answer)?;
            read_verdict(answer.text.as_deref().unwrap_or_default())
        }
    };
    if over(cx, tx, &mut held)? {
        return Ok(());
    }
    // A rule may have been made while the reviewer looked.
    let Some(demanded) = ruled(cx, tx, &mut held)? else { return Ok(()) };
    if demanded.person {
        return ask(cx, tx, &mut held, PERSON_ASKED.to_owned());
    }
    let covers = store::grant::get(tx, review.grant)?.limits(None)?;
    match (verdict, covers.covers(&held.content, tx.now())) {
        (Verdict::NothingAgainst(why), Ok(())) => {
            let said = format!("reviewer {}: {why}", cx.reviewer.name());
            release(cx, tx, &mut held, (review.grant, demanded), Some(said))
        }
        (Verdict::NothingAgainst(_), Err(limit)) => {
            ask(cx, tx, &mut held, format!("No grant of yours covers it: {limit}."))
        }
        (Verdict::Against(why), _) => {
            ask(cx, tx, &mut held, format!("The reviewer asks you to look: {why}."))
        }
    }
}

/// A question that is due: its time is over, or a rule was made since it was asked.
fn asked(cx: &Context, tx: &mut OwnerTx<'_, '_>, held: &mut Held) -> Result<()> {
    let until = match held.action.approval {
        Some(approval) => store::approval::get(tx, approval)?.until_at,
        None => tx.now(),
    };
    if until <= tx.now() {
        return lapse(cx, tx, held);
    }
    let Some(demanded) = ruled(cx, tx, held)? else { return Ok(()) };
    ask_besides(cx, tx, held, demanded)?;
    held.action.due_at = Some(until);
    store::action::put(tx, &held.action, ActionState::AwaitingApproval, None)
}
