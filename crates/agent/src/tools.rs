//! The tools that every request offers. The array is constant, so that it never breaks a prefix; the
//! tools of connectors are known by name and looked up when wanted.

use std::sync::OnceLock;

use model::Block;
use serde_json::{Value, json};

/// The names of the built-in tools, in the order they are offered.
pub const BUILT_IN: [&str; 12] = [
    "send_to_user",
    "finish_quietly",
    "settle_message",
    "note_situation",
    "propose_duty",
    "propose_routine",
    "propose_close",
    "register_wait",
    "cancel_wait",
    "read_records",
    "tool_schema",
    "call_tool",
];

/// The serialised array of tool definitions.
pub fn definitions() -> Block {
    static ARRAY: OnceLock<Block> = OnceLock::new();
    ARRAY
        .get_or_init(|| {
            let tools: Vec<Value> = BUILT_IN.iter().map(|name| definition(name)).collect();
            Block::from_stored(Value::Array(tools).to_string())
        })
        .clone()
}

/// The definition of a built-in tool as text, for `tool_schema`.
pub fn schema_of(name: &str) -> Option<String> {
    BUILT_IN.contains(&name).then(|| definition(name)["function"].to_string())
}

fn definition(name: &str) -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let (description, properties, required): (&str, Value, &[&str]) = match name {
        "send_to_user" => (
            "Say something to the person. The only way to reach them. Use it rarely.",
            json!({"text": text("What to say, at most 4000 characters.")}),
            &["text"],
        ),
        "finish_quietly" => (
            "End this turn without a word. The normal ending.",
            json!({"reason": text("Why nothing needs saying, for the record.")}),
            &["reason"],
        ),
        "settle_message" => (
            "Say whether the person's messages of this turn ask you to stop or not to do something yet. \
             Until then nothing is done outside. Call it once in every turn that has such a message.",
            json!({
                "stop": {"type": "boolean",
                    "description": "true if anything in them says stop, wait, not yet, or cancel."},
                "duty": text("The one duty that is meant, by its id; leave out for everything."),
            }),
            &["stop"],
        ),
        "note_situation" => (
            "Write down where a matter stands, so that it is followed up in time. Taken on is not done; \
             noted is not agreed.",
            situation_properties(),
            &["matter", "stands", "part", "step", "due_at"],
        ),
        "propose_routine" => (
            "Draft a routine for the person to confirm: a prompt at set times. Without a condition \
             that ends it.",
            json!({
                "name": text("A few words, such as morning brief."),
                "prompt": text("What to do each time."),
                "when": text("As weekdays 8:00, every friday 9:00, monthly 1 09:00, or cron 0 8 * * 1-5."),
                "run_missed": {"type": "string", "enum": ["once", "skip"]},
                "check": check_schema(),
                "until": text("Optional end, as 2026-12-31T00:00:00Z."),
            }),
            &["name", "prompt", "when"],
        ),
        "propose_duty" => (
            "Draft a duty for the person to confirm. It is not in force before they do.",
            propose_duty_properties(),
            &["title", "goal", "conditions"],
        ),
        "propose_close" => (
            "Say that a duty is done. The person decides.",
            json!({"duty": text("The duty's id."), "reason": text("What shows that it is done.")}),
            &["duty", "reason"],
        ),
        "register_wait" => (
            "Wait for an event, or until a time: you are woken once, by whichever comes first.",
            json!({
                "kind": text("What kind of event: timer, proposal_decided, webhook, file, feed_entry or \
                              page_changed."),
                "key": text("Which one: a proposal's id; SOURCE:KEY for what comes through a source, as \
                             shop:order-17; any word for a timer."),
                "due_at": text("When to wake in any case, as 2026-11-30T08:00:00Z."),
            }),
            &["kind", "key", "due_at"],
        ),
        "cancel_wait" => (
            "Stop waiting for something that no longer matters.",
            json!({"wait": text("The wait's id.")}),
            &["wait"],
        ),
        "read_records" => (
            "Read what is on record: the facts about duties, waits, schedules, messages and cost.",
            json!({"what": {"type": "string",
                "enum": ["duties", "waits", "schedules", "sources", "situations", "messages",
                    "spending"]}}),
            &["what"],
        ),
        "tool_schema" => (
            "Look up how a connector's tool is called, before its first use.",
            json!({"name": text("The tool's full name, as listed.")}),
            &["name"],
        ),
        _ => (
            "Call a connector's tool. One with an effect becomes an action: it is released within the \
             person's grants or by the person, and you are woken with what came of it.",
            json!({
                "name": text("The tool's full name, as listed."),
                "arguments": {"type": "object", "description": "As its schema says."},
                "why": text("For web tools: why no record and no connector serves."),
            }),
            &["name", "arguments"],
        ),
    };
    json!({"type": "function", "function": {
        "name": name, "description": description,
        "parameters": {"type": "object", "properties": properties, "required": required},
    }})
}

fn propose_duty_properties() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "title": text("A few words, at most 80 characters."),
        "goal": text("What the person wants, in their own terms."),
        "conditions": {"type": "array", "minItems": 1, "items": {
            "type": "object",
            "properties": {
                "text": text("What must be true for it to be done."),
                "evidence": text("What shows it, such as receipt or statement."),
                "authority": text("Whose word counts, such as user or airline."),
            },
            "required": ["text", "evidence", "authority"],
        }},
        "schedules": {"type": "array", "items": {
            "type": "object",
            "properties": {
                "when": text("As in propose_routine; in the person's zone."),
                "prompt": text("What to do then."),
                "run_missed": {"type": "string", "enum": ["once", "skip"]},
                "check": {"type": "object", "description": "Optional; as in propose_routine."},
            },
            "required": ["when", "prompt"],
        }},
        "subscriptions": {"type": "array", "items": {
            "type": "object",
            "properties": {
                "source": text("Name of a source, as read_records shows them."),
                "topic": text("Optional: exact, or a prefix such as issues.*"),
                "mode": {"type": "string", "enum": ["wake", "background"]},
                "prompt": text("What to do with what comes."),
            },
            "required": ["source", "prompt"],
        }},
        "grants": {"type": "array", "description": "What may be done outside without asking again. \
            Leave out: everything asks.", "items": {
            "type": "object",
            "properties": {
                "tool": text("Full name of a tool with an effect."),
                "times": {"type": "integer"},
                "currency": text("As HKD."),
                "each": text("At most so much at once, as 3000.00."),
                "total": text("At most so much in all."),
                "to": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["tool", "times"],
        }},
        "until": text("Optional end, as 2026-12-31T00:00:00Z."),
    })
}

/// A look that a program takes before anybody is woken.
fn check_schema() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "type": "object",
        "description": "Optional: a read that a program makes first; you are woken only if it holds.",
        "properties": {
            "tool": text("Full name of a tool that only reads."),
            "arguments": {"type": "object"},
            "path": text("Dotted path in its JSON answer; leave out for the whole text."),
            "when": {"type": "string", "enum": ["changed", "below", "above", "contains"]},
            "value": text("What it is compared with; not for changed."),
        },
        "required": ["tool", "when"],
    })
}

fn situation_properties() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "matter": text("What it is about, in a few words."),
        "event": text("The event or message that shows it, by its id."),
        "stands": {"type": "string", "enum": domain::situation::STANDS},
        "part": {"type": "string", "enum": domain::situation::PARTS},
        "taken_on_by": text("Who has taken it on, if somebody has."),
        "step": {"type": "string", "enum": domain::situation::STEPS},
        "due_at": text("When to look again if nothing comes, as 2026-11-30T08:00:00Z."),
        "wait_kind": text("Optional: the kind of event that would answer it."),
        "wait_key": text("Optional: its key."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_array_is_constant_and_small() {
        assert_eq!(definitions().bytes, definitions().bytes);
        assert!(definitions().tokens < 3_100, "{} tokens", definitions().tokens);
        let parsed: Vec<Value> = serde_json::from_str(&definitions().bytes).unwrap();
        let names: Vec<&str> =
            parsed.iter().map(|t| t["function"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, BUILT_IN);
        assert!(schema_of("send_to_user").is_some() && schema_of("feed.price").is_none());
    }
}
