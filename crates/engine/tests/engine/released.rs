//! What a person releases call by call: tools that no manifest describes (R6), reads that reveal (P5), and a
//! refused key that a sending shows (TOOL-08).

use std::collections::BTreeMap;

use base::Digest;
use domain::effect::{Effect, Observation, Sight, Spec, Tier};
use domain::state::{ActionState, AttemptState};
use engine::control::{self, Changed, Statement};
use serde_json::json;
use testkit::world::{FakeEffect, FakeTool};

use crate::effects::{Room, conflict};
use crate::support::now;

const SCRIPT: &str = r#"
name = "released"

[[habit]]
user = ' from the user'
call = { tool = "settle_message", arguments = { stop = false } }

[[rule]]
user = 'from the user: note (?<text>[^\n]+)'
not_called = "hotel.leave_note"
call = [{ tool = "call_tool", arguments = { name = "hotel.leave_note", arguments = { text = "$text" } } }]

[[rule]]
user = 'from the user: list and ask (?<words>\S+)'
not_called = "shop.list"
call = [{ tool = "call_tool", arguments = { name = "shop.list", arguments = {} } }]

[[rule]]
user = 'from the user: (list and )?ask (?<words>[^\n]+)'
not_called = "shop.ask"
call = [{ tool = "call_tool", arguments = { name = "shop.ask", arguments = { words = "$words" } } }]

[[rule]]
user = 'from the user: grant notes'
not_called = "propose_duty"
[[rule.call]]
tool = "propose_duty"
[rule.call.arguments]
title = "Notes"
goal = "Notes are left."
conditions = [{ text = "Left.", evidence = "receipt", authority = "hotel" }]
schedules = [{ when = "daily 09:00", prompt = "Leave one." }]
grants = [{ tool = "hotel.leave_note", times = 3 }]
"#;

/// What stands for a tool without an entry.
fn note(entry: &str) -> Spec {
    Spec {
        tool: "hotel.leave_note".into(),
        effect: Effect::Human,
        entry: Digest::of(entry.as_bytes()),
        objects: BTreeMap::new(),
        amount: None,
        currency: None,
        recipients: Vec::new(),
        once_per: Vec::new(),
        card: Vec::new(),
        operation: None,
        undo: None,
        can_look_up: false,
        settled_after_ms: None,
        idempotent_ms: None,
    }
}

fn desk(seen: Observation) -> Room {
    let room = Room::empty(SCRIPT);
    // A way to look would find it; without one nobody looks.
    let sights = vec![Sight::Found { receipt: "N-1".into(), ended: false }];
    room.talk.world.effect(FakeEffect { spec: note("schema"), seen: vec![seen], sights });
    room
}

fn said(room: &Room) -> String {
    room.talk.said().pop().unwrap().1
}

/// What the lane reads when it is woken.
fn told(room: &Room) -> String {
    now(engine::router::pass(&room.talk.cx)).unwrap();
    String::from_utf8_lossy(room.talk.turn().first().unwrap()).into_owned()
}

#[test]
fn a_tool_that_no_manifest_describes_is_released_one_by_one_and_the_person_says_what_came_of_it() {
    let room = desk(Observation::Other("it answered what proves nothing by itself: ok".into()));
    let long = "x".repeat(1_000);
    room.talk.say(&format!("note {long}"));
    room.talk.turn();
    room.stages();
    let action = room.only();
    assert_eq!(
        (action.state, action.tier, action.effect),
        (ActionState::AwaitingApproval, Some(Tier::R6), Effect::Human)
    );
    let content = room.talk.read(move |tx, _| store::event::body(tx, action.content)).unwrap();
    let content = domain::effect::Content::read(&content).unwrap();
    let card: Vec<_> =
        content.card.iter().map(|line| (line.label.as_str(), line.value.as_str())).collect();
    let what = "no manifest describes it; what came of it cannot be looked up, you say it";
    assert_eq!(card, [("what it does", what), ("text", long.as_str())]);
    let asked = format!(
        "Release this? hotel.leave_note (what it does {what}, text {}…). No grant of yours covers it. If \
         you do nothing, nothing happens.",
        "x".repeat(400)
    );
    assert_eq!((said(&room), room.sent().len()), (asked, 0));

    assert_eq!(room.approve(), Changed::Done);
    room.stages();
    assert_eq!((room.state(), room.sent().len()), (ActionState::Unknown, 1));
    let arguments = json!({ "text": long });
    assert_eq!(room.sent()[0].arguments, *arguments.as_object().unwrap(), "no id of ours travels");
    room.after_ms(2_000);
    let card = said(&room);
    assert!(card.starts_with("Did this happen? hotel.leave_note"), "{card}");
    let told = told(&room);
    assert!(told.contains("it answered what proves nothing by itself: ok"), "{told}");

    // The same errand waits until the person has said it, and nothing is ever sent again.
    room.talk.say("note again");
    room.talk.turn();
    room.stages();
    let second = room.actions().into_iter().find(|other| other.id != action.id).unwrap();
    let (id, digest) = (second.id, second.digest);
    room.tap(move |_, tx, device| control::approve(tx, device, id, digest));
    for _ in 0..30 {
        room.after_ms(3_600_000);
    }
    assert_eq!(room.sent().len(), 1);
    let id = action.id;
    let stated =
        room.tap(move |cx, tx, device| control::state(cx, tx, device, id, Statement::Happened));
    assert_eq!(stated, Changed::Done);
    let done = room.actions().into_iter().find(|other| other.id == id).unwrap();
    assert_eq!((done.state, done.authority.as_deref()), (ActionState::Accepted, Some("user")));
}

#[test]
fn a_crash_after_its_attempt_goes_straight_to_the_person() {
    let room = desk(Observation::Receipt("N-1".into()));
    room.talk.say("note late");
    room.talk.turn();
    room.stages();
    room.approve();
    now(engine::admission::pass(&room.talk.cx)).unwrap();
    let (owner, id) = (room.talk.device.owner, room.only().id);
    let permit = now(engine::dispatcher::claim(&room.talk.cx, owner, id)).unwrap();
    drop(permit.unwrap());
    room.after_ms(60_000);
    room.after_ms(2_000);
    let why = "no answer is on record, and there is no way to look it up";
    let attempts: Vec<_> = room.attempts(id).into_iter().map(|a| (a.state, a.reason)).collect();
    assert_eq!(attempts, [(AttemptState::Unknown, Some(why.to_owned()))]);
    assert_eq!((room.state(), room.sent()), (ActionState::Unknown, Vec::new()));
    let card = said(&room);
    assert!(card.starts_with("Did this happen? hotel.leave_note"), "{card}");
}

#[test]
fn another_schema_or_an_entry_voids_the_release_and_no_grant_is_given() {
    let room = desk(Observation::Receipt("N-1".into()));
    room.talk.say("note late");
    room.talk.turn();
    room.stages();
    room.approve();
    let changed = FakeEffect { spec: note("another"), seen: Vec::new(), sights: Vec::new() };
    room.talk.world.effect(changed);
    room.after_ms(1);
    let action = room.only();
    let why = "the connector's manifest says something else of this tool now; propose it again";
    assert_eq!(
        (action.state, action.reason.as_deref(), room.sent()),
        (ActionState::Withdrawn, Some(why), Vec::new())
    );
    assert!(conflict(room.approve()).contains("withdrawn"));

    room.talk.say("grant notes");
    room.talk.turn();
    assert_eq!(room.talk.read(|tx, owner| store::proposal::all(tx, owner, 9)), []);
}

/// A shop whose questions reveal what is asked.
fn shop(answers: &[&str]) -> Room {
    let room = Room::empty(SCRIPT);
    let answers = answers.iter().map(|answer| (*answer).to_owned()).collect();
    let ask = FakeTool { reveals: vec!["words".into()], answers, ..FakeTool::default() };
    room.talk.world.tool("shop.ask", ask);
    let issues = vec![("item".into(), "i-1".into())];
    room.talk.world.tool("shop.list", FakeTool { issues, ..FakeTool::default() });
    room
}

#[test]
fn a_read_that_reveals_leaves_once_it_is_released_and_its_answer_reaches_the_lane() {
    let room = shop(&["It costs 5."]);
    room.talk.say("ask where Ann lives");
    room.talk.turn();
    room.stages();
    let action = room.only();
    assert_eq!(
        (action.state, action.tier, action.effect),
        (ActionState::AwaitingApproval, Some(Tier::R4), Effect::Outward)
    );
    assert!(said(&room).starts_with("Release this? shop.ask (words where Ann lives)."));
    room.after_ms(60_000);
    assert_eq!((room.talk.world.calls(), room.sent()), (Vec::new(), Vec::new()));

    assert_eq!(room.approve(), Changed::Done);
    room.stages();
    assert_eq!(room.sent(), [], "it can be taken back");
    room.after_ms(10_000);
    let action = room.only();
    let receipt = format!("answer {}", Digest::of(b"It costs 5."));
    assert_eq!(
        (action.state, action.receipt, action.authority.as_deref()),
        (ActionState::Effective, Some(receipt), Some("outside"))
    );
    assert_eq!((room.sent().len(), room.talk.world.calls()), (1, Vec::new()));
    let told = told(&room);
    assert!(told.contains("it was asked, and this is the answer.\\n  > It costs 5."), "{told}");
    room.after_ms(3_600_000);
    assert_eq!(room.sent().len(), 1);
}

#[test]
fn an_issued_id_reveals_nothing_and_a_lost_answer_is_the_persons() {
    let room = shop(&["It costs 5."]);
    room.talk.say("list and ask i-1");
    room.talk.turn();
    let calls: Vec<_> = room.talk.world.calls().into_iter().map(|(tool, _)| tool).collect();
    assert_eq!((calls, room.actions()), (vec!["shop.list".into(), "shop.ask".into()], Vec::new()));

    let room = shop(&[]);
    room.talk.say("ask where Ann lives");
    room.talk.turn();
    room.stages();
    room.approve();
    room.stages();
    room.after_ms(10_000);
    assert_eq!((room.state(), room.sent().len()), (ActionState::Unknown, 1));
    room.after_ms(2_000);
    assert!(said(&room).starts_with("Did this happen? shop.ask"), "{}", said(&room));
    for _ in 0..3 {
        room.after_ms(3_600_000);
    }
    assert_eq!((room.state(), room.sent().len()), (ActionState::Unknown, 1));
}

#[test]
fn a_sending_that_finds_the_key_refused_marks_its_connector_until_one_is_answered() {
    let faults = |room: &Room| {
        let open = room.talk.read(store::fault::all_open);
        open.into_iter().map(|fault| fault.key).filter(|key| key.starts_with("connector:")).count()
    };
    let room = desk(Observation::NotSent("the key is refused".into()));
    room.talk.world.refuses_key(Some("connector `hotel` refuses the key"));
    room.talk.say("note late");
    room.talk.turn();
    room.stages();
    room.approve();
    room.stages();
    assert_eq!((room.state(), faults(&room)), (ActionState::Blocked, 1));
    assert!(said(&room).contains("connector `hotel` refuses the key"), "{}", said(&room));

    room.talk.world.refuses_key(None);
    let seen = vec![Observation::Receipt("N-1".into())];
    room.talk.world.effect(FakeEffect { spec: note("schema"), seen, sights: Vec::new() });
    for _ in 0..5 {
        room.after_ms(10_000);
    }
    assert_eq!((room.state(), faults(&room)), (ActionState::Accepted, 0));
}
