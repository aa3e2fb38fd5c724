//! The whole way with the engine's stages running: said, read, answered, proposed, confirmed.

use serde_json::{Value, json};

use crate::server::{Paired, Server};

fn entries(server: &Server, device: &Paired) -> Vec<Value> {
    let page = server.get(&device.token, "/v1/chat").json();
    page["entries"].as_array().expect("entries").clone()
}

#[test]
fn a_message_is_answered_and_its_answer_delivered_by_a_receipt() {
    let server = Server::with_engine();
    let device = server.device("phone");
    let say = json!({"id": server.id(), "text": "hello"});
    let sent = server.post(&device.token, "/v1/messages", &say).json();
    let found = |kind: &str, state: &str| {
        entries(&server, &device).into_iter().find(|e| e["kind"] == kind && e["state"] == state)
    };
    let answer = server.wait_for(&device.token, || found("agent", "sending"));
    assert_eq!(answer["text"], "Hello yourself.");
    let read = server.wait_for(&device.token, || found("user", "handled"));
    assert_eq!(read["id"], sent["event"]);
    let receipt = json!({"id": server.id(), "messages": [answer["id"]]});
    assert_eq!(server.post(&device.token, "/v1/receipts", &receipt).status, 200);
    let path = format!("/v1/chat/{}", answer["id"].as_str().expect("an id"));
    assert_eq!(server.get(&device.token, &path).json()["state"], "delivered");
    let month = server.get(&device.token, "/v1/me").json()["month"].clone();
    assert_eq!((&month["wakeups"], &month["cap_micro_usd"]), (&json!(1), &json!(20_000_000)));
}

#[test]
fn a_duty_comes_from_a_card_and_a_tap() {
    let server = Server::with_engine();
    let device = server.device("phone");
    let say = json!({"id": server.id(), "text": "please watch the price"});
    server.post(&device.token, "/v1/messages", &say);
    let card = server.wait_for(&device.token, || {
        entries(&server, &device).into_iter().find(|entry| entry["proposal"] != Value::Null)
    });
    let path = format!("/v1/proposals/{}", card["proposal"].as_str().expect("an id"));
    let proposal = server.get(&device.token, &path).json();
    assert_eq!(proposal["schedules"][0]["words"], "weekdays at 08:00");
    let body = json!({"id": server.id(), "digest": proposal["digest"]});
    let confirmed = server.post(&device.token, &format!("{path}/confirm"), &body);
    assert_eq!((confirmed.status, &confirmed.json()["state"]), (200, &json!("confirmed")));
    let duties = server.get(&device.token, "/v1/duties").json();
    assert_eq!(duties["duties"][0]["next_wake"], "2026-12-01T07:00:00.000000Z");
    server.stop();
}
