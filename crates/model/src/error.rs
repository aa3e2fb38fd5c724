//! What can go wrong with a model call, by what is to be done about it.

use std::time::Duration;

/// Why a model gave no answer. Each class has its own remedy; only [`ModelError::Retry`] heals by
/// waiting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The server is busy, away or broke off. The same request may be sent again.
    #[error("the model is not reachable just now ({reason}); the call is repeated later")]
    Retry {
        /// How long the server asks to wait, at most a day.
        after: Option<Duration>,
        /// What happened, for the log and the user.
        reason: String,
    },
    /// The key was not accepted.
    #[error("the model's server refuses the key; set a valid key for this model and restart")]
    Authentication,
    /// The account has no money or allowance left.
    #[error("the account at the model's provider is used up; add credit there or raise its limit")]
    Quota,
    /// The request is longer than the model can read.
    #[error(
        "the request is longer than the model's context; lower window_tokens or set a model with a \
         larger context"
    )]
    Context,
    /// The server no longer accepts what its model thought earlier: another key, another version.
    #[error(
        "the model's server no longer accepts what its model thought earlier in this conversation; \
         it goes on without that history"
    )]
    History,
    /// The provider's content rules refuse this request.
    #[error("the provider refuses to answer this content; rephrase it or use another model")]
    Refused,
    /// Request or answer is not what the other side understands. Waiting does not help.
    #[error(
        "the model's server and this program do not understand each other: {0}; check base_url and \
         the model's name"
    )]
    Malformed(String),
}

impl ModelError {
    /// The same without a secret that the server may have echoed in its words.
    pub fn without(self, secret: &str) -> ModelError {
        let hide = |text: String| text.replace(secret, "(key)");
        match self {
            ModelError::Retry { after, reason } => {
                ModelError::Retry { after, reason: hide(reason) }
            }
            ModelError::Malformed(what) => ModelError::Malformed(hide(what)),
            other @ (ModelError::Authentication
            | ModelError::Quota
            | ModelError::Context
            | ModelError::History
            | ModelError::Refused) => other,
        }
    }

    /// A failure that heals by waiting for a time of the caller's choice.
    pub fn retry(reason: impl Into<String>) -> ModelError {
        ModelError::Retry { after: None, reason: reason.into() }
    }

    /// One word for the class, as journals and metrics hold it.
    pub fn class(&self) -> &'static str {
        match self {
            ModelError::Retry { .. } => "retry",
            ModelError::Authentication => "authentication",
            ModelError::Quota => "quota",
            ModelError::Context => "context",
            ModelError::History => "history",
            ModelError::Refused => "refused",
            ModelError::Malformed(_) => "malformed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ModelError;

    #[test]
    fn a_key_that_the_server_echoes_is_taken_out() {
        let secret = "sk-TOPSECRET";
        let echoed = || "bad key Bearer sk-TOPSECRET, twice: sk-TOPSECRET".to_owned();
        let hidden = || "bad key Bearer (key), twice: (key)".to_owned();
        assert_eq!(
            ModelError::Malformed(echoed()).without(secret),
            ModelError::Malformed(hidden())
        );
        assert_eq!(ModelError::retry(echoed()).without(secret), ModelError::retry(hidden()));
        assert_eq!(ModelError::Quota.without(secret), ModelError::Quota);
    }
}
