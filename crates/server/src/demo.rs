//! `adjutant demo`: two weeks of a duty in half a minute, with the plug pulled whenever one likes.
//!
//! This process is the small parent: it hosts the scripted model over HTTP, starts `adjutant serve` as a
//! child with a clock that jumps, starts it again whenever it dies, and plays the person. The server
//! reads the price feed from a real MCP process. Nothing but the scripted model and the clock differs
//! from a normal installation.

mod audience;
mod story;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{Clock as _, SystemClock};
use engine::pump::Hints;
use engine::rest::Rest;
use serde::{Deserialize, Serialize};
use testkit::clock::FastClock;
use tokio::net::TcpListener;

use crate::cli::DemoArgs;
use audience::Audience;

/// What parent and server agree on, in the demo's folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Play {
    start: base::Timestamp,
    days: u32,
    pace_ms: u64,
}

/// What the parent tells the page, through a file in the demo's folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Notes {
    plugs: u32,
    story: String,
    done: bool,
    summary: Option<Summary>,
}

/// The end of the story in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Summary {
    wakeups: u64,
    model_calls: u64,
    messages: usize,
    plugs: u32,
    lost: usize,
    doubled: usize,
}

/// The server's side of the demo: the clock that jumps, and the plug.
#[derive(Debug)]
pub struct Stage {
    /// The clock of the whole server.
    pub clock: Arc<FastClock>,
    folder: PathBuf,
    play: Play,
}

impl Stage {
    /// Goes on from the demo's folder.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(folder.join("play.json"))?;
        let play: Play = serde_json::from_str(&text)?;
        let clock = Arc::new(FastClock::open(&folder.join("clock"), play.start)?);
        Ok(Stage { clock, folder: folder.to_owned(), play })
    }

    fn end(&self) -> base::Timestamp {
        self.play.start.plus_ms(u64::from(self.play.days) * DAY_MS)
    }

    /// Real speed while work is under way or a card waits for a person; else on to the next due time.
    pub async fn keep_time(self: Arc<Self>, cx: engine::Context, hints: Arc<Hints>) {
        let mut jumped = SystemClock.now();
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if SystemClock.now() < jumped.plus_ms(self.play.pace_ms) {
                continue;
            }
            if let Ok(Rest::Until(due)) = engine::rest::look(&cx).await
                && self.clock.now() < self.end()
            {
                if let Err(error) = self.clock.jump_to(due.min(self.end())) {
                    tracing::warn!(%error, "the clock could not be kept");
                }
                jumped = SystemClock.now();
                hints.all();
            }
        }
    }
}

const DAY_MS: u64 = 24 * 3_600_000;

impl web::Demo for Stage {
    fn plug(&self) {
        // A real SIGKILL: no destructor, no flush, no farewell.
        let me = rustix::process::getpid();
        let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
    }

    fn state(&self) -> serde_json::Value {
        let notes = Notes::read(&self.folder);
        let now = self.clock.now();
        let passed = now.since(self.play.start).as_secs() / (DAY_MS / 1_000);
        serde_json::json!({
            "day": (passed + 1).min(u64::from(self.play.days)),
            "of_days": self.play.days,
            "virtual_now": now,
            "plugs": notes.plugs,
            "story": notes.story,
            "done": notes.done,
            "summary": notes.summary,
        })
    }
}

impl Notes {
    fn read(folder: &Path) -> Notes {
        std::fs::read_to_string(folder.join("notes.json"))
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let next = folder.join("notes.new");
        std::fs::write(&next, serde_json::to_string(self)?)?;
        Ok(std::fs::rename(next, folder.join("notes.json"))?)
    }
}

/// Between two jumps of the clock, so that a viewer can follow.
const PACE_MS: u64 = 2_500;

/// Runs the demo to its end, or until it is told to stop.
pub fn run(args: DemoArgs) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let folder = Folder::make()?;
    let done = runtime.block_on(play(args, folder.path()));
    runtime.shutdown_timeout(Duration::from_secs(1));
    done
}

async fn play(args: DemoArgs, folder: &Path) -> anyhow::Result<()> {
    let model = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let model_address = model.local_addr()?;
    let script = model::Script::parse(testkit::model_server::PRICE_SCRIPT)?;
    let config = testkit::model_server::Config::new(script, Arc::new(SystemClock));
    tokio::spawn(testkit::model_server::serve(model, config));

    let wanted = args.listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listen = free_address(wanted).await?;
    let pace_ms = if args.unattended { 0 } else { PACE_MS };
    let play = Play { start: story::START.parse_time()?, days: story::DAYS, pace_ms };
    std::fs::write(folder.join("play.json"), serde_json::to_string(&play)?)?;
    std::fs::write(folder.join("feed.toml"), testkit::price_feed::PRICE_MANIFEST)?;
    let program = std::env::current_exe()?;
    let text = story::config(&program, listen, model_address);
    std::fs::write(folder.join("adjutant.toml"), text)?;

    let mut audience = Audience::new(args, folder, program, listen, &play)?;
    tokio::select! {
        played = audience.watch() => played,
        told = crate::serve::told_to_stop() => told,
    }
}

/// An address that stays the same over all restarts of the server.
///
/// A port that the system would also give to outgoing connections could be taken while the server is
/// down, so one below that range is tried until it is free.
async fn free_address(wanted: SocketAddr) -> anyhow::Result<SocketAddr> {
    let ids = base::IdSource::new(crate::seed()?);
    for _ in 0..TRIES {
        let port = match wanted.port() {
            0 => PORTS.start + u16::from_be_bytes(ids.bytes()) % (PORTS.end - PORTS.start),
            given => given,
        };
        let address = SocketAddr::new(wanted.ip(), port);
        if TcpListener::bind(address).await.is_ok() {
            return Ok(address);
        }
    }
    anyhow::bail!("{wanted} is in use; set another --listen")
}

const PORTS: std::ops::Range<u16> = 15_000..32_000;
const TRIES: u32 = 20;

/// A temporary folder that goes with the demo.
struct Folder(PathBuf);

impl Folder {
    fn make() -> anyhow::Result<Self> {
        let id: base::Incarnation = base::IdSource::new(crate::seed()?).next(SystemClock.now());
        let path = std::env::temp_dir().join(format!("adjutant-demo-{id}"));
        std::fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A constant instant.
trait ParseTime {
    fn parse_time(&self) -> anyhow::Result<base::Timestamp>;
}

impl ParseTime for str {
    fn parse_time(&self) -> anyhow::Result<base::Timestamp> {
        Ok(base::Timestamp::parse(self)?)
    }
}
