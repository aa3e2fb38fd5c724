//! Why a URL was not fetched. Each text says what to do next; none repeats what a host answered.

use url::Url;

/// Why a URL was not fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// The text is not a URL with a host.
    #[error("this is no web address: {reason}. Write it as https://host/path")]
    NotAUrl {
        /// What is wrong with it.
        reason: String,
    },
    /// Another scheme than `http` or `https`.
    #[error("addresses that begin with `{scheme}:` are not fetched, only http: and https:")]
    Scheme {
        /// The scheme, cut.
        scheme: String,
    },
    /// A user name or password stands in the URL.
    #[error("the address holds a user name or password; take out everything before the `@`")]
    Credentials,
    /// A port that is not used for pages.
    #[error(
        "port {port} is not fetched: pages are on 80, 443 or a port from 1024 on that no other \
         service is known for. Use another address, or have the operator allow this one"
    )]
    Port {
        /// The port.
        port: u16,
    },
    /// A name that only means something on this machine or in the local network.
    #[error(
        "`{host}` is a name of the local network, which is not reached from here. Use a public \
         address, or have the operator allow this one"
    )]
    LocalName {
        /// The host.
        host: String,
    },
    /// The host is or resolves to an address that is not public.
    #[error(
        "`{host}` leads to an address that is not public ({what}), which is not reached from here. \
         Use a public address, or have the operator allow this one"
    )]
    NotPublic {
        /// The host.
        host: String,
        /// The kind of address.
        what: &'static str,
    },
    /// The name could not be looked up.
    #[error("`{host}` could not be looked up: {reason}. Check the spelling, or try again later")]
    Lookup {
        /// The host.
        host: String,
        /// The system's words.
        reason: String,
    },
    /// No connection, or the TLS handshake failed.
    #[error("`{host}` could not be reached: {reason}. Try again later, or use another address")]
    Connect {
        /// The host.
        host: String,
        /// The system's words.
        reason: String,
    },
    /// The fetch took too long.
    #[error("`{host}` did not answer in full within {limit_ms} ms. Try again later")]
    TimedOut {
        /// The host that was asked first.
        host: String,
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
    /// The connection broke, or what came is not HTTP.
    #[error("the answer of `{host}` broke off: {reason}. Try again later")]
    Broken {
        /// The host.
        host: String,
        /// The client's words.
        reason: String,
    },
    /// More redirects than are followed.
    #[error("the address redirects more than {redirects_max} times; use the address it leads to")]
    Redirects {
        /// The limit.
        redirects_max: usize,
    },
    /// A redirect that does not say where to.
    #[error("`{host}` redirects without a usable address; use another one")]
    Location {
        /// The host.
        host: String,
    },
    /// A redirect from `https` to `http`.
    #[error("`{host}` redirects from https: to http:, which is not followed; use another address")]
    Downgrade {
        /// The host that redirects.
        host: String,
    },
    /// The headers of an answer are too long.
    #[error("`{host}` sent headers of more than {limit_bytes} bytes; use another address")]
    HeadersTooLarge {
        /// The host.
        host: String,
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// The body of an answer is too long.
    #[error(
        "`{host}` answers with more than {limit_bytes} bytes, which is not read. Look for a \
         smaller page"
    )]
    BodyTooLarge {
        /// The host.
        host: String,
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// The body is compressed although nobody asked for that.
    #[error("`{host}` sent its answer compressed without being asked; use another address")]
    Encoded {
        /// The host.
        host: String,
    },
    /// No client could be made for this host.
    #[error("the HTTP client cannot be set up: {reason}; this build is broken, report it")]
    Setup {
        /// The client's words.
        reason: String,
    },
}

impl GuardError {
    /// Whether the same fetch may succeed later without anyone changing anything.
    pub fn heals_by_waiting(&self) -> bool {
        match self {
            GuardError::Lookup { .. }
            | GuardError::Connect { .. }
            | GuardError::TimedOut { .. }
            | GuardError::Broken { .. } => true,
            GuardError::NotAUrl { .. }
            | GuardError::Scheme { .. }
            | GuardError::Credentials
            | GuardError::Port { .. }
            | GuardError::LocalName { .. }
            | GuardError::NotPublic { .. }
            | GuardError::Redirects { .. }
            | GuardError::Location { .. }
            | GuardError::Downgrade { .. }
            | GuardError::HeadersTooLarge { .. }
            | GuardError::BodyTooLarge { .. }
            | GuardError::Encoded { .. }
            | GuardError::Setup { .. } => false,
        }
    }
}

/// The host of a URL as errors show it.
pub(super) fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// The innermost reason of an error, without the URL and cut: a chain repeats itself.
pub(super) fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut deepest: &dyn std::error::Error = &error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string().chars().take(200).collect()
}
