//! The HTTP client for model servers, with one TLS provider for the whole program.

use std::sync::Arc;
use std::time::Duration;

/// Why no HTTP client could be built.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// The TLS provider has no cipher suite for TLS 1.2 or 1.3.
    #[error(
        "TLS cannot be set up: {0}; this build of the program is broken, install a released one"
    )]
    Tls(#[from] rustls::Error),
    /// The client refused its settings.
    #[error("the HTTP client cannot be set up: {0}; check the proxy and certificate settings")]
    Client(#[from] reqwest::Error),
}

/// A client with our limits: TLS by rustls with the `ring` provider, no redirects (a key must not
/// follow one), no proxy from the environment (a model on the loopback address must stay there).
pub fn http_client(connect_timeout: Duration) -> Result<reqwest::Client, HttpClientError> {
    Ok(http_client_builder(connect_timeout)?.build()?)
}

/// As [`http_client`], open for further settings such as a configured proxy.
///
/// Trusts the machine's own certificate authorities and those of Mozilla, so that it also works
/// where none are installed.
pub fn http_client_builder(
    connect_timeout: Duration,
) -> Result<reqwest::ClientBuilder, HttpClientError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(connect_timeout)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION"))))
}
