//! What a duty hears, what was looked at for it and what it may do: subscriptions, checks, situations,
//! grants, and the pause that covers it. The words stand in bodies and in the sources' rows; a frame has their ids.

use base::{Amount, BodyId, SourceId};
use domain::effect::GrantDraft;
use domain::state::CheckState;
use domain::words::Language;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use store::duty::Duty;
use store::schedule::Schedule;
use store::{Result, Tx};

use super::action::money;
use super::{ERASED, corrupt};

/// Looks of a schedule that are counted.
const LOOKS_COUNTED: i64 = 1_000;
/// Situations of an owner that are looked through, and of a duty that are shown.
const SITUATIONS_READ: i64 = 200;
const SITUATIONS_SHOWN: usize = 10;

/// What a schedule's check has done so far; null without a check.
pub(super) fn check(tx: &mut Tx<'_>, schedule: &Schedule) -> Result<Value> {
    if schedule.check_spec.is_none() {
        return Ok(Value::Null);
    }
    let looks = store::check::of_schedule(tx, schedule.id, LOOKS_COUNTED)?;
    let count = |state| looks.iter().filter(|look| look.state == state).count();
    let (met, failed) = (count(CheckState::Met), count(CheckState::Failed));
    let last = looks.iter().find(|look| look.state.is_terminal()).map(|look| look.moved_at);
    Ok(json!({
        "looked": count(CheckState::Unchanged) + met + failed,
        "woke": met,
        "failed": failed,
        "last": last,
        "state": looks.first().map(|look| look.state),
    }))
}

/// The pause that covers a duty: its own before one of everything.
pub(super) fn pause(tx: &mut Tx<'_>, duty: &Duty) -> Result<Value> {
    let pauses = store::hold::pauses(tx, duty.owner)?;
    let own = pauses.iter().find(|pause| pause.duty == Some(duty.id));
    let covering = own.or_else(|| pauses.iter().find(|pause| pause.duty.is_none()));
    Ok(json!(covering.map(|pause| json!({"id": pause.id, "everything": pause.duty.is_none()}))))
}

/// A duty's subscriptions, without their words.
pub(super) fn subscriptions(tx: &mut Tx<'_>, duty: &Duty) -> Result<Value> {
    let all = store::subscription::of_duty(tx, duty.id)?;
    let shown = all.iter().map(|one| {
        json!({
            "id": one.id,
            "source": one.source,
            "topic": one.topic,
            "mode": one.mode,
            "prompt": one.prompt,
            "until_at": one.until_at,
            "state": one.state,
        })
    });
    Ok(shown.collect())
}

/// What a duty may do without asking again, and what is used of it, without the words.
pub(super) fn grants(tx: &mut Tx<'_>, duty: &Duty) -> Result<Value> {
    let all = store::grant::of_duty(tx, duty.id)?;
    let shown = all.iter().map(|grant| {
        let money = |minor: Option<i64>| {
            money(grant.currency.zip(minor).map(|(currency, minor)| Amount { minor, currency }))
        };
        let of_total = |minor: i64| grant.total_minor.map(|_| minor);
        let used =
            (grant.reserved_count + grant.spent_count, grant.reserved_minor + grant.spent_minor);
        let left = grant.total_minor.map(|total| total.saturating_sub(used.1).max(0));
        json!({
            "id": grant.id,
            "tool": grant.tool,
            "state": grant.state,
            "task_version": grant.task_version,
            "times": grant.times,
            "each": money(grant.each_minor),
            "total": money(grant.total_minor),
            "until_at": grant.until_at,
            "reserved": {
                "count": grant.reserved_count,
                "amount": money(of_total(grant.reserved_minor)),
            },
            "spent": {
                "count": grant.spent_count,
                "amount": money(of_total(grant.spent_minor)),
            },
            "left": {
                "count": grant.times.saturating_sub(used.0).max(0),
                "amount": money(left),
            },
        })
    });
    Ok(shown.collect())
}

/// The newest judgements of a duty, without their words.
pub(super) fn situations(tx: &mut Tx<'_>, duty: &Duty) -> Result<Value> {
    let all = store::situation::latest(tx, duty.owner, SITUATIONS_READ)?;
    let of_duty = all.iter().filter(|one| one.duty == Some(duty.id)).take(SITUATIONS_SHOWN);
    let shown = of_duty.map(|one| {
        json!({
            "id": one.id,
            "event": one.event,
            "matter": one.body,
            "stands": one.stands,
            "part": one.part,
            "step": one.step,
            "due_at": one.due_at,
            "wait": one.wait,
            "created_at": one.created_at,
        })
    });
    Ok(shown.collect())
}

/// The texts of a judgement.
#[derive(Deserialize)]
struct Texts {
    matter: String,
    taken_on_by: Option<String>,
}

/// Puts the words where a frame has ids. A frame that was kept before these parts existed gets them
/// empty.
pub(super) fn with_words(tx: &mut Tx<'_>, frame: &mut Value, language: Language) -> Result<()> {
    if frame.get("state_line").is_none() {
        return Ok(());
    }
    for name in ["pause", "subscriptions", "situations", "grants"] {
        if frame.get(name).is_none() {
            frame[name] = if name == "pause" { Value::Null } else { json!([]) };
        }
    }
    for schedule in frame["schedules"].as_array_mut().into_iter().flatten() {
        if schedule.get("check").is_none() {
            schedule["check"] = Value::Null;
        }
    }
    for one in frame["subscriptions"].as_array_mut().into_iter().flatten() {
        let source: SourceId = read(&one["source"])?;
        one["name"] = json!(store::source::get(tx, source)?.name);
        let prompt: BodyId = read(&one["prompt"])?;
        one["prompt"] = json!(store::event::body_text(tx, prompt)?);
    }
    for one in frame["grants"].as_array_mut().into_iter().flatten() {
        let grant = store::grant::get(tx, read(&one["id"])?)?;
        let to: Vec<String> = serde_json::from_str(&grant.recipients)
            .map_err(|error| corrupt("the people of a grant", error))?;
        let plain = |minor: Option<i64>| {
            let amount = Amount { minor: minor?, currency: grant.currency? };
            // As a draft writes it: without the currency, and without the spaces between thousands.
            Some(amount.to_string().chars().filter(|c| c.is_ascii_digit() || *c == '.').collect())
        };
        let draft = GrantDraft {
            tool: grant.tool.clone(),
            times: u32::try_from(grant.times).unwrap_or(u32::MAX),
            currency: grant.currency,
            each: plain(grant.each_minor),
            total: plain(grant.total_minor),
            to: to.clone(),
        };
        one["words"] = json!(draft.words(language));
        one["recipients"] = json!(to);
    }
    for one in frame["situations"].as_array_mut().into_iter().flatten() {
        let body: BodyId = read(&one["matter"])?;
        let bytes = store::event::body(tx, body)?.unwrap_or_default();
        let texts: Texts = serde_json::from_slice(&bytes)
            .unwrap_or(Texts { matter: ERASED.to_owned(), taken_on_by: None });
        let stands = read(&one["stands"])?;
        one["words"] =
            json!(domain::situation::line(stands, texts.taken_on_by.as_deref(), language));
        one["matter"] = json!(texts.matter);
        one["taken_on_by"] = json!(texts.taken_on_by);
    }
    Ok(())
}

fn read<T: DeserializeOwned>(value: &Value) -> Result<T> {
    serde_json::from_value(value.clone()).map_err(|error| corrupt("a kept answer", error))
}
