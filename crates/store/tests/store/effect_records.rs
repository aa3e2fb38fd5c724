//! Records of what the agent may do outside and of what became of it, with every column filled.

use base::{ActionId, Currency, Digest, DutyId, TaskVersionId};
use domain::effect::{Effect, Frozen, Spec, Tier, freeze};
use domain::state::{ActionState, ApprovalState, AttemptState, GrantState};
use store::action::{Action, ActionObject};
use store::approval::Approval;
use store::attempt::Attempt;
use store::grant::Grant;
use store::owner::PrincipalKind;
use testkit::stores::Harness;

use crate::fixtures::now;

fn hkd() -> Currency {
    Currency::parse("HKD").unwrap()
}

/// What every action here does, as its frozen bytes.
pub fn frozen() -> Frozen {
    let spec = Spec {
        tool: "hotel.book_hotel".into(),
        effect: Effect::Paid,
        entry: Digest::of(b"entry"),
        objects: [].into(),
        amount: None,
        currency: None,
        recipients: Vec::new(),
        once_per: Vec::new(),
        card: Vec::new(),
        operation: Some("client_ref".into()),
        undo: None,
        can_look_up: true,
        settled_after_ms: Some(1_800_000),
        idempotent_ms: None,
    };
    let arguments = serde_json::json!({"quote": "q-3"});
    freeze(&spec, arguments.as_object().unwrap(), &[], None, None).unwrap()
}

pub fn grant(h: &Harness, duty: DutyId, task_version: TaskVersionId) -> Grant {
    Grant {
        id: h.id(),
        owner: h.owner,
        duty,
        task_version,
        tool: "hotel.book_hotel".into(),
        times: 3,
        currency: Some(hkd()),
        each_minor: Some(300_000),
        total_minor: Some(820_000),
        recipients: r#"["Ada"]"#.into(),
        until_at: Some(now(h).plus_ms(60_000)),
        state: GrantState::Active,
        reserved_count: 0,
        reserved_minor: 0,
        spent_count: 0,
        spent_minor: 0,
        confirmed_by: h.user,
        created_at: now(h),
        moved_at: now(h),
    }
}

/// A proposed action of its own errand. What later states need is there already.
pub fn action(h: &Harness, call_id: &str) -> Action {
    Action {
        id: h.id(),
        owner: h.owner,
        session: h.main,
        duty: Some(h.id()),
        task_version: Some(h.id()),
        run: h.id(),
        call_id: call_id.into(),
        tool: "hotel.book_hotel".into(),
        effect: Effect::Paid,
        content: h.id(),
        digest: frozen().digest,
        errand: format!("errand of {call_id}"),
        minor: Some(260_000),
        currency: Some(hkd()),
        compensates: Some(h.id()),
        expires_at: Some(now(h).plus_ms(30_000)),
        created_at: now(h),
        state: ActionState::Proposed,
        tier: Some(Tier::R3),
        reason: Some("why".into()),
        draws_on: None,
        approval: Some(h.id()),
        not_before: Some(now(h).plus_ms(5_000)),
        due_at: Some(now(h)),
        tries: 1,
        sent_at: Some(now(h)),
        receipt: Some("r-1".into()),
        authority: Some("outside".into()),
        contradicted: true,
        escalated_at: Some(now(h)),
        moved_at: now(h),
    }
}

pub fn object(h: &Harness, action: ActionId, argument: &str, value: &str) -> ActionObject {
    ActionObject {
        action,
        argument: argument.into(),
        owner: h.owner,
        kind: "quote".into(),
        value: value.into(),
    }
}

/// Stores an action with one object.
pub fn stored_action(h: &Harness, call_id: &str) -> Action {
    let action = action(h, call_id);
    let (stored, object) = (action.clone(), object(h, action.id, "quote", "q-3"));
    h.write(move |tx| store::action::insert(tx, &stored, &[object])).unwrap();
    action
}

pub fn approval(h: &Harness, action: &Action) -> Approval {
    Approval {
        decided_at: None,
        id: h.id(),
        owner: h.owner,
        action: action.id,
        kind: PrincipalKind::User,
        digest: action.digest,
        task_version: action.task_version,
        until_at: now(h).plus_ms(30_000),
        rests_on: None,
        template: "card/1".into(),
        shown: None,
        created_at: now(h),
        state: ApprovalState::Requested,
        decided_by: None,
        device: None,
        reason: None,
        moved_at: now(h),
    }
}

pub fn attempt(h: &Harness, action: &Action, n: i64) -> Attempt {
    Attempt {
        id: h.id(),
        owner: h.owner,
        action: action.id,
        n,
        operation_id: format!("{}.{n}", action.id),
        dispatcher: h.id(),
        send_by: now(h).plus_ms(5_000),
        answer_by: now(h).plus_ms(35_000),
        created_at: now(h),
        state: AttemptState::Registered,
        reason: None,
        receipt: None,
        answer: None,
        moved_at: now(h),
    }
}

/// The states from a first one to `to`, by legal moves.
pub fn way_to(to: ActionState) -> Vec<ActionState> {
    let machine = ActionState::MACHINE;
    let mut ways: Vec<Vec<&str>> = machine.initial.iter().map(|first| vec![*first]).collect();
    for at in 0.. {
        let way = ways[at].clone();
        let last = way[way.len() - 1];
        if last == to.word() {
            return way.into_iter().map(|word| ActionState::parse(word).unwrap()).collect();
        }
        for (_, next) in machine.moves.iter().filter(|(from, _)| *from == last) {
            if !ways.iter().any(|way| way.contains(next)) {
                ways.push([&way[..], &[*next]].concat());
            }
        }
    }
    unreachable!("every state is reached");
}

/// Moves a stored action along legal moves; the record as it then is.
pub fn moved(h: &Harness, action: &Action, way: &[ActionState]) -> Action {
    let mut action = action.clone();
    for to in way.iter().filter(|to| **to != ActionState::Proposed) {
        let was = action.state;
        (action.state, action.moved_at) = (*to, now(h));
        let stored = action.clone();
        h.write(move |tx| store::action::put(tx, &stored, was, None)).unwrap();
    }
    action
}
