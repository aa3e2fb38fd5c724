//! The order of a session's queue, and when a running turn is interrupted (QUE-03..06, QUE-14).

use base::Timestamp;

use crate::event::Class;

/// One waiting item, as far as the order needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Its class.
    pub class: Class,
    /// When it was enqueued.
    pub since: Timestamp,
    /// Fruitless runs so far.
    pub attempts: u32,
}

/// From this many fruitless runs on an item runs alone, so that it cannot take others down with it.
pub const ALONE_FROM_ATTEMPTS: u32 = 2;

/// Which items the next run takes in, as indexes into `waiting`, in the order it reads them.
///
/// User messages come first, then external events, then timers, each in order of arrival; an item that
/// has waited longer than `starvation_ms` goes before everything but the user. What is only read along
/// comes last and never makes a run by itself. A suspect item runs alone. `items_max` bounds the batch.
pub fn batch(
    waiting: &[Waiting],
    now: Timestamp,
    starvation_ms: u64,
    items_max: u32,
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..waiting.len()).collect();
    let starved_before = now.minus_ms(starvation_ms);
    order.sort_by_key(|at| {
        let item = waiting[*at];
        let rank = match item.class {
            Class::User => 0,
            Class::External | Class::Timer if item.since <= starved_before => 1,
            Class::External => 2,
            Class::Timer => 3,
            Class::Background => 4,
        };
        (item.attempts >= ALONE_FROM_ATTEMPTS, rank, item.since, *at)
    });
    let limit = usize::try_from(items_max).unwrap_or(usize::MAX);
    if waiting.iter().all(|item| item.class == Class::Background) {
        return Vec::new();
    }
    match order.first() {
        None => Vec::new(),
        Some(first) if waiting[*first].attempts >= ALONE_FROM_ATTEMPTS => vec![*first],
        Some(_) => order
            .into_iter()
            .filter(|at| waiting[*at].attempts < ALONE_FROM_ATTEMPTS)
            .take(limit)
            .collect(),
    }
}

/// Whether messages that came while a run was under way end it now: the burst window, counted from the
/// first of them and not extended by later ones, has closed.
pub fn interrupts(first_user_item: Option<Timestamp>, now: Timestamp, burst_ms: u64) -> bool {
    first_user_item.is_some_and(|first| first.plus_ms(burst_ms) <= now)
}

/// How long to rest after so many failures in a row: the first rest doubles each time, up to the longest.
pub fn backoff_ms(failures: u32, first_ms: u64, longest_ms: u64) -> u64 {
    let doublings = failures.saturating_sub(1).min(20);
    first_ms.saturating_mul(1 << doublings).min(longest_ms)
}

/// What becomes of an item when its run ended without handling it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It waits again, with this many fruitless runs counted.
    Retry {
        /// The new count.
        attempts: u32,
    },
    /// It is given up and the user is told.
    GiveUp,
}

/// Counts a run that ended by an error or death: fruitless only if it made no new step (DUR-08).
pub fn after_failure(attempts: u32, made_progress: bool, poison_attempts: u32) -> After {
    match attempts + u32::from(!made_progress) {
        counted if counted >= poison_attempts => After::GiveUp,
        counted => After::Retry { attempts: counted },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(class: Class, second: i64, attempts: u32) -> Waiting {
        Waiting { class, since: Timestamp::from_micros(second * 1_000_000), attempts }
    }

    #[test]
    fn people_first_then_the_starved_then_arrival() {
        let waiting = [
            item(Class::Timer, 100, 0),
            item(Class::External, 101, 0),
            item(Class::User, 102, 0),
            item(Class::Timer, 10, 0),
            item(Class::External, 99, 1),
            item(Class::User, 90, 0),
        ];
        let now = Timestamp::from_micros(103_000_000);
        assert_eq!(batch(&waiting, now, 60_000, 50), [5, 2, 3, 4, 1, 0]);
        assert_eq!(batch(&waiting, now, 60_000, 2), [5, 2]);
    }

    #[test]
    fn what_is_read_along_comes_last_and_makes_no_run() {
        let now = Timestamp::from_micros(103_000_000);
        let along = item(Class::Background, 1, 0);
        assert_eq!(batch(&[along, along], now, 60_000, 50), [0; 0]);
        assert_eq!(batch(&[along, item(Class::Timer, 102, 0)], now, 60_000, 50), [1, 0]);
    }

    #[test]
    fn a_suspect_item_runs_last_and_alone() {
        let now = Timestamp::from_micros(10_000_000);
        let waiting = [item(Class::User, 1, 2), item(Class::Timer, 2, 0), item(Class::User, 3, 3)];
        assert_eq!(batch(&waiting, now, 60_000, 50), [1]);
        assert_eq!(batch(&[waiting[0], waiting[2]], now, 60_000, 50), [0]);
        assert_eq!(batch(&[], now, 60_000, 50), [0; 0]);
    }

    #[test]
    fn a_burst_closes_once_and_poison_counts_only_fruitless_runs() {
        let at = |ms: i64| Timestamp::from_micros(ms * 1_000);
        assert!(!interrupts(None, at(9_000), 1_500));
        assert!(!interrupts(Some(at(0)), at(1_499), 1_500));
        assert!(interrupts(Some(at(0)), at(1_500), 1_500));
        let rests = [0, 1, 2, 5, 9, u32::MAX].map(|failures| backoff_ms(failures, 2_000, 300_000));
        assert_eq!(rests, [2_000, 2_000, 4_000, 32_000, 300_000, 300_000]);
        assert_eq!(after_failure(3, false, 5), After::Retry { attempts: 4 });
        assert_eq!(after_failure(4, true, 5), After::Retry { attempts: 4 });
        assert_eq!(after_failure(4, false, 5), After::GiveUp);
    }
}
