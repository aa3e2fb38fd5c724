//! A polled page: each change of its text is an item that tells what changed.

use std::collections::BTreeMap;

use base::Digest;
use serde::{Deserialize, Serialize};

use super::{Item, Look, LookError, Marks, SourceLimits, fetch, read_cursor, write_cursor};
use crate::guard::Client;
use crate::text::cut;
use crate::web::{PageError, text_of};

/// Bytes of what a change says.
const CHANGE_BYTES_MAX: usize = 4 * 1024;
/// Bytes of the text that the cursor keeps, as JSON; changes behind it are only noticed.
const KEPT_BYTES_MAX: usize = 48 * 1024;
/// Bytes of a line in a change.
const LINE_BYTES_MAX: usize = 400;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cursor {
    #[serde(default)]
    marks: Marks,
    /// Of the whole text.
    digest: Digest,
    /// The start of the text.
    text: String,
    /// Changes so far, so that a page which changes back makes another item.
    changes: u64,
}

pub(super) async fn look(
    web: &Client,
    url: &str,
    cursor: Option<&str>,
    _limits: &SourceLimits,
) -> Result<Look, LookError> {
    let before: Option<Cursor> = read_cursor(cursor)?;
    let marks = before.as_ref().map(|cursor| cursor.marks.conditions()).unwrap_or_default();
    let Some(fetched) = fetch(web, url, &marks).await? else {
        let cursor = cursor.unwrap_or_default().to_owned();
        return Ok(Look { items: Vec::new(), cursor, more: false });
    };
    let marks = Marks::from(fetched.marks.clone());
    let body = Digest::of(&fetched.body);
    let (digest, text) = match text_of(fetched).await {
        Ok(page) => {
            let text = format!("{}\n{}", page.title, page.text);
            (Digest::of(text.as_bytes()), text)
        }
        Err(PageError::NotText { .. }) => (body, String::new()),
        Err(error @ PageError::TooComplex { .. }) => {
            return Err(LookError::NotAPage { url: url.to_owned(), reason: error.to_string() });
        }
    };
    let text = kept(text);
    let changes = before.as_ref().map_or(0, |before| before.changes);
    let changed = before.filter(|before| before.digest != digest);
    let changes = changes + u64::from(changed.is_some());
    let items = changed.iter().map(|before| item(url, &digest, changes, &before.text, &text));
    let items = items.collect();
    let cursor = write_cursor(&Cursor { marks, digest, text, changes })?;
    Ok(Look { items, cursor, more: false })
}

fn item(url: &str, digest: &Digest, changes: u64, before: &str, after: &str) -> Item {
    let [place, content] = [Digest::of(url.as_bytes()), *digest].map(|digest| digest.to_string());
    let change = change(before, after);
    Item {
        external_id: format!("{}:{}:{changes}", &place[..16], &content[..32]),
        key: (url.len() <= 200).then(|| url.to_owned()),
        topic: Some("change".to_owned()),
        content: cut(format!("{url} has changed.\n{change}"), CHANGE_BYTES_MAX).into_bytes(),
        media: "text/plain".to_owned(),
        links: vec![url.to_owned()],
    }
}

/// The lines that are new, with `+`, and those that are gone, with `-`. Linear in the texts, whatever
/// they are; a line that only moved is neither.
fn change(before: &str, after: &str) -> String {
    let new = beyond(after, before);
    let gone = beyond(before, after);
    if new.is_empty() && gone.is_empty() {
        return "No line of its first part is new or gone: lines moved, or what follows changed."
            .to_owned();
    }
    let marked = |mark: &'static str, lines: Vec<&str>| {
        let line = move |line: &str| format!("{mark} {}", short(line));
        lines.into_iter().map(line).collect::<Vec<_>>()
    };
    [marked("+", new), marked("-", gone)].concat().join("\n")
}

/// The lines of `text` beyond those that `other` has as well, each as often as it is there.
fn beyond<'a>(text: &'a str, other: &str) -> Vec<&'a str> {
    let mut there: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines(other) {
        *there.entry(line).or_default() += 1;
    }
    let mut lines_beyond = Vec::new();
    for line in lines(text) {
        match there.get_mut(line) {
            Some(count) if *count > 0 => *count -= 1,
            Some(_) | None => lines_beyond.push(line),
        }
    }
    lines_beyond
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

fn short(line: &str) -> String {
    cut(line.to_owned(), LINE_BYTES_MAX).replace('\n', " ")
}

/// The start of the text, so long that it fits into a cursor. A line is kept whole or not at all.
fn kept(mut text: String) -> String {
    let mut bytes = 0;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        // JSON writes a control character as six bytes, a quote or line end as two.
        bytes += line.chars().map(json_bytes).sum::<usize>();
        if bytes > KEPT_BYTES_MAX {
            break;
        }
        end += line.len();
    }
    text.truncate(end);
    text
}

fn json_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        c if c.is_control() => 6,
        c => c.len_utf8(),
    }
}
