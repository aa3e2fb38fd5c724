//! An RSS, Atom or JSON feed: each entry with an id that was not there before is an item.
//!
//! The library's types stay in this file.

use std::collections::BTreeSet;

use base::Digest;
use feed_rs::model::{Entry, Link, Text};
use serde::{Deserialize, Serialize};

use super::seen::{Stamp, Stamps};
use super::{Item, Look, LookError, Marks, SourceLimits, fetch, read_cursor, write_cursor};
use crate::guard::Client;
use crate::text::cut;
use crate::web::read_html;

/// Bytes of an entry's id as an external id; a longer one is shown by its digest.
const ID_BYTES_MAX: usize = 180;
/// Bytes of an entry's text.
const TEXT_BYTES_MAX: usize = 8 * 1024;
/// Links of an entry.
const LINKS_MAX: usize = 5;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cursor {
    #[serde(default)]
    marks: Marks,
    /// The ids seen, those of the last answer first.
    seen: Stamps,
}

pub(super) async fn look(
    web: &Client,
    url: &str,
    cursor: Option<&str>,
    limits: &SourceLimits,
) -> Result<Look, LookError> {
    let before: Option<Cursor> = read_cursor(cursor)?;
    let marks = before.as_ref().map(|cursor| cursor.marks.conditions()).unwrap_or_default();
    let Some(fetched) = fetch(web, url, &marks).await? else {
        let cursor = cursor.unwrap_or_default().to_owned();
        return Ok(Look { items: Vec::new(), cursor, more: false });
    };
    let marks = Marks::from(fetched.marks);
    let (base, limits) = (fetched.final_url.to_string(), limits.clone());
    // A feed of thousands of entries takes a while; a thread of its own keeps the others going.
    let news = tokio::task::spawn_blocking(move || {
        let found = parse(base, &fetched.body)?;
        Ok(news(found, before.map(|before| before.seen.0), &limits))
    });
    let not_a_feed = |reason: String| LookError::NotAFeed { url: url.to_owned(), reason };
    let crashed = |_| not_a_feed("reading it crashed".to_owned());
    let News { items, seen, more } = news.await.map_err(crashed)?.map_err(not_a_feed)?;
    // A mark would hide what is left over for the next look.
    let marks = if more { Marks::default() } else { marks };
    let cursor = write_cursor(&Cursor { marks, seen: Stamps(seen) })?;
    Ok(Look { items, cursor, more })
}

/// An entry with its id and the stamp of that.
struct Found {
    stamp: Stamp,
    id: String,
    entry: Entry,
}

struct News {
    items: Vec<Item>,
    seen: Vec<Stamp>,
    more: bool,
}

/// What is new, oldest first: feeds list the newest entry first. A first look only remembers.
fn news(found: Vec<Found>, before: Option<Vec<Stamp>>, limits: &SourceLimits) -> News {
    let stamps = |found: &[&Found]| found.iter().map(|found| found.stamp).collect::<Vec<_>>();
    let Some(before) = before else {
        let all: Vec<&Found> = found.iter().collect();
        let seen = remembered(stamps(&all), Vec::new(), limits.seen_max);
        return News { items: Vec::new(), seen, more: false };
    };
    let known: BTreeSet<Stamp> = before.iter().copied().collect();
    let (old, new): (Vec<&Found>, Vec<&Found>) =
        found.iter().partition(|found| known.contains(&found.stamp));
    // The newest wait if there are too many, so they may not be remembered yet.
    let told = &new[new.len().saturating_sub(limits.items_max)..];
    let items = told.iter().rev().map(|found| item(found)).collect();
    let present = [stamps(told), stamps(&old)].concat();
    let more = told.len() < new.len();
    News { items, seen: remembered(present, before, limits.seen_max), more }
}

/// What stands in the feed now, then what stood in it before, each once.
fn remembered(present: Vec<Stamp>, before: Vec<Stamp>, seen_max: usize) -> Vec<Stamp> {
    let mut once = BTreeSet::new();
    let all = present.into_iter().chain(before);
    all.filter(|stamp| once.insert(*stamp)).take(seen_max).collect()
}

/// The entries of a feed, each id once; the error is the parser's reason.
fn parse(base: String, body: &[u8]) -> Result<Vec<Found>, String> {
    let parser = feed_rs::parser::Builder::new().base_uri(Some(base)).id_generator(made_id).build();
    let feed = parser
        .parse(body)
        .map_err(|error| error.to_string().chars().take(200).collect::<String>())?;
    let mut ids = BTreeSet::new();
    Ok(feed.entries.into_iter().map(found).filter(|found| ids.insert(found.stamp)).collect())
}

/// An id for an entry that has none: where it leads, else nothing, see [`found`].
fn made_id(links: &[Link], _title: &Option<Text>, _uri: Option<&str>) -> String {
    links.first().map(|link| link.href.clone()).unwrap_or_default()
}

fn found(entry: Entry) -> Found {
    let id = match entry.id.trim() {
        "" => {
            let text = |text: &Option<Text>| text.as_ref().map(|text| text.content.clone());
            let parts = [text(&entry.title), text(&entry.summary)].map(Option::unwrap_or_default);
            Digest::of_parts(parts.iter().map(|part| part.as_bytes())).to_string()
        }
        id if id.len() > ID_BYTES_MAX || id.contains(char::is_control) => {
            Digest::of(id.as_bytes()).to_string()
        }
        id => id.to_owned(),
    };
    Found { stamp: Stamp::of(&Digest::of(id.as_bytes())), id, entry }
}

fn item(found: &Found) -> Item {
    let links = found.entry.links.iter().map(|link| link.href.as_str());
    let is_web = |href: &&str| href.starts_with("https://") || href.starts_with("http://");
    let links: Vec<String> = links.filter(is_web).take(LINKS_MAX).map(str::to_owned).collect();
    Item {
        external_id: found.id.clone(),
        key: Some(found.id.clone()),
        topic: Some("entry".to_owned()),
        content: text_of(&found.entry, links.first()).into_bytes(),
        media: "text/plain".to_owned(),
        links,
    }
}

/// Title, address, date and text of an entry as plain text.
fn text_of(entry: &Entry, link: Option<&String>) -> String {
    let title = entry.title.as_ref().map(|title| plain(&title.content)).unwrap_or_default();
    let content = entry.content.as_ref().and_then(|content| content.body.as_deref());
    let summary = entry.summary.as_ref().map(|summary| summary.content.as_str());
    let date = entry.published.or(entry.updated).map(|date| date.to_rfc3339()).unwrap_or_default();
    let body = plain(summary.or(content).unwrap_or_default());
    let link = link.cloned().unwrap_or_default();
    let parts = [title.split_whitespace().collect::<Vec<_>>().join(" "), link, date, body];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    cut(parts.join("\n"), TEXT_BYTES_MAX)
}

/// The text of what may be HTML, as most feeds do not say.
fn plain(text: &str) -> String {
    let html = text.contains('<') || text.contains('&');
    let base = url::Url::parse("http://feed.invalid/").ok().filter(|_| html);
    let page = base.and_then(|base| read_html(text, &base).ok());
    page.map_or_else(|| text.trim().to_owned(), |page| page.text)
}
