//! Drafts that only the person can turn into control state (DEL-26, PRO-13).

use base::DutyId;
use domain::draft::{Draft, Wakeup};
use domain::event::{EventKind, Trust};
use domain::schedule::zone;
use domain::state::{DutyState, ProposalState};
use model::ToolCall;
use serde_json::{Map, Value};
use store::event::NewBody;
use store::proposal::{Proposal, ProposalKind};
use store::{OwnerTx, Result, StoreError};

use crate::worker::Work;
use crate::{Context, assemble, notice};

const PROPOSAL_LASTS_MS: u64 = 7 * 24 * 3_600_000;

fn proposal(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    duty: Option<DutyId>,
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
        kind: if duty.is_some() { ProposalKind::CloseDuty } else { ProposalKind::NewDuty },
        duty,
        content,
        digest,
        template: "proposal-1".into(),
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
    match Draft::read(arguments, &zone, tx.now()) {
        Ok(draft) => start(cx, tx, work, call, &draft),
        Err(error) => Ok(format!("Not proposed: {error}. Correct it and propose again.")),
    }
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

/// Why a draft cannot be shown, seen from the records: who asks, and what it names.
fn impossible(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    draft: &Draft,
) -> Result<Option<String>> {
    // Wake-ups are made by a person's wish, not by a wake-up (PRO-13): a turn that no person's word or
    // decision is part of sets up nothing.
    let mut by_person = false;
    for item in store::work_item::claimed(tx, work.run.id)? {
        let kind = store::event::get(tx, item.event)?.kind;
        by_person |= matches!(kind, EventKind::UserMessage | EventKind::ProposalDecided);
    }
    if !by_person {
        return Ok(Some(
            "Not proposed: a turn that the person did not begin cannot set up a routine or another \
             duty. If the person should have one, tell them with send_to_user."
                .into(),
        ));
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
    // The confirmed bytes are the draft as this program understood it, not as the model wrote it.
    let content =
        serde_json::to_vec(draft).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let proposal = proposal(cx, tx, work, call, None, content)?;
    let text = format!("Start this duty? {}: {}", draft.title, draft.goal);
    notice::card(cx, tx, &proposal, text)?;
    Ok(format!(
        "Proposed as {}. It is not in force: the person decides on the card that they now see.",
        proposal.id
    ))
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
    let proposal = proposal(cx, tx, work, call, Some(duty.id), content.into_bytes())?;
    store::duty::advance(tx, &duty, DutyState::CloseProposed, None)?;
    let version = store::duty::version(tx, duty.id)?;
    let title = assemble::draft(tx, &version)?.title;
    notice::card(cx, tx, &proposal, format!("Is \"{title}\" done? {reason}"))?;
    Ok(format!("Proposed as {}. The person decides.", proposal.id))
}
