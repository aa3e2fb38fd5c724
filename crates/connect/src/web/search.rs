//! Search providers: SearXNG's JSON API, and Brave's as a commercial one.

use std::time::Duration;

use base::Secret;
use serde::{Deserialize, Serialize};
use url::Url;

use super::page::read_html;
use crate::guard::{SetupError, plain_client};

/// Results of one search.
pub(super) const RESULTS_MAX: usize = 10;
/// Bytes of a provider's answer.
const ANSWER_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Bytes of a title, and of a snippet.
const TITLE_BYTES_MAX: usize = 200;
const SNIPPET_BYTES_MAX: usize = 500;

/// Which search provider is asked. Its URL is the operator's choice and may be on this machine.
#[derive(Debug, Clone)]
pub enum Search {
    /// A SearXNG instance with `json` among its `search.formats`.
    Searxng {
        /// As in `http://127.0.0.1:8888`.
        base_url: Url,
    },
    /// Brave's Search API, or one of the same shape.
    Brave {
        /// As in `https://api.search.brave.com`.
        base_url: Url,
        /// The subscription token.
        key: Secret,
    },
}

/// Why a search failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SearchError {
    #[error("the search provider refuses the key")]
    Key,
    #[error("the search provider could not be reached; try again later")]
    Away,
    #[error("the search provider asks for patience (status 429); try again later")]
    Busy,
    #[error(
        "the search provider refuses JSON (status 403); the operator must add `json` to \
         `search.formats` in its settings"
    )]
    NoJson,
    #[error("the search provider answered with status {0}; try again later")]
    Status(u16),
    #[error(
        "the search provider's answer is not of its documented form; the operator must check its address"
    )]
    Form,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Found {
    pub title: String,
    pub url: String,
    pub snippet: String,
}

impl Found {
    pub(super) fn line(&self) -> String {
        format!("{}\n{}\n{}", self.title, self.url, self.snippet).trim_end().to_owned()
    }
}

/// A provider with its client.
#[derive(Debug, Clone)]
pub(super) struct Provider {
    search: Search,
    client: reqwest::Client,
}

impl Provider {
    pub(super) fn new(search: Search, connect: Duration) -> Result<Provider, SetupError> {
        Ok(Provider { search, client: plain_client(connect)? })
    }

    pub(super) async fn search(&self, query: &str) -> Result<Vec<Found>, SearchError> {
        let request = match &self.search {
            Search::Searxng { base_url } => {
                let url = below(base_url, &["search"], &[("q", query), ("format", "json")]);
                self.client.get(url)
            }
            Search::Brave { base_url, key } => {
                let count = RESULTS_MAX.to_string();
                let path = ["res", "v1", "web", "search"];
                let url = below(base_url, &path, &[("q", query), ("count", &count)]);
                self.client.get(url).header("X-Subscription-Token", key.expose())
            }
        };
        let request = request.header(reqwest::header::ACCEPT, "application/json");
        let response = request.send().await.map_err(|_| SearchError::Away)?;
        if let Some(error) = self.refusal(response.status().as_u16()) {
            return Err(error);
        }
        let body = bounded(response).await?;
        let found = match &self.search {
            Search::Searxng { .. } => parse::<Searxng>(&body)?.results,
            // A search without any result has no `web` at all.
            Search::Brave { .. } => parse::<Brave>(&body)?.web.unwrap_or_default().results,
        };
        Ok(found.into_iter().take(RESULTS_MAX * 2).map(Entry::found).collect())
    }

    fn refusal(&self, status: u16) -> Option<SearchError> {
        match (&self.search, status) {
            (_, 200) => None,
            (_, 429) => Some(SearchError::Busy),
            // Brave answers 422 to a token that it does not know.
            (Search::Brave { .. }, 401 | 403 | 422) => Some(SearchError::Key),
            (Search::Searxng { .. }, 401) => Some(SearchError::Key),
            (Search::Searxng { .. }, 403) => Some(SearchError::NoJson),
            (Search::Searxng { .. } | Search::Brave { .. }, status) => {
                Some(SearchError::Status(status))
            }
        }
    }
}

/// A URL below `base`, whose own path is kept.
fn below(base: &Url, path: &[&str], query: &[(&str, &str)]) -> Url {
    let mut url = base.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url.query_pairs_mut().clear().extend_pairs(query);
    url
}

async fn bounded(mut response: reqwest::Response) -> Result<Vec<u8>, SearchError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| SearchError::Away)? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(SearchError::Form);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, SearchError> {
    serde_json::from_slice(body).map_err(|_| SearchError::Form)
}

#[derive(Deserialize)]
struct Searxng {
    results: Vec<Entry>,
}

#[derive(Deserialize)]
struct Brave {
    web: Option<BraveWeb>,
}

#[derive(Deserialize, Default)]
struct BraveWeb {
    results: Vec<Entry>,
}

/// A result of either provider.
#[derive(Deserialize)]
struct Entry {
    url: String,
    #[serde(default)]
    title: Option<String>,
    /// The name that Brave has for it is `description`.
    #[serde(default, alias = "description")]
    content: Option<String>,
}

impl Entry {
    fn found(self) -> Found {
        let title = plain(self.title.as_deref(), TITLE_BYTES_MAX);
        let snippet = plain(self.content.as_deref(), SNIPPET_BYTES_MAX);
        Found { title, url: self.url, snippet }
    }
}

/// A snippet as one line without the marks that providers set around the words found.
fn plain(html: Option<&str>, bytes_max: usize) -> String {
    let html = html.unwrap_or_default();
    let base = Url::parse("http://snippet.invalid/");
    let text = base.ok().and_then(|base| read_html(html, &base).ok()).map(|page| page.text);
    let text = text.unwrap_or_default();
    crate::text::cut(text.split_whitespace().collect::<Vec<_>>().join(" "), bytes_max)
}
