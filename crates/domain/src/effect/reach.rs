//! Reach: the most that can ever happen for a duty without asking again (DEL-26).

use std::collections::BTreeMap;

use base::{Amount, Timestamp};
use jiff::tz::TimeZone;

use super::grant::times;
use crate::draft::{Draft, Wakeup};
use crate::words::{self, Language};

/// Wake-ups that are counted; beyond it the card says so.
const WAKEUPS_MAX: u32 = 10_000;

/// What a delegation allows at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// Money in all, by currency.
    pub money: Vec<Amount>,
    /// Actions, by tool.
    pub actions: BTreeMap<String, u32>,
    /// People who may be written to.
    pub people: Vec<String>,
    /// Wake-ups by its own schedules; `None`: without end, or too many to count.
    pub wakeups: Option<u32>,
    /// Until when.
    pub until: Option<Timestamp>,
}

/// Computes it from the grants and schedules of a draft.
pub fn reach(draft: &Draft, zone: &TimeZone, now: Timestamp) -> Reach {
    let mut money: BTreeMap<String, Amount> = BTreeMap::new();
    let mut actions: BTreeMap<String, u32> = BTreeMap::new();
    let mut people: Vec<String> = Vec::new();
    for grant in &draft.grants {
        if let Ok(Some(total)) = grant.limit(grant.total.as_deref()) {
            let sum =
                money.entry(total.currency.to_string()).or_insert(Amount { minor: 0, ..total });
            sum.minor = sum.minor.saturating_add(total.minor);
        }
        let count = actions.entry(grant.tool.clone()).or_default();
        *count = count.saturating_add(grant.times);
        for name in &grant.to {
            if !people.contains(name) {
                people.push(name.clone());
            }
        }
    }
    let until = draft.until_at().ok().flatten();
    let counted: Option<Vec<u32>> =
        draft.schedules.iter().map(|wakeup| wakeups(wakeup, zone, now, until)).collect();
    Reach {
        money: money.into_values().collect(),
        actions,
        people,
        wakeups: counted.map(|counts| counts.iter().sum()),
        until,
    }
}

fn wakeups(
    wakeup: &Wakeup,
    zone: &TimeZone,
    now: Timestamp,
    until: Option<Timestamp>,
) -> Option<u32> {
    let until = until?;
    let (mut count, mut at) = (0, now);
    loop {
        // A rule without a further slot has ended.
        let Ok(next) = wakeup.rule.next_after(zone, at) else { return Some(count) };
        if next > until {
            return Some(count);
        }
        (count, at) = (count + 1, next);
        if count > WAKEUPS_MAX {
            return None;
        }
    }
}

impl Reach {
    /// One sentence for the card.
    pub fn words(&self, zone: &TimeZone, language: Language) -> String {
        let mut parts: Vec<String> = self.money.iter().map(Amount::to_string).collect();
        parts.extend(
            self.actions.iter().map(|(tool, n)| {
                format!("{tool}{}{}", language.pick(" ", ""), times(*n, language))
            }),
        );
        match (self.people.len(), language) {
            (0, _) => {}
            (1, Language::En) => parts.push("1 person written to".into()),
            (n, Language::En) => parts.push(format!("{n} people written to")),
            (n, Language::Zh) => parts.push(format!("写信给 {n} 人")),
        }
        match (self.wakeups, language) {
            (Some(0), _) => {}
            (Some(1), Language::En) => parts.push("1 wake-up".into()),
            (Some(n), Language::En) => parts.push(format!("{n} wake-ups")),
            (Some(n), Language::Zh) => parts.push(format!("唤醒 {n} 次")),
            (None, _) => parts.push(language.pick("wake-ups without end", "唤醒不限次数").into()),
        }
        if parts.is_empty() {
            parts.push(language.pick("nothing outside", "对外什么都不做").into());
        }
        let until = self.until.map(|until| words::at(language, zone, until));
        let parts = parts.join(language.pick(", ", "，"));
        match (until, language) {
            (Some(until), Language::En) => format!("At most {parts}, until {until}"),
            (None, Language::En) => format!("At most {parts}, until you end it"),
            (Some(until), Language::Zh) => format!("最多：{parts}，到 {until} 为止"),
            (None, Language::Zh) => format!("最多：{parts}，到你结束为止"),
        }
    }
}
