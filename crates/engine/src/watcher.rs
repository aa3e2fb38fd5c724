//! Watcher: looks at polled sources and accepts what is new there, as a backup of pushes too (EVT-12).
//!
//! A look's findings and its cursor are one commit: what was seen is on record, or will be seen again.

use base::{OwnerId, SourceId, Timestamp};
use domain::state::SourceState;
use domain::words::Notice;
use store::fault::Fault;
use store::source::Source;
use store::{OwnerTx, Result, Tx};

use crate::intake::{Receipt, accept, from_source};
use crate::pump::{each, unless_stopped};
use crate::world::{Look, within};
use crate::{Context, notice};

const BATCH: i64 = 16;
/// Looks in a row that fail before the user is told.
const FAULT_AFTER: u32 = 3;

/// Looks at what is due. `true`: there may be more.
pub async fn pass(cx: &Context) -> Result<bool> {
    let now = cx.clock.now();
    let found = cx
        .store
        .read(move |tx| {
            let due = unless_stopped(tx, |tx| store::source::due(tx, now, BATCH))?;
            crate::disk::with_room(tx, due)
        })
        .await?;
    let more = found.len() as i64 == BATCH;
    let one = |(owner, id)| async move {
        let Some(source) = claim(cx, owner, id).await? else { return Ok(()) };
        let look = look(cx, &source).await;
        cx.write(owner, move |cx, tx| record(cx, tx, &source, look)).await
    };
    each(found, one).await?;
    Ok(more)
}

/// The source, if it is to be looked at now.
pub async fn claim(cx: &Context, owner: OwnerId, id: SourceId) -> Result<Option<Source>> {
    cx.write(owner, move |_, tx| {
        let source = store::source::get(tx, id)?;
        let now = tx.now();
        Ok(Some(source).filter(|s| s.next_look_at.is_some_and(|next| next <= now)))
    })
    .await
}

/// Looks; a failure is a text with the remedy.
pub async fn look(cx: &Context, source: &Source) -> std::result::Result<Look, String> {
    let config = source.config.as_deref().unwrap_or_default();
    let looking = cx.world.look(config, source.cursor.as_deref(), cx.clock.now());
    let looked = within(cx.limits.tool_call_ms, looking).await;
    looked.unwrap_or_else(|| Err("it did not answer in time; it is tried again".into()))
}

/// Accepts what was found and moves the cursor, or counts the failure.
pub fn record(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    before: &Source,
    look: std::result::Result<Look, String>,
) -> Result<()> {
    let source = store::source::get(tx, before.id)?;
    // Removed meanwhile, or another node looked: its findings stand.
    if source.state != SourceState::Active || source.next_look_at != before.next_look_at {
        return Ok(());
    }
    let every_ms = source.every_ms.unwrap_or(cx.limits.look_every_ms);
    let now = tx.now();
    match look {
        Ok(look) => {
            for found in look.items {
                let accepted = accept(cx, tx, from_source(&source, found)?)?;
                if let Receipt::Conflict = accepted {
                    tracing::warn!(source = source.name, "an id came again with other content");
                }
            }
            let next = if look.more { now } else { now.plus_ms(every_ms) };
            store::source::looked(tx, source.id, &look.cursor, next)?;
            store::fault::close(tx, &fault_key(source.id))
        }
        Err(why) => {
            let wait = every_ms.min(cx.backoff_ms(source.failures.saturating_add(1)));
            let failures = store::source::look_failed(tx, source.id, now.plus_ms(wait.max(1)))?;
            tracing::warn!(source = source.name, failures, why, "a look failed");
            if failures >= FAULT_AFTER {
                let main = store::owner::locked(tx)?.main_session;
                let notice = Notice::Source { name: &source.name, reason: &why };
                notice::fault(cx, tx, main, &fault_key(source.id), &notice)?;
            }
            Ok(())
        }
    }
}

/// Whether a source that should have spoken did not, or one that was silent has, given what is told by
/// now: looked at by a reader first, so that nothing is locked while all is well.
pub(crate) fn expects(
    tx: &mut Tx<'_>,
    owner: OwnerId,
    told: &[Fault],
    now: Timestamp,
) -> Result<bool> {
    let sources = store::source::in_use(tx, owner, i64::MAX)?;
    Ok(sources.iter().any(|source| {
        let key = silence_key(source.id);
        is_silent(source, now) != told.iter().any(|fault| fault.key == key)
    }))
}

/// Whether a source has been silent for longer than the user expects.
pub fn is_silent(source: &Source, now: Timestamp) -> bool {
    let since = source.received_at.unwrap_or(source.created_at);
    source.expect_ms.is_some_and(|expect_ms| domain::event::is_overdue(since, expect_ms, now))
}

/// The fault of a source that should have spoken.
pub(crate) fn silence_key(id: SourceId) -> String {
    format!("silent:{id}")
}

/// Tells, once, of a source that has been silent for longer than the user expects, and closes the fault
/// when it speaks again: health is what was received, not that somebody is connected.
pub fn listen(cx: &Context, tx: &mut OwnerTx<'_, '_>) -> Result<()> {
    let (owner, now) = (store::owner::locked(tx)?, tx.now());
    for source in store::source::in_use(tx, owner.id, i64::MAX)? {
        let key = silence_key(source.id);
        if !is_silent(&source, now) {
            store::fault::close(tx, &key)?;
            continue;
        }
        let since = source.received_at.unwrap_or(source.created_at);
        let zone = domain::schedule::zone(&owner.zone)
            .map_err(|e| store::StoreError::Corrupt(e.to_string()))?;
        let since = domain::words::at(owner.language(), &zone, since);
        let notice = Notice::Silent { name: &source.name, since: &since };
        notice::fault(cx, tx, owner.main_session, &key, &notice)?;
    }
    Ok(())
}

/// The fault of a source that cannot be looked at.
pub fn fault_key(id: SourceId) -> String {
    format!("source:{id}")
}
