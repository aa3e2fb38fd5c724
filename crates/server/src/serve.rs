//! `adjutant serve`: wiring of the running system.

use crate::config::Config;

/// Runs the server until it is told to stop.
pub async fn run(config: Config) -> anyhow::Result<()> {
    anyhow::bail!("serve is not in this build yet (it would listen on {})", config.listen)
}
