//! Times that repeat in the owner's zone.
//!
//! A slot is a wall-clock time in that zone. A local time that a change to summer time skips fires as
//! much later as the clock jumped; one that the change back repeats fires once, the first time.

use base::Timestamp;
use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;

/// Which days a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Every day.
    Daily,
    /// Monday to Friday.
    Weekdays,
    /// One day of the week.
    Weekly,
}

/// A repeating wall-clock time, as the model drafts it and the user confirms it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which days.
    pub kind: Kind,
    /// The time of day, as `08:00`.
    pub at: String,
    /// The day, for a weekly rule only, as `friday`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekday: Option<String>,
}

/// Why a rule or zone is no schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No such time of day.
    #[error("\"{0}\" is no time of day; write it as 08:00")]
    Time(String),
    /// A weekly rule without a day that exists.
    #[error("a weekly schedule needs a weekday such as \"friday\"")]
    Weekday,
    /// A day where none belongs.
    #[error("only a weekly schedule has a weekday; leave it out")]
    WeekdayUnwanted,
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
    fn parts(&self) -> Result<(Time, Option<Weekday>), ScheduleError> {
        let bad_time = || ScheduleError::Time(self.at.chars().take(20).collect());
        let shaped = self.at.len() == 5 && self.at.as_bytes()[2] == b':';
        let time: Time =
            if shaped { self.at.parse().map_err(|_| bad_time())? } else { return Err(bad_time()) };
        let day = match (self.kind, self.weekday.as_deref()) {
            (Kind::Weekly, Some(word)) => {
                let found = DAYS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
                Some(found.ok_or(ScheduleError::Weekday)?.1)
            }
            (Kind::Weekly, None) => return Err(ScheduleError::Weekday),
            (Kind::Daily | Kind::Weekdays, None) => None,
            (Kind::Daily | Kind::Weekdays, Some(_)) => return Err(ScheduleError::WeekdayUnwanted),
        };
        Ok((time, day))
    }

    /// Checks the rule by itself.
    pub fn check(&self) -> Result<(), ScheduleError> {
        self.parts().map(|_| ())
    }

    /// The first slot strictly after an instant.
    pub fn next_after(
        &self,
        zone: &TimeZone,
        after: Timestamp,
    ) -> Result<Timestamp, ScheduleError> {
        let (time, day) = self.parts()?;
        let mut date = local_date(zone, after)?;
        // Eight days hold every weekday once more than needed, for a slot earlier on the same day.
        for _ in 0..9 {
            let named = match self.kind {
                Kind::Daily => true,
                Kind::Weekdays => !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday),
                Kind::Weekly => Some(date.weekday()) == day,
            };
            if named {
                let slot = instant(zone, date, time)?;
                if slot > after {
                    return Ok(slot);
                }
            }
            date = date.tomorrow().map_err(|_| ScheduleError::Range)?;
        }
        Err(ScheduleError::Range)
    }

    /// The rule in plain words, for cards and lists.
    pub fn words(&self) -> String {
        match self.kind {
            Kind::Daily => format!("every day at {}", self.at),
            Kind::Weekdays => format!("weekdays at {}", self.at),
            Kind::Weekly => {
                let day = self.weekday.as_deref().unwrap_or("week").to_ascii_lowercase();
                let mut letters = day.chars();
                let first = letters.next().map(|c| c.to_ascii_uppercase()).unwrap_or_default();
                format!("every {first}{} at {}", letters.as_str(), self.at)
            }
        }
    }
}

fn local_date(zone: &TimeZone, at: Timestamp) -> Result<Date, ScheduleError> {
    let at = jiff::Timestamp::from_microsecond(at.micros()).map_err(|_| ScheduleError::Range)?;
    Ok(zone.to_datetime(at).date())
}

fn instant(zone: &TimeZone, date: Date, time: Time) -> Result<Timestamp, ScheduleError> {
    // "Compatible": a skipped time moves later by the gap, a repeated one takes the first.
    let at = zone
        .to_ambiguous_timestamp(date.to_datetime(time))
        .compatible()
        .map_err(|_| ScheduleError::Range)?;
    Ok(Timestamp::from_micros(at.as_microsecond()))
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

/// How a slot that came due is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The slot that fires: the newest that has passed.
    pub slot: Timestamp,
    /// Older slots that passed unfired and are covered by this one.
    pub missed: u32,
    /// Whether it fires so long after its time that the agent must say so.
    pub late: bool,
    /// The next slot, computed from the slot and not from the time it fires.
    pub next: Timestamp,
}

/// A slot is late when it fires more than this after its time.
pub const LATE_AFTER_MS: u64 = 60_000;

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
    while next <= now {
        slot = next;
        missed = missed.saturating_add(1);
        next = rule.next_after(zone, slot)?;
    }
    let late = missed > 0 || slot.plus_ms(LATE_AFTER_MS) < now;
    Ok(Some(Due { slot, missed, late, next }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }
    fn rule(kind: Kind, at: &str, weekday: Option<&str>) -> Rule {
        Rule { kind, at: at.into(), weekday: weekday.map(Into::into) }
    }

    #[test]
    fn slots_follow_the_owners_wall_clock() {
        let hong_kong = zone("Asia/Hong_Kong").unwrap();
        let next = |r: &Rule, t| r.next_after(&hong_kong, at(t)).unwrap().to_string();
        let daily = rule(Kind::Daily, "08:00", None);
        assert_eq!(next(&daily, "2027-02-28T23:59:59Z"), "2027-03-01T00:00:00.000000Z");
        assert_eq!(next(&daily, "2027-03-01T00:00:00Z"), "2027-03-02T00:00:00.000000Z");
        let weekdays = rule(Kind::Weekdays, "08:00", None);
        assert_eq!(next(&weekdays, "2027-03-05T00:00:00Z"), "2027-03-08T00:00:00.000000Z");
        let friday = rule(Kind::Weekly, "17:30", Some("Friday"));
        assert_eq!(next(&friday, "2027-03-05T09:30:00Z"), "2027-03-12T09:30:00.000000Z");
        assert_eq!(friday.words(), "every Friday at 17:30");
    }

    #[test]
    fn a_skipped_time_fires_later_and_a_repeated_one_once() {
        let berlin = zone("Europe/Berlin").unwrap();
        let daily = rule(Kind::Daily, "02:30", None);
        let next = |t| daily.next_after(&berlin, at(t)).unwrap().to_string();
        // 28 March 2027: 02:00 jumps to 03:00, so 02:30 is 03:30 summer time.
        assert_eq!(next("2027-03-27T12:00:00Z"), "2027-03-28T01:30:00.000000Z");
        // 31 October 2027: 02:30 happens at 00:30 and 01:30 UTC; the first counts, the second does not.
        assert_eq!(next("2027-10-30T12:00:00Z"), "2027-10-31T00:30:00.000000Z");
        assert_eq!(next("2027-10-31T00:30:00Z"), "2027-11-01T01:30:00.000000Z");
    }

    #[test]
    fn an_outage_collapses_to_one_late_catch_up() {
        let utc = zone("UTC").unwrap();
        let daily = rule(Kind::Daily, "08:00", None);
        let check = |now: &str| due(&daily, &utc, at("2027-03-01T08:00:00Z"), at(now)).unwrap();
        assert_eq!(check("2027-03-01T07:59:59Z"), None);
        let on_time = Due {
            slot: at("2027-03-01T08:00:00Z"),
            missed: 0,
            late: false,
            next: at("2027-03-02T08:00:00Z"),
        };
        assert_eq!(check("2027-03-01T08:00:01Z"), Some(on_time));
        let caught_up = Due {
            slot: at("2027-03-04T08:00:00Z"),
            missed: 3,
            late: true,
            next: at("2027-03-05T08:00:00Z"),
        };
        assert_eq!(check("2027-03-04T09:00:00Z"), Some(caught_up));
        // It stands for missed ones, so it is late even right at its own time.
        assert_eq!(check("2027-03-04T08:00:00Z"), Some(caught_up));
    }

    #[test]
    fn bad_rules_say_what_to_write() {
        let says = |r: Rule| r.check().map_err(|e| e.to_string());
        assert_eq!(
            says(rule(Kind::Daily, "8am", None)),
            Err("\"8am\" is no time of day; write it as 08:00".into())
        );
        assert_eq!(
            says(rule(Kind::Weekly, "08:00", None)),
            Err("a weekly schedule needs a weekday such as \"friday\"".into())
        );
        assert!(says(rule(Kind::Daily, "08:00", Some("friday"))).is_err());
        assert!(zone("Mars/Olympus").is_err());
    }
}
