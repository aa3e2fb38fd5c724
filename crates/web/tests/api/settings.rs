//! What the owner sets for themselves: name, zone and the month's cap.

use serde_json::{Value, json};

use crate::client::{Ask, Reply};
use crate::server::{Paired, Server};
use crate::writes::duty;

fn set(server: &Server, device: &Paired, mut wish: Value) -> Reply {
    wish["id"] = json!(server.id());
    server.post(&device.token, "/v1/owner", &wish)
}

fn me(server: &Server, device: &Paired) -> (Value, Value, Value) {
    let me = server.get(&device.token, "/v1/me").json();
    (me["name"].clone(), me["zone"].clone(), me["month"]["cap_micro_usd"].clone())
}

#[test]
fn each_setting_is_set_alone_and_shown() {
    let server = Server::start();
    let device = server.device("phone");
    let (name, zone, cap) = me(&server, &device);
    assert_eq!(set(&server, &device, json!({"name": "Mei "})).status, 200);
    assert_eq!(me(&server, &device), (json!("Mei"), zone.clone(), cap.clone()));
    assert_eq!(set(&server, &device, json!({"month_cap_micro_usd": 30_000_000})).status, 200);
    assert_eq!(me(&server, &device), (json!("Mei"), zone, json!(30_000_000)));
    let all = json!({"name": name, "zone": "Asia/Hong_Kong", "month_cap_micro_usd": 0});
    let reply = set(&server, &device, all);
    let seq = server.get(&device.token, "/v1/me").json()["seq"].clone();
    assert_eq!((reply.status, reply.json()), (200, json!({"seq": seq})));
    assert_eq!(me(&server, &device), (name, json!("Asia/Hong_Kong"), json!(0)));
}

#[test]
fn what_is_no_setting_is_refused_with_the_remedy_and_changes_nothing() {
    let server = Server::start();
    let device = server.device("phone");
    let before = me(&server, &device);
    for (wish, remedy) in [
        (json!({}), "name, zone, month_cap_micro_usd, dial or language"),
        (json!({"name": null}), "name, zone, month_cap_micro_usd, dial or language"),
        (json!({"name": "  "}), "Give the owner a name"),
        (json!({"name": "two\nlines"}), "Give the owner a name"),
        (json!({"zone": "Mars/Crater"}), "write it as Asia/Hong_Kong"),
        (json!({"month_cap_micro_usd": -1}), "0 or more"),
        (json!({"month_cap_micro_usd": 0.5}), "integer"),
        (json!({"cap_usd": 30}), "`cap_usd`"),
        (json!({"language": "fr"}), "`fr`"),
        (json!({"name": "Mei", "zone": ""}), "write it as Asia/Hong_Kong"),
    ] {
        let reply = set(&server, &device, wish.clone());
        assert_eq!(reply.status, 400, "{wish}");
        assert!(reply.detail().contains(remedy) || remedy == "integer", "{wish}: {reply:?}");
    }
    assert_eq!(me(&server, &device), before);
}

#[test]
fn another_zone_moves_the_next_wake_up_of_a_duty() {
    let server = Server::start();
    let device = server.device("phone");
    let id = duty(&server, &device);
    let next =
        || server.get(&device.token, &format!("/v1/duties/{id}")).json()["next_wake"].clone();
    assert_eq!(next(), "2026-11-30T08:30:00.000000Z");
    assert_eq!(set(&server, &device, json!({"zone": "America/New_York"})).status, 200);
    assert_eq!(next(), "2026-11-30T14:30:00.000000Z");
}

#[test]
fn the_first_paired_browser_says_the_language_and_later_only_the_person() {
    let server = Server::start();
    let device = server.device("phone");
    let language = || server.get(&device.token, "/v1/me").json()["language"].clone();
    assert_eq!(language(), "en");
    let pair = |accepted: &str| {
        let code = server.post(&device.token, "/v1/codes", &json!({})).json()["code"].clone();
        let ask = Ask::post("/v1/pair", &json!({"code": code, "name": "laptop"}));
        server.ask(&ask.header("accept-language", accepted)).status
    };
    assert_eq!((pair("zh-CN,zh;q=0.9"), language()), (201, json!("zh")));
    assert_eq!((pair("en-GB"), language()), (201, json!("zh")));
    assert_eq!(set(&server, &device, json!({"language": "en"})).status, 200);
    assert_eq!((pair("zh-CN"), language()), (201, json!("en")));
}

#[test]
fn a_problem_is_in_the_language_that_the_page_asks_for() {
    let server = Server::start();
    let device = server.device("phone");
    let path = format!("/v1/duties/{}", server.id());
    let ask = Ask::get(path).header("authorization", format!("Bearer {}", device.token));
    let reply = server.ask(&ask.header("accept-language", "zh"));
    let wanted = "没有这样的记录（duty）。请重新读取列表，可能已有变化。";
    assert_eq!((reply.status, reply.detail()), (404, wanted.to_owned()));
}
