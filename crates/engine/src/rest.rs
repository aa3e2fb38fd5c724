//! What is still to happen: for clocks that jump, for `doctor`, and for tests that wait for quiet.

use base::Timestamp;
use store::{Result, Tx};

use crate::Context;

/// Whether the system has something to do now, or when it will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Work is under way or waits.
    Busy,
    /// A card waits for a person.
    Person,
    /// Nothing until then.
    Until(Timestamp),
    /// Nothing until somebody speaks.
    Quiet,
}

/// Looks at the records.
pub async fn look(cx: &Context) -> Result<Rest> {
    let now = cx.clock.now();
    cx.store.read(move |tx| state(tx, now)).await
}

fn state(tx: &mut Tx<'_>, now: Timestamp) -> Result<Rest> {
    let far = Timestamp::from_micros(i64::MAX);
    let undelivered = store::message::undelivered(tx, 1)?;
    let backoff = store::session::next_backoff(tx, now)?;
    let claimable = store::session::claimable(tx, now, far, far, 1)?;
    if !store::work_item::unrouted(tx, 1)?.is_empty()
        || !claimable.is_empty()
        || !undelivered.is_empty()
    {
        return Ok(Rest::Busy);
    }
    let due = [
        backoff,
        store::schedule::next_due(tx)?,
        store::check::next_due(tx)?,
        store::wait::next_due(tx)?,
        store::work_item::next_attribution(tx)?,
        store::source::next_look(tx)?,
        store::action::next_due(tx)?,
    ];
    match due.into_iter().flatten().min() {
        // What is due is work under way, whoever else is waited for.
        Some(at) if at <= now => Ok(Rest::Busy),
        _ if store::proposal::open_count(tx)? > 0 || store::action::asking_count(tx)? > 0 => {
            Ok(Rest::Person)
        }
        Some(at) => Ok(Rest::Until(at)),
        None => Ok(Rest::Quiet),
    }
}
