//! The unit of systemd is written, started, shown and taken away; where systemd is not, a person gets what to do.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use testkit::stores::TempFolder;

/// What stands for systemd: it notes what it was asked, and says that the unit runs.
const SYSTEMCTL: &str = "#!/bin/sh\necho \"$*\" >> \"$HOME/asked\"\ncase \"$*\" in\n*is-active*) echo active ;;\n\
                         *is-enabled*) echo enabled ;;\nesac\n";

fn adjutant(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_adjutant"))
        .args(["--config", "adjutant.toml", "service"])
        .args(args)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", format!("{}:/usr/bin:/bin", home.join("bin").display()))
        .output()
        .unwrap()
}

fn said(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn home(systemctl: &str) -> TempFolder {
    let folder = TempFolder::new();
    let home = folder.path();
    std::fs::write(home.join("adjutant.toml"), "data_dir = \"data\"\n").unwrap();
    std::fs::create_dir(home.join("bin")).unwrap();
    let program = home.join("bin/systemctl");
    std::fs::write(&program, systemctl).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn it_is_installed_shown_and_taken_away() {
    let folder = home(SYSTEMCTL);
    let home = folder.path();
    let unit = home.join(".config/systemd/user/adjutant.service");
    let printed = adjutant(home, &["install", "--print"]);
    assert!(printed.status.success() && !unit.exists(), "{printed:?}");

    let installed = adjutant(home, &["install"]);
    assert!(installed.status.success(), "{installed:?}");
    let text = std::fs::read(&unit).unwrap();
    assert_eq!(String::from_utf8_lossy(&text), String::from_utf8_lossy(&printed.stdout));
    let line = format!(" --config \"{}\" serve\n", home.join("adjutant.toml").display());
    assert!(String::from_utf8_lossy(&text).contains(&line), "{line}");
    let mode = std::fs::metadata(home.join("data")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "without its folder the unit would not start");

    let status = adjutant(home, &["status", "--json"]);
    let wanted = json!({"installed": true, "file": unit, "enabled": "enabled", "active": "active",
        "runs": true});
    assert_eq!((status.status.code(), said(&status)), (Some(0), wanted));

    let gone = adjutant(home, &["uninstall", "--json"]);
    assert_eq!(said(&gone)["installed"], json!(false), "{gone:?}");
    assert!(!unit.exists() && home.join("data").exists());
    let asked = std::fs::read_to_string(home.join("asked")).unwrap();
    let wanted = [
        "--user --version",
        "--user daemon-reload",
        "--user enable --now adjutant.service",
        "--user is-enabled adjutant.service",
        "--user is-active adjutant.service",
        "--user disable --now adjutant.service",
        "--user daemon-reload",
    ];
    assert_eq!(asked.lines().collect::<Vec<_>>(), wanted);
    assert_eq!(adjutant(home, &["uninstall"]).status.code(), Some(1), "there is none");
}

#[test]
fn where_systemd_does_not_take_it_a_person_gets_the_unit_and_the_commands() {
    let folder = home("#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n");
    let refused = adjutant(folder.path(), &["install", "--json"]);
    let told = said(&refused);
    assert_eq!((refused.status.code(), &told["installed"]), (Some(1), &json!(false)), "{told}");
    assert_eq!(told["why_not"], "Failed to connect to bus: No medium found");
    let commands =
        ["systemctl --user daemon-reload", "systemctl --user enable --now adjutant.service"];
    assert_eq!(told["commands"], json!(commands));
    let plain = adjutant(folder.path(), &["install"]);
    let text = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(
        text.starts_with("[Unit]") && commands.iter().all(|line| text.contains(line)),
        "{text}"
    );
    let status = adjutant(folder.path(), &["status"]);
    assert_eq!(status.status.code(), Some(1), "{status:?}");
}
