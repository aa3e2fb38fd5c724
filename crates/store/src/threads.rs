//! The store's own threads and the bounded queues that feed them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::EngineHandle;
use crate::error::{Result, StoreError};
use crate::job::Job;

/// Closures that may wait; one more makes its caller fail instead of growing the queue.
const QUEUE_MAX: usize = 4_096;
/// Urgent closures have room of their own, so that a stop is taken in however much waits (P8).
const URGENT_MAX: usize = 256;

/// A bounded queue with a head for urgent work, shared by its consumers.
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
}

struct Waiting {
    urgent: VecDeque<Job>,
    ordinary: VecDeque<Job>,
    open: bool,
}

impl Queue {
    pub(crate) fn new() -> Arc<Self> {
        let waiting = Waiting { urgent: VecDeque::new(), ordinary: VecDeque::new(), open: true };
        Arc::new(Queue { waiting: Mutex::new(waiting), filled: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // No invariant of the queue spans two statements, so a poisoned lock is usable.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job that does not fit is refused: its caller is told that the store is closed or busy.
    pub(crate) fn push(&self, job: Job, urgent: bool) {
        let mut waiting = self.lock();
        let open = waiting.open;
        let (line, most) = match urgent {
            true => (&mut waiting.urgent, URGENT_MAX),
            false => (&mut waiting.ordinary, QUEUE_MAX),
        };
        if open && line.len() < most {
            line.push_back(job);
            self.filled.notify_one();
            return;
        }
        // Outside the lock: what a closure holds may be the last handle of this very store.
        drop(waiting);
        job.refuse(match open {
            true => StoreError::Unavailable("too much waits already; nothing happened".into()),
            false => StoreError::Closed,
        });
    }

    /// Waits for work, urgent work first; an empty answer means that the store is closed.
    pub(crate) fn take(&self, most: usize) -> Vec<Job> {
        let mut waiting = self.lock();
        while waiting.urgent.is_empty() && waiting.ordinary.is_empty() && waiting.open {
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let urgent = waiting.urgent.len().min(most);
        let mut taken: Vec<Job> = waiting.urgent.drain(..urgent).collect();
        let ordinary = waiting.ordinary.len().min(most - urgent);
        taken.extend(waiting.ordinary.drain(..ordinary));
        taken
    }

    /// Takes nothing more in; what waits is still done.
    pub(crate) fn close(&self) {
        self.lock().open = false;
        self.filled.notify_all();
    }

    /// Closes, and refuses what waits: a thread that served this queue is gone.
    fn abandon(&self) {
        let left: Vec<Job> = {
            let mut waiting = self.lock();
            waiting.open = false;
            let Waiting { urgent, ordinary, open: _ } = &mut *waiting;
            urgent.drain(..).chain(ordinary.drain(..)).collect()
        };
        self.filled.notify_all();
        left.into_iter().for_each(|job| job.refuse(StoreError::Closed));
    }
}

/// Refuses what a thread leaves behind, however it ends: no caller waits for ever.
struct Served(Arc<Queue>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.abandon();
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
        let this = thread::current().id();
        for thread in self.running.drain(..) {
            // A closure may have held the last handle, so this may be one of the store's own threads.
            if thread.thread().id() != this {
                drop(thread.join());
            }
        }
    }
}

/// Starts one of the store's threads, which serves `queue` until that is closed.
pub(crate) fn spawn(
    name: String,
    queue: &Arc<Queue>,
    serve: impl FnOnce(&Queue) + Send + 'static,
) -> Result<thread::JoinHandle<()>> {
    let served = Served(Arc::clone(queue));
    thread::Builder::new()
        .name(name)
        .spawn(move || serve(&served.0))
        .map_err(|e| StoreError::Open(format!("no thread for the database: {e}")))
}
