//! An RSS, Atom or JSON feed: each entry with an id that was not there before is an item.
//!
//! Of a feed with more entries than are remembered only the newest are looked at, by their dates, else
//! by their order. From then on the newest date among the rest is a floor: an entry that is not younger
//! is never new, nor is one without a date that stands behind a known one.
//!
//! The library's types stay in this file.

use std::collections::BTreeSet;

use base::Digest;
use feed_rs::model::{Entry, Link, Text};
use serde::{Deserialize, Serialize};
use url::Url;

use super::seen::{Stamp, Stamps};
use super::{
    Item, Look, LookError, Marks, SourceLimits, at_home, fetch, read_cursor, write_cursor,
};
use crate::guard::Client;
use crate::text::{cut, is_unseen, visible};
use crate::web::read_html;

/// Bytes of an entry's id as an external id; a longer one is shown by its digest.
const ID_BYTES_MAX: usize = 180;
/// Bytes of an entry's text.
const TEXT_BYTES_MAX: usize = 8 * 1024;
/// The floor of a feed of which entries without any date were left out.
const UNDATED: i64 = i64::MIN;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cursor {
    #[serde(default)]
    marks: Marks,
    /// The ids seen, those of the last answer first.
    seen: Stamps,
    /// Entries were left out; the newest date of those, in seconds, or [`UNDATED`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    floor: Option<i64>,
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
    let home = Url::parse(url).unwrap_or_else(|_| fetched.final_url.clone());
    let (base, limits) = (fetched.final_url.to_string(), limits.clone());
    // A feed of thousands of entries takes a while; a thread of its own keeps the others going.
    let news = tokio::task::spawn_blocking(move || {
        let found = parse(base, &home, &fetched.body)?;
        Ok(news(found, before, &limits))
    });
    let not_a_feed = |reason: String| LookError::NotAFeed { url: url.to_owned(), reason };
    let crashed = |_| not_a_feed("reading it crashed".to_owned());
    let News { items, seen, floor, more } = news.await.map_err(crashed)?.map_err(not_a_feed)?;
    // A mark would hide what is left over for the next look.
    let marks = if more { Marks::default() } else { marks };
    let cursor = write_cursor(&Cursor { marks, seen: Stamps(seen), floor })?;
    Ok(Look { items, cursor, more })
}

/// An entry with its id and the stamp of that.
struct Found {
    stamp: Stamp,
    id: String,
    /// What it is about: the id without what is not seen.
    key: String,
    /// Its own address, if that lies where the feed does.
    link: Option<String>,
    entry: Entry,
}

impl Found {
    /// When it appeared, in seconds since 1970.
    fn date(&self) -> Option<i64> {
        self.entry.published.or(self.entry.updated).map(|date| date.timestamp())
    }
}

struct News {
    items: Vec<Item>,
    seen: Vec<Stamp>,
    floor: Option<i64>,
    more: bool,
}

/// What is new, oldest first: feeds list the newest entry first. A first look only remembers.
fn news(found: Vec<Found>, before: Option<Cursor>, limits: &SourceLimits) -> News {
    let stamps = |found: &[&Found]| found.iter().map(|found| found.stamp).collect::<Vec<_>>();
    let (found, left_out) = newest(found, limits.seen_max);
    let floor = before.as_ref().and_then(|before| before.floor);
    let all: Vec<&Found> = found.iter().collect();
    let Some(before) = before.map(|before| before.seen.0) else {
        let seen = remembered(stamps(&all), Vec::new(), limits.seen_max);
        return News { items: Vec::new(), seen, floor: left_out, more: false };
    };
    let known: BTreeSet<Stamp> = before.iter().copied().collect();
    let first_known = found.iter().position(|found| known.contains(&found.stamp));
    let is_old = |at: usize, found: &Found| match (floor, found.date()) {
        (None, _) => false,
        (Some(floor), Some(date)) => date <= floor,
        (Some(_), None) => first_known.is_some_and(|known| known < at),
    };
    let places = found.iter().enumerate();
    let (old, new): (Vec<_>, Vec<_>) =
        places.partition(|(at, found)| known.contains(&found.stamp) || is_old(*at, found));
    let [old, new]: [Vec<&Found>; 2] =
        [old, new].map(|part| part.into_iter().map(|(_, found)| found).collect());
    // The newest wait if there are too many, so they may not be remembered yet.
    let told = &new[new.len().saturating_sub(limits.items_max)..];
    let items = told.iter().rev().map(|found| item(found)).collect();
    let present = [stamps(told), stamps(&old)].concat();
    let more = told.len() < new.len();
    // While some wait, a date above them would make them old.
    let floor = if more { floor } else { floor.max(left_out) };
    News { items, seen: remembered(present, before, limits.seen_max), floor, more }
}

/// The newest `count_max` entries, the newest first, and the newest date among the rest if there is one.
/// An entry without a date is as old as the one listed before it.
fn newest(found: Vec<Found>, count_max: usize) -> (Vec<Found>, Option<i64>) {
    if found.len() <= count_max {
        return (found, None);
    }
    let mut date = i64::MAX;
    let dated = found.into_iter().map(|found| {
        date = found.date().unwrap_or(date);
        (date, found)
    });
    let mut dated: Vec<(i64, Found)> = dated.collect();
    // Stable: entries of one date stay as they were listed.
    dated.sort_by_key(|(date, _)| std::cmp::Reverse(*date));
    let rest = dated.split_off(count_max);
    let left_out = rest.iter().filter_map(|(_, found)| found.date()).max().unwrap_or(UNDATED);
    (dated.into_iter().map(|(_, found)| found).collect(), Some(left_out))
}

/// What stands in the feed now, then what stood in it before, each once.
fn remembered(present: Vec<Stamp>, before: Vec<Stamp>, seen_max: usize) -> Vec<Stamp> {
    let mut once = BTreeSet::new();
    let all = present.into_iter().chain(before);
    all.filter(|stamp| once.insert(*stamp)).take(seen_max).collect()
}

/// The entries of a feed, each id once; the error is the parser's reason.
fn parse(base: String, home: &Url, body: &[u8]) -> Result<Vec<Found>, String> {
    let parser = feed_rs::parser::Builder::new().base_uri(Some(base)).id_generator(made_id).build();
    let feed = parser
        .parse(body)
        .map_err(|error| error.to_string().chars().take(200).collect::<String>())?;
    let mut ids = BTreeSet::new();
    let found = feed.entries.into_iter().map(|entry| found(entry, home));
    Ok(found.filter(|found| ids.insert(found.stamp)).collect())
}

/// An id for an entry that has none: where it leads, else nothing, see [`found`].
fn made_id(links: &[Link], _title: &Option<Text>, _uri: Option<&str>) -> String {
    links.first().map(|link| link.href.clone()).unwrap_or_default()
}

fn found(entry: Entry, home: &Url) -> Found {
    let id = match entry.id.trim() {
        "" => {
            let text = |text: &Option<Text>| text.as_ref().map(|text| text.content.clone());
            let parts = [text(&entry.title), text(&entry.summary)].map(Option::unwrap_or_default);
            Digest::of_parts(parts.iter().map(|part| part.as_bytes())).to_string()
        }
        id if id.len() > ID_BYTES_MAX || id.contains(is_unseen) => {
            Digest::of(id.as_bytes()).to_string()
        }
        id => id.to_owned(),
    };
    let key = match visible(entry.id.trim()) {
        key if key.is_empty() || key.len() > ID_BYTES_MAX => id.clone(),
        key => key,
    };
    let own = entry.links.iter().find(|link| is_own(link));
    let link = own.and_then(|link| at_home(&link.href, home)).map(String::from);
    Found { stamp: Stamp::of(&Digest::of(id.as_bytes())), id, key, link, entry }
}

/// Whether a link leads to the entry itself and not to something about it or in it.
fn is_own(link: &Link) -> bool {
    let is_web = link.href.starts_with("https://") || link.href.starts_with("http://");
    is_web && matches!(link.rel.as_deref(), None | Some("alternate"))
}

/// The text tells the entry's address wherever it leads; an object is only one at home (TOOL-15).
fn item(found: &Found) -> Item {
    let own = found.entry.links.iter().find(|link| is_own(link)).map(|link| &link.href);
    Item {
        external_id: found.id.clone(),
        key: Some(found.key.clone()),
        topic: Some("entry".to_owned()),
        content: text_of(&found.entry, own).into_bytes(),
        media: "text/plain".to_owned(),
        links: found.link.iter().cloned().collect(),
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
    let base = Url::parse("http://feed.invalid/").ok().filter(|_| html);
    let page = base.and_then(|base| read_html(text, &base).ok());
    page.map_or_else(|| text.trim().to_owned(), |page| page.text)
}
