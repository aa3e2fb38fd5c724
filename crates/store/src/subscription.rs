//! Subscriptions: standing waits for events of a source. Each is an authorization and ends with its
//! duty (PRO-14).

use base::{
    BodyId, DutyId, OwnerId, SessionId, SourceId, SubscriptionId, TaskVersionId, Timestamp,
};
use domain::event::Mode;
use domain::state::SubscriptionState;

use crate::error::Result;
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// A standing wait.
    pub struct Subscription in "subscription" {
        /// Its id.
        pub id: SubscriptionId,
        /// Whose.
        pub owner: OwnerId,
        /// For which duty.
        pub duty: DutyId,
        /// By which version of it.
        pub task_version: TaskVersionId,
        /// The lane that it feeds.
        pub session: SessionId,
        /// Events of which source.
        pub source: SourceId,
        /// Of which topic: exact, or a prefix that ends in `.*`. `None`: all.
        pub topic: Option<String>,
        /// Whether an event wakes the duty or is only read along.
        pub mode: Mode,
        /// What the agent is to do with it.
        pub prompt: BodyId,
        /// Nothing after this.
        pub until_at: Option<Timestamp>,
        /// Where it stands.
        pub state: SubscriptionState,
        /// Since when.
        pub created_at: Timestamp,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

statements! { "subscription":
    INSERT = insert Subscription, "";
    OF_SOURCE = hot select Subscription, "WHERE source = $1 AND state = 'active'
        ORDER BY created_at, id";
    OF_DUTY = hot select Subscription, "WHERE duty = $1 ORDER BY created_at, id";
    MOVE = "UPDATE subscription SET state = $2, moved_at = $3 WHERE id = $1";
}

/// Adds a subscription.
pub fn insert(tx: &mut OwnerTx<'_, '_>, subscription: &Subscription) -> Result<()> {
    tx.insert(&INSERT, subscription)?;
    tx.changed(subscription.id);
    Ok(())
}

/// Those in force for a source.
pub fn of_source(tx: &mut Tx<'_>, source: SourceId) -> Result<Vec<Subscription>> {
    tx.all(&OF_SOURCE, params![source])
}

/// A duty's, whatever their state.
pub fn of_duty(tx: &mut Tx<'_>, duty: DutyId) -> Result<Vec<Subscription>> {
    tx.all(&OF_DUTY, params![duty])
}

/// Moves one on.
pub fn advance(tx: &mut OwnerTx<'_, '_>, id: SubscriptionId, to: SubscriptionState) -> Result<()> {
    let now = tx.now();
    tx.run(&MOVE, params![id, to, now])?;
    tx.changed(id);
    Ok(())
}
