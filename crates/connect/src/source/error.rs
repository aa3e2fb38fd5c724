//! Why a look at a source failed; each text says what to do next.

use crate::guard::GuardError;

/// Why a look at a source failed. What was found before stays found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookError {
    /// A webhook without a `recheck`.
    #[error("this source is called and not polled; give it a `recheck` URL to poll it as well")]
    NotPolled,
    /// The cursor is not one of ours, or has grown over its limit.
    #[error("the source's place was lost; remove the source and add it again")]
    Cursor,
    /// The folder can not be listed.
    #[error("the folder {path} can not be read: {reason}. Check that it exists and may be read")]
    Folder {
        /// The folder.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// A relative path, which would depend on where the program was started.
    #[error("the folder `{path}` is not an absolute path; write it from / on")]
    RelativeFolder {
        /// The path.
        path: String,
    },
    /// The URL could not be fetched.
    #[error(transparent)]
    Fetch(#[from] GuardError),
    /// The URL answered with an error.
    #[error(
        "{url} answered with status {status}. Open it in a browser; if it has moved, remove the \
         source and add it with its new address"
    )]
    Status {
        /// The configured URL.
        url: String,
        /// The status.
        status: u16,
        /// What the server said about when to come again, as it was sent.
        retry_after: Option<String>,
    },
    /// What came is no feed.
    #[error(
        "{url} is no feed that can be read: {reason}. If that stays so, check that the address is \
         that of an RSS, Atom or JSON feed and not of a page"
    )]
    NotAFeed {
        /// The configured URL.
        url: String,
        /// The parser's words.
        reason: String,
    },
    /// What came is a page that is not laid out.
    #[error("{url}: {reason}")]
    NotAPage {
        /// The configured URL.
        url: String,
        /// What it is, and what to do.
        reason: String,
    },
}

impl LookError {
    /// Whether the same look may succeed later without anyone changing anything on our side.
    pub fn heals_by_waiting(&self) -> bool {
        match self {
            LookError::Fetch(error) => error.heals_by_waiting(),
            LookError::Status { status, .. } => matches!(status, 408 | 425 | 429 | 500..),
            // Feeds break and are mended by those who make them.
            LookError::NotAFeed { .. } | LookError::Folder { .. } => true,
            LookError::NotPolled
            | LookError::Cursor
            | LookError::RelativeFolder { .. }
            | LookError::NotAPage { .. } => false,
        }
    }
}
