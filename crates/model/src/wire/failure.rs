//! From the ways in which servers say no to the classes of [`ModelError`].

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde::Deserialize;
use serde_json::Value;

use crate::ModelError;

/// The longest wait that a server may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How many characters of a server's own words enter an error.
const WORDS_MAX: usize = 200;

/// An error body: an object with some of these fields, or plain text.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Value")]
pub(super) struct ErrorBody {
    /// `code` and `type`, in lower case.
    codes: [String; 2],
    message: String,
}

impl From<Value> for ErrorBody {
    fn from(value: Value) -> Self {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                other.to_string()
            }
        };
        let Value::Object(fields) = &value else {
            return ErrorBody { message: text(&value), ..ErrorBody::default() };
        };
        let field = |name: &str| fields.get(name).map(text).unwrap_or_default();
        let codes = [field("code"), field("type")].map(|code| code.to_lowercase());
        ErrorBody { codes, message: field("message") }
    }
}

impl ErrorBody {
    /// Reads `{"error": …}` of most servers, an error without that wrapping, or whatever text a
    /// proxy in between sent.
    pub(super) fn read(body: &[u8]) -> ErrorBody {
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Object(mut fields)) => match fields.remove("error") {
                Some(inner) => ErrorBody::from(inner),
                None => ErrorBody::from(Value::Object(fields)),
            },
            Ok(other) => ErrorBody::from(other),
            Err(_) => ErrorBody {
                message: String::from_utf8_lossy(body).into_owned(),
                ..ErrorBody::default()
            },
        }
    }

    fn has_code(&self, codes: &[&str]) -> bool {
        self.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    fn says(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        phrases.iter().any(|phrase| message.contains(phrase))
    }

    /// The classes that the body alone decides, whatever the status.
    fn class(&self) -> Option<ModelError> {
        let context_codes = ["context_length_exceeded", "exceed_context_size_error"];
        let context_phrases = [
            "maximum context length",
            "context length",
            "context size",
            "context window",
            "context limit",
            "prompt is too long",
        ];
        let quota_codes = [
            "insufficient_quota",
            "billing_hard_limit_reached",
            "billing_not_active",
            "billing_error",
        ];
        let quota_phrases = ["insufficient balance", "credit balance is too low", "usage limits"];
        let history_phrases = [
            "the encrypted content",
            "must be passed back to the api",
            "`signature` in `thinking` block",
            "blocks in the latest assistant message cannot be modified",
        ];
        let refused_codes = ["content_filter", "content_policy_violation", "invalid_prompt"];
        if self.has_code(&context_codes) || self.says(&context_phrases) {
            Some(ModelError::Context)
        } else if self.has_code(&quota_codes) || self.says(&quota_phrases) {
            Some(ModelError::Quota)
        } else if self.has_code(&["invalid_encrypted_content"]) || self.says(&history_phrases) {
            Some(ModelError::History)
        } else if self.has_code(&["invalid_api_key", "authentication_error"]) {
            Some(ModelError::Authentication)
        } else if self.has_code(&refused_codes) || self.says(&["content exists risk"]) {
            Some(ModelError::Refused)
        } else {
            None
        }
    }
}

/// The class of an answer whose status is not a success.
pub(super) fn of_status(status: u16, headers: &HeaderMap, body: &[u8]) -> ModelError {
    let body = ErrorBody::read(body);
    // A busy server may use any words; only its quota is no matter of waiting.
    let transient = matches!(status, 408 | 409 | 425 | 429 | 500..=599);
    match body.class() {
        Some(ModelError::Quota) => ModelError::Quota,
        Some(ModelError::Context) if status != 429 => ModelError::Context,
        Some(class) if !transient => class,
        Some(_) | None => match status {
            401 | 403 => ModelError::Authentication,
            402 => ModelError::Quota,
            413 => ModelError::Context,
            451 => ModelError::Refused,
            _ if transient => {
                let reason = format!("the server answered {status}: {}", clipped(&body.message));
                ModelError::Retry { after: retry_after(headers), reason }
            }
            300..=399 => ModelError::Malformed(format!(
                "the server answered {status}, a redirect, which is not followed"
            )),
            _ => {
                let words = clipped(&body.message);
                ModelError::Malformed(format!("the server answered {status}: {words}"))
            }
        },
    }
}

/// The class of an error that a server sends inside a stream it had begun with success.
pub(super) fn in_stream(body: &ErrorBody) -> ModelError {
    body.class().unwrap_or_else(|| {
        ModelError::retry(format!("the server broke off: {}", clipped(&body.message)))
    })
}

/// The class of a failure below HTTP. The address is left out of the words.
pub(super) fn of_network(error: reqwest::Error) -> ModelError {
    let error = error.without_url();
    if error.is_builder() {
        return ModelError::Malformed(format!("the request cannot be built: {error}"));
    }
    let mut reason = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    ModelError::retry(clipped(&reason))
}

/// How long to wait: `Retry-After` as seconds, or as a date measured against the server's own
/// `Date`, so that no clock of ours takes part.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let text = header(RETRY_AFTER)?;
    let after = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok()?,
        Err(_) => {
            let parser = jiff::fmt::rfc2822::DateTimeParser::new();
            let until = parser.parse_timestamp(text).ok()?;
            let now = parser.parse_timestamp(header(DATE)?).ok()?;
            Duration::try_from(until.duration_since(now)).unwrap_or_default()
        }
    };
    Some(after.min(RETRY_AFTER_MAX))
}

/// The first words of a text from outside, on one line.
pub(super) fn clipped(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(WORDS_MAX) {
        Some((end, _)) => format!("{}…", line[..end].trim()),
        None => line.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

    use super::of_status;
    use crate::ModelError;

    fn class(status: u16, body: &str) -> &'static str {
        of_status(status, &HeaderMap::new(), body.as_bytes()).class()
    }

    #[test]
    fn each_vendors_words_find_their_class() {
        let openai_context = r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;
        let openai_quota = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        let openai_rate = r#"{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}"#;
        let openai_key = r#"{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}"#;
        let deepseek_balance = r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#;
        let deepseek_risk = r#"{"error":{"message":"Content Exists Risk","type":"invalid_request_error","code":"invalid_request_error"}}"#;
        let deepseek_thought = r#"{"error":{"message":"The `reasoning_content` in the thinking mode must be passed back to the API.","type":"invalid_request_error"}}"#;
        let llama_context = r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":4096}}"#;
        let llama_loading =
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
        let llama_key =
            r#"{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}"#;
        let claude = |kind: &str, words: &str| {
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{words}"}}}}"#)
        };
        let claude_credit =
            claude("invalid_request_error", "Your credit balance is too low to go on");
        let claude_context = claude("invalid_request_error", "prompt is too long: 9 tokens > 8");
        let claude_limit =
            claude("invalid_request_error", "input and max_tokens exceed context limit");
        let claude_thought =
            claude("invalid_request_error", "messages.1: Invalid `signature` in `thinking` block");
        let claude_changed = claude(
            "invalid_request_error",
            "messages.3: `thinking` blocks in the latest assistant message cannot be modified",
        );
        let gpt_thought = r#"{"error":{"message":"The encrypted content gA== could not be verified.","type":"invalid_request_error","code":null}}"#;
        let ollama_missing = r#"{"error":"model \"x\" not found, try pulling it first"}"#;
        let table = [
            (400, openai_context, "context"),
            (429, openai_quota, "quota"),
            (429, openai_rate, "retry"),
            (401, openai_key, "authentication"),
            (402, deepseek_balance, "quota"),
            (400, deepseek_risk, "refused"),
            (400, &claude_credit, "quota"),
            (400, &claude_context, "context"),
            (400, &claude_limit, "context"),
            (400, &claude_thought, "history"),
            (400, gpt_thought, "history"),
            (400, r#"{"error":{"code":"invalid_encrypted_content"}}"#, "history"),
            (400, &claude_changed, "history"),
            (400, deepseek_thought, "history"),
            (400, r#"{"error":{"message":"Encrypted content is not supported"}}"#, "malformed"),
            (401, r#"{"error":{"message":"This key could not be verified"}}"#, "authentication"),
            (401, &claude("authentication_error", "invalid x-api-key"), "authentication"),
            (402, &claude("billing_error", "pay"), "quota"),
            (413, &claude("request_too_large", "too large"), "context"),
            (429, &claude("rate_limit_error", "slow down"), "retry"),
            (529, &claude("overloaded_error", "Overloaded"), "retry"),
            (422, r#"{"error":{"message":"bad field"}}"#, "malformed"),
            (400, llama_context, "context"),
            (500, llama_context, "context"),
            (503, llama_loading, "retry"),
            (401, llama_key, "authentication"),
            (404, ollama_missing, "malformed"),
            (502, "<html>bad gateway</html>", "retry"),
            (413, "", "context"),
            (301, "", "malformed"),
        ];
        for (status, body, expected) in table {
            assert_eq!(class(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn the_wait_comes_from_the_servers_header() {
        let after = |retry_after: &str, date: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, retry_after.parse().unwrap());
            if let Some(date) = date {
                headers.insert(DATE, date.parse().unwrap());
            }
            let error = of_status(429, &headers, b"slow down");
            let ModelError::Retry { after, reason } = error else { panic!("{error:?}") };
            assert_eq!(reason, "the server answered 429: slow down");
            after
        };
        let date = Some("Wed, 21 Oct 2026 07:28:00 GMT");
        assert_eq!(after("2", None), Some(Duration::from_secs(2)));
        assert_eq!(after("0.5", None), Some(Duration::from_millis(500)));
        assert_eq!(after("9999999999", None), Some(Duration::from_secs(86_400)));
        assert_eq!(after("-1", None), None);
        assert_eq!(after("Wed, 21 Oct 2026 07:28:30 GMT", date), Some(Duration::from_secs(30)));
        assert_eq!(after("Wed, 21 Oct 2026 07:27:00 GMT", date), Some(Duration::ZERO));
        assert_eq!(after("Wed, 21 Oct 2026 07:28:30 GMT", None), None);
        assert_eq!(after("soon", date), None);
    }
}
