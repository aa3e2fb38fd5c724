//! What fires when time has passed.

use base::Timestamp;
use jiff::tz::TimeZone;

use super::{Rule, ScheduleError};

/// What becomes of a slot that passed while nobody could fire it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// The newest fires late, once, and stands for the others.
    #[default]
    Once,
    /// The late slot is recorded and wakes nobody.
    Skip,
}

impl Missed {
    /// The stored word.
    pub const fn word(self) -> &'static str {
        match self {
            Missed::Once => "once",
            Missed::Skip => "skip",
        }
    }
    /// Reads the stored word.
    pub fn parse(word: &str) -> Option<Self> {
        [Missed::Once, Missed::Skip].into_iter().find(|missed| missed.word() == word)
    }
}

/// How a slot that came due is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The slot that fires: the newest that has passed.
    pub slot: Timestamp,
    /// Older slots that passed unfired and are covered by this one; at [`MISSED_MAX`] there may be
    /// more.
    pub missed: u32,
    /// Whether it fires so long after its time that the agent must say so.
    pub late: bool,
    /// The next slot, computed from the slot and not from the time it fires.
    pub next: Timestamp,
}

impl Due {
    /// Whether the slot wakes the agent under a policy. With [`Missed::Skip`] it does if it is
    /// fired at its own time, whatever was missed before it.
    pub fn wakes(&self, missed: Missed, now: Timestamp) -> bool {
        match missed {
            Missed::Once => true,
            Missed::Skip => self.slot.plus_ms(LATE_AFTER_MS) >= now,
        }
    }

    /// How many it stands for, for people: `3`, or `at least 1000`.
    pub fn missed_words(&self) -> String {
        let least = if self.missed >= MISSED_MAX { "at least " } else { "" };
        format!("{least}{}", self.missed)
    }
}

/// A slot is late when it fires more than this after its time.
pub const LATE_AFTER_MS: u64 = 60_000;

/// Missed slots are counted up to here, so that a year's outage of a rule that fires each minute
/// costs no more than a day's.
pub const MISSED_MAX: u32 = 1_000;

/// What fires at `now` for a schedule whose next slot is `next_slot`; `None` if it is not due.
///
/// After an outage all passed slots collapse to one catch-up, the newest.
pub fn due(
    rule: &Rule,
    zone: &TimeZone,
    next_slot: Timestamp,
    now: Timestamp,
) -> Result<Option<Due>, ScheduleError> {
    if now < next_slot {
        return Ok(None);
    }
    let (mut slot, mut missed) = (next_slot, 0_u32);
    let mut next = rule.next_after(zone, slot)?;
    while next <= now && missed < MISSED_MAX {
        slot = next;
        missed += 1;
        next = rule.next_after(zone, slot)?;
    }
    if next <= now {
        (slot, next) = newest(rule, zone, next, now)?;
    }
    let late = missed > 0 || slot.plus_ms(LATE_AFTER_MS) < now;
    Ok(Some(Due { slot, missed, late, next }))
}

/// The newest slot up to `now`, given one that is, with the slot after it. The time between is
/// halved at each look, some 45 times for a year.
fn newest(
    rule: &Rule,
    zone: &TimeZone,
    passed: Timestamp,
    now: Timestamp,
) -> Result<(Timestamp, Timestamp), ScheduleError> {
    let (mut slot, mut end) = (passed, now);
    let mut next = rule.next_after(zone, slot)?;
    while next <= now {
        let middle = Timestamp::from_micros(slot.micros().midpoint(end.micros()));
        let found = rule.next_after(zone, middle)?;
        if found <= now {
            slot = found;
            next = rule.next_after(zone, slot)?;
        } else {
            end = middle;
        }
    }
    Ok((slot, next))
}
