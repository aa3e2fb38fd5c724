//! Faults: what is broken, told once however often it recurs.

use base::{OwnerId, Timestamp};
use uuid::Uuid;

use domain::state::FaultState;

use crate::error::Result;
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// Something that is broken.
    pub struct Fault in "fault" {
        /// Its id.
        pub id: Uuid,
        /// Whose.
        pub owner: OwnerId,
        /// What, as `model` or `stuck:work_item:pending`. Open at most once.
        pub key: String,
        /// For people.
        pub detail: String,
        /// How often it was seen.
        pub times: i64,
        /// Where it stands.
        pub state: FaultState,
        /// First seen.
        pub created_at: Timestamp,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

statements! { "fault":
    AGAIN = hot "UPDATE fault SET times = times + 1, detail = $3 WHERE owner = $1 AND key = $2 AND state = 'open'";
    INSERT = insert Fault, "";
    CLOSE = hot "UPDATE fault SET state = 'closed', moved_at = $3
        WHERE owner = $1 AND key = $2 AND state = 'open'";
    IS_OPEN = hot "SELECT 1 FROM fault WHERE owner = $1 AND key = $2 AND state = 'open'";
    OPEN = select Fault, "WHERE owner = $1 AND state = 'open' ORDER BY created_at, id";
}

/// Notes a fault. `true`: it is new, so the user is to be told.
pub fn open(tx: &mut OwnerTx<'_, '_>, id: Uuid, key: &str, detail: &str) -> Result<bool> {
    let (owner, now) = (tx.owner(), tx.now());
    if tx.run(&AGAIN, params![owner, key, detail])? > 0 {
        return Ok(false);
    }
    let fault = Fault {
        id,
        owner,
        key: key.to_owned(),
        detail: detail.to_owned(),
        times: 1,
        state: FaultState::Open,
        created_at: now,
        moved_at: now,
    };
    tx.insert(&INSERT, &fault)?;
    Ok(true)
}

/// Notes that it works again.
pub fn close(tx: &mut OwnerTx<'_, '_>, key: &str) -> Result<()> {
    let (owner, now) = (tx.owner(), tx.now());
    tx.run(&CLOSE, params![owner, key, now]).map(|_| ())
}

/// Whether this is broken now.
pub fn is_open(tx: &mut Tx<'_>, owner: OwnerId, key: &str) -> Result<bool> {
    Ok(tx.row(&IS_OPEN, params![owner, key])?.is_some())
}

/// What is broken now.
pub fn all_open(tx: &mut Tx<'_>, owner: OwnerId) -> Result<Vec<Fault>> {
    tx.all(&OPEN, params![owner])
}
