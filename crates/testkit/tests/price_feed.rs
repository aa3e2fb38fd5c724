//! The price feed as a process, reached through the connectors.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use connect::{
    Command as Program, ConnectLimits, Connectors, Level, Manifest, Reach, Refusal, ServerConfig,
    ToolAnswer,
};
use domain::effect::Effect;
use serde_json::{Map, Value, json};
use testkit::price_feed::PRICE_MANIFEST;

/// The program that hosts the feed.
const PROGRAM: &str = env!("CARGO_BIN_EXE_price-feed");

fn connectors() -> Connectors {
    let config = ServerConfig {
        name: "prices".to_owned(),
        reach: Reach::Command(Program {
            program: PROGRAM.to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
        }),
        manifest: Manifest::parse(PRICE_MANIFEST).unwrap(),
    };
    Connectors::new(vec![config], ConnectLimits::default()).unwrap()
}

async fn ask(connectors: &Connectors, tool: &str, arguments: Value) -> ToolAnswer {
    let arguments: Map<_, _> = arguments.as_object().cloned().unwrap();
    let tool = connectors.wanted(tool, arguments).unwrap().cleared(|_| false).unwrap();
    connectors.call(tool, Duration::from_secs(20)).await.unwrap()
}

fn answer(tool: &str, text: &str, is_error: bool) -> ToolAnswer {
    ToolAnswer {
        text: text.to_owned(),
        is_error,
        provenance: format!("mcp:prices.{tool}"),
        level: Level::Connector,
        issued: Vec::new(),
    }
}

#[tokio::test]
async fn prices_are_read_and_buying_needs_release() {
    let connectors = connectors();
    assert_eq!(connectors.check().await, [("prices".to_owned(), Ok(()))]);
    assert_eq!(
        ask(&connectors, "prices.price", json!({ "date": "2027-03-03" })).await,
        answer("price", r#"{"date":"2027-03-03","price":97.5}"#, false)
    );
    assert_eq!(
        ask(&connectors, "prices.history", json!({ "from": "2027-03-10", "to": "2027-03-11" }))
            .await,
        answer(
            "history",
            r#"[{"date":"2027-03-10","price":101.2},{"date":"2027-03-11","price":100.0}]"#,
            false
        )
    );
    assert_eq!(
        ask(&connectors, "prices.price", json!({ "date": "tomorrow" })).await,
        answer("price", "`date` must be a day as in 2027-03-01", true)
    );
    assert_eq!(
        connectors.wanted("prices.buy", Map::new()).unwrap_err(),
        Refusal::NeedsRelease {
            tool: "prices.buy".to_owned(),
            effect: Effect::Paid,
            reveals: Vec::new()
        }
    );
    let schema = connectors.schema("prices.buy").await.unwrap();
    let parameters: Value = serde_json::from_str(&schema.parameters).unwrap();
    assert_eq!(parameters["required"], json!(["client_ref", "date", "quantity"]));
    connectors.shutdown().await;
}

#[test]
fn the_process_ends_with_its_input() {
    let mut child =
        Command::new(PROGRAM).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdin.take());
    // It says why on its error stream: the connection was never opened. What counts is that it ends.
    assert!(child.wait().unwrap().code().is_some());
}
