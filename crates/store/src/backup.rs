//! A backup: the whole installation in one SQLite file, the way back, and the mark of records that were put back.
//!
//! It is made by a connection of its own, also of another process, beside a server that writes: one read of
//! SQLite's, which delays no commit. The file carries its own mark: whichever way it comes into a data folder,
//! the next start finds that what was done after it was taken is not on record (P3).

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use base::{Digest, OwnerId, Timestamp};
use rusqlite::{Connection, OpenFlags};

use crate::change::{self, Verified};
use crate::copy::{make, one, run, texts};
use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{Engine, OwnerTx, Tx};
use crate::value::params;
use crate::{forget_copy, migrate, owner, sqlite_engine};

statements! { "put_back":
    OWNERS = "SELECT owner FROM put_back ORDER BY owner";
    TAKE = "DELETE FROM put_back WHERE owner = $1 RETURNING taken_at";
}

/// Owners whose records were put back and of whom nobody has seen to it yet.
pub fn put_back_owners(tx: &mut Tx<'_>) -> Result<Vec<OwnerId>> {
    tx.rows(&OWNERS, params![])?.iter().map(|row| row.get(0)).collect()
}

/// Takes the owner's mark away: when the backup was taken, or `None` if it was seen to.
pub fn take_mark(tx: &mut OwnerTx<'_, '_>) -> Result<Option<Timestamp>> {
    let owner = tx.owner();
    let taken_at = tx.row(&TAKE, params![owner])?.map(|row| row.get(0)).transpose()?;
    tx.mark_written();
    Ok(taken_at)
}

/// Files that go along, by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// What was found in a backup that is sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sound {
    /// When it was taken.
    pub taken_at: Timestamp,
    /// The schema's number.
    pub schema: i64,
    /// Owners in it.
    pub owners: usize,
    /// Entries of their audit chains, each recomputed.
    pub audited: i64,
    /// Files that go along.
    pub files: usize,
    /// Its size.
    pub bytes: u64,
}

const PARTS: &str = "CREATE TABLE kept_file (name TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
    DELETE FROM put_back;";
/// Entries of the audit chain that are read at once.
const BATCH: i64 = 1_000;

/// Makes a backup of the database `from`, which a server may be writing, in a new file that only this user may
/// read. `files` is asked before and after the records are read, so that no record of that instant lacks its own.
/// Takes as long as it takes.
///
/// # Errors
/// [`StoreError::Open`] without the database, or if the file exists or cannot be made; nothing is left of it then.
pub fn back_up(
    from: &Path,
    to: &Path,
    taken_at: Timestamp,
    files: impl Fn() -> std::io::Result<Files>,
) -> Result<()> {
    if !from.is_file() {
        let from = from.display();
        return Err(StoreError::Open(format!("there is no database {from}; check data_dir")));
    }
    make(to)?;
    let made = fill(from, to, taken_at, files);
    made.inspect_err(|_| drop(forget_copy(to)))
}

fn fill(
    from: &Path,
    to: &Path,
    taken_at: Timestamp,
    files: impl Fn() -> std::io::Result<Files>,
) -> Result<()> {
    let mut kept = files().map_err(|e| io(to, &e))?;
    let source = sqlite_engine::connect(from, false)?;
    source.execute("VACUUM INTO ?1", [to.to_string_lossy()]).map_err(fail)?;
    drop(source);
    kept.extend(files().map_err(|e| io(to, &e))?);
    let target = Connection::open(to).map_err(fail)?;
    run(&target, "PRAGMA journal_mode = DELETE")?;
    run(&target, "BEGIN")?;
    // A backup may be one of records that were put back themselves.
    run(&target, &migrate::installation_for_sqlite())?;
    run(&target, &format!("DROP TABLE IF EXISTS kept_file; {PARTS}"))?;
    let mark = "INSERT INTO put_back (owner, taken_at) SELECT id, ?1 FROM owner";
    target.execute(mark, [taken_at.micros()]).map_err(fail)?;
    for (name, bytes) in kept {
        target.execute("INSERT INTO kept_file VALUES (?1, ?2)", (name, bytes)).map_err(fail)?;
    }
    run(&target, "COMMIT")?;
    drop(target);
    File::open(to).and_then(|file| file.sync_all()).map_err(|e| io(to, &e))
}

/// Looks at everything in a backup that can be wrong by itself, and changes nothing.
///
/// # Errors
/// [`StoreError::Open`] with what is wrong and what to do.
pub fn verify(path: &Path) -> Result<Sound> {
    let shown = path.display();
    let wrong =
        |what: &str| StoreError::Open(format!("{shown} is not sound: {what}; use another backup"));
    let bytes = std::fs::metadata(path).map_err(|e| io(path, &e))?.len();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|e| io(path, &e))?;
    connection.create_collation("C", |a, b| a.cmp(b)).map_err(fail)?;
    let parts = "SELECT COUNT(*) FROM sqlite_master
        WHERE type = 'table' AND name IN ('installation', 'owner', 'put_back', 'kept_file')";
    match one::<i64>(&connection, parts) {
        Ok(4) => {}
        Ok(_) | Err(_) => {
            let what = format!("{shown} is no backup; name a file that \"adjutant backup\" made");
            return Err(StoreError::Open(what));
        }
    }
    let found =
        texts(&connection, "PRAGMA integrity_check(1)").map_err(|e| wrong(&e.to_string()))?;
    if found != ["ok"] {
        return Err(wrong(&found.join(" ")));
    }
    let astray = one::<i64>(&connection, "SELECT COUNT(*) FROM pragma_foreign_key_check")?;
    if astray != 0 {
        return Err(wrong(&format!("{astray} rows name rows that are not there")));
    }
    if let Some(body) = changed_body(&connection)? {
        return Err(wrong(&format!("the content {body} is not as written")));
    }
    let number = |column: &str| {
        one::<i64>(&connection, &format!("SELECT COALESCE(MAX({column}), 0) FROM installation"))
    };
    let (schema, oldest_writer) = (number("schema_number")?, number("oldest_writer")?);
    migrate::is_known(schema, oldest_writer)?;
    let mut tx = Tx::new(Engine::Sqlite(&connection));
    let owners = owner::all(&mut tx)?;
    let mut audited = 0;
    for owner in &owners {
        match chain(&mut tx, owner)? {
            Ok(entries) => audited += entries,
            Err(n) => {
                return Err(wrong(&format!("entry {n} of the audit chain is not as written")));
            }
        }
    }
    let taken_at = one(&connection, "SELECT COALESCE(MIN(taken_at), 0) FROM put_back")?;
    let marked = one::<i64>(&connection, "SELECT COUNT(*) FROM put_back")?;
    if usize::try_from(marked).ok() != Some(owners.len()) {
        return Err(wrong("its mark is missing"));
    }
    let files = one::<i64>(&connection, "SELECT COUNT(*) FROM kept_file")?;
    let files = usize::try_from(files).unwrap_or_default();
    let taken_at = Timestamp::from_micros(taken_at);
    Ok(Sound { taken_at, schema, owners: owners.len(), audited, files, bytes })
}

/// The first content that does not have its own digest.
fn changed_body(connection: &Connection) -> Result<Option<uuid::Uuid>> {
    let all = "SELECT id, bytes, digest FROM body WHERE bytes IS NOT NULL ORDER BY id";
    let mut statement = connection.prepare(all).map_err(fail)?;
    let mut rows = statement.query([]).map_err(fail)?;
    while let Some(row) = rows.next().map_err(fail)? {
        let blob = |at: usize| row.get_ref(at).map(|value| value.as_blob().unwrap_or_default());
        let (bytes, digest) = (blob(1).map_err(fail)?, blob(2).map_err(fail)?);
        if Digest::of(bytes).as_bytes() != digest {
            let id = blob(0).map_err(fail)?;
            return Ok(Some(uuid::Uuid::from_slice(id).unwrap_or_default()));
        }
    }
    Ok(None)
}

/// Recomputes an owner's whole chain: how many entries, or the first that is not as it was written.
fn chain(tx: &mut Tx<'_>, owner: &owner::Owner) -> Result<std::result::Result<i64, i64>> {
    let mut at = Verified::default();
    while at.n < owner.audit_seq {
        match change::verify(tx, owner.id, at, BATCH.min(owner.audit_seq - at.n))? {
            Ok(next) if next == at => return Ok(Err(at.n + 1)),
            Ok(next) => at = next,
            Err(n) => return Ok(Err(n)),
        }
    }
    Ok(if at.hash == owner.audit_head { Ok(at.n) } else { Err(at.n) })
}

/// Makes a database of a backup in a new file, with its mark, and gives the files that went along.
///
/// # Errors
/// [`StoreError::Open`] if the file exists or cannot be made; nothing is left of it then.
pub fn put_back(from: &Path, to: &Path) -> Result<Files> {
    make(to)?;
    let files = copied(from, to);
    files.inspect_err(|_| drop(forget_copy(to)))
}

fn copied(from: &Path, to: &Path) -> Result<Files> {
    let copy = || {
        let mut into = File::options().write(true).open(to)?;
        std::io::copy(&mut File::open(from)?, &mut into)
    };
    copy().map_err(|e| io(to, &e))?;
    let target = Connection::open(to).map_err(fail)?;
    let mut statement = target.prepare("SELECT name, bytes FROM kept_file").map_err(fail)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(fail)?;
    let files = rows.collect::<rusqlite::Result<Files>>().map_err(fail)?;
    drop(statement);
    // The secrets are in files of their own from now on, and in no page that is free.
    run(&target, "PRAGMA secure_delete = ON; DROP TABLE kept_file")?;
    drop(target);
    File::open(to).and_then(|file| file.sync_all()).map_err(|e| io(to, &e))?;
    Ok(files)
}

fn fail(error: rusqlite::Error) -> StoreError {
    StoreError::sqlite("backup", &error)
}

fn io(path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    let path = path.display();
    StoreError::Open(format!(
        "cannot use {path} ({error}); see that it is yours and its disk not full"
    ))
}
