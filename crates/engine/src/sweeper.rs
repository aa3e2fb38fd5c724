//! Sweeper: finds what nobody holds and what lasts too long (DUR-07, EVT-13).

use base::{OwnerId, SessionId};
use domain::words::Notice;
use store::{OwnerTx, Result};

use crate::{Context, notice};

const BATCH: i64 = 64;

/// One sweep. `true`: there may be more.
pub async fn pass(cx: &Context) -> Result<bool> {
    // Other nodes' leases count by the time all nodes share; a read may be stale, the void is not.
    let now = cx.clock.now();
    let expired = cx.store.read(move |tx| store::session::expired(tx, now, BATCH)).await?;
    for (owner, session) in &expired {
        let session = *session;
        cx.write(*owner, move |_, tx| void(tx, session)).await?;
    }
    for owner in cx.store.read(store::owner::all).await? {
        let id = owner.id;
        cx.write(id, alarms).await?;
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

/// Tells the user, once, of each kind of record that has not moved for longer than it may.
pub fn alarms(cx: &Context, tx: &mut OwnerTx<'_, '_>) -> Result<()> {
    let owner = tx.owner();
    for custody in domain::state::CUSTODY {
        let key = format!("stuck:{}:{}", custody.table, custody.state);
        match store::stuck::oldest(tx, owner, custody)? {
            None => store::fault::close(tx, &key)?,
            Some(since) => {
                let main = store::owner::get(tx, owner)?.main_session;
                let what = format!("{} {}", custody.table.replace('_', " "), custody.state);
                let since = since.to_string();
                let notice = Notice::Stuck { what: &what, since: &since };
                notice::fault(cx, tx, main, &key, &notice)?;
            }
        }
    }
    Ok(())
}

/// For callers that sweep one owner only.
pub async fn owner(cx: &Context, owner: OwnerId) -> Result<()> {
    cx.write(owner, alarms).await
}
