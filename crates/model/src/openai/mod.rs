//! A model behind an HTTP server of the OpenAI kind.

use std::time::Duration;

use base::Secret;

use crate::{Answer, Asking, ChatModel, ModelError, Prices, Request};

/// How long a model call may take, part by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the answer's head arrives; a local model may read the whole request before it.
    pub first: Duration,
    /// Between two parts of the answer.
    pub idle: Duration,
    /// The whole call.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            first: Duration::from_secs(120),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(300),
        }
    }
}

/// The name under which a server wants the output limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputField {
    /// `max_tokens`: DeepSeek, llama.cpp, Ollama and most others.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`: newer models of OpenAI, which refuse the other name.
    MaxCompletionTokens,
}

impl OutputField {
    pub(crate) fn name(self) -> &'static str {
        match self {
            OutputField::MaxTokens => "max_tokens",
            OutputField::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// Which server and model to ask, and within which limits.
#[derive(Debug, Clone)]
pub struct OpenAiSettings {
    /// Up to and including the version, such as `http://127.0.0.1:8080/v1`.
    pub base_url: String,
    /// The model's name at that server.
    pub model: String,
    /// Sent as a bearer token; local servers often need none.
    pub key: Option<Secret>,
    /// Tokens of request and answer together.
    pub context_tokens: u64,
    /// What a call costs; all zero for a local model.
    pub prices: Prices,
    /// Time limits of one call.
    pub timeouts: Timeouts,
    /// The most bytes an answer may have on the wire.
    pub answer_bytes_max: usize,
    /// The output limit's name.
    pub output_field: OutputField,
}

impl OpenAiSettings {
    /// The default for [`OpenAiSettings::answer_bytes_max`]: 8 MiB. A streamed token takes about 250 bytes.
    pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

    /// Settings for a local server without key and price; change the fields for others.
    pub fn local(base_url: &str, model: &str, context_tokens: u64) -> OpenAiSettings {
        OpenAiSettings {
            base_url: base_url.to_owned(),
            model: model.to_owned(),
            key: None,
            context_tokens,
            prices: Prices::default(),
            timeouts: Timeouts::default(),
            answer_bytes_max: Self::ANSWER_BYTES_MAX,
            output_field: OutputField::default(),
        }
    }
}

/// A model behind a server of the OpenAI kind: OpenAI, DeepSeek, llama.cpp, Ollama and others.
#[derive(Debug)]
pub struct OpenAiChat {
    client: reqwest::Client,
    settings: OpenAiSettings,
}

impl OpenAiChat {
    /// Uses `client` (see [`crate::http_client`]) for every call.
    pub fn new(client: reqwest::Client, settings: OpenAiSettings) -> OpenAiChat {
        OpenAiChat { client, settings }
    }
}

impl ChatModel for OpenAiChat {
    fn ask<'a>(&'a self, request: &'a Request, heard: &'a (dyn Fn(u64) + Sync)) -> Asking<'a> {
        let _ = (request, heard, &self.client);
        Box::pin(async { Err::<Answer, _>(ModelError::Malformed("not yet".into())) })
    }

    fn name(&self) -> &str {
        &self.settings.model
    }

    fn context_tokens(&self) -> u64 {
        self.settings.context_tokens
    }

    fn prices(&self) -> Prices {
        self.settings.prices
    }
}
