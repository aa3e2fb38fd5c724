//! Effects at an address, in both revisions of the protocol: what leaves, leaves once and in time.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::time::Duration;

use connect::{Acted, Address, ConnectLimits, Connectors, Manifest, Reach, ServerConfig};
use domain::effect::{Observation, freeze};
use serde_json::{Value, json};
use store::Permit;
use testkit::mcp_http::{Asked, Fault, Form, McpHttp, Revision};
use testkit::permit::{SEND_MS, permit};
use testkit::stores::Harness;
use tokio::runtime::{Builder, Runtime};

const MANIFEST: &str = "[tool.echo]\neffect = \"outward\"\noperation = \"text\"";
const LIMIT: Duration = Duration::from_secs(20);
/// For requests that are never answered.
const SHORT: Duration = Duration::from_millis(100);
const BOTH: [Revision; 2] = [Revision::Sessions, Revision::Stateless];

/// A store that gives permits, and a runtime for what is done with them.
struct Desk {
    harness: Harness,
    runtime: Runtime,
}

impl Desk {
    fn open() -> Desk {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Desk { harness: Harness::sqlite(true, |_| {}), runtime }
    }

    fn start(&self, revision: Revision) -> (McpHttp, Connectors) {
        let server = self.runtime.block_on(McpHttp::start(revision, None)).unwrap();
        let connectors = at(server.url());
        (server, connectors)
    }

    fn permit(&self, connectors: &Connectors, arguments: &Value) -> Permit {
        let arguments = arguments.as_object().unwrap();
        let intended = connectors.intended("far.echo", arguments).unwrap().unwrap();
        let frozen = freeze(&intended.spec, arguments, &[], None, None).unwrap();
        permit(&self.harness, &frozen, "op-1")
    }

    fn act(&self, connectors: &Connectors, permit: Permit, limit: Duration) -> Acted {
        let clock = self.harness.clock.clone();
        self.runtime.block_on(connectors.act(permit, &*clock, limit))
    }

    fn echo(&self, connectors: &Connectors) -> Acted {
        self.act(connectors, self.permit(connectors, &json!({})), LIMIT)
    }
}

fn at(url: &str) -> Connectors {
    let http = model::http_client(Duration::from_secs(5)).unwrap();
    let reach = Reach::Http(Address { url: url.to_owned(), key: None, http });
    let manifest = Manifest::parse(MANIFEST).unwrap();
    let limits = ConnectLimits {
        rest_ms: 0,
        rest_max_ms: 0,
        start_ms: 1_000,
        message_bytes_max: 100_000,
        ..ConnectLimits::default()
    };
    Connectors::new(vec![ServerConfig { name: "far".to_owned(), reach, manifest }], limits).unwrap()
}

/// What was asked since the last look, in short: a call that was run ends with `!`.
fn asked(server: &McpHttp) -> Vec<String> {
    let line = |asked: Asked| format!("{}{}", asked.what, if asked.done { "!" } else { "" });
    server.take_asked().into_iter().map(line).collect()
}

fn sends(server: &McpHttp) -> usize {
    asked(server).iter().filter(|asked| asked.starts_with("tools/call")).count()
}

fn unanswered(seen: Observation) -> Acted {
    Acted { seen, answer: String::new(), issued: Vec::new(), refused_key: None }
}

/// What the tool answers; its entry names no receipt, so that it proves nothing.
fn echoed() -> Acted {
    let why = "it answered what proves nothing by itself: Echo: op-1";
    let seen = Observation::Other(why.to_owned());
    Acted { seen, answer: "Echo: op-1".to_owned(), issued: Vec::new(), refused_key: None }
}

#[test]
fn all_that_takes_long_comes_before_the_call() {
    let desk = Desk::open();
    for revision in BOTH {
        let (server, connectors) = desk.start(revision);
        assert_eq!(desk.echo(&connectors), echoed());
        let before: &[&str] = match revision {
            Revision::Sessions => {
                &["server/discover", "initialize", "notifications/initialized", "ping"]
            }
            Revision::Stateless => &["server/discover", "tools/list", "tools/list"],
        };
        assert_eq!(asked(&server), [before, &["tools/call echo!"]].concat());

        // Where the time is over by then, that is all.
        let (server, connectors) = desk.start(revision);
        let permit = desk.permit(&connectors, &json!({}));
        desk.harness.clock.advance_ms(SEND_MS + 1);
        let late = "the moment until which it could be sent had passed".to_owned();
        let acted = desk.act(&connectors, permit, LIMIT);
        assert_eq!(acted, unanswered(Observation::NotSent(late)));
        assert_eq!(asked(&server), before);
    }
}

#[test]
fn a_session_that_has_ended_is_replaced_before_the_call() {
    let desk = Desk::open();
    for fault in [Fault::EndSessions, Fault::EndSessionsInWords] {
        let (server, connectors) = desk.start(Revision::Sessions);
        desk.echo(&connectors);
        server.take_asked();
        server.fail("ping", fault);
        assert_eq!(desk.echo(&connectors), echoed());
        let expected =
            ["ping", "initialize", "notifications/initialized", "ping", "tools/call echo!"];
        assert_eq!(asked(&server), expected);
    }
}

#[test]
fn a_session_that_ends_at_the_call_lets_nothing_leave_twice() {
    let desk = Desk::open();
    for fault in [Fault::EndSessions, Fault::EndSessionsInWords] {
        let (server, connectors) = desk.start(Revision::Sessions);
        desk.echo(&connectors);
        server.take_asked();
        server.fail("tools/call", fault);
        let acted = desk.echo(&connectors);
        assert!(matches!(acted.seen, Observation::Other(_)), "{acted:?}");
        assert_eq!(asked(&server), ["ping", "tools/call echo"]);
        assert_eq!(desk.echo(&connectors), echoed());
    }
}

#[test]
fn what_came_of_it_is_told_apart_and_nothing_is_sent_again() {
    let desk = Desk::open();
    let other = |why: &str| Observation::Other(why.to_owned());
    let lost = |why: &str| Observation::Lost(why.to_owned());
    for revision in BOTH {
        for (fault, seen) in [
            (Fault::Lose, lost("the connection broke before the answer was whole")),
            (Fault::BreakStream, lost("the connection broke before the answer was whole")),
            (Fault::Huge(100_000, Form::Json), lost("its answer had more than 100000 bytes")),
            (Fault::Status(503), other("it answered with HTTP 503")),
            (Fault::Status(404), other("it answered with HTTP 404")),
            (
                Fault::Status(401),
                other("it answered that it refuses the connector's key: HTTP 401"),
            ),
            (Fault::Page, other("it answered with content of type `text/html`")),
        ] {
            let (server, connectors) = desk.start(revision);
            let refuses = fault == Fault::Status(401);
            server.fail("tools/call", fault);
            let mut acted = desk.echo(&connectors);
            assert_eq!(acted.refused_key.take().is_some(), refuses, "{acted:?}");
            assert_eq!(acted, unanswered(seen));
            assert_eq!(sends(&server), 1);
        }
        let (server, connectors) = desk.start(revision);
        server.fail("tools/call", Fault::Hang);
        let permit = desk.permit(&connectors, &json!({}));
        let late = lost("no answer came within 100 ms");
        assert_eq!(desk.act(&connectors, permit, SHORT), unanswered(late));
        assert_eq!(sends(&server), 1);
    }
}

#[test]
fn what_does_not_come_to_the_call_is_not_sent() {
    let desk = Desk::open();
    let why = |acted: Acted| {
        let Observation::NotSent(why) = acted.seen else { panic!("{acted:?}") };
        why
    };
    // Nobody listens at port 1.
    let said = why(desk.echo(&at("http://127.0.0.1:1/mcp")));
    assert!(said.starts_with("connector `far` cannot be reached"), "{said}");
    for (revision, method) in [(Revision::Sessions, "ping"), (Revision::Stateless, "tools/list")] {
        for fault in [Fault::Hang, Fault::Status(401)] {
            let (server, connectors) = desk.start(revision);
            let refuses = fault == Fault::Status(401);
            server.fail(method, fault);
            let acted = desk.echo(&connectors);
            assert_eq!(acted.refused_key.is_some(), refuses, "{acted:?}");
            why(acted);
            assert_eq!(sends(&server), 0);
        }
    }
    // An argument that does not fit into its header.
    let (server, connectors) = desk.start(Revision::Stateless);
    let permit = desk.permit(&connectors, &json!({ "region": "x".repeat(4_097) }));
    let said = why(desk.act(&connectors, permit, LIMIT));
    assert!(said.starts_with("`region` of `far.echo` is longer than 4096 bytes"), "{said}");
    assert_eq!(sends(&server), 0);
}
