//! The ways in, from the command line: the secret is made here and shown once.

use std::path::Path;

use base::Secret;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::ClientError;
use super::http::Client;
use super::show::{self, Screen, Times};
use super::world::{Source, Sources, Tried};
use super::write::{GiveUp, Repeat, write};
use super::{fetch, times, understand};
use crate::cli::WAIT_S;

/// A way in that a person wants.
#[derive(Debug, Clone)]
pub struct NewSource {
    /// How they call it.
    pub name: String,
    /// How it is reached, by `kind`.
    pub config: Value,
    /// How often it is looked at.
    pub every_ms: Option<u64>,
    /// Silence for longer than this is told.
    pub expect_ms: Option<u64>,
    /// The secret that the sender chose; a webhook without one gets a new one.
    pub secret: Option<Secret>,
}

/// Bytes of a secret, as the server takes it.
const SECRET_BYTES_MAX: usize = 512;
/// Bytes of a file with a secret in it; beside the secret there may be blanks and line ends.
const FILE_BYTES_MAX: u64 = 4_096;

/// Reads a secret that a sender chose.
pub fn secret_file(path: Option<&Path>) -> Result<Option<Secret>, ClientError> {
    use std::io::Read as _;
    let Some(path) = path else { return Ok(None) };
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| {
            ClientError::Usage(format!("{} cannot be read ({error})", path.display()))
        })?;
    let empty = |_| ClientError::Usage(format!("{} holds no secret", path.display()));
    let secret = Secret::new(&text).map_err(empty)?;
    match secret.expose().len() <= SECRET_BYTES_MAX {
        true => Ok(Some(secret)),
        false => Err(ClientError::Usage(format!(
            "{} holds more than a secret's {SECRET_BYTES_MAX} bytes; write the secret alone into it",
            path.display()
        ))),
    }
}

/// Adds a source. What the sender needs is printed; the secret only if it was made here, and once.
pub async fn add(
    client: &Client,
    new: NewSource,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    #[derive(Deserialize)]
    struct Added {
        address: Option<String>,
    }
    let NewSource { name, config, every_ms, expect_ms, secret } = new;
    let hook = config["kind"] == "webhook";
    let given = secret.is_some();
    let secret = match (secret, hook) {
        (None, true) => Some(client.new_secret()?),
        (secret, _) => secret,
    };
    let mut body = json!({"id": client.new_id(), "name": name, "config": config});
    for (field, value) in [("every_ms", every_ms), ("expect_ms", expect_ms)] {
        if let Some(value) = value {
            body[field] = json!(value);
        }
    }
    if let Some(secret) = &secret {
        body["secret"] = json!(secret.expose());
    }
    let lost = GiveUp {
        no_connection: "Not added",
        not_done: "Not added",
        unknown: "Not known whether it was added",
        repeat: "adjutant source list, which shows whether it is there".into(),
    };
    let written = write(client, &["v1", "sources"], &body, WAIT_S, lost).await;
    let mut value = written.map_err(in_options)?;
    let added: Added = understand("/v1/sources", value.clone())?;
    let mut text = format!("Added {name}.\n");
    if let Some(address) = added.address {
        text.push_str(&format!("Address  {}\n", show::plain(&address)));
    }
    if let Some(secret) = secret.filter(|_| !given) {
        text.push_str(&format!(
            "Secret   {}\nGive both to the sender. The secret is not shown again. From the internet \
             the address is reached through a tunnel or a proxy of yours.\n",
            secret.expose()
        ));
        value["secret"] = json!(secret.expose());
    }
    if config["kind"] == "folder" {
        text.push_str("Its first look takes in everything that lies there now.\n");
    }
    text.push_str(&format!("Try it   adjutant source test {name}\n"));
    screen.result(&value, &text)
}

/// The server's words about fields as words about the options that were written.
fn in_options(error: ClientError) -> ClientError {
    const OPTIONS: [(&str, &str); 5] = [
        ("config.key", "--key"),
        ("config.topic", "--topic"),
        ("config.recheck", "--recheck"),
        ("every_ms", "--every"),
        ("expect_ms", "--expect"),
    ];
    let named = |detail: String| {
        OPTIONS.iter().fold(detail, |text, (field, option)| text.replace(field, option))
    };
    if let ClientError::Refused { status, title, detail } = error {
        return ClientError::Refused { status, title, detail: named(detail) };
    }
    if let ClientError::GivenUp { done, certain, source, repeat } = error {
        let source = Box::new(in_options(*source));
        return ClientError::GivenUp { done, certain, source, repeat };
    }
    error
}

/// All sources with what each received.
pub async fn list(client: &Client, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    let value = client.get(&["v1", "sources"], &[]).await?;
    let all: Sources = understand("/v1/sources", value.clone())?;
    let times = times(client).await?;
    screen.result(&value, &shown(&all, &times))
}

fn shown(all: &Sources, times: &Times) -> String {
    let mut text = String::new();
    if all.sources.is_empty() {
        text.push_str("No sources yet. Add one with: adjutant source add webhook NAME\n");
    }
    for source in &all.sources {
        text.push_str(&format!("{} ({})\n", show::plain(&source.name), show::plain(&source.kind)));
        for line in health(source, times) {
            text.push_str(&format!("    {line}\n"));
        }
        if let Some(address) = &source.address {
            text.push_str(&format!("    {}\n", show::plain(address)));
        }
        if let Some(event) = &source.last_event {
            text.push_str(&format!("    last event: adjutant trace {}\n", show::plain(event)));
        }
    }
    if all.unknown.refused > 0 {
        let last = times.or_dash(all.unknown.refused_at);
        text.push_str(&format!(
            "{} deliveries to addresses that are no webhook's, last {last}\n",
            all.unknown.refused
        ));
    }
    text
}

/// A source's health by what it received.
fn health(source: &Source, times: &Times) -> Vec<String> {
    let mut lines = vec![match source.received_at {
        Some(at) => format!("last received {}", times.show(at)),
        None => "last received: never".to_owned(),
    }];
    if source.silent {
        lines.push("silent for longer than you expect".to_owned());
    }
    if source.refused > 0 {
        lines.push(format!(
            "{} refused, last {}",
            source.refused,
            times.or_dash(source.refused_at)
        ));
    }
    if source.every_ms.is_some() {
        let (last, next) = (times.or_dash(source.looked_at), times.or_dash(source.next_look_at));
        lines.push(format!("last looked at {last}, next {next}"));
    }
    if source.failures > 0 {
        let remedy = format!("see adjutant source test {}", show::plain(&source.name));
        lines.push(format!("{} looks in a row failed; {remedy}", source.failures));
    }
    match source.secret.as_deref() {
        None | Some("kept") => {}
        Some(state) => lines.push(format!(
            "its secret is {}; give it one: adjutant source rotate {}",
            show::plain(state),
            show::plain(&source.name)
        )),
    }
    lines
}

/// The source of a name.
async fn named(client: &Client, name: &str) -> Result<Source, ClientError> {
    let all: Sources = fetch(client, &["v1", "sources"], &[]).await?;
    let known: Vec<String> = all.sources.iter().map(|source| source.name.clone()).collect();
    all.sources.into_iter().find(|source| source.name == name).ok_or_else(|| {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        ClientError::Usage(format!("there is no source {name}; there are: {known}"))
    })
}

/// Tries a source.
pub async fn test(client: &Client, name: &str, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    let source = named(client, name).await?;
    let value = client.post(&["v1", "sources", &source.id, "test"], &json!({})).await?;
    let tried: Tried = understand("/v1/sources", value.clone())?;
    let mut text = String::new();
    if let Some(status) = tried.status {
        text.push_str(&format!("A signed sample of its own was answered with {status}.\n"));
    }
    if source.every_ms.is_some() && tried.ok {
        text.push_str(&match tried.found.len() {
            0 => "A look finds nothing new. The first look at a feed or a page only remembers what is \
                  there.\n"
                .to_owned(),
            count => {
                format!("A look finds {count}{}:\n", if tried.more { " and more" } else { "" })
            }
        });
    }
    for found in &tried.found {
        let topic = found.topic.as_deref().unwrap_or("-");
        let (id, topic) = (show::plain(&found.external_id), show::plain(topic));
        text.push_str(&format!("  - {id} ({topic}), {} bytes\n", found.bytes));
    }
    match &tried.problem {
        Some(problem) => text.push_str(&format!("It does not work: {}\n", show::plain(problem))),
        None => text.push_str("It works. Nothing was stored, and nobody was woken.\n"),
    }
    screen.result(&value, &text)?;
    if tried.ok { Ok(()) } else { Err(ClientError::DoesNotWork) }
}

/// Gives a webhook a new secret. One that is made here is shown before it is sent.
pub async fn rotate(
    client: &Client,
    name: &str,
    secret: Option<Secret>,
    repeat: Repeat,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    #[derive(Deserialize)]
    struct Rotated {
        former_until: base::Timestamp,
    }
    if repeat.id.is_some() && secret.is_none() {
        let same = "a repeat needs the same secret; add --secret-file with the one that was shown";
        return Err(ClientError::Usage(same.into()));
    }
    let source = named(client, name).await?;
    let given = secret.is_some();
    let secret = match secret {
        Some(secret) => secret,
        None => client.new_secret()?,
    };
    let id = repeat.id.unwrap_or_else(|| client.new_id());
    screen.note(&format!("Request id {id}"))?;
    if !given {
        // Before anything is sent: a secret that is in force and that nobody saw is of no use.
        screen.note(&format!("Secret   {}", secret.expose()))?;
    }
    let body = json!({"id": id, "secret": secret.expose()});
    let lost = GiveUp {
        no_connection: "Not changed",
        not_done: "Not changed",
        unknown: "Not known whether it was changed",
        repeat: format!(
            "adjutant source rotate {name} --id {id} --secret-file FILE, with {} in FILE",
            if given { "the same secret" } else { "the secret above" }
        ),
    };
    let path = ["v1", "sources", source.id.as_str(), "rotate"];
    let mut value = write(client, &path, &body, repeat.wait_s, lost).await?;
    let mut text = "The new secret is in force.\n".to_owned();
    if !given {
        text.push_str("Give it to the sender. It is not shown again.\n");
        value["secret"] = json!(secret.expose());
    }
    let rotated: Rotated = understand("/v1/sources", value.clone())?;
    let times = times(client).await?;
    let until = times.show(rotated.former_until);
    text.push_str(&format!("The former secret is valid until {until}.\n"));
    screen.result(&value, &text)
}

/// Takes a source out of use.
pub async fn remove(
    client: &Client,
    name: &str,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let source = named(client, name).await?;
    let id = client.new_id().to_string();
    let value = client.delete(&["v1", "sources", &source.id], &[("id", &id)]).await?;
    let text =
        "Removed, with its secret and the subscriptions to it. What came through it stands.\n";
    screen.result(&value, text)
}
