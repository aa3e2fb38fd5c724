//! A world to read: the price feed, and one tool that takes its time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::{Reading, World};
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

    fn refusal(&self, tool: &str) -> Option<String> {
        match tool {
            "feed.price" | "feed.history" => None,
            "feed.buy" => Some("feed.buy has an effect; propose it to the person instead.".into()),
            other => Some(format!("There is no tool \"{other}\"; the names are in the prefix.")),
        }
    }

    fn schema<'a>(&'a self, tool: &'a str) -> Reading<'a> {
        Box::pin(async move { format!("{tool}: prices in euros\nArguments: {{\"date\":\"day\"}}") })
    }

    fn read<'a>(
        &'a self,
        tool: &'a str,
        arguments: Map<String, Value>,
        _limit: Duration,
    ) -> Reading<'a> {
        Box::pin(async move {
            let name = tool.strip_prefix("feed.").unwrap_or(tool);
            let mut feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
            match feed.answer(name, &arguments) {
                Ok(text) => text,
                Err(text) => format!("The tool failed: {text}"),
            }
        })
    }
}
