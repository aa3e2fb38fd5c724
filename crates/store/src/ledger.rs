//! The ledger: tokens, money and wake-ups per run, duty, owner and month.

use base::{DutyId, MicroUsd, OwnerId, RunId, Timestamp};
use uuid::Uuid;

use crate::error::Result;
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{Row, params, record, words};

words! {
    /// What was spent.
    pub enum LedgerKind {
        /// A run began.
        Wakeup = "wakeup",
        /// A model answered.
        Model = "model",
        /// The small model said which matter an event concerns.
        Attribution = "attribution",
        /// The reviewer looked at an action.
        Review = "review",
    }
}

record! {
    /// One entry. Its id is a step's or run's, so that it cannot be written twice.
    pub struct LedgerEntry in "ledger" {
        /// Made outside the transaction.
        pub id: Uuid,
        /// Whose.
        pub owner: OwnerId,
        /// The person's calendar month, as `2027-03`.
        pub month: String,
        /// By which run; none for an attribution.
        pub run: Option<RunId>,
        /// For which duty.
        pub duty: Option<DutyId>,
        /// What was spent.
        pub kind: LedgerKind,
        /// The model.
        pub model: String,
        /// Tokens sent.
        pub input_tokens: u64,
        /// Of these, from cache.
        pub cached_tokens: u64,
        /// Tokens written.
        pub output_tokens: u64,
        /// Cost.
        pub micro_usd: MicroUsd,
        /// When.
        pub at: Timestamp,
    }
}

/// Sums of the ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Totals {
    /// Runs that began.
    pub wakeups: u64,
    /// Answers of models.
    pub model_calls: u64,
    /// Tokens sent.
    pub input_tokens: u64,
    /// Of these, from cache.
    pub cached_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Cost.
    pub micro_usd: MicroUsd,
}

statements! { "ledger":
    INSERT = hot insert LedgerEntry, "";
    MONTH = hot "SELECT CAST(COALESCE(SUM(CASE WHEN kind = 'wakeup' THEN 1 ELSE 0 END), 0) AS BIGINT),
          CAST(COALESCE(SUM(CASE WHEN kind <> 'wakeup' THEN 1 ELSE 0 END), 0) AS BIGINT),
          CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT), CAST(COALESCE(SUM(cached_tokens), 0) AS BIGINT),
          CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT), CAST(COALESCE(SUM(micro_usd), 0) AS BIGINT)
        FROM ledger WHERE owner = $1 AND month = $2";
    OWNER = "SELECT CAST(COALESCE(SUM(CASE WHEN kind = 'wakeup' THEN 1 ELSE 0 END), 0) AS BIGINT),
          CAST(COALESCE(SUM(CASE WHEN kind <> 'wakeup' THEN 1 ELSE 0 END), 0) AS BIGINT),
          CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT), CAST(COALESCE(SUM(cached_tokens), 0) AS BIGINT),
          CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT), CAST(COALESCE(SUM(micro_usd), 0) AS BIGINT)
        FROM ledger WHERE owner = $1";
    DUTY = hot "SELECT CAST(COALESCE(SUM(micro_usd), 0) AS BIGINT) FROM ledger WHERE duty = $1";
}

/// Writes an entry.
pub fn add(tx: &mut OwnerTx<'_, '_>, entry: &LedgerEntry) -> Result<()> {
    tx.insert(&INSERT, entry).map(|_| ())
}

fn totals(row: &Row) -> Result<Totals> {
    Ok(Totals {
        wakeups: row.get(0)?,
        model_calls: row.get(1)?,
        input_tokens: row.get(2)?,
        cached_tokens: row.get(3)?,
        output_tokens: row.get(4)?,
        micro_usd: row.get(5)?,
    })
}

/// What an owner spent in a month.
pub fn month(tx: &mut Tx<'_>, owner: OwnerId, month: &str) -> Result<Totals> {
    tx.row(&MONTH, params![owner, month])?.as_ref().map_or(Ok(Totals::default()), totals)
}

/// What an owner spent in all.
pub fn all(tx: &mut Tx<'_>, owner: OwnerId) -> Result<Totals> {
    tx.row(&OWNER, params![owner])?.as_ref().map_or(Ok(Totals::default()), totals)
}

/// What a duty cost so far.
pub fn duty(tx: &mut Tx<'_>, duty: DutyId) -> Result<MicroUsd> {
    tx.row(&DUTY, params![duty])?.map_or(Ok(MicroUsd(0)), |row| row.get(0))
}
