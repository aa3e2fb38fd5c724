//! The owner's change sequence (CLI-05) and audit chain. Only the commit wrapper writes them.

use base::{Digest, Id as _, OwnerId, PrincipalId, Timestamp};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::owner::Head;
use crate::sql::statements;
use crate::tx::{Tx, Witness};
use crate::value::{Row, params};

/// One changed record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The number of the transaction that changed it.
    pub seq: i64,
    /// What kind of record.
    pub noun: String,
    /// Which.
    pub record: Uuid,
}

/// An audit entry on its way into the chain.
pub(crate) struct Entry {
    pub by: Option<PrincipalId>,
    pub verb: &'static str,
    pub noun: &'static str,
    pub record: Uuid,
    pub digest: Option<Digest>,
}

statements! { "change":
    INSERT = hot "INSERT INTO change (owner, seq, n, noun, record, txn) VALUES ($1, $2, $3, $4, $5, $6)";
    AFTER = hot "SELECT seq, noun, record FROM change WHERE owner = $1 AND seq > $2 AND seq <= $3
        ORDER BY seq, n";
    INSERT_AUDIT = hot "INSERT INTO audit (owner, n, principal, verb, noun, record, digest, hash, at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    AUDIT_OF = hot "SELECT n, principal, verb, noun, record, digest, hash, at FROM audit
        WHERE owner = $1 AND record = $2 ORDER BY n";
    AUDIT = "SELECT n, principal, verb, noun, record, digest, hash, at FROM audit
        WHERE owner = $1 AND n > $2 ORDER BY n LIMIT $3";
}

pub(crate) fn append(
    tx: &mut Tx<'_>,
    owner: OwnerId,
    seq: i64,
    txn: Uuid,
    changes: &[(&'static str, Uuid)],
) -> Result<()> {
    for (n, (noun, record)) in (0_i64..).zip(changes) {
        tx.run(&INSERT, params![owner, seq, n, *noun, *record, txn])?;
    }
    Ok(())
}

/// What is hashed of an entry, whether it is on its way or read back.
struct Link<'e> {
    by: Option<PrincipalId>,
    verb: &'e str,
    noun: &'e str,
    record: Uuid,
    digest: Option<Digest>,
}

fn entry_hash(previous: Digest, n: i64, at: Timestamp, entry: &Link<'_>) -> Digest {
    // Each part is hashed with its length, so that none and a principal of zeros differ.
    let by = entry.by.map(|p| p.uuid().into_bytes());
    let digest = entry.digest.as_ref();
    Digest::of_parts([
        previous.as_bytes().as_slice(),
        &n.to_be_bytes(),
        &at.micros().to_be_bytes(),
        by.as_ref().map_or(&[], |by| by.as_slice()),
        entry.verb.as_bytes(),
        entry.noun.as_bytes(),
        entry.record.as_bytes(),
        digest.map_or(&[], |digest| digest.as_bytes().as_slice()),
    ])
}

pub(crate) fn chain(
    tx: &mut Tx<'_>,
    owner: OwnerId,
    at: Timestamp,
    head: &Head,
    entries: &[Entry],
) -> Result<(i64, Digest)> {
    let (mut n, mut hash) = (head.audit_seq, head.audit_head);
    for entry in entries {
        n += 1;
        let Entry { by, verb, noun, record, digest } = entry;
        let link = Link { by: *by, verb, noun, record: *record, digest: *digest };
        hash = entry_hash(hash, n, at, &link);
        tx.run(&INSERT_AUDIT, params![owner, n, *by, *verb, *noun, *record, *digest, hash, at])?;
    }
    Ok((n, hash))
}

/// The changes numbered after `after`, at most `transactions` transactions of them, in order.
pub fn after(
    tx: &mut Tx<'_>,
    owner: OwnerId,
    after: i64,
    transactions: i64,
) -> Result<Vec<Change>> {
    let read = |row: &Row| -> Result<Change> {
        Ok(Change { seq: row.get(0)?, noun: row.get(1)?, record: row.get(2)? })
    };
    let last = after.saturating_add(transactions);
    tx.rows(&AFTER, params![owner, after, last])?.iter().map(read).collect()
}

/// One entry of the audit chain, as the judge checks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// Its number, gap-free from 1.
    pub n: i64,
    /// Who.
    pub by: Option<PrincipalId>,
    /// What was done.
    pub verb: String,
    /// To what kind of record.
    pub noun: String,
    /// To which.
    pub record: Uuid,
    /// The digest of its content, if it has one.
    pub digest: Option<Digest>,
    /// The hash over the entry before and this one.
    pub hash: Digest,
    /// When.
    pub at: Timestamp,
}

fn audited(row: &Row) -> Result<Audited> {
    Ok(Audited {
        n: row.get(0)?,
        by: row.get(1)?,
        verb: row.get(2)?,
        noun: row.get(3)?,
        record: row.get(4)?,
        digest: row.get(5)?,
        hash: row.get(6)?,
        at: row.get(7)?,
    })
}

/// The entries after number `after`.
pub fn audit(tx: &mut Tx<'_>, owner: OwnerId, after: i64, limit: i64) -> Result<Vec<Audited>> {
    tx.rows(&AUDIT, params![owner, after, limit])?.iter().map(audited).collect()
}

/// The entries about one record, in order.
pub fn audit_of(tx: &mut Tx<'_>, owner: OwnerId, record: Uuid) -> Result<Vec<Audited>> {
    tx.rows(&AUDIT_OF, params![owner, record])?.iter().map(audited).collect()
}

/// How far a look along the audit chain has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// The last entry that was looked at.
    pub n: i64,
    /// Its hash, as computed.
    pub hash: Digest,
}

impl Default for Verified {
    /// Before the first entry.
    fn default() -> Self {
        Verified { n: 0, hash: Digest::ZERO }
    }
}

/// Recomputes the next entries of the chain. `Err(n)` inside: entry `n` is missing or is not what was
/// written.
pub fn verify(
    tx: &mut Tx<'_>,
    owner: OwnerId,
    mut from: Verified,
    limit: i64,
) -> Result<std::result::Result<Verified, i64>> {
    for entry in audit(tx, owner, from.n, limit)? {
        let Audited { n, by, verb, noun, record, digest, hash, at } = &entry;
        let link = Link { by: *by, verb, noun, record: *record, digest: *digest };
        let wanted = entry_hash(from.hash, *n, *at, &link);
        if *n != from.n + 1 || wanted != *hash {
            return Ok(Err(from.n + 1));
        }
        from = Verified { n: *n, hash: wanted };
    }
    Ok(Ok(from))
}

/// Whether the owner's change at the witness's number is the witness's own. Waits for the owner's lock,
/// so that a transaction whose connection broke has ended before the answer.
pub(crate) fn holds(client: &mut postgres::Client, witness: Witness) -> Result<bool> {
    let fail = |e: postgres::Error| StoreError::postgres("settle", &e);
    let mut tx = client.transaction().map_err(fail)?;
    tx.query_one("SELECT 1 FROM owner WHERE id = $1 FOR UPDATE", &[&witness.owner.uuid()])
        .map_err(fail)?;
    let found = tx
        .query_opt(
            "SELECT txn = $3 FROM change WHERE owner = $1 AND seq = $2 AND n = 0",
            &[&witness.owner.uuid(), &witness.seq, &witness.txn],
        )
        .map_err(fail)?;
    Ok(found.is_some_and(|row| row.get(0)))
}
