//! Writes that are safe to repeat: the client makes the id, the server answers a repeat as it did
//! the first time (CLI-03).

use std::path::Path;
use std::time::Duration;

use base::EventId;
use serde_json::{Value, json};

use super::error::ClientError;
use super::http::Client;
use super::show::Screen;
use super::{show_duty, understand};

/// First wait before a write goes again; doubles up to the longest.
const RETRY_FIRST_MS: u64 = 100;
const RETRY_MAX_MS: u64 = 1_000;

/// The identity of a write and how long it is tried.
#[derive(Debug, Clone, Copy)]
pub struct Repeat {
    /// The id of a write that was given up before; `None` makes a new one.
    pub id: Option<EventId>,
    /// Seconds during which a lost connection is tried again.
    pub wait_s: u64,
}

/// What a person may do to a duty without a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// No further run; what is under way is named in the answer.
    Stop,
    /// Goes on after a stop.
    Resume,
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Change::Stop => "stop",
            Change::Resume => "resume",
        }
    }
}

/// Says something to the agent. The id is shown before anything is sent.
pub async fn send(
    client: &Client,
    text: &str,
    about: Option<&str>,
    repeat: Repeat,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    if text.trim().is_empty() {
        return Err(ClientError::Usage("the message is empty; write it after `send`".into()));
    }
    let id = repeat.id.unwrap_or_else(|| client.new_id());
    screen.note(&format!("Message id {id}"))?;
    let mut body = json!({"id": id, "text": text});
    let mut again = String::new();
    if let Some(card) = about {
        again = format!("--about {card} ");
        let kind = match client.get(&["v1", "actions", card], &[]).await {
            Ok(_) => "action",
            Err(ClientError::Refused { status: 404, .. }) => "proposal",
            Err(error) => return Err(error),
        };
        body["about"] = json!({kind: card});
    }
    let lost = GiveUp {
        no_connection: "Not sent",
        not_done: "Not sent",
        unknown: "Not known whether it was sent",
        repeat: format!("adjutant send {again}--id {id} {}", quoted(text)),
    };
    let mut answer = write(client, &["v1", "messages"], &body, repeat.wait_s, lost).await?;
    if let Value::Object(fields) = &mut answer {
        fields.insert("id".into(), json!(id));
    }
    // One id only: the one that repeats it and is shown already.
    screen.result(&answer, "Received, not read yet.\n")
}

/// Stops or resumes a duty and shows it as it is then.
pub async fn change_duty(
    client: &Client,
    duty: &str,
    change: Change,
    repeat: Repeat,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let id = repeat.id.unwrap_or_else(|| client.new_id());
    let word = change.word();
    let lost = GiveUp {
        no_connection: match change {
            Change::Stop => "Not stopped yet – no connection",
            Change::Resume => "Not resumed yet – no connection",
        },
        not_done: match change {
            Change::Stop => "Not stopped yet",
            Change::Resume => "Not resumed yet",
        },
        unknown: match change {
            Change::Stop => "Not known whether it was stopped",
            Change::Resume => "Not known whether it was resumed",
        },
        repeat: format!("adjutant {word} {duty} --id {id}"),
    };
    let path = ["v1", "duties", duty, word];
    let value = write(client, &path, &json!({"id": id}), repeat.wait_s, lost).await?;
    show_duty(client, value, screen).await
}

/// Redeems a pairing code and keeps the token in `file` (mode 0600). Single use: never repeated.
pub async fn pair(
    client: &Client,
    code: &str,
    name: &str,
    file: &Path,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    #[derive(serde::Deserialize)]
    struct Paired {
        device: String,
        token: String,
    }
    // Looked at first, so that a code is not used up for a token that cannot be kept.
    if file.exists() {
        return Err(ClientError::Usage(format!(
            "{} exists: this command line is paired already; to pair it anew, move that file away",
            file.display()
        )));
    }
    let value = client.post(&["v1", "pair"], &json!({"code": code, "name": name})).await?;
    let paired: Paired = understand("/v1/pair", value)?;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    keep(file, &paired.token)?;
    let shown = file.display().to_string();
    let answer = json!({"device": paired.device, "token_file": shown});
    screen.result(&answer, &format!("Paired as \"{name}\". The token is in {shown}\n"))
}

fn keep(file: &Path, token: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(file, "{token}")?;
    file.sync_all()
}

/// What to say once a write is given up.
pub(super) struct GiveUp {
    /// If nobody was there to take it.
    pub(super) no_connection: &'static str,
    /// If the server was there and certainly wrote nothing.
    pub(super) not_done: &'static str,
    /// If an attempt may have been carried out.
    pub(super) unknown: &'static str,
    /// The command that goes on with the same id.
    pub(super) repeat: String,
}

/// Sends the same body again and again until an answer comes or `wait_s` seconds have gone by.
///
/// An attempt that is under way when the time is over is still awaited, since its answer counts.
pub(super) async fn write(
    client: &Client,
    path: &[&str],
    body: &Value,
    wait_s: u64,
    lost: GiveUp,
) -> Result<Value, ClientError> {
    let over = tokio::time::sleep(Duration::from_secs(wait_s));
    tokio::pin!(over);
    let mut in_doubt = false;
    let mut retry_ms = RETRY_FIRST_MS;
    loop {
        let error = match client.post(path, body).await {
            Ok(value) => return Ok(value),
            Err(error) if error.is_passing() => error,
            Err(error) => return Err(error),
        };
        in_doubt |= !error.nothing_written();
        let pause = tokio::time::sleep(Duration::from_millis(retry_ms));
        // Whichever comes first: the next try, or the end of all tries. Nothing is under way here.
        tokio::select! {
            biased;
            () = &mut over => {
                let done = if in_doubt {
                    lost.unknown
                } else if matches!(error, ClientError::NotRunning { .. }) {
                    lost.no_connection
                } else {
                    lost.not_done
                };
                let (certain, source) = (!in_doubt, Box::new(error));
                return Err(ClientError::GivenUp { done, certain, source, repeat: lost.repeat });
            }
            () = pause => {}
        }
        retry_ms = (retry_ms * 2).min(RETRY_MAX_MS);
    }
}

/// The text as one word of a shell; a long one is shortened, since the person has it.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN_MAX: usize = 200;
    match text.char_indices().nth(SHOWN_MAX) {
        Some(_) => "'the same text'".into(),
        None => format!("'{}'", text.replace('\'', "'\\''")),
    }
}
