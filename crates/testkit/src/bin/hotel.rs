//! The hotel vendor as a process, for tests that run without the `adjutant` binary.

use std::sync::Arc;

use testkit::hotel::process::{ProcessOptions, serve_stdio};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let options = ProcessOptions::from_arguments(std::env::args().skip(1))?;
    serve_stdio(options, Arc::new(base::SystemClock)).await
}
