//! Who is let in: tokens, the server's own names, other sites' pages, pairing codes.

use serde_json::json;

use crate::client::{Ask, Half, send};
use crate::log;
use crate::server::Server;

#[test]
fn only_a_devices_token_opens_and_every_refusal_looks_the_same() {
    let server = Server::start();
    let (device, gone) = (server.device("phone"), server.device("lost phone"));
    assert_eq!(server.get(&gone.token, "/v1/me").status, 200);
    server.revoke(gone.id);
    assert_eq!(server.get(&device.token, "/v1/me").status, 200);
    let me = || Ask::get("/v1/me");
    let (wrong, upper) = ("0".repeat(64), device.token.to_uppercase());
    let refused = [
        ("no token", me()),
        ("wrong token", me().token(&wrong)),
        ("revoked", me().token(&gone.token)),
        ("other letters", me().token(&upper)),
        ("a part of it", me().token(&device.token[..63])),
        ("another scheme", me().header("authorization", format!("Basic {}", device.token))),
        ("no scheme", me().header("authorization", device.token.clone())),
        ("far too long", me().token(&"0".repeat(5_000))),
        ("in the address", Ask::get(format!("/v1/me?token={}", device.token))),
        ("a cookie", me().header("cookie", format!("token={}", device.token))),
    ];
    let first = server.ask(&me());
    assert_eq!((first.status, first.header("www-authenticate")), (401, Some("Bearer")));
    for (case, ask) in refused {
        let reply = server.ask(&ask);
        assert_eq!((reply.status, &reply.text), (401, &first.text), "{case}");
    }
    // The body of a stranger is not even looked at.
    let stranger = Ask::post("/v1/messages", &json!({})).raw("{");
    assert_eq!(server.ask(&stranger).status, 401);
}

#[test]
fn a_device_revoked_between_its_request_and_its_write_writes_nothing() {
    let server = Server::start();
    let say = json!({"id": server.id(), "text": "hello"}).to_string();
    for (path, body) in [("/v1/messages", say.as_str()), ("/v1/codes", "{}")] {
        let device = server.device("phone");
        // The server asks for the body only after it has let the token in.
        let mut half = Half::open(
            server.address,
            &Ask::post(path, &json!({}))
                .token(&device.token)
                .header("expect", "100-continue")
                .header("content-length", body.len().to_string()),
        );
        server.revoke(device.id);
        let reply = half.finish(body.as_bytes());
        assert_eq!(reply.status, 401, "{path}: {reply:?}");
    }
    assert_eq!(server.number_of_events(), 0);
}

#[test]
fn only_the_servers_own_names_are_answered() {
    let server = Server::start();
    let device = server.device("phone");
    let port = server.address.port();
    let with = |host: String| Ask::get("/v1/me").token(&device.token).header("host", host);
    for own in ["127.0.0.1", "localhost", "LocalHost", "[::1]"] {
        assert_eq!(server.ask(&with(format!("{own}:{port}"))).status, 200, "{own}");
    }
    let foreign = [
        // A name of the attacker's that points here (DNS rebinding), with the right port and without.
        format!("rebind.attacker.example:{port}"),
        "rebind.attacker.example".to_owned(),
        format!("127.0.0.1.attacker.example:{port}"),
        format!("localhost.attacker.example:{port}"),
        format!("attacker@127.0.0.1:{port}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{}", port.wrapping_add(1)),
        format!("127.0.0.2:{port}"),
        format!("0.0.0.0:{port}"),
        format!("[::]:{port}"),
        format!(":{port}"),
        "127.0.0.1:".to_owned(),
    ];
    for host in foreign {
        for path in ["/v1/me", "/health", "/", "/openapi.json", "/nothing"] {
            let ask = Ask::get(path).token(&device.token).header("host", host.clone());
            assert_eq!(server.ask(&ask).status, 403, "{host} {path}");
        }
    }
    // An empty value sends no header at all.
    assert_eq!(send(server.address, &with(String::new())).status, 403);
}

#[test]
fn pages_of_other_sites_are_refused() {
    let server = Server::start();
    let device = server.device("phone");
    let port = server.address.port();
    let from = |origin: String| {
        let say = json!({"id": server.id(), "text": "hello"});
        Ask::post("/v1/messages", &say).token(&device.token).header("origin", origin)
    };
    assert_eq!(server.ask(&from(format!("http://127.0.0.1:{port}"))).status, 202);
    assert_eq!(server.ask(&from(format!("http://localhost:{port}"))).status, 202);
    for origin in [
        "https://attacker.example".to_owned(),
        "null".to_owned(),
        format!("http://attacker.example:{port}"),
        format!("https://127.0.0.1:{port}"),
        "http://127.0.0.1:1".to_owned(),
        format!("http://127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}.attacker.example"),
    ] {
        assert_eq!(server.ask(&from(origin.clone())).status, 403, "{origin}");
        let preflight = Ask { method: "OPTIONS", ..from(origin.clone()) };
        let reply = send(server.address, &preflight);
        assert_eq!(reply.status, 403, "{origin}");
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
    assert_eq!(server.number_of_events(), 2);
}

#[test]
fn a_code_pairs_one_device_once() {
    let server = Server::start();
    let code = server.code();
    let pair =
        |code: &str| server.ask(&Ask::post("/v1/pair", &json!({"code": code, "name": "Pixel"})));
    assert_eq!(pair("AAAA-AAAA").status, 403);
    let paired = pair(&code);
    assert_eq!(paired.status, 201);
    let token = paired.json()["token"].as_str().expect("a token").to_owned();
    let me = server.get(&token, "/v1/me").json();
    assert_eq!(me["device"], paired.json()["device"]);
    assert_eq!((&me["owner"], me["name"].as_str()), (&paired.json()["owner"], Some("Ada")));
    // Used, wrong and old look the same.
    let used = pair(&code);
    assert_eq!((used.status, &used.text), (403, &pair("AAAA-AAAA").text));
    let old = server.code();
    server.clock.advance_ms(engine::setup::CODE_LASTS_MS);
    assert_eq!(pair(&old).text, used.text);
    // A newer code takes the place of the older one.
    let (older, newer) = (server.code(), server.code());
    assert_eq!(pair(&older).status, 403);
    assert_eq!(pair(&newer).status, 201);
}

#[test]
fn eight_devices_with_one_code_are_one() {
    let server = Server::start();
    let code = server.code();
    let pair =
        || server.ask(&Ask::post("/v1/pair", &json!({"code": code, "name": "Pixel"}))).status;
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(pair)).collect();
        all.into_iter().map(|one| one.join().expect("an answer")).collect()
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 403, 403, 403, 403, 403, 403, 403]);
}

#[test]
fn codes_cannot_be_tried_without_end() {
    let server = Server::start();
    let code = server.code();
    let pair =
        |code: &str| server.ask(&Ask::post("/v1/pair", &json!({"code": code, "name": "Pixel"})));
    let wrong: Vec<u16> = (0..12).map(|_| pair("AAAA-AAAA").status).collect();
    assert_eq!(wrong, [[403; 10].as_slice(), &[429, 429]].concat());
    let refused = pair(&code);
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("60")));
    server.clock.advance_ms(60_000);
    assert_eq!(pair(&code).status, 201);
}

#[test]
fn pairing_refuses_what_is_no_request() {
    let server = Server::start();
    let code = server.code();
    let pair = |body: serde_json::Value| server.ask(&Ask::post("/v1/pair", &body));
    for name in ["", "   ", "two\nlines", "nul\u{0}", &"n".repeat(101)] {
        assert_eq!(pair(json!({"code": code, "name": name})).status, 400, "{name:?}");
    }
    let unknown = pair(json!({"code": code, "name": "Pixel", "owner": "x"}));
    assert!(unknown.detail().contains("`owner`"), "{unknown:?}");
    assert_eq!(pair(json!({"code": code, "name": "Pixel"})).status, 201);
}

#[test]
fn tokens_and_codes_are_in_no_answer_but_pairings_and_in_no_log() {
    let server = Server::start();
    let (code, unused) = (server.code(), "QQQQ-WWWW");
    let ask = |body| server.ask(&Ask::post("/v1/pair", &body));
    let token =
        ask(json!({"code": code, "name": "Pixel"})).json()["token"].as_str().map(String::from);
    let token = token.expect("a token");
    let (duty, card) = (server.id(), server.new_duty());
    let yes = json!({"id": server.id(), "digest": "0".repeat(64)});
    let mut asks = vec![
        Ask::post(format!("/v1/proposals/{card}/confirm"), &yes),
        Ask::post(format!("/v1/proposals/{card}/decline"), &json!({"id": server.id()})),
        Ask::post("/v1/pair", &json!({"code": code, "name": "Pixel"})),
        Ask::post("/v1/pair", &json!({"code": unused, "name": "Pixel"})),
        Ask::get(format!("/v1/me?token={token}")),
        Ask::get(format!("/{token}")),
        Ask::get("/v1/me").header("authorization", format!("Basic {token}")),
        Ask::post("/v1/messages", &json!({"id": server.id(), "text": "hello"})),
        Ask::post(format!("/v1/duties/{duty}/stop"), &json!({"id": server.id()})),
        Ask::post("/v1/receipts", &json!({"id": server.id(), "messages": [duty]})),
    ];
    let reads = ["me", "chat", "changes", "devices", "duties", "proposals", "demo", "nothing"];
    asks.extend(reads.map(|path| Ask::get(format!("/v1/{path}"))));
    asks.extend(["/", "/health", "/openapi.json"].map(Ask::get));
    for ask in asks {
        let ask = if ask.path.contains("pair")
            || ask.headers.iter().any(|(n, _)| *n == "authorization")
        {
            ask
        } else {
            ask.token(&token)
        };
        let reply = server.ask(&ask);
        for secret in [&token, &code, unused] {
            assert!(
                !reply.text.contains(secret) && !reply.head.contains(secret),
                "{ask:?}: {reply:?}"
            );
        }
    }
    let log = log::text();
    assert!(
        log.contains("path=\"/v1/pair\"") && log.contains("status=403"),
        "nothing is logged: {log}"
    );
    for secret in [&token, &code, unused] {
        assert!(!log.contains(secret), "a secret is in the log");
    }
}
