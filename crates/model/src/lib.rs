//! Language models: what is sent, what comes back, and what can go wrong, over three wires; and a
//! scripted model for tests and the demo.
//!
//! *Invariant:* this crate knows no duty, no tool's meaning and no SQL. It never rewrites a message
//! once that is serialised: a request body is the stored blocks, each rendered by a pure function of
//! its own bytes, joined together (CTX-03, CTX-05).

mod answer;
mod block;
mod chat;
mod error;
mod http;
mod request;
mod script;
mod tokens;
mod vendor;
mod wire;

pub use answer::{Answer, Finish, Prices, Usage};
pub use block::{Block, BlockError, Message, ToolCall};
pub use chat::{Asking, ChatModel};
pub use error::ModelError;
pub use http::{HttpClientError, http_client, http_client_builder};
pub use request::{Request, RequestError};
pub use script::{Script, ScriptError, ScriptedModel};
pub use tokens::estimate_tokens;
pub use wire::{OutputField, Timeouts, Wire, WireModel, WireSettings};
