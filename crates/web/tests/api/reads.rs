//! Pages of the conversation and of the changes, and what every answer carries.

use serde_json::{Value, json};

use crate::client::Ask;
use crate::server::{Paired, Server};

fn say(server: &Server, device: &Paired, count: usize) {
    for n in 0..count {
        let body = json!({"id": server.id(), "text": format!("message {n}")});
        assert_eq!(server.post(&device.token, "/v1/messages", &body).status, 202);
    }
}

fn texts(page: &Value) -> Vec<String> {
    let entries = page["entries"].as_array().expect("entries");
    entries.iter().map(|e| e["text"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn the_conversation_is_read_forwards_backwards_and_never_twice() {
    let server = Server::start();
    let device = server.device("phone");
    say(&server, &device, 3);
    // Three entries of one transaction share a number.
    server.notices(3);
    say(&server, &device, 3);
    let get = |query: &str| server.get(&device.token, &format!("/v1/chat{query}")).json();
    let all = texts(&get(""));
    assert_eq!(all.len(), 9);
    let seq_of = |page: &Value, at: usize| page["entries"][at]["seq"].as_i64().expect("a number");
    for limit in 1..=10 {
        let (mut forwards, mut after) = (Vec::new(), 0);
        loop {
            let page = get(&format!("?after={after}&limit={limit}"));
            let some = texts(&page);
            after = some.len().checked_sub(1).map_or(after, |last| seq_of(&page, last));
            forwards.extend(some);
            if page["more"] == false {
                break;
            }
        }
        assert_eq!(forwards, all, "forwards by {limit}");
        let mut page = get(&format!("?limit={limit}"));
        let mut backwards = texts(&page);
        while page["more"] == true {
            page = get(&format!("?before={}&limit={limit}", seq_of(&page, 0)));
            backwards.splice(0..0, texts(&page));
        }
        assert_eq!(backwards, all, "backwards by {limit}");
    }
    let bad = [
        "?after=1&before=2",
        "?limit=0",
        "?limit=501",
        "?limit=x",
        "?after=-1",
        "?page=2",
        "?after=99999999999999999999",
        "?after=1&after=2",
    ];
    for query in bad {
        assert_eq!(server.get(&device.token, &format!("/v1/chat{query}")).status, 400, "{query}");
    }
    assert_eq!(texts(&get("?after=9223372036854775807")), Vec::<String>::new());
}

#[test]
fn an_entry_is_the_same_alone_and_in_the_list() {
    let server = Server::start();
    let device = server.device("phone");
    let body = json!({"id": server.id(), "text": "你好 <b>&\u{0}\n"});
    let sent = server.post(&device.token, "/v1/messages", &body).json();
    let id = sent["event"].as_str().expect("an id");
    let entry = server.get(&device.token, &format!("/v1/chat/{id}")).json();
    let wanted = json!({"seq": sent["seq"], "kind": "user", "id": id, "text": body["text"],
        "at": "2026-11-30T08:00:00.000000Z", "state": "received", "duty": null, "proposal": null,
        "action": null, "about": null, "late": false});
    assert_eq!(entry, wanted);
    let page = server.get(&device.token, "/v1/chat").json();
    assert_eq!(page, json!({"entries": [wanted], "seq": sent["seq"], "more": false}));
}

#[test]
fn changes_come_whole_in_order_and_a_client_ahead_of_the_record_sees_it() {
    let server = Server::start();
    let device = server.device("phone");
    server.notices(4);
    say(&server, &device, 2);
    let get = |query: &str| server.get(&device.token, &format!("/v1/changes{query}")).json();
    let all = get("");
    let head = server.get(&device.token, "/v1/me").json()["seq"].clone();
    assert_eq!((&all["seq"], &all["more"]), (&head, &json!(false)));
    let list = |page: &Value| page["changes"].as_array().expect("changes").clone();
    for limit in 1..=7 {
        let (mut read, mut after, mut more) = (Vec::new(), json!(0), true);
        while more {
            let page = get(&format!("?after={after}&limit={limit}"));
            let some = list(&page);
            let shared = some.iter().all(|change| change["seq"] == some[0]["seq"]);
            assert!(some.len() <= limit || shared, "{page}");
            read.extend(some);
            (after, more) = (page["seq"].clone(), page["more"] == true);
        }
        assert_eq!((&json!(read), &after), (&all["changes"], &head), "by {limit}");
    }
    let notices = list(&all).iter().filter(|c| c["noun"] == "message").count();
    assert_eq!(notices, 4);
    // The client's number is from another store: the answer's is smaller than what was asked.
    assert_eq!(get("?after=1000"), json!({"changes": [], "seq": head, "more": false}));
}

#[test]
fn every_answer_says_that_it_is_kept_nowhere_and_is_what_it_says() {
    let server = Server::start();
    let device = server.device("phone");
    for path in ["/v1/me", "/v1/chat", "/health", "/openapi.json", "/nothing", "/v1/demo", "/"] {
        let reply = server.ask(&Ask::get(path).token(&device.token));
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(reply.header("access-control-allow-origin"), None, "{path}");
        let policy = reply.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'"), "{path}");
        assert_eq!(policy.contains("script-src 'self'"), path == "/", "{path}");
    }
    let health = server.ask(&Ask::get("/health")).json();
    let wanted = json!({"ok": true, "version": env!("CARGO_PKG_VERSION"), "engine": "sqlite",
        "seq": 1, "now": "2026-11-30T08:00:00.000000Z"});
    assert_eq!(health, wanted);
}
