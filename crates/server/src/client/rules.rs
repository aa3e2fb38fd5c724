//! The supervisor's rules from the command line: read by both, written by a supervisor's device.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Value, json};

use super::error::ClientError;
use super::http::Client;
use super::show::{self, Screen};
use super::write::{GiveUp, quoted, write};
use super::{times, understand};
use crate::cli::{RuleAddArgs, RuleCommand, RuleEndArgs};

#[derive(Deserialize)]
struct Rule {
    id: String,
    words: String,
    state: String,
    moved_at: base::Timestamp,
}

/// Runs one of the commands.
pub async fn dispatch(
    command: RuleCommand,
    client: &Client,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    match command {
        RuleCommand::List(args) => list(client, args.ended, screen).await,
        RuleCommand::Add(args) => add(client, args, screen).await,
        RuleCommand::End(args) => end(client, args, screen).await,
    }
}

async fn list(client: &Client, ended: bool, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    let mut value = client.get(&["v1", "rules"], &[]).await?;
    if let Some(rules) = value["rules"].as_array_mut() {
        rules.retain(|rule| ended || rule["state"] == "active");
    }
    let rules: Vec<Rule> = understand("/v1/rules", value["rules"].clone())?;
    let times = times(client).await?;
    let mut text = String::new();
    for rule in &rules {
        let (id, words) = (show::plain(&rule.id), show::plain(&rule.words).replace('\n', " "));
        let (at, state) = (times.show(rule.moved_at), show::plain(&rule.state));
        let _ = writeln!(text, "{id:36}  {at:16}  {state:6}  {words}");
    }
    if rules.is_empty() {
        text.push_str("No rules: grants and the person's own word release everything.\n");
    }
    screen.result(&value, &text)
}

async fn add(
    client: &Client,
    args: RuleAddArgs,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let own = args.id.unwrap_or_else(|| client.new_id());
    let (tool, demand) = (args.tool, args.demand.word());
    let mut body = json!({"id": own, "tool": tool, "demand": demand});
    let mut repeat = format!("adjutant rule add {} {demand} --id {own}", quoted(&tool));
    if let Some(effect) = args.effect {
        body["effect"] = json!(effect);
        repeat.push_str(&format!(" --effect {effect}"));
    }
    if let (Some(amount), Some(currency)) = (args.above, args.currency) {
        body["above"] = json!({"amount": amount, "currency": currency});
        repeat.push_str(&format!(" --above {} --currency {}", quoted(&amount), quoted(&currency)));
    }
    let lost = GiveUp {
        no_connection: "No rule was laid",
        not_done: "No rule was laid",
        unknown: "Not known whether the rule was laid",
        repeat,
    };
    let value = write(client, &["v1", "rules"], &body, 0, lost).await?;
    told(&value, "In force", screen)
}

async fn end(
    client: &Client,
    args: RuleEndArgs,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let own = args.id.unwrap_or_else(|| client.new_id());
    let rule = args.rule.to_string();
    let lost = GiveUp {
        no_connection: "Not ended",
        not_done: "Not ended",
        unknown: "Not known whether it was ended",
        repeat: format!("adjutant rule end {rule} --id {own}"),
    };
    let path = ["v1", "rules", &rule, "end"];
    let value = write(client, &path, &json!({"id": own}), 0, lost).await?;
    told(&value, "Ended", screen)
}

fn told(value: &Value, what: &str, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    let rule: Rule = understand("/v1/rules", value.clone())?;
    let (id, words) = (show::plain(&rule.id), show::plain(&rule.words).replace('\n', " "));
    screen.result(value, &format!("{what}: {words}\nRule  {id}\n"))
}
