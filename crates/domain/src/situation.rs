//! Situations: where a matter stands, the user's part in it, who has taken it on, and which step is
//! wanted (PRO-02..07). A judgement of the model on record: it drives reminding, asking and preparing,
//! and authorizes nothing.

use crate::words::Language;

/// Names of the words of each list, for the tool that notes a situation. Version 1 of the set (PRO-06).
pub const STANDS: [&str; 8] =
    ["open", "taken_on", "forwarded", "noted", "agreed", "declined", "done", "unclear"];
/// The user's parts.
pub const PARTS: [&str; 4] = ["initiator", "decider", "executor", "informed"];
/// The steps.
pub const STEPS: [&str; 4] = ["none", "remind", "ask", "prepare"];
/// The version of the set of states, stored with each judgement.
pub const SET_VERSION: u32 = 1;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$variant_doc])* #[serde(rename = $word)] $variant),* }
        impl $name {
            /// The stored word.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }
            /// Reads the stored word.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some($name::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// Where a matter stands.
    Stands {
        /// Nobody has said anything to it.
        Open = "open",
        /// Somebody says that they see to it. Not done.
        TakenOn = "taken_on",
        /// It was passed on. Not solved.
        Forwarded = "forwarded",
        /// It was read. Not agreed.
        Noted = "noted",
        /// The other side agreed. Not done yet.
        Agreed = "agreed",
        /// The other side said no.
        Declined = "declined",
        /// There is evidence that it is done.
        Done = "done",
        /// It is not understood; then less is done, not more (PRO-18).
        Unclear = "unclear",
    }
}

words! {
    /// The user's part.
    Part {
        /// The user began it.
        Initiator = "initiator",
        /// The user decides.
        Decider = "decider",
        /// The user does it.
        Executor = "executor",
        /// The user is only told.
        Informed = "informed",
    }
}

words! {
    /// What the agent is to do. There is no step that acts outside.
    Step {
        /// Nothing.
        None = "none",
        /// Remind the user.
        Remind = "remind",
        /// Ask the user.
        Ask = "ask",
        /// Prepare something for the user.
        Prepare = "prepare",
    }
}

/// Why a judgement cannot stand as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooMuch {
    /// A matter that is not understood is only asked about.
    #[error("a matter that is unclear allows no step but ask, or none")]
    Unclear,
    /// A matter that is over needs no reminder.
    #[error("a matter that is done or declined needs no reminder; choose none, ask or prepare")]
    Over,
    /// Somebody must have taken on what is taken on.
    #[error("name who has taken it on in taken_on_by")]
    Nobody,
}

/// Checks that a judgement wants no more than what it knows allows.
pub fn check(stands: Stands, step: Step, taken_on_by: Option<&str>) -> Result<(), TooMuch> {
    match (stands, step) {
        (Stands::Unclear, Step::Remind | Step::Prepare) => Err(TooMuch::Unclear),
        (Stands::Done | Stands::Declined, Step::Remind) => Err(TooMuch::Over),
        (Stands::TakenOn, _) if taken_on_by.is_none() => Err(TooMuch::Nobody),
        _ => Ok(()),
    }
}

/// The honest line for a state: taken on is not done, forwarded is not solved, noted is not agreed.
pub fn line(stands: Stands, taken_on_by: Option<&str>, language: Language) -> String {
    let who = taken_on_by.unwrap_or(language.pick("somebody", "有人"));
    let fixed = match (stands, language) {
        (Stands::Open, _) => ("Open: nobody has answered yet", "未有人回应"),
        (Stands::TakenOn, Language::En) => return format!("Taken on by {who}; not done"),
        (Stands::TakenOn, Language::Zh) => return format!("{who}已承接，尚未完成"),
        (Stands::Forwarded, Language::En) => return format!("Passed on to {who}; not solved"),
        (Stands::Forwarded, Language::Zh) => return format!("已转交{who}，尚未解决"),
        (Stands::Noted, _) => ("Noted; not agreed", "已知悉，并未同意"),
        (Stands::Agreed, _) => ("Agreed; not done yet", "已同意，尚未完成"),
        (Stands::Declined, _) => ("Declined", "已被拒绝"),
        (Stands::Done, _) => ("Done", "已完成"),
        (Stands::Unclear, _) => ("Not understood yet", "尚不清楚"),
    };
    language.pick(fixed.0, fixed.1).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_the_lists_that_the_tool_shows() {
        assert!(STANDS.iter().all(|word| Stands::parse(word).is_some_and(|s| s.word() == *word)));
        assert!(PARTS.iter().all(|word| Part::parse(word).is_some_and(|p| p.word() == *word)));
        assert!(STEPS.iter().all(|word| Step::parse(word).is_some_and(|s| s.word() == *word)));
    }

    #[test]
    fn nothing_is_called_more_than_it_is() {
        let said =
            [Stands::TakenOn, Stands::Forwarded, Stands::Noted, Stands::Agreed].map(|stands| {
                (
                    line(stands, Some("Li Si"), Language::En),
                    line(stands, Some("李四"), Language::Zh),
                )
            });
        assert_eq!(
            said,
            [
                ("Taken on by Li Si; not done".into(), "李四已承接，尚未完成".into()),
                ("Passed on to Li Si; not solved".into(), "已转交李四，尚未解决".into()),
                ("Noted; not agreed".into(), "已知悉，并未同意".into()),
                ("Agreed; not done yet".into(), "已同意，尚未完成".into()),
            ]
        );
    }

    #[test]
    fn what_is_not_understood_is_at_most_asked_about() {
        let allowed = [Step::None, Step::Remind, Step::Ask, Step::Prepare]
            .map(|step| check(Stands::Unclear, step, None).is_ok());
        assert_eq!(allowed, [true, false, true, false]);
        assert_eq!(check(Stands::TakenOn, Step::None, None), Err(TooMuch::Nobody));
        assert_eq!(check(Stands::Done, Step::Remind, None), Err(TooMuch::Over));
    }
}
