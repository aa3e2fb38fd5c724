//! The one configuration file: settings of the process, read strictly (DESIGN 8, OPS-13).
//!
//! Settings of an owner (zone, quiet hours, caps) are control rows; the file may only seed them.

mod mcp;
mod models;
mod reach;
mod section;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base::{Limits, Secret};
use domain::words::Language;
use section::{KEYS, MODEL_KEYS, MODELS, Section, join};
use serde::Serialize;

pub use mcp::{McpConfig, McpServer};
pub use models::ModelConfig;
pub use reach::{SearchConfig, SearchProvider};
pub use section::micro_usd;

/// Environment variables as a parameter, so that tests need not change the process.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Everything the process is told at start. Serializes without secrets, for `doctor --json`.
#[derive(Debug, Serialize)]
pub struct Config {
    /// The file that was read; `None` if there is none and all defaults hold.
    pub file: Option<PathBuf>,
    /// Where the database, the token of the command line and the vault live.
    pub data_dir: PathBuf,
    /// Address of the HTTP API; loopback only.
    pub listen: SocketAddr,
    /// Which engine keeps the records.
    pub database: Database,
    /// The model to ask; without one, nothing but the demo works.
    pub model: Option<ModelConfig>,
    /// The model that says which matter an event concerns; without one, `model` does.
    pub small: Option<ModelConfig>,
    /// The model that reviews what the policy would release by itself; without one, `model` does.
    pub reviewer: Option<ModelConfig>,
    /// Who searches the web; without one, only known addresses can be read.
    pub search: Option<SearchConfig>,
    /// Addresses of this machine or network that pages and feeds may be read from.
    pub fetch_allow: Vec<SocketAddr>,
    /// Tool servers to start.
    pub mcp: Vec<McpConfig>,
    /// Every bound by name.
    pub limits: Limits,
    /// Seeds for the owner's own settings, used at the first start only.
    pub owner: OwnerSeed,
    /// Filter of the log in the form `info` or `info,engine=debug`.
    pub log: String,
    /// How a log line is written.
    pub log_format: LogFormat,
}

/// The engine behind the store (DESIGN 4).
#[derive(Debug, Serialize)]
#[serde(tag = "engine", rename_all = "lowercase")]
pub enum Database {
    /// A file in the data folder.
    Sqlite,
    /// Shared by many nodes.
    Postgresql {
        /// `postgresql://user:password@host/database`; holds a password, so it is never printed.
        #[serde(serialize_with = "hidden")]
        url: Secret,
        /// Name of this machine in leases; default: its host name.
        node: String,
    },
}

/// Where a key is kept; the configuration itself never holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// An endpoint that wants no key.
    None,
    /// Name of an environment variable.
    Env(String),
    /// A file of mode 0600 that holds the key alone.
    File(PathBuf),
}

/// Seeds of the owner's control rows.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct OwnerSeed {
    /// How the agent addresses its person.
    pub name: Option<String>,
    /// IANA time zone, such as `Asia/Hong_Kong`.
    pub zone: Option<String>,
    /// In which language the server speaks to them.
    pub language: Option<Language>,
}

/// How a log line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// A file that cannot be used, and what to do about it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", place(.file.as_deref()))]
pub struct ConfigError {
    /// The file at fault, where there is one.
    pub file: Option<PathBuf>,
    /// What is wrong in it.
    pub problem: Problem,
}

/// What can be wrong with the configuration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file cannot be opened.
    #[error("cannot be read ({0}); check the path given to --config")]
    Unreadable(String),
    /// It is not TOML.
    #[error("line {line}: {message}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// What the reader of TOML says.
        message: String,
    },
    /// A key that nobody reads; a typing error must not pass silently.
    #[error("unknown key {key}; near names: {}", .near.join(", "))]
    UnknownKey {
        /// Path of the key.
        key: String,
        /// Known keys that resemble it, or those of the same section.
        near: Vec<String>,
    },
    /// A value of another type.
    #[error("{key} must be {wanted}, but it is {found}")]
    WrongType {
        /// Path of the key.
        key: String,
        /// What it takes.
        wanted: String,
        /// What was there.
        found: String,
    },
    /// A value that does not do.
    #[error("{key} {problem}")]
    BadValue {
        /// Path of the key.
        key: String,
        /// What is wrong and what to write instead.
        problem: String,
    },
    /// A key that is needed.
    #[error("{key} is missing; {remedy}")]
    Missing {
        /// Path of the key.
        key: String,
        /// What to write.
        remedy: String,
    },
    /// The variable with a key is not there.
    #[error(
        "the environment variable {variable} ({section}.key_env) is not set; export it before the start"
    )]
    KeyVariable {
        /// Which key it is: `model`, `small`, `reviewer`, `search` or `mcp`.
        section: &'static str,
        /// Its name.
        variable: String,
    },
    /// The file with a key cannot be read or is empty.
    #[error("{section}.key_file {}: {reason}; write the key alone into it", .path.display())]
    KeyFile {
        /// Which key it is: `model`, `small`, `reviewer`, `search` or `mcp`.
        section: &'static str,
        /// Where it was looked for.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// Others on this machine could read the key.
    #[error(
        "{section}.key_file {} has mode {mode:04o}, others can read it; run: chmod 600 {}",
        .path.display(), .path.display()
    )]
    KeyFileMode {
        /// Which key it is: `model`, `small`, `reviewer`, `search` or `mcp`.
        section: &'static str,
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// There is no place for defaults.
    #[error("HOME is not set, so {0} has no default; set HOME or give it")]
    NoHome(&'static str),
}

/// The file before the colon of an error, if there is one.
fn place(file: Option<&Path>) -> String {
    file.map(|file| format!("{}: ", file.display())).unwrap_or_default()
}

impl Config {
    /// Reads the file at `path`, or the default file if it exists, or takes all defaults.
    pub fn load(path: Option<&Path>, env: Env<'_>) -> Result<Config, ConfigError> {
        let found = match path {
            Some(path) => Some(path.to_path_buf()),
            None => default_file(env).filter(|file| file.exists()),
        };
        let Some(file) = found else {
            let folder = default_file(env).and_then(|file| file.parent().map(Path::to_path_buf));
            return parse("", None, &folder.unwrap_or_else(|| ".".into()), env)
                .map_err(|problem| ConfigError { file: None, problem });
        };
        let unreadable = |error: std::io::Error| ConfigError {
            file: Some(file.clone()),
            problem: Problem::Unreadable(error.to_string()),
        };
        let text = std::fs::read_to_string(&file).map_err(unreadable)?;
        Config::read(&text, &std::path::absolute(&file).map_err(unreadable)?, env)
    }

    /// The text of the file at this absolute path.
    pub fn read(text: &str, file: &Path, env: Env<'_>) -> Result<Config, ConfigError> {
        let folder = file.parent().unwrap_or(Path::new("/"));
        let fail = |problem| ConfigError { file: Some(file.to_owned()), problem };
        parse(text, Some(file.to_owned()), folder, env).map_err(fail)
    }

    /// Where the secrets of sources are.
    pub fn secrets_folder(&self) -> PathBuf {
        self.data_dir.join("secrets")
    }

    /// Where the server leaves the token for the command line.
    pub fn token_file(&self) -> PathBuf {
        self.data_dir.join("cli.token")
    }
}

impl KeySource {
    /// Reads the keys `key_env` and `key_file` of a section, of which at most one may be there.
    fn of(section: &Section<'_>, home: Option<&Path>) -> Result<KeySource, Problem> {
        match (section.text("key_env")?, section.path("key_file", home)?) {
            (Some(_), Some(_)) => {
                let other = section.full("key_file");
                Err(section.bad("key_env", &format!("and {other} are both given; keep one")))
            }
            (Some(name), None) => Ok(KeySource::Env(name)),
            (None, Some(path)) => Ok(KeySource::File(path)),
            (None, None) => Ok(KeySource::None),
        }
    }

    /// Fetches the key of a section, checking that nobody else can read its file.
    pub(crate) fn fetch(
        &self,
        section: &'static str,
        env: Env<'_>,
    ) -> Result<Option<Secret>, Problem> {
        match self {
            KeySource::None => Ok(None),
            KeySource::Env(name) => match env(name).map(|text| Secret::new(&text)) {
                Some(Ok(key)) => Ok(Some(key)),
                Some(Err(_)) | None => {
                    Err(Problem::KeyVariable { section, variable: name.clone() })
                }
            },
            KeySource::File(path) => {
                let fail =
                    |reason: String| Problem::KeyFile { section, path: path.clone(), reason };
                let mode = std::fs::metadata(path)
                    .map_err(|error| fail(error.to_string()))?
                    .permissions()
                    .mode()
                    & 0o777;
                if mode & 0o077 != 0 {
                    return Err(Problem::KeyFileMode { section, path: path.clone(), mode });
                }
                let text = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
                Secret::new(&text).map(Some).map_err(|error| fail(error.to_string()))
            }
        }
    }
}

/// `$XDG_CONFIG_HOME/adjutant/adjutant.toml`, else `~/.config/adjutant/adjutant.toml`.
pub fn default_file(env: Env<'_>) -> Option<PathBuf> {
    let folder = set(env, "XDG_CONFIG_HOME").or(set(env, "HOME").map(|home| home.join(".config")));
    folder.map(|folder| folder.join("adjutant/adjutant.toml"))
}

/// A variable that holds an absolute path; anything else counts as not set.
fn set(env: Env<'_>, name: &str) -> Option<PathBuf> {
    env(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Reads the text of a file that lies in `folder`.
fn parse(
    text: &str,
    file: Option<PathBuf>,
    folder: &Path,
    env: Env<'_>,
) -> Result<Config, Problem> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| Problem::Syntax {
        line: error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1),
        message: error.message().to_string(),
    })?;
    let known = known_keys()?;
    let home = set(env, "HOME");
    let top = Section::new("", table, folder, &known)?;
    let below = |key| Section::new(key, top.table(key)?, folder, &known);
    let owner = below("owner")?;
    let data_dir = match top.path("data_dir", home.as_deref())? {
        Some(path) => path,
        None => home.as_ref().ok_or(Problem::NoHome("data_dir"))?.join(".local/share/adjutant"),
    };
    Ok(Config {
        file,
        data_dir,
        listen: listen(&top)?,
        database: database(&below("database")?)?,
        model: models::model("model", &top, &below("model")?, home.as_deref())?,
        small: models::model("small", &top, &below("small")?, home.as_deref())?,
        reviewer: models::model("reviewer", &top, &below("reviewer")?, home.as_deref())?,
        search: if top.has("search") {
            Some(reach::search(&below("search")?, home.as_deref())?)
        } else {
            None
        },
        fetch_allow: reach::allowed(&below("fetch")?)?,
        mcp: mcp::servers(&top, folder, &known, home.as_deref())?,
        limits: limits(&below("limits")?, top.table("limits")?)?,
        owner: OwnerSeed {
            name: owner.text("name")?,
            zone: zone(&owner)?,
            language: language(&owner)?,
        },
        log: log(&top)?,
        log_format: match top.text("log_format")?.as_deref() {
            None | Some("text") => LogFormat::Text,
            Some("json") => LogFormat::Json,
            Some(_) => return Err(top.bad("log_format", "must be \"text\" or \"json\"")),
        },
    })
}

/// The fixed keys, those of each model, and one `limits.*` for each field of [`Limits`].
fn known_keys() -> Result<Vec<String>, Problem> {
    let limits = default_limits()?;
    let fixed = KEYS.iter().chain(MODELS).map(|key| (*key).to_string());
    let models = MODELS.iter().flat_map(|at| MODEL_KEYS.iter().map(|key| join(at, key)));
    Ok(fixed.chain(models).chain(limits.keys().map(|key| join("limits", key))).collect())
}

/// The defaults as named values, so that a new limit is a new key without a line here.
fn default_limits() -> Result<serde_json::Map<String, serde_json::Value>, Problem> {
    let bad = |problem: String| Problem::BadValue { key: "limits".into(), problem };
    match serde_json::to_value(Limits::default()) {
        Ok(serde_json::Value::Object(map)) => Ok(map),
        Ok(_) => Err(bad("have no names in this build".into())),
        Err(error) => Err(bad(error.to_string())),
    }
}

fn listen(top: &Section<'_>) -> Result<SocketAddr, Problem> {
    let text = top.text("listen")?.unwrap_or_else(|| "127.0.0.1:7177".into());
    let address: SocketAddr = text
        .parse()
        .map_err(|_| top.bad("listen", "must be an address and a port such as 127.0.0.1:7177"))?;
    if !address.ip().is_loopback() {
        return Err(top.bad(
            "listen",
            "is not a loopback address, and this build has no TLS; write 127.0.0.1:PORT \
             and reach it from elsewhere through an SSH tunnel",
        ));
    }
    Ok(address)
}

fn database(section: &Section<'_>) -> Result<Database, Problem> {
    let Some(url) = section.text("url")? else {
        return match section.text("node")? {
            Some(_) => Err(section.bad("node", "is for PostgreSQL only; give database.url too")),
            None => Ok(Database::Sqlite),
        };
    };
    if !url.starts_with("postgresql://") && !url.starts_with("postgres://") {
        let remedy = "must start with postgresql://; leave it out for SQLite in data_dir";
        return Err(section.bad("url", remedy));
    }
    let node = match section.text("node")? {
        Some(node) => node,
        None => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    };
    let url = Secret::new(&url).map_err(|error| section.bad("url", &error.to_string()))?;
    Ok(Database::Postgresql { url, node })
}

/// An address that is encrypted, unless it stays in a private network.
fn url(section: &Section<'_>, key: &str, text: &str) -> Result<reqwest::Url, Problem> {
    encrypted(text).map_err(|problem| section.bad(key, problem))
}

fn encrypted(text: &str) -> Result<reqwest::Url, &'static str> {
    let url: reqwest::Url =
        text.parse().map_err(|_| "must be an address such as https://host/v1")?;
    if url.scheme() != "https" && !(url.scheme() == "http" && is_near(&url)) {
        return Err("must use https; http is for private networks only");
    }
    Ok(url)
}

/// Whether a model's address is on this machine or in a private network.
///
/// # Errors
/// What is wrong with it, after "it".
pub fn address(text: &str) -> Result<bool, &'static str> {
    encrypted(text).map(|url| is_near(&url))
}

/// Refuses an address that a key would reach in the clear, beyond this machine.
fn keep_in_private(
    section: &Section<'_>,
    at: &str,
    url: &reqwest::Url,
    key: &KeySource,
) -> Result<(), Problem> {
    if url.scheme() == "http" && !is_local(url) && *key != KeySource::None {
        return Err(section.bad(at, "would carry the key in the clear; use https"));
    }
    Ok(())
}

/// Whether the address is on this machine: a name that only it answers to, or a loopback address.
pub fn is_local(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or("").trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether the address is on this machine or in a private network, where a model needs no key.
fn is_near(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or("").trim_start_matches('[').trim_end_matches(']');
    let private = match host.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(ip)) => ip.is_private(),
        Ok(std::net::IpAddr::V6(ip)) => ip.is_unique_local(),
        Err(_) => host.ends_with(".local"),
    };
    private || is_local(url)
}

/// Limits that may be nought: waits that may be skipped, and money that may not be spent.
const MAY_BE_ZERO: &[&str] =
    &["burst_ms", "starvation_ms", "run_micro_usd", "owner_month_micro_usd"];

fn limits(section: &Section<'_>, table: toml::Table) -> Result<Limits, Problem> {
    let mut merged = default_limits()?;
    for (key, value) in table {
        let number = match value.as_integer() {
            Some(0) if MAY_BE_ZERO.contains(&key.as_str()) => 0,
            Some(_) => section.count(&key)?.unwrap_or_default(),
            None => {
                return Err(section::wrong_type(&section.full(&key), "a whole number", &value));
            }
        };
        merged.insert(key, number.into());
    }
    let limits: Limits = serde_json::from_value(serde_json::Value::Object(merged))
        .map_err(|error| Problem::BadValue { key: "limits".into(), problem: error.to_string() })?;
    if limits.lease_renew_ms.saturating_mul(2) > limits.lease_ms {
        let remedy = "must be at most half of limits.lease_ms, so that one renewal may be missed";
        return Err(section.bad("lease_renew_ms", remedy));
    }
    Ok(limits)
}

fn zone(owner: &Section<'_>) -> Result<Option<String>, Problem> {
    let zone = owner.text("zone")?;
    match &zone {
        Some(name) if jiff::tz::TimeZone::get(name).is_err() => {
            let problem = format!("\"{name}\" is no time zone; write an IANA name: Asia/Hong_Kong");
            Err(owner.bad("zone", &problem))
        }
        Some(_) | None => Ok(zone),
    }
}

fn language(owner: &Section<'_>) -> Result<Option<Language>, Problem> {
    let Some(word) = owner.text("language")? else { return Ok(None) };
    let unknown =
        || owner.bad("language", &format!("\"{word}\" is no language here; write en or zh"));
    Language::parse(&word).map(Some).ok_or_else(unknown)
}

fn log(top: &Section<'_>) -> Result<String, Problem> {
    let filter = top.text("log")?.unwrap_or_else(|| "info".into());
    match tracing_subscriber::EnvFilter::try_new(&filter) {
        Ok(_) => Ok(filter),
        Err(_) => Err(top.bad("log", "must be a filter such as info or info,engine=debug")),
    }
}

fn hidden<S: serde::Serializer>(_: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("hidden")
}
