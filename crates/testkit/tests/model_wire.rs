//! The model client over real HTTP: against the scripted server, and against servers made by hand.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use base::{Digest, Secret, SystemClock};
use model::{
    Answer, Block, ChatModel as _, Finish, Message, ModelError, Prices, Request, Script,
    ScriptedModel, Timeouts, ToolCall, Usage, WireModel, WireSettings,
};
use serde_json::{Value, json};
use testkit::model_server::{Asked, Config, Fault, serve};

const SCRIPT: &str = r#"
name = "wire"
[[rule]]
user = 'parallel'
say = "看一下价格，再告诉你结果 🙂。"
call = [
  { tool = "feed.price", arguments = { date = "2027-03-01", note = "价格与日期都要写清楚，不要遗漏" } },
  { tool = "read_records", arguments = { what = "duties" } },
  { tool = "finish_quietly" },
]
[[rule]]
user = 'fail (retry|x)'
error = "retry"
[[rule]]
user = 'fail context'
error = "context"
[[rule]]
user = 'fail authentication'
error = "authentication"
[[rule]]
user = 'fail quota'
error = "quota"
[[rule]]
user = 'fail refused'
error = "refused"
[[rule]]
user = 'fail malformed'
error = "malformed"
"#;

fn request(text: &str) -> Request {
    let blocks = vec![
        Message::System("Be brief.".to_owned()).to_block(),
        Message::User(text.to_owned()).to_block(),
    ];
    let tools = r#"[{"type":"function","function":{"name":"feed.price"}}]"#;
    Request { blocks, tools: Block::from_stored(tools.to_owned()), max_output_tokens: 500 }
}

/// What the script answers without any HTTP in between.
fn expected(text: &str) -> Answer {
    let model = ScriptedModel::new(Script::parse(SCRIPT).unwrap(), Prices::default());
    model.answer(&request(text)).unwrap()
}

fn config() -> Config {
    Config::new(Script::parse(SCRIPT).unwrap(), Arc::new(SystemClock))
}

/// Starts a scripted server for the length of the test's runtime and gives its address.
async fn start(config: Config) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, config));
    format!("http://{address}")
}

fn client() -> reqwest::Client {
    model::http_client(Duration::from_secs(5)).unwrap()
}

fn settings(server: &str) -> WireSettings {
    WireSettings::local(&format!("{server}/v1/"), "asked", 10_000)
}

fn chat(settings: WireSettings) -> WireModel {
    WireModel::new(client(), settings)
}

async fn ask(chat: &WireModel, text: &str) -> Result<Answer, ModelError> {
    chat.ask(&request(text), &|_| {}).await
}

#[tokio::test]
async fn an_answer_comes_through_http_unchanged() {
    let server = start(config()).await;
    let chat = chat(settings(&server));
    let heard = Mutex::new(Vec::new());
    let asked = request("parallel");
    let answer = chat.ask(&asked, &|bytes| heard.lock().unwrap().push(bytes)).await;
    assert_eq!(answer, Ok(expected("parallel")));
    let heard = heard.into_inner().unwrap();
    assert!(heard.is_sorted() && heard.last() > Some(&1_000), "{heard:?}");
    // The same question again: the same answer, now from the server's prefix cache.
    let mut cached = expected("parallel");
    cached.usage.cached_tokens = cached.usage.input_tokens;
    assert_eq!(ask(&chat, "parallel").await, Ok(cached));
    assert_eq!(ask(&chat, "nothing").await.unwrap().finish, Finish::Stop);
}

#[tokio::test]
async fn ordered_failures_arrive_in_their_class() {
    let server = start(config()).await;
    let mut settings = settings(&server);
    settings.timeouts.first = Duration::from_millis(300);
    let chat = chat(settings);
    let two_seconds = Some(Duration::from_secs(2));
    let table = [
        (json!({"status": 429, "retry_after": 2}), "retry", two_seconds),
        (json!({"status": 503}), "retry", None),
        (json!({"status": 401}), "authentication", None),
        (json!({"status": 402}), "quota", None),
        (json!({"status": 413}), "context", None),
        (json!({"status": 404}), "malformed", None),
        (json!({"status": 307}), "malformed", None),
        (json!({"cut_after_bytes": 0}), "retry", None),
        (json!({"cut_after_bytes": 40}), "retry", None),
        (json!({"cut_after_bytes": 1_200}), "retry", None),
        (json!({"delay_ms": 60_000}), "retry", None),
    ];
    let order: Vec<&Value> = table.iter().map(|(fault, ..)| fault).collect();
    let posted = client().post(format!("{server}/faults")).json(&json!({ "next": order })).send();
    let posted: Value = posted.await.unwrap().json().await.unwrap();
    assert_eq!(posted, json!({"waiting": table.len()}));
    for (fault, class, wait) in &table {
        let error = ask(&chat, "parallel").await.unwrap_err();
        assert_eq!(error.class(), *class, "{fault}: {error}");
        if let ModelError::Retry { after, .. } = error {
            assert_eq!(after, *wait, "{fault}");
        }
    }
    assert!(ask(&chat, "parallel").await.is_ok());
    let wrong = client().post(format!("{server}/faults")).body(r#"{"next":[{"stat":1}]}"#).send();
    assert_eq!(wrong.await.unwrap().status(), 400);
}

#[tokio::test]
async fn the_server_answers_whole_to_whom_asks_for_that_and_cuts_the_connection_itself() {
    let server = start(config()).await;
    let blocks = request("parallel").blocks;
    let messages = blocks.iter().map(|block| serde_json::from_str(&block.bytes).unwrap());
    let body = json!({"model": "m", "messages": messages.collect::<Vec<Value>>()});
    let post = || client().post(format!("{server}/v1/chat/completions")).json(&body).send();
    let whole: Value = post().await.unwrap().json().await.unwrap();
    let calls = whole["choices"][0]["message"]["tool_calls"].as_array().unwrap();
    let arguments = calls.iter().map(|call| call["function"]["arguments"].as_str().unwrap());
    let expected = expected("parallel");
    let wanted = expected.tool_calls.iter().map(|call| call.arguments.as_str());
    assert_eq!(arguments.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    assert_eq!(whole["choices"][0]["message"]["content"].as_str(), expected.text.as_deref());

    let order = json!({"next": [{"cut_after_bytes": 40}]});
    client().post(format!("{server}/faults")).json(&order).send().await.unwrap();
    // A break is no end: whoever only reads bytes sees it too.
    let cut = match post().await {
        Ok(response) => response.bytes().await,
        Err(error) => Err(error),
    };
    assert!(cut.is_err(), "{cut:?}");
}

#[tokio::test]
async fn refusals_of_the_script_keep_their_class_over_http() {
    let chat = chat(settings(&start(config()).await));
    for class in ["retry", "context", "authentication", "quota", "refused", "malformed"] {
        assert_eq!(ask(&chat, &format!("fail {class}")).await.unwrap_err().class(), class);
    }
}

#[tokio::test]
async fn only_the_right_key_and_a_body_of_bounded_size_are_let_in() {
    let key = |text: &str| Some(Secret::new(text).unwrap());
    let server = start(Config { key: key("sk-1"), body_bytes_max: 1_000, ..config() }).await;
    let with_key = |key| chat(WireSettings { key, ..settings(&server) });
    assert!(ask(&with_key(key("sk-1")), "hello").await.is_ok());
    assert_eq!(ask(&with_key(key("sk-2")), "hello").await, Err(ModelError::Authentication));
    assert_eq!(ask(&with_key(None), "hello").await, Err(ModelError::Authentication));
    let long = "x".repeat(1_000);
    assert_eq!(ask(&with_key(key("sk-1")), &long).await, Err(ModelError::Context));
    let models = client().get(format!("{server}/v1/models")).bearer_auth("sk-1").send();
    let models: Value = models.await.unwrap().json().await.unwrap();
    assert_eq!(models["data"][0]["id"], "wire");
}

#[tokio::test]
async fn every_question_leaves_a_line() {
    let name = format!("adjutant-asked-{}.jsonl", std::process::id());
    let path = std::env::temp_dir().join(name);
    let _ = std::fs::remove_file(&path);
    let server = start(Config { journal: Some(path.clone()), ..config() }).await;
    let chat = chat(settings(&server));
    let faults = json!({"next": [{}, {"status": 500}, {"cut_after_bytes": 9}]});
    client().post(format!("{server}/faults")).json(&faults).send().await.unwrap();
    for text in ["parallel", "parallel", "parallel", "fail quota"] {
        let _ = ask(&chat, text).await;
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Asked> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |n: u64, text: &str, answer: Option<Answer>, error: Option<&str>, fault| Asked {
        n,
        at: lines[n as usize - 1].at,
        request_digest: Some(request(text).digest()),
        body_digest: Digest::of(&request(text).body("asked")),
        answer_id: answer.as_ref().map(|answer| answer.answer_id.clone()),
        tool_calls: answer.map(|answer| answer.tool_calls).unwrap_or_default(),
        path: "/v1/chat/completions".to_owned(),
        error: error.map(str::to_owned),
        fault,
    };
    let status = Fault { status: Some(500), ..Fault::default() };
    let cut = Fault { cut_after_bytes: Some(9), ..Fault::default() };
    let answer = || Some(expected("parallel"));
    let expected = [
        line(1, "parallel", answer(), None, Some(Fault::default())),
        line(2, "parallel", None, None, Some(status)),
        line(3, "parallel", answer(), None, Some(cut)),
        line(4, "fail quota", None, Some("quota"), None),
    ];
    assert_eq!(lines, expected);
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn a_repeated_question_gets_a_numbered_answer() {
    let server = start(Config { number_answers: true, ..config() }).await;
    let chat = chat(settings(&server));
    let id = expected("parallel").answer_id;
    let mut answers = Vec::new();
    for _ in 0..2 {
        answers.push(ask(&chat, "parallel").await.unwrap().answer_id);
    }
    assert_eq!(answers, [format!("{id}-1"), format!("{id}-2")]);
}

/// How a server made by hand ends its answer.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// As HTTP wants it.
    Proper,
    /// By dropping the connection.
    Dropped,
    /// Not at all, until the client hangs up.
    Open,
    /// Not at all: it repeats its last part until the client hangs up.
    Endless,
}

/// Answers one question with `parts`, each an HTTP chunk of its own, and joins once that is over.
fn by_hand(kind: &'static str, parts: Vec<Vec<u8>>, end: End) -> (String, JoinHandle<()>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_request(&mut stream);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        let mut send = |bytes: &[u8]| stream.write_all(bytes).and_then(|()| stream.flush()).is_ok();
        let chunk = |part: &[u8]| {
            let mut chunk = format!("{:x}\r\n", part.len()).into_bytes();
            chunk.extend_from_slice(part);
            chunk.extend_from_slice(b"\r\n");
            chunk
        };
        let _ = send(head.as_bytes()) && parts.iter().all(|part| send(&chunk(part)));
        match end {
            End::Proper => {
                let _ = send(b"0\r\n\r\n");
            }
            End::Dropped => stream.shutdown(Shutdown::Both).unwrap(),
            End::Open => while stream.read(&mut [0; 64]).is_ok_and(|read| read > 0) {},
            End::Endless => while send(&chunk(&parts[parts.len() - 1])) {},
        }
    };
    (format!("http://{address}"), std::thread::spawn(answer))
}

/// Waits for a server made by hand, while the runtime goes on to close the client's connection.
async fn ended(server: JoinHandle<()>) {
    tokio::task::spawn_blocking(|| server.join().unwrap()).await.unwrap();
}

/// Reads the head and as much body as it announces.
fn read_request(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "the client hung up inside its request");
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
        if body.len() >= length {
            return;
        }
    }
}

fn event(part: Value) -> String {
    format!("data: {part}\n\n")
}

/// Text of several bytes per character and two calls whose arguments come in turns.
fn two_calls() -> (String, Answer) {
    let delta = |delta: Value| {
        event(json!({"id": "a1", "model": "m1", "choices": [{"index": 0, "delta": delta}]}))
    };
    let call = |index: u32, arguments: &str| {
        delta(json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
    };
    let begin = |index: u32, id: &str, name: &str| {
        let function = json!({"name": name, "arguments": ""});
        delta(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}),
        )
    };
    let body = [
        ": hello\n\n".to_owned(),
        delta(json!({"content": "价格 "})),
        delta(json!({"content": "🙂"})),
        begin(0, "c0", "one"),
        begin(1, "c1", "two"),
        call(1, "{\"乙\""),
        call(0, "{\"甲\":1}"),
        call(1, ":2}"),
        event(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})),
        event(json!({"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 9}})),
        "data: [DONE]\n\n".to_owned(),
    ];
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let calls = vec![call("c0", "one", "{\"甲\":1}"), call("c1", "two", "{\"乙\":2}")];
    let mut answer = Answer::new(Some("价格 🙂".to_owned()), calls, Finish::ToolCalls);
    answer.usage = Usage { input_tokens: 20, cached_tokens: 0, output_tokens: 9 };
    answer.model = "m1".to_owned();
    answer.answer_id = "a1".to_owned();
    (body.concat(), answer)
}

#[tokio::test]
async fn chunks_may_end_anywhere_also_inside_a_character() {
    let (body, expected) = two_calls();
    for size in [1, 2, 3, 7, 50, 100_000] {
        let parts = body.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
        let (server, thread) = by_hand("text/event-stream; charset=utf-8", parts, End::Proper);
        let heard = Mutex::new(0);
        let chat = chat(settings(&server));
        let answer = chat.ask(&request("x"), &|bytes| *heard.lock().unwrap() = bytes).await;
        assert_eq!(answer, Ok(expected.clone()), "chunks of {size} bytes");
        // After the end mark only a line end may be left unheard.
        let left = body.len() as u64 - *heard.lock().unwrap();
        assert!(left <= 1, "{left}");
        drop(chat);
        ended(thread).await;
    }
}

#[tokio::test]
async fn a_server_that_answers_whole_or_stays_open_is_understood() {
    let message = json!({"role": "assistant", "content": "好"});
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    let whole = json!({"id": "a2", "model": "m2", "choices": [choice]}).to_string();
    let (server, _) = by_hand("application/json", vec![whole.into_bytes()], End::Proper);
    let asked = request("x");
    let mut expected = Answer::new(Some("好".to_owned()), vec![], Finish::Stop);
    expected.model = "m2".to_owned();
    expected.answer_id = "a2".to_owned();
    expected.usage.input_tokens = asked.tokens();
    expected.usage.output_tokens = expected.block.tokens;
    assert_eq!(ask(&chat(settings(&server)), "x").await, Ok(expected));

    let (body, expected) = two_calls();
    let (server, _) = by_hand("text/event-stream", vec![body.into_bytes()], End::Open);
    assert_eq!(ask(&chat(settings(&server)), "x").await, Ok(expected));
}

#[tokio::test]
async fn a_stream_that_ends_before_its_end_is_asked_again() {
    let (body, _) = two_calls();
    let finish = body.find("\"finish_reason\"").unwrap();
    for (cut, end) in
        [(0, End::Proper), (0, End::Dropped), (finish, End::Proper), (finish, End::Dropped)]
    {
        let part = body.as_bytes()[..cut].to_vec();
        // An empty chunk would be the proper end.
        let parts = if part.is_empty() { vec![] } else { vec![part] };
        let (server, thread) = by_hand("text/event-stream", parts, end);
        assert_eq!(ask(&chat(settings(&server)), "x").await.unwrap_err().class(), "retry");
        ended(thread).await;
    }
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    assert_eq!(ask(&chat(settings(&address)), "x").await.unwrap_err().class(), "retry");
}

#[tokio::test]
async fn time_and_size_have_limits() {
    let long = Duration::from_secs(60);
    let short = Duration::from_millis(100);
    let comment = || vec![b": still thinking\n\n".to_vec()];
    let table = [
        (Timeouts { first: long, idle: short, total: long }, "went silent"),
        (Timeouts { first: long, idle: long, total: short }, "did not finish"),
    ];
    for (timeouts, words) in table {
        let (server, thread) = by_hand("text/event-stream", comment(), End::Open);
        let chat = chat(WireSettings { timeouts, ..settings(&server) });
        let error = ask(&chat, "x").await.unwrap_err();
        assert!(error.to_string().contains(words) && error.class() == "retry", "{error}");
        // The client hung up, or the server would wait for ever.
        ended(thread).await;
    }
    for kind in ["text/event-stream", "application/json"] {
        let (server, thread) = by_hand(kind, comment(), End::Endless);
        let timeouts = Timeouts { total: Duration::from_secs(20), ..Timeouts::default() };
        let limits = WireSettings { timeouts, answer_bytes_max: 100_000, ..settings(&server) };
        let chat = chat(limits);
        let error = ask(&chat, "x").await.unwrap_err();
        let what = "the answer is longer than 100000 bytes".to_owned();
        assert_eq!(error, ModelError::Malformed(what));
        ended(thread).await;
    }
}

#[tokio::test]
async fn dropping_the_call_hangs_up() {
    let (server, thread) = by_hand("text/event-stream", vec![b": begun\n\n".to_vec()], End::Open);
    let chat = chat(settings(&server));
    let begun = tokio::sync::Notify::new();
    let asked = request("x");
    let heard = |_| begun.notify_one();
    tokio::select! {
        // The call never ends by itself; it is dropped once the first bytes have arrived.
        answer = chat.ask(&asked, &heard) => panic!("{answer:?}"),
        () = begun.notified() => {}
    }
    ended(thread).await;
}
