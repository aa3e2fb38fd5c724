//! The tool of the hotel vendor that no manifest describes, from the model's look to the note at the desk: the
//! real stages, the real connectors and a real process (R6).

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base::{IdSource, Limits, Timestamp};
use connect::guard::{Client, GuardLimits, SystemResolver};
use connect::{Command, ConnectLimits, Connectors, Manifest, Reach, ServerConfig};
use domain::effect::{Effect, Tier};
use domain::state::ActionState;
use engine::world::Outside;
use engine::{Context, control, intake, setup, tools, worker};
use model::{Prices, Script, ScriptedModel};
use store::action::Action;
use store::owner::Owner;
use store::{Database, Store};
use testkit::clock::FakeClock;
use testkit::hotel::process::read_state;
use testkit::hotel::{HOTEL_MANIFEST, Note};
use testkit::stores::TempFolder;
use testkit::world::effect_stages;

const SCRIPT: &str = r#"
name = "undescribed"

[[habit]]
user = ' from the user'
call = { tool = "settle_message", arguments = { stop = false } }

[[rule]]
user = 'from the user: leave a note'
not_called = "hotel.leave_note"
call = [
  { tool = "call_tool", arguments = { name = "hotel.leave_note", arguments = { text = "too early" } } },
  { tool = "tool_schema", arguments = { name = "hotel.*" } },
  { tool = "tool_schema", arguments = { name = "hotel.leave_note" } },
  { tool = "call_tool", arguments = { name = "hotel.leave_note", arguments = { text = "We are late." } } },
]
"#;

fn outside(state: &Path) -> Outside {
    let program = env!("CARGO_BIN_EXE_hotel").to_owned();
    let args = vec!["--state".to_owned(), state.display().to_string()];
    let config = ServerConfig {
        name: "hotel".to_owned(),
        reach: Reach::Command(Command { program, args, env: BTreeMap::new() }),
        manifest: Manifest::parse(HOTEL_MANIFEST).unwrap(),
    };
    let client = Client::new(Arc::new(SystemResolver), GuardLimits::default(), Vec::new()).unwrap();
    Outside { connectors: Connectors::new(vec![config], ConnectLimits::default()).unwrap(), client }
}

/// A start of the program on this folder.
fn open(folder: &Path, clock: &Arc<FakeClock>, seed: u8) -> Context {
    let ids = IdSource::new([seed; 32]);
    let database = Database::Sqlite(folder.join("adjutant.db"));
    let options = testkit::stores::options(database, clock.clone(), &ids, true);
    let incarnation = options.incarnation;
    let free = base::MicroUsd(0);
    let prices = Prices { input: free, cached: free, output: free };
    let model = Arc::new(ScriptedModel::new(Script::parse(SCRIPT).unwrap(), prices));
    Context {
        store: Store::open(options).unwrap(),
        clock: clock.clone(),
        ids: Arc::new(ids),
        limits: Limits::default(),
        incarnation,
        model: model.clone(),
        small: model.clone(),
        reviewer: model,
        max_output_tokens: 500,
        world: Arc::new(outside(&folder.join("hotel.json"))),
    }
}

/// Runs what waits; gives what the model was asked last.
async fn turn(cx: &Context, owner: &Owner) -> String {
    let mut work = worker::claim(cx, owner.id, owner.main_session).await.unwrap().unwrap();
    let mut asked = String::new();
    loop {
        let recorded = match worker::next(cx, &work) {
            worker::Action::End(outcome) => worker::record_end(cx, &work, outcome).await,
            worker::Action::Tool(call, plan) => {
                let plan = tools::clear(cx, &work, plan).await.unwrap();
                let done = tools::perform(cx, plan).await;
                worker::record_tool(cx, &mut work, call, done).await
            }
            worker::Action::Ask(request) => {
                asked = String::from_utf8(request.body(cx.model.name())).unwrap();
                let answer = cx.model.ask(&request, &|_| {}).await.unwrap();
                worker::record_answer(cx, &mut work, request.digest(), answer).await
            }
        };
        if recorded.unwrap() == worker::Recorded::Over {
            return asked;
        }
    }
}

async fn only(cx: &Context, owner: &Owner) -> Action {
    let id = owner.id;
    let mut all = cx.store.read(move |tx| store::action::all(tx, id, 9)).await.unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[tokio::test]
async fn a_note_is_left_once_after_its_release_also_by_another_start_of_the_program() {
    let folder = TempFolder::new();
    let clock = Arc::new(FakeClock::new(Timestamp::parse("2027-03-01T00:00:00Z").unwrap()));
    let cx = open(folder.path(), &clock, 3);
    let seed = setup::Seed { name: "Ann".into(), zone: "Asia/Hong_Kong".into(), language: None };
    let owner = setup::owner(&cx, seed).await.unwrap();
    let device =
        cx.write(owner.id, |cx, tx| setup::add_device(cx, tx, "test")).await.unwrap().device;
    let (by, id) = (device.clone(), cx.uuid());
    let said = move |cx: &Context, tx: &mut store::OwnerTx<'_, '_>| {
        intake::message(cx, tx, &by, id, "leave a note")
    };
    cx.write(owner.id, said).await.unwrap();
    let asked = turn(&cx, &owner).await;
    for text in ["- hotel.*\\n", "look it up with tool_schema first", "No manifest describes these"]
    {
        assert!(asked.contains(text), "{text}: {asked}");
    }
    effect_stages(&cx).await.unwrap();
    let action = only(&cx, &owner).await;
    assert_eq!(
        (action.state, action.effect, action.tier),
        (ActionState::AwaitingApproval, Effect::Human, Some(Tier::R6))
    );
    let state = folder.path().join("hotel.json");
    assert_eq!(read_state(&state).unwrap(), None, "nobody has called anything");
    drop(cx);

    // The next start has asked no server anything, and looks before it sends.
    let cx = open(folder.path(), &clock, 4);
    let (by, digest) = (device.clone(), action.digest);
    let approved = cx
        .write(owner.id, move |_, tx| control::approve(tx, &by, action.id, digest))
        .await
        .unwrap();
    assert_eq!(approved, control::Changed::Done);
    for _ in 0..3 {
        effect_stages(&cx).await.unwrap();
        clock.advance_ms(60_000);
    }
    let notes: Vec<Note> = read_state(&state).unwrap().unwrap().notes().to_vec();
    assert_eq!(notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>(), ["We are late."]);
    let action = only(&cx, &owner).await;
    let why = r#"it answered what proves nothing by itself: {"left":1}"#;
    assert_eq!((action.state, action.reason.as_deref()), (ActionState::Unknown, Some(why)));
    assert!(action.escalated_at.is_some(), "the person is asked");
}
