//! Worker: claims a session, runs its turn, and gives the session back (QUE-01, DUR-01, DUR-10, DUR-12).
//!
//! Every record begins with the lease's fencing token, so that a worker that was overtaken leaves no
//! trace. Nothing is used before it is stored: recovery reads the same steps and goes on.

use agent::{Budget, HARNESS, Next, Outcome, StepKind, Turn};
use base::{Digest, MicroUsd, SessionId, Timestamp};
use domain::event::{Class, Trust};
use domain::queue::{self, After};
use domain::state::{DutyState, RunState};
use domain::words::Notice;
use model::{Answer, Block, ModelError, Request, ToolCall};
use store::event::NewBody;
use store::ledger::{LedgerEntry, LedgerKind};
use store::run::{self, Run, Spent, Step};
use store::session::{self, Lease, Session};
use store::work_item::{self, WorkItem};
use store::{OwnerTx, Result, StoreError};

use crate::notice::{self, About};
use crate::tools::{self, Plan};
use crate::{Context, assemble};

/// A run that this worker holds.
#[derive(Debug, Clone)]
pub struct Work {
    /// What every commit must name.
    pub lease: Lease,
    /// The run as it was last recorded.
    pub run: Run,
    /// Whether something in its input is late.
    pub late: bool,
    blocks: Vec<Block>,
    turn: Turn,
}

/// What the worker has to do next.
#[derive(Debug)]
pub enum Action {
    /// Ask the model.
    Ask(Request),
    /// Perform or record a tool call.
    Tool(ToolCall, Plan),
    /// End the run.
    End(Outcome),
}

/// What a record came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// The run goes on.
    Goes,
    /// The run is over and the session given back.
    Over,
}

const QUEUE_MAX: i64 = 500;

/// Claims a session and begins or resumes its run. `None`: nothing to do there, or somebody else has it.
pub async fn claim(cx: &Context, owner: base::OwnerId, session: SessionId) -> Result<Option<Work>> {
    let Some((lease, run)) = cx.write(owner, move |cx, tx| take(cx, tx, session)).await? else {
        return Ok(None);
    };
    let id = run.id;
    let (assembled, late) = cx
        .store
        .read(move |tx| {
            let mut late = false;
            for item in work_item::claimed(tx, id)? {
                late |= store::event::get(tx, item.event)?.late;
            }
            Ok((assemble::load(tx, id)?, late))
        })
        .await?;
    Ok(Some(Work { lease, run, late, blocks: assembled.blocks, turn: assembled.turn }))
}

fn take(cx: &Context, tx: &mut OwnerTx<'_, '_>, id: SessionId) -> Result<Option<(Lease, Run)>> {
    let owner = store::owner::locked(tx)?;
    let month = assemble::month(&owner, tx.now())?;
    let spent = store::ledger::month(tx, owner.id, &month)?.micro_usd;
    // A cap of zero allows what costs nothing, such as a local model.
    if spent >= owner.month_cap_micro_usd && spent > MicroUsd(0) {
        let what = format!("{spent} of {} this month", owner.month_cap_micro_usd);
        let key = format!("month:{month}");
        notice::fault(cx, tx, owner.main_session, &key, &Notice::Budget { what: &what })?;
        session::put_off(tx, id, tx.now().plus_ms(cx.limits.retry_max_ms))?;
        return Ok(None);
    }
    let Some(fence) = session::take(tx, id, cx.incarnation, cx.limits.lease_ms)? else {
        return Ok(None);
    };
    let lease = Lease { owner: owner.id, session: id, fence, holder: cx.incarnation };
    if let Some(open) = run::open(tx, id)?
        && let Some(run) = resume(cx, tx, &lease, open)?
    {
        return Ok(Some((lease, run)));
    }
    Ok(begin(cx, tx, &lease)?.map(|run| (lease, run)))
}

/// Takes an open run on, or ends it so that a new one can begin.
fn resume(cx: &Context, tx: &mut OwnerTx<'_, '_>, lease: &Lease, open: Run) -> Result<Option<Run>> {
    if open.harness != HARNESS {
        put_back(cx, tx, &open, RunState::Interrupted, "the program was upgraded")?;
        return Ok(None);
    }
    if stopped(tx, &open)? {
        put_back(cx, tx, &open, RunState::Interrupted, STOPPED)?;
        return Ok(None);
    }
    match open.state {
        RunState::Sleeping => {
            if newcomer(tx, &open)?.is_some() {
                put_back(cx, tx, &open, RunState::Interrupted, "a new message came")?;
                return Ok(None);
            }
        }
        RunState::Running | RunState::Lost => {
            if open.steps == open.claim_steps && died_in_vain(cx, tx, &open)? {
                return Ok(None);
            }
        }
        RunState::Completed
        | RunState::Interrupted
        | RunState::BudgetExhausted
        | RunState::Failed => return Err(StoreError::Corrupt("an open run has ended".into())),
    }
    run::claim(tx, open.id, lease.fence)?;
    run::get(tx, open.id).map(Some)
}

/// A worker died without one new step: counts it against the run's items. `true`: the run is over,
/// because an item is given up or must run alone.
fn died_in_vain(cx: &Context, tx: &mut OwnerTx<'_, '_>, run: &Run) -> Result<bool> {
    let items = work_item::claimed(tx, run.id)?;
    let counted =
        |item: &WorkItem| queue::after_failure(item.attempts, false, cx.limits.poison_attempts);
    let parts = |item: &WorkItem| match counted(item) {
        After::GiveUp => true,
        After::Retry { attempts } => items.len() > 1 && attempts >= queue::ALONE_FROM_ATTEMPTS,
    };
    if items.iter().any(parts) {
        fail_items(cx, tx, run, "the program stopped while it was being handled")?;
        return Ok(true);
    }
    for item in &items {
        work_item::count(tx, item, item.attempts + 1)?;
    }
    Ok(false)
}

/// Ends a run as failed: its items go back with one more fruitless run counted, or are given up. It
/// counts whatever steps the run had made, since the next run begins from zero: an answer that is
/// refused at the third step would else be refused for ever (DUR-08).
fn fail_items(cx: &Context, tx: &mut OwnerTx<'_, '_>, run: &Run, why: &str) -> Result<()> {
    for item in work_item::claimed(tx, run.id)? {
        match queue::after_failure(item.attempts, false, cx.limits.poison_attempts) {
            After::Retry { attempts } => work_item::back(tx, &item, attempts)?,
            After::GiveUp => give_up(cx, tx, run, &item)?,
        }
    }
    close_calls(cx, tx, run)?;
    let state =
        if run.state == RunState::Running { RunState::Failed } else { RunState::Interrupted };
    run::end(tx, run.id, state, Some(why))
}

fn give_up(cx: &Context, tx: &mut OwnerTx<'_, '_>, run: &Run, item: &WorkItem) -> Result<()> {
    let attempts = item.attempts + 1;
    work_item::back(tx, item, attempts)?;
    work_item::fail(tx, item)?;
    store::event::dispose(tx, item.event, &format!("failed: given up after {attempts} tries"))?;
    let event = store::event::get(tx, item.event)?;
    let text = assemble::cut(store::event::body_text(tx, event.body)?, 120);
    let what = format!("\"{text}\"");
    let about = About { duty: run.duty, ..About::default() };
    notice::server(cx, tx, run.session, &Notice::Poison { attempts, what: &what }, about)?;
    Ok(())
}

/// Ends a run early: its items wait again, uncounted, and join the next run (QUE-14).
fn put_back(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    run: &Run,
    state: RunState,
    why: &str,
) -> Result<()> {
    for item in work_item::claimed(tx, run.id)? {
        work_item::back(tx, &item, item.attempts)?;
    }
    close_calls(cx, tx, run)?;
    run::end(tx, run.id, state, Some(why))
}

/// Answers the calls that will not be made, so that history stays a conversation that a model accepts.
fn close_calls(cx: &Context, tx: &mut OwnerTx<'_, '_>, run: &Run) -> Result<()> {
    let turn = assemble::load(tx, run.id)?.turn;
    for (n, call) in (run.steps..).zip(turn.unanswered()) {
        let text = "Not run: the turn ended before this call.".to_owned();
        let block = model::Message::Tool { call_id: call.id.clone(), text }.to_block();
        let step = Step {
            tool: Some(call.name.clone()),
            call_id: Some(call.id.clone()),
            ..step(cx, tx, run, n, run::StepKind::Tool, &block)
        };
        store_block(tx, &step, &block, Trust::System, "worker")?;
        run::append(tx, &step)?;
    }
    Ok(())
}

fn step(
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

fn store_block(
    tx: &mut OwnerTx<'_, '_>,
    step: &Step,
    block: &Block,
    trust: Trust,
    provenance: &str,
) -> Result<()> {
    let body = NewBody {
        id: step.body,
        bytes: block.bytes.as_bytes().to_vec(),
        media: "application/json",
        provenance: format!("run:{}:{}:{provenance}", step.run, step.n),
        trust,
    };
    store::event::put_body(tx, body).map(|_| ())
}

/// Begins a new run with what waits in the session, or gives the session back.
fn begin(cx: &Context, tx: &mut OwnerTx<'_, '_>, lease: &Lease) -> Result<Option<Run>> {
    let session = session::get(tx, lease.session)?;
    let focus = assemble::focus(tx, session.id)?;
    let pending = work_item::pending(tx, session.id, QUEUE_MAX)?;
    let over = focus.as_ref().is_some_and(|(duty, _)| is_over(duty.state));
    if over {
        for item in &pending {
            // An item that no run took in cannot be done; ended it must be, or it waits for ever.
            work_item::fail(tx, item)?;
            store::event::dispose(tx, item.event, "recorded: its duty is no longer in force")?;
        }
    }
    let waiting: Vec<queue::Waiting> = pending
        .iter()
        .filter_map(|item| {
            Some(queue::Waiting {
                class: item.class?,
                since: item.created_at,
                attempts: item.attempts,
            })
        })
        .collect();
    let (now, limits) = (tx.now(), &cx.limits);
    let batch = queue::batch(&waiting, now, limits.starvation_ms, limits.items_per_run);
    if over || batch.is_empty() {
        session::release(tx, *lease, session.not_before, session.model_failures)?;
        return Ok(None);
    }
    let items: Vec<&WorkItem> = batch.into_iter().filter_map(|at| pending.get(at)).collect();
    let owner = store::owner::get(tx, lease.owner)?;
    let n = session::next_run(tx, session.id)?;
    let (prefix_digest, window_start) =
        assemble::settle_prefix(cx, tx, &owner, &session, &focus, n)?;
    let (tail, trust, _) =
        assemble::tail(tx, &owner, &session, &focus, &items, limits.message_bytes)?;
    let run = Run {
        id: cx.id(),
        owner: owner.id,
        session: session.id,
        n,
        duty: focus.as_ref().map(|(duty, _)| duty.id),
        task_version: focus.as_ref().map(|(_, version)| version.id),
        state: RunState::Running,
        fence: lease.fence,
        harness: HARNESS.to_owned(),
        model: cx.model.name().to_owned(),
        prefix_digest,
        window_start,
        steps: 0,
        claim_steps: 1,
        tokens: 0,
        input_tokens: 0,
        cached_tokens: 0,
        output_tokens: 0,
        micro_usd: MicroUsd(0),
        reason: None,
        started_at: now,
        ended_at: None,
        moved_at: now,
    };
    run::insert(tx, &run)?;
    for item in items {
        work_item::claim(tx, item, run.id)?;
    }
    let first = step(cx, tx, &run, 0, run::StepKind::Tail, &tail);
    store_block(tx, &first, &tail, trust, "tail")?;
    run::add_step(tx, &first, Spent::default(), lease.fence)?;
    ledger(cx, tx, &run, LedgerKind::Wakeup, Spent::default())?;
    run::get(tx, run.id).map(Some)
}

fn ledger(
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
        run: run.id,
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

/// What comes next in a run. Pure: from what was recorded.
pub fn next(cx: &Context, work: &Work) -> Action {
    let run = &work.run;
    let budget = Budget {
        steps: (run.steps, cx.limits.run_steps),
        tokens: (run.tokens + run.output_tokens, cx.limits.run_tokens),
        micro_usd: (run.micro_usd, MicroUsd(cx.limits.run_micro_usd)),
    };
    match work.turn.next(&budget) {
        Next::Done(outcome) => Action::End(outcome),
        Next::Call(call) => {
            let plan = tools::plan(cx, &call);
            Action::Tool(call, plan)
        }
        Next::Ask => {
            let request = Request {
                blocks: work.blocks.clone(),
                tools: agent::definitions(),
                max_output_tokens: cx.max_output_tokens,
            };
            let whole = request.tokens() + u64::from(cx.max_output_tokens);
            if whole > cx.model.context_tokens() {
                let room = cx.model.context_tokens();
                return Action::End(Outcome::Budget(format!(
                    "{whole} of {room} tokens of context"
                )));
            }
            Action::Ask(request)
        }
    }
}

/// Why a run must end now, if it must: read at each commit and each renewal of the lease.
pub fn interruption(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
) -> Result<Option<&'static str>> {
    let first = newcomer(tx, &work.run)?;
    if queue::interrupts(first, tx.now(), cx.limits.burst_ms) {
        return Ok(Some("a new message came"));
    }
    Ok(stopped(tx, &work.run)?.then_some(STOPPED))
}

const STOPPED: &str = "the user stopped the duty";

/// When the first message came that a run did not take in and the next one would. One that waits to
/// run alone came before, and does not end the run that goes ahead of it.
fn newcomer(tx: &mut store::Tx<'_>, run: &Run) -> Result<Option<Timestamp>> {
    let pending = work_item::pending(tx, run.session, QUEUE_MAX)?;
    let follows = |item: &&WorkItem| {
        item.class == Some(Class::User)
            && item.attempts < queue::ALONE_FROM_ATTEMPTS
            && item.created_at >= run.started_at
    };
    Ok(pending.iter().filter(follows).map(|item| item.created_at).min())
}

/// What is on record that may interrupt a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreseen {
    /// Something that interrupts it now.
    Now,
    /// A burst of messages whose window closes in so many milliseconds.
    InMs(u64),
    /// Nothing.
    Nothing,
}

/// Looks whether a run is to be interrupted. A hint: the decision is [`interruption`]'s.
pub fn foreseen(cx: &Context, tx: &mut store::Tx<'_>, work: &Work) -> Result<Foreseen> {
    if stopped(tx, &work.run)? {
        return Ok(Foreseen::Now);
    }
    let Some(first) = newcomer(tx, &work.run)? else {
        return Ok(Foreseen::Nothing);
    };
    let left = first.plus_ms(cx.limits.burst_ms).since(cx.clock.now());
    match u64::try_from(left.as_millis()).unwrap_or(u64::MAX) {
        0 => Ok(Foreseen::Now),
        ms => Ok(Foreseen::InMs(ms)),
    }
}

fn stopped(tx: &mut store::Tx<'_>, run: &Run) -> Result<bool> {
    match run.duty {
        None => Ok(false),
        Some(id) => Ok(is_over(store::duty::get(tx, run.owner, id)?.state)),
    }
}

/// Whether nothing is done for a duty in this state.
fn is_over(state: DutyState) -> bool {
    match state {
        DutyState::Stopped | DutyState::Closed => true,
        DutyState::Active | DutyState::CloseProposed => false,
    }
}

/// Ends an interrupted run and gives the session back.
pub fn interrupt(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    why: &str,
) -> Result<Recorded> {
    let run = run::get(tx, work.run.id)?;
    let session = session::get(tx, work.lease.session)?;
    let failures = failures_before(tx, &session, &run)?;
    put_back(cx, tx, &run, RunState::Interrupted, why)?;
    session::release(tx, work.lease, tx.now(), failures)?;
    Ok(Recorded::Over)
}

/// Renews the lease while something slow is under way. `Over`: the run was interrupted.
pub fn renew(cx: &Context, tx: &mut OwnerTx<'_, '_>, work: &Work) -> Result<Recorded> {
    session::hold(tx, work.lease, cx.limits.lease_ms)?;
    match interruption(cx, tx, work)? {
        None => Ok(Recorded::Goes),
        Some(why) => interrupt(cx, tx, work, why),
    }
}

/// Journals a model's answer, before anything is derived from it.
pub async fn record_answer(
    cx: &Context,
    work: &mut Work,
    request: Digest,
    answer: Answer,
) -> Result<Recorded> {
    let (held, block) = (work.clone(), answer.block.clone());
    let spent = Spent {
        input_tokens: answer.usage.input_tokens,
        cached_tokens: answer.usage.cached_tokens,
        output_tokens: answer.usage.output_tokens,
        micro_usd: cx.model.prices().cost(answer.usage),
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

impl Work {
    fn advance(&mut self, kind: StepKind, block: Block, run: Option<Run>) -> Result<Recorded> {
        let Some(run) = run else { return Ok(Recorded::Over) };
        self.turn.push(kind, &block).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        self.blocks.push(block);
        self.run = run;
        Ok(Recorded::Goes)
    }
}

/// Ends a run as its turn says and gives the session back. Only here do items become done.
pub async fn record_end(cx: &Context, work: &Work, outcome: Outcome) -> Result<Recorded> {
    let held = work.clone();
    cx.write(work.lease.owner, move |cx, tx| {
        session::hold(tx, held.lease, cx.limits.lease_ms)?;
        let (state, reason) = match &outcome {
            Outcome::Completed => (RunState::Completed, None),
            Outcome::Budget(what) => (RunState::BudgetExhausted, Some(what.as_str())),
        };
        for item in work_item::claimed(tx, held.run.id)? {
            work_item::done(tx, &item)?;
            store::event::dispose(tx, item.event, &format!("handled by run {}", held.run.id))?;
        }
        if let Some(what) = reason {
            let about = About { duty: held.run.duty, ..About::default() };
            notice::server(cx, tx, held.lease.session, &Notice::Budget { what }, about)?;
        }
        close_calls(cx, tx, &held.run)?;
        run::end(tx, held.run.id, state, reason)?;
        session::release(tx, held.lease, tx.now(), 0)?;
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
        let failures = failures_before(tx, &session, &run)?.saturating_add(1);
        let text = error.to_string();
        tracing::warn!(session = %session.id, failures, error = %text, "the model gave no answer");
        let tell = |tx: &mut OwnerTx<'_, '_>| {
            let notice = Notice::Model { reason: in_words(&error) };
            notice::fault(cx, tx, session.id, MODEL_FAULT, &notice)
        };
        let wait_ms = match &error {
            ModelError::Retry { after, .. } => {
                if failures >= cx.limits.model_fault_after {
                    tell(tx)?;
                }
                let asked = after.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX));
                asked.max(backoff_ms(cx, failures))
            }
            ModelError::Authentication | ModelError::Quota => {
                tell(tx)?;
                cx.limits.retry_max_ms
            }
            ModelError::Context => {
                session::drop_history(tx, session.id, run.n + 1)?;
                fail_items(cx, tx, &run, &text)?;
                0
            }
            ModelError::Refused | ModelError::Malformed(_) => {
                fail_items(cx, tx, &run, &text)?;
                backoff_ms(cx, failures)
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

/// Model calls that failed in a row up to now: an answer since this claim began ended the row.
fn failures_before(tx: &mut OwnerTx<'_, '_>, session: &Session, run: &Run) -> Result<u32> {
    let answered = run::steps(tx, run.id)?
        .iter()
        .any(|step| step.kind == run::StepKind::Model && step.n >= run.claim_steps);
    Ok(if answered { 0 } else { session.model_failures })
}

/// What a person is told of a model that gave no answer; the log has the rest.
fn in_words(error: &ModelError) -> &'static str {
    match error {
        ModelError::Retry { .. } => "it does not answer just now",
        ModelError::Authentication => "its server refuses the key. Set a valid key and restart",
        ModelError::Quota => "the account there is used up. Add credit or raise its limit there",
        ModelError::Context => "the conversation is longer than it can read",
        ModelError::Refused => "it refuses this content",
        ModelError::Malformed(_) => "it answers in a way that is not understood",
    }
}

fn backoff_ms(cx: &Context, failures: u32) -> u64 {
    let doublings = failures.saturating_sub(1).min(20);
    cx.limits.retry_ms.saturating_mul(1 << doublings).min(cx.limits.retry_max_ms)
}
