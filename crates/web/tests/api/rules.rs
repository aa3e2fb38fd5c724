//! A supervisor over the API: their device, their rules, the approvals that ask for them, and nothing else.

use engine::setup;
use serde_json::{Value, json};
use web::routes::{Access, ROUTES, Verb};

use crate::actions::Room;
use crate::client::{Ask, Reply};
use crate::server::{Paired, Server};

fn supervisor(server: &Server) -> Paired {
    let paired = server.write(|cx, tx| setup::add_supervisor(cx, tx, "boss"));
    Paired { id: paired.device.id, token: paired.token.expose().to_owned() }
}

fn add(server: &Server, by: &Paired, rule: Value) -> Reply {
    let mut body = rule;
    body["id"] = json!(server.id());
    server.post(&by.token, "/v1/rules", &body)
}

fn end(server: &Server, by: &Paired, rule: &Value) -> Reply {
    let path = format!("/v1/rules/{}/end", rule["id"].as_str().expect("an id"));
    server.post(&by.token, &path, &json!({"id": server.id()}))
}

fn detail(reply: &Reply, status: u16) -> String {
    assert_eq!(reply.status, status, "{reply:?}");
    reply.json()["detail"].as_str().expect("a text").to_owned()
}

#[test]
fn both_read_the_rules_and_only_a_supervisors_device_writes_them() {
    let server = Server::start();
    let (phone, boss) = (server.device("phone"), supervisor(&server));
    let wish = json!({"tool": "hotel.*", "effect": "paid", "demand": "supervisor",
        "above": {"amount": "500.00", "currency": "HKD"}});
    let no = "Only a device of the supervisor writes rules.";
    assert!(detail(&add(&server, &phone, wish.clone()), 403).starts_with(no));
    let mut made = add(&server, &boss, wish.clone()).json();
    let seq = made["seq"].take();
    made.as_object_mut().expect("a rule").remove("seq");
    let at = "2026-11-30T08:00:00.000000Z";
    let wanted = json!({
        "id": made["id"], "tool": "hotel.*", "effect": "paid", "demand": "supervisor",
        "above": {"minor": 50_000, "currency": "HKD", "text": "HKD 500.00"},
        "words": "hotel.* (paid) above HKD 500.00: the supervisor approves each besides",
        "state": "active", "created_at": at, "moved_at": at,
    });
    assert_eq!(made, wanted);
    for device in [&phone, &boss] {
        let list = server.get(&device.token, "/v1/rules").json();
        assert_eq!(list, json!({"rules": [wanted], "seq": seq}));
    }
    assert!(detail(&end(&server, &phone, &made), 403).starts_with(no));
    assert_eq!(server.get(&phone.token, "/v1/rules").json()["rules"][0]["state"], "active");
    assert_eq!(end(&server, &boss, &made).json()["state"], "ended");
    for wrong in [
        json!({"tool": "hotel", "demand": "forbid"}),
        json!({"tool": "*", "demand": "allow"}),
        json!({"tool": "*", "demand": "forbid", "above": {"amount": "-1", "currency": "HKD"}}),
    ] {
        assert_eq!(add(&server, &boss, wrong).status, 400);
    }
}

#[test]
fn a_supervisors_device_gets_nothing_else_of_the_owners() {
    let server = Server::start();
    let boss = supervisor(&server);
    let mut refused = 0;
    for route in ROUTES.iter().filter(|route| route.access == Access::Device) {
        let path = route.path.replace("{id}", &server.id());
        let body = json!({});
        let ask = match route.verb {
            Verb::Get => Ask::get(path),
            Verb::Post => Ask::post(path, &body),
            Verb::Delete => Ask { method: "DELETE", ..Ask::post(path, &body) },
        };
        let reply = server.ask(&ask.token(&boss.token));
        assert!(detail(&reply, 403).contains("nothing else of the owner's"), "{}", route.path);
        refused += 1;
    }
    assert!(refused > 25, "only {refused} operations are the owner's alone");
    let me = server.get(&boss.token, "/v1/me").json();
    let told = ["of", "month", "dial"].map(|name| me.get(name).cloned());
    assert_eq!(told, [Some(json!("supervisor")), None, None]);
}

#[test]
fn the_supervisor_decides_on_what_names_them_and_sees_only_that() {
    let room = Room::honest();
    let (server, boss) = (&room.server, supervisor(&room.server));
    room.say("book the room");
    room.after_ms(0);
    let own = |path: &str| server.get(&boss.token, path);
    let id = room.only()["id"].as_str().expect("an id").to_owned();
    let (one, list) = (format!("/v1/actions/{id}"), "/v1/actions");
    assert_eq!(own(list).json()["actions"], json!([]));
    assert_eq!(own(&one).status, 404);
    let decide = |by: &Paired, how: &str, more: Value| {
        let mut body = more;
        body["id"] = json!(server.id());
        server.post(&by.token, &format!("{one}/{how}"), &body)
    };
    let digest = json!({"digest": room.only()["digest"]});
    assert_eq!(decide(&boss, "approve", digest.clone()).status, 404, "it names nobody");

    assert_eq!(add(server, &boss, json!({"tool": "*", "demand": "supervisor"})).status, 200);
    room.after_ms(0);
    assert_eq!(room.only()["asked"], json!(["user", "supervisor"]));
    assert_eq!(decide(&room.device, "approve", digest.clone()).status, 200);
    room.after_ms(0);
    let waits = room.only();
    assert_eq!((&waits["state"], &waits["asked"]), (&json!("authorized"), &json!(["supervisor"])));
    assert!(detail(&decide(&room.device, "approve", digest.clone()), 409).contains("no longer"));

    let seen = own(&one).json();
    assert_eq!((&seen["what"], &seen["asked"]), (&waits["what"], &waits["asked"]));
    let hidden = ["title", "duty", "reason"].map(|name| &seen[name]);
    assert_eq!(hidden, [&Value::Null; 3]);
    assert_eq!(seen["approvals"][0]["device_name"], Value::Null);
    let wrong = json!({"digest": "0".repeat(64)});
    assert!(detail(&decide(&boss, "approve", wrong), 409).contains("not what was shown"));
    assert_eq!(decide(&boss, "approve", digest).json()["asked"], json!([]));
    room.after_ms(0);
    room.after_ms(5_000);
    let sent = room.only();
    assert_eq!(sent["state"], "accepted");
    let by = |at: usize| [&sent["approvals"][at]["by"], &sent["approvals"][at]["state"]];
    assert_eq!(by(0), [&json!("user"), &json!("consumed")]);
    assert_eq!(by(1), [&json!("supervisor"), &json!("consumed")]);
}

#[test]
fn only_whoever_runs_the_machine_lets_a_supervisor_in_and_out() {
    let server = Server::start();
    let phone = server.device("phone");
    let operator = server.write(|cx, tx| setup::add_operator(cx, tx, "command line"));
    let operator = operator.token.expose().to_owned();
    let ask = |token: &str| server.post(token, "/v1/codes", &json!({"supervisor": true}));
    assert!(detail(&ask(&phone.token), 403).contains("adjutant pair --supervisor"));
    let code = ask(&operator).json()["code"].clone();
    // A code of the other kind leaves it as it is.
    assert_eq!(server.post(&phone.token, "/v1/codes", &json!({})).status, 201);
    let paired = server.ask(&Ask::post("/v1/pair", &json!({"code": code, "name": "boss"}))).json();
    let token = paired["token"].as_str().expect("a token").to_owned();
    assert_eq!(server.get(&token, "/v1/me").json()["of"], "supervisor");
    let listed = server.get(&phone.token, "/v1/devices").json();
    let of: Vec<_> =
        listed["devices"].as_array().expect("a list").iter().map(|d| &d["of"]).collect();
    assert_eq!(of, ["user", "user", "supervisor"]);
    let path = format!("/v1/devices/{}/revoke", paired["device"].as_str().expect("an id"));
    let revoke = |by: &str| server.post(by, &path, &json!({"id": server.id()}));
    assert!(detail(&revoke(&phone.token), 403).contains("where the server runs"));
    assert_eq!(server.get(&token, "/v1/rules").status, 200);
    assert_eq!(revoke(&operator).status, 200);
    assert_eq!(server.get(&token, "/v1/rules").status, 401);
}
