//! A message from a pipe: `adjutant send -` reads standard input and never waits for itself.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use testkit::stores::TempFolder;

#[test]
fn a_piped_message_is_read_and_a_missing_server_is_said() {
    let folder = TempFolder::new();
    let config = folder.path().join("adjutant.toml");
    // Port 9 is never listened on, so the answer is known: no server.
    std::fs::write(&config, "data_dir = \"data\"\nlisten = \"127.0.0.1:9\"\n").unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let token = folder.path().join("data/cli.token");
    std::fs::write(&token, "0".repeat(64)).unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_adjutant"))
        .arg("--config")
        .arg(&config)
        .args(["send", "-", "--wait", "0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a letter from a pipe\n").unwrap();
    let (done, ended) = mpsc::channel();
    let id = child.id();
    std::thread::spawn(move || done.send(child.wait_with_output()));
    let Ok(output) = ended.recv_timeout(Duration::from_secs(60)) else {
        drop(Command::new("kill").arg("-9").arg(id.to_string()).status());
        panic!("it hangs");
    };
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("Not sent"), "{said}");
}
