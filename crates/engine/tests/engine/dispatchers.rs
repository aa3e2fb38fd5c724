//! Two dispatchers on one PostgreSQL database and a vendor that is slow and loses answers: no effect
//! happens twice, and every intent ends settled or visible as unknown (ADM-17, ADM-22, ADM-37).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::{ActionId, BodyId, Clock, Digest, IdSource, Limits, SystemClock, Timestamp};
use domain::effect::{Effect, Observation, Sight, Spec, freeze};
use domain::event::Trust;
use domain::state::ActionState;
use engine::pump::{self, Hints};
use engine::world::{Acted, Call, Intended, Level, Look, Need, Read, Slow, World};
use engine::{Context, setup};
use serde_json::{Map, Value, json};
use store::action::{Action, Origin};
use store::approval::Approval;
use store::device::Device;
use store::event::NewBody;
use store::owner::PrincipalKind;
use store::{Database, Permit, Store};
use testkit::postgres::TestPostgres;
use tokio::sync::watch;

use crate::outside::Small;

/// A vendor that decides by the operation's id what becomes of it, and counts what happened.
#[derive(Debug, Default)]
struct Vendor(Mutex<HashMap<String, u32>>);

/// What becomes of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    AnswerLost,
    RequestLost,
    Refused,
    NotSent,
}

fn fate(operation: &str) -> Fate {
    match Digest::of(operation.as_bytes()).as_bytes()[0] % 8 {
        0 => Fate::AnswerLost,
        1 => Fate::RequestLost,
        2 => Fate::Refused,
        3 => Fate::NotSent,
        _ => Fate::Answered,
    }
}

fn spec() -> Spec {
    Spec {
        tool: "shop.order".into(),
        effect: Effect::Reversible,
        entry: Digest::of(b"order"),
        objects: BTreeMap::new(),
        amount: None,
        currency: None,
        recipients: Vec::new(),
        once_per: vec!["n".into()],
        card: Vec::new(),
        operation: Some("ref".into()),
        undo: None,
        can_look_up: true,
        settled_after_ms: Some(200),
        idempotent_ms: None,
    }
}

impl World for Vendor {
    fn tools(&self) -> Vec<String> {
        vec!["shop.order".into()]
    }
    fn needs(&self, tool: &str, _: &Map<String, Value>) -> Result<Vec<Need>, String> {
        Err(format!("{tool} does not read"))
    }
    fn intended(&self, _: &str, _: &Map<String, Value>) -> Option<Result<Intended, String>> {
        Some(Ok(Intended { spec: spec(), needs: Vec::new() }))
    }
    fn spec(&self, _: &str) -> Option<Spec> {
        Some(spec())
    }
    fn level(&self, _: &str) -> Level {
        Level::Connector
    }
    fn stands_for(&self, _: &str) -> Option<String> {
        None
    }
    fn schema<'a>(&'a self, tool: &'a str) -> Slow<'a, String> {
        Box::pin(async move { tool.to_owned() })
    }
    fn read<'a>(&'a self, call: Call, _: Duration) -> Slow<'a, Read> {
        Box::pin(async move {
            Read {
                text: "it does not read".into(),
                level: Level::Connector,
                provenance: call.tool,
                issued: Vec::new(),
                health: None,
            }
        })
    }
    fn act<'a>(&'a self, permit: Permit, clock: &'a dyn Clock, _: Duration) -> Slow<'a, Acted> {
        Box::pin(async move {
            // Slow, so that others have the time to overtake.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            let operation = permit.operation_id().to_owned();
            let fate =
                if clock.now() > permit.send_by() { Fate::NotSent } else { fate(&operation) };
            if matches!(fate, Fate::Answered | Fate::AnswerLost) {
                *self.0.lock().unwrap().entry(operation.clone()).or_default() += 1;
            }
            let seen = match fate {
                Fate::Answered => Observation::Receipt(format!("R-{operation}")),
                Fate::AnswerLost | Fate::RequestLost => Observation::Lost("no answer".into()),
                Fate::Refused => Observation::Refused("sold out".into()),
                Fate::NotSent => Observation::NotSent("down".into()),
            };
            Acted { seen, answer: String::new(), issued: Vec::new(), refused_key: None }
        })
    }
    fn find<'a>(&'a self, _: &'a str, operation: &'a str, _: Duration) -> Slow<'a, Sight> {
        Box::pin(async move {
            match self.0.lock().unwrap().contains_key(operation) {
                true => Sight::Found { receipt: format!("R-{operation}"), ended: false },
                false => Sight::Absent,
            }
        })
    }
    fn look<'a>(
        &'a self,
        _: &'a str,
        _: Option<&'a str>,
        _: Timestamp,
    ) -> Slow<'a, Result<Look, String>> {
        Box::pin(async move { Err("nothing to look at".into()) })
    }
}

/// One node of the database.
async fn node(url: &str, n: u8, vendor: &Arc<Vendor>) -> Context {
    let ids = IdSource::new([n; 32]);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let fake = Arc::new(testkit::clock::FakeClock::new(clock.now()));
    let mut options =
        testkit::stores::options(Database::Postgres(url.to_owned()), fake, &ids, false);
    options.clock = clock.clone();
    options.node = format!("node-{n}");
    let quiet = Small::says(&[]);
    Context {
        incarnation: options.incarnation,
        store: tokio::task::spawn_blocking(move || Store::open(options)).await.unwrap().unwrap(),
        clock,
        ids: Arc::new(ids),
        limits: Limits { retry_ms: 20, retry_max_ms: 100, tick_ms: 50, ..Limits::default() },
        model: quiet.clone(),
        small: quiet.clone(),
        reviewer: quiet,
        max_output_tokens: 500,
        world: vendor.clone(),
    }
}

/// A released intent, as a tap on its card leaves it.
async fn intent(cx: &Context, device: &Device, session: base::SessionId, n: u32) -> ActionId {
    let arguments = json!({ "n": n }).as_object().unwrap().clone();
    let frozen = freeze(&spec(), &arguments, &[], None, None).unwrap();
    let device = device.clone();
    let (id, content): (ActionId, BodyId) = (cx.id(), cx.id());
    cx.write(device.owner, move |cx, tx| {
        let now = tx.now();
        let (owner, run) = (device.owner, cx.id());
        let call_id = n.to_string();
        let origin = Origin { id, owner, session, duty: None, run, call_id, content };
        let mut action = Action::proposed(origin, &frozen, now);
        let until = now.plus_ms(3_600_000);
        let request = Approval::request(cx.id(), &action, PrincipalKind::User, "test", until, now);
        let approval = Approval { device: Some(device.id), ..request.granted(device.principal) };
        let body = NewBody {
            id: content,
            bytes: frozen.bytes,
            media: "application/json".into(),
            provenance: "test".into(),
            trust: Trust::User,
        };
        store::event::put_body(tx, body)?;
        store::action::insert(tx, &action, &[])?;
        store::approval::insert(tx, &approval)?;
        action.state = ActionState::Authorized;
        action.approval = Some(approval.id);
        action.due_at = Some(now);
        store::action::put(tx, &action, ActionState::Proposed, Some(device.principal))
    })
    .await
    .unwrap();
    id
}

/// Intents of one read, which ends within a second.
const BATCH: usize = 200;

/// Where each intent ended, once all have.
async fn ended(cx: &Context, ids: &[ActionId]) -> BTreeMap<&'static str, Vec<ActionId>> {
    let mut by_state: BTreeMap<&'static str, Vec<ActionId>> = BTreeMap::new();
    for batch in ids.chunks(BATCH) {
        for (id, state) in settled(cx, batch).await {
            by_state.entry(state).or_default().push(id);
        }
    }
    by_state
}

/// Where some intents ended, once all of them have.
async fn settled(cx: &Context, ids: &[ActionId]) -> Vec<(ActionId, &'static str)> {
    let mut signals = cx.store.signals();
    loop {
        let batch = ids.to_vec();
        let found = cx
            .store
            .read(move |tx| {
                let mut states = Vec::new();
                for id in batch {
                    let action = store::action::get(tx, id)?;
                    // What was refused is looked at for long afterwards; it has settled all the same.
                    let settled = action.state == ActionState::Effective
                        || (action.state == ActionState::Blocked && action.not_before.is_none());
                    states.push((id, settled.then(|| action.state.word())));
                }
                Ok(states)
            })
            .await;
        // A reader that took too long, or something that is still under way: look at the next change.
        match found {
            Ok(states) if states.iter().all(|(_, state)| state.is_some()) => {
                return states.into_iter().filter_map(|(id, state)| Some((id, state?))).collect();
            }
            Ok(_) | Err(_) => drop(signals.recv().await),
        }
    }
}

fn race(owners: usize, intents: u32) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async move {
        let server = tokio::task::spawn_blocking(|| TestPostgres::start().unwrap()).await.unwrap();
        let url = tokio::task::spawn_blocking(move || server.database().unwrap()).await.unwrap();
        let vendor = Arc::new(Vendor::default());
        let (one, two) = (node(&url, 1, &vendor).await, node(&url, 2, &vendor).await);
        let mut lanes = Vec::new();
        for n in 0..owners {
            let seed =
                setup::Seed { name: format!("owner {n}"), zone: "UTC".into(), language: None };
            let owner = setup::create(&one, seed).await.unwrap();
            let device = one.write(owner.id, |cx, tx| setup::add_device(cx, tx, "test")).await;
            lanes.push((device.unwrap().device, owner.main_session));
        }
        let (stop, stopped) = watch::channel(false);
        let mut nodes = tokio::task::JoinSet::new();
        for cx in [&one, &two] {
            nodes.spawn(pump::run(cx.clone(), Arc::new(Hints::default()), stopped.clone()));
        }
        let mut ids = Vec::new();
        for n in 0..intents {
            let (device, session) = &lanes[n as usize % owners];
            ids.push(intent(&one, device, *session, n).await);
        }
        let states = ended(&one, &ids).await;
        stop.send(true).unwrap();
        while nodes.join_next().await.is_some() {}
        judge(&one, &vendor, &states, &ids).await;
        let counts: BTreeMap<_, _> =
            states.iter().map(|(state, ids)| (*state, ids.len())).collect();
        eprintln!("{intents} intents over {owners} owners by two dispatchers: {counts:?}");
    });
}

/// World and records agree, and nothing happened twice.
async fn judge(
    cx: &Context,
    vendor: &Vendor,
    states: &BTreeMap<&'static str, Vec<ActionId>>,
    ids: &[ActionId],
) {
    let happened = vendor.0.lock().unwrap().clone();
    assert!(happened.values().all(|times| *times == 1), "an operation was carried out twice");
    let mut by_action: HashMap<ActionId, Vec<String>> = HashMap::new();
    for operation in happened.keys() {
        let id = operation.split('.').next().unwrap().parse().unwrap();
        by_action.entry(id).or_default().push(operation.clone());
    }
    assert!(by_action.values().all(|operations| operations.len() == 1), "{by_action:?}");
    for (state, of) in states {
        for id in of {
            let done = by_action.contains_key(id);
            assert_eq!(done, *state == "effective", "{id} is {state}");
        }
    }
    let mut attempts = 0;
    for batch in ids.chunks(BATCH) {
        let batch = batch.to_vec();
        let most = cx.store.read(move |tx| {
            batch
                .into_iter()
                .try_fold(0, |most, id| Ok(most.max(store::attempt::of_action(tx, id)?.len())))
        });
        attempts = attempts.max(most.await.unwrap());
    }
    assert!(attempts <= 3);
}

#[test]
fn two_dispatchers_cause_no_effect_twice() {
    race(1, 60);
    race(8, 60);
}

#[test]
#[ignore = "long"]
fn long_ten_thousand_intents_by_two_dispatchers() {
    race(1, 10_000);
    race(64, 10_000);
}
