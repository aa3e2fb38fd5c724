//! A model behind an HTTP server, over one of three wires. They share the sender, the reader of events
//! and the classes of failures; a wire is a body, an address, and what it makes of the events.

mod chat;
mod failure;
mod messages;
mod responses;
mod sse;
#[cfg(test)]
mod tests;

use std::time::Duration;

use base::Secret;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{RequestBuilder, Response};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::vendor::{Origin, Piece};
use crate::{Answer, Asking, ChatModel, ModelError, Prices, Request, ToolCall, Usage};

/// The most tool calls one answer may hold.
const TOOL_CALLS_MAX: usize = 128;
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

/// The protocol that a model's server speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// OpenAI Chat Completions, which most servers speak.
    #[default]
    Chat,
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses, without anything stored at the server.
    Responses,
}

impl Wire {
    /// Its name in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Wire::Chat => "chat",
            Wire::Messages => "messages",
            Wire::Responses => "responses",
        }
    }

    /// The wire of that name.
    pub fn parse(word: &str) -> Option<Self> {
        [Wire::Chat, Wire::Messages, Wire::Responses].into_iter().find(|wire| wire.word() == word)
    }

    /// Where questions go, below the base address.
    pub fn path(self) -> &'static str {
        match self {
            Wire::Chat => "chat/completions",
            Wire::Messages => "messages",
            Wire::Responses => "responses",
        }
    }

    /// Adds the key as this wire wants it, and whatever header every call needs.
    pub fn sign(self, request: RequestBuilder, key: Option<&Secret>) -> RequestBuilder {
        let request = match self {
            Wire::Chat | Wire::Responses => request,
            Wire::Messages => request.header("anthropic-version", "2023-06-01"),
        };
        match (self, key) {
            (_, None) => request,
            (Wire::Chat | Wire::Responses, Some(key)) => request.bearer_auth(key.expose()),
            (Wire::Messages, Some(key)) => match HeaderValue::from_str(key.expose()) {
                Ok(mut value) => {
                    value.set_sensitive(true);
                    request.header("x-api-key", value)
                }
                // A key that no header can hold: building the request fails, in words without it.
                Err(_) => request.header("x-api-key", key.expose()),
            },
        }
    }
}

/// What has arrived of an answer.
trait Assembly: Send {
    /// Takes the data of one event, or a complete body.
    fn take(&mut self, data: &[u8]) -> Result<(), ModelError>;

    /// Whether the server said that nothing more will come.
    fn is_done(&self) -> bool;

    /// The complete answer. A stream that broke off before its end is to be repeated.
    fn finish(self: Box<Self>, request: &Request, origin: Origin<'_>)
    -> Result<Answer, ModelError>;
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
    /// As it stands in a request.
    pub fn name(self) -> &'static str {
        match self {
            OutputField::MaxTokens => "max_tokens",
            OutputField::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// Which server and model to ask, and within which limits.
#[derive(Debug, Clone)]
pub struct WireSettings {
    /// The protocol of that server.
    pub wire: Wire,
    /// Up to and including the version, such as `http://127.0.0.1:8080/v1`.
    pub base_url: String,
    /// The model's name at that server.
    pub model: String,
    /// Sent as the wire wants it; local servers often need none.
    pub key: Option<Secret>,
    /// Tokens of request and answer together.
    pub context_tokens: u64,
    /// What a call costs; all zero for a local model.
    pub prices: Prices,
    /// Time limits of one call.
    pub timeouts: Timeouts,
    /// The most bytes an answer may have on the wire.
    pub answer_bytes_max: usize,
    /// The output limit's name on the wire [`Wire::Chat`].
    pub output_field: OutputField,
    /// How much the model should think, in the vendor's own word; `None` for what the vendor takes by
    /// itself. On the wire [`Wire::Responses`], [`WireSettings::NO_EFFORT`] is for models that do
    /// not think at all.
    pub effort: Option<String>,
}

impl WireSettings {
    /// The default for [`WireSettings::answer_bytes_max`]: 8 MiB. A streamed token takes about
    /// 250 bytes.
    pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

    /// The word for a model that refuses every mention of thinking.
    pub const NO_EFFORT: &str = "off";

    /// Settings for a local server without key and price; change the fields for others.
    pub fn local(base_url: &str, model: &str, context_tokens: u64) -> WireSettings {
        WireSettings {
            wire: Wire::Chat,
            base_url: base_url.to_owned(),
            model: model.to_owned(),
            key: None,
            context_tokens,
            prices: Prices::default(),
            timeouts: Timeouts::default(),
            answer_bytes_max: Self::ANSWER_BYTES_MAX,
            output_field: OutputField::default(),
            effort: None,
        }
    }

    fn origin(&self) -> Origin<'_> {
        Origin { wire: self.wire, model: &self.model }
    }

    fn effort(&self) -> Option<&str> {
        self.effort.as_deref().filter(|effort| *effort != Self::NO_EFFORT)
    }

    /// The request body, and what the answer is put together with. As long as model, limit and tools
    /// stay, the body of a longer conversation starts with all bytes of the shorter one, but for the
    /// few that end it (CTX-05, CTX-06).
    fn body(&self, request: &Request) -> Result<(Vec<u8>, Box<dyn Assembly>), ModelError> {
        Ok(match self.wire {
            Wire::Chat => {
                let body = request.body_for(&self.model, self.output_field, self.effort());
                (body, Box::<chat::Assembly>::default())
            }
            Wire::Messages => {
                (messages::body(self, request)?, Box::<messages::Assembly>::default())
            }
            Wire::Responses => {
                (responses::body(self, request)?, Box::<responses::Assembly>::default())
            }
        })
    }
}

/// A model behind an HTTP server: OpenAI, Anthropic, DeepSeek, llama.cpp, Ollama and others.
#[derive(Debug)]
pub struct WireModel {
    client: reqwest::Client,
    settings: WireSettings,
}

impl WireModel {
    /// Uses `client` (see [`crate::http_client`]) for every call.
    pub fn new(client: reqwest::Client, settings: WireSettings) -> WireModel {
        WireModel { client, settings }
    }

    async fn exchange(
        &self,
        request: &Request,
        heard: &(dyn Fn(u64) + Sync),
    ) -> Result<Answer, ModelError> {
        let settings = &self.settings;
        let wire = settings.wire;
        let url = format!("{}/{}", settings.base_url.trim_end_matches('/'), wire.path());
        let (body, mut assembly) = settings.body(request)?;
        let post = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .body(body);
        let post = wire.sign(post, settings.key.as_ref());
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
        if whole {
            assembly.take(&incoming.whole(settings.answer_bytes_max).await?)?;
        } else {
            incoming.events(&mut *assembly, settings.answer_bytes_max).await?;
        }
        assembly.finish(request, settings.origin())
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
        assembly: &mut dyn Assembly,
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

/// What every wire says of an answer that it cannot read.
fn unreadable(error: &serde_json::Error) -> ModelError {
    match error.is_eof() {
        true => ModelError::retry("the answer broke off inside its JSON"),
        false => ModelError::Malformed(format!("the answer is not of this wire: {error}")),
    }
}

fn broken_off() -> ModelError {
    ModelError::retry("the answer broke off before its end")
}

fn too_many_calls() -> ModelError {
    ModelError::Malformed(format!("the answer has more than {TOOL_CALLS_MAX} tool calls"))
}

/// A stored block of a request that cannot be rendered.
fn unreadable_block(error: crate::BlockError) -> ModelError {
    ModelError::Malformed(error.to_string())
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// An answer's pieces with every call complete, and whether there is any call. Blanks are left out,
/// and so is thinking that nothing follows: an answer was cut within it. No vendor takes those back.
fn settled(pieces: Vec<Piece>, answer_id: &str) -> Result<(Vec<Piece>, bool), ModelError> {
    let mut settled = Vec::new();
    let mut calls = 0;
    for piece in pieces {
        settled.push(match piece {
            Piece::Call(_) if calls == TOOL_CALLS_MAX => return Err(too_many_calls()),
            Piece::Call(call) => {
                calls += 1;
                Piece::Call(complete(call, calls - 1, answer_id)?)
            }
            Piece::Text { text, .. } if text.trim().is_empty() => continue,
            other @ (Piece::Text { .. } | Piece::Item(_)) => other,
        });
    }
    while let Some(Piece::Item(_)) = settled.last() {
        settled.pop();
    }
    Ok((settled, calls > 0))
}

/// A call with all that its answer needs: a name, an id of its own, and arguments.
fn complete(mut call: ToolCall, n: usize, answer_id: &str) -> Result<ToolCall, ModelError> {
    if call.name.is_empty() {
        return Err(ModelError::Malformed(format!("tool call {n} names no tool")));
    }
    if call.id.is_empty() {
        call.id = format!("call-{n}-{answer_id}");
    }
    if call.arguments.trim().is_empty() {
        call.arguments = "{}".to_owned();
    }
    Ok(call)
}

/// What the server calls its answer, or a name that the same question gives again.
fn named(answer_id: String, request: &Request) -> String {
    match answer_id.is_empty() {
        true => format!("answer-{}", request.digest()),
        false => answer_id,
    }
}

/// An answer with what the server told of it. Where it told no usage, that is estimated.
fn told(
    mut answer: Answer,
    request: &Request,
    (answer_id, model): (String, String),
    usage: Option<Usage>,
    asked: &str,
) -> Answer {
    answer.usage = usage.unwrap_or_else(|| Usage {
        input_tokens: request.tokens(),
        cached_tokens: 0,
        output_tokens: answer.block.tokens,
    });
    answer.model = if model.is_empty() { asked.to_owned() } else { model };
    answer.answer_id = answer_id;
    answer
}

fn too_slow(what: &str, limit: Duration) -> ModelError {
    ModelError::retry(format!("the server {what} within {} s", limit.as_secs_f64()))
}

impl ChatModel for WireModel {
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
