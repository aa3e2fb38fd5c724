//! A signed sample: what a sender would send, made here, to try a webhook's whole way in.

use axum::body::Body;
use axum::http::Request;
use base::{Secret, SourceId, Timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use connect::source::Scheme;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use uuid::Uuid;

/// Marks a request that was made in this process: it is checked like any other and stored nowhere, so
/// that it wakes nobody. Nothing that comes over the network can carry it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample;

/// What the sample says.
const BODY: &str = r#"{"type":"adjutant.sample","data":{"text":"A sample of this source."}}"#;

/// A signed request to a source's own address. `None`: the secret is none of this scheme.
pub(crate) fn request(
    source: SourceId,
    scheme: Scheme,
    secret: &Secret,
    id: Uuid,
    now: Timestamp,
) -> Option<Request<Body>> {
    let at =
        Request::post(format!("/v1/hooks/{source}")).header("content-type", "application/json");
    let signed = match scheme {
        Scheme::Standard => {
            let text = secret.expose();
            let key = STANDARD.decode(text.strip_prefix("whsec_").unwrap_or(text)).ok()?;
            let seconds = now.micros().div_euclid(1_000_000);
            let mac = sign(&key, &format!("{id}.{seconds}.{BODY}"))?;
            at.header("webhook-id", id.to_string())
                .header("webhook-timestamp", seconds.to_string())
                .header("webhook-signature", format!("v1,{}", STANDARD.encode(mac)))
        }
        Scheme::Github => {
            let mac = sign(secret.expose().as_bytes(), BODY)?;
            let digits: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
            at.header("x-github-delivery", id.to_string())
                .header("x-github-event", "ping")
                .header("x-hub-signature-256", format!("sha256={digits}"))
        }
    };
    signed.extension(Sample).body(Body::from(BODY)).ok()
}

fn sign(key: &[u8], text: &str) -> Option<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(text.as_bytes());
    Some(mac.finalize().into_bytes().to_vec())
}
