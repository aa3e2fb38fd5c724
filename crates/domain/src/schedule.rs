//! Times that repeat in the owner's zone (SKL-03).
//!
//! A rule names wall-clock minutes, in the owner's zone, and each of them fires once:
//!
//! - A minute that the change back repeats fires the first time.
//! - A minute that a change to summer time skips fires as much later as the clock jumped.
//! - Two minutes that so fall on the same instant are one slot.
//!
//! That holds for every rule, also for one that fires many times a day. `*/30 * * * *` at a change
//! of an hour therefore loses nothing in spring (02:30 would fire at 03:30, which is a slot anyway)
//! and rests for the hour that comes twice in autumn. Where the clock jumps by half an hour, as on
//! Lord Howe Island, `*/20 * * * *` fires 02:00 and 02:20 at 02:30 and 02:50, next to 02:40.
//!
//! A month without the day that a monthly rule names has its last day instead. A cron expression is
//! taken at its word: `0 9 31 * *` fires in seven months.

mod cron;
mod due;
mod pattern;
mod plain;

use base::Timestamp;
use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;

pub use cron::Cron;
pub use due::{Due, LATE_AFTER_MS, MISSED_MAX, Missed, due};
use pattern::{Days, Pattern};

/// What sort of rule it is, as it is written in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Every day.
    Daily,
    /// Monday to Friday.
    Weekdays,
    /// One day of the week.
    Weekly,
    /// One day of the month.
    Monthly,
    /// A cron expression.
    Cron,
}

/// A repeating wall-clock time, as the model drafts it and the user confirms it.
///
/// As JSON `{"kind":"weekly","at":"08:00","weekday":"friday"}`, or with `day` for a monthly rule,
/// or `{"kind":"cron","cron":"0 8 * * 1-5"}`. A rule that exists fires.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "RuleForm", into = "RuleForm")]
pub enum Rule {
    /// Every day.
    Daily {
        /// The time of day.
        at: Time,
    },
    /// Monday to Friday.
    Weekdays {
        /// The time of day.
        at: Time,
    },
    /// One day of the week.
    Weekly {
        /// The time of day.
        at: Time,
        /// Which day.
        weekday: Weekday,
    },
    /// One day of the month; a month without it has its last day.
    Monthly {
        /// The time of day.
        at: Time,
        /// Which day, 1 to 31.
        day: i8,
    },
    /// A cron expression.
    Cron(Cron),
}

/// A rule as it is written in JSON.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleForm {
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekday: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
}

/// Why a rule or zone is no schedule. The texts are for whoever wrote it, a person or the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No such time of day.
    #[error("\"{0}\" is no time of day; write it as 08:00")]
    Time(String),
    /// No such day of the week.
    #[error("\"{0}\" is no day of the week; write it as friday")]
    Weekday(String),
    /// No such day of the month.
    #[error("{0} is no day of a month; write 1 to 31")]
    Day(i64),
    /// A field that this kind of rule needs.
    #[error("a {kind} schedule needs a {field} such as {example}")]
    Needed {
        /// The kind, as in JSON.
        kind: &'static str,
        /// The field.
        field: &'static str,
        /// What may stand there.
        example: &'static str,
    },
    /// A field that another kind of rule has.
    #[error("a {kind} schedule has no {field}; leave it out")]
    Unwanted {
        /// The kind, as in JSON.
        kind: &'static str,
        /// The field.
        field: &'static str,
    },
    /// Plain words that say no rule.
    #[error(
        "\"{0}\" is no schedule; write it as \"daily 07:30\", \"weekdays 8:00\", \
         \"every friday 9:00\", \"monthly 1 09:00\", \"every 30 minutes\", \"每天 08:00\", \"工作日 8:00\", \"每周五 9:00\", \
         \"每月1日 9:00\" or as five cron fields such as \"0 8 * * 1-5\""
    )]
    Words(String),
    /// Repeats that do not divide an hour or a day.
    #[error(
        "every {0} does not come out even; write a number that divides {1}, or name the times \
         in cron"
    )]
    Uneven(String, &'static str),
    /// A cron expression that is too long.
    #[error("a cron schedule has at most {max} characters; split it into several schedules")]
    CronLength {
        /// The most it may have.
        max: usize,
    },
    /// Other than five fields.
    #[error(
        "a cron schedule has five fields, minute hour day-of-month month day-of-week, and not {0}; \
         seconds and years have none"
    )]
    CronFields(usize),
    /// A part of a field that cannot be read.
    #[error(
        "\"{part}\" is no {field} of a cron schedule; write numbers from {low} to {high}, \
         ranges as {low}-{high}, steps up to {high} as */2, and commas between them"
    )]
    CronPart {
        /// The part.
        part: String,
        /// The field.
        field: &'static str,
        /// Its least value.
        low: u8,
        /// Its greatest value, and greatest step.
        high: u8,
    },
    /// A range from a greater to a smaller value.
    #[error(
        "\"{part}\" runs backwards in the {field} of a cron schedule; write it as two ranges, as \
         22-23,0-2"
    )]
    CronBackwards {
        /// The part.
        part: String,
        /// The field.
        field: &'static str,
    },
    /// An expression without a date.
    #[error("this cron schedule never fires: no month that it names has such a day")]
    CronNever,
    /// No such zone.
    #[error("\"{0}\" is no time zone; write it as Asia/Hong_Kong")]
    Zone(String),
    /// A time outside the calendar's range.
    #[error("there is no such time in the calendar")]
    Range,
}

const DAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];

/// Finds a time zone by its IANA name in the tables that the program carries.
pub fn zone(name: &str) -> Result<TimeZone, ScheduleError> {
    TimeZone::get(name).map_err(|_| ScheduleError::Zone(name.chars().take(60).collect()))
}

impl Rule {
    /// The first slot strictly after an instant.
    pub fn next_after(
        &self,
        zone: &TimeZone,
        after: Timestamp,
    ) -> Result<Timestamp, ScheduleError> {
        self.pattern().next_after(zone, after)
    }

    fn pattern(&self) -> Pattern {
        let at = |time: &Time| Pattern {
            minutes: 1 << time.minute(),
            hours: 1 << time.hour(),
            ..Pattern::ALL
        };
        match self {
            Rule::Daily { at: time } => at(time),
            Rule::Weekdays { at: time } => Pattern { weekdays: 0b011_1110, ..at(time) },
            Rule::Weekly { at: time, weekday } => {
                Pattern { weekdays: 1 << weekday.to_sunday_zero_offset(), ..at(time) }
            }
            Rule::Monthly { at: time, day } => {
                let days = if *day > 28 { Days::OrLast } else { Days::Both };
                Pattern { month_days: 1 << day, days, ..at(time) }
            }
            Rule::Cron(cron) => cron.pattern(),
        }
    }
}

impl TryFrom<RuleForm> for Rule {
    type Error = ScheduleError;

    fn try_from(form: RuleForm) -> Result<Self, ScheduleError> {
        let kind = form.kind.word();
        let allowed = match form.kind {
            Kind::Daily | Kind::Weekdays => [true, false, false, false],
            Kind::Weekly => [true, true, false, false],
            Kind::Monthly => [true, false, true, false],
            Kind::Cron => [false, false, false, true],
        };
        let given = [
            ("at", form.at.is_some()),
            ("weekday", form.weekday.is_some()),
            ("day", form.day.is_some()),
            ("cron", form.cron.is_some()),
        ];
        for ((field, given), allowed) in given.into_iter().zip(allowed) {
            if given && !allowed {
                return Err(ScheduleError::Unwanted { kind, field });
            }
        }
        let needed = |field, example| ScheduleError::Needed { kind, field, example };
        let at = || time(form.at.as_deref().ok_or(needed("time \"at\"", "\"08:00\""))?);
        match form.kind {
            Kind::Daily => Ok(Rule::Daily { at: at()? }),
            Kind::Weekdays => Ok(Rule::Weekdays { at: at()? }),
            Kind::Weekly => {
                let word = form.weekday.as_deref().ok_or(needed("weekday", "\"friday\""))?;
                let weekday = weekday(word)
                    .ok_or_else(|| ScheduleError::Weekday(word.chars().take(20).collect()))?;
                Ok(Rule::Weekly { at: at()?, weekday })
            }
            Kind::Monthly => {
                let day = form.day.ok_or(needed("day", "1"))?;
                Ok(Rule::Monthly { at: at()?, day: month_day(day)? })
            }
            Kind::Cron => {
                let text =
                    form.cron.as_deref().ok_or(needed("text \"cron\"", "\"0 8 * * 1-5\""))?;
                Cron::read(text).map(Rule::Cron)
            }
        }
    }
}

impl From<Rule> for RuleForm {
    fn from(rule: Rule) -> Self {
        let form = |kind, at: Option<Time>| RuleForm {
            kind,
            at: at.map(hours_minutes),
            weekday: None,
            day: None,
            cron: None,
        };
        match rule {
            Rule::Daily { at } => form(Kind::Daily, Some(at)),
            Rule::Weekdays { at } => form(Kind::Weekdays, Some(at)),
            Rule::Weekly { at, weekday } => {
                let weekday = Some(weekday_word(weekday).to_owned());
                RuleForm { weekday, ..form(Kind::Weekly, Some(at)) }
            }
            Rule::Monthly { at, day } => {
                RuleForm { day: Some(day.into()), ..form(Kind::Monthly, Some(at)) }
            }
            Rule::Cron(cron) => {
                RuleForm { cron: Some(cron.text().to_owned()), ..form(Kind::Cron, None) }
            }
        }
    }
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Daily => "daily",
            Kind::Weekdays => "weekdays",
            Kind::Weekly => "weekly",
            Kind::Monthly => "monthly",
            Kind::Cron => "cron",
        }
    }
}

/// A time of day as `08:00`; the first zero may be left out.
fn time(text: &str) -> Result<Time, ScheduleError> {
    let number = |digits: &str, most: usize| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        (plain && (1..=most).contains(&digits.len())).then(|| digits.parse::<i8>().ok()).flatten()
    };
    let read = || {
        let (hour, minute) = text.split_once(':')?;
        let minute = number(minute, 2).filter(|_| minute.len() == 2)?;
        Time::new(number(hour, 2)?, minute, 0, 0).ok()
    };
    read().ok_or_else(|| ScheduleError::Time(text.chars().take(20).collect()))
}

fn hours_minutes(at: Time) -> String {
    format!("{:02}:{:02}", at.hour(), at.minute())
}

fn weekday(word: &str) -> Option<Weekday> {
    let found = DAYS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
    found.map(|(_, weekday)| *weekday)
}

fn weekday_word(weekday: Weekday) -> &'static str {
    let found = DAYS.iter().find(|(_, day)| *day == weekday);
    found.map_or("sunday", |(name, _)| name)
}

fn month_day(day: i64) -> Result<i8, ScheduleError> {
    i8::try_from(day).ok().filter(|day| (1..=31).contains(day)).ok_or(ScheduleError::Day(day))
}

/// An instant as people of that zone write it: `Monday 2027-03-01 08:00`.
pub fn local_words(zone: &TimeZone, at: Timestamp) -> String {
    match jiff::Timestamp::from_microsecond(at.micros()) {
        Ok(at) => zone.to_datetime(at).strftime("%A %Y-%m-%d %H:%M").to_string(),
        Err(_) => at.to_string(),
    }
}

/// The person's calendar month of an instant, as `2027-03`: the key of monthly caps.
pub fn month(zone: &TimeZone, at: Timestamp) -> String {
    match jiff::Timestamp::from_microsecond(at.micros()) {
        Ok(at) => zone.to_datetime(at).strftime("%Y-%m").to_string(),
        Err(_) => "0000-00".into(),
    }
}

#[cfg(test)]
mod tests;
