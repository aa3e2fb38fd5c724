//! The list of what came in, and the chain of one event.

use engine::{attribution, router};
use serde_json::{Value, json};

use crate::hooks::{SECRET, add, signed, standard};
use crate::server::{Paired, Server};

fn deliver(server: &Server, source: &str, id: &str) -> String {
    let body = format!(r#"{{"type":"order.paid","n":"{id}"}}"#);
    let reply = server.ask(&signed(source, SECRET, id, server.clock_now(), &body));
    reply.json()["event"].as_str().expect("an event").to_owned()
}

fn trace(server: &Server, device: &Paired, event: &str) -> Value {
    server.get(&device.token, &format!("/v1/events/{event}")).json()
}

#[test]
fn events_are_listed_newest_first_as_many_as_asked_and_each_once() {
    let server = Server::start();
    let device = server.device("phone");
    let source = add(&server, &device, "shop", standard());
    let first: Vec<String> = ["a", "b", "c"].map(|id| deliver(&server, &source, id)).into();
    server.clock.advance_ms(1_000);
    let last = deliver(&server, &source, "d");
    let page = |query: &str| {
        let page = server.get(&device.token, &format!("/v1/events{query}")).json();
        let ids: Vec<String> = page["events"]
            .as_array()
            .expect("events")
            .iter()
            .map(|event| event["id"].as_str().expect("an id").to_owned())
            .collect();
        (ids, page["more"].clone(), page["before"].clone())
    };
    let mut three = first;
    // Ids of one instant have no order but their own.
    three.sort_by(|a, b| b.cmp(a));
    let (ids, more, before) = page("?limit=1");
    assert_eq!((ids, more), (vec![last.clone()], json!(true)));
    let before = before.as_str().expect("a place").to_owned();
    // Events of one instant are parted without loss.
    let (two, more, last_of_two) = page(&format!("?limit=2&before={before}"));
    assert_eq!((two.as_slice(), more), (&three[..2], json!(true)));
    let rest = last_of_two.as_str().expect("a place");
    assert_eq!(
        page(&format!("?limit=2&before={rest}")),
        (three[2..].to_vec(), json!(false), Value::Null)
    );
    let (time, _) = before.split_once(',').expect("a time and an id");
    assert_eq!(page(&format!("?before={time}")), (three.clone(), json!(false), Value::Null));
    let all: Vec<String> = std::iter::once(last).chain(three).collect();
    assert_eq!(page(""), (all, json!(false), Value::Null));
    for query in [
        "?before=yesterday",
        "?before=2026-11-30T08:00:00Z,x",
        "?limit=0",
        "?limit=501",
        "?after=1",
    ] {
        let reply = server.get(&device.token, &format!("/v1/events{query}"));
        assert_eq!(reply.status, 400, "{query}");
    }
}

#[test]
fn the_chain_of_an_event_that_concerns_nothing_ends_in_a_note() {
    let server = Server::start();
    let device = server.device("phone");
    let source = add(&server, &device, "shop", standard());
    let event = deliver(&server, &source, "msg_1");
    let words = |trace: &Value| -> Vec<String> {
        serde_json::from_value(trace["words"].clone()).expect("lines")
    };
    let received = "Received Monday 2026-11-30 09:00 from shop (webhook) as msg_1, topic order.paid; \
                    anyone may have written it.";
    assert_eq!(
        words(&trace(&server, &device, &event)),
        [received, "In no queue; the router has not looked at it.", "Not handled yet.",]
    );
    server.runtime.block_on(router::pass(&server.cx)).expect("routed");
    let traced = trace(&server, &device, &event);
    assert_eq!(
        words(&traced),
        [
            received,
            "It belongs to no duty.",
            "In no queue, done Monday 2026-11-30 09:00.",
            "Noted with the dial on observe: webhook came from shop (order.paid); it concerns no duty; \
             it would look, remind, ask, prepare; disturbs only if the run that looks at it has \
             something to decide or to use; more is released by the user, for everything beyond that.",
            "Handled Monday 2026-11-30 09:00: ignored: it concerns no duty; noted what the dial on auto \
             would do.",
        ]
    );
    let observed = server.get(&device.token, "/v1/observed").json();
    assert_eq!(
        [&observed["dial"], &observed["notes"][0]["id"], &observed["notes"][0]["event"]],
        [&json!("observe"), &traced["proactive"]["id"], &json!(event)]
    );
}

#[test]
fn the_chain_shows_what_the_small_model_was_asked_and_said() {
    let server = Server::start();
    let device = server.device("phone");
    crate::writes::duty(&server, &device);
    let source = add(&server, &device, "shop", standard());
    let event = deliver(&server, &source, "msg_1");
    server.runtime.block_on(router::pass(&server.cx)).expect("routed");
    assert_eq!(trace(&server, &device, &event)["work_item"]["state"], "attributing");
    server.runtime.block_on(attribution::pass(&server.cx)).expect("asked");
    let traced = trace(&server, &device, &event);
    let asked = &traced["attribution"];
    assert_eq!(asked["candidates"][0]["title"], "Price watch");
    assert!(asked["answer"].is_string() || asked["refused"].is_string(), "{asked}");
    let said: Vec<String> = serde_json::from_value(traced["words"].clone()).expect("lines");
    assert!(said[1].contains("was asked which it concerns (1. Price watch)"), "{said:?}");
}

#[test]
fn a_message_has_a_chain_too_and_only_its_owner_sees_one() {
    let server = Server::start();
    let device = server.device("phone");
    let say = json!({"id": server.id(), "text": "hello"});
    let event = server.post(&device.token, "/v1/messages", &say).json()["event"].clone();
    let event = event.as_str().expect("an event");
    let traced = trace(&server, &device, event);
    assert_eq!(
        [&traced["event"]["excerpt"], &traced["event"]["trust"], &traced["hold"]["state"]],
        [&json!("hello"), &json!("user"), &json!("placed")]
    );
    for unknown in [server.id(), "nonsense".into()] {
        let reply = server.get(&device.token, &format!("/v1/events/{unknown}"));
        assert_eq!(reply.status, 404);
    }
}
