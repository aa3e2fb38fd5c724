//! The pump on real threads: a worker that panics, and a person who is served while all slots are taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base::{IdSource, Limits, SystemClock};
use domain::state::WorkItemState;
use engine::pump::{self, Hints};
use engine::{Context, setup};
use model::{Asking, ChatModel, Prices, Request, Script, ScriptedModel};
use store::device::Device;
use store::source::SourceKind;
use store::{Database, Store};
use testkit::stores::TempFolder;
use tokio::sync::watch;

use crate::outside::{desk, found};

const SCRIPT: &str = r#"
name = "pump"
context_tokens = 50_000

[[rule]]
user = '(?s)New:\n(?<new>.*)'
not_called = "send_to_user"
call = [
  { tool = "send_to_user", arguments = { text = "heard: $new" } },
  { tool = "finish_quietly", arguments = { reason = "said" } },
]
"#;

/// Panics whenever it reads a word, as a defect in a worker would.
struct Fragile {
    inner: ScriptedModel,
    word: &'static str,
    panics: AtomicU32,
}

impl ChatModel for Fragile {
    fn ask<'a>(&'a self, request: &'a Request, heard: &'a (dyn Fn(u64) + Sync)) -> Asking<'a> {
        let tail = request.blocks.iter().rev().find(|block| block.bytes.contains("\"user\""));
        if tail.is_some_and(|block| block.bytes.contains(self.word)) {
            self.panics.fetch_add(1, Ordering::SeqCst);
            panic!("this defect is wanted");
        }
        self.inner.ask(request, heard)
    }
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn context_tokens(&self) -> u64 {
        self.inner.context_tokens()
    }
    fn prices(&self) -> Prices {
        self.inner.prices()
    }
}

async fn context(folder: &TempFolder, model: Arc<Fragile>) -> (Context, Device) {
    let ids = IdSource::new([3; 32]);
    let clock = Arc::new(testkit::clock::FakeClock::new(base::Clock::now(&SystemClock)));
    let database = Database::Sqlite(folder.path().join("pump.db"));
    let mut options = testkit::stores::options(database, clock, &ids, false);
    options.clock = Arc::new(SystemClock);
    let cx = Context {
        incarnation: options.incarnation,
        store: tokio::task::spawn_blocking(move || Store::open(options)).await.unwrap().unwrap(),
        clock: Arc::new(SystemClock),
        ids: Arc::new(ids),
        limits: Limits { retry_ms: 1, tick_ms: 50, ..Limits::default() },
        model: model.clone(),
        small: model.clone(),
        reviewer: model,
        max_output_tokens: 500,
        world: Arc::new(testkit::world::FakeWorld::default()),
    };
    let seed = setup::Seed { name: "Ann".into(), zone: "UTC".into(), language: None };
    let owner = setup::owner(&cx, seed).await.unwrap();
    let paired = cx.write(owner.id, |cx, tx| setup::add_device(cx, tx, "test")).await.unwrap();
    (cx, paired.device)
}

async fn say(cx: &Context, device: &Device, text: &'static str) {
    let (device, id) = (device.clone(), cx.uuid());
    let owner = device.owner;
    cx.write(owner, move |cx, tx| engine::intake::message(cx, tx, &device, id, text))
        .await
        .unwrap();
}

/// Waits for the chat to say what is wanted; each change is a signal, so nothing sleeps.
async fn until(cx: &Context, device: &Device, done: impl Fn(&[store::message::Entry]) -> bool) {
    let owner = device.owner;
    let mut signals = cx.store.signals();
    loop {
        let said =
            cx.store.read(move |tx| store::message::chat_after(tx, owner, 0, 100)).await.unwrap();
        if done(&said) {
            return;
        }
        drop(signals.recv().await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_panics_every_run_is_given_up_and_the_next_one_is_served() {
    let folder = TempFolder::new();
    let script = Script::parse(SCRIPT).unwrap();
    let inner = ScriptedModel::new(script, Prices::default());
    let model = Arc::new(Fragile { inner, word: "poison", panics: AtomicU32::new(0) });
    let (cx, device) = context(&folder, model.clone()).await;
    let (stop, stopped) = watch::channel(false);
    let pump = tokio::spawn(pump::run(cx.clone(), Arc::new(Hints::default()), stopped));
    say(&cx, &device, "poison").await;
    until(&cx, &device, |said| said.iter().any(|e| e.state == "failed")).await;
    say(&cx, &device, "fine").await;
    until(&cx, &device, |said| said.iter().any(|e| e.kind == "agent")).await;
    assert_eq!(model.panics.load(Ordering::SeqCst), cx.limits.poison_attempts);
    let owner = device.owner;
    let said =
        cx.store.read(move |tx| store::message::chat_after(tx, owner, 0, 100)).await.unwrap();
    let notices: Vec<&str> =
        said.iter().filter(|e| e.kind == "notice").map(|e| e.text.as_str()).collect();
    assert_eq!(
        notices,
        [
            "I gave up on \"poison\" after 5 tries. Nothing else is affected; send it again to retry."
        ]
    );
    stop.send_replace(true);
    pump.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_cannot_be_claimed_is_put_off_and_told_once() {
    let folder = TempFolder::new();
    let script = Script::parse(SCRIPT).unwrap();
    let inner = ScriptedModel::new(script, Prices::default());
    let model = Arc::new(Fragile { inner, word: "poison", panics: AtomicU32::new(0) });
    let (cx, device) = context(&folder, model).await;
    // A row that this program cannot work with, as a newer one or a hand may leave it.
    let zone = |zone: &'static str| {
        cx.write(device.owner, move |_, tx| store::owner::rename(tx, "Ann", zone))
    };
    zone("Nowhere/At_All").await.unwrap();
    say(&cx, &device, "hello").await;
    let (stop, stopped) = watch::channel(false);
    let pump = tokio::spawn(pump::run(cx.clone(), Arc::new(Hints::default()), stopped));
    until(&cx, &device, |said| said.iter().any(|e| e.kind == "notice")).await;
    let main = cx.store.read({
        let owner = device.owner;
        move |tx| {
            let main = store::owner::get(tx, owner)?.main_session;
            store::session::get(tx, main)
        }
    });
    assert!(main.await.unwrap().not_before > cx.clock.now(), "it is left alone for a while");
    zone("UTC").await.unwrap();
    // A new message ends the pause, and both are answered.
    say(&cx, &device, "and now").await;
    until(&cx, &device, |said| said.iter().filter(|e| e.state == "handled").count() == 2).await;
    let owner = device.owner;
    let said =
        cx.store.read(move |tx| store::message::chat_after(tx, owner, 0, 100)).await.unwrap();
    let notices: Vec<&str> =
        said.iter().filter(|e| e.kind == "notice").map(|e| e.text.as_str()).collect();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("cannot be worked on"), "{notices:?}");
    let faults = cx.store.read(move |tx| store::fault::all_open(tx, owner)).await.unwrap();
    assert_eq!(faults, [], "closed by the run that worked");
    stop.send_replace(true);
    pump.await.unwrap();
}

#[tokio::test]
async fn while_the_operator_has_stopped_everything_only_a_person_is_answered() {
    let mut desk = desk();
    desk.talk.cx.limits.tick_ms = 1;
    let hub = desk.source(SourceKind::Webhook, "hub");
    desk.duty("subscribe to hub for x, wake");
    let (event, _) = desk.comes(hub, found("1", None, Some("x"), "one"));
    desk.talk.clock.advance_ms(2_000);
    let (cx, device) = (desk.talk.cx.clone(), desk.talk.device.clone());
    desk.talk.system_stop(true);
    desk.talk.say("are you there?");
    let answered = |said: &[store::message::Entry]| {
        said.iter().filter(|e| e.kind == "user").all(|e| e.state == "handled")
    };
    let (stop, stopped) = watch::channel(false);
    let pump = tokio::spawn(pump::run(cx.clone(), Arc::new(Hints::default()), stopped));
    until(&cx, &device, answered).await;
    // Both lanes could be claimed, and both were looked at together.
    assert_eq!(desk.look(event.id).1.state, WorkItemState::Pending);
    desk.talk.system_stop(false);
    until(&cx, &device, |said| said.iter().any(|e| e.text == "something came")).await;
    stop.send_replace(true);
    pump.await.unwrap();
}
