//! Every statement prepares on both engines, and none on the hot path scans a table.

use store::{Database, Sql};
use testkit::stores::Harness;

use crate::raw::Raw;

#[test]
fn every_statement_prepares_on_both_engines_and_has_a_name_of_its_own() {
    let mut names: Vec<&str> = store::statements().iter().map(|sql| sql.name).collect();
    assert!(names.len() > 100, "only {} statements", names.len());
    // The sweeper's are made from domain's table and share one.
    names.retain(|name| *name != "stuck");
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
    testkit::stores::each_engine(|h| {
        let mut raw = Raw::beside(&h);
        let mut failures = Vec::new();
        for sql in store::statements() {
            let prepared = match &mut raw {
                Raw::Sqlite(connection) => {
                    connection.prepare(sql.sqlite()).map(|_| ()).map_err(|e| e.to_string())
                }
                Raw::Postgres(client) => {
                    client.prepare(sql.postgres()).map(|_| ()).map_err(|e| format!("{e:?}"))
                }
            };
            failures.extend(prepared.err().map(|error| format!("{}: {error}", sql.name)));
        }
        assert_eq!(failures, Vec::<String>::new(), "{}", raw.name());
    });
}

fn hot() -> Vec<&'static Sql> {
    // The sweeper asks for every owner at every tick.
    let is_hot = |sql: &&Sql| sql.hot || sql.name == "stuck";
    let hot: Vec<_> = store::statements().into_iter().filter(is_hot).collect();
    assert!(hot.len() > 60, "only {} hot statements", hot.len());
    hot
}

/// What is wrong with a plan's line of SQLite, if anything. A walk along an index that covers all that
/// is asked for is fine where the index is partial, since it holds only rows that someone waits for.
fn scans(line: &str, partial: &[String]) -> bool {
    let walks_partial = || partial.iter().any(|index| line.ends_with(&format!("INDEX {index}")));
    line.starts_with("SCAN") && !line.contains("CONSTANT ROW") && !walks_partial()
}

#[test]
fn no_hot_statement_scans_a_table_on_sqlite() {
    let h = Harness::sqlite(false, |_| {});
    let mut raw = Raw::beside(&h);
    let partial = raw.texts("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE%INDEX%WHERE%'");
    assert!(partial.len() > 10, "{partial:?}");
    let Raw::Sqlite(connection) = raw else { unreachable!("a SQLite file") };
    let mut found = Vec::new();
    for sql in hot() {
        let plan = format!("EXPLAIN QUERY PLAN {}", sql.sqlite());
        let mut statement = connection.prepare(&plan).unwrap();
        let lines: Vec<String> =
            statement.raw_query().mapped(|row| row.get(3)).map(|line| line.unwrap()).collect();
        let scanned = lines.into_iter().filter(|line| scans(line, &partial));
        found.extend(scanned.map(|line| format!("{}: {line}: {}", sql.name, sql.sqlite())));
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_check_of_plans_sees_a_scan() {
    let partial = ["wait_due".to_owned()];
    let lines = [
        ("SCAN wait", true),
        ("SCAN wait USING INDEX wait_due", false),
        ("SCAN w USING COVERING INDEX wait_due", false),
        ("SCAN wait USING INDEX sqlite_autoindex_wait_1", true),
        ("SEARCH wait USING INDEX wait_due (due_at<?)", false),
    ];
    for (line, wanted) in lines {
        assert_eq!(scans(line, &partial), wanted, "{line}");
    }
}

/// The lines of a plan of PostgreSQL that read a whole table: a scan, or an index that is followed
/// from end to end though it is not partial.
fn walks(plan: &[String], partial: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, line) in plan.iter().enumerate() {
        let index = ["Scan using ", "Scan Backward using ", "Bitmap Index Scan on "]
            .iter()
            .find_map(|word| line.split_once(word)?.1.split_whitespace().next());
        let bounded = plan.get(at + 1).is_some_and(|next| next.contains("Index Cond:"));
        let whole = index.is_some_and(|index| !bounded && !partial.iter().any(|p| p == index));
        if whole || line.contains("Seq Scan") {
            found.push(line.trim().to_owned());
        }
    }
    found
}

#[test]
fn no_hot_statement_scans_a_table_on_postgresql() {
    let Some(h) = Harness::postgres(false, |_| {}) else { return };
    let Database::Postgres(_) = &h.database else { unreachable!("a PostgreSQL database") };
    let mut raw = Raw::beside(&h);
    let partial = raw.texts("SELECT indexname::text FROM pg_indexes WHERE indexdef LIKE '%WHERE%'");
    // With scans priced out of every choice, a plan that has one has no index to use.
    raw.run("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off").unwrap();
    let mut found = Vec::new();
    for (at, sql) in hot().into_iter().enumerate() {
        raw.run(&format!("PREPARE plan_{at} AS {}", sql.postgres())).unwrap();
        let Raw::Postgres(client) = &mut raw else { unreachable!("a PostgreSQL database") };
        let parameters = client.prepare(sql.postgres()).unwrap().params().len();
        let nulls = match vec!["NULL"; parameters].join(", ") {
            nulls if nulls.is_empty() => nulls,
            nulls => format!("({nulls})"),
        };
        let lines = raw.texts(&format!("EXPLAIN EXECUTE plan_{at}{nulls}"));
        let text = sql.postgres();
        let scanned = walks(&lines, &partial).into_iter();
        found.extend(scanned.map(|line| format!("{}: {line}: {text}", sql.name)));
    }
    assert_eq!(found, Vec::<String>::new());
    raw.run("PREPARE scan AS SELECT 1 FROM event WHERE disposition = $1").unwrap();
    let plan = raw.texts("EXPLAIN EXECUTE scan(NULL)");
    assert_eq!(walks(&plan, &partial).len(), 1, "the check sees one: {plan:?}");
    raw.run("PREPARE walk AS SELECT external_id FROM event WHERE disposition = $1 ORDER BY id")
        .unwrap();
    let plan = raw.texts("EXPLAIN EXECUTE walk(NULL)");
    assert_eq!(walks(&plan, &partial).len(), 1, "and a walk of a whole index: {plan:?}");
}
