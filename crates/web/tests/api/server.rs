//! A real server for one test: the router on a loopback port, a SQLite store in a temporary folder, a
//! clock that stands still and, if asked, the engine's stages with a scripted model.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base::{DeviceId, DutyId, EventId, Id, IdSource, Limits, MessageId, ProposalId, RunId};
use domain::event::Trust;
use domain::state::{MessageState, ProposalState};
use engine::Context;
use engine::setup::{self, Seed};
use model::{Prices, Script, ScriptedModel};
use serde_json::{Value, json};
use store::event::NewBody;
use store::message::{Message, MessageKind};
use store::owner::Owner;
use store::proposal::{Proposal, ProposalKind};
use store::{Database, OwnerTx, Store};
use testkit::clock::FakeClock;
use testkit::stores::{START, TempFolder, options};
use testkit::world::FakeWorld;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use web::secrets::SecretMemory;

/// What the model does in these tests.
const SCRIPT: &str = r#"
[[rule]]
user = '(?im)^- message \S+ from the user: .*watch the price'
not_called = "propose_duty"
[[rule.call]]
tool = "propose_duty"
[rule.call.arguments]
title = "Price watch"
goal = "Tell me when it falls under 100."
conditions = [{ text = "The user ends it.", evidence = "a message", authority = "user" }]
schedules = [{ kind = "weekdays", at = "08:00", prompt = "Look at the feed." }]

[[habit]]
user = ' from the user: (book|keep|and)'
call = { tool = "settle_message", arguments = { stop = false } }

[[rule]]
user = 'You review one action'
say = '{"verdict":"allow","why":"As delegated."}'

[[rule]]
user = '(?im)^- message \S+ from the user: keep a room'
not_called = "propose_duty"
[[rule.call]]
tool = "propose_duty"
[rule.call.arguments]
title = "A room"
goal = "A room is booked."
conditions = [{ text = "A room is booked.", evidence = "receipt", authority = "hotel" }]
schedules = [{ when = "daily 09:30", prompt = "Look for a room." }]
grants = [{ tool = "hotel.book", times = 3, currency = "HKD", each = "3000.00", total = "8200.00" }]

[[rule]]
user = '(Look for a room|from the user: book)'
not_called = "hotel.search"
call = [{ tool = "call_tool", arguments = { name = "hotel.search", arguments = {} } }]

[[rule]]
user = '(Look for a room|from the user: book)'
not_called = "hotel.book"
call = [{ tool = "call_tool", arguments = { name = "hotel.book", arguments = { quote = "q-1", guest = "Ann" } } }]

[[rule]]
user = 'from the user: and for Bob'
not_called = "hotel.book"
call = [{ tool = "call_tool", arguments = { name = "hotel.book", arguments = { quote = "q-1", guest = "Bob" } } }]

[[rule]]
user = '(?im)^- message \S+ from the user about action \S+ \(waiting for the person\): "hotel.book for HKD 2 600.00'
not_called = "send_to_user"
call = [{ tool = "send_to_user", arguments = { text = "The offer does not say." } }]

[[rule]]
user = '(?im)^- message \S+ from the user: hello'
not_called = "send_to_user"
call = [{ tool = "send_to_user", arguments = { text = "Hello yourself." } }]
"#;

/// A draft as the engine keeps it.
pub fn draft() -> Value {
    json!({"title": "Price watch", "goal": "Tell me when it falls under 100.",
        "conditions": [{"text": "The user ends it.", "evidence": "a message", "authority": "user"}],
        "schedules": [{"kind": "daily", "at": "09:30", "prompt": "Look at the feed."}],
        "until": "2026-12-24T18:00:00+01:00"})
}

/// A demo that only counts.
#[derive(Default)]
pub struct CountingDemo(pub AtomicU32);

impl web::Demo for CountingDemo {
    fn plug(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    fn state(&self) -> Value {
        json!({"day": 1, "of_days": 5, "virtual_now": START, "plugs": self.0.load(Ordering::SeqCst),
            "story": "Nothing yet.", "done": false, "summary": null})
    }
}

/// One running server.
pub struct Server {
    pub address: SocketAddr,
    pub cx: Context,
    pub owner: Owner,
    pub clock: Arc<FakeClock>,
    pub secrets: Arc<SecretMemory>,
    pub world: Arc<FakeWorld>,
    pub runtime: Runtime,
    stop: watch::Sender<bool>,
    pub folder: TempFolder,
    /// Transactions that were committed.
    pub commits: Arc<AtomicU32>,
}

struct Counted(Arc<AtomicU32>);

impl store::CommitGate for Counted {
    fn before_commit(&self) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst);
        true
    }
    fn after_commit(&self) -> bool {
        true
    }
}

/// The token of whoever watches the machine.
pub const WATCHER: &str = "0123456789abcdef";

/// A paired device.
#[derive(Clone)]
pub struct Paired {
    pub id: DeviceId,
    pub token: String,
}

impl Server {
    /// Without the engine's stages: records move only as the test says.
    pub fn start() -> Self {
        Self::with(None, false, Limits::default())
    }

    /// With other bounds.
    pub fn bounded(limits: Limits) -> Self {
        Self::with(None, false, limits)
    }

    /// With the engine's stages.
    pub fn with_engine() -> Self {
        Self::with(None, true, Limits::default())
    }

    /// With both.
    pub fn bounded_with_engine(limits: Limits) -> Self {
        Self::with(None, true, limits)
    }

    /// As a demo.
    pub fn with_demo(demo: Arc<CountingDemo>) -> Self {
        Self::with(Some(demo), false, Limits::default())
    }

    fn with(demo: Option<Arc<CountingDemo>>, engine: bool, limits: Limits) -> Self {
        crate::log::capture();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let folder = TempFolder::new();
        let clock = Arc::new(FakeClock::new(START));
        let ids = Arc::new(IdSource::new([9; 32]));
        let database = Database::Sqlite(folder.path().join("adjutant.db"));
        let commits = Arc::new(AtomicU32::new(0));
        let gate: Arc<dyn store::CommitGate> = Arc::new(Counted(commits.clone()));
        let options = options(database, clock.clone(), &ids, false);
        let store = Store::open(store::Options { gate: Some(gate), ..options }).expect("a store");
        let script = Script::parse(SCRIPT).expect("a script");
        let model = std::sync::Arc::new(ScriptedModel::new(script, Prices::default()));
        let (world, secrets) = (Arc::new(FakeWorld::default()), Arc::new(SecretMemory::default()));
        let cx = Context {
            store,
            clock: clock.clone(),
            incarnation: ids.next(START),
            ids,
            limits,
            model: model.clone(),
            small: model.clone(),
            reviewer: model,
            max_output_tokens: 1_000,
            world: world.clone(),
        };
        let seed = Seed { name: "Ada".into(), zone: "Europe/Berlin".into(), language: None };
        let owner = runtime.block_on(setup::owner(&cx, seed)).expect("an owner");
        let (stop, stopped) = watch::channel(false);
        let listening = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = listening.expect("a port");
        let address = listener.local_addr().expect("an address");
        let demo = demo.map(|demo| demo as Arc<dyn web::Demo>);
        let hints = Arc::new(engine::pump::Hints::default());
        let state = web::WebState {
            cx: cx.clone(),
            owner: owner.id,
            listen: address,
            data_dir: folder.path().to_owned(),
            secrets: secrets.clone(),
            hints: hints.clone(),
            watcher: base::Digest::of(WATCHER.as_bytes()),
            machine: Arc::new(|| vec![("disk_free_bytes", 5)]),
            demo,
        };
        let router = web::router_until(state, stopped.clone());
        runtime.spawn(async move { axum::serve(listener, router).await });
        if engine {
            runtime.spawn(engine::pump::run(cx.clone(), hints, stopped));
        }
        Server { address, cx, owner, clock, secrets, world, runtime, stop, folder, commits }
    }

    /// Ends open streams and the engine's stages.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Decides and writes as the engine does.
    pub fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Context, &mut OwnerTx<'_, '_>) -> store::Result<T> + Send + 'static,
    ) -> T {
        self.runtime.block_on(self.cx.write(self.owner.id, work)).expect("a write")
    }

    /// A new device of the user.
    pub fn device(&self, name: &'static str) -> Paired {
        let paired = self.write(move |cx, tx| setup::add_device(cx, tx, name));
        Paired { id: paired.device.id, token: paired.token.expose().to_owned() }
    }

    /// Ends a device's access.
    pub fn revoke(&self, device: DeviceId) {
        assert!(self.write(move |_, tx| store::device::revoke(tx, device, None)));
    }

    /// A one-time code.
    pub fn code(&self) -> String {
        self.write(setup::offer_code).code
    }

    /// What the clock shows.
    pub fn clock_now(&self) -> base::Timestamp {
        self.cx.clock.now()
    }

    /// A new client-made id.
    pub fn id(&self) -> String {
        self.cx.id::<EventId>().to_string()
    }

    /// A notice on its way to the person's devices, `count` of them in one transaction.
    pub fn notices(&self, count: usize) -> Vec<MessageId> {
        let main = self.owner.main_session;
        self.write(move |cx, tx| {
            (0..count)
                .map(|n| {
                    let body = body(cx, format!("Notice {n}.").into_bytes());
                    let message = Message {
                        id: cx.id(),
                        owner: tx.owner(),
                        session: main,
                        kind: MessageKind::Notice,
                        run: None,
                        call_id: None,
                        duty: None,
                        task_version: None,
                        proposal: None,
                        action: None,
                        late: false,
                        body: body.id,
                        state: MessageState::Generated,
                        reason: None,
                        seq: tx.seq(),
                        created_at: tx.now(),
                        queued_at: None,
                        sent_at: None,
                        delivered_at: None,
                        delivered_to: None,
                        moved_at: tx.now(),
                    };
                    store::event::put_body(tx, body)?;
                    store::message::insert(tx, &message)?;
                    store::message::queue(tx, message.id)?;
                    store::message::send(tx, message.id)?;
                    Ok(message.id)
                })
                .collect()
        })
    }

    /// An open proposal of a new duty.
    pub fn new_duty(&self) -> ProposalId {
        self.propose(ProposalKind::NewDuty, None, draft())
    }

    /// An open proposal of a new duty with a draft of the test's own.
    pub fn proposed(&self, draft: Value) -> ProposalId {
        self.propose(ProposalKind::NewDuty, None, draft)
    }

    /// An open proposal to close a duty.
    pub fn close_duty(&self, duty: DutyId) -> ProposalId {
        let content = json!({"duty": duty, "reason": "It fell under 100."});
        self.propose(ProposalKind::CloseDuty, Some(duty), content)
    }

    fn propose(&self, kind: ProposalKind, duty: Option<DutyId>, content: Value) -> ProposalId {
        let main = self.owner.main_session;
        self.write(move |cx, tx| {
            let body = body(cx, content.to_string().into_bytes());
            let (id, content) = (cx.id(), body.id);
            let digest = store::event::put_body(tx, body)?;
            let proposal = Proposal {
                id,
                owner: tx.owner(),
                session: main,
                run: cx.id::<RunId>(),
                call_id: "call-1".into(),
                kind,
                duty,
                content,
                digest,
                template: "proposal-1".into(),
                state: ProposalState::Open,
                decided_by: None,
                expires_at: tx.now().plus_ms(86_400_000),
                seq: tx.seq(),
                created_at: tx.now(),
                moved_at: tx.now(),
            };
            store::proposal::insert(tx, &proposal)?;
            if let Some(duty) = duty {
                let owner = tx.owner();
                let duty = store::duty::get(tx, owner, duty)?;
                store::duty::advance(tx, &duty, domain::state::DutyState::CloseProposed, None)?;
            }
            Ok(id)
        })
    }

    /// Events that nothing has handled yet.
    pub fn number_of_events(&self) -> i64 {
        let owner = self.owner.id;
        let read = self.cx.store.read(move |tx| store::event::unhandled(tx, owner));
        self.runtime.block_on(read).expect("a count")
    }
}

fn body(cx: &Context, bytes: Vec<u8>) -> NewBody {
    NewBody {
        id: cx.id(),
        bytes,
        media: "text/plain; charset=utf-8".into(),
        provenance: "test".into(),
        trust: Trust::System,
    }
}

/// Reads an id out of an answer.
pub fn id_of<T: Id>(value: &Value) -> T {
    base::parse_id(value.as_str().expect("an id")).expect("an id")
}
