//! Sessions: conversation lanes, claimed by lease and fencing token (QUE-01, DUR-01, DUR-02).

use base::{BodyId, Digest, Incarnation, OwnerId, SessionId, Timestamp};

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record, words};

words! {
    /// What a session is for.
    pub enum SessionKind {
        /// The owner's own conversation.
        Main = "main",
        /// A duty's wake-ups.
        Duty = "duty",
    }
}

record! {
    /// A conversation lane and the unit of scheduling.
    pub struct Session in "session" {
        /// Its id.
        pub id: SessionId,
        /// Whose.
        pub owner: OwnerId,
        /// Which agent.
        pub agent: String,
        /// What for.
        pub kind: SessionKind,
        /// The fencing token: grows with every claim.
        pub fence: i64,
        /// Which process holds the lease.
        pub holder: Option<Incarnation>,
        /// Until when.
        pub lease_until: Option<Timestamp>,
        /// Not claimed before this: back-off.
        pub not_before: Timestamp,
        /// Model calls that failed in a row.
        pub model_failures: u32,
        /// Runs so far; the next run's number.
        pub runs: i64,
        /// The first run that the history window holds.
        pub window_start: i64,
        /// The stored prefix.
        pub prefix: Option<BodyId>,
        /// Its digest.
        pub prefix_digest: Option<Digest>,
        /// Since when.
        pub created_at: Timestamp,
    }
}

statements! { "session":
    INSERT = insert Session, "";
    BY_ID = hot select Session, "WHERE id = $1";
    // A session can be claimed when someone waits in it or its last run has not ended, and no live
    // lease holds it. People's sessions come first.
    CLAIMABLE = hot "SELECT w.owner, w.session, MIN(CASE w.class WHEN 'user' THEN 0 ELSE 1 END) AS rank,
          MIN(w.created_at) AS since
        FROM work_item w JOIN session s ON s.id = w.session
        WHERE w.state = 'pending' AND s.not_before <= $1
          AND (s.lease_until IS NULL OR s.lease_until <= $2)
          -- What came from outside waits for its companions of the same moment (QUE-07).
          AND (w.class <> 'external' OR w.created_at <= $4)
          -- Under a stop only a person who speaks is answered; the rest is kept.
          AND (w.class = 'user' OR NOT ((SELECT i.system_stop FROM installation i WHERE i.id = 1)
            OR EXISTS (SELECT 1 FROM pause p WHERE p.owner = w.owner AND p.state = 'active'
              AND (p.duty IS NULL
                OR p.duty = (SELECT d.id FROM duty d WHERE d.session = w.session)))))
        GROUP BY w.owner, w.session ORDER BY rank, since, w.session LIMIT $3";
    // A run that has taken in a person's message goes on also under a stop, and first.
    ABANDONED = hot "SELECT r.owner, r.session, CASE WHEN EXISTS (SELECT 1 FROM work_item w
            WHERE w.run = r.id AND w.state = 'claimed' AND w.class = 'user')
          THEN 0 ELSE 1 END AS rank
        FROM run r JOIN session s ON s.id = r.session
        WHERE r.state IN ('running', 'lost', 'sleeping') AND s.not_before <= $1
          AND (s.lease_until IS NULL OR s.lease_until <= $2)
          AND (EXISTS (SELECT 1 FROM work_item w
              WHERE w.run = r.id AND w.state = 'claimed' AND w.class = 'user')
            OR NOT ((SELECT i.system_stop FROM installation i WHERE i.id = 1)
              OR EXISTS (SELECT 1 FROM pause p WHERE p.owner = r.owner AND p.state = 'active'
                AND (p.duty IS NULL OR p.duty = r.duty))))
        ORDER BY rank, r.started_at LIMIT $3";
    EXPIRED = hot "SELECT owner, id FROM session WHERE lease_until IS NOT NULL AND lease_until <= $1
        ORDER BY lease_until LIMIT $2";
    TAKE = hot "UPDATE session SET fence = fence + 1, holder = $2, lease_until = $3
        WHERE id = $1 AND (lease_until IS NULL OR lease_until <= $4) AND not_before <= $5
        RETURNING fence";
    HOLD = hot "UPDATE session SET lease_until = $4 WHERE id = $1 AND fence = $2 AND holder = $3";
    RELEASE = hot "UPDATE session SET holder = NULL, lease_until = NULL, not_before = $3,
          model_failures = $4
        WHERE id = $1 AND fence = $2";
    VOID = hot "UPDATE session SET holder = NULL, lease_until = NULL
        WHERE id = $1 AND lease_until <= $2";
    WAKE = hot "UPDATE session SET not_before = $2 WHERE id = $1 AND not_before > $2";
    WAKE_ALL = "UPDATE session SET not_before = $2 WHERE owner = $1 AND not_before > $2";
    PUT_OFF = "UPDATE session SET not_before = $2 WHERE id = $1";
    DROP_HISTORY = "UPDATE session SET window_start = $2 WHERE id = $1";
    NEXT_RUN = hot "UPDATE session SET runs = runs + 1 WHERE id = $1 RETURNING runs - 1";
    PREFIX = "UPDATE session SET prefix = $2, prefix_digest = $3, window_start = $4 WHERE id = $1";
    PREFIX_CHANGE = "INSERT INTO prefix_change (owner, session, run_n, digest, window_start, sections,
          cause, at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    PREFIX_CHANGES = "SELECT run_n, digest, window_start, sections, cause, at FROM prefix_change
        WHERE session = $1 ORDER BY run_n";
    LAST_PREFIX = hot "SELECT run_n, digest, window_start, sections, cause, at FROM prefix_change
        WHERE session = $1 ORDER BY run_n DESC LIMIT 1";
    NEXT_BACKOFF = "SELECT MIN(s.not_before) FROM session s WHERE s.not_before > $1
          AND (EXISTS (SELECT 1 FROM work_item w WHERE w.session = s.id AND w.state = 'pending')
            OR EXISTS (SELECT 1 FROM run r WHERE r.session = s.id
              AND r.state IN ('running', 'lost', 'sleeping')))";
}

/// Adds a session.
pub fn insert(tx: &mut Tx<'_>, session: &Session) -> Result<()> {
    tx.insert(&INSERT, session).map(|_| ())
}

/// One session.
pub fn get(tx: &mut Tx<'_>, id: SessionId) -> Result<Session> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("session"))
}

/// A session that a worker may try to claim, and whether a person waits in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimable {
    /// Whose.
    pub owner: OwnerId,
    /// Which.
    pub session: SessionId,
    /// Whether a person's message waits in it, or is in a run that was broken off.
    pub person: bool,
}

/// Sessions with work and no live lease: people first, then the longest waiting. What came from outside
/// after `merged` does not wake anybody yet. What a pause or the operator's stop covers is left out, unless
/// a person speaks there.
pub fn claimable(
    tx: &mut Tx<'_>,
    now: Timestamp,
    lease_now: Timestamp,
    merged: Timestamp,
    limit: i64,
) -> Result<Vec<Claimable>> {
    let mut found: Vec<Claimable> = Vec::new();
    for row in tx.rows(&CLAIMABLE, params![now, lease_now, limit, merged])? {
        let rank: i64 = row.get(2)?;
        found.push(Claimable { owner: row.get(0)?, session: row.get(1)?, person: rank == 0 });
    }
    for row in tx.rows(&ABANDONED, params![now, lease_now, limit])? {
        let session = row.get(1)?;
        if !found.iter().any(|known| known.session == session) {
            let rank: i64 = row.get(2)?;
            found.push(Claimable { owner: row.get(0)?, session, person: rank == 0 });
        }
    }
    Ok(found)
}

/// Sessions whose lease ran out without a release.
pub fn expired(
    tx: &mut Tx<'_>,
    lease_now: Timestamp,
    limit: i64,
) -> Result<Vec<(OwnerId, SessionId)>> {
    let rows = tx.rows(&EXPIRED, params![lease_now, limit])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

/// Takes the lease and gives the new fencing token; `None` if another worker has it.
pub fn take(
    tx: &mut OwnerTx<'_, '_>,
    id: SessionId,
    holder: Incarnation,
    lease_ms: u64,
) -> Result<Option<i64>> {
    let (now, lease_now) = (tx.now(), tx.lease_now());
    let until = lease_now.plus_ms(lease_ms);
    let row = tx.row(&TAKE, params![id, holder, until, lease_now, now])?;
    // A claim that came too late wrote nothing, and takes no number.
    let Some(row) = row else { return Ok(None) };
    tx.mark_written();
    row.get(0).map(Some)
}

/// A worker's claim: what its every commit must name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Whose session.
    pub owner: OwnerId,
    /// Which session.
    pub session: SessionId,
    /// The fencing token.
    pub fence: i64,
    /// The process.
    pub holder: Incarnation,
}

/// Renews the lease, or fails with `Fenced` when a newer worker took the session over. Every commit of
/// a worker begins with it (P2).
pub fn hold(tx: &mut OwnerTx<'_, '_>, lease: Lease, lease_ms: u64) -> Result<()> {
    let until = tx.lease_now().plus_ms(lease_ms);
    match tx.run(&HOLD, params![lease.session, lease.fence, lease.holder, until])? {
        1 => Ok(()),
        _ => Err(StoreError::Fenced),
    }
}

/// Gives the session back.
pub fn release(
    tx: &mut OwnerTx<'_, '_>,
    lease: Lease,
    not_before: Timestamp,
    model_failures: u32,
) -> Result<()> {
    match tx.run(&RELEASE, params![lease.session, lease.fence, not_before, model_failures])? {
        1 => Ok(()),
        _ => Err(StoreError::Fenced),
    }
}

/// Ends a lease that has run out.
pub fn void(tx: &mut OwnerTx<'_, '_>, id: SessionId) -> Result<bool> {
    let lease_now = tx.lease_now();
    Ok(tx.run(&VOID, params![id, lease_now])? == 1)
}

/// SQLite: this process holds the data folder alone, so every lease belongs to a dead one.
pub(crate) fn void_all_leases(connection: &rusqlite::Connection) -> Result<()> {
    connection
        .execute_batch(
            "UPDATE session SET holder = NULL, lease_until = NULL WHERE holder IS NOT NULL",
        )
        .map_err(|e| StoreError::sqlite("void leases", &e))
}

/// Ends a back-off: a person has spoken.
pub fn wake(tx: &mut OwnerTx<'_, '_>, id: SessionId) -> Result<()> {
    let now = tx.now();
    tx.run(&WAKE, params![id, now]).map(|_| ())
}

/// Ends every back-off of the owner: what held all of them back is over.
pub fn wake_all(tx: &mut OwnerTx<'_, '_>) -> Result<()> {
    let (owner, now) = (tx.owner(), tx.now());
    tx.run(&WAKE_ALL, params![owner, now]).map(|_| ())
}

/// Not to be claimed before a time.
pub fn put_off(tx: &mut OwnerTx<'_, '_>, id: SessionId, until: Timestamp) -> Result<()> {
    tx.run(&PUT_OFF, params![id, until]).map(|_| ())
}

/// Starts the history window at a run's number: the model could not read what stands before.
pub fn drop_history(tx: &mut OwnerTx<'_, '_>, id: SessionId, from_run: i64) -> Result<()> {
    tx.run(&DROP_HISTORY, params![id, from_run]).map(|_| ())
}

/// Counts a new run and gives its number.
pub fn next_run(tx: &mut OwnerTx<'_, '_>, id: SessionId) -> Result<i64> {
    let row = tx.row(&NEXT_RUN, params![id])?.ok_or(StoreError::Missing("session"))?;
    tx.mark_written();
    row.get(0)
}

/// One recorded change of a session's prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixChange {
    /// The first run with it.
    pub run_n: i64,
    /// Its digest.
    pub digest: Digest,
    /// The first run of the history window.
    pub window_start: i64,
    /// The digest of each section, as text.
    pub sections: String,
    /// Why it changed.
    pub cause: String,
    /// When.
    pub at: Timestamp,
}

/// Stores a new prefix and the cause of the change.
pub fn change_prefix(
    tx: &mut OwnerTx<'_, '_>,
    id: SessionId,
    body: BodyId,
    change: &PrefixChange,
) -> Result<()> {
    let owner = tx.owner();
    let PrefixChange { run_n, digest, window_start, sections, cause, at } = change;
    tx.run(&PREFIX, params![id, body, *digest, *window_start])?;
    tx.run(
        &PREFIX_CHANGE,
        params![owner, id, *run_n, *digest, *window_start, *sections, *cause, *at],
    )?;
    tx.changed(id);
    Ok(())
}

/// All recorded changes of a session's prefix.
pub fn prefix_changes(tx: &mut Tx<'_>, id: SessionId) -> Result<Vec<PrefixChange>> {
    tx.rows(&PREFIX_CHANGES, params![id])?.iter().map(prefix_change).collect()
}

/// The newest of them.
pub fn last_prefix(tx: &mut Tx<'_>, id: SessionId) -> Result<Option<PrefixChange>> {
    tx.row(&LAST_PREFIX, params![id])?.as_ref().map(prefix_change).transpose()
}

fn prefix_change(row: &crate::value::Row) -> Result<PrefixChange> {
    Ok(PrefixChange {
        run_n: row.get(0)?,
        digest: row.get(1)?,
        window_start: row.get(2)?,
        sections: row.get(3)?,
        cause: row.get(4)?,
        at: row.get(5)?,
    })
}

/// The first end of a back-off with work behind it, for a clock that jumps.
pub fn next_backoff(tx: &mut Tx<'_>, now: Timestamp) -> Result<Option<Timestamp>> {
    tx.row(&NEXT_BACKOFF, params![now])?.map_or(Ok(None), |row| row.get(0))
}
