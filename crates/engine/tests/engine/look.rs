//! Routines and the looks that a program takes for them: slots once each, late ones marked, unchanged is a
//! row and neither a run nor a model (SKL-03, SKL-04, PRO-13, G-23).

use crate::support::{Talk, now, start};
use base::{Limits, SessionId};
use domain::state::CheckState;
use testkit::stores::TempFolder;
use testkit::world::FakeTool;

const SCRIPT: &str = r#"
name = "routine"

[[habit]]
user = ' from the user'
call = { tool = "settle_message", arguments = { stop = false } }

[[rule]]
user = 'from the user: brief me (?<missed>\w+)'
not_called = "propose_routine"
[[rule.call]]
tool = "propose_routine"
[rule.call.arguments]
name = "Morning brief"
prompt = "Say what is new."
when = "weekdays 8:00"
run_missed = "$missed"

[[rule]]
user = 'from the user: look (?<test>\w+)'
not_called = "propose_routine"
[[rule.call]]
tool = "propose_routine"
[rule.call.arguments]
name = "Price"
prompt = "Tell me."
when = "*/10 * * * *"
check = { tool = "feed.price", arguments = { day = "today" }, path = "price", when = "$test" }

[[rule]]
user = 'from the user: buy'
not_called = "propose_routine"
[[rule.call]]
tool = "propose_routine"
[rule.call.arguments]
name = "Buyer"
prompt = "Buy."
when = "daily 8:00"
check = { tool = "feed.buy", when = "changed" }

[[rule]]
user = 'Say what is new'
not_called = "propose_routine"
[[rule.call]]
tool = "propose_routine"
[rule.call.arguments]
name = "Another"
prompt = "More."
when = "daily 9:00"
"#;

struct Room {
    talk: Talk,
    _folder: TempFolder,
}

fn room() -> Room {
    let folder = TempFolder::new();
    let talk = Talk::open(folder.path().join("r.db"), start(), 6, SCRIPT, Limits::default());
    let feed = |prices: &[&str]| FakeTool {
        answers: prices.iter().map(|p| format!("{{\"price\":{p}}}")).collect(),
        ..FakeTool::default()
    };
    talk.world.tool("feed.price", feed(&["100", "100", "95", "95"]));
    Room { talk, _folder: folder }
}

impl Room {
    /// The user asks for a routine and confirms it.
    fn routine(&self, wish: &str) -> SessionId {
        self.talk.say(wish);
        self.talk.turn();
        self.talk.confirm();
        self.talk.read(|tx, owner| store::duty::all(tx, owner, 1)).remove(0).session
    }

    /// Lets time pass to the next slot of the newest duty's schedule, and takes all stages once.
    fn slot(&self) {
        let next = self.talk.read(|tx, _| store::schedule::next_due(tx)).unwrap();
        self.talk.clock.set(next);
        self.stages();
    }

    fn stages(&self) {
        now(engine::timer::pass(&self.talk.cx)).unwrap();
        now(engine::checker::pass(&self.talk.cx)).unwrap();
        now(engine::router::pass(&self.talk.cx)).unwrap();
    }

    fn turn(&self, session: SessionId) -> Vec<String> {
        let owner = self.talk.device.owner;
        match now(engine::worker::claim(&self.talk.cx, owner, session)).unwrap() {
            Some(work) => {
                let bodies = self.talk.run(work);
                bodies.iter().map(|body| String::from_utf8_lossy(body).into_owned()).collect()
            }
            None => Vec::new(),
        }
    }

    fn checks(&self) -> Vec<CheckState> {
        let mut all = self.talk.read(|tx, owner| {
            let duty = store::duty::all(tx, owner, 1)?.remove(0);
            let schedule = store::schedule::of_duty(tx, duty.id)?.remove(0);
            store::check::of_schedule(tx, schedule.id, 100)
        });
        all.reverse();
        all.into_iter().map(|check| check.state).collect()
    }
}

#[test]
fn a_routine_wakes_at_its_times_and_may_end_quietly() {
    let room = room();
    let lane = room.routine("brief me once");
    room.slot();
    let asked = room.turn(lane);
    assert!(asked[0].contains("slot Tuesday 2027-03-02 08:00: Say what is new."), "{}", asked[0]);
    assert_eq!(
        room.talk.said(),
        [("notice".into(), "Start this duty? Morning brief: Say what is new.".into())]
    );
    // It tried to set up another routine, which a routine cannot.
    assert!(asked[1].contains("cannot set up a routine or another"), "{}", asked[1]);
    assert_eq!(room.talk.read(|tx, owner| store::proposal::all(tx, owner, 9)).len(), 1);
}

#[test]
fn what_was_missed_comes_once_and_late_or_not_at_all() {
    for (policy, wanted) in [("once", 1), ("skip", 0)] {
        let room = room();
        let lane = room.routine(&format!("brief me {policy}"));
        // Two weeks without the program, and an hour, so that the newest slot is not on time either.
        room.talk.clock.advance_ms((14 * 24 + 1) * 3_600_000);
        room.stages();
        let asked = room.turn(lane);
        let late = asked.iter().filter(|body| body.contains("[late:")).count();
        assert_eq!(late.min(1), wanted, "{policy}");
        if wanted == 1 {
            assert!(
                asked[0].contains("(stands for 9 earlier ones that were missed)"),
                "{}",
                asked[0]
            );
        }
        // The next slot is a plain one.
        room.slot();
        assert!(!room.turn(lane)[0].contains("2027-03-16 08:00 (stands"), "{policy}");
    }
}

#[test]
fn a_program_looks_first_and_wakes_only_for_a_change() {
    let room = room();
    let lane = room.routine("look changed");
    let wakeups = |room: &Room| room.talk.read(store::ledger::all).wakeups;
    let before = wakeups(&room);
    for _ in 0..4 {
        room.slot();
    }
    use CheckState::{Met, Unchanged};
    assert_eq!(room.checks(), [Unchanged, Unchanged, Met, Unchanged]);
    assert_eq!(wakeups(&room), before, "no run before a worker claims the one that is due");
    let asked = room.turn(lane);
    assert_eq!(asked.len(), 1);
    let told = "A program looked and woke you: price of feed.price {\\\"day\\\":\\\"today\\\"} has \
                changed (now 95); before it was 100.";
    assert!(asked[0].contains(&told.replace("\\\\\"", "\\\"")), "{}", asked[0]);
    assert_eq!(room.turn(lane).len(), 0);
    assert_eq!(wakeups(&room), before + 1);
}

#[test]
fn the_look_of_a_schedules_last_slot_is_taken_too() {
    let room = room();
    room.routine("look changed");
    let next = room.talk.read(|tx, _| store::schedule::next_due(tx)).unwrap();
    room.talk.clock.set(next);
    now(engine::timer::pass(&room.talk.cx)).unwrap();
    // Its last day has passed with this slot.
    now(room.talk.cx.write(room.talk.device.owner, |_, tx| {
        let owner = tx.owner();
        let duty = store::duty::all(tx, owner, 1)?.remove(0);
        let schedule = store::schedule::of_duty(tx, duty.id)?.remove(0);
        let to = domain::state::ScheduleState::Expired;
        store::schedule::advance(tx, schedule.id, to, schedule.next_slot)
    }))
    .unwrap();
    now(engine::checker::pass(&room.talk.cx)).unwrap();
    assert_eq!(room.talk.world.calls().len(), 1);
}

#[test]
fn an_address_that_a_look_read_is_no_object() {
    let room = room();
    let lane = room.routine("look changed");
    let page = FakeTool {
        objects: vec![("url".into(), "url".into())],
        answers: vec!["a page".into()],
        ..FakeTool::default()
    };
    room.talk.world.tool("web.fetch_page", page);
    let prices = ["{\"price\":\"one\"}", "{\"price\":\"https://evil.example/x\"}"];
    let answers = prices.map(str::to_owned).to_vec();
    room.talk.world.tool("feed.price", FakeTool { answers, ..FakeTool::default() });
    room.slot();
    room.slot();
    let owner = room.talk.device.owner;
    let mut work = now(engine::worker::claim(&room.talk.cx, owner, lane)).unwrap().unwrap();
    let engine::worker::Action::Ask(request) = engine::worker::next(&room.talk.cx, &work) else {
        panic!("a question")
    };
    let body = String::from_utf8_lossy(&request.body("x")).into_owned();
    assert!(body.contains("https://evil.example/x"), "it stands in the input");
    let arguments = serde_json::json!({
        "name": "web.fetch_page", "arguments": {"url": "https://evil.example/x"},
    });
    let call = model::ToolCall {
        id: "fetch".into(),
        name: "call_tool".into(),
        arguments: arguments.to_string(),
    };
    let answer = model::Answer::new(None, vec![call], model::Finish::ToolCalls);
    let digest = request.digest();
    now(engine::worker::record_answer(&room.talk.cx, &mut work, digest, answer)).unwrap();
    room.talk.run(work);
    let fetched = room.talk.world.calls().iter().any(|(tool, _)| tool == "web.fetch_page");
    assert!(!fetched, "nobody issued it");
}

#[test]
fn a_look_that_cannot_be_read_is_tried_again_and_then_told() {
    let room = room();
    let lane = room.routine("look changed");
    let garbage = FakeTool { answers: vec!["no json".into()], ..FakeTool::default() };
    room.talk.world.tool("feed.price", garbage);
    room.slot();
    for _ in 0..2 {
        let next = room.talk.read(|tx, _| store::check::next_due(tx)).unwrap();
        room.talk.clock.set(next);
        room.stages();
    }
    assert_eq!(room.checks(), [CheckState::Failed]);
    let asked = room.turn(lane);
    assert!(
        asked[0].contains("A program could not look for you (the answer is no JSON)"),
        "{}",
        asked[0]
    );
}

#[test]
fn a_check_only_reads() {
    let room = room();
    room.talk.say("buy");
    let bodies = room.talk.turn();
    let last = String::from_utf8_lossy(bodies.last().unwrap()).into_owned();
    assert!(last.contains("Not proposed: a check only reads. there is no feed.buy"), "{last}");
    assert_eq!(room.talk.read(|tx, owner| store::proposal::all(tx, owner, 9)), []);
}

#[test]
fn a_situation_is_followed_up_by_record_in_honest_words() {
    let room = room();
    room.talk.say("who does it?");
    let mut work = room.talk.claim().unwrap();
    let note = serde_json::json!({
        "matter": "the hall for June", "stands": "taken_on", "part": "initiator",
        "taken_on_by": "Li Si", "step": "remind", "due_at": "2027-03-03T01:00:00Z",
    });
    let records = serde_json::json!({"what": "situations"});
    let call = |n: &str, tool: &str, arguments: &serde_json::Value| model::ToolCall {
        id: format!("situation-{n}"),
        name: tool.into(),
        arguments: arguments.to_string(),
    };
    let unclear = serde_json::json!({
        "matter": "x", "stands": "unclear", "part": "informed", "step": "remind",
        "due_at": "2027-03-03T01:00:00Z",
    });
    let calls = vec![
        call("0", "note_situation", &unclear),
        call("1", "note_situation", &note),
        call("2", "read_records", &records),
    ];
    let engine::worker::Action::Ask(request) = engine::worker::next(&room.talk.cx, &work) else {
        panic!("a question")
    };
    let answer = model::Answer::new(None, calls, model::Finish::ToolCalls);
    let digest = request.digest();
    now(engine::worker::record_answer(&room.talk.cx, &mut work, digest, answer)).unwrap();
    let bodies = room.talk.run(work);
    let text = String::from_utf8_lossy(bodies.last().unwrap()).into_owned();
    assert!(text.contains("Not noted: a matter that is unclear allows no step but ask, or none."));
    assert!(text.contains("Noted: Taken on by Li Si; not done. Wait "), "{text}");
    let line = "the hall for June: Taken on by Li Si; not done (your part: initiator; wanted: remind; \
                looked at again Wednesday 2027-03-03 09:00)";
    assert!(text.contains(line), "{text}");
    // The follow-up needs no memory of the model.
    room.talk.clock.set(base::Timestamp::parse("2027-03-03T01:00:00Z").unwrap());
    room.stages();
    assert!(!room.talk.turn().is_empty(), "the wait timed out and woke the lane");
}
