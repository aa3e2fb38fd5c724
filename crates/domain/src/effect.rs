//! Outside effects: what they are, who releases them, and every decision on their path (DESIGN section 6).
//!
//! ```text
//! words ─► grant ─┐
//!  call ─► content ─► tier ─► admit ─► recheck ─► send ─► judge ─► reconcile
//! ```
//!
//! All of it is functions of values: the stages of the engine read the records under the owner's lock, ask
//! here, and write down the answer. Knowledge is no parameter of any of them.

mod admit;
mod content;
mod grant;
mod outcome;
mod reach;
mod review;
mod rule;

use std::fmt;

pub use admit::{Control, Recall, Refusal, Release, Standing, admit, recall, taken_back};
pub use content::{CardLine, Content, ContentError, Frozen, Object, ObjectRef, Spec, freeze};
pub use grant::{GRANTS_MAX, Grant, GrantDraft, GrantError, Limit, Used};
pub use outcome::{Finding, Observation, Outcome, Settled, Sight, judge, reconcile};
pub use reach::{Reach, reach};
pub use review::{Verdict, read_verdict, review_question};
pub use rule::{Demand, Demanded, RULES_MAX, Rule, RuleError, demanded};

/// What calling a tool does to the world; decides who has to release the call (TOOL-03). Where nobody has said
/// it, it is the most that it can be.
#[derive(
    Debug,
    Default,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Reads only. May be called directly unless its arguments reveal something.
    Read,
    /// Changes something that a later call can undo.
    Reversible,
    /// Spends money or something else that can not be had back.
    Paid,
    /// Binds the user to a third party.
    Commitment,
    /// Sends something to a person or makes something public.
    Outward,
    /// Widens what may be done later.
    Authority,
    /// Only a person may do it, or nobody has said what it does.
    #[default]
    Human,
}

impl Effect {
    /// Milliseconds between a release and its sending, in which one tap takes it back.
    pub fn undo_ms(self, limits: &base::Limits) -> u64 {
        match self {
            Effect::Paid | Effect::Commitment => limits.undo_paid_ms,
            Effect::Outward => limits.undo_outward_ms,
            Effect::Read | Effect::Reversible | Effect::Authority | Effect::Human => 0,
        }
    }
}

/// The risk tiers of actions (PRO-08). R0 and R1 have no outside effect and need no action.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Reversible inside a grant: the policy releases it, on record.
    R2,
    /// Paid or irreversible inside a grant: policy and reviewer.
    R3,
    /// Beyond every grant, a new commitment, an outward message, a disclosure: a person.
    R4,
    /// Widens what may be done later: an explicit authorization.
    R5,
    /// People only.
    R6,
}

/// Who has to release an action of a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// The policy alone.
    Policy,
    /// The policy, once the reviewer finds nothing against it.
    Review,
    /// A person, on a card.
    Person,
}

/// The tier of a call. `covered`: a grant in force covers it, with its amount and its recipients.
pub fn tier(effect: Effect, covered: bool) -> Tier {
    match (effect, covered) {
        (Effect::Reversible, true) => Tier::R2,
        (Effect::Paid | Effect::Outward, true) => Tier::R3,
        (Effect::Authority, _) => Tier::R5,
        (Effect::Human, _) => Tier::R6,
        // A read is an action only where its arguments would disclose something.
        (Effect::Commitment | Effect::Read, _)
        | (Effect::Reversible | Effect::Paid | Effect::Outward, false) => Tier::R4,
    }
}

impl Tier {
    /// Who releases it.
    pub fn gate(self) -> Gate {
        match self {
            Tier::R2 => Gate::Policy,
            Tier::R3 => Gate::Review,
            Tier::R4 | Tier::R5 | Tier::R6 => Gate::Person,
        }
    }

    /// The stored word.
    pub const fn word(self) -> &'static str {
        match self {
            Tier::R2 => "r2",
            Tier::R3 => "r3",
            Tier::R4 => "r4",
            Tier::R5 => "r5",
            Tier::R6 => "r6",
        }
    }

    /// Reads the stored word.
    pub fn parse(word: &str) -> Option<Self> {
        [Tier::R2, Tier::R3, Tier::R4, Tier::R5, Tier::R6].into_iter().find(|t| t.word() == word)
    }
}

impl Effect {
    /// The word as it stands in a manifest and in a record.
    pub const fn word(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Reversible => "reversible",
            Effect::Paid => "paid",
            Effect::Commitment => "commitment",
            Effect::Outward => "outward",
            Effect::Authority => "authority",
            Effect::Human => "human",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [
            Effect::Read,
            Effect::Reversible,
            Effect::Paid,
            Effect::Commitment,
            Effect::Outward,
            Effect::Authority,
            Effect::Human,
        ]
        .into_iter()
        .find(|effect| effect.word() == word)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests;
