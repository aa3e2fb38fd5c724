//! OpenAI Responses.

use serde_json::{Value, json};

use super::{
    Wire, WireSettings, ask, body, call, check_every_cut, event, http, read, request, result,
    settings, system, user,
};
use crate::{Answer, Block, Finish, ModelError, Request, Usage};

fn gpt() -> WireSettings {
    settings(Wire::Responses, "gpt-x")
}

fn done(index: u32, item: Value) -> String {
    event(json!({"type": "response.output_item.done", "output_index": index, "item": item}))
}

fn last(kind: &str, more: Value) -> String {
    let mut response = json!({
        "id": "resp_1", "object": "response", "model": "gpt-x-1", "status": kind, "output": [],
        "error": null, "incomplete_details": null,
        "usage": {"input_tokens": 1_000, "input_tokens_details": {"cached_tokens": 900},
            "output_tokens": 60, "output_tokens_details": {"reasoning_tokens": 40}},
    });
    response.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event(json!({"type": format!("response.{kind}"), "response": response}))
}

fn said(text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    json!({"id": "msg_1", "type": "message", "role": "assistant", "content": content})
}

fn wants(id: &str, arguments: &str) -> Value {
    json!({"id": "fc_1", "type": "function_call", "call_id": id, "name": "price",
        "arguments": arguments, "status": "completed"})
}

/// Two calls after reasoning and a remark, with the parts of items and an event that nobody knows.
fn thoughtful() -> String {
    let reasoning = json!({"id": "rs_1", "type": "reasoning", "summary": [], "status": null,
        "encrypted_content": "gAAA"});
    let stored = json!({"id": "rs_2", "type": "reasoning", "summary": []});
    let mut remark = said("看一下。");
    remark["phase"] = json!("commentary");
    [
        event(json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}})),
        event(json!({"type": "response.output_item.added", "output_index": 0, "item": reasoning})),
        done(0, stored),
        done(0, reasoning),
        event(json!({"type": "response.output_text.delta", "output_index": 1, "delta": "看一"})),
        done(1, remark),
        event(json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{"})),
        event(json!({"type": "response.function_call_arguments.done", "output_index": 2, "arguments": "{}"})),
        done(2, wants("call_1", r#"{"day": "一"}"#)),
        done(3, wants("call_2", "")),
        event(json!({"type": "response.mystery", "item": null, "response": null})),
        last("completed", json!({})),
    ]
    .concat()
}

const SENT: &str = concat!(
    r#"{"model":"gpt-x","stream":true,"store":false,"max_output_tokens":500,"include":["reasoning.encrypted_content"],"prompt_cache_key":"NAME","parallel_tool_calls":true,"#,
    r#""tools":[{"type":"function","name":"price","description":"Looks.","parameters":{"type":"object","properties":{}},"strict":false}],"input":["#,
    r#"{"type":"message","role":"system","content":"Be \"brief\"."},{"type":"message","role":"user","content":"价格?"},"#,
    r#"{"encrypted_content":"gAAA","id":"rs_1","summary":[],"type":"reasoning"},"#,
    r#"{"type":"message","role":"assistant","content":"看一下。","phase":"commentary"},"#,
    r#"{"type":"function_call","call_id":"call_1","name":"price","arguments":"{\"day\": \"一\"}"},"#,
    r#"{"type":"function_call","call_id":"call_2","name":"price","arguments":"{}"},"#,
    r#"{"type":"function_call_output","call_id":"call_1","output":"10"},"#,
    r#"{"type":"function_call_output","call_id":"call_2","output":"20"}]}"#,
);

fn sent(request: &Request) -> String {
    SENT.replace("NAME", &request.prefix_name().unwrap())
}

#[tokio::test]
async fn an_answer_comes_back_whole_and_goes_out_again_as_it_came() {
    let asked = request(vec![system(), user()]);
    let stream = http("200 OK\r\ncontent-type: text/event-stream", &thoughtful());
    let answer = ask(gpt(), &asked, stream).await.0.unwrap();
    let calls = vec![call("call_1", "price", r#"{"day": "一"}"#), call("call_2", "price", "{}")];
    let mut expected = Answer::new(Some("看一下。".to_owned()), calls, Finish::ToolCalls);
    assert_ne!(answer.block, expected.block, "the reasoning is kept");
    expected.block = answer.block.clone();
    expected.usage = Usage { input_tokens: 1_000, cached_tokens: 900, output_tokens: 60 };
    expected.model = "gpt-x-1".to_owned();
    expected.answer_id = "resp_1".to_owned();
    assert_eq!(answer, expected);
    let stored = Block::from_stored(answer.block.bytes.to_string());
    let results = [result("call_1", "10"), result("call_2", "20")];
    let longer = request([vec![system(), user(), stored], results.to_vec()].concat());
    assert_eq!(body(&gpt(), &longer), sent(&longer));
    assert_eq!(asked.prefix_name(), longer.prefix_name(), "one conversation, one name");
    check_every_cut(&gpt(), &thoughtful(), r#""type":"response.completed""#, &expected);
}

#[test]
fn a_question_without_tools_has_no_name_and_effort_is_the_vendors_word() {
    let tools = Block::from_stored("[]".to_owned());
    let asked = Request { tools, max_output_tokens: 1, ..request(vec![user()]) };
    let with = |effort: Option<&str>| {
        body(&WireSettings { effort: effort.map(str::to_owned), ..gpt() }, &asked)
    };
    let plain = |more: &str| {
        format!(
            r#"{{"model":"gpt-x","stream":true,"store":false,"max_output_tokens":16{more},"input":[{{"type":"message","role":"user","content":"价格?"}}]}}"#
        )
    };
    let include = r#","include":["reasoning.encrypted_content"]"#;
    assert_eq!(with(None), plain(include));
    assert_eq!(with(Some("off")), plain(""));
    assert_eq!(with(Some("high")), plain(&format!(r#","reasoning":{{"effort":"high"}}{include}"#)));
}

#[test]
fn an_answer_ends_in_one_of_these_ways() {
    let end = |kind: &str, more: Value| {
        read(&gpt(), [done(0, said("half")), last(kind, more)].concat().as_bytes())
    };
    let cut = |reason: &str| end("incomplete", json!({"incomplete_details": {"reason": reason}}));
    assert_eq!(end("completed", json!({})).unwrap().finish, Finish::Stop);
    assert_eq!(cut("max_output_tokens").unwrap().finish, Finish::Length);
    assert_eq!(cut("content_filter").unwrap().finish, Finish::ContentFilter);
    assert_eq!(cut("mystery").unwrap_err().class(), "malformed");
    let failed = |code: &str| {
        let error = json!({"error": {"code": code, "message": "no"}});
        end("failed", error).unwrap_err()
    };
    assert_eq!(failed("server_error"), ModelError::retry("the server broke off: no"));
    assert_eq!(failed("rate_limit_exceeded").class(), "retry");
    assert_eq!(failed("insufficient_quota").class(), "quota");
    assert_eq!(failed("context_length_exceeded").class(), "context");
    assert_eq!(failed("invalid_prompt").class(), "refused");
    let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]});
    let refused = [done(0, refusal), last("completed", json!({}))].concat();
    assert_eq!(read(&gpt(), refused.as_bytes()), Err(ModelError::Refused));
    let error = event(json!({"type": "error", "code": "insufficient_quota", "message": "no"}));
    assert_eq!(read(&gpt(), error.as_bytes()), Err(ModelError::Quota));
}

#[test]
fn a_server_that_answers_whole_is_understood() {
    let output = json!([said("好"), wants("c", "{}")]);
    let whole = json!({"object": "response", "status": "completed", "output": output});
    let answer = read(&gpt(), format!("data: {whole}").as_bytes()).unwrap();
    let asked = request(vec![user()]);
    let calls = vec![call("c", "price", "{}")];
    let mut expected = Answer::new(Some("好".to_owned()), calls, Finish::ToolCalls);
    expected.usage.input_tokens = asked.tokens();
    expected.usage.output_tokens = expected.block.tokens;
    expected.model = "gpt-x".to_owned();
    expected.answer_id = format!("answer-{}", asked.digest());
    assert_eq!(answer, expected);
}
