//! The one place that knows `rmcp`: a connection to one server process over its standard streams.

mod connection;
mod content;
mod lines;
mod process;

pub(crate) use connection::Connection;
