//! The schema's second wall: whatever the statement was, no row takes an illegal state.

use domain::Machine;
use domain::state::{CUSTODY, MACHINES, WorkItemState};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use testkit::stores::{Harness, each_engine};

use crate::effect_records;
use crate::fixtures::*;
use crate::raw::Raw;
use crate::world::*;

/// Leaves one row in every table that has a machine, in a state that leaves every column free: all
/// CHECKs that join a state to another column hold in any state.
pub fn rows(h: &Harness, raw: &mut Raw) {
    let (duty, version) = stored_duty(h);
    let schedule = schedule(h, duty.id, version.id);
    let check = check_run(h, schedule.id, now(h));
    let subscription = subscription(h, &duty, version.id, h.device);
    let (hold, pause) = (hold(h, h.id()), pause(h, None));
    let (event, run) = (event(h, h.device, "m1"), run(h, h.main, 0));
    let item = work_item(h, event.id, WorkItemState::Pending);
    let (wait, proposal) = (wait(h, "call-1"), proposal(h, "call-2", None));
    let message = message(h, "call-3", h.id(), 1);
    let fault = uuid(h);
    let rule = rule(h);
    h.write(move |tx| {
        store::schedule::insert(tx, &schedule)?;
        store::event::accept(tx, &event)?;
        store::work_item::insert(tx, &item)?;
        store::run::insert(tx, &run)?;
        store::wait::insert(tx, &wait)?;
        store::proposal::insert(tx, &proposal)?;
        store::message::insert(tx, &message)?;
        store::check::insert(tx, &check)?;
        store::subscription::insert(tx, &subscription)?;
        store::hold::place(tx, &hold)?;
        store::hold::pause(tx, &pause)?;
        store::rule::insert(tx, &rule)?;
        store::fault::open(tx, fault, "model", "seen").map(|_| ())
    })
    .unwrap();
    effect_rows(h, duty.id, version.id);
    let delivered = "UPDATE message SET delivered_at = 1; UPDATE attempt SET receipt = 'r-1'";
    // Thousands of statements follow, and none has to outlive this machine.
    raw.run(match raw {
        Raw::Sqlite(_) => "PRAGMA synchronous = OFF",
        Raw::Postgres(_) => "SET synchronous_commit = off",
    })
    .unwrap();
    raw.run(&format!("UPDATE work_item SET run = {}; {delivered}", raw.uuid(fault))).unwrap();
    // The owner has two ways in.
    raw.run(&format!("DELETE FROM source WHERE id = {}", raw.id(h.timer))).unwrap();
    for Machine { table, .. } in MACHINES {
        assert_eq!(raw.number(&format!("SELECT COUNT(*) FROM {table}")), 1, "{table}");
    }
}

/// What an effect leaves behind: its grant, its frozen content, its release and its attempt.
fn effect_rows(h: &Harness, duty: base::DutyId, version: base::TaskVersionId) {
    let grant = effect_records::grant(h, duty, version);
    let mut action = effect_records::stored_action(h, "call-4");
    let approval = store::approval::Approval {
        decided_by: Some(h.user),
        device: Some(h.id()),
        kind: store::owner::PrincipalKind::Policy,
        rests_on: Some(grant.id),
        ..effect_records::approval(h, &action)
    };
    let body = new_body(h, "frozen");
    h.write(move |tx| {
        store::event::put_body(tx, body)?;
        store::grant::insert(tx, &grant)?;
        store::approval::insert(tx, &approval)
    })
    .unwrap();
    let way = effect_records::way_to(domain::state::ActionState::Admitted);
    action = effect_records::moved(h, &action, &way);
    let (attempt, bytes) = (effect_records::attempt(h, &action, 1), effect_records::frozen().bytes);
    let register = move |tx: &mut store::OwnerTx<'_, '_>| {
        store::attempt::register(tx, &mut action, attempt, &bytes).map(Some)
    };
    drop(h.dispatch(register).unwrap());
}

/// Sets a state behind the guards' back, as nothing outside a test can: for the row to start from.
pub fn force(raw: &mut Raw, machine: &Machine, state: &str) {
    let table = machine.table;
    // A wait's `satisfied_by` goes with its state.
    let also = match (table, state) {
        ("wait", "satisfied") => ", satisfied_by = id",
        ("wait", _) => ", satisfied_by = NULL",
        _ => "",
    };
    let update = format!("UPDATE {table} SET state = '{state}'{also};");
    match raw {
        Raw::Sqlite(_) => {
            let trigger = format!("{table}_state_moves");
            let kept = raw
                .texts(&format!("SELECT sql FROM sqlite_schema WHERE name = '{trigger}'"))
                .join(";");
            raw.run(&format!("BEGIN; DROP TRIGGER {trigger}; {update} {kept}; COMMIT")).unwrap();
        }
        Raw::Postgres(_) => {
            let switch = |to| format!("ALTER TABLE {table} {to} TRIGGER {table}_state_moves;");
            raw.run(&format!("{} {update} {}", switch("DISABLE"), switch("ENABLE"))).unwrap();
        }
    }
}

fn state(raw: &mut Raw, machine: &Machine) -> String {
    raw.texts(&format!("SELECT state FROM {}", machine.table)).join(",")
}

/// A plain UPDATE to another state, with what the table's CHECKs want beside it.
fn attempt(raw: &mut Raw, machine: &Machine, to: &str) -> Result<(), String> {
    let also = match (machine.table, to) {
        ("wait", "satisfied") => ", satisfied_by = id",
        ("wait", _) => ", satisfied_by = NULL",
        _ => "",
    };
    raw.run(&format!("UPDATE {} SET state = '{to}'{also}", machine.table))
}

#[test]
fn every_legal_move_is_accepted_and_every_other_refused() {
    each_engine(|h| {
        let mut raw = Raw::beside(&h);
        rows(&h, &mut raw);
        let (mut legal, mut illegal) = (0, 0);
        for machine in MACHINES {
            let words: Vec<&str> =
                machine.states.iter().copied().chain(["unheard_of", ""]).collect();
            for from in machine.states {
                for to in &words {
                    force(&mut raw, machine, from);
                    let outcome = attempt(&mut raw, machine, to);
                    let (table, engine) = (machine.table, raw.name());
                    let note = format!("{engine} {table}: {from} > {to}: {outcome:?}");
                    if machine.allows(from, to) {
                        legal += 1;
                        assert_eq!(outcome, Ok(()), "{note}");
                        assert_eq!(state(&mut raw, machine), *to, "{note}");
                    } else {
                        illegal += 1;
                        let refusal = format!("{table} may not move that way");
                        assert!(outcome.as_ref().is_err_and(|e| e.contains(&refusal)), "{note}");
                        assert_eq!(state(&mut raw, machine), *from, "{note}");
                    }
                }
            }
        }
        assert!(legal > 60 && illegal > 100, "{legal} legal, {illegal} illegal");
    });
}

#[test]
fn a_new_row_starts_only_where_its_machine_starts() {
    each_engine(|h| {
        let mut raw = Raw::beside(&h);
        rows(&h, &mut raw);
        for machine in MACHINES {
            let table = machine.table;
            let columns = columns(&mut raw, table);
            for first in machine.states.iter().copied().chain(["unheard_of"]) {
                // A copy of the row that is there, in another first state. A legal one is stopped by
                // a uniqueness rule instead, which comes after the guard.
                let values: Vec<String> = columns
                    .iter()
                    .map(|column| match (column.as_str(), first) {
                        ("state", _) => format!("'{first}'"),
                        ("satisfied_by", "satisfied") => "id".to_owned(),
                        (other, _) => other.to_owned(),
                    })
                    .collect();
                let outcome = raw.run(&format!(
                    "INSERT INTO {table} ({}) SELECT {} FROM {table}",
                    columns.join(", "),
                    values.join(", ")
                ));
                let note = format!("{} {table}: {first}: {outcome:?}", raw.name());
                let refusal = format!("{table} may not start that way");
                let refused = outcome.as_ref().is_err_and(|e| e.contains(&refusal));
                assert_eq!(refused, !machine.initial.contains(&first), "{note}");
                let unique = ["UNIQUE constraint", "duplicate key"];
                let known = |e: &String| unique.iter().any(|text| e.contains(text));
                assert!(refused || outcome.as_ref().is_err_and(known), "{note}");
            }
        }
    });
}

pub fn columns(raw: &mut Raw, table: &str) -> Vec<String> {
    raw.texts(&match raw {
        Raw::Sqlite(_) => format!("SELECT name FROM pragma_table_info('{table}')"),
        Raw::Postgres(_) => format!(
            "SELECT column_name::text FROM information_schema.columns WHERE table_name = '{table}'"
        ),
    })
}

fn tables(raw: &mut Raw) -> Vec<String> {
    raw.texts(match raw {
        Raw::Sqlite(_) => {
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        }
        Raw::Postgres(_) => {
            "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'"
        }
    })
}

#[test]
fn every_state_column_has_a_machine_and_every_custodian_its_index() {
    each_engine(|h| {
        let mut raw = Raw::beside(&h);
        let mut with_state = Vec::new();
        for table in tables(&mut raw) {
            if columns(&mut raw, &table).iter().any(|column| column == "state") {
                with_state.push(table);
            }
        }
        with_state.sort_unstable();
        let mut machines: Vec<&str> = MACHINES.iter().map(|machine| machine.table).collect();
        machines.sort_unstable();
        assert_eq!(with_state, machines, "{}", raw.name());
        let indexes = raw.texts(match raw {
            Raw::Sqlite(_) => {
                "SELECT tbl_name || '.' || name FROM sqlite_schema WHERE type = 'index'"
            }
            Raw::Postgres(_) => {
                "SELECT tablename || '.' || indexname FROM pg_indexes WHERE schemaname = 'public'"
            }
        });
        for custody in CUSTODY {
            let wanted = format!("{}.{}", custody.table, custody.index);
            assert!(indexes.contains(&wanted), "{}: {wanted}", raw.name());
        }
    });
}

/// One statement of a shape that a careless program or person might write.
fn hostile(machine: &Machine, shape: usize, state: &str, number: i64) -> String {
    let table = machine.table;
    match shape {
        0 => format!("UPDATE {table} SET state = '{state}'"),
        1 => format!("UPDATE {table} SET state = '{state}', moved_at = {number}"),
        2 => format!(
            "UPDATE {table} SET moved_at = {number}, state = substr('{state}', 1, {number})"
        ),
        3 => format!("UPDATE {table} SET state = upper('{state}')"),
        4 => format!("UPDATE {table} SET state = '{state}' WHERE created_at >= {number}"),
        5 => format!(
            "UPDATE {table} SET state = CASE WHEN state = '{state}' THEN 'x' ELSE '{state}' END"
        ),
        6 => format!("UPDATE {table} SET state = state || '{state}'"),
        7 => format!("UPDATE {table} SET state = NULL"),
        8 => format!("UPDATE {table} SET state = (SELECT MAX('{state}') FROM {table})"),
        9 => format!("INSERT INTO {table} SELECT * FROM {table} ON CONFLICT DO NOTHING"),
        10 => format!(
            "INSERT INTO {table} SELECT * FROM {table} WHERE TRUE
             ON CONFLICT (id) DO UPDATE SET state = '{state}'"
        ),
        _ => format!(
            "UPDATE {table} SET created_at = {number}; UPDATE {table} SET state = '{state}'"
        ),
    }
}

#[test]
fn random_statements_never_bring_a_row_into_a_state_it_may_not_have() {
    const SHAPES: usize = 12;
    each_engine(|h| {
        let mut raw = Raw::beside(&h);
        rows(&h, &mut raw);
        let words: Vec<&str> =
            MACHINES.iter().flat_map(|m| m.states.iter().copied()).chain(["", "x"]).collect();
        let raw = std::cell::RefCell::new(raw);
        let moved = std::cell::Cell::new(0);
        let config = Config { cases: 1_500, failure_persistence: None, ..Config::default() };
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &testkit::stores::SEED);
        let one =
            (0..MACHINES.len(), 0..SHAPES, 0..words.len(), any::<prop::sample::Index>(), 0..9_i64);
        let run = |(machine, shape, word, own, number): (
            usize,
            usize,
            usize,
            prop::sample::Index,
            i64,
        )| {
            let (machine, mut raw) = (&MACHINES[machine], raw.borrow_mut());
            // Every other time a word of the machine's own.
            let word = if number % 2 == 0 { own.get(machine.states) } else { &words[word] };
            let before = state(&mut raw, machine);
            let sql = hostile(machine, shape, word, number);
            let outcome = raw.run(&sql);
            let after = state(&mut raw, machine);
            prop_assert!(
                machine.allows(&before, &after),
                "{}: {before} > {after} by {sql}: {outcome:?}",
                raw.name()
            );
            moved.set(moved.get() + i32::from(before != after));
            if machine.is_terminal(&after) || number == 0 {
                force(&mut raw, machine, machine.initial[0]);
            }
            Ok(())
        };
        TestRunner::new_with_rng(config, random).run(&one, run).unwrap();
        assert!(moved.get() > 50, "only {} legal moves were met", moved.get());
    });
}
