//! What the connectors' tools are, for whoever plays them elsewhere (ADV-01).

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::App;

/// How long a server may take to say which arguments its tools take; without them the manifest has to do.
const SCHEMA_MS: u64 = 3_000;

/// Every tool with its manifest entry, and its arguments as far as its server says them now: one that does not
/// run is started for it, and no tool is called.
pub(crate) async fn list(State(app): State<App>) -> Json<Value> {
    let world = app.web.cx.world.clone();
    let all = world.tools().into_iter().filter_map(|name| Some((world.rule(&name)?, name)));
    let one = |(rule, name): (connect::ToolRule, String)| {
        let world = world.clone();
        async move {
            let limit = Duration::from_millis(SCHEMA_MS);
            let said = tokio::time::timeout(limit, world.parameters(&name)).await;
            json!({"name": name, "rule": rule, "arguments": said.ok().flatten()})
        }
    };
    let tools = futures_util::future::join_all(all.map(one)).await;
    Json(json!({ "tools": tools }))
}
