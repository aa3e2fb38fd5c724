//! The command line against a server that follows the contract, breaks connections and says no.

mod actions;
mod cards;
mod devices;
pub mod peer;
mod world;

use std::io::Write;
use std::sync::mpsc::{Sender, channel};

use base::{EventId, IdSource, Secret, Timestamp};
use peer::{Asked, Peer, Reply};
use serde_json::{Value, json};

use super::{Answer, Change, Client, ClientError, Endpoint, Exit, Repeat, Screen, TailOptions};

const CARD: &str = "01900000-0000-7000-8000-00000000c001";
const DUTY: &str = "01900000-0000-7000-8000-00000000d001";

#[derive(Debug)]
struct Still;

impl base::Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_764_489_600_000_000)
    }
}

fn client(url: &str) -> Client {
    let endpoint = Endpoint {
        url: url.parse().expect("an address"),
        token: Some(Secret::new("token-1").expect("a token")),
        origin: "the test".into(),
    };
    let http = super::http_client().expect("a client");
    Client::new(endpoint, http, IdSource::new([7; 32]), Box::new(Still))
}

/// What a command wrote and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub out: String,
    pub err: String,
    pub exit: Exit,
    pub error: String,
}

/// Runs one command on a screen with an optional person at the keyboard.
pub(crate) fn run(
    json: bool,
    person: Option<&str>,
    command: impl AsyncFnOnce(&mut Screen<'_>) -> Result<(), ClientError>,
) -> Ended {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut keys = person.unwrap_or("").as_bytes();
    let keyboard = person.map(|_| &mut keys as &mut dyn std::io::BufRead);
    let mut screen = Screen { out: &mut out, err: &mut err, keyboard, json };
    let done = runtime().block_on(command(&mut screen));
    let (exit, error) = match done {
        Ok(()) => (Exit::Ok, String::new()),
        Err(error) => (error.class().0, error.to_string()),
    };
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ended { out: text(out), err: text(err), exit, error }
}

/// One thread for one command.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn problem(status: u16, title: &str, detail: &str) -> Reply {
    let body = json!({"type": "about:blank", "title": title, "status": status, "detail": detail});
    Reply::Json(status, body)
}

fn me() -> Reply {
    Reply::Json(200, json!({"zone": "Asia/Hong_Kong", "seq": 10}))
}

const ONCE: Repeat = Repeat { id: None, wait_s: 0 };

#[test]
fn a_message_whose_answer_was_lost_goes_again_with_the_same_id() {
    let mut first = true;
    let peer = Peer::start(move |_| {
        if std::mem::take(&mut first) {
            return Reply::Drop;
        }
        Reply::Json(200, json!({"event": "e-1", "seq": 11}))
    });
    let client = client(&peer.url);
    let repeat = Repeat { id: None, wait_s: 10 };
    let ended =
        run(true, None, async |screen| super::send(&client, "Hi", None, repeat, screen).await);
    let id = ended.err.trim_end().strip_prefix("Message id ").expect("the id comes first");
    let wanted = Asked {
        what: "POST /v1/messages".into(),
        token: Some("token-1".into()),
        body: json!({"id": id, "text": "Hi"}),
    };
    assert_eq!(peer.asked(""), [wanted.clone(), wanted]);
    let answer: Value = serde_json::from_str(&ended.out).expect("one JSON object");
    assert_eq!(answer, json!({"id": id, "event": "e-1", "seq": 11}));
    assert_eq!(ended.exit, Exit::Ok);
    let text =
        run(false, None, async |screen| super::send(&client, "Hi", None, repeat, screen).await);
    assert_eq!(text.out, "Received, not read yet.\n", "one id is shown, and it is shown before");
}

#[test]
fn a_message_that_is_given_up_says_whether_it_may_have_arrived() {
    let id: EventId = "01900000-0000-7000-8000-00000000e001".parse().expect("an id");
    let repeat = Repeat { id: Some(id), wait_s: 0 };
    let try_at = |url: &str| {
        let client = client(url);
        run(false, None, async |screen| super::send(&client, "it's me", None, repeat, screen).await)
    };
    let again = format!("Repeat it safely with: adjutant send --id {id} 'it'\\''s me'");
    let peer = Peer::start(|_| Reply::Drop);
    let unknown = try_at(&peer.url);
    assert_eq!(unknown.exit, Exit::Unreachable);
    assert!(unknown.error.starts_with("Not known whether it was sent: no answer from"));
    assert!(unknown.error.ends_with(&again), "{}", unknown.error);
    assert_eq!(peer.asked("POST").len(), 1);

    // Bound and closed again, so that nobody listens there.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", free.local_addr().expect("an address"));
    drop(free);
    let nobody = try_at(&url);
    assert_eq!(nobody.exit, Exit::Unreachable);
    let start = "start it with: adjutant serve";
    assert_eq!(nobody.error, format!("Not sent: no server at {url}; {start}\n{again}"));

    let full = "The disk of the server is full and nothing was written. Free some space.";
    let peer = Peer::start(move |_| {
        Reply::Json(503, json!({"title": "Unavailable", "detail": full, "written": "nothing"}))
    });
    let certain = try_at(&peer.url);
    let wanted = format!("Not sent: the server failed (503): {full}\n{again}");
    assert_eq!((certain.exit, certain.error), (Exit::Error, wanted));
    // Once an attempt may have been carried out, a later certain failure does not make that certain.
    let mut first = true;
    let peer = Peer::start(move |_| match std::mem::take(&mut first) {
        true => Reply::Drop,
        false => Reply::Json(503, json!({"detail": full, "written": "nothing"})),
    });
    let client = client(&peer.url);
    let repeat = Repeat { id: Some(id), wait_s: 1 };
    let doubt =
        run(false, None, async |screen| super::send(&client, "Hi", None, repeat, screen).await);
    assert_eq!(doubt.exit, Exit::Unreachable);
    assert!(doubt.error.starts_with("Not known whether it was sent"), "{}", doubt.error);
}

#[test]
fn refusals_keep_the_words_of_the_server_and_are_not_repeated() {
    let cases = [
        (409, Exit::Refused, "Conflict (409): that id holds another text; use a new one"),
        (413, Exit::Error, "Conflict (413): that id holds another text; use a new one"),
        (500, Exit::Error, "the server failed (500): that id holds another text; use a new one"),
        (
            401,
            Exit::Refused,
            "the server refused the token from the test: that id holds another \
          text; use a new one\nIf the data folder was replaced, use the one the server uses \
          (--config). If this device was revoked, start the server again where it runs; elsewhere \
          remove that token, then: adjutant pair CODE",
        ),
    ];
    for (status, exit, error) in cases {
        let detail = "that id holds another text; use a new one";
        let peer = Peer::start(move |_| problem(status, "Conflict", detail));
        let client = client(&peer.url);
        let repeat = Repeat { id: None, wait_s: 10 };
        let ended = run(false, None, async |s| super::send(&client, "Hi", None, repeat, s).await);
        assert_eq!((ended.exit, ended.error.as_str()), (exit, error));
        assert_eq!(peer.asked("").len(), 1, "{status} was repeated");
    }
}

fn plain_answer() -> Answer {
    Answer { yes: false, digest: None, id: None }
}

fn duty() -> Value {
    json!({"id": DUTY, "title": "Kyoto\u{1b}[2J fare", "state": "stopped", "version": 2,
        "goal": "Know when", "conditions": [{"text": "below 300", "evidence": "a quote",
        "authority": "the airline"}], "created_at": "2026-11-30T08:00:00Z", "next_wake": null,
        "waits": [{"id": "w", "kind": "reply", "key": "Ms Lau", "due_at": "2026-12-03T02:00:00Z",
        "state": "open"}], "schedules": [{"id": "s", "words": "every day at 9",
        "prompt": "Look at the fare.", "next_slot":
        "2026-12-01T01:00:00Z", "state": "paused", "late_last": true}], "runs": [{"id": "r",
        "state": "done", "started_at": "2026-11-30T08:00:05Z", "ended_at": null, "steps": 3,
        "input_tokens": 1200, "output_tokens": 80, "micro_usd": 20_000}],
        "grants": [{"id": "g", "words": "fare.book, at most twice, USD 300.00 in all",
        "state": "active", "reserved": {"count": 1, "amount": {"text": "USD 90.00"}},
        "spent": {"count": 0, "amount": {"text": "USD 0.00"}},
        "left": {"count": 1, "amount": {"text": "USD 210.00"}}}],
        "spent_micro_usd": 20_000, "state_line": "Stopped at 16:05 · nothing new goes out"})
}

#[test]
fn stopping_shows_the_duty_as_it_is_then() {
    let peer = Peer::start(|asked| match asked.what.as_str() {
        "GET /v1/me" => me(),
        _ => Reply::Json(200, duty()),
    });
    let client = client(&peer.url);
    let ended = run(false, None, async |screen| {
        super::change_duty(&client, DUTY, Change::Stop, ONCE, screen).await
    });
    let wanted = "\
Kyoto\u{fffd}[2J fare
Stopped at 16:05 · nothing new goes out

Id       01900000-0000-7000-8000-00000000d001
State    stopped (version 2, since Mon 30 Nov 16:00)
Next     -
Spent    US$0.02
Goal     Know when
Done when
  - below 300; evidence: a quote; authority: the airline
Ends     when you confirm that it is done, or stop it
Wakes
  - every day at 9 [paused, the last one late], next Tue 01 Dec 09:00
    Task: Look at the fare.
May do without asking again
  - fare.book, at most twice, USD 300.00 in all [active]
    Done 0 × (USD 0.00), under way 1 × (USD 90.00), left 1 × (USD 210.00)
Waits for
  - reply Ms Lau [open], until Thu 03 Dec 10:00
Runs, newest first
  - Mon 30 Nov 16:00 [done] 3 steps, 1200 tokens in, 80 out, US$0.02
";
    assert_eq!((ended.out.as_str(), ended.exit), (wanted, Exit::Ok));
    assert_eq!(peer.asked("POST")[0].what, format!("POST /v1/duties/{DUTY}/stop"));

    let nobody = self::client("http://127.0.0.1:1");
    let ended = run(false, None, async |screen| {
        super::change_duty(&nobody, DUTY, Change::Stop, ONCE, screen).await
    });
    assert_eq!(ended.exit, Exit::Unreachable);
    assert!(ended.error.starts_with("Not stopped yet – no connection"), "{}", ended.error);
    let full = Peer::start(|_| Reply::Json(503, json!({"detail": "full", "written": "nothing"})));
    let full = self::client(&full.url);
    let ended = run(false, None, async |screen| {
        super::change_duty(&full, DUTY, Change::Stop, ONCE, screen).await
    });
    assert!(ended.error.starts_with("Not stopped yet: the server failed"), "{}", ended.error);
}

#[test]
fn duties_are_a_table_and_the_json_is_what_the_server_said() {
    let peer = Peer::start(|asked| match asked.what.as_str() {
        "GET /v1/me" => me(),
        _ => Reply::Json(200, json!({"duties": [duty()], "new_field": 1})),
    });
    let client = client(&peer.url);
    let text = run(false, None, async |screen| super::duties(&client, screen).await);
    let wanted = "\
ID                                    STATE           NEXT                 SPENT  TITLE
01900000-0000-7000-8000-00000000d001  stopped         -                  US$0.02  \
Kyoto\u{fffd}[2J fare
    Stopped at 16:05 · nothing new goes out
";
    assert_eq!(text.out, wanted);
    let json = run(true, None, async |screen| super::duties(&client, screen).await);
    let found: Value = serde_json::from_str(&json.out).expect("one object");
    assert_eq!(found, json!({"duties": [duty()], "new_field": 1}));
}

/// A record with a conversation that moves on by itself whenever a receipt comes.
#[derive(Default)]
struct World {
    entries: Vec<Value>,
    changes: Vec<Value>,
    seq: i64,
    streams: u32,
    receipts: u32,
    signal: Option<Sender<i64>>,
}

impl World {
    fn change(&mut self, noun: &str, id: &str) {
        self.seq += 1;
        self.changes.push(json!({"seq": self.seq, "noun": noun, "id": id}));
    }

    fn say(&mut self, kind: &str, id: &str, state: &str) {
        let noun = if kind == "user" { "event" } else { "message" };
        self.change(noun, id);
        self.entries.push(
            json!({"seq": self.seq, "kind": kind, "id": id, "text": format!("text of {id}"),
            "at": "2026-11-30T08:00:00Z", "state": state, "duty": null, "proposal": null,
            "late": false}),
        );
    }

    fn signal(&self) {
        if let Some(signal) = &self.signal {
            let _ = signal.send(self.seq);
        }
    }

    fn receipt(&mut self, body: &Value) {
        for id in body["messages"].as_array().into_iter().flatten() {
            let id = id.as_str().unwrap_or_default().to_string();
            self.change("message", &id);
            let seq = self.seq;
            for entry in self.entries.iter_mut().filter(|entry| entry["id"] == json!(id)) {
                entry["state"] = json!("delivered");
                entry["seq"] = json!(seq);
            }
        }
        self.receipts += 1;
        match self.receipts {
            1 => {
                self.change("event", "u1");
                self.entries[0]["state"] = json!("handled");
                self.say("agent", "m2", "queued");
            }
            // The connection breaks, with nobody told of it.
            2 => self.signal = None,
            3 => {
                // A change that moves no state: nothing is shown for it.
                self.change("event", "u1");
                self.say("notice", "the-end", "queued");
            }
            _ => {}
        }
        self.signal();
    }

    fn answer(&mut self, asked: &Asked) -> Reply {
        let (path, query) = asked.what.split_once('?').unwrap_or((&asked.what, ""));
        let after = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("after="))
            .map(|after| after.parse::<i64>().expect("a number"));
        let later = |rows: &[Value]| -> Vec<Value> {
            let is_later = |row: &&Value| row["seq"].as_i64() > after;
            rows.iter().filter(is_later).cloned().collect()
        };
        let (seq, more) = (self.seq, false);
        match path {
            "GET /v1/stream" => {
                self.streams += 1;
                if self.streams == 2 {
                    // While the client was away, things happened, and the list was cut short.
                    self.say("agent", "m3", "queued");
                    self.change("work_item", "internal");
                    self.say("agent", "m4", "uncertain");
                    self.changes.drain(..self.changes.len() - 1);
                }
                let (sender, receiver) = channel();
                self.signal = Some(sender);
                Reply::Signals(receiver)
            }
            "GET /v1/me" => Reply::Json(200, json!({"zone": "UTC", "seq": seq})),
            "GET /v1/chat" => {
                Reply::Json(200, json!({"entries": later(&self.entries), "seq": seq, "more": more}))
            }
            "GET /v1/changes" => {
                Reply::Json(200, json!({"changes": later(&self.changes), "seq": seq, "more": more}))
            }
            "POST /v1/receipts" => {
                self.receipt(&asked.body);
                Reply::Json(200, json!({"seq": self.seq}))
            }
            path => {
                let id = path.strip_prefix("GET /v1/chat/").unwrap_or_default();
                match self.entries.iter().find(|entry| entry["id"] == json!(id)) {
                    Some(entry) => Reply::Json(200, entry.clone()),
                    None => problem(404, "Not found", "no such entry"),
                }
            }
        }
    }
}

/// A screen that is closed once it should show the end of the story.
#[derive(Default)]
struct UntilEnd(Vec<u8>);

impl Write for UntilEnd {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if String::from_utf8_lossy(bytes).contains("the-end") {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_tail_shows_everything_once_through_a_broken_stream_and_a_gap() {
    let mut world = World { seq: 8, ..World::default() };
    world.say("user", "u1", "read");
    world.say("agent", "m1", "queued");
    let peer = Peer::start(move |asked| world.answer(asked));
    let client = client(&peer.url);
    let (mut out, mut err) = (UntilEnd::default(), Vec::new());
    let mut screen = Screen { out: &mut out, err: &mut err, keyboard: None, json: false };
    let options = TailOptions { last: 10, after: None, receipts: true };
    let done = runtime().block_on(super::tail(&client, options, &mut screen));
    assert_eq!(done.map_err(|error| error.class().0), Err(Exit::Ok), "ended by the closed screen");
    let wanted = "\
Mon 30 Nov 08:00  you [read]  text of u1
Mon 30 Nov 08:00  adjutant [queued]  text of m1
Mon 30 Nov 08:00  you …u1: now handled
Mon 30 Nov 08:00  adjutant [queued]  text of m2
Mon 30 Nov 08:00  adjutant [queued]  text of m3
Mon 30 Nov 08:00  adjutant [uncertain]  text of m4
";
    assert_eq!(String::from_utf8_lossy(&out.0), wanted);
    let url = format!("{}/", peer.url);
    let lost = format!(
        "no answer from {url} (the server closed the stream); see whether it runs with: adjutant \
         doctor\nTrying again …\nConnected again.\n"
    );
    assert_eq!(String::from_utf8_lossy(&err), lost);
    let receipts: Vec<Value> = peer
        .asked("POST /v1/receipts")
        .into_iter()
        .map(|asked| asked.body["messages"].clone())
        .collect();
    assert_eq!(receipts, [json!(["m1"]), json!(["m2"]), json!(["m3", "m4"])]);
}

#[test]
fn the_token_is_taken_from_a_file_that_nobody_else_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("adjutant-token-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let toml = folder.join("adjutant.toml");
    std::fs::write(&toml, "data_dir = \".\"\n").expect("written");
    let config = crate::config::Config::load(Some(&toml), &|_| None).expect("readable");
    let find = |env: crate::config::Env<'_>| {
        Endpoint::find(&config, env)
            .map(|found| {
                (found.url.to_string(), found.token.map(|token| token.expose().to_string()))
            })
            .map_err(|error| error.to_string())
    };
    let file = folder.join("cli.token").display().to_string();
    assert_eq!(
        find(&|_| None),
        Err(format!(
            "no token in {file} (No such file or directory (os error 2)); the server writes it at \
             its first start (adjutant serve), or set ADJUTANT_TOKEN"
        ))
    );
    std::fs::write(&file, "t1\n").expect("written");
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode));
    mode(0o644).expect("mode");
    assert_eq!(
        find(&|_| None),
        Err(format!("{file} has mode 0644, others can read it; run: chmod 600 {file}"))
    );
    mode(0o600).expect("mode");
    let local = "http://127.0.0.1:7177/".to_string();
    assert_eq!(find(&|_| None), Ok((local.clone(), Some("t1".into()))));
    let token = |name: &str| (name == "ADJUTANT_TOKEN").then(|| "t2".to_string());
    assert_eq!(find(&token), Ok((local, Some("t2".into()))));
    let url = |name: &str| (name == "ADJUTANT_URL").then(|| "http://example.com:7177".to_string());
    assert_eq!(
        find(&url),
        Err("http://example.com:7177/ would carry the token in the clear; use https, or an SSH \
             tunnel"
            .to_string())
    );
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn pairing_keeps_the_token_for_oneself_and_never_overwrites_one() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = std::env::temp_dir().join(format!("adjutant-pair-{}", std::process::id()));
    let file = folder.join("cli.token");
    let peer = Peer::start(|_| {
        Reply::Json(201, json!({"device": "dev-1", "token": "t9", "owner": "own-1"}))
    });
    let client = client(&peer.url);
    let pair = || {
        run(true, None, async |screen| {
            super::pair(&client, "ABCD-EFGH", "laptop", &file, screen).await
        })
    };
    let ended = pair();
    assert!(!ended.out.contains("t9"), "the token is not printed");
    assert_eq!(ended.exit, Exit::Ok);
    assert_eq!(std::fs::read_to_string(&file).expect("kept"), "t9\n");
    let mode = std::fs::metadata(&file).expect("kept").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(pair().exit, Exit::Usage);
    assert_eq!(peer.asked("").len(), 1, "the second code was not used up");
    std::fs::remove_dir_all(&folder).expect("removed");
}
