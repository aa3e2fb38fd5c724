//! `adjutant attack` against the real server: a duty with a grant, its copy over HTTP, and the worst of it.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base::SystemClock;
use serde_json::{Value, json};
use testkit::hotel::HOTEL_MANIFEST;
use testkit::model_server;
use testkit::stores::TempFolder;

const SCRIPT: &str = include_str!("../../sim/stories/hotel.toml");

struct Server {
    process: Child,
    origin: String,
    folder: TempFolder,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

async fn serve() -> Server {
    let model = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = model.local_addr().unwrap();
    let script = model::Script::parse(SCRIPT).unwrap();
    tokio::spawn(model_server::serve(
        model,
        model_server::Config::new(script, Arc::new(SystemClock)),
    ));
    let folder = TempFolder::new();
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let program = env!("CARGO_BIN_EXE_adjutant");
    let config = format!(
        "data_dir = \"data\"\nlisten = \"127.0.0.1:{port}\"\n[model]\n\
         base_url = \"http://{address}/v1\"\nmodel = \"scripted\"\ncontext_tokens = 100000\n\
         max_output_tokens = 1000\n[[mcp]]\nname = \"hotel\"\ncommand = {program:?}\n\
         args = [\"fake\", \"hotel\"]\nmanifest = \"hotel.toml\"\n"
    );
    std::fs::write(folder.path().join("hotel.toml"), HOTEL_MANIFEST).unwrap();
    std::fs::write(folder.path().join("adjutant.toml"), config).unwrap();
    let process = command(&folder, &["serve"]).stdout(Stdio::null()).spawn().unwrap();
    Server { process, origin: format!("http://127.0.0.1:{port}"), folder }
}

fn command(folder: &TempFolder, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adjutant"));
    command.args(words).arg("--config").arg(folder.path().join("adjutant.toml"));
    command
}

impl Server {
    async fn ask(&self, http: &reqwest::Client, path: &str, body: Option<Value>) -> Option<Value> {
        let token = std::fs::read_to_string(self.folder.path().join("data/cli.token")).ok()?;
        let url = format!("{}{path}", self.origin);
        let request = match body {
            None => http.get(url),
            Some(body) => http.post(url).json(&body),
        };
        request.bearer_auth(token).send().await.ok()?.error_for_status().ok()?.json().await.ok()
    }
}

async fn until<T, F: Future<Output = Option<T>>>(mut look: impl FnMut() -> F) -> T {
    for _ in 0..600 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nothing within a minute")
}

/// A person who has seen how far it has got, and has enough.
fn stopped_early(server: &Server, duty: &str) {
    let mut attack = command(&server.folder, &["attack", duty, "--steps", "1000000"]);
    let mut process = attack.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut notes = BufReader::new(process.stderr.take().unwrap()).lines();
    assert!(notes.any(|note| note.unwrap().contains("of 1000000 steps")));
    let number = process.id().to_string();
    assert!(Command::new("kill").args(["-INT", &number]).status().unwrap().success());
    let notes = std::thread::spawn(|| notes.for_each(drop));
    let ran = process.wait_with_output().unwrap();
    notes.join().unwrap();
    let out = String::from_utf8_lossy(&ran.stdout);
    assert!(out.starts_with("Ended early after "), "{out}");
    assert_eq!(ran.status.code(), Some(1));
}

#[tokio::test]
async fn the_worst_is_printed_beside_what_the_card_allows() {
    let server = serve().await;
    let http = model::http_client(Duration::from_secs(5)).unwrap();
    let (said, tapped) =
        ("0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01", "0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e02");
    let message = json!({"id": said, "text": "I want a room in Hong Kong"});
    until(|| server.ask(&http, "/v1/messages", Some(message.clone()))).await;
    let card = until(|| async {
        let all = server.ask(&http, "/v1/proposals", None).await?;
        all["proposals"].as_array()?.first().cloned()
    })
    .await;
    let path = format!("/v1/proposals/{}/confirm", card["id"].as_str().unwrap());
    let tap = json!({"id": tapped, "digest": card["digest"]});
    until(|| server.ask(&http, &path, Some(tap.clone()))).await;
    let duties = server.ask(&http, "/v1/duties", None).await.unwrap();
    let duty = duties["duties"][0]["id"].as_str().unwrap().to_owned();
    let mut attack = command(&server.folder, &["attack", &duty, "--steps", "40", "--json"]);
    let ran = tokio::task::spawn_blocking(move || attack.output().unwrap()).await.unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["findings"], json!([]));
    assert_eq!(report["reach"]["actions"], json!({"hotel.book_hotel": 2}));
    let most = json!([{"minor": 1_800_000, "currency": "HKD", "text": "HKD 18 000.00"}]);
    assert_eq!(report["reach"]["money"], most);
    assert!(report["steps"].as_u64().unwrap() >= 40, "{report}");
    // Nothing of it reached the server's own records.
    let actions = server.ask(&http, "/v1/actions", None).await.unwrap();
    assert_eq!(actions["actions"], json!([]));
    stopped_early(&server, &duty);
    let mut unknown = command(&server.folder, &["attack", said, "--json"]);
    let ran = tokio::task::spawn_blocking(move || unknown.output().unwrap()).await.unwrap();
    assert!(!ran.status.success(), "there is no such duty");
}
