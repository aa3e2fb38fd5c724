//! A disk that is full, and one that fails under COMMIT: what was acknowledged is there, nothing else.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use base::{BodyId, Id as _, IdSource, parse_id};
use store::event::NewBody;
use store::{Database, Store, StoreError};
use testkit::clock::FakeClock;
use testkit::stores::{Harness, SEED, START, block_on, options};

use crate::fixtures::*;
use crate::raw::Raw;

/// A body that takes about `pages` pages of the file.
fn large(h: &Harness, pages: usize) -> NewBody {
    NewBody { bytes: vec![b'x'; pages * 4_096], ..new_body(h, "") }
}

fn bodies(database: &Database) -> Vec<String> {
    Raw::open(database).texts("SELECT hex(id) FROM body ORDER BY id")
}

fn hex(id: BodyId) -> String {
    id.uuid().simple().to_string().to_uppercase()
}

#[test]
fn a_full_disk_refuses_writes_and_keeps_all_that_was_acknowledged() {
    let h = Harness::sqlite(false, |_| {});
    let pages = Raw::beside(&h).number("PRAGMA page_count");
    let bound = u32::try_from(pages).unwrap() + 40;
    let h = h.reopen(|options| options.pages_max = Some(bound));
    let mut kept = Vec::new();
    let refused = loop {
        let body = large(&h, 5);
        let id = body.id;
        match h.write(move |tx| store::event::put_body(tx, body)) {
            Ok(_) => kept.push(hex(id)),
            Err(error) => break error,
        }
        assert!(kept.len() < 100, "no bound");
    };
    assert_eq!(refused, StoreError::Full);
    assert!(kept.len() >= 3, "{}", kept.len());

    // The same in a group: one closure that needs too much, between two that need little.
    let go = occupy(&h);
    let (small, big) = ((0..2).map(|_| new_body(&h, "small")).collect::<Vec<_>>(), large(&h, 60));
    let (ids, big_id) = ([small[0].id, small[1].id], big.id);
    let write = |body: NewBody| {
        h.store.write(h.owner, uuid(&h), move |tx| store::event::put_body(tx, body))
    };
    let mut small = small.into_iter();
    let answers = [
        (ids[0], write(small.next().unwrap())),
        (big_id, write(big)),
        (ids[1], write(small.next().unwrap())),
    ];
    drop(go);
    for (id, answer) in answers {
        match block_on(answer) {
            Ok(_) => kept.push(hex(id)),
            Err(error) => assert_eq!(error, StoreError::Full),
        }
    }
    assert!(!kept.contains(&hex(big_id)));
    // Reading goes on, and so does the store.
    assert!(!is_stored(&h, big_id));
    kept.sort_unstable();
    assert_eq!(bodies(&h.database), kept);

    let h = h.reopen(|_| {});
    assert_eq!(bodies(&h.database), kept);
    let body = large(&h, 60);
    let id = body.id;
    h.write(move |tx| store::event::put_body(tx, body)).unwrap();
    assert!(is_stored(&h, id));
    let check = Raw::beside(&h).texts("PRAGMA integrity_check");
    assert_eq!(check, ["ok"]);
}

/// Tells the child process of the next test its folder.
const FOLDER: &str = "ADJUTANT_TEST_FATAL_COMMIT";
/// Its exit status when the store has called `on_fatal`.
const FATAL: i32 = 7;
/// Half a kilobyte each: room for the file as it is set up, and not for a write-ahead log that is
/// never folded in.
const FILE_BLOCKS_MAX: u32 = 3_000;

/// The child: writes until a COMMIT fails for good, and notes every write that was acknowledged.
fn write_until_fatal(folder: &Path) -> ! {
    let ids = IdSource::new(SEED);
    let database = Database::Sqlite(folder.join("adjutant.db"));
    let mut options = options(database, Arc::new(FakeClock::new(START)), &ids, false);
    let fatal = folder.join("fatal");
    options.on_fatal = Arc::new(move |text| {
        std::fs::write(&fatal, text).unwrap();
        std::process::exit(FATAL);
    });
    let store = Store::open(options).unwrap();
    let owner = block_on(store.read(store::owner::all)).unwrap()[0].id;
    let mut acknowledged = std::fs::File::create(folder.join("acknowledged")).unwrap();
    for n in 0..10_000_u128 {
        let id = BodyId::from_uuid(uuid::Uuid::from_u128(n + 1));
        let body = NewBody {
            id,
            bytes: vec![b'x'; 8_192],
            media: "text/plain".into(),
            provenance: "test".into(),
            trust: domain::event::Trust::User,
        };
        let txn = uuid::Uuid::from_u128(n);
        let answer = block_on(store.write(owner, txn, |tx| store::event::put_body(tx, body)));
        // An error here would say that nothing happened, which nobody can know.
        answer.unwrap();
        writeln!(acknowledged, "{id}").unwrap();
    }
    std::process::exit(0)
}

#[test]
fn an_error_at_commit_ends_the_process_and_a_new_start_finds_what_was_acknowledged() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        write_until_fatal(&PathBuf::from(folder));
    }
    // Set up and closed, so that the child begins with an empty log.
    let mut h = Harness::sqlite(false, |_| {});
    let folder = h.folder().unwrap().to_owned();
    let (database, options) = (h.database.clone(), h.options());
    h.store = Store::open(options.clone()).unwrap();
    let empty = testkit::stores::TempFolder::new();
    let other = Database::Sqlite(empty.path().join("other.db"));
    h.store = Store::open(store::Options { database: other, ..options.clone() }).unwrap();

    let script = format!("trap '' XFSZ; ulimit -f {FILE_BLOCKS_MAX}; exec \"$@\"");
    let test =
        "faults::an_error_at_commit_ends_the_process_and_a_new_start_finds_what_was_acknowledged";
    let child = Command::new("sh")
        .args(["-c", &script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(FOLDER, &folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr).into_owned();
    assert_eq!(child.status.code(), Some(FATAL), "{said}");
    let fatal = std::fs::read_to_string(folder.join("fatal")).unwrap();
    assert!(fatal.contains("could not commit"), "{fatal}");

    let acknowledged = std::fs::read_to_string(folder.join("acknowledged")).unwrap();
    let mut wanted: Vec<String> =
        acknowledged.lines().map(|line| hex(parse_id(line).unwrap())).collect();
    wanted.sort_unstable();
    assert!(wanted.len() > 20, "{}", wanted.len());
    h.store = Store::open(options).unwrap();
    assert_eq!(bodies(&database), wanted);
    assert_eq!(change_seq(&h), i64::try_from(wanted.len()).unwrap());
    let (later, put_later) = put(&h, "later");
    h.write(put_later).unwrap();
    assert!(is_stored(&h, later));
    assert_eq!(Raw::open(&database).texts("PRAGMA integrity_check"), ["ok"]);
}
