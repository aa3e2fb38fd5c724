//! Records of what comes from the world and of what holds it back, with every column filled.

use base::{Digest, Id as _};
use base::{
    DutyId, EventId, ScheduleId, SessionId, SourceId, TaskVersionId, Timestamp, WorkItemId,
};
use domain::effect::{Demand, Effect};
use domain::event::{Class, Dial, EventKind, How, Mode, Trust};
use domain::situation::{Part, Stands, Step};
use domain::state::{
    CheckState, HoldState, PauseState, RuleState, SourceState, SubscriptionState, WorkItemState,
};
use store::check::CheckRun;
use store::duty::Duty;
use store::event::{Accepted, Event, NewBody};
use store::hold::{Hold, Pause};
use store::link::{Attribution, Link};
use store::object::Object;
use store::proactive::Proactive;
use store::rule::Rule;
use store::situation::Situation;
use store::source::Source;
use store::subscription::Subscription;
use store::work_item::WorkItem;
use testkit::stores::Harness;

use crate::fixtures::{event, new_body, now};

/// A polled source.
pub fn source(h: &Harness, name: &str) -> Source {
    Source {
        id: h.id(),
        owner: h.owner,
        kind: store::source::SourceKind::Feed,
        name: name.into(),
        trust: Trust::Outside,
        state: SourceState::Active,
        config: Some(r#"{"url":"https://example.org/feed"}"#.into()),
        cursor: Some("etag:7".into()),
        every_ms: Some(900_000),
        next_look_at: Some(now(h).plus_ms(60_000)),
        looked_at: Some(now(h).minus_ms(60_000)),
        failures: 2,
        expect_ms: Some(86_400_000),
        received_at: Some(now(h).minus_ms(120_000)),
        last_event: Some(h.id()),
        refused: 3,
        refused_at: Some(now(h).minus_ms(180_000)),
        created_at: now(h),
        moved_at: now(h),
    }
}

/// Stores a source.
pub fn stored_source(h: &Harness, name: &str) -> Source {
    let source = source(h, name);
    let stored = source.clone();
    h.unowned(move |tx| store::source::insert(tx, &stored)).unwrap();
    source
}

pub fn subscription(
    h: &Harness,
    duty: &Duty,
    task_version: TaskVersionId,
    source: SourceId,
) -> Subscription {
    Subscription {
        id: h.id(),
        owner: h.owner,
        duty: duty.id,
        task_version,
        session: duty.session,
        source,
        topic: Some("issues.*".into()),
        mode: Mode::Wake,
        prompt: h.id(),
        until_at: Some(now(h).plus_ms(9_000_000)),
        state: SubscriptionState::Active,
        created_at: now(h),
        moved_at: now(h),
    }
}

pub fn link(h: &Harness, event: EventId, session: SessionId) -> Link {
    Link {
        event,
        session,
        owner: h.owner,
        duty: Some(h.id()),
        how: How::Attribution,
        record: event.uuid(),
        at: now(h),
    }
}

pub fn attribution(h: &Harness, event: EventId) -> Attribution {
    Attribution {
        event,
        owner: h.owner,
        candidates: format!(r#"["{}"]"#, h.id::<DutyId>()),
        model: "small".into(),
        answer: Some(h.id()),
        chosen: "[]".into(),
        refused: Some("3 is no number of a candidate".into()),
        at: now(h),
    }
}

pub fn check_run(h: &Harness, schedule: ScheduleId, slot: Timestamp) -> CheckRun {
    CheckRun {
        id: h.id(),
        owner: h.owner,
        schedule,
        slot,
        late: true,
        missed: 4,
        state: CheckState::Due,
        attempts: 1,
        answer: Some(h.id()),
        created_at: now(h),
        moved_at: now(h),
    }
}

pub fn object(h: &Harness, kind: &str, value: &str) -> Object {
    Object {
        id: h.id(),
        owner: h.owner,
        session: h.main,
        task_version: None,
        kind: kind.into(),
        value: value.into(),
        snapshot: Some(h.id()),
        digest: Digest::of(value.as_bytes()),
        run: h.id(),
        call_id: Some("call-1".into()),
        provenance: "shop.quote".into(),
        expires_at: None,
        created_at: now(h),
    }
}

pub fn situation(h: &Harness, call_id: &str) -> Situation {
    Situation {
        id: h.id(),
        owner: h.owner,
        session: h.main,
        duty: Some(h.id()),
        task_version: Some(h.id()),
        run: h.id(),
        call_id: call_id.into(),
        event: Some(h.id()),
        body: h.id(),
        stands: Stands::TakenOn,
        part: Part::Initiator,
        step: Step::Remind,
        set_version: 1,
        due_at: now(h).plus_ms(60_000),
        wait: h.id(),
        created_at: now(h),
    }
}

pub fn proactive(h: &Harness, event: EventId) -> Proactive {
    Proactive {
        id: h.id(),
        owner: h.owner,
        event,
        dial: Dial::Observe,
        situation: "a bill is due".into(),
        disturb: "not before Friday".into(),
        reach: "reads only".into(),
        release: "the user".into(),
        at: now(h),
    }
}

pub fn hold(h: &Harness, event: EventId) -> Hold {
    Hold {
        id: h.id(),
        owner: h.owner,
        event,
        state: HoldState::Placed,
        verdict: None,
        decided_by: None,
        pause: None,
        asked_at: None,
        created_at: now(h),
        moved_at: now(h),
    }
}

pub fn pause(h: &Harness, duty: Option<DutyId>) -> Pause {
    Pause {
        id: h.id(),
        owner: h.owner,
        duty,
        state: PauseState::Active,
        placed_by: h.user,
        lifted_by: None,
        created_at: now(h),
        moved_at: now(h),
    }
}

/// A rule of somebody over the owner.
pub fn rule(h: &Harness) -> Rule {
    Rule {
        id: h.id(),
        owner: h.owner,
        tool: "hotel.*".into(),
        effect: Some(Effect::Paid),
        above_minor: Some(50_000),
        currency: Some(base::Currency::parse("HKD").unwrap()),
        demand: Demand::Supervisor,
        state: RuleState::Active,
        made_by: h.user,
        ended_by: None,
        created_at: now(h),
        moved_at: now(h),
    }
}

/// What a source delivers: the event as the ingress makes it, its content and its work item.
#[derive(Clone)]
pub struct Delivery {
    pub event: Event,
    pub body: NewBody,
    pub item: WorkItem,
}

/// A delivery of an id with a content.
pub fn delivery(h: &Harness, source: SourceId, external_id: &str, text: &str) -> Delivery {
    let body = new_body(h, text);
    let event = Event {
        kind: EventKind::Webhook,
        trust: Trust::Outside,
        body: body.id,
        digest: Digest::of(text.as_bytes()),
        session: None,
        duty: None,
        late: false,
        seq: 0,
        ..event(h, source, external_id)
    };
    let item = crate::fixtures::work_item(h, event.id, WorkItemState::Unrouted);
    Delivery { event, body, item }
}

impl Delivery {
    /// Accepts it as an ingress does.
    pub fn accept(&self, tx: &mut store::Tx<'_>) -> store::Result<Accepted> {
        store::event::accept_unlocked(tx, &self.event, self.body.clone(), &self.item)
    }
}

/// Stores an item with its event, in the owner's conversation, without the owner's lock; gives its id.
pub fn arrived(h: &Harness, external_id: &str, class: Class) -> WorkItemId {
    let mut delivery = delivery(h, h.device, external_id, external_id);
    delivery.item.session = Some(h.main);
    delivery.item.class = Some(class);
    delivery.item.state = match class {
        Class::User | Class::External | Class::Timer => WorkItemState::Pending,
        Class::Background => WorkItemState::Unrouted,
    };
    let id = delivery.item.id;
    h.unowned(move |tx| delivery.accept(tx)).unwrap();
    id
}
