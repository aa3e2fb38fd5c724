//! What an entry must keep to beyond its form, so that a mistake shows when the manifest is read and not when
//! something was sent.

use std::collections::BTreeMap;

use base::Currency;
use domain::effect::Effect;

use super::{ManifestError, OneOf, Reconcile, ToolRule, value_error};
use crate::objects::{STEPS_MAX, steps};

/// Tools that one manifest may name.
const TOOLS_MAX: usize = 200;
/// Bytes of one tool's description; it stands in every prompt.
const DESCRIPTION_BYTES_MAX: usize = 400;
/// The longest time that a vendor promises.
const DURATION_MS_MAX: u64 = 366 * 24 * 60 * 60 * 1_000;

type Checked = Result<(), ManifestError>;

/// Checks one entry by itself; every complaint carries the whole path of the key.
pub(super) fn check_rule(path: &str, rule: &ToolRule) -> Checked {
    let at = |key: &str| format!("{path}.{key}");
    if rule.description.len() > DESCRIPTION_BYTES_MAX {
        let reason =
            format!("longer than {DESCRIPTION_BYTES_MAX} bytes; it stands in every prompt");
        return Err(value_error(&at("description"), reason));
    }
    for (kind, places) in &rule.issues {
        steps(places).map_err(|reason| value_error(&at(&format!("issues.{kind}")), reason))?;
    }
    for (kind, place) in &rule.expires {
        let key = at(&format!("expires.{kind}"));
        if !rule.issues.contains_key(kind) {
            return Err(value_error(
                &key,
                format!("there is no `{kind}` in `issues`; add its path"),
            ));
        }
        plain_path(&key, place)?;
    }
    for (key, arguments) in [("recipients", &rule.recipients), ("once_per", &rule.once_per)] {
        if arguments.iter().any(String::is_empty) {
            return Err(value_error(&at(key), "must be names of arguments".to_owned()));
        }
    }
    rule.card.iter().try_for_each(|shown| plain_path(&at("card"), shown))?;
    rule.receipt.iter().try_for_each(|receipt| plain_path(&at("receipt"), receipt))?;
    rule.refused.iter().try_for_each(|refused| one_of(&at("refused"), refused))?;
    amount(&at, rule)?;
    operation(&at, rule)
}

/// What limits are checked against comes from objects that we issued, never from the model.
fn amount(at: &impl Fn(&str) -> String, rule: &ToolRule) -> Checked {
    let of_object = |key: &str, place: &str| {
        plain_path(&at(key), place)?;
        match place.split_once('.') {
            Some((argument, _)) if rule.objects.contains_key(argument) => Ok(()),
            Some(_) | None => {
                let reason = format!(
                    "`{place}` must begin with an argument of `objects` and go on into the snapshot, \
                     as in quote.total: only an issued object is believed"
                );
                Err(value_error(&at(key), reason))
            }
        }
    };
    match (&rule.amount, &rule.currency) {
        (None, None) => Ok(()),
        (Some(amount), Some(currency)) => {
            of_object("amount", amount)?;
            if Currency::parse(currency).is_ok() {
                return Ok(());
            }
            of_object("currency", currency)
        }
        (Some(_), None) => {
            let reason = "missing beside `amount`: say where the currency stands, as in \
                          quote.currency, or its code, as in EUR";
            Err(value_error(&at("currency"), reason.to_owned()))
        }
        (None, Some(_)) => {
            let reason = "missing beside `currency`: say where the amount stands";
            Err(value_error(&at("amount"), reason.to_owned()))
        }
    }
}

/// An operation is found again only by an id that went out with it.
fn operation(at: &impl Fn(&str) -> String, rule: &ToolRule) -> Checked {
    let needs_id = |key: &str| {
        let reason = "needs `operation`: without the argument in which our operation id travels the \
                      server cannot know it again";
        value_error(&at(key), reason.to_owned())
    };
    if let Some(operation) = &rule.operation
        && (operation.is_empty() || rule.objects.contains_key(operation))
    {
        let reason = "must be an argument of its own, and none of `objects`: the id in it is ours";
        return Err(value_error(&at("operation"), reason.to_owned()));
    }
    if let Some(idempotent) = &rule.idempotent {
        duration(&at("idempotent.window"), &idempotent.window)?;
        if rule.operation.is_none() {
            return Err(needs_id("idempotent"));
        }
    }
    let Some(Reconcile { settled_after, receipt, ended, .. }) = &rule.reconcile else {
        return Ok(());
    };
    settled_after.iter().try_for_each(|text| duration(&at("reconcile.settled_after"), text))?;
    receipt.iter().try_for_each(|receipt| plain_path(&at("reconcile.receipt"), receipt))?;
    ended.iter().try_for_each(|ended| one_of(&at("reconcile.ended"), ended))?;
    if rule.operation.is_none() {
        return Err(needs_id("reconcile"));
    }
    if receipt.is_none() && rule.receipt.is_none() {
        let reason = "missing: without the path of the receipt nothing can be found";
        return Err(value_error(&at("reconcile.receipt"), reason.to_owned()));
    }
    Ok(())
}

/// An entry may only point at tools that the manifest says something about.
pub(super) fn check_references(tools: &BTreeMap<String, ToolRule>) -> Checked {
    if tools.len() > TOOLS_MAX {
        return Err(value_error("tool", format!("more than {TOOLS_MAX} entries")));
    }
    for (name, rule) in tools {
        if let Some(undo) = rule.undo.as_ref().filter(|undo| !tools.contains_key(*undo)) {
            let reason = format!("there is no [tool.{undo}]; add its entry");
            return Err(value_error(&format!("tool.{name}.undo"), reason));
        }
        let Some(reconcile) = &rule.reconcile else { continue };
        if tools.get(&reconcile.tool).is_none_or(|found| found.effect != Effect::Read) {
            let reason =
                format!("[tool.{}] must be an entry with effect = \"read\"", reconcile.tool);
            return Err(value_error(&format!("tool.{name}.reconcile.tool"), reason));
        }
    }
    Ok(())
}

/// A path to one value: names, and numbers of items, with dots between.
fn plain_path(key: &str, path: &str) -> Checked {
    let steps = path.split('.').count();
    let plain = |step: &str| !step.is_empty() && !step.contains(['[', ']']);
    if steps <= STEPS_MAX && path.split('.').all(plain) {
        return Ok(());
    }
    let reason = format!(
        "`{path}` is no path to one value: names, or numbers of items from 0, with dots between, as in \
         booking.rooms.0.id; at most {STEPS_MAX} steps"
    );
    Err(value_error(key, reason))
}

fn one_of(key: &str, wanted: &OneOf) -> Checked {
    plain_path(&format!("{key}.path"), &wanted.path)?;
    if wanted.values.is_empty() {
        let reason = "must name at least one value".to_owned();
        return Err(value_error(&format!("{key}.values"), reason));
    }
    Ok(())
}

fn duration(key: &str, text: &str) -> Checked {
    duration_ms(text).map(|_ms| ()).map_err(|reason| value_error(key, reason))
}

/// Reads a length of time such as `30m`, in milliseconds.
///
/// # Errors
/// A clause that says what is wrong and how one looks.
pub(crate) fn duration_ms(text: &str) -> Result<u64, String> {
    let unit_ms = |unit: char| match unit {
        's' => Some(1_000),
        'm' => Some(60_000),
        'h' => Some(3_600_000),
        'd' => Some(86_400_000),
        _ => None,
    };
    let read = || {
        let unit_ms: u64 = unit_ms(text.chars().next_back()?)?;
        let number = &text[..text.len() - 1];
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = number.parse().ok().filter(|_| digits)?;
        number.checked_mul(unit_ms).filter(|ms| (1..=DURATION_MS_MAX).contains(ms))
    };
    read().ok_or_else(|| {
        format!(
            "`{text}` is no length of time: a whole number and s, m, h or d, as in 30m, from 1s to 366d"
        )
    })
}
