//! A copy of the owner's records, for whoever tries the worst on them elsewhere (ADV-01). It is all the owner's
//! own: tokens, codes and leases are not in it.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use base::OwnerId;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::App;
use crate::auth::Caller;
use crate::problem::Problem;

/// Its name in the data folder, while it is made.
const NAME: &str = "copy.db";
/// Bytes that are sent at once.
const CHUNK_BYTES: usize = 256 * 1024;
const RETRY_AFTER_S: u32 = 30;

/// A copy whose file has no name any more, so that it is gone with its answer; with the place of the next.
type Copied = (File, OwnedSemaphorePermit);

/// How far an answer has come. Its first bytes are late, and no answer's time runs out over that.
enum Copy {
    Begun(oneshot::Receiver<std::io::Result<Copied>>),
    Made(Copied),
}

/// Takes away what a killed process left of a copy.
///
/// # Errors
/// When it cannot be taken away.
pub fn forget(data_dir: &Path) -> std::io::Result<()> {
    store::forget_copy(&data_dir.join(NAME))
}

/// A SQLite file with everything of the caller's owner, as it stands at one instant.
pub(crate) async fn records(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let full = |_| Problem::too_many("A copy is being made already.", RETRY_AFTER_S);
    let permit = app.copies.clone().try_acquire_owned().map_err(full)?;
    let (sender, made) = oneshot::channel();
    // A client that leaves ends no making: whoever comes next finds the place taken until it is over.
    tokio::spawn(async move {
        let made = make(&app, caller.device.owner).await;
        if let Err(error) = &made {
            tracing::warn!(%error, "a copy could not be made");
        }
        drop(sender.send(made.map(|file| (file, permit))));
    });
    let chunks = futures_util::stream::unfold(Some(Copy::Begun(made)), |copy| async move {
        match next(copy?).await {
            Ok(next) => next.map(|(bytes, copied)| (Ok(bytes), Some(Copy::Made(copied)))),
            Err(error) => Some((Err(error), None)),
        }
    });
    let kind = (header::CONTENT_TYPE, "application/vnd.sqlite3");
    Ok(([kind], Body::from_stream(chunks)).into_response())
}

async fn make(app: &App, owner: OwnerId) -> std::io::Result<File> {
    let folder = app.web.data_dir.clone();
    let path: PathBuf = folder.join(NAME);
    let left = folder.clone();
    blocking(move || forget(&left)).await?;
    let copied = app.web.cx.store.copy_owner(owner, path.clone()).await;
    copied.map_err(std::io::Error::other)?;
    blocking(move || {
        let file = File::open(path)?;
        forget(&folder)?;
        Ok(file)
    })
    .await
}

async fn next(copy: Copy) -> std::io::Result<Option<(Bytes, Copied)>> {
    let (mut file, permit) = match copy {
        Copy::Made(copied) => copied,
        Copy::Begun(made) => made.await.map_err(std::io::Error::other)??,
    };
    blocking(move || {
        let mut bytes = vec![0; CHUNK_BYTES];
        let read = file.read(&mut bytes)?;
        bytes.truncate(read);
        Ok((!bytes.is_empty()).then(|| (Bytes::from(bytes), (file, permit))))
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other)?
}
