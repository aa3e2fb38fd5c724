//! The schema's second wall: one trigger per table, generated from domain's transition tables, refuses
//! illegal moves and illegal first states, whatever the statement was.

use domain::Machine;

/// The statements that (re)install the guard of one machine on SQLite.
pub(crate) fn sqlite(machine: &Machine) -> String {
    let table = machine.table;
    format!(
        "DROP TRIGGER IF EXISTS {table}_state_moves;
         CREATE TRIGGER {table}_state_moves BEFORE UPDATE OF state ON {table}
         WHEN OLD.state <> NEW.state AND (OLD.state || '>' || NEW.state) NOT IN ({moves})
         BEGIN SELECT RAISE(ABORT, '{table} may not move that way'); END;
         DROP TRIGGER IF EXISTS {table}_state_first;
         CREATE TRIGGER {table}_state_first BEFORE INSERT ON {table}
         WHEN NEW.state NOT IN ({initial})
         BEGIN SELECT RAISE(ABORT, '{table} may not start that way'); END;",
        moves = moves(machine),
        initial = initial(machine),
    )
}

/// The statements that (re)install the guard of one machine on PostgreSQL.
pub(crate) fn postgres(machine: &Machine) -> String {
    let table = machine.table;
    format!(
        "CREATE OR REPLACE FUNCTION {table}_state_guard() RETURNS trigger LANGUAGE plpgsql AS $guard$
         BEGIN
           IF TG_OP = 'INSERT' THEN
             IF NEW.state NOT IN ({initial}) THEN
               RAISE EXCEPTION '{table} may not start that way';
             END IF;
           ELSIF OLD.state <> NEW.state AND (OLD.state || '>' || NEW.state) NOT IN ({moves}) THEN
             RAISE EXCEPTION '{table} may not move that way';
           END IF;
           RETURN NEW;
         END $guard$;
         DROP TRIGGER IF EXISTS {table}_state_moves ON {table};
         CREATE TRIGGER {table}_state_moves BEFORE INSERT OR UPDATE OF state ON {table}
         FOR EACH ROW EXECUTE FUNCTION {table}_state_guard();",
        moves = moves(machine),
        initial = initial(machine),
    )
}

/// The statements that (re)install what keeps written columns as they are, on SQLite.
pub(crate) fn frozen_sqlite((table, columns): &(&str, &[&str])) -> String {
    let same: Vec<String> = columns.iter().map(|c| format!("OLD.{c} IS NOT NEW.{c}")).collect();
    format!(
        "DROP TRIGGER IF EXISTS {table}_frozen;
         CREATE TRIGGER {table}_frozen BEFORE UPDATE OF {of} ON {table} WHEN {changed}
         BEGIN SELECT RAISE(ABORT, '{table} is written once'); END;",
        of = columns.join(", "),
        changed = same.join(" OR "),
    )
}

/// The same on PostgreSQL.
pub(crate) fn frozen_postgres((table, columns): &(&str, &[&str])) -> String {
    let same: Vec<String> =
        columns.iter().map(|c| format!("OLD.{c} IS DISTINCT FROM NEW.{c}")).collect();
    format!(
        "CREATE OR REPLACE FUNCTION {table}_frozen_guard() RETURNS trigger LANGUAGE plpgsql AS $guard$
         BEGIN
           RAISE EXCEPTION '{table} is written once';
         END $guard$;
         DROP TRIGGER IF EXISTS {table}_frozen ON {table};
         CREATE TRIGGER {table}_frozen BEFORE UPDATE OF {of} ON {table}
         FOR EACH ROW WHEN ({changed}) EXECUTE FUNCTION {table}_frozen_guard();",
        of = columns.join(", "),
        changed = same.join(" OR "),
    )
}

fn moves(machine: &Machine) -> String {
    let moves: Vec<String> =
        machine.moves.iter().map(|(from, to)| format!("'{from}>{to}'")).collect();
    moves.join(", ")
}

fn initial(machine: &Machine) -> String {
    let states: Vec<String> = machine.initial.iter().map(|state| format!("'{state}'")).collect();
    states.join(", ")
}
