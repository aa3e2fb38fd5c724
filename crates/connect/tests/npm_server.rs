//! Servers that others wrote, with the TypeScript SDK: what the protocol means elsewhere. Their versions
//! are pinned in `tests/mcp`.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use connect::{
    Address, Command as Program, ConnectError, ConnectLimits, Connectors, Issued, Manifest, Reach,
    ServerConfig, ToolAnswer,
};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(60);

/// The folder of the installed packages; installed once for all tests of this program, whichever
/// processes they run in. The error says what is missing.
fn packages() -> Result<PathBuf, String> {
    let pinned = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mcp");
    std::fs::create_dir_all(&folder).unwrap();
    let turn = File::create(folder.join("turn")).unwrap();
    turn.lock().unwrap();
    let wanted = std::fs::read(pinned.join("package-lock.json")).unwrap();
    let done = folder.join("installed");
    if std::fs::read(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(folder.join("node_modules"));
    }
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(pinned.join(name), folder.join(name)).unwrap();
    }
    let install = Command::new("npm")
        .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
        .current_dir(&folder)
        .output()
        .map_err(|error| format!("npm is missing ({error})"))?;
    if !install.status.success() {
        let said = String::from_utf8_lossy(&install.stderr).replace('\n', " ");
        return Err(format!("npm can not install the packages of tests/mcp: {said}"));
    }
    std::fs::write(done, wanted).unwrap();
    Ok(folder.join("node_modules"))
}

/// The script of one of the servers; says so where the test can not be run.
#[expect(
    clippy::print_stdout,
    reason = "whoever reads the test's output must see what was not run"
)]
fn script(server: &str) -> Option<String> {
    match packages() {
        Ok(folder) => {
            Some(format!("{}/@modelcontextprotocol/{server}/dist/index.js", folder.display()))
        }
        Err(reason) => {
            println!("\nskipped: {server} from npm because {reason}");
            None
        }
    }
}

fn connectors(reach: Reach, manifest: &str) -> Connectors {
    let manifest = Manifest::parse(manifest).unwrap();
    let config = ServerConfig { name: "npm".to_owned(), reach, manifest };
    let limits = ConnectLimits { start_ms: 60_000, ..ConnectLimits::default() };
    Connectors::new(vec![config], limits).unwrap()
}

fn node(args: Vec<String>) -> Reach {
    Reach::Command(Program { program: "node".to_owned(), args, env: BTreeMap::new() })
}

async fn ask(
    connectors: &Connectors,
    tool: &str,
    arguments: Value,
) -> Result<ToolAnswer, ConnectError> {
    let arguments = arguments.as_object().cloned().unwrap();
    let wanted = connectors.wanted(&format!("npm.{tool}"), arguments).unwrap();
    connectors.call(wanted.cleared(|_| false).unwrap(), LIMIT).await
}

const EVERYTHING: &str = r#"
[tool.echo]
effect = "read"
[tool.get-sum]
effect = "read"
[tool.get-tiny-image]
effect = "read"
[tool.get-structured-content]
effect = "read"
issues = { weather = "conditions" }
[tool.trigger-long-running-operation]
effect = "read"
"#;

/// The same over either transport.
async fn everything(connectors: &Connectors) {
    assert_eq!(connectors.check().await, [("npm".to_owned(), Ok(()))]);
    let schema = connectors.schema("npm.echo").await.unwrap();
    assert!(schema.parameters.contains("\"message\""), "{schema:?}");
    let echo = ask(connectors, "echo", json!({ "message": "hello" })).await.unwrap();
    assert_eq!((echo.text.as_str(), echo.provenance.as_str()), ("Echo: hello", "mcp:npm.echo"));
    let sum = ask(connectors, "get-sum", json!({ "a": 2, "b": 40 })).await.unwrap().text;
    assert!(sum.contains("42"), "{sum}");
    let image = ask(connectors, "get-tiny-image", json!({})).await.unwrap().text;
    assert!(image.contains("[image, image/png, ") && image.contains(" bytes, not shown]"));
    assert!(ask(connectors, "echo", json!({})).await.unwrap().is_error);
    let weather = ask(connectors, "get-structured-content", json!({ "location": "New York" }));
    let cloudy = Issued {
        kind: "weather".to_owned(),
        id: "Cloudy".to_owned(),
        snapshot: json!({ "temperature": 33, "conditions": "Cloudy", "humidity": 82 }),
        expires_at: None,
    };
    assert_eq!(weather.await.unwrap().issued, [cloudy]);
    // Its answer comes after notices of progress.
    let long = json!({ "duration": 0.1, "steps": 2 });
    let long = ask(connectors, "trigger-long-running-operation", long).await.unwrap();
    assert!(long.text.starts_with("Long running operation completed"), "{}", long.text);
}

#[tokio::test]
async fn the_server_with_everything_is_used_over_stdio() {
    let Some(script) = script("server-everything") else { return };
    let connectors = connectors(node(vec![script, "stdio".to_owned()]), EVERYTHING);
    everything(&connectors).await;
    connectors.shutdown().await;
}

/// A server over HTTP in a process of its own; killed when dropped.
struct Served {
    child: Child,
}

impl Served {
    /// Returns when it listens.
    fn start(script: &str, port: u16) -> Served {
        let mut child = Command::new("node")
            .args([script, "streamableHttp"])
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let served = Served { child };
        let listens = said.lines().map_while(Result::ok).any(|line| line.contains("listening"));
        assert!(listens, "the server ended before it listened");
        served
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// On several threads, so that the client hears of an end while the test waits for a process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_with_everything_is_used_over_http() {
    let Some(script) = script("server-everything") else { return };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let served = Served::start(&script, port);
    let reach = Reach::Http(Address {
        url: format!("http://127.0.0.1:{port}/mcp"),
        key: None,
        http: model::http_client(Duration::from_secs(5)).unwrap(),
    });
    let connectors = connectors(reach, EVERYTHING);
    everything(&connectors).await;

    // Started again it knows no session of ours, and the next call opens one.
    drop(served);
    let again = Served::start(&script, port);
    let echo = ask(&connectors, "echo", json!({ "message": "again" })).await.unwrap();
    assert_eq!(echo.text, "Echo: again");

    drop(again);
    let gone = ask(&connectors, "echo", json!({ "message": "hello" })).await.unwrap_err();
    // Whether the client has heard of the end by now or finds it out.
    let known = matches!(gone, ConnectError::Unreachable { .. } | ConnectError::Broken { .. });
    assert!(known, "{gone}");
    connectors.shutdown().await;
}

#[tokio::test]
async fn the_server_of_files_reads_in_its_folder_only() {
    let Some(script) = script("server-filesystem") else { return };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("files");
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    std::fs::write(folder.join("errands.txt"), "Bring two photos.").unwrap();
    let manifest = "[tool.list_directory]\neffect = \"read\"\n[tool.read_text_file]\neffect = \"read\"\n\
                    [tool.write_file]\neffect = \"reversible\"";
    let shown = folder.display().to_string();
    let connectors = connectors(node(vec![script, shown.clone()]), manifest);
    assert_eq!(connectors.check().await, [("npm".to_owned(), Ok(()))]);
    let listed = ask(&connectors, "list_directory", json!({ "path": shown })).await.unwrap();
    assert_eq!(listed.text, "[FILE] errands.txt");
    let path = folder.join("errands.txt");
    let read = ask(&connectors, "read_text_file", json!({ "path": path })).await.unwrap();
    assert_eq!(read.text, "Bring two photos.");
    let outside = ask(&connectors, "read_text_file", json!({ "path": "/etc/hostname" })).await;
    let outside = outside.unwrap();
    assert!(outside.is_error && outside.text.starts_with("Access denied"), "{}", outside.text);
    let write = connectors.wanted("npm.write_file", serde_json::Map::new()).unwrap_err();
    assert!(write.to_string().contains("tier reversible"), "{write}");
    connectors.shutdown().await;
}
