//! A model that follows a readable rule file instead of weights, for tests and the demo.

use crate::{Answer, Asking, ChatModel, ModelError, Prices, Request};

/// A rule file, read and checked.
#[derive(Debug, Clone)]
pub struct Script {
    context_tokens: u64,
}

/// What is wrong with a rule file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the script: {what}")]
pub struct ScriptError {
    /// Counted from one.
    pub line: usize,
    /// What is wrong and what to write instead.
    pub what: String,
}

impl Script {
    /// Reads a rule file.
    pub fn parse(_text: &str) -> Result<Script, ScriptError> {
        Ok(Script { context_tokens: 0 })
    }

    /// Answers a request body; the same body always gets the same answer.
    pub fn answer(&self, _body: &[u8]) -> Result<Answer, ModelError> {
        Err(ModelError::Malformed("not yet".into()))
    }
}

/// A [`Script`] as a model inside this process.
#[derive(Debug)]
pub struct ScriptedModel {
    script: Script,
}

impl ScriptedModel {
    /// Hosts `script`.
    pub fn new(script: Script) -> ScriptedModel {
        ScriptedModel { script }
    }
}

impl ChatModel for ScriptedModel {
    fn ask<'a>(&'a self, request: &'a Request, _heard: &'a (dyn Fn(u64) + Sync)) -> Asking<'a> {
        let answer = self.script.answer(&request.body(self.name()));
        Box::pin(async { answer })
    }

    fn name(&self) -> &str {
        "scripted"
    }

    fn context_tokens(&self) -> u64 {
        self.script.context_tokens
    }

    fn prices(&self) -> Prices {
        Prices::default()
    }
}
