//! Sources: added with a secret that no answer holds, listed by their health, tried, and removed.

use engine::world::{Found, Look};
use serde_json::{Value, json};
use web::secrets::Secrets as _;

use crate::client::{Ask, Half, Reply};
use crate::hooks::{SECRET, add, listed, signed, standard};
use crate::server::{Paired, Server, id_of};

const NEW_SECRET: &str = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";

fn feed() -> Value {
    json!({"kind": "feed", "url": "https://news.example/feed"})
}

fn send(server: &Server, device: &Paired, body: &Value) -> Reply {
    server.post(&device.token, "/v1/sources", body)
}

fn remove(server: &Server, device: &Paired, source: &str, id: &str) -> Reply {
    let ask = Ask::get(format!("/v1/sources/{source}?id={id}"));
    server.ask(&Ask { method: "DELETE", ..ask }.token(&device.token))
}

#[test]
fn a_source_is_added_once_and_its_secret_is_nowhere_but_in_its_place() {
    let server = Server::start();
    let device = server.device("phone");
    let body = json!({"id": server.id(), "name": "shop", "config": standard(), "secret": SECRET,
        "expect_ms": 3_600_000});
    let added = send(&server, &device, &body);
    assert_eq!(added.status, 201);
    let id = added.json()["id"].as_str().expect("an id").to_owned();
    let address = format!("http://{}/v1/hooks/{id}", server.address);
    assert_eq!(added.json()["address"], json!(address));
    let again = send(&server, &device, &body);
    assert_eq!((again.status, again.json()), (200, added.json()));
    let config = json!({"kind": "webhook", "scheme": "standard", "key": "data.order.id",
        "topic": null, "recheck": null});
    let wanted = json!({
        "id": id, "name": "shop", "kind": "webhook", "config": config, "address": address,
        "secret": "kept", "every_ms": null, "expect_ms": 3_600_000, "received_at": null,
        "silent": false, "refused": 0, "refused_at": null, "looked_at": null, "next_look_at": null,
        "failures": 0, "last_event": null, "duties": [],
        "created_at": "2026-11-30T08:00:00.000000Z",
    });
    let list = server.get(&device.token, "/v1/sources").json();
    assert_eq!(list["sources"], json!([wanted]));
    server.clock.advance_ms(3_600_000);
    assert_eq!(listed(&server, &device)["silent"], true);
    let kept = server.secrets.read(id_of(&json!(id)), server.clock_now()).expect("a secret");
    assert_eq!(kept.iter().map(|kept| kept.expose()).collect::<Vec<_>>(), [SECRET]);
    for text in [added.text, again.text, list.to_string(), crate::log::text()] {
        assert!(!text.contains("MDEyMzQ1"), "the secret is in {text}");
    }
    // Another secret under the same id is another request; so is another name.
    for (field, value) in [("secret", NEW_SECRET), ("name", "store")] {
        let mut other = body.clone();
        other[field] = json!(value);
        assert_eq!(send(&server, &device, &other).status, 409, "{field}");
    }
    assert_eq!(server.get(&device.token, "/v1/sources").json()["sources"], {
        let mut same = wanted;
        same["silent"] = json!(true);
        json!([same])
    });
}

#[test]
fn what_is_no_source_is_refused_with_the_remedy_and_leaves_no_secret() {
    let server = Server::start();
    let device = server.device("phone");
    add(&server, &device, "shop", standard());
    let hook = |secret: Value| json!({"config": standard(), "secret": secret});
    let long = |mut config: Value, field: &str, bytes: usize| {
        let text = if field == "key" || field == "topic" { "" } else { "https://a.example/" };
        config[field] = json!(format!("{text:a<bytes$}"));
        match config["kind"] == "webhook" {
            true => json!({"config": config, "secret": SECRET}),
            false => json!({"config": config}),
        }
    };
    for (part, status, remedy) in [
        (json!({"config": standard()}), 400, "needs its secret"),
        (hook(json!("whsec_AAAA")), 400, "at least 16 bytes"),
        (hook(json!("")), 400, "needs its secret"),
        (json!({"config": feed(), "secret": SECRET}), 400, "Only a webhook"),
        (json!({"config": {"kind": "feed", "url": "file:///etc/passwd"}}), 400, "https://"),
        (json!({"config": {"kind": "url", "url": "https://a b"}}), 400, "https://"),
        (json!({"config": {"kind": "folder", "path": "inbox"}}), 400, "whole path"),
        (json!({"config": {"kind": "mail"}}), 400, "not as this address takes it"),
        (json!({"config": feed(), "every_ms": 9_999}), 400, "10 s"),
        (json!({"config": feed(), "every_ms": 366 * 86_400_000_u64 + 1}), 400, "366 days"),
        (json!({"config": feed(), "every_ms": u64::MAX}), 400, "366 days"),
        (json!({"config": feed(), "expect_ms": 0}), 400, "10 s"),
        (json!({"config": feed(), "expect_ms": u64::MAX}), 400, "366 days"),
        (json!({"config": feed(), "name": "two words"}), 400, "letters, digits"),
        (hook(json!(format!("whsec_{}", "A".repeat(508)))), 400, "512 bytes"),
        (json!({"config": {"kind": "url", "url": "https://me:word@a.example/"}}), 400, "password"),
        (json!({"config": {"kind": "url", "url": "https:///path"}}), 400, "http://host/path"),
        (json!({"config": {"kind": "feed", "url": "https://"}}), 400, "http://host/path"),
        (
            json!({"config": {"kind": "url", "url": "https://a.example\\b"}}),
            400,
            "http://host/path",
        ),
        (long(json!({"kind": "url", "url": ""}), "url", 4_097), 400, "4096 bytes"),
        (long(standard(), "recheck", 4_097), 400, "4096 bytes"),
        (long(standard(), "key", 201), 400, "config.key"),
        (long(standard(), "topic", 201), 400, "config.topic"),
        (long(standard(), "key", 0), 400, "config.key"),
        (json!({"config": feed(), "name": "shop"}), 409, "already"),
        (json!({"config": standard(), "secret": SECRET, "name": "shop"}), 409, "already"),
        (json!({"config": standard(), "secret": SECRET, "every_ms": 60_000}), 400, "recheck"),
    ] {
        let mut body = json!({"id": server.id(), "name": "news"});
        body.as_object_mut().expect("fields").extend(part.as_object().cloned().unwrap_or_default());
        let reply = send(&server, &device, &body);
        assert_eq!(reply.status, status, "{part}: {reply:?}");
        assert!(reply.detail().contains(remedy), "{part}: {reply:?}");
    }
    let list = server.get(&device.token, "/v1/sources").json();
    assert_eq!(list["sources"].as_array().map(Vec::len), Some(1));
    assert_eq!(server.secrets.count(), 1, "only the secret of the source that was added");
}

#[test]
fn no_folder_is_watched_that_is_not_there_or_holds_the_servers_own_data() {
    let server = Server::start();
    let device = server.device("phone");
    let mine = testkit::stores::TempFolder::new();
    let data = server.folder.path();
    let (inner, link, file) =
        (data.join("secrets"), mine.path().join("link"), mine.path().join("file"));
    std::fs::create_dir_all(&inner).expect("a folder");
    std::os::unix::fs::symlink(data, &link).expect("a link");
    std::fs::write(&file, "text").expect("a file");
    let add = |name: &str, path: &std::path::Path| {
        let config = json!({"kind": "folder", "path": path});
        send(&server, &device, &json!({"id": server.id(), "name": name, "config": config}))
    };
    let round = mine.path().join("..").join(data.file_name().expect("a name"));
    let above = data.parent().expect("a folder");
    for path in [data, &inner, &link, &link.join("secrets"), &round, above, "/".as_ref()] {
        let reply = add("data", path);
        assert_eq!(reply.status, 400, "{path:?}: {reply:?}");
        assert!(reply.detail().contains("own data"), "{path:?}: {reply:?}");
    }
    for (path, remedy) in [(mine.path().join("none"), "make the folder"), (file, "no folder")] {
        let reply = add("gone", &path);
        assert_eq!(reply.status, 400, "{path:?}: {reply:?}");
        assert!(reply.detail().contains(remedy), "{path:?}: {reply:?}");
    }
    let body = json!({"id": server.id(), "name": "inbox",
        "config": {"kind": "folder", "path": mine.path()}});
    let added = send(&server, &device, &body);
    assert_eq!(added.status, 201);
    let again = send(&server, &device, &body);
    assert_eq!((again.status, again.json()), (200, added.json()));
    let twice = add("again", &mine.path().join("."));
    assert_eq!(twice.status, 409);
    assert!(twice.detail().contains("inbox watches this folder already"), "{twice:?}");
}

#[test]
fn a_polled_source_is_looked_at_and_tried_without_a_trace() {
    let server = Server::start();
    let device = server.device("phone");
    let id = add(&server, &device, "news", feed());
    let seen = listed(&server, &device);
    assert_eq!(
        [&seen["every_ms"], &seen["next_look_at"], &seen["address"], &seen["secret"]],
        [&json!(300_000), &json!("2026-11-30T08:00:00.000000Z"), &Value::Null, &Value::Null]
    );
    let found = Found {
        external_id: "e-1".into(),
        key: None,
        topic: Some("entry".into()),
        content: b"Hello".to_vec(),
        media: "text/plain".into(),
        links: vec!["https://news.example/1".into()],
    };
    let config = r#"{"kind":"feed","url":"https://news.example/feed"}"#;
    let look = Look { items: vec![found], cursor: "c".into(), more: true };
    server.world.found(config, Ok(look));
    server.world.found(config, Err("the server answers 404; correct the address".into()));
    let test = || server.post(&device.token, &format!("/v1/sources/{id}/test"), &json!({}));
    let wanted = json!({"ok": true, "status": null, "more": true, "problem": null, "found": [
        {"external_id": "e-1", "key": null, "topic": "entry", "media": "text/plain", "bytes": 5,
            "links": ["https://news.example/1"]}]});
    assert_eq!((test().json(), server.number_of_events()), (wanted, 0));
    let problem = "The server answers 404; correct the address.";
    let wanted =
        json!({"ok": false, "status": null, "found": [], "more": false, "problem": problem});
    assert_eq!(test().json(), wanted);
    assert_eq!(listed(&server, &device), seen, "a try leaves no trace");
}

#[test]
fn a_webhook_is_tried_through_its_own_way_in_and_wakes_nobody() {
    let server = Server::start();
    let device = server.device("phone");
    for (name, scheme) in [("shop", "standard"), ("repo", "github")] {
        let config = json!({"kind": "webhook", "scheme": scheme});
        let id = add(&server, &device, name, config);
        let path = format!("/v1/sources/{id}/test");
        let tried = server.post(&device.token, &path, &json!({})).json();
        let wanted =
            json!({"ok": true, "status": 202, "found": [], "more": false, "problem": null});
        assert_eq!(tried, wanted, "{scheme}");
        server.secrets.remove(id_of(&json!(id))).expect("removed");
        let tried = server.post(&device.token, &path, &json!({})).json();
        assert_eq!(tried["ok"], false);
        assert!(tried["problem"].as_str().expect("why").contains("rotate"), "{tried}");
    }
    assert_eq!(server.number_of_events(), 0);
    assert_eq!(listed(&server, &device)["received_at"], Value::Null);
    let reply =
        server.post(&device.token, &format!("/v1/sources/{}/test", server.id()), &json!({}));
    assert_eq!(reply.status, 404);
}

#[test]
fn after_a_change_both_secrets_are_good_for_a_day() {
    let server = Server::start();
    let device = server.device("phone");
    let id = add(&server, &device, "shop", standard());
    let path = format!("/v1/sources/{id}/rotate");
    let body = json!({"id": server.id(), "secret": NEW_SECRET});
    let rotated = server.post(&device.token, &path, &body);
    assert_eq!(rotated.status, 200);
    assert_eq!(rotated.json()["former_until"], "2026-12-01T08:00:00.000000Z");
    let again = server.post(&device.token, &path, &body);
    assert_eq!((again.status, again.json()), (200, rotated.json()));
    let other = json!({"id": body["id"], "secret": "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"});
    assert_eq!(server.post(&device.token, &path, &other).status, 409);
    let deliver = |n: u32, secret: &str| {
        let text = format!(r#"{{"n":{n}}}"#);
        let ask = signed(&id, secret, &format!("msg_{n}"), server.clock_now(), &text);
        server.ask(&ask).status
    };
    assert_eq!([deliver(1, SECRET), deliver(2, NEW_SECRET)], [202, 202]);
    server.clock.advance_ms(24 * 3_600_000);
    assert_eq!([deliver(3, SECRET), deliver(4, NEW_SECRET)], [401, 202]);
    let short = json!({"id": server.id(), "secret": "short"});
    assert_eq!(server.post(&device.token, &path, &short).status, 400);
    let news = add(&server, &device, "news", feed());
    let path = format!("/v1/sources/{news}/rotate");
    assert_eq!(server.post(&device.token, &path, &body).status, 400);
}

const OTHER_SECRET: &str = "whsec_MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=";

#[test]
fn no_change_of_a_secret_ends_one_that_the_sender_may_still_use() {
    let server = Server::start();
    let device = server.device("phone");
    let id = add(&server, &device, "shop", standard());
    let path = format!("/v1/sources/{id}/rotate");
    let rotate = |write: &str, secret: &str| {
        server.post(&device.token, &path, &json!({"id": write, "secret": secret}))
    };
    let deliver = |name: &str, secret: &str| {
        let ask = signed(&id, secret, name, server.clock_now(), &format!(r#"{{"n":"{name}"}}"#));
        server.ask(&ask).status
    };
    let first = server.id();
    assert_eq!(rotate(&first, NEW_SECRET).status, 200);
    server.clock.advance_ms(3_600_000);
    assert_eq!(rotate(&server.id(), OTHER_SECRET).status, 200);
    let all = [SECRET, NEW_SECRET, OTHER_SECRET];
    assert_eq!(all.map(|secret| deliver(&secret[6..12], secret)), [202, 202, 202]);
    // A late repeat of the first change does not undo the second.
    assert_eq!(rotate(&first, NEW_SECRET).status, 200);
    let newest = server.secrets.read(id_of(&json!(id)), server.clock_now()).expect("secrets");
    assert_eq!(newest[0].expose(), OTHER_SECRET);
    // Nor does the second secret come back under another id.
    let back = rotate(&server.id(), NEW_SECRET);
    assert_eq!(back.status, 409);
    assert!(back.detail().contains("newer secret"), "{back:?}");
    let fourth = "whsec_MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI=";
    assert_eq!(rotate(&server.id(), fourth).status, 200);
    let fifth = "whsec_MzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM=";
    let full = rotate(&server.id(), fifth);
    assert_eq!(full.status, 409);
    assert!(full.detail().contains("2026-12-01T08:00:00"), "{full:?}");
    server.clock.advance_ms(23 * 3_600_000);
    assert_eq!(rotate(&server.id(), fifth).status, 200);
    assert_eq!(
        [deliver("x", SECRET), deliver("y", NEW_SECRET), deliver("z", fifth)],
        [401, 202, 202]
    );
}

#[test]
fn a_secret_that_could_not_be_kept_leaves_no_answer_behind() {
    let server = Server::start();
    let device = server.device("phone");
    let id = add(&server, &device, "shop", standard());
    let path = format!("/v1/sources/{id}/rotate");
    let body = json!({"id": server.id(), "secret": NEW_SECRET});
    server.secrets.fill(true);
    let failed = server.post(&device.token, &path, &body);
    assert_eq!((failed.status, &failed.json()["written"]), (503, &json!("nothing")));
    server.secrets.fill(false);
    // The same request again does what the first could not.
    assert_eq!(server.post(&device.token, &path, &body).status, 200);
    let ask = signed(&id, NEW_SECRET, "msg_1", server.clock_now(), "{}");
    assert_eq!(server.ask(&ask).status, 202);
    // What the records refuse leaves no secret either.
    let used = server.id();
    let say = json!({"id": used, "text": "hello"});
    assert_eq!(server.post(&device.token, "/v1/messages", &say).status, 202);
    let other = json!({"id": used, "secret": OTHER_SECRET});
    assert_eq!(server.post(&device.token, &path, &other).status, 409);
    let kept = server.secrets.read(id_of(&json!(id)), server.clock_now()).expect("secrets");
    assert_eq!(kept.iter().map(|kept| kept.expose()).collect::<Vec<_>>(), [NEW_SECRET, SECRET]);
}

#[test]
fn a_secret_whose_change_the_records_refuse_is_forgotten_again() {
    let server = Server::start();
    let (phone, lost) = (server.device("phone"), server.device("lost"));
    let id = add(&server, &phone, "shop", standard());
    let body = json!({"id": server.id(), "secret": NEW_SECRET}).to_string();
    // The token is let in before the body is asked for, and is none any more when it is written.
    let ask = Ask::post(format!("/v1/sources/{id}/rotate"), &json!({}))
        .token(&lost.token)
        .header("expect", "100-continue")
        .header("content-length", body.len().to_string());
    let mut half = Half::open(server.address, &ask);
    server.revoke(lost.id);
    assert_eq!(half.finish(body.as_bytes()).status, 401);
    let at = server.clock_now().plus_ms(25 * 3_600_000);
    let kept = server.secrets.read(id_of(&json!(id)), at).expect("secrets");
    assert_eq!(kept.iter().map(|kept| kept.expose()).collect::<Vec<_>>(), [SECRET]);
}

#[test]
fn a_removed_source_is_gone_with_its_secret_and_its_events_stay() {
    let server = Server::start();
    let device = server.device("phone");
    let id = add(&server, &device, "shop", standard());
    let ask = signed(&id, SECRET, "msg_1", server.clock_now(), "{}");
    assert_eq!(server.ask(&ask).status, 202);
    let write = server.id();
    let removed = remove(&server, &device, &id, &write);
    assert_eq!((removed.status, &removed.json()["id"]), (200, &json!(id)));
    let again = remove(&server, &device, &id, &write);
    assert_eq!((again.status, again.json()), (200, removed.json()));
    assert_eq!(server.ask(&ask).status, 404);
    assert_eq!(server.get(&device.token, "/v1/sources").json()["sources"], json!([]));
    assert_eq!((server.secrets.count(), server.number_of_events()), (0, 1));
    for (source, id, status) in [
        (server.id(), server.id(), 404),
        (server.owner.timer_source.to_string(), server.id(), 404),
        (id.clone(), "nonsense".into(), 400),
    ] {
        assert_eq!(remove(&server, &device, &source, &id).status, status, "{source} {id}");
    }
    // The name is free again.
    add(&server, &device, "shop", standard());
}
