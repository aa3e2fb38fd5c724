//! The stories, each with its oracle.

mod hotel;
mod outside;

use base::Timestamp;
use domain::state::{DutyState, RunState, ScheduleState, WaitState, WorkItemState};
use model::ModelError;
use store::message::MessageKind;

use crate::story::{Act, Outage, Outcome, Story, When};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// Monday 2027-03-01, 07:00 in Hong Kong.
const START: Timestamp = Timestamp::from_micros(1_803_855_600_000_000);

/// All stories.
pub fn all() -> Vec<Story> {
    let mut all =
        vec![watch(), days(), burst(), waits(), outages(), down(), ends(), poison(), stop()];
    all.extend(outside::all());
    all.extend(hotel::all());
    all
}

/// All variants of a story: most have one, those with a hotel many.
pub fn variants(name: &str) -> Vec<Story> {
    let hotel = hotel::variants().into_iter().filter(|story| story.name == name);
    let plain = all().into_iter().filter(|story| story.name == name && story.hotel.is_none());
    plain.chain(hotel).collect()
}

/// A story in which nothing is told: for an attack.
pub(crate) fn bare(name: &'static str, about: &'static str) -> Story {
    plain(name, about, "name = \"nobody\"")
}

/// A story without anything in it.
fn plain(name: &'static str, about: &'static str, script: &'static str) -> Story {
    Story {
        name,
        about,
        script,
        start: START,
        end_ms: HOUR_MS,
        acts: Vec::new(),
        outages: Vec::new(),
        small: "name = \"sim-small\"",
        small_outages: Vec::new(),
        board: Vec::new(),
        entries: Vec::new(),
        hotel: None,
        deadly: None,
        check: |_| Ok(()),
    }
}

const CARD: &str = "Start this duty? Price watch: Look at the price feed each morning. Tell the user \
                    only when the price falls under 100; on Friday tell in any case.";

/// A hold that nobody has settled for ten minutes.
const HELD: (MessageKind, &str) = (MessageKind::Notice, "Held since …");

/// What the person was told, as text, must be exactly this, in any order when it was rough. A wanted
/// text that ends in `…` goes on as it likes. How often a hold lasts for long is not
/// asked when it was rough: dead workers and slow networks take their time.
fn told<'t>(outcome: &'t Outcome, wanted: &[(MessageKind, &'t str)]) -> Result<(), String> {
    told_in_order(outcome, wanted, !outcome.rough)
}

/// The same where it is said whether the order matters.
fn told_in_order<'t>(
    outcome: &'t Outcome,
    wanted: &[(MessageKind, &'t str)],
    in_order: bool,
) -> Result<(), String> {
    let mut found: Vec<(&str, &str)> =
        outcome.records.told().iter().map(|(kind, text, _)| (kind.word(), *text)).collect();
    for (_, text) in &mut found {
        let begins = |(_, wanted): &&(MessageKind, &str)| {
            wanted.strip_suffix('…').is_some_and(|begin| text.starts_with(begin))
        };
        if let Some((_, wanted)) = wanted.iter().find(begins) {
            *text = wanted;
        }
    }
    let mut wanted: Vec<(&str, &str)> =
        wanted.iter().map(|(kind, text)| (kind.word(), *text)).collect();
    if outcome.rough {
        found.retain(|(_, text)| !text.starts_with("Held since "));
        wanted.retain(|said| *said != (HELD.0.word(), HELD.1));
    }
    if !in_order {
        found.sort_unstable();
        wanted.sort_unstable();
    }
    if outcome.faults {
        // A message that comes late interrupts a turn that has spoken, and its input joins the next
        // turn (QUE-14). A real model sees what it said; a script looks at its own turn only.
        found.dedup_by(|next, before| next.0 == MessageKind::Agent.word() && next == before);
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
        end_ms: 14 * DAY_MS,
        acts: vec![
            (When::At(1_000), Act::Send("Please look at the price feed each morning")),
            (When::Card(MINUTE_MS), Act::Confirm),
            (When::At(12 * DAY_MS), Act::Send("Thanks, the watch is over")),
            (When::Card(MINUTE_MS), Act::Confirm),
        ],
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
        ..plain(
            "watch",
            "the price watch over two weeks, confirmed and in the end closed by the person",
            include_str!("../stories/watch.toml"),
        )
    }
}

/// The same over three days from Wednesday, short enough for every crash point.
fn days() -> Story {
    Story {
        name: "days",
        about: "the price watch from Wednesday to Friday, short enough for every crash point",
        start: START.plus_ms(2 * DAY_MS),
        end_ms: 6 * DAY_MS,
        acts: vec![
            (When::At(1_000), Act::Send("Please look at the price feed each morning")),
            (When::Card(MINUTE_MS), Act::Confirm),
            (When::At(3 * DAY_MS), Act::Send("Thanks, the watch is over")),
            (When::Card(MINUTE_MS), Act::Confirm),
        ],
        check: |outcome| {
            use MessageKind::{Agent, Notice};
            told(
                outcome,
                &[
                    (Notice, CARD),
                    (Agent, "The price is 97.5, under 100."),
                    (Agent, "It is Friday: the price is 103.8."),
                    (Notice, "Is \"Price watch\" done? The user says so."),
                ],
            )?;
            let records = &outcome.records;
            same("duties", &records.duty_states(), &vec![DutyState::Closed])?;
            same("schedules", &records.schedule_states(), &vec![ScheduleState::Closed])?;
            same("items", &records.items(WorkItemState::Done), &7)?;
            same("runs", &records.run_count(RunState::Completed), &5)
        },
        ..watch()
    }
}

/// Three short messages while a run is under way: one turn takes them in.
fn burst() -> Story {
    Story {
        end_ms: HOUR_MS,
        acts: vec![
            (When::At(1_000), Act::Send("plan the dinner")),
            (When::After(4_000), Act::Send("add Li Si")),
            (When::After(300), Act::Send("and Wang Wu")),
            (When::After(300), Act::Send("no onions")),
        ],
        check: |outcome| {
            let records = &outcome.records;
            same("items", &records.items(WorkItemState::Done), &4)?;
            if outcome.rough {
                // Who reads what together is the network's and the crash's doing.
                return match records.told().len() {
                    0 => Err("no answer at all".into()),
                    1..=4 => Ok(()),
                    // What joins the next turn is answered there once more.
                    5..=8 if outcome.faults => Ok(()),
                    n => Err(format!("{n} answers to four messages")),
                };
            }
            told(outcome, &[(MessageKind::Agent, "Dinner with Li Si and Wang Wu, no onions.")])?;
            same("interrupted", &records.run_count(RunState::Interrupted), &1)?;
            same("completed", &records.run_count(RunState::Completed), &1)
        },
        ..plain(
            "burst",
            "three short messages interrupt a run and join one turn",
            include_str!("../stories/burst.toml"),
        )
    }
}

/// A wait that times out, one that is withdrawn, one met later, one born satisfied.
fn waits() -> Story {
    Story {
        end_ms: 4 * DAY_MS,
        acts: vec![
            (When::At(1_000), Act::Send("remember the tea")),
            (When::After(10 * MINUTE_MS), Act::Send("remember the cake")),
            (When::After(10 * MINUTE_MS), Act::Send("forget the cake")),
            // It may be a stop, so the person is asked.
            (When::Held(5_000), Act::Release),
            (When::At(3 * HOUR_MS), Act::Send("a walk each day")),
            (When::Card(MINUTE_MS), Act::Confirm),
            (When::At(5 * HOUR_MS), Act::Send("a run each day")),
            (When::Card(1_000), Act::Decline),
        ],
        check: |outcome| {
            use MessageKind::{Agent, Notice};
            let card = "Start this duty? Move: Ask whether the person moved.";
            told(
                outcome,
                &[
                    (Notice, "Does this mean stop? \"forget the cake\" …"),
                    (Agent, "Time for tea."),
                    (Notice, card),
                    (Agent, "Decided: confirmed."),
                    (Notice, card),
                    (Agent, "Decided: declined."),
                ],
            )?;
            let records = &outcome.records;
            same("timed out", &records.wait_count(WaitState::TimedOut), &1)?;
            same("cancelled", &records.wait_count(WaitState::Cancelled), &1)?;
            same("satisfied", &records.wait_count(WaitState::Satisfied), &2)?;
            // Five messages, one time-out, two decisions.
            same("items", &records.items(WorkItemState::Done), &8)?;
            if outcome.rough {
                return Ok(());
            }
            same("runs", &records.run_count(RunState::Completed), &7)
        },
        ..plain(
            "waits",
            "a wait times out, one is withdrawn, one is met later, one was met before it began",
            include_str!("../stories/waits.toml"),
        )
    }
}

/// The model fails in every way that it has.
fn outages() -> Story {
    let outage = |hours: u64, asks, error| Outage { from_ms: hours * HOUR_MS, asks, error };
    let send = |hours: u64, text| (When::At(hours * HOUR_MS + 1_000), Act::Send(text));
    Story {
        end_ms: 12 * HOUR_MS,
        acts: vec![
            send(0, "one"),
            send(1, "two"),
            send(2, "three"),
            send(3, "four"),
            send(4, "five"),
            send(5, "this is forbidden"),
            (When::Held(MINUTE_MS), Act::Release),
            send(6, "six"),
        ],
        outages: vec![
            outage(0, 6, ModelError::retry("it is busy")),
            outage(1, 4, ModelError::Authentication),
            outage(2, 4, ModelError::Quota),
            outage(3, 1, ModelError::Context),
            outage(4, 1, ModelError::Malformed("half an answer".into())),
        ],
        deadly: None,
        check: |outcome| {
            use MessageKind::{Agent, Notice};
            let away = "I cannot reach the model: …";
            told(
                outcome,
                &[
                    (Notice, away),
                    (Agent, "Heard: one"),
                    (Notice, away),
                    HELD,
                    (Agent, "Heard: two"),
                    (Notice, away),
                    HELD,
                    (Agent, "Heard: three"),
                    (Agent, "Heard: four"),
                    (Agent, "Heard: five"),
                    (Notice, "I gave up on \"this is forbidden\" after 5 tries. …"),
                    (Agent, "Heard: six"),
                ],
            )?;
            let records = &outcome.records;
            same("open faults", &records.faults, &Vec::new())?;
            same("failed items", &records.items(WorkItemState::Failed), &1)?;
            same("done items", &records.items(WorkItemState::Done), &6)
        },
        ..plain(
            "outages",
            "the model is away in every way; the user hears of each outage once, and it heals",
            include_str!("../stories/echo.toml"),
        )
    }
}

/// Down over several slots: one late catch-up, which says so.
fn down() -> Story {
    Story {
        name: "down",
        about: "down over several slots: one late catch-up that says so",
        end_ms: 5 * DAY_MS,
        acts: vec![
            (When::At(1_000), Act::Send("Please look at the price feed each morning")),
            (When::Card(MINUTE_MS), Act::Confirm),
            // Monday's slot comes and goes; Tuesday's to Thursday's are missed.
            (When::At(12 * HOUR_MS), Act::Down(3 * DAY_MS)),
        ],
        check: |outcome| {
            use MessageKind::{Agent, Notice};
            let late = "Late, for Thursday 2027-03-04 (stands for 2 earlier ones that were missed): \
                        the price is 100.6.";
            told(
                outcome,
                &[(Notice, CARD), (Agent, late), (Agent, "It is Friday: the price is 103.8.")],
            )?;
            let told_late: Vec<bool> =
                outcome.records.told().iter().filter(|(_, t, _)| *t == late).map(|t| t.2).collect();
            same("marked late", &told_late, &vec![true])?;
            same("items", &outcome.records.items(WorkItemState::Done), &5)
        },
        ..watch()
    }
}

/// Down across the end of a duty's schedule: the last slot is caught up, and no slot after the end.
fn ends() -> Story {
    Story {
        name: "ends",
        about: "down across the last day of a schedule: its last slot is caught up and none after it",
        script: include_str!("../stories/ends.toml"),
        end_ms: 8 * DAY_MS,
        acts: vec![
            (When::At(1_000), Act::Send("Please look at the price feed each morning")),
            (When::Card(MINUTE_MS), Act::Confirm),
            // After Tuesday's slot, until Friday at noon; the end is on Wednesday.
            (When::At(29 * HOUR_MS), Act::Down(3 * DAY_MS)),
        ],
        check: |outcome| {
            use MessageKind::{Agent, Notice};
            let late = "Late, for Wednesday 2027-03-03: the price is 103.8.";
            told(outcome, &[(Notice, CARD), (Agent, late)])?;
            let states = outcome.records.schedule_states();
            same("schedules", &states, &vec![ScheduleState::Expired])
        },
        ..watch()
    }
}

/// An item whose run always dies ends as a failure that the user sees; what came with it is handled.
fn poison() -> Story {
    Story {
        end_ms: 6 * HOUR_MS,
        acts: vec![
            (When::At(1_000), Act::Send("a deadly word")),
            (When::After(10), Act::Send("a good word")),
            (When::Held(15 * MINUTE_MS), Act::Release),
            (When::At(2 * HOUR_MS), Act::Send("another good word")),
        ],
        outages: Vec::new(),
        deadly: Some("a deadly word"),
        check: |outcome| {
            use MessageKind::{Agent, Notice};
            told_in_order(
                outcome,
                &[
                    HELD,
                    (Notice, "I gave up on \"a deadly word\" after 5 tries. …"),
                    (Agent, "Heard: a good word"),
                    (Agent, "Heard: another good word"),
                ],
                // What is told first depends on how long each death takes.
                false,
            )?;
            same("failed items", &outcome.records.items(WorkItemState::Failed), &1)?;
            same("done items", &outcome.records.items(WorkItemState::Done), &2)
        },
        ..plain(
            "poison",
            "an item whose run always dies is given up, and the user told; others are handled",
            include_str!("../stories/echo.toml"),
        )
    }
}

/// Stopped in the middle of a run, resumed two days later.
fn stop() -> Story {
    Story {
        name: "stop",
        about: "a duty is stopped in the middle of its run and resumed two days later",
        script: include_str!("../stories/slow.toml"),
        start: START.plus_ms(2 * DAY_MS),
        end_ms: 3 * DAY_MS,
        acts: vec![
            (When::At(1_000), Act::Send("Please look at the price feed each morning")),
            (When::Card(MINUTE_MS), Act::Confirm),
            (When::DutyRuns(4_000), Act::Stop),
            (When::At(2 * DAY_MS), Act::Resume),
        ],
        check: |outcome| {
            use MessageKind::{Agent, Notice};
            let records = &outcome.records;
            same("duties", &records.duty_states(), &vec![DutyState::Active])?;
            same("schedules", &records.schedule_states(), &vec![ScheduleState::Active])?;
            let friday = "It is Friday: the price is 103.8.";
            if outcome.rough {
                // A crash may let Wednesday's run end before the stop, or begin after it.
                let wednesday = (Agent, "The price is 97.5, under 100.");
                return told(outcome, &[(Notice, CARD), (Agent, friday)])
                    .or_else(|_| told(outcome, &[(Notice, CARD), wednesday, (Agent, friday)]));
            }
            told(outcome, &[(Notice, CARD), (Agent, friday)])?;
            same("interrupted", &records.run_count(RunState::Interrupted), &1)
        },
        ..watch()
    }
}
