//! Records of every noun with every column filled, so that a column that is not stored is seen.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use base::{
    BodyId, Clock as _, Digest, DutyId, EventId, MessageId, MicroUsd, ProposalId, RunId,
    ScheduleId, SessionId, SourceId, TaskVersionId, Timestamp,
};
use domain::event::{Class, EventKind, Trust};
use domain::schedule::Missed;
use domain::state::{
    DutyState, MessageState, ProposalState, RunState, ScheduleState, TaskVersionState, WaitState,
    WorkItemState,
};
use store::duty::{Duty, TaskVersion};
use store::event::{Event, NewBody};
use store::message::{Message, MessageKind};
use store::proposal::{Proposal, ProposalKind};
use store::run::{Level, Run, Step, StepKind};
use store::schedule::Schedule;
use store::session::{Lease, Session, SessionKind};
use store::wait::Wait;
use store::work_item::WorkItem;
use store::{CommitGate, OwnerTx, Result, StoreError};
use testkit::stores::{Harness, each_engine, each_engine_inline, new_session};
use uuid::Uuid;

/// Runs a test's body on both engines, with threads and without.
pub fn everywhere(test: impl Fn(Harness)) {
    each_engine(&test);
    each_engine_inline(&test);
}

/// A number that is no record's id.
pub fn uuid(h: &Harness) -> Uuid {
    use base::Id as _;
    h.id::<EventId>().uuid()
}

pub fn now(h: &Harness) -> Timestamp {
    h.clock.now()
}

/// The transaction's change number, read in the transaction itself.
pub fn change_seq(h: &Harness) -> i64 {
    let owner = h.owner;
    h.read(move |tx| store::owner::get(tx, owner)).unwrap().change_seq
}

pub fn new_body(h: &Harness, text: &str) -> NewBody {
    NewBody {
        id: h.id(),
        bytes: text.as_bytes().to_vec(),
        media: "text/plain".into(),
        provenance: "device:first".into(),
        trust: Trust::User,
    }
}

pub fn event(h: &Harness, source: SourceId, external_id: &str) -> Event {
    Event {
        id: h.id(),
        owner: h.owner,
        source,
        external_id: external_id.into(),
        kind: EventKind::UserMessage,
        key: Some(format!("key:{external_id}")),
        topic: Some("issues.opened".into()),
        trust: Trust::User,
        body: h.id(),
        digest: Digest::of(external_id.as_bytes()),
        links: Some(r#"["https://example.org/"]"#.into()),
        session: Some(h.main),
        duty: Some(h.id()),
        late: true,
        received_at: now(h),
        seq: 1,
        about: None,
        disposition: None,
        handled_at: None,
    }
}

pub fn work_item(h: &Harness, event: EventId, state: WorkItemState) -> WorkItem {
    let routed = state != WorkItemState::Unrouted;
    WorkItem {
        id: h.id(),
        owner: h.owner,
        event,
        session: routed.then_some(h.main),
        class: routed.then_some(Class::External),
        state,
        attempts: 0,
        run: None,
        created_at: now(h),
        delivered_at: None,
        read_at: None,
        done_at: None,
        moved_at: now(h),
    }
}

pub fn run(h: &Harness, session: SessionId, n: i64) -> Run {
    Run {
        id: h.id(),
        owner: h.owner,
        session,
        n,
        duty: Some(h.id()),
        task_version: Some(h.id()),
        state: RunState::Running,
        fence: 1,
        harness: "adjutant 0.1".into(),
        model: "scripted".into(),
        prefix_digest: Digest::of(b"prefix"),
        window_start: 0,
        steps: 0,
        claim_steps: 0,
        tokens: 0,
        input_tokens: 0,
        cached_tokens: 0,
        output_tokens: 0,
        micro_usd: MicroUsd(0),
        reason: Some("why".into()),
        started_at: now(h),
        ended_at: Some(now(h)),
        moved_at: now(h),
    }
}

/// A step and the body that it names, which the caller stores first.
pub fn step(h: &Harness, run: RunId, n: u32, text: &str) -> (NewBody, Step) {
    let body = new_body(h, text);
    let kind = match n {
        0 => StepKind::Tail,
        n if n % 2 == 1 => StepKind::Model,
        _ => StepKind::Tool,
    };
    let is_tool = kind == StepKind::Tool;
    let step = Step {
        run,
        n,
        owner: h.owner,
        kind,
        tool: is_tool.then(|| "wait".into()),
        level: is_tool.then_some(Level::Connector),
        why: is_tool.then(|| "our records are a day old".into()),
        call_id: is_tool.then(|| format!("call-{n}")),
        answer_id: (kind == StepKind::Model).then(|| format!("answer-{n}")),
        harness: "adjutant 0.1".into(),
        model: "scripted".into(),
        request_digest: (kind == StepKind::Model).then(|| Digest::of(b"request")),
        body: body.id,
        digest: Digest::of(text.as_bytes()),
        tokens: 11,
        at: now(h),
    };
    (body, step)
}

pub fn duty_session(h: &Harness) -> Session {
    new_session(h.id(), h.owner, SessionKind::Duty)
}

pub fn duty(h: &Harness, session: SessionId) -> (Duty, TaskVersion) {
    let duty = Duty {
        id: h.id(),
        owner: h.owner,
        agent: "adjutant".into(),
        session,
        state: DutyState::Active,
        proposal: h.id(),
        created_at: now(h),
        moved_at: now(h),
    };
    let version = TaskVersion {
        id: h.id(),
        owner: h.owner,
        duty: duty.id,
        n: 1,
        state: TaskVersionState::Current,
        content: h.id(),
        digest: Digest::of(b"draft"),
        conditions: 2,
        until_at: Some(now(h).plus_ms(1_000_000)),
        origin: store::duty::Origin::User,
        confirmed_by: h.user,
        created_at: now(h),
        moved_at: now(h),
    };
    (duty, version)
}

/// Stores a duty with its session, so that schedules and runs may name it.
pub fn stored_duty(h: &Harness) -> (Duty, TaskVersion) {
    let session = duty_session(h);
    let (duty, version) = duty(h, session.id);
    let (d, v) = (duty.clone(), version.clone());
    h.write(move |tx| {
        store::session::insert(tx, &session)?;
        store::duty::insert(tx, &d, &v)
    })
    .unwrap();
    (duty, version)
}

pub fn wait(h: &Harness, call_id: &str) -> Wait {
    Wait {
        id: h.id(),
        owner: h.owner,
        session: h.main,
        duty: Some(h.id()),
        task_version: Some(h.id()),
        run: h.id(),
        call_id: call_id.into(),
        cause_event: Some(h.id()),
        kind: "user_message".into(),
        key: "key:1".into(),
        due_at: now(h).plus_ms(60_000),
        state: WaitState::Open,
        satisfied_by: None,
        created_at: now(h),
        moved_at: now(h),
    }
}

pub fn schedule(h: &Harness, duty: DutyId, task_version: TaskVersionId) -> Schedule {
    Schedule {
        id: h.id::<ScheduleId>(),
        owner: h.owner,
        duty,
        task_version,
        session: h.main,
        rule: r#"{"every":"day"}"#.into(),
        prompt: h.id::<BodyId>(),
        run_missed: Missed::Once,
        check_spec: Some(h.id()),
        check_last: Some(h.id()),
        next_slot: now(h).plus_ms(60_000),
        last_slot: Some(now(h).minus_ms(60_000)),
        last_late: true,
        until_at: Some(now(h).plus_ms(9_000_000)),
        state: ScheduleState::Active,
        created_at: now(h),
        moved_at: now(h),
    }
}

pub fn proposal(h: &Harness, call_id: &str, closes: Option<DutyId>) -> Proposal {
    Proposal {
        id: h.id::<ProposalId>(),
        owner: h.owner,
        session: h.main,
        run: h.id(),
        call_id: call_id.into(),
        kind: if closes.is_some() { ProposalKind::CloseDuty } else { ProposalKind::NewDuty },
        duty: closes,
        content: h.id(),
        digest: Digest::of(b"content"),
        template: "delegation/1".into(),
        state: ProposalState::Open,
        decided_by: None,
        expires_at: now(h).plus_ms(60_000),
        seq: 1,
        created_at: now(h),
        moved_at: now(h),
    }
}

pub fn message(h: &Harness, call_id: &str, body: BodyId, seq: i64) -> Message {
    Message {
        id: h.id::<MessageId>(),
        owner: h.owner,
        session: h.main,
        kind: MessageKind::Agent,
        run: Some(h.id()),
        call_id: Some(call_id.into()),
        duty: Some(h.id()),
        task_version: Some(h.id()),
        proposal: Some(h.id()),
        action: Some(h.id()),
        late: true,
        body,
        state: MessageState::Generated,
        reason: None,
        seq,
        created_at: now(h),
        queued_at: None,
        sent_at: None,
        delivered_at: None,
        delivered_to: None,
        moved_at: now(h),
    }
}

/// A claim of the owner's conversation.
pub fn lease(h: &Harness, fence: i64, holder: base::Incarnation) -> Lease {
    Lease { owner: h.owner, session: h.main, fence, holder }
}

/// A gate that counts commits, can hold one up and can crash before or after one.
#[derive(Default)]
pub struct Gate {
    pub commits: AtomicU32,
    pub crash_before: AtomicBool,
    pub crash_after: AtomicBool,
    /// Tells that a commit has come, and waits for leave to go on.
    pub hold: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl CommitGate for Gate {
    fn before_commit(&self) -> bool {
        self.commits.fetch_add(1, Ordering::SeqCst);
        // In a statement of its own, so that the lock is free while the commit is held up.
        let held = self.hold.lock().unwrap().take();
        if let Some((come, go)) = held {
            come.send(()).unwrap();
            go.recv().unwrap();
        }
        !self.crash_before.load(Ordering::SeqCst)
    }
    fn after_commit(&self) -> bool {
        !self.crash_after.load(Ordering::SeqCst)
    }
}

/// Occupies one of the store's writing threads until the answer is dropped or sent to.
pub fn occupy(h: &Harness) -> Sender<()> {
    let (come, has_come) = channel();
    let (go, may_go) = channel::<()>();
    let busy = h.store.write_unowned(move |_| {
        come.send(()).unwrap();
        // An error says that the sender was dropped, which is leave to go on too.
        may_go.recv().ok();
        Ok(())
    });
    // Its answer matters to nobody; the closure is queued already.
    drop(busy);
    has_come.recv().unwrap();
    go
}

/// Stores a body and gives the closure for it, with the id to look for.
pub fn put(
    h: &Harness,
    text: &str,
) -> (BodyId, impl FnOnce(&mut OwnerTx<'_, '_>) -> Result<()> + Send + 'static) {
    let body = new_body(h, text);
    (body.id, move |tx: &mut OwnerTx<'_, '_>| store::event::put_body(tx, body).map(|_| ()))
}

/// Whether a body is there.
pub fn is_stored(h: &Harness, id: BodyId) -> bool {
    match h.read(move |tx| store::event::body(tx, id)) {
        Ok(_) => true,
        Err(StoreError::Missing("body")) => false,
        Err(other) => panic!("{other}"),
    }
}
