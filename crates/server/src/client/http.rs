//! One connection to the server: address, token, requests, and the stream of signals.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use base::{Clock, EventId, IdSource, Secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::Value;

use super::error::ClientError;
use crate::config::{Config, Env, is_local};

/// How long one answer may take, and how long a stream may be silent (heartbeats come every 15 s).
const ANSWER_MS: u64 = 10_000;
const SILENCE_MS: u64 = 40_000;
/// Largest answer that is read, and the longest line of the stream.
const ANSWER_BYTES_MAX: usize = 16 << 20;
const LINE_BYTES_MAX: usize = 64 << 10;

/// Where the server is and how to show who is asking.
#[derive(Debug)]
pub struct Endpoint {
    /// Root of the API.
    pub url: Url,
    /// The device token; `None` for what needs none.
    pub token: Option<Secret>,
    /// Where the token came from, for errors.
    pub origin: String,
}

impl Endpoint {
    /// `ADJUTANT_URL`, else the configured address; without a token.
    pub fn open(config: &Config, env: Env<'_>) -> Result<Endpoint, ClientError> {
        let text = env("ADJUTANT_URL").unwrap_or_else(|| format!("http://{}", config.listen));
        let url: Url = text.parse().map_err(|_| {
            ClientError::Usage(format!("ADJUTANT_URL is \"{text}\"; write http://127.0.0.1:7177"))
        })?;
        if url.scheme() != "https" && !is_local(&url) {
            return Err(ClientError::Usage(format!(
                "{url} would carry the token in the clear; use https, or an SSH tunnel"
            )));
        }
        if url.cannot_be_a_base() || url.host_str().is_none() {
            return Err(ClientError::Usage(format!(
                "{url} is no address of a server; write http://127.0.0.1:7177"
            )));
        }
        Ok(Endpoint { url, token: None, origin: "nowhere".into() })
    }

    /// As [`Endpoint::open`], with `ADJUTANT_TOKEN`, else the token that the server left.
    pub fn find(config: &Config, env: Env<'_>) -> Result<Endpoint, ClientError> {
        let mut endpoint = Endpoint::open(config, env)?;
        if let Some(text) = env("ADJUTANT_TOKEN") {
            let token = Secret::new(&text).map_err(|_| {
                ClientError::Usage("ADJUTANT_TOKEN is empty; unset it or give the token".into())
            })?;
            endpoint.token = Some(token);
            endpoint.origin = "ADJUTANT_TOKEN".into();
        } else {
            let file = config.token_file();
            endpoint.token = Some(read_token(&file)?);
            endpoint.origin = file.display().to_string();
        }
        Ok(endpoint)
    }
}

/// Longest rest between two looks for a token that the server has not written yet.
const TOKEN_REST_MS: u64 = 200;

/// As [`Endpoint::find`], waiting up to `wait_s` seconds for a server at its very first start. If
/// there is no token because there is no server, that is what the error says.
pub async fn find_within(
    config: &Config,
    env: Env<'_>,
    http: &reqwest::Client,
    wait_s: u64,
) -> Result<Endpoint, ClientError> {
    let mut looks_left = wait_s.saturating_mul(1_000) / TOKEN_REST_MS;
    loop {
        match Endpoint::find(config, env) {
            Err(ClientError::TokenMissing { .. }) if looks_left > 0 => looks_left -= 1,
            Err(missing @ ClientError::TokenMissing { .. }) => {
                let url = Endpoint::open(config, env)?.url;
                let nobody = match http.get(url.clone()).send().await {
                    Ok(_) => false,
                    Err(error) => error.is_connect(),
                };
                let not_running = ClientError::NotRunning { url: url.to_string() };
                return Err(if nobody { not_running } else { missing });
            }
            found => return found,
        }
        tokio::time::sleep(Duration::from_millis(TOKEN_REST_MS)).await;
    }
}

fn read_token(file: &Path) -> Result<Secret, ClientError> {
    let missing = |reason: String| ClientError::TokenMissing { path: file.into(), reason };
    let mode =
        std::fs::metadata(file).map_err(|error| missing(error.to_string()))?.permissions().mode()
            & 0o777;
    if mode & 0o077 != 0 {
        return Err(ClientError::TokenMode { path: file.into(), mode });
    }
    let text = std::fs::read_to_string(file).map_err(|error| missing(error.to_string()))?;
    Secret::new(&text).map_err(|error| missing(error.to_string()))
}

/// Requests to one server.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    http: reqwest::Client,
    ids: IdSource,
    clock: Box<dyn Clock>,
}

/// The HTTP client of the command line: no proxy and no redirect may see the token.
pub fn http_client() -> Result<reqwest::Client, model::HttpClientError> {
    model::http_client(Duration::from_millis(ANSWER_MS))
}

impl Client {
    /// Ties the parts together; all of them are parameters so that tests decide on each.
    pub fn new(
        endpoint: Endpoint,
        http: reqwest::Client,
        ids: IdSource,
        clock: Box<dyn Clock>,
    ) -> Client {
        Client { endpoint, http, ids, clock }
    }

    /// A new secret for a webhook: 256 random bits, as Standard Webhooks writes them.
    pub fn new_secret(&self) -> Result<Secret, ClientError> {
        let text = format!("whsec_{}", STANDARD.encode(self.ids.bytes::<32>()));
        Secret::new(&text).map_err(|error| ClientError::Usage(error.to_string()))
    }

    /// A new id for one write of this client.
    pub fn new_id(&self) -> EventId {
        self.ids.next(self.clock.now())
    }

    /// Reads `path` (segments are encoded) with the given query.
    pub async fn get(&self, path: &[&str], query: &[(&str, i64)]) -> Result<Value, ClientError> {
        let (url, shown) = self.address(path, query)?;
        self.ask(self.request(Method::GET, url), &shown).await
    }

    /// As [`Client::get`], with a query of texts.
    pub async fn get_by(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Value, ClientError> {
        let (mut url, shown) = self.address(path, &[])?;
        url.query_pairs_mut().extend_pairs(query);
        self.ask(self.request(Method::GET, url), &shown).await
    }

    /// Takes `path` away. The query carries the client-made id.
    pub async fn delete(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Value, ClientError> {
        let (mut url, shown) = self.address(path, &[])?;
        url.query_pairs_mut().extend_pairs(query);
        self.ask(self.request(Method::DELETE, url), &shown).await
    }

    /// Writes to `path`. The body carries the client-made id that makes a repeat safe.
    pub async fn post(&self, path: &[&str], body: &Value) -> Result<Value, ClientError> {
        let (url, shown) = self.address(path, &[])?;
        self.ask(self.request(Method::POST, url).json(body), &shown).await
    }

    /// Reads `path` into a file, however long it is; `millis` is how long nothing may come.
    pub async fn download(
        &self,
        path: &[&str],
        file: &Path,
        millis: u64,
    ) -> Result<(), ClientError> {
        let (url, shown) = self.address(path, &[])?;
        let response = self.request(Method::GET, url).send();
        let response = within(millis, response, |reason| self.lost(reason)).await?;
        let mut response = response.map_err(|error| self.failed(&error))?;
        if !response.status().is_success() {
            return Err(self.refusal(response, &shown).await);
        }
        let mut options = std::fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.write(true).create_new(true).open(file)?;
        loop {
            let chunk = within(millis, response.chunk(), |reason| self.lost(reason)).await?;
            match chunk.map_err(|error| self.failed(&error))? {
                Some(chunk) => std::io::Write::write_all(&mut file, &chunk)?,
                None => return Ok(()),
            }
        }
    }

    /// Opens the stream of "changed" signals.
    pub async fn stream(&self) -> Result<Signals, ClientError> {
        let (url, shown) = self.address(&["v1", "stream"], &[])?;
        let request = self.request(Method::GET, url).header("accept", "text/event-stream");
        let response = within(ANSWER_MS, request.send(), |reason| self.lost(reason)).await?;
        let response = response.map_err(|error| self.failed(&error))?;
        if !response.status().is_success() {
            return Err(self.refusal(response, &shown).await);
        }
        let url = self.endpoint.url.to_string();
        Ok(Signals { response, url, line: Vec::new(), data: String::new() })
    }

    fn address(&self, path: &[&str], query: &[(&str, i64)]) -> Result<(Url, String), ClientError> {
        let mut url = self.endpoint.url.clone();
        let shown = format!("/{}", path.join("/"));
        url.path_segments_mut()
            .map_err(|()| {
                ClientError::Usage(
                    "the server's address takes no path; write http://127.0.0.1:7177".into(),
                )
            })?
            .pop_if_empty()
            .extend(path);
        if !query.is_empty() {
            url.query_pairs_mut()
                .extend_pairs(query.iter().map(|(name, value)| (name, value.to_string())));
        }
        Ok((url, shown))
    }

    fn request(&self, method: Method, url: Url) -> reqwest::RequestBuilder {
        let request = self.http.request(method, url);
        match &self.endpoint.token {
            Some(token) => request.bearer_auth(token.expose()),
            None => request,
        }
    }

    async fn ask(
        &self,
        request: reqwest::RequestBuilder,
        shown: &str,
    ) -> Result<Value, ClientError> {
        let exchange = async {
            let response = request.send().await.map_err(|error| self.failed(&error))?;
            if !response.status().is_success() {
                return Err(self.refusal(response, shown).await);
            }
            let bytes = self.read(response).await?;
            serde_json::from_slice(&bytes).map_err(|error| ClientError::Garbled {
                path: shown.into(),
                reason: error.to_string(),
            })
        };
        within(ANSWER_MS, exchange, |reason| self.lost(reason)).await?
    }

    async fn read(&self, mut response: Response) -> Result<Vec<u8>, ClientError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(&error))? {
            if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(ClientError::Garbled {
                    path: response.url().path().into(),
                    reason: format!("it is longer than {ANSWER_BYTES_MAX} bytes"),
                });
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// Turns an error answer (RFC 9457) into the error with the server's own next step.
    async fn refusal(&self, response: Response, shown: &str) -> ClientError {
        let status = response.status();
        let bytes = match self.read(response).await {
            Ok(bytes) => bytes,
            Err(error) => return error,
        };
        let problem: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let text = |name: &str| problem.get(name).and_then(Value::as_str).map(str::to_string);
        let title = text("title").unwrap_or_else(|| {
            status.canonical_reason().unwrap_or("The server refused").to_string()
        });
        let detail = text("detail").unwrap_or_else(|| format!("{shown} gave no reason"));
        match status {
            StatusCode::UNAUTHORIZED => {
                ClientError::TokenRefused { origin: self.endpoint.origin.clone(), detail }
            }
            StatusCode::CONFLICT if problem["stale"].is_object() => {
                let stale = &problem["stale"];
                let changes = stale["changes"].as_array().into_iter().flatten();
                let lines = changes.filter_map(Value::as_str).map(|line| format!("\n  {line}"));
                let detail = format!("{detail}{}", lines.collect::<String>());
                ClientError::Outdated { detail, card: Box::new(stale["card"].clone()) }
            }
            status if status.is_client_error() => {
                ClientError::Refused { status: status.as_u16(), title, detail }
            }
            status => ClientError::Server {
                status: status.as_u16(),
                detail,
                nothing_written: text("written").as_deref() == Some("nothing"),
            },
        }
    }

    fn failed(&self, error: &reqwest::Error) -> ClientError {
        if error.is_connect() {
            return ClientError::NotRunning { url: self.endpoint.url.to_string() };
        }
        // reqwest's own text repeats the address; the innermost cause is what a reader can use.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        self.lost(cause.to_string())
    }

    fn lost(&self, reason: String) -> ClientError {
        ClientError::NoAnswer { url: self.endpoint.url.to_string(), reason }
    }
}

/// Waits for `work` at most `millis`; `late` makes the error.
async fn within<T>(
    millis: u64,
    work: impl Future<Output = T>,
    late: impl FnOnce(String) -> ClientError,
) -> Result<T, ClientError> {
    match tokio::time::timeout(Duration::from_millis(millis), work).await {
        Ok(done) => Ok(done),
        Err(_) => Err(late(format!("nothing came for {} s", millis / 1_000))),
    }
}

/// The open stream: yields the sequence number of each signal. Signals carry no content (CLI-04).
#[derive(Debug)]
pub struct Signals {
    response: Response,
    url: String,
    line: Vec<u8>,
    data: String,
}

impl Signals {
    /// The next "changed, now at" number. Any end of the stream is an error: it never ends well.
    pub async fn next(&mut self) -> Result<i64, ClientError> {
        loop {
            while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
                let rest = self.line.split_off(end + 1);
                let line = std::mem::replace(&mut self.line, rest);
                if let Some(seq) = self.take(String::from_utf8_lossy(&line).trim_end()) {
                    return Ok(seq);
                }
            }
            let lost = |reason| ClientError::NoAnswer { url: self.url.clone(), reason };
            let chunk = within(SILENCE_MS, self.response.chunk(), lost).await?;
            match chunk {
                Ok(Some(chunk)) if self.line.len() + chunk.len() <= LINE_BYTES_MAX => {
                    self.line.extend_from_slice(&chunk);
                }
                Ok(Some(_)) => return Err(lost("a line of the stream has no end".into())),
                Ok(None) => return Err(lost("the server closed the stream".into())),
                Err(error) => return Err(lost(error.to_string())),
            }
        }
    }

    /// Takes one line; a blank one ends an event.
    fn take(&mut self, line: &str) -> Option<i64> {
        if let Some(data) = line.strip_prefix("data:")
            && self.data.len() + data.len() <= LINE_BYTES_MAX
        {
            self.data.push_str(data.trim_start());
        }
        if !line.is_empty() {
            return None;
        }
        let data = std::mem::take(&mut self.data);
        serde_json::from_str::<Value>(&data).ok()?.get("seq")?.as_i64()
    }
}
