//! What a model asks for by a tool call, read strictly; a mistake says what to do next.

use base::{DutyId, Timestamp, WaitId};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::tools::BUILT_IN;

/// A well-formed wish of the model. Nothing has happened yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Intent {
    /// Say something to the person.
    SendToUser {
        /// What.
        text: String,
    },
    /// End without a word.
    FinishQuietly {
        /// Why.
        reason: String,
    },
    /// Say whether the messages of this turn ask to stop.
    SettleMessage {
        /// Whether they do.
        stop: bool,
        /// Which duty is meant; `None`: everything.
        duty: Option<DutyId>,
    },
    /// Write down where a matter stands.
    NoteSituation {
        /// What the model says of it.
        note: SituationNote,
    },
    /// Draft a routine. The draft is checked where zone and time are known.
    ProposeRoutine {
        /// The arguments as the model wrote them.
        draft: String,
    },
    /// Draft a duty. The draft is checked where zone and time are known.
    ProposeDuty {
        /// The arguments as the model wrote them.
        draft: String,
    },
    /// Draft a closing.
    ProposeClose {
        /// Which duty.
        duty: DutyId,
        /// What shows that it is done.
        reason: String,
    },
    /// Register a wait.
    RegisterWait {
        /// What kind of event.
        kind: String,
        /// Which.
        key: String,
        /// When at the latest.
        due_at: Timestamp,
    },
    /// Withdraw a wait.
    CancelWait {
        /// Which.
        wait: WaitId,
    },
    /// Read records.
    ReadRecords {
        /// Which.
        what: Records,
    },
    /// Look up a tool.
    ToolSchema {
        /// Its name.
        name: String,
    },
    /// Call a connector's tool.
    CallTool {
        /// Its name.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
        /// Why no cheaper way serves, in the model's words.
        why: Option<String>,
    },
}

/// A judgement of where a matter stands (PRO-02).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SituationNote {
    /// What it is about.
    pub matter: String,
    /// The event that shows it.
    #[serde(default)]
    pub event: Option<String>,
    /// Where it stands.
    pub stands: domain::situation::Stands,
    /// The user's part in it.
    pub part: domain::situation::Part,
    /// Who has taken it on.
    #[serde(default)]
    pub taken_on_by: Option<String>,
    /// Which step is wanted.
    pub step: domain::situation::Step,
    /// When to look again.
    pub due_at: String,
    /// The kind of event that would answer it.
    #[serde(default)]
    pub wait_kind: Option<String>,
    /// Its key.
    #[serde(default)]
    pub wait_key: Option<String>,
}

/// What `read_records` can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Records {
    /// Duties and where they stand.
    Duties,
    /// Open waits.
    Waits,
    /// Schedules.
    Schedules,
    /// Ways in that the person set up.
    Sources,
    /// Where matters stand.
    Situations,
    /// The last messages.
    Messages,
    /// Tokens and money.
    Spending,
}

/// A call that cannot be understood. The text is the tool's result: it tells the model how to go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// No such tool.
    #[error("There is no tool \"{0}\". Built-in tools: {list}. Use call_tool for tools of connectors.", list = BUILT_IN.join(", "))]
    Unknown(String),
    /// The arguments do not fit.
    #[error(
        "The arguments of {tool} do not fit: {why}. Call tool_schema with name \"{tool}\" to see them, then call again."
    )]
    Arguments {
        /// Of which tool.
        tool: String,
        /// What is wrong.
        why: String,
    },
}

const TEXT_MAX: usize = 4_000;
const KEY_MAX: usize = 200;
const WHY_MAX: usize = 300;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    text: String,
}
#[derive(Deserialize)]
struct Reason {
    #[serde(default)]
    reason: String,
}
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Close {
    duty: String,
    reason: String,
}
#[derive(Deserialize)]
struct Settle {
    stop: bool,
    #[serde(default)]
    duty: Option<String>,
}
#[derive(Deserialize)]
struct Await {
    kind: String,
    key: String,
    due_at: String,
}
#[derive(Deserialize)]
struct Which {
    wait: String,
}
#[derive(Deserialize)]
struct What {
    what: Records,
}
#[derive(Deserialize)]
struct Name {
    name: String,
}
#[derive(Deserialize)]
struct Outer {
    name: String,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default)]
    why: Option<String>,
}

impl Intent {
    /// Reads a tool call.
    pub fn read(tool: &str, arguments: &str) -> Result<Intent, Mistake> {
        let bad = |why: String| Mistake::Arguments {
            tool: tool.chars().take(80).collect(),
            why: why.chars().take(200).collect(),
        };
        // Some models write nothing at all for a tool without required arguments.
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        match tool {
            "send_to_user" => {
                let text = parse::<Text>(arguments).map_err(bad)?.text;
                let text = text.trim().to_owned();
                match text.chars().count() {
                    1..=TEXT_MAX => Ok(Intent::SendToUser { text }),
                    _ => Err(bad(format!("text must have between 1 and {TEXT_MAX} characters"))),
                }
            }
            "finish_quietly" => {
                let reason = parse::<Reason>(arguments).map_err(bad)?.reason;
                Ok(Intent::FinishQuietly { reason })
            }
            "settle_message" => {
                let Settle { stop, duty } = parse(arguments).map_err(bad)?;
                let duty = duty.filter(|duty| !duty.trim().is_empty());
                let duty = duty.map(|id| id.parse().map_err(|e: base::IdError| bad(e.to_string())));
                Ok(Intent::SettleMessage { stop, duty: duty.transpose()? })
            }
            "note_situation" => {
                let note: SituationNote = parse(arguments).map_err(bad)?;
                for text in [Some(&note.matter), note.taken_on_by.as_ref()].into_iter().flatten() {
                    if text.trim().is_empty() || text.chars().count() > KEY_MAX {
                        return Err(bad(format!("a text has 1 to {KEY_MAX} characters")));
                    }
                }
                Ok(Intent::NoteSituation { note })
            }
            "propose_routine" => Ok(Intent::ProposeRoutine { draft: arguments.to_owned() }),
            "propose_duty" => Ok(Intent::ProposeDuty { draft: arguments.to_owned() }),
            "propose_close" => {
                let Close { duty, reason } = parse(arguments).map_err(bad)?;
                let duty = duty.parse().map_err(|e: base::IdError| bad(e.to_string()))?;
                let reason = reason.chars().take(TEXT_MAX).collect();
                Ok(Intent::ProposeClose { duty, reason })
            }
            "register_wait" => {
                let Await { kind, key, due_at } = parse(arguments).map_err(bad)?;
                for (name, value) in [("kind", &kind), ("key", &key)] {
                    if value.is_empty() || value.len() > KEY_MAX {
                        return Err(bad(format!("{name} must have between 1 and {KEY_MAX} bytes")));
                    }
                }
                let due_at = Timestamp::parse(&due_at).map_err(|e| bad(e.to_string()))?;
                Ok(Intent::RegisterWait { kind, key, due_at })
            }
            "cancel_wait" => {
                let which = parse::<Which>(arguments).map_err(bad)?.wait;
                let wait = which.parse().map_err(|e: base::IdError| bad(e.to_string()))?;
                Ok(Intent::CancelWait { wait })
            }
            "read_records" => {
                Ok(Intent::ReadRecords { what: parse::<What>(arguments).map_err(bad)?.what })
            }
            "tool_schema" => {
                Ok(Intent::ToolSchema { name: parse::<Name>(arguments).map_err(bad)?.name })
            }
            "call_tool" => {
                let Outer { name, arguments, why } = parse(arguments).map_err(bad)?;
                let arguments = object(arguments).map_err(bad)?;
                let why = why.map(|why| why.chars().take(WHY_MAX).collect());
                Ok(Intent::CallTool { name, arguments, why })
            }
            other => Err(Mistake::Unknown(other.chars().take(80).collect())),
        }
    }
}

/// Arguments as an object; a model that serialised them once more is understood.
fn object(value: Option<Value>) -> Result<Map<String, Value>, String> {
    match value {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map),
        Some(Value::String(text)) => parse(&text),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            Err("arguments must be an object".into())
        }
    }
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_strictly_and_mistakes_say_how_to_go_on() {
        let read = |tool: &str, arguments: &str| {
            Intent::read(tool, arguments).map_err(|mistake| mistake.to_string())
        };
        assert_eq!(
            read("send_to_user", r#"{"text":" hi "}"#),
            Ok(Intent::SendToUser { text: "hi".into() })
        );
        assert_eq!(read("finish_quietly", ""), Ok(Intent::FinishQuietly { reason: "".into() }));
        let nested = read("call_tool", r#"{"name":"feed.price","arguments":"{\"date\":\"d\"}"}"#);
        let plain = read("call_tool", r#"{"name":"feed.price","arguments":{"date":"d"}}"#);
        assert!(nested.is_ok() && nested == plain);
        assert!(read("send_to_user", r#"{"text":""}"#).unwrap_err().contains("between 1 and 4000"));
        assert!(
            read("book_hotel", "{}").unwrap_err().starts_with("There is no tool \"book_hotel\"")
        );
        assert_eq!(
            read("register_wait", r#"{"kind":"timer","key":"k","due_at":"soon"}"#),
            Err("The arguments of register_wait do not fit: \"soon\" is no time; write it as \
                 2026-11-30T08:00:00Z. Call tool_schema with name \"register_wait\" to see them, \
                 then call again."
                .into())
        );
        assert!(read("cancel_wait", "{not json").is_err());
    }
}
