//! The right to send one call, for tests of whoever sends it: got by the records and the commits that give it in
//! production, since there is no other way.

#![expect(clippy::expect_used, reason = "a test's set-up fails by panicking")]

use base::{ActionId, Clock as _, EventId, Id as _, Timestamp};
use domain::effect::{Frozen, Tier};
use domain::event::Trust;
use domain::state::{ActionState, ApprovalState, AttemptState};
use store::action::{Action, ActionObject, Origin};
use store::approval::{Approval, Tap};
use store::attempt::Attempt;
use store::event::NewBody;
use store::owner::PrincipalKind;
use store::{OwnerTx, Permit, Result};

use crate::stores::{Harness, block_on};

/// From its registration on, a call may be sent for so long, as in production.
pub const SEND_MS: u64 = 5_000;
/// What its answer is given.
const ANSWER_MS: u64 = 30_000;

/// Takes a frozen call of the owner's conversation to its permit, released by the owner's user: to be sent
/// under `operation_id` within [`SEND_MS`] of the harness's clock.
pub fn permit(harness: &Harness, frozen: &Frozen, operation_id: &str) -> Permit {
    let mut action = proposed(harness, frozen);
    let approval = granted(harness, &action);
    action.approval = Some(approval.id);
    action.tier = Some(Tier::R4);
    let objects: Vec<ActionObject> = frozen
        .content
        .objects
        .iter()
        .map(|object| ActionObject {
            action: action.id,
            argument: object.argument.clone(),
            owner: action.owner,
            kind: object.kind.clone(),
            value: object.id.clone(),
        })
        .collect();
    let (row, bytes) = (action.clone(), frozen.bytes.clone());
    let (media, provenance) = ("application/json".to_owned(), "test".to_owned());
    let body = NewBody { id: row.content, bytes, media, provenance, trust: Trust::User };
    let mut action = harness
        .write(move |tx| {
            store::event::put_body(tx, body)?;
            store::action::insert(tx, &row, &objects)?;
            store::approval::insert(tx, &approval)?;
            store::approval::advance(tx, &approval, ApprovalState::Consumed, Tap::default())?;
            moved(tx, row, ActionState::Authorized)
        })
        .expect("a released action");
    let txn = || harness.id::<EventId>().uuid();
    let admission = harness.store.admit(harness.owner, txn(), move |tx| {
        action = moved(tx, action, ActionState::Admitted)?;
        Ok(action)
    });
    let mut action = block_on(admission).expect("an admitted action");
    let attempt = attempt(harness, &action, operation_id);
    let bytes = frozen.bytes.clone();
    let dispatch = harness.store.dispatch(harness.owner, txn(), move |tx| {
        store::attempt::register(tx, &mut action, attempt, &bytes).map(Some)
    });
    block_on(dispatch).expect("a registered attempt").expect("a permit")
}

fn moved(tx: &mut OwnerTx<'_, '_>, mut action: Action, to: ActionState) -> Result<Action> {
    let was = std::mem::replace(&mut action.state, to);
    store::action::put(tx, &action, was, None)?;
    Ok(action)
}

fn now(harness: &Harness) -> Timestamp {
    harness.clock.now()
}

fn proposed(harness: &Harness, frozen: &Frozen) -> Action {
    let id: ActionId = harness.id();
    let origin = Origin {
        id,
        owner: harness.owner,
        session: harness.main,
        duty: frozen.content.task_version.map(|_version| harness.id()),
        run: harness.id(),
        call_id: "call".to_owned(),
        content: harness.id(),
    };
    // A test may send the same call twice; each is an errand of its own.
    Action { errand: id.to_string(), ..Action::proposed(origin, frozen, now(harness)) }
}

fn granted(harness: &Harness, action: &Action) -> Approval {
    let (until, at) = (now(harness).plus_ms(SEND_MS), now(harness));
    let request = Approval::request(harness.id(), action, PrincipalKind::User, "test", until, at);
    Approval { device: Some(harness.id()), ..request.granted(harness.user) }
}

fn attempt(harness: &Harness, action: &Action, operation_id: &str) -> Attempt {
    let send_by = now(harness).plus_ms(SEND_MS);
    Attempt {
        id: harness.id(),
        owner: action.owner,
        action: action.id,
        n: 1,
        operation_id: operation_id.to_owned(),
        dispatcher: harness.id(),
        send_by,
        answer_by: send_by.plus_ms(ANSWER_MS),
        created_at: now(harness),
        state: AttemptState::Registered,
        reason: None,
        receipt: None,
        answer: None,
        moved_at: now(harness),
    }
}
