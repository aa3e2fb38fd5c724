//! Why an action is what it is: from the user's words to the outside's evidence, from records alone (DEL-17).

use base::{ActionId, DeviceId, Digest, DutyId, EventId, OwnerId, RunId, Timestamp};
use domain::effect::{Content, Effect, Tier};
use domain::event::EventKind;
use domain::schedule::{local_words, zone};
use domain::state::{ActionState, ApprovalState, AttemptState};
use domain::words;
use jiff::tz::TimeZone;
use serde::Serialize;
use store::action::Action;
use store::change::audit_of;
use store::{Result, StoreError, Tx};

use crate::assemble;

/// Characters of a text that is repeated.
const EXCERPT_CHARS: usize = 300;

/// Everything on record about one action.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    /// The action.
    pub id: ActionId,
    /// The tool.
    pub tool: String,
    /// What it does.
    pub effect: Effect,
    /// Who has to release it.
    pub tier: Option<Tier>,
    /// Where it stands.
    pub state: ActionState,
    /// Why it stands there.
    pub reason: Option<String>,
    /// The digest of the frozen content, by which everything below is bound.
    pub digest: Digest,
    /// What it is.
    pub what: String,
    /// What the run that wanted it had taken in.
    pub inputs: Vec<Input>,
    /// The delegation that it serves.
    pub delegation: Option<Delegation>,
    /// Which model decided, and under which program.
    pub decision: Option<Decision>,
    /// Who released it.
    pub approvals: Vec<Released>,
    /// Each actual sending.
    pub attempts: Vec<Sent>,
    /// The proof, and whose word it is.
    pub evidence: Option<Evidence>,
    /// The action that it undoes.
    pub compensates: Option<ActionId>,
    /// The commits, in order, with their place in the audit chain.
    pub commits: Vec<Commit>,
    /// The chain in words.
    pub words: Vec<String>,
}

/// Something the run had taken in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Input {
    /// The event.
    pub event: EventId,
    /// What it was.
    pub kind: EventKind,
    /// Its text, cut.
    pub text: String,
    /// When it came.
    pub at: Timestamp,
}

/// The delegation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Delegation {
    /// The duty.
    pub duty: DutyId,
    /// Which version.
    pub version: i64,
    /// Its digest: what the user confirmed.
    pub digest: Digest,
    /// Its goal.
    pub goal: String,
    /// The grant that was drawn on, in words.
    pub grant: Option<String>,
}

/// The step in which the model wanted it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decision {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: u32,
    /// The model.
    pub model: String,
    /// The harness version.
    pub harness: String,
    /// When.
    pub at: Timestamp,
}

/// An approval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Released {
    /// Where it stands.
    pub state: ApprovalState,
    /// `user`, `policy` or `supervisor`.
    pub by: &'static str,
    /// From which device.
    pub device: Option<DeviceId>,
    /// The card's template as it was shown, or the policy's, with its version.
    pub template: String,
    /// What was said with it.
    pub reason: Option<String>,
    /// When it last moved.
    pub at: Timestamp,
}

/// An attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sent {
    /// Its number.
    pub n: i64,
    /// Under which id the outside knows it.
    pub operation_id: String,
    /// Where it stands.
    pub state: AttemptState,
    /// Why.
    pub reason: Option<String>,
    /// What came back, cut.
    pub answer: Option<String>,
    /// When it was registered.
    pub at: Timestamp,
}

/// What shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// The receipt.
    pub receipt: Option<String>,
    /// Whose word: `outside` or `user`.
    pub authority: String,
    /// Whether the outside contradicted itself.
    pub contradicted: bool,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Commit {
    /// Its number in the audit chain.
    pub n: i64,
    /// What was done.
    pub verb: String,
    /// To what kind of record.
    pub noun: String,
    /// When.
    pub at: Timestamp,
}

/// Collects it.
///
/// # Errors
/// `Missing("action")` if the owner has no such action.
pub fn collect(tx: &mut Tx<'_>, owner: OwnerId, id: ActionId) -> Result<Explained> {
    let action = store::action::get(tx, id)?;
    if action.owner != owner {
        return Err(StoreError::Missing("action"));
    }
    let of = store::owner::get(tx, owner)?;
    let zone = zone(&of.zone).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let bytes = store::event::body(tx, action.content)?.unwrap_or_default();
    let what = match Content::read(&bytes) {
        Ok(content) => words::operation(&content, words::Language::En),
        Err(_) => format!("{} (its content was erased)", action.tool),
    };
    let mut explained = Explained {
        id,
        tool: action.tool.clone(),
        effect: action.effect,
        tier: action.tier,
        state: action.state,
        reason: action.reason.clone(),
        digest: action.digest,
        what,
        inputs: inputs(tx, &action)?,
        delegation: delegation(tx, &action)?,
        decision: decision(tx, &action)?,
        approvals: approvals(tx, &action)?,
        attempts: attempts(tx, &action)?,
        evidence: action.authority.clone().map(|authority| Evidence {
            receipt: action.receipt.clone(),
            authority,
            contradicted: action.contradicted,
        }),
        compensates: action.compensates,
        commits: commits(tx, &action)?,
        words: Vec::new(),
    };
    explained.words = said(&explained, &zone);
    Ok(explained)
}

fn excerpt(text: &str) -> String {
    words::on_one_line(text, EXCERPT_CHARS)
}

fn inputs(tx: &mut Tx<'_>, action: &Action) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for item in store::work_item::of_run(tx, action.run)? {
        let event = store::event::get(tx, item.event)?;
        let text = store::event::body_text(tx, event.body)?;
        let (kind, at) = (event.kind, event.received_at);
        inputs.push(Input { event: event.id, kind, text: excerpt(&text), at });
    }
    Ok(inputs)
}

fn delegation(tx: &mut Tx<'_>, action: &Action) -> Result<Option<Delegation>> {
    let (Some(duty), Some(version)) = (action.duty, action.task_version) else { return Ok(None) };
    let version = store::duty::version_by_id(tx, version)?;
    let draft = assemble::draft(tx, &version)?;
    let grant = match action.draws_on {
        None => None,
        Some(grant) => {
            let tool = store::grant::get(tx, grant)?.tool;
            draft
                .grants
                .iter()
                .find(|wanted| wanted.tool == tool)
                .map(|wanted| wanted.words(words::Language::En))
        }
    };
    let (n, digest) = (version.n, version.digest);
    Ok(Some(Delegation { duty, version: n, digest, goal: draft.goal, grant }))
}

fn decision(tx: &mut Tx<'_>, action: &Action) -> Result<Option<Decision>> {
    let steps = store::run::steps(tx, action.run)?;
    let of_call = |step: &&store::run::Step| step.call_id.as_deref() == Some(&action.call_id);
    let Some(called) = steps.iter().find(of_call) else { return Ok(None) };
    // The answer that called stands before the call's own result.
    let answer =
        steps.iter().rfind(|step| step.kind == store::run::StepKind::Model && step.n < called.n);
    Ok(answer.map(|step| Decision {
        run: action.run,
        step: step.n,
        model: step.model.clone(),
        harness: step.harness.clone(),
        at: step.at,
    }))
}

fn approvals(tx: &mut Tx<'_>, action: &Action) -> Result<Vec<Released>> {
    let all = store::approval::of_action(tx, action.id)?;
    let read = |approval: store::approval::Approval| Released {
        state: approval.state,
        by: approval.kind.word(),
        device: approval.device,
        template: approval.shown.unwrap_or(approval.template),
        reason: approval.reason,
        at: approval.moved_at,
    };
    Ok(all.into_iter().map(read).collect())
}

fn attempts(tx: &mut Tx<'_>, action: &Action) -> Result<Vec<Sent>> {
    let mut sent = Vec::new();
    for attempt in store::attempt::of_action(tx, action.id)? {
        let answer = match attempt.answer {
            None => None,
            Some(body) => Some(excerpt(&store::event::body_text(tx, body)?)),
        };
        sent.push(Sent {
            n: attempt.n,
            operation_id: attempt.operation_id,
            state: attempt.state,
            reason: attempt.reason,
            answer,
            at: attempt.created_at,
        });
    }
    Ok(sent)
}

/// The audit entries of the action, its approvals and its attempts, in one order.
fn commits(tx: &mut Tx<'_>, action: &Action) -> Result<Vec<Commit>> {
    use base::Id as _;
    let mut records = vec![action.id.uuid()];
    for approval in store::approval::of_action(tx, action.id)? {
        records.push(approval.id.uuid());
    }
    for attempt in store::attempt::of_action(tx, action.id)? {
        records.push(attempt.id.uuid());
    }
    let mut commits = Vec::new();
    for record in records {
        for entry in audit_of(tx, action.owner, record)? {
            let store::change::Audited { n, verb, noun, at, .. } = entry;
            commits.push(Commit { n, verb, noun, at });
        }
    }
    commits.sort_by_key(|commit| commit.n);
    Ok(commits)
}

/// The chain in words: one line for each link of it.
fn said(of: &Explained, zone: &TimeZone) -> Vec<String> {
    let at = |instant| local_words(zone, instant);
    let mut lines = Vec::new();
    for input in &of.inputs {
        let what = input.kind.word().replace('_', " ");
        lines.push(format!("Taken in {} ({what}): {}", at(input.at), input.text));
    }
    lines.extend(of.delegation.as_ref().map(|delegation| {
        let grant = delegation.grant.as_deref().map(|words| format!(" Granted: {words}."));
        format!(
            "For version {} of duty {}, as confirmed: {}.{}",
            delegation.version,
            delegation.duty,
            delegation.goal.trim_end_matches('.'),
            grant.unwrap_or_default()
        )
    }));
    lines.extend(of.decision.as_ref().map(|decision| {
        format!(
            "Wanted {} by {} ({}) in step {} of run {}: {}.",
            at(decision.at),
            decision.model,
            decision.harness,
            decision.step,
            decision.run,
            of.what
        )
    }));
    lines.extend(of.compensates.map(|other| format!("It undoes action {other}.")));
    for approval in &of.approvals {
        let why = approval.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        lines.push(format!(
            "Release by the {} is {} since {} ({}){why}.",
            approval.by,
            approval.state,
            at(approval.at),
            approval.template
        ));
    }
    for attempt in &of.attempts {
        let why = attempt.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        lines.push(format!(
            "Sent {} as {}: {}{why}.",
            at(attempt.at),
            attempt.operation_id,
            attempt.state
        ));
    }
    lines.extend(of.evidence.as_ref().map(|evidence| {
        let receipt = evidence.receipt.as_deref().unwrap_or("no receipt");
        format!("Shown by the {}'s word: {receipt}.", evidence.authority)
    }));
    let why = of.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    lines.push(format!("Now {}{why}.", words::action_state(of.state)));
    lines
}
