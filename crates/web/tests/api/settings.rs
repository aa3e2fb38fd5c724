//! What the owner sets for themselves: name, zone and the month's cap.

use serde_json::{Value, json};

use crate::client::Reply;
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
        (json!({}), "name, zone, month_cap_micro_usd or dial"),
        (json!({"name": null}), "name, zone, month_cap_micro_usd or dial"),
        (json!({"name": "  "}), "Give the owner a name"),
        (json!({"name": "two\nlines"}), "Give the owner a name"),
        (json!({"zone": "Mars/Crater"}), "write it as Asia/Hong_Kong"),
        (json!({"month_cap_micro_usd": -1}), "0 or more"),
        (json!({"month_cap_micro_usd": 0.5}), "integer"),
        (json!({"cap_usd": 30}), "`cap_usd`"),
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
