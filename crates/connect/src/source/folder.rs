//! A watched folder: each whole file that appears or changes in it is an item.
//!
//! A look compares name, size and time of change with those of the look before (the stamp): a file whose
//! content was changed so that all three stay is not seen to have changed. The content is in the item's
//! id only. Only plain files that lie in the folder itself are looked at: no links, no folders, nothing
//! whose name begins with a dot, and of more than [`SourceLimits::seen_max`] the most recently changed.
//!
//! A file that can not be read makes one item that says so, and is tried again at each look.

use std::collections::BTreeSet;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use base::{Digest, Timestamp};
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::seen::{Stamp, Stamps};
use super::{Item, Look, LookError, SourceLimits, read_cursor, write_cursor};
use crate::text::visible;

/// Bytes of a file's name in an id and as a key.
const NAME_BYTES_MAX: usize = 120;

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Cursor {
    /// The stamps of the files that are there and were found, or were told to be unreadable, sorted.
    seen: Stamps,
    /// It was told that the folder holds more files than are watched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    over: bool,
}

/// A file as the listing shows it.
struct Entry {
    path: PathBuf,
    name: String,
    metadata: Metadata,
    stamp: Stamp,
}

impl Entry {
    /// What is remembered of a file that could not be read: not its stamp, which would let it rest
    /// although its rights are mended.
    fn unread_stamp(&self) -> Stamp {
        let name = self.path.file_name().unwrap_or_default();
        Stamp::of(&Digest::of_parts([name.as_bytes(), &marks(&self.metadata), b"unread"]))
    }
}

/// What reading a file came to.
enum Reading {
    Item(Item),
    /// It changed or went away meanwhile: it waits for another look.
    Changed,
    Failed(std::io::Error),
}

/// Opens a file for reading; a parameter, since no right stops a test that runs as root.
type Open = fn(&Path) -> std::io::Result<File>;

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
    tokio::task::spawn_blocking(move || read(&path, cursor, &limits, now, open))
        .await
        .unwrap_or(Err(failed))
}

fn read(
    path: &str,
    cursor: Cursor,
    limits: &SourceLimits,
    now: Timestamp,
    open: Open,
) -> Result<Look, LookError> {
    let (entries, over) = list(path, limits.seen_max)?;
    let mut items = Vec::new();
    if over && !cursor.over {
        items.push(too_many(path, &cursor, limits.seen_max));
    }
    let before: BTreeSet<Stamp> = cursor.seen.0.into_iter().collect();
    let (known, new): (Vec<Entry>, Vec<Entry>) =
        entries.into_iter().partition(|entry| before.contains(&entry.stamp));
    let mut seen: Vec<Stamp> = known.iter().map(|entry| entry.stamp).collect();
    let (mut bytes, mut more) = (0, false);
    for entry in &new {
        let told = before.contains(&entry.unread_stamp());
        let settled = is_settled(&entry.metadata, limits.settle_ms, now);
        let full = items.len() >= limits.items_max || bytes >= limits.look_bytes_max;
        more |= settled && full;
        let reading = match settled && !full {
            true => item_of(entry, limits.item_bytes_max, open),
            false => Reading::Changed,
        };
        match reading {
            Reading::Item(item) => {
                bytes += item.content.len();
                items.push(item);
                seen.push(entry.stamp);
            }
            Reading::Changed => seen.extend(told.then(|| entry.unread_stamp())),
            Reading::Failed(error) if is_ours(&error) => {
                let reason = format!("`{}`: {error}", entry.name);
                return Err(LookError::Folder { path: path.to_owned(), reason });
            }
            Reading::Failed(error) => {
                items.extend((!told).then(|| unreadable(entry, &error)));
                seen.push(entry.unread_stamp());
            }
        }
    }
    seen.sort_unstable();
    let cursor = write_cursor(&Cursor { seen: Stamps(seen), over })?;
    Ok(Look { items, cursor, more })
}

/// Whether it is this program that can open no more, whatever the file is.
fn is_ours(error: &std::io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM].iter().any(|ours| Some(ours.raw_os_error()) == code)
}

/// The `files_max` most recently changed plain files of a folder, the oldest change first, and whether
/// there are more.
fn list(path: &str, files_max: usize) -> Result<(Vec<Entry>, bool), LookError> {
    let failed = |error: std::io::Error| LookError::Folder {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let (mut entries, mut over) = (Vec::new(), false);
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let file = entry.file_name();
        let name = match visible(&file.to_string_lossy()) {
            name if name.is_empty() => "file".to_owned(),
            name => name,
        };
        // Of the link itself, not of what it points at.
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            // It is gone by now.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                let reason = format!("`{name}`: {error}");
                return Err(LookError::Folder { path: path.to_owned(), reason });
            }
        };
        if file.as_bytes().starts_with(b".") || !metadata.is_file() {
            continue;
        }
        let stamp = Stamp::of(&Digest::of_parts([file.as_bytes(), &marks(&metadata)]));
        entries.push(Entry { path: entry.path(), name, metadata, stamp });
        // Not only at the end: a folder may hold a million of them.
        if entries.len() > files_max.saturating_mul(2) {
            over |= keep_newest(&mut entries, files_max);
        }
    }
    over |= keep_newest(&mut entries, files_max);
    Ok((entries, over))
}

/// Sorts the oldest change first and takes away what is older than the newest `files_max`; whether that
/// was anything.
fn keep_newest(entries: &mut Vec<Entry>, files_max: usize) -> bool {
    let age = |entry: &Entry| (entry.metadata.mtime(), entry.metadata.mtime_nsec());
    entries.sort_by(|a, b| age(a).cmp(&age(b)).then_with(|| a.path.cmp(&b.path)));
    let old = entries.len().saturating_sub(files_max);
    entries.drain(..old);
    old > 0
}

/// Says once that not all files of the folder are watched. The same for the same cursor.
fn too_many(path: &str, cursor: &Cursor, files_max: usize) -> Item {
    let seen = cursor.seen.0.iter().flat_map(|stamp| stamp.bytes()).collect::<Vec<u8>>();
    let identity = Digest::of_parts([path.as_bytes(), b"too many", &seen]);
    let text = format!(
        "The folder {path} holds more than {files_max} files. Only the {files_max} that were changed \
         last are watched; a new file that is older than those is not seen. Move away what is done \
         with."
    );
    note(format!("folder:{}", &identity.to_string()[..32]), None, text)
}

/// Says once that a file can not be read.
fn unreadable(entry: &Entry, error: &std::io::Error) -> Item {
    let identity =
        Digest::of_parts([entry.path.as_os_str().as_bytes(), &marks(&entry.metadata), b"unread"]);
    let name = short(&entry.name);
    let text = format!(
        "The file `{}` can not be read: {error}. It is tried again at every look; let this program \
         read it, or move it away.",
        entry.name
    );
    let external_id = format!("{name}:{}", &identity.to_string()[..32]);
    note(external_id, Some(name.to_owned()), text)
}

/// What the look itself has to say.
fn note(external_id: String, key: Option<String>, text: String) -> Item {
    Item {
        external_id,
        key,
        topic: Some("unreadable".to_owned()),
        content: text.into_bytes(),
        media: "text/plain".to_owned(),
        links: Vec::new(),
    }
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

fn item_of(entry: &Entry, bytes_max: usize, open: Open) -> Reading {
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
            let content = match read_whole(entry, bytes_max, open) {
                Ok(Some(content)) => content,
                Ok(None) => return Reading::Changed,
                Err(error) => return Reading::Failed(error),
            };
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
    Reading::Item(Item {
        external_id: format!("{name}:{}", &identity.to_string()[..32]),
        key: Some(message_id.unwrap_or_else(|| name.to_owned())),
        topic: Some("file".to_owned()),
        content,
        media: media.to_owned(),
        links: Vec::new(),
    })
}

/// Without following a link, and without waiting for the other end of a pipe, either of which may have
/// taken the file's place since it was listed.
fn open(path: &Path) -> std::io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// The file's bytes, if it is the same plain file before and after and was read to its end.
fn read_whole(entry: &Entry, bytes_max: usize, open: Open) -> std::io::Result<Option<Vec<u8>>> {
    let file = match open(&entry.path) {
        Ok(file) => file,
        // It went away, or a link has taken its place.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_same = |file: &File| {
        file.metadata().is_ok_and(|now| {
            now.is_file()
                && now.ino() == entry.metadata.ino()
                && marks(&now) == marks(&entry.metadata)
        })
    };
    if !is_same(&file) {
        return Ok(None);
    }
    let mut content = Vec::new();
    (&file).take(bytes_max as u64 + 1).read_to_end(&mut content)?;
    let is_whole = is_same(&file) && content.len() as u64 == entry.metadata.len();
    Ok(is_whole.then_some(content))
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
    let id = visible(mail.message_id()?.trim());
    (!id.is_empty() && id.len() <= 200).then_some(id)
}

/// The start of a name.
fn short(name: &str) -> &str {
    let end = (0..=NAME_BYTES_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No right stops a test that runs as root, so the files named `locked` can not be opened here.
    fn locked(path: &Path) -> std::io::Result<File> {
        match path.ends_with("locked") {
            true => Err(std::io::Error::from(ErrorKind::PermissionDenied)),
            false => open(path),
        }
    }

    fn no_more(_: &Path) -> std::io::Result<File> {
        Err(std::io::Error::from_raw_os_error(Errno::MFILE.raw_os_error()))
    }

    #[test]
    fn an_unreadable_file_is_told_once_and_read_when_it_can_be() {
        let folder = std::env::temp_dir().join(format!("adjutant-locked-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["locked", "other"] {
            std::fs::write(folder.join(name), name).unwrap();
        }
        let path = folder.to_str().unwrap();
        let limits = SourceLimits { items_max: 1, ..SourceLimits::default() };
        let now = Timestamp::from_micros(4_000_000_000_000_000);
        let look = |cursor: &str, open| {
            let cursor = read_cursor(Some(cursor)).unwrap().unwrap_or_default();
            read(path, cursor, &limits, now, open)
        };
        let said = |look: &Look| {
            let text = |item: &Item| String::from_utf8(item.content.clone()).unwrap();
            look.items.iter().map(text).collect::<Vec<_>>()
        };
        let refused = look("", no_more).unwrap_err();
        assert!(refused.heals_by_waiting() && refused.to_string().contains("`locked`: Too many"));
        let first = look("", locked).unwrap();
        let telling = "The file `locked` can not be read: permission denied. It is tried again at \
                       every look; let this program read it, or move it away.";
        assert_eq!((said(&first), first.more), (vec![telling.to_owned()], true));
        assert_eq!(first.items[0].key.as_deref(), Some("locked"));
        assert_eq!(look("", locked).unwrap(), first, "a lost commit finds the same");
        let second = look(&first.cursor, locked).unwrap();
        assert_eq!((said(&second), second.more), (vec!["other".to_owned()], false));
        let third = look(&second.cursor, locked).unwrap();
        assert_eq!((said(&third), &third.cursor), (Vec::new(), &second.cursor));
        // Its rights were mended, which changes neither size nor time.
        let mended = look(&third.cursor, open).unwrap();
        assert_eq!(said(&mended), ["locked"]);
        assert_eq!(said(&look(&mended.cursor, locked).unwrap()), [""; 0]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
