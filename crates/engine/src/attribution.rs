//! Attribution: which of the router's candidates an event from outside concerns is a question of meaning,
//! so the small model is asked, and its answer counts only among the candidates (EVT-09).

use base::{DutyId, EventId, Id as _, OwnerId, WorkItemId};
use domain::attribute;
use domain::event::{How, Mode, Trust};
use domain::state::{DutyState, WorkItemState};
use model::{Answer, ModelError, Request};
use store::event::{Event, NewBody};
use store::ledger::LedgerKind;
use store::link::Attribution;
use store::{OwnerTx, Result};

use crate::pump::{each, unless_stopped};
use crate::router::{self, Lane, deliver, unclaimed};
use crate::{Context, aside, assemble, notice};

const BATCH: i64 = 16;
/// Bytes of an event's text that the small model reads.
const TEXT_BYTES_MAX: usize = 2_000;
/// Tokens that its answer may have: a few numbers.
const ANSWER_TOKENS_MAX: u32 = 64;

/// Asks about what waits. `true`: there may be more.
pub async fn pass(cx: &Context) -> Result<bool> {
    let now = cx.clock.now();
    let found = cx
        .store
        .read(move |tx| unless_stopped(tx, |tx| store::work_item::attributing(tx, now, BATCH)))
        .await?;
    let more = found.len() as i64 == BATCH;
    let one = |(owner, item)| async move {
        let Some(question) = claim(cx, owner, item).await? else { return Ok(()) };
        let answer = ask(cx, &question).await;
        cx.write(owner, move |cx, tx| record(cx, tx, &question, answer)).await
    };
    each(found, one).await?;
    Ok(more)
}

/// One event and the duties that it may concern.
#[derive(Debug, Clone)]
pub struct Question {
    item: WorkItemId,
    event: EventId,
    candidates: Vec<DutyId>,
    /// What the small model is asked.
    pub request: Request,
}

/// Puts the question together. `None`: it was settled meanwhile, or the month's cap holds it back.
pub async fn claim(cx: &Context, owner: OwnerId, item: WorkItemId) -> Result<Option<Question>> {
    cx.write(owner, move |cx, tx| question(cx, tx, item)).await
}

fn question(cx: &Context, tx: &mut OwnerTx<'_, '_>, item: WorkItemId) -> Result<Option<Question>> {
    let item = store::work_item::get(tx, item)?;
    if item.state != WorkItemState::Attributing {
        return Ok(None);
    }
    // The cap holds for the small model too, else a flood of letters would spend without end.
    let owner = store::owner::locked(tx)?;
    if notice::capped(cx, tx, &owner)? {
        store::work_item::hold_back(tx, item.id, tx.now().plus_ms(cx.limits.retry_max_ms))?;
        return Ok(None);
    }
    let event = store::event::get(tx, item.event)?;
    if router::answered(tx, &event)? {
        router::answer(tx, &event, item.id)?;
        return Ok(None);
    }
    let source = store::source::get(tx, event.source)?;
    let mut candidates = Vec::new();
    let mut text = attribute::INSTRUCTION.to_owned();
    for (n, duty) in router::candidates(tx)?.iter().enumerate() {
        let version = store::duty::version(tx, duty.id)?;
        let draft = assemble::draft(tx, &version)?;
        text.push_str(&format!("{}. {}: {}\n", n + 1, draft.title, draft.goal));
        candidates.push(duty.id);
    }
    let said = assemble::cut(store::event::body_text(tx, event.body)?, TEXT_BYTES_MAX);
    let topic = event.topic.as_deref().unwrap_or("-");
    text.push_str(&format!("Event from {} ({topic}):\n{said}\n", source.name));
    let request = aside::question(text, ANSWER_TOKENS_MAX);
    Ok(Some(Question { item: item.id, event: event.id, candidates, request }))
}

/// Asks the small model.
pub async fn ask(cx: &Context, question: &Question) -> std::result::Result<Answer, ModelError> {
    aside::ask(cx.small.as_ref(), &question.request, cx.limits.model_call_ms).await
}

/// Takes the answer as far as it counts. A model that gives none is asked again a few times; then the
/// event is treated as one that concerns no duty.
pub fn record(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    question: &Question,
    answer: std::result::Result<Answer, ModelError>,
) -> Result<()> {
    let item = store::work_item::get(tx, question.item)?;
    if item.state != WorkItemState::Attributing {
        return Ok(());
    }
    let event = store::event::get(tx, question.event)?;
    let mut refused = None;
    let (mut chosen, mut body) = (Vec::new(), None);
    match answer {
        Err(error) if item.attempts + 1 < cx.limits.poison_attempts => {
            tracing::warn!(event = %event.id, %error, "the small model gave no answer");
            let next = tx.now().plus_ms(cx.backoff_ms(item.attempts + 1));
            return store::work_item::put_off(tx, item.id, next);
        }
        Err(error) => refused = Some(format!("no answer: {error}")),
        Ok(answer) => {
            let of = (LedgerKind::Attribution, None);
            aside::spend(cx, tx, cx.small.as_ref(), of, &answer)?;
            let text = answer.text.clone().unwrap_or_default();
            body = Some(keep(cx, tx, &event, &text)?);
            match attribute::read(&text, question.candidates.len()) {
                Ok(numbers) => chosen.extend(numbers.iter().map(|n| question.candidates[*n])),
                Err(why) => refused = Some(why.to_string()),
            }
        }
    }
    let words = |ids: &[DutyId]| {
        serde_json::Value::from(ids.iter().map(ToString::to_string).collect::<Vec<_>>()).to_string()
    };
    let attribution = Attribution {
        event: event.id,
        owner: event.owner,
        candidates: words(&question.candidates),
        model: cx.small.name().to_owned(),
        answer: body,
        chosen: words(&chosen),
        refused: refused.clone(),
        at: tx.now(),
    };
    store::link::attribute(tx, &attribution)?;
    // A wait that was registered while the model was asked may have taken it for its answer (EVT-08).
    if router::answered(tx, &event)? {
        return router::answer(tx, &event, item.id);
    }
    let lanes = lanes(tx, &event, &chosen)?;
    if lanes.is_empty() {
        let why = match refused {
            Some(_) => "what it concerns could not be told",
            None => "the small model says that it concerns no duty",
        };
        let dial = store::owner::locked(tx)?.dial;
        return unclaimed(cx, tx, &event, item.id, dial, why);
    }
    deliver(cx, tx, &event, item.id, &lanes)
}

/// The lanes of the chosen duties that are still in force.
fn lanes(tx: &mut OwnerTx<'_, '_>, event: &Event, chosen: &[DutyId]) -> Result<Vec<Lane>> {
    let mut lanes = Vec::new();
    for id in chosen {
        let duty = store::duty::get(tx, event.owner, *id)?;
        if duty.state == DutyState::Active {
            lanes.push(Lane {
                session: duty.session,
                duty: Some(duty.id),
                how: How::Attribution,
                record: event.id.uuid(),
                mode: Mode::Wake,
            });
        }
    }
    Ok(lanes)
}

fn keep(cx: &Context, tx: &mut OwnerTx<'_, '_>, event: &Event, text: &str) -> Result<base::BodyId> {
    let provenance = format!("event:{}:attribution", event.id);
    let body = NewBody::text(cx.id(), text, provenance, Trust::Outside);
    let id = body.id;
    store::event::put_body(tx, body)?;
    Ok(id)
}
