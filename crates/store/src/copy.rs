//! A copy of one owner's rows in a SQLite file of its own, for whoever wants to try something out on them.
//!
//! It is not made by a reader of the store: those end within a second, and batches would be many pictures
//! instead of one. So it has a connection of its own for as long as it takes: on SQLite a read beside the
//! writer's log, which delays nobody; on PostgreSQL one read-only transaction. What must not go along is left
//! out here: what opens a door (tokens, codes), leases, and the nodes.

use std::path::{Path, PathBuf};

use base::OwnerId;
use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::ToSql;
use rusqlite::Connection;

use crate::error::{Result, StoreError};
use crate::tx::postgres_row;
use crate::value::Value;
use crate::{Database, Store, migrate, postgres_engine, sqlite_engine};

/// Tables of the installation, and what would open a door.
const LEFT_OUT: [&str; 4] = ["installation", "node", "pairing", "request"];

/// What stands in place of a column, in SQLite's words: a token that nobody knows, and no lease.
const VOID: [(&str, &str, &str); 3] = [
    ("device", "token_digest", "randomblob(32)"),
    ("session", "holder", "NULL"),
    ("session", "lease_until", "NULL"),
];

impl Store {
    /// Copies everything of an owner, as it stands at one instant, into a new SQLite file that only this
    /// user may read. Takes as long as it takes, and delays no write.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the file exists or cannot be made; [`StoreError::Missing`] without the owner.
    pub fn copy_owner(
        &self,
        owner: OwnerId,
        to: PathBuf,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let database = self.shared.database.clone();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        // The sync client may run on no thread of a runtime.
        let spawned = std::thread::Builder::new().name("store-copy".into()).spawn(move || {
            let made = make(&to).and_then(|()| {
                let copied = copy(&database, owner, &to);
                if copied.is_err() {
                    forget_copy(&to).map_err(|e| StoreError::Open(e.to_string()))?;
                }
                copied
            });
            // Nobody waits any more: the file is of no use to anybody.
            if let Err(Ok(())) = sender.send(made) {
                drop(forget_copy(&to));
            }
        });
        async move {
            spawned.map_err(|e| StoreError::Unavailable(e.to_string()))?;
            receiver.await.unwrap_or(Err(StoreError::Panicked))
        }
    }
}

/// Takes away a copy, a whole one or what a killed process left of one.
///
/// # Errors
/// When a file is there that cannot be taken away.
pub fn forget_copy(to: &Path) -> std::io::Result<()> {
    for end in ["", "-wal", "-shm", "-journal"] {
        let mut name = to.as_os_str().to_owned();
        name.push(end);
        match std::fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn copy(database: &Database, owner: OwnerId, to: &Path) -> Result<()> {
    let mut target = sqlite_engine::connect(to, false)?;
    migrate::sqlite(&mut target)?;
    let guards = take_guards(&target)?;
    let tables = tables(&target)?;
    run(
        &target,
        "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF",
    )?;
    match database {
        Database::Sqlite(path) => from_sqlite(path, target, to, owner, &tables)?,
        Database::Postgres(url) => from_postgres(url, &target, owner, &tables)?,
    }
    let target = sqlite_engine::connect(to, false)?;
    let found = one::<i64>(&target, "SELECT COUNT(*) FROM owner")?;
    let astray = one::<i64>(&target, "SELECT COUNT(*) FROM pragma_foreign_key_check")?;
    match (found, astray) {
        (1, 0) => {}
        (1, _) => return Err(StoreError::Corrupt(format!("{astray} rows name rows of no owner"))),
        _ => return Err(StoreError::Missing("owner")),
    }
    guards.iter().try_for_each(|guard| run(&target, guard))?;
    // One file, without a log beside it.
    run(&target, "PRAGMA journal_mode = DELETE")
}

/// An empty file that nobody else may read.
pub(crate) fn make(to: &Path) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let fail = |e| StoreError::Open(format!("cannot make {} ({e}); name a new file", to.display()));
    options.open(to).map(drop).map_err(fail)
}

fn fail(error: rusqlite::Error) -> StoreError {
    StoreError::sqlite("copy", &error)
}

pub(crate) fn run(connection: &Connection, text: &str) -> Result<()> {
    connection.execute_batch(text).map_err(fail)
}

pub(crate) fn one<T: rusqlite::types::FromSql>(connection: &Connection, text: &str) -> Result<T> {
    connection.query_row(text, [], |row| row.get(0)).map_err(fail)
}

pub(crate) fn texts(connection: &Connection, text: &str) -> Result<Vec<String>> {
    let mut statement = connection.prepare(text).map_err(fail)?;
    let rows = statement.query_map([], |row| row.get(0)).map_err(fail)?;
    rows.collect::<rusqlite::Result<_>>().map_err(fail)
}

/// The guards refuse a row that does not begin at its beginning, as rows of a copy do not; they are put back
/// at the end.
fn take_guards(target: &Connection) -> Result<Vec<String>> {
    let guards = texts(target, "SELECT sql FROM sqlite_master WHERE type = 'trigger'")?;
    for name in texts(target, "SELECT name FROM sqlite_master WHERE type = 'trigger'")? {
        run(target, &format!("DROP TRIGGER {name}"))?;
    }
    Ok(guards)
}

/// A table with the columns that are taken, and those that get something else.
struct Table {
    name: String,
    taken: Vec<String>,
    void: Vec<(&'static str, &'static str)>,
}

/// Every table of the schema, so that a new one cannot be forgotten.
fn tables(target: &Connection) -> Result<Vec<Table>> {
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut tables: Vec<Table> = Vec::new();
    let mut left_out = 0;
    for name in texts(target, names)? {
        if LEFT_OUT.contains(&name.as_str()) {
            left_out += 1;
            continue;
        }
        let columns = texts(target, &format!("SELECT name FROM pragma_table_info('{name}')"))?;
        let owned = if name == "owner" { "id" } else { "owner" };
        if !columns.iter().any(|column| column == owned) {
            let why = format!(
                "table {name} says of no row whose it is; say in copy.rs what becomes of it"
            );
            return Err(StoreError::Refused(why));
        }
        let known = |column: &str| columns.iter().any(|known| known == column);
        let void = VOID.iter().filter(|(table, column, _)| *table == name && known(column));
        let void: Vec<_> = void.map(|(_, column, instead)| (*column, *instead)).collect();
        let taken =
            columns.into_iter().filter(|name| void.iter().all(|(column, _)| column != name));
        tables.push(Table { taken: taken.collect(), void, name });
    }
    // One that has another name now would go along.
    let voided: usize = tables.iter().map(|table| table.void.len()).sum();
    if (left_out, voided) != (LEFT_OUT.len(), VOID.len()) {
        let why = "copy.rs names a table or a column that is gone; say there what it is called now";
        return Err(StoreError::Refused(why.into()));
    }
    Ok(tables)
}

impl Table {
    /// All columns in the order in which [`Table::values`] gives them.
    fn columns(&self) -> String {
        let void = self.void.iter().map(|(column, _)| (*column).to_owned());
        self.taken.iter().cloned().chain(void).collect::<Vec<_>>().join(", ")
    }

    /// `taken` for what is taken, then what stands in place of the rest.
    fn values(&self, taken: impl Fn((usize, &String)) -> String) -> String {
        let void = self.void.iter().map(|(_, instead)| (*instead).to_owned());
        self.taken.iter().enumerate().map(taken).chain(void).collect::<Vec<_>>().join(", ")
    }

    /// The column that says whose a row is.
    fn owned(&self) -> &'static str {
        if self.name == "owner" { "id" } else { "owner" }
    }
}

fn from_sqlite(
    path: &Path,
    target: Connection,
    to: &Path,
    owner: OwnerId,
    tables: &[Table],
) -> Result<()> {
    drop(target);
    let source = sqlite_engine::connect(path, false)?;
    run(&source, "PRAGMA foreign_keys = OFF")?;
    source.execute("ATTACH ?1 AS copy", [to.to_string_lossy()]).map_err(fail)?;
    // One transaction: everything is read as it stands when its first statement begins.
    run(&source, "BEGIN")?;
    for table in tables {
        let (name, columns) = (&table.name, table.columns());
        let values = table.values(|(_, column)| column.clone());
        let owned = table.owned();
        let text = format!(
            "INSERT INTO copy.{name} ({columns}) SELECT {values} FROM main.{name} WHERE {owned} = ?1"
        );
        source.execute(&text, [base::Id::uuid(owner).as_bytes().as_slice()]).map_err(fail)?;
    }
    run(
        &source,
        "UPDATE copy.installation SET system_stop = (SELECT system_stop FROM main.installation)",
    )?;
    run(&source, "COMMIT; DETACH copy")
}

fn from_postgres(url: &str, target: &Connection, owner: OwnerId, tables: &[Table]) -> Result<()> {
    let fail_there = |e: postgres::Error| StoreError::postgres("copy", &e);
    let mut client = postgres_engine::connect(url, postgres_engine::Limits::SLOW)?;
    let mut tx = client
        .build_transaction()
        .isolation_level(postgres::IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .map_err(fail_there)?;
    run(target, "BEGIN")?;
    for table in tables {
        let (name, owned, taken) = (&table.name, table.owned(), table.taken.join(", "));
        let text = format!("SELECT {taken} FROM {name} WHERE {owned} = $1");
        let slots = table.values(|(at, _)| format!("?{}", at + 1));
        let insert = format!("INSERT INTO {name} ({}) VALUES ({slots})", table.columns());
        let mut insert = target.prepare(&insert).map_err(fail)?;
        let owner = base::Id::uuid(owner);
        let params: [&(dyn ToSql + Sync); 1] = [&owner];
        let mut rows = tx.query_raw(&text, params).map_err(fail_there)?;
        while let Some(row) = rows.next().map_err(fail_there)? {
            let values = postgres_row(&row)?.0.into_iter().map(for_sqlite);
            insert.execute(rusqlite::params_from_iter(values)).map_err(fail)?;
        }
    }
    let stop = tx.query_one("SELECT system_stop FROM installation", &[]).map_err(fail_there)?;
    let stop: bool = stop.try_get(0).map_err(fail_there)?;
    target.execute("UPDATE installation SET system_stop = ?1", [stop]).map_err(fail)?;
    run(target, "COMMIT")
}

fn for_sqlite(value: Value) -> rusqlite::types::Value {
    use rusqlite::types::Value as Sqlite;
    match value {
        Value::Null => Sqlite::Null,
        Value::Int(n) => Sqlite::Integer(n),
        Value::Bool(b) => Sqlite::Integer(i64::from(b)),
        Value::Text(text) => Sqlite::Text(text),
        Value::Bytes(bytes) => Sqlite::Blob(bytes),
        Value::Id(id) => Sqlite::Blob(id.as_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_opens_a_door_under_another_name_is_not_copied() {
        let renamed = |change: &str| {
            let mut target = Connection::open_in_memory().unwrap();
            migrate::sqlite(&mut target).unwrap();
            take_guards(&target).unwrap();
            run(&target, change).unwrap();
            tables(&target).map(|tables| tables.len() > 10)
        };
        assert_eq!(renamed(""), Ok(true));
        for change in [
            "ALTER TABLE device RENAME COLUMN token_digest TO token",
            "ALTER TABLE session RENAME COLUMN holder TO keeper",
            "ALTER TABLE pairing RENAME TO invitation",
        ] {
            let refused = renamed(change);
            assert!(matches!(refused, Err(StoreError::Refused(_))), "{change}: {refused:?}");
        }
    }
}
