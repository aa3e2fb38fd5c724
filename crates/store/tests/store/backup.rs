//! A backup is the same installation elsewhere, made while others write; what is not as it was written is found.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{Digest, Id as _, Timestamp};
use domain::event::Trust;
use store::backup::{Files, back_up, put_back, verify};
use store::event::NewBody;
use store::{Database, Store, StoreError};
use testkit::stores::{Harness, TempFolder, block_on, options};

use crate::fixtures::*;
use crate::raw::Raw;

const TAKEN: Timestamp = Timestamp::from_micros(1_796_025_600_000_000);

fn of(h: &Harness) -> &Path {
    match &h.database {
        Database::Sqlite(path) => path,
        Database::Postgres(_) => unreachable!("a SQLite file"),
    }
}

fn none() -> std::io::Result<Files> {
    Ok(Files::new())
}

/// Adds a content and an entry of the chain.
fn write(h: &Harness, text: &str) {
    let body = NewBody::text(h.id(), text.to_owned(), "test".to_owned(), Trust::User);
    let owner = h.owner;
    h.write(move |tx| {
        store::event::put_body(tx, body)?;
        tx.audit(None, "test", owner, Some(Digest::of(b"test")));
        Ok(())
    })
    .unwrap();
}

#[test]
fn backups_that_are_made_while_others_write_are_sound_and_go_on_elsewhere() {
    let h = Harness::sqlite(false, |_| {});
    stored_duty(&h);
    let folder = TempFolder::new();
    let (done, folder) = (AtomicBool::new(false), folder.path());
    let key = || Ok(Files::from([("key".to_owned(), b"hunter2-key".to_vec())]));
    let mut counts = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0.. {
                write(&h, &format!("text {n} {}", "long ".repeat(200)));
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for n in 0..8 {
            let file = folder.join(format!("{n}.backup"));
            back_up(of(&h), &file, TAKEN, key).unwrap();
            let sound = verify(&file).unwrap();
            assert_eq!((sound.taken_at, sound.owners, sound.files), (TAKEN, 1, 1));
            counts.push(sound.audited);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(counts.is_sorted() && counts[0] < counts[7], "it was written meanwhile: {counts:?}");

    let again = back_up(of(&h), &folder.join("7.backup"), TAKEN, none);
    assert!(matches!(again, Err(StoreError::Open(_))), "{again:?}");
    let (from, to) = (folder.join("7.backup"), folder.join("adjutant.db"));
    assert_eq!(put_back(&from, &to).unwrap(), key().unwrap());
    let secret = std::fs::read(&to).unwrap().windows(11).any(|bytes| bytes == b"hunter2-key");
    assert!(!secret, "in its own file alone");
    let opened = options(Database::Sqlite(to), h.clock.clone(), &h.ids, true);
    let store = Store::open(opened).unwrap();
    let owner = h.owner;
    assert_eq!(block_on(store.read(store::backup::put_back_owners)), Ok(vec![owner]));
    let take = || {
        let txn = h.id::<base::EventId>().uuid();
        block_on(store.write(owner, txn, store::backup::take_mark))
    };
    assert_eq!((take(), take()), (Ok(Some(TAKEN)), Ok(None)));
    assert_eq!(block_on(store.read(store::backup::put_back_owners)), Ok(Vec::new()));
}

#[test]
fn what_is_not_as_it_was_written_is_found() {
    let h = Harness::sqlite(false, |_| {});
    stored_duty(&h);
    write(&h, "a text");
    let folder = TempFolder::new();
    let file = |name: &str| folder.path().join(name);
    back_up(of(&h), &file("whole"), TAKEN, none).unwrap();
    let spoilt = |change: &str| {
        let path = file("spoilt");
        drop(std::fs::remove_file(&path));
        std::fs::copy(file("whole"), &path).unwrap();
        let mut raw = Raw::open(&Database::Sqlite(path.clone()));
        for trigger in raw.texts("SELECT name FROM sqlite_master WHERE type = 'trigger'") {
            raw.run(&format!("DROP TRIGGER {trigger}")).unwrap();
        }
        raw.run("PRAGMA foreign_keys = OFF").unwrap();
        raw.run(change).unwrap();
        drop(raw);
        verify(&path).map(|sound| sound.owners).map_err(|error| error.to_string())
    };
    assert_eq!(spoilt("SELECT 1"), Ok(1));
    let cases = [
        ("UPDATE audit SET verb = 'tests' WHERE n = 1", "entry 1 of the audit chain"),
        ("DELETE FROM audit WHERE n = (SELECT MAX(n) FROM audit)", "of the audit chain"),
        ("UPDATE owner SET audit_head = randomblob(32)", "of the audit chain"),
        ("UPDATE body SET bytes = x'00' WHERE bytes = CAST('a text' AS BLOB)", "the content"),
        ("DELETE FROM session", "name rows that are not there"),
        ("DELETE FROM put_back", "its mark is missing"),
        ("DROP TABLE kept_file", "is no backup"),
        ("UPDATE installation SET oldest_writer = 99", "upgrade the program"),
    ];
    for (change, wanted) in cases {
        let found = spoilt(change).expect_err(change);
        assert!(found.contains(wanted), "{change}: {found}");
    }
    // Pages that are no pages any more.
    let mut bytes = std::fs::read(file("whole")).unwrap();
    let end = bytes.len();
    bytes[end / 2..end / 2 + 5_000].fill(0xA5);
    std::fs::write(file("torn"), bytes).unwrap();
    let torn = verify(&file("torn")).expect_err("torn").to_string();
    assert!(torn.contains("is not sound"), "{torn}");
    let missing = verify(&file("missing")).expect_err("missing").to_string();
    assert!(missing.contains("cannot use"), "{missing}");
    let nowhere = back_up(&file("missing"), &file("made"), TAKEN, none);
    assert!(nowhere.is_err() && !file("made").exists(), "{nowhere:?}");
}
