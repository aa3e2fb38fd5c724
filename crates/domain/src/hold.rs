//! Holds: what a message of the user stops until it is known whether it says stop (QUE-09..12, G-07).
//!
//! The message itself places the hold, in its own transaction. The model then says what it read; the
//! policy, not the model, promotes the hold to a pause or releases it. Stopping once too often is
//! acceptable, failing to stop is not: a release needs the model and the stop check to agree.

/// What the model says of a message that it has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The user wants something stopped, or not done yet.
    Stop,
    /// The message asks for no such thing.
    NotAStop,
}

impl Verdict {
    /// The stored word.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Stop => "stop",
            Verdict::NotAStop => "not_a_stop",
        }
    }
    /// Reads the stored word.
    pub fn parse(word: &str) -> Option<Self> {
        [Verdict::Stop, Verdict::NotAStop].into_iter().find(|verdict| verdict.word() == word)
    }
}

/// What the policy does with a hold once the model has spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// A pause takes its place.
    Promote,
    /// Nothing is held back by this message any more.
    Release,
    /// The user is asked; until they answer it stands.
    Ask,
}

/// The policy's rule. `sounds_like_stop` is the stop check's own reading of the message.
pub fn settle(verdict: Verdict, sounds_like_stop: bool) -> Settlement {
    match (verdict, sounds_like_stop) {
        (Verdict::Stop, _) => Settlement::Promote,
        (Verdict::NotAStop, false) => Settlement::Release,
        (Verdict::NotAStop, true) => Settlement::Ask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_needs_the_model_and_the_check() {
        let settled = [false, true].map(|sounds_like_stop| {
            [Verdict::Stop, Verdict::NotAStop].map(|verdict| settle(verdict, sounds_like_stop))
        });
        assert_eq!(
            settled,
            [[Settlement::Promote, Settlement::Release], [Settlement::Promote, Settlement::Ask],]
        );
        assert_eq!(Verdict::parse("stop"), Some(Verdict::Stop));
    }
}
