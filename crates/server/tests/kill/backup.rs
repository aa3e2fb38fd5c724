//! Backups that are made while the program writes, and what becomes of one elsewhere: everything that was
//! acknowledged before it is there, nothing runs until its person lifts the pause, and then its duty goes on.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};
use std::sync::Arc;

use base::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::judge::{self, Records, price_words};
use crate::late::rest;
use crate::person::{Known, Mood, Person};
use crate::stage::{Engine, NEVER_MS, Stage, millis};

fn adjutant(stage: &Stage, args: &[&str]) -> Output {
    let config = stage.path("adjutant.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_adjutant"));
    command.arg("--config").arg(config).args(args).output().unwrap()
}

fn said(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn refusal(stage: &Stage, args: &[&str]) -> String {
    let output = adjutant(stage, args);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
    said(&output)["detail"].as_str().unwrap().to_owned()
}

#[test]
fn a_backup_under_load_is_sound_and_elsewhere_its_duty_goes_on_once_its_person_says_so() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (stage, known) = runtime.block_on(play());
    let records = Records::read(&stage);
    judge::what_is_on_record(&records, &known);
    let wednesday = Timestamp::parse("2027-03-03T00:00:00Z").unwrap();
    let price = price_words(wednesday);
    assert!(records.said().contains(&(price.as_str(), true)), "{:?}", records.said());
    runtime.shutdown_timeout(millis(1_000));
}

/// Makes backups of one stage under load, and has the last of them go on on another.
async fn play() -> (Arc<Stage>, Known) {
    let first = Arc::new(Stage::set(Engine::Sqlite, NEVER_MS).await.unwrap());
    let source = "0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01";
    std::fs::create_dir_all(first.path("data/secrets")).unwrap();
    let mut server = first.start();
    first.ready(&mut server).await;
    std::fs::write(first.path("data/secrets").join(source), "[]").unwrap();
    let person = Person::new(first.clone(), 1);
    let known = person.known();
    let (mood, moods) = watch::channel(Mood::Talk);
    let living = tokio::spawn(person.live(moods));
    while known.lock().unwrap().notes < 5 {
        tokio::time::sleep(millis(10)).await;
    }
    let mut acknowledged = Default::default();
    for n in 0..5 {
        acknowledged = known.lock().unwrap().acknowledged.clone();
        let before = first.ready(&mut server).await.seq;
        let file = first.path(&format!("{n}.backup")).display().to_string();
        let (stage, args) = (first.clone(), file.clone());
        let made =
            tokio::task::spawn_blocking(move || adjutant(&stage, &["backup", &args, "--json"]));
        let made = said(&made.await.unwrap());
        assert_eq!((&made["owners"], &made["secrets"]), (&json!(1), &json!(1)), "{made}");
        assert!(made["audit_entries"].as_i64().unwrap() > 0, "{made}");
        let config = first.path("adjutant.toml").display().to_string();
        assert_eq!(made["not_in_it"][0], json!(config), "{made}");
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert!(first.ready(&mut server).await.seq > before || n > 0, "it wrote meanwhile");
        let sound = adjutant(&first, &["restore", &file, "--check", "--json"]);
        assert_eq!(said(&sound)["audit_entries"], made["audit_entries"]);
    }
    mood.send_replace(Mood::Leave);
    living.await.unwrap();
    let file = first.path("4.backup").display().to_string();
    refused(&first, &file);
    let token = std::fs::read_to_string(first.token_file()).unwrap();
    server.kill();

    let second = Arc::new(Stage::set(Engine::Sqlite, NEVER_MS).await.unwrap());
    let back = adjutant(&second, &["restore", &file]);
    assert!(back.status.success(), "{back:?}");
    let kept = second.path("data/secrets").join(source);
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "[]");
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    let acknowledged = Known { acknowledged, ..Known::default() };
    let known = go_on(&second, &token, acknowledged).await;
    (second, known)
}

/// What is no backup is said so, and no file and no database is written over.
fn refused(stage: &Stage, file: &str) {
    let there = refusal(stage, &["backup", file, "--json"]);
    assert!(there.contains("is there already"), "{there}");
    let other = stage.path("other.toml").display().to_string();
    std::fs::copy(stage.path("adjutant.toml"), &other).unwrap();
    let none = refusal(stage, &["restore", &other, "--json"]);
    assert!(none.contains("is no backup"), "{none}");
    let used = refusal(stage, &["restore", file, "--json"]);
    assert!(used.contains("another adjutant uses"), "{used}");
}

/// Starts what was put back on a Wednesday morning, an hour after its duty's slot.
async fn go_on(stage: &Arc<Stage>, token: &str, acknowledged: Known) -> Known {
    let wednesday = Timestamp::parse("2027-03-03T00:00:00Z").unwrap();
    stage.set_virtual_now(wednesday.plus_ms(3_600_000));
    let mut server = stage.start();
    stage.ready(&mut server).await;
    // Its devices are those of the backup.
    let get = async |path: &str| -> Value {
        let request = stage.http.get(stage.url(path)).bearer_auth(token);
        request.send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
    };
    rest(stage, &mut server).await;
    let control = get("/v1/control").await;
    assert_eq!(control["pauses"][0]["duty"], Value::Null, "{control}");
    assert_eq!(control["pauses"][0]["by"], "policy", "{control}");
    let chat = get("/v1/chat?limit=100").await;
    let entries = chat["entries"].as_array().unwrap();
    let told = entries.iter().filter(|entry| {
        entry["text"].as_str().is_some_and(|text| {
            text.starts_with("Everything is paused: these records come from a backup")
        })
    });
    assert_eq!(told.count(), 1, "{chat}");
    let price = price_words(wednesday);
    assert!(!entries.iter().any(|entry| entry["text"] == json!(price)), "{chat}");
    let lifted = adjutant(stage, &["lift"]);
    assert!(lifted.status.success(), "{lifted:?}");
    let mut person = Person::new(stage.clone(), 2);
    let known = person.known();
    for _ in 0..1_000 {
        person.listen().await;
        if known.lock().unwrap().heard.contains_key(&price) {
            break;
        }
        server.must_run();
        tokio::time::sleep(millis(10)).await;
    }
    rest(stage, &mut server).await;
    server.stop().await;
    acknowledged
}
