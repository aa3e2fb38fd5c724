//! SQLite: one writer thread with group commit, and a few readers.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::broadcast;

use crate::error::{Result, StoreError};
use crate::job::{Job, Ran};
use crate::threads::{Queue, Threads, spawn};
use crate::tx::{Deadline, Engine, Tx};
use crate::{CommitGate, EngineHandle, Options, Signal, migrate, owner, session};

/// Closures that one fsync may serve.
const GROUP_MAX: usize = 64;
const READERS: usize = 2;

pub(crate) fn open(
    path: &Path,
    options: &Options,
    signals: broadcast::Sender<Signal>,
) -> Result<Box<dyn EngineHandle>> {
    let mut connection = connect(path, false)?;
    migrate::sqlite(&mut connection)?;
    let writer = Writer {
        pages_max: options.pages_max,
        gate: options.gate.clone(),
        on_fatal: options.on_fatal.clone(),
        signals,
    };
    writer.bound_pages(&connection)?;
    let now = options.clock.now();
    owner::start_node_sqlite(&mut connection, &options.node, options.incarnation, now)?;
    if options.inline {
        return Ok(Box::new(Inline { connection: Mutex::new(Some(connection)), writer }));
    }
    // This process holds the data folder alone, so no lease of another node is alive either.
    session::void_all_leases(&connection)?;
    let (writes, reads) = (Queue::new(), Queue::new());
    let mut running = Vec::new();
    for at in 0..READERS {
        let reader = connect(path, true)?;
        let name = format!("store-read-{at}");
        running.push(spawn(name, &reads, move |queue| read_loop(reader, queue))?);
    }
    running.push(spawn("store-write".into(), &writes, move |queue| {
        loop {
            let jobs = queue.take(GROUP_MAX);
            if jobs.is_empty() || !writer.group(&connection, jobs) {
                return;
            }
        }
    })?);
    Ok(Box::new(Threads { writes, reads, running }))
}

pub(crate) fn connect(path: &Path, read_only: bool) -> Result<Connection> {
    let fail = |e: rusqlite::Error| {
        StoreError::Open(format!(
            "cannot open the database {} ({e}); see that it is a file of yours",
            path.display()
        ))
    };
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(fail)?;
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
             PRAGMA busy_timeout = 5000; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;",
        )
        .map_err(fail)?;
    if read_only {
        connection.pragma_update(None, "query_only", true).map_err(fail)?;
    }
    // One plan for each statement. Otherwise, as SQLite is built here, every value that is bound anew may
    // change the plan, and a cached statement is parsed again each time it runs.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(fail)?;
    connection.create_collation("C", |a, b| a.cmp(b)).map_err(fail)?;
    connection.set_prepared_statement_cache_capacity(256);
    Ok(connection)
}

struct Writer {
    gate: Option<Arc<dyn CommitGate>>,
    on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
    signals: broadcast::Sender<Signal>,
    pages_max: Option<u32>,
}

impl Writer {
    fn bound_pages(&self, connection: &Connection) -> Result<()> {
        match self.pages_max {
            None => Ok(()),
            Some(pages) => connection
                .pragma_update(None, "max_page_count", pages)
                .map_err(|e| StoreError::sqlite("max_page_count", &e)),
        }
    }

    /// Runs closures in savepoints of one transaction and commits them with one fsync. Answers go out
    /// after it. `false`: the process's stand-in crashed here.
    fn group(&self, connection: &Connection, jobs: Vec<Job>) -> bool {
        if let Err(error) = connection.execute_batch("BEGIN IMMEDIATE") {
            let error = StoreError::sqlite("BEGIN", &error);
            tracing::warn!(%error, "a group of transactions could not begin");
            jobs.into_iter().for_each(|job| job.refuse(error.clone()));
            return true;
        }
        let mut ran = Vec::with_capacity(jobs.len());
        let mut broken: Option<StoreError> = None;
        for job in jobs {
            match &broken {
                Some(error) => job.refuse(error.clone()),
                None => broken = one(connection, job, &mut ran).err(),
            }
        }
        match broken {
            Some(error) => {
                if !connection.is_autocommit() {
                    drop(connection.execute_batch("ROLLBACK"));
                }
                tracing::warn!(%error, "a group of transactions was undone");
                ran.into_iter().for_each(|done| done.fail(error.clone()));
                true
            }
            None => self.commit(connection, ran),
        }
    }

    fn commit(&self, connection: &Connection, ran: Vec<Ran>) -> bool {
        if self.gate.as_ref().is_some_and(|gate| !gate.before_commit()) {
            drop(connection.execute_batch("ROLLBACK"));
            ran.into_iter().for_each(|done| done.fail(StoreError::Closed));
            return false;
        }
        if let Err(error) = connection.execute_batch("COMMIT") {
            let found = StoreError::sqlite("COMMIT", &error);
            let undone = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
            // A full disk or a busy file is known to have written nothing. After any other error at
            // COMMIT nobody can tell, and going on would build on sand.
            if !undone || !matches!(found, StoreError::Full | StoreError::Busy) {
                (self.on_fatal)(&format!("the database could not commit: {found}"));
                // Reached in tests alone. Nobody may be told that nothing happened.
                ran.into_iter().for_each(|done| done.fail(StoreError::OutcomeUnknown));
                return false;
            }
            ran.into_iter().for_each(|done| done.fail(found.clone()));
            return true;
        }
        if self.gate.as_ref().is_some_and(|gate| !gate.after_commit()) {
            ran.into_iter().for_each(|done| done.fail(StoreError::Closed));
            return false;
        }
        for done in ran {
            if let (true, Some(witness)) = (done.ok, done.witness) {
                // Nobody listening is fine: a signal is a hint.
                drop(self.signals.send(Signal { owner: witness.owner, seq: witness.seq }));
            }
            done.answer();
        }
        true
    }
}

/// Runs one closure in its own savepoint and adds it to `ran`. An error means that the whole group is
/// lost, because SQLite ended the transaction underneath.
fn one(connection: &Connection, job: Job, ran: &mut Vec<Ran>) -> Result<()> {
    let control = |text: &str| {
        connection.execute_batch(text).map_err(|e| StoreError::sqlite("SAVEPOINT", &e))
    };
    if let Err(error) = control("SAVEPOINT one") {
        job.refuse(error.clone());
        return Err(error);
    }
    let mut tx = Tx::new(Engine::Sqlite(connection));
    let done = job.run(&mut tx);
    let (ok, cause) = (done.ok, tx.failed());
    ran.push(done);
    if connection.is_autocommit() {
        return Err(cause.unwrap_or(StoreError::Ended));
    }
    control(if ok { "RELEASE one" } else { "ROLLBACK TO one; RELEASE one" })
}

fn read_loop(mut connection: Connection, queue: &Queue) {
    loop {
        let Some(job) = queue.take(1).pop() else { return };
        let until = Deadline::of_read();
        // Every 10 000 steps of the virtual machine, a few hundred microseconds, is often enough.
        // Without it a read that takes too long ends after its statement.
        drop(connection.progress_handler(10_000, Some(move || until.passed())));
        read_one(&connection, job, Some(until));
    }
}

fn read_one(connection: &Connection, job: Job, until: Option<Deadline>) {
    if let Err(error) = connection.execute_batch("BEGIN") {
        return job.refuse(StoreError::sqlite("BEGIN", &error));
    }
    let mut tx = Tx::new(Engine::Sqlite(connection)).until(until);
    let ran = job.run(&mut tx);
    if !connection.is_autocommit() {
        drop(connection.execute_batch("ROLLBACK"));
    }
    ran.answer();
}

/// The simulator's engine: the caller's thread, one connection, no group.
struct Inline {
    connection: Mutex<Option<Connection>>,
    writer: Writer,
}

impl EngineHandle for Inline {
    fn write(&self, job: Job, _urgent: bool) {
        let mut held = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        match held.as_ref() {
            None => job.refuse(StoreError::Closed),
            Some(connection) if self.writer.group(connection, vec![job]) => {}
            Some(_) => *held = None,
        }
    }
    fn read(&self, job: Job) {
        let held = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        match held.as_ref() {
            None => job.refuse(StoreError::Closed),
            Some(connection) => read_one(connection, job, None),
        }
    }
}
