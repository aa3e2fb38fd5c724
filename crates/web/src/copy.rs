//! What somebody needs to try the worst on their own records elsewhere: a copy of them, and what the connectors'
//! tools are. Whoever asks may read all of it anyway, piece by piece.

use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use base::OwnerId;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::App;
use crate::auth::Caller;
use crate::problem::Problem;

/// Its name in the data folder, while it is made.
const NAME: &str = "copy.db";
/// Bytes that are sent at once.
const CHUNK_BYTES: usize = 256 * 1024;
/// How long a server may take to say which arguments its tools take; without them the manifest has to do.
const SCHEMA_MS: u64 = 3_000;
const RETRY_AFTER_S: u32 = 30;

/// How far an answer has come.
enum Copy {
    /// Nothing is made yet: the first bytes are late, and no answer's time runs out over it.
    Begun(App, OwnerId, PathBuf),
    /// The file has no name any more: it is gone with this answer.
    Made(std::fs::File),
}

/// A SQLite file with everything of the caller's owner, as it stands at one instant.
pub(crate) async fn records(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let full = |_| Problem::too_many("A copy is being made already.", RETRY_AFTER_S);
    let permit = app.copies.clone().try_acquire_owned().map_err(full)?;
    let file = app.web.data_dir.join(NAME);
    let begun = (Copy::Begun(app, caller.device.owner, file), permit);
    let chunks = futures_util::stream::unfold(Some(begun), |copy| async move {
        let (copy, permit) = copy?;
        match next(copy, permit).await {
            Ok(next) => next.map(|(bytes, copy)| (Ok(bytes), Some(copy))),
            Err(error) => {
                tracing::warn!(%error, "a copy could not be made");
                Some((Err(error), None))
            }
        }
    });
    let kind = (header::CONTENT_TYPE, "application/vnd.sqlite3");
    Ok(([kind], Body::from_stream(chunks)).into_response())
}

type Sent = Option<(Bytes, (Copy, OwnedSemaphorePermit))>;

async fn next(copy: Copy, permit: OwnedSemaphorePermit) -> std::io::Result<Sent> {
    let mut file = match copy {
        Copy::Made(file) => file,
        Copy::Begun(app, owner, path) => {
            // One that a killed process left.
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let made = app.web.cx.store.copy_owner(owner, path.clone()).await;
            made.map_err(std::io::Error::other)?;
            let file = std::fs::File::open(&path)?;
            std::fs::remove_file(&path)?;
            file
        }
    };
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = vec![0; CHUNK_BYTES];
        let read = file.read(&mut bytes)?;
        bytes.truncate(read);
        Ok::<_, std::io::Error>((bytes, file))
    });
    let (bytes, file) = read.await.map_err(std::io::Error::other)??;
    Ok((!bytes.is_empty()).then(|| (Bytes::from(bytes), (Copy::Made(file), permit))))
}

/// Every tool with its manifest entry, and its arguments as far as its server says them now.
pub(crate) async fn tools(State(app): State<App>) -> Json<Value> {
    let world = app.web.cx.world.clone();
    let all = world.tools().into_iter().filter_map(|name| Some((world.rule(&name)?, name)));
    let one = |(rule, name): (connect::ToolRule, String)| {
        let world = world.clone();
        async move {
            let limit = Duration::from_millis(SCHEMA_MS);
            let said = tokio::time::timeout(limit, world.schema(&name)).await.unwrap_or_default();
            let arguments = said.split_once("\nArguments: ").map(|(_, text)| text);
            let arguments = arguments.and_then(|text| serde_json::from_str::<Value>(text).ok());
            json!({"name": name, "rule": rule, "arguments": arguments})
        }
    };
    let tools = futures_util::future::join_all(all.map(one)).await;
    Json(json!({ "tools": tools }))
}
