//! Crash points: every commit and every outside call, each before and after.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::CommitGate;

/// Counts the points of a run and crashes the stand-in of the process at chosen ones.
#[derive(Debug, Default)]
pub struct Points(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    passed: u64,
    crash_at: Vec<u64>,
    /// Where the database file is, and where what the disk holds at a crash is copied to.
    disk: Option<(PathBuf, PathBuf)>,
    crashed: Option<&'static str>,
    failure: Option<String>,
}

impl Points {
    /// Crashes at these points, counted from zero.
    pub fn new(crash_at: &[u64]) -> Arc<Points> {
        let inner = Inner { crash_at: crash_at.to_vec(), ..Inner::default() };
        Arc::new(Points(Mutex::new(inner)))
    }

    // Held for a few statements only; a panic in between leaves a valid counter.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a point; `false`: the process's stand-in is dead from here on.
    pub fn pass(&self, what: &'static str) -> bool {
        let mut inner = self.inner();
        let at = inner.passed;
        inner.passed += 1;
        if !inner.crash_at.contains(&at) {
            return true;
        }
        inner.crashed = Some(what);
        if let Some((database, copy)) = inner.disk.clone()
            && let Err(error) = copy_disk(&database, &copy)
        {
            inner.failure = Some(format!("cannot copy {}: {error}", database.display()));
        }
        false
    }

    /// Points passed so far.
    pub fn passed(&self) -> u64 {
        self.inner().passed
    }

    /// From now on a crash keeps what the disk holds at `database` in the folder `copy`.
    pub fn keep(&self, database: &Path, copy: &Path) {
        self.inner().disk = Some((database.to_owned(), copy.to_owned()));
    }

    /// Where it crashed, once.
    pub fn take_crash(&self) -> Option<&'static str> {
        self.inner().crashed.take()
    }

    /// Why a copy of the disk could not be made, if so.
    pub fn failure(&self) -> Option<String> {
        self.inner().failure.clone()
    }
}

/// Copies the database file and its write-ahead log as they are in the middle of a commit: what was
/// written to the log without a commit frame is dropped by the next opening, like a lost write.
fn copy_disk(database: &Path, copy: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(copy)?;
    for suffix in ["", "-wal"] {
        let from = PathBuf::from(format!("{}{suffix}", database.display()));
        let name = format!("adjutant.db{suffix}");
        match std::fs::copy(&from, copy.join(name)) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl CommitGate for Points {
    fn before_commit(&self) -> bool {
        self.pass("before a commit")
    }
    fn after_commit(&self) -> bool {
        self.pass("after a commit")
    }
}
