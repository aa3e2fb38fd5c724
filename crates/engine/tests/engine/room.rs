//! The room of a request: however much comes at once, all of it is read by the model, or ends as a failure
//! that the user sees (P1, QUE-06, DUR-08, CTX-14).

use crate::outside::found;
use crate::support::{Talk, now, start};
use base::{Limits, SourceId};
use domain::event::Dial;
use domain::state::{RunState, WorkItemState};
use engine::control::{self, NewSource};
use engine::intake::{self, Receipt};
use engine::worker;
use store::source::SourceKind;
use testkit::stores::TempFolder;

fn script(context_tokens: u32) -> String {
    format!("name = \"room\"\ncontext_tokens = {context_tokens}\n")
}

fn open(folder: &TempFolder, context_tokens: u32, limits: Limits) -> Talk {
    Talk::open(folder.path().join("room.db"), start(), 3, &script(context_tokens), limits)
}

/// A source of which every event is looked at by the conversation.
fn hub(talk: &Talk) -> SourceId {
    let (id, device): (SourceId, _) = (talk.cx.id(), talk.device.clone());
    now(talk.cx.write(device.owner, move |_, tx| {
        let wish = control::Settings { dial: Some(Dial::Auto), ..Default::default() };
        control::settings(tx, &device, &wish)?;
        let new = NewSource {
            kind: SourceKind::Webhook,
            name: "hub".into(),
            config: String::new(),
            every_ms: None,
            expect_ms: None,
        };
        control::add_source(tx, &device, id, new)
    }))
    .unwrap();
    id
}

fn deliver(talk: &Talk, source: SourceId, id: &str, text: &str) -> base::EventId {
    let source = talk.read(move |tx, _| store::source::get(tx, source));
    let came = now(intake::outside(&talk.cx, &source, found(id, None, None, text))).unwrap();
    let Some(Receipt::New { event, .. }) = came else { panic!("it is new") };
    event
}

/// Runs the conversation until nothing waits in it; gives every request that the model was sent.
fn all_turns(talk: &Talk) -> Vec<String> {
    let mut asked = Vec::new();
    for _ in 0..500 {
        talk.clock.advance_ms(3_000);
        let Some(work) = talk.claim() else { return asked };
        asked.extend(talk.run(work).into_iter().map(|body| String::from_utf8(body).unwrap()));
    }
    panic!("it does not come to an end")
}

fn runs(talk: &Talk) -> Vec<(RunState, Option<String>)> {
    let main = talk.main;
    let mut runs = talk.read(move |tx, _| store::run::recent(tx, main, 1_000));
    runs.reverse();
    runs.into_iter().map(|run| (run.state, run.reason)).collect()
}

fn state(talk: &Talk, event: base::EventId) -> WorkItemState {
    talk.read(move |tx, _| store::work_item::of_event(tx, event)).unwrap().state
}

#[test]
fn two_hundred_events_are_all_in_some_request_however_small_the_context() {
    for context_tokens in [16_000, 32_768, 128_000] {
        let folder = TempFolder::new();
        let talk = open(&folder, context_tokens, Limits::default());
        let hub = hub(&talk);
        let filler = "{\"a\": \"看 1\", ".repeat(200);
        let events: Vec<base::EventId> = (0..200)
            .map(|n| deliver(&talk, hub, &format!("d{n}"), &format!("mark-{n}-of-200 {filler}")))
            .collect();
        while now(engine::router::pass(&talk.cx)).unwrap() {}
        let asked = all_turns(&talk);
        for n in 0..200 {
            let mark = format!("mark-{n}-of-200 ");
            assert!(asked.iter().any(|body| body.contains(&mark)), "{context_tokens}: {mark}");
        }
        let done = events.iter().filter(|e| state(&talk, **e) == WorkItemState::Done).count();
        assert_eq!(done, 200, "{context_tokens}");
        let runs = runs(&talk);
        assert!(runs.iter().all(|(state, _)| *state == RunState::Completed), "{runs:?}");
        let most = 200 * 4_000 / (context_tokens as usize / 20) + 4;
        assert!(runs.len() <= most, "{context_tokens}: {} runs", runs.len());
    }
}

#[test]
fn an_item_that_is_larger_than_the_room_is_cut_with_a_note_and_read() {
    for text in ["看".repeat(10_000), "\u{1}".repeat(30_000), "{\"\\\n".repeat(7_000)] {
        let folder = TempFolder::new();
        let talk = open(&folder, 16_000, Limits::default());
        // History that fills its window does not take the room away.
        for n in 0..12 {
            talk.say(&format!("before {n} {}", "看".repeat(900)));
            all_turns(&talk);
        }
        let before = runs(&talk).len();
        talk.say(&format!("mark {text}"));
        let asked = all_turns(&talk);
        assert!(asked.iter().any(|body| body.contains("mark ")), "{:.20}", text);
        assert!(asked.last().unwrap().contains("bytes in all)"), "{:.20}", text);
        let runs = &runs(&talk)[before..];
        assert_eq!(runs, [(RunState::Completed, None)], "{:.20}", text);
    }
}

#[test]
fn what_no_model_was_asked_about_is_never_handled_and_ends_as_a_failure_that_is_told() {
    let folder = TempFolder::new();
    // A context that cannot even hold the standing instructions.
    let talk = open(&folder, 600, Limits::default());
    let hub = hub(&talk);
    let event = deliver(&talk, hub, "d", "the roof is on fire");
    while now(engine::router::pass(&talk.cx)).unwrap() {}
    let mut states = Vec::new();
    for _ in 0..20 {
        talk.clock.advance_ms(600_000);
        let Some(work) = talk.claim() else { break };
        assert_eq!(talk.run(work), Vec::<Vec<u8>>::new(), "no model was asked");
        states.push(state(&talk, event));
    }
    use WorkItemState::{Failed, Pending};
    assert_eq!(states, [Pending, Pending, Pending, Pending, Failed]);
    let said = talk.said();
    let told: Vec<&str> = said.iter().map(|(_, text)| text.as_str()).collect();
    assert!(told.iter().any(|text| text.contains("the roof is on fire")), "{told:?}");
    let why = talk.read(move |tx, _| store::event::get(tx, event)).disposition.unwrap();
    assert!(why.starts_with("failed: "), "{why}");
    let ended = runs(&talk);
    assert!(ended.iter().all(|(state, _)| *state == RunState::BudgetExhausted), "{ended:?}");
}

#[test]
fn a_run_that_may_make_no_step_at_all_handles_nothing() {
    let folder = TempFolder::new();
    let talk = open(&folder, 50_000, Limits { run_steps: 1, ..Limits::default() });
    talk.say("hello");
    let work = now(worker::claim(&talk.cx, talk.device.owner, talk.main)).unwrap().unwrap();
    talk.run(work);
    let entries = talk.read(|tx, owner| store::message::chat_after(tx, owner, 0, 10));
    let heard: Vec<String> =
        entries.into_iter().filter(|e| e.kind == "user").map(|e| e.state).collect();
    assert_eq!(heard, ["received"]);
}
