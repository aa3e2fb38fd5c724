//! Ways in: what wakes the agent comes through a source.
//!
//! A [`Config`] says how a source is reached, an [`Item`] is one thing that came in. [`webhook`] checks
//! requests that a sender signed; what is polled is looked at by the other files of this folder.

use ::url::Url;
use base::Timestamp;
use serde::{Deserialize, Serialize};

use crate::guard::{Client, Conditions, Fetched};

mod error;
mod feed;
mod folder;
mod seen;
mod url;
pub mod webhook;

pub use error::LookError;

/// How a source is reached, as it is stored: JSON without any secret in it.
#[derive(Serialize, Deserialize, PartialEq, Eq, Clone, Debug)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Config {
    /// The other side calls us and signs what it sends.
    Webhook {
        /// How it signs.
        scheme: Scheme,
        /// Dotted path in the payload to the natural key, for example `data.order.id`.
        key: Option<String>,
        /// Dotted path to the topic; `type` by default for [`Scheme::Standard`].
        topic: Option<String>,
        /// A URL that is polled as a backup, for calls that never arrived (EVT-12).
        recheck: Option<String>,
    },
    /// A folder whose new files are events.
    Folder {
        /// Absolute path.
        path: String,
    },
    /// An RSS or Atom feed.
    Feed {
        /// Where it is.
        url: String,
    },
    /// A page whose change is an event.
    Url {
        /// Where it is.
        url: String,
    },
}

/// How a sender signs its webhooks.
#[derive(Serialize, Deserialize, PartialEq, Eq, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// Standard Webhooks 1.0.
    Standard,
    /// GitHub's `X-Hub-Signature-256`.
    Github,
}

/// One thing that came in through a source.
#[derive(PartialEq, Eq, Clone, Debug)]
pub struct Item {
    /// The id that the sender gave it; unique within its source. At most 200 bytes.
    pub external_id: String,
    /// What it is about, in the sender's own terms (no source name in it).
    pub key: Option<String>,
    /// What kind of thing happened.
    pub topic: Option<String>,
    /// What was said, byte for byte.
    pub content: Vec<u8>,
    /// The media type of `content`.
    pub media: String,
    /// Addresses that become objects (TOOL-15): where it stands at the source that the user named, and
    /// nowhere else. What others wrote into it names no address that may be fetched.
    pub links: Vec<String>,
}

/// What one look at a polled source may take.
#[derive(PartialEq, Eq, Clone, Debug)]
pub struct SourceLimits {
    /// Items of one look.
    pub items_max: usize,
    /// Bytes of one item's content; of a longer file only its name and size are told.
    pub item_bytes_max: usize,
    /// Bytes of all contents of one look.
    pub look_bytes_max: usize,
    /// A file that was written to within this time waits for the next look.
    pub settle_ms: u64,
    /// Files in a watched folder, and ids of a feed that are remembered.
    pub seen_max: usize,
}

impl Default for SourceLimits {
    fn default() -> Self {
        SourceLimits {
            items_max: 50,
            item_bytes_max: 1024 * 1024,
            look_bytes_max: 8 * 1024 * 1024,
            settle_ms: 1_000,
            seen_max: 8_000,
        }
    }
}

/// Bytes of an address.
const LINK_BYTES_MAX: usize = 2_000;

/// Bytes of a cursor.
pub const CURSOR_BYTES_MAX: usize = 64 * 1024;

/// What a look at a polled source found.
#[derive(PartialEq, Eq, Clone, Debug)]
pub struct Look {
    /// What is new, oldest first.
    pub items: Vec<Item>,
    /// Where the next look goes on; opaque, at most [`CURSOR_BYTES_MAX`] bytes.
    pub cursor: String,
    /// There is more that is new; look again at once.
    pub more: bool,
}

/// Looks at a polled source. Nothing is new that the look before, whose `cursor` is given, has found.
///
/// A first look at a feed or a page only remembers what is there; a first look at a folder finds the
/// files that lie in it. The same cursor gives the same items with the same ids, so a look whose items
/// were lost may be repeated. `now` is compared with the times of files only.
///
/// # Errors
/// [`LookError`]; the cursor stays valid.
pub async fn look(
    web: &Client,
    config: &Config,
    cursor: Option<&str>,
    limits: &SourceLimits,
    now: Timestamp,
) -> Result<Look, LookError> {
    match config {
        Config::Webhook { recheck: None, .. } => Err(LookError::NotPolled),
        Config::Folder { path } => folder::look(path, cursor, limits, now).await,
        Config::Feed { url } => feed::look(web, url, cursor, limits).await,
        Config::Url { url } | Config::Webhook { recheck: Some(url), .. } => {
            self::url::look(web, url, cursor, limits).await
        }
    }
}

/// Reads a cursor of ours; without one, or with an empty one, it is the first look.
fn read_cursor<T: serde::de::DeserializeOwned>(
    cursor: Option<&str>,
) -> Result<Option<T>, LookError> {
    match cursor.filter(|cursor| !cursor.is_empty()) {
        None => Ok(None),
        Some(cursor) => serde_json::from_str(cursor).map(Some).map_err(|_| LookError::Cursor),
    }
}

fn write_cursor<T: Serialize>(cursor: &T) -> Result<String, LookError> {
    let text = serde_json::to_string(cursor).map_err(|_| LookError::Cursor)?;
    if text.len() > CURSOR_BYTES_MAX { Err(LookError::Cursor) } else { Ok(text) }
}

/// Fetches what is polled; `None` if it has not changed since `marks`.
async fn fetch(web: &Client, url: &str, marks: &Conditions) -> Result<Option<Fetched>, LookError> {
    let fetched = web.get(url, marks).await?;
    match fetched.status {
        200 => Ok(Some(fetched)),
        304 => Ok(None),
        status => {
            let retry_after = fetched.retry_after;
            Err(LookError::Status { url: url.to_owned(), status, retry_after })
        }
    }
}

/// An address as it would be fetched, if it lies on the host of `home`, which the user named, and holds
/// no credentials.
fn at_home(address: &str, home: &Url) -> Option<Url> {
    let address = Url::parse(address).ok().filter(|_| address.len() <= LINK_BYTES_MAX)?;
    let is_web = matches!(address.scheme(), "https" | "http");
    let is_bare = address.username().is_empty() && address.password().is_none();
    let is_home =
        address.host().is_some() && address.host() == home.host() && address.port() == home.port();
    (is_web && is_bare && is_home).then_some(address)
}

/// The marks of the last answer, as a cursor keeps them.
#[derive(Serialize, Deserialize, Default, PartialEq, Eq, Clone, Debug)]
struct Marks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_modified: Option<String>,
}

impl From<Conditions> for Marks {
    fn from(Conditions { etag, last_modified }: Conditions) -> Self {
        Marks { etag, last_modified }
    }
}

impl Marks {
    fn conditions(&self) -> Conditions {
        Conditions { etag: self.etag.clone(), last_modified: self.last_modified.clone() }
    }
}
