//! Sweeper: finds what nobody holds and what lasts too long (DUR-07, EVT-13).

use base::SessionId;
use domain::words::Notice;
use store::{OwnerTx, Result, StoreError};

use crate::worker::Work;
use crate::{Context, notice};

const BATCH: i64 = 64;

/// Ends leases that ran out. `true`: there may be more.
pub async fn pass(cx: &Context) -> Result<bool> {
    // Other nodes' leases count by the time all nodes share; a read may be stale, the void is not.
    let now = cx.clock.now();
    let expired = cx.store.read(move |tx| store::session::expired(tx, now, BATCH)).await?;
    for (owner, session) in &expired {
        let session = *session;
        cx.write(*owner, move |_, tx| void(tx, session)).await?;
    }
    Ok(expired.len() as i64 == BATCH)
}

/// Ends a lease that ran out and marks its run as lost; the next claim resumes it.
pub fn void(tx: &mut OwnerTx<'_, '_>, session: SessionId) -> Result<()> {
    if store::session::void(tx, session)? {
        store::run::lose(tx, session)?;
    }
    Ok(())
}

/// A worker that cannot go on gives its session back as it is. A database that was busy or away is
/// tried again; anything else counts as a death, so that it cannot go on for ever.
pub fn let_go(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    error: &StoreError,
) -> Result<()> {
    let session = store::session::get(tx, work.lease.session)?;
    let until = tx.now().plus_ms(cx.limits.retry_ms);
    store::session::release(tx, work.lease, until, session.model_failures)?;
    match error {
        StoreError::Busy
        | StoreError::Full
        | StoreError::Unavailable(_)
        | StoreError::OutcomeUnknown => store::run::sleep(tx, work.run.id, &error.to_string()),
        StoreError::Fenced
        | StoreError::Missing(_)
        | StoreError::Duplicate(_)
        | StoreError::Refused(_)
        | StoreError::Corrupt(_)
        | StoreError::Panicked
        | StoreError::Ended
        | StoreError::Sql { .. }
        | StoreError::Closed
        | StoreError::Open(_) => store::run::lose(tx, work.lease.session),
    }
}

/// Tells the user, once, of each kind of record that has not moved for longer than it may.
pub async fn alarms(cx: &Context) -> Result<bool> {
    let now = cx.clock.now();
    for owner in cx.store.read(store::owner::all).await? {
        let id = owner.id;
        // Looked at by a reader first: while all is well nothing is written or locked.
        let (overdue, told) = cx
            .store
            .read(move |tx| {
                let mut overdue = 0_usize;
                for custody in domain::state::CUSTODY {
                    overdue += usize::from(store::stuck::oldest(tx, id, custody, now)?.is_some());
                }
                let open = store::fault::all_open(tx, id)?;
                Ok((overdue, open.iter().filter(|fault| fault.key.starts_with(STUCK)).count()))
            })
            .await?;
        if overdue != told {
            cx.write(id, ring).await?;
        }
    }
    Ok(false)
}

const STUCK: &str = "stuck:";

/// Opens and closes one owner's alarms.
pub fn ring(cx: &Context, tx: &mut OwnerTx<'_, '_>) -> Result<()> {
    let (owner, now) = (tx.owner(), tx.now());
    for custody in domain::state::CUSTODY {
        let key = format!("{STUCK}{}:{}", custody.table, custody.state);
        match store::stuck::oldest(tx, owner, custody, now)? {
            None => store::fault::close(tx, &key)?,
            Some(since) => {
                let main = store::owner::locked(tx)?.main_session;
                let what = format!("{} {}", custody.table.replace('_', " "), custody.state);
                let since = since.to_string();
                let notice = Notice::Stuck { what: &what, since: &since };
                notice::fault(cx, tx, main, &key, &notice)?;
            }
        }
    }
    Ok(())
}
