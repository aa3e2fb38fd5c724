//! What only the person decides: proposals and the switch of a duty.

use base::{DutyId, ProposalId};
use serde_json::{Value, json};

use crate::server::{CountingDemo, Paired, Server, draft, id_of};
use crate::writes::duty;

fn proposal(server: &Server, device: &Paired, id: ProposalId) -> Value {
    server.get(&device.token, &format!("/v1/proposals/{id}")).json()
}

fn decide(
    server: &Server,
    device: &Paired,
    id: ProposalId,
    how: &str,
    digest: &str,
) -> (u16, Value) {
    let mut body = json!({"id": server.id()});
    if how == "confirm" {
        body["digest"] = json!(digest);
    }
    let reply = server.post(&device.token, &format!("/v1/proposals/{id}/{how}"), &body);
    (reply.status, reply.json())
}

#[test]
fn a_card_shows_what_is_confirmed_and_what_happens_otherwise() {
    let server = Server::start();
    let device = server.device("phone");
    let id = server.new_duty();
    let card = proposal(&server, &device, id);
    let wanted = json!({
        "id": id, "kind": "new_duty", "duty": null, "title": draft()["title"], "goal": draft()["goal"],
        "conditions": draft()["conditions"],
        // 09:30 in Berlin, half an hour after the clock's 09:00 there.
        "schedules": [{"words": "every day at 09:30", "first": "2026-11-30T08:30:00.000000Z",
            "prompt": "Look at the feed.", "run_missed": "once", "check": null}],
        "subscriptions": [], "grants": [],
        "reach": "At most 25 wake-ups, until Thursday 2026-12-24 18:00",
        "changes": [],
        "ends_at": "2026-12-24T17:00:00.000000Z",
        "until": "2026-12-01T08:00:00.000000Z",
        "if_nothing": "Nothing starts. The question ends on Tuesday 2026-12-01 09:00.",
        "why": "A duty wakes up by itself, so it starts only if you agree.",
        "afterwards": "You can stop it under Duties at any time.",
        "words": "Waiting for your decision",
        "digest": card["digest"], "state": "open", "created_at": "2026-11-30T08:00:00.000000Z",
    });
    assert_eq!(card, wanted);
    let listed = server.get(&device.token, "/v1/proposals?state=open").json();
    assert_eq!(listed, json!({"proposals": [wanted]}));
    assert_eq!(
        server.get(&device.token, "/v1/proposals?state=declined").json(),
        json!({"proposals": []})
    );
    assert_eq!(server.get(&device.token, "/v1/proposals?state=sure").status, 400);
}

#[test]
fn a_card_shows_every_call_and_every_event_that_is_authorised() {
    let server = Server::start();
    let device = server.device("phone");
    let mut drafted = draft();
    let url = format!("https://example.org/{}?secret=42", "a".repeat(300));
    drafted["schedules"][0]["run_missed"] = json!("skip");
    drafted["schedules"][0]["check"] = json!({"tool": "web.fetch", "arguments": {"url": url},
        "path": "price", "when": "below", "value": 100});
    drafted["subscriptions"] = json!([
        {"source": "shop", "topic": "parcel.*", "mode": "background", "prompt": "Note it."},
        {"source": "mail", "prompt": "Say who wrote."},
    ]);
    let id = server.proposed(drafted);
    let arguments = format!("{{\"url\":\"{url}\"}}");
    let only_if = format!("price of web.fetch {arguments} is below 100");
    let schedules = json!([{
        "words": format!("every day at 09:30; not late; only if {only_if}"),
        "first": "2026-11-30T08:30:00.000000Z", "prompt": "Look at the feed.", "run_missed": "skip",
        "check": {"tool": "web.fetch", "arguments": arguments, "words": only_if},
    }]);
    let subscriptions = json!([
        {"source": "shop", "topic": "parcel.*", "mode": "background", "prompt": "Note it.",
            "words": "events of shop (parcel.*), only read along"},
        {"source": "mail", "topic": null, "mode": "wake", "prompt": "Say who wrote.",
            "words": "events of mail (any)"},
    ]);
    let card = proposal(&server, &device, id);
    assert_eq!((&card["schedules"], &card["subscriptions"]), (&schedules, &subscriptions));
    let listed = server.get(&device.token, "/v1/proposals").json();
    assert_eq!(listed["proposals"][0], card);
    // The answer to a decision shows the same, also when it is asked for again.
    let write = json!({"id": server.id()});
    for _ in 0..2 {
        let path = format!("/v1/proposals/{id}/decline");
        let decided = server.post(&device.token, &path, &write).json();
        assert_eq!(
            (&decided["schedules"], &decided["subscriptions"]),
            (&schedules, &subscriptions)
        );
    }
}

#[test]
fn only_the_digest_that_was_shown_is_confirmed_and_only_once() {
    let server = Server::start();
    let device = server.device("phone");
    let id = server.new_duty();
    let digest = proposal(&server, &device, id)["digest"].as_str().expect("a digest").to_owned();
    for stale in [&"0".repeat(64), "", "nonsense", &digest[..63]] {
        let (status, problem) = decide(&server, &device, id, "confirm", stale);
        assert_eq!(status, 409, "{stale}");
        assert!(problem["detail"].as_str().expect("a detail").contains("not what was shown"));
    }
    assert_eq!(server.get(&device.token, "/v1/duties").json(), json!({"duties": []}));
    let (status, card) = decide(&server, &device, id, "confirm", &digest);
    assert_eq!((status, &card["state"]), (200, &json!("confirmed")));
    for how in ["confirm", "decline"] {
        let (status, problem) = decide(&server, &device, id, how, &digest);
        assert_eq!(status, 409);
        let wanted = "You have confirmed this already. Decided on phone, Monday 2026-11-30 09:00: \
                      You agreed · the duty has started.";
        assert_eq!(problem["detail"], wanted);
        assert_eq!(problem["stale"]["card"]["id"], json!(id));
    }
    let duties = server.get(&device.token, "/v1/duties").json();
    assert_eq!(duties["duties"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_yes_to_another_card_is_told_what_differs_in_the_language_that_is_set() {
    let server = Server::start();
    let device = server.device("phone");
    let first = server.new_duty();
    let seen = proposal(&server, &device, first)["digest"].as_str().expect("a digest").to_owned();
    let mut other = draft();
    other["goal"] = json!("Tell me when it falls under 90.");
    other["schedules"][0]["at"] = json!("10:30");
    let second = server.proposed(other);
    let english = [
        "Goal: \"Tell me when it falls under 100.\" becomes \"Tell me when it falls under 90.\"",
        "Wake-up, no longer: every day at 09:30: Look at the feed.",
        "Wake-up, new: every day at 10:30: Look at the feed.",
    ];
    let chinese = [
        "委托内容：由 “Tell me when it falls under 100.” 改为 “Tell me when it falls under 90.”",
        "唤醒，不再：每天 09:30: Look at the feed.",
        "唤醒，新增：每天 10:30: Look at the feed.",
    ];
    for (language, changes) in [("en", english), ("zh", chinese)] {
        let set = json!({"id": server.id(), "language": language});
        assert_eq!(server.post(&device.token, "/v1/owner", &set).status, 200);
        let (status, problem) = decide(&server, &device, second, "confirm", &seen);
        assert_eq!((status, &problem["stale"]["changes"]), (409, &json!(changes)));
        assert_eq!(problem["stale"]["card"], proposal(&server, &device, second));
    }
    assert_eq!(proposal(&server, &device, second)["words"], "等你决定");
}

#[test]
fn two_new_duties_of_one_conversation_are_two() {
    let server = Server::start();
    let device = server.device("phone");
    let first = server.new_duty();
    server.clock.advance_ms(1);
    let second = server.new_duty();
    assert_eq!(decide(&server, &device, first, "decline", "").0, 200);
    let (status, problem) = decide(&server, &device, first, "decline", "");
    let wanted = "You have declined this already. Nothing was changed. Decided on phone, Monday \
                  2026-11-30 09:00: You said no · nothing started.";
    assert_eq!((status, &problem["detail"]), (409, &json!(wanted)));
    assert_eq!(problem["stale"]["card"]["id"], json!(first));
    assert_eq!(proposal(&server, &device, second)["state"], "open");
}

#[test]
fn a_card_whose_time_is_over_says_so_before_any_timer_does() {
    let server = Server::start();
    let device = server.device("phone");
    let id = server.new_duty();
    let digest = proposal(&server, &device, id)["digest"].as_str().expect("a digest").to_owned();
    server.clock.advance_ms(86_400_000);
    assert_eq!(proposal(&server, &device, id)["state"], "expired");
    assert_eq!(
        server.get(&device.token, "/v1/proposals?state=open").json(),
        json!({"proposals": []})
    );
    assert_eq!(decide(&server, &device, id, "confirm", &digest).0, 409);
}

#[test]
fn a_closing_shows_its_reason_and_ends_the_duty() {
    let server = Server::start();
    let device = server.device("phone");
    let duty = duty(&server, &device);
    let of: DutyId = id_of(&json!(duty));
    let line =
        |at: &str| server.get(&device.token, &format!("/v1/duties/{duty}")).json()[at].clone();
    let no = server.close_duty(of);
    let card = proposal(&server, &device, no);
    assert_eq!((&card["goal"], &card["duty"]), (&json!("It fell under 100."), &json!(duty)));
    assert_eq!((&card["schedules"], &card["ends_at"]), (&json!([]), &Value::Null));
    assert_eq!(line("state_line"), "Waiting for your decision: is it done?");
    assert_eq!(decide(&server, &device, no, "decline", "").0, 200);
    assert_eq!(line("state"), "active");
    let yes = server.close_duty(of);
    let digest = proposal(&server, &device, yes)["digest"].as_str().expect("a digest").to_owned();
    assert_eq!(decide(&server, &device, yes, "confirm", &digest).0, 200);
    assert_eq!((line("state"), line("next_wake")), (json!("closed"), Value::Null));
    for turn in ["stop", "resume"] {
        let path = format!("/v1/duties/{duty}/{turn}");
        let reply = server.post(&device.token, &path, &json!({"id": server.id()}));
        assert_eq!(reply.status, 409, "{turn}: {reply:?}");
    }
}

#[test]
fn a_stopped_duty_wakes_no_more_and_goes_on_from_its_next_slot() {
    let server = Server::start();
    let device = server.device("phone");
    let id = duty(&server, &device);
    let before = server.get(&device.token, &format!("/v1/duties/{id}")).json();
    let turn = |to: &str| {
        let path = format!("/v1/duties/{id}/{to}");
        server.post(&device.token, &path, &json!({"id": server.id()}))
    };
    let schedule = &before["schedules"][0];
    let wanted = json!({
        "id": id, "title": draft()["title"], "state": "active", "version": 1, "goal": draft()["goal"],
        "conditions": draft()["conditions"], "created_at": "2026-11-30T08:00:00.000000Z",
        "next_wake": "2026-11-30T08:30:00.000000Z", "ends_at": "2026-12-24T17:00:00.000000Z",
        "waits": [],
        "schedules": [{"id": schedule["id"], "words": "every day at 09:30",
            "prompt": "Look at the feed.",
            "next_slot": "2026-11-30T08:30:00.000000Z", "state": "active", "late_last": false,
            "check": null}],
        "pause": null, "subscriptions": [], "situations": [], "grants": [],
        "runs": [], "spent_micro_usd": 0,
        "state_line": "Waiting · first look Monday 2026-11-30 09:30",
    });
    assert_eq!(before, wanted);
    let mut stopped = wanted.clone();
    stopped["state"] = json!("stopped");
    stopped["next_wake"] = Value::Null;
    stopped["schedules"][0]["state"] = json!("paused");
    stopped["schedules"][0]["next_slot"] = Value::Null;
    stopped["state_line"] = json!("Stopped by you. It wakes no more; resume it to go on.");
    assert_eq!(turn("stop").json(), stopped);
    // Stopped twice is stopped.
    assert_eq!(turn("stop").json(), stopped);
    server.clock.advance_ms(3_600_000);
    let resumed = turn("resume").json();
    assert_eq!(
        (&resumed["state"], &resumed["next_wake"]),
        (&json!("active"), &json!("2026-12-01T08:30:00.000000Z"))
    );
    assert_eq!(server.get(&device.token, &format!("/v1/duties/{id}")).json(), resumed);
}

#[test]
fn records_that_are_not_there_are_404_and_say_so() {
    let server = Server::start();
    let device = server.device("phone");
    let write = json!({"id": server.id()});
    for noun in ["duties", "proposals", "actions", "chat"] {
        for id in [server.id(), "nonsense".into(), "%ff".into(), "..%2f".into()] {
            assert_eq!(
                server.get(&device.token, &format!("/v1/{noun}/{id}")).status,
                404,
                "{noun} {id}"
            );
        }
    }
    let unknown = server.id();
    for path in [
        format!("duties/{unknown}/stop"),
        format!("duties/{unknown}/resume"),
        format!("proposals/{unknown}/decline"),
        format!("actions/{unknown}/deny"),
        format!("actions/{unknown}/withdraw"),
    ] {
        assert_eq!(
            server.post(&device.token, &format!("/v1/{path}"), &write).status,
            404,
            "{path}"
        );
    }
    // An id that met nothing is still free.
    let say = json!({"id": write["id"], "text": "hello"});
    assert_eq!(server.post(&device.token, "/v1/messages", &say).status, 202);
}

#[test]
fn the_plug_is_there_in_the_demo_only() {
    let server = Server::start();
    let device = server.device("phone");
    assert_eq!(server.get(&device.token, "/v1/demo").status, 404);
    assert_eq!(server.post(&device.token, "/v1/demo/plug", &json!({})).status, 404);
    assert_eq!(server.get(&device.token, "/v1/me").json()["demo"], false);
    let demo = std::sync::Arc::new(CountingDemo::default());
    let server = Server::with_demo(demo.clone());
    let device = server.device("phone");
    assert_eq!(server.post("wrong", "/v1/demo/plug", &json!({})).status, 401);
    assert_eq!(server.post(&device.token, "/v1/demo/plug", &json!({"now": true})).status, 400);
    assert_eq!(server.get(&device.token, "/v1/demo").json()["plugs"], 0);
    assert_eq!(server.post(&device.token, "/v1/demo/plug", &json!({})).status, 202);
    assert_eq!(server.get(&device.token, "/v1/demo").json()["plugs"], 1);
    assert_eq!(server.get(&device.token, "/v1/me").json()["demo"], true);
}
