//! Illegal statements made from domain's own tables, one by one: each is refused on both engines, and the
//! row is what it was (DEL-03, DEL-08, DEL-10).

use domain::Machine;
use domain::state::{FROZEN, MACHINES};
use testkit::stores::each_engine;

use crate::guards::{columns, force, rows};
use crate::raw::Raw;

/// A table and its rows as they stand, every column of them.
fn whole(raw: &mut Raw, table: &str) -> Vec<String> {
    let sql = match raw {
        Raw::Sqlite(_) => {
            let all: Vec<String> =
                columns(raw, table).iter().map(|column| format!("quote({column})")).collect();
            format!("SELECT {} FROM {table} ORDER BY 1", all.join(" || ',' || "))
        }
        Raw::Postgres(_) => format!("SELECT t::text FROM {table} t ORDER BY 1"),
    };
    raw.texts(&sql)
}

/// Runs a statement that must be refused with these words, and looks at its table before and after.
fn refused(raw: &mut Raw, table: &str, sql: &str, words: &str) {
    let before = whole(raw, table);
    let outcome = raw.run(sql);
    let note = format!("{}: {sql}: {outcome:?}", raw.name());
    assert!(outcome.is_err_and(|error| error.contains(words)), "{note}");
    assert_eq!(whole(raw, table), before, "{note}");
}

/// Every move that the machine does not have, from every state of it.
fn illegal_moves(raw: &mut Raw, machine: &Machine) -> usize {
    let table = machine.table;
    let mut count = 0;
    for from in machine.states {
        force(raw, machine, from);
        for to in machine.states.iter().filter(|to| !machine.allows(from, to)) {
            let also =
                if table == "wait" && *to == "satisfied" { ", satisfied_by = id" } else { "" };
            let sql = format!("UPDATE {table} SET state = '{to}'{also} WHERE state = '{from}'");
            refused(raw, table, &sql, &format!("{table} may not move that way"));
            count += 1;
        }
    }
    force(raw, machine, machine.initial[0]);
    count
}

/// Every first state that the machine does not have, in a new row that is else like the one there.
fn illegal_starts(raw: &mut Raw, machine: &Machine) -> usize {
    let table = machine.table;
    let all = columns(raw, table);
    let starts = machine.states.iter().chain(&["unheard_of"]);
    let mut count = 0;
    for first in starts.filter(|first| !machine.initial.contains(first)) {
        let values: Vec<String> = all
            .iter()
            .map(|column| match column.as_str() {
                "state" => format!("'{first}'"),
                "id" => raw.uuid(uuid::Uuid::from_u128(1)),
                other => other.to_owned(),
            })
            .collect();
        let (all, values) = (all.join(", "), values.join(", "));
        let sql = format!("INSERT INTO {table} ({all}) SELECT {values} FROM {table}");
        refused(raw, table, &sql, &format!("{table} may not start that way"));
        count += 1;
    }
    count
}

/// Another value than the column has.
fn other_value(raw: &mut Raw, table: &str, column: &str) -> String {
    let sort = raw.texts(&match raw {
        Raw::Sqlite(_) => {
            format!("SELECT type FROM pragma_table_info('{table}') WHERE name = '{column}'")
        }
        Raw::Postgres(_) => format!(
            "SELECT data_type::text FROM information_schema.columns
             WHERE table_name = '{table}' AND column_name = '{column}'"
        ),
    });
    match (sort[0].as_str(), &*raw) {
        ("TEXT" | "text", _) => format!("COALESCE({table}.{column}, '') || 'x'"),
        ("INTEGER" | "bigint", _) => format!("COALESCE({table}.{column}, 0) + 7"),
        ("BLOB" | "uuid", raw) => raw.uuid(uuid::Uuid::from_u128(7)),
        ("bytea", raw) => raw.bytes(&[7; 32]),
        (other, _) => panic!("{table}.{column} is a {other}"),
    }
}

/// Every written column set anew, set to nothing, along with a legal move, and by an insert that meets it.
fn frozen_columns(raw: &mut Raw, (table, frozen): &(&str, &[&str])) -> usize {
    let words = format!("{table} is written once");
    let machine = MACHINES.iter().find(|machine| machine.table == *table);
    let key = if *table == "action_object" { "action, argument" } else { "id" };
    let mut count = 0;
    for column in *frozen {
        let value = other_value(raw, table, column);
        let mut sets = vec![
            format!("UPDATE {table} SET {column} = {value}"),
            format!(
                "INSERT INTO {table} SELECT * FROM {table} WHERE TRUE
                 ON CONFLICT ({key}) DO UPDATE SET {column} = {value}"
            ),
        ];
        if let Some(machine) = machine {
            let first = machine.initial[0];
            let (_, to) = machine.moves.iter().find(|(from, _)| *from == first).unwrap();
            sets.push(format!("UPDATE {table} SET state = '{to}', {column} = {value}"));
        }
        let set = raw.number(&format!("SELECT COUNT(*) FROM {table} WHERE {column} IS NOT NULL"));
        if set > 0 {
            sets.push(format!("UPDATE {table} SET {column} = NULL"));
        }
        for sql in &sets {
            refused(raw, table, sql, &words);
        }
        count += sets.len();
        // What stays as it is may be written again.
        raw.run(&format!("UPDATE {table} SET {column} = {column}")).unwrap();
    }
    count
}

#[test]
fn every_illegal_statement_is_refused_and_leaves_the_row_as_it_was() {
    each_engine(|h| {
        let mut raw = Raw::beside(&h);
        rows(&h, &mut raw);
        let (mut moves, mut starts, mut frozen) = (0, 0, 0);
        for machine in MACHINES {
            moves += illegal_moves(&mut raw, machine);
            starts += illegal_starts(&mut raw, machine);
        }
        for written_once in FROZEN {
            frozen += frozen_columns(&mut raw, written_once);
        }
        let all = moves + starts + frozen;
        eprintln!(
            "{}: {all} illegal statements: {moves} moves, {starts} first states, {frozen} of frozen \
             columns",
            raw.name()
        );
        assert!(all >= 500, "only {all}");
    });
}

#[test]
fn no_statement_of_the_program_writes_a_frozen_column_or_replaces_a_row() {
    let mut updates = 0;
    for sql in store::statements() {
        let text = sql.postgres().split_whitespace().collect::<Vec<_>>().join(" ");
        // A replaced or deleted row would get round the guards.
        assert!(!text.contains("REPLACE"), "{}: {text}", sql.name);
        for machine in MACHINES {
            assert!(!text.contains(&format!("DELETE FROM {} ", machine.table)), "{text}");
        }
        for (table, frozen) in FROZEN {
            assert!(!text.contains(&format!("DELETE FROM {table} ")), "{}: {text}", sql.name);
            let Some(sets) = text.strip_prefix(&format!("UPDATE {table} SET ")) else { continue };
            let sets = sets.split_once(" WHERE ").map_or(sets, |(sets, _)| sets);
            for column in *frozen {
                let set = sets.split(',').any(|set| set.trim().starts_with(&format!("{column} =")));
                assert!(!set, "{}: {text}", sql.name);
            }
            updates += 1;
        }
    }
    assert!(updates > 8, "only {updates} updates of such tables were met");
}
