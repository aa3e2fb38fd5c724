//! Servers as they are in the world: they die, hang, talk nonsense and answer at length. Each is a
//! real process, a shell script that speaks just enough of the protocol.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use connect::{
    Command, ConnectError, ConnectLimits, Connectors, Level, Manifest, Reach, ServerConfig,
    ToolAnswer, ToolSchema,
};
use serde_json::Map;

/// Reads the next request into `$line` and its id into `$id`; ends with the input.
const PRELUDE: &str = r#"
next() {
  while read -r line; do
    case "$line" in *'"id":'*) id=${line#*'"id":'}; id=${id%%[,\}]*}; return 0;; esac
  done
  exit 0
}
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
say() { reply "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
hello() {
  next
  reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}'
}
"#;

const LIMIT: Duration = Duration::from_secs(20);
/// For calls that are never answered.
const SHORT: Duration = Duration::from_millis(100);

fn limits() -> ConnectLimits {
    ConnectLimits { rest_ms: 0, rest_max_ms: 0, ..ConnectLimits::default() }
}

/// One server named `odd` with two reading tools. `$SCRATCH` is a file of its own.
fn odd(test: &str, script: &str, limits: ConnectLimits) -> (Connectors, PathBuf) {
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::write(&scratch, "").unwrap();
    let config = ServerConfig {
        name: "odd".to_owned(),
        reach: Reach::Command(Command {
            program: "sh".to_owned(),
            args: vec!["-c".to_owned(), format!("{PRELUDE}{script}")],
            env: BTreeMap::from([("SCRATCH".to_owned(), scratch.display().to_string())]),
        }),
        manifest: Manifest::parse("[tool.t]\neffect = \"read\"\n[tool.u]\neffect = \"read\"")
            .unwrap(),
    };
    (Connectors::new(vec![config], limits).unwrap(), scratch)
}

async fn call(connectors: &Connectors, tool: &str) -> Result<ToolAnswer, ConnectError> {
    call_within(connectors, tool, LIMIT).await
}

async fn call_within(
    connectors: &Connectors,
    tool: &str,
    limit: Duration,
) -> Result<ToolAnswer, ConnectError> {
    let tool = connectors.wanted(tool, Map::new()).unwrap().cleared(|_| false).unwrap();
    connectors.call(tool, limit).await
}

fn answer(text: &str) -> ToolAnswer {
    ToolAnswer {
        text: text.to_owned(),
        is_error: false,
        provenance: "mcp:odd.t".to_owned(),
        level: Level::Connector,
        issued: Vec::new(),
    }
}

fn stopped(during: &str, garbage: &str) -> ConnectError {
    ConnectError::Stopped {
        server: "odd".to_owned(),
        during: during.to_owned(),
        garbage: garbage.to_owned(),
    }
}

#[tokio::test]
async fn a_server_that_dies_is_back_at_the_next_call() {
    // It dies during the first and the second call and answers from then on.
    let script = "echo x >> $SCRATCH; hello; next
                  [ $(wc -l < $SCRATCH) -gt 2 ] || exit 1
                  say one; next; say two; next";
    let (connectors, scratch) = odd("dies", script, limits());
    assert_eq!(call(&connectors, "odd.t").await, Err(stopped("odd.t", "")));
    assert_eq!(call(&connectors, "odd.t").await, Err(stopped("odd.t", "")));
    assert_eq!(call(&connectors, "odd.t").await, Ok(answer("one")));
    assert_eq!(call(&connectors, "odd.t").await, Ok(answer("two")));
    assert_eq!(std::fs::read_to_string(scratch).unwrap(), "x\nx\nx\n");
}

#[tokio::test]
async fn a_server_that_keeps_dying_is_left_alone() {
    let limits = ConnectLimits { rest_ms: 600_000, rest_max_ms: 600_000, ..limits() };
    let (connectors, scratch) = odd("keeps_dying", "echo x >> $SCRATCH; exit 1", limits);
    assert_eq!(call(&connectors, "odd.t").await, Err(stopped("initialize", "")));
    assert_eq!(call(&connectors, "odd.t").await, Err(stopped("initialize", "")));
    for _ in 0..3 {
        let error = call(&connectors, "odd.t").await.unwrap_err();
        let ConnectError::BackingOff { failures: 2, retry_ms, .. } = error else {
            panic!("{error}")
        };
        assert!((1..=600_000).contains(&retry_ms));
    }
    assert_eq!(std::fs::read_to_string(scratch).unwrap(), "x\nx\n");
}

#[tokio::test]
async fn a_server_that_hangs_is_ended_after_some_calls() {
    let script = "echo x >> $SCRATCH; hello; while :; do next; done";
    let (connectors, scratch) =
        odd("hangs", script, ConnectLimits { unanswered_max: 2, ..limits() });
    let timed_out = ConnectError::TimedOut { tool: "odd.t".to_owned(), limit_ms: 100 };
    for starts in ["x\n", "x\n", "x\nx\n", "x\nx\n"] {
        assert_eq!(call_within(&connectors, "odd.t", SHORT).await, Err(timed_out.clone()));
        assert_eq!(std::fs::read_to_string(&scratch).unwrap(), starts);
    }
}

#[tokio::test]
async fn a_server_that_never_answers_initialize_is_reported() {
    let limits = ConnectLimits { start_ms: 200, ..limits() };
    let (connectors, _) = odd("silent", "echo Listening on 8080; cat > /dev/null", limits);
    let error = call(&connectors, "odd.t").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "connector `odd` did not answer `initialize` within 200 ms, and wrote 1 lines to stdout that \
         are not messages. Run its command by hand: it must speak MCP on stdin and stdout and write \
         logs to stderr only"
    );
}

#[tokio::test]
async fn some_garbage_is_skipped_and_a_flood_ends_the_server() {
    let script = "echo starting...; hello; echo '{half'; echo '[]'; next; echo ok; say fine; next";
    let (connectors, _) = odd("garbage", script, limits());
    assert_eq!(call(&connectors, "odd.t").await, Ok(answer("fine")));

    let (connectors, _) = odd("flood", "hello; next; exec yes", limits());
    let flood = ", and wrote 1000 lines to stdout that are not messages";
    assert_eq!(call(&connectors, "odd.t").await, Err(stopped("odd.t", flood)));
}

#[tokio::test]
async fn a_long_answer_is_cut_and_a_huge_one_is_refused() {
    let letters = "$(head -c $(cat $SCRATCH) /dev/zero | tr '\\0' a)";
    let script = format!("while hello; do next; say \"{letters}\"; next; say \"{letters}\"; done");
    let limits = ConnectLimits { text_bytes_max: 100, message_bytes_max: 1_000_000, ..limits() };
    let (connectors, scratch) = odd("long", &script, limits);
    std::fs::write(&scratch, "50000").unwrap();
    let shown = 48;
    let cut =
        format!("{}\n[cut: the first {shown} of 50000 bytes; ask for less]", "a".repeat(shown));
    assert_eq!(call(&connectors, "odd.t").await, Ok(answer(&cut)));
    std::fs::write(&scratch, "1000001").unwrap();
    let refused = ConnectError::TooLarge { server: "odd".to_owned(), limit_bytes: 1_000_000 };
    assert_eq!(call(&connectors, "odd.t").await, Err(refused));
}

#[tokio::test]
async fn calls_share_a_connection_and_answers_find_their_caller() {
    // It answers two calls only once it has both, the later one first.
    let script = r#"
        tool() { name=${line#*'"name":"'}; name=${name%%'"'*}; }
        hello; next; first=$id; tool; was=$name; next; tool; say "$name"; id=$first; say "$was"; next"#;
    let (connectors, _) = odd("shared", script, limits());
    let (t, u) = tokio::join!(call(&connectors, "odd.t"), call(&connectors, "odd.u"));
    assert_eq!(t, Ok(answer("t")));
    assert_eq!(u, Ok(ToolAnswer { provenance: "mcp:odd.u".to_owned(), ..answer("u") }));
}

#[tokio::test]
async fn places_are_bounded() {
    let limits = ConnectLimits { in_flight_max: 1, ..limits() };
    let (connectors, _) = odd("busy", "hello; while :; do next; done", limits);
    let first = call_within(&connectors, "odd.t", Duration::from_secs(2));
    let second = async {
        tokio::task::yield_now().await;
        call_within(&connectors, "odd.t", SHORT).await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(second, Err(ConnectError::Busy { server: "odd".to_owned(), in_flight: 1 }));
    assert_eq!(first, Err(ConnectError::TimedOut { tool: "odd.t".to_owned(), limit_ms: 2_000 }));
}

#[tokio::test]
async fn what_is_not_text_is_described_and_failures_are_told_apart() {
    let script = r#"hello; next; reply '{"isError":true,"content":[
        {"type":"text","text":"no such day"},
        {"type":"image","data":"AAAAAA==","mimeType":"image/png"},
        {"type":"resource","resource":{"uri":"file:///a","blob":"AAAA"}},
        {"type":"resource_link","uri":"https://example.org/b","name":"b"}]}' | tr -d '\n'; echo
        next; reply '{"content":[],"structuredContent":{"price":97.5}}'
        next; printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad day"}}\n' "$id"
        next; reply '{"resultType":"input_required","inputRequests":{}}'; next"#;
    let (connectors, _) = odd("kinds", script, limits());
    let text = "no such day\n[image, image/png, 4 bytes, not shown]\n\
                [resource file:///a, type unknown, 3 bytes, not shown]\n\
                [link to resource b: https://example.org/b]";
    assert_eq!(call(&connectors, "odd.t").await, Ok(ToolAnswer { is_error: true, ..answer(text) }));
    assert_eq!(call(&connectors, "odd.t").await, Ok(answer(r#"{"price":97.5}"#)));
    let tool = || "odd.t".to_owned();
    let rejected = ConnectError::Rejected { tool: tool(), code: -32602, message: "bad day".into() };
    assert_eq!(call(&connectors, "odd.t").await, Err(rejected));
    let asked = ConnectError::Unsupported { tool: tool(), what: "a question to the user".into() };
    assert_eq!(call(&connectors, "odd.t").await, Err(asked));
}

#[tokio::test]
async fn a_schema_is_asked_for_once_per_process() {
    let script = r#"hello; next; echo x >> $SCRATCH
        reply '{"tools":[{"name":"t","description":"T.","inputSchema":{"type":"object"}}]}'
        while :; do next; done"#;
    let (connectors, scratch) = odd("schema", script, limits());
    let schema = ToolSchema {
        name: "odd.t".to_owned(),
        description: "T.".to_owned(),
        parameters: r#"{"type":"object"}"#.to_owned(),
    };
    let not_offered = || ConnectError::NotOffered { tool: "odd.u".to_owned() };
    assert_eq!(connectors.schema("odd.t").await, Ok(schema.clone()));
    assert_eq!(connectors.schema("odd.t").await, Ok(schema));
    assert_eq!(connectors.schema("odd.u").await, Err(not_offered()));
    assert_eq!(connectors.check().await, [("odd".to_owned(), Err(not_offered()))]);
    assert_eq!(std::fs::read_to_string(scratch).unwrap(), "x\n");
}

#[tokio::test]
async fn a_server_sees_only_its_own_environment() {
    let script = "hello; next; say \"$(env | cut -d= -f1 | sort | tr '\\n' ' ')\"; next";
    let (connectors, _) = odd("environment", script, limits());
    let names = call(&connectors, "odd.t").await.unwrap().text;
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(names.contains("PATH ") && names.contains("SCRATCH "), "{names}");
    assert!(!names.contains("CARGO"), "{names}");
}

#[tokio::test]
async fn shutdown_lets_a_server_end_and_kills_one_that_does_not() {
    // `next` ends the script with its input; the trap shows that it was not killed.
    let polite = "trap 'echo ended >> $SCRATCH' EXIT; hello; next; say hi; next";
    let (connectors, scratch) = odd("polite", polite, limits());
    assert_eq!(call(&connectors, "odd.t").await, Ok(answer("hi")));
    connectors.shutdown().await;
    assert_eq!(std::fs::read_to_string(scratch).unwrap(), "ended\n");
    let shut_down = ConnectError::ShutDown { server: "odd".to_owned() };
    assert_eq!(call(&connectors, "odd.t").await, Err(shut_down));

    // Its own child would outlive it, if only the process itself were killed.
    let rude = "trap '' HUP INT TERM; sleep 600 & echo $! > $SCRATCH; hello; next; say hi; wait";
    let limits = ConnectLimits { stop_ms: 200, ..limits() };
    let (connectors, scratch) = odd("rude", rude, limits);
    assert_eq!(call(&connectors, "odd.t").await, Ok(answer("hi")));
    connectors.shutdown().await;
    let child = std::fs::read_to_string(scratch).unwrap();
    // The signal is on its way when `shutdown` returns; the system may take a moment.
    let gone = async {
        while runs(child.trim()) {
            tokio::task::yield_now().await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(5), gone).await;
    assert!(gone.is_ok(), "the server's child {child} is still alive");
}

/// Whether the process is there and not merely waiting to be reaped by someone else.
fn runs(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let config = ServerConfig {
        name: "odd".to_owned(),
        reach: Reach::Command(Command {
            program: "no-such-program".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
        }),
        manifest: Manifest::parse("").unwrap(),
    };
    let connectors = Connectors::new(vec![config], limits()).unwrap();
    let results = connectors.check().await;
    assert_eq!(
        results[0].1.as_ref().unwrap_err().to_string(),
        "connector `odd`: could not start `no-such-program`: No such file or directory (os error 2). \
         Check the command in the configuration, and that it is installed and on PATH"
    );
}
