//! Rules of a supervisor over a person's own grants and approvals. They can only tighten (ADM-31, DEL-25).

use base::Amount;

use super::{Content, Effect};
use crate::words::Language;

/// Rules in force of one owner.
pub const RULES_MAX: usize = 100;
/// Characters of the pattern that names tools.
const TOOL_MAX: usize = 200;

/// What a rule asks of the actions that it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Demand {
    /// The person's own tap: a release by the policy within a grant does not suffice.
    Person,
    /// The supervisor's approval of exactly this content, besides the release that it needs anyway.
    Supervisor,
    /// That it is not done.
    Forbid,
}

impl Demand {
    /// The word as it is stored and sent.
    pub const fn word(self) -> &'static str {
        match self {
            Demand::Person => "person",
            Demand::Supervisor => "supervisor",
            Demand::Forbid => "forbid",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [Demand::Person, Demand::Supervisor, Demand::Forbid].into_iter().find(|d| d.word() == word)
    }
}

/// Which actions, and what is asked of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    /// A tool's full name, `SERVER.*`, or `*`.
    pub tool: String,
    /// Only calls that do this to the world.
    pub effect: Option<Effect>,
    /// Only calls that cost more than this, or of which nobody knows that they do not.
    pub above: Option<Amount>,
    /// What is asked.
    pub demand: Demand,
}

/// Why a rule cannot be laid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "name a tool in full (hotel.book), all of a connector (hotel.*) or all there are (*), in at most \
     {TOOL_MAX} characters without spaces"
)]
pub struct RuleError;

impl Rule {
    /// A rule as somebody lays it.
    ///
    /// # Errors
    /// [`RuleError`] if its pattern can name nothing: a rule that silently covers nothing is worse than none.
    pub fn new(
        tool: &str,
        effect: Option<Effect>,
        above: Option<Amount>,
        demand: Demand,
    ) -> Result<Self, RuleError> {
        let rule = Rule { tool: tool.trim().to_owned(), effect, above, demand };
        rule.check().map(|()| rule)
    }

    pub(super) fn check(&self) -> Result<(), RuleError> {
        let odd = |c: char| c == '*' || c.is_whitespace() || crate::words::is_harmful(c);
        let own = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let plain = |name: &str| {
            // A connector's name has small letters, digits and "-" alone: nothing looks like another.
            name.split('.').all(|part| !part.is_empty() && !part.contains(odd))
                && name.split('.').next().is_some_and(|server| server.chars().all(own))
                && name.chars().count() <= TOOL_MAX
        };
        match self.tool.strip_suffix(".*") {
            _ if self.tool == "*" => Ok(()),
            Some(server) if plain(server) => Ok(()),
            None if plain(&self.tool) && self.tool.contains('.') => Ok(()),
            Some(_) | None => Err(RuleError),
        }
    }

    /// Whether it is about this action. An amount that is not known, or is in another currency, counts as
    /// above every bound.
    pub fn covers(&self, content: &Content) -> bool {
        let named = match self.tool.strip_suffix('*') {
            Some(start) => content.operation.starts_with(start),
            None => content.operation == self.tool,
        };
        let dear = |above: Amount| match content.amount() {
            Some(amount) if amount.currency == above.currency => amount.minor > above.minor,
            Some(_) | None => true,
        };
        named && self.effect.is_none_or(|e| e == content.effect) && self.above.is_none_or(dear)
    }

    /// The rule in plain words.
    pub fn words(&self, language: Language) -> String {
        let demand = match self.demand {
            Demand::Person => language.pick(
                "the person decides on each, whatever a grant says",
                "无论有无授权，每件都由本人决定",
            ),
            Demand::Supervisor => {
                language.pick("the supervisor approves each besides", "每件另须主管批准")
            }
            Demand::Forbid => language.pick("not done", "不做"),
        };
        let (tool, effect) = (&self.tool, self.effect);
        match language {
            Language::En => {
                let effect = effect.map(|effect| format!(" ({effect})")).unwrap_or_default();
                let above = self.above.map(|above| format!(" above {above}")).unwrap_or_default();
                format!("{tool}{effect}{above}: {demand}")
            }
            Language::Zh => {
                let effect = effect.map(|of| format!("（{}）", chinese(of))).unwrap_or_default();
                let above = self.above.map(|above| format!("，超过 {above}")).unwrap_or_default();
                format!("{tool}{effect}{above}：{demand}")
            }
        }
    }
}

fn chinese(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "读取",
        Effect::Reversible => "可撤销",
        Effect::Paid => "付款",
        Effect::Commitment => "承诺",
        Effect::Outward => "对外发送",
        Effect::Authority => "权限",
        Effect::Human => "只由人做",
    }
}

/// Everything that the rules ask of one action. It is a set and no rank: were the supervisor's approval the
/// "stricter" of two, a rule that asks for it would take away the person's tap that another asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demanded {
    /// The person's own tap.
    pub person: bool,
    /// The supervisor's approval.
    pub supervisor: bool,
    /// That it is not done.
    pub forbid: bool,
}

/// What all rules together ask of an action. More rules never ask for less.
pub fn demanded(rules: &[Rule], content: &Content) -> Demanded {
    let asks = |demand| rules.iter().any(|rule| rule.demand == demand && rule.covers(content));
    Demanded {
        person: asks(Demand::Person),
        supervisor: asks(Demand::Supervisor),
        forbid: asks(Demand::Forbid),
    }
}
