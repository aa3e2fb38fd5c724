//! Whether a way in can be one: refused before anything is kept, with the remedy.

use std::path::{Path, PathBuf};

use base::Secret;
use connect::guard::URL_BYTES_MAX;
use connect::source::{Config, webhook};
use engine::control::SOURCE_MS;
use store::source::SourceKind;
use url::Url;

use crate::App;
use crate::problem::{Problem, sentence};

/// Bytes of a secret. A sender's has some dozens.
const SECRET_BYTES_MAX: usize = 512;
/// Bytes of the path of a folder.
const FOLDER_BYTES_MAX: usize = 2_000;
/// Bytes of a path in a payload.
const PATH_BYTES_MAX: usize = 200;

/// The secret of a webhook; nothing else has one.
pub(super) fn secret(config: &Config, secret: Option<&str>) -> Result<Option<Secret>, Problem> {
    let Config::Webhook { scheme, .. } = config else {
        return match secret {
            None => Ok(None),
            Some(_) => Err(Problem::bad("Only a webhook has a secret; leave it out.")),
        };
    };
    let missing = |_| Problem::bad("A webhook needs its secret; make one, or name the sender's.");
    let secret = Secret::new(secret.unwrap_or_default()).map_err(missing)?;
    if secret.expose().len() > SECRET_BYTES_MAX {
        return Err(Problem::bad(format!(
            "A secret has {SECRET_BYTES_MAX} bytes at most; make a shorter one."
        )));
    }
    webhook::check_secret(*scheme, &secret)
        .map_err(|error| Problem::bad(sentence(&error.to_string())))?;
    Ok(Some(secret))
}

/// How often a source is looked at: what is polled always, a webhook if it has an address for that.
pub(super) fn look(
    app: &App,
    config: &Config,
    every_ms: Option<u64>,
) -> Result<Option<u64>, Problem> {
    let usual = Some(every_ms.unwrap_or(app.web.cx.limits.look_every_ms));
    match config {
        Config::Folder { .. } | Config::Feed { .. } | Config::Url { .. } => Ok(usual),
        Config::Webhook { recheck: Some(_), .. } => Ok(usual),
        Config::Webhook { recheck: None, .. } => match every_ms {
            None => Ok(None),
            Some(_) => Err(Problem::bad(
                "A webhook is looked at only if config.recheck names an address; leave every_ms out.",
            )),
        },
    }
}

/// A time between two looks, or of a silence.
pub(super) fn time(what: &str, asked: Option<u64>) -> Result<(), Problem> {
    match asked.is_none_or(|asked| SOURCE_MS.contains(&asked)) {
        true => Ok(()),
        false => Err(Problem::bad(format!(
            "{what} is {} ms; it is from 10 s to 366 days ({} to {}), or left out.",
            asked.unwrap_or_default(),
            SOURCE_MS.start(),
            SOURCE_MS.end()
        ))),
    }
}

/// The kind of a source whose place can be one, and its config as it is stored.
pub(super) async fn place(app: &App, config: Config) -> Result<(SourceKind, Config), Problem> {
    match config {
        Config::Webhook { ref key, ref topic, ref recheck, .. } => {
            payload_path("config.key", key.as_deref())?;
            payload_path("config.topic", topic.as_deref())?;
            recheck.as_deref().map(address).transpose()?;
            Ok((SourceKind::Webhook, config))
        }
        Config::Folder { path } => {
            let data = app.web.data_dir.clone();
            let looked = tokio::task::spawn_blocking(move || folder(&path, &data)).await;
            let path = looked.map_err(|error| {
                tracing::error!(%error, "a look at a folder died");
                Problem::not_done("The server failed. Send the same request again.")
            })??;
            Ok((SourceKind::Folder, Config::Folder { path }))
        }
        Config::Feed { ref url } => address(url).map(|()| (SourceKind::Feed, config)),
        Config::Url { ref url } => address(url).map(|()| (SourceKind::Url, config)),
    }
}

fn payload_path(what: &str, path: Option<&str>) -> Result<(), Problem> {
    let fits =
        |path: &str| (1..=PATH_BYTES_MAX).contains(&path.len()) && !path.contains(char::is_control);
    match path.is_none_or(fits) {
        true => Ok(()),
        false => Err(Problem::bad(format!(
            "{what} is a path of 1 to {PATH_BYTES_MAX} bytes, such as data.order.id; or leave it out."
        ))),
    }
}

/// An address as the guarded client would take it, as far as its text goes. Whether it may be reached
/// shows at the first look: the operator may allow addresses of this machine.
fn address(text: &str) -> Result<(), Problem> {
    if text.len() > URL_BYTES_MAX {
        return Err(Problem::bad(format!("An address has {URL_BYTES_MAX} bytes at most.")));
    }
    let wrong = || Problem::bad("Write the address as http://host/path or https://host/path.");
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    // The standard reads a host out of much that looks like none.
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    let has_host = rest.is_some_and(|rest| !rest.starts_with('/') && !rest.contains(odd));
    let url = Url::parse(text).ok().filter(|url| has_host && url.has_host()).ok_or_else(wrong)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Problem::bad(
            "The address holds a user name or password, which would be stored and shown; take out \
             everything before the \"@\".",
        ));
    }
    Ok(())
}

/// A folder that may be watched, without links in its path. The data folder is none: what is read is
/// shown to the model, and the token and the secrets lie there.
fn folder(path: &str, data: &Path) -> Result<String, Problem> {
    let whole = path.starts_with('/') && path.len() <= FOLDER_BYTES_MAX && !path.contains('\0');
    if !whole {
        return Err(Problem::bad("Write the folder as a whole path, such as /home/me/inbox."));
    }
    let real = std::fs::canonicalize(path).map_err(|error| {
        Problem::bad(format!("{path} cannot be watched ({error}); make the folder, then add it."))
    })?;
    if !real.is_dir() {
        return Err(Problem::bad(format!("{path} is no folder; name the folder that it lies in.")));
    }
    let data: PathBuf = std::fs::canonicalize(data).unwrap_or_else(|_| data.to_owned());
    if real.starts_with(&data) || data.starts_with(&real) {
        return Err(Problem::bad(format!(
            "{path} is, holds or lies in the folder of Adjutant's own data, where its secrets are; watch \
             another one."
        )));
    }
    real.into_os_string()
        .into_string()
        .map_err(|_| Problem::bad("The folder's path is no UTF-8; give it a plain name."))
}
