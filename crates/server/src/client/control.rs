//! Pauses, held messages and the operator's stop, from the command line.

use serde_json::json;

use super::error::ClientError;
use super::http::Client;
use super::show::{self, Screen, Times};
use super::world::Control;
use super::write::{GiveUp, Repeat, write};
use super::{fetch, times, understand};

/// What is stopped, paused and held.
pub async fn control(client: &Client, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    let value = client.get(&["v1", "control"], &[]).await?;
    let state: Control = understand("/v1/control", value.clone())?;
    let times = times(client).await?;
    screen.result(&value, &shown(&state, &times))
}

fn shown(state: &Control, times: &Times) -> String {
    let mut text = String::new();
    if state.system_stop {
        text.push_str(
            "Stopped by the operator: you are answered, nothing else runs, and nothing is done outside. \
             Let it go on: adjutant system-stop off\n",
        );
    }
    for pause in &state.pauses {
        let (since, by) = (times.show(pause.created_at), pause.by.as_str());
        let by = match by {
            "user" => "by you",
            _ => "because a message of yours says stop, or the records come from a backup",
        };
        let (what, lift) = match &pause.duty {
            None => ("Everything is paused".to_owned(), "adjutant lift".to_owned()),
            Some(duty) => {
                let title = pause.title.as_deref().unwrap_or_default();
                let title = show::plain(title).replace('\n', " ");
                (format!("Paused: {title}"), format!("adjutant lift {}", show::plain(duty)))
            }
        };
        text.push_str(&format!("{what}, since {since}, {by}. Go on: {lift}\n"));
    }
    for hold in &state.holds {
        let said = show::plain(&hold.text).replace('\n', " ");
        let asked = if hold.asked_at.is_some() { " You are asked: does it mean stop?" } else { "" };
        let id = show::plain(&hold.id);
        text.push_str(&format!(
            "Held since {} by \"{said}\".{asked}\n    It means stop: adjutant hold stop {id}\n    \
             Not a stop:    adjutant hold release {id}\n",
            times.show(hold.created_at)
        ));
    }
    if text.is_empty() {
        text.push_str("Nothing is stopped, paused or held.\n");
    }
    text
}

/// Pauses a duty, or everything.
pub async fn pause(
    client: &Client,
    duty: Option<&str>,
    repeat: Repeat,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let id = repeat.id.unwrap_or_else(|| client.new_id());
    let lost = GiveUp {
        no_connection: "Not paused yet – no connection",
        not_done: "Not paused yet",
        unknown: "Not known whether it was paused",
        repeat: match duty {
            Some(duty) => format!("adjutant pause {duty} --id {id}"),
            None => format!("adjutant pause --id {id}"),
        },
    };
    let mut body = json!({"id": id});
    let lift = match duty {
        Some(duty) => {
            body["duty"] = json!(duty);
            format!("adjutant lift {duty}")
        }
        None => "adjutant lift".to_owned(),
    };
    let value = write(client, &["v1", "pauses"], &body, repeat.wait_s, lost).await?;
    let text = match (value["state"] == "lifted", duty) {
        (true, Some(duty)) => {
            format!(
                "Not paused: this pause was lifted since. Pause it again: adjutant pause {duty}\n"
            )
        }
        (true, None) => {
            "Not paused: this pause was lifted since. Pause everything again: adjutant pause\n"
                .into()
        }
        (false, Some(_)) => format!("Paused. What was already sent stands. Go on: {lift}\n"),
        (false, None) => format!(
            "Everything is paused; you are still answered. What was already sent stands. Go on: {lift}\n"
        ),
    };
    screen.result(&value, &text)
}

/// Lifts the pause of a duty, or that of everything.
pub async fn lift(
    client: &Client,
    duty: Option<&str>,
    repeat: Repeat,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let state: Control = fetch(client, &["v1", "control"], &[]).await?;
    let pause = state.pauses.into_iter().find(|pause| pause.duty.as_deref() == duty);
    let Some(pause) = pause else {
        // A duty that is not there is refused as by a pause.
        if let Some(duty) = duty {
            client.get(&["v1", "duties", duty], &[]).await?;
        }
        let value = json!({"pause": null});
        return screen.result(&value, "There is no such pause; nothing was changed.\n");
    };
    let id = repeat.id.unwrap_or_else(|| client.new_id());
    let lost = GiveUp {
        no_connection: "Not lifted",
        not_done: "Not lifted",
        unknown: "Not known whether it was lifted",
        repeat: match duty {
            Some(duty) => format!("adjutant lift {duty} --id {id}"),
            None => format!("adjutant lift --id {id}"),
        },
    };
    let path = ["v1", "pauses", pause.id.as_str(), "lift"];
    let value = write(client, &path, &json!({"id": id}), repeat.wait_s, lost).await?;
    let still = still_held_back(client, duty).await?;
    let text = match still.is_empty() {
        true => "Lifted. It goes on.\n".to_owned(),
        false => format!("Lifted, but still held back: {}.\n", still.join("; ")),
    };
    screen.result(&value, &text)
}

/// What stands in the way of a duty, or of everything, though its own pause was lifted.
async fn still_held_back(client: &Client, duty: Option<&str>) -> Result<Vec<String>, ClientError> {
    let state: Control = fetch(client, &["v1", "control"], &[]).await?;
    let paused =
        |wanted: Option<&str>| state.pauses.iter().any(|pause| pause.duty.as_deref() == wanted);
    let mut still = Vec::new();
    if state.system_stop {
        still.push("the operator has stopped everything (adjutant system-stop off)".to_owned());
    }
    if paused(None) {
        still.push("everything is paused (adjutant lift)".to_owned());
    }
    match duty {
        None if !state.pauses.is_empty() && !paused(None) => {
            still.push("what is paused on its own (adjutant hold)".to_owned());
        }
        None => {}
        Some(duty) => {
            if paused(Some(duty)) {
                still.push(format!("it was paused again (adjutant lift {duty})"));
            }
            let value = client.get(&["v1", "duties", duty], &[]).await?;
            match value["state"].as_str() {
                Some("stopped") => still.push(format!("it is stopped (adjutant resume {duty})")),
                Some("closed") => still.push("it is closed".to_owned()),
                _ => {}
            }
        }
    }
    if !state.holds.is_empty() {
        still.push("a message may mean stop (adjutant hold)".to_owned());
    }
    Ok(still)
}

/// The person's own word on a held message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settle {
    /// Not a stop.
    Release,
    /// It means stop.
    Stop,
}

/// Settles a hold; which one need not be said if there is one only.
pub async fn settle(
    client: &Client,
    hold: Option<&str>,
    how: Settle,
    repeat: Repeat,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let hold = match hold {
        Some(hold) => hold.to_owned(),
        None => {
            let state: Control = fetch(client, &["v1", "control"], &[]).await?;
            match &state.holds[..] {
                [one] => one.id.clone(),
                [] => return Err(ClientError::Usage("nothing is held".into())),
                _ => {
                    let several = "several messages hold; name one, as \"adjutant hold\" shows it";
                    return Err(ClientError::Usage(several.into()));
                }
            }
        }
    };
    let id = repeat.id.unwrap_or_else(|| client.new_id());
    let (route, word, done) = match how {
        Settle::Release => {
            ("release", "release", "Released. Nothing is held back by it any more.\n")
        }
        Settle::Stop => (
            "promote",
            "stop",
            "Everything is paused; you are still answered. Go on: adjutant lift\n",
        ),
    };
    let lost = GiveUp {
        no_connection: "Not settled yet – no connection",
        not_done: "Not settled yet",
        unknown: "Not known whether it was settled",
        repeat: format!("adjutant hold {word} {hold} --id {id}"),
    };
    let path = ["v1", "holds", hold.as_str(), route];
    let value = write(client, &path, &json!({"id": id}), repeat.wait_s, lost).await?;
    let lifted = how == Settle::Stop && value["paused"] == false;
    let over =
        "Not paused: the pause that it became was lifted since. Pause again: adjutant pause\n";
    screen.result(&value, if lifted { over } else { done })
}

/// The operator's stop, or its end.
pub async fn system_stop(
    client: &Client,
    stopped: bool,
    repeat: Repeat,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let id = repeat.id.unwrap_or_else(|| client.new_id());
    let word = if stopped { "on" } else { "off" };
    let lost = GiveUp {
        no_connection: "Not changed yet – no connection",
        not_done: "Not changed yet",
        unknown: "Not known whether it was changed",
        repeat: format!("adjutant system-stop {word} --id {id}"),
    };
    let body = json!({"id": id, "stopped": stopped});
    let value = write(client, &["v1", "system-stop"], &body, repeat.wait_s, lost).await?;
    let text = match value["system_stop"] == true {
        true => {
            "Stopped, for everybody: who speaks is answered, nothing else runs, and nothing is done outside. \
                 Let it go on: adjutant system-stop off\n"
        }
        false => "Not stopped: runs start as they are due.\n",
    };
    screen.result(&value, text)
}
