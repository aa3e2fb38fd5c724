//! `[search]` and `[fetch]`: how far reading the web reaches (DESIGN 9).

use std::net::SocketAddr;
use std::path::Path;

use serde::Serialize;

use super::section::Section;
use super::{KeySource, Problem, keep_in_private, url};

/// Who searches the web.
#[derive(Debug, Serialize)]
pub struct SearchConfig {
    /// Whose API it is.
    pub provider: SearchProvider,
    /// Its address.
    pub base_url: String,
    /// Where its key is found.
    pub key: KeySource,
}

/// The APIs that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchProvider {
    /// A SearXNG instance, which wants no key.
    Searxng,
    /// Brave's Search API, or one of the same shape.
    Brave,
}

/// The section `[search]`.
pub(super) fn search(section: &Section<'_>, home: Option<&Path>) -> Result<SearchConfig, Problem> {
    let remedy = "write \"searxng\" or \"brave\"";
    let provider = match section.required("provider", remedy)?.as_str() {
        "searxng" => SearchProvider::Searxng,
        "brave" => SearchProvider::Brave,
        _ => return Err(section.bad("provider", "must be \"searxng\" or \"brave\"")),
    };
    let address = match (section.text("base_url")?, provider) {
        (Some(address), _) => address,
        (None, SearchProvider::Brave) => "https://api.search.brave.com".to_owned(),
        (None, SearchProvider::Searxng) => {
            section.required("base_url", "give its address, such as http://127.0.0.1:8888")?
        }
    };
    let at = url(section, "base_url", &address)?;
    let key = KeySource::of(section, home)?;
    match (provider, &key) {
        (SearchProvider::Brave, KeySource::None) => {
            let remedy = "name the variable that holds the key, or give search.key_file".into();
            return Err(Problem::Missing { key: section.full("key_env"), remedy });
        }
        (SearchProvider::Searxng, KeySource::Env(_) | KeySource::File(_)) => {
            return Err(section.bad("provider", "searxng takes no key; leave search.key_* out"));
        }
        (SearchProvider::Brave, KeySource::Env(_) | KeySource::File(_))
        | (SearchProvider::Searxng, KeySource::None) => {}
    }
    keep_in_private(section, "base_url", &at, &key)?;
    Ok(SearchConfig { provider, base_url: address, key })
}

/// The addresses of `fetch.allow`.
pub(super) fn allowed(section: &Section<'_>) -> Result<Vec<SocketAddr>, Problem> {
    let read = |text: String| {
        let wanted = "takes addresses with a port, such as \"127.0.0.1:8888\"";
        text.parse().map_err(|_| section.bad("allow", wanted))
    };
    section.texts("allow")?.into_iter().map(read).collect()
}
