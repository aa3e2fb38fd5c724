//! Failures that a test orders in advance.

use std::collections::VecDeque;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::wire;

/// The most failures that may wait.
const WAITING_MAX: usize = 10_000;
/// The longest delay.
const DELAY_MS_MAX: u64 = 600_000;

/// What one question meets. An empty one is no failure: it lets one question pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fault {
    /// Answer with this status instead of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// With `status`: seconds for the `Retry-After` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// Break the connection after so many bytes of the answer's body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_after_bytes: Option<usize>,
    /// Wait before doing anything, at most ten minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

impl Fault {
    pub(super) fn delay(&self) -> Option<Duration> {
        self.delay_ms.map(|ms| Duration::from_millis(ms.min(DELAY_MS_MAX)))
    }

    /// The answer of a failure that has a status.
    pub(super) fn refusal(&self) -> Option<Response> {
        let status = StatusCode::from_u16(self.status?).unwrap_or(StatusCode::BAD_GATEWAY);
        let mut response = wire::error(status, "ordered", "this failure was ordered");
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        Some(response)
    }
}

/// The failures that wait, each for one question.
#[derive(Default)]
pub(super) struct Faults {
    next: VecDeque<Fault>,
}

impl Faults {
    pub(super) fn take(&mut self) -> Option<Fault> {
        self.next.pop_front()
    }

    /// Adds those of `{"next": [...]}` at the end and gives how many wait then.
    pub(super) fn add(&mut self, body: &[u8]) -> Result<usize, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Order {
            next: Vec<Fault>,
        }
        let order: Order = serde_json::from_slice(body)
            .map_err(|error| format!("write {{\"next\":[{{\"status\":429}}]}}: {error}"))?;
        if self.next.len() + order.next.len() > WAITING_MAX {
            return Err(format!("more than {WAITING_MAX} failures would wait; order fewer"));
        }
        self.next.extend(order.next);
        Ok(self.next.len())
    }
}
