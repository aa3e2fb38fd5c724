//! A clock that stands still until a test moves it.

use std::sync::atomic::{AtomicI64, Ordering};

use base::{Clock, Timestamp};

/// A clock that tests set; it never goes by itself.
#[derive(Debug)]
pub struct FakeClock(AtomicI64);

impl FakeClock {
    /// Stands at `now`.
    pub fn new(now: Timestamp) -> Self {
        FakeClock(AtomicI64::new(now.micros()))
    }

    /// Stands at `now` from here on, also if that is earlier.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.micros(), Ordering::SeqCst);
    }

    /// Moves on by `millis` milliseconds and gives the new time.
    pub fn advance_ms(&self, millis: u64) -> Timestamp {
        let now = self.now().plus_ms(millis);
        self.set(now);
        now
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}
