//! What should happen in a year: routines as days and times, and their instants by jiff alone.

use std::collections::VecDeque;

use base::{ScheduleId, SessionId, Timestamp};
use jiff::ToSpan as _;
use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;

/// A zone in a year of its, with a minute that its clock skips there and one that comes twice.
pub(super) struct Place {
    pub(super) zone: &'static str,
    pub(super) year: i16,
    pub(super) skipped: (i8, i8),
    pub(super) repeated: (i8, i8),
    /// The months of its two changes, for cron.
    pub(super) months: [i8; 2],
    /// How many slots of this year's rules the clock skips or repeats.
    pub(super) odd: usize,
}

pub(super) const HONG_KONG: Place = Place {
    zone: "Asia/Hong_Kong",
    year: 2027,
    skipped: (2, 30),
    repeated: (1, 30),
    months: [3, 10],
    odd: 0,
};
/// The last year in which Hong Kong had summer time.
pub(super) const HONG_KONG_1979: Place =
    Place { year: 1979, skipped: (3, 45), repeated: (2, 45), months: [5, 10], odd: 2, ..HONG_KONG };
pub(super) const NEW_YORK: Place = Place {
    zone: "America/New_York",
    year: 2027,
    skipped: (2, 30),
    repeated: (1, 30),
    months: [3, 11],
    odd: 2,
};
pub(super) const BERLIN: Place = Place {
    zone: "Europe/Berlin",
    year: 2027,
    skipped: (2, 15),
    repeated: (2, 45),
    months: [3, 10],
    // Both minutes are skipped, and both come twice.
    odd: 4,
};
/// Half an hour is skipped, and half an hour comes twice.
pub(super) const LORD_HOWE: Place = Place {
    zone: "Australia/Lord_Howe",
    year: 2027,
    skipped: (2, 15),
    repeated: (1, 45),
    months: [4, 10],
    odd: 2,
};
/// The last year but one with summer time, which began at midnight.
pub(super) const SAO_PAULO: Place = Place {
    zone: "America/Sao_Paulo",
    year: 2018,
    skipped: (0, 30),
    repeated: (23, 30),
    months: [2, 11],
    odd: 2,
};

/// One routine: how the user asks for it, and on which days and at which times that is.
pub(super) struct Routine {
    pub(super) name: &'static str,
    pub(super) when: String,
    pub(super) skip: bool,
    pub(super) check: bool,
    pub(super) days: Box<dyn Fn(Date) -> bool>,
    pub(super) times: Vec<(i8, i8)>,
    /// Its slots from its confirmation on, none of which has come.
    pub(super) slots: VecDeque<Timestamp>,
    pub(super) lane: Option<SessionId>,
    pub(super) schedule: Option<ScheduleId>,
}

impl Routine {
    pub(super) fn new(
        name: &'static str,
        when: String,
        days: impl Fn(Date) -> bool + 'static,
    ) -> Self {
        let (skip, check, slots) = (false, false, VecDeque::new());
        let (days, times) = (Box::new(days), Vec::new());
        Routine { name, when, skip, check, days, times, slots, lane: None, schedule: None }
    }

    pub(super) fn at(self, times: &[(i8, i8)]) -> Self {
        Routine { times: times.to_vec(), ..self }
    }

    pub(super) fn words(&self) -> String {
        let Routine { name, when, .. } = self;
        match (self.check, self.skip) {
            (true, _) => format!("watch {name}, at {when};"),
            (false, true) => format!("routine {name}, skip, at {when};"),
            (false, false) => format!("routine {name}, once, at {when};"),
        }
    }
}

/// Ten routines of all kinds. `dense`: those of some days are of every day.
pub(super) fn routines(place: &Place, dense: bool) -> Vec<Routine> {
    let [first, second] = place.months;
    let weekend = |day: Date| matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday);
    let of_month = move |day: Date| day.month() == first || day.month() == second;
    let in_months = move |day: Date| dense || (of_month(day) && weekend(day));
    let months = if dense { "* *".into() } else { format!("{first},{second} sat,sun") };
    let on = move |weekday: Weekday| move |day: Date| dense || day.weekday() == weekday;
    let named = |text: &str| if dense { "daily".into() } else { text.to_owned() };
    let workday = move |day: Date| !weekend(day);
    let all = move |day: Date| dense || day.weekday() == Weekday::Wednesday;
    let last = |day: Date| day.day() == day.days_in_month();
    let tenth = move |day: Date| dense || (day.day() - 1) % 10 == 0;
    let tenths = if dense { "*" } else { "*/10" };
    let ((sh, sm), (rh, rm)) = (place.skipped, place.repeated);
    let quarter = [(0, 15), (6, 15), (12, 15), (18, 15)];
    vec![
        Routine::new("brief", "weekdays 8:00".into(), workday).at(&[(8, 0)]),
        Routine::new("week", "every monday 9:10".into(), |day| day.weekday() == Weekday::Monday)
            .at(&[(9, 10)]),
        Routine::new("month", "monthly 31 10:20".into(), last).at(&[(10, 20)]),
        Routine::new("sub", format!("15 */6 {tenths} * *"), tenth).at(&quarter),
        Routine::new("skipped", format!("{sm} {sh} * {months}"), in_months).at(&[(sh, sm)]),
        Routine::new("repeated", format!("{rm} {rh} * {months}"), in_months).at(&[(rh, rm)]),
        Routine {
            skip: true,
            ..Routine::new(
                "missable",
                format!("{} 8:00", named("every friday")),
                on(Weekday::Friday),
            )
        }
        .at(&[(8, 0)]),
        Routine::new("evening", format!("{} 21:40", named("every wednesday")), all).at(&[(21, 40)]),
        Routine::new("odd", "59 23 13 * fri".into(), |day| {
            day.day() == 13 || day.weekday() == Weekday::Friday
        })
        .at(&[(23, 59)]),
        Routine { check: true, ..Routine::new("price", "daily 12:00".into(), |_| true) }
            .at(&[(12, 0)]),
    ]
}

/// The instants of civil times after `after` and up to `until`, by jiff: a skipped time as much later as
/// the clock jumps, a repeated one the first time, and each instant once. Also how many were such.
pub(super) fn slots(
    routine: &Routine,
    zone: &TimeZone,
    (after, until): (Timestamp, Timestamp),
) -> (VecDeque<Timestamp>, usize) {
    let stamp = |at: Timestamp| jiff::Timestamp::from_microsecond(at.micros()).unwrap();
    let (mut day, mut found, mut odd) = (zone.to_datetime(stamp(after)).date(), Vec::new(), 0);
    let last = zone.to_datetime(stamp(until)).date();
    while day <= last {
        for (hour, minute) in routine.times.iter().filter(|_| (routine.days)(day)) {
            let civil = zone.to_ambiguous_timestamp(day.at(*hour, *minute, 0, 0));
            let ambiguous = civil.is_ambiguous();
            let at = Timestamp::from_micros(civil.compatible().unwrap().as_microsecond());
            if at > after && at <= until {
                odd += usize::from(ambiguous);
                found.push(at);
            }
        }
        day = day.checked_add(1.day()).unwrap();
    }
    found.sort();
    found.dedup();
    (found.into(), odd)
}
