//! `adjutant demo`: the story with virtual time.

use crate::cli::DemoArgs;

/// Runs the demo to its end, or until it is told to stop.
pub fn run(args: DemoArgs) -> anyhow::Result<()> {
    let DemoArgs { unattended, kills, json, listen } = args;
    anyhow::bail!(
        "demo is not in this build yet (unattended {unattended}, kills {kills:?}, json {json}, \
         listen {listen:?})"
    )
}
