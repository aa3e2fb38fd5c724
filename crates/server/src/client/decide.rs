//! Decisions on cards. A decision is asked of a person who has seen the card, carries the digest of
//! what was shown, and is never queued while there is no connection (UX rules 3, 8, 10).

use base::EventId;
use serde_json::{Value, json};

use super::error::ClientError;
use super::http::Client;
use super::show::{self, Screen};
use super::wire::Proposal;
use super::write::{GiveUp, write};
use super::{times, understand};

/// How a decision was given on the command line.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The answer is given already (`--yes`); needed where nobody can be asked.
    pub yes: bool,
    /// The digest of a card that was seen before; any other card is refused.
    pub digest: Option<String>,
    /// The id of a decision whose answer was lost.
    pub id: Option<EventId>,
}

/// Shows the card, asks, and confirms exactly what was shown.
pub async fn confirm(
    client: &Client,
    proposal: &str,
    answer: Answer,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let path = ["v1", "proposals", proposal];
    let card: Proposal = understand("/v1/proposals", client.get(&path, &[]).await?)?;
    let shown = show::card(&card, &times(client).await?);
    screen.note(&shown)?;
    // A repeat with the id of a lost answer is for the server to judge: it knows that id.
    if card.state != "open" && answer.id.is_none() {
        let state = show::plain(&card.state);
        return Err(ClientError::Stale(format!("This card is {state} already. Nothing was sent.")));
    }
    // The server refuses what was seen before, and says what is different now.
    let seen = answer.digest.unwrap_or_else(|| card.digest.clone());
    let question = match card.kind.as_str() {
        "new_duty" => "Take on this duty?",
        "change_duty" => "Change this duty?",
        "close_duty" => "Close this duty?",
        _ => "Confirm what the card says?",
    };
    if seen == card.digest && !answer.yes && !ask(question, screen)? {
        screen.note("Not confirmed. The card stays open.")?;
        return screen.result(&json!({"id": proposal, "state": card.state}), "");
    }
    let id = answer.id.unwrap_or_else(|| client.new_id());
    let body = json!({"id": id, "digest": seen});
    let repeat = format!("adjutant confirm {proposal} --id {id} --digest {}", show::plain(&seen));
    let lost = GiveUp {
        no_connection: "Not confirmed",
        not_done: "Not confirmed",
        unknown: "Not known whether it was confirmed",
        repeat,
    };
    let written = write(client, &["v1", "proposals", proposal, "confirm"], &body, 0, lost).await;
    decided(&fresh(client, written, screen).await?, screen)
}

/// Declines a card. That is the safe way out, so nothing is asked.
pub async fn decline(
    client: &Client,
    proposal: &str,
    id: Option<EventId>,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let id = id.unwrap_or_else(|| client.new_id());
    let lost = GiveUp {
        no_connection: "Not declined",
        not_done: "Not declined",
        unknown: "Not known whether it was declined",
        repeat: format!("adjutant decline {proposal} --id {id}"),
    };
    let path = ["v1", "proposals", proposal, "decline"];
    let written = write(client, &path, &json!({"id": id}), 0, lost).await;
    decided(&fresh(client, written, screen).await?, screen)
}

/// The answer to a decision; if it came too late, the card that counts now is drawn first (UX rule 8).
async fn fresh(
    client: &Client,
    written: Result<Value, ClientError>,
    screen: &mut Screen<'_>,
) -> Result<Value, ClientError> {
    if let Err(ClientError::Outdated { card, .. }) = &written
        && let Ok(card) = serde_json::from_value::<Proposal>(Value::clone(card))
    {
        screen.note(&show::card(&card, &times(client).await?))?;
    }
    written
}

fn decided(value: &Value, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    let card: Proposal = understand("/v1/proposals", value.clone())?;
    let (state, title) = (show::plain(&card.state), show::plain(&card.title));
    screen.result(value, &format!("{state}: {title}\n"))
}

/// Asks the person; only "y" or "yes" agrees. Without a person it is an error, never a yes.
pub(super) fn ask(question: &str, screen: &mut Screen<'_>) -> Result<bool, ClientError> {
    let Some(keyboard) = screen.keyboard.as_mut() else {
        let remedy =
            "nobody can be asked here: this is no terminal. Read the card above, then add --yes";
        return Err(ClientError::Usage(remedy.into()));
    };
    write!(screen.err, "{question} [y/N] ")?;
    screen.err.flush()?;
    let mut line = String::new();
    keyboard.read_line(&mut line)?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
