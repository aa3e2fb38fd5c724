//! Rules: what a supervisor asks of a person's own grants and approvals (ADM-31, DEL-25).

use base::{Amount, Currency, OwnerId, PrincipalId, RuleId, Timestamp};
use domain::effect::{Demand, Effect};
use domain::state::RuleState;

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// One rule. It is written once and may be ended; another one is a new rule.
    pub struct Rule in "rule" {
        /// Its id.
        pub id: RuleId,
        /// Over whom.
        pub owner: OwnerId,
        /// A tool's full name, `SERVER.*`, or `*`.
        pub tool: String,
        /// Only calls that do this.
        pub effect: Option<Effect>,
        /// Only calls above so many minor units.
        pub above_minor: Option<i64>,
        /// Of this currency.
        pub currency: Option<Currency>,
        /// What it asks.
        pub demand: Demand,
        /// Where it stands.
        pub state: RuleState,
        /// The supervisor who made it.
        pub made_by: PrincipalId,
        /// The supervisor who ended it.
        pub ended_by: Option<PrincipalId>,
        /// Since when.
        pub created_at: Timestamp,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

impl Rule {
    /// The rule as the decisions see it.
    pub fn terms(&self) -> domain::effect::Rule {
        let amount = |(minor, currency)| Amount { minor, currency };
        domain::effect::Rule {
            tool: self.tool.clone(),
            effect: self.effect,
            above: self.above_minor.zip(self.currency).map(amount),
            demand: self.demand,
        }
    }
}

statements! { "rule":
    INSERT = insert Rule, "";
    BY_ID = hot select Rule, "WHERE id = $1";
    ACTIVE = hot select Rule, "WHERE owner = $1 AND state = 'active' ORDER BY created_at, id";
    OF_OWNER = select Rule, "WHERE owner = $1
        ORDER BY state = 'ended', created_at DESC, id DESC LIMIT $2";
    END = "UPDATE rule SET state = 'ended', ended_by = $2, moved_at = $3
        WHERE id = $1 AND state = 'active'";
}

/// Adds a rule.
pub fn insert(tx: &mut OwnerTx<'_, '_>, rule: &Rule) -> Result<()> {
    tx.insert(&INSERT, rule)?;
    tx.changed(rule.id);
    tx.audit(Some(rule.made_by), "rule", rule.id, None);
    Ok(())
}

/// One rule of an owner.
pub fn get(tx: &mut Tx<'_>, owner: OwnerId, id: RuleId) -> Result<Rule> {
    let found = tx.one::<Rule>(&BY_ID, params![id])?.filter(|rule| rule.owner == owner);
    found.ok_or(StoreError::Missing("rule"))
}

/// An owner's rules in force, oldest first.
pub fn active(tx: &mut Tx<'_>, owner: OwnerId) -> Result<Vec<Rule>> {
    tx.all(&ACTIVE, params![owner])
}

/// An owner's rules, those in force first, each kind newest first: no number of ended ones hides one that counts.
pub fn all(tx: &mut Tx<'_>, owner: OwnerId, limit: i64) -> Result<Vec<Rule>> {
    tx.all(&OF_OWNER, params![owner, limit])
}

/// Ends a rule; `false` if it had ended.
pub fn end(tx: &mut OwnerTx<'_, '_>, id: RuleId, by: PrincipalId) -> Result<bool> {
    let now = tx.now();
    let ended = tx.run(&END, params![id, by, now])? == 1;
    if ended {
        tx.changed(id);
        tx.audit(Some(by), "end", id, None);
    }
    Ok(ended)
}
