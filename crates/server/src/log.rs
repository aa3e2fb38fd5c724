//! The log of the process, on standard error.

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// Starts the log with the configured filter and form. Called once, by the process that serves.
pub fn start(config: &Config) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&config.log)?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match config.log_format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("the log cannot start: {error}"))
}
