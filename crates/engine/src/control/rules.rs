//! The supervisor's rules: only their own device writes them, and none loosens anything (ADM-31, DEL-14).

use base::RuleId;
use domain::effect::{RULES_MAX, Rule as Terms};
use domain::state::RuleState;
use store::device::Device;
use store::owner::PrincipalKind;
use store::rule::Rule;
use store::{OwnerTx, Result};

use super::Changed;
use crate::Context;

/// What a device that is not the supervisor's is told.
pub const RULES: &str = "Only a device of the supervisor writes rules. Ask them; on the machine where the server \
     runs, \"adjutant pair --supervisor\" makes a code for such a device.";

/// The supervisor lays a rule. It holds from this commit on, for what waits and for what was admitted too.
/// Laid twice it is one.
pub fn add_rule(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    terms: &Terms,
) -> Result<std::result::Result<Rule, Changed>> {
    let owner = tx.owner();
    if device.kind != PrincipalKind::Supervisor {
        return Ok(Err(Changed::NotYours(RULES)));
    }
    let mut standing = store::rule::active(tx, owner)?;
    if let Some(at) = standing.iter().position(|rule| rule.terms() == *terms) {
        return Ok(Ok(standing.swap_remove(at)));
    }
    if standing.len() >= RULES_MAX {
        let most =
            format!("There are {RULES_MAX} rules in force, the most there can be. End one first.");
        return Ok(Err(Changed::Conflict(most)));
    }
    let rule = Rule {
        id: cx.id(),
        owner,
        tool: terms.tool.clone(),
        effect: terms.effect,
        above_minor: terms.above.map(|above| above.minor),
        currency: terms.above.map(|above| above.currency),
        demand: terms.demand,
        state: RuleState::Active,
        made_by: device.principal,
        ended_by: None,
        created_at: tx.now(),
        moved_at: tx.now(),
    };
    store::rule::insert(tx, &rule)?;
    store::action::wake_all(tx)?;
    Ok(Ok(rule))
}

/// The supervisor ends a rule. Ended twice is ended.
pub fn end_rule(tx: &mut OwnerTx<'_, '_>, device: &Device, id: RuleId) -> Result<Changed> {
    let owner = tx.owner();
    if device.kind != PrincipalKind::Supervisor {
        return Ok(Changed::NotYours(RULES));
    }
    store::rule::get(tx, owner, id)?;
    if store::rule::end(tx, id, device.principal)? {
        store::action::wake_all(tx)?;
    }
    Ok(Changed::Done)
}
