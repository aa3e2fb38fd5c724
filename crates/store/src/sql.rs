//! Statements: written once in PostgreSQL's spelling, known by name, and turned for SQLite here.

use std::sync::OnceLock;

/// One statement. Only [`statements!`] makes them, so the list of all of them is complete.
#[derive(Debug)]
pub struct Sql {
    /// `noun.NAME`, for errors and tests.
    pub name: &'static str,
    pub(crate) source: Source,
    /// Whether it runs on the hot path and must find its rows by an index.
    pub hot: bool,
    pub(crate) rendered: OnceLock<Rendered>,
}

#[derive(Debug)]
pub(crate) enum Source {
    Text(&'static str),
    Built(String),
    Insert { table: &'static str, columns: &'static [&'static str], tail: &'static str },
    Select { table: &'static str, columns: &'static [&'static str], tail: &'static str },
}

#[derive(Debug)]
pub(crate) struct Rendered {
    pub postgres: String,
    pub sqlite: String,
}

impl Sql {
    pub(crate) fn rendered(&self) -> &Rendered {
        self.rendered.get_or_init(|| {
            let postgres = match &self.source {
                Source::Text(text) => (*text).to_owned(),
                Source::Built(text) => text.clone(),
                Source::Insert { table, columns, tail } => {
                    let slots: Vec<String> = (1..=columns.len()).map(|n| format!("${n}")).collect();
                    format!(
                        "INSERT INTO {table} ({}) VALUES ({}) {tail}",
                        columns.join(", "),
                        slots.join(", ")
                    )
                }
                Source::Select { table, columns, tail } => {
                    let columns: Vec<String> =
                        columns.iter().map(|column| format!("{table}.{column}")).collect();
                    format!("SELECT {} FROM {table} {tail}", columns.join(", "))
                }
            };
            Rendered { sqlite: for_sqlite(&postgres), postgres }
        })
    }

    /// A statement whose text is made from a table of `domain`.
    pub(crate) fn built(name: &'static str, source: Source) -> Self {
        Sql { name, source, hot: false, rendered: OnceLock::new() }
    }

    /// The text for PostgreSQL.
    pub fn postgres(&self) -> &str {
        &self.rendered().postgres
    }

    /// The text for SQLite.
    pub fn sqlite(&self) -> &str {
        &self.rendered().sqlite
    }
}

/// Drops row locks: under `BEGIN IMMEDIATE` SQLite's writer is alone.
fn for_sqlite(text: &str) -> String {
    ["FOR UPDATE SKIP LOCKED", "FOR UPDATE", "FOR SHARE"]
        .iter()
        .fold(text.to_owned(), |text, lock| text.replace(lock, ""))
}

/// Type words of the migrations, and the collation by which text sorts, as SQLite spells them.
pub(crate) fn migration_for_sqlite(text: &str) -> String {
    const WORDS: [(&str, &str); 5] = [
        ("UUID", "BLOB"),
        ("BYTEA", "BLOB"),
        ("BIGINT", "INTEGER"),
        ("BOOLEAN", "INTEGER"),
        (" COLLATE \"C\"", ""),
    ];
    let mut out = text.replace("\n);", "\n) STRICT;");
    for (postgres, sqlite) in WORDS {
        out = out.replace(postgres, sqlite);
    }
    out
}

/// Declares a noun's statements and the list of all of them.
///
/// `NAME = "…"` is free text, `NAME = select Record "WHERE …"` reads whole records, and
/// `NAME = insert Record ""` writes one. `hot` marks those that must not scan a table.
macro_rules! statements {
    ($noun:literal: $($rest:tt)*) => { $crate::sql::statements!(@each $noun [] $($rest)*); };
    (@each $noun:literal [$($done:ident)*]) => {
        /// Every statement of this noun.
        pub(crate) const ALL: &[&$crate::sql::Sql] = &[$(&$done),*];
    };
    (@each $noun:literal [$($done:ident)*] $name:ident = hot $($rest:tt)*) => {
        $crate::sql::statements!(@kind $noun [$($done)*] true $name $($rest)*);
    };
    (@each $noun:literal [$($done:ident)*] $name:ident = $($rest:tt)*) => {
        $crate::sql::statements!(@kind $noun [$($done)*] false $name $($rest)*);
    };
    (@kind $noun:literal [$($done:ident)*] $hot:literal $name:ident insert $record:ty, $tail:literal; $($rest:tt)*) => {
        $crate::sql::statements!(@make $noun $hot $name $crate::sql::Source::Insert {
            table: <$record as $crate::value::Record>::TABLE,
            columns: <$record as $crate::value::Record>::COLUMNS,
            tail: $tail,
        });
        $crate::sql::statements!(@each $noun [$($done)* $name] $($rest)*);
    };
    (@kind $noun:literal [$($done:ident)*] $hot:literal $name:ident select $record:ty, $tail:literal; $($rest:tt)*) => {
        $crate::sql::statements!(@make $noun $hot $name $crate::sql::Source::Select {
            table: <$record as $crate::value::Record>::TABLE,
            columns: <$record as $crate::value::Record>::COLUMNS,
            tail: $tail,
        });
        $crate::sql::statements!(@each $noun [$($done)* $name] $($rest)*);
    };
    (@kind $noun:literal [$($done:ident)*] $hot:literal $name:ident $text:literal; $($rest:tt)*) => {
        $crate::sql::statements!(@make $noun $hot $name $crate::sql::Source::Text($text));
        $crate::sql::statements!(@each $noun [$($done)* $name] $($rest)*);
    };
    (@make $noun:literal $hot:literal $name:ident $source:expr) => {
        static $name: $crate::sql::Sql = $crate::sql::Sql {
            name: concat!($noun, ".", stringify!($name)),
            source: $source,
            hot: $hot,
            rendered: std::sync::OnceLock::new(),
        };
    };
}
pub(crate) use statements;

#[cfg(test)]
mod tests {
    use super::{for_sqlite, migration_for_sqlite};

    #[test]
    fn only_locks_and_type_words_differ() {
        assert_eq!(for_sqlite("SELECT 1 FOR UPDATE SKIP LOCKED"), "SELECT 1 ");
        assert_eq!(
            migration_for_sqlite("CREATE TABLE a (\n  id UUID PRIMARY KEY,\n  n BIGINT\n);"),
            "CREATE TABLE a (\n  id BLOB PRIMARY KEY,\n  n INTEGER\n) STRICT;"
        );
    }
}
