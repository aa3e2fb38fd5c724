//! The real program, killed: what it acknowledged is there and was handled once (DESIGN section
//! 10).
//!
//! `ADJUTANT_KILL_SEED=N` repeats the kill times of an earlier run; every run prints its own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod backup;
mod io_error;
mod judge;
mod judged;
mod late;
mod loops;
mod person;
mod stage;

use stage::Engine;

#[test]
fn kill_20_sqlite() {
    loops::kill(Engine::Sqlite, 20);
}

#[test]
fn kill_20_postgres() {
    loops::kill(Engine::Postgres, 20);
}

#[test]
#[ignore = "two minutes; ./test --long runs it"]
fn long_kill_200_sqlite() {
    loops::kill(Engine::Sqlite, 200);
}

#[test]
#[ignore = "two minutes; ./test --long runs it"]
fn long_kill_200_postgres() {
    loops::kill(Engine::Postgres, 200);
}
