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

/// Words that mean more than one thing.
const ALL: [&str; 12] = [
    "all",
    "everything",
    "anything",
    "every",
    "else",
    "both",
    "全部",
    "所有",
    "一切",
    "都",
    "什么都",
    "其他",
];

/// Whether a stop may be narrowed to one duty: the message speaks of that duty by a word of its title, and
/// not of everything. The model names the duty; this is the second opinion that a release for all others
/// needs, since stopping once too often is acceptable and failing to stop is not.
pub fn narrows(message: &str, title: &str) -> bool {
    let (message, title) = (message.to_lowercase(), title.to_lowercase());
    let words = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| !c.is_alphanumeric());
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let said = words(&message);
    let means_all = |word: &str| match word.is_ascii() {
        true => said.iter().any(|known| known == word),
        false => message.contains(word),
    };
    !ALL.iter().any(|word| means_all(word))
        && words(&title).iter().any(|word| named(&message, &said, word))
}

/// Whether a word of a title is said: as a word of at least four letters, or by two Chinese characters.
fn named(message: &str, said: &[String], word: &str) -> bool {
    if word.is_ascii() {
        return word.len() >= 4 && said.iter().any(|known| known == word);
    }
    let characters: Vec<char> = word.chars().collect();
    characters.windows(2).any(|pair| message.contains(&pair.iter().collect::<String>()))
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

    #[test]
    fn a_stop_is_narrowed_only_to_what_the_message_names() {
        let narrowed = [
            ("don't book the hotel yet", "Kyoto hotel"),
            ("先别订酒店", "香港酒店"),
            ("STOP EVERYTHING about the hotel", "Kyoto hotel"),
            ("停，酒店也都不要了", "香港酒店"),
            ("stop", "Kyoto hotel"),
            ("hold it", "It"),
        ]
        .map(|(message, title)| narrows(message, title));
        assert_eq!(narrowed, [true, true, false, false, false, false]);
    }
}
