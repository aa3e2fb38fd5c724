//! The whole path of one effect, exhaustively: every order of people, stages and the world (ADM-16..24).

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "effect_machine/machine.rs"]
mod machine;
#[path = "effect_machine/two_of_each.rs"]
mod two_of_each;

use std::collections::{HashMap, HashSet};

use domain::state::ActionState;
use machine::{Event, State, Way, check};

/// Everything that can happen to one action with one dispatcher.
const EVENTS: [Event; 29] = [
    Event::Pause,
    Event::Resume,
    Event::Hold,
    Event::StopMessage,
    Event::Release,
    Event::Approve,
    Event::Deny,
    Event::BumpVersion,
    Event::StopAll,
    Event::LiftAll,
    Event::UseUp,
    Event::Expire,
    Event::Late,
    Event::Settle,
    Event::Review(false),
    Event::Review(true),
    Event::Admit,
    Event::Recheck,
    Event::Attempt(0),
    Event::Send(0, Way::Books),
    Event::Send(0, Way::Refuses),
    Event::Send(0, Way::Lies),
    Event::Send(0, Way::Errs),
    Event::Send(0, Way::Crawls),
    Event::Answer(0),
    Event::Lose(0),
    Event::Arrive,
    Event::GiveUp,
    Event::Look(true),
];

/// One step, with everything that it must keep.
fn step(was: &State, event: Event) -> State {
    let is = was.after(event);
    if let Err(rule) = check(was, event, &is) {
        panic!("{rule}\n{event:?}\n{was:#?}\n{is:#?}");
    }
    is
}

/// All states that so many steps reach, each with every step out of it.
fn reached(steps: usize) -> (HashSet<State>, usize) {
    let mut seen: HashSet<State> = HashSet::from([State::new()]);
    let (mut edge, mut taken) = (vec![State::new()], 0);
    for _ in 0..steps {
        let mut next = Vec::new();
        for was in &edge {
            for event in EVENTS {
                let is = step(was, event);
                taken += 1;
                if seen.insert(is) {
                    next.push(is);
                }
            }
        }
        edge = next;
    }
    assert!(steps < FOR_EVER || edge.is_empty(), "there is more to reach");
    (seen, taken)
}

/// More steps than there are to take.
const FOR_EVER: usize = 100;

#[test]
fn every_state_that_eight_steps_reach_keeps_every_rule_and_so_do_all_others() {
    for steps in [8, FOR_EVER] {
        let (seen, taken) = reached(steps);
        let mut by_state: HashMap<ActionState, u32> = HashMap::new();
        for state in &seen {
            *by_state.entry(state.action).or_default() += 1;
        }
        let mut counts: Vec<_> = by_state.into_iter().collect();
        counts.sort_unstable();
        eprintln!("up to {steps} steps: {} distinct states, {taken} steps, {counts:?}", seen.len());
        // Of all states only "withdrawn" is not met: nobody takes the action back here.
        assert_eq!(counts.len(), ActionState::MACHINE.states.len() - 1);
        assert!(seen.iter().any(|s| s.contradicted) && seen.iter().any(|s| s.attempts == 2));
    }
}

#[test]
fn the_four_cases_of_a_stop() {
    let run = |events: &[Event]| {
        let end = events.iter().fold(State::new(), |state, event| step(&state, *event));
        (end.action, end.sent, end.booked)
    };
    let released = [Event::Review(false), Event::Approve];
    let then = |events: &[Event]| run(&[&released, events].concat());
    let go = [Event::Admit, Event::Attempt(0), Event::Send(0, Way::Books), Event::Answer(0)];
    assert_eq!(then(&go), (ActionState::Accepted, 1, 1));
    // Before the first commit it stays as it was, and goes on when the pause is lifted.
    let stopped = [&[Event::Pause], &go[..]].concat();
    assert_eq!(then(&stopped), (ActionState::Authorized, 0, 0));
    let resumed = [&stopped[..], &[Event::Resume], &go].concat();
    assert_eq!(then(&resumed), (ActionState::Accepted, 1, 1));
    // Between the two a pause cancels for good and a hold sends back.
    let between = |stop, lift| then(&[&[Event::Admit, stop], &go[1..], &[lift], &go].concat());
    assert_eq!(between(Event::Pause, Event::Resume), (ActionState::Cancelled, 0, 0));
    assert_eq!(between(Event::StopAll, Event::LiftAll), (ActionState::Cancelled, 0, 0));
    assert_eq!(between(Event::Hold, Event::Release), (ActionState::Accepted, 1, 1));
    // After the second it is sent.
    let after = [&go[..2], &[Event::Pause], &go[2..]].concat();
    assert_eq!(then(&after), (ActionState::Accepted, 1, 1));
    // A tap during a pause says nothing later; one during a hold counts once that is released.
    let tapped =
        |stop, lift| run(&[&[Event::Review(false), stop, Event::Approve, lift], &go[..]].concat());
    assert_eq!(tapped(Event::Pause, Event::Resume), (ActionState::AwaitingApproval, 0, 0));
    assert_eq!(tapped(Event::Hold, Event::Release), (ActionState::Accepted, 1, 1));
    // What never left goes out under the same approval, once more through both cut lines.
    let late = [Event::Admit, Event::Attempt(0), Event::Late, Event::Send(0, Way::Books)];
    assert_eq!(then(&late), (ActionState::Blocked, 0, 0));
    assert_eq!(then(&[&late[..], &go].concat()), (ActionState::Accepted, 1, 1));
    // What may have happened does not.
    let lost = [&go[..3], &[Event::Lose(0)], &go].concat();
    assert_eq!(then(&lost), (ActionState::Unknown, 1, 1));
    let settled = [&lost[..], &[Event::Late, Event::Settle, Event::Look(true)]].concat();
    assert_eq!(then(&settled), (ActionState::Effective, 1, 1));
}

/// Splitmix64: a seed that replays.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % bound as u64).unwrap()
    }
}

#[test]
fn two_hundred_thousand_random_longer_runs_keep_every_rule() {
    let mut ends: HashMap<ActionState, u32> = HashMap::new();
    let mut seen = HashSet::new();
    for seed in 0..200_000 {
        let mut random = Random(seed);
        let mut state = State::new();
        // Most runs must get somewhere: the stages are livelier than the people.
        for _ in 0..40 {
            let event = match random.below(3) {
                0 => EVENTS[random.below(EVENTS.len())],
                _ => EVENTS[14 + random.below(EVENTS.len() - 14)],
            };
            let approve = state.action == ActionState::AwaitingApproval && random.below(2) == 0;
            state = step(&state, if approve { Event::Approve } else { event });
        }
        seen.insert(state);
        *ends.entry(state.action).or_default() += 1;
    }
    let mut ends: Vec<_> = ends.into_iter().collect();
    ends.sort_unstable();
    eprintln!("200000 runs of 40 steps, {} distinct ends: {ends:?}", seen.len());
    let ended = |state| ends.iter().any(|(found, n)| *found == state && *n > 100);
    for state in [ActionState::Effective, ActionState::Blocked, ActionState::Cancelled] {
        assert!(ended(state), "{state}");
    }
}
