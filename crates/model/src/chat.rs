//! The one door to a model.

use std::future::Future;
use std::pin::Pin;

use crate::{Answer, ModelError, Prices, Request};

/// A model call under way. Dropping it cancels the call.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<Answer, ModelError>> + Send + 'a>>;

/// A model that answers requests.
pub trait ChatModel: Send + Sync {
    /// Asks once; never repeats a failed call by itself.
    ///
    /// `heard` is called with the number of bytes received so far whenever more arrive, so that the
    /// caller can show progress and renew its lease.
    fn ask<'a>(&'a self, request: &'a Request, heard: &'a (dyn Fn(u64) + Sync)) -> Asking<'a>;

    /// The model's name, as configured.
    fn name(&self) -> &str;

    /// How many tokens request and answer may have together.
    fn context_tokens(&self) -> u64;

    /// What a call costs.
    fn prices(&self) -> Prices;
}
