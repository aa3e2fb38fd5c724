//! Every statement prepares on both engines, and none on the hot path scans a table.

use domain::Custody;
use domain::state::CUSTODY;
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

/// Hot statements that follow a partial index from its start, which holds only what waits, and why.
const WALKS: [(&str, &str); 5] = [
    // In the order of the index, up to the limit.
    ("work_item.UNROUTED", "work_item_unrouted"),
    // Every session with work is looked at, to put people first.
    ("session.CLAIMABLE", "work_item_pending"),
    ("session.ABANDONED", "run_open"),
    // Up to its limit.
    ("gauge.WAITING", "run_open"),
    ("gauge.WAITING", "duty_open"),
];

/// Whether a line of a plan of SQLite reads a whole table, or a whole index without need. SQLite also
/// calls it a search when it follows an index, or a table, for a MIN.
fn scans(name: &str, lines: &[String], at: usize, partial: &[String]) -> bool {
    let line = &lines[at];
    // The rows of a subquery, whose own lines say how they are found.
    let is_part = |part: &str| lines[..at].iter().any(|l| *l == format!("CO-ROUTINE {part}"));
    if line.strip_prefix("SCAN ").is_some_and(is_part) {
        return false;
    }
    let known = |index: &str| {
        let custodian = CUSTODY.iter().any(|custody| custody.index == index);
        WALKS.contains(&(name, index)) || (name == "stuck" && custodian)
    };
    let walks = |index: &String| {
        let covers = line.ends_with(&format!("COVERING INDEX {index}"));
        covers || (line.ends_with(&format!(" INDEX {index}")) && known(index))
    };
    let reads = line.starts_with("SCAN") || line.starts_with("SEARCH");
    let is_bounded = line.starts_with("SEARCH") && line.contains('(');
    reads && !is_bounded && !line.contains("CONSTANT ROW") && !partial.iter().any(walks)
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
        let scanned = (0..lines.len()).filter(|at| scans(sql.name, &lines, *at, &partial));
        found.extend(scanned.map(|at| format!("{}: {}: {}", sql.name, lines[at], sql.sqlite())));
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_check_of_plans_sees_a_scan() {
    let partial = ["wait_due".to_owned(), "run_open".to_owned()];
    let lines = [
        ("SCAN wait", true),
        ("SEARCH wait", true),
        ("SCAN wait USING INDEX wait_due", true),
        ("SCAN w USING COVERING INDEX wait_due", false),
        ("SCAN r USING INDEX run_open", false),
        ("SCAN wait USING INDEX sqlite_autoindex_wait_1", true),
        ("SEARCH wait USING COVERING INDEX wait_due", false),
        ("SEARCH wait USING INDEX wait_due (due_at<?)", false),
        ("USE TEMP B-TREE FOR ORDER BY", false),
        ("CO-ROUTINE waiting", false),
        ("SCAN waiting", false),
        ("SCAN wait", true),
    ];
    let (lines, wanted): (Vec<_>, Vec<_>) =
        lines.into_iter().map(|(line, wanted)| (line.to_owned(), wanted)).unzip();
    for (at, wanted) in wanted.into_iter().enumerate() {
        assert_eq!(scans("session.ABANDONED", &lines, at, &partial), wanted, "{}", lines[at]);
    }
}

#[test]
fn the_sweeper_asks_by_the_custodians_index() {
    let h = Harness::sqlite(false, |_| {});
    let Raw::Sqlite(connection) = Raw::beside(&h) else { unreachable!("a SQLite file") };
    let mut asked = 0;
    for sql in store::statements().into_iter().filter(|sql| sql.name == "stuck") {
        let held = |custody: &&Custody| {
            sql.sqlite().contains(&format!("FROM {} ", custody.table))
                && sql.sqlite().contains(&format!("state = '{}'", custody.state))
        };
        let custody = CUSTODY.iter().find(held).unwrap();
        let plan = format!("EXPLAIN QUERY PLAN {}", sql.sqlite());
        let mut statement = connection.prepare(&plan).unwrap();
        let line: String = statement.raw_query().next().unwrap().unwrap().get(3).unwrap();
        assert!(line.contains(&format!(" INDEX {}", custody.index)), "{custody:?}: {line}");
        asked += 1;
    }
    assert!(asked > 8, "only {asked}");
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

#[test]
fn what_waits_is_counted_alike_on_both_engines() {
    testkit::stores::each_engine(|h| {
        crate::fixtures::stored_duty(&h);
        let owner = h.owner;
        let read = move |tx: &mut store::Tx<'_>| {
            Ok((store::gauge::waiting(tx)?, store::gauge::actions(tx, owner)?))
        };
        let (waiting, actions) = h.read(read).unwrap();
        let duties = ("duties".to_owned(), "open".to_owned(), 1);
        assert_eq!((waiting.len(), waiting.contains(&duties), actions), (13, true, Vec::new()));
    });
}
