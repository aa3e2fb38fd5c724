//! A transaction on its way to the database's own thread and its answer on the way back.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;

use crate::error::{Result, StoreError};
use crate::tx::{Tx, Witness};

/// A closure to run inside a transaction that the engine has begun, or to refuse unrun.
pub(crate) trait Work: Send {
    /// Runs it; a panic becomes an error.
    fn run(self: Box<Self>, tx: &mut Tx<'_>) -> Ran;
    /// Tells its caller why it was not run.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// A closure whose types the queue need not know.
pub(crate) type Job = Box<dyn Work>;

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

/// The caller's end.
pub(crate) struct Answer<T>(oneshot::Receiver<Result<T>>);

impl<T> Answer<T> {
    /// Waits for the answer. A closure that was dropped unrun did nothing.
    pub(crate) async fn wait(self) -> Result<T> {
        self.0.await.unwrap_or(Err(StoreError::Closed))
    }
}

struct Prepared<T, F> {
    work: F,
    sender: oneshot::Sender<Result<T>>,
}

/// Wraps a closure as a job: a panic becomes an error, and the first SQL error ends it even if the
/// closure went on.
pub(crate) fn prepare<T, F>(work: F) -> (Job, Answer<T>)
where
    T: Send + 'static,
    F: FnOnce(&mut Tx<'_>) -> Result<(T, Option<Witness>)> + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    (Box::new(Prepared { work, sender }), Answer(receiver))
}

impl<T, F> Work for Prepared<T, F>
where
    T: Send + 'static,
    F: FnOnce(&mut Tx<'_>) -> Result<(T, Option<Witness>)> + Send + 'static,
{
    fn run(self: Box<Self>, tx: &mut Tx<'_>) -> Ran {
        let Prepared { work, sender } = *self;
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
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        // The same: nobody may be waiting any more.
        drop(self.sender.send(Err(error)));
    }
}
