//! The engine's stages, on the real store.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

mod bounds;
mod chance;
mod context;
mod disk;
mod dispatchers;
mod effects;
mod flood;
mod hold;
mod interleave;
mod look;
mod outcomes;
mod outside;
mod paths;
mod pause;
mod pump;
mod put_back;
mod reach;
mod released;
mod room;
mod settings;
mod shout;
mod supervisor;
mod support;
mod versions;
mod worker;
mod year;
