//! The engine's stages, on the real store.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

mod chance;
mod context;
mod effects;
mod flood;
mod hold;
mod interleave;
mod look;
mod outside;
mod pump;
mod reach;
mod settings;
mod support;
mod worker;
mod year;
