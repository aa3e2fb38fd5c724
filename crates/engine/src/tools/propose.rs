//! Drafts that only the person can turn into control state (DEL-26, PRO-13).

use base::DutyId;
use domain::draft::{Change, Draft, Wakeup};
use domain::effect::Effect;
use domain::event::{EventKind, Trust};
use domain::schedule::zone;
use domain::state::{DutyState, ProposalState};
use domain::words::{self, Language, Notice, Question};
use model::ToolCall;
use serde_json::{Map, Value};
use store::duty::Duty;
use store::event::NewBody;
use store::proposal::{Proposal, ProposalKind};
use store::{OwnerTx, Result, StoreError};

use crate::notice::About;
use crate::worker::Work;
use crate::{Context, assemble, control, notice};

const PROPOSAL_LASTS_MS: u64 = 7 * 24 * 3_600_000;

fn proposal(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    (kind, duty): (ProposalKind, Option<DutyId>),
    content: Vec<u8>,
) -> Result<Proposal> {
    let body = NewBody {
        id: cx.id(),
        bytes: content,
        media: "application/json".into(),
        provenance: format!("run:{}:proposal", work.run.id),
        trust: Trust::Outside,
    };
    let content = body.id;
    let digest = store::event::put_body(tx, body)?;
    let proposal = Proposal {
        id: cx.id(),
        owner: tx.owner(),
        session: work.run.session,
        run: work.run.id,
        call_id: call.id.clone(),
        kind,
        duty,
        content,
        digest,
        template: format!("proposal-2 {}", store::owner::locked(tx)?.language().word()),
        state: ProposalState::Open,
        decided_by: None,
        expires_at: tx.now().plus_ms(PROPOSAL_LASTS_MS),
        seq: tx.seq(),
        created_at: tx.now(),
        moved_at: tx.now(),
    };
    store::proposal::insert(tx, &proposal)?;
    Ok(proposal)
}

/// Drafts a duty.
pub(super) fn duty(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    arguments: &str,
) -> Result<String> {
    let zone = zone_of(tx)?;
    let again = |why: String| format!("Not proposed: {why}. Correct it and propose again.");
    // With a duty's id it is a new version of that one.
    let (changed, arguments) = match changed(arguments) {
        Ok(read) => read,
        Err(why) => return Ok(again(why)),
    };
    match (Draft::read(&arguments, &zone, tx.now()), changed) {
        (Ok(draft), None) => start(cx, tx, work, call, &draft),
        (Ok(draft), Some(duty)) => change(cx, tx, work, call, duty, &draft),
        (Err(error), _) => Ok(again(error.to_string())),
    }
}

/// The duty that a draft would change, and the draft without it.
fn changed(arguments: &str) -> std::result::Result<(Option<DutyId>, String), String> {
    let mut fields: Map<String, Value> =
        serde_json::from_str(arguments).map_err(|error| error.to_string())?;
    let duty = match fields.remove("duty") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(base::parse_id(&id).map_err(|error| error.to_string())?),
        Some(_) => return Err("duty must be the id of a duty, as text".into()),
    };
    Ok((duty, Value::Object(fields).to_string()))
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RoutineForm {
    name: String,
    #[serde(default)]
    until: Option<String>,
}

/// Drafts a routine: a duty that wakes at its times until the person ends it (SKL-03).
pub(super) fn routine(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    arguments: &str,
) -> Result<String> {
    let zone = zone_of(tx)?;
    let read = || -> std::result::Result<Draft, String> {
        let mut fields: Map<String, Value> =
            serde_json::from_str(arguments).map_err(|error| error.to_string())?;
        let mut own = Map::new();
        for key in ["name", "until"] {
            own.extend(fields.remove(key).map(|value| (key.to_owned(), value)));
        }
        let form: RoutineForm =
            serde_json::from_value(Value::Object(own)).map_err(|error| error.to_string())?;
        let wakeup: Wakeup =
            serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())?;
        Ok(Draft::routine(&form.name, wakeup, form.until))
    };
    let draft = match read() {
        Ok(draft) => draft,
        Err(why) => return Ok(format!("Not proposed: {why}. Correct it and propose again.")),
    };
    match draft.check(&zone, tx.now()) {
        Ok(()) => start(cx, tx, work, call, &draft),
        Err(error) => Ok(format!("Not proposed: {error}. Correct it and propose again.")),
    }
}

fn zone_of(tx: &mut OwnerTx<'_, '_>) -> Result<jiff::tz::TimeZone> {
    let owner = store::owner::locked(tx)?;
    zone(&owner.zone).map_err(|e| StoreError::Corrupt(e.to_string()))
}

/// Whether a person's word or decision is part of this turn.
fn by_person(tx: &mut OwnerTx<'_, '_>, work: &Work) -> Result<bool> {
    let mut by_person = false;
    for item in store::work_item::claimed(tx, work.run.id)? {
        let kind = store::event::get(tx, item.event)?.kind;
        by_person |= matches!(kind, EventKind::UserMessage | EventKind::ProposalDecided);
    }
    Ok(by_person)
}

/// Why a draft cannot be shown, seen from the records: who asks, and what it names.
fn impossible(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    draft: &Draft,
) -> Result<Option<String>> {
    // Wake-ups are made by a person's wish, not by a wake-up (PRO-13): a turn that no person's word or
    // decision is part of sets up nothing.
    if !by_person(tx, work)? {
        return Ok(Some(
            "Not proposed: a turn that the person did not begin cannot set up a routine or another \
             duty. If the person should have one, tell them with send_to_user."
                .into(),
        ));
    }
    unknown_names(cx, tx, work, draft)
}

/// What a draft names that does not exist here: a source, a tool that reads, a tool with an effect.
fn unknown_names(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    draft: &Draft,
) -> Result<Option<String>> {
    for grant in &draft.grants {
        // What only people release, each call by itself, would be no grant.
        if cx.world.spec(&grant.tool).is_none_or(|spec| spec.effect == Effect::Human) {
            return Ok(Some(format!(
                "Not proposed: {} is no tool with an effect that can be granted. Name tools as they are \
                 listed.",
                grant.tool
            )));
        }
    }
    for wanted in &draft.subscriptions {
        if store::source::by_name(tx, work.lease.owner, &wanted.source)?.is_none() {
            return Ok(Some(format!(
                "Not proposed: there is no source \"{}\". read_records with what=sources lists them; \
                 the person adds one with \"adjutant source add\".",
                wanted.source
            )));
        }
    }
    for check in draft.schedules.iter().filter_map(|wakeup| wakeup.check.as_ref()) {
        // What the person confirms on the card is granted: no id need have been issued.
        if let Err(refusal) = cx.world.needs(&check.tool, &check.arguments) {
            return Ok(Some(format!("Not proposed: a check only reads. {refusal}")));
        }
    }
    Ok(None)
}

fn start(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    draft: &Draft,
) -> Result<String> {
    if let Some(why) = impossible(cx, tx, work, draft)? {
        return Ok(why);
    }
    let kind = (ProposalKind::NewDuty, None);
    let proposal = proposal(cx, tx, work, call, kind, frozen(draft)?)?;
    let (title, goal) = (&draft.title, &draft.goal);
    let text = |language| words::proposal_asks(Question::Start, title, goal, language);
    notice::card(cx, tx, &proposal, text)?;
    Ok(proposed(&proposal))
}

/// The bytes that are confirmed: the draft as this program understood it, not as the model wrote it.
fn frozen(draft: &Draft) -> Result<Vec<u8>> {
    serde_json::to_vec(draft).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn proposed(proposal: &Proposal) -> String {
    format!(
        "Proposed as {}. It is not in force: the person decides on the card that they now see.",
        proposal.id
    )
}

/// Drafts a new version of a duty. Where no person asked for it, only facts may differ, and those are
/// adopted at once (DEL-22).
fn change(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    id: DutyId,
    draft: &Draft,
) -> Result<String> {
    let duty = match in_force(tx, work, id)? {
        Ok(duty) => duty,
        Err(why) => return Ok(why),
    };
    let version = store::duty::version(tx, duty.id)?;
    let before = assemble::draft(tx, &version)?;
    let change = Change::between(&before, draft, Language::En);
    if change.is_empty() {
        return Ok("Not proposed: this is what the duty asks for already.".into());
    }
    if !by_person(tx, work)? {
        if change.beyond_facts {
            return Ok(format!(
                "Not proposed: what comes from outside may change title and goal only. This would also \
                 change: {}. Tell the person with send_to_user if they should know.",
                change.lines.join("; ")
            ));
        }
        return adopt(cx, tx, work, &duty, draft, &before);
    }
    if let Some(why) = unknown_names(cx, tx, work, draft)? {
        return Ok(why);
    }
    let kind = (ProposalKind::ChangeDuty, Some(duty.id));
    let proposal = proposal(cx, tx, work, call, kind, frozen(draft)?)?;
    notice::card(cx, tx, &proposal, |language| {
        let lines = lines(&before, draft, language);
        words::proposal_asks(Question::Change, &draft.title, &lines, language)
    })?;
    Ok(proposed(&proposal))
}

/// The duty that may be changed in this turn: of this lane, or any from the person's own conversation.
fn in_force(
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    id: DutyId,
) -> Result<std::result::Result<Duty, String>> {
    let foreign = work.run.duty.is_some_and(|own| own != id);
    match store::duty::get(tx, work.lease.owner, id) {
        Ok(duty) if duty.state == DutyState::Active && !foreign => Ok(Ok(duty)),
        Ok(_) | Err(StoreError::Missing(_)) => Ok(Err(format!(
            "Not proposed: {id} is no duty in force that this turn may change. read_records with \
             what=duties lists them."
        ))),
        Err(error) => Err(error),
    }
}

fn adopt(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    duty: &Duty,
    draft: &Draft,
    before: &Draft,
) -> Result<String> {
    let body = NewBody {
        id: cx.id(),
        bytes: frozen(draft)?,
        media: "application/json".into(),
        provenance: format!("run:{}:adopted", work.run.id),
        trust: Trust::Outside,
    };
    let id = body.id;
    let digest = store::event::put_body(tx, body)?;
    control::adopt(cx, tx, duty.id, (id, digest), work.run.id)?;
    let said = lines(before, draft, store::owner::locked(tx)?.language());
    let notice = Notice::Adopted { lines: &said };
    let about = About { duty: Some(duty.id), ..About::default() };
    notice::server(cx, tx, duty.session, &notice, about)?;
    let lines = lines(before, draft, Language::En);
    Ok(format!("Adopted as a new version, and the person was told: {lines}."))
}

/// What differs, in one text.
fn lines(before: &Draft, draft: &Draft, language: Language) -> String {
    Change::between(before, draft, language).lines.join(language.pick(". ", "。"))
}

/// Drafts a closing.
pub(super) fn close(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    duty: DutyId,
    reason: String,
) -> Result<String> {
    let duty = match store::duty::get(tx, work.lease.owner, duty) {
        Ok(duty) => duty,
        Err(StoreError::Missing(_)) => {
            return Ok(format!(
                "There is no duty {duty}. read_records with what=duties lists them."
            ));
        }
        Err(error) => return Err(error),
    };
    if duty.state != DutyState::Active {
        return Ok(format!(
            "Duty {} is {}; only an active one can be closed.",
            duty.id, duty.state
        ));
    }
    let content = serde_json::json!({"duty": duty.id, "reason": reason}).to_string();
    let kind = (ProposalKind::CloseDuty, Some(duty.id));
    let proposal = proposal(cx, tx, work, call, kind, content.into_bytes())?;
    store::duty::advance(tx, &duty, DutyState::CloseProposed, None)?;
    let version = store::duty::version(tx, duty.id)?;
    let title = assemble::draft(tx, &version)?.title;
    let text = |language| words::proposal_asks(Question::Close, &title, &reason, language);
    notice::card(cx, tx, &proposal, text)?;
    Ok(format!("Proposed as {}. The person decides.", proposal.id))
}
