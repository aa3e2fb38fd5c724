//! What a call would do, the sending of one that was released, and the look for what became of it. Each
//! server is a real process, a shell script that speaks just enough of the protocol; each permit comes
//! through a real store.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[path = "effect/released.rs"]
mod released;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command as Run;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base::{Clock, Digest, Timestamp};
use connect::{
    Acted, Command, ConnectLimits, Connectors, Intended, Issued, Manifest, Needed, Reach, Refusal,
    ServerConfig,
};
use domain::effect::{Effect, Frozen, Object, Observation, Sight, Spec, freeze};
use serde_json::{Map, Value, json};
use store::Permit;
use testkit::permit::{SEND_MS, permit};
use testkit::stores::{Harness, START};
use tokio::runtime::{Builder, Runtime};

const MANIFEST: &str = r#"
[tool.search]
effect = "read"
[tool.find]
effect = "read"
[tool.cancel]
effect = "commitment"
objects = { booking = "booking" }
[tool.book]
effect     = "paid"
objects    = { quote = "offer" }
amount     = "quote.total"
currency   = "quote.currency"
recipients = ["guest"]
once_per   = ["night"]
card       = ["quote.hotel", "guest"]
operation  = "client_ref"
idempotent = { window = "24h" }
undo       = "cancel"
receipt    = "booking.number"
refused    = { path = "error.code", values = ["sold_out", "409"] }
issues     = { booking = "booking.number" }
[tool.book.reconcile]
tool          = "find"
by            = "their_ref"
settled_after = "30m"
ended         = { path = "booking.status", values = ["cancelled"] }
"#;

/// Reads the next request into `$line` and its id into `$id`; ends with the input.
const PRELUDE: &str = r#"
next() {
  while read -r line; do
    case "$line" in *'"id":'*) id=${line#*'"id":'}; id=${id%%[,\}]*}; return 0;; esac
  done
  exit 0
}
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
hello() {
  next
  reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"desk","version":"1"}}'
}
"#;

const LIMIT: Duration = Duration::from_secs(20);
/// For calls that are never answered.
const SHORT: Duration = Duration::from_millis(300);
const OPERATION: &str = "01939e2a-op.1";

/// A store that gives permits, and a runtime for what is done with them.
struct Desk {
    harness: Harness,
    runtime: Runtime,
}

/// A server with what it noted.
struct Vendor {
    connectors: Connectors,
    scratch: PathBuf,
}

impl Vendor {
    fn noted(&self) -> String {
        std::fs::read_to_string(&self.scratch).unwrap()
    }
}

fn limits() -> ConnectLimits {
    ConnectLimits { rest_ms: 0, rest_max_ms: 0, ..ConnectLimits::default() }
}

/// The vendor whose program is this script; `$SCRATCH` is a file of its own.
fn vendor(script: &str) -> Vendor {
    vendor_of("sh", script, MANIFEST, limits())
}

fn vendor_of(program: &str, script: &str, manifest: &str, limits: ConnectLimits) -> Vendor {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("effect-{}-{count}", std::process::id());
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&scratch, "").unwrap();
    let config = ServerConfig {
        name: "desk".to_owned(),
        reach: Reach::Command(Command {
            program: program.to_owned(),
            args: vec!["-c".to_owned(), format!("{PRELUDE}{script}")],
            env: BTreeMap::from([("SCRATCH".to_owned(), scratch.display().to_string())]),
        }),
        manifest: Manifest::parse(manifest).unwrap(),
    };
    Vendor { connectors: Connectors::new(vec![config], limits).unwrap(), scratch }
}

/// A server that answers one call with this result.
fn says(result: &Value) -> String {
    format!("hello; next; echo x >> $SCRATCH; reply '{result}'; next")
}

fn offer() -> Object {
    let snapshot = json!({ "hotel": "Adler", "total": "97.50", "currency": "EUR" });
    Object {
        argument: "quote".to_owned(),
        kind: "offer".to_owned(),
        id: "H-1".to_owned(),
        digest: Digest::of(snapshot.to_string().as_bytes()),
        snapshot,
        expires_at: None,
    }
}

fn arguments() -> Map<String, Value> {
    let arguments =
        json!({ "quote": "H-1", "guest": "Jörg 李", "room": { "beds": [2, null, 1.5] } });
    arguments.as_object().cloned().unwrap()
}

/// The booking, frozen under the entry of these connectors.
fn booking(connectors: &Connectors) -> Frozen {
    let arguments = arguments();
    let intended = connectors.intended("desk.book", &arguments).unwrap().unwrap();
    freeze(&intended.spec, &arguments, &[offer()], None, None).unwrap()
}

impl Desk {
    fn open() -> Desk {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Desk { harness: Harness::sqlite(true, |_| {}), runtime }
    }

    fn permit(&self, connectors: &Connectors) -> Permit {
        permit(&self.harness, &booking(connectors), OPERATION)
    }

    fn act(&self, vendor: &Vendor) -> Acted {
        self.act_within(vendor, LIMIT)
    }

    fn act_within(&self, vendor: &Vendor, limit: Duration) -> Acted {
        let permit = self.permit(&vendor.connectors);
        let clock = self.harness.clock.clone();
        self.runtime.block_on(vendor.connectors.act(permit, &*clock, limit))
    }

    fn find(&self, vendor: &Vendor) -> Sight {
        self.runtime.block_on(vendor.connectors.find("desk.book", OPERATION, LIMIT))
    }
}

fn acted(seen: Observation, answer: &str) -> Acted {
    Acted { seen, answer: answer.to_owned(), issued: Vec::new(), refused_key: None }
}

fn unsent(why: &str) -> Acted {
    acted(Observation::NotSent(why.to_owned()), "")
}

fn lost(why: &str) -> Acted {
    acted(Observation::Lost(why.to_owned()), "")
}

fn other(why: &str) -> Observation {
    Observation::Other(why.to_owned())
}

fn structured(data: &Value) -> Value {
    json!({ "content": [], "structuredContent": data })
}

fn failed(data: &Value) -> Value {
    json!({ "content": [], "structuredContent": data, "isError": true })
}

#[test]
fn an_answer_is_a_receipt_a_refusal_or_proves_nothing() {
    let desk = Desk::open();
    let refused = |value: &str| Observation::Refused(format!("error.code is {value}"));
    let number = |number: Value| json!({ "booking": { "number": number } });
    let both = json!({ "booking": { "number": "B-1" }, "error": { "code": "sold_out" } });
    let none = || other("it answered without a receipt");
    let odd = || other("it answered with something at `booking.number` that is no receipt");
    let code = |code: Value| json!({ "error": { "code": code } });
    for (result, seen) in [
        (structured(&code(json!("sold_out"))), refused("sold_out")),
        (structured(&code(json!(409))), refused("409")),
        (failed(&code(json!("sold_out"))), refused("sold_out")),
        (structured(&code(json!("overloaded"))), none()),
        (structured(&code(json!("SOLD_OUT"))), none()),
        (failed(&code(json!("overloaded"))), other("it answered that it failed")),
        (structured(&json!({})), none()),
        (structured(&number(json!(null))), none()),
        (structured(&number(json!(""))), odd()),
        (structured(&number(json!(true))), odd()),
        (structured(&number(json!({ "id": "B-1" }))), odd()),
        (structured(&number(json!("B".repeat(2_049)))), odd()),
        (structured(&both), other("it answered with a receipt and with a refusal")),
        (failed(&number(json!("B-1"))), other("it answered with a receipt, and that it failed")),
    ] {
        let data = result["structuredContent"].to_string();
        assert_eq!(desk.act(&vendor(&says(&result))), acted(seen, &data));
    }
    let said = json!({ "content": [{ "type": "text", "text": "Booked: B-1" }] });
    assert_eq!(desk.act(&vendor(&says(&said))), acted(none(), "Booked: B-1"));
    for (script, why) in [
        (
            r#"hello; next; printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad night"}}\n' "$id"; next"#,
            "it answered with error -32602: bad night",
        ),
        (
            r#"hello; next; reply '{"resultType":"input_required","inputRequests":{}}'; next"#,
            "it answered with a question to the user",
        ),
    ] {
        assert_eq!(desk.act(&vendor(script)), acted(other(why), ""));
    }
}

#[test]
fn only_a_receipt_issues_something() {
    let desk = Desk::open();
    let issued = |id: &str, snapshot: Value| Issued {
        kind: "booking".to_owned(),
        id: id.to_owned(),
        snapshot,
        expires_at: None,
    };
    for (number, receipt) in [(json!("B-1"), "B-1"), (json!(7), "7")] {
        let data = json!({ "booking": { "number": number } });
        let text = json!({ "content": [{ "type": "text", "text": data.to_string() }] });
        for result in [structured(&data), text] {
            let expected = Acted {
                seen: Observation::Receipt(receipt.to_owned()),
                answer: data.to_string(),
                issued: vec![issued(receipt, data["booking"].clone())],
                refused_key: None,
            };
            assert_eq!(desk.act(&vendor(&says(&result))), expected);
        }
    }
    // The text is cut, the receipt is not lost with it.
    let data = json!({ "booking": { "number": "B-1" } });
    let long = json!({
        "content": [{ "type": "text", "text": "x".repeat(500) }],
        "structuredContent": data,
    });
    let limits = ConnectLimits { text_bytes_max: 60, ..limits() };
    let seen = desk.act(&vendor_of("sh", &says(&long), MANIFEST, limits));
    assert_eq!(seen.seen, Observation::Receipt("B-1".to_owned()));
    assert_eq!(seen.answer, "xxxxxxxxxxxx\n[cut: the first 12 of 500 bytes; ask for less]");
}

#[test]
fn what_is_not_answered_is_lost() {
    let desk = Desk::open();
    let ended = || lost("the connector's process ended before it answered");
    let late = || lost("no answer came within 300 ms");
    let hangs = vendor("hello; next; echo x >> $SCRATCH; next");
    assert_eq!(desk.act_within(&hangs, SHORT), late());
    assert_eq!(hangs.noted(), "x\n");
    // An answer to another question, half an answer, and words that are none.
    let garbage = r#"hello; next; echo done; echo '{"half'; id=999; reply '{"content":[]}'; next"#;
    assert_eq!(desk.act_within(&vendor(garbage), SHORT), late());
    assert_eq!(desk.act(&vendor("hello; next; exit 1")), ended());
    assert_eq!(desk.act(&vendor("hello; next; exec yes")), ended());
    let huge = r#"hello; next; reply "\"$(head -c 200000 /dev/zero | tr '\0' a)\""; next"#;
    let limits = ConnectLimits { message_bytes_max: 100_000, ..limits() };
    let huge = vendor_of("sh", huge, MANIFEST, limits);
    assert_eq!(desk.act(&huge), lost("its answer had more than 100000 bytes"));
}

#[test]
fn a_process_killed_while_the_request_is_out_leaves_it_lost() {
    let desk = Desk::open();
    let vendor = vendor("hello; next; echo $$ > $SCRATCH; next");
    let permit = desk.permit(&vendor.connectors);
    let clock = desk.harness.clock.clone();
    let kill = async {
        while !vendor.noted().ends_with('\n') {
            tokio::task::yield_now().await;
        }
        let killed = Run::new("kill").args(["-9", vendor.noted().trim()]).status().unwrap();
        assert!(killed.success());
    };
    let act = vendor.connectors.act(permit, &*clock, LIMIT);
    let (acted, ()) = desk.runtime.block_on(async { tokio::join!(act, kill) });
    assert_eq!(acted, lost("the connector's process ended before it answered"));
}

#[test]
fn our_id_travels_in_its_argument_and_nothing_else_changes() {
    let desk = Desk::open();
    let script = "hello; next; printf '%s\\n' \"$line\" > $SCRATCH; next";
    let nowhere = MANIFEST.replace("idempotent = { window = \"24h\" }\n", "");
    let nowhere = nowhere.replace("operation  = \"client_ref\"\n", "");
    let nowhere = nowhere.split("[tool.book.reconcile]").next().unwrap().to_owned();
    for (manifest, name) in [(MANIFEST, Some("client_ref")), (&nowhere, None)] {
        let vendor = vendor_of("sh", script, manifest, limits());
        desk.act_within(&vendor, SHORT);
        let sent: Value = serde_json::from_str(&vendor.noted()).unwrap();
        assert_eq!(
            (&sent["method"], &sent["params"]["name"]),
            (&json!("tools/call"), &json!("book"))
        );
        let mut expected = arguments();
        expected.extend(name.map(|name| (name.to_owned(), json!(OPERATION))));
        assert_eq!(sent["params"]["arguments"], Value::Object(expected));
    }
}

#[test]
fn nothing_leaves_after_its_time() {
    let desk = Desk::open();
    let receipt = says(&structured(&json!({ "booking": { "number": "B-1" } })));
    let late = "the moment until which it could be sent had passed";
    for (after_ms, sent) in [(SEND_MS, true), (SEND_MS + 1, false)] {
        let vendor = vendor(&receipt);
        let permit = desk.permit(&vendor.connectors);
        let now = desk.harness.clock.advance_ms(after_ms);
        assert_eq!(now <= permit.send_by(), sent);
        let clock = desk.harness.clock.clone();
        let acted = desk.runtime.block_on(vendor.connectors.act(permit, &*clock, LIMIT));
        assert_eq!(vendor.noted(), if sent { "x\n" } else { "" });
        assert_eq!(acted == unsent(late), !sent, "{acted:?}");
    }
}

/// A clock that is late as soon as a file has something in it.
#[derive(Debug)]
struct LateOnce(PathBuf);

impl Clock for LateOnce {
    fn now(&self) -> Timestamp {
        let late = !std::fs::read_to_string(&self.0).unwrap().is_empty();
        START.plus_ms(if late { SEND_MS + 1 } else { 0 })
    }
}

#[test]
fn the_clock_is_asked_once_the_connector_has_started() {
    let desk = Desk::open();
    let vendor = vendor("echo started >> $SCRATCH; hello; next; echo asked >> $SCRATCH; next");
    let permit = desk.permit(&vendor.connectors);
    let clock = LateOnce(vendor.scratch.clone());
    let acted = desk.runtime.block_on(vendor.connectors.act(permit, &clock, LIMIT));
    assert_eq!(acted, unsent("the moment until which it could be sent had passed"));
    assert_eq!(vendor.noted(), "started\n");
}

#[test]
fn nothing_leaves_for_another_entry_than_the_released_one() {
    let desk = Desk::open();
    let old = vendor("exit 1");
    let changed = "the connector's manifest says something else of this tool now";
    let gone = "no manifest has an entry of this tool any more";
    let cheaper = MANIFEST.replace("quote.total", "quote.deposit");
    let read = MANIFEST.replace("\"paid\"", "\"read\"");
    for (manifest, why) in
        [(cheaper.as_str(), changed), (&read, changed), ("[tool.other]\neffect = \"paid\"", gone)]
    {
        let permit = desk.permit(&old.connectors);
        let vendor = vendor_of("sh", "echo started >> $SCRATCH", manifest, limits());
        let clock = desk.harness.clock.clone();
        let acted = desk.runtime.block_on(vendor.connectors.act(permit, &*clock, LIMIT));
        assert_eq!((acted, vendor.noted()), (unsent(why), String::new()));
    }
}

#[test]
fn a_connector_that_cannot_be_used_is_sent_nothing() {
    let desk = Desk::open();
    let why = |acted: Acted| {
        let Observation::NotSent(why) = acted.seen else { panic!("{acted:?}") };
        why
    };
    let missing = vendor_of("no-such-program", "", MANIFEST, limits());
    let said = why(desk.act(&missing));
    assert!(said.starts_with("connector `desk`: could not start `no-such-program`"), "{said}");
    let dies = why(desk.act(&vendor("exit 1")));
    assert!(dies.starts_with("connector `desk` stopped during `initialize`"), "{dies}");
    let silent = ConnectLimits { start_ms: 200, ..limits() };
    let silent = why(desk.act(&vendor_of("sh", "cat > /dev/null", MANIFEST, silent)));
    assert!(silent.starts_with("connector `desk` did not answer `initialize`"), "{silent}");

    // All places are taken by a call that is still out.
    let busy = ConnectLimits { in_flight_max: 1, ..limits() };
    let busy = vendor_of("sh", "hello; next; echo x >> $SCRATCH; next", MANIFEST, busy);
    let (first, second) = (desk.permit(&busy.connectors), desk.permit(&busy.connectors));
    let clock = desk.harness.clock.clone();
    let first = busy.connectors.act(first, &*clock, Duration::from_secs(2));
    let second = busy.connectors.act(second, &*clock, SHORT);
    let (first, second) = desk.runtime.block_on(async { tokio::join!(first, second) });
    assert_eq!(first, lost("no answer came within 2000 ms"));
    assert!(why(second).starts_with("connector `desk` has 1 calls under way"));
    assert_eq!(busy.noted(), "x\n");

    let closed = vendor(&says(&structured(&json!({}))));
    desk.runtime.block_on(closed.connectors.shutdown());
    assert!(why(desk.act(&closed)).starts_with("connector `desk` is shut down"));
    assert_eq!(closed.noted(), "");
}

#[test]
fn a_look_finds_finds_nothing_or_fails() {
    let desk = Desk::open();
    let found = |number: &str, ended: bool| Sight::Found { receipt: number.to_owned(), ended };
    let unreadable = |why: &str| Sight::Unreadable(why.to_owned());
    let is = |number: Value, status: &str| {
        structured(&json!({ "booking": { "number": number, "status": status } }))
    };
    for (result, sight) in [
        (is(json!("B-1"), "confirmed"), found("B-1", false)),
        (is(json!("B-1"), "cancelled"), found("B-1", true)),
        (is(json!(7), "confirmed"), found("7", false)),
        (structured(&json!({ "booking": null })), Sight::Absent),
        (structured(&json!({})), Sight::Absent),
        (is(json!(null), "pending"), Sight::Absent),
        (
            is(json!(true), "confirmed"),
            unreadable("it answered with something at `booking.number` that is no receipt"),
        ),
        (failed(&json!({})), unreadable("{}")),
        (
            failed(&json!({ "booking": { "number": "B-1" } })),
            unreadable(r#"{"booking":{"number":"B-1"}}"#),
        ),
        (
            json!({ "content": [{ "type": "text", "text": "Try later" }] }),
            unreadable("its answer is not JSON"),
        ),
    ] {
        assert_eq!(desk.find(&vendor(&says(&result))), sight, "{result}");
    }
    for (script, why) in [
        ("hello; next; exit 1", "connector `desk` stopped during `desk.find`"),
        ("exit 1", "connector `desk` stopped during `initialize`"),
    ] {
        let Sight::Unreadable(said) = desk.find(&vendor(script)) else { panic!("{script}") };
        assert!(said.starts_with(why), "{said}");
    }
    let vendor = vendor("hello; next; printf '%s\\n' \"$line\" > $SCRATCH; exit 0");
    desk.find(&vendor);
    let asked: Value = serde_json::from_str(&vendor.noted()).unwrap();
    assert_eq!(asked["params"]["name"], json!("find"));
    assert_eq!(asked["params"]["arguments"], json!({ "their_ref": OPERATION }));
}

#[test]
fn what_cannot_be_looked_up_stays_unknown() {
    let desk = Desk::open();
    let vendor = vendor("echo started >> $SCRATCH");
    let find = |tool: &str| desk.runtime.block_on(vendor.connectors.find(tool, OPERATION, LIMIT));
    let unreadable = |why: &str| Sight::Unreadable(why.to_owned());
    assert_eq!(find("desk.gone"), unreadable("no manifest has an entry of this tool any more"));
    assert_eq!(
        find("desk.cancel"),
        unreadable("the tool's manifest entry names no way to look it up")
    );
    assert_eq!(vendor.noted(), "");
}

#[test]
fn an_intended_call_is_what_the_manifest_says() {
    let connectors = vendor("exit 1").connectors;
    let intended =
        |tool: &str, arguments: Value| connectors.intended(tool, arguments.as_object().unwrap());
    let text = str::to_owned;
    let needed =
        |id: &str| Needed { argument: text("quote"), kind: Some(text("offer")), id: text(id) };
    let spec = Spec {
        tool: text("desk.book"),
        effect: Effect::Paid,
        entry: Manifest::parse(MANIFEST).unwrap().entry_digest("book").unwrap(),
        objects: BTreeMap::from([(text("quote"), text("offer"))]),
        amount: Some(text("quote.total")),
        currency: Some(text("quote.currency")),
        recipients: vec![text("guest")],
        once_per: vec![text("night")],
        card: vec![text("quote.hotel"), text("guest")],
        operation: Some(text("client_ref")),
        undo: Some(text("desk.cancel")),
        can_look_up: true,
        settled_after_ms: Some(1_800_000),
        idempotent_ms: Some(86_400_000),
    };
    let whole = |needs: Vec<Needed>| Some(Ok(Intended { spec: spec.clone(), needs }));
    assert_eq!(intended("desk.book", json!({ "quote": "H-1" })), whole(vec![needed("H-1")]));
    assert_eq!(intended("desk.book", json!({ "quote": ["H-1"] })), whole(vec![needed("H-1")]));
    // What is missing is for the freezing to say.
    assert_eq!(intended("desk.book", json!({ "guest": "H-1" })), whole(Vec::new()));
    assert_eq!(connectors.spec("desk.book"), Some(spec.clone()));
    for reads_or_is_none in ["desk.search", "desk.boook", "desk", ""] {
        assert_eq!(intended(reads_or_is_none, json!({})), None);
        assert_eq!(connectors.spec(reads_or_is_none), None);
    }

    let refusal = |tool: &str, arguments: Value| intended(tool, arguments).unwrap().unwrap_err();
    assert_eq!(
        refusal("desk.book", json!({ "quote": { "id": "H-1" } })),
        Refusal::NotAnId { tool: text("desk.book"), argument: text("quote"), kind: text("offer") }
    );
    // A list is for the freezing to refuse: it prices and shows one object.
    let cancel = intended("desk.cancel", json!({ "booking": ["B-1", "B-2"] })).unwrap().unwrap();
    assert_eq!(cancel.needs.len(), 2);
    assert_eq!((cancel.spec.can_look_up, cancel.spec.settled_after_ms), (false, None));
    let many: Vec<String> = (0..201).map(|n| n.to_string()).collect();
    assert_eq!(
        refusal("desk.cancel", json!({ "booking": many })),
        Refusal::TooManyIds { tool: text("desk.cancel"), ids: 201 }
    );
}
