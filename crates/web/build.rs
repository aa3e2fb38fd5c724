//! Builds the web page and writes the list of its files for `src/page.rs`.
//!
//! Runs `npm ci` and `npm run build` on a copy in Cargo's output folder, and only when the page's
//! sources changed: the source tree is never written to. Without a fitting Node, or without the
//! packages, the binary is built without the page and says so. An error in the page's own source
//! fails the build. `ADJUTANT_SKIP_PAGE=1` leaves the page out.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

/// What the page is made of, relative to `page/`.
const SOURCES: [&str; 8] = [
    "src",
    "public",
    "index.html",
    "package.json",
    "package-lock.json",
    "vite.config.js",
    "tsconfig.json",
    ".npmrc",
];
const PACKAGES_WAIT_S: u32 = 300;
const BUILD_WAIT_S: u32 = 120;
const POLLS_PER_S: u32 = 20;
/// The oldest Node that the page's build tool runs on.
const NODE_OLDEST: (u32, u32) = (20, 19);

/// Why there is no page in this build.
enum Absent {
    /// Not an error: the binary is built without the page. The text names the reason and remedy.
    Left(String),
    /// The page's own source does not build.
    Broken(String),
}

impl From<io::Error> for Absent {
    fn from(error: io::Error) -> Self {
        Absent::Broken(format!("the page's files cannot be copied: {error}"))
    }
}

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed=ADJUTANT_SKIP_PAGE");
    for source in SOURCES {
        println!("cargo::rerun-if-changed=page/{source}");
    }
    let (Some(root), Some(out)) = (env::var_os("CARGO_MANIFEST_DIR"), env::var_os("OUT_DIR"))
    else {
        println!("cargo::error=run this through cargo build");
        return ExitCode::FAILURE;
    };
    let out = PathBuf::from(out);
    let built = build(&PathBuf::from(root).join("page"), &out.join("page"));
    let listed = match built {
        Ok(dist) => list(&dist),
        Err(Absent::Left(reason)) => {
            println!("cargo::warning=built without the web page: {reason}");
            Ok(listing(false, &[]))
        }
        Err(Absent::Broken(reason)) => {
            println!("cargo::error=the web page does not build: {reason}");
            return ExitCode::FAILURE;
        }
    };
    match listed.and_then(|text| fs::write(out.join("page_assets.rs"), text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error=the list of the page's files cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the page in `work` and returns the folder with the finished files.
fn build(page: &Path, work: &Path) -> Result<PathBuf, Absent> {
    if env::var_os("ADJUTANT_SKIP_PAGE").is_some_and(|value| value != "0" && !value.is_empty()) {
        return Err(Absent::Left("ADJUTANT_SKIP_PAGE is set".to_owned()));
    }
    node_fits()?;
    fs::create_dir_all(work)?;
    for source in SOURCES {
        replace(&page.join(source), &work.join(source))?;
    }
    install(work)?;
    let dist = work.join("dist");
    remove(&dist)?;
    let mut command = npm(work);
    command.args(["run", "--silent", "build", "--", "--logLevel", "error"]);
    run(command, &work.join("build.log"), BUILD_WAIT_S).map_err(Absent::Broken)?;
    Ok(dist)
}

fn node_fits() -> Result<(), Absent> {
    let remedy = "install Node 20.19 or newer with npm, then build again";
    let output = Command::new("node").arg("--version").stdin(Stdio::null()).output();
    let version = match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(_) => return Err(Absent::Left(format!("node was not found; {remedy}"))),
    };
    let mut numbers = version.trim_start_matches('v').split('.').map(|part| part.parse().ok());
    let found = (numbers.next().flatten().unwrap_or(0), numbers.next().flatten().unwrap_or(0));
    if found < NODE_OLDEST {
        return Err(Absent::Left(format!("node {version} is too old; {remedy}")));
    }
    match npm(Path::new(".")).arg("--version").stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(_) | Err(_) => Err(Absent::Left(format!("npm was not found; {remedy}"))),
    }
}

/// Installs the pinned packages, unless the last complete installation was of the same lock file.
fn install(work: &Path) -> Result<(), Absent> {
    let lock = fs::read(work.join("package-lock.json"))?;
    let stamp = work.join("installed-lock.json");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    remove(&stamp)?;
    let mut command = npm(work);
    command.args(["ci", "--omit=dev", "--ignore-scripts", "--loglevel=error"]);
    run(command, &work.join("install.log"), PACKAGES_WAIT_S).map_err(|reason| {
        // EUSAGE means that the lock file does not fit package.json: no connection will help.
        if reason.contains("EUSAGE") {
            return Absent::Broken(format!("run npm install in crates/web/page: {reason}"));
        }
        Absent::Left(format!("npm ci failed; check the connection and build again: {reason}"))
    })?;
    fs::write(stamp, lock)?;
    Ok(())
}

fn npm(work: &Path) -> Command {
    let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    command.current_dir(work);
    command
}

/// Runs quietly with all output in `log`; the error text is the start of that file.
fn run(mut command: Command, log: &Path, wait_s: u32) -> Result<(), String> {
    let file = File::create(log).and_then(|out| Ok((out.try_clone()?, out)));
    let (out, err) = file.map_err(|error| error.to_string())?;
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    for _ in 0..wait_s * POLLS_PER_S {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(_) => return Err(first_words(log)),
            None => thread::sleep(Duration::from_millis(1000 / u64::from(POLLS_PER_S))),
        }
    }
    // Best effort: the child may have ended in this moment, and then there is nothing to kill.
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("no result after {wait_s} s"))
}

/// The first lines of a log on one line, for a message of cargo: npm and Vite name the cause first.
fn first_words(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.take(8).collect::<Vec<_>>().join(" | ")
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Copies a file or folder so that nothing of an earlier copy is left.
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    remove(to)?;
    if !from.is_dir() {
        // Read and written rather than copied: a read-only source must not make a read-only copy.
        return fs::write(to, fs::read(from)?);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        replace(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Every file under `dist`, with its path in the page.
fn list(dist: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    let mut folders = vec![dist.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let inside = path.strip_prefix(dist).map_err(io::Error::other)?;
            let name = format!("/{}", inside.to_string_lossy().replace('\\', "/"));
            files.push((name, path.to_string_lossy().into_owned()));
        }
    }
    files.sort();
    Ok(listing(true, &files))
}

fn listing(available: bool, files: &[(String, String)]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "const BUILT: bool = {available};");
    let _ = writeln!(text, "static FILES: &[(&str, &[u8])] = &[");
    for (name, path) in files {
        let _ = writeln!(text, "    ({name:?}, include_bytes!({path:?})),");
    }
    let _ = writeln!(text, "];");
    text
}
