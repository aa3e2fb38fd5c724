//! The price feed as a process, for tests that run without the `adjutant` binary.

#[tokio::main]
async fn main() -> std::io::Result<()> {
    testkit::price_feed::serve_stdio().await
}
