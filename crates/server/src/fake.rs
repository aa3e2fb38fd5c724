//! `adjutant fake`: fake vendors as processes, for tests and the demo.

use std::io::Write as _;
use std::sync::Arc;

use base::SystemClock;
use testkit::hotel::HotelOptions;
use testkit::hotel::process::ProcessOptions;

use crate::cli::FakeKind;

/// Serves one fake vendor until its input ends or it is told to stop.
pub fn run(kind: FakeKind) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match kind {
        FakeKind::Model { listen, script } => runtime.block_on(async {
            let any = std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 0));
            let listener = tokio::net::TcpListener::bind(listen.unwrap_or(any)).await?;
            writeln!(std::io::stdout(), "ready: http://{}/v1", listener.local_addr()?)?;
            let text = match script {
                None => testkit::model_server::PRICE_SCRIPT.to_owned(),
                Some(file) => std::fs::read_to_string(&file)
                    .map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?,
            };
            let script = model::Script::parse(&text)?;
            let config = testkit::model_server::Config::new(script, Arc::new(SystemClock));
            Ok(testkit::model_server::serve(listener, config).await?)
        }),
        FakeKind::Hotel { seed, state, faults } => {
            let options = HotelOptions::default();
            let options = ProcessOptions { seed, options, state, faults };
            let clock = Arc::new(SystemClock);
            Ok(runtime.block_on(testkit::hotel::process::serve_stdio(options, clock))?)
        }
        FakeKind::PriceFeed => Ok(runtime.block_on(testkit::price_feed::serve_stdio())?),
    }
}
