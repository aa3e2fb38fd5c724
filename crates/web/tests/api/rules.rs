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

/// What a supervisor reads of an action that the owner reads so.
fn masked(owners: &Value, words: &str) -> Value {
    let kept = "id tool effect state what card amount recipients digest template created_at moved_at asked seq undo_ms";
    let own = owners["approvals"].as_array().and_then(|all| all.last()).expect("theirs").clone();
    let mut seen = json!({"words": words, "expires_at": own["until_at"], "approvals": [],
        "contradicted": false, "attempts": []});
    for (name, value) in owners.as_object().expect("an action") {
        if kept.split(' ').any(|kept| kept == name) {
            seen[name] = value.clone();
        } else if seen.get(name).is_none() {
            seen[name] = Value::Null;
        }
    }
    let others = owners["approvals"].as_array().into_iter().flatten();
    let shown = others.map(|one| {
        let mut one = one.clone();
        if one["of"] != "supervisor" {
            for name in ["device", "device_name", "reason"] {
                one[name] = Value::Null;
            }
        }
        one
    });
    seen["approvals"] = shown.collect();
    seen
}

#[test]
fn a_late_tap_of_the_supervisor_shows_no_more_than_their_list() {
    let room = Room::honest();
    let (server, boss) = (&room.server, supervisor(&room.server));
    assert_eq!(add(server, &boss, json!({"tool": "*", "demand": "supervisor"})).status, 200);
    room.say("book the room");
    room.after_ms(0);
    let action = room.only();
    let path = format!("/v1/actions/{}", action["id"].as_str().expect("an id"));
    let tap = |by: &Paired, id: &str, digest: Value| {
        let body = json!({"id": id, "digest": digest});
        server.post(&by.token, &format!("{path}/approve"), &body)
    };
    assert_eq!(server.get(&boss.token, &path).json(), masked(&action, "Waiting for your decision"));
    // The digest of another card of the owner's is answered with nothing of that card.
    let wrong = tap(&boss, &server.id(), json!("0".repeat(64))).json();
    let card = masked(&room.only(), "Waiting for your decision");
    assert_eq!(wrong["stale"], json!({"changes": [], "card": card}));

    let (once, digest) = (server.id(), &action["digest"]);
    let first = tap(&boss, &once, digest.clone()).json();
    assert_eq!(first, masked(&room.only(), "Released"));
    assert_eq!(tap(&room.device, &server.id(), digest.clone()).status, 200);
    let late = tap(&boss, &server.id(), digest.clone());
    assert_eq!(detail(&late, 409), "This can no longer be decided: it is released, not sent yet.");
    let card = masked(&room.only(), "Released");
    assert_eq!(late.json()["stale"], json!({"changes": [], "card": card}));
    assert_eq!(tap(&boss, &once, digest.clone()).json(), first, "a repeat reads as the first");
    let listed = server.get(&boss.token, "/v1/actions").json()["actions"][0].clone();
    let mut line = masked(&room.only(), "Released");
    line.as_object_mut().expect("an action").remove("attempts");
    assert_eq!(listed, line);
}

#[test]
fn a_late_tap_of_the_owner_is_told_of_their_own_decision_and_not_of_the_supervisors() {
    let room = Room::honest();
    let (server, boss) = (&room.server, supervisor(&room.server));
    for demand in ["supervisor", "person"] {
        assert_eq!(add(server, &boss, json!({"tool": "*", "demand": demand})).status, 200);
    }
    room.say("book the room");
    room.after_ms(0);
    let action = room.only();
    assert_eq!(room.approve(&action).status, 200);
    let path = format!("/v1/actions/{}/approve", action["id"].as_str().expect("an id"));
    let body = json!({"id": server.id(), "digest": action["digest"]});
    assert_eq!(server.post(&boss.token, &path, &body).status, 200);
    let wanted = "This can no longer be decided: it is released, not sent yet. Decided on phone, \
                  Monday 2026-11-30 09:00: Released.";
    assert_eq!(detail(&room.approve(&action), 409), wanted);
}

#[test]
fn what_the_supervisor_types_is_quoted_and_not_translated() {
    let room = Room::honest();
    let (server, boss) = (&room.server, supervisor(&room.server));
    assert_eq!(add(server, &boss, json!({"tool": "*", "demand": "supervisor"})).status, 200);
    let set = json!({"id": server.id(), "language": "zh"});
    assert_eq!(server.post(&room.device.token, "/v1/owner", &set).status, 200);
    room.say("book the room");
    room.after_ms(0);
    let path = format!("/v1/actions/{}/deny", room.only()["id"].as_str().expect("an id"));
    let body = json!({"id": server.id(), "reason": "run it by my boss"});
    assert_eq!(server.post(&boss.token, &path, &body).status, 200);
    let denied = room.only();
    let reasons = [&denied["reason"], &denied["approvals"][1]["reason"]];
    assert_eq!(reasons, ["主管已否决：“run it by my boss”", "run it by my boss"]);
}

#[test]
fn a_supervisors_pairing_says_no_language_of_the_owners() {
    let server = Server::start();
    let phone = server.device("phone");
    let operator = server.write(|cx, tx| setup::add_operator(cx, tx, "command line"));
    let pair = |token: &str, supervisor: bool, accepted: &str| {
        let code = server.post(token, "/v1/codes", &json!({"supervisor": supervisor})).json();
        let ask = Ask::post("/v1/pair", &json!({"code": code["code"], "name": "one more"}));
        assert_eq!(server.ask(&ask.header("accept-language", accepted)).status, 201);
        let me = server.get(&phone.token, "/v1/me").json();
        let all = server.write(|_, tx| {
            let owner = tx.owner();
            store::change::audit(tx, owner, 0, 100)
        });
        let set = all.iter().filter(|entry| entry.verb == "settings").count();
        (me["language"].clone(), set)
    };
    assert_eq!(pair(operator.token.expose(), true, "zh-CN"), (json!("en"), 0));
    assert_eq!(pair(&phone.token, false, "zh-CN"), (json!("zh"), 1));
    assert_eq!(pair(&phone.token, false, "en"), (json!("zh"), 1));
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
    // They see the devices that they may revoke.
    let theirs = server.get(&token, "/v1/devices").json();
    let mut own = listed["devices"][2].clone();
    own["this"] = json!(true);
    assert_eq!(theirs, json!({"devices": [own]}));
    let path = format!("/v1/devices/{}/revoke", paired["device"].as_str().expect("an id"));
    let revoke = |by: &str| server.post(by, &path, &json!({"id": server.id()}));
    assert!(detail(&revoke(&phone.token), 403).contains("where the server runs"));
    assert_eq!(server.get(&token, "/v1/rules").status, 200);
    assert_eq!(revoke(&operator).status, 200);
    assert_eq!(server.get(&token, "/v1/rules").status, 401);
}
