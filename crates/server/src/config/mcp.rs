//! `[[mcp]]`: the tool servers, each a program of ours or an address.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base::Secret;
use serde::Serialize;

use super::section::{self, Section, join};
use super::{KeySource, Problem, keep_in_private, url};

/// A tool server that speaks MCP.
#[derive(Debug, Serialize)]
pub struct McpConfig {
    /// Short name; tools are shown as `name.tool`.
    pub name: String,
    /// How it is reached.
    #[serde(flatten)]
    pub server: McpServer,
    /// What its tools do to the world; without one, all of them are left to a person.
    pub manifest: Option<PathBuf>,
}

/// How a tool server is reached.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum McpServer {
    /// Over the standard streams of a program.
    Program {
        /// Program, as a path (relative to the file) or a name on PATH.
        command: PathBuf,
        /// Its arguments; one that begins with `./` or `../` is a path from the folder of the file.
        args: Vec<String>,
        /// Extra environment variables; the values may be secrets, so only the names are printed.
        #[serde(serialize_with = "names_only")]
        env: BTreeMap<String, Secret>,
    },
    /// Over HTTP.
    Address {
        /// The whole address; printed without its query, which may hold a secret.
        #[serde(serialize_with = "without_query")]
        url: String,
        /// Where its bearer token is found.
        key: KeySource,
    },
}

/// All sections `[[mcp]]`.
pub(super) fn servers(
    top: &Section<'_>,
    folder: &Path,
    known: &[String],
    home: Option<&Path>,
) -> Result<Vec<McpConfig>, Problem> {
    let mut servers: Vec<McpConfig> = Vec::new();
    for table in top.tables("mcp")? {
        let section = Section::new("mcp", table, folder, known)?;
        let name = section.required("name", "give each tool server a short name")?;
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.len() > 32 || !name.bytes().all(fits) {
            return Err(section.bad("name", "takes at most 32 of a-z, 0-9 and -"));
        }
        if servers.iter().any(|other| other.name == name) {
            return Err(section.bad("name", &format!("\"{name}\" is given twice; rename one")));
        }
        let server = match section.text("url")? {
            None => program(&section, folder, home)?,
            Some(text) => address(&section, text, home)?,
        };
        servers.push(McpConfig { name, server, manifest: section.path("manifest", home)? });
    }
    Ok(servers)
}

fn program(
    section: &Section<'_>,
    folder: &Path,
    home: Option<&Path>,
) -> Result<McpServer, Problem> {
    let remedy = "give the program to start, or the address of a running server as mcp.url";
    let command = section.required("command", remedy)?;
    if let Some(key) = ["key_env", "key_file"].into_iter().find(|key| section.has(key)) {
        let remedy = "goes with mcp.url; give a program its key in mcp.env";
        return Err(section.bad(key, remedy));
    }
    // A bare name is looked up on PATH when it is started; anything with a slash is a path.
    let command = match command.contains('/') {
        true => section.path("command", home)?.unwrap_or_default(),
        false => PathBuf::from(command),
    };
    let args = section.texts("args")?.into_iter().map(|arg| resolved(arg, folder)).collect();
    Ok(McpServer::Program { command, args, env: variables(section)? })
}

fn address(section: &Section<'_>, text: String, home: Option<&Path>) -> Result<McpServer, Problem> {
    if let Some(key) = ["command", "args", "env"].into_iter().find(|key| section.has(key)) {
        return Err(section.bad(key, "and mcp.url are both given; keep one of program and address"));
    }
    let at = url(section, "url", &text)?;
    if !at.username().is_empty() || at.password().is_some() {
        return Err(section.bad("url", "must hold no user and no password; use mcp.key_file"));
    }
    let key = KeySource::of(section, home)?;
    keep_in_private(section, "url", &at, &key)?;
    Ok(McpServer::Address { url: text, key })
}

/// An argument that is plainly a relative path, made absolute; any other as it is.
fn resolved(argument: String, folder: &Path) -> String {
    match argument.strip_prefix("./") {
        Some(rest) => folder.join(rest).to_string_lossy().into_owned(),
        None if argument.starts_with("../") => folder.join(argument).to_string_lossy().into_owned(),
        None => argument,
    }
}

fn variables(section: &Section<'_>) -> Result<BTreeMap<String, Secret>, Problem> {
    let mut found = BTreeMap::new();
    for (name, value) in section.table("env")? {
        let key = join(&section.full("env"), &name);
        let toml::Value::String(text) = value else {
            return Err(section::wrong_type(&key, "a text in quotes", &value));
        };
        let secret = Secret::new(&text).map_err(|_| Problem::BadValue {
            key: key.clone(),
            problem: "is empty; give a value or leave the line out".into(),
        })?;
        found.insert(name, secret);
    }
    Ok(found)
}

fn names_only<S: serde::Serializer>(
    variables: &BTreeMap<String, Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(variables.keys())
}

fn without_query<S: serde::Serializer>(url: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(url.split(['?', '#']).next().unwrap_or_default())
}
