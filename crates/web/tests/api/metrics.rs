//! What whoever watches the machine is told: numbers, to those who show the token for that and nothing else.

use std::time::Duration;

use base::Limits;

use serde_json::json;

use crate::client::{Ask, Reply};
use crate::server::{Server, WATCHER};

fn say(server: &Server, token: &str, text: &str) {
    let message = json!({"id": server.id(), "text": text});
    assert_eq!(server.ask(&Ask::post("/v1/messages", &message).token(token)).status, 202);
}

fn numbers(server: &Server) -> Reply {
    let reply = server.ask(&Ask::get("/metrics").token(WATCHER));
    assert_eq!(reply.status, 200, "{reply:?}");
    reply
}

#[test]
fn the_numbers_are_those_of_the_records_and_say_nothing_of_anybody() {
    let server = Server::start();
    let phone = server.device("phone");
    say(&server, &phone.token, "hello, this is Ada");
    let reply = numbers(&server);
    assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for line in [
        "# TYPE adjutant_work_items gauge",
        "adjutant_work_items{state=\"pending\"} 1",
        "adjutant_work_items{state=\"unrouted\"} 0",
        "adjutant_holds{state=\"placed\"} 1",
        "adjutant_actions{state=\"unknown\"} 0",
        "adjutant_system_stop 0",
        "adjutant_month_model_calls 0",
        "adjutant_disk_free_bytes 5",
    ] {
        assert!(reply.text.lines().any(|found| found == line), "{line}\n{}", reply.text);
    }
    for line in reply.text.lines().filter(|line| !line.starts_with('#')) {
        let (name, n) = line.rsplit_once(' ').expect("a name and a number");
        assert!(name.starts_with("adjutant_") && n.parse::<u64>().is_ok(), "{line}");
    }
    let owner = server.owner.id.to_string();
    for private in ["Ada", "hello", "phone", owner.as_str()] {
        assert!(!reply.text.contains(private), "{private}\n{}", reply.text);
    }
    // However often somebody asks, they are made every ten seconds at most.
    say(&server, &phone.token, "hello again");
    assert_eq!(numbers(&server).text, reply.text);
    server.clock.advance_ms(10_000);
    assert!(numbers(&server).text.contains("adjutant_work_items{state=\"pending\"} 2\n"));
}

#[test]
fn the_watchers_token_opens_the_numbers_alone_and_no_other_token_opens_them() {
    let server = Server::start();
    let phone = server.device("phone");
    for token in ["", phone.token.as_str(), "0123456789abcdeg"] {
        assert_eq!(server.ask(&Ask::get("/metrics").token(token)).status, 401, "{token}");
    }
    for path in ["/v1/me", "/v1/chat", "/v1/copy", "/v1/devices"] {
        assert_eq!(server.ask(&Ask::get(path).token(WATCHER)).status, 401, "{path}");
    }
}

#[test]
fn it_is_ready_while_every_stage_passes_and_until_it_is_told_to_stop() {
    let lives = |server: &Server| server.ask(&Ask::get("/healthz")).status;
    let ready = |server: &Server| server.ask(&Ask::get("/readyz"));
    let idle = Server::start();
    assert_eq!((lives(&idle), ready(&idle).status), (200, 503));
    assert!(ready(&idle).text.contains("The stage router"), "{:?}", ready(&idle));

    let server = Server::with_engine();
    let begun = (0..2_000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        ready(&server).status == 200
    });
    assert!(begun, "{:?}", ready(&server));
    assert!(numbers(&server).text.contains("adjutant_stage_age_seconds{stage=\"sweeper\"} 0\n"));
    server.stop();
    let stopping = ready(&server);
    assert_eq!((lives(&server), stopping.status), (200, 503));
    assert!(stopping.text.contains("is stopping"), "{stopping:?}");

    // A stage whose passes do not end: its tick is further off than a pass may be.
    let slow = Server::bounded_with_engine(Limits { tick_ms: 3_600_000, ..Limits::default() });
    let begun = (0..2_000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        ready(&slow).status == 200
    });
    assert!(begun, "{:?}", ready(&slow));
    slow.clock.advance_ms(60_000);
    assert!(ready(&slow).text.contains("has not passed for a minute"), "{:?}", ready(&slow));
}
