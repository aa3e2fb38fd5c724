//! The same machine under two devices, two dispatchers and a crash: taps are on their way while stages
//! commit, and a dispatcher's memory is lost at any instant.

use domain::state::ActionState;
use stateright::{Checker as _, Model, Property};

use crate::machine::{Event, Hand, State, Way, check};

/// A person's device: taps that it may still make, and the one that has not arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Device {
    left: u8,
    tapped: Option<Event>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Whole {
    state: State,
    devices: [Device; 2],
    crashes_left: u8,
    /// The rule that a step broke.
    broken: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Act {
    Tap(usize, Event),
    Arrives(usize),
    Happens(Event),
}

const TAPS: [Event; 5] = [Event::Pause, Event::Resume, Event::Hold, Event::Approve, Event::Deny];

const HAPPENS: [Event; 12] = [
    Event::StopMessage,
    Event::Release,
    Event::BumpVersion,
    Event::Expire,
    Event::Late,
    Event::Settle,
    Event::Review(false),
    Event::Review(true),
    Event::Admit,
    Event::Recheck,
    Event::GiveUp,
    Event::Look(true),
];

const BY_HAND: [fn(usize) -> Event; 8] = [
    Event::Attempt,
    |hand| Event::Send(hand, Way::Books),
    |hand| Event::Send(hand, Way::Refuses),
    |hand| Event::Send(hand, Way::Errs),
    |hand| Event::Send(hand, Way::Crawls),
    Event::Answer,
    Event::Lose,
    Event::Crash,
];

struct TwoOfEach {
    taps_each: u8,
}

impl Model for TwoOfEach {
    type State = Whole;
    type Action = Act;

    fn init_states(&self) -> Vec<Whole> {
        let device = Device { left: self.taps_each, tapped: None };
        vec![Whole { state: State::new(), devices: [device; 2], crashes_left: 1, broken: None }]
    }

    fn actions(&self, whole: &Whole, acts: &mut Vec<Act>) {
        for (at, device) in whole.devices.iter().enumerate() {
            match device.tapped {
                Some(_) => acts.push(Act::Arrives(at)),
                None if device.left > 0 => acts.extend(TAPS.map(|tap| Act::Tap(at, tap))),
                None => {}
            }
        }
        acts.extend(HAPPENS.map(Act::Happens));
        acts.push(Act::Happens(Event::Arrive));
        for hand in 0..2 {
            acts.extend(BY_HAND.map(|event| Act::Happens(event(hand))));
        }
    }

    fn next_state(&self, was: &Whole, act: Act) -> Option<Whole> {
        let mut next = *was;
        let event = match act {
            Act::Tap(at, tap) => {
                next.devices[at] = Device { left: was.devices[at].left - 1, tapped: Some(tap) };
                return Some(next);
            }
            Act::Arrives(at) => next.devices[at].tapped.take()?,
            Act::Happens(event) => event,
        };
        if let Event::Crash(hand) = event {
            // A dispatcher with nothing in its hands loses nothing.
            if was.state.hands[hand] == Hand::Empty || was.crashes_left == 0 {
                return None;
            }
            next.crashes_left -= 1;
        }
        next.state = was.state.after(event);
        next.broken = was.broken.or(check(&was.state, event, &next.state).err());
        (next != *was).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("every step keeps every rule", |_, w: &Whole| w.broken.is_none()),
            Property::always("at most one effect", |_, w: &Whole| w.state.booked <= 1),
            Property::sometimes("it works", |_, w: &Whole| {
                w.state.action == ActionState::Effective
            }),
            Property::sometimes("a crash leaves it unknown, and there", |_, w: &Whole| {
                let unknown = w.state.action == ActionState::Unknown;
                unknown && w.crashes_left == 0 && w.state.booked == 1
            }),
            Property::sometimes("a stop catches it between the cut lines", |_, w: &Whole| {
                w.state.action == ActionState::Cancelled && w.state.paused
            }),
            Property::sometimes("it is sent again after it did not leave", |_, w: &Whole| {
                w.state.attempts == 2 && w.state.action == ActionState::Effective
            }),
        ]
    }
}

#[test]
fn two_devices_two_dispatchers_and_a_crash_keep_every_rule() {
    let checker = TwoOfEach { taps_each: 1 }.checker().threads(2).spawn_bfs().join();
    eprintln!(
        "two devices, two dispatchers, one crash: {} distinct states, {} in all, {} deep",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth()
    );
    if let Some(path) = checker.discovery("every step keeps every rule") {
        panic!("{:?}\n{path:?}", path.last_state().broken);
    }
    checker.assert_properties();
}
