//! How the hotel vendor goes wrong: which faults there are, and on which calls they strike.

use serde::{Deserialize, Serialize};

use super::record::Tool;

/// What the vendor's manifest promises as `settled_after`, in milliseconds: an operation that cannot
/// be found so long after it was sent never happens.
pub const SETTLED_AFTER_MS: u64 = 30 * 60 * 1_000;
/// Rules that one plan may have.
const RULES_MAX: usize = 1_000;

/// One way in which one call goes wrong. As JSON `"answer_lost"`, or `{"lands_late":{"ms":60000}}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// What was asked happens, and no answer comes.
    AnswerLost,
    /// Nothing happens, and no answer comes.
    RequestLost,
    /// The vendor is honestly sold out: it refuses, and nothing happens. Bookings only.
    SoldOut,
    /// What was asked happens only after a while. Bookings and cancellations only.
    LandsLate {
        /// Milliseconds until it happens.
        ms: u64,
        /// It answers that the booking is pending, without a number; else no answer comes.
        #[serde(default)]
        says_pending: bool,
    },
    /// The call is answered as it should be, and the answer to an earlier effect comes once more.
    DuplicateAnswer,
    /// The vendor answers that it ran out of time. Whether it happened is drawn from the seed.
    TimesOut,
    /// The vendor answers what is no answer: no JSON, or JSON without the number. Whether it happened
    /// is drawn from the seed.
    Garbage,
    /// It answers with a refusal, and does it all the same. Bookings and cancellations only.
    RefusesYetBooks,
    /// It answers with a number of which nothing exists. Bookings and cancellations only.
    Lies,
    /// What was done is gone after a while, with no trace. On a look-up it strikes what is looked up.
    Forgets {
        /// Milliseconds until it is gone.
        ms: u64,
    },
    /// The vendor cancels the booking by itself after a while. On a look-up it strikes what is looked up.
    CancelledByHotel {
        /// Milliseconds until it is cancelled.
        ms: u64,
    },
}

impl Fault {
    /// One of each, with times on both sides of the promised [`SETTLED_AFTER_MS`].
    pub const ALL: [Fault; 13] = [
        Fault::AnswerLost,
        Fault::RequestLost,
        Fault::SoldOut,
        Fault::LandsLate { ms: 120_000, says_pending: false },
        Fault::LandsLate { ms: 120_000, says_pending: true },
        Fault::LandsLate { ms: SETTLED_AFTER_MS + 600_000, says_pending: false },
        Fault::DuplicateAnswer,
        Fault::TimesOut,
        Fault::Garbage,
        Fault::RefusesYetBooks,
        Fault::Lies,
        Fault::Forgets { ms: 120_000 },
        Fault::CancelledByHotel { ms: 120_000 },
    ];

    /// Whether the vendor still keeps every promise of its manifest. Where it does, the records have to
    /// agree with the world in the end; where it does not, nothing may be shown as certain (TOOL-04).
    pub fn keeps_promises(&self) -> bool {
        match self {
            Fault::AnswerLost
            | Fault::RequestLost
            | Fault::SoldOut
            | Fault::DuplicateAnswer
            | Fault::TimesOut
            | Fault::Garbage
            | Fault::CancelledByHotel { .. } => true,
            Fault::LandsLate { ms, .. } => *ms < SETTLED_AFTER_MS,
            Fault::RefusesYetBooks | Fault::Lies | Fault::Forgets { .. } => false,
        }
    }

    /// Whether it can strike a call of this tool.
    pub fn concerns(&self, tool: Tool) -> bool {
        let (effect, find) = (tool.is_effect(), tool.is_find());
        match self {
            Fault::AnswerLost
            | Fault::RequestLost
            | Fault::DuplicateAnswer
            | Fault::TimesOut
            | Fault::Garbage => true,
            Fault::LandsLate { .. } | Fault::RefusesYetBooks | Fault::Lies => effect,
            Fault::SoldOut => tool == Tool::BookHotel,
            Fault::Forgets { .. } => effect || find,
            Fault::CancelledByHotel { .. } => matches!(tool, Tool::BookHotel | Tool::FindBooking),
        }
    }
}

/// When a fault strikes. Without `call` and `per_mille` it strikes every call that it concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// Only calls of this tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Tool>,
    /// Only this call, counted from 1 among the calls of `tool`, or among all calls without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// With this probability in thousandths, drawn from the hotel's seed and the call's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_mille: Option<u16>,
    /// What goes wrong.
    pub fault: Fault,
}

/// A plan of faults; the first rule that fits a call strikes. The empty plan is an honest vendor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// The rules, tried in order; at most 1 000.
    pub rules: Vec<FaultRule>,
}

/// Why a text is no plan of faults.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultsError {
    /// It is no JSON of the right form.
    #[error(
        "no plan of faults: {0}; write {{\"rules\":[{{\"tool\":\"book_hotel\",\"call\":1,\
             \"fault\":\"answer_lost\"}}]}}"
    )]
    Form(String),
    /// It has too many rules.
    #[error("a plan of {0} rules; at most {RULES_MAX} are read, so use `per_mille`")]
    Long(usize),
}

impl Faults {
    /// One fault on the `call`-th call of a tool, counted from 1.
    pub fn once(tool: Tool, call: u64, fault: Fault) -> Faults {
        let rule = FaultRule { tool: Some(tool), call: Some(call), per_mille: None, fault };
        Faults { rules: vec![rule] }
    }

    /// One fault on every call of a tool.
    pub fn always(tool: Tool, fault: Fault) -> Faults {
        let rule = FaultRule { tool: Some(tool), call: None, per_mille: None, fault };
        Faults { rules: vec![rule] }
    }

    /// Each of `faults` with a probability in thousandths, on every call that it concerns. The first of
    /// several that are drawn for one call strikes.
    pub fn random(per_mille: u16, faults: &[Fault]) -> Faults {
        let rule = |fault: &Fault| FaultRule {
            tool: None,
            call: None,
            per_mille: Some(per_mille),
            fault: *fault,
        };
        Faults { rules: faults.iter().map(rule).collect() }
    }

    /// Reads a plan from JSON.
    ///
    /// # Errors
    /// [`FaultsError`] for another form, unknown keys, or more than 1 000 rules.
    pub fn parse(text: &str) -> Result<Faults, FaultsError> {
        let faults: Faults =
            serde_json::from_str(text).map_err(|error| FaultsError::Form(error.to_string()))?;
        match faults.rules.len() {
            0..=RULES_MAX => Ok(faults),
            count => Err(FaultsError::Long(count)),
        }
    }

    /// What strikes a call: its tool, its number among all calls and among those of its tool, and a
    /// draw of a number for a rule.
    pub(super) fn strike(
        &self,
        tool: Tool,
        (of_all, of_tool): (u64, u64),
        draw: impl Fn(usize) -> u64,
    ) -> Option<Fault> {
        let fits = |(index, rule): &(usize, &FaultRule)| {
            let number = if rule.tool.is_some() { of_tool } else { of_all };
            rule.tool.is_none_or(|only| only == tool)
                && rule.call.is_none_or(|only| only == number)
                && rule.fault.concerns(tool)
                && rule.per_mille.is_none_or(|chance| draw(*index) % 1_000 < u64::from(chance))
        };
        self.rules.iter().enumerate().find(fits).map(|(_, rule)| rule.fault)
    }
}
