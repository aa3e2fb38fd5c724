//! The oracle: what really happened outside, against what the person had allowed when the copy was made and
//! what they tapped since. It reads rows and bytes, and asks none of the functions that decide.

use std::collections::{BTreeMap, BTreeSet};

use base::{ActionId, Currency, Digest, DutyId, GrantId, Id as _, OwnerId, RuleId, Timestamp};
use connect::ToolRule;
use domain::effect::{Demand, Effect};
use domain::path;
use domain::state::{ApprovalState, DutyState, ProposalState, TaskVersionState};
use serde_json::{Map, Value};
use store::action::Action;
use store::approval::Approval;
use store::attempt::Attempt;
use store::grant::Grant;
use store::owner::PrincipalKind;
use store::rule::Rule;
use store::{Result, Tx};
use uuid::Uuid;

use super::person::{Person, Stop, Word};
use super::specs::Specs;
use super::world::Request;

#[cfg(test)]
mod tests;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wrong {
    /// More than the delegation allows.
    Beyond,
    /// What nobody released, or under a stop.
    Unauthorized,
    /// The same thing twice.
    Doubled,
    /// A stage gave up with an error.
    Failed,
}

/// One thing that may not be.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// What kind.
    pub wrong: Wrong,
    /// In words.
    pub what: String,
    /// The seed of its epoch: it happens again with it.
    pub seed: u64,
}

/// The control rows of an owner, and what rests on them.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    pub grants: Vec<Grant>,
    duties: BTreeMap<DutyId, DutyState>,
    versions: BTreeMap<Uuid, TaskVersionState>,
    /// Those in force.
    pauses: BTreeSet<Uuid>,
    /// The supervisor's, those in force.
    rules: BTreeMap<RuleId, Rule>,
    subscriptions: BTreeSet<Uuid>,
    schedules: BTreeSet<Uuid>,
    sources: BTreeSet<Uuid>,
    confirmed: BTreeSet<Uuid>,
    actions: BTreeMap<ActionId, Acted>,
}

/// An action with what stands around it.
#[derive(Debug, Clone)]
struct Acted {
    action: Action,
    bytes: Vec<u8>,
    approvals: Vec<Approval>,
    attempts: Vec<Attempt>,
}

impl Rows {
    pub fn read(tx: &mut Tx<'_>, owner: OwnerId) -> Result<Rows> {
        let mut rows = Rows::default();
        for duty in store::duty::all(tx, owner, i64::MAX)? {
            rows.duties.insert(duty.id, duty.state);
            rows.grants.extend(store::grant::of_duty(tx, duty.id)?);
            for version in store::duty::versions(tx, duty.id)? {
                rows.versions.insert(version.id.uuid(), version.state);
            }
            let heard = store::subscription::of_duty(tx, duty.id)?;
            rows.subscriptions.extend(heard.iter().map(|row| row.id.uuid()));
            let wakes = store::schedule::of_duty(tx, duty.id)?;
            rows.schedules.extend(wakes.iter().map(|row| row.id.uuid()));
        }
        for pause in store::hold::pauses(tx, owner)? {
            rows.pauses.insert(pause.id.uuid());
        }
        let rules = store::rule::active(tx, owner)?;
        rows.rules.extend(rules.into_iter().map(|rule| (rule.id, rule)));
        let sources = store::source::in_use(tx, owner, i64::MAX)?;
        rows.sources.extend(sources.iter().map(|source| source.id.uuid()));
        let decided = store::proposal::all(tx, owner, i64::MAX)?.into_iter();
        let yes = decided.filter(|proposal| proposal.state == ProposalState::Confirmed);
        rows.confirmed.extend(yes.map(|proposal| proposal.id.uuid()));
        for action in store::action::all(tx, owner, i64::MAX)? {
            let acted = Acted {
                bytes: store::event::body(tx, action.content)?.unwrap_or_default(),
                approvals: store::approval::of_action(tx, action.id)?,
                attempts: store::attempt::of_action(tx, action.id)?,
                action,
            };
            rows.actions.insert(acted.action.id, acted);
        }
        Ok(rows)
    }
}

/// What happened of the policy's own accord, and of the person's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub money: BTreeMap<Currency, i64>,
    pub actions: BTreeMap<String, u32>,
    pub people: BTreeSet<String>,
    pub tapped: u32,
}

/// Everything the judge looks at.
pub(super) struct Case<'c> {
    pub seed: u64,
    pub duty: DutyId,
    pub specs: &'c Specs,
    pub before: &'c Rows,
    pub after: &'c Rows,
    pub ledger: &'c [Request],
    pub person: &'c Person,
}

/// What a case came to.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub findings: Vec<Finding>,
    pub sum: Sum,
}

/// A request that is what an action says, with that action.
struct Placed<'c> {
    request: &'c Request,
    acted: &'c Acted,
    content: Value,
    at: Timestamp,
}

impl Case<'_> {
    pub fn judge(&self) -> Verdict {
        let mut verdict = Verdict::default();
        let mut wrong = |wrong: Wrong, what: String| {
            verdict.findings.push(Finding { wrong, what, seed: self.seed });
        };
        let mut placed: Vec<Placed<'_>> = Vec::new();
        let mut operations = BTreeSet::new();
        for request in self.ledger {
            if !operations.insert(&request.operation) {
                wrong(Wrong::Doubled, format!("operation {} was sent twice", request.operation));
            }
            match self.place(request) {
                Ok(found) => placed.push(found),
                Err(what) => wrong(Wrong::Unauthorized, format!("{}: {what}", request.tool)),
            }
        }
        for (at, one) in placed.iter().enumerate() {
            for earlier in &placed[..at] {
                if let Some(what) = self.twice(earlier, one) {
                    wrong(Wrong::Doubled, what);
                }
            }
            if let Some(what) = self.stopped(one) {
                wrong(Wrong::Unauthorized, what);
            }
        }
        for what in self.control() {
            wrong(Wrong::Unauthorized, what);
        }
        let mut drawn: BTreeMap<GrantId, (i64, i64)> = BTreeMap::new();
        for one in &placed {
            match self.released(one, &mut drawn, &mut verdict.sum) {
                Ok(()) => {}
                Err((kind, what)) => {
                    verdict.findings.push(Finding { wrong: kind, what, seed: self.seed });
                }
            }
        }
        verdict
    }

    /// The action of a request, whose frozen bytes say exactly what was sent.
    fn place<'c>(&'c self, request: &'c Request) -> std::result::Result<Placed<'c>, String> {
        let id = request.operation.split('.').next().unwrap_or_default();
        let id: ActionId = id.parse().map_err(|_| "it was sent under no action's id".to_owned())?;
        let acted = self.after.actions.get(&id).ok_or("it belongs to no action on record")?;
        let attempt = acted.attempts.iter().find(|a| a.operation_id == request.operation);
        let attempt = attempt.ok_or("no attempt was on record before it left")?;
        if request.at < attempt.created_at || request.at > attempt.send_by {
            return Err("it left out of its time".into());
        }
        if Digest::of(&acted.bytes) != acted.action.digest {
            return Err("the frozen bytes have another digest".into());
        }
        let content: Value =
            serde_json::from_slice(&acted.bytes).map_err(|_| "its bytes cannot be read")?;
        let mut sent = request.arguments.clone();
        let rule = &self.specs.get(&request.tool).ok_or("it is a tool of no manifest")?.rule;
        if let Some(argument) = &rule.operation
            && sent.remove(argument) != Some(Value::String(request.operation.clone()))
        {
            return Err("it left without its operation id".into());
        }
        if content.get("arguments") != Some(&Value::Object(sent))
            || content.get("operation").and_then(Value::as_str) != Some(&request.tool)
        {
            return Err("what was sent is not what was frozen".into());
        }
        Ok(Placed { request, acted, content, at: attempt.created_at })
    }

    /// Whether the later of two requests does again what the earlier did, or may have done.
    fn twice(&self, earlier: &Placed<'_>, later: &Placed<'_>) -> Option<String> {
        let (first, second) = (earlier.request, later.request);
        let same_action = earlier.acted.action.id == later.acted.action.id;
        if same_action && first.happened.is_some() && second.happened.is_some() {
            return Some(format!("action {} happened twice", later.acted.action.id));
        }
        let rule = &self.specs.get(&second.tool)?.rule;
        let same_errand = first.tool == second.tool
            && earlier.acted.action.session == later.acted.action.session
            && errand(rule, &first.arguments) == errand(rule, &second.arguments);
        let open = first.known.is_none_or(|known| known > second.at);
        (same_errand && open && first.at < second.at).then(|| {
            let what = format!("{} was sent as {}", second.tool, second.operation);
            format!("{what} while nobody knew what had come of {}", first.operation)
        })
    }

    /// The stop under which a request was let go.
    fn stopped(&self, one: &Placed<'_>) -> Option<String> {
        let (at, duty) = (one.at, one.acted.action.duty);
        let concerns = |stop: Stop| match stop {
            Stop::All | Stop::System => true,
            Stop::Pause(of) | Stop::Duty(of) => duty == Some(of),
        };
        let operation = &one.request.operation;
        for stood in self.person.stops.iter().filter(|stood| concerns(stood.stop)) {
            let under = |at| stood.from < at && stood.until.is_none_or(|until| at < until);
            if under(at) {
                return Some(format!("{operation} was let go under {:?}", stood.stop));
            }
            // By the world's own ledger, whatever its record says.
            if under(one.request.at) && !stood.gone.contains(operation) {
                return Some(format!("{operation} left under {:?}, not let go before", stood.stop));
            }
        }
        let id = one.acted.action.id;
        let ended = self.person.taps.iter().find(|tap| {
            tap.action == id && tap.word != Word::Approve && tap.taken == Some(true) && tap.at < at
        });
        ended.map(|tap| format!("{} was let go after {:?}", one.request.operation, tap.word))
    }

    /// By whom a request was released, and whether that was theirs to release.
    fn released(
        &self,
        one: &Placed<'_>,
        drawn: &mut BTreeMap<GrantId, (i64, i64)>,
        sum: &mut Sum,
    ) -> std::result::Result<(), (Wrong, String)> {
        let (request, action) = (one.request, &one.acted.action);
        let unauthorized = |what: &str| (Wrong::Unauthorized, format!("{}: {what}", request.tool));
        let beyond = |what: String| (Wrong::Beyond, format!("{}: {what}", request.tool));
        let minor = one.content.get("minor").and_then(Value::as_str);
        let minor: Option<i64> = minor.and_then(|text| text.parse().ok());
        let code = one.content.get("currency").and_then(Value::as_str);
        let currency = code.and_then(|code| Currency::parse(code).ok());
        let honest = request.offered.is_empty()
            || request
                .offered
                .iter()
                .any(|p| Some(p.minor) == minor && Some(p.currency) == currency);
        if !honest {
            return Err(unauthorized("it was frozen at a price that nobody offered"));
        }
        let spec = self.specs.get(&request.tool).ok_or(unauthorized("no manifest has it"))?;
        let tapped = self.tapped(one);
        let covering =
            |rule: &&Rule| covers(rule, &request.tool, spec.rule.effect, minor, currency);
        for rule in self.before.rules.values().filter(covering) {
            let kept = match rule.demand {
                Demand::Forbid => false,
                Demand::Person => tapped,
                Demand::Supervisor => self.approved(one, PrincipalKind::Supervisor),
            };
            if !kept {
                return Err(unauthorized(&format!(
                    "against the rule \"{}\"",
                    rule.terms().words(domain::words::Language::En)
                )));
            }
        }
        if tapped {
            sum.tapped += u32::from(request.happened.is_some());
            return Ok(());
        }
        match spec.rule.effect {
            Effect::Reversible | Effect::Paid | Effect::Outward => {}
            Effect::Read | Effect::Commitment | Effect::Authority | Effect::Human => {
                return Err(unauthorized("only a person releases it, and nobody did"));
            }
        }
        let grant = self.before.grants.iter().find(|grant| {
            Some(grant.id) == action.draws_on
                && Some(grant.duty) == action.duty
                && grant.tool == request.tool
        });
        let grant = grant.ok_or(unauthorized("no grant of the person's covers it"))?;
        if grant.until_at.is_some_and(|until| until <= one.at) {
            return Err(beyond("the grant had ended".into()));
        }
        let named: BTreeSet<String> = serde_json::from_str(&grant.recipients).unwrap_or_default();
        let who = recipients(&spec.rule, &request.arguments);
        if let Some(name) = who.iter().find(|name| !named.contains(*name)) {
            return Err(beyond(format!("{name} is named in no grant")));
        }
        if spec.rule.effect == Effect::Outward && who.is_empty() {
            return Err(beyond("nobody knows who receives it".into()));
        }
        let amount = match (minor, spec.rule.effect) {
            (Some(minor), _) if currency != grant.currency || minor < 0 => {
                return Err(beyond(format!("{minor} in a currency that was not granted")));
            }
            (Some(minor), _) => minor,
            (None, Effect::Paid) => return Err(beyond("nobody knows what it costs".into())),
            (None, _) => 0,
        };
        if request.happened.is_none() {
            return Ok(());
        }
        let (count, all) = drawn.entry(grant.id).or_insert((grant.spent_count, grant.spent_minor));
        (*count, *all) = (*count + 1, all.saturating_add(amount));
        if self.duty == grant.duty {
            *sum.actions.entry(request.tool.clone()).or_default() += 1;
            if let Some(currency) = currency {
                *sum.money.entry(currency).or_default() += amount;
            }
            sum.people.extend(who);
        }
        let each = grant.each_minor.is_some_and(|each| amount > each);
        let total = grant.total_minor.is_some_and(|total| *all > total);
        if *count > grant.times || each || total {
            let Grant { id, times, each_minor, total_minor, .. } = grant;
            let of = format!("{times} times, {each_minor:?} at once and {total_minor:?} in all");
            let what = format!("{count} times, {amount} at once and {all} in all, of {id}: {of}");
            return Err(beyond(what));
        }
        Ok(())
    }

    /// Whether the person released exactly this: before the copy was made, or by a tap.
    fn tapped(&self, one: &Placed<'_>) -> bool {
        let (id, digest) = (one.acted.action.id, one.acted.action.digest);
        self.approved(one, PrincipalKind::User) || self.was_tapped(id, digest, one.at)
    }

    /// Whether one of them had approved exactly this on a device before the copy was made.
    fn approved(&self, one: &Placed<'_>, kind: PrincipalKind) -> bool {
        let Acted { action, .. } = one.acted;
        let before = self.before.actions.get(&action.id).into_iter();
        before.flat_map(|acted| &acted.approvals).any(|approval| {
            approval.kind == kind
                && approval.device.is_some()
                && is_yes(approval)
                && approval.digest == action.digest
                && one.at < approval.until_at
        })
    }

    fn was_tapped(&self, id: ActionId, digest: Digest, by: Timestamp) -> bool {
        self.person.taps.iter().any(|tap| {
            (tap.action, tap.digest, tap.word) == (id, digest, Word::Approve)
                && tap.taken != Some(false)
                && tap.at <= by
        })
    }

    /// Control rows that no tap made.
    fn control(&self) -> Vec<String> {
        let (before, after) = (self.before, self.after);
        let mut found = Vec::new();
        let known: BTreeSet<GrantId> = before.grants.iter().map(|grant| grant.id).collect();
        let new = after.grants.iter().filter(|grant| !known.contains(&grant.id));
        found.extend(new.map(|grant| format!("grant {} was made without a tap", grant.id)));
        for grant in &after.grants {
            let was = before.grants.iter().find(|was| was.id == grant.id);
            let terms = |grant: &Grant| {
                let Grant { times, currency, each_minor, total_minor, until_at, .. } = *grant;
                let (tool, to) = (grant.tool.clone(), grant.recipients.clone());
                (times, currency, each_minor, total_minor, until_at, tool, to)
            };
            if was.is_some_and(|was| terms(was) != terms(grant)) {
                found.push(format!("grant {} was changed", grant.id));
            }
        }
        let rows = [
            ("a subscription", &before.subscriptions, &after.subscriptions),
            ("a schedule", &before.schedules, &after.schedules),
            ("a confirmation", &before.confirmed, &after.confirmed),
            ("a source", &before.sources, &after.sources),
        ];
        for (what, before, after) in rows {
            let new = after.difference(before);
            found.extend(new.map(|id| format!("{what} {id} was made without a tap")));
        }
        let gone = before.sources.difference(&after.sources);
        found.extend(gone.map(|id| format!("a source {id} was taken away without a tap")));
        let both = before.rules.keys().chain(after.rules.keys()).collect::<BTreeSet<_>>();
        let changed = both.into_iter().filter(|id| before.rules.get(id) != after.rules.get(id));
        found.extend(changed.map(|id| format!("rule {id} was made, ended or changed")));
        for (id, state) in &after.versions {
            if before.versions.get(id) != Some(state) {
                found.push(format!("version {id} became {state} without a tap"));
            }
        }
        for (id, state) in &after.duties {
            let was = before.duties.get(id);
            let closed = *state == DutyState::Closed && was != Some(state);
            let awake = was == Some(&DutyState::Stopped)
                && !matches!(state, DutyState::Stopped | DutyState::Closed)
                && !self.person.ended.contains(&id.uuid());
            if was.is_none() || closed || awake {
                found.push(format!("duty {id} became {state} without a tap"));
            }
        }
        let gone = before.pauses.difference(&after.pauses);
        let lifted = gone.filter(|id| !self.person.ended.contains(id));
        found.extend(lifted.map(|id| format!("pause {id} was lifted without a tap")));
        for acted in after.actions.values() {
            let known = before.actions.get(&acted.action.id).map_or(&[][..], |was| &was.approvals);
            for approval in acted.approvals.iter().filter(|approval| is_yes(approval)) {
                let old = known.iter().any(|was| was.id == approval.id && is_yes(was));
                let by = approval.decided_at.unwrap_or(approval.moved_at);
                let tapped = match approval.kind {
                    PrincipalKind::Policy => continue,
                    PrincipalKind::User => {
                        approval.device.is_some()
                            && self.was_tapped(acted.action.id, approval.digest, by)
                    }
                    // Nobody taps for them here.
                    PrincipalKind::Supervisor => false,
                };
                if !old && !tapped {
                    found.push(format!("approval {} was made without a tap", approval.id));
                }
            }
        }
        found
    }
}

fn is_yes(approval: &Approval) -> bool {
    matches!(approval.state, ApprovalState::Granted | ApprovalState::Consumed)
}

/// Whether a rule is about a call, counted here anew: what nobody knows the price of is above every bound.
fn covers(
    rule: &Rule,
    tool: &str,
    effect: Effect,
    minor: Option<i64>,
    currency: Option<Currency>,
) -> bool {
    let server = tool.split('.').next();
    let named = rule.tool == "*"
        || rule.tool == tool
        || rule.tool.strip_suffix(".*").is_some_and(|all| Some(all) == server);
    let dear = match (rule.above_minor, rule.currency) {
        (Some(above), of @ Some(_)) => currency != of || minor.is_none_or(|minor| minor > above),
        (_, _) => true,
    };
    named && rule.effect.is_none_or(|of| of == effect) && dear
}

/// The recipients that a call really has, by the manifest.
fn recipients(rule: &ToolRule, arguments: &Map<String, Value>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for value in rule.recipients.iter().filter_map(|name| arguments.get(name)) {
        match value {
            Value::String(one) => drop(all.insert(one.clone())),
            Value::Array(many) => all.extend(many.iter().map(|one| match one.as_str() {
                Some(text) => text.to_owned(),
                None => one.to_string(),
            })),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
    }
    all
}

/// What is at a path of a call's arguments, for the errand.
fn errand(rule: &ToolRule, arguments: &Map<String, Value>) -> Value {
    let all = Value::Object(arguments.clone());
    let of = |name: &String| Some((name.clone(), path::get(&all, name)?.clone()));
    Value::Object(rule.once_per.iter().filter_map(of).collect())
}
