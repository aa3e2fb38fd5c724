//! Sweeper: finds what nobody holds and what lasts too long (DUR-07, EVT-13).

use base::{Id as _, SessionId, Timestamp};
use domain::Custody;
use domain::schedule::zone;
use domain::state::Alarm;
use domain::words::{self, Notice};
use store::session::Lease;
use store::{OwnerTx, Result, StoreError};

use crate::pump::each;
use crate::{Context, notice, watcher};

const BATCH: i64 = 64;

/// Ends leases that ran out. `true`: there may be more.
pub async fn pass(cx: &Context) -> Result<bool> {
    // Other nodes' leases count by the time all nodes share; a read may be stale, the void is not.
    let now = cx.clock.now();
    let expired = cx.store.read(move |tx| store::session::expired(tx, now, BATCH)).await?;
    let more = expired.len() as i64 == BATCH;
    each(expired, |(owner, session)| cx.write(owner, move |_, tx| void(tx, session))).await?;
    Ok(more)
}

/// Ends a lease that ran out and marks its run as lost; the next claim resumes it.
pub fn void(tx: &mut OwnerTx<'_, '_>, session: SessionId) -> Result<()> {
    if store::session::void(tx, session)? {
        store::run::lose(tx, session)?;
    }
    Ok(())
}

/// A worker of this process that cannot go on gives its session back as it is. A database that was busy
/// or away is tried again; anything else counts as a death, so that it cannot go on for ever.
pub fn let_go(cx: &Context, tx: &mut OwnerTx<'_, '_>, id: SessionId, why: &Stopped) -> Result<()> {
    let session = store::session::get(tx, id)?;
    if *why == Stopped::Overtaken {
        return Ok(());
    }
    if session.holder != Some(cx.incarnation) {
        // Not even the claim could be made, so there is no run to count this against: the session is
        // put off, and what waiting does not heal is told.
        let pause_ms = match why {
            Stopped::Dead(_) => cx.limits.retry_max_ms,
            Stopped::Passing(_) | Stopped::Overtaken => cx.limits.retry_ms,
        };
        store::session::put_off(tx, id, tx.now().plus_ms(pause_ms))?;
        if let Stopped::Dead(text) = why {
            let (key, since) = (unworkable(id), tx.now().to_string());
            let what = format!("a conversation cannot be worked on ({text})");
            let notice = Notice::Stuck { what: &what, since: &since };
            let main = store::owner::locked(tx)?.main_session;
            notice::fault(cx, tx, main, &key, &notice)?;
        }
        return Ok(());
    }
    let (owner, fence, holder) = (session.owner, session.fence, cx.incarnation);
    let until = tx.now().plus_ms(cx.limits.retry_ms);
    let lease = Lease { owner, session: id, fence, holder };
    store::session::release(tx, lease, until, session.model_failures)?;
    match (why, store::run::open(tx, id)?) {
        (Stopped::Passing(text), Some(run)) => store::run::sleep(tx, run.id, text),
        (Stopped::Passing(_), None) => Ok(()),
        (Stopped::Dead(_) | Stopped::Overtaken, _) => store::run::lose(tx, id),
    }
}

/// Why a worker could not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// Something that heals by waiting, in words.
    Passing(String),
    /// An error that another try of the same step would meet again, or a panic, in words.
    Dead(String),
    /// Another worker has the session.
    Overtaken,
}

/// The fault of a session whose claim fails.
pub(crate) fn unworkable(session: SessionId) -> String {
    format!("session:{session}")
}

impl From<&StoreError> for Stopped {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Busy
            | StoreError::Full
            | StoreError::Unavailable(_)
            | StoreError::OutcomeUnknown => Stopped::Passing(error.to_string()),
            StoreError::Fenced => Stopped::Overtaken,
            StoreError::Missing(_)
            | StoreError::Duplicate(_)
            | StoreError::Refused(_)
            | StoreError::Corrupt(_)
            | StoreError::Panicked
            | StoreError::Ended
            | StoreError::Sql { .. }
            | StoreError::Closed
            | StoreError::Open(_) => Stopped::Dead(error.to_string()),
        }
    }
}

/// Tells the user, once, of each kind of record that has not moved for longer than it may.
pub async fn alarms(cx: &Context) -> Result<bool> {
    let (now, started) = (cx.clock.now(), started(cx));
    for owner in cx.store.read(store::owner::all).await? {
        let id = owner.id;
        // Looked at by a reader first: while all is well nothing is written or locked.
        let (stuck, silent) = cx
            .store
            .read(move |tx| {
                let mut overdue = 0_usize;
                for custody in watched(started, now) {
                    overdue += usize::from(store::stuck::oldest(tx, id, custody, now)?.is_some());
                }
                let keys: Vec<String> = watched(started, now).map(key).collect();
                let open = store::fault::all_open(tx, id)?;
                let told = open.iter().filter(|fault| keys.contains(&fault.key)).count();
                Ok((overdue != told, watcher::expects(tx, id, &open, now)?))
            })
            .await?;
        if stuck {
            cx.write(id, ring).await?;
        }
        if silent {
            cx.write(id, watcher::listen).await?;
        }
    }
    Ok(false)
}

fn key(custody: &Custody) -> String {
    format!("stuck:{}:{}", custody.table, custody.state)
}

/// When this process started: its incarnation's id holds the time.
fn started(cx: &Context) -> Timestamp {
    let time = cx.incarnation.uuid().get_timestamp().map_or((0, 0), |t| t.to_unix());
    let micros = i64::try_from(time.0).unwrap_or(0).saturating_mul(1_000_000);
    Timestamp::from_micros(micros.saturating_add(i64::from(time.1 / 1_000)))
}

/// The states that had the time to move since the process started. What stood still because nobody
/// was there to move it is not stuck, and catching up is no news.
fn watched(started: Timestamp, now: Timestamp) -> impl Iterator<Item = &'static Custody> {
    domain::state::CUSTODY.iter().filter(move |custody| match custody.alarm {
        Alarm::AfterMs(ms) | Alarm::AfterDueMs { ms, .. } => started.plus_ms(ms) <= now,
        Alarm::Never(_) => false,
    })
}

/// Opens and closes one owner's alarms.
pub fn ring(cx: &Context, tx: &mut OwnerTx<'_, '_>) -> Result<()> {
    let (owner, now) = (tx.owner(), tx.now());
    for custody in watched(started(cx), now) {
        let key = key(custody);
        match store::stuck::oldest(tx, owner, custody, now)? {
            None => store::fault::close(tx, &key)?,
            Some(since) => {
                let of = store::owner::locked(tx)?;
                let zone = zone(&of.zone).map_err(|e| StoreError::Corrupt(e.to_string()))?;
                let what = format!("{} {}", custody.table.replace('_', " "), custody.state);
                let since = words::at(of.language(), &zone, since);
                let notice = match custody.table {
                    "hold" => Notice::Held { since: &since },
                    _ => Notice::Stuck { what: &what, since: &since },
                };
                notice::fault(cx, tx, of.main_session, &key, &notice)?;
            }
        }
    }
    Ok(())
}
