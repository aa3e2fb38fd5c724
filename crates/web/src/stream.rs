//! The signal "changed, now at 43": server-sent events without content (CLI-04).
//!
//! A signal may be lost or come late; the records are the fact and the client asks for what it lacks.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use store::Signal;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep_until};

use crate::App;
use crate::auth::Caller;
use crate::problem::Problem;

/// A comment comes when nothing else did for this long, so that a client knows a dead connection.
const BEAT: Duration = Duration::from_secs(15);
/// How often a node asks a database that other nodes write to as well.
const LOOK: Duration = Duration::from_secs(1);
const RETRY_AFTER_S: u32 = 5;

/// One client's stream. It holds at most one number that the client has not taken yet.
struct Feed {
    app: App,
    caller: Caller,
    signals: broadcast::Receiver<Signal>,
    stop: Option<watch::Receiver<bool>>,
    /// What the client was told last.
    told: i64,
    /// When the next comment is due.
    beat_at: Instant,
    _permit: OwnedSemaphorePermit,
}

/// Opens a stream. The first event comes at once with the number as it is.
pub(crate) async fn open(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let full = |_| {
        let detail = "Too many streams are open. Close some, or ask GET /v1/changes now and then.";
        Problem::too_many(detail, RETRY_AFTER_S)
    };
    let permit = app.streams.clone().try_acquire_owned().map_err(full)?;
    // Listened to before the number is read: a change in between is heard, not missed.
    let signals = app.web.cx.store.signals();
    let stop = app.stop.clone();
    let beat_at = Instant::now() + BEAT;
    let feed = Feed { app, caller, signals, stop, told: -1, beat_at, _permit: permit };
    let events = futures_util::stream::unfold(feed, |mut feed| async move {
        let event = feed.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(event)), feed))
    });
    let kind = (header::CONTENT_TYPE, "text/event-stream");
    let plain = (header::HeaderName::from_static("x-accel-buffering"), "no");
    Ok(([kind, plain], Body::from_stream(events)).into_response())
}

/// What a feed heard.
enum Heard {
    /// The owner's records are at this number.
    At(i64),
    /// Something may have been missed.
    Look,
    /// Nothing of interest.
    Nothing,
    /// The server stops.
    End,
}

impl Feed {
    /// The next event or comment; `None` ends the stream. Revoking a device ends its streams.
    async fn next(&mut self) -> Option<String> {
        if self.told < 0 {
            return self.look().await.map(|seq| self.tell(seq));
        }
        loop {
            let seq = match self.hear().await {
                Heard::End => return None,
                Heard::Nothing => continue,
                Heard::At(seq) if seq <= self.told => continue,
                Heard::At(_) | Heard::Look => self.look().await?,
            };
            if seq > self.told {
                return Some(self.tell(seq));
            }
            if Instant::now() >= self.beat_at {
                self.beat_at = Instant::now() + BEAT;
                return Some(": still here\n\n".into());
            }
        }
    }

    fn tell(&mut self, seq: i64) -> String {
        self.told = seq;
        self.beat_at = Instant::now() + BEAT;
        format!("event: changed\ndata: {{\"seq\":{seq}}}\n\n")
    }

    /// The newest number, if the device may still know it.
    async fn look(&self) -> Option<i64> {
        let (token, owner) = (self.caller.token, self.caller.device.owner);
        let read = move |tx: &mut store::Tx<'_>| {
            let device = store::device::by_token(tx, token)?;
            let seq = store::owner::get(tx, owner)?.change_seq;
            Ok(device.map(|_| seq))
        };
        // A store that cannot be read ends the stream; the client comes back and is told why.
        self.app.web.cx.store.read(read).await.ok().flatten()
    }

    async fn hear(&mut self) -> Heard {
        let owner = self.caller.device.owner;
        let is_shared = self.app.web.cx.store.is_postgres();
        let look_at =
            if is_shared { self.beat_at.min(Instant::now() + LOOK) } else { self.beat_at };
        // Whatever comes first; each of them may be dropped unfinished without loss.
        tokio::select! {
            heard = self.signals.recv() => match heard {
                Ok(signal) if signal.owner == owner => self.newest(signal.seq),
                Ok(_) => Heard::Nothing,
                Err(RecvError::Lagged(_)) => Heard::Look,
                Err(RecvError::Closed) => Heard::End,
            },
            () = sleep_until(look_at) => Heard::Look,
            () = stopped(&mut self.stop) => Heard::End,
        }
    }

    /// Takes all that waits as one: a slow client is told the newest number only.
    fn newest(&mut self, mut seq: i64) -> Heard {
        loop {
            match self.signals.try_recv() {
                Ok(signal) if signal.owner == self.caller.device.owner => seq = seq.max(signal.seq),
                Ok(_) => {}
                Err(TryRecvError::Lagged(_)) => return Heard::Look,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Heard::At(seq),
            }
        }
    }
}

/// Ends when the server stops; never if nobody can say so.
async fn stopped(stop: &mut Option<watch::Receiver<bool>>) {
    match stop {
        Some(stop) => drop(stop.wait_for(|stop| *stop).await),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {

    use base::{IdSource, Limits};
    use engine::{Context, setup};
    use model::{Prices, Script, ScriptedModel};
    use store::Store;
    use testkit::clock::FakeClock;
    use testkit::stores::{START, TempFolder, options};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::{Shared, WebState};

    async fn feed(folder: &TempFolder) -> Feed {
        let clock = std::sync::Arc::new(FakeClock::new(START));
        let ids = std::sync::Arc::new(IdSource::new([5; 32]));
        let file = store::Database::Sqlite(folder.path().join("adjutant.db"));
        let store = Store::open(options(file, clock.clone(), &ids, false)).expect("a store");
        let script = Script::parse("").expect("a script");
        let model = std::sync::Arc::new(ScriptedModel::new(script, Prices::default()));
        let cx = Context {
            store,
            clock,
            incarnation: ids.next(START),
            ids,
            limits: Limits::default(),
            model: model.clone(),
            small: model.clone(),
            reviewer: model,
            max_output_tokens: 1,
            world: std::sync::Arc::new(testkit::world::FakeWorld::default()),
        };
        let seed = setup::Seed { name: "Ada".into(), zone: "UTC".into(), language: None };
        let owner = setup::owner(&cx, seed).await.expect("an owner").id;
        let add =
            |cx: &Context, tx: &mut store::OwnerTx<'_, '_>| setup::add_device(cx, tx, "phone");
        let device = cx.write(owner, add).await.expect("a device").device;
        let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 7177));
        let streams = std::sync::Arc::new(Semaphore::new(1));
        let permit = streams.clone().try_acquire_owned().expect("room");
        let signals = cx.store.signals();
        let secrets = std::sync::Arc::new(crate::secrets::SecretMemory::default());
        let hints = std::sync::Arc::default();
        let data_dir = folder.path().to_owned();
        let (watcher, machine) = (base::Digest::ZERO, std::sync::Arc::new(Vec::new));
        let web =
            WebState { cx, owner, listen, data_dir, secrets, hints, watcher, machine, demo: None };
        let app = std::sync::Arc::new(Shared { streams, ..Shared::new(web, None) });
        let caller = Caller { token: device.token_digest, device };
        let beat_at = Instant::now() + BEAT;
        Feed { app, caller, signals, stop: None, told: -1, beat_at, _permit: permit }
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_beats_every_15_seconds_and_a_change_puts_it_off() {
        let folder = TempFolder::new();
        let mut feed = feed(&folder).await;
        let opened = Instant::now();
        let changed = |seq| format!("event: changed\ndata: {{\"seq\":{seq}}}\n\n");
        assert_eq!(feed.next().await, Some(changed(1)));
        for beats in 1..=3 {
            assert_eq!(feed.next().await.as_deref(), Some(": still here\n\n"));
            assert_eq!(opened.elapsed().as_secs(), 15 * beats);
        }
        tokio::time::advance(Duration::from_secs(10)).await;
        let cx = feed.app.web.cx.clone();
        let add =
            |cx: &Context, tx: &mut store::OwnerTx<'_, '_>| setup::add_device(cx, tx, "other");
        cx.write(feed.app.web.owner, add).await.expect("a change");
        assert_eq!(feed.next().await, Some(changed(2)));
        assert_eq!(opened.elapsed().as_secs(), 55);
        assert_eq!(feed.next().await.as_deref(), Some(": still here\n\n"));
        assert_eq!(opened.elapsed().as_secs(), 70);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_slow_client_missed_is_one_number_at_once() {
        let folder = TempFolder::new();
        let mut feed = feed(&folder).await;
        let opened = Instant::now();
        let told = |seq| Some(format!("event: changed\ndata: {{\"seq\":{seq}}}\n\n"));
        assert_eq!(feed.next().await, told(1));
        let (cx, owner) = (feed.app.web.cx.clone(), feed.app.web.owner);
        // The last time more than the hints that are kept for a receiver: it lags.
        let mut seq = 1;
        for changes in [2, 3, 1_100] {
            for _ in 0..changes {
                let rename = |_: &Context, tx: &mut store::OwnerTx<'_, '_>| {
                    store::owner::rename(tx, "Ada", "UTC")
                };
                cx.write(owner, rename).await.expect("a change");
            }
            seq += changes;
            assert_eq!(feed.next().await, told(seq));
        }
        assert_eq!(opened.elapsed().as_secs(), 0);
        assert_eq!(feed.next().await.as_deref(), Some(": still here\n\n"));
    }
}
