//! A connection beside the store's own, for what no public function may do.

use base::Id;
use postgres::NoTls;
use store::Database;
use testkit::stores::Harness;
use uuid::Uuid;

/// A raw connection to a test's database.
pub enum Raw {
    Sqlite(rusqlite::Connection),
    Postgres(postgres::Client),
}

impl Raw {
    pub fn beside(harness: &Harness) -> Raw {
        Raw::open(&harness.database)
    }

    pub fn open(database: &Database) -> Raw {
        match database {
            Database::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                connection.execute_batch("PRAGMA busy_timeout = 5000").unwrap();
                Raw::Sqlite(connection)
            }
            Database::Postgres(url) => {
                Raw::Postgres(postgres::Client::connect(url, NoTls).unwrap())
            }
        }
    }

    /// The engine's name, for the messages of assertions.
    pub fn name(&self) -> &'static str {
        match self {
            Raw::Sqlite(_) => "sqlite",
            Raw::Postgres(_) => "postgresql",
        }
    }

    /// Runs one or more statements; the error is the engine's text.
    pub fn run(&mut self, sql: &str) -> Result<(), String> {
        match self {
            Raw::Sqlite(connection) => connection.execute_batch(sql).map_err(|e| e.to_string()),
            Raw::Postgres(client) => client.batch_execute(sql).map_err(|e| {
                e.as_db_error().map_or_else(|| e.to_string(), |db| db.message().to_owned())
            }),
        }
    }

    /// The first column of every row, as text.
    pub fn texts(&mut self, sql: &str) -> Vec<String> {
        match self {
            Raw::Sqlite(connection) => {
                let mut statement = connection.prepare(sql).unwrap();
                statement.query_map([], |row| row.get(0)).unwrap().map(|t| t.unwrap()).collect()
            }
            Raw::Postgres(client) => {
                client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
            }
        }
    }

    /// The one number that a query gives.
    pub fn number(&mut self, sql: &str) -> i64 {
        match self {
            Raw::Sqlite(connection) => connection.query_row(sql, [], |row| row.get(0)).unwrap(),
            Raw::Postgres(client) => client.query_one(sql, &[]).unwrap().get(0),
        }
    }

    /// An id as a literal of this engine.
    pub fn id(&self, id: impl Id) -> String {
        self.uuid(id.uuid())
    }

    /// The same for a bare UUID.
    pub fn uuid(&self, uuid: Uuid) -> String {
        match self {
            Raw::Sqlite(_) => format!("x'{}'", uuid.simple()),
            Raw::Postgres(_) => format!("'{uuid}'::uuid"),
        }
    }

    /// Some bytes as a literal of this engine.
    pub fn bytes(&self, bytes: &[u8]) -> String {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match self {
            Raw::Sqlite(_) => format!("x'{hex}'"),
            Raw::Postgres(_) => format!("'\\x{hex}'::bytea"),
        }
    }
}
