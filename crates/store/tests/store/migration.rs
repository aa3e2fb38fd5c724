//! Opening brings the schema up to date once, and an older program keeps its hands off.

use store::{Store, StoreError};
use testkit::stores::each_engine;

use crate::raw::Raw;

/// The whole schema as text, in order of names.
fn schema(raw: &mut Raw) -> Vec<String> {
    raw.texts(match raw {
        Raw::Sqlite(_) => "SELECT COALESCE(sql, name) FROM sqlite_schema ORDER BY type, name",
        Raw::Postgres(_) => {
            "SELECT line FROM (
               SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable
                 FROM information_schema.columns WHERE table_schema = 'public'
               UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
               UNION ALL SELECT tgrelid::regclass || ' ' || tgname || ' ' || oid FROM pg_trigger
               UNION ALL SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid)
                 FROM pg_constraint WHERE conrelid <> 0
             ) AS lines (line) ORDER BY line"
        }
    })
}

#[test]
fn opening_again_changes_nothing() {
    each_engine(|h| {
        let mut raw = Raw::beside(&h);
        let before = schema(&mut raw);
        assert!(before.len() > 50, "{}", before.len());
        let h = h.reopen(|_| {});
        assert_eq!(schema(&mut raw), before);
        let numbers = [
            raw.number("SELECT schema_number FROM installation"),
            raw.number("SELECT oldest_writer FROM installation"),
            raw.number("SELECT COUNT(*) FROM installation"),
        ];
        assert_eq!(numbers, [1, 1, 1]);
        let owner = h.owner;
        assert_eq!(h.read(move |tx| store::owner::get(tx, owner)), Ok(h.owner_record()));
    });
}

#[test]
fn a_database_that_needs_a_newer_program_is_refused_with_the_remedy() {
    each_engine(|h| {
        let mut raw = Raw::beside(&h);
        raw.run("UPDATE installation SET schema_number = 99, oldest_writer = 98").unwrap();
        let text = "the database needs a newer adjutant (schema 98, this one knows 1); \
                    upgrade the program";
        assert_eq!(Store::open(h.options()).err(), Some(StoreError::Open(text.into())));
        // A newer schema beside which this program may still write.
        raw.run("UPDATE installation SET oldest_writer = 1").unwrap();
        assert_eq!(Store::open(h.options()).err(), None);
        assert_eq!(raw.number("SELECT schema_number FROM installation"), 99);
    });
}

#[test]
fn two_nodes_that_open_an_empty_database_at_once_migrate_it_once() {
    let Some(server) = testkit::postgres::TestPostgres::start_or_skip() else { return };
    let database = store::Database::Postgres(server.database().unwrap());
    let clock = std::sync::Arc::new(testkit::clock::FakeClock::new(testkit::stores::START));
    let ids = base::IdSource::new(testkit::stores::SEED);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let open = |_| {
            let options = testkit::stores::options(database.clone(), clock.clone(), &ids, false);
            scope.spawn(move || Store::open(options).err())
        };
        let nodes: Vec<_> = (0..4).map(open).collect();
        nodes.into_iter().map(|node| node.join().unwrap()).collect()
    });
    assert_eq!(answers, vec![None; 4]);
    assert_eq!(Raw::open(&database).number("SELECT COUNT(*) FROM installation"), 1);
}
