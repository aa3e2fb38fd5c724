//! The one HTTP client for URLs that somebody else chose: a page, a feed, a link in a message.
//!
//! A URL from outside may point at what only this machine can reach: its own services, the rooms of
//! the local network, a cloud's metadata. [`Client`] therefore looks a host up itself, refuses every
//! address that is not public, and connects to the very address that was checked; there is no second
//! look-up that could answer differently. Redirects are followed by hand and each hop is checked anew.
//!
//! What is absent: cookies, credentials, a proxy from the environment, content decoding, and any
//! method but GET. An operator's own service is reached only if its address stands in `allowed`.

mod address;
mod error;
mod fetch;
mod resolve;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

pub use address::not_public;
pub use error::GuardError;
pub use resolve::{Resolve, Resolving, SystemResolver};
pub use tls::SetupError;

pub(crate) use tls::plain_client;

/// Bytes of a URL; a longer one is no address but a way to carry data away.
pub const URL_BYTES_MAX: usize = 4_096;

/// What one fetch may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardLimits {
    /// Looking a host up, connecting to it and the TLS handshake, per hop.
    pub connect_ms: u64,
    /// The whole fetch, redirects and a slowly dripping body included.
    pub total_ms: u64,
    /// Bytes of a body, counted as they arrive. No content encoding is asked for or undone.
    pub body_bytes_max: usize,
    /// Bytes of all header names and values of one answer.
    pub header_bytes_max: usize,
    /// Redirects that are followed.
    pub redirects_max: usize,
}

impl Default for GuardLimits {
    fn default() -> Self {
        GuardLimits {
            connect_ms: 5_000,
            total_ms: 20_000,
            body_bytes_max: 4 * 1024 * 1024,
            header_bytes_max: 32 * 1024,
            redirects_max: 5,
        }
    }
}

/// What makes a fetch conditional: the marks of the last answer, as the other side gave them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// For `If-None-Match`.
    pub etag: Option<String>,
    /// For `If-Modified-Since`.
    pub last_modified: Option<String>,
}

/// An answer, whatever its status. Its body is at most [`GuardLimits::body_bytes_max`] long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Where the answer came from, after redirects and without a fragment.
    pub final_url: Url,
    /// The HTTP status.
    pub status: u16,
    /// The media type in lower case without its parameters; empty if none was sent.
    pub media: String,
    /// The `charset` parameter of the media type in lower case.
    pub charset: Option<String>,
    /// The marks for the next conditional fetch.
    pub marks: Conditions,
    /// `Retry-After` as it was sent, at most 64 bytes.
    pub retry_after: Option<String>,
    /// The body, byte for byte.
    pub body: Vec<u8>,
}

/// The guarded client. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    resolver: Arc<dyn Resolve>,
    tls: rustls::ClientConfig,
    limits: GuardLimits,
    allowed: Arc<[SocketAddr]>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (limits, allowed) = (&self.limits, &self.allowed);
        f.debug_struct("Client").field("limits", limits).field("allowed", allowed).finish()
    }
}

impl Client {
    /// A client that asks `resolver`, and that may also reach the addresses in `allowed`: services of
    /// the operator's own, named one by one with their port.
    ///
    /// # Errors
    /// [`SetupError`] if TLS cannot be set up.
    pub fn new(
        resolver: Arc<dyn Resolve>,
        limits: GuardLimits,
        allowed: Vec<SocketAddr>,
    ) -> Result<Client, SetupError> {
        let allowed = allowed.into_iter().map(address::canonical).collect();
        Ok(Client { resolver, tls: tls::config()?, limits, allowed })
    }

    /// The limits of each fetch.
    pub fn limits(&self) -> &GuardLimits {
        &self.limits
    }

    /// Whether `url` could be fetched as far as its text goes, in the form in which it is fetched.
    /// Nothing is looked up.
    ///
    /// # Errors
    /// The [`GuardError`] that [`Client::get`] would give before it asks anyone.
    pub fn check(&self, url: &str) -> Result<Url, GuardError> {
        let url = address::parse(url)?;
        address::check(&url, &self.allowed)?;
        Ok(url)
    }

    /// Fetches `url`.
    ///
    /// Allowed are `http` and `https` to public addresses, on the ports 80, 443 and those from 1024 on
    /// that are not known for a service that is not the web (databases, remote control, mail, chat).
    ///
    /// # Errors
    /// [`GuardError`]; an answer with an error status is an answer.
    pub async fn get(&self, url: &str, conditions: &Conditions) -> Result<Fetched, GuardError> {
        let first = self.check(url)?;
        let limit_ms = self.limits.total_ms;
        let host = error::host_of(&first);
        let fetch = fetch::follow(self, first, conditions);
        tokio::time::timeout(Duration::from_millis(limit_ms), fetch)
            .await
            .unwrap_or(Err(GuardError::TimedOut { host, limit_ms }))
    }
}
