//! The outside world, as tools with known effects.
//!
//! A **connector** is a server that speaks MCP, as a process of ours over stdio or at an address over
//! HTTP, together with a **manifest** that says what each of its tools does to the world (DESIGN
//! section 6). [`Connectors`] lists the tools of all manifests, fetches a tool's schema when it is
//! asked for, calls tools that only read, sends what was released, and looks for what became of it.
//!
//! What is absent: SQL, models, duties and the engine are unknown here. There are two ways to call a
//! tool, and what a server says about its own tools never loosens either of them:
//!
//! - [`Connectors::call`] takes a [`ReadTool`], and the only place that gives one is
//!   [`Wanted::cleared`], for manifest entries with `effect = "read"` whose ids were all issued by a tool
//!   (P5, TOOL-15).
//! - [`Connectors::act`] takes a [`store::Permit`], and the only place that gives one is the commit of the
//!   attempt. Nothing else of the store is used here.
//!
//! `rmcp`'s types stay inside the `mcp` folder.
//!
//! ```no_run
//! # async fn example(connectors: &connect::Connectors) -> Result<(), Box<dyn std::error::Error>> {
//! let arguments = serde_json::Map::from_iter([("date".into(), "2027-03-01".into())]);
//! let wanted = connectors.wanted("prices.price", arguments)?;
//! // Which ids were issued is on record; here none were.
//! let tool = wanted.cleared(|_needed| false)?;
//! let answer = connectors.call(tool, std::time::Duration::from_secs(30)).await?;
//! println!("{} said: {}", answer.provenance, answer.text);
//! # Ok(())
//! # }
//! ```

mod connectors;
mod effect;
mod error;
pub mod guard;
mod manifest;
mod mcp;
mod objects;
pub mod source;
mod supervise;
mod text;
mod tools;
pub mod web;

pub use connectors::{Address, Command, ConnectLimits, Connectors, Reach, ServerConfig};
pub use effect::{Acted, Intended};
pub use error::{ConfigError, ConnectError};
pub use manifest::{Idempotent, Manifest, ManifestError, OneOf, Reconcile, ToolRule};
pub use tools::{
    Issued, Level, Needed, ReadTool, Refusal, ToolAnswer, ToolEntry, ToolSchema, Wanted,
};
