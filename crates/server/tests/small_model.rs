//! A real small language model on the real wire. It is far too small to call tools, so what it says must
//! arrive, be journaled and counted, and stay private.
//!
//! Ignored unless `./test` has started such a model: it sets `ADJUTANT_TEST_MODEL_URL`.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base::{IdSource, SystemClock};
use domain::state::RunState;
use serde_json::{Value, json};
use store::run::StepKind;
use store::{Database, Store};
use testkit::stores::TempFolder;

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

fn serve(model_url: &str) -> Server {
    let folder = TempFolder::new();
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let config = format!(
        "data_dir = \"data\"\nlisten = \"127.0.0.1:{port}\"\n[model]\nbase_url = \"{model_url}\"\n\
         model = \"smollm2-135m\"\ncontext_tokens = 8192\nmax_output_tokens = 48\n"
    );
    let file = folder.path().join("adjutant.toml");
    std::fs::write(&file, config).unwrap();
    let process = Command::new(env!("CARGO_BIN_EXE_adjutant"))
        .args(["serve", "--config"])
        .arg(&file)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    Server { process, origin: format!("http://127.0.0.1:{port}"), folder }
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

/// Asks again until the answer is there; a model on one slow core may take a while.
async fn until<T, F: Future<Output = Option<T>>>(mut look: impl FnMut() -> F) -> T {
    for _ in 0..1_200 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nothing within two minutes")
}

#[tokio::test]
#[ignore = "needs the small model that ./test starts"]
async fn small_model_answers_are_journaled_counted_and_private() {
    let url = std::env::var("ADJUTANT_TEST_MODEL_URL").expect("./test --only model sets it");
    let server = serve(&url);
    let http = model::http_client(Duration::from_secs(5)).unwrap();
    let id = "0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01";
    let message = json!({"id": id, "text": "Say hello in one short sentence."});
    until(|| server.ask(&http, "/v1/messages", Some(message.clone()))).await;
    let entry = until(|| async {
        let chat = server.ask(&http, "/v1/chat?limit=10", None).await?;
        chat["entries"].as_array()?.iter().find(|entry| entry["state"] == "handled").cloned()
    })
    .await;
    assert_eq!(entry["kind"], "user");
    let chat = server.ask(&http, "/v1/chat?limit=10", None).await.unwrap();
    assert_eq!(chat["entries"].as_array().unwrap().len(), 1, "its words reach nobody: {chat}");

    let path = server.folder.path().join("data/adjutant.db");
    let owner = server.ask(&http, "/v1/me", None).await.unwrap()["owner"].clone();
    let (steps, text, run, totals) = tokio::task::spawn_blocking(move || {
        let clock = Arc::new(testkit::clock::FakeClock::new(base::Clock::now(&SystemClock)));
        let options =
            testkit::stores::options(Database::Sqlite(path), clock, &IdSource::new([5; 32]), true);
        let store = Store::open(options).unwrap();
        let owner: base::OwnerId = owner.as_str().unwrap().parse().unwrap();
        testkit::stores::block_on(store.read(move |tx| {
            let main = store::owner::get(tx, owner)?.main_session;
            let run = store::run::last(tx, main)?.unwrap();
            let steps = store::run::steps(tx, run.id)?;
            let text = store::event::body_text(tx, steps.last().unwrap().body)?;
            Ok((steps, text, run, store::ledger::all(tx, owner)?))
        }))
        .unwrap()
    })
    .await
    .unwrap();
    assert_eq!(run.state, RunState::Completed);
    assert_eq!(steps.iter().map(|s| s.kind).collect::<Vec<_>>(), [StepKind::Tail, StepKind::Model]);
    assert_eq!((totals.wakeups, totals.model_calls), (1, 1));
    assert!(totals.input_tokens > 100 && (1..=48).contains(&totals.output_tokens), "{totals:?}");
    let message: Value = serde_json::from_str(&text).unwrap();
    let words = message["content"].as_str().unwrap();
    eprintln!("the model said, privately: {words}");
    assert!(!words.trim().is_empty());
}
