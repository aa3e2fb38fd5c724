//! How an action looks to a client: where it stands, and the card by which a person releases it.
//!
//! A frame holds ids, states, times and numbers. The words of the frozen content, of the outside and of
//! people are put in when it is read; see [`with_words`].

use base::{ActionId, Amount, Limits, Timestamp};
use domain::effect::Content;
use domain::schedule::zone;
use domain::state::{ActionState, ApprovalState};
use domain::words::{self, ActionFacts, Language};
use serde_json::{Map, Value, json};
use store::action::Action;
use store::attempt::Attempt;
use store::owner::{Owner, PrincipalKind};
use store::{Result, StoreError, Tx};

use super::{ERASED, Reader, corrupt};
use crate::idempotent::Answer;

/// Whose actions, under which bounds, and when they are looked at.
pub(crate) struct Seen<'a> {
    pub owner: &'a Owner,
    pub limits: &'a Limits,
    pub now: Timestamp,
}

/// An action of this owner with what was sent for it.
pub(crate) fn whole(tx: &mut Tx<'_>, seen: &Seen<'_>, id: ActionId) -> Result<Answer> {
    let action = store::action::get(tx, id)?;
    if action.owner != seen.owner.id {
        return Err(StoreError::Missing("action"));
    }
    let mut answer = short(tx, seen, &action)?;
    let attempts = store::attempt::of_action(tx, action.id)?;
    let language = seen.owner.language();
    answer.frame["attempts"] = attempts.iter().map(|one| attempt(one, language)).collect();
    Ok(answer)
}

/// What a supervisor reads of an action: what it is and costs, who is asked, and where it stands.
const SUPERVISORS: [&str; 18] = [
    "id",
    "tool",
    "effect",
    "state",
    "words",
    "what",
    "card",
    "amount",
    "recipients",
    "digest",
    "template",
    "expires_at",
    "undo_ms",
    "created_at",
    "moved_at",
    "approvals",
    "asked",
    "seq",
];
/// An action whose release is asked for.
const WAITS: ActionFacts =
    ActionFacts { state: ActionState::AwaitingApproval, escalated: false, said_by_user: false };
/// What they read of a release that is not theirs.
const OF_OTHERS: [&str; 9] =
    ["id", "state", "of", "words", "by", "template", "shown", "until_at", "moved_at"];

/// The action for a supervisor: where it stands and until when is told by their own request; all that is not
/// named above is the owner's own.
fn for_supervisor(mut shown: Value, language: Language) -> Value {
    let theirs = json!(PrincipalKind::Supervisor);
    let asked = shown["asked"].as_array().is_some_and(|asked| asked.contains(&theirs));
    for approval in shown["approvals"].as_array_mut().into_iter().flatten() {
        if approval["of"] != theirs {
            keep(approval, &OF_OTHERS);
        }
    }
    let mut approvals = shown["approvals"].as_array().into_iter().flatten();
    let own = approvals.rfind(|approval| approval["of"] == theirs).cloned().unwrap_or_default();
    shown["words"] = match asked {
        true => json!(words::action_line(WAITS, language)),
        false => own["words"].clone(),
    };
    shown["expires_at"] = own["until_at"].clone();
    keep(&mut shown, &SUPERVISORS);
    shown
}

/// Blanks every field but these.
fn keep(shown: &mut Value, kept: &[&str]) {
    for (name, value) in shown.as_object_mut().into_iter().flatten() {
        if !kept.contains(&name.as_str()) {
            *value = match value {
                Value::Array(_) => json!([]),
                Value::Bool(_) => json!(false),
                Value::Null | Value::Number(_) | Value::String(_) | Value::Object(_) => Value::Null,
            };
        }
    }
}

/// An action without what was sent for it.
pub(crate) fn short(tx: &mut Tx<'_>, seen: &Seen<'_>, action: &Action) -> Result<Answer> {
    let approvals = store::approval::of_action(tx, action.id)?;
    let counts = approvals.iter().find(|approval| Some(approval.id) == action.approval);
    let until = counts.map(|approval| approval.until_at).or(action.expires_at);
    // Expiry is a comparison with the clock; the stage only records it.
    let over = [until, action.expires_at].into_iter().flatten().any(|at| at <= seen.now);
    let asks = action.state == ActionState::AwaitingApproval;
    let state = if asks && over { ActionState::Expired } else { action.state };
    // Whose word is still asked for: a person's, and where a rule wants it the supervisor's besides.
    let open = approvals.iter().filter(|approval| approval.state == ApprovalState::Requested);
    let asked: Vec<&str> =
        open.filter(|a| a.until_at > seen.now).map(|approval| approval.kind.word()).collect();
    let language = seen.owner.language();
    let approvals = approvals.iter().map(|approval| {
        json!({
            "id": approval.id,
            "state": approval.state,
            "of": approval.kind,
            "words": words::approval_line(approval.state, language),
            "by": approval.decided_by.map(|_| approval.kind),
            "device": approval.device,
            "template": approval.template,
            "shown": approval.shown,
            "until_at": approval.until_at,
            "moved_at": approval.moved_at,
        })
    });
    let undo_ms = action.effect.undo_ms(seen.limits);
    let facts = ActionFacts {
        state,
        escalated: action.escalated_at.is_some(),
        said_by_user: action.authority.as_deref() == Some("user"),
    };
    let mut frame = json!({
        "id": action.id,
        "duty": action.duty,
        "task_version": action.task_version,
        "tool": action.tool,
        "effect": action.effect,
        "tier": action.tier,
        "state": state,
        "words": words::action_line(facts, language),
        "amount": money(amount(action)),
        "digest": action.digest,
        "template": words::action_template(language),
        "expires_at": until,
        "undo_ms": undo_ms,
        "not_before": action.not_before,
        "authority": action.authority,
        "contradicted": action.contradicted,
        "escalated_at": action.escalated_at,
        "compensates": action.compensates,
        "created_at": action.created_at,
        "moved_at": action.moved_at,
        "approvals": approvals.collect::<Vec<_>>(),
        "asked": asked,
        "seq": seen.owner.change_seq,
    });
    let zone = zone(&seen.owner.zone).map_err(|e| corrupt("the owner's zone", e))?;
    let at = |at: Option<Timestamp>| at.map(|at| words::at(language, &zone, at));
    let (until, leaves) = (at(until), at(action.not_before));
    let of = words::Standing {
        state,
        escalated: facts.escalated,
        until: until.as_deref(),
        not_before: leaves.as_deref(),
        seconds: undo_ms.div_ceil(1_000),
    };
    let (nothing, afterwards) = words::action_card(of, language).unzip();
    (frame["if_nothing"], frame["afterwards"]) = (json!(nothing), json!(afterwards));
    Ok(Answer { action: Some(action.id), ..Answer::plain(frame) })
}

/// What an action costs, as its own row says.
fn amount(action: &Action) -> Option<Amount> {
    Some(Amount { minor: action.minor?, currency: action.currency? })
}

/// An amount in three forms: to count with, to tell apart, and to read.
pub(crate) fn money(amount: Option<Amount>) -> Value {
    amount.map_or(Value::Null, |amount| {
        json!({
            "minor": amount.minor,
            "currency": amount.currency,
            "text": amount.to_string(),
        })
    })
}

fn attempt(attempt: &Attempt, language: Language) -> Value {
    json!({
        "n": attempt.n,
        "operation_id": attempt.operation_id,
        "state": attempt.state,
        "words": words::attempt_line(attempt.state, language),
        "created_at": attempt.created_at,
        "moved_at": attempt.moved_at,
    })
}

/// Puts words into a frame: of the frozen content, of the outside, and of whoever decided. What an answer
/// was kept of is shown as it was then; a reason is shown while it is of that state. What is not for this
/// reader goes at the end, here and nowhere else.
pub(super) fn with_words(
    tx: &mut Tx<'_>,
    mut frame: Value,
    id: ActionId,
    reader: Reader,
) -> Result<Value> {
    let language = reader.language;
    let action = store::action::get(tx, id)?;
    let known = store::approval::of_action(tx, id)?;
    // What a person typed is theirs, and is never taken for a sentence of this program.
    let typed: Vec<&str> = known
        .iter()
        .filter(|approval| approval.device.is_some())
        .filter_map(|approval| approval.reason.as_deref())
        .collect();
    let said = |english: String| match typed.contains(&english.as_str()) {
        true => english,
        false => words::said(&english, language),
    };
    let title = match action.duty {
        Some(duty) => Some(engine::trace::title(tx, action.owner, duty)?),
        None => None,
    };
    let content = content(tx, &action)?;
    let same = frame["state"] == json!(action.state);
    let what = content.as_ref();
    let what = what.map_or_else(|| ERASED.to_owned(), |what| words::operation(what, language));
    let card = content.as_ref().map_or_else(Vec::new, |content| content.card.clone());
    let recipients = content.map_or_else(Vec::new, |content| content.recipients);
    let texts = Map::from_iter([
        ("title".to_owned(), json!(title)),
        ("what".to_owned(), json!(what)),
        ("card".to_owned(), json!(card)),
        ("recipients".to_owned(), json!(recipients)),
        ("reason".to_owned(), json!(action.reason.filter(|_| same).map(said))),
        ("receipt".to_owned(), json!(action.receipt)),
    ]);
    for shown in frame["approvals"].as_array_mut().into_iter().flatten() {
        let open = shown["state"] == json!(ApprovalState::Requested);
        let of = known.iter().find(|approval| !open && shown["id"] == json!(approval.id));
        shown["reason"] = json!(of.and_then(|approval| approval.reason.clone()).map(said));
        let device = of.and_then(|approval| approval.device);
        let device = device.map(|device| store::device::get(tx, action.owner, device));
        shown["device_name"] = json!(device.transpose()?.map(|device| device.name));
    }
    if frame.get("attempts").is_some() {
        let sent = store::attempt::of_action(tx, id)?;
        for shown in frame["attempts"].as_array_mut().into_iter().flatten() {
            let of = sent.iter().find(|attempt| shown["n"] == json!(attempt.n));
            shown["reason"] = json!(of.and_then(|attempt| attempt.reason.clone()).map(said));
            shown["receipt"] = json!(of.and_then(|attempt| attempt.receipt.as_ref()));
        }
    }
    if let Some(object) = frame.as_object_mut() {
        object.extend(texts);
    }
    Ok(match reader.kind {
        PrincipalKind::Supervisor => for_supervisor(frame, language),
        PrincipalKind::User | PrincipalKind::Policy => frame,
    })
}

/// The frozen content; `None` once it was erased.
pub(crate) fn content(tx: &mut Tx<'_>, action: &Action) -> Result<Option<Content>> {
    let Some(bytes) = store::event::body(tx, action.content)? else { return Ok(None) };
    Content::read(&bytes).map(Some).map_err(|error| corrupt("an action", error))
}
