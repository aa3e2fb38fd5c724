//! `adjutant doctor`: is everything in place? One line a check, and what to do where it is not.
//!
//! Looks without changing anything, except that it writes and removes one empty file in the data
//! folder. It never prints a key.

mod world;

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use connect::{ConnectError, ConnectLimits, Connectors};
use model::Wire;
use serde::Serialize;
use serde_json::{Value, json};

use crate::client::{self, Client, ClientError, Endpoint};
use crate::config::{
    Config, ConfigError, Database, Env, KeySource, McpConfig, McpServer, ModelConfig,
};
use crate::{machine, serve};

/// How long the model and a program's `--version` may take.
const MODEL_MS: u64 = 15_000;
const VERSION_MS: u64 = 5_000;
/// How long a tool server may take to start, and again to list its tools; then all of them together.
const TOOL_START_MS: u64 = 10_000;
const TOOLS_MS: u64 = 25_000;
/// Bytes of the model list that are read.
const MODEL_LIST_BYTES_MAX: usize = 4 << 20;

/// How one check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// In place.
    Ok,
    /// Works, but a person should look.
    Warning,
    /// Not in place.
    Failed,
    /// Could not be looked at, because another check failed.
    Skipped,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it came out.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do; empty if nothing.
    pub remedy: String,
}

impl Check {
    /// Whether the set-up does not work without a change.
    pub fn failed(&self) -> bool {
        self.verdict == Verdict::Failed
    }

    fn ok(name: &str, found: impl Into<String>) -> Check {
        Check::new(name, Verdict::Ok, found, "")
    }

    /// A failure from an error text, whose part after the last "; " is the remedy.
    fn from_error(name: &str, text: &str) -> Check {
        let (found, remedy) = text.rsplit_once("; ").unwrap_or((text, "read the message"));
        let remedy = remedy.strip_prefix("run: ").unwrap_or(remedy);
        Check::new(name, Verdict::Failed, found.trim_end_matches('.'), remedy)
    }

    fn new(
        name: &str,
        verdict: Verdict,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Check {
        Check { name: name.into(), verdict, found: found.into(), remedy: remedy.into() }
    }
}

/// Looks at everything; a configuration that cannot be read leaves the rest unlooked at.
pub async fn examine(config: &Result<Config, ConfigError>, env: Env<'_>) -> Vec<Check> {
    let config = match config {
        Ok(config) => config,
        Err(error) => {
            let remedy = "correct the file; docs/adjutant.example.toml shows every key";
            let skip =
                |name| Check::new(name, Verdict::Skipped, "needs a readable configuration", "");
            let first = Check::new("configuration", Verdict::Failed, error.to_string(), remedy);
            let rest = ["key", "model", "data folder", "disk space", "server"].map(skip);
            return std::iter::once(first).chain(rest).collect();
        }
    };
    let mut checks = vec![Check::ok(
        "configuration",
        match &config.file {
            Some(file) => format!("{} is read, no unknown keys", file.display()),
            None => "no file; all defaults hold".into(),
        },
    )];
    let http = client::http_client();
    checks.extend(model(config.model.as_ref(), http.as_ref().ok(), env).await);
    checks.extend(world::other_models(config, env));
    checks.push(zone(config));
    checks.push(page());
    checks.push(data_folder(&config.data_dir));
    checks.push(world::secrets(config));
    checks.push(disk_space(config));
    checks.extend(tool_servers(config, env).await);
    match http {
        Ok(http) => checks.extend(server(config, http, env).await),
        Err(error) => {
            let remedy = "install a released build of the program";
            let found = error.to_string();
            checks.push(Check::new("server", Verdict::Failed, found, remedy));
        }
    }
    checks
}

/// The report as text, or as one JSON object with the settings in force (without secrets).
pub fn report(checks: &[Check], config: Option<&Config>, json: bool) -> String {
    if json {
        let ok = !checks.iter().any(Check::failed);
        return format!("{}\n", json!({"ok": ok, "checks": checks, "config": config}));
    }
    let mut text = String::new();
    for check in checks {
        let mark = match check.verdict {
            Verdict::Ok => "ok  ",
            Verdict::Warning => "look",
            Verdict::Failed => "FAIL",
            Verdict::Skipped => "skip",
        };
        let _ = write!(text, "{mark}  {}: {}", check.name, check.found);
        if !check.remedy.is_empty() {
            let _ = write!(text, ". Do: {}", check.remedy);
        }
        text.push('\n');
    }
    text
}

/// The key first, then whether the endpoint answers with it.
async fn model(
    model: Option<&ModelConfig>,
    http: Option<&reqwest::Client>,
    env: Env<'_>,
) -> Vec<Check> {
    let Some(model) = model else {
        let remedy = "add a [model] section, or try: adjutant demo";
        return vec![Check::new("model", Verdict::Failed, "no model is configured", remedy)];
    };
    let key = match model.key(env) {
        Ok(key) => key,
        Err(problem) => {
            let skipped = Check::new("model", Verdict::Skipped, "not asked without its key", "");
            return vec![Check::from_error("key", &problem.to_string()), skipped];
        }
    };
    let found = match &model.key {
        KeySource::None => "none is needed for an endpoint of one's own".into(),
        KeySource::Env(name) => format!("in the variable {name}"),
        KeySource::File(path) => format!("in {}, readable by you alone", path.display()),
    };
    let mut checks = vec![Check::ok("key", found)];
    if let Some(http) = http {
        checks.push(ask_model(model, key.as_ref(), http).await);
    }
    checks
}

/// Whether the endpoint answers with this key and knows the model.
pub async fn ask_model(
    model: &ModelConfig,
    key: Option<&base::Secret>,
    http: &reqwest::Client,
) -> Check {
    let at = model.base_url.as_str();
    let list = list(model.wire, at, key, http);
    let fail = |found: String, remedy: &str| Check::new("model", Verdict::Failed, found, remedy);
    let away = |reason: String| {
        fail(format!("{at} does not answer ({reason})"), "check model.base_url and the network")
    };
    let (status, body) = match answer(list).await {
        Ok(answer) => answer,
        Err(reason) => return away(reason),
    };
    // Some endpoints list nothing; there the smallest possible question is put.
    let (status, body) = match status {
        404 | 405 | 501 => {
            let said = json!([{"role": "user", "content": "ok"}]);
            let (field, least, said_in) = match model.wire {
                Wire::Chat => (model.output_field.name(), 1, "messages"),
                Wire::Messages => ("max_tokens", 1, "messages"),
                Wire::Responses => ("max_output_tokens", 16, "input"),
            };
            let question = json!({"model": model.model, field: least, said_in: said});
            let ask = http.post(format!("{at}/{}", model.wire.path())).json(&question);
            let ask = model.wire.sign(ask, key);
            match answer(ask).await {
                Ok((status, _)) => (status, Value::Null),
                Err(reason) => return away(reason),
            }
        }
        status => (status, body),
    };
    match status {
        200..=299 => listed(model, at, &body),
        401 | 403 => {
            fail(format!("{at} refused the key ({status})"), "put a valid key in its place")
        }
        404 => fail(
            format!("{at} has no such address or model (404)"),
            "check model.wire, model.base_url (up to and without the wire's path) and model.model",
        ),
        429 | 402 => fail(
            format!("{at} refuses for now ({status}): limit or credit"),
            "look at the account of that endpoint",
        ),
        status => fail(format!("{at} answered {status}"), "try again later, or check base_url"),
    }
}

/// The models that an endpoint lists, as far as it does.
pub async fn models(
    wire: Wire,
    at: &str,
    key: Option<&base::Secret>,
    http: &reqwest::Client,
) -> Vec<String> {
    let body = answer(list(wire, at.trim_end_matches('/'), key, http)).await.map(|(_, body)| body);
    body.map(|body| names(&body).into_iter().map(str::to_owned).collect()).unwrap_or_default()
}

fn list(
    wire: Wire,
    at: &str,
    key: Option<&base::Secret>,
    http: &reqwest::Client,
) -> reqwest::RequestBuilder {
    wire.sign(http.get(format!("{at}/models")), key)
}

fn names(body: &Value) -> Vec<&str> {
    let items = body.get("data").and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.get("id")?.as_str()).collect()
}

/// Whether the model is in the endpoint's list, where it has one.
fn listed(model: &ModelConfig, at: &str, body: &Value) -> Check {
    let name = &model.model;
    let names = names(body);
    if names.is_empty() || names.contains(&name.as_str()) {
        return Check::ok("model", format!("{at} answers and knows {name}"));
    }
    let mut near: Vec<&str> = names;
    near.sort_by_key(|other| strsim::damerau_levenshtein(other, name));
    near.truncate(3);
    let found = format!("{at} answers, but {name} is not in its list");
    let remedy = format!("check model.model; near names: {}", near.join(", "));
    Check::new("model", Verdict::Warning, found, remedy)
}

/// Status and body of one request, within time and size. The error never holds a header.
async fn answer(request: reqwest::RequestBuilder) -> Result<(u16, Value), String> {
    let exchange = async {
        let mut response = request.send().await.map_err(|error| cause(&error))?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| cause(&error))? {
            if bytes.len() + chunk.len() > MODEL_LIST_BYTES_MAX {
                break;
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    };
    let limit = Duration::from_millis(MODEL_MS);
    tokio::time::timeout(limit, exchange)
        .await
        .unwrap_or_else(|_| Err(format!("nothing came for {} s", MODEL_MS / 1_000)))
}

fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The zone was checked when the file was read; here is what it means.
fn zone(config: &Config) -> Check {
    match &config.owner.zone {
        Some(zone) => Check::ok("time zone", format!("{zone} is known")),
        None => Check::new(
            "time zone",
            Verdict::Warning,
            "owner.zone is not given, so times are read as UTC at the first start",
            "add [owner] zone = \"Asia/Hong_Kong\" or your own",
        ),
    }
}

fn data_folder(folder: &Path) -> Check {
    let name = "data folder";
    let shown = folder.display();
    if !folder.exists() {
        let parent = existing(folder);
        return match rustix::fs::access(&parent, rustix::fs::Access::WRITE_OK) {
            Ok(()) => Check::ok(name, format!("{shown} will be made at the first start")),
            Err(error) => Check::new(
                name,
                Verdict::Failed,
                format!("{shown} cannot be made in {} ({error})", parent.display()),
                "set data_dir to a folder of yours",
            ),
        };
    }
    let probe = folder.join(format!(".doctor-{}", std::process::id()));
    let options = std::fs::OpenOptions::new().write(true).create_new(true).open(&probe);
    if let Err(error) = options.map(drop).and_then(|()| std::fs::remove_file(&probe)) {
        let remedy = format!("make it yours: chown -R $USER {shown}; chmod u+rwx {shown}");
        let found = format!("{shown} cannot be written ({error})");
        return Check::new(name, Verdict::Failed, found, remedy);
    }
    match std::fs::metadata(folder).map(|data| data.permissions().mode() & 0o777) {
        Ok(mode) if mode & 0o077 != 0 => Check::new(
            name,
            Verdict::Warning,
            format!("{shown} has mode {mode:04o}, others can look into it"),
            format!("chmod 700 {shown}"),
        ),
        Ok(_) | Err(_) => Check::ok(name, format!("{shown} can be written")),
    }
}

/// The nearest folder above that exists.
fn existing(folder: &Path) -> PathBuf {
    folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/")).to_path_buf()
}

fn disk_space(config: &Config) -> Check {
    let name = "disk space";
    let folder = existing(&config.data_dir);
    let free = match machine::free_bytes(&folder) {
        Ok(free) => free,
        Err(error) => {
            let found = format!("{} cannot be measured ({error})", folder.display());
            return Check::new(name, Verdict::Warning, found, "look with: df -h");
        }
    };
    let engine = match config.database {
        Database::Sqlite => "records are kept here in SQLite",
        Database::Postgresql { .. } => "records are kept in PostgreSQL",
    };
    let found = format!("{} MiB free at {}; {engine}", free >> 20, folder.display());
    // Below this it fails, and below twice this it is a warning.
    let low = config.limits.disk_low_bytes;
    let remedy = "make room, or set data_dir to a larger disk";
    match free {
        free if free < low => Check::new(name, Verdict::Failed, found, remedy),
        free if free < low.saturating_mul(2) => Check::new(name, Verdict::Warning, found, remedy),
        _ => Check::ok(name, found),
    }
}

/// Whether a tool server can be tried: its program and its script, or its address and its key.
fn tool_server(server: &McpConfig, env: Env<'_>) -> Check {
    let name = tool_server_name(&server.name);
    let found = match &server.server {
        McpServer::Program { command, args, .. } => match program(&name, command, args, env) {
            Ok(found) => found,
            Err(check) => return check,
        },
        McpServer::Address { url, key } => match key.fetch("mcp", env) {
            Ok(_) => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
            Err(problem) => return Check::from_error(&name, &problem.to_string()),
        },
    };
    match server.manifest {
        Some(_) => Check::ok(&name, found),
        None => Check::new(
            &name,
            Verdict::Warning,
            format!("{found}; it has no manifest, so its tools are left to a person"),
            "write a manifest and name it as mcp.manifest",
        ),
    }
}

/// Whether a program is there, and its script too.
fn program(name: &str, path: &Path, args: &[String], env: Env<'_>) -> Result<String, Check> {
    let command = path.display();
    let fail = |found: String, remedy: String| Check::new(name, Verdict::Failed, found, remedy);
    let Some(program) = find_program(path, env) else {
        let found = format!("{command} is not found on PATH or cannot be started");
        return Err(fail(
            found,
            format!("install {command}, or give its whole path as mcp.command"),
        ));
    };
    let word = program.file_name().map(|word| word.to_string_lossy().into_owned());
    let word = word.unwrap_or_default();
    let interpreted = word == "node" || word.starts_with("python");
    let script = args
        .iter()
        .find(|arg| interpreted && Path::new(arg).is_absolute() && !Path::new(arg).exists());
    if let Some(script) = script {
        return Err(fail(format!("{script} is not there"), "correct mcp.args".into()));
    }
    let version = match interpreted.then(|| version(&program)) {
        Some(Ok(version)) => format!(" ({version})"),
        Some(Err(reason)) => {
            let remedy = format!("see what `{command} --version` says");
            return Err(fail(format!("{command} does not start ({reason})"), remedy));
        }
        None => String::new(),
    };
    Ok(format!("{}{version}", program.display()))
}

/// Every tool server: its program and its manifest, and then whether it starts and offers what the
/// manifest names. One without a manifest is not started: there is nothing to compare.
async fn tool_servers(config: &Config, env: Env<'_>) -> Vec<Check> {
    let (mut checks, mut sound) = (Vec::new(), Vec::new());
    for server in &config.mcp {
        let mut check = tool_server(server, env);
        if check.verdict == Verdict::Ok {
            match serve::connector(server, env) {
                Ok(connector) => sound.push(connector),
                Err(error) => check = Check::from_error(&check.name, &one_line(&error.to_string())),
            }
        }
        checks.push(check);
    }
    let limits = ConnectLimits { start_ms: TOOL_START_MS, ..ConnectLimits::from(&config.limits) };
    let connectors = match Connectors::new(sound, limits) {
        Ok(connectors) => connectors,
        Err(error) => {
            checks.push(Check::from_error("tool servers", &error.to_string()));
            return checks;
        }
    };
    let limit = Duration::from_millis(TOOLS_MS);
    let started = tokio::time::timeout(limit, connectors.check()).await.unwrap_or_default();
    for check in checks.iter_mut().filter(|check| check.verdict == Verdict::Ok) {
        let result = started.iter().find(|(name, _)| check.name == tool_server_name(name));
        *check = match result {
            Some((_, Ok(()))) => {
                Check::ok(&check.name, format!("{}; it starts and has every tool", check.found))
            }
            Some((_, Err(error))) => not_started(&check.name, error),
            None => Check::new(
                &check.name,
                Verdict::Failed,
                format!("no tool server answered within {} s", TOOLS_MS / 1_000),
                "run its command by hand: it must speak MCP on stdin and stdout",
            ),
        };
    }
    connectors.shutdown().await;
    checks
}

fn tool_server_name(name: &str) -> String {
    format!("tool server {name}")
}

/// Why a server does not do; the text of the error is the fact and then the remedy.
fn not_started(name: &str, error: &ConnectError) -> Check {
    let text = one_line(&error.to_string());
    let (found, remedy) = text.split_once(". ").unwrap_or((&text, "read the message"));
    let stopped = matches!(error, ConnectError::Stopped { .. });
    let look = "run its command by hand and read what it writes to stderr";
    Check::new(name, Verdict::Failed, found, if stopped { look } else { remedy })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn find_program(command: &Path, env: Env<'_>) -> Option<PathBuf> {
    let starts = |path: &PathBuf| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    if command.components().count() > 1 {
        return Some(command.to_path_buf()).filter(starts);
    }
    let path = env("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(command)).find(starts)
}

/// The first line that `program --version` prints. A thread of its own waits for it, since a
/// program that hangs must not hang the report.
fn version(program: &Path) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null());
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::spawn(move || sender.send(command.output()).ok());
    match receiver.recv_timeout(Duration::from_millis(VERSION_MS)) {
        Ok(Ok(output)) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok(text.lines().next().unwrap_or("no version").chars().take(80).collect())
        }
        Ok(Ok(output)) => Err(output.status.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", VERSION_MS / 1_000)),
    }
}

/// Whether the server answers and knows our token.
async fn server(config: &Config, http: reqwest::Client, env: Env<'_>) -> Vec<Check> {
    let fail = |error: &ClientError| Check::from_error("server", &error.to_string());
    let endpoint = match Endpoint::find(config, env) {
        Ok(endpoint) => endpoint,
        Err(ClientError::TokenMissing { .. }) => match Endpoint::open(config, env) {
            Ok(endpoint) => endpoint,
            Err(error) => return vec![fail(&error)],
        },
        Err(error) => return vec![fail(&error)],
    };
    let root = endpoint.url.clone();
    let with_token = endpoint.token.is_some();
    // Reading needs no ids, so no randomness is asked of the system here.
    let ids = base::IdSource::new([0; 32]);
    let client = Client::new(endpoint, http, ids, Box::new(base::SystemClock));
    let health = match client.get(&["health"], &[]).await {
        Ok(health) => health,
        Err(error) => return vec![fail(&error)],
    };
    let word = |name: &str| health.get(name).and_then(Value::as_str).unwrap_or("?").to_string();
    let mut checks =
        vec![Check::ok("server", format!("{root} runs {} on {}", word("version"), word("engine")))];
    let me = client.get(&["v1", "me"], &[]).await;
    let known = me.is_ok();
    checks.push(match me {
        Ok(_) => Check::ok("token", "the server accepts it"),
        Err(_) if !with_token => Check::new(
            "token",
            Verdict::Failed,
            format!("{} is not there", config.token_file().display()),
            "use the configuration file that the server uses, or set ADJUTANT_TOKEN",
        ),
        Err(error) => Check::from_error("token", &error.to_string()),
    });
    if known {
        let now = health.get("now").and_then(Value::as_str);
        let now = now.and_then(|now| base::Timestamp::parse(now).ok());
        checks.extend(world::sources(&client, now).await);
    }
    checks
}

/// Whether this binary, which is the server's too, carries the page.
fn page() -> Check {
    match web::page::AVAILABLE {
        true => Check::ok("page", "built in"),
        false => Check::new(
            "page",
            Verdict::Warning,
            "this build has no page; the command line and the API do everything it does",
            "install Node.js and build again, or use a released binary",
        ),
    }
}

#[cfg(test)]
mod tests;
