//! A second device, and a device that is lost: codes, the list, and revoking.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Ask, Reply};
use crate::log;
use crate::server::{Paired, Server};

fn offer(server: &Server, token: &str) -> Reply {
    server.post(token, "/v1/codes", &json!({}))
}

fn pair(server: &Server, code: &Value, name: &str) -> Reply {
    server.ask(&Ask::post("/v1/pair", &json!({"code": code, "name": name})))
}

fn revoke(server: &Server, by: &Paired, id: &Value) -> Reply {
    let path = format!("/v1/devices/{}/revoke", id.as_str().expect("an id"));
    server.post(&by.token, &path, &json!({"id": server.id()}))
}

#[test]
fn a_paired_device_makes_a_code_for_the_next_one() {
    let server = Server::start();
    let phone = server.device("phone");
    let made = offer(&server, &phone.token);
    assert_eq!(made.status, 201);
    let made = made.json();
    let code = made["code"].as_str().expect("a code");
    let wanted = json!({
        "code": code,
        "link": format!("http://{}/#code={code}", server.address),
        "expires_at": "2026-11-30T08:15:00.000000Z",
    });
    assert_eq!(made, wanted);
    let laptop = pair(&server, &made["code"], "laptop");
    assert_eq!(laptop.status, 201);
    let token = laptop.json()["token"].as_str().expect("a token").to_owned();
    assert_eq!(pair(&server, &made["code"], "again").status, 403, "a code works once");

    let listed = server.get(&token, "/v1/devices").json();
    let device = |id: &Value, name: &str, this: bool| {
        json!({"id": id, "name": name, "of": "user", "created_at": "2026-11-30T08:00:00.000000Z",
            "revoked_at": null, "this": this})
    };
    let wanted = json!({"devices": [device(&json!(phone.id), "phone", false),
        device(&laptop.json()["device"], "laptop", true)]});
    assert_eq!(listed, wanted);
    // The new one can make a code too, and a newer code voids the one before.
    let (first, second) = (offer(&server, &token).json(), offer(&server, &phone.token).json());
    assert_eq!(pair(&server, &first["code"], "tablet").status, 403);
    assert_eq!(pair(&server, &second["code"], "tablet").status, 201);
}

#[test]
fn a_code_is_a_secret_that_is_kept_nowhere() {
    let server = Server::start();
    let phone = server.device("phone");
    let code = offer(&server, &phone.token).json()["code"].clone();
    let code = code.as_str().expect("a code");
    for path in ["me", "devices", "changes", "chat"] {
        let reply = server.get(&phone.token, &format!("/v1/{path}"));
        assert!(!reply.text.contains(code), "{path}");
    }
    assert!(!log::text().contains(code), "a code is in the log");
    for body in [json!({"id": server.id()}), json!(null), json!({"code": "AAAA-AAAA"})] {
        assert_eq!(server.post(&phone.token, "/v1/codes", &body).status, 400);
    }
    assert_eq!(offer(&server, "nonsense").status, 401);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "measures how long a stream outlives its device")]
fn a_revoked_device_is_refused_and_its_stream_ends_within_a_second() {
    let server = Server::start();
    let (phone, lost) = (server.device("phone"), server.device("lost phone"));
    let mut stream = server.stream(&lost.token);
    assert_eq!(stream.next(), Some(2));
    let before = Instant::now();
    let revoked = revoke(&server, &phone, &json!(lost.id));
    let wanted = json!({"id": lost.id, "revoked_at": "2026-11-30T08:00:00.000000Z", "seq": 3});
    assert_eq!((revoked.status, revoked.json()), (200, wanted));
    assert_eq!(stream.next(), None);
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
    for path in ["/v1/me", "/v1/stream", "/v1/devices"] {
        assert_eq!(server.get(&lost.token, path).status, 401, "{path}");
    }
    assert_eq!(offer(&server, &lost.token).status, 401);
    // Revoked twice is revoked, at the first time; the list keeps it.
    server.clock.advance_ms(1_000);
    let again = revoke(&server, &phone, &json!(lost.id)).json();
    assert_eq!(again["revoked_at"], "2026-11-30T08:00:00.000000Z");
    let listed = server.get(&phone.token, "/v1/devices").json();
    assert_eq!(listed["devices"][1]["revoked_at"], "2026-11-30T08:00:00.000000Z");
}

#[test]
fn a_device_may_revoke_itself_and_none_that_is_not_the_owners() {
    let server = Server::start();
    let (phone, tablet) = (server.device("phone"), server.device("tablet"));
    for unknown in [json!(server.id()), json!("nonsense")] {
        assert_eq!(revoke(&server, &phone, &unknown).status, 404);
    }
    assert_eq!(revoke(&server, &phone, &json!(phone.id)).status, 200);
    assert_eq!(server.get(&phone.token, "/v1/me").status, 401);
    assert_eq!(revoke(&server, &phone, &json!(tablet.id)).status, 401);
    assert_eq!(server.get(&tablet.token, "/v1/me").status, 200);
}

#[test]
fn what_was_refused_says_where_a_code_is_made() {
    let server = Server::start();
    let mut details = vec![server.get("nonsense", "/v1/me").detail()];
    details.extend((0..11).map(|_| pair(&server, &json!("AAAA-AAAA"), "phone").detail()));
    details.dedup();
    assert_eq!(details.len(), 3, "401, 403 and 429: {details:?}");
    for detail in details {
        assert!(detail.contains("with \"adjutant pair\" where the server runs"), "{detail}");
        assert!(detail.contains("on a paired page under More"), "{detail}");
    }
}
