//! One server that others wrote, with the TypeScript SDK: what the protocol means elsewhere.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use connect::{Command as Program, ConnectLimits, Connectors, Manifest, Reach, ServerConfig};
use serde_json::{Map, json};

const PACKAGE: &str = "@modelcontextprotocol/server-everything@2026.8.31";

/// Whether npm can run the package at all: it is fetched here, so that the calls have their time.
fn available() -> Result<(), String> {
    let fetch = Command::new("npm")
        .args(["exec", "--yes", "--package", PACKAGE, "--", "node", "--version"])
        .output()
        .map_err(|error| format!("npm is missing: {error}"))?;
    let said = String::from_utf8_lossy(&fetch.stderr);
    fetch.status.success().then_some(()).ok_or_else(|| format!("npm can not fetch it: {said}"))
}

#[tokio::test]
#[expect(
    clippy::print_stdout,
    reason = "whoever reads the test's output must see what was not run"
)]
async fn a_server_from_npm_is_used_as_its_manifest_says() {
    if let Err(reason) = available() {
        println!("skipped: {reason}");
        return;
    }
    let config = ServerConfig {
        name: "every".to_owned(),
        reach: Reach::Command(Program {
            program: "npx".to_owned(),
            args: vec!["--yes".to_owned(), PACKAGE.to_owned()],
            env: BTreeMap::new(),
        }),
        manifest: Manifest::parse(
            "[tool.echo]\neffect = \"read\"\n[tool.get-sum]\neffect = \"read\"\n\
             [tool.get-tiny-image]\neffect = \"read\"",
        )
        .unwrap(),
    };
    let limits = ConnectLimits { start_ms: 60_000, ..ConnectLimits::default() };
    let connectors = Connectors::new(vec![config], limits).unwrap();
    assert_eq!(connectors.check().await, [("every".to_owned(), Ok(()))]);
    let schema = connectors.schema("every.echo").await.unwrap();
    assert!(schema.parameters.contains("\"message\""), "{schema:?}");
    let limit = Duration::from_secs(30);
    let ask = async |name: &str, arguments: serde_json::Value| {
        let arguments: Map<_, _> = arguments.as_object().cloned().unwrap();
        let tool = connectors.wanted(name, arguments).unwrap().cleared(|_| false).unwrap();
        connectors.call(tool, limit).await.unwrap()
    };
    assert_eq!(ask("every.echo", json!({ "message": "hello" })).await.text, "Echo: hello");
    let sum = ask("every.get-sum", json!({ "a": 2, "b": 40 })).await.text;
    assert!(sum.contains("42"), "{sum}");
    let image = ask("every.get-tiny-image", json!({})).await.text;
    assert!(image.contains("[image, image/png, ") && image.contains(" bytes, not shown]"));
    assert!(ask("every.echo", json!({})).await.is_error);
    connectors.shutdown().await;
}
