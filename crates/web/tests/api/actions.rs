//! Outside effects as a client meets them: made by the model, released by a tap, sent, settled.

use std::collections::BTreeMap;

use base::SessionId;
use domain::effect::{Effect, Observation, Sight, Spec};
use engine::worker::{self, Action, Recorded, Work};
use serde_json::{Value, json};
use testkit::world::{FakeEffect, FakeTool};

use crate::client::Reply;
use crate::server::{Paired, Server};

/// A room for HKD 2 600.00 behind a server whose stages run when the test says so.
pub struct Room {
    pub server: Server,
    pub device: Paired,
}

impl Room {
    fn with(seen: Observation, sights: &[Sight]) -> Room {
        let server = Server::start();
        let device = server.device("phone");
        let known = json!({"total": "2600.00", "currency": "HKD", "hotel": "Harbour"});
        server.world.tool(
            "hotel.search",
            FakeTool {
                answers: vec!["one room, q-1".into()],
                issues: vec![("quote".into(), "q-1".into())],
                snapshots: BTreeMap::from([("q-1".into(), known)]),
                ..FakeTool::default()
            },
        );
        let spec = Spec {
            tool: "hotel.book".into(),
            effect: Effect::Paid,
            entry: base::Digest::of(b"entry"),
            objects: BTreeMap::from([("quote".into(), "quote".into())]),
            amount: Some("quote.total".into()),
            currency: Some("quote.currency".into()),
            recipients: Vec::new(),
            once_per: vec!["guest".into()],
            card: vec!["quote.hotel".into(), "guest".into()],
            operation: Some("client_ref".into()),
            undo: None,
            can_look_up: !sights.is_empty(),
            settled_after_ms: None,
            idempotent_ms: None,
        };
        server.world.effect(FakeEffect { spec, seen: vec![seen], sights: sights.to_vec() });
        Room { server, device }
    }

    pub fn honest() -> Room {
        let there = Sight::Found { receipt: "C-1".into(), ended: false };
        Room::with(Observation::Receipt("C-1".into()), &[there])
    }

    pub fn say(&self, text: &str) {
        let body = json!({"id": self.server.id(), "text": text});
        assert_eq!(self.server.post(&self.device.token, "/v1/messages", &body).status, 202);
        self.turn(self.server.owner.main_session);
    }

    /// Runs what waits in a lane.
    fn turn(&self, session: SessionId) {
        let cx = &self.server.cx;
        self.server.runtime.block_on(async {
            let claimed = worker::claim(cx, self.server.owner.id, session).await.expect("a claim");
            let mut work: Work = claimed.expect("something waits");
            loop {
                let recorded = match worker::next(cx, &work) {
                    Action::End(outcome) => worker::record_end(cx, &work, outcome).await,
                    Action::Tool(call, plan) => {
                        let plan = engine::tools::clear(cx, &work, plan).await.expect("a plan");
                        let done = engine::tools::perform(cx, plan).await;
                        worker::record_tool(cx, &mut work, call, done).await
                    }
                    Action::Ask(request) => {
                        let answer = cx.model.ask(&request, &|_| {}).await.expect("an answer");
                        worker::record_answer(cx, &mut work, request.digest(), answer).await
                    }
                };
                if recorded.expect("a record") == Recorded::Over {
                    return;
                }
            }
        });
    }

    /// One pass of every stage of the path, after some time.
    pub fn after_ms(&self, ms: u64) {
        let cx = &self.server.cx;
        self.server.clock.advance_ms(ms);
        self.server.runtime.block_on(async {
            testkit::world::effect_stages(cx).await.expect("the stages");
        });
    }

    /// Proposed in the conversation, where no grant can cover it, and put before the person.
    fn asked() -> (Room, Value) {
        let room = Room::honest();
        room.say("book the room");
        room.after_ms(0);
        let action = room.only();
        (room, action)
    }

    fn list(&self) -> Value {
        self.server.get(&self.device.token, "/v1/actions").json()
    }

    pub fn only(&self) -> Value {
        let list = self.list();
        let [one] = &list["actions"].as_array().expect("a list")[..] else { panic!("{list}") };
        let path = format!("/v1/actions/{}", text(&one["id"]));
        let whole = self.server.get(&self.device.token, &path).json();
        let mut line = whole.clone();
        line.as_object_mut().expect("an action").remove("attempts");
        assert_eq!(*one, line, "a line of the list is the action without its attempts");
        whole
    }

    pub fn tap(&self, action: &Value, how: &str, more: Value) -> Reply {
        let mut body = json!({"id": self.server.id()});
        for (key, value) in more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        let path = format!("/v1/actions/{}/{how}", text(&action["id"]));
        self.server.post(&self.device.token, &path, &body)
    }

    pub fn approve(&self, action: &Value) -> Reply {
        self.tap(
            action,
            "approve",
            json!({"digest": action["digest"], "template": action["template"]}),
        )
    }
}

pub fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn detail(reply: &Reply) -> String {
    assert_eq!(reply.status, 409, "{reply:?}");
    text(&reply.json()["detail"]).to_owned()
}

const AT: &str = "2026-11-30T08:00:00.000000Z";

#[test]
fn a_card_shows_what_is_released_why_until_when_and_what_else() {
    let (room, action) = Room::asked();
    let request = &action["approvals"][0];
    let mut wanted = json!({
        "id": action["id"], "duty": null, "title": null, "task_version": null, "tool": "hotel.book",
        "effect": "paid", "tier": "r4", "state": "awaiting_approval",
        "words": "Waiting for your decision",
        "what": "hotel.book for HKD 2 600.00 (hotel Harbour, guest Ann)",
        "card": [{"label": "hotel", "value": "Harbour"}, {"label": "guest", "value": "Ann"}],
        "amount": {"minor": 260_000, "currency": "HKD", "text": "HKD 2 600.00"},
        "recipients": [], "digest": action["digest"], "reason": "No grant of yours covers it.",
        "expires_at": "2026-12-01T08:00:00.000000Z",
        "if_nothing": "Nothing is done. The question ends on Tuesday 2026-12-01 09:00.",
        "afterwards": "It is sent 5 s later; until then you can take it back. After that it can be \
                       undone by an action of its own, if at all.",
        "undo_ms": 5_000, "not_before": null, "receipt": null, "authority": null,
        "contradicted": false, "escalated_at": null, "compensates": null, "created_at": AT,
        "moved_at": AT,
        "approvals": [{"id": request["id"], "state": "requested", "of": "user", "by": null,
            "device": null, "device_name": null, "reason": null, "template": "action-2 en",
            "words": "Asked",
            "until_at": "2026-12-01T08:00:00.000000Z", "moved_at": AT}],
        "asked": ["user"], "attempts": [], "seq": action["seq"],
    });
    wanted["template"] = json!("action-2 en");
    wanted["approvals"][0]["shown"] = Value::Null;
    assert_eq!(action, wanted);
    let chat = room.server.get(&room.device.token, "/v1/chat").json();
    let card = chat["entries"].as_array().and_then(|all| all.last()).expect("an entry");
    assert_eq!((&card["kind"], &card["action"]), (&json!("notice"), &action["id"]));

    // Expiry is a comparison with the clock, whatever the stage has written down.
    room.server.clock.advance_ms(86_400_000);
    let over = room.only();
    let shown = ["state", "words", "reason", "if_nothing", "afterwards"].map(|key| &over[key]);
    let words = json!("Its time passed · nothing sent");
    assert_eq!(shown, [&json!("expired"), &words, &Value::Null, &Value::Null, &Value::Null]);
    assert_eq!(
        detail(&room.approve(&action)),
        "The time for this decision has passed. Nothing was done."
    );
}

#[test]
fn exactly_what_was_shown_is_released_sent_once_and_proven() {
    let (room, action) = Room::asked();
    for stale in [&"0".repeat(64), "", "nonsense"] {
        let reply = room.tap(&action, "approve", json!({"digest": stale}));
        assert!(detail(&reply).contains("not what was shown"), "{stale}");
    }
    // Read in Chinese, by what the device says; the request itself stays as it was asked.
    let shown = "action-2 zh".repeat(9);
    let body = json!({"id": room.server.id(), "digest": action["digest"], "template": shown});
    let path = format!("/v1/actions/{}/approve", text(&action["id"]));
    let approve = || room.server.post(&room.device.token, &path, &body);
    let released = approve().json();
    assert_eq!(
        (&released["state"], &released["words"], &released["reason"]),
        (&json!("authorized"), &json!("Released, not sent yet"), &Value::Null)
    );
    let approval = &released["approvals"][0];
    let by = (&approval["state"], &approval["by"], &approval["device"], &approval["device_name"]);
    let phone = json!(room.device.id);
    assert_eq!(by, (&json!("granted"), &json!("user"), &phone, &json!("phone")));
    let kept = format!("{}…", &shown[..64]);
    assert_eq!((&approval["template"], &approval["shown"]), (&json!("action-2 en"), &json!(kept)));
    // A repeat is answered as the first time and releases nothing more.
    assert_eq!(approve().json(), released);
    assert!(detail(&room.approve(&action)).contains("released, not sent yet"));

    room.after_ms(0);
    let held = room.only();
    assert_eq!(held["state"], "admitted");
    assert_eq!(held["not_before"], "2026-11-30T08:00:05.000000Z");
    assert_eq!(held["if_nothing"], "It is sent on Monday 2026-11-30 09:00.");
    room.after_ms(5_000);
    let sent = room.only();
    assert_eq!((&sent["state"], &sent["receipt"]), (&json!("accepted"), &json!("C-1")));
    room.after_ms(2_000);
    let done = room.only();
    let shown = ["state", "words", "authority", "receipt"].map(|key| done[key].clone());
    assert_eq!(
        shown,
        ["effective", "In force · verified", "outside", "C-1"].map(|word| json!(word))
    );
    let at = "2026-11-30T08:00:05.000000Z";
    let attempt = json!([{"n": 1, "operation_id": action["id"], "state": "accepted", "words": "Confirmed", "reason": null,
        "receipt": "C-1", "created_at": at, "moved_at": at}]);
    assert_eq!(done["attempts"], attempt);
    assert_eq!(done["approvals"][0]["state"], "consumed");
    assert_eq!(room.server.world.sent().len(), 1);
    assert_eq!(approve().json()["state"], "authorized", "a late repeat shows what it did");
}

#[test]
fn the_person_refuses_with_a_reason_or_takes_back_what_is_about_to_be_sent() {
    let (room, action) = Room::asked();
    let denied = room.tap(&action, "deny", json!({"reason": " too dear "})).json();
    assert_eq!((&denied["state"], &denied["reason"]), (&json!("denied"), &json!("too dear")));
    assert_eq!(denied["approvals"][0]["reason"], "too dear");
    assert!(detail(&room.approve(&action)).contains("refused by the person"));
    assert!(detail(&room.tap(&action, "withdraw", json!({}))).contains("Nothing is left"));

    let (room, action) = Room::asked();
    assert_eq!(room.approve(&action).status, 200);
    room.after_ms(0);
    let back = room.tap(&action, "withdraw", json!({})).json();
    let words = "Stopped in time · not sent";
    assert_eq!((&back["state"], &back["words"]), (&json!("cancelled"), &json!(words)));
    assert_eq!(back["reason"], "the person took it back");
    room.after_ms(60_000);
    assert_eq!(room.server.world.sent(), []);
    for (how, more) in [("deny", json!({"reason": 1})), ("state", json!({"statement": "maybe"}))] {
        assert_eq!(room.tap(&action, how, more).status, 400);
    }
}

#[test]
fn a_tap_that_comes_too_late_is_told_who_decided_and_gets_the_card_as_it_is() {
    let (room, action) = Room::asked();
    let tablet = room.server.device("tablet");
    let deny = json!({"id": room.server.id()});
    let path = format!("/v1/actions/{}/deny", text(&action["id"]));
    assert_eq!(room.server.post(&tablet.token, &path, &deny).status, 200);
    let late = room.approve(&action);
    let wanted = "This can no longer be decided: it is refused by the person. Decided on tablet, \
                  Monday 2026-11-30 09:00: Refused.";
    assert_eq!(detail(&late), wanted);
    let stale = &late.json()["stale"];
    assert_eq!(stale, &json!({"changes": [], "card": room.only()}));
}

#[test]
fn a_tap_on_a_card_that_a_newer_one_replaced_gets_what_changed_in_both_languages() {
    let (room, first) = Room::asked();
    let known = json!({"total": "2920.00", "currency": "HKD", "hotel": "Peak"});
    room.server.world.tool(
        "hotel.search",
        FakeTool {
            answers: vec!["one room, q-1".into()],
            issues: vec![("quote".into(), "q-1".into())],
            snapshots: BTreeMap::from([("q-1".into(), known)]),
            ..FakeTool::default()
        },
    );
    room.tap(&first, "deny", json!({}));
    room.server.clock.advance_ms(1);
    room.say("book the room");
    room.after_ms(0);
    let english = ["Amount: HKD 2 600.00 becomes HKD 2 920.00", "hotel: Harbour becomes Peak"];
    let chinese = ["金额：由 HKD 2 600.00 改为 HKD 2 920.00", "hotel：由 Harbour 改为 Peak"];
    for (language, changes) in [("en", english), ("zh", chinese)] {
        let set = json!({"id": room.server.id(), "language": language});
        assert_eq!(room.server.post(&room.device.token, "/v1/owner", &set).status, 200);
        let late = room.approve(&first).json();
        assert_eq!(late["stale"]["changes"], json!(changes), "{late}");
        let newest = room.list()["actions"][0]["id"].clone();
        assert_eq!(late["stale"]["card"]["id"], newest);
        let whole = text(&late["detail"]).chars().any(|c| c.is_ascii_lowercase());
        assert!(
            language == "en" || text(&late["detail"]).contains("已有新的卡片代替它。"),
            "{late}"
        );
        assert_eq!(whole, language == "en" || text(&late["detail"]).contains("phone"), "{late}");
    }
    let counted = room.server.get(&room.device.token, "/v1/decisions").json()["classes"][0].clone();
    let counted =
        ["shown", "approved", "edited", "refused", "open"].map(|key| counted[key].clone());
    assert_eq!(counted, [2, 0, 1, 1, 1].map(|count| json!(count)), "refused, and asked otherwise");
    // Nothing was released by any of it.
    assert_eq!(room.list()["actions"][0]["state"], "awaiting_approval");
}

#[test]
fn a_card_of_another_errand_takes_nobodys_place() {
    let (room, first) = Room::asked();
    room.tap(&first, "deny", json!({}));
    room.server.clock.advance_ms(1);
    room.say("and for Bob");
    room.after_ms(0);
    let wanted = "This can no longer be decided: it is refused by the person. Decided on phone, \
                  Monday 2026-11-30 09:00: Refused.";
    let late = room.approve(&first);
    assert_eq!(detail(&late), wanted);
    let stale = &late.json()["stale"];
    assert_eq!((&stale["changes"], &stale["card"]["id"]), (&json!([]), &first["id"]));
    let other = &room.list()["actions"][0];
    assert_eq!(
        (&other["state"], &other["card"][1]["value"]),
        (&json!("awaiting_approval"), &json!("Bob"))
    );
    let counted = room.server.get(&room.device.token, "/v1/decisions").json()["classes"][0].clone();
    assert_eq!([&counted["refused"], &counted["edited"]], [&json!(1), &json!(0)]);
}

#[test]
fn what_a_person_types_is_shown_as_they_typed_it() {
    for own in [
        "wait for my husband to look",
        "I told you three times",
        "run it by my boss",
        "nobody decided in time",
    ] {
        let (room, action) = Room::asked();
        let set = json!({"id": room.server.id(), "language": "zh"});
        assert_eq!(room.server.post(&room.device.token, "/v1/owner", &set).status, 200);
        let denied = room.tap(&action, "deny", json!({"reason": own})).json();
        assert_eq!([&denied["reason"], &denied["approvals"][0]["reason"]], [own, own]);
    }
}

#[test]
fn what_the_server_says_of_an_action_is_in_the_language_that_is_set() {
    let room = Room::honest();
    let set = json!({"id": room.server.id(), "language": "zh"});
    assert_eq!(room.server.post(&room.device.token, "/v1/owner", &set).status, 200);
    room.say("book the room");
    room.after_ms(0);
    let action = room.only();
    let shown = ["words", "what", "reason", "if_nothing", "afterwards"].map(|key| &action[key]);
    let wanted = [
        "等你决定",
        "hotel.book，HKD 2 600.00（hotel Harbour，guest Ann）",
        "没有你的授权覆盖它。",
        "不会执行。这个问题于 2026-12-01 星期二 09:00 到期作废。",
        "5 秒后发出，在此之前可以撤回。发出之后只能用另一项操作撤销，也可能无法撤销。",
    ];
    assert_eq!(shown, wanted.map(|words| json!(words)).each_ref());
    assert_eq!(action["approvals"][0]["template"], "action-2 zh");
    let chat = room.server.get(&room.device.token, "/v1/chat").json();
    let card = chat["entries"].as_array().and_then(|all| all.last()).expect("an entry");
    let asks = "放行这件事吗？hotel.book，HKD 2 600.00（hotel Harbour，guest Ann）。没有你的授权覆盖它。\
                如果你不处理，什么都不会发生。";
    assert_eq!(card["text"], asks);
    let pause = json!({"id": room.server.id()});
    room.server.post(&room.device.token, "/v1/pauses", &pause);
    let wanted = "已暂停，因此没有放行。请先解除暂停，再放行。";
    assert_eq!(detail(&room.approve(&action)), wanted);
}

#[test]
fn a_question_about_a_card_reaches_the_agent_with_it_and_decides_nothing() {
    let (room, action) = Room::asked();
    let ask = |about: Value| {
        let body =
            json!({"id": room.server.id(), "text": "is breakfast included?", "about": about});
        room.server.post(&room.device.token, "/v1/messages", &body)
    };
    assert_eq!(ask(json!({"action": action["id"]})).status, 202);
    let asked = room.server.get(&room.device.token, "/v1/chat").json();
    let entry = asked["entries"].as_array().and_then(|all| all.last()).expect("an entry").clone();
    assert_eq!(entry["about"], json!({"action": action["id"]}));
    // It waits, held like every message, and the card is as it was.
    let now = room.only();
    for key in ["state", "digest", "approvals"] {
        assert_eq!(now[key], action[key], "{key}");
    }
    room.turn(room.server.owner.main_session);
    let answered = room.server.get(&room.device.token, "/v1/chat").json();
    let last = answered["entries"].as_array().and_then(|all| all.last()).expect("an entry");
    assert_eq!(last["text"], "The offer does not say.", "{answered}");
    // Another's, or none.
    for about in [json!({"action": room.server.id()}), json!({"proposal": action["id"]})] {
        assert_eq!(ask(about).status, 404);
    }
    assert_eq!(ask(json!({"duty": action["id"]})).status, 400);
}

#[test]
fn a_question_about_a_card_whose_content_was_erased_is_still_worked_on() {
    let (room, action) = Room::asked();
    let about = json!({"action": action["id"]});
    let body = json!({"id": room.server.id(), "text": "is breakfast included?", "about": about});
    assert_eq!(room.server.post(&room.device.token, "/v1/messages", &body).status, 202);
    let id = text(&action["id"]).parse().expect("an id");
    room.server.write(move |_, tx| {
        let content = store::action::get(tx, id)?.content;
        store::event::erase_body(tx, content)
    });
    room.turn(room.server.owner.main_session);
    let chat = room.server.get(&room.device.token, "/v1/chat").json();
    let question = chat["entries"].as_array().and_then(|all| all.last()).expect("an entry");
    assert_eq!((&question["kind"], &question["state"]), (&json!("user"), &json!("handled")));
}

#[test]
fn decisions_are_counted_by_tool() {
    let (room, action) = Room::asked();
    let log = || room.server.get(&room.device.token, "/v1/decisions").json();
    let line = |open: i64, approved: i64, median: Value| {
        json!({"classes": [{"tool": "hotel.book", "shown": 1, "approved": approved, "edited": 0,
            "refused": 0, "expired": 0, "open": open, "median_seconds": median}]})
    };
    assert_eq!(log(), line(1, 0, Value::Null));
    room.server.clock.advance_ms(7_000);
    assert_eq!(room.approve(&action).status, 200);
    assert_eq!(log(), line(0, 1, json!(7)));
}

#[test]
fn a_pause_is_told_by_the_tap_that_it_stops() {
    let (room, action) = Room::asked();
    let pause = json!({"id": room.server.id()});
    assert_eq!(room.server.post(&room.device.token, "/v1/pauses", &pause).status, 200);
    let wanted = "It is paused, so nothing was released. Lift the pause, then release it again.";
    assert_eq!(detail(&room.approve(&action)), wanted);
    assert_eq!(room.only()["state"], "awaiting_approval");
}

#[test]
fn what_nobody_can_find_out_is_said_by_the_person() {
    let ends = [("happened", "accepted"), ("did_not", "blocked"), ("keep_looking", "unknown")];
    for (statement, state) in ends {
        let room = Room::with(Observation::Lost("no answer".into()), &[]);
        room.say("book the room");
        room.after_ms(0);
        let action = room.only();
        room.approve(&action);
        room.after_ms(0);
        room.after_ms(5_000);
        room.after_ms(2_000);
        let asked = room.only();
        assert_eq!((&asked["state"], asked["escalated_at"].is_string()), (&json!("unknown"), true));
        let nothing = "It is looked up again and again. It is not sent again.";
        assert_eq!(asked["if_nothing"], nothing);
        let said = room.tap(&action, "state", json!({"statement": statement})).json();
        assert_eq!(said["state"], state);
        if state != "unknown" {
            assert_eq!((&said["authority"], &said["if_nothing"]), (&json!("user"), &Value::Null));
            let again = room.tap(&action, "state", json!({"statement": "happened"}));
            assert!(detail(&again).starts_with("This is settled already"));
        }
        assert_eq!(room.server.world.sent().len(), 1);
    }
}

#[test]
fn a_grant_is_shown_before_it_is_given_and_with_what_is_used_of_it() {
    let room = Room::honest();
    room.say("keep a room");
    let open = room.server.get(&room.device.token, "/v1/proposals?state=open").json();
    let card = &open["proposals"][0];
    let grant = "hotel.book, at most 3 times, HKD 3 000.00 each, HKD 8 200.00 in all";
    let reach = "At most HKD 8 200.00, hotel.book 3 times, wake-ups without end, until you end it";
    assert_eq!((&card["grants"], &card["reach"]), (&json!([grant]), &json!(reach)));
    let path = format!("/v1/proposals/{}/confirm", text(&card["id"]));
    let body = json!({"id": room.server.id(), "digest": card["digest"]});
    let confirmed = room.server.post(&room.device.token, &path, &body).json();
    assert_eq!((&confirmed["grants"], &confirmed["reach"]), (&json!([grant]), &json!(reach)));

    let duty = || room.server.get(&room.device.token, "/v1/duties").json()["duties"][0].clone();
    let part = |count: i64, minor: i64, text: &str| {
        let amount = json!({"minor": minor, "currency": "HKD", "text": text});
        json!({"count": count, "amount": amount})
    };
    let money = |minor: i64, text: &str| part(0, minor, text)["amount"].clone();
    let given = duty()["grants"][0].clone();
    let wanted = json!({
        "id": given["id"], "tool": "hotel.book", "words": grant, "state": "active",
        "task_version": given["task_version"], "times": 3,
        "each": money(300_000, "HKD 3 000.00"), "total": money(820_000, "HKD 8 200.00"),
        "recipients": [], "until_at": null, "reserved": part(0, 0, "HKD 0.00"),
        "spent": part(0, 0, "HKD 0.00"), "left": part(3, 820_000, "HKD 8 200.00"),
    });
    assert_eq!(given, wanted);

    // Its first slot books inside the grant, released by the policy once the reviewer has looked.
    room.server.clock.advance_ms(24 * 3_600_000);
    let cx = &room.server.cx;
    let found = room.server.runtime.block_on(async {
        engine::timer::pass(cx).await.expect("a timer");
        engine::router::pass(cx).await.expect("a router");
        let owner = room.server.owner.id;
        cx.store.read(move |tx| store::duty::all(tx, owner, 1)).await.expect("a duty")
    });
    room.turn(found[0].session);
    room.after_ms(0);
    let used = |at: &str| duty()["grants"][0][at].clone();
    assert_eq!(used("reserved"), part(1, 260_000, "HKD 2 600.00"));
    room.after_ms(5_000);
    let spent = [used("reserved"), used("spent"), used("left")];
    let left = part(2, 560_000, "HKD 5 600.00");
    assert_eq!(spent, [part(0, 0, "HKD 0.00"), part(1, 260_000, "HKD 2 600.00"), left]);
    let action = room.only();
    assert_eq!((&action["tier"], &action["title"]), (&json!("r3"), &json!("A room")));
    let approval = &action["approvals"][0];
    let released = (&approval["by"], &approval["template"], &approval["reason"]);
    let policy = json!("policy-1: inside a grant");
    let why = json!("reviewer scripted: As delegated");
    assert_eq!(released, (&json!("policy"), &policy, &why));
}

#[test]
fn the_list_is_bounded_and_for_paired_devices_only() {
    let (room, action) = Room::asked();
    let path = format!("/v1/actions/{}", text(&action["id"]));
    assert_eq!(room.server.get("wrong", &path).status, 401);
    for limit in ["0", "501", "x"] {
        let path = format!("/v1/actions?limit={limit}");
        assert_eq!(room.server.get(&room.device.token, &path).status, 400, "{limit}");
    }
    assert_eq!(room.server.get(&room.device.token, "/v1/actions?limit=1").status, 200);
}
