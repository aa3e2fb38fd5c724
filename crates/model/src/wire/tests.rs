//! The wires against answers made by hand: what is sent, what comes back, and what breaks.

mod messages;
mod responses;

use std::io::{Read as _, Write as _};
use std::thread::JoinHandle;
use std::time::Duration;

use base::Secret;
use serde_json::{Value, json};

use super::sse::Events;
use super::{Wire, WireModel, WireSettings};
use crate::vendor::{Origin, Piece};
use crate::{Answer, Block, ChatModel as _, Finish, Message, ModelError, Request, ToolCall};

const WIRES: [Wire; 3] = [Wire::Chat, Wire::Messages, Wire::Responses];
const TOOLS: &str = r#"[{"type":"function","function":{"name":"price","description":"Looks.","parameters":{"type":"object","properties":{}}}}]"#;

fn settings(wire: Wire, model: &str) -> WireSettings {
    WireSettings { wire, ..WireSettings::local("http://127.0.0.1:1/v1", model, 10_000) }
}

fn request(blocks: Vec<Block>) -> Request {
    Request { blocks, tools: Block::from_stored(TOOLS.to_owned()), max_output_tokens: 500 }
}

fn system() -> Block {
    Message::System("Be \"brief\".".to_owned()).to_block()
}

fn user() -> Block {
    Message::User("价格?".to_owned()).to_block()
}

fn result(call_id: &str, text: &str) -> Block {
    Message::Tool { call_id: call_id.to_owned(), text: text.to_owned() }.to_block()
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn body(settings: &WireSettings, request: &Request) -> String {
    String::from_utf8(settings.body(request).unwrap().0).unwrap()
}

fn event(data: Value) -> String {
    let kind = data["type"].as_str().unwrap();
    format!("event: {kind}\ndata: {data}\n\n")
}

/// What a stream that ends after these bytes comes to.
fn read(settings: &WireSettings, stream: &[u8]) -> Result<Answer, ModelError> {
    let request = request(vec![user()]);
    let (_, mut assembly) = settings.body(&request).unwrap();
    let mut events = Events::default();
    events.push(stream);
    while let Some(data) = events.next() {
        assembly.take(&data)?;
    }
    events.last().map_or(Ok(()), |data| assembly.take(&data))?;
    assembly.finish(&request, settings.origin())
}

/// Wherever a stream ends: before the JSON of its last event that matters is whole it is to be asked for
/// again, and never is it anything but the answer.
#[track_caller]
fn check_every_cut(settings: &WireSettings, stream: &str, enough: &str, expected: &Answer) {
    let enough = stream.find(enough).unwrap() + enough.len();
    let enough = enough + stream[enough..].find('\n').unwrap();
    for cut in 0..=stream.len() {
        match read(settings, &stream.as_bytes()[..cut]) {
            Ok(answer) => assert!(cut >= enough && answer == *expected, "{cut}: {answer:?}"),
            Err(error) => assert_eq!(error.class(), "retry", "{cut}: {error}"),
        }
    }
    assert_eq!(read(settings, &stream.as_bytes()[..enough]).as_ref(), Ok(expected));
}

/// Serves one answer and gives the request that it answers.
fn serve(answer: String) -> (String, JoinHandle<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4_096]);
        loop {
            let count = stream.read(&mut buffer).unwrap();
            bytes.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
                let length = head.split("content-length: ").nth(1).unwrap();
                body.len() >= length.lines().next().unwrap().parse().unwrap()
            });
            assert!(whole || count > 0, "the client hung up inside its request");
            if whole {
                stream.write_all(answer.as_bytes()).unwrap();
                return text;
            }
        }
    });
    (format!("http://{address}/v1/"), thread)
}

/// Asks over HTTP; the answer and the request as it arrived.
async fn ask(
    settings: WireSettings,
    request: &Request,
    answer: String,
) -> (Result<Answer, ModelError>, String) {
    let (base_url, thread) = serve(answer);
    let key = Some(Secret::new("sk-1").unwrap());
    let client = crate::http_client(Duration::from_secs(5)).unwrap();
    let model = WireModel::new(client, WireSettings { base_url, key, ..settings });
    let answer = model.ask(request, &|_| {}).await;
    (answer, thread.join().unwrap())
}

fn http(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n{body}")
}

/// Every kind of block that a conversation holds.
fn kinds() -> Vec<Block> {
    let thought = |wire, text: &str| {
        let item = serde_json::value::to_raw_value(&json!({"type": "thinking"})).unwrap();
        let pieces = vec![
            Piece::Item(item),
            Piece::text(text.to_owned()),
            Piece::Call(call("a.1", "price", "{}")),
        ];
        Answer::of_pieces(pieces, Origin { wire, model: "m" }, Finish::ToolCalls).block
    };
    let said = Message::Assistant { text: Some("ok".to_owned()), tool_calls: vec![] };
    let silent = Message::Assistant { text: None, tool_calls: vec![] };
    vec![
        system(),
        user(),
        result("a.1", ""),
        said.to_block(),
        silent.to_block(),
        thought(Wire::Messages, "x"),
        thought(Wire::Responses, "y"),
        thought(Wire::Chat, "z"),
    ]
}

/// The bytes of a body before those that end it.
fn start(body: &str) -> &str {
    let list = body.strip_suffix("]}").unwrap();
    let newest = list.strip_suffix("}]}").unwrap_or(list);
    newest.strip_suffix(r#","cache_control":{"type":"ephemeral"}"#).unwrap_or(newest)
}

fn check_start(blocks: &[Block], next: &Block) {
    let longer: Vec<Block> = blocks.iter().chain([next]).cloned().collect();
    for wire in WIRES {
        let settings = settings(wire, "m");
        let short = body(&settings, &request(blocks.to_vec()));
        let long = body(&settings, &request(longer.clone()));
        assert!(long.starts_with(start(&short)), "{wire:?}\n{short}\n{long}");
        let parsed: Value = serde_json::from_str(&long).unwrap();
        assert!(!long.contains("vendor") && long.matches("cache_control").count() <= 2, "{long}");
        let messages = parsed[if wire == Wire::Responses { "input" } else { "messages" }].clone();
        let messages = messages.as_array().unwrap().clone();
        if wire == Wire::Messages {
            let role = |message: &Value| message["role"].as_str().unwrap().to_owned();
            assert!(messages.windows(2).all(|two| role(&two[0]) != role(&two[1])), "{long}");
            let full = |message: &Value| !message["content"].as_array().unwrap().is_empty();
            assert!(messages.iter().all(full), "{long}");
        }
    }
}

#[test]
fn a_longer_conversation_starts_with_the_bytes_of_the_shorter_one_on_every_wire() {
    let kinds = kinds();
    for a in &kinds {
        for b in &kinds {
            check_start(std::slice::from_ref(a), b);
            for c in &kinds {
                check_start(&[a.clone(), b.clone()], c);
                kinds.iter().for_each(|d| check_start(&[a.clone(), b.clone(), c.clone()], d));
            }
        }
    }
}

#[test]
fn what_only_its_vendor_can_read_goes_to_nobody_else() {
    let item = |own: &Block, wire, model| {
        let blocks = vec![system(), user(), own.clone(), result("a.1", "1")];
        body(&settings(wire, model), &request(blocks)).contains(r#""type":"thinking"}"#)
    };
    let kinds = kinds();
    let [messages, responses, chat] = &kinds[5..] else { panic!("three of them think") };
    for wire in WIRES {
        assert_eq!(item(messages, wire, "m"), wire == Wire::Messages);
        assert_eq!(item(responses, wire, "m"), wire == Wire::Responses);
        assert_eq!(item(chat, wire, "m"), wire == Wire::Chat);
        assert!([messages, responses, chat].iter().all(|own| !item(own, wire, "other")));
    }
    // To others it is the very message that it would be without.
    let plain =
        Message::Assistant { text: Some("x".into()), tool_calls: vec![call("a.1", "price", "{}")] };
    assert_eq!(messages.plain(), &*plain.to_block().bytes);
    assert_eq!(messages.message(), Ok(plain));
}

#[tokio::test]
async fn each_wire_has_its_address_and_its_way_to_name_the_key() {
    let asked = request(vec![user()]);
    let busy = || {
        http(
            "529 \r\nretry-after: 7",
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded sk-1"}}"#,
        )
    };
    let after = Some(Duration::from_secs(7));
    let reason = "the server answered 529: Overloaded (key)".to_owned();
    for (wire, path, key) in [
        (Wire::Chat, "/v1/chat/completions", "authorization: Bearer sk-1"),
        (Wire::Responses, "/v1/responses", "authorization: Bearer sk-1"),
        (Wire::Messages, "/v1/messages", "x-api-key: sk-1"),
    ] {
        let settings = settings(wire, "m");
        let sent = body(&settings, &asked);
        let (answer, request) = ask(settings, &asked, busy()).await;
        assert_eq!(answer, Err(ModelError::Retry { after, reason: reason.clone() }));
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{head}");
        assert!(head.contains(key) && body == sent, "{head}");
        assert_eq!(head.contains("anthropic-version: 2023-06-01"), wire == Wire::Messages);
    }
}
