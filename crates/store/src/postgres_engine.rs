//! PostgreSQL: a few threads with a connection each. The owner's row lock orders what they do.

use std::sync::{Arc, Mutex, PoisonError};

use postgres::{Client, NoTls};
use tokio::sync::broadcast;

use crate::error::{Result, StoreError};
use crate::job::{Job, Ran};
use crate::threads::{Queue, Threads, spawn};
use crate::tx::{Deadline, Engine, Prepared, Tx, Witness};
use crate::{CommitGate, EngineHandle, Options, Signal, change, migrate, owner};

const WRITERS: usize = 3;
const READERS: usize = 2;
/// The waits before each look-up of a lost commit; then its caller is told that it is unknown.
const SETTLE_WAITS_MS: [u64; 6] = [0, 100, 500, 1_000, 2_000, 4_000];

pub(crate) fn open(
    url: &str,
    options: &Options,
    signals: broadcast::Sender<Signal>,
) -> Result<Box<dyn EngineHandle>> {
    let mut client = connect(url, Limits::SLOW)?;
    migrate::postgres(&mut client)?;
    owner::start_node(&mut client, &options.node, options.incarnation, options.clock.now())?;
    drop(client);
    let line = |limits| Line {
        url: url.to_owned(),
        limits,
        connected: None,
        gate: options.gate.clone(),
        signals: signals.clone(),
    };
    if options.inline {
        return Ok(Box::new(Inline(Mutex::new(Some(line(Limits::WRITE))))));
    }
    let (writes, reads) = (Queue::new(), Queue::new());
    let mut running = Vec::new();
    let kinds = [(WRITERS, &writes, Limits::WRITE), (READERS, &reads, Limits::READ)];
    for (threads, queue, limits) in kinds {
        for at in 0..threads {
            let mut line = line(limits);
            let name = if limits.read_only { "read" } else { "write" };
            let name = format!("store-{name}-{at}");
            running.push(spawn(name, queue, move |queue| serve(&mut line, queue))?);
        }
    }
    Ok(Box::new(Threads { writes, reads, running }))
}

fn serve(line: &mut Line, queue: &Queue) {
    loop {
        let Some(job) = queue.take(1).pop() else { return };
        let until = line.limits.read_only.then(Deadline::of_read);
        if !line.run(job, line.limits.read_only, until) {
            return;
        }
    }
}

/// How long a connection's statements may wait and run.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    read_only: bool,
    statement_ms: u32,
}

impl Limits {
    const WRITE: Limits = Limits { read_only: false, statement_ms: 5_000 };
    const READ: Limits = Limits { read_only: true, statement_ms: 1_000 };
    /// Migrations may take long.
    pub(crate) const SLOW: Limits = Limits { read_only: false, statement_ms: 600_000 };

    /// A read is one picture however many statements it has: each would otherwise see another state,
    /// and a record on its way between two of them would be in neither. A write holds the owner's lock
    /// and wants the newest after it.
    const fn isolation(self) -> &'static str {
        if self.read_only { "repeatable read" } else { "read committed" }
    }
}

pub(crate) fn connect(url: &str, limits: Limits) -> Result<Client> {
    let mut config: postgres::Config = url.parse().map_err(|e: postgres::Error| {
        // The address may hold a password, so it is not repeated.
        StoreError::Open(format!("the PostgreSQL address is not valid ({e}); correct database.url"))
    })?;
    config.connect_timeout(std::time::Duration::from_secs(5));
    config.application_name("adjutant");
    let mut client = config.connect(NoTls).map_err(|e| StoreError::postgres("connect", &e))?;
    client
        .batch_execute(&format!(
            "SET statement_timeout = {ms}; SET lock_timeout = {ms};
             SET idle_in_transaction_session_timeout = 10000;
             SET default_transaction_read_only = {read_only};
             SET default_transaction_isolation = '{isolation}';
             SET client_min_messages = warning; SET synchronous_commit = on;",
            ms = limits.statement_ms,
            read_only = limits.read_only,
            isolation = limits.isolation(),
        ))
        .map_err(|e| StoreError::postgres("connect", &e))?;
    Ok(client)
}

/// One thread's connection, made again when it broke.
struct Line {
    url: String,
    limits: Limits,
    connected: Option<(Client, Prepared)>,
    gate: Option<Arc<dyn CommitGate>>,
    signals: broadcast::Sender<Signal>,
}

impl Line {
    /// Runs one closure in a transaction of its own. `false`: the process's stand-in crashed here.
    fn run(&mut self, job: Job, is_read: bool, until: Option<Deadline>) -> bool {
        let was_connected = self.connected.is_some();
        let unrun = match self.attempt(job, is_read, until) {
            Ok(going_on) => return going_on,
            // A connection that broke while nobody used it shows that at BEGIN. Nothing has run, so
            // a new one is tried, once.
            Err((job, _)) if was_connected => self.attempt(job, is_read, until),
            unrun => unrun,
        };
        unrun.unwrap_or_else(|(job, error)| {
            tracing::warn!(%error, "a transaction could not begin");
            job.refuse(error);
            true
        })
    }

    /// Runs a closure if a transaction can be begun, else gives it back.
    fn attempt(
        &mut self,
        job: Job,
        is_read: bool,
        until: Option<Deadline>,
    ) -> std::result::Result<bool, (Job, StoreError)> {
        let mut connected = match self.take_connected() {
            Ok(connected) => connected,
            Err(error) => return Err((job, error)),
        };
        let (client, prepared) = &mut connected;
        let mut tx = match client.transaction() {
            Ok(tx) => Tx::new(Engine::Postgres { tx, prepared }).until(until),
            // The connection is dropped, so the next closure gets a new one.
            Err(error) => return Err((job, StoreError::postgres("BEGIN", &error))),
        };
        let ran = job.run(&mut tx);
        let Engine::Postgres { tx, .. } = tx.into_engine() else { return Ok(true) };
        if !ran.ok || is_read {
            let undone = tx.rollback();
            if undone.is_ok() {
                self.connected = Some(connected);
            }
            ran.answer();
            return Ok(true);
        }
        if self.gate.as_ref().is_some_and(|gate| !gate.before_commit()) {
            drop(tx.rollback());
            ran.fail(StoreError::Closed);
            return Ok(false);
        }
        let committed = tx.commit().map_err(|e| StoreError::postgres("COMMIT", &e));
        self.connected = Some(connected);
        Ok(self.conclude(ran, committed))
    }

    fn conclude(&mut self, ran: Ran, committed: Result<()>) -> bool {
        let settled = match committed {
            Ok(()) => Ok(()),
            Err(error) if error.leaves_doubt() => {
                self.connected = None;
                self.settle(ran.witness)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = settled {
            ran.fail(error);
            return true;
        }
        if self.gate.as_ref().is_some_and(|gate| !gate.after_commit()) {
            ran.fail(StoreError::Closed);
            return false;
        }
        if let Some(witness) = ran.witness {
            drop(self.signals.send(Signal { owner: witness.owner, seq: witness.seq }));
        }
        ran.answer();
        true
    }

    /// The connection, made again if it broke. The caller puts it back when it is still good.
    fn take_connected(&mut self) -> Result<(Client, Prepared)> {
        match self.connected.take().filter(|(client, _)| !client.is_closed()) {
            Some(usable) => Ok(usable),
            None => Ok((connect(&self.url, self.limits)?, Prepared::new())),
        }
    }

    /// Reads back whether a commit whose answer was lost happened; it is never run again.
    fn settle(&mut self, witness: Option<Witness>) -> Result<()> {
        let Some(witness) = witness else { return Err(StoreError::OutcomeUnknown) };
        for wait_ms in SETTLE_WAITS_MS {
            // No transaction is open here: the thread only waits for the database to come back.
            std::thread::sleep(std::time::Duration::from_millis(wait_ms));
            let found = self.take_connected().and_then(|mut connected| {
                // The owner's lock waits for the old connection's transaction to end either way.
                let found = change::holds(&mut connected.0, witness)?;
                self.connected = Some(connected);
                Ok(found)
            });
            match found {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    return Err(StoreError::Unavailable("the commit did not happen".into()));
                }
                Err(error) => tracing::warn!(%error, "a lost commit could not be read back yet"),
            }
        }
        Err(StoreError::OutcomeUnknown)
    }
}

/// The simulator's engine: the caller's thread and one connection.
struct Inline(Mutex<Option<Line>>);

impl Inline {
    fn run(&self, job: Job, is_read: bool) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(line) = held.as_mut() else { return job.refuse(StoreError::Closed) };
        if !line.run(job, is_read, None) {
            *held = None;
        }
    }
}

impl EngineHandle for Inline {
    fn write(&self, job: Job, _urgent: bool) {
        self.run(job, false);
    }
    /// One connection serves both; a read is undone and is no commit that a gate could crash.
    fn read(&self, job: Job) {
        self.run(job, true);
    }
}
