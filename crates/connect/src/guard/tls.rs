//! TLS by rustls with the `ring` provider, and the client for URLs that the operator chose.

use std::sync::Arc;
use std::time::Duration;

/// Why no client could be built.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The TLS provider has no cipher suite for TLS 1.2 or 1.3.
    #[error(
        "TLS cannot be set up: {0}; this build of the program is broken, install a released one"
    )]
    Tls(#[from] rustls::Error),
    /// The client refused its settings.
    #[error(
        "the HTTP client cannot be set up: {0}; this build of the program is broken, report it"
    )]
    Client(#[from] reqwest::Error),
}

/// Trusts the machine's own certificate authorities and those of Mozilla, so that it also works
/// where none are installed.
pub(super) fn config() -> Result<rustls::ClientConfig, rustls::Error> {
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// What every client of this crate has in common: no redirects, no proxy from the environment.
pub(super) fn builder(tls: rustls::ClientConfig, connect: Duration) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(connect)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION")))
}

/// A client for a URL that the operator configured; it may be on this machine.
pub(crate) fn plain_client(connect: Duration) -> Result<reqwest::Client, SetupError> {
    Ok(builder(config()?, connect).build()?)
}
