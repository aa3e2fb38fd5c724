//! The script as a model inside this process, with a prefix cache of one request.

use std::sync::{Mutex, PoisonError};

use base::Digest;

use super::Script;
use crate::{Answer, Asking, ChatModel, ModelError, Prices, Request};

/// A [`Script`] as a model. It remembers only the last request, to tell how much of the next one a
/// provider's prefix cache would have held.
#[derive(Debug)]
pub struct ScriptedModel {
    script: Script,
    prices: Prices,
    /// The digests of the last request's tools and blocks. The lock is held for a comparison only.
    last: Mutex<Vec<Digest>>,
}

impl ScriptedModel {
    /// Hosts `script`; calls cost `prices`.
    pub fn new(script: Script, prices: Prices) -> ScriptedModel {
        ScriptedModel { script, prices, last: Mutex::default() }
    }

    /// Answers at once; for callers without an async runtime, such as the simulator.
    pub fn answer(&self, request: &Request) -> Result<Answer, ModelError> {
        let cached_tokens = self.remember(request);
        let mut answer = self.script.answer_request(request)?;
        answer.usage.cached_tokens = cached_tokens;
        Ok(answer)
    }

    /// Takes `request` for the last one and gives the tokens it shares with the one before, from
    /// the start.
    fn remember(&self, request: &Request) -> u64 {
        let parts = || std::iter::once(&request.tools).chain(&request.blocks);
        let digests = parts().map(|block| block.digest).collect();
        // A panic elsewhere cannot leave a half-written list: it is replaced as a whole.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *last, digests);
        let shared = parts().zip(before).take_while(|(block, digest)| block.digest == *digest);
        shared.map(|(block, _)| block.tokens).sum()
    }
}

impl ChatModel for ScriptedModel {
    fn ask<'a>(&'a self, request: &'a Request, heard: &'a (dyn Fn(u64) + Sync)) -> Asking<'a> {
        Box::pin(async move {
            let answer = self.answer(request)?;
            heard(answer.block.bytes.len() as u64);
            Ok(answer)
        })
    }

    fn name(&self) -> &str {
        self.script.name()
    }

    fn context_tokens(&self) -> u64 {
        self.script.context_tokens()
    }

    fn prices(&self) -> Prices {
        self.prices
    }
}
