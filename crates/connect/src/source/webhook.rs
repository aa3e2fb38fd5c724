//! Webhooks: requests that a sender signed with a secret that it shares with us (EVT-04).
//!
//! [`verify`] decides everything by itself from the bytes, the headers and the time that it is
//! given: no store, no clock, no network. What comes out is an [`Item`]; whether its id was seen
//! before is for intake to say (same id and same bytes: acknowledged again; same id, other bytes:
//! 409).
//!
//! - **Standard Webhooks 1.0**: `webhook-id`, `webhook-timestamp` and `webhook-signature` (several
//!   `v1,<base64>`); the secret is `whsec_<base64>`; id, time and body are signed.
//! - **GitHub**: `X-Hub-Signature-256` over the body alone. `X-GitHub-Delivery` and
//!   `X-GitHub-Event` are *not* signed and there is no time, so whoever once saw a whole request
//!   can send it again under another id. TLS and the dedupe of contents stand against that, not
//!   this file.
//!
//! What is absent: `v1a` (asymmetric) signatures, form-encoded bodies, GitHub's SHA-1 header.

mod error;
mod payload;

use base::{Secret, Timestamp};
use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq as _};

use super::{Item, Scheme};
pub use error::HookError;

/// The largest body that is taken, in bytes.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// The longest id that is taken, in bytes.
pub const ID_BYTES_MAX: usize = 200;
/// How far a sender's clock may be from ours, in microseconds, before a signed request is refused.
const TOLERANCE_MICROS: i64 = 5 * 60 * 1_000_000;
/// A secret with fewer bytes than this could be guessed.
const SECRET_BYTES_MIN: usize = 16;
/// How many signatures one request may have; senders send one for each secret in rotation.
const SIGNATURES_MAX: usize = 16;

/// Standard base64, with or without its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The headers of one request, as (name, value). Names are compared without case.
pub struct Headers<'a>(Vec<(&'a str, &'a [u8])>);

impl<'a> Headers<'a> {
    /// Takes the pairs as they came, repeated ones too.
    pub fn new(pairs: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        Headers(pairs.into_iter().collect())
    }

    /// The value of a header; an empty one counts as missing. One that stands there twice is
    /// refused: a proxy and this program could each believe another of the two.
    fn get(&self, name: &'static str) -> Result<Option<&'a str>, HookError> {
        let mut values =
            self.0.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| *v);
        let value = values.next();
        if values.next().is_some() {
            return Err(HookError::Repeated { header: name });
        }
        Ok(value
            .and_then(|value| std::str::from_utf8(value).ok())
            .map(str::trim)
            .filter(|v| !v.is_empty()))
    }

    /// An id that has to be there: at most [`ID_BYTES_MAX`] visible ASCII bytes.
    fn id(&self, name: &'static str) -> Result<&'a str, HookError> {
        let id = self.get(name)?.unwrap_or_default();
        let fits =
            (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
        fits.then_some(id).ok_or(HookError::NoId { header: name })
    }
}

/// Only the names: a value may be a signature.
impl std::fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Whether a secret can be used with a scheme, to be asked when it is entered.
///
/// # Errors
/// [`HookError::BadSecret`] if it is no `whsec_<base64>` for [`Scheme::Standard`], or has fewer
/// than 16 bytes.
pub fn check_secret(scheme: Scheme, secret: &Secret) -> Result<(), HookError> {
    key_bytes(scheme, secret).map(|_| ())
}

/// Checks who sent a request and when, and reads what it says.
///
/// `secrets` are one, or two while they are being changed: either may have signed. `now` is
/// compared with the signed time (±5 minutes; GitHub signs none). `key_path` and `topic_path` are
/// dotted paths in the payload, as `data.order.id` or `items.0.id`; without them the topic is the
/// payload's `type`, or for GitHub the event with its action (`issues.opened`), and GitHub's key is
/// `owner/repo#number`, else `owner/repo`. A path that leads to nothing, or to no short text or
/// number, gives `None`.
///
/// # Errors
/// [`HookError`], with the HTTP status it deserves. Nothing of a refused request may be stored.
pub fn verify(
    scheme: Scheme,
    secrets: &[Secret],
    headers: &Headers<'_>,
    body: &[u8],
    now: Timestamp,
    key_path: Option<&str>,
    topic_path: Option<&str>,
) -> Result<Item, HookError> {
    if body.len() > BODY_BYTES_MAX {
        return Err(HookError::TooLarge { bytes: body.len(), max: BODY_BYTES_MAX });
    }
    let keys = usable_keys(scheme, secrets)?;
    let external_id = match scheme {
        Scheme::Standard => signed_by_standard(&keys, headers, body, now)?,
        Scheme::Github => signed_by_github(&keys, headers, body)?,
    };
    let payload = payload::parse(body)?;
    let (key, topic) = match scheme {
        Scheme::Standard => (None, payload::text_at(&payload, topic_path.unwrap_or("type"))),
        Scheme::Github => {
            let topic = match topic_path {
                Some(path) => payload::text_at(&payload, path),
                None => Some(payload::github_topic(event_name(headers)?, &payload)),
            };
            (payload::github_key(&payload), topic)
        }
    };
    Ok(Item {
        external_id: external_id.to_owned(),
        key: key_path.map_or(key, |path| payload::text_at(&payload, path)),
        topic,
        content: body.to_vec(),
        media: "application/json".to_owned(),
        links: payload::links(&payload, scheme),
    })
}

/// The keys of those secrets that can be used; one that was mistyped must not shut the other out.
fn usable_keys(scheme: Scheme, secrets: &[Secret]) -> Result<Vec<Vec<u8>>, HookError> {
    let mut refused = HookError::NoSecret;
    let mut keys = Vec::with_capacity(secrets.len());
    for secret in secrets {
        match key_bytes(scheme, secret) {
            Ok(key) => keys.push(key),
            Err(error) => refused = error,
        }
    }
    if keys.is_empty() { Err(refused) } else { Ok(keys) }
}

fn key_bytes(scheme: Scheme, secret: &Secret) -> Result<Vec<u8>, HookError> {
    let text = secret.expose();
    let bytes = match scheme {
        Scheme::Standard => {
            BASE64.decode(text.strip_prefix("whsec_").unwrap_or(text)).unwrap_or_default()
        }
        Scheme::Github => text.as_bytes().to_vec(),
    };
    if bytes.len() < SECRET_BYTES_MIN { Err(HookError::BadSecret { scheme }) } else { Ok(bytes) }
}

/// The id, if id, time and body were signed together, not long ago.
fn signed_by_standard<'a>(
    keys: &[Vec<u8>],
    headers: &Headers<'a>,
    body: &[u8],
    now: Timestamp,
) -> Result<&'a str, HookError> {
    let id = headers.id("webhook-id")?;
    let sent = headers.get("webhook-timestamp")?.unwrap_or_default();
    let seconds = Some(sent)
        .filter(|sent| sent.len() <= 12 && sent.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|sent| sent.parse::<i64>().ok())
        .ok_or(HookError::NoTimestamp)?;
    let signatures = headers.get("webhook-signature")?.unwrap_or_default();
    let versioned = || signatures.split(' ').filter_map(|one| one.strip_prefix("v1,"));
    if versioned().nth(SIGNATURES_MAX).is_some() {
        return Err(HookError::TooManySignatures { max: SIGNATURES_MAX });
    }
    let given: Vec<Vec<u8>> =
        versioned().filter_map(|signature| BASE64.decode(signature).ok()).collect();
    is_signed(keys, &[id.as_bytes(), b".", sent.as_bytes(), b".", body], &given)?;
    let apart = now.micros().saturating_sub(seconds.saturating_mul(1_000_000));
    if apart.saturating_abs() > TOLERANCE_MICROS {
        return Err(HookError::TooOld { apart_s: apart / 1_000_000 });
    }
    Ok(id)
}

/// The delivery's id, if the body was signed.
fn signed_by_github<'a>(
    keys: &[Vec<u8>],
    headers: &Headers<'a>,
    body: &[u8],
) -> Result<&'a str, HookError> {
    let id = headers.id("x-github-delivery")?;
    let given = headers.get("x-hub-signature-256")?.and_then(|value| value.strip_prefix("sha256="));
    let given = given.and_then(|digits| hex::decode(digits).ok());
    is_signed(keys, &[body], given.as_slice())?;
    Ok(id)
}

fn event_name<'a>(headers: &Headers<'a>) -> Result<&'a str, HookError> {
    let name = headers.get("x-github-event")?.unwrap_or_default();
    let fits = (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    fits.then_some(name).ok_or(HookError::NoEvent)
}

/// Whether one of the keys made one of the signatures. All pairs are compared, each in constant
/// time, so that the time taken says nothing about how near a guess was.
fn is_signed(keys: &[Vec<u8>], parts: &[&[u8]], given: &[Vec<u8>]) -> Result<(), HookError> {
    let mut found = Choice::from(0);
    for key in keys {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| HookError::BadSignature)?;
        parts.iter().for_each(|part| mac.update(part));
        let expected = mac.finalize().into_bytes();
        for signature in given {
            found |= expected.as_slice().ct_eq(signature);
        }
    }
    if bool::from(found) { Ok(()) } else { Err(HookError::BadSignature) }
}
