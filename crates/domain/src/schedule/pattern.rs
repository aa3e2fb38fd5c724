//! The minutes that a rule names, and the instants at which they fire.

use base::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::ScheduleError;

/// The longest that a pattern which fires at all rests, in years: the 29th of February on one
/// weekday, across a century that is no leap year.
const REST_YEARS_MAX: i16 = 41;

/// A set of wall-clock minutes. Bit *n* of a field stands for its value *n*; Sunday is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Pattern {
    /// Bits 0 to 59.
    pub minutes: u64,
    /// Bits 0 to 23.
    pub hours: u64,
    /// Bits 1 to 31.
    pub month_days: u64,
    /// Bits 1 to 12.
    pub months: u64,
    /// Bits 0 to 6.
    pub weekdays: u64,
    /// How days of the month and of the week go together.
    pub days: Days,
}

/// How the two ways to name a day go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Days {
    /// A day must be named by both.
    Both,
    /// Either is enough.
    Either,
    /// The day of the month alone counts; a month without it has its last day.
    OrLast,
}

impl Pattern {
    /// Every minute of every day.
    pub const ALL: Pattern = Pattern {
        minutes: (1 << 60) - 1,
        hours: (1 << 24) - 1,
        month_days: (1 << 32) - 2,
        months: (1 << 13) - 2,
        weekdays: (1 << 7) - 1,
        days: Days::Both,
    };

    /// Whether there is any date that it names, ever.
    ///
    /// In the 400 years after which the calendar repeats every date that exists falls on every
    /// weekday, so a day of the month that one of the months has is all it takes.
    pub fn fires(&self) -> bool {
        let days_of = |month: u64| match month {
            2 => 29,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let exists = |month: u64| self.month_days & ((1 << (days_of(month) + 1)) - 2) != 0;
        let any = (1..=12).any(|month| self.months >> month & 1 == 1 && exists(month));
        match self.days {
            Days::Both => any,
            Days::Either | Days::OrLast => true,
        }
    }

    fn names(&self, date: Date) -> bool {
        let month_day = has(self.month_days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        match self.days {
            Days::Both => month_day && weekday,
            Days::Either => month_day || weekday,
            Days::OrLast => {
                let later_ones = self.month_days >> date.day() > 1;
                month_day || (date.day() == date.days_in_month() && later_ones)
            }
        }
    }

    /// The first named time of a day that is not before `hour`:`minute`.
    fn time_from(&self, hour: i8, minute: i8) -> Option<(i8, i8)> {
        let this_hour = lowest(from_bit(self.minutes, minute));
        match this_hour.filter(|_| has(self.hours, hour)) {
            Some(minute) => Some((hour, minute)),
            None => Some((lowest(from_bit(self.hours, hour + 1))?, lowest(self.minutes)?)),
        }
    }

    /// The first named wall-clock minute that is not before `from`.
    fn first_from(&self, from: DateTime) -> Option<DateTime> {
        let mut at = from;
        let last_year = from.year().saturating_add(REST_YEARS_MAX);
        while at.year() <= last_year {
            let date = at.date();
            if !has(self.months, date.month()) {
                at = date.last_of_month().tomorrow().ok()?.at(0, 0, 0, 0);
                continue;
            }
            let time = self.time_from(at.hour(), at.minute()).filter(|_| self.names(date));
            match time {
                Some((hour, minute)) => return Some(date.at(hour, minute, 0, 0)),
                None => at = date.tomorrow().ok()?.at(0, 0, 0, 0),
            }
        }
        None
    }

    /// The first slot strictly after an instant.
    ///
    /// Named minutes that a change skips are moved past others, so the one that comes first on the
    /// clock need not fire first: the walk goes on to the first minute that exists and takes the
    /// earlier.
    pub fn next_after(
        &self,
        zone: &TimeZone,
        after: Timestamp,
    ) -> Result<Timestamp, ScheduleError> {
        let mut moved: Option<Timestamp> = None;
        let mut from = earliest_pending(zone, after)?;
        while let Some(named) = self.first_from(from) {
            let (slot, skipped) = instant(zone, named)?;
            if slot > after {
                let first = moved.map_or(slot, |moved| moved.min(slot));
                if !skipped {
                    return Ok(first);
                }
                moved = Some(first);
            }
            from = named.checked_add(jiff::Span::new().minutes(1)).map_err(|_| range())?;
        }
        moved.ok_or(ScheduleError::Range)
    }
}

fn range() -> ScheduleError {
    ScheduleError::Range
}

fn has(bits: u64, n: i8) -> bool {
    from_bit(bits, n) & 1 << n == 1 << n
}

/// The bits from `n` upward.
fn from_bit(bits: u64, n: i8) -> u64 {
    bits & u64::MAX << n
}

fn lowest(bits: u64) -> Option<i8> {
    i8::try_from(bits.trailing_zeros()).ok().filter(|n| *n < 64)
}

/// A wall-clock minute before which every one has fired by `after`. Minutes that a change of the
/// last day skipped may still be to come, so it is read off the clock as it was before that change.
fn earliest_pending(zone: &TimeZone, after: Timestamp) -> Result<DateTime, ScheduleError> {
    let at = jiff::Timestamp::from_microsecond(after.micros()).map_err(|_| range())?;
    let day_before = at.checked_sub(jiff::SignedDuration::from_hours(24)).map_err(|_| range())?;
    let offset = zone.to_offset(at).min(zone.to_offset(day_before));
    let local = offset.to_datetime(at);
    Ok(local.date().at(local.hour(), local.minute(), 0, 0))
}

/// When a wall-clock minute fires, and whether the clock skips it.
fn instant(zone: &TimeZone, named: DateTime) -> Result<(Timestamp, bool), ScheduleError> {
    let ambiguous = zone.to_ambiguous_timestamp(named);
    let skipped = matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. });
    // "Compatible": a skipped time moves later by the gap, a repeated one takes the first.
    let at = ambiguous.compatible().map_err(|_| range())?;
    Ok((Timestamp::from_micros(at.as_microsecond()), skipped))
}
