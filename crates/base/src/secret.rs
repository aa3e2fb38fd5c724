//! Secrets that never print themselves.

use secrecy::{ExposeSecret as _, SecretString};

/// A key or token. Its `Debug` output hides the value, and it is wiped from memory when dropped.
#[derive(Clone)]
pub struct Secret(SecretString);

/// Why a secret could not be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The text was empty after trimming.
    #[error("the secret is empty; write the key itself into the file or variable")]
    Empty,
}

impl Secret {
    /// Takes a secret, without the blanks and line ends that editors add.
    pub fn new(text: &str) -> Result<Self, SecretError> {
        match text.trim() {
            "" => Err(SecretError::Empty),
            key => Ok(Secret(SecretString::from(key))),
        }
    }

    /// The value itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(hidden)")
    }
}
