//! Rows that have stayed in a state for longer than `domain::state::CUSTODY` allows.

use base::{OwnerId, Timestamp};
use domain::Custody;
use domain::state::Alarm;

use crate::error::Result;
use crate::sql::{Source, Sql};
use crate::tx::Tx;
use crate::value::params;

/// One statement for each line of the table that has an alarm.
pub(crate) fn statements() -> &'static [(Custody, Sql)] {
    static MADE: std::sync::OnceLock<Vec<(Custody, Sql)>> = std::sync::OnceLock::new();
    MADE.get_or_init(|| domain::state::CUSTODY.iter().filter_map(statement).collect())
}

fn statement(custody: &Custody) -> Option<(Custody, Sql)> {
    let column = match custody.alarm {
        Alarm::AfterMs(_) => "moved_at",
        Alarm::AfterDueMs { column, .. } => column,
        Alarm::Never(_) => return None,
    };
    // The index's own condition word for word, without which SQLite does not use it.
    let states: Vec<String> = domain::state::CUSTODY
        .iter()
        .filter(|other| (other.table, other.index) == (custody.table, custody.index))
        .map(|other| format!("'{}'", other.state))
        .collect();
    let held = match states.len() {
        1 => String::new(),
        _ => format!("state IN ({}) AND ", states.join(", ")),
    };
    // COALESCE keeps the planner from an index of all that the owner ever had: the custodian's holds
    // only what still waits.
    let text = format!(
        "SELECT MIN({column}) FROM {} WHERE {held}state = '{}' AND {column} <= $2
           AND COALESCE(owner, owner) = $1{}",
        custody.table,
        custody.state,
        kept_back(custody)
    );
    Some((*custody, Sql::built("stuck", Source::Built(text))))
}

/// The operator's stop.
const STOPPED: &str = "(SELECT i.system_stop FROM installation i WHERE i.id = 1)";

/// What is not stuck but waits by somebody's word: the same that no stage takes up under a stop or a pause.
fn kept_back(custody: &Custody) -> String {
    let paused = |duty: &str| {
        format!(
            "EXISTS (SELECT 1 FROM pause p WHERE p.owner = $1 AND p.state = 'active'
               AND (p.duty IS NULL OR p.duty = {duty}))"
        )
    };
    match (custody.table, custody.state) {
        ("work_item", "pending" | "claimed") => {
            let duty = "(SELECT d.id FROM duty d WHERE d.session = work_item.session)";
            format!(" AND (class = 'user' OR NOT ({STOPPED} OR {}))", paused(duty))
        }
        ("run", "lost") => format!(" AND NOT ({STOPPED} OR {})", paused("run.duty")),
        ("work_item", "attributing") | ("check_run", "due") | ("action", "proposed") => {
            format!(" AND NOT {STOPPED}")
        }
        _ => String::new(),
    }
}

/// Since when the owner's oldest row of this kind is overdue; `None` if none is.
pub fn oldest(
    tx: &mut Tx<'_>,
    owner: OwnerId,
    custody: &Custody,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let allowed = match custody.alarm {
        Alarm::AfterMs(ms) | Alarm::AfterDueMs { ms, .. } => ms,
        Alarm::Never(_) => return Ok(None),
    };
    let before = now.minus_ms(allowed);
    let Some((_, sql)) = statements().iter().find(|(known, _)| known == custody) else {
        return Ok(None);
    };
    tx.row(sql, params![owner, before])?.map_or(Ok(None), |row| row.get(0))
}
