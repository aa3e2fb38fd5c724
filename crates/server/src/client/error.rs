//! What can go wrong between the command line and the server, each with the next step.

use std::path::PathBuf;

/// Exit codes of every command; documented in `adjutant --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Ok = 0,
    /// Any other error.
    Error = 1,
    /// The command line itself was wrong.
    Usage = 2,
    /// No answer from the server.
    Unreachable = 3,
    /// The server refused: token, permission, conflict, stale card.
    Refused = 4,
}

/// A failed client command.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens: the request certainly did not arrive.
    #[error("no server at {url}; start it with: adjutant serve")]
    NotRunning {
        /// Where it was looked for.
        url: String,
    },
    /// The connection broke: whether the request was taken is unknown (P3).
    #[error("no answer from {url} ({reason}); see whether it runs with: adjutant doctor")]
    NoAnswer {
        /// The address.
        url: String,
        /// What the connection reported.
        reason: String,
    },
    /// A write that was given up, and how to go on without doing it twice.
    #[error("{done}: {source}\nRepeat it safely with: {repeat}")]
    GivenUp {
        /// "Not sent", or that it is not known.
        done: &'static str,
        /// Whether it is certain that nothing was written.
        certain: bool,
        /// The last failure.
        source: Box<ClientError>,
        /// The whole command with the same id.
        repeat: String,
    },
    /// There is no token for this command line.
    #[error(
        "no token in {} ({reason}); the server writes it at its first start (adjutant serve), \
         or set ADJUTANT_TOKEN",
        .path.display()
    )]
    TokenMissing {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// Others on this machine could read the token.
    #[error(
        "{} has mode {mode:04o}, others can read it; run: chmod 600 {}",
        .path.display(), .path.display()
    )]
    TokenMode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The server does not know the token.
    #[error(
        "the server refused the token from {origin}: {detail}\nIf the data folder was replaced, \
         use the one the server uses (--config). If this device was revoked, start the server again \
         where it runs; elsewhere remove that token, then: adjutant pair CODE"
    )]
    TokenRefused {
        /// The file or the variable.
        origin: String,
        /// What the server said.
        detail: String,
    },
    /// The server said no to this request (4xx).
    #[error("{title} ({status}): {detail}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Its short title.
        title: String,
        /// What to do next, in the server's words.
        detail: String,
    },
    /// A card or duty is no longer what was asked about.
    #[error("{0}")]
    Stale(String),
    /// The same by the server's word, with the card that counts now.
    #[error("{detail}")]
    Outdated {
        /// What changed, old against new.
        detail: String,
        /// The card as it is now, or a newer one in its place.
        card: Box<serde_json::Value>,
    },
    /// The server failed (5xx).
    #[error("the server failed ({status}): {detail}")]
    Server {
        /// HTTP status.
        status: u16,
        /// What it said.
        detail: String,
        /// Whether it said that nothing was written.
        nothing_written: bool,
    },
    /// The answer is none that this program knows.
    #[error(
        "an answer from {path} was not understood ({reason}); use a program of the server's version"
    )]
    Garbled {
        /// Path of the request.
        path: String,
        /// What was wrong.
        reason: String,
    },
    /// What was tried does not work, as the result that was shown says.
    #[error("it does not work; see above")]
    DoesNotWork,
    /// The command needs something else on its line.
    #[error("{0}")]
    Usage(String),
    /// The screen or pipe that is written to is gone.
    #[error("cannot read or write here: {0}; see where its input and output lead")]
    Output(#[from] std::io::Error),
}

impl ClientError {
    /// Whether the same request may go better in a moment.
    pub fn is_passing(&self) -> bool {
        match self {
            ClientError::NotRunning { .. }
            | ClientError::NoAnswer { .. }
            | ClientError::Server { status: 502..=504, .. }
            | ClientError::Refused { status: 429, .. } => true,
            ClientError::Server { .. }
            | ClientError::Refused { .. }
            | ClientError::GivenUp { .. }
            | ClientError::TokenMissing { .. }
            | ClientError::TokenMode { .. }
            | ClientError::TokenRefused { .. }
            | ClientError::Stale(_)
            | ClientError::Outdated { .. }
            | ClientError::Garbled { .. }
            | ClientError::DoesNotWork
            | ClientError::Usage(_)
            | ClientError::Output(_) => false,
        }
    }

    /// Whether a write that failed so has certainly changed nothing.
    pub fn nothing_written(&self) -> bool {
        match self {
            ClientError::NotRunning { .. }
            | ClientError::Refused { .. }
            | ClientError::TokenMissing { .. }
            | ClientError::TokenMode { .. }
            | ClientError::TokenRefused { .. }
            | ClientError::Stale(_)
            | ClientError::Outdated { .. }
            | ClientError::DoesNotWork
            | ClientError::Usage(_) => true,
            ClientError::Server { nothing_written: certain, .. }
            | ClientError::GivenUp { certain, .. } => *certain,
            ClientError::NoAnswer { .. } | ClientError::Garbled { .. } | ClientError::Output(_) => {
                false
            }
        }
    }

    /// Whether the result that was shown says it all already.
    pub fn is_shown(&self) -> bool {
        matches!(self, ClientError::DoesNotWork)
    }

    /// Exit code and the one-word name of the error in `--json`.
    pub fn class(&self) -> (Exit, &'static str) {
        match self {
            ClientError::NotRunning { .. } => (Exit::Unreachable, "not_running"),
            ClientError::NoAnswer { .. } => (Exit::Unreachable, "no_answer"),
            ClientError::GivenUp { certain: true, source, .. } => (source.class().0, "given_up"),
            ClientError::GivenUp { certain: false, .. } => (Exit::Unreachable, "given_up"),
            ClientError::TokenMissing { .. } => (Exit::Refused, "token_missing"),
            ClientError::TokenMode { .. } => (Exit::Refused, "token_mode"),
            ClientError::TokenRefused { .. } => (Exit::Refused, "token_refused"),
            ClientError::Stale(_) | ClientError::Outdated { .. } => (Exit::Refused, "stale"),
            ClientError::Refused { status: 403 | 409, .. } => (Exit::Refused, "refused"),
            ClientError::Refused { .. } => (Exit::Error, "not_possible"),
            ClientError::Server { .. } => (Exit::Error, "server_failed"),
            ClientError::Garbled { .. } => (Exit::Error, "not_understood"),
            ClientError::DoesNotWork => (Exit::Error, "does_not_work"),
            ClientError::Usage(_) => (Exit::Usage, "usage"),
            ClientError::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                (Exit::Ok, "output_closed")
            }
            ClientError::Output(_) => (Exit::Error, "output"),
        }
    }
}
