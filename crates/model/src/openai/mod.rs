//! A model behind an HTTP server of the OpenAI kind.

mod failure;
mod sse;
mod stream;

use std::time::Duration;

use base::Secret;
use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use tokio::time::timeout;

use crate::{Answer, Asking, ChatModel, ModelError, Prices, Request};

/// The most bytes of an error body that are read.
const ERROR_BYTES_MAX: usize = 64 * 1024;

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
    /// The default for [`OpenAiSettings::answer_bytes_max`]: 8 MiB. A streamed token takes about
    /// 250 bytes.
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

    async fn exchange(
        &self,
        request: &Request,
        heard: &(dyn Fn(u64) + Sync),
    ) -> Result<Answer, ModelError> {
        let settings = &self.settings;
        let url = format!("{}/chat/completions", settings.base_url.trim_end_matches('/'));
        let mut post = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .body(request.body_for(&settings.model, settings.output_field));
        if let Some(key) = &settings.key {
            post = post.bearer_auth(key.expose());
        }
        let response = timeout(settings.timeouts.first, post.send())
            .await
            .map_err(|_| too_slow("began no answer", settings.timeouts.first))?
            .map_err(failure::of_network)?;
        let status = response.status();
        let mut incoming = Incoming { response, heard, bytes: 0, idle: settings.timeouts.idle };
        if !status.is_success() {
            let body = incoming.error_body().await;
            return Err(failure::of_status(status.as_u16(), incoming.response.headers(), &body));
        }
        let whole = incoming.is_json();
        let mut assembly = stream::Assembly::default();
        if whole {
            assembly.take(&incoming.whole(settings.answer_bytes_max).await?)?;
        } else {
            incoming.events(&mut assembly, settings.answer_bytes_max).await?;
        }
        assembly.finish(request, &settings.model)
    }
}

/// An answer on its way.
struct Incoming<'a> {
    response: Response,
    heard: &'a (dyn Fn(u64) + Sync),
    bytes: usize,
    idle: Duration,
}

impl Incoming<'_> {
    /// Whether the server answers with one JSON body although a stream was asked for.
    fn is_json(&self) -> bool {
        let kind = self.response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        kind.is_some_and(|kind| kind.trim_start().starts_with("application/json"))
    }

    /// The next bytes; `None` at the end.
    async fn chunk(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, ModelError> {
        let chunk = timeout(self.idle, self.response.chunk())
            .await
            .map_err(|_| too_slow("went silent inside its answer", self.idle))?
            .map_err(failure::of_network)?;
        let Some(chunk) = chunk else { return Ok(None) };
        self.bytes += chunk.len();
        if self.bytes > bytes_max {
            let what = format!("the answer is longer than {bytes_max} bytes");
            return Err(ModelError::Malformed(what));
        }
        (self.heard)(self.bytes as u64);
        Ok(Some(chunk.to_vec()))
    }

    async fn events(
        &mut self,
        assembly: &mut stream::Assembly,
        bytes_max: usize,
    ) -> Result<(), ModelError> {
        let mut events = sse::Events::default();
        while let Some(chunk) = self.chunk(bytes_max).await? {
            events.push(&chunk);
            while let Some(data) = events.next() {
                assembly.take(&data)?;
            }
            // Nothing follows the end mark; a server that keeps the connection open is not waited
            // for.
            if assembly.is_done() {
                return Ok(());
            }
        }
        events.last().map_or(Ok(()), |data| assembly.take(&data))
    }

    async fn whole(&mut self, bytes_max: usize) -> Result<Vec<u8>, ModelError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(bytes_max).await? {
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// As much of an error body as arrives within the limits; the status alone has to do otherwise.
    async fn error_body(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = self.chunk(ERROR_BYTES_MAX).await {
            body.extend_from_slice(&chunk);
        }
        body
    }
}

fn too_slow(what: &str, limit: Duration) -> ModelError {
    ModelError::retry(format!("the server {what} within {} s", limit.as_secs_f64()))
}

impl ChatModel for OpenAiChat {
    fn ask<'a>(&'a self, request: &'a Request, heard: &'a (dyn Fn(u64) + Sync)) -> Asking<'a> {
        let limit = self.settings.timeouts.total;
        Box::pin(async move {
            let answered = timeout(limit, self.exchange(request, heard))
                .await
                .unwrap_or_else(|_| Err(too_slow("did not finish its answer", limit)));
            // What a server says goes to the log and the records; the key goes to neither.
            answered.map_err(|error| match &self.settings.key {
                Some(key) => error.without(key.expose()),
                None => error,
            })
        })
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
