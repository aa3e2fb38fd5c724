//! The API as a client meets it: the real router on a real port over a real store.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod access;
mod actions;
mod client;
mod contract;
mod control;
mod copy;
mod decisions;
mod devices;
mod events;
mod hooks;
mod log;
mod metrics;
mod reads;
mod rules;
mod server;
mod settings;
mod signals;
mod sources;
mod story;
mod writes;
