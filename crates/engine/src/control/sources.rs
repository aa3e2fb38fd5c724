//! Ways in: only the user adds one (PRO-13), and its trust is always that of the outside.

use base::SourceId;
use domain::event::Trust;
use domain::state::SubscriptionState;
use store::device::Device;
use store::source::{Source, SourceKind};
use store::{OwnerTx, Result};

use super::Changed;
use crate::watcher::{fault_key, silence_key};

/// Characters of a source's name.
const NAME_MAX: usize = 40;
/// Sources of one owner.
const SOURCES_MAX: usize = 100;
/// What the times of a source may be: how often it is looked at, and the silence that is told. Less
/// would do nothing but look, more is never.
pub const SOURCE_MS: std::ops::RangeInclusive<u64> = 10_000..=366 * 86_400_000;

/// A way in that the user wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSource {
    /// Which kind: one that comes from outside.
    pub kind: SourceKind,
    /// How the user calls it: letters, digits, `-` and `_`.
    pub name: String,
    /// How it is reached, as JSON without secrets.
    pub config: String,
    /// Whether it is polled, and how often.
    pub every_ms: Option<u64>,
    /// Silence for longer than this is a fault.
    pub expect_ms: Option<u64>,
}

/// Whether a source may be called so.
///
/// # Errors
/// With the remedy, as a sentence.
pub fn check_source_name(name: &str) -> std::result::Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match (1..=NAME_MAX).contains(&name.len()) && name.chars().all(plain) {
        true => Ok(()),
        false => {
            Err(format!("A source's name has 1 to {NAME_MAX} letters, digits, \"-\" or \"_\"."))
        }
    }
}

/// Adds a way in; the id comes from outside, so that its secret can be stored before.
pub fn add_source(
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    id: SourceId,
    new: NewSource,
) -> Result<Changed> {
    let owner = tx.owner();
    if let Err(what) = check_source_name(&new.name) {
        return Ok(Changed::Conflict(what));
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
    for (what, asked) in [("every_ms", new.every_ms), ("expect_ms", new.expect_ms)] {
        if asked.is_some_and(|asked| !SOURCE_MS.contains(&asked)) {
            return Ok(Changed::Conflict(format!("{what} is from 10 s to 366 days.")));
        }
    }
    let same = |known: &&Source| {
        known.kind == SourceKind::Folder && known.config.as_ref() == Some(&new.config)
    };
    if let Some(known) = known.iter().find(same) {
        return Ok(Changed::Conflict(format!(
            "The source {} watches this folder already. Use that one, or remove it first.",
            known.name
        )));
    }
    let now = tx.now();
    let source = Source {
        config: Some(new.config),
        every_ms: new.every_ms,
        next_look_at: new.every_ms.map(|_| now),
        expect_ms: new.expect_ms,
        ..Source::new(id, owner, new.kind, new.name, Trust::Outside, now)
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
        store::fault::close(tx, &silence_key(id))?;
        tx.audit(Some(device.principal), "remove", id, None);
    }
    Ok(Changed::Done)
}
