//! Versions of a duty: the first one, and each that takes the place of another (DEL-03, DEL-21, DEL-22, DEL-26).

use base::{BodyId, Digest, DutyId, PrincipalId, RunId};
use domain::draft::{Draft, Wakeup};
use domain::effect::GrantDraft;
use domain::event::Trust;
use domain::state::{
    ActionState, DutyState, GrantState, ScheduleState, SubscriptionState, TaskVersionState,
};
use store::device::Device;
use store::duty::{Duty, Origin, TaskVersion};
use store::event::NewBody;
use store::grant::Grant;
use store::proposal::Proposal;
use store::schedule::Schedule;
use store::session::SessionKind;
use store::subscription::Subscription;
use store::{OwnerTx, Result, StoreError};

use super::actions::drop_unsent;
use super::duty::end_wakeups;
use super::zone_of;
use crate::setup::session;
use crate::{Context, tools};

/// A draft on its way to being a version, with where its words come from.
struct Content {
    draft: Draft,
    body: BodyId,
    digest: Digest,
    text: String,
    provenance: String,
    run: RunId,
}

fn content(
    tx: &mut OwnerTx<'_, '_>,
    body: BodyId,
    digest: Digest,
    provenance: String,
    run: RunId,
) -> Result<Content> {
    let text = store::event::body_text(tx, body)?;
    let draft = serde_json::from_str(&text).map_err(|e| corrupt(&provenance, &e))?;
    Ok(Content { draft, body, digest, text, provenance, run })
}

fn corrupt(provenance: &str, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("{provenance}: {error}"))
}

/// Turns a confirmed draft into a duty with its first version, its lane and what wakes it.
pub(super) fn start(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    proposal: &Proposal,
) -> Result<()> {
    let content = confirmed(tx, proposal)?;
    let (owner, now) = (tx.owner(), tx.now());
    let lane = session(cx.id(), owner, SessionKind::Duty, now);
    let duty = Duty {
        id: cx.id(),
        owner,
        agent: lane.agent.clone(),
        session: lane.id,
        state: DutyState::Active,
        proposal: proposal.id,
        created_at: now,
        moved_at: now,
    };
    let by = (Origin::User, device.principal);
    let version = version(cx, tx, &duty, &content, 1, by)?;
    store::session::insert(tx, &lane)?;
    store::duty::insert(tx, &duty, &version)?;
    equip(cx, tx, &duty, &version, &content, &[])
}

fn confirmed(tx: &mut OwnerTx<'_, '_>, proposal: &Proposal) -> Result<Content> {
    let provenance = format!("proposal:{}", proposal.id);
    content(tx, proposal.content, proposal.digest, provenance, proposal.run)
}

/// Puts the confirmed draft in the place of the version in force.
pub(super) fn change(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    device: &Device,
    proposal: &Proposal,
    duty: DutyId,
) -> Result<()> {
    let content = confirmed(tx, proposal)?;
    replace(cx, tx, duty, &content, (Origin::User, device.principal))
}

/// Adopts facts that an event of outside brought: the policy's own rule, since nothing that is allowed, and
/// nothing that ends the duty, differs (DEL-22).
pub(crate) fn adopt(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    duty: DutyId,
    (body, digest): (BodyId, Digest),
    run: RunId,
) -> Result<()> {
    let owner = tx.owner();
    let kind = store::owner::PrincipalKind::Policy;
    let policy = store::owner::principal(tx, owner, kind)?.id;
    let content = content(tx, body, digest, format!("run:{run}:adopted"), run)?;
    replace(cx, tx, duty, &content, (Origin::External, policy))
}

fn replace(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    duty: DutyId,
    content: &Content,
    by: (Origin, PrincipalId),
) -> Result<()> {
    let owner = tx.owner();
    let duty = store::duty::get(tx, owner, duty)?;
    let old = store::duty::version(tx, duty.id)?;
    let new = version(cx, tx, &duty, content, old.n + 1, by)?;
    let (why, to) = ("a newer version of its duty is in force", ActionState::Superseded);
    drop_unsent(cx, tx, duty.session, to, why, None)?;
    let grants = store::grant::active(tx, duty.id)?;
    for grant in &grants {
        store::grant::end(tx, grant.id, Some(by.1))?;
    }
    end_wakeups(tx, &duty, ScheduleState::Closed)?;
    store::duty::renew(tx, &new, old.id)?;
    equip(cx, tx, &duty, &new, content, &grants)
}

fn version(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    duty: &Duty,
    content: &Content,
    n: i64,
    (origin, by): (Origin, PrincipalId),
) -> Result<TaskVersion> {
    let until_at = content.draft.until_at().map_err(|e| corrupt(&content.provenance, &e))?;
    Ok(TaskVersion {
        id: cx.id(),
        owner: duty.owner,
        duty: duty.id,
        n,
        state: TaskVersionState::Current,
        content: content.body,
        digest: content.digest,
        conditions: u32::try_from(content.draft.conditions.len()).unwrap_or(u32::MAX),
        until_at,
        origin,
        confirmed_by: by,
        created_at: tx.now(),
        moved_at: tx.now(),
    })
}

/// Makes what the version brings: schedules, subscriptions, grants, and the addresses in its words.
fn equip(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    duty: &Duty,
    version: &TaskVersion,
    content: &Content,
    before: &[Grant],
) -> Result<()> {
    for wakeup in &content.draft.schedules {
        schedule(cx, tx, duty, version, content, wakeup)?;
    }
    subscribe(cx, tx, duty, version, content)?;
    for wanted in &content.draft.grants {
        grant(cx, tx, version, content, wanted, before)?;
    }
    tools::of_delegation(cx, tx, (duty.session, version.id, content.run), &content.text)
}

/// Makes one of the draft's schedules.
fn schedule(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    duty: &Duty,
    version: &TaskVersion,
    content: &Content,
    wakeup: &Wakeup,
) -> Result<()> {
    let now = tx.now();
    let next_slot =
        wakeup.rule.next_after(&zone_of(tx)?, now).map_err(|e| corrupt(&content.provenance, &e))?;
    let wrong = |e: serde_json::Error| corrupt(&content.provenance, &e);
    let prompt = text_body(cx, content, wakeup.prompt.clone());
    let check = match &wakeup.check {
        None => None,
        Some(check) => {
            let text = serde_json::to_string(check).map_err(wrong)?;
            Some(text_body(cx, content, text))
        }
    };
    let schedule = Schedule {
        id: cx.id(),
        owner: duty.owner,
        duty: duty.id,
        task_version: version.id,
        session: duty.session,
        rule: serde_json::to_string(&wakeup.rule).map_err(wrong)?,
        prompt: prompt.id,
        run_missed: wakeup.run_missed,
        check_spec: check.as_ref().map(|check| check.id),
        check_last: None,
        next_slot,
        last_slot: None,
        last_late: false,
        until_at: version.until_at,
        state: ScheduleState::Active,
        created_at: now,
        moved_at: now,
    };
    store::event::put_body(tx, prompt)?;
    if let Some(check) = check {
        store::event::put_body(tx, check)?;
    }
    store::schedule::insert(tx, &schedule)
}

/// Makes the draft's subscriptions. A source that is gone by now is left out: nothing comes from it.
fn subscribe(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    duty: &Duty,
    version: &TaskVersion,
    content: &Content,
) -> Result<()> {
    for wanted in &content.draft.subscriptions {
        let Some(source) = store::source::by_name(tx, duty.owner, &wanted.source)? else {
            tracing::warn!(source = wanted.source, "the source of a subscription was removed");
            continue;
        };
        let prompt = text_body(cx, content, wanted.prompt.clone());
        let subscription = Subscription {
            id: cx.id(),
            owner: duty.owner,
            duty: duty.id,
            task_version: version.id,
            session: duty.session,
            source: source.id,
            topic: wanted.topic.clone(),
            mode: wanted.mode,
            prompt: prompt.id,
            until_at: version.until_at,
            state: SubscriptionState::Active,
            created_at: tx.now(),
            moved_at: tx.now(),
        };
        store::event::put_body(tx, prompt)?;
        store::subscription::insert(tx, &subscription)?;
    }
    Ok(())
}

/// Makes one of the draft's grants: in force from this commit on, and never before (DEL-26). What the former
/// version used or reserved of the same kind counts on, so that a new version does not refill a limit.
fn grant(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    version: &TaskVersion,
    content: &Content,
    wanted: &GrantDraft,
    before: &[Grant],
) -> Result<()> {
    let wrong = |e| corrupt(&content.provenance, &e);
    let each = wanted.limit(wanted.each.as_deref()).map_err(wrong)?;
    let total = wanted.limit(wanted.total.as_deref()).map_err(wrong)?;
    let currency = wanted.currency.filter(|_| total.is_some());
    let same = |old: &&Grant| old.tool == wanted.tool && old.currency == currency;
    let used = before.iter().filter(same).fold((0_i64, 0_i64), |(count, minor), old| {
        let of = (old.reserved_count + old.spent_count, old.reserved_minor + old.spent_minor);
        (count.saturating_add(of.0), minor.saturating_add(of.1))
    });
    let grant = Grant {
        id: cx.id(),
        owner: version.owner,
        duty: version.duty,
        task_version: version.id,
        tool: wanted.tool.clone(),
        times: i64::from(wanted.times),
        currency,
        each_minor: each.map(|each| each.minor),
        total_minor: total.map(|total| total.minor),
        recipients: serde_json::Value::from(wanted.to.clone()).to_string(),
        until_at: version.until_at,
        state: GrantState::Active,
        reserved_count: 0,
        reserved_minor: 0,
        spent_count: used.0,
        spent_minor: used.1,
        confirmed_by: version.confirmed_by,
        created_at: tx.now(),
        moved_at: tx.now(),
    };
    store::grant::insert(tx, &grant)
}

/// A text that the version brings.
fn text_body(cx: &Context, content: &Content, text: String) -> NewBody {
    NewBody::text(cx.id(), text, content.provenance.clone(), Trust::User)
}
