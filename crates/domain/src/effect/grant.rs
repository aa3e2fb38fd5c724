//! Grants: what the user allowed in advance, as numbers and names, never as prompt text (DEL-16).

use base::{Amount, AmountError, Currency, Timestamp};

use super::{Content, Effect};
use crate::words::Language;

/// Grants of one duty.
pub const GRANTS_MAX: usize = 12;
/// Actions that one grant may release.
const TIMES_MAX: u32 = 1_000;
/// People that one grant may name.
const PEOPLE_MAX: usize = 20;
/// Characters of a name.
const NAME_MAX: usize = 200;

/// A grant as the model drafts it and the card shows it.
///
/// As JSON `{"tool":"hotel.book_hotel","times":3,"currency":"HKD","each":"3000.00","total":"8200.00"}`, with
/// `to` for what is sent to people.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantDraft {
    /// The full name of a tool with an effect.
    pub tool: String,
    /// How many times at most.
    pub times: u32,
    /// The currency of the two limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// At most so much at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<String>,
    /// At most so much in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<String>,
    /// Only to these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
}

/// Why a grant cannot be shown to the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// Out of bounds.
    #[error("a grant is for between 1 and {TIMES_MAX} times")]
    Times,
    /// Too many people, or a name that is none.
    #[error(
        "\"to\" names at most {PEOPLE_MAX} people or addresses, each of 1 to {NAME_MAX} characters \
         in one line"
    )]
    People,
    /// Money without a currency or without a total.
    #[error(
        "a grant that spends money needs \"currency\" and \"total\", and if wanted \"each\", which is \
         no more than \"total\""
    )]
    Money,
    /// Not a number.
    #[error(transparent)]
    Amount(#[from] AmountError),
}

impl GrantDraft {
    /// Whether it may be shown.
    pub fn check(&self) -> Result<(), GrantError> {
        if !(1..=TIMES_MAX).contains(&self.times) {
            return Err(GrantError::Times);
        }
        let named = |name: &String| {
            let length = name.trim().chars().count();
            (1..=NAME_MAX).contains(&length) && !name.chars().any(crate::words::is_harmful)
        };
        if self.to.len() > PEOPLE_MAX || !self.to.iter().all(named) {
            return Err(GrantError::People);
        }
        let (each, total) = (self.limit(self.each.as_deref())?, self.limit(self.total.as_deref())?);
        match (self.currency, each, total) {
            (None, None, None) | (Some(_), None, Some(_)) => Ok(()),
            (Some(_), Some(each), Some(total)) if each.minor <= total.minor => Ok(()),
            (_, _, _) => Err(GrantError::Money),
        }
    }

    /// One of the limits as an amount.
    pub fn limit(&self, text: Option<&str>) -> Result<Option<Amount>, GrantError> {
        match (text, self.currency) {
            (None, _) => Ok(None),
            (Some(_), None) => Err(GrantError::Money),
            (Some(text), Some(currency)) => Ok(Some(Amount::parse(text, currency)?)),
        }
    }

    /// The grant in plain words, for cards and lists.
    pub fn words(&self, language: Language) -> String {
        let amount = |text: &Option<String>| self.limit(text.as_deref()).ok().flatten();
        let count = times(self.times, language);
        let at_most = language.pick(", at most ", "，最多");
        let mut said = format!("{}{at_most}{count}", self.tool);
        if let Some(total) = amount(&self.total) {
            said += &match (amount(&self.each), language) {
                (Some(each), Language::En) => format!(", {each} each, {total} in all"),
                (Some(each), Language::Zh) => format!("，每次 {each}，合计 {total}"),
                (None, Language::En) => format!(", {total} in all"),
                (None, Language::Zh) => format!("，合计 {total}"),
            };
        }
        if !self.to.is_empty() {
            said += language.pick(", only to ", "，仅限 ");
            said += &self.to.join(language.comma());
        }
        said
    }
}

/// `once`, `twice`, `3 times`; ` 3 次`.
pub(super) fn times(times: u32, language: Language) -> String {
    match (times, language) {
        (1, Language::En) => "once".into(),
        (2, Language::En) => "twice".into(),
        (more, Language::En) => format!("{more} times"),
        (count, Language::Zh) => format!(" {count} 次"),
    }
}

/// What a grant has given so far: reserved at admission, kept while unknown, settled by the receipt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Actions.
    pub count: i64,
    /// Minor units.
    pub minor: i64,
}

/// A grant in force, as the records have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The tool.
    pub tool: String,
    /// How many actions in all.
    pub times: i64,
    /// Of which currency the limits are.
    pub currency: Option<Currency>,
    /// Minor units of one action.
    pub each: Option<i64>,
    /// Minor units of all actions.
    pub total: Option<i64>,
    /// Who may receive.
    pub to: Vec<String>,
    /// Until when.
    pub until: Option<Timestamp>,
    /// Reserved and settled, without the action that is asked about.
    pub used: Used,
}

/// Which bound of a grant an action would cross. The text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// Its time is over.
    #[error("the grant has ended")]
    Ended,
    /// It was given that often.
    #[error("the grant was for {0} only, and that is used up")]
    Times(String),
    /// Another currency.
    #[error("the grant is not in {0}")]
    Currency(Currency),
    /// No amount is known.
    #[error("what it costs is not known from the connector's answers")]
    NoAmount,
    /// More than once allowed.
    #[error("{0} is more than the grant allows at once")]
    Each(Amount),
    /// More than allowed in all.
    #[error("{amount} is more than the {left} that the grant has left")]
    Total {
        /// What it costs.
        amount: Amount,
        /// What is left.
        left: Amount,
    },
    /// Somebody else would receive it.
    #[error("the grant does not name {0}")]
    Recipient(String),
}

impl Grant {
    /// Whether an action is inside the grant, now and together with all others (ADM-04, ADM-05).
    pub fn covers(&self, content: &Content, now: Timestamp) -> Result<(), Limit> {
        if self.until.is_some_and(|until| until <= now) || self.tool != content.operation {
            return Err(Limit::Ended);
        }
        if self.used.count >= self.times {
            let allowed = u32::try_from(self.times).unwrap_or(u32::MAX);
            return Err(Limit::Times(times(allowed, Language::En)));
        }
        if let Some(unknown) = content.recipients.iter().find(|name| !self.to.contains(name)) {
            return Err(Limit::Recipient(unknown.clone()));
        }
        // What is sent to nobody by name goes to whomever the outside likes, whatever it costs.
        if content.effect == Effect::Outward && content.recipients.is_empty() {
            return Err(Limit::Recipient("whoever receives it".into()));
        }
        match content.amount() {
            Some(amount) => self.pays(amount),
            // Half an amount is none.
            None if content.effect == Effect::Paid || content.minor.is_some() => {
                Err(Limit::NoAmount)
            }
            None => Ok(()),
        }
    }

    fn pays(&self, amount: Amount) -> Result<(), Limit> {
        let (Some(currency), Some(total)) = (self.currency, self.total) else {
            return Err(Limit::Currency(amount.currency));
        };
        if currency != amount.currency {
            return Err(Limit::Currency(amount.currency));
        }
        if self.each.is_some_and(|each| amount.minor > each) {
            return Err(Limit::Each(amount));
        }
        let left = total.saturating_sub(self.used.minor).max(0);
        if amount.minor > left {
            return Err(Limit::Total { amount, left: Amount { minor: left, currency } });
        }
        Ok(())
    }
}
