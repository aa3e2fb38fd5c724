//! The stories, each with its oracle.

use base::Timestamp;
use domain::state::{DutyState, RunState, ScheduleState, WorkItemState};
use store::message::MessageKind;

use crate::story::{Act, Outcome, Story, When};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// Monday 2027-03-01, 07:00 in Hong Kong.
const START: Timestamp = Timestamp::from_micros(1_803_855_600_000_000);

/// All stories.
pub fn all() -> Vec<Story> {
    vec![watch()]
}

const CARD: &str = "Start this duty? Price watch: Look at the price feed each morning. Tell the user \
                    only when the price falls under 100; on Friday tell in any case.";

/// What the person was told, as text, must be exactly this, in any order when it was rough.
fn told(outcome: &Outcome, wanted: &[(MessageKind, &str)]) -> Result<(), String> {
    let mut found: Vec<(&str, &str)> =
        outcome.records.told().iter().map(|(kind, text, _)| (kind.word(), *text)).collect();
    let mut wanted: Vec<(&str, &str)> =
        wanted.iter().map(|(kind, text)| (kind.word(), *text)).collect();
    if outcome.rough {
        found.sort_unstable();
        wanted.sort_unstable();
    }
    same("the person was told", &found, &wanted)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what}:\n  found  {found:?}\n  wanted {wanted:?}"))
    }
}

/// The price watch over two weeks, confirmed by the person, and closed by them at the end.
fn watch() -> Story {
    Story {
        name: "watch",
        about: "the price watch over two weeks, confirmed and in the end closed by the person",
        script: include_str!("../stories/watch.toml"),
        start: START,
        end_ms: 14 * DAY_MS,
        acts: vec![
            (When::At(1_000), Act::Send("Please look at the price feed each morning")),
            (When::Card(MINUTE_MS), Act::Confirm),
            (When::At(12 * DAY_MS), Act::Send("Thanks, the watch is over")),
            (When::Card(MINUTE_MS), Act::Confirm),
        ],
        outages: Vec::new(),
        deadly: None,
        check: |outcome| {
            use MessageKind::{Agent, Notice};
            told(
                outcome,
                &[
                    (Notice, CARD),
                    (Agent, "The price is 97.5, under 100."),
                    (Agent, "It is Friday: the price is 103.8."),
                    (Agent, "The price is 98.4, under 100."),
                    (Agent, "It is Friday: the price is 104.7."),
                    (Notice, "Is \"Price watch\" done? The user says so."),
                ],
            )?;
            let records = &outcome.records;
            same("duties", &records.duty_states(), &vec![DutyState::Closed])?;
            same("schedules", &records.schedule_states(), &vec![ScheduleState::Closed])?;
            // Two messages, ten slots, two decisions that nobody waited for.
            same("items", &records.items(WorkItemState::Done), &14)?;
            same("runs", &records.run_count(RunState::Completed), &12)
        },
    }
}
