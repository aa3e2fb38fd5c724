//! Webhooks: who may deliver, what is answered to each, and what is stored of it.

use base::{Limits, Timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::client::{Ask, Half, Reply, send};
use crate::server::{Paired, Server};

/// 32 bytes, as a sender shows them.
pub const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const PAID: &str = r#"{"type":"order.paid","data":{"order":{"id":"A-7"}}}"#;

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Signs as Standard Webhooks 1.0 says.
pub fn signed(source: &str, secret: &str, id: &str, at: Timestamp, body: &str) -> Ask {
    let key = STANDARD.decode(secret.trim_start_matches("whsec_")).expect("base64");
    let seconds = at.micros() / 1_000_000;
    let signature = STANDARD.encode(mac(&key, &format!("{id}.{seconds}.{body}")));
    Ask::post(format!("/v1/hooks/{source}"), &json!({}))
        .raw(body)
        .header("webhook-id", id)
        .header("webhook-timestamp", seconds.to_string())
        .header("webhook-signature", format!("v1,{signature}"))
}

/// Adds a source and gives its id.
pub fn add(server: &Server, device: &Paired, name: &str, config: Value) -> String {
    let mut body = json!({"id": server.id(), "name": name, "config": config});
    if config_is_hook(&body) {
        body["secret"] = json!(SECRET);
    }
    let reply = server.post(&device.token, "/v1/sources", &body);
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.json()["id"].as_str().expect("an id").to_owned()
}

fn config_is_hook(body: &Value) -> bool {
    body["config"]["kind"] == "webhook"
}

pub fn standard() -> Value {
    json!({"kind": "webhook", "scheme": "standard", "key": "data.order.id"})
}

/// The one source as the list shows it.
pub fn listed(server: &Server, device: &Paired) -> Value {
    server.get(&device.token, "/v1/sources").json()["sources"][0].clone()
}

fn events(server: &Server, device: &Paired) -> Vec<Value> {
    let page = server.get(&device.token, "/v1/events").json();
    page["events"].as_array().expect("events").clone()
}

#[test]
fn a_signed_delivery_is_stored_once_and_answered_the_same_again() {
    let server = Server::start();
    let device = server.device("phone");
    let source = add(&server, &device, "shop", standard());
    let ask = signed(&source, SECRET, "msg_1", server.clock_now(), PAID);
    let first = server.ask(&ask);
    assert_eq!(first.status, 202);
    let again = server.ask(&ask);
    assert_eq!((again.status, again.json()), (200, first.json()));
    let other = r#"{"type":"order.paid","data":{"order":{"id":"A-8"}}}"#;
    let other = server.ask(&signed(&source, SECRET, "msg_1", server.clock_now(), other));
    assert_eq!(other.status, 409);
    let wanted = json!([{
        "id": first.json()["event"], "kind": "webhook", "source": "shop", "source_kind": "webhook",
        "external_id": "msg_1", "topic": "order.paid", "key": "shop:A-7", "trust": "outside",
        "late": false, "received_at": "2026-11-30T08:00:00.000000Z", "state": "unrouted",
        "disposition": null, "handled_at": null,
    }]);
    assert_eq!(json!(events(&server, &device)), wanted);
    let seen = listed(&server, &device);
    assert_eq!(
        [&seen["received_at"], &seen["refused"], &seen["last_event"]],
        [&json!("2026-11-30T08:00:00.000000Z"), &json!(1), &first.json()["event"]]
    );
}

#[test]
fn github_signs_the_body_alone() {
    let server = Server::start();
    let device = server.device("phone");
    let source = add(&server, &device, "repo", json!({"kind": "webhook", "scheme": "github"}));
    let body = r#"{"action":"opened","issue":{"number":7},"repository":{"full_name":"a/b"}}"#;
    let digits: String =
        mac(SECRET.as_bytes(), body).iter().map(|byte| format!("{byte:02x}")).collect();
    let ask = Ask::post(format!("/v1/hooks/{source}"), &json!({}))
        .raw(body)
        .header("x-github-delivery", "72d3162e")
        .header("x-github-event", "issues")
        .header("x-hub-signature-256", format!("sha256={digits}"));
    assert_eq!(server.ask(&ask).status, 202);
    let event = &events(&server, &device)[0];
    assert_eq!([&event["topic"], &event["key"]], [&json!("issues.opened"), &json!("repo:a/b#7")]);
    let wrong = ask.header("x-hub-signature-256", format!("sha256={}", "0".repeat(64)));
    assert_eq!(server.ask(&wrong).status, 401);
}

#[test]
fn what_is_refused_is_counted_and_nothing_else_of_it_is_kept() {
    let server = Server::start();
    let device = server.device("phone");
    let source = add(&server, &device, "shop", standard());
    let now = server.clock_now();
    let good = || signed(&source, SECRET, "msg_1", now, PAID);
    let other_key = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
    let large = format!(r#"{{"type":"a","text":"{}"}}"#, "x".repeat(256 * 1024));
    let old = now.minus_ms(301_000);
    let table = [
        ("another key", signed(&source, other_key, "msg_1", now, PAID), 401),
        ("another body", good().raw(PAID.replace("A-7", "A-8")), 401),
        ("another id", good().header("webhook-id", "msg_2"), 401),
        ("no signature", good().header("webhook-signature", "v1a,AAAA"), 401),
        ("an old time", signed(&source, SECRET, "msg_1", old, PAID), 401),
        ("no time", good().header("webhook-timestamp", "noon"), 400),
        ("no id", good().header("webhook-id", ""), 400),
        // A proxy before us and this program could each believe another of the two.
        ("two ids", good().also("webhook-id", "msg_2"), 400),
        ("two times", good().also("webhook-timestamp", "1"), 400),
        ("two signatures", good().also("webhook-signature", "v1,AAAA"), 400),
        ("no JSON", signed(&source, SECRET, "msg_1", now, "paid"), 400),
        ("a list", signed(&source, SECRET, "msg_1", now, "[]"), 400),
        ("no UTF-8", good().raw(vec![0xff, 0xfe]), 401),
        ("nothing", good().raw(""), 401),
        ("too much", signed(&source, SECRET, "msg_1", now, &large), 413),
    ];
    server.clock.advance_ms(1_000);
    let count = table.len();
    for (what, ask, status) in table {
        let reply = server.ask(&ask);
        assert_eq!(reply.status, status, "{what}: {reply:?}");
        assert!(!reply.text.contains("whsec_MDEy"), "{what} shows the secret");
    }
    assert_eq!(json!(events(&server, &device)), json!([]));
    assert_eq!(server.number_of_events(), 0);
    let seen = listed(&server, &device);
    assert_eq!(
        [&seen["received_at"], &seen["refused"], &seen["refused_at"]],
        [&Value::Null, &json!(count), &json!("2026-11-30T08:00:01.000000Z")]
    );
    // The right one is let in after all of them.
    assert_eq!(server.ask(&good()).status, 202);
    assert!(!crate::log::text().contains("whsec_"), "a secret is in the log");
}

#[test]
fn what_is_no_webhook_looks_the_same_whatever_it_is() {
    let server = Server::start();
    let device = server.device("phone");
    let watched = testkit::stores::TempFolder::new();
    let folder = json!({"kind": "folder", "path": watched.path()});
    let folder = add(&server, &device, "inbox", folder);
    let gone = add(&server, &device, "shop", standard());
    let removal = format!("/v1/sources/{gone}?id={}", server.id());
    let remove = Ask { method: "DELETE", ..Ask::get(removal) }.token(&device.token);
    assert_eq!(server.ask(&remove).status, 200);
    let own = server.write(|_, tx| Ok(store::owner::locked(tx)?.timer_source)).to_string();
    let unknown = server.id();
    let mut replies: Vec<Reply> = [folder, gone, own, unknown, "nonsense".to_owned()]
        .iter()
        .map(|id| server.ask(&signed(id, SECRET, "msg_1", server.clock_now(), PAID)))
        .collect();
    assert_eq!(replies[0].status, 404);
    replies.dedup_by_key(|reply| (reply.status, reply.text.clone()));
    assert_eq!(replies.len(), 1, "{replies:?}");
    assert_eq!(server.number_of_events(), 0);
    let unknown = server.get(&device.token, "/v1/sources").json()["unknown"].clone();
    assert_eq!(unknown["refused"], 4, "what is no id was never looked up");
}

#[test]
fn a_proxy_may_stand_before_it_and_no_page_may_send() {
    let server = Server::start();
    let device = server.device("phone");
    let source = add(&server, &device, "shop", standard());
    let ask = signed(&source, SECRET, "msg_1", server.clock_now(), PAID);
    let page = ask.clone().header("origin", "https://evil.example");
    assert_eq!(server.ask(&page).status, 403);
    let proxied = ask.header("host", "hooks.example.com");
    assert_eq!(server.ask(&proxied).status, 202);
    let other = Ask::get("/v1/sources").token(&device.token).header("host", "hooks.example.com");
    assert_eq!(server.ask(&other).status, 403);
    let get = Ask::get(format!("/v1/hooks/{source}"));
    assert_eq!(send(server.address, &get).status, 405);
}

#[test]
fn too_much_that_waits_is_refused_with_the_time_to_come_again() {
    let server = Server::bounded(Limits { unrouted_max: 2, ..Limits::default() });
    let device = server.device("phone");
    let source = add(&server, &device, "shop", standard());
    let deliver = |id: &str| server.ask(&signed(&source, SECRET, id, server.clock_now(), PAID));
    assert_eq!([deliver("msg_1").status, deliver("msg_2").status], [202, 202]);
    let full = deliver("msg_3");
    assert_eq!((full.status, full.header("retry-after")), (503, Some("30")));
    assert_eq!(full.json()["written"], "nothing");
    // What is known is acknowledged, however much waits; a refusal of ours is none of the sender's.
    assert_eq!(deliver("msg_1").status, 200);
    assert_eq!(listed(&server, &device)["refused"], 0);
}

#[test]
fn one_sender_takes_no_place_of_another_ones_deliveries() {
    let server = Server::start();
    let device = server.device("phone");
    let (slow, other) =
        (add(&server, &device, "slow", standard()), add(&server, &device, "other", standard()));
    let ask = |source: &str| signed(source, SECRET, "msg_1", server.clock_now(), PAID);
    let half = ask(&slow)
        .header("expect", "100-continue")
        .header("content-length", PAID.len().to_string());
    let mut begun: Vec<Half> = (0..8).map(|_| Half::open(server.address, &half)).collect();
    let full = server.ask(&ask(&slow));
    assert_eq!((full.status, full.header("retry-after")), (503, Some("1")));
    assert!(full.detail().contains("of this source"), "{full:?}");
    assert_eq!(server.ask(&ask(&other)).status, 202);
    assert_eq!(begun[0].finish(PAID.as_bytes()).status, 202);
    assert_eq!(server.ask(&ask(&slow)).status, 200, "its place is free again");
}

#[test]
fn a_delivery_wakes_the_duty_that_hears_it_at_once() {
    let server = Server::with_engine();
    let device = server.device("phone");
    let source = add(&server, &device, "shop", standard());
    let draft = json!({"title": "Orders", "goal": "Tell me of paid orders.",
        "conditions": [{"text": "The user ends it.", "evidence": "a message", "authority": "user"}],
        "subscriptions": [{"source": "shop", "topic": "order.*", "prompt": "Look at it."}]});
    let proposal = server.proposed(draft);
    let path = format!("/v1/proposals/{proposal}");
    let digest = server.get(&device.token, &path).json()["digest"].clone();
    let body = json!({"id": server.id(), "digest": digest});
    assert_eq!(server.post(&device.token, &format!("{path}/confirm"), &body).status, 200);
    let reply = server.ask(&signed(&source, SECRET, "msg_1", server.clock_now(), PAID));
    let event = reply.json()["event"].as_str().expect("an event").to_owned();
    let trace = server.wait_for(&device.token, || {
        // What comes from outside waits a moment for more of the same. One signal is enough to pass it,
        // since several commits may make one.
        server.clock.advance_ms(3_000);
        let trace = server.get(&device.token, &format!("/v1/events/{event}")).json();
        Some(trace).filter(|trace| trace["work_item"]["state"] == "done")
    });
    assert_eq!(
        [&trace["links"][0]["how"], &trace["links"][0]["title"], &trace["runs"][0]["state"]],
        [&json!("subscription"), &json!("Orders"), &json!("completed")]
    );
    let duty = server.get(&device.token, "/v1/duties").json()["duties"][0].clone();
    let heard = &duty["subscriptions"][0];
    assert_eq!(
        [&heard["name"], &heard["topic"], &heard["mode"], &heard["prompt"]],
        [&json!("shop"), &json!("order.*"), &json!("wake"), &json!("Look at it.")]
    );
    assert_eq!(listed(&server, &device)["duties"], json!([duty["id"]]));
    server.stop();
}
