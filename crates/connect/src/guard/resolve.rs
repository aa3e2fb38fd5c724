//! Names to addresses, as a parameter.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// A look-up under way.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Looks host names up. What it answers is checked, so it need not be trusted.
pub trait Resolve: Send + Sync {
    /// The addresses of `host`, a name in ASCII form without a final dot.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a>;
}

/// The system's own resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
