use crate::{
    Answer, Block, Finish, Message, ModelError, Prices, Request, Script, ScriptError,
    ScriptedModel, ToolCall,
};

fn request(messages: &[Message]) -> Request {
    let blocks = messages.iter().map(Message::to_block).collect();
    Request { blocks, tools: Block::from_stored("[]".to_owned()), max_output_tokens: 100 }
}

fn user(text: &str) -> Message {
    Message::User(text.to_owned())
}

fn called(id: &str, name: &str, arguments: &str) -> Message {
    let call = ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() };
    Message::Assistant { text: None, tool_calls: vec![call] }
}

fn result(id: &str, text: &str) -> Message {
    Message::Tool { call_id: id.into(), text: text.into() }
}

/// What a script of one rule (`conditions` and `say = "yes"` unless they act themselves) says.
#[track_caller]
fn said(rule: &str, messages: &[Message]) -> Option<String> {
    let action = if rule.contains("say =") { "" } else { "say = \"yes\"" };
    let script = Script::parse(&format!("[[rule]]\n{rule}\n{action}\n")).unwrap();
    script.answer(&request(messages).body("m")).unwrap().text
}

#[track_caller]
fn check(rule: &str, messages: &[Message], expected: bool) {
    assert_eq!(said(rule, messages).is_some(), expected, "{rule} over {messages:#?}");
}

/// A run that asked the feed through `call_tool`, after an earlier run.
fn feed_run() -> Vec<Message> {
    vec![
        Message::System("Feeds have prices.".into()),
        user("Now: Monday\nold tail"),
        called("c1", "old_tool", "{}"),
        result("c1", "old result 7"),
        user("Now: Friday\nnew tail"),
        called("c2", "call_tool", r#"{"name":"feed.price","arguments":{"date":"2027-03-05"}}"#),
        result("c2", r#"{"price":104.2}"#),
    ]
}

#[test]
fn each_condition_looks_at_its_own_part() {
    let run = feed_run();
    check("last = 'tool'", &run, true);
    check("last = 'user'", &run, false);
    check("last = 'user'", &run[..5], true);
    check("last = 'assistant'", &run[..6], true);
    check("user = '(?m)^Now: Friday$'", &run, true);
    check("user = 'Monday'", &run, false);
    check("user = ['Friday', 'new']", &run, true);
    check("user = ['Friday', 'old']", &run, false);
    check("not_user = 'new'", &run, false);
    check("not_user = 'old'", &run, true);
    check("called = 'call_tool'", &run, true);
    check("called = 'feed.price'", &run, true);
    check("called = ['feed.price', 'old_tool']", &run, false);
    check("not_called = 'old_tool'", &run, true);
    check("not_called = ['old_tool', 'feed.price']", &run, false);
    check("called = { tool = 'feed.price', arguments = '03-05' }", &run, true);
    check("not_called = [{ tool = 'feed.price', arguments = '03-06' }]", &run, true);
    check("tool = { name = 'feed.price', result = '104' }", &run, true);
    check("tool = { name = 'feed.price', result = '105' }", &run, false);
    check("tool = { name = 'old_tool' }", &run, false);
    check("anywhere = 'old result'", &run, true);
    check("anywhere = 'Feeds have'", &run, true);
    check("seen = 'old_tool'", &run, true);
    check("seen = 'Feeds have|new tail|104'", &run, false);
    check("not_seen = 'old tail'", &run, false);
    check("not_seen = 'new tail'", &run, true);
    check("user = 'x'", &[], false);
}

#[test]
fn the_newest_result_of_a_tool_counts() {
    let mut run = feed_run();
    run.push(called("c3", "feed.price", "{}"));
    run.push(result("c3", "error: try later"));
    check("tool = { name = 'feed.price', result = '104' }", &run, false);
    check("tool = { name = 'feed.price', result = 'error' }", &run, true);
}

#[test]
fn captured_numbers_are_compared() {
    let holds = |comparison: &str, expected| {
        let rule = format!(
            "tool = {{ name = 'feed.price', result = ':(?<price>[0-9.]+)' }}\n\
             seen = 'result (?<old>\\d)'\nuser = 'Now: (?<day>\\w+)'\ncompare = ['{comparison}']"
        );
        check(&rule, &feed_run(), expected);
    };
    holds("price < 104.3", true);
    holds("price < 104.2", false);
    holds("price <= 104.2", true);
    holds("price > 104.2", false);
    holds("price > old", true);
    holds("price >= 104.2", true);
    holds("price = 104.20", true);
    holds("price != 104.2", false);
    holds("day < 1", false);
    holds("day >= 1", false);
}

#[test]
fn actions_are_filled_and_their_ids_come_from_the_request() {
    let script = Script::parse(
        r#"
name = "m1"
[[rule]]
user = 'Now: (?<day>\w+)'
tool = { name = "feed.price", result = ':(?<price>[0-9.]+)' }
say = "$day!"
call = [
  { tool = "send_to_user", arguments = { text = "$day: $price", all = [{ price = "$price:number" }, 2, true] } },
  { tool = "finish_quietly" },
]
"#,
    )
    .unwrap();
    let request = request(&feed_run());
    let id = &request.digest().to_string()[..16];
    let call = |n, name: &str, arguments: &str| ToolCall {
        id: format!("call-{id}-{n}"),
        name: name.into(),
        arguments: arguments.into(),
    };
    let calls = vec![
        call(0, "send_to_user", r#"{"all":[{"price":104.2},2,true],"text":"Friday: 104.2"}"#),
        call(1, "finish_quietly", "{}"),
    ];
    let mut expected = Answer::new(Some("Friday!".into()), calls, Finish::ToolCalls);
    expected.usage.input_tokens = request.tokens();
    expected.usage.output_tokens = expected.block.tokens;
    expected.model = "m1".into();
    expected.answer_id = format!("scripted-{id}");
    assert_eq!(script.answer(&request.body("any")), Ok(expected.clone()));
    assert_eq!(script.answer_request(&request), Ok(expected));
}

#[test]
fn the_first_rule_that_applies_decides_and_none_is_silence() {
    let script = "[[rule]]\nuser = 'a'\nsay = '1'\n[[rule]]\nuser = 'b'\nsay = '2'\n";
    let script = Script::parse(script).unwrap();
    let say = |text: &str| script.answer_request(&request(&[user(text)])).unwrap();
    assert_eq!(say("ab").text.as_deref(), Some("1"));
    assert_eq!(say("b").text.as_deref(), Some("2"));
    let silent = say("c");
    assert_eq!((silent.text, silent.tool_calls, silent.finish), (None, vec![], Finish::Stop));
}

#[test]
fn failures_are_played_and_the_context_has_an_end() {
    let classes = ["retry", "context", "authentication", "quota", "refused", "malformed"];
    for class in classes {
        let script = Script::parse(&format!("[[rule]]\nerror = '{class}'\n")).unwrap();
        assert_eq!(script.answer_request(&request(&[])).unwrap_err().class(), class);
    }
    let asked = request(&[user("a few words")]);
    let limited = |tokens: u64| {
        let script = Script::parse(&format!("context_tokens = {tokens}")).unwrap();
        script.answer_request(&asked).map(|answer| answer.usage.input_tokens)
    };
    assert_eq!(limited(asked.tokens()), Ok(asked.tokens()));
    assert_eq!(limited(asked.tokens() - 1), Err(ModelError::Context));
    let script = Script::parse("").unwrap();
    assert_eq!(script.answer(b"nonsense").unwrap_err().class(), "malformed");
    assert_eq!(script.answer(br#"{"messages":[{"role":"x"}]}"#).unwrap_err().class(), "malformed");
}

#[test]
fn mistakes_are_named_with_their_line() {
    let mistake = |text: &str| {
        let ScriptError { line, what } = Script::parse(text).unwrap_err();
        format!("{line}: {what}")
    };
    let starts = |text: &str, expected: &str| {
        let mistake = mistake(text);
        assert!(mistake.starts_with(expected), "{mistake}");
    };
    starts("\n[[rule]]\nusr = 'a'\n", "3: unknown field `usr`");
    starts("\n\n[[rule]]\nlast = 'model'\n", "4: unknown variant `model`");
    starts("[[rule]]\nsay = 'x'\n\n[[rule]]\nsay = 'y'\nuser = '('\n", "6: user is no pattern");
    starts("[[rule]]\nsay = 'x'\ntool = { name = 'a', result = '[' }\n", "3: tool is no pattern");
    starts(
        "[[rule]]\nsay = 'x'\nnot_called = { tool = 'a', arguments = ')' }\n",
        "3: not_called is",
    );
    starts("[[rule]]\n\nsay = '$price'\n", "3: nothing captures price");
    starts(
        "[[rule]]\ncall = [{ tool = 'a', arguments = { b = ['$c'] } }]",
        "2: nothing captures c",
    );
    starts("[[rule]]\nsay = ''\ncompare = ['price < 1']", "3: nothing captures price");
    starts("[[rule]]\nsay = ''\ncompare = ['price is 1']", "3: \"price is 1\" is no comparison");
    starts("[[rule]]\nsay = ''\nerror = 'retry'", "3: a rule with error");
    starts("[[rule]]\nsay = ''\n[[rule]]\nlast = 'user'\n", "3: the rule does nothing");
    starts("[[rule]]\ncall = [{ tool = 'a', arguments = 'b' }]", "2: the arguments of a");
    starts("[[rule]]\nsay = 1\n", "2: invalid type");
    starts("[[rule\n", "1: ");
}

#[test]
fn the_model_counts_the_prefix_it_saw_last_as_cached() {
    let model = ScriptedModel::new(Script::parse("").unwrap(), Prices::default());
    let run = feed_run();
    let cached =
        |messages: &[Message]| model.answer(&request(messages)).unwrap().usage.cached_tokens;
    assert_eq!(cached(&run[..5]), 0);
    assert_eq!(cached(&run), request(&run[..5]).tokens());
    let mut other = run.clone();
    other[1] = user("changed");
    assert_eq!(cached(&other), request(&run[..1]).tokens());
    assert_eq!(cached(&other), request(&other).tokens());
}
