//! Connections: each is served until its other side has had enough, and none is waited for without end.

use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long a connection may take for the header of its next request.
pub const HEADER_MS: u64 = 15_000;
/// Connections that are open at once; one more waits until another one ends.
const CONNECTIONS_MAX: usize = 512;
/// How long to rest when the system gives no further connection, such as for want of files.
const REST_MS: u64 = 1_000;

/// Serves until `stop` becomes true and what is under way has ended. A connection that has sent no whole
/// header within `header_ms` is closed.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    mut stop: watch::Receiver<bool>,
    header_ms: u64,
) {
    let mut open = JoinSet::new();
    loop {
        let of_each = stop.clone();
        tokio::select! {
            () = told(&mut stop) => break,
            Some(_) = open.join_next() => {}
            accepted = listener.accept(), if open.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => {
                    open.spawn(connection(stream, router.clone(), of_each, header_ms));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(REST_MS)).await;
                }
            },
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

/// Until it is to stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

async fn connection(
    stream: TcpStream,
    router: Router,
    mut stop: watch::Receiver<bool>,
    header_ms: u64,
) {
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_millis(header_ms));
    let serving = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = told(&mut stop) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// Long enough for a busy machine; what takes longer fails the test.
    const PATIENCE: Duration = Duration::from_secs(20);

    async fn rest(stream: &mut TcpStream) -> String {
        let mut text = Vec::new();
        let read = stream.read_to_end(&mut text);
        tokio::time::timeout(PATIENCE, read).await.expect("closed in time").expect("an end");
        String::from_utf8_lossy(&text).into_owned()
    }

    #[tokio::test]
    async fn a_connection_that_sends_no_header_is_closed_and_the_others_are_served() {
        let router = Router::new().route("/", axum::routing::get(async || "Hello."));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stopping, stop) = watch::channel(false);
        let serving = tokio::spawn(serve(listener, router, stop, 300));
        let mut silent = TcpStream::connect(address).await.expect("a connection");
        let mut slow = TcpStream::connect(address).await.expect("a connection");
        slow.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nx-half:").await.expect("sent");
        let mut whole = TcpStream::connect(address).await.expect("a connection");
        let ask = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        whole.write_all(ask).await.expect("sent");
        let answer = rest(&mut whole).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("Hello."), "{answer}");
        for stream in [&mut silent, &mut slow] {
            let answer = rest(stream).await;
            assert!(!answer.contains("200 OK"), "{answer}");
        }
        stopping.send_replace(true);
        tokio::time::timeout(PATIENCE, serving).await.expect("it ends").expect("no panic");
    }
}
