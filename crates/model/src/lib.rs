//! Language models: what is sent, what comes back, and what can go wrong, in the shape of the
//! OpenAI Chat Completions protocol; and a scripted model for tests and the demo.
//!
//! *Invariant:* this crate knows no duty, no tool's meaning and no SQL. It never rewrites a message
//! once that is serialised: a request body is the stored blocks joined together (CTX-03, CTX-05).

mod answer;
mod block;
mod chat;
mod error;
mod http;
mod openai;
mod request;
mod script;
mod tokens;

pub use answer::{Answer, Finish, Prices, Usage};
pub use block::{Block, BlockError, Message, ToolCall};
pub use chat::{Asking, ChatModel};
pub use error::ModelError;
pub use http::{HttpClientError, http_client, http_client_builder};
pub use openai::{OpenAiChat, OpenAiSettings, OutputField, Timeouts};
pub use request::{Request, RequestError};
pub use script::{Script, ScriptError, ScriptedModel};
pub use tokens::estimate_tokens;
