//! Errors as RFC 9457 problems, each with what to do next.

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::words::{self, Language};
use engine::control::Changed;
use serde::Serialize;
use store::StoreError;

use crate::stale::Stale;

/// Why a request was not done. `detail` is a sentence for the person or program that asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
    retry_after_s: Option<u32>,
    written: Written,
    challenge: &'static str,
    stale: Option<Box<Stale>>,
}

/// What a failed request may have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Written {
    /// Certainly nothing.
    Nothing,
    /// All of it or nothing: the same request with the same id tells.
    Unknown,
}

/// The form on the wire.
#[derive(Serialize)]
struct Wire<'a> {
    r#type: &'static str,
    title: &'a str,
    status: u16,
    detail: &'a str,
    written: Written,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<&'a Stale>,
}

/// How soon a request that was not taken in may come again.
const RETRY_AFTER_S: u32 = 1;
const MEDIA: HeaderValue = HeaderValue::from_static("application/problem+json");

impl Problem {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Problem {
            status,
            detail: detail.into(),
            retry_after_s: None,
            written: Written::Nothing,
            challenge: "Bearer",
            stale: None,
        }
    }

    /// 400: the request is not as the API describes it.
    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 401: one answer for a missing, wrong and revoked token alike.
    pub(crate) fn unauthorized() -> Self {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "This needs the token of a paired device, as \"Authorization: Bearer <token>\". Pair this \
             device: make a code with \"adjutant pair\" where the server runs, or on a paired page \
             under More, and enter it here.",
        )
    }

    /// 403: from a place or with a code that is not let in.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::FORBIDDEN, detail)
    }

    /// 404: no such record of this owner.
    pub(crate) fn missing(what: &str) -> Self {
        let detail = format!("There is no such {what}. Read the list again; it may have changed.");
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// 404: no such address.
    pub(crate) fn no_route() -> Self {
        let detail = "There is nothing at this address. GET /openapi.json lists what there is.";
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// 409: not possible any more, with what happened instead.
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::CONFLICT, detail)
    }

    /// The same with what changed about the card that was tapped.
    pub(crate) fn with_stale(self, stale: Option<Stale>) -> Self {
        Problem { stale: stale.map(Box::new), ..self }
    }

    /// 410: changes after that number are not kept.
    pub(crate) fn gone() -> Self {
        let detail = "The changes after that number are no longer kept. Read everything again.";
        Problem::new(StatusCode::GONE, detail)
    }

    /// 413: the body is over the limit.
    pub(crate) fn too_large(limit_bytes: usize) -> Self {
        let detail = format!("The body is over {limit_bytes} bytes. Send less at once.");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    /// 429: a bound on tries or open streams is reached.
    pub(crate) fn too_many(detail: impl Into<String>, retry_after_s: u32) -> Self {
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, detail);
        Problem { retry_after_s: Some(retry_after_s), ..problem }
    }

    /// 503: certainly not done; the same request may go better later.
    pub(crate) fn not_done(detail: impl Into<String>) -> Self {
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        Problem { retry_after_s: Some(RETRY_AFTER_S), ..problem }
    }

    /// 503: not done, since too much waits; the sender is told when to come again.
    pub(crate) fn later(detail: impl Into<String>, retry_after_s: u32) -> Self {
        Problem { retry_after_s: Some(retry_after_s), ..Problem::not_done(detail) }
    }

    /// What a webhook's check says, with the status that it deserves. Nothing is stored of it.
    pub(crate) fn of_hook(status: u16, why: &str) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        let problem = match status {
            StatusCode::SERVICE_UNAVAILABLE => Problem::not_done(sentence(why)),
            status => Problem::new(status, sentence(why)),
        };
        Problem { challenge: "Signature", ..problem }
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// What to do next.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Whether the request itself was at fault.
    pub(crate) fn is_refusal(&self) -> bool {
        self.status.is_client_error()
    }

    /// Whether certainly nothing was written.
    pub(crate) fn wrote_nothing(&self) -> bool {
        self.written == Written::Nothing
    }

    /// 503: not known to be done; the same request again is safe.
    pub(crate) fn unavailable(detail: impl Into<String>) -> Self {
        Problem { written: Written::Unknown, ..Problem::not_done(detail) }
    }

    /// 500: a defect of this program; what it was stands in the log.
    fn defect() -> Self {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "This is a defect of the server; nothing was changed. Its log names it; run \"adjutant \
             doctor\".",
        )
    }

    /// For an answer that was made outside this crate's own code.
    fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::METHOD_NOT_ALLOWED => Problem::new(
                status,
                "This address does not take that method. The header Allow and GET /openapi.json name \
                 those it takes.",
            ),
            StatusCode::NOT_FOUND => Problem::no_route(),
            other => Problem::new(other, "See GET /openapi.json for what this address takes."),
        }
    }
}

impl From<Changed> for Problem {
    fn from(no: Changed) -> Self {
        match no {
            Changed::NotYours(whose) => Problem::forbidden(whose),
            Changed::Conflict(what) => Problem::conflict(what),
            Changed::Done => Problem::defect(),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Missing(noun) => Problem::missing(noun),
            StoreError::Busy
            | StoreError::Unavailable(_)
            | StoreError::OutcomeUnknown
            | StoreError::Duplicate(_) => Problem::unavailable(
                "The store is busy or cannot be reached. Send the same request again, with the same \
                 id: it is done once.",
            ),
            StoreError::Full => Problem::not_done(
                "The disk of the server is full and nothing was written. Free some space, then send \
                 the same request again.",
            ),
            StoreError::Closed => Problem::unavailable(
                "The server is stopping. Send the same request again once it runs.",
            ),
            StoreError::Fenced
            | StoreError::Refused(_)
            | StoreError::Corrupt(_)
            | StoreError::Panicked
            | StoreError::Ended
            | StoreError::Sql { .. }
            | StoreError::Open(_) => {
                tracing::error!(%error, "a request failed by a defect");
                Problem::defect()
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let spoken = self.clone();
        let mut response = self.in_language(Language::En);
        // For a reader of another language, once the whole request is known; see [`uniform`].
        response.extensions_mut().insert(spoken);
        response
    }
}

impl Problem {
    fn in_language(&self, language: Language) -> Response {
        let detail = words::said(&self.detail, language);
        let wire = Wire {
            r#type: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Refused"),
            status: self.status.as_u16(),
            detail: &detail,
            written: self.written,
            stale: self.stale.as_deref(),
        };
        let mut response = (self.status, Json(wire)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, MEDIA);
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(self.challenge));
        }
        response
    }
}

/// An error's text as a sentence for a person.
pub(crate) fn sentence(why: &str) -> String {
    let mut letters = why.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let stop = if why.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

/// Gives every refusal the same form, also those that the HTTP library makes by itself.
pub(crate) async fn uniform(request: Request, next: Next) -> Response {
    let accepted = request.headers().get(header::ACCEPT_LANGUAGE);
    let accepted = accepted.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let language = Language::of_locale(accepted);
    let mut response = next.run(request).await;
    if language != Language::En
        && let Some(problem) = response.extensions_mut().remove::<Problem>()
    {
        response = problem.in_language(language);
    }
    let (status, headers) = (response.status(), response.headers());
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_error || headers.get(header::CONTENT_TYPE) == Some(&MEDIA) {
        return response;
    }
    let allow = headers.get(header::ALLOW).cloned();
    let mut uniform = Problem::of_status(status).into_response();
    if let Some(allow) = allow {
        uniform.headers_mut().insert(header::ALLOW, allow);
    }
    uniform
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_whether_anything_can_have_been_written() {
        let nothing = [
            Problem::bad(""),
            Problem::conflict(""),
            Problem::too_many("", 1),
            Problem::from(StoreError::Full),
            Problem::from(StoreError::Refused(String::new())),
        ];
        let unknown = [StoreError::Busy, StoreError::OutcomeUnknown, StoreError::Closed];
        assert!(nothing.iter().all(|problem| problem.written == Written::Nothing));
        let unknown = unknown.map(Problem::from);
        assert!(unknown.iter().all(|problem| problem.written == Written::Unknown));
    }
}
