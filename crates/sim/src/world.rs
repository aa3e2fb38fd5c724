//! A world to read: the price feed, and one tool that takes its time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base::Timestamp;
use engine::world::{Call, Health, Level, Look, Need, Read, Slow, World};
use serde_json::{Map, Value};
use testkit::price_feed::PriceFeed;

/// The simulated connectors.
#[derive(Debug, Default)]
pub struct SimWorld {
    /// Answers at once and never awaits.
    feed: Mutex<PriceFeed>,
}

/// The tool whose answer takes [`SLOW_MS`].
pub const SLOW: &str = "feed.history";
/// How long [`SLOW`] takes, in milliseconds: longer than a burst window and a lease's renewal.
pub const SLOW_MS: u64 = 12_000;

impl World for SimWorld {
    fn tools(&self) -> Vec<String> {
        ["feed.price", "feed.history", "feed.buy"].map(str::to_owned).to_vec()
    }

    fn needs(&self, tool: &str, _arguments: &Map<String, Value>) -> Result<Vec<Need>, String> {
        match tool {
            "feed.price" | "feed.history" => Ok(Vec::new()),
            "feed.buy" => Err("feed.buy has an effect; propose it to the person instead.".into()),
            other => Err(format!("There is no tool \"{other}\"; the names are in the prefix.")),
        }
    }

    fn level(&self, _tool: &str) -> Level {
        Level::Connector
    }

    fn stands_for(&self, _host: &str) -> Option<String> {
        None
    }

    fn schema<'a>(&'a self, tool: &'a str) -> Slow<'a, String> {
        Box::pin(async move { format!("{tool}: prices in euros\nArguments: {{\"date\":\"day\"}}") })
    }

    fn read<'a>(&'a self, call: Call, _limit: Duration) -> Slow<'a, Read> {
        Box::pin(async move {
            let name = call.tool.strip_prefix("feed.").unwrap_or(&call.tool);
            let mut feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
            let (text, health) = match feed.answer(name, &call.arguments) {
                Ok(text) => (text, Some(Health::Works { connector: "feed".into() })),
                Err(text) => (format!("The tool failed: {text}"), None),
            };
            let provenance = call.tool.clone();
            Read { text, level: Level::Connector, provenance, issued: Vec::new(), health }
        })
    }

    fn look<'a>(
        &'a self,
        _config: &'a str,
        _cursor: Option<&'a str>,
        _now: Timestamp,
    ) -> Slow<'a, Result<Look, String>> {
        Box::pin(async { Err("there is no such source here".to_owned()) })
    }
}
