//! With `--json` every failure is one object on standard output, also what is refused before any command runs.

use std::process::Command;

use testkit::stores::TempFolder;

#[test]
fn what_is_refused_before_a_command_runs_is_json_too() {
    let adjutant =
        |args: &[&str]| Command::new(env!("CARGO_BIN_EXE_adjutant")).args(args).output().unwrap();
    let folder = TempFolder::new();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (broken, unknown) = (file("broken.toml", "listen = ["), file("unknown.toml", "listne = 1"));
    let missing = folder.path().join("missing.toml").display().to_string();
    let cases: [(&[&str], i32, &str); 7] = [
        (&["duties", "--json", "--nonsense"], 2, "--nonsense"),
        (&["nonsense", "--json"], 2, "nonsense"),
        (&["pause", "--json", "--wait", "long"], 2, "long"),
        (&["source", "--json"], 2, "source"),
        (&["--config", &broken, "duties", "--json"], 1, "broken.toml"),
        (&["--config", &unknown, "hold", "--json"], 1, "unknown.toml"),
        (&["--config", &missing, "devices", "--json"], 1, "missing.toml"),
    ];
    for (args, code, wanted) in cases {
        let output = adjutant(args);
        let (out, err) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
        let said = String::from_utf8_lossy(&out);
        assert_eq!((output.status.code(), err.as_str()), (Some(code), ""), "{args:?}: {said}");
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap_or_else(|error| {
            panic!("{args:?}: {error}: {said}");
        });
        let names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["detail", "error"], "{args:?}");
        assert!(value["detail"].as_str().unwrap().contains(wanted), "{args:?}: {said}");
    }
    // Help is no failure, and without --json all stays as it is.
    let help = adjutant(&["duties", "--json", "--help"]);
    assert!(help.status.success() && help.stdout.starts_with(b"List"), "{help:?}");
    let plain = adjutant(&["duties", "--nonsense"]);
    assert!(plain.stdout.is_empty() && plain.stderr.starts_with(b"error: "), "{plain:?}");
}
