//! What tests and the demo need: clocks, the scripted model over HTTP, the price feed, the hotel vendor that may
//! lie, PostgreSQL for tests, a proxy that loses commits, and the right to send a call. Production code depends on
//! none of it.
pub mod clock;
pub mod hotel;
pub mod mcp_http;
pub mod model_server;
pub mod permit;
pub mod postgres;
pub mod postgres_proxy;
pub mod price_feed;
pub mod site;
pub mod stores;
pub mod world;
