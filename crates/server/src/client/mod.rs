//! The command line as a client of the HTTP API: it takes input, shows records and collects
//! decisions; it holds no state and no rule of its own (CLI-01).

pub mod actions;
mod control;
mod decide;
mod devices;
mod error;
mod events;
mod http;
pub mod rules;
mod show;
pub mod sources;
mod tail;
mod wire;
pub mod world;
mod write;

#[cfg(test)]
pub mod tests;

pub use control::{Settle, control, lift, pause, settle, system_stop};
pub use decide::{Answer, confirm, decline};
pub use devices::{Wish, devices, offer_code, revoke, set};
pub use error::{ClientError, Exit};
pub use events::{events, explain, observed, trace, verify_audit};
pub use http::{Client, Endpoint, find_within, http_client};
pub use show::Screen;
pub use tail::{TailOptions, tail};
pub use write::{Change, Repeat, change_duty, pair, send};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use show::Times;
use wire::{Duty, Me};

/// All duties with their state in words.
pub async fn duties(client: &Client, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    #[derive(Deserialize)]
    struct All {
        duties: Vec<Duty>,
    }
    let value = client.get(&["v1", "duties"], &[]).await?;
    let all: All = understand("/v1/duties", value.clone())?;
    let times = times(client).await?;
    screen.result(&value, &show::duties(&all.duties, &times))
}

/// One duty with everything.
pub async fn duty(client: &Client, id: &str, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    let value = client.get(&["v1", "duties", id], &[]).await?;
    show_duty(client, value, screen).await
}

/// The OpenAPI document, which this program carries.
pub fn openapi(json: bool) -> String {
    match serde_json::from_str::<Value>(web::OPENAPI) {
        Ok(value) if json => format!("{value}\n"),
        Ok(_) | Err(_) => web::OPENAPI.to_owned(),
    }
}

async fn show_duty(
    client: &Client,
    value: Value,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let duty: Duty = understand("/v1/duties", value.clone())?;
    let times = times(client).await?;
    screen.result(&value, &show::duty(&duty, &times))
}

async fn times(client: &Client) -> Result<Times, ClientError> {
    let me: Me = fetch(client, &["v1", "me"], &[]).await?;
    Ok(Times::new(&me.zone))
}

/// Reads an address into the type that this program knows for it.
pub async fn fetch<T: DeserializeOwned>(
    client: &Client,
    path: &[&str],
    query: &[(&str, i64)],
) -> Result<T, ClientError> {
    let value = client.get(path, query).await?;
    understand(&format!("/{}", path.join("/")), value)
}

/// Reads an answer into the type this program knows for it.
fn understand<T: DeserializeOwned>(path: &str, value: Value) -> Result<T, ClientError> {
    serde_json::from_value(value)
        .map_err(|error| ClientError::Garbled { path: path.into(), reason: error.to_string() })
}
