//! What came in, the chain of one event, and what the dial noted.

use serde::Deserialize;
use serde_json::Value;

use super::error::ClientError;
use super::http::Client;
use super::show::{self, Screen, Times};
use super::world::{Events, Observed};
use super::{times, understand};

/// A page of events, newest first.
pub async fn events(
    client: &Client,
    before: Option<&str>,
    last: u32,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let last = last.to_string();
    let mut query = vec![("limit", last.as_str())];
    query.extend(before.map(|before| ("before", before)));
    let value = client.get_by(&["v1", "events"], &query).await?;
    let page: Events = understand("/v1/events", value.clone())?;
    let times = times(client).await?;
    screen.result(&value, &listed(&page, &times))
}

fn listed(page: &Events, times: &Times) -> String {
    if page.events.is_empty() {
        return "Nothing came in.\n".to_owned();
    }
    let mut text = String::new();
    for event in &page.events {
        let topic = event.topic.as_deref().map(|topic| format!(" {topic}")).unwrap_or_default();
        let became = match (&event.disposition, &event.state) {
            (Some(what), _) => what.clone(),
            (None, Some(state)) => format!("not handled yet: {state}"),
            (None, None) => "not handled yet".to_owned(),
        };
        text.push_str(&format!(
            "{}  {}  {} from {}{}\n    {}\n",
            times.show(event.received_at),
            show::plain(&event.id),
            show::plain(&event.kind),
            show::plain(&event.source),
            show::plain(&topic),
            show::plain(&became).replace('\n', " "),
        ));
    }
    if let Some(before) = &page.before {
        text.push_str(&format!("Older: adjutant events --before {}\n", show::plain(before)));
    }
    text
}

/// The whole chain of an event.
pub async fn trace(
    client: &Client,
    event: &str,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    chain(client.get(&["v1", "events", event], &[]).await?, "/v1/events", screen)
}

/// Why an action is what it is.
pub async fn explain(
    client: &Client,
    action: &str,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let value = client.get(&["v1", "actions", action, "explain"], &[]).await?;
    chain(value, "/v1/actions", screen)
}

/// Recomputes the audit chain.
pub async fn verify_audit(client: &Client, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    #[derive(Deserialize)]
    struct Verified {
        entries: i64,
        broken: Option<i64>,
    }
    let value: Value = client.get(&["v1", "audit", "verify"], &[]).await?;
    let verified: Verified = understand("/v1/audit", value.clone())?;
    match verified.broken {
        None => screen
            .result(&value, &format!("{} entries, each as it was written.\n", verified.entries)),
        Some(n) => {
            let text = format!(
                "Entry {n} of the audit chain is missing or is not what was written. Keep a copy of the \
                 database as it is, and compare it with a backup.\n"
            );
            screen.result(&value, &text)?;
            Err(ClientError::DoesNotWork)
        }
    }
}

/// A chain in words, a line each.
fn chain(value: Value, path: &'static str, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    #[derive(Deserialize)]
    struct Chain {
        words: Vec<String>,
    }
    let chain: Chain = understand(path, value.clone())?;
    let lines =
        chain.words.iter().map(|line| format!("{}\n", show::plain(line).replace('\n', " ")));
    screen.result(&value, &lines.collect::<String>())
}

/// What the dial let the agent do, or would have.
pub async fn observed(
    client: &Client,
    last: u32,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let value = client.get(&["v1", "observed"], &[("limit", i64::from(last))]).await?;
    let seen: Observed = understand("/v1/observed", value.clone())?;
    let times = times(client).await?;
    let mut text = format!(
        "The dial stands on {}; change it with: adjutant set --dial off|observe|auto\n",
        show::plain(&seen.dial)
    );
    if seen.notes.is_empty() {
        text.push_str("Nothing came in that belongs to no duty.\n");
    }
    for note in &seen.notes {
        text.push_str(&format!(
            "{}  {}\n    would: {}; disturbs {}\n    adjutant trace {}\n",
            times.show(note.at),
            show::plain(&note.situation).replace('\n', " "),
            show::plain(&note.reach),
            show::plain(&note.disturb),
            show::plain(&note.event),
        ));
    }
    screen.result(&value, &text)
}
