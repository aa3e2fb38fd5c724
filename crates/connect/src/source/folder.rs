//! A watched folder: each whole file that appears or changes in it is an item.
//!
//! A file is told from another by its name, size, time of change and content. Only plain files that lie
//! in the folder itself are looked at: no links, no folders, nothing whose name begins with a dot.

use std::collections::BTreeSet;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use base::{Digest, Timestamp};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::seen::{Stamp, Stamps};
use super::{Item, Look, LookError, SourceLimits, read_cursor, write_cursor};

/// Bytes of a file's name in an id and as a key.
const NAME_BYTES_MAX: usize = 120;

/// The stamps of the files that are there and were found, sorted.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Cursor {
    seen: Stamps,
}

/// A file as the listing shows it.
struct Entry {
    path: PathBuf,
    name: String,
    metadata: Metadata,
    stamp: Stamp,
}

pub(super) async fn look(
    path: &str,
    cursor: Option<&str>,
    limits: &SourceLimits,
    now: Timestamp,
) -> Result<Look, LookError> {
    if !Path::new(path).is_absolute() {
        return Err(LookError::RelativeFolder { path: path.to_owned() });
    }
    let cursor = read_cursor::<Cursor>(cursor)?.unwrap_or_default();
    let (path, limits) = (path.to_owned(), limits.clone());
    let failed = LookError::Folder { path: path.clone(), reason: "reading it crashed".to_owned() };
    // Files may lie on a slow disk; a thread of their own keeps the others going.
    tokio::task::spawn_blocking(move || read(&path, cursor, &limits, now))
        .await
        .unwrap_or(Err(failed))
}

fn read(
    path: &str,
    cursor: Cursor,
    limits: &SourceLimits,
    now: Timestamp,
) -> Result<Look, LookError> {
    let entries = list(path, limits.seen_max)?;
    let before: BTreeSet<Stamp> = cursor.seen.0.into_iter().collect();
    let (known, new): (Vec<Entry>, Vec<Entry>) =
        entries.into_iter().partition(|entry| before.contains(&entry.stamp));
    let mut seen: Vec<Stamp> = known.iter().map(|entry| entry.stamp).collect();
    let (mut items, mut bytes, mut more) = (Vec::new(), 0, false);
    for entry in new.iter().filter(|entry| is_settled(&entry.metadata, limits.settle_ms, now)) {
        if items.len() >= limits.items_max || bytes >= limits.look_bytes_max {
            more = true;
            break;
        }
        // A file that changes or goes away while it is read waits for another look.
        let Some(item) = item_of(entry, limits.item_bytes_max) else { continue };
        bytes += item.content.len();
        items.push(item);
        seen.push(entry.stamp);
    }
    seen.sort_unstable();
    let cursor = write_cursor(&Cursor { seen: Stamps(seen) })?;
    Ok(Look { items, cursor, more })
}

/// The plain files of a folder, the oldest change first.
fn list(path: &str, files_max: usize) -> Result<Vec<Entry>, LookError> {
    let failed = |error: std::io::Error| LookError::Folder {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        // Of the link itself, not of what it points at. A file may be gone by now.
        let Ok(metadata) = entry.metadata() else { continue };
        if name.as_bytes().starts_with(b".") || !metadata.is_file() {
            continue;
        }
        if entries.len() >= files_max {
            return Err(LookError::TooManyFiles { path: path.to_owned(), files_max });
        }
        let stamp = Stamp::of(&Digest::of_parts([name.as_bytes(), &marks(&metadata)]));
        let name = name.to_string_lossy().replace(char::is_control, "_");
        entries.push(Entry { path: entry.path(), name, metadata, stamp });
    }
    let age = |entry: &Entry| (entry.metadata.mtime(), entry.metadata.mtime_nsec());
    entries.sort_by(|a, b| age(a).cmp(&age(b)).then_with(|| a.path.cmp(&b.path)));
    Ok(entries)
}

/// Size and time of change, as bytes.
fn marks(metadata: &Metadata) -> [u8; 24] {
    let mut marks = [0; 24];
    marks[..8].copy_from_slice(&metadata.size().to_be_bytes());
    marks[8..16].copy_from_slice(&metadata.mtime().to_be_bytes());
    marks[16..].copy_from_slice(&metadata.mtime_nsec().to_be_bytes());
    marks
}

/// Whether nobody seems to be writing to the file. A time in the future says nothing about that.
fn is_settled(metadata: &Metadata, settle_ms: u64, now: Timestamp) -> bool {
    let Ok(modified) = metadata.modified() else { return true };
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let modified = Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
    modified > now.plus_ms(settle_ms) || modified <= now.minus_ms(settle_ms)
}

fn item_of(entry: &Entry, bytes_max: usize) -> Option<Item> {
    let (content, digest, is_whole) = match entry.metadata.len() > bytes_max as u64 {
        true => {
            let note = format!(
                "The file `{}` has {} bytes. Files of more than {bytes_max} bytes are not read.",
                entry.name,
                entry.metadata.len()
            );
            (note.clone().into_bytes(), Digest::of(note.as_bytes()), false)
        }
        false => {
            let content = read_whole(entry, bytes_max)?;
            let digest = Digest::of(&content);
            (content, digest, true)
        }
    };
    let media = if is_whole { media_of(&entry.name, &content) } else { "text/plain" };
    let message_id = (media == "message/rfc822").then(|| message_id(&content)).flatten();
    let identity = Digest::of_parts([
        entry.path.as_os_str().as_bytes(),
        &marks(&entry.metadata),
        digest.as_bytes(),
    ]);
    let name = short(&entry.name);
    Some(Item {
        external_id: format!("{name}:{}", &identity.to_string()[..32]),
        key: Some(message_id.unwrap_or_else(|| name.to_owned())),
        topic: Some("file".to_owned()),
        content,
        media: media.to_owned(),
        links: Vec::new(),
    })
}

/// The file's bytes, if it is the same plain file before and after and was read to its end.
fn read_whole(entry: &Entry, bytes_max: usize) -> Option<Vec<u8>> {
    // Without following a link, and without waiting for the other end of a pipe, either of which may
    // have taken the file's place since it was listed.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(&entry.path).ok()?;
    let is_same = |file: &File| {
        file.metadata().is_ok_and(|now| {
            now.is_file()
                && now.ino() == entry.metadata.ino()
                && marks(&now) == marks(&entry.metadata)
        })
    };
    if !is_same(&file) {
        return None;
    }
    let mut content = Vec::new();
    (&file).take(bytes_max as u64 + 1).read_to_end(&mut content).ok()?;
    (is_same(&file) && content.len() as u64 == entry.metadata.len()).then_some(content)
}

fn media_of(name: &str, content: &[u8]) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("eml") => "message/rfc822",
        Some("json") => "application/json",
        Some("csv") => "text/csv",
        Some("html" | "htm") => "text/html",
        Some("md") => "text/markdown",
        Some(_) | None => match std::str::from_utf8(content) {
            Ok(text) if !text.contains('\0') => "text/plain",
            Ok(_) | Err(_) => "application/octet-stream",
        },
    }
}

/// The `Message-ID` of a mail, without its angle brackets.
fn message_id(mail: &[u8]) -> Option<String> {
    let mail = mail_parser::MessageParser::default().parse_headers(mail)?;
    let id = mail.message_id()?.trim();
    (!id.is_empty() && id.len() <= 200 && !id.contains(char::is_control)).then(|| id.to_owned())
}

/// The start of a name.
fn short(name: &str) -> &str {
    let end = (0..=NAME_BYTES_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}
