//! What the house rules say and a machine can check: which crate may know which, how large things
//! may grow, where SQL lives, what may be depended on, and what may not be in the tree.
//!
//! Every rule is a function from plain values to a list of findings, so that each has a test on the
//! project and a test on a bad sample that it must find.

#![expect(clippy::expect_used, reason = "test helpers fail by panicking")]
#![expect(clippy::print_stdout, reason = "what is large is listed, also when it is not too large")]

mod dependencies;
mod docs;
mod licences;
mod size;
mod tree;
mod words;

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file that belongs to the project, by its path from the root.
pub struct SourceFile {
    /// From the root, with `/` between the folders.
    pub path: String,
    /// All of it.
    pub text: String,
}

impl SourceFile {
    /// A sample for the tests of the rules.
    pub fn sample(path: &str, text: &str) -> Self {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }
}

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root folder")
}

/// The output of a program run at the root, which must succeed.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(root()).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?} failed: {said}");
    String::from_utf8(output.stdout).expect("text")
}

/// Paths of all files that are in version control or would be added to it.
pub fn paths() -> Vec<String> {
    let listed =
        run("git", &["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"]);
    listed.lines().map(str::to_owned).filter(|path| root().join(path).is_file()).collect()
}

/// All files of the project that are text.
pub fn files() -> Vec<SourceFile> {
    let read = |path: String| {
        let text = std::fs::read_to_string(root().join(&path)).ok()?;
        Some(SourceFile { path, text })
    };
    paths().into_iter().filter_map(read).collect()
}

/// What a cargo command tells as JSON.
pub fn cargo_json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&run(env!("CARGO"), arguments)).expect("JSON from cargo")
}

/// The platform that the compiler builds for, as cargo's filters want it.
pub fn host() -> String {
    let version = run("rustc", &["-vV"]);
    version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host line").to_owned()
}

/// Fails with all findings at once.
pub fn assert_none(findings: &[String], remedy: &str) {
    assert!(findings.is_empty(), "{}\n{remedy}", findings.join("\n"));
}
