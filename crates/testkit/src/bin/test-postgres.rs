//! `test-postgres COMMAND [ARGUMENT]…`: runs a command with a PostgreSQL that its tests share.
//!
//! Sets `ADJUTANT_TEST_POSTGRES` for the command and ends with its exit code; the server is gone
//! afterwards. Where no PostgreSQL is to be had it says so and sets the variable to `skip`.

use std::io::{Write, stderr};
use std::process::{Command, ExitCode};

use testkit::postgres::{TestPostgres, URL_VARIABLE, Unavailable};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        return say("usage: test-postgres COMMAND [ARGUMENT]...", ExitCode::from(2));
    };
    let server = TestPostgres::start();
    let value = match &server {
        Ok(server) => server.url(),
        Err(reason @ (Unavailable::Skipped | Unavailable::NotInstalled)) => {
            say(&format!("skipped: PostgreSQL tests because {reason}"), ExitCode::SUCCESS);
            "skip".to_owned()
        }
        Err(reason @ Unavailable::Failed { .. }) => {
            return say(&reason.to_string(), ExitCode::FAILURE);
        }
    };
    let status = Command::new(&program).args(arguments).env(URL_VARIABLE, value).status();
    match status {
        Ok(status) => status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .map_or(ExitCode::FAILURE, ExitCode::from),
        Err(error) => say(&format!("{}: {error}", program.display()), ExitCode::FAILURE),
    }
}

/// A line to the person at the terminal; if nobody reads it, nothing else can be done.
fn say(text: &str, code: ExitCode) -> ExitCode {
    drop(writeln!(stderr(), "{text}"));
    code
}
