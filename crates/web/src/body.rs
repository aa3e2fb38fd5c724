//! What clients send, read within bounds and refused with the name of what is wrong.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use base::Id;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::App;
use crate::problem::Problem;

/// A JSON body of `limits.request_bytes` at most.
pub(crate) struct Json<T>(pub T);

/// What is over the limit is still read up to this many times the limit and thrown away, so that
/// the client has sent it and reads the refusal instead of a broken connection.
const DRAIN_TIMES: usize = 4;

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::bad(
                "Send the body as JSON, with Content-Type: application/json.",
            ));
        }
        let bytes = read(request.into_body(), app.web.cx.limits.request_bytes).await?;
        let wrong = |error: serde_json::Error| {
            let what: String = error.to_string().chars().take(200).collect();
            Problem::bad(format!("The body is not as this address takes it: {what}."))
        };
        serde_json::from_slice(&bytes).map(Json).map_err(wrong)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = media.and_then(|media| media.split(';').next()).unwrap_or_default();
    media.trim().eq_ignore_ascii_case("application/json")
}

/// A body of `limit` bytes at most.
pub(crate) async fn read(mut body: Body, limit: usize) -> Result<Vec<u8>, Problem> {
    let (mut bytes, mut seen) = (Vec::new(), 0_usize);
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let broken = |_| Problem::bad("The body broke off. Send the same request again.");
        let data: Bytes = frame.map_err(broken)?.into_data().unwrap_or_default();
        seen = seen.saturating_add(data.len());
        if seen > limit.saturating_mul(DRAIN_TIMES) {
            break;
        }
        if seen <= limit {
            bytes.extend_from_slice(&data);
        }
    }
    if seen > limit { Err(Problem::too_large(limit)) } else { Ok(bytes) }
}

/// The query of an address; unknown names and values out of range are refused.
pub(crate) struct Asked<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let wrong = |error: QueryRejection| {
            let what: String = error.body_text().chars().take(200).collect();
            Problem::bad(format!("{what}. See GET /openapi.json for what this address takes."))
        };
        let Query(asked) = Query::from_request_parts(parts, app).await.map_err(wrong)?;
        Ok(Asked(asked))
    }
}

/// The record that an address names. What is no id names no record.
pub(crate) struct Named<T>(pub T);

impl<T: Id> FromRequestParts<App> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let missing = || Problem::missing(T::NOUN);
        let Path(text) =
            Path::<String>::from_request_parts(parts, app).await.map_err(|_| missing())?;
        base::parse_id(&text).map(Named).map_err(|_| missing())
    }
}

/// A body without anything in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Empty {}

/// How many entries a list may have at most, and has if nothing else is asked.
pub(crate) const PAGE_MAX: u32 = 500;

/// The asked number of entries of a page.
pub(crate) fn check_limit(asked: Option<u32>, usual: u32) -> Result<i64, Problem> {
    match asked.unwrap_or(usual) {
        limit if (1..=PAGE_MAX).contains(&limit) => Ok(i64::from(limit)),
        limit => Err(Problem::bad(format!("limit is {limit}; ask for 1 to {PAGE_MAX}."))),
    }
}

/// The asked number of the change sequence.
pub(crate) fn check_seq(asked: u64) -> Result<i64, Problem> {
    i64::try_from(asked).map_err(|_| Problem::bad("That number is beyond any change."))
}

const NAME_CHARS_MAX: usize = 100;

/// A name as a person writes it, of what `whose` says.
pub(crate) fn check_name(whose: &str, name: &str) -> Result<String, Problem> {
    let name = name.trim();
    let length = name.chars().count();
    if length == 0 || length > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        return Err(Problem::bad(format!(
            "Give {whose} a name of 1 to {NAME_CHARS_MAX} characters on one line."
        )));
    }
    Ok(name.to_owned())
}
