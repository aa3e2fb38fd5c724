//! placeholder
pub mod clock;
pub mod model_server;
pub mod postgres;
pub mod postgres_proxy;
pub mod price_feed;
pub mod stores;
