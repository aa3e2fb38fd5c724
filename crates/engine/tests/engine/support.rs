//! A conversation on the real stages, one step at a time on one thread.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use base::{IdSource, Limits, OwnerId, SessionId, Timestamp};
use engine::worker::{self, Action, Recorded, Work};
use engine::{Context, setup};
use model::{Prices, Script, ScriptedModel};
use store::device::Device;
use store::{Database, Store};
use testkit::clock::FakeClock;
use testkit::world::{FakeTool, FakeWorld};

/// What the scripted model costs: a dollar for a million tokens.
const PRICES: Prices = Prices {
    input: base::MicroUsd(1_000_000),
    cached: base::MicroUsd(1_000_000),
    output: base::MicroUsd(1_000_000),
};

/// The inline store answers at once, so a future of it is ready when it is first asked.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("an inline store answers at once"),
    }
}

pub struct Talk {
    pub cx: Context,
    pub clock: Arc<FakeClock>,
    pub device: Device,
    pub main: SessionId,
    pub world: Arc<FakeWorld>,
}

impl Talk {
    /// The operator's stop, or its end; `false` if it stood so already.
    pub fn system_stop(&self, stopped: bool) -> bool {
        let device = self.device.clone();
        let turned = self.cx.store.operate(device.owner, self.cx.uuid(), move |tx| {
            engine::control::system_stop(tx, &device, stopped)
        });
        now(turned).unwrap()
    }

    pub fn open(file: PathBuf, at: Timestamp, seed: u8, script: &str, limits: Limits) -> Self {
        let clock = Arc::new(FakeClock::new(at));
        let ids = IdSource::new([seed; 32]);
        let options = testkit::stores::options(Database::Sqlite(file), clock.clone(), &ids, true);
        let incarnation = options.incarnation;
        let model = Arc::new(ScriptedModel::new(Script::parse(script).unwrap(), PRICES));
        let world = Arc::new(FakeWorld::default());
        let cx = Context {
            store: Store::open(options).unwrap(),
            clock: clock.clone(),
            ids: Arc::new(ids),
            limits,
            incarnation,
            model: model.clone(),
            small: model.clone(),
            reviewer: model,
            max_output_tokens: 500,
            world: world.clone(),
        };
        let seed =
            setup::Seed { name: "Ann".into(), zone: "Asia/Hong_Kong".into(), language: None };
        let owner = now(setup::owner(&cx, seed)).unwrap();
        let known = now(cx.store.read(move |tx| store::device::all(tx, owner.id))).unwrap();
        let device = known.into_iter().next().unwrap_or_else(|| {
            now(cx.write(owner.id, |cx, tx| setup::add_device(cx, tx, "test"))).unwrap().device
        });
        Talk { cx, clock, device, main: owner.main_session, world }
    }

    pub fn say(&self, text: &str) {
        let (device, id, text) = (self.device.clone(), self.cx.uuid(), text.to_owned());
        now(self.cx.write(device.owner, move |cx, tx| {
            engine::intake::message(cx, tx, &device, id, &text)
        }))
        .unwrap();
    }

    /// The same with connectors of these names.
    pub fn with_tools(self, tools: &[&str]) -> Self {
        for tool in tools {
            self.world.tool(tool, FakeTool::default());
        }
        self
    }

    pub fn claim(&self) -> Option<Work> {
        now(worker::claim(&self.cx, self.device.owner, self.main)).unwrap()
    }

    /// Reads records.
    pub fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut store::Tx<'_>, OwnerId) -> store::Result<T> + Send + 'static,
    ) -> T {
        let owner = self.device.owner;
        now(self.cx.store.read(move |tx| work(tx, owner))).unwrap()
    }

    /// Runs what waits and gives the request of each question.
    pub fn turn(&self) -> Vec<Vec<u8>> {
        match self.claim() {
            Some(work) => self.run(work),
            None => Vec::new(),
        }
    }

    /// Runs a claimed run to its end.
    pub fn run(&self, mut work: Work) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        loop {
            let recorded = match worker::next(&self.cx, &work) {
                Action::End(outcome) => now(worker::record_end(&self.cx, &work, outcome)),
                Action::Tool(call, plan) => {
                    let plan = now(engine::tools::clear(&self.cx, &work, plan)).unwrap();
                    let done = now(engine::tools::perform(&self.cx, plan));
                    now(worker::record_tool(&self.cx, &mut work, call, done))
                }
                Action::Ask(request) => {
                    bodies.push(request.body(self.cx.model.name()));
                    match now(self.cx.model.ask(&request, &|_| {})) {
                        Ok(answer) => {
                            let digest = request.digest();
                            now(worker::record_answer(&self.cx, &mut work, digest, answer))
                        }
                        Err(error) => now(worker::record_failure(&self.cx, &work, error)),
                    }
                }
            };
            self.clock.advance_ms(10);
            if recorded.unwrap() == Recorded::Over {
                return bodies;
            }
        }
    }

    /// The user confirms the newest card.
    pub fn confirm(&self) {
        let by = self.device.clone();
        let decided = now(self.cx.write(by.owner, move |cx, tx| {
            let owner = tx.owner();
            let card = store::proposal::all(tx, owner, 1)?.remove(0);
            engine::control::confirm(cx, tx, &by, card.id, card.digest)
        }));
        assert!(matches!(decided, Ok(engine::control::Decided::Done(_))), "{decided:?}");
    }

    /// All that was said to the person: kind and text.
    pub fn said(&self) -> Vec<(String, String)> {
        let entries = self.read(|tx, owner| store::message::chat_after(tx, owner, 0, 1_000));
        entries.into_iter().filter(|e| e.kind != "user").map(|e| (e.kind, e.text)).collect()
    }

    pub fn session(&self) -> store::session::Session {
        let main = self.main;
        self.read(move |tx, _| store::session::get(tx, main))
    }
}

pub fn start() -> Timestamp {
    Timestamp::parse("2027-03-01T00:00:00Z").unwrap()
}
