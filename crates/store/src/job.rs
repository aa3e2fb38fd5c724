//! A transaction on its way to the database's own thread and its answer on the way back.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;

use crate::error::{Result, StoreError};
use crate::tx::{Tx, Witness};

/// A closure to run inside a transaction that the engine has begun.
pub(crate) type Job = Box<dyn FnOnce(&mut Tx<'_>) -> Ran + Send>;

/// What a closure came to, before its transaction is committed or rolled back.
pub(crate) struct Ran {
    /// Whether the transaction is to be committed.
    pub ok: bool,
    /// By what the commit can be found again.
    pub witness: Option<Witness>,
    answer: Box<dyn FnOnce(Option<StoreError>) + Send>,
}

impl Ran {
    /// Tells the caller: its own result, once that is durable or undone.
    pub(crate) fn answer(self) {
        (self.answer)(None);
    }

    /// Tells the caller that the transaction around its closure failed.
    pub(crate) fn fail(self, error: StoreError) {
        (self.answer)(Some(error));
    }
}

const NOT_RUN: &str = "the store is shutting down or has too much to do; nothing happened";

/// The caller's end.
pub(crate) struct Answer<T>(oneshot::Receiver<Result<T>>);

impl<T> Answer<T> {
    /// Waits for the answer. A closure that was dropped unrun did nothing.
    pub(crate) async fn wait(self) -> Result<T> {
        self.0.await.unwrap_or_else(|_| Err(StoreError::Unavailable(NOT_RUN.into())))
    }
}

/// Wraps a closure as a job: a panic becomes an error, and the first SQL error ends it even if the
/// closure went on.
pub(crate) fn prepare<T, F>(work: F) -> (Job, Answer<T>)
where
    T: Send + 'static,
    F: FnOnce(&mut Tx<'_>) -> Result<(T, Option<Witness>)> + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    let job = move |tx: &mut Tx<'_>| {
        let ran = catch_unwind(AssertUnwindSafe(|| work(tx))).unwrap_or(Err(StoreError::Panicked));
        let result = match (ran, tx.failed()) {
            (Ok(_), Some(error)) | (Err(StoreError::Ended), Some(error)) => Err(error),
            (other, _) => other,
        };
        let (result, witness) = match result {
            Ok((value, witness)) => (Ok(value), witness),
            Err(error) => (Err(error), None),
        };
        Ran {
            ok: result.is_ok(),
            witness,
            answer: Box::new(move |failure| {
                // A caller that went away needs no answer; the commit stands either way.
                drop(sender.send(failure.map_or(result, Err)));
            }),
        }
    };
    (Box::new(job), Answer(receiver))
}
