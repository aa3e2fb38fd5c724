//! The world: the price feed, a notice board that a story writes on, polled sources, one tool that takes its
//! time, and in some stories a hotel. It may lie: repeat what it said, or break off in the middle.

mod hotel;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::{Clock, Timestamp};
use domain::effect::{Observation, Sight, Spec};
use engine::world::{Acted, Call, Found, Health, Intended, Level, Look, Need, Read, Slow, World};
use serde_json::{Map, Value};
use store::Permit;
use testkit::clock::FakeClock;
use testkit::price_feed::PriceFeed;

pub(crate) use hotel::Vendor;
pub use hotel::{HotelEnd, Looked, Reached};

use crate::story::{Entry, Story};

/// How the next look at a polled source goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// It gives everything once more, from the beginning, the newest first.
    Repeat,
    /// It does not answer.
    Silence,
}

/// The simulated connectors and sources.
#[derive(Debug)]
pub struct SimWorld {
    clock: Arc<FakeClock>,
    start: Timestamp,
    board: Vec<(u64, &'static str)>,
    entries: Vec<Entry>,
    /// Answers at once and never awaits.
    feed: Mutex<PriceFeed>,
    lie: Mutex<Option<Lie>>,
    /// In the stories that have one.
    pub(crate) vendor: Option<Vendor>,
}

/// The tool whose answer takes [`SLOW_MS`].
pub const SLOW: &str = "feed.history";
/// How long [`SLOW`] takes, in milliseconds: longer than a burst window and a lease's renewal.
pub const SLOW_MS: u64 = 12_000;
/// The tool that reads the notice board.
const BOARD: &str = "board.read";
/// Entries that one look gives; the rest follows at once.
const LOOK_MAX: usize = 2;

impl SimWorld {
    /// The world of a story.
    pub fn new(story: &Story, clock: Arc<FakeClock>) -> SimWorld {
        SimWorld {
            clock,
            start: story.start,
            board: story.board.clone(),
            entries: story.entries.clone(),
            feed: Mutex::default(),
            lie: Mutex::default(),
            vendor: story.hotel.map(Vendor::new),
        }
    }

    /// The next look at a polled source goes wrong.
    pub fn lie(&self, lie: Lie) {
        *self.lie.lock().unwrap_or_else(PoisonError::into_inner) = Some(lie);
    }

    /// Whether a time of the story, in milliseconds after its start, has come.
    fn has_come(&self, at_ms: u64, now: Timestamp) -> bool {
        self.start.plus_ms(at_ms) <= now
    }

    /// What the board says now; nothing once its story leaves it blank.
    fn board(&self) -> Option<&'static str> {
        let now = self.clock.now();
        let written = self.board.iter().rfind(|(at_ms, _)| self.has_come(*at_ms, now));
        written.map(|(_, text)| *text).filter(|text| !text.is_empty())
    }

    fn entries(&self, config: &str, cursor: usize, now: Timestamp) -> Look {
        let lie = self.lie.lock().unwrap_or_else(PoisonError::into_inner).take();
        let out = self.entries.iter().filter(|entry| entry.source == config);
        let out: Vec<&Entry> = out.filter(|entry| self.has_come(entry.at_ms, now)).collect();
        let next = out.len().min(cursor + LOOK_MAX);
        let mut found: Vec<Found> = out[cursor.min(next)..next].iter().map(|e| e.found()).collect();
        if lie == Some(Lie::Repeat) {
            found = out[..next].iter().rev().map(|entry| entry.found()).collect();
        }
        Look { items: found, cursor: next.to_string(), more: next < out.len() }
    }
}

impl World for SimWorld {
    fn tools(&self) -> Vec<String> {
        let mut tools =
            ["feed.price", "feed.history", "feed.buy", BOARD].map(str::to_owned).to_vec();
        tools.extend(self.vendor.iter().flat_map(|_| Vendor::tools()));
        tools
    }

    fn needs(&self, tool: &str, _arguments: &Map<String, Value>) -> Result<Vec<Need>, String> {
        match tool {
            "feed.price" | "feed.history" | BOARD => Ok(Vec::new()),
            known if self.vendor.is_some() && Vendor::tool(known).is_some() => Ok(Vec::new()),
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
            if let (Some(vendor), Some(tool)) = (&self.vendor, Vendor::tool(&call.tool)) {
                let (text, issued) = vendor.read(tool, &call.arguments, self.clock.now());
                let (level, provenance) = (Level::Connector, call.tool);
                return Read { text, level, provenance, issued, health: None };
            }
            let answer = match call.tool.strip_prefix("feed.") {
                Some(name) => {
                    let mut feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
                    feed.answer(name, &call.arguments)
                }
                None => match self.board() {
                    Some(text) => Ok(serde_json::json!({ "says": text }).to_string()),
                    None => Err("the board cannot be read just now".to_owned()),
                },
            };
            let connector = call.tool.split('.').next().unwrap_or_default().to_owned();
            let (text, health) = match answer {
                Ok(text) => (text, Some(Health::Works { connector })),
                Err(text) => (format!("The tool failed: {text}"), None),
            };
            let provenance = call.tool.clone();
            Read { text, level: Level::Connector, provenance, issued: Vec::new(), health }
        })
    }

    fn intended(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Option<Result<Intended, String>> {
        self.vendor.as_ref().and_then(|_| Vendor::intended(tool, arguments)).map(Ok)
    }

    fn spec(&self, tool: &str) -> Option<Spec> {
        self.vendor.as_ref().and_then(|_| hotel::spec(tool))
    }

    fn act<'a>(
        &'a self,
        permit: Permit,
        clock: &'a dyn Clock,
        _limit: Duration,
    ) -> Slow<'a, Acted> {
        Box::pin(async move {
            match &self.vendor {
                Some(vendor) => vendor.act(&permit, clock.now()),
                None => Acted {
                    seen: Observation::NotSent("there is no vendor".into()),
                    answer: String::new(),
                    issued: Vec::new(),
                    refused_key: None,
                },
            }
        })
    }

    fn find<'a>(&'a self, tool: &'a str, op: &'a str, _limit: Duration) -> Slow<'a, Sight> {
        Box::pin(async move {
            match &self.vendor {
                Some(vendor) => vendor.find(tool, op, self.clock.now()),
                None => Sight::Unreadable("there is no vendor".into()),
            }
        })
    }

    fn look<'a>(
        &'a self,
        config: &'a str,
        cursor: Option<&'a str>,
        now: Timestamp,
    ) -> Slow<'a, Result<Look, String>> {
        Box::pin(async move {
            let silent = {
                let mut lie = self.lie.lock().unwrap_or_else(PoisonError::into_inner);
                lie.take_if(|lie| *lie == Lie::Silence).is_some()
            };
            if silent {
                return Err("it did not answer".to_owned());
            }
            let cursor = cursor.and_then(|text| text.parse().ok()).unwrap_or(0);
            Ok(self.entries(config, cursor, now))
        })
    }
}
