//! Runs and their steps: the journal that recovery folds over (DUR-10, DUR-12).

use base::{BodyId, Digest, DutyId, MicroUsd, OwnerId, RunId, SessionId, TaskVersionId, Timestamp};
use domain::state::RunState;

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record, words};

record! {
    /// One wake-up.
    pub struct Run in "run" {
        /// Its id.
        pub id: RunId,
        /// Whose.
        pub owner: OwnerId,
        /// In which lane.
        pub session: SessionId,
        /// Its number in that lane, from 0.
        pub n: i64,
        /// For which duty.
        pub duty: Option<DutyId>,
        /// For which version of it.
        pub task_version: Option<TaskVersionId>,
        /// Where it stands.
        pub state: RunState,
        /// The fencing token of its newest claim.
        pub fence: i64,
        /// The program that may resume it.
        pub harness: String,
        /// The model asked.
        pub model: String,
        /// The prefix of all its requests.
        pub prefix_digest: Digest,
        /// The first run of the history that its requests hold.
        pub window_start: i64,
        /// Steps so far.
        pub steps: u32,
        /// Steps when it was last claimed: none since means a fruitless claim.
        pub claim_steps: u32,
        /// Tokens that its steps add to history.
        pub tokens: u64,
        /// Tokens sent to the model.
        pub input_tokens: u64,
        /// Of these, served from the vendor's cache.
        pub cached_tokens: u64,
        /// Tokens that the model wrote.
        pub output_tokens: u64,
        /// What it cost.
        pub micro_usd: MicroUsd,
        /// Why it ended as it did.
        pub reason: Option<String>,
        /// When it began.
        pub started_at: Timestamp,
        /// When it ended.
        pub ended_at: Option<Timestamp>,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

words! {
    /// What a step holds.
    pub enum StepKind {
        /// The run's input: time, changes, new events.
        Tail = "tail",
        /// A model's answer.
        Model = "model",
        /// A tool's result.
        Tool = "tool",
    }
}

words! {
    /// The step of the ladder that a tool's result came from, cheapest first (TOOL-06).
    pub enum Level {
        /// What is known already: our own records.
        Records = "records",
        /// A connector made for it.
        Connector = "connector",
        /// The open web: a search or a page.
        Web = "web",
    }
}

record! {
    /// One step of a run, stored before anything is derived from it.
    pub struct Step in "step" {
        /// Of which run.
        pub run: RunId,
        /// Its number, from 0. With the run, the step's key.
        pub n: u32,
        /// Whose.
        pub owner: OwnerId,
        /// What it holds.
        pub kind: StepKind,
        /// The tool, for a tool's result.
        pub tool: Option<String>,
        /// The step of the ladder, for a tool that reads.
        pub level: Option<Level>,
        /// Why the model took it and no cheaper one, in its words.
        pub why: Option<String>,
        /// The model's id of the call, for a tool's result.
        pub call_id: Option<String>,
        /// The vendor's id of the answer, for a model's.
        pub answer_id: Option<String>,
        /// The program that wrote it.
        pub harness: String,
        /// The model and version that answered.
        pub model: String,
        /// Digest of the request that a model's answer belongs to.
        pub request_digest: Option<Digest>,
        /// The block: one serialised chat message.
        pub body: BodyId,
        /// Its digest.
        pub digest: Digest,
        /// Its tokens, by our estimate.
        pub tokens: u64,
        /// When.
        pub at: Timestamp,
    }
}

statements! { "run":
    INSERT = hot insert Run, "";
    BY_ID = hot select Run, "WHERE id = $1";
    OPEN = hot select Run, "WHERE session = $1 AND state IN ('running', 'lost', 'sleeping')";
    LAST = hot select Run, "WHERE session = $1 ORDER BY n DESC LIMIT 1";
    RECENT = hot select Run, "WHERE session = $1 ORDER BY n DESC LIMIT $2";
    CLAIM = hot "UPDATE run SET state = 'running', fence = $2, claim_steps = steps, moved_at = $3 WHERE id = $1";
    LOSE = hot "UPDATE run SET state = 'lost', moved_at = $2 WHERE session = $1 AND state = 'running'
        RETURNING id";
    SLEEP = "UPDATE run SET state = 'sleeping', reason = $2, moved_at = $3
        WHERE id = $1 AND state = 'running'";
    COUNT = hot "UPDATE run SET steps = steps + 1, tokens = tokens + $2, input_tokens = input_tokens + $3,
          cached_tokens = cached_tokens + $4, output_tokens = output_tokens + $5,
          micro_usd = micro_usd + $6
        WHERE id = $1 AND fence = $7 AND state = 'running'";
    APPENDED = hot "UPDATE run SET steps = steps + 1, tokens = tokens + $2 WHERE id = $1";
    END = hot "UPDATE run SET state = $2, reason = $3, ended_at = $4, moved_at = $4 WHERE id = $1";
    INSERT_STEP = hot insert Step, "";
    STEPS = hot select Step, "WHERE run = $1 ORDER BY n";
    BLOCKS = hot "SELECT step.kind, step.call_id, step.digest, step.tokens, body.bytes
        FROM step JOIN body ON body.id = step.body WHERE step.run = $1 ORDER BY step.n";
    HISTORY = hot "SELECT step.kind, step.call_id, step.digest, step.tokens, body.bytes
        FROM run JOIN step ON step.run = run.id JOIN body ON body.id = step.body
        WHERE run.session = $1 AND run.n >= $2 AND run.n < $3 ORDER BY run.n, step.n";
    SIZES = hot "SELECT n, tokens FROM run WHERE session = $1 AND n >= $2 AND n < $3 ORDER BY n";
    OF_DUTY = hot select Run, "WHERE duty = $1 ORDER BY started_at DESC LIMIT $2";
}

/// Adds a run.
pub fn insert(tx: &mut OwnerTx<'_, '_>, run: &Run) -> Result<()> {
    tx.insert(&INSERT, run)?;
    tx.changed(run.id);
    Ok(())
}

/// One run.
pub fn get(tx: &mut Tx<'_>, id: RunId) -> Result<Run> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("run"))
}

/// The session's run that has not ended.
pub fn open(tx: &mut Tx<'_>, session: SessionId) -> Result<Option<Run>> {
    tx.one(&OPEN, params![session])
}

/// The session's newest runs, newest first.
pub fn recent(tx: &mut Tx<'_>, session: SessionId, limit: i64) -> Result<Vec<Run>> {
    tx.all(&RECENT, params![session, limit])
}

/// The newest runs of a duty.
pub fn of_duty(tx: &mut Tx<'_>, duty: DutyId, limit: i64) -> Result<Vec<Run>> {
    tx.all(&OF_DUTY, params![duty, limit])
}

/// The session's last run.
pub fn last(tx: &mut Tx<'_>, session: SessionId) -> Result<Option<Run>> {
    tx.one(&LAST, params![session])
}

/// A worker takes an open run on with its fencing token.
pub fn claim(tx: &mut OwnerTx<'_, '_>, id: RunId, fence: i64) -> Result<()> {
    let now = tx.now();
    tx.run(&CLAIM, params![id, fence, now])?;
    tx.changed(id);
    Ok(())
}

/// Marks the running run of a session whose worker is gone.
pub fn lose(tx: &mut OwnerTx<'_, '_>, session: SessionId) -> Result<()> {
    let now = tx.now();
    for row in tx.rows(&LOSE, params![session, now])? {
        tx.mark_written();
        tx.changed(row.get::<RunId>(0)?);
    }
    Ok(())
}

/// Puts a run down in order, to be resumed after a back-off.
pub fn sleep(tx: &mut OwnerTx<'_, '_>, id: RunId, reason: &str) -> Result<()> {
    let now = tx.now();
    tx.run(&SLEEP, params![id, reason, now])?;
    tx.changed(id);
    Ok(())
}

/// What a step adds to its run's totals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens sent.
    pub input_tokens: u64,
    /// Of these, from cache.
    pub cached_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Cost.
    pub micro_usd: MicroUsd,
}

/// Stores a step, under the run's fencing token.
pub fn add_step(tx: &mut OwnerTx<'_, '_>, step: &Step, spent: Spent, fence: i64) -> Result<()> {
    tx.insert(&INSERT_STEP, step)?;
    let Spent { input_tokens, cached_tokens, output_tokens, micro_usd } = spent;
    let values = params![
        step.run,
        step.tokens,
        input_tokens,
        cached_tokens,
        output_tokens,
        micro_usd,
        fence
    ];
    if tx.run(&COUNT, values)? != 1 {
        return Err(StoreError::Fenced);
    }
    tx.changed(step.run);
    Ok(())
}

/// Stores a step that closes a run's books, whoever held it.
pub fn append(tx: &mut OwnerTx<'_, '_>, step: &Step) -> Result<()> {
    tx.insert(&INSERT_STEP, step)?;
    tx.run(&APPENDED, params![step.run, step.tokens]).map(|_| ())
}

/// Ends a run.
pub fn end(
    tx: &mut OwnerTx<'_, '_>,
    id: RunId,
    state: RunState,
    reason: Option<&str>,
) -> Result<()> {
    let now = tx.now();
    tx.run(&END, params![id, state, reason, now])?;
    tx.changed(id);
    Ok(())
}

/// The steps of a run, without their content.
pub fn steps(tx: &mut Tx<'_>, id: RunId) -> Result<Vec<Step>> {
    tx.all(&STEPS, params![id])
}

/// A stored block with what the fold needs to know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlock {
    /// What the step held.
    pub kind: StepKind,
    /// The call it answers.
    pub call_id: Option<String>,
    /// Digest of the bytes as they were written.
    pub digest: Digest,
    /// Tokens by our estimate.
    pub tokens: u64,
    /// The serialised message; `None` if it was erased.
    pub bytes: Option<Vec<u8>>,
}

fn stored(row: &crate::value::Row) -> Result<StoredBlock> {
    Ok(StoredBlock {
        kind: row.get(0)?,
        call_id: row.get(1)?,
        digest: row.get(2)?,
        tokens: row.get(3)?,
        bytes: row.get(4)?,
    })
}

/// The blocks of one run, in order.
pub fn blocks(tx: &mut Tx<'_>, id: RunId) -> Result<Vec<StoredBlock>> {
    tx.rows(&BLOCKS, params![id])?.iter().map(stored).collect()
}

/// The blocks of a session's runs numbered `from..until`, in order.
pub fn history(
    tx: &mut Tx<'_>,
    session: SessionId,
    from: i64,
    until: i64,
) -> Result<Vec<StoredBlock>> {
    tx.rows(&HISTORY, params![session, from, until])?.iter().map(stored).collect()
}

/// The number and history tokens of a session's runs `from..until`.
pub fn sizes(
    tx: &mut Tx<'_>,
    session: SessionId,
    from: i64,
    until: i64,
) -> Result<Vec<(i64, u64)>> {
    let rows = tx.rows(&SIZES, params![session, from, until])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}
