//! Ways in: only the user adds one (PRO-13), and its trust is always that of the outside.

use base::SourceId;
use domain::event::Trust;
use domain::state::{SourceState, SubscriptionState};
use store::device::Device;
use store::source::Source;
use store::{OwnerTx, Result};

use super::Changed;
use crate::watcher::fault_key;

/// Characters of a source's name.
const NAME_MAX: usize = 40;
/// Sources of one owner.
const SOURCES_MAX: usize = 100;
/// The shortest time between two looks.
const EVERY_MS_MIN: u64 = 10_000;

/// A way in that the user wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSource {
    /// `webhook`, `folder`, `feed` or `url`.
    pub kind: String,
    /// How the user calls it: letters, digits, `-` and `_`.
    pub name: String,
    /// How it is reached, as JSON without secrets.
    pub config: String,
    /// Whether it is polled, and how often.
    pub every_ms: Option<u64>,
    /// Silence for longer than this is a fault.
    pub expect_ms: Option<u64>,
}

/// Adds a way in; the id comes from outside, so that its secret can be stored before.
pub fn add_source(
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: SourceId,
    new: NewSource,
) -> Result<Changed> {
    let owner = tx.owner();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if new.name.is_empty() || new.name.len() > NAME_MAX || !new.name.chars().all(plain) {
        return Ok(Changed::Conflict(format!(
            "A source's name has 1 to {NAME_MAX} letters, digits, \"-\" or \"_\"."
        )));
    }
    let known = store::source::in_use(tx, owner, i64::MAX)?;
    if known.iter().any(|source| source.name == new.name) {
        return Ok(Changed::Conflict(format!(
            "There is a source {} already. Choose another name, or remove that one first.",
            new.name
        )));
    }
    if known.len() >= SOURCES_MAX {
        return Ok(Changed::Conflict(format!(
            "There are {SOURCES_MAX} sources; remove one first."
        )));
    }
    if new.every_ms.is_some_and(|every| every < EVERY_MS_MIN) {
        return Ok(Changed::Conflict("Looking more often than every 10 s is not allowed.".into()));
    }
    let now = tx.now();
    let source = Source {
        id,
        owner,
        kind: new.kind,
        name: new.name,
        trust: Trust::Outside,
        state: SourceState::Active,
        config: Some(new.config),
        cursor: None,
        every_ms: new.every_ms,
        next_look_at: new.every_ms.map(|_| now),
        looked_at: None,
        failures: 0,
        expect_ms: new.expect_ms,
        received_at: None,
        refused: 0,
        refused_at: None,
        created_at: now,
        moved_at: now,
    };
    store::source::insert(tx, &source)?;
    tx.changed(id);
    tx.audit(Some(device.principal), "add", id, None);
    Ok(Changed::Done)
}

/// Takes a way in out of use; the subscriptions to it end, its events stay.
pub fn remove_source(tx: &mut OwnerTx<'_, '_>, device: &Device, id: SourceId) -> Result<Changed> {
    let source = store::source::get(tx, id)?;
    if source.owner != tx.owner() || source.config.is_none() {
        return Err(store::StoreError::Missing("source"));
    }
    if store::source::remove(tx, id)? {
        for subscription in store::subscription::of_source(tx, id)? {
            store::subscription::advance(tx, subscription.id, SubscriptionState::Closed)?;
        }
        store::fault::close(tx, &fault_key(id))?;
        store::fault::close(tx, &format!("silent:{id}"))?;
        tx.audit(Some(device.principal), "remove", id, None);
    }
    Ok(Changed::Done)
}
