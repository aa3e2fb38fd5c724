//! Why a webhook was refused, with the HTTP status and the next step for whoever reads it.

use super::super::Scheme;

/// Why a request was refused. No text and no `Debug` output holds a secret, a signature or anything
/// that the sender wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// 401: no signature, or none that our secrets make.
    #[error(
        "the signature does not fit; check that sender and source have the same secret, and that \
         nothing on the way changes the body"
    )]
    BadSignature,
    /// 401: rightly signed, at a time more than five minutes from ours.
    #[error(
        "the request was signed {}, and 300 s either way are allowed; check both clocks, or let \
         the sender send it again",
        from_now(*apart_s)
    )]
    TooOld {
        /// Seconds between its time and ours; negative if it is from our future.
        apart_s: i64,
    },
    /// 400: more signatures than are compared, so the one that fits might be among the rest.
    #[error(
        "the header webhook-signature has more than {max} signatures; send at most {max}, one for \
         each secret that is in use"
    )]
    TooManySignatures {
        /// How many are compared.
        max: usize,
    },
    /// 400: no usable id.
    #[error(
        "the header {header} is missing or no id of 1 to 200 visible ASCII characters; send one"
    )]
    NoId {
        /// Which header.
        header: &'static str,
    },
    /// 400: a header that decides something stands there twice.
    #[error("the header {header} was sent more than once; send it once")]
    Repeated {
        /// Which header.
        header: &'static str,
    },
    /// 400: no usable time.
    #[error(
        "the header webhook-timestamp is missing or no whole number of seconds since 1970; send one"
    )]
    NoTimestamp,
    /// 400: GitHub's event header is missing.
    #[error(
        "the header x-github-event is missing or no event's name; is this a GitHub webhook? If \
         not, add the source with another scheme"
    )]
    NoEvent,
    /// 400: the body is not what we can read.
    #[error(
        "the body is no JSON object in UTF-8 ({at}); choose the content type application/json at \
         the sender"
    )]
    BadJson {
        /// Where reading stopped.
        at: String,
    },
    /// 413: the body is too large.
    #[error(
        "the body has {bytes} bytes and {max} are allowed; let the sender send less, or a reference"
    )]
    TooLarge {
        /// How many it has.
        bytes: usize,
        /// How many it may have.
        max: usize,
    },
    /// 503: the source has no secret, so nothing can be checked.
    #[error(
        "this source has no secret; enter the one that the sender shows with `adjutant source add`"
    )]
    NoSecret,
    /// 503: the secret that was entered can not be one.
    #[error("the secret of this source can not be used; it has to be {}", must_be(*scheme))]
    BadSecret {
        /// For which scheme.
        scheme: Scheme,
    },
}

/// When something was signed, seen from now.
fn from_now(apart_s: i64) -> String {
    let when = if apart_s < 0 { "in the future" } else { "before now" };
    format!("{} s {when}", apart_s.unsigned_abs())
}

/// What a secret of a scheme looks like.
fn must_be(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Standard => "\"whsec_\" and base64 of at least 16 bytes, as the sender shows it",
        Scheme::Github => "at least 16 characters, the same as in the webhook's settings at GitHub",
    }
}

impl HookError {
    /// The HTTP status of the answer. 503 where the fault is ours: senders try again after that.
    pub fn status(&self) -> u16 {
        match self {
            HookError::BadSignature | HookError::TooOld { .. } => 401,
            HookError::TooManySignatures { .. }
            | HookError::NoId { .. }
            | HookError::Repeated { .. }
            | HookError::NoTimestamp
            | HookError::NoEvent
            | HookError::BadJson { .. } => 400,
            HookError::TooLarge { .. } => 413,
            HookError::NoSecret | HookError::BadSecret { .. } => 503,
        }
    }
}
