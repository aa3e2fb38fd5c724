//! Slots of random rules through a year in zones that change their clocks in different ways: none
//! missed, none doubled.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use base::Timestamp;
use domain::schedule::{Cron, Due, LATE_AFTER_MS, MISSED_MAX, Rule, due, zone};
use domain::words::Language;
use jiff::civil::{Date, Weekday, date};
use jiff::tz::TimeZone;

const ZONES: [&str; 5] = [
    "Asia/Hong_Kong",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
];
/// The last year but one in which Sao Paulo changed its clocks, a leap year, and one to come.
const YEARS: [i16; 3] = [2018, 2024, 2027];

/// SplitMix64: a seed that replays.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % most
    }
    fn small(&mut self, most: u64) -> i8 {
        i8::try_from(self.below(most)).unwrap()
    }
    fn some(&mut self, count: u64, most: u64) -> BTreeSet<i8> {
        (0..count).map(|_| self.small(most)).collect()
    }
}

/// A rule, and the wall-clock minutes that it names by its definition.
struct Named {
    rule: Rule,
    minutes: BTreeSet<i8>,
    hours: BTreeSet<i8>,
    names: Box<dyn Fn(Date) -> bool>,
}

fn random_rule(random: &mut Random) -> Named {
    let kind = random.below(6);
    let (minutes, hours) = match kind {
        0 => (random.some(3, 60), (0..24).collect()),
        1 => (random.some(4, 60), random.some(5, 24)),
        _ => (random.some(1, 60), random.some(1, 24)),
    };
    let (minute, hour) = (*minutes.first().unwrap(), *hours.first().unwrap());
    let numbers = |set: &BTreeSet<i8>| set.iter().map(i8::to_string).collect::<Vec<_>>().join(",");
    let day = random.small(31) + 1;
    let weekdays = random.some(2, 7);
    let at = format!("{hour}:{minute:02}");
    let words = match kind {
        0 | 1 => format!("{} {} * * {}", numbers(&minutes), numbers(&hours), numbers(&weekdays)),
        2 => format!("daily {at}"),
        3 => format!("weekdays {at}"),
        4 => format!("monthly {day} {at}"),
        _ => format!("{minute} {hour} {day} * {}", numbers(&weekdays)),
    };
    let of_week = move |date: Date| weekdays.contains(&date.weekday().to_sunday_zero_offset());
    let names: Box<dyn Fn(Date) -> bool> = match kind {
        0 | 1 => Box::new(of_week),
        2 => Box::new(|_| true),
        3 => Box::new(|date| !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)),
        4 => Box::new(move |date| date.day() == day.min(date.days_in_month())),
        _ => Box::new(move |date| date.day() == day || of_week(date)),
    };
    Named { rule: Rule::from_words(&words).unwrap(), minutes, hours, names }
}

/// Every slot of a year, straight from the policy: each named minute fires once, at its first time,
/// or as much later as the clock jumped over it.
fn slots_of_year(named: &Named, zone: &TimeZone, year: i16) -> BTreeSet<Timestamp> {
    let mut slots = BTreeSet::new();
    for date in date(year, 1, 1).series(jiff::Span::new().days(1)).take(366) {
        for hour in named.hours.iter().filter(|_| (named.names)(date)) {
            for minute in &named.minutes {
                let local = date.at(*hour, *minute, 0, 0);
                let at = zone.to_ambiguous_timestamp(local).compatible().unwrap();
                slots.insert(Timestamp::from_micros(at.as_microsecond()));
            }
        }
    }
    slots
}

const HOUR: u64 = 3_600_000_000;

/// When the zone's clock changes between two instants, in microseconds.
fn changes(zone: &TimeZone, first: Timestamp, last: Timestamp) -> Vec<i64> {
    let first = jiff::Timestamp::from_microsecond(first.micros()).unwrap();
    let changes = zone.following(first).map(|change| change.timestamp().as_microsecond());
    changes.take_while(|change| *change < last.micros() - 2 * HOUR as i64).collect()
}

fn start_of(year: i16, zone: &TimeZone) -> Timestamp {
    let at = zone.to_timestamp(date(year, 1, 1).at(0, 0, 0, 0)).unwrap();
    Timestamp::from_micros(at.as_microsecond())
}

#[test]
fn a_year_of_any_rule_misses_and_doubles_nothing() {
    let mut random = Random(20_261_130);
    for round in 0..150_usize {
        let (place, year) = (ZONES[round % 5], YEARS[round % 3]);
        let zone = zone(place).unwrap();
        let named = random_rule(&mut random);
        let told =
            format!("round {round}: {} in {place} in {year}", named.rule.words(Language::En));
        let slots = slots_of_year(&named, &zone, year);
        let mut after = start_of(year, &zone).minus_ms(1);
        for slot in &slots {
            let next = named.rule.next_after(&zone, after).unwrap();
            assert_eq!(next, *slot, "{told}: after {after}");
            after = next;
        }
        let (first, last) = (*slots.first().unwrap(), *slots.last().unwrap());
        let span = u64::try_from(last.micros() - first.micros()).unwrap();
        let mut between: Vec<_> =
            (0..100).map(|_| first.micros() + random.below(span) as i64).collect();
        for change in changes(&zone, first, last) {
            let around = (0..50).map(|_| random.below(4 * HOUR) as i64 - 2 * HOUR as i64);
            between.extend(around.map(|distance| change + distance));
        }
        for between in between.into_iter().map(Timestamp::from_micros) {
            let next = named.rule.next_after(&zone, between).unwrap();
            let expected = slots.range(between..).find(|slot| **slot > between);
            assert_eq!(Some(&next), expected, "{told}: after {between}");
        }
    }
}

#[test]
fn an_outage_of_any_length_fires_the_newest_slot_once() {
    let mut random = Random(7);
    for round in 0..60_usize {
        let (place, year) = (ZONES[round % 5], YEARS[round % 3]);
        let zone = zone(place).unwrap();
        let named = random_rule(&mut random);
        let slots: Vec<_> = slots_of_year(&named, &zone, year).into_iter().collect();
        for _ in 0..5 {
            let last = slots.len() - 1;
            let from = usize::try_from(random.below(last as u64)).unwrap();
            let upto = from + usize::try_from(random.below((last - from) as u64)).unwrap();
            let delay = random.below(2 * LATE_AFTER_MS);
            let now = slots[upto].plus_ms(delay).min(slots[upto + 1].minus_ms(1));
            let missed = u32::try_from(upto - from).unwrap();
            let expected = Due {
                slot: slots[upto],
                missed: missed.min(MISSED_MAX),
                late: missed > 0 || now > slots[upto].plus_ms(LATE_AFTER_MS),
                next: slots[upto + 1],
            };
            let due = due(&named.rule, &zone, slots[from], now).unwrap();
            assert_eq!(
                due,
                Some(expected),
                "round {round}: {} in {place}",
                named.rule.words(Language::En)
            );
        }
    }
}

#[test]
fn the_words_of_any_rule_are_read_as_a_rule_with_its_slots() {
    let mut random = Random(99);
    let zone = zone("Europe/Berlin").unwrap();
    for _ in 0..500 {
        let rule = match random.below(8) {
            0 => Rule::Cron(Cron::read(&format!("*/{} * * * *", random.below(59) + 1)).unwrap()),
            1 => Rule::Cron(Cron::read(&format!("0 */{} * * *", random.below(23) + 1)).unwrap()),
            _ => random_rule(&mut random).rule,
        };
        let again = Language::ALL.map(|language| {
            let words = rule.words(language);
            (Rule::from_words(&words).unwrap(), words)
        });
        let mut after = start_of(2027, &zone);
        for _ in 0..20 {
            let next = rule.next_after(&zone, after).unwrap();
            for (again, words) in &again {
                assert_eq!(again.next_after(&zone, after), Ok(next), "{words}");
            }
            after = next;
        }
        // What is stored is the same rule.
        let stored = serde_json::to_string(&rule).unwrap();
        assert_eq!(serde_json::from_str::<Rule>(&stored).unwrap(), rule);
    }
}
