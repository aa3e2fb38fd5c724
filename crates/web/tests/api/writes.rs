//! Writes that are safe to repeat, and what is refused before it is one.

use base::ProposalId;
use serde_json::{Value, json};

use crate::client::{Ask, Reply, send};
use crate::server::{Paired, Server};

/// A write, what it was sent to, and the same id with other content.
struct Write {
    name: &'static str,
    path: String,
    body: Value,
    other: (String, Value),
    first: u16,
}

fn digest(server: &Server, device: &Paired, proposal: ProposalId) -> Value {
    server.get(&device.token, &format!("/v1/proposals/{proposal}")).json()["digest"].clone()
}

fn duties(server: &Server, device: &Paired) -> Vec<String> {
    let all = server.get(&device.token, "/v1/duties").json();
    let id = |duty: &Value| duty["id"].as_str().expect("an id").to_owned();
    all["duties"].as_array().expect("duties").iter().map(id).collect()
}

/// Confirms a new duty and gives its id.
pub fn duty(server: &Server, device: &Paired) -> String {
    let before = duties(server, device);
    let proposal = server.new_duty();
    let body = json!({"id": server.id(), "digest": digest(server, device, proposal)});
    let path = format!("/v1/proposals/{proposal}/confirm");
    assert_eq!(server.post(&device.token, &path, &body).status, 200);
    let new = duties(server, device).into_iter().find(|id| !before.contains(id));
    new.expect("a new duty")
}

fn every_write(server: &Server, device: &Paired) -> Vec<Write> {
    let id = || server.id();
    let notices = server.notices(2);
    let (one, two) = (duty(server, device), duty(server, device));
    let (yes, no, open) = (server.new_duty(), server.new_duty(), server.new_duty());
    let shown = digest(server, device, yes);
    let (m, r, s, g, c, d) = (id(), id(), id(), id(), id(), id());
    let (o, v) = (id(), id());
    let (lost, old) = (server.device("lost phone"), server.device("old phone"));
    let write = |name, path: String, body: Value, other: (String, Value), first| Write {
        name,
        path,
        body,
        other,
        first,
    };
    let confirm = |p: ProposalId| format!("/v1/proposals/{p}/confirm");
    let decline = |p: ProposalId| format!("/v1/proposals/{p}/decline");
    let turn = |duty: &str, to: &str| format!("/v1/duties/{duty}/{to}");
    let messages = || "/v1/messages".to_owned();
    let receipts = || "/v1/receipts".to_owned();
    vec![
        write(
            "message",
            messages(),
            json!({"id": m, "text": "hello"}),
            (messages(), json!({"id": m, "text": "hello!"})),
            202,
        ),
        write(
            "receipts",
            receipts(),
            json!({"id": r, "messages": [notices[0]]}),
            (receipts(), json!({"id": r, "messages": [notices[1]]})),
            200,
        ),
        write(
            "stop",
            turn(&one, "stop"),
            json!({"id": s}),
            (turn(&two, "stop"), json!({"id": s})),
            200,
        ),
        write(
            "resume",
            turn(&one, "resume"),
            json!({"id": g}),
            (turn(&one, "stop"), json!({"id": g})),
            200,
        ),
        write(
            "confirm",
            confirm(yes),
            json!({"id": c, "digest": shown}),
            (confirm(yes), json!({"id": c, "digest": "0".repeat(64)})),
            200,
        ),
        write("decline", decline(no), json!({"id": d}), (decline(open), json!({"id": d})), 200),
        write(
            "owner",
            "/v1/owner".to_owned(),
            json!({"id": o, "name": "Mei"}),
            ("/v1/owner".to_owned(), json!({"id": o, "zone": "Asia/Hong_Kong"})),
            200,
        ),
        write(
            "revoke",
            format!("/v1/devices/{}/revoke", lost.id),
            json!({"id": v}),
            (format!("/v1/devices/{}/revoke", old.id), json!({"id": v})),
            200,
        ),
    ]
}

#[test]
fn every_write_is_done_once_per_id_and_answers_the_same_again() {
    let server = Server::start();
    let device = server.device("phone");
    let writes = every_write(&server, &device);
    let seq = || server.get(&device.token, "/v1/me").json()["seq"].clone();
    let mut answers = Vec::new();
    for write in &writes {
        let first = server.post(&device.token, &write.path, &write.body);
        assert_eq!(first.status, write.first, "{}: {first:?}", write.name);
        let before = seq();
        let again = server.post(&device.token, &write.path, &write.body);
        assert_eq!((again.status, again.json()), (200, first.json()), "{}", write.name);
        let (path, body) = &write.other;
        let other = server.post(&device.token, path, body);
        assert_eq!(other.status, 409, "{}: {other:?}", write.name);
        assert_eq!(seq(), before, "{}: a repeat changed something", write.name);
        answers.push(first.json());
    }
    // Also after everything else has moved on.
    for (write, answer) in writes.iter().zip(&answers) {
        let again = server.post(&device.token, &write.path, &write.body);
        // A duty that was stopped goes on since: its repeat may not say that it stands.
        let duty = write.path.strip_suffix("/stop").or(write.path.strip_suffix("/resume"));
        let now = duty.map(|duty| server.get(&device.token, duty).json());
        assert_eq!(
            (again.status, &again.json()),
            (200, now.as_ref().unwrap_or(answer)),
            "{}",
            write.name
        );
    }
    // An id is unique per device: another device's is another write.
    let tablet = server.device("tablet");
    assert_eq!(server.post(&tablet.token, &writes[0].path, &writes[0].body).status, 202);
    // And one id is one request, whatever the operation.
    let crossed = json!({"id": writes[0].body["id"], "messages": [server.id()]});
    assert_eq!(server.post(&device.token, "/v1/receipts", &crossed).status, 409);
}

#[test]
fn a_refused_write_is_decided_again() {
    let server = Server::start();
    let device = server.device("phone");
    let proposal = server.new_duty();
    let path = format!("/v1/proposals/{proposal}/confirm");
    let id = server.id();
    let stale = json!({"id": id, "digest": "0".repeat(64)});
    assert_eq!(server.post(&device.token, &path, &stale).status, 409);
    let right = json!({"id": id, "digest": digest(&server, &device, proposal)});
    assert_eq!(server.post(&device.token, &path, &right).status, 200);
}

#[test]
fn eight_equal_messages_at_once_are_one() {
    let server = Server::start();
    let device = server.device("phone");
    let say = json!({"id": server.id(), "text": "hello"});
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let send = || server.post(&device.token, "/v1/messages", &say);
        let all: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
        all.into_iter().map(|one| one.join().expect("an answer")).collect()
    });
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 202]);
    assert!(replies.iter().all(|reply| reply.json() == replies[0].json()));
    assert_eq!(server.number_of_events(), 1);
    let chat = server.get(&device.token, "/v1/chat").json();
    assert_eq!(chat["entries"].as_array().map(Vec::len), Some(1));
}

#[test]
fn words_of_a_kept_answer_can_be_erased() {
    let server = Server::start();
    let device = server.device("phone");
    let proposal = server.new_duty();
    let path = format!("/v1/proposals/{proposal}/decline");
    let body = json!({"id": server.id()});
    let first = server.post(&device.token, &path, &body).json();
    assert_eq!(first["title"], "Price watch");
    server.write(move |_, tx| {
        let owner = tx.owner();
        let content = store::proposal::get(tx, owner, proposal)?.content;
        store::event::erase_body(tx, content)
    });
    let again = server.post(&device.token, &path, &body).json();
    let mut wanted = first;
    wanted["title"] = json!("(erased)");
    wanted["goal"] = json!("(erased)");
    wanted["conditions"] = json!([]);
    wanted["schedules"][0]["prompt"] = json!("(erased)");
    assert_eq!(again, wanted);
}

#[test]
fn receipts_make_messages_delivered_and_ignore_what_is_not_there() {
    let server = Server::start();
    let device = server.device("phone");
    let notices = server.notices(2);
    let state = |n: usize| {
        let path = format!("/v1/chat/{}", notices[n]);
        server.get(&device.token, &path).json()["state"].clone()
    };
    assert_eq!(state(0), "sending");
    let body = json!({"id": server.id(), "messages": [notices[0], server.id()]});
    assert_eq!(server.post(&device.token, "/v1/receipts", &body).status, 200);
    assert_eq!((state(0), state(1)), (json!("delivered"), json!("sending")));
    for count in [0, 201] {
        let ids: Vec<String> = (0..count).map(|_| server.id()).collect();
        let body = json!({"id": server.id(), "messages": ids});
        assert_eq!(server.post(&device.token, "/v1/receipts", &body).status, 400);
    }
}

#[test]
fn what_is_too_large_or_no_request_is_refused_by_name() {
    let server = Server::start();
    let device = server.device("phone");
    let limits = server.cx.limits.clone();
    let say = |text: String| json!({"id": server.id(), "text": text});
    let post = |body: &Value| server.post(&device.token, "/v1/messages", body);
    assert_eq!(post(&say("é".repeat(limits.message_bytes / 2))).status, 202);
    assert_eq!(post(&say("é".repeat(limits.message_bytes / 2 + 1))).status, 400);
    assert_eq!(post(&say(String::new())).status, 400);
    for times in [1, 3, 6] {
        let reply = post(&say("x".repeat(limits.request_bytes * times)));
        assert_eq!(reply.status, 413, "{times}");
    }
    let raw = |body: &str| {
        server.ask(&Ask::post("/v1/messages", &json!({})).token(&device.token).raw(body))
    };
    let id = server.id();
    for (case, body, wanted) in [
        ("nothing", String::new(), "EOF"),
        ("half", "{\"id\":".into(), "EOF"),
        ("an array", "[]".into(), ""),
        ("no text", format!("{{\"id\":\"{id}\"}}"), "`text`"),
        ("no id", "{\"text\":\"x\"}".into(), "`id`"),
        ("unknown key", format!("{{\"id\":\"{id}\",\"text\":\"x\",\"urgent\":1}}"), "`urgent`"),
        ("twice", format!("{{\"id\":\"{id}\",\"text\":\"x\",\"text\":\"y\"}}"), "`text`"),
        ("no uuid", "{\"id\":\"1\",\"text\":\"x\"}".into(), "UUID"),
        ("after the end", format!("{{\"id\":\"{id}\",\"text\":\"x\"}}x"), "trailing"),
        ("deep", "[".repeat(100_000), ""),
    ] {
        let reply = raw(&body);
        assert_eq!(reply.status, 400, "{case}");
        assert!(reply.detail().contains(wanted), "{case}: {}", reply.detail());
    }
    let not_utf8 =
        Ask::post("/v1/messages", &json!({})).token(&device.token).raw(b"{\"id\":\"\xff\"}");
    assert_eq!(server.ask(&not_utf8).status, 400);
    let form = Ask::post("/v1/messages", &say("x".into())).token(&device.token);
    assert_eq!(server.ask(&form.header("content-type", "text/plain")).status, 400);
    assert_eq!(server.number_of_events(), 1);
}

#[test]
fn a_body_that_breaks_off_and_a_connection_without_a_request_do_no_harm() {
    use std::io::Write as _;
    let server = Server::start();
    let device = server.device("phone");
    for start in ["", "GET", "GET / HTTP/1.1\r\n", "\u{0}\u{1}\u{2}\r\n\r\n"] {
        let mut stream = std::net::TcpStream::connect(server.address).expect("a connection");
        stream.write_all(start.as_bytes()).expect("some bytes");
    }
    let mut stream = std::net::TcpStream::connect(server.address).expect("a connection");
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{\"id\":",
        server.address, device.token
    );
    stream.write_all(head.as_bytes()).expect("half a request");
    drop(stream);
    assert_eq!(send(server.address, &Ask::get("/health")).status, 200);
    assert_eq!(server.number_of_events(), 0);
}

#[test]
fn a_body_without_an_end_is_not_read_to_its_end() {
    use std::io::Write as _;
    let server = Server::start();
    let device = server.device("phone");
    let mut stream = std::net::TcpStream::connect(server.address).expect("a connection");
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 1000000000\r\n\r\n",
        server.address, device.token
    );
    stream.write_all(head.as_bytes()).expect("a head");
    // Far more than the limit and what both ends of the connection buffer.
    let piece = vec![b' '; server.cx.limits.request_bytes];
    let refused = (0..250).any(|_| stream.write_all(&piece).is_err());
    assert!(refused, "64 MB were read");
}
