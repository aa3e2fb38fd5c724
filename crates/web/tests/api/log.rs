//! All that the process logs, at the finest level, in one buffer.

use std::io::Write;
use std::sync::{Mutex, Once, PoisonError};

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static ONCE: Once = Once::new();

struct Buffer;

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Begins to keep what is logged.
pub fn capture() {
    ONCE.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(|| Buffer)
            .init();
    });
}

/// What was logged so far.
pub fn text() -> String {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&lines).into_owned()
}
