//! The person's devices and settings: one more device, one less, and name, zone and cap.

use base::MicroUsd;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error::ClientError;
use super::http::Client;
use super::show::{self, Screen};
use super::wire::{Device, Me};
use super::write::{GiveUp, Repeat, write};
use super::{times, understand};

/// Makes a code for one more device. Asked again it would be another code, so it is never repeated.
pub async fn offer_code(
    client: &Client,
    supervisor: bool,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    #[derive(Deserialize)]
    struct Offer {
        code: String,
        link: String,
        expires_at: base::Timestamp,
    }
    let times = times(client).await?;
    let body = if supervisor { json!({"supervisor": true}) } else { json!({}) };
    let value = client.post(&["v1", "codes"], &body).await?;
    let offer: Offer = understand("/v1/codes", value.clone())?;
    let (code, link) = (show::plain(&offer.code), show::plain(&offer.link));
    let until = times.show(offer.expires_at);
    let mut text = format!("Works once, until {until}; codes before it are void.\n");
    if supervisor {
        text.push_str(
            "It makes a device of the supervisor, which lays rules and owns nothing else.\n",
        );
    } else {
        text.push_str(&format!("Browser       {link}\n"));
    }
    text.push_str(&format!("Command line  adjutant pair {code}\n"));
    if let Some(port) = link.parse::<Url>().ok().and_then(|url| url.port_or_known_default()) {
        text.push_str(&format!(
            "From another machine, open a tunnel there first: ssh -N -L {port}:127.0.0.1:{port} \
             THIS-MACHINE\n"
        ));
    }
    screen.result(&value, &text)
}

/// All devices, revoked ones too.
pub async fn devices(client: &Client, screen: &mut Screen<'_>) -> Result<(), ClientError> {
    #[derive(Deserialize)]
    struct All {
        devices: Vec<Device>,
    }
    let value = client.get(&["v1", "devices"], &[]).await?;
    let all: All = understand("/v1/devices", value.clone())?;
    let times = times(client).await?;
    screen.result(&value, &show::devices(&all.devices, &times))
}

/// Ends a device's access. Nothing is asked of the server afterwards: it may have been this device.
pub async fn revoke(
    client: &Client,
    device: &str,
    repeat: Repeat,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let id = repeat.id.unwrap_or_else(|| client.new_id());
    let lost = GiveUp {
        no_connection: "Not revoked yet – no connection",
        not_done: "Not revoked yet",
        unknown: "Not known whether it was revoked",
        repeat: format!("adjutant revoke {device} --id {id}"),
    };
    let path = ["v1", "devices", device, "revoke"];
    let value = write(client, &path, &json!({"id": id}), repeat.wait_s, lost).await?;
    screen.result(&value, "Revoked. Its token is refused from now on; what it sent stands.\n")
}

/// What the person wants otherwise; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// How the agent addresses them.
    pub name: Option<String>,
    /// IANA zone.
    pub zone: Option<String>,
    /// The month's cap.
    pub cap: Option<MicroUsd>,
    /// How far the agent goes by itself.
    pub dial: Option<domain::event::Dial>,
    /// In which language the server speaks to them.
    pub language: Option<domain::words::Language>,
}

/// Changes settings, if any are named, and shows them as they are then.
pub async fn set(
    client: &Client,
    wish: Wish,
    repeat: Repeat,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let id = repeat.id.unwrap_or_else(|| client.new_id());
    let mut again = String::from("adjutant set");
    let mut body = Map::new();
    let named = [("name", "--name", &wish.name), ("zone", "--zone", &wish.zone)];
    for (key, option, value) in named {
        if let Some(value) = value {
            again.push_str(&format!(" {option} {}", super::write::quoted(value)));
            body.insert(key.into(), json!(value));
        }
    }
    if let Some(cap) = wish.cap {
        let (whole, part) = (cap.0 / 1_000_000, cap.0 % 1_000_000);
        again.push_str(&format!(" --cap-usd {whole}.{part:06}"));
        body.insert("month_cap_micro_usd".into(), json!(cap));
    }
    if let Some(dial) = wish.dial {
        again.push_str(&format!(" --dial {}", dial.word()));
        body.insert("dial".into(), json!(dial));
    }
    if let Some(language) = wish.language {
        again.push_str(&format!(" --language {}", language.word()));
        body.insert("language".into(), json!(language));
    }
    if !body.is_empty() {
        body.insert("id".into(), json!(id));
        let lost = GiveUp {
            no_connection: "Not set",
            not_done: "Not set",
            unknown: "Not known whether it was set",
            repeat: format!("{again} --id {id}"),
        };
        write(client, &["v1", "owner"], &Value::Object(body), repeat.wait_s, lost).await?;
    }
    let value = client.get(&["v1", "me"], &[]).await?;
    let me: Me = understand("/v1/me", value.clone())?;
    screen.result(&value, &show::settings(&me))
}
