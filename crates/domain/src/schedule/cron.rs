//! Cron expressions of five fields, read as Vixie cron reads them.
//!
//! Fields: minute 0-59, hour 0-23, day of the month 1-31, month 1-12 or `jan` to `dec`, day of the
//! week 0-7 or `sun` to `sat`, 0 and 7 both Sunday. A field is a list, with commas, of `*`, a value
//! or a range `a-b`, each with a step `/n` if wanted; `a/n` counts from `a` to the field's end.
//! `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly` and `@annually` are read as
//! what they stand for. A day must fit both day fields if one of them begins with `*`, else either.
//!
//! Refused, as nobody can mean it or people mean different things by it: seconds and years, `?`,
//! `L`, `W`, `#`, `H`, `@reboot`, a range that runs backwards (but for one that ends on Sunday), a
//! step that is larger than its field, and an expression that never fires.
//!
//! The evaluator is our own, over the calendar and zones of jiff.

use super::ScheduleError;
use super::pattern::{Days, Pattern};

/// The longest expression, in bytes.
const TEXT_MAX: usize = 200;

/// A cron expression that fires.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cron {
    text: String,
    pattern: Pattern,
}

struct Field {
    name: &'static str,
    low: u8,
    high: u8,
    /// Names of the values, the first of them standing for `low` (months) or 0 (weekdays).
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", low: 0, high: 59, names: &[] },
    Field { name: "hour", low: 0, high: 23, names: &[] },
    Field { name: "day of the month", low: 1, high: 31, names: &[] },
    Field {
        name: "month",
        low: 1,
        high: 12,
        names: &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    },
    Field {
        name: "day of the week",
        low: 0,
        high: 7,
        names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    },
];

const SHORTHANDS: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

impl Cron {
    /// Reads an expression. Errors name the part that is wrong and what may stand there.
    pub fn read(text: &str) -> Result<Self, ScheduleError> {
        if text.len() > TEXT_MAX {
            return Err(ScheduleError::CronLength { max: TEXT_MAX });
        }
        let lower = text.trim_ascii().to_ascii_lowercase();
        let known = SHORTHANDS.iter().find(|(short, _)| *short == lower);
        let long = known.map_or(lower.as_str(), |(_, long)| long);
        let parts: Vec<&str> = long.split_ascii_whitespace().collect();
        let [minute, hour, month_day, month, weekday] = parts[..] else {
            return Err(ScheduleError::CronFields(parts.len()));
        };
        let [minute_field, hour_field, month_day_field, month_field, weekday_field] = &FIELDS;
        let weekdays = weekday_field.bits(weekday)?;
        let star = |field: &str| field.starts_with('*');
        let mut pattern = Pattern {
            minutes: minute_field.bits(minute)?,
            hours: hour_field.bits(hour)?,
            month_days: month_day_field.bits(month_day)?,
            months: month_field.bits(month)?,
            weekdays: (weekdays | weekdays >> 7) & Pattern::ALL.weekdays,
            days: if star(month_day) || star(weekday) { Days::Both } else { Days::Either },
        };
        let all = Pattern::ALL;
        let all_days = pattern.month_days == all.month_days || pattern.weekdays == all.weekdays;
        if pattern.days == Days::Either && all_days {
            // One form for the same days, so that equal patterns have equal slots and words.
            let Pattern { month_days, weekdays, days, .. } = all;
            pattern = Pattern { month_days, weekdays, days, ..pattern };
        }
        match pattern.fires() {
            true => Ok(Cron { text: parts.join(" "), pattern }),
            false => Err(ScheduleError::CronNever),
        }
    }

    /// The expression in its normal form: five fields in small letters, one space between them.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn pattern(&self) -> Pattern {
        self.pattern
    }
}

impl Field {
    fn bits(&self, list: &str) -> Result<u64, ScheduleError> {
        list.split(',').try_fold(0, |bits, part| Ok(bits | self.part(part)?))
    }

    fn part(&self, part: &str) -> Result<u64, ScheduleError> {
        let wrong = || ScheduleError::CronPart {
            part: part.chars().take(20).collect(),
            field: self.name,
            low: self.low,
            high: self.high,
        };
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(number(step).ok_or_else(wrong)?)),
            None => (part, None),
        };
        let value = |word: &str| self.value(word).ok_or_else(wrong);
        let (low, high) = match range.split_once('-') {
            Some((low, high)) => (value(low)?, value(high)?),
            None if range == "*" => (self.low, self.high),
            None if step.is_some() => (value(range)?, self.high),
            None => (value(range)?, value(range)?),
        };
        // A week that ends on Sunday, as in `mon-sun`.
        let high = if self.high == 7 && high == 0 && low > 0 { 7 } else { high };
        let step = step.unwrap_or(1);
        if step == 0 || step > self.high {
            return Err(wrong());
        }
        if low > high {
            return Err(ScheduleError::CronBackwards {
                part: part.chars().take(20).collect(),
                field: self.name,
            });
        }
        Ok((low..=high).step_by(usize::from(step)).fold(0, |bits, n| bits | 1 << n))
    }

    fn value(&self, word: &str) -> Option<u8> {
        let named = self.names.iter().position(|name| *name == word);
        let named = named.and_then(|n| u8::try_from(n).ok()).map(|n| n + self.low);
        named.or_else(|| number(word)).filter(|n| (self.low..=self.high).contains(n))
    }
}

fn number(word: &str) -> Option<u8> {
    let plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| word.parse().ok()).flatten()
}
