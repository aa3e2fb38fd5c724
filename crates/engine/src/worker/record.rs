//! Records: each step of a run in one commit that names the lease, before anything derives from it.

use agent::{HARNESS, Outcome, StepKind};
use base::Digest;
use domain::event::Trust;
use domain::state::RunState;
use domain::words::Notice;
use model::{Answer, Block, ModelError, ToolCall};
use store::event::NewBody;
use store::ledger::{LedgerEntry, LedgerKind};
use store::run::{self, Run, Spent, Step};
use store::session::{self, Session};
use store::work_item;
use store::{OwnerTx, Result};

use super::ends::{close_calls, count_back, fail_items};
use super::interrupt::{interrupt, interruption};
use super::{Recorded, Work};
use crate::notice::{self, About};
use crate::{Context, assemble, tools};

/// Journals a model's answer, before anything is derived from it.
pub async fn record_answer(
    cx: &Context,
    work: &mut Work,
    request: Digest,
    answer: Answer,
) -> Result<Recorded> {
    let answer = work.turn.sound(answer, work.run.steps);
    let (held, block) = (work.clone(), answer.block.clone());
    let usage = answer.usage.bounded(cx.model.context_tokens());
    let spent = Spent {
        input_tokens: usage.input_tokens,
        cached_tokens: usage.cached_tokens,
        output_tokens: usage.output_tokens,
        micro_usd: cx.model.prices().cost(usage),
    };
    let written = cx
        .write(work.lease.owner, move |cx, tx| {
            session::hold(tx, held.lease, cx.limits.lease_ms)?;
            let step = Step {
                answer_id: Some(answer.answer_id.clone()),
                model: answer.model.clone(),
                request_digest: Some(request),
                ..step(cx, tx, &held.run, held.run.steps, run::StepKind::Model, &answer.block)
            };
            store_block(tx, &step, &answer.block, Trust::Outside, "model")?;
            run::add_step(tx, &step, spent, held.lease.fence)?;
            ledger(cx, tx, &held.run, LedgerKind::Model, spent)?;
            work_item::read(tx, held.run.id)?;
            store::fault::close(tx, MODEL_FAULT)?;
            go_on(cx, tx, &held)
        })
        .await?;
    work.advance(StepKind::Model, block, written)
}

/// Journals a tool's result; a tool of our own takes effect in the same commit.
pub async fn record_tool(
    cx: &Context,
    work: &mut Work,
    call: ToolCall,
    done: tools::Done,
) -> Result<Recorded> {
    let held = work.clone();
    let (written, block) = cx
        .write(work.lease.owner, move |cx, tx| {
            session::hold(tx, held.lease, cx.limits.lease_ms)?;
            let result = tools::record(cx, tx, &held, &call, done)?;
            let text = assemble::cut(result.text, cx.limits.tool_text_bytes);
            let block = model::Message::Tool { call_id: call.id.clone(), text }.to_block();
            let step = Step {
                tool: Some(call.name.clone()),
                level: result.level,
                why: result.why,
                call_id: Some(call.id.clone()),
                ..step(cx, tx, &held.run, held.run.steps, run::StepKind::Tool, &block)
            };
            store_block(tx, &step, &block, result.trust, &call.name)?;
            run::add_step(tx, &step, Spent::default(), held.lease.fence)?;
            Ok((go_on(cx, tx, &held)?, block))
        })
        .await?;
    work.advance(StepKind::Tool, block, written)
}

/// After a step: the run as it now is, or its end if something interrupts it.
fn go_on(cx: &Context, tx: &mut OwnerTx<'_, '_>, held: &Work) -> Result<Option<Run>> {
    match interruption(cx, tx, held)? {
        None => run::get(tx, held.run.id).map(Some),
        Some(why) => interrupt(cx, tx, held, why).map(|_| None),
    }
}

/// Ends a run as its turn says and gives the session back. Only here do items become done, and only those of
/// a run in which the model answered: what no model read is not handled, whatever ended its run (P1).
pub async fn record_end(cx: &Context, work: &Work, outcome: Outcome) -> Result<Recorded> {
    let held = work.clone();
    cx.write(work.lease.owner, move |cx, tx| {
        session::hold(tx, held.lease, cx.limits.lease_ms)?;
        let (state, reason) = match &outcome {
            Outcome::Completed => (RunState::Completed, None),
            Outcome::Budget(what) => (RunState::BudgetExhausted, Some(what.as_str())),
        };
        let mut wait_ms = 0;
        if run::steps(tx, held.run.id)?.iter().any(|step| step.kind == run::StepKind::Model) {
            for item in work_item::claimed(tx, held.run.id)? {
                work_item::done(tx, &item)?;
                let verdict = format!("handled by run {}", held.run.id);
                store::event::dispose(tx, item.event, &verdict)?;
            }
            if let Some(what) = reason {
                let about = About { duty: held.run.duty, ..About::default() };
                notice::server(cx, tx, held.lease.session, &Notice::Budget { what }, about)?;
            }
        } else {
            wait_ms = cx.backoff_ms(count_back(cx, tx, &held.run)?.saturating_add(1));
        }
        close_calls(cx, tx, &held.run)?;
        run::end(tx, held.run.id, state, reason)?;
        store::fault::close(tx, &crate::sweeper::unworkable(held.lease.session))?;
        session::release(tx, held.lease, tx.now().plus_ms(wait_ms), 0)?;
        Ok(Recorded::Over)
    })
    .await
}

const MODEL_FAULT: &str = "model";

/// A model that gave no answer: sleeps with a back-off, or ends the run where waiting does not help.
pub async fn record_failure(cx: &Context, work: &Work, error: ModelError) -> Result<Recorded> {
    let held = work.clone();
    cx.write(work.lease.owner, move |cx, tx| {
        session::hold(tx, held.lease, cx.limits.lease_ms)?;
        let session = session::get(tx, held.lease.session)?;
        let run = run::get(tx, held.run.id)?;
        let failures = failures_before(cx, tx, &session, &run)?.saturating_add(1);
        let text = error.to_string();
        tracing::warn!(session = %session.id, failures, error = %text, "the model gave no answer");
        let tell = |tx: &mut OwnerTx<'_, '_>| {
            let notice = Notice::Model { reason: in_words(&error) };
            notice::fault(cx, tx, session.id, MODEL_FAULT, &notice)
        };
        // A model that answers with a refusal is not away: the row of failures ends there, and the
        // back-off is that of the items.
        let (wait_ms, failures) = match &error {
            ModelError::Retry { after, .. } => {
                if failures >= cx.limits.model_fault_after {
                    tell(tx)?;
                }
                let asked = after.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX));
                (asked.max(cx.backoff_ms(failures)), failures)
            }
            ModelError::Authentication | ModelError::Quota => {
                tell(tx)?;
                (cx.limits.retry_max_ms, failures)
            }
            ModelError::Context | ModelError::History => {
                session::drop_history(tx, session.id, run.n + 1)?;
                fail_items(cx, tx, &run, &text)?;
                (0, 0)
            }
            ModelError::Refused | ModelError::Malformed(_) => {
                let tried = work_item::claimed(tx, run.id)?.iter().map(|item| item.attempts).max();
                fail_items(cx, tx, &run, &text)?;
                (cx.backoff_ms(tried.unwrap_or(0).saturating_add(1)), 0)
            }
        };
        if matches!(
            error,
            ModelError::Retry { .. } | ModelError::Authentication | ModelError::Quota
        ) {
            run::sleep(tx, run.id, &text)?;
        }
        session::release(tx, held.lease, tx.now().plus_ms(wait_ms), failures)?;
        Ok(Recorded::Over)
    })
    .await
}

/// Model calls that failed in a row up to now. An answer ended the row: one since this claim began,
/// or one of an earlier claim whose worker died, which closed the fault that the row had opened.
pub(super) fn failures_before(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    session: &Session,
    run: &Run,
) -> Result<u32> {
    let answered = run::steps(tx, run.id)?
        .iter()
        .any(|step| step.kind == run::StepKind::Model && step.n >= run.claim_steps);
    let told = session.model_failures >= cx.limits.model_fault_after;
    let is_away = |fault: &store::fault::Fault| fault.key == MODEL_FAULT;
    let healed = told && !store::fault::all_open(tx, run.owner)?.iter().any(is_away);
    Ok(if answered || healed { 0 } else { session.model_failures })
}

/// What a person is told of a model that gave no answer; the log has the rest.
fn in_words(error: &ModelError) -> &'static str {
    match error {
        ModelError::Retry { .. } => "it does not answer just now",
        ModelError::Authentication => "its server refuses the key. Set a valid key and restart",
        ModelError::Quota => "the account there is used up. Add credit or raise its limit there",
        ModelError::Context => "the conversation is longer than it can read",
        ModelError::History => "it no longer accepts its own earlier answers",
        ModelError::Refused => "it refuses this content",
        ModelError::Malformed(_) => "it answers in a way that is not understood",
    }
}

pub(super) fn step(
    cx: &Context,
    tx: &OwnerTx<'_, '_>,
    run: &Run,
    n: u32,
    kind: run::StepKind,
    block: &Block,
) -> Step {
    Step {
        run: run.id,
        n,
        owner: run.owner,
        kind,
        tool: None,
        level: None,
        why: None,
        call_id: None,
        answer_id: None,
        harness: HARNESS.to_owned(),
        model: run.model.clone(),
        request_digest: None,
        body: cx.id(),
        digest: block.digest,
        tokens: block.tokens,
        at: tx.now(),
    }
}

pub(super) fn store_block(
    tx: &mut OwnerTx<'_, '_>,
    step: &Step,
    block: &Block,
    trust: Trust,
    provenance: &str,
) -> Result<()> {
    let body = NewBody {
        id: step.body,
        bytes: block.bytes.as_bytes().to_vec(),
        media: "application/json".into(),
        provenance: format!("run:{}:{}:{provenance}", step.run, step.n),
        trust,
    };
    store::event::put_body(tx, body).map(|_| ())
}

pub(super) fn ledger(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    run: &Run,
    kind: LedgerKind,
    spent: Spent,
) -> Result<()> {
    let entry = LedgerEntry {
        id: cx.uuid(),
        owner: run.owner,
        month: assemble::month(&store::owner::locked(tx)?, tx.now())?,
        run: Some(run.id),
        duty: run.duty,
        kind,
        model: run.model.clone(),
        input_tokens: spent.input_tokens,
        cached_tokens: spent.cached_tokens,
        output_tokens: spent.output_tokens,
        micro_usd: spent.micro_usd,
        at: tx.now(),
    };
    store::ledger::add(tx, &entry)
}
