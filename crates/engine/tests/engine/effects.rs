//! The path of an effect: words, grant, action, release, admission, attempt, outcome (ADM-01..37, DEL-26).

use std::collections::BTreeMap;

use base::{ActionId, Digest, DutyId, Limits, SessionId};
use domain::effect::{Effect, Observation, Sight, Spec};
use domain::state::{ActionState, ApprovalState, WaitState};
use engine::control::{self, Changed};
use model::ModelError;
use serde_json::json;
use store::action::Action;
use store::approval::Approval;
use store::attempt::Attempt;
use testkit::stores::TempFolder;
use testkit::world::{FakeEffect, FakeTool, Sent};

use crate::outside::Small;
use crate::support::{Talk, now, start};

/// Searches and books, in the conversation or in a duty whose grant the user names.
pub const SCRIPT: &str = r#"
name = "effects"

[[habit]]
user = ' from the user'
call = { tool = "settle_message", arguments = { stop = false } }

[[rule]]
user = 'from the user: keep a room(?<free>, at most (?<each>\S+) each, (?<total>\S+) in all, (?<times>\d+) times)?'
not_called = "propose_duty"
[[rule.call]]
tool = "propose_duty"
[rule.call.arguments]
title = "A room"
goal = "A room is booked."
conditions = [{ text = "A room is booked.", evidence = "receipt", authority = "hotel" }]
schedules = [{ when = "daily 09:00", prompt = "Look for a room." }]
grants = [{ tool = "hotel.book", times = "$times:number", currency = "HKD", each = "$each", total = "$total" }]

[[rule]]
user = 'from the user: change (?<duty>\S+) to at most (?<total>\S+) in all'
not_called = "propose_duty"
[[rule.call]]
tool = "propose_duty"
[rule.call.arguments]
duty = "$duty"
title = "A room"
goal = "A room is booked."
conditions = [{ text = "A room is booked.", evidence = "receipt", authority = "hotel" }]
schedules = [{ when = "daily 09:00", prompt = "Look for a room." }]
grants = [{ tool = "hotel.book", times = 3, currency = "HKD", total = "$total" }]

[[rule]]
about = "Somebody outside says that something moved: the duty's words, and once more than those."
user = 'schedule of duty (?<duty>\S+) '
tool = { name = "hotel.search", result = 'moved: (?<goal>[^;]*); (?<until>\S+)' }
not_called = "propose_duty"
[[rule.call]]
tool = "propose_duty"
[rule.call.arguments]
duty = "$duty"
title = "A room"
goal = "$goal"
conditions = [{ text = "A room is booked.", evidence = "receipt", authority = "hotel" }]
schedules = [{ when = "daily 09:00", prompt = "Look for a room." }]
grants = [{ tool = "hotel.book", times = 3, currency = "HKD", each = "3000.00", total = "8200.00" }]
until = "$until"

[[rule]]
user = '(Look for a room|from the user: book)'
not_called = "hotel.search"
call = [{ tool = "call_tool", arguments = { name = "hotel.search", arguments = {} } }]

[[rule]]
user = '(Look for a room|from the user: book)'
tool = { name = "hotel.search", result = 'one room, (?<quote>q-\d+)' }
not_called = "hotel.book"
call = [{ tool = "call_tool", arguments = { name = "hotel.book", arguments = { quote = "$quote", guest = "Ann" } } }]

[[rule]]
user = '(Look for a room|from the user: book)'
not_called = "hotel.book"
call = [{ tool = "call_tool", arguments = { name = "hotel.book", arguments = { quote = "q-1", guest = "Ann" } } }]
"#;

/// A room that costs HKD 2 600.00.
pub struct Room {
    pub talk: Talk,
    folder: TempFolder,
}

pub fn spec(can_look_up: bool) -> Spec {
    Spec {
        tool: "hotel.book".into(),
        effect: Effect::Paid,
        entry: Digest::of(b"entry"),
        objects: BTreeMap::from([("quote".into(), "quote".into())]),
        amount: Some("quote.total".into()),
        currency: Some("quote.currency".into()),
        recipients: Vec::new(),
        once_per: Vec::new(),
        card: vec!["quote.hotel".into(), "guest".into()],
        operation: Some("client_ref".into()),
        undo: None,
        can_look_up,
        settled_after_ms: can_look_up.then_some(1_800_000),
        idempotent_ms: None,
    }
}

impl Room {
    pub fn with(seen: &[Observation], sights: &[Sight], can_look_up: bool) -> Room {
        let room = Room::empty(SCRIPT);
        room.furnish(seen, sights, can_look_up);
        room
    }

    /// The same on the records of a folder, at a time.
    pub fn of(folder: TempFolder, at: base::Timestamp, seen: &Observation, sight: Sight) -> Room {
        let file = folder.path().join("adjutant.db");
        let talk = Talk::open(file, at, 4, SCRIPT, Limits::default());
        let room = Room { talk, folder };
        room.furnish(std::slice::from_ref(seen), &[sight], true);
        room
    }

    fn furnish(&self, seen: &[Observation], sights: &[Sight], can_look_up: bool) {
        let talk = &self.talk;
        let known = json!({"id": "q-1", "total": "2600.00", "currency": "HKD", "hotel": "Harbour"});
        talk.world.tool(
            "hotel.search",
            FakeTool {
                answers: vec!["one room, q-1".into()],
                issues: vec![("quote".into(), "q-1".into())],
                snapshots: BTreeMap::from([("q-1".into(), known)]),
                ..FakeTool::default()
            },
        );
        let spec = spec(can_look_up);
        talk.world.effect(FakeEffect { spec, seen: seen.to_vec(), sights: sights.to_vec() });
    }

    /// Where its records are.
    pub fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("adjutant.db")
    }

    /// A conversation on another script, with nothing in its world.
    pub fn empty(script: &str) -> Room {
        let folder = TempFolder::new();
        let file = folder.path().join("adjutant.db");
        let talk = Talk::open(file, start(), 3, script, Limits::default());
        Room { talk, folder }
    }

    pub fn honest() -> Room {
        let there = Sight::Found { receipt: "C-1".into(), ended: false };
        Room::with(&[Observation::Receipt("C-1".into())], &[there], true)
    }

    /// Asks in the owner's own conversation, where no grant can cover it.
    pub fn ask(&self) -> Action {
        self.talk.say("book the room");
        self.talk.turn();
        self.only()
    }

    /// Has a duty with a grant confirmed, and runs its first slot.
    pub fn duty(&self, limits: &str) -> (DutyId, SessionId) {
        self.talk.say(&format!("keep a room, at most {limits}"));
        self.talk.turn();
        self.talk.confirm();
        let duty = self.talk.read(|tx, owner| store::duty::all(tx, owner, 1)).remove(0);
        self.slot(duty.session);
        (duty.id, duty.session)
    }

    pub fn slot(&self, session: SessionId) {
        self.talk.clock.advance_ms(24 * 3_600_000);
        now(engine::timer::pass(&self.talk.cx)).unwrap();
        now(engine::router::pass(&self.talk.cx)).unwrap();
        let owner = self.talk.device.owner;
        let work = now(engine::worker::claim(&self.talk.cx, owner, session)).unwrap().unwrap();
        self.talk.run(work);
    }

    pub fn actions(&self) -> Vec<Action> {
        self.talk.read(|tx, owner| store::action::all(tx, owner, 100))
    }

    pub fn only(&self) -> Action {
        let mut actions = self.actions();
        assert_eq!(actions.len(), 1);
        actions.remove(0)
    }

    pub fn approvals(&self, action: ActionId) -> Vec<Approval> {
        self.talk.read(move |tx, _| store::approval::of_action(tx, action))
    }

    pub fn attempts(&self, action: ActionId) -> Vec<Attempt> {
        self.talk.read(move |tx, _| store::attempt::of_action(tx, action))
    }

    /// One pass of every stage of the path.
    pub fn stages(&self) {
        now(testkit::world::effect_stages(&self.talk.cx)).unwrap();
    }

    pub fn after_ms(&self, ms: u64) {
        self.talk.clock.advance_ms(ms);
        self.stages();
    }

    pub fn tap<T: Send + 'static>(
        &self,
        work: impl FnOnce(
            &engine::Context,
            &mut store::OwnerTx<'_, '_>,
            &store::device::Device,
        ) -> store::Result<T>
        + Send
        + 'static,
    ) -> T {
        let device = self.talk.device.clone();
        now(self.talk.cx.write(device.owner, move |cx, tx| work(cx, tx, &device))).unwrap()
    }

    pub fn approve(&self) -> Changed {
        let action = self.only();
        let (id, digest) = (action.id, action.digest);
        self.tap(move |_, tx, device| control::approve(tx, device, id, digest))
    }

    pub fn state(&self) -> ActionState {
        self.only().state
    }

    pub fn sent(&self) -> Vec<Sent> {
        self.talk.world.sent()
    }
}

pub fn conflict(changed: Changed) -> String {
    match changed {
        Changed::Conflict(why) => why,
        Changed::NotYours(whose) => panic!("{whose}"),
        Changed::Done => panic!("it was done"),
    }
}

#[test]
fn what_no_grant_covers_is_sent_once_after_exactly_the_shown_content_was_released() {
    let room = Room::honest();
    let action = room.ask();
    assert_eq!((action.state, action.minor), (ActionState::Proposed, Some(260_000)));
    room.stages();
    assert_eq!(room.state(), ActionState::AwaitingApproval);
    let card = room.talk.said().pop().unwrap();
    assert_eq!(
        card.1,
        "Release this? hotel.book for HKD 2 600.00 (hotel Harbour, guest Ann). No grant of yours covers \
         it. If you do nothing, nothing happens."
    );
    let id = action.id;
    let wrong = room
        .tap(move |_, tx, device| control::approve(tx, device, id, Digest::of(b"something else")));
    assert!(conflict(wrong).contains("not what was shown"));
    room.after_ms(1);
    assert_eq!(room.state(), ActionState::AwaitingApproval, "nothing by itself");

    assert_eq!(room.approve(), Changed::Done);
    room.stages();
    assert_eq!(
        (room.state(), room.sent()),
        (ActionState::Admitted, Vec::new()),
        "it can be undone"
    );
    room.after_ms(5_000);
    assert_eq!(room.state(), ActionState::Accepted, "confirmed is not in force");
    let arguments = json!({"quote": "q-1", "guest": "Ann", "client_ref": id.to_string()});
    let sent = Sent {
        tool: "hotel.book".into(),
        operation: id.to_string(),
        arguments: arguments.as_object().unwrap().clone(),
    };
    assert_eq!(room.sent(), [sent]);
    room.after_ms(2_000);
    let done = room.only();
    assert_eq!((done.state, done.receipt.as_deref()), (ActionState::Effective, Some("C-1")));
    let approvals = room.approvals(id);
    let one: Vec<_> = approvals.iter().map(|a| (a.state, a.digest, a.device)).collect();
    let device = Some(room.talk.device.id);
    assert_eq!(one, [(ApprovalState::Consumed, action.digest, device)]);
    room.after_ms(60_000);
    assert_eq!((room.sent().len(), conflict(room.approve()).contains("in force")), (1, true));

    // Whoever proposed it is woken with what came of it.
    now(engine::router::pass(&room.talk.cx)).unwrap();
    let requests = room.talk.turn();
    let told = String::from_utf8_lossy(requests.first().unwrap()).into_owned();
    assert!(told.contains("in force. Receipt: C-1."), "{told}");
    let wait = room.talk.read(move |tx, _| {
        let id = wait_of(tx)?;
        store::wait::get(tx, id)
    });
    assert_eq!((wait.kind.as_str(), wait.state), ("action_settled", WaitState::Satisfied));
}

#[test]
fn an_action_explains_itself_from_words_to_evidence() {
    let room = Room::honest();
    let action = room.ask();
    room.stages();
    room.approve();
    room.stages();
    room.after_ms(5_000);
    room.after_ms(2_000);
    let id = action.id;
    let told = room.talk.read(move |tx, owner| engine::explain::collect(tx, owner, id));
    let audit: Vec<_> =
        told.commits.iter().map(|commit| (commit.verb.as_str(), commit.noun.as_str())).collect();
    assert_eq!(
        audit,
        [
            ("propose", "action"),
            ("requested", "approval"),
            ("awaiting_approval", "action"),
            ("granted", "approval"),
            ("authorized", "action"),
            ("admitted", "action"),
            ("consumed", "approval"),
            ("attempt", "attempt"),
            ("dispatched", "action"),
            ("accepted", "attempt"),
            ("accepted", "action"),
            ("effective", "action"),
        ]
    );
    let run = action.run;
    assert_eq!(
        told.words,
        [
            "Taken in Monday 2027-03-01 08:00 (user message): book the room".to_owned(),
            format!(
                "Wanted Monday 2027-03-01 08:00 by effects ({}) in step 4 of run {run}: hotel.book for HKD \
                 2 600.00 (hotel Harbour, guest Ann).",
                agent::HARNESS
            ),
            "Release by the user is consumed since Monday 2027-03-01 08:00 (action-2 en).".into(),
            format!("Sent Monday 2027-03-01 08:00 as {id}: accepted."),
            "Shown by the outside's word: C-1.".into(),
            "Now in force.".into(),
        ]
    );
    let verified = room.talk.read(|tx, owner| {
        store::change::verify(tx, owner, store::change::Verified::default(), 1_000)
    });
    let (owner, head) = (room.talk.device.owner, verified.unwrap());
    let of = room.talk.read(move |tx, _| store::owner::get(tx, owner));
    assert_eq!((head.n, head.hash), (of.audit_seq, of.audit_head));
}

fn wait_of(tx: &mut store::Tx<'_>) -> store::Result<base::WaitId> {
    let owner = store::owner::all(tx)?.remove(0);
    let events = store::event::recent(tx, owner.id, (owner.created_at.plus_ms(1 << 40), None), 50)?;
    let of =
        events.into_iter().find(|e| e.kind == domain::event::EventKind::ActionSettled).unwrap();
    Ok(store::wait::met_by(tx, of.id)?.remove(0).id)
}

#[test]
fn inside_a_grant_the_policy_releases_it_once_the_reviewer_finds_nothing_against_it() {
    let mut room = Room::honest();
    room.talk.cx.reviewer = Small::says(&[Ok(r#"{"verdict":"allow","why":"As delegated"}"#)]);
    let (duty, _) = room.duty("3000.00 each, 8200.00 in all, 3 times");
    room.stages();
    room.after_ms(5_000);
    room.after_ms(2_000);
    let action = room.only();
    assert_eq!((action.state, action.duty), (ActionState::Effective, Some(duty)));
    let approvals = room.approvals(action.id);
    let said: Vec<_> =
        approvals.iter().map(|a| (a.template.as_str(), a.device, a.reason.as_deref())).collect();
    assert_eq!(said, [("policy-1: inside a grant", None, Some("reviewer small: As delegated"))]);
    let grant = room.talk.read(move |tx, _| store::grant::active(tx, duty)).remove(0);
    let used = (grant.reserved_count, grant.reserved_minor, grant.spent_count, grant.spent_minor);
    assert_eq!(used, (0, 0, 1, 260_000));
    assert!(room.talk.said().iter().all(|(_, text)| !text.contains("Release")), "nobody was asked");
}

#[test]
fn the_reviewers_doubt_failure_or_silence_asks_the_person() {
    let said = [
        (Ok(r#"{"verdict":"ask","why":"Another city"}"#), "asks you to look: Another city."),
        (Ok("certainly!"), "asks you to look: its answer could not be read."),
        (Err(ModelError::Refused), "asks you to look: it gave no answer"),
    ];
    for (answer, wanted) in said {
        let mut room = Room::honest();
        room.talk.cx.reviewer = Small::says(&[answer]);
        room.duty("3000.00 each, 8200.00 in all, 3 times");
        room.stages();
        room.after_ms(60_000);
        assert_eq!((room.state(), room.sent().len()), (ActionState::AwaitingApproval, 0));
        let card = room.talk.said().pop().unwrap().1;
        assert!(card.contains(wanted), "{card}");
    }
}

#[test]
fn beyond_the_grant_each_in_all_or_too_often_the_person_is_asked() {
    for (limits, wanted) in [
        (
            "2599.99 each, 8200.00 in all, 3 times",
            "HKD 2 600.00 is more than the grant allows at once",
        ),
        (
            "2000.00 each, 2000.00 in all, 3 times",
            "HKD 2 600.00 is more than the grant allows at once",
        ),
    ] {
        let room = Room::honest();
        room.duty(limits);
        room.after_ms(1);
        assert_eq!((room.state(), room.sent().len()), (ActionState::AwaitingApproval, 0));
        let card = room.talk.said().pop().unwrap().1;
        assert!(card.contains(wanted), "{card}");
    }
    // Two that fit one by one do not fit together: what is sent or unknown counts as spent (ADM-05).
    let mut room = Room::with(&[Observation::Lost("no answer".into())], &[Sight::Absent], true);
    let allow = Ok(r#"{"verdict":"allow","why":""}"#);
    room.talk.cx.reviewer = Small::says(&[allow.clone(), allow]);
    let (_, session) = room.duty("3000.00 each, 5000.00 in all, 3 times");
    room.stages();
    room.after_ms(5_000);
    assert_eq!(room.state(), ActionState::Unknown);
    room.slot(session);
    room.stages();
    let states: Vec<_> = room.actions().into_iter().map(|a| (a.state, a.reason)).collect();
    let why = "No grant of yours covers it: HKD 2 600.00 is more than the HKD 2 400.00 that the grant has \
               left.";
    assert_eq!(states[0], (ActionState::AwaitingApproval, Some(why.into())));
}

#[test]
fn a_stop_wins_from_a_definite_instant() {
    let pause = |room: &Room| {
        let paused = room.tap(|cx, tx, device| control::pause(cx, tx, device, None));
        assert_eq!(paused, Changed::Done);
    };
    let lift = |room: &Room| {
        let pause = room.talk.read(store::hold::pauses).remove(0).id;
        assert_eq!(room.tap(move |_, tx, device| control::lift(tx, device, pause)), Changed::Done);
    };
    // Before the admission commit: refused, kept as it is, and admitted anew once it is lifted.
    let room = Room::honest();
    room.ask();
    room.stages();
    assert_eq!(room.approve(), Changed::Done);
    pause(&room);
    room.after_ms(60_000);
    assert_eq!(room.state(), ActionState::Authorized);
    assert_eq!(room.only().reason.as_deref(), Some("it is paused; the person lifts that"));
    lift(&room);
    room.stages();
    assert_eq!(room.state(), ActionState::Admitted);
    // Between the two commits: cancelled for good.
    pause(&room);
    room.after_ms(5_000);
    assert_eq!((room.state(), room.sent().len()), (ActionState::Cancelled, 0));
    lift(&room);
    room.after_ms(60_000);
    assert_eq!((room.state(), room.sent().len()), (ActionState::Cancelled, 0));

    // A tap made while it is paused must be repeated (G-08).
    let room = Room::honest();
    room.ask();
    room.stages();
    pause(&room);
    assert!(conflict(room.approve()).contains("Lift the pause, then release it again"));
    lift(&room);
    room.after_ms(60_000);
    assert_eq!(room.state(), ActionState::AwaitingApproval);
    assert_eq!(room.approve(), Changed::Done);

    // A hold sends it back, and once released it goes on by itself, through full admission.
    room.stages();
    assert_eq!(room.state(), ActionState::Admitted);
    room.talk.say("how is it going?");
    room.after_ms(5_000);
    assert_eq!((room.state(), room.sent().len()), (ActionState::Authorized, 0));
    let why = "a message of the person holds everything back until it is settled";
    assert_eq!(room.only().reason.as_deref(), Some(why));
    room.talk.turn();
    room.stages();
    assert_eq!(room.state(), ActionState::Admitted);

    // The operator's stop cancels what was admitted.
    room.talk.system_stop(true);
    room.after_ms(5_000);
    assert_eq!((room.state(), room.sent().len()), (ActionState::Cancelled, 0));
}

#[test]
fn a_request_that_nobody_decides_expires_and_says_so() {
    let room = Room::honest();
    let id = room.ask().id;
    room.stages();
    room.after_ms(86_400_000);
    assert_eq!(room.state(), ActionState::Expired);
    assert_eq!(room.approvals(id)[0].state, ApprovalState::Expired);
    assert!(conflict(room.approve()).contains("expired, nothing happened"));
    let said = room.talk.said().pop().unwrap().1;
    assert!(said.starts_with("The time to decide has passed"), "{said}");
}

#[test]
fn the_person_refuses_takes_back_and_stops() {
    let room = Room::honest();
    let id = room.ask().id;
    room.stages();
    room.talk.clock.advance_ms(9_000);
    let denied = room.tap(move |cx, tx, device| {
        control::deny(cx, tx, device, id, Some(" too\u{202e} dear ".into()))
    });
    assert_eq!((denied, room.state()), (Changed::Done, ActionState::Denied));
    assert_eq!(room.approvals(id)[0].reason.as_deref(), Some("too\\u{202e} dear"));
    let log = room.talk.read(store::approval::decisions);
    let one = store::approval::Decisions {
        tool: "hotel.book".into(),
        shown: 1,
        approved: 0,
        edited: 0,
        refused: 1,
        expired: 0,
        open: 0,
        median_seconds: Some(9),
    };
    assert_eq!(log, [one]);

    let room = Room::honest();
    let id = room.ask().id;
    room.stages();
    room.approve();
    room.stages();
    let back = room.tap(move |cx, tx, device| control::withdraw(cx, tx, device, id));
    room.after_ms(60_000);
    assert_eq!((back, room.state()), (Changed::Done, ActionState::Cancelled));
    assert_eq!(room.sent().len(), 0);

    let mut room = Room::honest();
    room.talk.cx.reviewer = Small::says(&[Ok(r#"{"verdict":"allow","why":""}"#)]);
    let (duty, _) = room.duty("3000.00 each, 8200.00 in all, 3 times");
    room.stages();
    let stopped = room.tap(move |cx, tx, device| control::stop(cx, tx, device, duty));
    room.after_ms(60_000);
    assert_eq!((stopped, room.state()), (Changed::Done, ActionState::Cancelled));
    assert_eq!(room.sent().len(), 0);
}

#[test]
fn only_an_issued_quote_can_be_booked() {
    let room = Room::honest();
    room.talk.world.tool("hotel.search", FakeTool::default());
    room.talk.say("book the room");
    room.talk.turn();
    assert_eq!(room.actions(), []);
}

#[test]
fn what_is_due_of_an_action_and_who_decides_on_it_is_still_to_happen() {
    use engine::rest::{Rest, look};
    let room = Room::honest();
    let rest = || {
        while now(engine::delivery::pass(&room.talk.cx)).unwrap() {}
        now(look(&room.talk.cx)).unwrap()
    };
    assert_eq!(rest(), Rest::Quiet);
    room.ask();
    assert_eq!(rest(), Rest::Busy, "it is to be reviewed");
    room.stages();
    assert_eq!(rest(), Rest::Person, "its card waits");
    room.approve();
    room.stages();
    let undo = room.only().not_before.unwrap();
    assert_eq!(rest(), Rest::Until(undo), "it can be undone until then");
}
