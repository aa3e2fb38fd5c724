//! A COMMIT that the system refuses: nobody can tell what reached the disk, so the program ends,
//! and its next start reads what is there.

use std::sync::Arc;

use rustix::process::{Resource, Rlimit, prlimit};

use crate::judge::{self, Records};
use crate::late::rest;
use crate::person::{Person, noted};
use crate::stage::{Engine, NEVER_MS, Stage, millis};

#[test]
fn a_commit_that_fails_ends_the_program_and_loses_nothing() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (stage, person) = runtime.block_on(play());
    let records = Records::read(&stage);
    let known = person.known();
    let known = known.lock().unwrap();
    judge::everything(&records, &known);
    // A message whose answer was lost with the program may be on record or not; each that is was
    // answered once.
    let notes = records.of_kind(domain::event::EventKind::UserMessage);
    let number = |text: &str| text.strip_prefix("note ").unwrap().parse().unwrap();
    let mut expected: Vec<String> = notes.map(|(_, text, _)| noted(number(text))).collect();
    expected.sort_unstable();
    let said: Vec<&str> = records.said().into_iter().map(|(text, _)| text).collect();
    assert_eq!(said, expected);
    assert!(known.acknowledged.len() >= 2, "{known:?}");
}

/// Exit code for "what is on disk must be read anew", after `EX_SOFTWARE`.
const READ_ANEW: i32 = 70;
/// A note takes about a quarter of a megabyte; SQLite begins its log anew at four.
const ROOM_BYTES: u64 = 1_000_000;
const MESSAGES_MAX: u32 = 500;

async fn play() -> (Arc<Stage>, Person) {
    let stage = Arc::new(Stage::set(Engine::Sqlite, NEVER_MS).await.unwrap());
    let mut person = Person::new(stage.clone(), 2);
    let mut server = stage.start_with_file_limits();
    stage.ready(&mut server).await;
    person.say("note 1").await;
    rest(&stage, &mut server).await;
    // The log of the database has room for a few more notes, and is not yet so long that it is
    // begun anew. Then each write of it fails.
    let size = std::fs::metadata(stage.path("data/adjutant.db-wal")).unwrap().len();
    let limit = Rlimit { current: Some(size + ROOM_BYTES), maximum: Some(size + ROOM_BYTES) };
    prlimit(Some(server.pid()), Resource::Fsize, limit).unwrap();
    let mut n = 1;
    while !server.is_over() {
        n += 1;
        assert!(n < MESSAGES_MAX, "the limit was never met");
        person.try_say(&format!("note {n}")).await;
        person.known().lock().unwrap().notes = u64::from(n);
        tokio::time::sleep(millis(20)).await;
    }
    let status = server.ended().await;
    assert_eq!(status.code(), Some(READ_ANEW), "{status}; {}", server.log_end());
    let mut server = stage.start();
    rest(&stage, &mut server).await;
    person.listen().await;
    server.stop().await;
    (stage, person)
}
