//! Effects (out): what a call would do, the sending of one that was released, and the look for one whose
//! outcome nobody knows (DESIGN section 6).

use std::time::Duration;

use base::{Clock, Digest};
use domain::effect::{Effect, Observation, Sight, Spec};
use domain::words::on_one_line;
use serde_json::{Map, Value};
use store::Permit;

use crate::connectors::Connectors;
use crate::error::ConnectError;
use crate::manifest::{OneOf, ToolRule, duration_ms};
use crate::mcp::Answer;
use crate::objects::{Found, ID_BYTES_MAX, id_of, issued};
use crate::supervise::{Provider, Unanswered};
use crate::text::cut;
use crate::tools::{Issued, Needed, Refusal, ToolAnswer, bounded, object_ids};

/// Characters of an answer that stand in the reason of an unknown outcome.
const SAID_MAX: usize = 300;

/// A call with an effect, not yet an action: somebody has to say whether its ids were issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intended {
    /// What the manifest says of the tool, for whoever freezes the call.
    pub spec: Spec,
    /// The ids that must have been issued to whoever calls; at most 200, each with its kind.
    pub needs: Vec<Needed>,
}

/// What came of one sending.
#[derive(Debug, Clone, PartialEq)]
pub struct Acted {
    /// What was seen.
    pub seen: Observation,
    /// The answer's text, at most [`crate::ConnectLimits::text_bytes_max`] bytes; empty if there was none.
    pub answer: String,
    /// The ids that its manifest entry issues; none without a receipt.
    pub issued: Vec<Issued>,
    /// The connector does not accept our key, in words for people: nobody goes round it (TOOL-08).
    pub refused_key: Option<String>,
}

impl Acted {
    fn unanswered(seen: Observation) -> Self {
        Acted { seen, answer: String::new(), issued: Vec::new(), refused_key: None }
    }

    fn unsent(why: &str) -> Self {
        Acted::unanswered(Observation::NotSent(why.to_owned()))
    }

    fn without_answer(why: Unanswered) -> Self {
        let (seen, error) = match why {
            Unanswered::Late => {
                return Acted::unsent("the moment until which it could be sent had passed");
            }
            Unanswered::Unsent(error) => (Observation::NotSent(error.to_string()), error),
            Unanswered::Sent(error) => (unanswered(&error), error),
        };
        Acted { refused_key: refused_key(Some(&error)), ..Acted::unanswered(seen) }
    }
}

impl Connectors {
    /// Asks what a call with these arguments would do to the world; `None` for a tool that only reads, which
    /// [`Connectors::wanted`] is for, or that nobody knows. One without an entry is known once its schema was
    /// looked up; only a person releases it, whatever its server says of it (R6).
    ///
    /// # Errors
    /// [`Refusal`] for arguments that can not be ids where ids are due; its text says what to do instead.
    pub fn intended(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Option<Result<Intended, Refusal>> {
        let (provider, tool) = self.place(name)?;
        let Some(rule) = provider.manifest().tool(tool) else {
            let Provider::Server(server) = provider else { return None };
            let spec = spec(name, &ToolRule::default(), server.stranger(tool)??);
            return Some(Ok(Intended { spec, needs: Vec::new() }));
        };
        Some(intended(name, rule, self.spec(name)?, arguments))
    }

    /// Asks what a call of a tool that reads would be if it is released because of what it reveals: outward,
    /// and each other call another errand (P5). `None` for every other tool. It is no right to read:
    ///
    /// ```compile_fail,E0308
    /// async fn read(outside: &connect::Connectors, call: connect::Intended) {
    ///     let _ = outside.call(call, std::time::Duration::from_secs(30)).await;
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Refusal`], as for [`Connectors::intended`].
    pub fn revealed(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Option<Result<Intended, Refusal>> {
        let (provider, tool, rule) = self.entry(name)?;
        if rule.effect != Effect::Read || rule.reveals.is_empty() {
            return None;
        }
        let entry = provider.manifest().entry_digest(tool)?;
        let mut rule = rule.clone();
        let is_object =
            |name: &String| arguments.contains_key(name) && !rule.reveals.contains(name);
        rule.objects.retain(|name, _| is_object(name));
        rule.once_per = arguments.keys().cloned().collect();
        let spec = Spec { effect: Effect::Outward, ..spec(name, &rule, entry) };
        Some(intended(name, &rule, spec, arguments))
    }

    /// Whether what was released is still what the manifest says, as far as that is known without asking the
    /// server: what it offers without an entry is looked at again before anything is sent.
    pub fn stands(&self, name: &str, effect: Effect, entry: Digest) -> bool {
        let Some((provider, tool)) = self.place(name) else { return false };
        match (provider.manifest().entry_digest(tool), provider) {
            (Some(now), _) => now == entry,
            (None, Provider::Web(_)) => false,
            (None, Provider::Server(server)) => {
                effect == Effect::Human
                    && server.stranger(tool).is_none_or(|now| now == Some(entry))
            }
        }
    }

    /// What the manifest says now of a tool with an effect.
    pub fn spec(&self, name: &str) -> Option<Spec> {
        let (provider, tool, rule) = self.entry(name)?;
        if rule.effect == Effect::Read {
            return None;
        }
        provider.manifest().entry_digest(tool).map(|entry| spec(name, rule, entry))
    }

    /// Sends what was released, once or not at all, and waits at most `limit` for its answer. Nothing
    /// leaves after the permit's `send_by`, nor if the manifest's entry is no longer the one that was
    /// released, nor if the connector can not be reached (ADM-17, ADM-18). Never an error: what was not
    /// answered is an observation too.
    ///
    /// There is no other way to call a tool with an effect. A permit is used up by it:
    ///
    /// ```compile_fail,E0382
    /// async fn twice(outside: &connect::Connectors, permit: store::Permit, clock: &dyn base::Clock) {
    ///     let limit = std::time::Duration::from_secs(30);
    ///     outside.act(permit, clock, limit).await;
    ///     outside.act(permit, clock, limit).await;
    /// }
    /// ```
    ///
    /// what was only intended is no permit:
    ///
    /// ```compile_fail,E0308
    /// async fn early(outside: &connect::Connectors, call: connect::Intended, clock: &dyn base::Clock) {
    ///     outside.act(call, clock, std::time::Duration::from_secs(30)).await;
    /// }
    /// ```
    ///
    /// nor is the right to read:
    ///
    /// ```compile_fail,E0308
    /// async fn read(outside: &connect::Connectors, tool: connect::ReadTool, clock: &dyn base::Clock) {
    ///     outside.act(tool, clock, std::time::Duration::from_secs(30)).await;
    /// }
    /// ```
    ///
    /// and the arguments are those that were frozen:
    ///
    /// ```compile_fail,E0061
    /// async fn other(outside: &connect::Connectors, permit: store::Permit, clock: &dyn base::Clock) {
    ///     let arguments = serde_json::Map::new();
    ///     outside.act(permit, arguments, clock, std::time::Duration::from_secs(30)).await;
    /// }
    /// ```
    pub async fn act(&self, permit: Permit, clock: &dyn Clock, limit: Duration) -> Acted {
        let Some((provider, tool)) = self.place(permit.tool()) else {
            return Acted::unsent("its connector is not set up any more");
        };
        let in_time = || clock.now() <= permit.send_by();
        let undescribed = ToolRule::default();
        let rule = match (provider.manifest().tool(tool), provider) {
            (Some(_), _) if provider.manifest().entry_digest(tool) != Some(permit.entry()) => {
                return Acted::unsent(
                    "the connector's manifest says something else of this tool now",
                );
            }
            (Some(rule), _) => rule,
            (None, Provider::Server(server)) if permit.effect() == Effect::Human => {
                match server.strangers().await {
                    Err(error) => return Acted::without_answer(Unanswered::Unsent(error)),
                    Ok(_) if server.stranger(tool).flatten() != Some(permit.entry()) => {
                        return Acted::unsent(
                            "no manifest has an entry of this tool, and its server does not offer what was \
                         released",
                        );
                    }
                    Ok(_) => &undescribed,
                }
            }
            (None, Provider::Server(_) | Provider::Web(_)) => {
                return Acted::unsent("no manifest has an entry of this tool any more");
            }
        };
        let arguments = permit.arguments(rule.operation.as_deref());
        if rule.effect == Effect::Read {
            return told(provider.send(tool, arguments, in_time, limit).await);
        }
        let Provider::Server(server) = provider else {
            return Acted::unsent("the built-in connector only reads");
        };
        match server.send(tool, arguments, in_time, limit).await {
            Ok(answer) => Acted {
                refused_key: refused_key(server.refuses_key(&answer).as_ref()),
                ..acted(rule, &answer, self.text_bytes_max())
            },
            Err(why) => Acted::without_answer(why),
        }
    }

    /// Looks for an operation in the outside world by its id, as the tool's manifest entry says, and waits
    /// at most `limit`. The look only reads (ADM-23).
    pub async fn find(&self, name: &str, operation_id: &str, limit: Duration) -> Sight {
        let unreadable = |why: &str| Sight::Unreadable(why.to_owned());
        let Some((provider, _, rule)) = self.entry(name) else {
            return unreadable("no manifest has an entry of this tool any more");
        };
        let (Some(look), Provider::Server(server)) = (&rule.reconcile, provider) else {
            return unreadable("the tool's manifest entry names no way to look it up");
        };
        let Some(receipt) = look.receipt.as_ref().or(rule.receipt.as_ref()) else {
            return unreadable("the tool's manifest entry does not say where a receipt stands");
        };
        let by = Map::from_iter([(look.by.clone(), Value::String(operation_id.to_owned()))]);
        match server.ask(&look.tool, by, limit).await {
            Ok(answer) if answer.is_error() => {
                Sight::Unreadable(cut(answer.text(), self.text_bytes_max()))
            }
            Ok(answer) => sight(receipt, look.ended.as_ref(), answer.data().as_ref()),
            Err(error) => Sight::Unreadable(error.to_string()),
        }
    }
}

fn intended(
    name: &str,
    rule: &ToolRule,
    spec: Spec,
    arguments: &Map<String, Value>,
) -> Result<Intended, Refusal> {
    let needs = object_ids(name, rule, arguments)?;
    bounded(name, &needs).map(|()| Intended { spec, needs })
}

/// What a connector's refusal of our key is called.
fn refused_key(error: Option<&ConnectError>) -> Option<String> {
    error.filter(|e| matches!(e, ConnectError::Authentication { .. })).map(ConnectError::to_string)
}

/// What came of a read that revealed something: whatever was answered, it is told.
fn told(result: Result<ToolAnswer, Unanswered>) -> Acted {
    match result {
        Ok(ToolAnswer { text, is_error, issued, .. }) => {
            let answer = if is_error { format!("The tool failed: {text}") } else { text };
            Acted { answer, issued, ..Acted::unanswered(Observation::Answered) }
        }
        Err(Unanswered::Sent(error)) if matches!(unanswered(&error), Observation::Other(_)) => {
            Acted {
                answer: error.to_string(),
                refused_key: refused_key(Some(&error)),
                ..Acted::unanswered(Observation::Answered)
            }
        }
        Err(why) => Acted::without_answer(why),
    }
}

fn spec(name: &str, rule: &ToolRule, entry: Digest) -> Spec {
    // The manifest was checked when it was read; a promise that is none is not relied on.
    let ms = |text: &String| duration_ms(text).ok();
    let look = rule.reconcile.as_ref();
    Spec {
        tool: name.to_owned(),
        effect: rule.effect,
        entry,
        objects: rule.objects.clone(),
        amount: rule.amount.clone(),
        currency: rule.currency.clone(),
        recipients: rule.recipients.clone(),
        once_per: rule.once_per.clone(),
        card: rule.card.clone(),
        operation: rule.operation.clone(),
        undo: rule.undo.as_ref().map(|undo| beside(name, undo)),
        can_look_up: look.is_some(),
        settled_after_ms: look.and_then(|look| look.settled_after.as_ref()).and_then(ms),
        idempotent_ms: rule.idempotent.as_ref().and_then(|promise| ms(&promise.window)),
    }
}

/// Another tool of the same server, by its full name.
fn beside(name: &str, tool: &str) -> String {
    let server = name.split('.').next().unwrap_or_default();
    format!("{server}.{tool}")
}

/// The receipt at a path: `Ok(None)` if nothing stands there, an error if what does is none.
fn receipt_at(data: &Value, path: &str) -> Result<Option<String>, String> {
    match domain::path::get(data, path) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match id_of(value).filter(|id| id.len() <= ID_BYTES_MAX) {
            Some(receipt) => Ok(Some(receipt)),
            None => Err(format!("it answered with something at `{path}` that is no receipt")),
        },
    }
}

/// What an answer proves. It is a receipt or a refusal only where it is one of them beyond doubt.
fn acted(rule: &ToolRule, answer: &Answer, text_bytes_max: usize) -> Acted {
    let data = answer.data();
    let refused = data.as_ref().and_then(|data| {
        let refused = rule.refused.as_ref()?;
        Some(format!("{} is {}", refused.path, refused.found(data)?))
    });
    let receipt = match (&data, &rule.receipt) {
        (Some(data), Some(path)) => receipt_at(data, path),
        (None, _) | (_, None) => Ok(None),
    };
    let other = |why: &str| Observation::Other(why.to_owned());
    let seen = match (receipt, refused) {
        (Ok(None), Some(why)) => Observation::Refused(why),
        (Ok(Some(_)) | Err(_), Some(_)) => other("it answered with a receipt and with a refusal"),
        (Ok(Some(_)), None) if answer.is_error() => {
            other("it answered with a receipt, and that it failed")
        }
        (Ok(Some(receipt)), None) => Observation::Receipt(receipt),
        (Ok(None), None) if rule.receipt.is_none() => {
            let said = on_one_line(&answer.text(), SAID_MAX);
            Observation::Other(match answer.is_error() {
                true => format!("it answered that it failed: {said}"),
                false => format!("it answered what proves nothing by itself: {said}"),
            })
        }
        (Ok(None), None) if answer.is_error() => other("it answered that it failed"),
        (Ok(None), None) => other("it answered without a receipt"),
        (Err(why), None) => Observation::Other(why),
    };
    let found = match &seen {
        Observation::Receipt(_) | Observation::Answered => issued(rule, data.as_ref()),
        Observation::NotSent(_)
        | Observation::Refused(_)
        | Observation::Other(_)
        | Observation::Lost(_) => Found::default(),
    };
    let (answer, issued) = found.beside(answer.text(), text_bytes_max);
    Acted { answer, issued, ..Acted::unanswered(seen) }
}

/// What the end of a call without a result proves. The errors' own texts are about reads, which may be
/// repeated; these are not.
fn unanswered(error: &ConnectError) -> Observation {
    match error {
        // Certain by where they come from: there was no connection, or no request was made.
        ConnectError::Unreachable { .. } | ConnectError::TooLong { .. } => {
            Observation::NotSent(error.to_string())
        }
        ConnectError::Rejected { code, message, .. } => {
            Observation::Other(format!("it answered with error {code}: {message}"))
        }
        ConnectError::Status { status, .. } => {
            Observation::Other(format!("it answered with HTTP {status}"))
        }
        ConnectError::Authentication { reason, .. } => {
            Observation::Other(format!("it answered that it refuses the connector's key: {reason}"))
        }
        ConnectError::Unsupported { what, .. } => {
            Observation::Other(format!("it answered with {what}"))
        }
        ConnectError::TimedOut { limit_ms, .. } => {
            Observation::Lost(format!("no answer came within {limit_ms} ms"))
        }
        ConnectError::Stopped { .. } => {
            Observation::Lost("the connector's process ended before it answered".to_owned())
        }
        ConnectError::Broken { .. } => {
            Observation::Lost("the connection broke before the answer was whole".to_owned())
        }
        ConnectError::TooLarge { limit_bytes, .. } => {
            Observation::Lost(format!("its answer had more than {limit_bytes} bytes"))
        }
        // None of these ends a call that has left; if one ever does, nothing is known.
        ConnectError::UnknownTool { .. }
        | ConnectError::Start { .. }
        | ConnectError::Silent { .. }
        | ConnectError::Handshake { .. }
        | ConnectError::BackingOff { .. }
        | ConnectError::Busy { .. }
        | ConnectError::NotOffered { .. }
        | ConnectError::ShutDown { .. } => Observation::Lost(error.to_string()),
    }
}

/// What the answer of a look shows. One that is not JSON shows nothing at all: not even absence.
fn sight(receipt: &str, ended: Option<&OneOf>, data: Option<&Value>) -> Sight {
    let Some(data) = data else { return Sight::Unreadable("its answer is not JSON".to_owned()) };
    match receipt_at(data, receipt) {
        Ok(Some(receipt)) => {
            let ended = ended.is_some_and(|ended| ended.found(data).is_some());
            Sight::Found { receipt, ended }
        }
        Ok(None) => Sight::Absent,
        Err(why) => Sight::Unreadable(why),
    }
}
