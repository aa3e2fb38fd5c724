//! Ways in: what wakes the agent comes through a source.
//!
//! A [`Config`] says how a source is reached, an [`Item`] is one thing that came in. [`webhook`] checks
//! requests that a sender signed; what is polled is looked at by the other files of this folder.

use serde::{Deserialize, Serialize};

pub mod webhook;

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
    /// URLs in it that may become objects.
    pub links: Vec<String>,
}
