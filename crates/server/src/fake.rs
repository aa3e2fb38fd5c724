//! `adjutant fake`: fake vendors as processes, for tests and the demo.

use crate::cli::FakeKind;

/// Serves one fake vendor until its input ends or it is told to stop.
pub fn run(kind: FakeKind) -> anyhow::Result<()> {
    match kind {
        FakeKind::Model { listen } => {
            anyhow::bail!("fake model is not in this build yet (listen {listen:?})")
        }
        FakeKind::PriceFeed => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            Ok(runtime.block_on(testkit::price_feed::serve_stdio())?)
        }
    }
}
