//! How much there is of what moves, for whoever watches the machine (OPS-03): numbers without content or ids.
//!
//! What it costs is bounded: what waits is counted by its custodian's index and no further than [`COUNT_MAX`],
//! and of actions the newest as many of each owner are looked at.

use base::OwnerId;

use crate::error::Result;
use crate::sql::statements;
use crate::tx::Tx;
use crate::value::params;

/// No count is higher.
pub const COUNT_MAX: i64 = 10_000;

statements! { "gauge":
    WAITING = hot "SELECT 'work_items', 'unrouted', COUNT(*) FROM (SELECT 1 FROM work_item
          WHERE state = 'unrouted' LIMIT $1) a
        UNION ALL SELECT 'work_items', 'attributing', COUNT(*) FROM (SELECT 1 FROM work_item
          WHERE state = 'attributing' LIMIT $1) b
        UNION ALL SELECT 'work_items', 'pending', COUNT(*) FROM (SELECT 1 FROM work_item
          WHERE state = 'pending' LIMIT $1) c
        UNION ALL SELECT 'work_items', 'background', COUNT(*) FROM (SELECT 1 FROM work_item
          WHERE state = 'background' LIMIT $1) d
        UNION ALL SELECT 'work_items', 'claimed', COUNT(*) FROM (SELECT 1 FROM work_item
          WHERE state = 'claimed' LIMIT $1) e
        UNION ALL SELECT 'runs', 'open', COUNT(*) FROM (SELECT 1 FROM run
          WHERE state IN ('running', 'lost', 'sleeping') LIMIT $1) f
        UNION ALL SELECT 'duties', 'open', COUNT(*) FROM (SELECT 1 FROM duty
          WHERE state <> 'closed' LIMIT $1) g
        UNION ALL SELECT 'waits', 'open', COUNT(*) FROM (SELECT 1 FROM wait
          WHERE state = 'open' LIMIT $1) h
        UNION ALL SELECT 'proposals', 'open', COUNT(*) FROM (SELECT 1 FROM proposal
          WHERE state = 'open' LIMIT $1) i
        UNION ALL SELECT 'messages', 'undelivered', COUNT(*) FROM (SELECT 1 FROM message
          WHERE state IN ('generated', 'queued', 'sending', 'uncertain') LIMIT $1) j
        UNION ALL SELECT 'faults', 'open', COUNT(*) FROM (SELECT 1 FROM fault
          WHERE state = 'open' LIMIT $1) k
        UNION ALL SELECT 'pauses', 'active', COUNT(*) FROM (SELECT 1 FROM pause
          WHERE state = 'active' LIMIT $1) l
        UNION ALL SELECT 'holds', 'placed', COUNT(*) FROM (SELECT 1 FROM hold
          WHERE state = 'placed' LIMIT $1) m";
    ACTIONS = hot "SELECT state, COUNT(*) FROM (SELECT state FROM action WHERE owner = $1
        ORDER BY created_at DESC LIMIT $2) a GROUP BY state";
}

/// What waits, of all owners: the noun in the plural, the state, how many.
pub fn waiting(tx: &mut Tx<'_>) -> Result<Vec<(String, String, i64)>> {
    let rows = tx.rows(&WAITING, params![COUNT_MAX])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).collect()
}

/// How many of an owner's newest actions stand in each state.
pub fn actions(tx: &mut Tx<'_>, owner: OwnerId) -> Result<Vec<(String, i64)>> {
    let rows = tx.rows(&ACTIONS, params![owner, COUNT_MAX])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}
