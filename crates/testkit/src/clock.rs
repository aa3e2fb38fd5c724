//! Clocks for tests and the demo: one that stands still, and one that runs and jumps.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use base::{Clock, SystemClock, Timestamp};

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

/// A clock that goes at real speed and jumps over the time in which nothing happens. Where it has got
/// to is on disk before a jump takes effect, so that a process that is killed goes on from there.
#[derive(Debug)]
pub struct FastClock {
    ahead_micros: AtomicI64,
    file: PathBuf,
}

impl FastClock {
    /// Goes on from what `file` holds, or begins at `start`.
    pub fn open(file: &Path, start: Timestamp) -> std::io::Result<Self> {
        let ahead = match std::fs::read_to_string(file) {
            Ok(text) => text
                .trim()
                .parse()
                .map_err(|_| std::io::Error::other(format!("{} holds no clock", file.display())))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                start.micros() - SystemClock.now().micros()
            }
            Err(error) => return Err(error),
        };
        let clock = FastClock { ahead_micros: AtomicI64::new(ahead), file: file.to_owned() };
        clock.keep(ahead)?;
        Ok(clock)
    }

    /// Jumps forward to `at`; never back.
    pub fn jump_to(&self, at: Timestamp) -> std::io::Result<()> {
        let by = at.micros() - self.now().micros();
        if by > 0 {
            let ahead = self.ahead_micros.load(Ordering::SeqCst) + by;
            self.keep(ahead)?;
            self.ahead_micros.store(ahead, Ordering::SeqCst);
        }
        Ok(())
    }

    fn keep(&self, ahead: i64) -> std::io::Result<()> {
        let next = self.file.with_extension("new");
        let mut file = std::fs::File::create(&next)?;
        write!(file, "{ahead}")?;
        file.sync_all()?;
        std::fs::rename(next, &self.file)
    }
}

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        let real = SystemClock.now().micros();
        Timestamp::from_micros(real + self.ahead_micros.load(Ordering::SeqCst))
    }
}
