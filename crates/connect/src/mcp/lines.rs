//! Watches the bytes a server writes to its standard output, before the SDK reads them as lines.
//!
//! The SDK drops a line that is too long and goes on, so that the caller would wait for an answer
//! that will never come; and it skips what is not JSON, for ever. Both end the connection here.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Lines that are not messages after which a connection is ended.
const GARBAGE_LINES_MAX: usize = 1_000;

/// What was seen, for whoever explains why a connection ended.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    too_large: AtomicBool,
    garbage_lines: AtomicUsize,
}

impl Seen {
    /// A message was longer than the limit.
    pub(crate) fn too_large(&self) -> bool {
        self.too_large.load(Ordering::Relaxed)
    }

    /// A clause for an error's text, empty if every line looked like a message.
    pub(crate) fn garbage(&self) -> String {
        match self.garbage_lines.load(Ordering::Relaxed) {
            0 => String::new(),
            lines => format!(", and wrote {lines} lines to stdout that are not messages"),
        }
    }
}

/// A reader that fails once a line is too long or too many lines are not messages.
pub(crate) struct WatchedLines<R> {
    inner: R,
    seen: Arc<Seen>,
    line_bytes: usize,
    line_bytes_max: usize,
}

impl<R> WatchedLines<R> {
    pub(crate) fn new(inner: R, line_bytes_max: usize, seen: Arc<Seen>) -> Self {
        WatchedLines { inner, seen, line_bytes: 0, line_bytes_max }
    }

    fn look(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let starts = self.line_bytes == 0;
            if starts && !matches!(part[0], b'{' | b'[' | b' ' | b'\t' | b'\r' | b'\n') {
                let lines = self.seen.garbage_lines.fetch_add(1, Ordering::Relaxed) + 1;
                if lines >= GARBAGE_LINES_MAX {
                    return Err(io::Error::other("too many lines that are not messages"));
                }
            }
            self.line_bytes += part.len();
            if self.line_bytes > self.line_bytes_max {
                self.seen.too_large.store(true, Ordering::Relaxed);
                return Err(io::Error::other("a line is too long"));
            }
            if part.ends_with(b"\n") {
                self.line_bytes = 0;
            }
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for WatchedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        Poll::Ready(self.look(&buffer.filled()[before..]))
    }
}
