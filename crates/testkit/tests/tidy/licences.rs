//! Every dependency that ships has a licence from the list in `deny.toml`.

use crate::{assert_none, cargo_json, host, root};

/// The licences that `deny.toml` allows, so that there is one list.
fn allowed(deny: &str) -> Vec<String> {
    let licences = deny.split("[licenses]").nth(1).expect("deny.toml has [licenses]");
    let list = licences.split("allow = [").nth(1).expect("an allow list");
    let list = list.split(']').next().expect("its end");
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether an SPDX expression can be met with allowed licences alone. `/` is an old way to say OR.
fn acceptable(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut position = 0;
    let met = any(&words, &mut position, allowed);
    met && position == words.len()
}

/// `all (OR all)*`
fn any(words: &[&str], position: &mut usize, allowed: &[String]) -> bool {
    let mut met = all(words, position, allowed);
    while words.get(*position) == Some(&"OR") {
        *position += 1;
        met |= all(words, position, allowed);
    }
    met
}

/// `one (AND one)*`
fn all(words: &[&str], position: &mut usize, allowed: &[String]) -> bool {
    let mut met = one(words, position, allowed);
    while words.get(*position) == Some(&"AND") {
        *position += 1;
        met &= one(words, position, allowed);
    }
    met
}

/// `( any )` or `licence [WITH exception]`
fn one(words: &[&str], position: &mut usize, allowed: &[String]) -> bool {
    let Some(word) = words.get(*position) else { return false };
    *position += 1;
    if *word == "(" {
        let met = any(words, position, allowed);
        let closed = words.get(*position) == Some(&")");
        *position += 1;
        return met && closed;
    }
    let mut licence = (*word).to_owned();
    if words.get(*position) == Some(&"WITH") {
        licence = format!("{licence} WITH {}", words.get(*position + 1).unwrap_or(&""));
        *position += 2;
    }
    allowed.contains(&licence)
}

/// Crates whose licence is not acceptable, or not told.
fn wrong_crates(metadata: &serde_json::Value, allowed: &[String]) -> Vec<String> {
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let licence = package["license"].as_str().unwrap_or("(none told)");
        if !acceptable(licence, allowed) {
            findings.push(format!("{} {}: {licence}", package["name"], package["version"]));
        }
    }
    findings
}

/// Tools that build or test a page and leave nothing of their own in it.
const BUILD_TOOLS: &[&str] = &["vite", "typescript", "playwright-core"];

/// Packages of a page that end up in it and are not acceptable: what its lock file asks for, less the
/// build tools, and what those packages ask for in turn.
fn wrong_packages(lock: &serde_json::Value, allowed: &[String]) -> Vec<String> {
    let names = |package: &serde_json::Value| -> Vec<String> {
        let asked = package["dependencies"].as_object();
        asked.into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let mut open = names(&lock["packages"][""]);
    open.retain(|name| !BUILD_TOOLS.contains(&name.as_str()));
    let (mut seen, mut findings) = (Vec::new(), Vec::new());
    while let Some(name) = open.pop() {
        if seen.contains(&name) {
            continue;
        }
        let package = &lock["packages"][format!("node_modules/{name}")];
        let licence = package["license"].as_str().unwrap_or("(none told)");
        if !acceptable(licence, allowed) {
            findings.push(format!("{name}: {licence}"));
        }
        open.extend(names(package));
        seen.push(name);
    }
    findings
}

fn project_list() -> Vec<String> {
    allowed(&std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml"))
}

#[test]
fn every_crate_has_an_allowed_licence() {
    let host = host();
    let metadata =
        cargo_json(&["metadata", "--format-version=1", "--locked", "--filter-platform", &host]);
    let remedy = "Choose another crate, or add the licence to deny.toml with a reason.";
    assert_none(&wrong_crates(&metadata, &project_list()), remedy);
}

#[test]
fn every_package_of_the_page_has_an_allowed_licence() {
    // Other lock files are of tests: what they install is run beside the program and shipped with nobody.
    let of_page = |path: &str| path.starts_with("crates/web/page/");
    let locks = crate::files()
        .into_iter()
        .filter(|file| of_page(&file.path) && file.path.ends_with("package-lock.json"));
    let mut findings = Vec::new();
    for file in locks {
        let lock = serde_json::from_str(&file.text).expect("a lock file is JSON");
        findings.extend(wrong_packages(&lock, &project_list()));
    }
    assert_none(&findings, "Choose another package, or add the licence to deny.toml.");
}

#[test]
fn the_rule_reads_licence_expressions() {
    let allowed =
        allowed("[licenses]\nallow = [\n  \"MIT\", # why\n  \"ISC\",\n  \"A WITH B\",\n]");
    assert_eq!(allowed, ["MIT", "ISC", "A WITH B"]);
    let good = [
        "MIT",
        "GPL-3.0 OR MIT",
        "Unlicense/MIT",
        "ISC AND (X OR MIT)",
        "A WITH B",
        "X OR A WITH B",
    ];
    let bad = ["", "GPL-3.0", "MIT AND X", "ISC AND (X OR Y)", "(MIT", "MIT)", "A", "A WITH C"];
    assert_eq!(good.map(|text| acceptable(text, &allowed)), [true; 6]);
    assert_eq!(bad.map(|text| acceptable(text, &allowed)), [false; 8]);
}

#[test]
fn a_wrong_licence_is_found() {
    let allowed = ["MIT".to_owned()];
    let metadata = serde_json::json!({"packages": [
        {"name": "good", "version": "1", "license": "MIT"},
        {"name": "bad", "version": "1", "license": "AGPL-3.0"},
        {"name": "silent", "version": "1", "license": null}]});
    assert_eq!(
        wrong_crates(&metadata, &allowed),
        ["\"bad\" \"1\": AGPL-3.0", "\"silent\" \"1\": (none told)"]
    );
    let lock = serde_json::json!({"packages": {
        "": {"dependencies": {"good": "1", "vite": "1"}},
        "node_modules/good": {"license": "MIT", "dependencies": {"deep": "1", "good": "1"}},
        "node_modules/deep": {"license": "AGPL-3.0"},
        "node_modules/vite": {"license": "MIT", "dependencies": {"tool": "1"}},
        "node_modules/tool": {"license": "MPL-2.0"}}});
    assert_eq!(wrong_packages(&lock, &allowed), ["deep: AGPL-3.0"]);
}
