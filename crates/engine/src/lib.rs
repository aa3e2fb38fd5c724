//! The always-on stages, one short file each, in the order data flows:
//!
//! ```text
//! watcher ─► intake ─► router ─► session queue ─► worker ─► tools ─► delivery ─► person
//!              ▲          └► attribution  ▲         │ actions
//!   checker ◄─ timer                      │         ▼
//!                                         │       review ─► admission ─► dispatcher ─► reconciler
//!                                         └ control ◄ proposals, holds, releases (the person decides)
//! ```
//!
//! A stage is **claim**, **perform**, **record**: the first and the last are synchronous transactions,
//! only the middle touches the world. A crash anywhere leaves a row in a named state and the stage that
//! owns that state carries on (`domain::state::CUSTODY`). Production drives the stages with `pump`; the
//! simulator calls the same claims and records, one at a time on one thread.

pub mod admission;
pub mod attribution;
pub mod checker;
pub mod control;
pub mod delivery;
pub mod disk;
pub mod dispatcher;
pub mod explain;
pub mod intake;
pub mod pump;
pub mod put_back;
pub mod reconciler;
pub mod rest;
pub mod review;
pub mod router;
pub mod setup;
pub mod sweeper;
pub mod timer;
pub mod tools;
pub mod trace;
pub mod watcher;
pub mod worker;
pub mod world;

mod aside;
mod assemble;
mod effect;
mod hold;
mod notice;

use std::sync::Arc;

use base::{Clock, Id, IdSource, Incarnation, Limits, OwnerId};
use model::ChatModel;
use store::{OwnerTx, Result, Store};

pub use world::World;

/// What every stage is given. Time, randomness, the model and the world are parameters.
#[derive(Clone)]
pub struct Context {
    /// The records.
    pub store: Store,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Identifiers.
    pub ids: Arc<IdSource>,
    /// Bounds.
    pub limits: Limits,
    /// This start of this process.
    pub incarnation: Incarnation,
    /// The model of the turn.
    pub model: Arc<dyn ChatModel>,
    /// The small model that says which matter an event concerns.
    pub small: Arc<dyn ChatModel>,
    /// The reviewer: it looks at what the policy would release by itself.
    pub reviewer: Arc<dyn ChatModel>,
    /// Tokens that an answer may have.
    pub max_output_tokens: u32,
    /// The outside world.
    pub world: Arc<dyn World>,
}

impl Context {
    /// A new identifier.
    pub fn id<T: Id>(&self) -> T {
        self.ids.next(self.clock.now())
    }

    /// A new identifier without a noun: transactions and ledger entries.
    pub fn uuid(&self) -> uuid::Uuid {
        self.id::<Incarnation>().uuid()
    }

    /// How long something outside is left alone after so many failures in a row.
    pub(crate) fn backoff_ms(&self, failures: u32) -> u64 {
        domain::queue::backoff_ms(failures, self.limits.retry_ms, self.limits.retry_max_ms)
    }

    /// Decides and writes under an owner's lock.
    pub async fn write<T, F>(&self, owner: OwnerId, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Context, &mut OwnerTx<'_, '_>) -> Result<T> + Send + 'static,
    {
        let cx = self.clone();
        self.store.write(owner, self.uuid(), move |tx| work(&cx, tx)).await
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context({:?})", self.store)
    }
}
