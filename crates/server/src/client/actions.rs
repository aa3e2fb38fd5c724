//! Outside effects on the command line: what waits, its card, and the person's word on it. A release is
//! asked of a person who has seen the card, carries the digest of what was shown, and is never queued
//! while there is no connection (UX rules 3, 8, 10).

use std::fmt::Write as _;

use base::EventId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::decide::{Answer, ask};
use super::error::ClientError;
use super::http::Client;
use super::show::{self, Screen, Times};
use super::wire::{Action, Money};
use super::write::{GiveUp, Repeat, quoted, write};
use super::{times, understand};

/// Characters of a value that stand in one line of a card.
const FOLD_AT: usize = 60;

/// What the person says of an effect that nobody could find out about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statement {
    /// It happened.
    Happened,
    /// It did not.
    DidNot,
    /// Keep looking.
    KeepLooking,
}

/// The newest actions; `open`: those that are not settled.
pub async fn list(
    client: &Client,
    last: u32,
    open: bool,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    #[derive(Deserialize)]
    struct All {
        actions: Vec<Value>,
    }
    let mut value = client.get(&["v1", "actions"], &[("limit", i64::from(last))]).await?;
    let all: All = understand("/v1/actions", value.clone())?;
    let mut shown = Vec::new();
    let mut kept = Vec::new();
    for one in all.actions {
        let action: Action = understand("/v1/actions", one.clone())?;
        if !open || action.is_unsettled() {
            shown.push(action);
            kept.push(one);
        }
    }
    value["actions"] = Value::Array(kept);
    let times = times(client).await?;
    screen.result(&value, &table(&shown, open, &times))
}

fn table(actions: &[Action], open: bool, times: &Times) -> String {
    if actions.is_empty() {
        return match open {
            true => "Nothing is open among the newest.\n",
            false => "No actions yet. A duty or the conversation proposes them.\n",
        }
        .into();
    }
    let mut text = format!("{:36}  {:16}  {:32}  WHAT\n", "ID", "SINCE", "STATE");
    for action in actions {
        let _ = writeln!(
            text,
            "{:36}  {:16}  {:32}  {}",
            line(&action.id),
            times.show(action.moved_at),
            line(&action.words),
            line(&action.what),
        );
        if let Some(way) = way(action) {
            let _ = writeln!(text, "    {way}");
        }
    }
    text
}

/// What the person can do with it, as a command.
pub fn way(action: &Action) -> Option<String> {
    let id = line(&action.id);
    match action.state.as_str() {
        "awaiting_approval" => {
            Some(format!("Needs your decision: adjutant action approve {id}, or deny"))
        }
        "unknown" if action.escalated_at.is_some() => Some(format!(
            "Say what you know: adjutant action happened {id}, or did-not, or keep-looking"
        )),
        "authorized" if !action.asked.is_empty() => Some(format!(
            "Waits for the supervisor; on their device: adjutant action approve {id}, or deny"
        )),
        "authorized" | "admitted" => Some(format!("Take it back: adjutant action withdraw {id}")),
        _ => None,
    }
}

/// One action with everything.
pub async fn show(client: &Client, id: &str, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    let value = client.get(&["v1", "actions", id], &[]).await?;
    let action: Action = understand("/v1/actions", value.clone())?;
    let times = times(client).await?;
    screen.result(&value, &whole(&action, &times))
}

/// A text in one line of its own, so that none looks like a line of the card.
fn line(text: &str) -> String {
    show::plain(text).replace('\n', " ")
}

/// A value whole, in lines that are set in: a screen would break a long one into some that look like lines of
/// the card's own.
fn folded(value: &str) -> String {
    let characters: Vec<char> = value.chars().collect();
    let lines: Vec<String> = characters.chunks(FOLD_AT).map(String::from_iter).collect();
    lines.join(&format!("\n{:16}", ""))
}

/// The operation with its price, as the question and the button name it.
fn named(action: &Action) -> String {
    let price = action.amount.as_ref().map(|Money { text }| format!(" for {}", line(text)));
    format!("{}{}", line(&action.tool), price.unwrap_or_default())
}

/// The card in the order of UX rule 3.
fn card(action: &Action, times: &Times) -> String {
    let mut text = format!("{}\n", named(action));
    let field = |text: &mut String, label: &str, value: &str| {
        let _ = writeln!(text, "  {:12}  {}", line(label), folded(&line(value)));
    };
    for frozen in &action.card {
        field(&mut text, &frozen.label, &frozen.value);
    }
    if !action.recipients.is_empty() {
        field(&mut text, "to", &action.recipients.join(", "));
    }
    let _ = writeln!(text, "State     {}", line(&action.words));
    if let Some(reason) = &action.reason {
        let label = if action.state == "awaiting_approval" { "Asked    " } else { "Because  " };
        let _ = writeln!(text, "{label} {}", line(reason));
    }
    if action.state == "awaiting_approval" {
        let _ = writeln!(text, "Deadline  {}", times.or_dash(action.expires_at));
    }
    if let Some(nothing) = &action.if_nothing {
        let _ = writeln!(text, "If you do nothing: {}", line(nothing));
    }
    if let Some(after) = &action.afterwards {
        let _ = writeln!(text, "Afterwards: {}", line(after));
    }
    if let (Some(duty), Some(title)) = (&action.duty, &action.title) {
        let _ = writeln!(text, "Duty      {} ({})", line(title), line(duty));
    }
    let _ = writeln!(text, "Action    {}", line(&action.id));
    let _ = writeln!(text, "Digest    {}", line(&action.digest));
    text
}

fn whole(action: &Action, times: &Times) -> String {
    let mut text = card(action, times);
    if let Some(receipt) = &action.receipt {
        let _ = writeln!(text, "Receipt   {}", line(receipt));
    }
    if let Some(way) = way(action) {
        let _ = writeln!(text, "{way}");
    }
    if !action.approvals.is_empty() {
        text.push_str("Decisions\n");
    }
    for one in &action.approvals {
        let by = match (one.by.as_deref(), &one.device_name) {
            (Some("user"), Some(device)) => format!(" by you on {}", line(device)),
            (Some("user"), None) => " by you".to_owned(),
            (Some("supervisor"), _) => " by your supervisor".to_owned(),
            (None, _) if one.of == "supervisor" => " asked of your supervisor".to_owned(),
            (Some("policy"), _) => " within a grant of yours".to_owned(),
            (Some(_) | None, _) => String::new(),
        };
        let why = one.reason.as_ref().map(|why| format!(": {}", line(why))).unwrap_or_default();
        let at = times.show(one.moved_at);
        let _ = writeln!(text, "  - {at} [{}]{by}{why}", line(&one.state));
    }
    if !action.attempts.is_empty() {
        text.push_str("Sent\n");
    }
    for one in &action.attempts {
        let why = one.reason.as_ref().map(|why| format!(": {}", line(why))).unwrap_or_default();
        let (at, state) = (times.show(one.created_at), line(&one.state));
        let _ = writeln!(text, "  - {at} [{state}] as {}{why}", line(&one.operation_id));
    }
    text
}

/// Shows the card, asks, and releases exactly what was shown.
pub async fn approve(
    client: &Client,
    id: &str,
    answer: Answer,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let action: Action = understand("/v1/actions", client.get(&["v1", "actions", id], &[]).await?)?;
    // A repeat with the id of a lost answer is for the server to judge: it knows that id.
    if action.state != "awaiting_approval" && action.asked.is_empty() && answer.id.is_none() {
        // With who decided it, where and when.
        screen.note(&whole(&action, &times(client).await?))?;
        let state = line(&action.words);
        let stale = format!("This can no longer be decided; nothing was sent. {state}.");
        return Err(ClientError::Stale(stale));
    }
    screen.note(&card(&action, &times(client).await?))?;
    // The server refuses what was seen before, and says what is different now.
    let shown = answer.digest.unwrap_or_else(|| action.digest.clone());
    if shown == action.digest
        && !answer.yes
        && !ask(&format!("Release {}?", named(&action)), screen)?
    {
        screen.note("Not released. The card stays open.")?;
        return screen.result(&json!({"id": id, "state": action.state}), "");
    }
    let own = answer.id.unwrap_or_else(|| client.new_id());
    let mut body = json!({"id": own, "digest": shown});
    if let Some(template) = &action.template {
        body["template"] = json!(template);
    }
    let digest = line(&shown);
    let lost = GiveUp {
        no_connection: "Not released",
        not_done: "Not released",
        unknown: "Not known whether it was released",
        repeat: format!("adjutant action approve {id} --id {own} --digest {digest}"),
    };
    let written = write(client, &["v1", "actions", id, "approve"], &body, 0, lost).await;
    decided(&fresh(client, written, screen).await?, screen)
}

/// Refuses one. That is the safe way out, so nothing is asked.
pub async fn deny(
    client: &Client,
    id: &str,
    reason: Option<&str>,
    own: Option<EventId>,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let own = own.unwrap_or_else(|| client.new_id());
    let mut body = json!({"id": own});
    let mut repeat = format!("adjutant action deny {id} --id {own}");
    if let Some(reason) = reason {
        body["reason"] = json!(reason);
        repeat.push_str(&format!(" --reason {}", quoted(reason)));
    }
    let lost = GiveUp {
        no_connection: "Not refused",
        not_done: "Not refused",
        unknown: "Not known whether it was refused",
        repeat,
    };
    let written = write(client, &["v1", "actions", id, "deny"], &body, 0, lost).await;
    decided(&fresh(client, written, screen).await?, screen)
}

/// Takes back what has not been sent. Like a stop it is tried for a while.
pub async fn withdraw(
    client: &Client,
    id: &str,
    repeat: Repeat,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let own = repeat.id.unwrap_or_else(|| client.new_id());
    let lost = GiveUp {
        no_connection: "Not taken back yet – no connection",
        not_done: "Not taken back yet",
        unknown: "Not known whether it was taken back",
        repeat: format!("adjutant action withdraw {id} --id {own}"),
    };
    let path = ["v1", "actions", id, "withdraw"];
    let written = write(client, &path, &json!({"id": own}), repeat.wait_s, lost).await;
    decided(&fresh(client, written, screen).await?, screen)
}

/// Says what became of an effect that nobody could find out about.
pub async fn state(
    client: &Client,
    id: &str,
    statement: Statement,
    own: Option<EventId>,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let own = own.unwrap_or_else(|| client.new_id());
    let (said, command) = match statement {
        Statement::Happened => ("happened", "happened"),
        Statement::DidNot => ("did_not", "did-not"),
        Statement::KeepLooking => ("keep_looking", "keep-looking"),
    };
    let lost = GiveUp {
        no_connection: "Not noted",
        not_done: "Not noted",
        unknown: "Not known whether it was noted",
        repeat: format!("adjutant action {command} {id} --id {own}"),
    };
    let body = json!({"id": own, "statement": said});
    let written = write(client, &["v1", "actions", id, "state"], &body, 0, lost).await;
    decided(&fresh(client, written, screen).await?, screen)
}

/// The answer to a decision; if it came too late, the card that counts now is drawn first (UX rule 8).
async fn fresh(
    client: &Client,
    written: Result<Value, ClientError>,
    screen: &mut Screen<'_>,
) -> Result<Value, ClientError> {
    if let Err(ClientError::Outdated { card: now, .. }) = &written
        && let Ok(action) = serde_json::from_value::<Action>(Value::clone(now))
    {
        screen.note(&card(&action, &times(client).await?))?;
    }
    written
}

/// How the person decided on the cards of each tool.
#[derive(Deserialize)]
struct Decisions {
    tool: String,
    shown: i64,
    approved: i64,
    edited: i64,
    refused: i64,
    expired: i64,
    median_seconds: Option<i64>,
}

/// What the cards of each tool came to.
pub async fn log(client: &Client, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    #[derive(Deserialize)]
    struct All {
        classes: Vec<Decisions>,
    }
    let value = client.get(&["v1", "decisions"], &[]).await?;
    let all: All = understand("/v1/decisions", value.clone())?;
    if all.classes.is_empty() {
        return screen.result(&value, "No card was shown yet.\n");
    }
    let head = ["SHOWN", "APPROVED", "EDITED", "REFUSED", "EXPIRED", "MEDIAN"];
    let row = |cells: [String; 6]| cells.map(|cell| format!("{cell:>8}  ")).concat();
    let mut text = format!("{}TOOL\n", row(head.map(str::to_owned)));
    for one in &all.classes {
        let counts = [one.shown, one.approved, one.edited, one.refused, one.expired];
        let [shown, approved, edited, refused, expired] = counts.map(|count| count.to_string());
        let median = one.median_seconds.map_or_else(|| "-".to_owned(), |s| format!("{s} s"));
        let cells = row([shown, approved, edited, refused, expired, median]);
        let _ = writeln!(text, "{cells}{}", line(&one.tool));
    }
    screen.result(&value, &text)
}

/// The action as the decision left it, and what can still be done.
fn decided(value: &Value, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    let action: Action = understand("/v1/actions", value.clone())?;
    let mut text = format!("{}: {}\n", named(&action), line(&action.words));
    if let Some(way) = way(&action) {
        let _ = writeln!(text, "{way}");
    }
    screen.result(value, &text)
}
