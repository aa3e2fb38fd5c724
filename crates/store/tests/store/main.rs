//! The store through its one door, on both engines: records, order, statements, guards and every way a
//! commit can end (DESIGN sections 4 and 10).

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod backoff;
mod backup;
mod chat;
mod control;
mod copy;
mod dispatch;
mod effect_records;
mod effects;
mod faults;
mod fixtures;
mod group;
mod guards;
mod illegal;
mod lanes;
mod migration;
mod order;
mod outside;
mod postgres_faults;
mod queue;
mod raw;
mod records;
mod statements;
mod unlocked;
mod world;
