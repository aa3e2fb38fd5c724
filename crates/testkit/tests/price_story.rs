//! The rule file of the price watch over contexts as the agent writes them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use base::SystemClock;
use model::{Block, Message, Request, Script, ScriptedModel, ToolCall};
use serde_json::{Value, json};
use testkit::model_server::{Config, PRICE_SCRIPT};

/// Runs one wake-up: the model's calls until it makes no more, each answered by `tool`.
fn run(
    history: &[Message],
    tail: &str,
    tool: impl Fn(&ToolCall) -> String,
) -> Vec<(String, Value)> {
    let script = Script::parse(PRICE_SCRIPT).unwrap();
    let model = ScriptedModel::new(script, model::Prices::default());
    let mut blocks = vec![Message::System("You keep duties.".to_owned()).to_block()];
    blocks.extend(history.iter().map(Message::to_block));
    blocks.push(Message::User(tail.to_owned()).to_block());
    let tools = Block::from_stored("[]".to_owned());
    let mut request = Request { blocks, tools, max_output_tokens: 1_000 };
    let mut calls = Vec::new();
    for _ in 0..10 {
        let answer = model.answer(&request).unwrap();
        request.blocks.push(answer.block);
        for call in &answer.tool_calls {
            let result = Message::Tool { call_id: call.id.clone(), text: tool(call) };
            request.blocks.push(result.to_block());
            calls.push((call.name.clone(), serde_json::from_str(&call.arguments).unwrap()));
        }
        if answer.tool_calls.is_empty() {
            return calls;
        }
    }
    panic!("the run does not end: {calls:#?}");
}

fn due(now: &str) -> String {
    format!(
        "Now: {now} Asia/Hong_Kong\nNew:\n- schedule 0190f3c4-0001 of duty 0190f3c4-0002 \"Price watch\" \
         is due (slot 2027-03-01 08:00): Look at the price feed. Tell the user only when the price is \
         under 100; on Friday tell in any case."
    )
}

/// A morning on which the feed answers `feed`.
#[track_caller]
fn check_morning(now: &str, feed: &str, last: (&str, Value)) {
    let date = now.split(' ').nth(1).unwrap();
    let calls = run(&[], &due(now), |call| match call.name.as_str() {
        "tool_schema" => r#"{"date":{"type":"string"},"price":1}"#.to_owned(),
        "call_tool" => feed.to_owned(),
        _ => "ok".to_owned(),
    });
    let ask = json!({"name": "feed.price", "arguments": {"date": date}});
    let expected = [("tool_schema", json!({"name": "feed.price"})), ("call_tool", ask), last];
    assert_eq!(calls, expected.map(|(name, arguments)| (name.to_owned(), arguments)));
}

#[test]
fn a_morning_speaks_under_100_and_on_friday_only() {
    let quiet = || {
        let reason = "The price gives no cause to tell the user.";
        ("finish_quietly", json!({ "reason": reason }))
    };
    let says = |text: &str| ("send_to_user", json!({ "text": text }));
    let price = |price: &str| format!(r#"{{"date":"2027-03-01","price":{price}}}"#);
    check_morning("Monday 2027-03-01 08:00", &price("104.2"), quiet());
    check_morning(
        "Wednesday 2027-03-03 08:00",
        &price("97.5"),
        says("The price is 97.5, under 100."),
    );
    check_morning("Thursday 2027-03-04 08:00", &price("100"), quiet());
    check_morning(
        "Thursday 2027-03-04 08:00",
        &price("99.99"),
        says("The price is 99.99, under 100."),
    );
    check_morning(
        "Friday 2027-03-05 08:00",
        &price("104.2"),
        says("It is Friday: the price is 104.2."),
    );
    check_morning("Friday 2027-03-05 08:00", &price("97.5"), says("The price is 97.5, under 100."));
    check_morning(
        "Friday 2027-03-05 08:00",
        &price("\"104.2\""),
        says("It is Friday: the price is 104.2."),
    );
    check_morning("Monday 2027-03-01 08:00", "The feed does not answer; try again later.", quiet());
}

#[test]
fn the_users_words_become_a_proposal_once() {
    let tail = "Now: Monday 2027-03-01 07:00 Asia/Hong_Kong\nNew:\n- message 0190f3c4-0003 from the user: \
                look at the price feed each morning; tell me only when it falls under 100; on Friday \
                tell me in any case";
    let calls = run(&[], tail, |_| "The proposal is shown to the user.".to_owned());
    let names: Vec<&str> = calls.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["propose_duty", "finish_quietly"]);
    let proposal = &calls[0].1;
    assert_eq!(
        (&proposal["title"], &proposal["schedules"][0]["kind"], &proposal["schedules"][0]["at"]),
        (&json!("Price watch"), &json!("weekdays"), &json!("08:00"))
    );
    assert_eq!(proposal["conditions"][0]["authority"], "user");
}

#[test]
fn a_question_is_answered_from_the_records_and_the_end_is_proposed() {
    let message = |text: &str| {
        format!(
            "Now: Tuesday 2027-03-02 12:00 Asia/Hong_Kong\nNew:\n- message 0190f3c4-0004 from the user: {text}"
        )
    };
    let history = [Message::User(due("Monday 2027-03-01 08:00"))];
    let calls = run(&history, &message("How is it going?"), |_| "Price watch: active".to_owned());
    let text = "This is how it stands: Price watch: active";
    let expected =
        [("read_records", json!({"what": "duties"})), ("send_to_user", json!({ "text": text }))];
    assert_eq!(calls, expected.map(|(name, arguments)| (name.to_owned(), arguments)));

    let duties = "\nDuties:\n- duty 0190f3c4-0002 \"Price watch\", version 1";
    let tail = message("Thanks, the price watch is over.") + duties;
    let calls = run(&history, &tail, |_| "ok".to_owned());
    let reason = "The user says that the watch is over.";
    let expected = json!({"duty": "0190f3c4-0002", "reason": reason});
    assert_eq!(calls[0], ("propose_close".to_owned(), expected));
    assert_eq!((&*calls[1].0, calls.len()), ("finish_quietly", 2));

    assert_eq!(run(&history, &message("What a day!"), |_| String::new()), []);
}

#[test]
fn a_message_and_a_due_schedule_in_one_tail_are_both_served() {
    let tail = format!(
        "{}\n- message 0190f3c4-0005 from the user [late: came at 07:00]: how is it going",
        due("Friday 2027-03-05 08:00")
    );
    let calls = run(&[], &tail, |_| r#"{"price": 104.2}"#.to_owned());
    let names: Vec<&str> = calls.iter().map(|(name, _)| &**name).collect();
    let expected = ["tool_schema", "call_tool", "send_to_user", "read_records", "send_to_user"];
    assert_eq!(names, expected);
    // The server takes the same script.
    let config =
        Config::new(Script::parse(PRICE_SCRIPT).unwrap(), std::sync::Arc::new(SystemClock));
    assert_eq!(config.script.name(), "scripted-price");
}
