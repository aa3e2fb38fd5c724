//! A transaction on either engine, and the one under an owner's lock.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use base::{Clock, Digest, OwnerId, PrincipalId, Timestamp};
use postgres::types::{IsNull, ToSql, Type};
use uuid::Uuid;

use crate::Order;
use crate::change::{self, Entry};
use crate::error::{Result, StoreError};
use crate::owner;
use crate::sql::Sql;
use crate::value::{Record, Row, Value};

/// Prepared statements of one PostgreSQL connection, by the address of their `Sql`.
pub(crate) type Prepared = HashMap<usize, postgres::Statement>;

pub(crate) enum Engine<'c> {
    Sqlite(&'c rusqlite::Connection),
    Postgres { tx: postgres::Transaction<'c>, prepared: &'c mut Prepared },
}

/// How long a read may take, on either engine.
const READ_LIMIT: std::time::Duration = std::time::Duration::from_secs(1);

/// The instant by which a read must have ended.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(std::time::Instant);

#[expect(clippy::disallowed_methods, reason = "bounds how long a read may take, decides nothing")]
impl Deadline {
    /// For a read that begins now.
    pub(crate) fn of_read() -> Self {
        Deadline(std::time::Instant::now() + READ_LIMIT)
    }

    pub(crate) fn passed(self) -> bool {
        std::time::Instant::now() > self.0
    }
}

/// One transaction. Reads may be shown, never decided on, unless it is an [`OwnerTx`].
pub struct Tx<'c> {
    engine: Engine<'c>,
    failed: Option<StoreError>,
    wrote: bool,
    until: Option<Deadline>,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(engine: Engine<'c>) -> Self {
        Tx { engine, failed: None, wrote: false, until: None }
    }

    /// Bounds the time of all its statements together.
    pub(crate) fn until(mut self, until: Option<Deadline>) -> Self {
        self.until = until;
        self
    }

    pub(crate) fn into_engine(self) -> Engine<'c> {
        self.engine
    }

    /// The first error of a statement, which ended this transaction.
    pub(crate) fn failed(&self) -> Option<StoreError> {
        self.failed.clone()
    }

    /// Runs a statement and gives the number of rows it changed.
    pub(crate) fn run(&mut self, sql: &'static Sql, params: &[Value]) -> Result<u64> {
        let changed = self.guarded(params, |engine| match engine {
            Engine::Sqlite(connection) => sqlite_run(connection, sql, params),
            Engine::Postgres { tx, prepared } => {
                let statement = postgres_statement(tx, prepared, sql)?;
                tx.execute(&statement, &as_sql(params))
                    .map_err(|e| StoreError::postgres(sql.name, &e))
            }
        })?;
        self.wrote |= changed > 0;
        Ok(changed)
    }

    /// Runs a statement and gives all rows.
    pub(crate) fn rows(&mut self, sql: &'static Sql, params: &[Value]) -> Result<Vec<Row>> {
        self.guarded(params, |engine| match engine {
            Engine::Sqlite(connection) => sqlite_rows(connection, sql, params),
            Engine::Postgres { tx, prepared } => {
                let statement = postgres_statement(tx, prepared, sql)?;
                let rows = tx
                    .query(&statement, &as_sql(params))
                    .map_err(|e| StoreError::postgres(sql.name, &e))?;
                rows.iter().map(postgres_row).collect()
            }
        })
    }

    /// The only row, if there is one.
    pub(crate) fn row(&mut self, sql: &'static Sql, params: &[Value]) -> Result<Option<Row>> {
        Ok(self.rows(sql, params)?.into_iter().next())
    }

    /// All records of a select.
    pub(crate) fn all<T: Record>(&mut self, sql: &'static Sql, params: &[Value]) -> Result<Vec<T>> {
        self.rows(sql, params)?.iter().map(T::from_row).collect()
    }

    /// The only record of a select, if there is one.
    pub(crate) fn one<T: Record>(
        &mut self,
        sql: &'static Sql,
        params: &[Value],
    ) -> Result<Option<T>> {
        self.row(sql, params)?.as_ref().map(T::from_row).transpose()
    }

    /// Writes one record.
    pub(crate) fn insert<T: Record>(&mut self, sql: &'static Sql, record: &T) -> Result<bool> {
        Ok(self.run(sql, &record.values())? > 0)
    }

    /// Lease time as all nodes of a PostgreSQL database see it.
    pub(crate) fn database_now(&mut self) -> Result<Timestamp> {
        const NOW: &str = "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT";
        self.guarded(&[], |engine| match engine {
            Engine::Sqlite(_) => Err(StoreError::Open("SQLite has no database time".into())),
            Engine::Postgres { tx, .. } => {
                let row = tx.query_one(NOW, &[]).map_err(|e| StoreError::postgres("now", &e))?;
                Ok(Timestamp::from_micros(row.get(0)))
            }
        })
    }

    /// Marks that a statement with RETURNING wrote something.
    pub(crate) fn mark_written(&mut self) {
        self.wrote = true;
    }

    /// The first error ends a transaction on both engines: PostgreSQL aborts by itself, and what the
    /// simulator proves on SQLite must hold there.
    fn guarded<T>(
        &mut self,
        params: &[Value],
        work: impl FnOnce(&mut Engine<'c>) -> Result<T>,
    ) -> Result<T> {
        if self.failed.is_some() {
            return Err(StoreError::Ended);
        }
        // PostgreSQL's texts hold no NUL; what one engine refuses, both do.
        let has_nul = |value: &Value| matches!(value, Value::Text(text) if text.contains('\0'));
        let done = if self.until.is_some_and(Deadline::passed) {
            Err(StoreError::Busy)
        } else if params.iter().any(has_nul) {
            Err(StoreError::Refused("a text with a NUL; keep it as bytes".into()))
        } else {
            work(&mut self.engine)
        };
        done.inspect_err(|error| self.failed = Some(error.clone()))
    }
}

/// A transaction that holds an owner's lock: everything it reads is the newest, and everything it
/// decides stands in one order with every other decision about that owner.
pub struct OwnerTx<'t, 'c> {
    tx: &'t mut Tx<'c>,
    owner: OwnerId,
    now: Timestamp,
    lease_now: Timestamp,
    head: owner::Head,
    order: Order,
    system_stop: Option<bool>,
    changes: Vec<(&'static str, Uuid)>,
    audits: Vec<Entry>,
}

impl<'c> Deref for OwnerTx<'_, 'c> {
    type Target = Tx<'c>;
    fn deref(&self) -> &Tx<'c> {
        self.tx
    }
}
impl<'c> DerefMut for OwnerTx<'_, 'c> {
    fn deref_mut(&mut self) -> &mut Tx<'c> {
        self.tx
    }
}

/// By which a commit whose answer was lost is found again: the owner's sequence has no gaps, so the
/// entry at this number is this transaction's or another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Witness {
    pub owner: OwnerId,
    pub seq: i64,
    pub txn: Uuid,
}

impl<'t, 'c> OwnerTx<'t, 'c> {
    pub(crate) fn lock(
        tx: &'t mut Tx<'c>,
        owner: OwnerId,
        clock: &dyn Clock,
        database_time: bool,
    ) -> Result<Self> {
        let head = owner::lock(tx, owner)?;
        // The clock is read once, after the lock: time and order agree.
        let now = clock.now();
        let lease_now = if database_time { owner::database_now(tx)? } else { now };
        tx.wrote = false;
        let (changes, audits) = (Vec::new(), Vec::new());
        let order = Order::Usual;
        let system_stop = None;
        Ok(OwnerTx { tx, owner, now, lease_now, head, order, system_stop, changes, audits })
    }

    /// With the operator's stop as it was read under its lock.
    pub(crate) fn under(mut self, order: Order, system_stop: Option<bool>) -> Self {
        self.order = order;
        self.system_stop = system_stop;
        self
    }

    /// Whether this is a write of that kind.
    ///
    /// # Errors
    /// In any other: what is done there would not be in one order with what it must be.
    pub(crate) fn is_in(&self, order: Order) -> Result<()> {
        match self.order == order {
            true => Ok(()),
            false => Err(StoreError::Refused(format!("this belongs in a write of kind {order:?}"))),
        }
    }

    /// Whether the operator has stopped everything. Only where its row is locked too: in
    /// [`Store::admit`](crate::Store::admit) and its like.
    ///
    /// # Errors
    /// In any other write, where the answer could be old before the commit.
    pub fn system_stop(&self) -> Result<bool> {
        self.system_stop.ok_or_else(|| {
            StoreError::Refused("the operator's stop is not locked; use Store::admit".into())
        })
    }

    /// The owner whose lock is held.
    pub fn owner(&self) -> OwnerId {
        self.owner
    }

    /// The time at which this transaction decides.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The clock that leases are measured by; all nodes of one database share it.
    pub fn lease_now(&self) -> Timestamp {
        self.lease_now
    }

    /// The number that this transaction's changes will have.
    pub fn seq(&self) -> i64 {
        self.head.change_seq + 1
    }

    /// Notes that a record changed, for the clients' sequence.
    pub fn changed<T: base::Id>(&mut self, id: T) {
        let change = (T::NOUN, id.uuid());
        if !self.changes.contains(&change) {
            self.changes.push(change);
        }
    }

    /// Adds an entry to the owner's audit chain: ids and digests only.
    pub fn audit<T: base::Id>(
        &mut self,
        by: Option<PrincipalId>,
        verb: &'static str,
        id: T,
        digest: Option<Digest>,
    ) {
        self.audits.push(Entry { by, verb, noun: T::NOUN, record: id.uuid(), digest });
    }

    /// Advances the change sequence and the audit chain, once, as the last statements.
    pub(crate) fn finish(mut self, txn: Uuid) -> Result<Option<Witness>> {
        if let Some(error) = self.tx.failed() {
            return Err(error);
        }
        if !self.tx.wrote && self.changes.is_empty() && self.audits.is_empty() {
            return Ok(None);
        }
        if self.changes.is_empty() {
            self.changed(self.owner);
        }
        let seq = self.seq();
        change::append(self.tx, self.owner, seq, txn, &self.changes)?;
        let (audit_seq, audit_head) =
            change::chain(self.tx, self.owner, self.now, &self.head, &self.audits)?;
        owner::advance(
            self.tx,
            self.owner,
            owner::Head { change_seq: seq, audit_seq, audit_head },
        )?;
        Ok(Some(Witness { owner: self.owner, seq, txn }))
    }
}

const NAMES: [&str; 32] = [
    "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13", "$14", "$15",
    "$16", "$17", "$18", "$19", "$20", "$21", "$22", "$23", "$24", "$25", "$26", "$27", "$28",
    "$29", "$30", "$31", "$32",
];

fn sqlite_bound<'s>(
    connection: &'s rusqlite::Connection,
    sql: &'static Sql,
    params: &[Value],
) -> Result<rusqlite::CachedStatement<'s>> {
    let fail = |e: rusqlite::Error| StoreError::sqlite(sql.name, &e);
    let mut statement = connection.prepare_cached(sql.sqlite()).map_err(fail)?;
    for (name, value) in NAMES.iter().zip(params) {
        let Some(at) = statement.parameter_index(name).map_err(fail)? else {
            return Err(StoreError::Sql {
                statement: sql.name,
                message: format!("parameter {name} is not used"),
            });
        };
        match value {
            Value::Null => statement.raw_bind_parameter(at, rusqlite::types::Null),
            Value::Int(n) => statement.raw_bind_parameter(at, n),
            Value::Bool(b) => statement.raw_bind_parameter(at, i64::from(*b)),
            Value::Text(text) => statement.raw_bind_parameter(at, text),
            Value::Bytes(bytes) => statement.raw_bind_parameter(at, bytes),
            Value::Id(id) => statement.raw_bind_parameter(at, id.as_bytes().as_slice()),
        }
        .map_err(fail)?;
    }
    Ok(statement)
}

fn sqlite_run(c: &rusqlite::Connection, sql: &'static Sql, params: &[Value]) -> Result<u64> {
    let changed = sqlite_bound(c, sql, params)?
        .raw_execute()
        .map_err(|e| StoreError::sqlite(sql.name, &e))?;
    Ok(changed as u64)
}

fn sqlite_rows(c: &rusqlite::Connection, sql: &'static Sql, params: &[Value]) -> Result<Vec<Row>> {
    use rusqlite::types::ValueRef;
    let fail = |e: rusqlite::Error| StoreError::sqlite(sql.name, &e);
    let mut statement = sqlite_bound(c, sql, params)?;
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    let mut out = Vec::new();
    while let Some(row) = rows.next().map_err(fail)? {
        let mut values = Vec::with_capacity(columns);
        for at in 0..columns {
            values.push(match row.get_ref(at).map_err(fail)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(n) => Value::Int(n),
                ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
                ValueRef::Real(n) => return Err(StoreError::Corrupt(format!("a real number {n}"))),
            });
        }
        out.push(Row(values));
    }
    Ok(out)
}

fn postgres_statement(
    tx: &mut postgres::Transaction<'_>,
    prepared: &mut Prepared,
    sql: &'static Sql,
) -> Result<postgres::Statement> {
    let key = std::ptr::from_ref(sql).addr();
    if let Some(found) = prepared.get(&key) {
        return Ok(found.clone());
    }
    let made = tx.prepare(sql.postgres()).map_err(|e| StoreError::postgres(sql.name, &e))?;
    prepared.insert(key, made.clone());
    Ok(made)
}

fn as_sql(params: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

pub(crate) fn postgres_row(row: &postgres::Row) -> Result<Row> {
    let fail = |e: postgres::Error| StoreError::Corrupt(e.to_string());
    let value = |(at, column): (usize, &postgres::Column)| -> Result<Value> {
        let found = match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(at).map_err(fail)?.map(Value::Int),
            Type::INT4 => {
                row.try_get::<_, Option<i32>>(at).map_err(fail)?.map(|n| Value::Int(n.into()))
            }
            Type::BOOL => row.try_get::<_, Option<bool>>(at).map_err(fail)?.map(Value::Bool),
            Type::TEXT | Type::VARCHAR => {
                row.try_get::<_, Option<String>>(at).map_err(fail)?.map(Value::Text)
            }
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at).map_err(fail)?.map(Value::Bytes),
            Type::UUID => row.try_get::<_, Option<Uuid>>(at).map_err(fail)?.map(Value::Id),
            ref other => return Err(StoreError::Corrupt(format!("a column of type {other}"))),
        };
        Ok(found.unwrap_or(Value::Null))
    };
    row.columns().iter().enumerate().map(value).collect::<Result<_>>().map(Row)
}

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut postgres::types::private::BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(n) if *ty == Type::INT4 => i32::try_from(*n)?.to_sql(ty, out),
            Value::Int(n) => n.to_sql(ty, out),
            Value::Bool(b) => b.to_sql(ty, out),
            Value::Text(text) => text.to_sql(ty, out),
            Value::Bytes(bytes) => bytes.to_sql(ty, out),
            Value::Id(id) => id.to_sql(ty, out),
        }
    }
    fn accepts(_: &Type) -> bool {
        true
    }
    postgres::types::to_sql_checked!();
}
