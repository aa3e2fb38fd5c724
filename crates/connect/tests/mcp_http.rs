//! Tool servers at an address, in both revisions of the protocol: what they are asked, what is made
//! of their failures, and that nothing is ever asked twice.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::time::Duration;

use base::Secret;
use connect::{
    Address, ConfigError, ConnectError, ConnectLimits, Connectors, Issued, Level, Manifest, Reach,
    ServerConfig, ToolAnswer,
};
use serde_json::{Value, json};
use testkit::mcp_http::{Asked, Fault, Form, MCP_HTTP_MANIFEST, McpHttp, Revision};

const LIMIT: Duration = Duration::from_secs(20);
/// For requests that are never answered.
const SHORT: Duration = Duration::from_millis(100);
const KEY: &str = "sk-secret-7";

fn limits() -> ConnectLimits {
    ConnectLimits { rest_ms: 0, rest_max_ms: 0, ..ConnectLimits::default() }
}

fn at(url: &str, limits: ConnectLimits) -> Result<Connectors, ConfigError> {
    let reach = Reach::Http(Address {
        url: url.to_owned(),
        key: Some(Secret::new(KEY).unwrap()),
        http: model::http_client(Duration::from_secs(5)).unwrap(),
    });
    let manifest = Manifest::parse(MCP_HTTP_MANIFEST).unwrap();
    Connectors::new(vec![ServerConfig { name: "far".to_owned(), reach, manifest }], limits)
}

async fn start(revision: Revision) -> (McpHttp, Connectors) {
    let server = McpHttp::start(revision, Some(KEY)).await.unwrap();
    let connectors = at(server.url(), limits()).unwrap();
    (server, connectors)
}

async fn call(
    connectors: &Connectors,
    tool: &str,
    arguments: Value,
) -> Result<ToolAnswer, ConnectError> {
    let arguments = arguments.as_object().cloned().unwrap();
    let tool = connectors.wanted(&format!("far.{tool}"), arguments).unwrap();
    connectors.call(tool.cleared(|_| false).unwrap(), LIMIT).await
}

async fn echo(connectors: &Connectors) -> Result<ToolAnswer, ConnectError> {
    call(connectors, "echo", json!({ "text": "hi" })).await
}

fn answer(text: &str) -> ToolAnswer {
    ToolAnswer {
        text: text.to_owned(),
        is_error: false,
        provenance: "mcp:far.echo".to_owned(),
        level: Level::Connector,
        issued: Vec::new(),
    }
}

/// What was asked since the last look, in short: a call that was run ends with `!`.
fn asked(server: &McpHttp) -> Vec<String> {
    let line = |asked: Asked| format!("{}{}", asked.what, if asked.done { "!" } else { "" });
    server.take_asked().into_iter().map(line).collect()
}

/// What opening a connection and one call come to.
fn opening(revision: Revision) -> Vec<&'static str> {
    match revision {
        Revision::Sessions => {
            vec!["server/discover", "initialize", "notifications/initialized", "tools/call echo!"]
        }
        Revision::Stateless => {
            vec!["server/discover", "tools/list", "tools/list", "tools/call echo!"]
        }
    }
}

const BOTH: [Revision; 2] = [Revision::Sessions, Revision::Stateless];

#[tokio::test]
async fn both_revisions_are_spoken_by_their_rules() {
    for revision in BOTH {
        let (server, connectors) = start(revision).await;
        assert_eq!(echo(&connectors).await, Ok(answer("Echo: hi")));
        assert_eq!(asked(&server), opening(revision));
        assert_eq!(connectors.check().await, [("far".to_owned(), Ok(()))]);
        let schema = connectors.schema("far.echo").await.unwrap();
        assert!(schema.parameters.contains("\"x-mcp-header\":\"Region\""), "{schema:?}");
        server.take_asked();

        let zurich = json!({ "text": "hi", "region": "Zürich" });
        assert_eq!(call(&connectors, "echo", zurich).await, Ok(answer("Echo: hi")));
        let expected = match revision {
            Revision::Sessions => Asked {
                what: "tools/call echo".to_owned(),
                key: Some(KEY.to_owned()),
                session: Some("session-1".to_owned()),
                version: Some("2025-11-25".to_owned()),
                mirrored: BTreeMap::new(),
                done: true,
            },
            Revision::Stateless => Asked {
                what: "tools/call echo".to_owned(),
                key: Some(KEY.to_owned()),
                session: None,
                version: Some("2026-07-28".to_owned()),
                mirrored: BTreeMap::from([("region".to_owned(), "Zürich".to_owned())]),
                done: true,
            },
        };
        assert_eq!(server.take_asked(), [expected]);

        connectors.shutdown().await;
        let goodbye: &[&str] = if revision == Revision::Sessions { &["DELETE"] } else { &[] };
        assert_eq!(asked(&server), goodbye);
        let shut_down = ConnectError::ShutDown { server: "far".to_owned() };
        assert_eq!(echo(&connectors).await, Err(shut_down));
    }
}

#[tokio::test]
async fn ids_are_issued_and_odd_results_told_apart() {
    for revision in BOTH {
        let (_server, connectors) = start(revision).await;
        let offer = |id: &str, total: &str| Issued {
            kind: "offer".to_owned(),
            id: id.to_owned(),
            snapshot: json!({ "id": id, "total": total }),
            expires_at: None,
        };
        let offers = ToolAnswer {
            provenance: "mcp:far.offers".to_owned(),
            issued: vec![offer("H-1", "97.50"), offer("H-2", "120.00")],
            ..answer("Two offers.")
        };
        assert_eq!(call(&connectors, "offers", json!({})).await, Ok(offers));
        let asks = ConnectError::Unsupported {
            tool: "far.ask".to_owned(),
            what: "a question to the user".to_owned(),
        };
        assert_eq!(call(&connectors, "ask", json!({})).await, Err(asks));
    }
}

#[tokio::test]
async fn a_lost_answer_is_not_asked_for_again() {
    for revision in BOTH {
        for fault in [Fault::Lose, Fault::BreakStream] {
            let (server, connectors) = start(revision).await;
            server.fail("tools/call", fault);
            let broken =
                ConnectError::Broken { server: "far".to_owned(), during: "far.echo".to_owned() };
            assert_eq!(echo(&connectors).await, Err(broken));
            assert_eq!(asked(&server), opening(revision));
            // Whoever asks anew gets an answer, over a new connection.
            assert_eq!(echo(&connectors).await, Ok(answer("Echo: hi")));
            assert_eq!(asked(&server), opening(revision));
        }
    }
}

#[tokio::test]
async fn a_lost_session_is_replaced_before_the_call_is_run() {
    for fault in [Fault::EndSessions, Fault::EndSessionsInWords] {
        let (server, connectors) = start(Revision::Sessions).await;
        echo(&connectors).await.unwrap();
        server.take_asked();
        server.fail("tools/call", fault.clone());
        assert_eq!(echo(&connectors).await, Ok(answer("Echo: hi")));
        let expected =
            ["tools/call echo", "initialize", "notifications/initialized", "tools/call echo!"];
        assert_eq!(asked(&server), expected);

        // A server that forgets every session at once is asked no third time.
        server.fail("tools/call", fault.clone());
        server.fail("tools/call", fault);
        let refused = echo(&connectors).await.unwrap_err();
        assert!(matches!(refused, ConnectError::Rejected { .. }), "{refused}");
        let expected =
            ["tools/call echo", "initialize", "notifications/initialized", "tools/call echo"];
        assert_eq!(asked(&server), expected);
    }
}

#[tokio::test]
async fn calls_that_find_the_session_gone_share_the_next_one() {
    let (server, connectors) = start(Revision::Sessions).await;
    echo(&connectors).await.unwrap();
    server.take_asked();
    server.fail("tools/call", Fault::EndSessions);
    let (one, two) = tokio::join!(echo(&connectors), echo(&connectors));
    assert_eq!((one, two), (Ok(answer("Echo: hi")), Ok(answer("Echo: hi"))));
    let asked = asked(&server);
    let count = |what: &str| asked.iter().filter(|asked| *asked == what).count();
    assert_eq!((count("initialize"), count("tools/call echo!")), (1, 2), "{asked:?}");
}

#[tokio::test]
async fn a_refused_key_is_told_from_everything_else() {
    let refused = |reason: &str| {
        Err(ConnectError::Authentication { server: "far".to_owned(), reason: reason.to_owned() })
    };
    for revision in BOTH {
        for status in [401, 403] {
            let (server, connectors) = start(revision).await;
            server.fail("*", Fault::Status(status));
            assert_eq!(echo(&connectors).await, refused(&format!("HTTP {status}")));
            assert_eq!(asked(&server), ["server/discover"]);
            assert_eq!(echo(&connectors).await, Ok(answer("Echo: hi")));
            server.take_asked();
            server.fail("tools/call", Fault::Status(status));
            assert_eq!(echo(&connectors).await, refused(&format!("HTTP {status}")));
            assert_eq!(asked(&server), ["tools/call echo"]);
        }
        // The service behind the server refuses, and the server says so in words.
        let (_server, connectors) = start(revision).await;
        let said = refused("Shop API: 401 Unauthorized");
        assert_eq!(call(&connectors, "refused", json!({})).await, said);
    }
    // While a server is left alone, the reason is still the refused key.
    let server = McpHttp::start(Revision::Stateless, Some("another")).await.unwrap();
    let limits = ConnectLimits { rest_ms: 600_000, rest_max_ms: 600_000, ..limits() };
    let connectors = at(server.url(), limits).unwrap();
    for _ in 0..4 {
        let error = echo(&connectors).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "connector `far` refuses the key it was given: HTTP 401. Do not try another way to the \
             same service; tell the person, who can put a valid key into the configuration (for a tool \
             server mcp.key_env or mcp.key_file, or mcp.env of a program) and start again"
        );
    }
    assert_eq!(asked(&server), ["server/discover", "server/discover"]);
}

#[tokio::test]
async fn a_huge_answer_is_refused_in_either_form() {
    let limits = ConnectLimits { message_bytes_max: 100_000, text_bytes_max: 30, ..limits() };
    for revision in BOTH {
        for form in [Form::Json, Form::Events] {
            let server = McpHttp::start(revision, None).await.unwrap();
            let connectors = at(server.url(), limits.clone()).unwrap();
            server.fail("tools/call", Fault::Huge(99_000, form));
            assert_eq!(echo(&connectors).await, Ok(answer(&"a".repeat(30))));
            server.fail("tools/call", Fault::Huge(100_000, form));
            let refused = ConnectError::TooLarge { server: "far".to_owned(), limit_bytes: 100_000 };
            assert_eq!(echo(&connectors).await, Err(refused));
        }
    }
}

#[tokio::test]
async fn an_argument_too_long_for_its_header_is_not_sent() {
    let (server, connectors) = start(Revision::Stateless).await;
    echo(&connectors).await.unwrap();
    server.take_asked();
    let long = json!({ "text": "hi", "region": "x".repeat(4_097) });
    let refused =
        ConnectError::TooLong { tool: "far.echo".to_owned(), argument: "region".to_owned() };
    assert_eq!(call(&connectors, "echo", long).await, Err(refused));
    assert_eq!(asked(&server), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_never_answered_has_an_end() {
    for revision in BOTH {
        let (server, connectors) = start(revision).await;
        echo(&connectors).await.unwrap();
        server.fail("tools/call", Fault::Hang);
        let tool = connectors.wanted("far.echo", serde_json::Map::new()).unwrap();
        let tool = tool.cleared(|_| false).unwrap();
        let timed_out = ConnectError::TimedOut { tool: "far.echo".to_owned(), limit_ms: 100 };
        assert_eq!(connectors.call(tool, SHORT).await, Err(timed_out));

        let connectors = at(server.url(), ConnectLimits { start_ms: 100, ..limits() }).unwrap();
        server.fail("server/discover", Fault::Hang);
        let unreachable = ConnectError::Unreachable {
            server: "far".to_owned(),
            place: server.url().to_owned(),
            reason: "no answer within 100 ms".to_owned(),
        };
        assert_eq!(echo(&connectors).await, Err(unreachable));
    }
}

#[tokio::test]
async fn a_key_follows_no_redirect() {
    let other = McpHttp::start(Revision::Stateless, None).await.unwrap();
    let (server, connectors) = start(Revision::Stateless).await;
    echo(&connectors).await.unwrap();
    server.fail("tools/call", Fault::Redirect(other.url().to_owned()));
    let moved = echo(&connectors).await.unwrap_err();
    assert_eq!(
        moved.to_string(),
        "`far.echo` was answered with HTTP 307. It moved: give its new address as mcp.url"
    );
    assert_eq!(asked(&other), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_no_tool_server_is_named_without_its_secrets() {
    let (server, connectors) = start(Revision::Stateless).await;
    for (fault, expected) in [
        (Fault::Page, "`initialize` answered with content of type `text/html`, which is not"),
        (Fault::Status(404), "`initialize` was answered with HTTP 404. Check that mcp.url is"),
        (Fault::Status(503), "`initialize` was answered with HTTP 503. Try again later"),
    ] {
        server.fail("server/discover", fault.clone());
        server.fail("initialize", fault);
        let error = echo(&connectors).await.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }

    // Nobody listens at port 1.
    let connectors = at("http://127.0.0.1:1/mcp?key=s3cret#s3cret", limits()).unwrap();
    let error = echo(&connectors).await.unwrap_err();
    let shown = format!("{error} {error:?} {connectors:?}");
    let start = "connector `far` cannot be reached at http://127.0.0.1:1/mcp: ";
    assert!(shown.starts_with(start), "{shown}");
    assert!(!shown.contains("s3cret") && !shown.contains(KEY), "{shown}");
    for odd in ["", "tools.example/mcp", "ftp://tools.example/", "https://me:s3cret@tools.example/"]
    {
        let refused = at(odd, limits()).unwrap_err();
        assert!(matches!(refused, ConfigError::Address { .. }), "{odd}: {refused}");
    }
}
