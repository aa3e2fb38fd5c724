//! What can go wrong in the store, as something a caller can act on.

/// Why a transaction or a read did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another worker holds a newer fencing token; this worker must drop what it has (P2).
    #[error("the session was taken over by a newer worker; drop this work")]
    Fenced,
    /// No such record, or not this owner's.
    #[error("there is no such {0}")]
    Missing(&'static str),
    /// A uniqueness rule of the schema stopped it.
    #[error("{0} exists already")]
    Duplicate(String),
    /// The schema's second wall stopped an illegal row or move: a defect of this program.
    #[error("the schema refused: {0}")]
    Refused(String),
    /// A value that this program cannot read.
    #[error("the database holds a value that cannot be read: {0}")]
    Corrupt(String),
    /// The disk or the database is full.
    #[error("the disk is full; free some space, nothing was written")]
    Full,
    /// Waited too long for a lock or a statement.
    #[error("the database was busy for too long; it is tried again")]
    Busy,
    /// No connection, or it broke before COMMIT: nothing was written.
    #[error("the database cannot be reached: {0}")]
    Unavailable(String),
    /// The connection broke in COMMIT and the outcome could not be read back yet.
    #[error("it is not known yet whether the commit happened; read it back before anything else")]
    OutcomeUnknown,
    /// The closure panicked; nothing of it was written.
    #[error("a transaction panicked; nothing of it was written")]
    Panicked,
    /// An earlier statement of the same closure failed.
    #[error("the transaction had ended already")]
    Ended,
    /// Any other error of the engine.
    #[error("statement {statement}: {message}")]
    Sql {
        /// The statement's name.
        statement: &'static str,
        /// The engine's words.
        message: String,
    },
    /// The store is shut, or the simulator crashed it here.
    #[error("the store is closed")]
    Closed,
    /// Opening failed, with the remedy.
    #[error("{0}")]
    Open(String),
}

/// The result of anything in the store.
pub type Result<T> = std::result::Result<T, StoreError>;

impl StoreError {
    /// Whether a COMMIT that gave this error may have happened all the same.
    pub(crate) fn leaves_doubt(&self) -> bool {
        matches!(self, StoreError::Unavailable(_) | StoreError::Sql { .. })
    }

    pub(crate) fn sqlite(statement: &'static str, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as C;
        let rusqlite::Error::SqliteFailure(code, message) = error else {
            return StoreError::Sql { statement, message: error.to_string() };
        };
        let text = message.clone().unwrap_or_else(|| code.to_string());
        let code = code.code;
        if code == C::ConstraintViolation && text.starts_with("UNIQUE") {
            StoreError::Duplicate(text)
        } else if code == C::ConstraintViolation {
            StoreError::Refused(format!("{statement}: {text}"))
        } else if code == C::DiskFull {
            StoreError::Full
        } else if [C::DatabaseBusy, C::DatabaseLocked, C::OperationInterrupted].contains(&code) {
            // Interrupted: a read that took too long.
            StoreError::Busy
        } else {
            StoreError::Sql { statement, message: format!("{text} ({code:?})") }
        }
    }

    pub(crate) fn postgres(statement: &'static str, error: &postgres::Error) -> Self {
        use postgres::error::SqlState as S;
        let Some(db) = error.as_db_error() else {
            // Any other cause, such as a parameter of a wrong type, is a defect and not the network.
            let cause = std::error::Error::source(error);
            let is_io = cause.is_some_and(|cause| cause.is::<std::io::Error>());
            return if error.is_closed() || is_io {
                StoreError::Unavailable(describe(error))
            } else {
                StoreError::Sql { statement, message: describe(error) }
            };
        };
        let text = db.message().to_owned();
        let code = db.code();
        if *code == S::UNIQUE_VIOLATION {
            StoreError::Duplicate(text)
        } else if [&S::CHECK_VIOLATION, &S::FOREIGN_KEY_VIOLATION, &S::NOT_NULL_VIOLATION]
            .contains(&code)
            || *code == S::RAISE_EXCEPTION
        {
            StoreError::Refused(format!("{statement}: {text}"))
        } else if *code == S::DISK_FULL {
            StoreError::Full
        } else if [
            &S::LOCK_NOT_AVAILABLE,
            &S::QUERY_CANCELED,
            &S::T_R_DEADLOCK_DETECTED,
            &S::T_R_SERIALIZATION_FAILURE,
        ]
        .contains(&code)
        {
            StoreError::Busy
        } else if [&S::TOO_MANY_CONNECTIONS, &S::IDLE_IN_TRANSACTION_SESSION_TIMEOUT]
            .contains(&code)
            || code.code().starts_with("57P")
            || code.code().starts_with("08")
        {
            StoreError::Unavailable(text)
        } else {
            StoreError::Sql { statement, message: text }
        }
    }
}

fn describe(error: &postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
