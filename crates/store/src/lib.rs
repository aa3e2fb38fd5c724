//! The only crate with SQL: one [`Store`] over SQLite and PostgreSQL, one file per noun.
//!
//! Transactions are synchronous closures that run on the store's own threads, so no future is dropped
//! inside one and nothing slow can happen inside one. It knows no model, no tool and no HTTP.

mod copy;
mod error;
mod guard;
mod job;
mod migrate;
mod permit;
mod postgres_engine;
mod sql;
mod sqlite_engine;
mod threads;
mod tx;
mod value;

pub mod action;
pub mod approval;
pub mod attempt;
pub mod backup;
pub mod change;
pub mod check;
pub mod device;
pub mod duty;
pub mod event;
pub mod fault;
pub mod gauge;
pub mod grant;
pub mod hold;
pub mod ledger;
pub mod link;
pub mod message;
pub mod object;
pub mod owner;
pub mod proactive;
pub mod proposal;
pub mod rule;
pub mod run;
pub mod schedule;
pub mod session;
pub mod situation;
pub mod source;
pub mod stuck;
pub mod subscription;
pub mod wait;
pub mod work_item;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use base::{Clock, Incarnation, OwnerId};
use tokio::sync::broadcast;
use uuid::Uuid;

pub use copy::forget_copy;
pub use error::{Result, StoreError};
pub use permit::Permit;
pub use sql::Sql;
pub use tx::{OwnerTx, Tx};
pub use value::{Column, Record, Row, Value};

use job::Job;

/// Which database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// A file, held by this process alone.
    Sqlite(PathBuf),
    /// A server's connection string, shared by any number of nodes.
    Postgres(String),
}

/// Where in a commit the simulator or a fault test may crash the process's stand-in.
pub trait CommitGate: Send + Sync {
    /// Asked before COMMIT; `false` crashes here: nothing is written.
    fn before_commit(&self) -> bool;
    /// Asked after COMMIT; `false` crashes here: all is written and nobody learns of it.
    fn after_commit(&self) -> bool;
}

/// How to open a store.
#[derive(Clone)]
pub struct Options {
    /// Which database.
    pub database: Database,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// This start of this process; leases of others on SQLite, and of this node's former ones on
    /// PostgreSQL, are void.
    pub incarnation: Incarnation,
    /// This machine's name among the nodes of one database.
    pub node: String,
    /// No threads and one connection: the simulator's mode. Otherwise the store runs its own threads.
    pub inline: bool,
    /// Lease time from the database, so that nodes with other clocks agree. PostgreSQL in production.
    pub database_time: bool,
    /// For the simulator and fault tests.
    pub gate: Option<Arc<dyn CommitGate>>,
    /// Called when SQLite cannot tell whether a COMMIT reached the disk; it must end the process.
    pub on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
    /// Pages that the SQLite file may have; for tests of a full disk. `None`: no bound.
    pub pages_max: Option<u32>,
}

/// A hint that an owner's records changed. It may be lost; the records are the fact (CLI-04).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// Whose.
    pub owner: OwnerId,
    /// Up to which number.
    pub seq: i64,
}

/// The records, on either engine. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Box<dyn EngineHandle>,
    clock: Arc<dyn Clock>,
    database_time: bool,
    database: Database,
    signals: broadcast::Sender<Signal>,
}

/// What the two engines, threaded or inline, have in common.
trait EngineHandle: Send + Sync {
    /// Runs or queues a write. `urgent` goes to the head of the queue.
    fn write(&self, job: Job, urgent: bool);
    /// Runs or queues a read.
    fn read(&self, job: Job);
}

/// Which locks a write takes, and where it stands in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The owner's.
    Usual,
    /// The owner's, before all who wait.
    First,
    /// The installation's, shared, and then the owner's.
    Admission,
    /// The same; the only one in which an attempt may be registered.
    Dispatch,
    /// The installation's, alone, and then the owner's, before all who wait.
    Operator,
}

const SIGNALS_BUFFERED: usize = 1_024;

impl Store {
    /// Opens the database, brings its schema up to date and voids leases of processes that are gone.
    pub fn open(options: Options) -> Result<Store> {
        let (signals, _) = broadcast::channel(SIGNALS_BUFFERED);
        let shared = |engine: Box<dyn EngineHandle>| Shared {
            engine,
            clock: options.clock.clone(),
            database_time: options.database_time,
            database: options.database.clone(),
            signals: signals.clone(),
        };
        let engine: Box<dyn EngineHandle> = match &options.database {
            Database::Sqlite(path) => sqlite_engine::open(path, &options, signals.clone())?,
            Database::Postgres(url) => postgres_engine::open(url, &options, signals.clone())?,
        };
        Ok(Store { shared: Arc::new(shared(engine)) })
    }

    /// Whether it runs on PostgreSQL.
    pub fn is_postgres(&self) -> bool {
        matches!(self.shared.database, Database::Postgres(_))
    }

    /// Hints of changes from now on. A receiver that lags rereads.
    pub fn signals(&self) -> broadcast::Receiver<Signal> {
        self.shared.signals.subscribe()
    }

    /// Decides and writes under one owner's lock. `txn` comes from outside, so that the outcome of a
    /// commit whose answer was lost can be read back by it.
    pub fn write<T, F>(
        &self,
        owner: OwnerId,
        txn: Uuid,
        work: F,
    ) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&mut OwnerTx<'_, '_>) -> Result<T> + Send + 'static,
    {
        self.submit(owner, txn, Order::Usual, work)
    }

    /// The same at the head of the queue: for a stop.
    pub fn write_urgent<T, F>(
        &self,
        owner: OwnerId,
        txn: Uuid,
        work: F,
    ) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&mut OwnerTx<'_, '_>) -> Result<T> + Send + 'static,
    {
        self.submit(owner, txn, Order::First, work)
    }

    /// Admission: the operator's stop is read under its own lock, taken before the owner's, so that both
    /// stops are in one order with it. See [`OwnerTx::system_stop`].
    pub fn admit<T, F>(
        &self,
        owner: OwnerId,
        txn: Uuid,
        work: F,
    ) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&mut OwnerTx<'_, '_>) -> Result<T> + Send + 'static,
    {
        self.submit(owner, txn, Order::Admission, work)
    }

    /// Dispatch: like [`Store::admit`], and the only place that mints a [`Permit`]: of the attempt that the
    /// closure registered, once the commit is durable (P3, P5).
    pub fn dispatch<F>(
        &self,
        owner: OwnerId,
        txn: Uuid,
        work: F,
    ) -> impl Future<Output = Result<Option<Permit>>> + Send + use<F>
    where
        F: FnOnce(&mut OwnerTx<'_, '_>) -> Result<Option<attempt::Registered>> + Send + 'static,
    {
        // Submitted here, like every other write, and not by whoever polls: the sync client may run on no
        // thread of a runtime.
        let registered = self.submit(owner, txn, Order::Dispatch, work);
        async move { Ok(registered.await?.map(Permit::of)) }
    }

    /// The operator's stop, or its end: it waits for admissions under way, and those after it see it. Goes
    /// to the head of the queue.
    pub fn operate<T, F>(
        &self,
        owner: OwnerId,
        txn: Uuid,
        work: F,
    ) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&mut OwnerTx<'_, '_>) -> Result<T> + Send + 'static,
    {
        self.submit(owner, txn, Order::Operator, work)
    }

    fn submit<T, F>(
        &self,
        owner: OwnerId,
        txn: Uuid,
        order: Order,
        work: F,
    ) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&mut OwnerTx<'_, '_>) -> Result<T> + Send + 'static,
    {
        let (clock, database_time) = (self.shared.clock.clone(), self.shared.database_time);
        let (job, answer) = job::prepare(move |tx| {
            // The installation's row comes before every owner's.
            let system_stop = match order {
                Order::Usual | Order::First => None,
                Order::Admission | Order::Dispatch => Some(hold::stop_shared(tx)?),
                Order::Operator => Some(hold::stop_locked(tx)?),
            };
            let mut owner_tx =
                OwnerTx::lock(tx, owner, clock.as_ref(), database_time)?.under(order, system_stop);
            let value = work(&mut owner_tx)?;
            let witness = owner_tx.finish(txn)?;
            Ok((value, witness))
        });
        let urgent = matches!(order, Order::First | Order::Operator);
        self.shared.engine.write(job, urgent);
        answer.wait()
    }

    /// Writes rows that belong to no owner's order: the set-up of owners and nodes.
    pub fn write_unowned<T, F>(&self, work: F) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let (job, answer) = job::prepare(move |tx| Ok((work(tx)?, None)));
        self.shared.engine.write(job, false);
        answer.wait()
    }

    /// Reads one consistent picture, within a second. What it shows may be shown, never decided on.
    pub fn read<T, F>(&self, work: F) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let (job, answer) = job::prepare(move |tx| Ok((work(tx)?, None)));
        self.shared.engine.read(job);
        answer.wait()
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", if self.is_postgres() { "postgresql" } else { "sqlite" })
    }
}

/// Every statement of every noun, for the tests that prepare and explain them all.
pub fn statements() -> Vec<&'static Sql> {
    [
        action::ALL,
        approval::ALL,
        attempt::ALL,
        backup::ALL,
        change::ALL,
        check::ALL,
        device::ALL,
        duty::ALL,
        event::ALL,
        fault::ALL,
        gauge::ALL,
        grant::ALL,
        rule::ALL,
        hold::ALL,
        ledger::ALL,
        link::ALL,
        message::ALL,
        object::ALL,
        owner::ALL,
        proactive::ALL,
        proposal::ALL,
        run::ALL,
        schedule::ALL,
        session::ALL,
        situation::ALL,
        source::ALL,
        subscription::ALL,
        wait::ALL,
        work_item::ALL,
        &stuck::statements().iter().map(|(_, sql)| sql).collect::<Vec<_>>(),
    ]
    .concat()
}
