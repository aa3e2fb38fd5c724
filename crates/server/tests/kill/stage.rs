//! What a test puts around the real program: a folder, a configuration, a clock that jumps, and the
//! scripted model, which outlives every kill.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base::{Clock as _, IdSource, SystemClock, Timestamp};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::model_server::{self, KILL_SCRIPT};
use testkit::postgres::TestPostgres;
use testkit::stores::TempFolder;

/// Where the story begins: Sunday evening in Hong Kong.
pub const START: &str = "2027-02-28T12:00:00Z";
/// A pace at which the clock never jumps.
pub const NEVER_MS: u64 = 1_000_000_000;
const DAY_MS: u64 = 24 * 3_600_000;

/// Which database the program keeps its records in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
}

/// Seeded chance.
pub struct Dice(IdSource);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        Dice(IdSource::new(bytes))
    }

    /// A number under `bound`.
    pub fn under(&self, bound: u64) -> u64 {
        u64::from_be_bytes(self.0.bytes()) % bound
    }

    pub fn id(&self) -> String {
        self.0.next::<base::EventId>(SystemClock.now()).to_string()
    }
}

pub fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Milliseconds since an instant of the machine's clock.
pub fn since_ms(then: Timestamp) -> u64 {
    u64::try_from(SystemClock.now().since(then).as_millis()).unwrap()
}

pub struct Stage {
    folder: TempFolder,
    listen: SocketAddr,
    postgres: Option<String>,
    pub http: reqwest::Client,
}

impl Stage {
    /// `None`, with a line that says so, where PostgreSQL was asked to be left out.
    pub async fn set(engine: Engine, pace_ms: u64) -> Option<Stage> {
        let postgres = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => {
                let server = tokio::task::spawn_blocking(TestPostgres::start_or_skip);
                let Some(server) = server.await.unwrap() else {
                    eprintln!("skipped: PostgreSQL because ADJUTANT_TEST_POSTGRES=skip");
                    return None;
                };
                Some(server.database().unwrap())
            }
        };
        let builder = model::http_client_builder(Duration::from_secs(2)).unwrap();
        let http = builder.timeout(Duration::from_secs(5)).build().unwrap();
        let stage = Stage { folder: TempFolder::new(), listen: free_address(), postgres, http };
        let model = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        stage.write_config(model.local_addr().unwrap());
        stage.play(10_000, pace_ms);
        let script = model::Script::parse(KILL_SCRIPT).unwrap();
        let mut config = model_server::Config::new(script, Arc::new(SystemClock));
        config.journal = Some(stage.journal());
        config.number_answers = true;
        tokio::spawn(model_server::serve(model, config));
        Some(stage)
    }

    /// Bounds as in production but for these: one item a run and no burst, so that the scripted
    /// model never reads an input twice; no poison, since here it is the killer who keeps killing;
    /// and a short window, so that it moves.
    fn write_config(&self, model: SocketAddr) {
        let program = env!("CARGO_BIN_EXE_adjutant");
        let database = self.postgres.as_ref().map_or(String::new(), |url| {
            format!("[database]\nurl = \"{url}\"\nnode = \"one\"\n\n")
        });
        let text = format!(
            "data_dir = \"data\"\nlisten = \"{}\"\nlog = \"info\"\n\n\
             {database}[owner]\nname = \"Ada\"\nzone = \"Asia/Hong_Kong\"\n\n\
             [model]\nbase_url = \"http://{model}/v1\"\nmodel = \"scripted-kill\"\n\
             context_tokens = 100000\nmax_output_tokens = 1000\n\n\
             [limits]\nitems_per_run = 1\nburst_ms = 1000000000000\npoison_attempts = 1000\n\
             window_tokens = 8000\n\n\
             [[mcp]]\nname = \"feed\"\ncommand = {program:?}\nargs = [\"fake\", \"price-feed\"]\n\
             manifest = \"feed.toml\"\n",
            self.listen
        );
        std::fs::write(self.path("adjutant.toml"), text).unwrap();
        std::fs::write(self.path("feed.toml"), testkit::price_feed::PRICE_MANIFEST).unwrap();
    }

    /// How long the clock jumps on, and how fast; holds from the next start on.
    pub fn play(&self, days: u64, pace_ms: u64) {
        let play = json!({"start": START, "days": days, "pace_ms": pace_ms});
        std::fs::write(self.path("play.json"), play.to_string()).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn journal(&self) -> PathBuf {
        self.path("asked.jsonl")
    }

    /// Grows with every question to the model.
    pub fn asked_bytes(&self) -> u64 {
        std::fs::metadata(self.journal()).map_or(0, |found| found.len())
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.listen)
    }

    pub fn token_file(&self) -> PathBuf {
        self.path("data/cli.token")
    }

    pub fn database(&self) -> store::Database {
        match &self.postgres {
            Some(url) => store::Database::Postgres(url.clone()),
            None => store::Database::Sqlite(self.path("data/adjutant.db")),
        }
    }

    /// The time of the program's clock. It must be down or in no hurry to jump.
    pub fn virtual_now(&self) -> Timestamp {
        let ahead: i64 = std::fs::read_to_string(self.path("clock")).unwrap().parse().unwrap();
        Timestamp::from_micros(SystemClock.now().micros() + ahead)
    }

    /// Moves the clock of a program that is down.
    pub fn set_virtual_now(&self, to: Timestamp) {
        let ahead = to.micros() - SystemClock.now().micros();
        std::fs::write(self.path("clock"), ahead.to_string()).unwrap();
    }

    /// The first midnight of the story's count of days that is two days off, and its number.
    pub fn end_soon(&self) -> (Timestamp, u64) {
        let start = Timestamp::parse(START).unwrap();
        let passed = self.virtual_now().since(start).as_secs() / (DAY_MS / 1_000);
        (start.plus_ms((passed + 3) * DAY_MS), passed + 3)
    }

    pub fn start(&self) -> Server {
        self.spawn(Command::new(env!("CARGO_BIN_EXE_adjutant")))
    }

    /// As [`Stage::start`], but a file that may not grow is an error to the program and not its
    /// end.
    pub fn start_with_file_limits(&self) -> Server {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_adjutant")]);
        self.spawn(shell)
    }

    fn spawn(&self, mut command: Command) -> Server {
        let log = File::options().create(true).append(true).open(self.path("log")).unwrap();
        command
            .arg("--config")
            .arg(self.path("adjutant.toml"))
            .args(["serve", "--stage"])
            .arg(self.folder.path())
            // A group of its own, so that an interrupt at the keyboard ends the test in order.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        Server { child: command.spawn().unwrap(), log: self.path("log") }
    }

    pub async fn health(&self) -> Option<Health> {
        let answer = self.http.get(self.url("/health")).send().await.ok()?;
        let body: Value = answer.error_for_status().ok()?.json().await.ok()?;
        let now = Timestamp::parse(body["now"].as_str()?).ok()?;
        Some(Health { seq: body["seq"].as_i64()?, now })
    }

    /// Waits until the program answers.
    pub async fn ready(&self, server: &mut Server) -> Health {
        for _ in 0..10_000 {
            if let Some(health) = self.health().await {
                return health;
            }
            server.must_run();
            tokio::time::sleep(millis(2)).await;
        }
        panic!("the program does not answer; its log ends: {}", server.log_end());
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Health {
    pub seq: i64,
    pub now: Timestamp,
}

/// A port below those that the system gives to outgoing connections: one of them must not take it
/// while the program is down. No two tests of one process get the same.
fn free_address() -> SocketAddr {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let first = 15_000 + std::process::id() % 10_000;
    let free = |_| {
        let port = first + COUNT.fetch_add(1, Ordering::Relaxed);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap()));
        TcpListener::bind(address).is_ok().then_some(address)
    };
    (0..1_000).find_map(free).unwrap()
}

/// A running program; killed when dropped.
pub struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// SIGKILL, and the wait until the system has taken everything back.
    pub fn kill(mut self) {
        self.must_run();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM; it must end in order.
    pub async fn stop(mut self) {
        kill_process(self.pid(), Signal::TERM).unwrap();
        let status = self.ended().await;
        assert!(status.success(), "{status}; the log ends: {}", self.log_end());
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        for _ in 0..2_000 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(millis(10)).await;
        }
        panic!("the program does not end; its log ends: {}", self.log_end());
    }

    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn must_run(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("the program ended by itself, {status}; its log ends: {}", self.log_end());
        }
    }

    pub fn log_end(&self) -> String {
        log_end(&self.log)
    }
}

fn log_end(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(30).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
