//! Dependencies point one way (DESIGN section 3), and the default build stays small.

use std::collections::{BTreeMap, BTreeSet};

use crate::{assert_none, cargo_json, host, root, run};

/// What each crate may name under `[dependencies]`. Tests may use anything.
const ALLOWED: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("domain", &["base"]),
    ("store", &["base", "domain"]),
    ("model", &["base"]),
    ("agent", &["base", "domain", "model"]),
    ("computer", &["base"]),
    ("connect", &["base", "domain", "store"]),
    ("engine", &["base", "domain", "store", "model", "agent", "computer", "connect"]),
    ("web", &["base", "domain", "store", "model", "agent", "computer", "connect", "engine"]),
    (
        "testkit",
        &["base", "domain", "store", "model", "agent", "computer", "connect", "engine", "web"],
    ),
    (
        "sim",
        &["base", "domain", "store", "model", "agent", "computer", "connect", "engine", "testkit"],
    ),
    (
        "server",
        &[
            "base", "domain", "store", "model", "agent", "computer", "connect", "engine", "web",
            "testkit", "sim",
        ],
    ),
];

/// Crates of the default build, ours included (STYLE: a dependency is a decision).
const CRATES_MAX: usize = 330;

/// Never linked twice, or at all: (name, versions allowed, reason).
const LIMITED: &[(&str, usize, &str)] = &[
    ("libsqlite3-sys", 1, "two SQLite libraries in one process break its file locks"),
    ("openssl-sys", 0, "TLS is rustls"),
    ("native-tls", 0, "TLS is rustls"),
];

type Dependencies = BTreeMap<String, BTreeSet<String>>;

/// The normal dependencies of each of our crates on others of ours.
fn ours(metadata: &serde_json::Value) -> Dependencies {
    let packages = metadata["packages"].as_array().expect("packages");
    let mut found = Dependencies::new();
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        let uses = found.entry(name.to_owned()).or_default();
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            if dependency["kind"].is_null() && dependency["path"].is_string() {
                uses.insert(dependency["name"].as_str().expect("a name").to_owned());
            }
        }
    }
    found
}

fn wrong_directions(found: &Dependencies) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, uses) in found {
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| known == name) else {
            findings.push(format!("{name} is a crate without a line in ALLOWED"));
            continue;
        };
        let wrong = uses.iter().filter(|used| !allowed.contains(&used.as_str()));
        findings.extend(wrong.map(|used| format!("{name} may not depend on {used}")));
    }
    findings
}

/// The distinct `name version` pairs of a `cargo tree --prefix none`.
fn crates(tree: &str) -> BTreeSet<String> {
    let pair = |line: &str| {
        let mut words = line.split(' ');
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    tree.lines().filter_map(pair).collect()
}

fn over_budget(crates: &BTreeSet<String>, most: usize) -> Vec<String> {
    if crates.len() <= most {
        return Vec::new();
    }
    vec![format!("the default build has {} crates, the budget is {most}", crates.len())]
}

/// The versions of each limited crate in a lock file.
fn over_limit(lock: &str) -> Vec<String> {
    let count = |name: &str| {
        let line = format!("name = \"{name}\"");
        lock.lines().filter(|found| **found == *line).count()
    };
    LIMITED
        .iter()
        .filter(|(name, most, _)| count(name) > *most)
        .map(|(name, most, why)| format!("{} of {name}, at most {most}: {why}", count(name)))
        .collect()
}

/// Dependencies that take every feature there is.
fn all_features(path: &str, manifest: &str) -> Vec<String> {
    let full = |line: &&str| line.contains("features") && line.contains("\"full\"");
    manifest.lines().filter(full).map(|line| format!("{path}: {line}")).collect()
}

#[test]
fn dependencies_point_one_way() {
    let metadata = cargo_json(&["metadata", "--format-version=1", "--no-deps", "--locked"]);
    assert_none(&wrong_directions(&ours(&metadata)), "The directions are in ARCHITECTURE.md.");
}

#[test]
fn a_wrong_direction_is_found() {
    let metadata = serde_json::json!({"packages": [
        {"name": "agent", "dependencies": [
            {"name": "store", "kind": null, "path": "x"},
            {"name": "model", "kind": null, "path": "x"},
            {"name": "testkit", "kind": "dev", "path": "x"},
            {"name": "serde", "kind": null, "path": null}]},
        {"name": "web", "dependencies": [{"name": "testkit", "kind": null, "path": "x"}]},
        {"name": "helpers", "dependencies": []}]});
    assert_eq!(
        wrong_directions(&ours(&metadata)),
        [
            "agent may not depend on store",
            "helpers is a crate without a line in ALLOWED",
            "web may not depend on testkit"
        ]
    );
}

#[test]
fn the_default_build_is_within_its_crate_budget() {
    let arguments = ["tree", "-p", "server", "-e", "normal,build", "--prefix", "none", "--locked"];
    let host = host();
    let tree = run(env!("CARGO"), &[&arguments[..], &["--target", &host]].concat());
    let crates = crates(&tree);
    println!("{} crates in the default build, budget {CRATES_MAX}", crates.len());
    assert!(crates.len() > 20, "the list of crates was not read: {tree}");
    assert_none(&over_budget(&crates, CRATES_MAX), "See what came in: cargo tree -p server -d");
}

#[test]
fn a_build_over_budget_is_found() {
    let tree = "serde v1.0.1\nserde v1.0.1 (*)\nserde_derive v1.0.1 (proc-macro)\nserde v2.0.0";
    assert_eq!(crates(tree).len(), 3);
    assert_eq!(over_budget(&crates(tree), 3), [""; 0]);
    assert_eq!(over_budget(&crates(tree), 2), ["the default build has 3 crates, the budget is 2"]);
}

#[test]
fn nothing_is_linked_that_must_not_be() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock");
    assert_none(&over_limit(&lock), "See who brings it: cargo tree -i NAME");
}

#[test]
fn a_second_sqlite_is_found() {
    let lock = "name = \"libsqlite3-sys\"\nname = \"libsqlite3-sys\"\nname = \"openssl-sys\"\n";
    assert_eq!(
        over_limit(lock),
        [
            "2 of libsqlite3-sys, at most 1: two SQLite libraries in one process break its file \
             locks",
            "1 of openssl-sys, at most 0: TLS is rustls"
        ]
    );
}

#[test]
fn features_are_chosen_one_by_one() {
    let manifests = crate::files().into_iter().filter(|file| file.path.ends_with("Cargo.toml"));
    let findings: Vec<String> =
        manifests.flat_map(|file| all_features(&file.path, &file.text)).collect();
    assert_none(&findings, "Name the features that are used.");
}

#[test]
fn a_dependency_with_every_feature_is_found() {
    let manifest = "tokio = { version = \"1\", features = [\"full\"] }\n[features]\nfull = []";
    assert_eq!(all_features("x", manifest).len(), 1);
}
