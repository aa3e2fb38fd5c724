//! Answers that carry no record: the page's files, the API's own description, common headers.

use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::page;
use crate::problem::Problem;

/// The API's description, which the binary carries: an OpenAPI 3.1 document.
pub const OPENAPI: &str = include_str!("../openapi.json");

/// The page's index.
pub(crate) async fn index() -> Response {
    page::asset("/").map_or_else(|| Problem::no_route().into_response(), |file| served(&file))
}

/// Whatever is at no address of the API: the page's other files, or nothing.
pub(crate) async fn page(method: Method, uri: Uri) -> Response {
    match page::asset(uri.path()) {
        Some(file) if method == Method::GET || method == Method::HEAD => served(&file),
        Some(_) | None => Problem::no_route().into_response(),
    }
}

fn served(file: &page::Asset) -> Response {
    let mut response = Response::new(Body::from(file.bytes));
    for (name, value) in page::headers(file) {
        response
            .headers_mut()
            .insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// The API's description.
pub(crate) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// Logs every answer and gives it headers where it has none of its own: kept nowhere, guessed as
/// nothing else, framed and referred to by nobody.
pub(crate) async fn sealed(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    // The pattern of the route and not the address: what people paste into addresses is not logged.
    let path = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    let path = path.as_ref().map_or("(the page)", MatchedPath::as_str);
    tracing::debug!(%method, path, status = response.status().as_u16(), "answered");
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
