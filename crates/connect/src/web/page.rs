//! A fetched answer as text. The HTML library's types stay in this file.

use html2text::{Element, Handle, RcDom, config};
use url::Url;

use super::{cost, decode};
use crate::guard::Fetched;

/// How deep the elements of a page may be nested: the library lays them out recursively.
const DEPTH_MAX: usize = 200;
/// Elements of a page.
const ELEMENTS_MAX: usize = 200_000;
/// Bytes of HTML text that are laid out.
const HTML_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Columns of a line; long, so that a paragraph of usual length is one line.
const COLUMNS: usize = 1_000;
/// Bytes of a title.
const TITLE_BYTES_MAX: usize = 300;
/// Links that are looked at.
const LINKS_MAX: usize = 1_000;

/// A page as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// The title; empty if there is none.
    pub title: String,
    /// The text, whole.
    pub text: String,
    /// Addresses on the same host that the page links to, each once, in its order.
    pub links: Vec<String>,
}

/// Why an answer was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PageError {
    /// Not text.
    #[error("this is {what} of {bytes} bytes, which is not read. Look for the same as a web page")]
    NotText {
        /// What it is.
        what: String,
        /// Its length.
        bytes: usize,
    },
    /// HTML that costs too much to lay out.
    #[error("the page is built in a way that is not read ({reason}). Look for another page")]
    TooComplex {
        /// What is too much.
        reason: String,
    },
}

/// Reads HTML as text with title and links, other text as it is. Takes a thread for HTML.
pub(crate) async fn text_of(fetched: Fetched) -> Result<Page, PageError> {
    let label = fetched.charset.as_deref();
    match kind(&fetched.media, &fetched.body) {
        Kind::Html => {
            let html = decode(&fetched.body, label);
            let base = fetched.final_url;
            let read = tokio::task::spawn_blocking(move || read_html(&html, &base));
            let crashed = |_| PageError::TooComplex { reason: "its layout failed".to_owned() };
            read.await.map_err(crashed)?
        }
        Kind::Text => {
            Ok(Page { text: decode(&fetched.body, label).replace('\0', ""), ..Page::default() })
        }
        Kind::Other(what) => Err(PageError::NotText { what, bytes: fetched.body.len() }),
    }
}

enum Kind {
    Html,
    Text,
    Other(String),
}

fn kind(media: &str, body: &[u8]) -> Kind {
    match media {
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "application/pdf" => Kind::Other("a PDF".to_owned()),
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/yaml"
        | "application/toml"
        | "application/sql" => Kind::Text,
        text if text.starts_with("text/") || text.ends_with("+json") || text.ends_with("+xml") => {
            Kind::Text
        }
        "" | "application/octet-stream" | "binary/octet-stream" => sniffed(body),
        image if image.starts_with("image/") => Kind::Other("an image".to_owned()),
        other => {
            let word = |c: char| c.is_ascii_alphanumeric() || "/+.-".contains(c);
            let name: String = other.chars().filter(|c| word(*c)).take(60).collect();
            Kind::Other(format!("a file of type {name}"))
        }
    }
}

/// What an unlabelled body looks like.
fn sniffed(body: &[u8]) -> Kind {
    let start = &body[..body.len().min(1_024)];
    if start.contains(&0) {
        return Kind::Other("a binary file".to_owned());
    }
    let start = String::from_utf8_lossy(start).trim_start().to_ascii_lowercase();
    match start {
        start if start.starts_with("<!doctype html") || start.starts_with("<html") => Kind::Html,
        start if start.starts_with("%pdf") => Kind::Other("a PDF".to_owned()),
        _ => Kind::Text,
    }
}

/// Lays HTML out as text. `base` is where it came from.
pub(crate) fn read_html(html: &str, base: &Url) -> Result<Page, PageError> {
    let too_complex = |reason: String| PageError::TooComplex { reason };
    if html.len() > HTML_BYTES_MAX {
        return Err(too_complex(format!("more than {HTML_BYTES_MAX} bytes of HTML")));
    }
    if let Some(reason) = cost::excess(html) {
        return Err(too_complex(reason));
    }
    let config = config::plain_no_decorate().raw_mode(false).no_table_borders();
    let failed = |error: html2text::Error| too_complex(error.to_string());
    let dom = config.parse_html(html.as_bytes()).map_err(failed)?;
    let Walked { title, links } = walk(&dom, base)?;
    let tree = config.dom_to_render_tree(&dom).map_err(failed)?;
    let text = config.render_to_string(tree, COLUMNS).map_err(failed)?;
    Ok(Page { title, text: tidied(&text), links })
}

struct Walked {
    title: String,
    links: Vec<String>,
}

/// Collects title and links, and takes out what makes layout expensive: every attribute but the
/// images and the targets of links. A `colspan` of a billion would take as many columns.
fn walk(dom: &RcDom, page: &Url) -> Result<Walked, PageError> {
    let too_complex = |reason: String| PageError::TooComplex { reason };
    let (mut title, mut base, mut targets) = (None, None, Vec::new());
    let mut elements = 0_usize;
    // By hand, since a recursion would be as deep as the page.
    let mut open: Vec<(Handle, usize)> = vec![(dom.document.clone(), 0)];
    while let Some((node, depth)) = open.pop() {
        if let Element { ref name, ref attrs, .. } = node.data {
            elements += 1;
            if depth > DEPTH_MAX || elements > ELEMENTS_MAX {
                return Err(too_complex(format!(
                    "more than {DEPTH_MAX} levels or {ELEMENTS_MAX} elements"
                )));
            }
            let mut attrs = attrs.borrow_mut();
            attrs.retain(|attr| matches!(&*attr.name.local, "href" | "src" | "alt"));
            let href = attrs.iter().find(|attr| &*attr.name.local == "href");
            let href = href.map(|attr| attr.value.to_string());
            drop(attrs);
            match &*name.local {
                "title" if title.is_none() => title = Some(title_of(&node)),
                "base" if base.is_none() => base = href.and_then(|href| page.join(&href).ok()),
                "a" | "area" if targets.len() < LINKS_MAX => targets.extend(href),
                _ => {}
            }
        }
        // The last is popped first, so that links come in the page's order.
        open.extend(node.children.borrow().iter().rev().map(|child| (child.clone(), depth + 1)));
    }
    let links = same_host(page, base.as_ref().unwrap_or(page), &targets);
    Ok(Walked { title: title.unwrap_or_default(), links })
}

/// The text of a `title` element. It is laid out as a paragraph, which undoes its escapes.
fn title_of(node: &Handle) -> String {
    let mut html = Vec::new();
    if node.serialize(&mut html).is_err() {
        return String::new();
    }
    let html = String::from_utf8_lossy(&html).into_owned();
    let html = html.replacen("<title>", "<p>", 1).replacen("</title>", "</p>", 1);
    let text = config::plain_no_decorate().string_from_read(html.as_bytes(), COLUMNS);
    let words: Vec<String> =
        text.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    crate::text::cut(words.join(" "), TITLE_BYTES_MAX)
}

/// The targets on the host of `page`, without fragments, each once and without the page itself.
fn same_host(page: &Url, base: &Url, targets: &[String]) -> Vec<String> {
    let mut links: Vec<String> = Vec::new();
    for target in targets {
        let Ok(mut link) = base.join(target.trim()) else { continue };
        link.set_fragment(None);
        let known = link == *page || links.iter().any(|known| known == link.as_str());
        if link.origin() == page.origin() && link.origin().is_tuple() && !known {
            links.push(link.into());
        }
    }
    links
}

/// Layout without what only serves the eye: padding, rules, runs of empty lines.
fn tidied(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut empty = true;
    for line in text.lines() {
        let line = line.trim_end();
        let is_rule = !line.is_empty() && line.chars().all(|c| matches!(c, '─' | '━' | ' '));
        if line.is_empty() || is_rule {
            if !empty {
                tidy.push('\n');
            }
            empty = true;
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        tidy.push_str(&line[..indent]);
        let mut blanks = 0;
        for c in line[indent..].chars() {
            blanks = if c == ' ' { blanks + 1 } else { 0 };
            if blanks <= 2 {
                tidy.push(c);
            }
        }
        tidy.push('\n');
        empty = false;
    }
    tidy.truncate(tidy.trim_end().len());
    tidy
}
