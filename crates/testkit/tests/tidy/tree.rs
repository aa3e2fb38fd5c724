//! What may not be in the tree: SQL outside the store, sources of others, and names that hold on
//! one machine only.

use crate::{SourceFile, assert_none, files, paths};

/// How statements begin. One line of code that holds one of these groups is SQL.
const SQL: &[&[&str]] = &[
    &["SELECT ", " FROM "],
    &["\"SELECT "],
    &["INSERT INTO "],
    &["DELETE FROM "],
    &["CREATE TABLE "],
    &["UPDATE ", " SET "],
];

fn sql_outside_store(file: &SourceFile) -> Vec<String> {
    let inside = file.path.starts_with("crates/store/");
    let source = file.path.starts_with("crates/") && file.path.contains("/src/");
    if inside || !source || !file.path.ends_with(".rs") {
        return Vec::new();
    }
    let code = |line: &str| !line.trim_start().starts_with("//");
    let is_sql = |line: &str| SQL.iter().any(|words| words.iter().all(|word| line.contains(word)));
    find(file, |line| code(line) && is_sql(line))
}

/// Paths that say somebody else's source was copied in.
fn vendored(path: &str) -> bool {
    let folders = ["node_modules", "vendor", "third_party", "third-party", "site-packages"];
    let copies = [".min.js", ".min.css", ".whl", ".crate", ".gguf", ".so", ".wasm"];
    path.split('/').any(|part| folders.contains(&part))
        || copies.iter().any(|ending| path.ends_with(ending))
}

/// Where packages come from is a setting of each machine. The names are put together here, so that
/// this file does not hold them.
fn package_hosts(file: &SourceFile) -> Vec<String> {
    let join = |parts: &[&str]| parts.join(".");
    let names = [
        join(&["registry", "npmjs"]),
        join(&["registry", "yarnpkg"]),
        join(&["pypi", "org"]),
        join(&["pythonhosted", "org"]),
        join(&["static", "crates", "io"]),
        join(&["index", "crates", "io"]),
        join(&["deb", "debian", "org"]),
        ["--index", "url"].join("-"),
        ["--extra-index", "url"].join("-"),
        ["replace", "with ="].join("-"),
    ];
    let setting = |line: &str| file.path.ends_with(".npmrc") && line.starts_with("registry");
    find(file, |line| setting(line) || names.iter().any(|name| line.contains(name)))
}

/// Lock files pin versions and checksums, not places.
fn places_in_locks(file: &SourceFile) -> Vec<String> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    match name {
        "package-lock.json" => find(file, |line| {
            let line = line.trim_start();
            line.starts_with("\"resolved\"") && line.contains("://")
        }),
        // The name by which cargo knows its own registry, and no other.
        "Cargo.lock" => find(file, |line| {
            line.starts_with("source = ") && !line.ends_with("rust-lang/crates.io-index\"")
        }),
        _ => Vec::new(),
    }
}

/// Folders of one person's machine.
fn machine_paths(file: &SourceFile) -> Vec<String> {
    let folders = ["work", "root"].map(|name| format!("/{name}/"));
    let starts = |line: &str, at: usize| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~}/*".contains(c))
    };
    find(file, |line| {
        let mut hits = folders.iter().flat_map(|folder| line.match_indices(folder.as_str()));
        hits.any(|(at, _)| starts(line, at))
    })
}

fn find(file: &SourceFile, wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = file.text.lines().enumerate().filter(|(_, line)| wrong(line));
    lines
        .map(|(number, line)| {
            let line: String = line.trim().chars().take(100).collect();
            format!("{}:{}: {line}", file.path, number + 1)
        })
        .collect()
}

/// Checks one rule on all files, and that it finds each of the bad lines and none of the good.
fn check(
    rule: impl Fn(&SourceFile) -> Vec<String>,
    path: &str,
    bad: &[&str],
    good: &[&str],
    remedy: &str,
) {
    for line in bad {
        assert_eq!(rule(&SourceFile::sample(path, line)).len(), 1, "not found: {line}");
    }
    for line in good {
        assert_eq!(rule(&SourceFile::sample(path, line)), [""; 0], "wrongly found: {line}");
    }
    let findings: Vec<String> = files().iter().flat_map(rule).collect();
    assert_none(&findings, remedy);
}

#[test]
fn sql_lives_in_the_store_alone() {
    let bad = [
        "let text = \"SELECT 1\";",
        "  SELECT id FROM event",
        "x(\"INSERT INTO event VALUES (1)\")",
        "\"UPDATE event SET state = 1\"",
        "\"DELETE FROM event\"",
        "\"CREATE TABLE event (id)\"",
    ];
    let good = ["// SELECT x FROM y", "UPDATE the grant", "let SELECT = 1;"];
    let remedy = "Move the statement into crates/store, beside its noun.";
    check(sql_outside_store, "crates/engine/src/x.rs", &bad, &good, remedy);
    let inside = SourceFile::sample("crates/store/src/x.rs", bad[0]);
    assert_eq!(sql_outside_store(&inside), [""; 0]);
}

#[test]
fn no_source_of_others_is_committed() {
    let bad = ["page/node_modules/a/index.js", "vendor/a.rs", "assets/chart.min.js", "m.gguf"];
    assert_eq!(bad.map(vendored), [true; 4]);
    assert!(!vendored("crates/web/page/src/vendor_list.ts"));
    let findings: Vec<String> = paths().into_iter().filter(|path| vendored(path)).collect();
    assert_none(&findings, "Depend on the package and pin it in a lock file.");
}

#[test]
fn no_place_where_packages_come_from_is_named() {
    let bad =
        [["https://registry", "npmjs.org/x"].join("."), ["pip install --index", "url x"].join("-")];
    let bad = bad.each_ref().map(String::as_str);
    let remedy = "Use packages by name; the machine says where they come from.";
    check(package_hosts, "x.sh", &bad, &["npm ci", "cargo add serde"], remedy);
    let setting = SourceFile::sample("page/.npmrc", "registry=x");
    assert_eq!(package_hosts(&setting).len(), 1);
}

#[test]
fn lock_files_name_no_places() {
    let remedy = "npm: omit-lockfile-registry-resolved=true in .npmrc; cargo: only crates.io.";
    let bad = ["  \"resolved\": \"https://host/a.tgz\","];
    let good = ["  \"resolved\": \"packages/a\",", "  \"integrity\": \"sha512-x\","];
    check(places_in_locks, "page/package-lock.json", &bad, &good, remedy);
    let git = SourceFile::sample("Cargo.lock", "source = \"git+https://host/a\"");
    assert_eq!(places_in_locks(&git).len(), 1);
}

#[test]
fn no_path_of_one_machine_is_named() {
    let bad = ["work/main", "root/.config"].map(|path| format!("see /{path}"));
    let bad = bad.each_ref().map(String::as_str);
    let good = ["docs/work/x", "$HOME/x", "https://host/root/x"];
    check(machine_paths, "notes.md", &bad, &good, "Name it from the root of the project.");
}

/// Why a planted bug does not apply to a tree any more, in git's words.
fn stale(patch: &str) -> Option<String> {
    let mut git = std::process::Command::new("git");
    let said = git.args(["apply", "--check", patch]).current_dir(crate::root()).output();
    let said = said.expect("git");
    (!said.status.success()).then(|| String::from_utf8_lossy(&said.stderr).trim().to_owned())
}

/// A plant that no longer applies proves nothing when the suite is asked to catch it.
#[test]
fn every_planted_bug_still_applies() {
    let plants: Vec<String> = paths().into_iter().filter(|path| path.ends_with(".patch")).collect();
    assert!(plants.len() >= 38, "{} plants", plants.len());
    let findings: Vec<String> = plants.iter().filter_map(|plant| stale(plant)).collect();
    assert_none(&findings, "Write the patch anew against the code as it is now.");
    assert!(stale("README.md").is_some(), "what is no patch applies nowhere");
}
