//! Room on the disk of the records: the person is told before it is gone, and while it nearly is, nothing new
//! from outside is taken in. What the person says, decides and stops always is, for as long as anything can be.

use base::OwnerId;
use domain::words::Notice;
use store::fault::Fault;
use store::{OwnerTx, Result};

use crate::{Context, notice};

/// Told that it gets low.
const LOW: &str = "disk:low";
/// Nothing new from outside is taken in.
pub(crate) const FULL: &str = "disk:full";

/// Takes a measurement: tells each owner once of what has changed. It writes nothing while nothing has.
pub async fn measured(cx: &Context, free_bytes: u64) -> Result<()> {
    let bounds = [(LOW, cx.limits.disk_low_bytes), (FULL, cx.limits.disk_least_bytes)];
    for owner in cx.store.read(store::owner::all).await? {
        let id = owner.id;
        let open = cx.store.read(move |tx| store::fault::all_open(tx, id)).await?;
        for (key, bound) in bounds {
            let begins = begins(&open, key, bound, free_bytes);
            if let Some(begins) = begins {
                let turn = move |cx: &Context, tx: &mut OwnerTx<'_, '_>| {
                    turn(cx, tx, key, begins, free_bytes)
                };
                cx.write(id, turn).await?;
            }
        }
    }
    Ok(())
}

/// Whether a fault begins (`true`) or ends now. It ends at twice its bound, so that one that comes and goes by
/// a little is told once.
fn begins(open: &[Fault], key: &str, bound: u64, free: u64) -> Option<bool> {
    match open.iter().any(|fault| fault.key == key) {
        false => (free < bound).then_some(true),
        true => (free >= bound.saturating_mul(2)).then_some(false),
    }
}

fn turn(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    key: &str,
    begins: bool,
    free_bytes: u64,
) -> Result<()> {
    if !begins {
        return store::fault::close(tx, key);
    }
    let main = store::owner::locked(tx)?.main_session;
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let (free, least) = (mib(free_bytes), mib(cx.limits.disk_least_bytes));
    let notice = match key {
        FULL => Notice::DiskFull { free: &free },
        _ => Notice::DiskLow { free: &free, least: &least },
    };
    notice::fault(cx, tx, main, key, &notice)
}

/// Keeps what may be taken in from outside: of owners whose disk has room.
pub(crate) fn with_room<T>(
    tx: &mut store::Tx<'_>,
    found: Vec<(OwnerId, T)>,
) -> Result<Vec<(OwnerId, T)>> {
    let mut kept = Vec::with_capacity(found.len());
    for (owner, id) in found {
        if !store::fault::is_open(tx, owner, FULL)? {
            kept.push((owner, id));
        }
    }
    Ok(kept)
}
