//! The store's own threads and the bounded queues that feed them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::EngineHandle;
use crate::error::{Result, StoreError};
use crate::job::Job;

/// Closures that may wait; one more makes its caller fail instead of growing the queue.
const QUEUE_MAX: usize = 4_096;

/// A bounded queue with a head for urgent work, shared by its consumers.
pub(crate) struct Queue {
    jobs: Mutex<(VecDeque<Job>, bool)>,
    filled: Condvar,
}

impl Queue {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Queue { jobs: Mutex::new((VecDeque::new(), true)), filled: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, (VecDeque<Job>, bool)> {
        // No invariant of the queue spans two statements, so a poisoned lock is usable.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job that does not fit is dropped, and its caller is told that the store is closed or busy.
    pub(crate) fn push(&self, job: Job, urgent: bool) {
        let mut state = self.lock();
        if !state.1 || state.0.len() >= QUEUE_MAX {
            return;
        }
        if urgent {
            state.0.push_front(job);
        } else {
            state.0.push_back(job);
        }
        self.filled.notify_one();
    }

    /// Waits for work; an empty answer means that the store is closed.
    pub(crate) fn take(&self, most: usize) -> Vec<Job> {
        let mut state = self.lock();
        while state.0.is_empty() && state.1 {
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let take = state.0.len().min(most);
        state.0.drain(..take).collect()
    }

    pub(crate) fn close(&self) {
        self.lock().1 = false;
        self.filled.notify_all();
    }
}

/// A running engine: its queues and the threads that serve them.
pub(crate) struct Threads {
    pub writes: Arc<Queue>,
    pub reads: Arc<Queue>,
    pub running: Vec<thread::JoinHandle<()>>,
}

impl EngineHandle for Threads {
    fn write(&self, job: Job, urgent: bool) {
        self.writes.push(job, urgent);
    }
    fn read(&self, job: Job) {
        self.reads.push(job, false);
    }
}

impl Drop for Threads {
    /// What was queued is still done, then the connections close in order.
    fn drop(&mut self) {
        self.writes.close();
        self.reads.close();
        for thread in self.running.drain(..) {
            drop(thread.join());
        }
    }
}

/// Starts one of the store's threads.
pub(crate) fn spawn(
    name: String,
    work: impl FnOnce() + Send + 'static,
) -> Result<thread::JoinHandle<()>> {
    thread::Builder::new()
        .name(name)
        .spawn(work)
        .map_err(|e| StoreError::Open(format!("no thread for the database: {e}")))
}
