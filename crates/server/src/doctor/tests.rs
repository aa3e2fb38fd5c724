//! What the doctor finds with a server and a model that answer, refuse, or are not there.

use std::path::PathBuf;

use serde_json::json;

use super::{Check, Verdict, examine, report};
use crate::client::tests::peer::{Peer, Reply};
use crate::client::tests::runtime;
use crate::config::Config;

/// A folder with a configuration that points at `model`; removed when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn folder(name: &str, model: &str, more: &str) -> Folder {
    let folder = std::env::temp_dir().join(format!("adjutant-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = format!(
        "data_dir = \"data\"\n[model]\nbase_url = \"{model}/v1\"\nmodel = \"large\"\n\
         key_env = \"KEY\"\n[owner]\nzone = \"Asia/Hong_Kong\"\n{more}"
    );
    std::fs::write(folder.join("adjutant.toml"), text).expect("written");
    Folder(folder)
}

fn look(folder: &Folder, server: &str) -> (Vec<Check>, String) {
    let env = |name: &str| match name {
        "KEY" => Some("sk-secret".to_string()),
        "ADJUTANT_TOKEN" => Some("token-1".to_string()),
        "ADJUTANT_URL" => Some(server.to_string()),
        "PATH" => Some("/usr/bin:/bin".to_string()),
        _ => None,
    };
    let config = Config::load(Some(&folder.0.join("adjutant.toml")), &env);
    let checks = runtime().block_on(examine(&config, &env));
    let text =
        report(&checks, config.as_ref().ok(), false) + &report(&checks, config.as_ref().ok(), true);
    (checks, text)
}

fn verdicts(checks: &[Check]) -> Vec<(&str, Verdict)> {
    checks.iter().map(|check| (check.name.as_str(), check.verdict)).collect()
}

fn found<'a>(checks: &'a [Check], name: &str) -> (&'a str, &'a str) {
    let check = checks.iter().find(|check| check.name == name).expect("the check is there");
    (check.found.as_str(), check.remedy.as_str())
}

#[test]
fn a_sound_set_up_passes_and_the_key_is_never_shown() {
    let peer = Peer::start(|asked| match asked.what.as_str() {
        "GET /v1/models" => Reply::Json(200, json!({"data": [{"id": "small"}, {"id": "large"}]})),
        "GET /health" => {
            Reply::Json(200, json!({"ok": true, "version": "0.1.0", "engine": "sqlite"}))
        }
        "GET /v1/sources" => Reply::Json(
            200,
            json!({"sources": [
                {"id": "1", "name": "shop", "kind": "webhook", "secret": "kept", "refused": 2,
                    "refused_at": "2026-11-30T01:00:00Z", "received_at": "2026-11-30T00:00:00Z"},
                {"id": "2", "name": "news", "kind": "feed", "failures": 2},
                {"id": "3", "name": "inbox", "kind": "folder",
                    "received_at": "2026-11-30T00:00:00Z"},
                {"id": "4", "name": "bank", "kind": "webhook", "secret": "missing"}]}),
        ),
        _ => Reply::Json(200, json!({"zone": "UTC", "seq": 1})),
    });
    let folder = folder("doctor-ok", &peer.url, "[[mcp]]\nname = \"shell\"\ncommand = \"sh\"\n");
    let (checks, text) = look(&folder, &peer.url);
    use Verdict::{Ok, Warning};
    let wanted = [
        ("configuration", Ok),
        ("key", Ok),
        ("model", Ok),
        ("small model", Ok),
        ("reviewer", Ok),
        ("time zone", Ok),
        ("page", if web::page::AVAILABLE { Ok } else { Warning }),
        ("data folder", Ok),
        ("secrets of sources", Ok),
        ("disk space", Ok),
        ("tool server shell", Warning),
        ("server", Ok),
        ("token", Ok),
        ("source shop", Warning),
        ("source news", Verdict::Failed),
        ("source inbox", Ok),
        ("source bank", Verdict::Failed),
    ];
    assert_eq!(verdicts(&checks), wanted);
    assert!(!text.contains("sk-secret") && !text.contains("token-1"), "a secret is shown: {text}");
    let asked = peer.asked("GET /v1/models");
    assert_eq!(asked.first().and_then(|asked| asked.token.as_deref()), Some("sk-secret"));
}

/// Speaks just enough of MCP to be listed: one tool, `price`.
const SPEAKS: &str = r#"
next() { while read -r line; do
  case "$line" in *'"id":'*) id=${line#*'"id":'}; id=${id%%[,\}]*}; return 0;; esac
done; exit 0; }
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
next
reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}'
next
reply '{"tools":[{"name":"price","inputSchema":{"type":"object"}}]}'
next
"#;

#[test]
fn every_tool_server_is_started_and_held_against_its_manifest() {
    let servers = [("sound", "price"), ("other", "fare"), ("broken", "price"), ("dead", "price")];
    let more: String = servers
        .iter()
        .map(|(name, _)| {
            format!(
                "[[mcp]]\nname = \"{name}\"\ncommand = \"sh\"\nargs = [\"./{name}.sh\"]\n\
                 manifest = \"{name}.toml\"\n"
            )
        })
        .collect();
    let peer = Peer::start(|_| Reply::Json(200, json!({"data": []})));
    let folder = folder("doctor-tools", &peer.url, &more);
    for (name, tool) in servers {
        let manifest = match name {
            "broken" => "[tool.price]\nefect = \"read\"\n".to_owned(),
            _ => format!("[tool.{tool}]\neffect = \"read\"\n"),
        };
        let script = if name == "dead" { "exit 1" } else { SPEAKS };
        std::fs::write(folder.0.join(format!("{name}.toml")), manifest).expect("written");
        std::fs::write(folder.0.join(format!("{name}.sh")), script).expect("written");
    }
    let (checks, text) = look(&folder, "http://127.0.0.1:1");
    let of = |name: &str| {
        let (found, remedy) = found(&checks, &format!("tool server {name}"));
        (found.to_owned(), remedy.to_owned())
    };
    assert!(of("sound").0.ends_with("/sh; it starts and has every tool"), "{:?}", of("sound"));
    let wanted = (
        "the manifest has an entry for `other.fare`, but its server offers no such tool".to_owned(),
        "Correct the manifest, or update the server".to_owned(),
    );
    assert_eq!(of("other"), wanted);
    let (fact, remedy) = of("broken");
    assert!(fact.contains("broken.toml") && fact.contains("efect"), "{fact}");
    assert_eq!(remedy, "correct that file");
    let (fact, remedy) = of("dead");
    assert!(fact.contains("`dead`"), "{fact}");
    assert!(!remedy.is_empty());
    let one_each = |line: &&str| line.contains("tool server");
    assert_eq!(text.lines().take_while(|line| !line.starts_with('{')).filter(one_each).count(), 4);
}

#[test]
fn a_model_without_a_list_is_asked_the_smallest_question_of_its_wire() {
    let peer = Peer::start(|asked| match asked.what.starts_with("POST ") {
        true => Reply::Json(200, json!({})),
        false => Reply::Json(404, json!(null)),
    });
    let folder = folder("doctor-wires", &peer.url, "");
    let file = folder.0.join("adjutant.toml");
    let text = std::fs::read_to_string(&file).expect("read");
    for wire in ["messages", "responses"] {
        let text = text.replace("[owner]", &format!("wire = \"{wire}\"\n[owner]"));
        std::fs::write(&file, text).expect("written");
        let (checks, _) = look(&folder, "http://127.0.0.1:1");
        assert_eq!(found(&checks, "model").1, "");
    }
    let said = json!([{"role": "user", "content": "ok"}]);
    let bodies = |what: &str| {
        let asked = peer.asked(what);
        asked.into_iter().map(|asked| (asked.token, asked.body)).collect::<Vec<_>>()
    };
    assert_eq!(
        bodies("POST /v1/messages"),
        [(None, json!({"model": "large", "max_tokens": 1, "messages": said}))]
    );
    let key = Some("sk-secret".to_owned());
    assert_eq!(
        bodies("POST /v1/responses"),
        [(key, json!({"model": "large", "max_output_tokens": 16, "input": said}))]
    );
}

#[test]
fn what_is_wrong_comes_with_a_remedy() {
    let peer = Peer::start(|asked| match asked.what.as_str() {
        "GET /v1/models" => Reply::Json(404, json!(null)),
        _ => Reply::Json(401, json!({"title": "Unauthorized", "detail": "unknown; pair it"})),
    });
    let folder = folder("doctor-bad", &peer.url, "[[mcp]]\nname = \"x\"\ncommand = \"no-such\"\n");
    let (checks, _) = look(&folder, "http://127.0.0.1:1");
    let at = format!("{}/v1", peer.url);
    let refused = format!("{at} refused the key (401)");
    assert_eq!(found(&checks, "model"), (refused.as_str(), "put a valid key in its place"));
    assert_eq!(
        found(&checks, "server"),
        ("no server at http://127.0.0.1:1/", "start it with: adjutant serve")
    );
    assert_eq!(
        found(&checks, "tool server x"),
        (
            "no-such is not found on PATH or cannot be started",
            "install no-such, or give its whole path as mcp.command"
        )
    );
    assert_eq!(peer.asked("POST /v1/chat/completions").len(), 1, "asked, as there is no list");
    std::fs::write(folder.0.join("adjutant.toml"), "lsten = 1").expect("written");
    let (checks, text) = look(&folder, "http://127.0.0.1:1");
    assert!(checks.first().is_some_and(Check::failed));
    let lacks = |check: &&Check| check.failed() && check.remedy.is_empty();
    assert_eq!(checks.iter().find(lacks), None, "a failure has a remedy");
    assert!(text.contains("unknown key lsten; near names: listen"), "{text}");
}

#[test]
fn secrets_that_others_can_read_fail() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder("doctor-secrets", "http://127.0.0.1:1", "");
    let secrets = folder.0.join("data/secrets");
    std::fs::create_dir_all(&secrets).expect("a folder");
    std::fs::write(secrets.join("one"), "x").expect("a file");
    let mode = |path: &std::path::Path, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("a mode");
    };
    let verdict = || {
        let (checks, _) = look(&folder, "http://127.0.0.1:1");
        let check = checks.iter().find(|check| check.name == "secrets of sources");
        check.map(|check| (check.verdict, check.remedy.contains("chmod")))
    };
    mode(&secrets, 0o755);
    assert_eq!(verdict(), Some((Verdict::Failed, true)));
    mode(&secrets, 0o700);
    mode(&secrets.join("one"), 0o644);
    assert_eq!(verdict(), Some((Verdict::Failed, true)));
    mode(&secrets.join("one"), 0o600);
    assert_eq!(verdict(), Some((Verdict::Ok, false)));
}
