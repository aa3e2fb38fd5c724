//! Pauses, holds and the operator's stop.

use serde_json::{Value, json};

use crate::server::{Paired, Server};
use crate::writes::duty;

fn control(server: &Server, device: &Paired) -> Value {
    let mut shown = server.get(&device.token, "/v1/control").json();
    shown.as_object_mut().expect("fields").remove("seq");
    shown
}

fn post(server: &Server, device: &Paired, path: &str, mut body: Value) -> (u16, Value) {
    if body.get("id").is_none() {
        body["id"] = json!(server.id());
    }
    let reply = server.post(&device.token, path, &body);
    (reply.status, reply.json())
}

/// Says something and gives the hold that it places.
fn say(server: &Server, device: &Paired, text: &str) -> Value {
    post(server, device, "/v1/messages", json!({"text": text}));
    let held = control(server, device)["holds"].as_array().expect("holds").clone();
    held.last().expect("a hold").clone()
}

#[test]
fn everything_or_one_duty_is_paused_once_and_lifted() {
    let server = Server::start();
    let device = server.device("phone");
    let one = duty(&server, &device);
    let rest = json!({"system_stop": false, "pauses": [], "holds": [], "dial": "observe"});
    assert_eq!(control(&server, &device), rest);
    let ask = json!({"id": server.id(), "duty": one});
    let (status, paused) = post(&server, &device, "/v1/pauses", ask.clone());
    assert_eq!((status, &paused["duty"]), (200, &json!(one)));
    assert_eq!(post(&server, &device, "/v1/pauses", ask.clone()), (200, paused.clone()));
    assert_eq!(paused["state"], "active");
    let other = json!({"id": ask["id"]});
    assert_eq!(post(&server, &device, "/v1/pauses", other).0, 409);
    let (status, all) = post(&server, &device, "/v1/pauses", json!({}));
    assert_eq!(status, 200);
    // Paused twice is one pause.
    let (_, twice) = post(&server, &device, "/v1/pauses", json!({}));
    assert_eq!(twice["pause"], all["pause"]);
    let at = "2026-11-30T08:00:00.000000Z";
    let wanted = json!([
        {"id": paused["pause"], "duty": one, "title": "Price watch", "by": "user", "created_at": at},
        {"id": all["pause"], "duty": null, "title": null, "by": "user", "created_at": at},
    ]);
    assert_eq!(control(&server, &device)["pauses"], wanted);
    let of_duty =
        || server.get(&device.token, &format!("/v1/duties/{one}")).json()["pause"].clone();
    assert_eq!(of_duty(), json!({"id": paused["pause"], "everything": false}));
    let lift = |pause: &Value| {
        let path = format!("/v1/pauses/{}/lift", pause.as_str().expect("an id"));
        post(&server, &device, &path, json!({}))
    };
    assert_eq!([lift(&paused["pause"]).0, lift(&paused["pause"]).0], [200, 200]);
    assert_eq!(of_duty(), json!({"id": all["pause"], "everything": true}));
    // A repeat pauses nothing again and does not say that anything is paused.
    let mut since = paused.clone();
    since["state"] = json!("lifted");
    assert_eq!(post(&server, &device, "/v1/pauses", ask), (200, since));
    assert_eq!(lift(&all["pause"]).0, 200);
    assert_eq!((control(&server, &device), of_duty()), (rest, Value::Null));
    assert_eq!(lift(&json!(server.id())).0, 404);
    assert_eq!(post(&server, &device, "/v1/pauses", json!({"duty": server.id()})).0, 404);
}

#[test]
fn a_hold_is_shown_with_its_message_and_settled_by_one_tap() {
    let server = Server::start();
    let device = server.device("phone");
    let hold = say(&server, &device, "wait a moment");
    let wanted = json!({"id": hold["id"], "event": hold["event"], "text": "wait a moment",
        "verdict": null, "asked_at": null, "created_at": "2026-11-30T08:00:00.000000Z"});
    assert_eq!(control(&server, &device)["holds"], json!([wanted]));
    let settle = |hold: &Value, how: &str| {
        let path = format!("/v1/holds/{}/{how}", hold["id"].as_str().expect("an id"));
        post(&server, &device, &path, json!({}))
    };
    let (status, released) = settle(&hold, "release");
    assert_eq!((status, &released["hold"]), (200, &hold["id"]));
    assert_eq!(control(&server, &device)["holds"], json!([]));
    assert_eq!(control(&server, &device)["pauses"], json!([]));
    // What was let go on may still be stopped, and what was stopped is not let go on by a late tap.
    assert_eq!(settle(&hold, "promote").0, 200);
    assert_eq!(control(&server, &device)["pauses"][0]["duty"], Value::Null);
    let stop = say(&server, &device, "stop");
    assert_eq!(settle(&stop, "promote").0, 200);
    let (status, late) = settle(&stop, "release");
    assert_eq!(status, 409);
    assert!(late["detail"].as_str().expect("why").contains("Lift the pause"), "{late}");
    assert_eq!(control(&server, &device)["pauses"].as_array().map(Vec::len), Some(1));
    for how in ["release", "promote"] {
        assert_eq!(settle(&json!({"id": server.id()}), how).0, 404);
    }
}

#[test]
fn a_repeated_write_is_told_how_things_stand_now() {
    let server = Server::start();
    let device = server.device("phone");
    let hold = say(&server, &device, "hmm");
    let path = format!("/v1/holds/{}/promote", hold["id"].as_str().expect("an id"));
    let ask = json!({"id": server.id()});
    let (_, promoted) = post(&server, &device, &path, ask.clone());
    assert_eq!(promoted["paused"], true);
    let pause = control(&server, &device)["pauses"][0]["id"].clone();
    let lift = format!("/v1/pauses/{}/lift", pause.as_str().expect("an id"));
    assert_eq!(post(&server, &device, &lift, json!({})).0, 200);
    assert_eq!(post(&server, &device, &path, ask).1["paused"], false);

    let one = duty(&server, &device);
    let stop = json!({"id": server.id()});
    let switch = |to: &str, ask: Value| {
        post(&server, &device, &format!("/v1/duties/{one}/{to}"), ask).1["state"].clone()
    };
    assert_eq!(switch("stop", stop.clone()), "stopped");
    assert_eq!(switch("stop", stop.clone()), "stopped");
    assert_eq!(switch("resume", json!({})), "active");
    assert_eq!(
        switch("stop", stop),
        "active",
        "the stop was taken back; a repeat does not hide that"
    );
}

#[test]
fn a_pause_of_a_duty_ends_with_it() {
    let server = Server::start();
    let device = server.device("phone");
    let one = duty(&server, &device);
    let paused = post(&server, &device, "/v1/pauses", json!({"duty": one})).1;
    assert_eq!(paused["state"], "active");
    let card = server.close_duty(one.parse().expect("an id"));
    let digest =
        server.get(&device.token, &format!("/v1/proposals/{card}")).json()["digest"].clone();
    let confirm = format!("/v1/proposals/{card}/confirm");
    assert_eq!(post(&server, &device, &confirm, json!({"digest": digest})).0, 200);
    assert_eq!(control(&server, &device)["pauses"], json!([]));
}

#[test]
fn a_pause_of_everything_settles_what_messages_hold() {
    let server = Server::start();
    let device = server.device("phone");
    say(&server, &device, "one");
    say(&server, &device, "two");
    assert_eq!(post(&server, &device, "/v1/pauses", json!({})).0, 200);
    assert_eq!(control(&server, &device)["holds"], json!([]));
}

#[test]
fn a_late_repeat_of_an_end_does_not_undo_a_newer_stop() {
    let server = Server::start();
    let device = server.device("phone");
    let turn = |id: &str, stopped: bool| {
        post(&server, &device, "/v1/system-stop", json!({"id": id, "stopped": stopped}))
    };
    let [first, end, second] = [server.id(), server.id(), server.id()];
    let state = |(status, body): (u16, Value)| (status, body["system_stop"].clone());
    assert_eq!(state(turn(&first, true)), (200, json!(true)));
    assert_eq!(state(turn(&first, true)), (200, json!(true)));
    assert_eq!(turn(&first, false).0, 409);
    assert_eq!(control(&server, &device)["system_stop"], true);
    assert_eq!(state(turn(&end, false)), (200, json!(false)));
    assert_eq!(state(turn(&second, true)), (200, json!(true)));
    assert_eq!(state(turn(&end, false)), (200, json!(true)), "the newer stop stands");
    assert_eq!(control(&server, &device)["system_stop"], true);
}

#[test]
fn an_answer_is_kept_of_a_stop_that_was_made_and_of_no_other() {
    let server = Server::start();
    let device = server.device("phone");
    let commits = || server.commits.load(std::sync::atomic::Ordering::SeqCst);
    // One commit holds both: whatever happens between two, there is no answer without its stop.
    for (stopped, id) in [(true, server.id()), (false, server.id())] {
        let before = commits();
        let turned = json!({"id": id, "stopped": stopped});
        assert_eq!(post(&server, &device, "/v1/system-stop", turned).1["system_stop"], stopped);
        assert_eq!(commits() - before, 1, "{stopped}");
    }
}

#[test]
fn a_revoked_device_changes_nothing() {
    let server = Server::start();
    let (phone, lost) = (server.device("phone"), server.device("lost"));
    server.revoke(lost.id);
    for path in ["/v1/pauses", "/v1/system-stop", "/v1/sources"] {
        assert_eq!(post(&server, &lost, path, json!({"stopped": true})).0, 401, "{path}");
    }
    assert_eq!(control(&server, &phone)["system_stop"], false);
    assert_eq!(server.get("nonsense", "/v1/control").status, 401);
}
