//! What a person says, and what a device confirms to have.

use axum::Json as Sent;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use base::MessageId;
use domain::event::AskedAbout;
use engine::intake::{self, Receipt};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::App;
use crate::auth::Caller;
use crate::body::Json;
use crate::idempotent::{Answer, Ask, Order, Outcome, target, write};
use crate::problem::Problem;

/// A message on its way in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageWrite {
    id: Uuid,
    text: String,
    /// The card that it asks about.
    about: Option<AskedAbout>,
}

/// Takes a message in. The answer means: stored, nothing has read it yet.
pub(crate) async fn send(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(asked): Json<MessageWrite>,
) -> Result<(StatusCode, Sent<Value>), Problem> {
    let MessageWrite { id, text, about } = asked;
    let limit = app.web.cx.limits.message_bytes;
    if text.is_empty() || text.len() > limit {
        return Err(Problem::bad(format!(
            "text has {} bytes; a message has 1 to {limit}. Send a longer one in parts.",
            text.len()
        )));
    }
    let content = text.clone();
    let target = match about {
        Some(AskedAbout::Action(card)) => target(card),
        Some(AskedAbout::Proposal(card)) => target(card),
        None => None,
    };
    let ask = Ask { id, operation: "message", target, content: vec![content.as_bytes()] };
    let answered = write(&app, caller, Order::InTurn, ask, move |cx, tx, device| {
        let receipt = match about {
            Some(about) => intake::question(cx, tx, device, id, &text, about)?,
            None => intake::message(cx, tx, device, id, &text)?,
        };
        let event = match receipt {
            Receipt::New { event, .. } | Receipt::Known { event } => event,
            Receipt::Conflict => {
                let detail = "This id was used for another message. Send this one under a new id.";
                return Ok(Outcome::Conflict(detail.into()));
            }
        };
        Ok(Outcome::Done(Answer::plain(json!({"event": event, "seq": tx.seq()}))))
    })
    .await?;
    let status = if answered.first { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Sent(answered.body)))
}

/// Messages that a device has.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReceiptWrite {
    id: Uuid,
    messages: Vec<MessageId>,
}

const MESSAGES_MAX: usize = 200;

/// Notes which messages this device has on screen or in its store.
pub(crate) async fn receipts(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(asked): Json<ReceiptWrite>,
) -> Result<Sent<Value>, Problem> {
    let ReceiptWrite { id, messages } = asked;
    if messages.is_empty() || messages.len() > MESSAGES_MAX {
        return Err(Problem::bad(format!(
            "messages has {} ids; send 1 to {MESSAGES_MAX} at once.",
            messages.len()
        )));
    }
    let named: Vec<String> = messages.iter().map(ToString::to_string).collect();
    let content = named.iter().map(String::as_bytes).collect();
    let ask = Ask { id, operation: "receipts", target: None, content };
    let answered = write(&app, caller, Order::InTurn, ask, move |_, tx, device| {
        engine::delivery::receipts(tx, device.id, &messages)?;
        Ok(Outcome::Done(Answer::plain(json!({"seq": tx.seq()}))))
    })
    .await?;
    Ok(Sent(answered.body))
}
