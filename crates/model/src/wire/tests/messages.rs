//! Anthropic Messages.

use serde_json::{Value, json};

use super::{
    Wire, WireSettings, ask, body, call, check_every_cut, event, http, read, request, result,
    settings, system, user,
};
use crate::{Answer, Block, Finish, Message, ModelError, Request, Usage};

fn claude() -> WireSettings {
    settings(Wire::Messages, "claude-x")
}

fn begin(index: u32, block: Value) -> String {
    event(json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn delta(index: u32, delta: Value) -> String {
    event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn stop(reason: &str) -> String {
    event(json!({
        "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": 60, "input_tokens": 0, "cache_read_input_tokens": 900},
    }))
}

fn start() -> String {
    event(json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x-1", "content": [],
        "stop_reason": null,
        "usage": {"input_tokens": 30, "cache_creation_input_tokens": 70,
            "cache_read_input_tokens": 900, "output_tokens": 1},
    }}))
}

/// Two calls after two kinds of thinking, with events and deltas that nobody knows.
fn thoughtful() -> String {
    let tool = |id: &str| json!({"type": "tool_use", "id": id, "name": "price", "input": {}});
    [
        start(),
        event(json!({"type": "ping"})),
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Look 🙂"})),
        delta(0, json!({"type": "thinking_delta", "thinking": " first."})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        event(json!({"type": "content_block_stop", "index": 0})),
        begin(1, json!({"type": "redacted_thinking", "data": "b3BhcXVl"})),
        begin(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "看一下"})),
        delta(2, json!({"type": "mystery_delta", "mystery": {"text": 1}})),
        delta(2, json!({"type": "text_delta", "text": "。"})),
        begin(3, json!({"type": "thinking", "thinking": "Both.", "signature": "Yg=="})),
        begin(4, tool("toolu_1")),
        delta(4, json!({"type": "input_json_delta", "partial_json": "{\"day\""})),
        delta(4, json!({"type": "input_json_delta", "partial_json": ": \"一\"}"})),
        event(json!({"type": "mystery", "index": 4})),
        begin(5, tool("toolu_2")),
        delta(5, json!({"type": "input_json_delta", "partial_json": ""})),
        stop("tool_use"),
        event(json!({"type": "message_stop"})),
    ]
    .concat()
}

const SENT: &str = concat!(
    r#"{"model":"claude-x","max_tokens":500,"stream":true,"tools":[{"name":"price","description":"Looks.","input_schema":{"type":"object","properties":{}}}],"#,
    r#""system":[{"type":"text","text":"Be \"brief\".","cache_control":{"type":"ephemeral"}}],"messages":["#,
    r#"{"role":"user","content":[{"type":"text","text":"价格?"}]},"#,
    r#"{"role":"assistant","content":[{"signature":"c2ln","thinking":"Look 🙂 first.","type":"thinking"},"#,
    r#"{"data":"b3BhcXVl","type":"redacted_thinking"},{"type":"text","text":"看一下。"},"#,
    r#"{"signature":"Yg==","thinking":"Both.","type":"thinking"},"#,
    r#"{"type":"tool_use","id":"toolu_1","name":"price","input":{"day": "一"}},"#,
    r#"{"type":"tool_use","id":"toolu_2","name":"price","input":{}}]},"#,
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"10"},"#,
    r#"{"type":"tool_result","tool_use_id":"toolu_2","content":"20","cache_control":{"type":"ephemeral"}}]}]}"#,
);

fn conversation(answer: &Answer) -> Request {
    let (ten, twenty) = (result("toolu_1", "10"), result("toolu_2", "20"));
    request(vec![system(), user(), answer.block.clone(), ten, twenty])
}

#[tokio::test]
async fn an_answer_comes_back_whole_and_goes_out_again_as_it_came() {
    let asked = request(vec![system(), user()]);
    let stream = http("200 OK\r\ncontent-type: text/event-stream", &thoughtful());
    let answer = ask(claude(), &asked, stream).await.0.unwrap();
    let calls = vec![call("toolu_1", "price", r#"{"day": "一"}"#), call("toolu_2", "price", "{}")];
    let mut expected = Answer::new(Some("看一下。".to_owned()), calls, Finish::ToolCalls);
    assert_ne!(answer.block, expected.block, "the thinking is kept");
    expected.block = answer.block.clone();
    expected.usage = Usage { input_tokens: 1_000, cached_tokens: 900, output_tokens: 60 };
    expected.model = "claude-x-1".to_owned();
    expected.answer_id = "msg_1".to_owned();
    assert_eq!(answer, expected);
    assert_eq!(body(&claude(), &conversation(&answer)), SENT);
    // As it is read back from the journal.
    let stored = Block::from_stored(answer.block.bytes.to_string());
    let again = Answer { block: stored, ..answer.clone() };
    assert_eq!(body(&claude(), &conversation(&again)), SENT);
    check_every_cut(&claude(), &thoughtful(), r#""stop_reason":"tool_use""#, &expected);
}

#[test]
fn calls_that_were_made_sound_keep_their_thinking() {
    let answer = read(&claude(), thoughtful().as_bytes()).unwrap();
    let calls = vec![call("call-4-0", "price", "{}"), call("é", "a.b", "no json")];
    let answer = answer.with_calls(calls);
    let sent = SENT
        .replace(r#"{"day": "一"}"#, "{}")
        .replace("toolu_1", "call-4-0")
        .replace(
            r#""toolu_2","name":"price","input":{}"#,
            r#""_-ID","name":"NAME","input":{"unreadable":"no json"}"#,
        )
        .replace(r#""tool_use_id":"toolu_2""#, r#""tool_use_id":"_-ID""#);
    let (ten, twenty) = (result("call-4-0", "10"), result("é", " "));
    let blocks = vec![system(), user(), answer.block, ten, twenty];
    let digest = |text: &str| base::Digest::of(text.as_bytes()).to_string()[..8].to_owned();
    let sent = sent
        .replace(r#""20""#, r#""(nothing)""#)
        .replace("ID", &digest("é"))
        .replace("NAME", &format!("a_b-{}", digest("a.b")));
    assert_eq!(body(&claude(), &request(blocks)), sent);
}

#[test]
fn a_question_without_tools_leaves_no_mark_and_effort_is_the_vendors_word() {
    let asked = Request { tools: Block::from_stored("[]".to_owned()), ..request(vec![user()]) };
    let with = |effort: Option<&str>| {
        body(&WireSettings { effort: effort.map(str::to_owned), ..claude() }, &asked)
    };
    let rest = r#""messages":[{"role":"user","content":[{"type":"text","text":"价格?"}]}]}"#;
    let plain = format!(r#"{{"model":"claude-x","max_tokens":500,"stream":true,{rest}"#);
    assert_eq!([with(None), with(Some("off"))], [plain.clone(), plain.clone()]);
    let thinks = r#""stream":true,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}"#;
    assert_eq!(with(Some("low")), plain.replace(r#""stream":true"#, thinks));
}

#[test]
fn an_answer_ends_in_one_of_these_ways() {
    let text = |reason: &str| {
        let said = begin(0, json!({"type": "text", "text": "half"}));
        read(&claude(), [start(), said, stop(reason)].concat().as_bytes())
    };
    let finish = |reason: &str| text(reason).unwrap().finish;
    assert_eq!(finish("end_turn"), Finish::Stop);
    assert_eq!(finish("stop_sequence"), Finish::Stop);
    assert_eq!(finish("max_tokens"), Finish::Length);
    assert_eq!(finish("model_context_window_exceeded"), Finish::Length);
    assert_eq!(text("refusal"), Err(ModelError::Refused));
    for reason in ["tool_use", "pause_turn", "mystery"] {
        assert_eq!(text(reason).unwrap_err().class(), "malformed", "{reason}");
    }
    // What was cut inside its thinking says nothing.
    let cut =
        [start(), begin(0, json!({"type": "thinking", "thinking": "so"})), stop("max_tokens")];
    let cut = read(&claude(), cut.concat().as_bytes()).unwrap();
    assert_eq!(cut.block, Message::Assistant { text: None, tool_calls: vec![] }.to_block());
}

#[test]
fn what_breaks_inside_a_stream_has_its_class() {
    let error = |kind: &str, words: &str| {
        let error = event(json!({"type": "error", "error": {"type": kind, "message": words}}));
        read(&claude(), [start(), error].concat().as_bytes()).unwrap_err()
    };
    assert_eq!(
        error("overloaded_error", "Overloaded"),
        ModelError::retry("the server broke off: Overloaded")
    );
    assert_eq!(error("api_error", "Internal").class(), "retry");
    assert_eq!(error("authentication_error", "no").class(), "authentication");
    assert_eq!(error("invalid_request_error", "prompt is too long: 2 > 1").class(), "context");
    assert_eq!(read(&claude(), b"data: <html>\n\n").unwrap_err().class(), "malformed");
}

#[test]
fn a_server_that_answers_whole_is_understood() {
    let whole = json!({
        "type": "message", "id": "msg_2", "model": "m", "stop_reason": "tool_use",
        "content": [{"type": "text", "text": "好"},
            {"type": "tool_use", "id": "t", "name": "price", "input": {"day": 1}}],
    });
    let answer = read(&claude(), format!("data: {whole}").as_bytes()).unwrap();
    let calls = vec![call("t", "price", r#"{"day":1}"#)];
    let mut expected = Answer::new(Some("好".to_owned()), calls, Finish::ToolCalls);
    expected.usage.input_tokens = request(vec![user()]).tokens();
    expected.usage.output_tokens = expected.block.tokens;
    (expected.model, expected.answer_id) = ("m".to_owned(), "msg_2".to_owned());
    assert_eq!(answer, expected);
}
