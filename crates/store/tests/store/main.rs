//! The store through its one door, on both engines: records, order, statements, guards and every way a
//! commit can end (DESIGN sections 4 and 10).

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod fixtures;
mod lanes;
mod order;
mod raw;
mod records;
