//! A real PostgreSQL for tests: started when needed, gone when the test process is gone.
//!
//! [`TestPostgres::start`] answers with the cluster of this test process, made at the first call.
//! A run of many test processes shares one by `ADJUTANT_TEST_POSTGRES`, which the program
//! `test-postgres COMMAND` sets; `./test` uses it. The value `skip` says that there is to be none.
//!
//! The cluster lives in a temporary folder and does not wait for the disk: what is killed in tests is the
//! program, not the server. It listens on a free loopback port and lets nobody in without its random password.
//! A small watcher process stops it and removes the folder as soon as the test process ends, however it ends.

use std::fs;
use std::io::{self, Read};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use postgres::{Client, NoTls};

/// Names the server to use instead of starting one: a URL of a superuser, or `skip`.
pub const URL_VARIABLE: &str = "ADJUTANT_TEST_POSTGRES";

/// Another program may take the free port between our look and the server's start.
const START_TRIES_MAX: u32 = 5;
const START_SECONDS_MAX: u32 = 60;
const ROOT: u32 = 0;
/// To be raised when a template is made in another way, so that older ones are not used.
const TEMPLATE: u32 = 1;

/// Why there is no PostgreSQL to test with; the text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The variable says so.
    #[error("{URL_VARIABLE}=skip asks to leave PostgreSQL out; unset it to test with one")]
    Skipped,
    /// No server program on this machine.
    #[error(
        "PostgreSQL's initdb and pg_ctl were not found; install the package postgresql, \
         or set {URL_VARIABLE} to the URL of a server, or to skip"
    )]
    NotInstalled,
    /// A step failed.
    #[error("PostgreSQL for tests: {step} failed: {cause}; set {URL_VARIABLE}=skip to go without")]
    Failed {
        /// What was tried.
        step: &'static str,
        /// What the system or the server said.
        cause: String,
    },
}

/// A handle on a running server; clones share it, and the last of them stops it.
#[derive(Debug, Clone)]
pub struct TestPostgres {
    /// Up to and with the port: `postgres://user:password@host:port`.
    address: String,
    /// Database to connect to when making others.
    maintenance: String,
    cluster: Option<Arc<Cluster>>,
}

impl TestPostgres {
    /// The server of this test process, or the one that [`URL_VARIABLE`] names.
    pub fn start() -> Result<Self, Unavailable> {
        static SHARED: OnceLock<Result<TestPostgres, Unavailable>> = OnceLock::new();
        let from_variable = || match std::env::var(URL_VARIABLE) {
            Ok(value) if value == "skip" => Err(Unavailable::Skipped),
            Ok(url) => Self::existing(&url),
            Err(_) => Self::start_own(),
        };
        SHARED.get_or_init(from_variable).clone()
    }

    /// As [`Self::start`], for tests to go without only where that was asked for: `None` under
    /// `ADJUTANT_TEST_POSTGRES=skip`.
    ///
    /// # Panics
    /// If there is no server for any other reason, since a test that quietly tests nothing is worse.
    pub fn start_or_skip() -> Option<Self> {
        match Self::start() {
            Ok(server) => Some(server),
            Err(Unavailable::Skipped) => None,
            Err(reason @ (Unavailable::NotInstalled | Unavailable::Failed { .. })) => {
                panic!("{reason}")
            }
        }
    }

    /// A server for one test alone, for a test that stops it or breaks it.
    pub fn start_own() -> Result<Self, Unavailable> {
        let cluster = Cluster::start()?;
        Ok(TestPostgres {
            address: format!("postgres://postgres:{}@127.0.0.1:{}", cluster.password, cluster.port),
            maintenance: "postgres".to_owned(),
            cluster: Some(Arc::new(cluster)),
        })
    }

    /// A server that someone else runs, by the URL of a user who may create databases.
    pub fn existing(url: &str) -> Result<Self, Unavailable> {
        match url.rsplit_once('/') {
            Some((address, name)) if address.contains("://") && !name.is_empty() => {
                Ok(TestPostgres {
                    address: address.to_owned(),
                    maintenance: name.to_owned(),
                    cluster: None,
                })
            }
            Some(_) | None => Err(Unavailable::Failed {
                step: "reading the URL",
                cause: "it must read postgres://user:password@host:port/database".to_owned(),
            }),
        }
    }

    /// The URL of the database that was there first; it holds no tables.
    pub fn url(&self) -> String {
        format!("{}/{}", self.address, self.maintenance)
    }

    /// Makes an empty database that no other test has, and answers with its URL. May be called from
    /// async code: the connection is made and closed on a thread of its own.
    pub fn database(&self) -> Result<String, Unavailable> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{count}_{}", std::process::id(), random_hex(4)?);
        let statement = format!("CREATE DATABASE {name}");
        let url = self.url();
        let made =
            std::thread::spawn(move || Client::connect(&url, NoTls)?.batch_execute(&statement));
        match made.join() {
            Ok(Ok(())) => Ok(format!("{}/{name}", self.address)),
            Ok(Err(error)) => Err(failed("making a database")(error)),
            Err(_) => Err(failed("making a database")("its thread panicked")),
        }
    }

    /// The folder of a server that was started here; `None` for somebody else's.
    pub fn folder(&self) -> Option<&Path> {
        self.cluster.as_ref().map(|cluster| cluster.folder.as_path())
    }
}

/// A server process and its folder, both gone when this is dropped or the process ends.
#[derive(Debug)]
struct Cluster {
    folder: PathBuf,
    port: u16,
    password: String,
    watcher: Child,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The watcher acts when its standard input closes, and ends when everything is gone.
        drop(self.watcher.stdin.take());
        // A drop can tell nobody; the next start removes what is left.
        drop(self.watcher.wait());
    }
}

impl Cluster {
    fn start() -> Result<Self, Unavailable> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let programs = programs().ok_or(Unavailable::NotInstalled)?;
        let runner = Runner::find(programs)?;
        let home = home(&runner)?;
        remove_stale(&home);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = home.join(format!("run-{}-{count}", std::process::id()));
        let template = template(&runner, &home)?;
        copy(&template, &folder)?;
        let password =
            fs::read_to_string(folder.join("password")).map_err(failed("its password"))?;
        // From here on the folder is the watcher's to remove, also when the start fails.
        let mut cluster = Cluster { watcher: watch(&folder)?, folder, port: 0, password };
        cluster.port = runner.start_server(&cluster.folder)?;
        Ok(cluster)
    }
}

/// Runs PostgreSQL's programs as a user who may: the server refuses to run as root.
struct Runner {
    programs: PathBuf,
    /// User and group to run as, where that is not the current one.
    other: Option<(u32, u32)>,
}

impl Runner {
    fn find(programs: PathBuf) -> Result<Self, Unavailable> {
        let mine = fs::metadata("/proc/self").map_err(failed("asking who we are"))?.uid();
        if mine != ROOT {
            return Ok(Runner { programs, other: None });
        }
        let users = fs::read_to_string("/etc/passwd").map_err(failed("reading the user list"))?;
        let other = ["postgres", "nobody"].iter().find_map(|name| user_ids(&users, name));
        match other {
            Some(ids) => Ok(Runner { programs, other: Some(ids) }),
            None => Err(failed("finding a user")("root may not run it, and there is no postgres")),
        }
    }

    fn run(
        &self,
        step: &'static str,
        program: &str,
        arguments: &[&str],
    ) -> Result<(), Unavailable> {
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).current_dir("/").stdin(Stdio::null());
        if let Some((user, group)) = self.other {
            command.uid(user).gid(group);
        }
        // The server inherits these, and a test runner would wait for a pipe that never closes.
        let out = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        match out.map_err(failed(step))? {
            status if status.success() => Ok(()),
            status => Err(failed(step)(status)),
        }
    }

    fn own(&self, path: &Path) -> Result<(), Unavailable> {
        match self.other {
            Some((user, group)) => {
                chown(path, Some(user), Some(group)).map_err(failed("handing a file over"))
            }
            None => Ok(()),
        }
    }

    /// Starts the server on a free port and waits until it answers.
    fn start_server(&self, folder: &Path) -> Result<u16, Unavailable> {
        let data = text(&folder.join("data"))?;
        let log = text(&folder.join("log"))?;
        let seconds = START_SECONDS_MAX.to_string();
        let mut last = failed("starting")("no try was made");
        for _ in 0..START_TRIES_MAX {
            let port = free_port().map_err(failed("finding a free port"))?;
            let options = format!("-p {port} -k {data}");
            let arguments =
                ["-D", &data, "-l", &log, "-w", "-t", &seconds, "-s", "-o", &options, "start"];
            match self.run("starting", "pg_ctl", &arguments) {
                Ok(()) => return Ok(port),
                Err(error) => last = error,
            }
        }
        let said = fs::read_to_string(&log).unwrap_or_default();
        Err(failed("starting")(format!("{last}; its log ends: {}", tail(&said))))
    }
}

/// The folder that holds PostgreSQL's programs: the newest of Debian's, else one in `PATH`.
fn programs() -> Option<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    versions.sort();
    let debian = versions.into_iter().rev().map(|(_, path)| path.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    debian
        .chain(std::env::split_paths(&path))
        .find(|folder| folder.join("initdb").exists() && folder.join("pg_ctl").exists())
}

/// The parent of all test clusters of this user. Others may pass through it but not list it.
fn home(runner: &Runner) -> Result<PathBuf, Unavailable> {
    let mine = fs::metadata("/proc/self").map_err(failed("asking who we are"))?.uid();
    let home = std::env::temp_dir().join(format!("adjutant-postgres-{mine}"));
    match fs::create_dir(&home) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed("making its folder")(error)),
    }
    let found = fs::symlink_metadata(&home).map_err(failed("making its folder"))?;
    if found.uid() != mine || !found.is_dir() {
        let cause = format!("{} belongs to somebody else; remove it", home.display());
        return Err(failed("making its folder")(cause));
    }
    let mode = if runner.other.is_some() { 0o711 } else { 0o700 };
    fs::set_permissions(&home, fs::Permissions::from_mode(mode))
        .map_err(failed("making its folder"))?;
    Ok(home)
}

/// A finished cluster to copy from: `initdb` takes a second or two, a copy a tenth of that.
fn template(runner: &Runner, home: &Path) -> Result<PathBuf, Unavailable> {
    let version = runner.programs.to_string_lossy().replace('/', "-");
    let ready = home.join(format!("template-{TEMPLATE}{version}"));
    if ready.exists() {
        return Ok(ready);
    }
    let making = home.join(format!("making-{}-{}", std::process::id(), random_hex(4)?));
    fs::create_dir(&making).map_err(failed("making a template"))?;
    let password_file = making.join("password");
    fs::write(&password_file, random_hex(16)?).map_err(failed("making a template"))?;
    fs::set_permissions(&password_file, fs::Permissions::from_mode(0o600))
        .map_err(failed("making a template"))?;
    runner.own(&password_file)?;
    runner.own(&making)?;
    let (data, password) = (text(&making.join("data"))?, text(&password_file)?);
    let arguments = [
        "-D",
        &data,
        "-U",
        "postgres",
        "--pwfile",
        &password,
        "--auth=password",
        "--locale=C",
        "--encoding=UTF8",
        "--no-sync",
        "--no-instructions",
    ];
    runner.run("initdb", "initdb", &arguments)?;
    // No test takes the machine's power away: what the killed processes wrote is with the system.
    let settings = "\nlisten_addresses = '127.0.0.1'\nmax_connections = 200\n\
        shared_buffers = 32MB\nfsync = off\nsynchronous_commit = on\nmax_wal_size = 256MB\n";
    let file = making.join("data/postgresql.conf");
    let mut configuration = fs::read_to_string(&file).map_err(failed("configuring"))?;
    configuration.push_str(settings);
    fs::write(&file, configuration).map_err(failed("configuring"))?;
    match fs::rename(&making, &ready) {
        Ok(()) => Ok(ready),
        // Another process was quicker; its template is as good.
        Err(_) if ready.exists() => {
            drop(fs::remove_dir_all(&making));
            Ok(ready)
        }
        Err(error) => Err(failed("making a template")(error)),
    }
}

/// Copies a whole folder with owners and modes.
fn copy(from: &Path, to: &Path) -> Result<(), Unavailable> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).stdin(Stdio::null()).status();
    match status.map_err(failed("copying the template"))? {
        status if status.success() => Ok(()),
        status => Err(failed("copying the template")(status)),
    }
}

/// Starts the process that cleans up after us. It waits for its standard input to close, which a
/// crash of ours cannot prevent, stops the server at once and removes the folder. It is in a
/// process group of its own, so that an interrupt at the keyboard does not end it.
fn watch(folder: &Path) -> Result<Child, Unavailable> {
    const SCRIPT: &str = r#"
        cat >/dev/null
        server=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
        if [ -n "$server" ]; then
            kill -QUIT "$server" 2>/dev/null
            tries=0
            while kill -0 "$server" 2>/dev/null && [ $tries -lt 100 ]; do
                sleep 0.05; tries=$((tries + 1))
            done
            kill -KILL "$server" 2>/dev/null
        fi
        rm -rf "$1"
    "#;
    Command::new("sh")
        .args(["-c", SCRIPT, "watcher"])
        .arg(folder)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed("starting its watcher"))
}

/// Removes what processes left that were killed together with their watcher.
fn remove_stale(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut parts = name.split('-');
        let ours = matches!(parts.next(), Some("run" | "making"));
        let process = parts.next().filter(|_| ours).and_then(|part| part.parse::<u32>().ok());
        let Some(process) = process else { continue };
        if !Path::new(&format!("/proc/{process}")).exists()
            && let Ok(mut watcher) = watch(&entry.path())
        {
            drop(watcher.stdin.take());
            // It reports to nobody; a folder that stays is tried again at the next start.
            drop(watcher.wait());
        }
    }
}

fn user_ids(users: &str, name: &str) -> Option<(u32, u32)> {
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn random_hex(bytes: usize) -> Result<String, Unavailable> {
    let mut buffer = vec![0; bytes];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut buffer))
        .map_err(failed("drawing a random name"))?;
    Ok(buffer.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn text(path: &Path) -> Result<String, Unavailable> {
    match path.to_str() {
        Some(text) if !text.contains(char::is_whitespace) => Ok(text.to_owned()),
        Some(_) | None => Err(failed("its folder")("set TMPDIR to a path without blanks")),
    }
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}

fn failed<E: std::fmt::Display>(step: &'static str) -> impl Fn(E) -> Unavailable {
    move |error| Unavailable::Failed { step, cause: error.to_string() }
}
