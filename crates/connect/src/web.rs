//! The open web as a built-in connector: `fetch_page` and `search`.
//!
//! Both only read. A page is fetched by the [guarded client](crate::guard) and turned into text; a
//! search goes to the one provider that the operator configured. What comes back is from outside:
//! material with its address, never an instruction.
//!
//! What is absent: scripts are not run, nothing is filled in or sent, PDFs and images are not read.

mod charset;
mod cost;
mod page;
mod search;

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::guard::{Client, Conditions, Fetched, SetupError};
use crate::text::cut;
use page::Page;

pub use search::Search;

pub(crate) use charset::decode;
pub(crate) use page::{PageError, read_html, text_of};

/// The manifest of the built-in connector `web`, read like any other.
///
/// A page issues none of its links (TOOL-15): whoever wrote it could lay out an address for each thing
/// that its reader knows, and read from their server's log which of them was fetched.
pub const WEB_MANIFEST: &str = r#"
[tool.fetch_page]
effect      = "read"
description = "Reads a web page as text, with its links to the same site. The address comes from the user's words, the delegation or a search; a link that the page names needs the user's consent."
objects     = { url = "url" }
reveals     = ["url"]

[tool.search]
effect      = "read"
description = "Searches the web: titles, addresses and snippets of at most 10 pages."
issues      = { url = "results[].url" }
"#;

/// Links of a page that are given back.
const LINKS_MAX: usize = 30;
/// Bytes of a query.
const QUERY_BYTES_MAX: usize = 400;

/// What one answer may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebLimits {
    /// Bytes of an answer's text, a note about a cut included.
    pub text_bytes_max: usize,
    /// Connecting to the search provider.
    pub connect_ms: u64,
}

impl Default for WebLimits {
    fn default() -> Self {
        WebLimits { text_bytes_max: 4_000, connect_ms: 5_000 }
    }
}

/// What a tool of the web answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// For the model. At most [`WebLimits::text_bytes_max`] bytes.
    pub text: String,
    /// The page or the search could not be had; `text` says what to do.
    pub is_error: bool,
    /// What the manifest's paths point into; null if `is_error`.
    pub data: Value,
}

impl Answer {
    fn failed(text: impl Into<String>) -> Answer {
        Answer { text: text.into(), is_error: true, data: Value::Null }
    }
}

/// Why a call was not answered at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// The connector has no such tool.
    #[error("there is no tool `web.{tool}`; there are fetch_page and search")]
    UnknownTool {
        /// The name.
        tool: String,
    },
    /// An argument is missing or of the wrong form.
    #[error("`web.{tool}`: {reason}")]
    Arguments {
        /// The tool.
        tool: String,
        /// Which argument, and what it must be.
        reason: String,
    },
    /// The caller's limit passed.
    #[error("`web.{tool}` did not answer within {limit_ms} ms. Try again later")]
    TimedOut {
        /// The tool.
        tool: String,
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
    /// The search provider refuses our key.
    #[error("the search provider refuses the key; correct it in the configuration")]
    Authentication,
}

/// The built-in connector.
#[derive(Debug, Clone)]
pub struct Web {
    guard: Client,
    search: Option<search::Provider>,
    limits: WebLimits,
}

impl Web {
    /// A connector that fetches through `guard` and searches with `search`, if there is a provider.
    ///
    /// # Errors
    /// [`SetupError`] if no client for the provider can be made.
    pub fn new(
        guard: Client,
        search: Option<Search>,
        limits: WebLimits,
    ) -> Result<Web, SetupError> {
        let connect = Duration::from_millis(limits.connect_ms);
        let search = search.map(|search| search::Provider::new(search, connect)).transpose()?;
        Ok(Web { guard, search, limits })
    }

    /// The JSON Schema of a tool's arguments, as JSON text.
    pub fn parameters(tool: &str) -> Option<String> {
        let (name, description) = match tool {
            "fetch_page" => ("url", "the whole address, as in https://host/path"),
            "search" => ("query", "the words to look for, at most 400 bytes"),
            _ => return None,
        };
        let property = json!({ "type": "string", "description": description });
        let schema = json!({
            "type": "object", "properties": { name: property }, "required": [name],
            "additionalProperties": false,
        });
        Some(schema.to_string())
    }

    /// Calls `fetch_page` with a `url`, or `search` with a `query`.
    ///
    /// # Errors
    /// [`WebError`]; a page or search that can not be had is an [`Answer`] with `is_error`.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        limit: Duration,
    ) -> Result<Answer, WebError> {
        let work = async {
            match tool {
                "fetch_page" => Ok(self.fetch_page(argument(tool, arguments, "url")?).await),
                "search" => self.find(argument(tool, arguments, "query")?).await,
                _ => Err(WebError::UnknownTool { tool: tool.chars().take(64).collect() }),
            }
        };
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        tokio::time::timeout(limit, work)
            .await
            .unwrap_or(Err(WebError::TimedOut { tool: tool.to_owned(), limit_ms }))
    }

    async fn fetch_page(&self, url: &str) -> Answer {
        let fetched = match self.guard.get(url, &Conditions::default()).await {
            Ok(fetched) => fetched,
            Err(error) => return Answer::failed(error.to_string()),
        };
        if !(200..300).contains(&fetched.status) {
            return Answer::failed(status_text(&fetched));
        }
        let (url, status) = (fetched.final_url.clone(), fetched.status);
        let media = fetched.media.clone();
        match text_of(fetched).await {
            Ok(mut page) => {
                page.links.retain(|link| self.guard.check(link).is_ok());
                page.links.truncate(LINKS_MAX);
                let text = page_text(&page, url.as_str(), self.limits.text_bytes_max);
                let data = json!({
                    "final_url": url.as_str(), "status": status, "media": media,
                    "title": page.title, "links": page.links,
                });
                Answer { text, is_error: false, data }
            }
            Err(error) => Answer::failed(error.to_string()),
        }
    }

    async fn find(&self, query: &str) -> Result<Answer, WebError> {
        if query.trim().is_empty() || query.len() > QUERY_BYTES_MAX {
            let reason = format!("`query` must have 1 to {QUERY_BYTES_MAX} bytes");
            return Err(WebError::Arguments { tool: "search".to_owned(), reason });
        }
        let Some(provider) = &self.search else {
            return Ok(Answer::failed(
                "no search provider is configured; the operator can set one. Use an address that \
                 is known, or ask for one",
            ));
        };
        let mut results = match provider.search(query).await {
            Ok(results) => results,
            Err(search::SearchError::Key) => return Err(WebError::Authentication),
            Err(error) => return Ok(Answer::failed(error.to_string())),
        };
        // Results become objects that may be fetched, so what could not be fetched is left out.
        results.retain(|result| self.guard.check(&result.url).is_ok());
        results.truncate(search::RESULTS_MAX);
        let text = match results.is_empty() {
            true => "nothing was found; try other words".to_owned(),
            false => results.iter().map(search::Found::line).collect::<Vec<_>>().join("\n\n"),
        };
        let text = cut(text, self.limits.text_bytes_max);
        Ok(Answer { text, is_error: false, data: json!({ "results": results }) })
    }
}

fn argument<'a>(
    tool: &str,
    arguments: &'a Map<String, Value>,
    name: &str,
) -> Result<&'a str, WebError> {
    let wrong = |reason| WebError::Arguments { tool: tool.to_owned(), reason };
    if let Some(other) = arguments.keys().find(|known| *known != name) {
        let other: String = other.chars().take(64).collect();
        return Err(wrong(format!("`{other}` is no argument of it; it takes `{name}`")));
    }
    let value = arguments.get(name).and_then(Value::as_str);
    value.ok_or_else(|| wrong(format!("`{name}` must be given as text")))
}

/// What an error status means for the reader. The body of such an answer is not repeated.
fn status_text(fetched: &Fetched) -> String {
    let host = fetched.final_url.host_str().unwrap_or_default();
    let status = fetched.status;
    let remedy = match status {
        401 | 403 | 407 => "the page is not open to everyone; use another source",
        404 | 410 => "the page is gone or the address is wrong; search for it",
        429 | 500.. => "try again later",
        _ => "use another address",
    };
    format!("`{host}` answered with status {status}: {remedy}")
}

/// Title, address, text and links, the text cut so that the links still fit.
fn page_text(page: &Page, url: &str, bytes_max: usize) -> String {
    let mut links = String::new();
    for link in &page.links {
        if links.len() + link.len() > bytes_max / 4 {
            break;
        }
        let heading = if links.is_empty() { "\n\nLinks to the same site:" } else { "" };
        links.push_str(&format!("{heading}\n{link}"));
    }
    let head = match page.title.is_empty() {
        true => format!("{url}\n\n"),
        false => format!("{}\n{url}\n\n", page.title),
    };
    let body = if page.text.is_empty() { "(the page has no text)" } else { &page.text };
    let room = bytes_max.saturating_sub(links.len());
    cut(format!("{}{links}", cut(format!("{head}{body}"), room)), bytes_max)
}
