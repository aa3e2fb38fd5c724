//! Values as both engines hold them, and the records made of them.

use base::{Digest, Id, MicroUsd, Timestamp};
use uuid::Uuid;

use crate::error::{Result, StoreError};

/// One column's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// BIGINT; on SQLite also a BOOLEAN.
    Int(i64),
    /// BOOLEAN.
    Bool(bool),
    /// TEXT.
    Text(String),
    /// BYTEA; on SQLite also a UUID.
    Bytes(Vec<u8>),
    /// UUID.
    Id(Uuid),
}

/// A row of a result, read by position.
#[derive(Debug, Clone, PartialEq)]
pub struct Row(pub(crate) Vec<Value>);

impl Row {
    /// The column at `at`.
    pub fn get<T: Column>(&self, at: usize) -> Result<T> {
        let value = self.0.get(at).ok_or_else(|| StoreError::Corrupt(format!("no column {at}")))?;
        T::read(value)
    }
}

/// A Rust type that a column can hold.
pub trait Column: Sized {
    /// For a parameter.
    fn value(&self) -> Value;
    /// From a result.
    fn read(value: &Value) -> Result<Self>;
}

fn unreadable<T>(value: &Value) -> StoreError {
    StoreError::Corrupt(format!("{value:?} is no {}", std::any::type_name::<T>()))
}

/// A record whose fields are the columns of one table, in order.
pub trait Record: Sized {
    /// The table.
    const TABLE: &'static str;
    /// Its columns.
    const COLUMNS: &'static [&'static str];
    /// Reads a row of exactly these columns.
    fn from_row(row: &Row) -> Result<Self>;
    /// The values of all columns.
    fn values(&self) -> Vec<Value>;
}

/// Defines a record: a struct whose fields are columns of the same names.
macro_rules! record {
    ($(#[$doc:meta])* pub struct $name:ident in $table:literal {
        $($(#[$field_doc:meta])* pub $field:ident: $type:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl $crate::value::Record for $name {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [&'static str] = &[$(stringify!($field)),*];
            fn from_row(row: &$crate::value::Row) -> $crate::error::Result<Self> {
                let mut at = 0..;
                Ok($name { $($field: row.get(at.next().unwrap_or(usize::MAX))?,)* })
            }
            fn values(&self) -> Vec<$crate::value::Value> {
                vec![$($crate::value::Column::value(&self.$field)),*]
            }
        }
    };
}
pub(crate) use record;

/// Parameters of a statement, each turned into a [`Value`].
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::value::Column::value(&$value)),*] };
}
pub(crate) use params;

macro_rules! columns {
    ($($type:ty: |$this:ident| $write:expr, $($pattern:pat => $read:expr),+;)*) => {$(
        impl Column for $type {
            fn value(&self) -> Value { let $this = self; $write }
            fn read(value: &Value) -> Result<Self> {
                let found: Option<Self> = match value { $($pattern => $read,)+ _ => None };
                found.ok_or_else(|| unreadable::<Self>(value))
            }
        }
    )*};
}

columns! {
    i64: |v| Value::Int(*v), Value::Int(n) => Some(*n);
    u64: |v| Value::Int(i64::try_from(*v).unwrap_or(i64::MAX)), Value::Int(n) => u64::try_from(*n).ok();
    u32: |v| Value::Int(i64::from(*v)), Value::Int(n) => u32::try_from(*n).ok();
    bool: |v| Value::Bool(*v), Value::Bool(b) => Some(*b), Value::Int(n) => Some(*n != 0);
    String: |v| Value::Text(v.clone()), Value::Text(t) => Some(t.clone());
    Vec<u8>: |v| Value::Bytes(v.clone()), Value::Bytes(b) => Some(b.clone());
    Timestamp: |v| Value::Int(v.micros()), Value::Int(n) => Some(Timestamp::from_micros(*n));
    MicroUsd: |v| Value::Int(v.0), Value::Int(n) => Some(MicroUsd(*n));
    Digest: |v| Value::Bytes(v.as_bytes().to_vec()), Value::Bytes(b) => Digest::from_slice(b);
    Uuid: |v| Value::Id(*v), Value::Id(id) => Some(*id), Value::Bytes(b) => Uuid::from_slice(b).ok();
}

impl Column for base::Currency {
    fn value(&self) -> Value {
        Value::Text(self.code().to_owned())
    }
    fn read(value: &Value) -> Result<Self> {
        let code = String::read(value)?;
        base::Currency::parse(&code).map_err(|e| StoreError::Corrupt(e.to_string()))
    }
}

impl Column for &str {
    fn value(&self) -> Value {
        Value::Text((*self).to_owned())
    }
    fn read(value: &Value) -> Result<Self> {
        Err(unreadable::<Self>(value))
    }
}

impl<T: Column> Column for Option<T> {
    fn value(&self) -> Value {
        self.as_ref().map_or(Value::Null, Column::value)
    }
    fn read(value: &Value) -> Result<Self> {
        if *value == Value::Null {
            return Ok(None);
        }
        T::read(value).map(Some)
    }
}

macro_rules! id_columns {
    ($($type:ident),*) => {$(
        impl Column for base::$type {
            fn value(&self) -> Value { Value::Id(self.uuid()) }
            fn read(value: &Value) -> Result<Self> { Uuid::read(value).map(Self::from_uuid) }
        }
    )*};
}
id_columns!(
    OwnerId,
    PrincipalId,
    DeviceId,
    SourceId,
    EventId,
    BodyId,
    SessionId,
    WorkItemId,
    RunId,
    DutyId,
    TaskVersionId,
    WaitId,
    ScheduleId,
    MessageId,
    ProposalId,
    SubscriptionId,
    CheckId,
    ObjectId,
    HoldId,
    PauseId,
    SituationId,
    ProactiveId,
    GrantId,
    RuleId,
    ActionId,
    ApprovalId,
    AttemptId,
    Incarnation
);

macro_rules! word_columns {
    ($($type:ty: $parse:expr;)*) => {$(
        impl Column for $type {
            fn value(&self) -> Value { Value::Text(self.word().to_owned()) }
            fn read(value: &Value) -> Result<Self> {
                match value {
                    Value::Text(word) => $parse(word),
                    Value::Null | Value::Int(_) | Value::Bool(_) | Value::Bytes(_) | Value::Id(_) => {
                        Err(unreadable::<Self>(value))
                    }
                }
            }
        }
    )*};
}
macro_rules! states {
    ($($type:ident),*) => { word_columns! { $(
        domain::state::$type: |w: &str| domain::state::$type::parse(w)
            .map_err(|e| StoreError::Corrupt(e.to_string()));
    )* } };
}
states!(
    WorkItemState,
    RunState,
    DutyState,
    TaskVersionState,
    WaitState,
    ScheduleState,
    SourceState,
    SubscriptionState,
    CheckState,
    HoldState,
    PauseState,
    ProposalState,
    MessageState,
    FaultState,
    GrantState,
    RuleState,
    ActionState,
    ApprovalState,
    AttemptState
);
fn known<T>(found: Option<T>, word: &str) -> Result<T> {
    found.ok_or_else(|| StoreError::Corrupt(format!("unknown word \"{word}\"")))
}
word_columns! {
    domain::event::Trust: |w: &str| known(domain::event::Trust::parse(w), w);
    domain::event::Class: |w: &str| known(domain::event::Class::parse(w), w);
    domain::event::EventKind: |w: &str| known(domain::event::EventKind::parse(w), w);
    domain::schedule::Missed: |w: &str| known(domain::schedule::Missed::parse(w), w);
    domain::event::Mode: |w: &str| known(domain::event::Mode::parse(w), w);
    domain::event::Dial: |w: &str| known(domain::event::Dial::parse(w), w);
    domain::words::Language: |w: &str| known(domain::words::Language::parse(w), w);
    domain::event::How: |w: &str| known(domain::event::How::parse(w), w);
    domain::situation::Stands: |w: &str| known(domain::situation::Stands::parse(w), w);
    domain::situation::Part: |w: &str| known(domain::situation::Part::parse(w), w);
    domain::situation::Step: |w: &str| known(domain::situation::Step::parse(w), w);
    domain::effect::Effect: |w: &str| known(domain::effect::Effect::parse(w), w);
    domain::effect::Demand: |w: &str| known(domain::effect::Demand::parse(w), w);
    domain::effect::Tier: |w: &str| known(domain::effect::Tier::parse(w), w);
    domain::hold::Verdict: |w: &str| known(domain::hold::Verdict::parse(w), w);
}

/// An enum of words that lives in one column of one noun.
macro_rules! words {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)* }
        impl $name {
            /// The stored word.
            pub const fn word(self) -> &'static str { match self { $($name::$variant => $word),* } }
        }
        impl $crate::value::Column for $name {
            fn value(&self) -> $crate::value::Value {
                $crate::value::Value::Text(self.word().to_owned())
            }
            fn read(value: &$crate::value::Value) -> $crate::error::Result<Self> {
                let word = String::read(value)?;
                match word.as_str() {
                    $($word => Ok($name::$variant),)*
                    _ => Err($crate::error::StoreError::Corrupt(format!("unknown word \"{word}\""))),
                }
            }
        }
    };
}
pub(crate) use words;
