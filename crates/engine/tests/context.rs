//! The context of a turn: the same records give the same bytes, the prefix changes only at recorded
//! causes, and no conversation ever grows out of its model (CTX-03, CTX-05, CTX-06).

use std::future::Future;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use base::{Clock as _, Digest, IdSource, Limits, Timestamp};
use engine::worker::{self, Action, Recorded, Work};
use engine::{Context, Reading, World, setup};
use model::{Prices, Script, ScriptedModel};
use store::device::Device;
use store::{Database, Store};
use testkit::clock::FakeClock;
use testkit::stores::TempFolder;

const SCRIPT: &str = r#"
name = "talker"
context_tokens = 16_000

[[rule]]
user = 'from the user: look (?<what>.*)'
not_called = "read_records"
call = [{ tool = "read_records", arguments = { what = "messages" } }]

[[rule]]
user = 'from the user: (?<what>.*)'
not_called = "send_to_user"
call = [
  { tool = "send_to_user", arguments = { text = "noted: $what" } },
  { tool = "finish_quietly", arguments = { reason = "said" } },
]
"#;

/// No connectors, or one by name.
struct Tools(Vec<String>);

impl World for Tools {
    fn tools(&self) -> Vec<String> {
        self.0.clone()
    }
    fn refusal(&self, tool: &str) -> Option<String> {
        Some(format!("there is no {tool}"))
    }
    fn schema<'a>(&'a self, _: &'a str) -> Reading<'a> {
        Box::pin(async { String::new() })
    }
    fn read<'a>(
        &'a self,
        _: &'a str,
        _: serde_json::Map<String, serde_json::Value>,
        _: std::time::Duration,
    ) -> Reading<'a> {
        Box::pin(async { String::new() })
    }
}

/// The inline store answers at once, so a future of it is ready when it is first asked.
fn now<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("an inline store answers at once"),
    }
}

struct Talk {
    cx: Context,
    clock: Arc<FakeClock>,
    device: Device,
}

impl Talk {
    fn open(file: PathBuf, at: Timestamp, seed: u8, tools: &[&str]) -> Self {
        let clock = Arc::new(FakeClock::new(at));
        let ids = IdSource::new([seed; 32]);
        let options = testkit::stores::options(Database::Sqlite(file), clock.clone(), &ids, true);
        let incarnation = options.incarnation;
        let script = Script::parse(SCRIPT).unwrap();
        let limits = Limits { window_tokens: 12_000, ..Limits::default() };
        let cx = Context {
            store: Store::open(options).unwrap(),
            clock: clock.clone(),
            ids: Arc::new(ids),
            limits,
            incarnation,
            model: Arc::new(ScriptedModel::new(script, Prices::default())),
            max_output_tokens: 500,
            world: Arc::new(Tools(tools.iter().map(|t| (*t).to_owned()).collect())),
        };
        let seed = setup::Seed { name: "Ann".into(), zone: "Asia/Hong_Kong".into() };
        let owner = now(setup::owner(&cx, seed)).unwrap();
        let known = now(cx.store.read(move |tx| store::device::all(tx, owner.id))).unwrap();
        let device = known.into_iter().next().unwrap_or_else(|| {
            now(cx.write(owner.id, |cx, tx| setup::add_device(cx, tx, "test"))).unwrap().device
        });
        Talk { cx, clock, device }
    }

    fn say(&self, text: &str) {
        let (device, id, text) = (self.device.clone(), self.cx.uuid(), text.to_owned());
        now(self.cx.write(device.owner, move |cx, tx| {
            engine::intake::message(cx, tx, &device, id, &text)
        }))
        .unwrap();
    }

    fn claim(&self) -> Option<Work> {
        let owner = self.device.owner;
        let account = now(self.cx.store.read(move |tx| store::owner::get(tx, owner))).unwrap();
        now(worker::claim(&self.cx, owner, account.main_session)).unwrap()
    }

    /// Runs what waits and gives the request of each question.
    fn turn(&self) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        let Some(mut work) = self.claim() else { return bodies };
        loop {
            let recorded = match worker::next(&self.cx, &work) {
                Action::End(outcome) => now(worker::record_end(&self.cx, &work, outcome)),
                Action::Tool(call, plan) => {
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

    fn main(&self) -> store::session::Session {
        let owner = self.device.owner;
        now(self.cx.store.read(move |tx| {
            let main = store::owner::get(tx, owner)?.main_session;
            store::session::get(tx, main)
        }))
        .unwrap()
    }
}

fn start() -> Timestamp {
    Timestamp::parse("2027-03-01T00:00:00Z").unwrap()
}

/// Tests that commit thousands of times use memory where there is some: fsync is not their subject.
fn folder() -> (Option<TempFolder>, PathBuf) {
    let shared = PathBuf::from("/dev/shm");
    if shared.is_dir() {
        let file = shared.join(format!("adjutant-context-{}.db", std::process::id()));
        for end in ["", "-wal", "-shm"] {
            drop(std::fs::remove_file(format!("{}{end}", file.display())));
        }
        return (None, file);
    }
    let folder = TempFolder::new();
    let file = folder.path().join("talk.db");
    (Some(folder), file)
}

/// The system message at the head of a request body.
fn prefix(body: &[u8]) -> Vec<u8> {
    let request = model::Request::from_body(body).unwrap();
    request.blocks[0].bytes.as_bytes().to_vec()
}

/// The bytes of `body` up to the end of its last message.
fn open(body: &[u8]) -> &[u8] {
    body.strip_suffix(b"]}").unwrap()
}

#[test]
fn over_two_hundred_turns_the_prefix_changes_only_at_recorded_causes() {
    let folder = TempFolder::new();
    let file = folder.path().join("talk.db");
    let mut talk = Talk::open(file.clone(), start(), 1, &["feed.price"]);
    let (mut last, mut digests): (Option<Vec<u8>>, Vec<Digest>) = (None, Vec::new());
    for n in 0..200 {
        if n == 120 {
            // A connector is added while the program is down: the one cause beside the window's.
            let at = talk.clock.now();
            talk = Talk::open(file.clone(), at, 2, &["feed.price", "mail.search"]);
        }
        talk.say(&format!("look {n} {}", "更多的话 and more ".repeat(n % 7)));
        for body in talk.turn() {
            let session = talk.main();
            let digest = Digest::of(&prefix(&body));
            assert_eq!(Some(digest), session.prefix_digest, "the stored prefix is the one sent");
            let window = session.window_start;
            if let Some(last) = &last
                && digests.last() == Some(&digest)
                && talk.causes().iter().all(|c| c.run_n != session.runs - 1)
            {
                assert!(
                    body.starts_with(open(last)),
                    "history only grows, window {window}, turn {n}"
                );
            }
            digests.push(digest);
            last = Some(body);
        }
    }
    digests.dedup();
    assert_eq!(digests.len(), 2, "one prefix before the new connector and one after");
    let causes: Vec<String> = talk.causes().into_iter().map(|change| change.cause).collect();
    assert_eq!(causes[0], "first run");
    assert_eq!(causes.iter().filter(|c| c.contains("tools changed")).count(), 1, "{causes:?}");
    let known = ["first run", "tools changed", "history window moved"];
    assert!(causes.iter().all(|cause| cause.split(", ").all(|part| known.contains(&part))));
}

impl Talk {
    fn causes(&self) -> Vec<store::session::PrefixChange> {
        let session = self.main().id;
        now(self.cx.store.read(move |tx| store::session::prefix_changes(tx, session))).unwrap()
    }
}

#[test]
fn five_thousand_turns_never_end_in_context_too_long() {
    let (_folder, file) = folder();
    let talk = Talk::open(file, start(), 3, &[]);
    for n in 0..5_000 {
        talk.say(&format!("turn {n} {}", "x".repeat(n * 37 % 900)));
        assert_eq!(talk.turn().len(), 1, "turn {n} asks once and is answered");
    }
    let owner = talk.device.owner;
    let (faults, notices, runs) = now(talk.cx.store.read(move |tx| {
        let faults = store::fault::all_open(tx, owner)?;
        let said = store::message::chat_after(tx, owner, 0, 20_000)?;
        let notices = said.iter().filter(|entry| entry.kind == "notice").count();
        let main = store::owner::get(tx, owner)?.main_session;
        let runs = store::run::recent(tx, main, 10_000)?;
        Ok((faults, notices, runs))
    }))
    .unwrap();
    assert_eq!((faults, notices, runs.len()), (vec![], 0, 5_000));
    let ended = runs.iter().filter(|run| run.state == domain::state::RunState::Completed).count();
    assert_eq!(ended, 5_000);
    let moves = talk.causes().len() - 1;
    // About ten of these runs fill the half of the window that a jump frees.
    assert!((250..1_000).contains(&moves), "the window moved {moves} times");
}

#[test]
fn the_same_records_give_the_same_request_in_every_process() {
    const CHILD: &str = "ADJUTANT_TEST_CONTEXT_FILE";
    let ask = |talk: &Talk| match worker::next(&talk.cx, &talk.claim().unwrap()) {
        Action::Ask(request) => Digest::of(&request.body("m")).to_string(),
        other => panic!("{other:?} instead of a question"),
    };
    // A lease of a process that is gone is over after this.
    let later = |n: u64| start().plus_ms(3_600_000 * n);
    if let Ok(file) = std::env::var(CHILD) {
        let n: u64 = std::env::var("ADJUTANT_TEST_CONTEXT_AT").unwrap().parse().unwrap();
        let talk = Talk::open(file.into(), later(n), n as u8, &["b.two", "a.one"]);
        eprintln!("digest {}", ask(&talk));
        return;
    }
    let folder = TempFolder::new();
    let file = folder.path().join("talk.db");
    let talk = Talk::open(file.clone(), start(), 9, &["a.one", "b.two"]);
    for n in 0..12 {
        talk.say(&format!("look at {n}"));
        talk.turn();
    }
    talk.say("and now?");
    let mine = ask(&talk);
    drop(talk);
    let child = |n: u64| {
        let out = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_same_records_give_the_same_request_in_every_process"])
            .arg("--nocapture")
            .env(CHILD, &file)
            .env("ADJUTANT_TEST_CONTEXT_AT", n.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        text.lines().find_map(|l| l.strip_prefix("digest ").map(str::to_owned)).expect(&text)
    };
    assert_eq!([child(2), child(3)], [mine.clone(), mine]);
}
