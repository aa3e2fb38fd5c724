//! The judge holds good histories for good, and finds the one thing that is wrong with a bad one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use sim::{crash, judge, stories};

fn history(name: &str) -> Vec<Value> {
    let story = stories::all().into_iter().find(|story| story.name == name).unwrap();
    let (ran, failure) = crash::one(&story, 1, &[], false, None);
    assert_eq!(failure, None);
    let text = ran.unwrap().history.text();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rules that the judge finds broken.
fn broken(lines: &[Value]) -> Vec<String> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let verdict = judge::text(&text).unwrap();
    let first = verdict["first"].as_array().unwrap_or_else(|| panic!("{verdict}"));
    let mut rules: Vec<String> =
        first.iter().map(|breach| breach["rule"].as_str().unwrap().to_owned()).collect();
    rules.dedup();
    rules
}

/// The first line that has all these fields.
fn find(lines: &mut [Value], like: Value) -> &mut Value {
    let fits =
        |line: &Value| like.as_object().unwrap().iter().all(|(name, value)| &line[name] == value);
    lines.iter_mut().find(|line| fits(line)).unwrap_or_else(|| panic!("no line like {like}"))
}

/// Spoils a good history of a story and names the rule that must be found broken.
fn check(story: &str, rule: &str, spoil: impl FnOnce(&mut Vec<Value>)) {
    let mut lines = history(story);
    assert_eq!(broken(&lines), [""; 0], "{story} is good");
    spoil(&mut lines);
    let rules = broken(&lines);
    assert!(rules.iter().any(|found| found == rule), "{rule} is not among {rules:?}");
}

#[test]
fn an_input_that_is_lost_or_left() {
    check("burst", "acknowledged_input_is_handled", |lines| {
        let ack = find(lines, json!({"t": "ack"}))["event"].clone();
        lines.retain(|line| line["noun"] != "event" || line["id"] != ack);
    });
    check("burst", "acknowledged_input_is_handled", |lines| {
        find(lines, json!({"noun": "event"}))["item"]["state"] = json!("pending");
    });
    check("poison", "acknowledged_input_is_handled", |lines| {
        lines.retain(|line| {
            line["noun"] != "message" || !line["text"].as_str().unwrap().contains("gave up")
        });
    });
}

#[test]
fn an_event_on_record_twice() {
    check("burst", "sources_name_an_event_once", |lines| {
        let twin = find(lines, json!({"noun": "event"})).clone();
        lines.insert(lines.len() - 1, twin);
    });
}

#[test]
fn a_step_asked_again() {
    check("burst", "no_journaled_step_is_asked_again", |lines| {
        let at = lines.iter().position(|line| line["t"] == "answer").unwrap();
        let (ask, mut answer) = (lines[at - 1].clone(), lines[at].clone());
        assert_eq!(ask["t"], "ask");
        answer["answer"] = json!("another");
        lines.splice(at + 4..at + 4, [ask, answer]);
    });
}

#[test]
fn two_runs_at_once() {
    check("waits", "one_run_at_a_time", |lines| {
        let session = find(lines, json!({"noun": "run", "n": 1}))["session"].clone();
        let start = find(lines, json!({"noun": "run", "n": 1}))["started"].as_i64().unwrap();
        find(lines, json!({"noun": "run", "n": 0, "session": session}))["ended"] = json!(start + 1);
    });
}

#[test]
fn an_old_fence_that_commits() {
    check("waits", "fences_grow_and_hold", |lines| {
        let last = lines.iter_mut().rfind(|line| line["t"] == "record").unwrap();
        last["fence"] = json!(1);
    });
    check("waits", "fences_grow_and_hold", |lines| {
        let last = lines.iter_mut().rfind(|line| line["t"] == "claim").unwrap();
        last["fence"] = json!(1);
    });
}

#[test]
fn a_gap_in_the_changes() {
    check("burst", "changes_have_no_gaps", |lines| {
        find(lines, json!({"noun": "changes"}))["seqs"].as_array_mut().unwrap().remove(3);
    });
}

#[test]
fn an_audit_entry_that_was_edited() {
    check("days", "the_audit_chain_is_whole", |lines| {
        find(lines, json!({"noun": "audit", "n": 2}))["verb"] = json!("declined");
    });
}

#[test]
fn a_wait_that_wakes_after_its_end() {
    check("waits", "waits_end_once", |lines| {
        find(lines, json!({"noun": "wait", "state": "timed_out"}))["state"] = json!("cancelled");
    });
}

#[test]
fn a_slot_that_fires_never_or_unmarked() {
    check("watch", "each_slot_fires_once", |lines| {
        let slot = find(lines, json!({"kind": "schedule_due"}))["id"].clone();
        lines.retain(|line| line["id"] != slot);
    });
    check("down", "each_slot_fires_once", |lines| {
        find(lines, json!({"kind": "schedule_due", "late": true}))["late"] = json!(false);
    });
}

#[test]
fn a_message_twice_or_lost() {
    check("days", "no_message_twice_none_lost", |lines| {
        let twin = find(lines, json!({"noun": "message", "kind": "agent"})).clone();
        lines.insert(lines.len() - 1, twin);
    });
    check("days", "no_message_twice_none_lost", |lines| {
        let id = find(lines, json!({"noun": "message", "kind": "agent"}))["id"].clone();
        lines.retain(|line| line["id"] != id);
    });
}

#[test]
fn a_run_of_a_stopped_duty() {
    check("stop", "nothing_runs_while_stopped", |lines| {
        let stop = find(lines, json!({"t": "stop"}));
        let (duty, at) = (stop["duty"].clone(), stop["at"].as_i64().unwrap());
        let last = lines.iter_mut().rfind(|line| line["noun"] == "run" && line["duty"] == duty);
        last.unwrap()["started"] = json!(at + 1_000_000);
    });
}

#[test]
fn a_prefix_without_a_cause() {
    check("burst", "prefixes_change_for_a_cause", |lines| {
        let session = find(lines, json!({"noun": "session", "kind": "main"}));
        session["prefixes"][0]["cause"] = json!("unexplained");
    });
}

#[test]
fn a_run_left_open() {
    check("burst", "what_is_open_belongs_to_a_person", |lines| {
        find(lines, json!({"noun": "run", "state": "completed"}))["state"] = json!("lost");
    });
}

#[test]
fn a_delivery_lost_or_twice() {
    check("typhoon", "what_was_delivered_is_one_event", |lines| {
        lines.retain(|line| line["noun"] != "event" || line["external"] != "f1");
    });
    check("typhoon", "what_was_delivered_is_one_event", |lines| {
        let twin = find(lines, json!({"noun": "event", "external": "f1"})).clone();
        lines.insert(lines.len() - 1, twin);
        let last = lines.len() - 2;
        lines[last]["id"] = json!("another");
    });
}

#[test]
fn a_letter_that_counts_as_the_users() {
    for (field, value) in [("trust", "user"), ("trust", "system")] {
        check("shout", "classes_come_from_the_ingress", |lines| {
            find(lines, json!({"noun": "event", "kind": "file"}))[field] = json!(value);
        });
    }
    for class in ["user", "timer"] {
        check("shout", "classes_come_from_the_ingress", |lines| {
            find(lines, json!({"noun": "event", "kind": "file"}))["item"]["class"] = json!(class);
        });
    }
}

#[test]
fn a_run_that_reads_what_concerns_it_not() {
    check("callbacks", "nothing_wakes_without_a_reason", |lines| {
        find(lines, json!({"noun": "event", "external": "d"}))["item"]["delivered"] = json!(1);
    });
    check("callbacks", "nothing_wakes_without_a_reason", |lines| {
        let late = find(lines, json!({"noun": "event", "external": "d"}))["id"].clone();
        find(lines, json!({"noun": "link", "how": "wait"}))["event"] = late;
    });
    check("attribution", "nothing_wakes_without_a_reason", |lines| {
        let all = find(lines, json!({"noun": "attribution", "answer": "1, 3"}));
        all["chosen"] = json!([all["candidates"][0]]);
    });
    check("attribution", "nothing_wakes_without_a_reason", |lines| {
        find(lines, json!({"noun": "attribution", "answer": "1"}))["chosen"] = json!(["another"]);
    });
}

#[test]
fn a_hold_that_falls_by_itself() {
    let policy = |lines: &mut Vec<Value>| {
        find(lines, json!({"noun": "principal", "kind": "policy"}))["id"].clone()
    };
    check("hold", "holds_end_by_a_verdict_or_the_user", |lines| {
        find(lines, json!({"noun": "hold", "state": "released"}))["by"] = Value::Null;
    });
    check("hold", "holds_end_by_a_verdict_or_the_user", |lines| {
        find(lines, json!({"noun": "hold", "state": "released"}))["verdict"] = Value::Null;
    });
    check("hold", "holds_end_by_a_verdict_or_the_user", |lines| {
        find(lines, json!({"noun": "hold", "state": "released"}))["moved"] = json!(1);
    });
    check("hold", "holds_end_by_a_verdict_or_the_user", |lines| {
        // The model's word alone, against the words of the message.
        let by = policy(lines);
        let asked =
            lines.iter_mut().find(|line| line["noun"] == "hold" && !line["asked"].is_null());
        let asked = asked.unwrap();
        (asked["by"], asked["moved"]) = (by, asked["asked"].clone());
    });
    check("hold", "holds_end_by_a_verdict_or_the_user", |lines| {
        lines.retain(|line| line["t"] != "release");
    });
    check("hold", "holds_end_by_a_verdict_or_the_user", |lines| {
        lines.retain(|line| line["noun"] != "hold" || line["state"] != "promoted");
    });
}

#[test]
fn a_hold_that_is_judged_by_a_run_that_has_not_read_it() {
    check("hold", "holds_end_by_a_verdict_or_the_user", |lines| {
        let hold = find(lines, json!({"noun": "hold", "state": "promoted"}))["event"].clone();
        let id = hold.as_str().unwrap().to_owned();
        for line in lines.iter_mut().filter(|line| line["kind"] == "tail") {
            let text = line["text"].as_str().unwrap().replace(&id, "another");
            line["text"] = json!(text);
        }
    });
}

#[test]
fn control_that_nobody_wrote() {
    check("hold", "control_is_written_by_user_or_policy", |lines| {
        lines.retain(|line| line["t"] != "lift");
    });
    check("hold", "control_is_written_by_user_or_policy", |lines| {
        find(lines, json!({"noun": "audit", "of": "pause"}))["by"] = Value::Null;
    });
    check("hold", "control_is_written_by_user_or_policy", |lines| {
        find(lines, json!({"noun": "hold", "state": "promoted"}))["verdict"] = json!("not_a_stop");
    });
    check("shout", "control_is_written_by_user_or_policy", |lines| {
        lines.retain(|line| line["t"] != "source");
    });
}

#[test]
fn a_look_that_is_not_taken_or_not_told() {
    check("routine", "each_slot_fires_once", |lines| {
        let slot = find(lines, json!({"noun": "check", "state": "unchanged"}))["id"].clone();
        lines.retain(|line| line["id"] != slot);
    });
    check("routine", "each_slot_fires_once", |lines| {
        find(lines, json!({"noun": "check", "state": "met"}))["state"] = json!("unchanged");
    });
    check("routine", "each_slot_fires_once", |lines| {
        find(lines, json!({"noun": "check", "late": true}))["late"] = json!(false);
    });
    check("routine", "each_slot_fires_once", |lines| {
        find(lines, json!({"noun": "check", "missed": 1}))["missed"] = json!(0);
    });
    // A slot is let go only while nobody is there.
    check("routine", "each_slot_fires_once", |lines| lines.retain(|line| line["t"] != "crash"));
}

#[test]
fn a_request_that_no_attempt_covers() {
    let rule = "nothing_leaves_without_its_attempt";
    check("hotel", rule, |lines| lines.retain(|line| line["noun"] != "attempt"));
    check("hotel", rule, |lines| {
        find(lines, json!({"noun": "reached"}))["arguments"]["guest"] = json!("Bob");
    });
    check("hotel", rule, |lines| {
        find(lines, json!({"noun": "reached"}))["when"] = json!(0);
    });
    check("hotel", rule, |lines| {
        let again = find(lines, json!({"noun": "reached"})).clone();
        lines.insert(lines.len() - 1, again);
    });
}

#[test]
fn an_attempt_that_nobody_released() {
    let rule = "nothing_is_sent_unreleased";
    check("hotel", rule, |lines| lines.retain(|line| line["noun"] != "approval"));
    check("hotel", rule, |lines| {
        find(lines, json!({"noun": "approval"}))["digest"] = json!("00");
    });
    check("hotel", rule, |lines| lines.retain(|line| line["noun"] != "grant"));
    check("hotel", rule, |lines| {
        find(lines, json!({"noun": "grant"}))["each"] = json!(1);
    });
    check("hotel_card", rule, |lines| lines.retain(|line| line["t"] != "tap"));
    check("hotel_card", "grants_are_never_exceeded", |lines| {
        let grant = json!({
            "t": "row", "noun": "grant", "id": "g", "reserved": 1, "reserved_minor": 0, "spent": 0,
            "spent_minor": 0, "times": 1, "total": 1,
        });
        lines.insert(lines.len() - 1, grant);
    });
}

#[test]
fn an_attempt_in_the_face_of_a_stop() {
    check("hotel", "a_stop_wins_from_its_commit", |lines| {
        let pause = json!({
            "t": "row", "noun": "pause", "id": "p", "duty": null, "state": "active", "seqs": [1, 1],
            "placed_by": "u", "lifted_by": null,
        });
        lines.insert(lines.len() - 1, pause);
    });
    check("hotel", "a_stop_wins_from_its_commit", |lines| {
        let action = find(lines, json!({"noun": "action"}))["id"].clone();
        let back = json!({
            "t": "tapped", "at": 0, "what": "withdraw", "action": action, "conflict": null,
        });
        lines.insert(1, back);
    });
}

#[test]
fn a_booking_twice_and_one_that_is_not_there() {
    check("hotel", "an_errand_is_done_once", |lines| {
        let again = find(lines, json!({"noun": "booking"})).clone();
        lines.insert(lines.len() - 1, again);
    });
    let rule = "in_force_is_what_was_found";
    check("hotel", rule, |lines| lines.retain(|line| line["noun"] != "booking"));
    check("hotel", rule, |lines| lines.retain(|line| line["noun"] != "looked"));
    check("hotel", rule, |lines| {
        find(lines, json!({"noun": "action"}))["state"] = json!("blocked");
    });
    check("hotel", rule, |lines| {
        find(lines, json!({"noun": "action"}))["state"] = json!("unknown");
    });
}
