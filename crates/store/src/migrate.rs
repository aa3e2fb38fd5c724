//! Numbered migrations, forward only. Each names the oldest program that may still write beside it.

use crate::error::{Result, StoreError};
use crate::guard;
use crate::sql::migration_for_sqlite;

/// One step of the schema.
pub(crate) struct Migration {
    /// Its number, from 1.
    pub number: i64,
    /// The oldest schema number whose programs may still write once this one is in place.
    pub oldest_writer: i64,
    /// The statements, in PostgreSQL's spelling.
    pub text: &'static str,
}

pub(crate) const MIGRATIONS: &[Migration] =
    &[Migration { number: 1, oldest_writer: 1, text: include_str!("migrations/0001_first.sql") }];

const NEWEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].number;

const INSTALLATION: &str = "CREATE TABLE IF NOT EXISTS installation (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  schema_number BIGINT NOT NULL,
  oldest_writer BIGINT NOT NULL,
  -- The operator's stop of everything; admission reads it under a share lock.
  system_stop BOOLEAN NOT NULL
);
-- Owners whose records were put back from a backup, until the next start has seen to it.
CREATE TABLE IF NOT EXISTS put_back (
  owner UUID PRIMARY KEY,
  taken_at BIGINT NOT NULL
);
INSERT INTO installation (id, schema_number, oldest_writer, system_stop)
VALUES (1, 0, 0, FALSE) ON CONFLICT DO NOTHING;";

/// The tables that are there before the first step, for whoever makes a file by itself.
pub(crate) fn installation_for_sqlite() -> String {
    migration_for_sqlite(INSTALLATION)
}

/// Whether this program may write a database with these numbers.
pub(crate) fn is_known(schema_number: i64, oldest_writer: i64) -> Result<()> {
    plan(schema_number, oldest_writer).map(|_| ())
}

/// What is to do for a database whose installation row holds these numbers.
fn plan(schema_number: i64, oldest_writer: i64) -> Result<Vec<&'static Migration>> {
    if oldest_writer > NEWEST {
        return Err(StoreError::Open(format!(
            "the database needs a newer adjutant (schema {oldest_writer}, this one knows {NEWEST}); \
             upgrade the program"
        )));
    }
    Ok(MIGRATIONS.iter().filter(|m| m.number > schema_number).collect())
}

/// What follows the last migration: fresh guards for every state column, and the numbers.
fn closing(
    guard: fn(&domain::Machine) -> String,
    frozen: fn(&(&str, &[&str])) -> String,
) -> String {
    let guards = domain::state::MACHINES.iter().map(guard);
    let guards: Vec<String> = guards.chain(domain::state::FROZEN.iter().map(frozen)).collect();
    let newest = &MIGRATIONS[MIGRATIONS.len() - 1];
    format!(
        "{}\nUPDATE installation SET schema_number = {}, oldest_writer = {};",
        guards.join("\n"),
        newest.number,
        newest.oldest_writer
    )
}

pub(crate) fn sqlite(connection: &mut rusqlite::Connection) -> Result<()> {
    let fail = |e: rusqlite::Error| StoreError::sqlite("migration", &e);
    let tx = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(fail)?;
    tx.execute_batch(&installation_for_sqlite()).map_err(fail)?;
    let (number, oldest) = tx
        .query_row("SELECT schema_number, oldest_writer FROM installation", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .map_err(fail)?;
    let steps = plan(number, oldest)?;
    for migration in &steps {
        tx.execute_batch(&migration_for_sqlite(migration.text)).map_err(fail)?;
    }
    if !steps.is_empty() {
        tx.execute_batch(&closing(guard::sqlite, guard::frozen_sqlite)).map_err(fail)?;
    }
    tx.commit().map_err(fail)
}

pub(crate) fn postgres(client: &mut postgres::Client) -> Result<()> {
    let fail = |e: postgres::Error| StoreError::postgres("migration", &e);
    let mut tx = client.transaction().map_err(fail)?;
    // Two nodes that start at once: the second waits here and then finds nothing to do.
    tx.batch_execute("SELECT pg_advisory_xact_lock(7177)").map_err(fail)?;
    tx.batch_execute(INSTALLATION).map_err(fail)?;
    let row =
        tx.query_one("SELECT schema_number, oldest_writer FROM installation", &[]).map_err(fail)?;
    let steps = plan(row.get(0), row.get(1))?;
    for migration in &steps {
        tx.batch_execute(migration.text).map_err(fail)?;
    }
    if !steps.is_empty() {
        tx.batch_execute(&closing(guard::postgres, guard::frozen_postgres)).map_err(fail)?;
    }
    tx.commit().map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::plan;

    #[test]
    fn an_older_program_refuses_and_a_current_one_does_the_rest() {
        assert_eq!(plan(0, 0).map(|steps| steps.len()), Ok(super::MIGRATIONS.len()));
        assert_eq!(plan(super::NEWEST, 1).map(|steps| steps.len()), Ok(0));
        assert!(plan(99, 99).unwrap_err_text().contains("upgrade the program"));
    }

    trait ErrText {
        fn unwrap_err_text(self) -> String;
    }
    impl<T> ErrText for crate::error::Result<T> {
        fn unwrap_err_text(self) -> String {
            self.err().map(|e| e.to_string()).unwrap_or_default()
        }
    }
}
