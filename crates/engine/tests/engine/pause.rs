//! What a pause and the operator's stop hold back: runs, and what a run takes in. A person who speaks is
//! answered all the same, and nothing is lost (PRO-17, QUE-11, OPS-07, P8).

use crate::outside::{Desk, desk, found};
use crate::support::now;
use base::{DutyId, EventId, PauseId, SessionId};
use domain::event::Dial;
use domain::state::WorkItemState;
use engine::control::{self, Changed};
use store::source::SourceKind;

impl Desk {
    fn pause(&self, duty: Option<DutyId>) -> PauseId {
        let device = self.talk.device.clone();
        let paused = now(self
            .talk
            .cx
            .write(device.owner, move |cx, tx| control::pause(cx, tx, &device, duty)));
        assert_eq!(paused, Ok(Changed::Done));
        let pauses = self.talk.read(store::hold::pauses);
        pauses.into_iter().find(|pause| pause.duty == duty).unwrap().id
    }

    fn lift(&self, id: PauseId) {
        let device = self.talk.device.clone();
        let lifted =
            now(self.talk.cx.write(device.owner, move |_, tx| control::lift(tx, &device, id)));
        assert_eq!(lifted, Ok(Changed::Done));
    }

    fn auto(&self) {
        let device = self.talk.device.clone();
        let wish = control::Settings { dial: Some(Dial::Auto), ..Default::default() };
        now(self.talk.cx.write(device.owner, move |_, tx| control::settings(tx, &device, &wish)))
            .unwrap();
    }

    fn state(&self, event: EventId) -> WorkItemState {
        self.look(event).1.state
    }

    /// The sessions that a worker would try, once the merge window is over.
    fn would_run(&self) -> Vec<SessionId> {
        let at = base::Clock::now(self.talk.clock.as_ref());
        let found = self.talk.read(move |tx, _| store::session::claimable(tx, at, at, at, 100));
        found.into_iter().map(|claimable| claimable.session).collect()
    }

    /// What the last run of a lane took in.
    fn last_took(&self, session: SessionId) -> Vec<EventId> {
        self.talk.read(move |tx, _| {
            let run = store::run::last(tx, session)?.unwrap();
            let items = store::work_item::of_run(tx, run.id)?;
            Ok(items.into_iter().map(|item| item.event).collect())
        })
    }
}

/// What holds everything back, and its end.
type Stop = (fn(&Desk), fn(&Desk));

const STOPS: [Stop; 2] = [
    (
        |desk| {
            desk.pause(None);
        },
        |desk| {
            let pauses = desk.talk.read(store::hold::pauses);
            desk.lift(pauses[0].id);
        },
    ),
    (
        |desk| {
            desk.talk.system_stop(true);
        },
        |desk| {
            desk.talk.system_stop(false);
        },
    ),
];

#[test]
fn while_everything_is_held_back_the_conversation_answers_its_person_and_nobody_else() {
    for (stop, lift) in STOPS {
        let desk = desk();
        let main = desk.talk.main;
        desk.auto();
        let hub = desk.source(SourceKind::Webhook, "hub");
        desk.talk.say("await webhook hub:never");
        desk.talk.turn();
        stop(&desk);
        let (outside, _) = desk.comes(hub, found("1", None, None, "an offer"));
        // A wait of the conversation times out.
        desk.talk.clock.advance_ms(7 * 3_600_000);
        while now(engine::timer::pass(&desk.talk.cx)).unwrap() {}
        desk.route();
        assert_eq!(desk.would_run(), []);
        assert_eq!(desk.turn(main), 0, "and a claim that came by does not begin either");
        assert_eq!(desk.state(outside.id), WorkItemState::Pending);
        // The person speaks: their message alone is taken in.
        desk.talk.say("good morning");
        assert_eq!(desk.would_run(), [main]);
        assert!(desk.turn(main) > 0);
        let took = desk.last_took(main);
        let kinds: Vec<_> = took.iter().map(|event| desk.look(*event).0.kind).collect();
        assert_eq!(kinds, [domain::event::EventKind::UserMessage]);
        assert_eq!(desk.state(outside.id), WorkItemState::Pending, "kept, and waits");
        assert_eq!(desk.would_run(), []);
        lift(&desk);
        assert_eq!(desk.would_run(), [main]);
        assert!(desk.turn(main) > 0);
        assert_eq!(desk.last_took(main).len(), 2, "the event and the wait");
        assert_eq!(desk.state(outside.id), WorkItemState::Done);
    }
}

#[test]
fn a_paused_duty_is_not_run_and_the_others_are() {
    let desk = desk();
    let hub = desk.source(SourceKind::Webhook, "hub");
    let (paused, quiet) = desk.duty("subscribe to hub for x, wake");
    let (_, loud) = desk.duty("subscribe to hub for y, wake");
    let id = desk.pause(Some(paused));
    let (kept, _) = desk.comes(hub, found("1", None, Some("x"), "one"));
    let (read, _) = desk.comes(hub, found("2", None, Some("y"), "two"));
    assert_eq!(desk.would_run(), [loud]);
    assert_eq!((desk.turn(quiet), desk.turn(loud)), (0, 1));
    let states = [kept.id, read.id].map(|event| desk.state(event));
    assert_eq!(states, [WorkItemState::Pending, WorkItemState::Done]);
    // What waits by the person's own word is not stuck.
    desk.talk.clock.advance_ms(2 * 3_600_000);
    now(engine::sweeper::alarms(&desk.talk.cx)).unwrap();
    let faults = desk.talk.read(store::fault::all_open);
    assert!(!faults.iter().any(|fault| fault.key.starts_with("stuck:work_item")), "{faults:?}");
    desk.lift(id);
    assert_eq!((desk.would_run(), desk.turn(quiet)), (vec![quiet], 1));
    assert_eq!(desk.state(kept.id), WorkItemState::Done);
}

#[test]
fn a_run_that_was_broken_off_goes_on_after_the_stop_or_for_its_person() {
    for (stop, lift) in STOPS {
        // One that took in only what came from outside waits for the end of the stop.
        let desk = desk();
        let main = desk.talk.main;
        desk.auto();
        let hub = desk.source(SourceKind::Webhook, "hub");
        let (outside, _) = desk.comes(hub, found("1", None, None, "an offer"));
        desk.talk.clock.advance_ms(3_000);
        drop(desk.talk.claim().unwrap());
        stop(&desk);
        desk.talk.clock.advance_ms(60_000);
        assert_eq!(desk.would_run(), []);
        assert!(desk.talk.claim().is_none());
        // The person speaks: the run does not go on beside them, and nothing of it is lost.
        desk.talk.say("good morning");
        assert_eq!(desk.would_run(), [main]);
        assert!(desk.turn(main) > 0);
        assert_eq!(desk.last_took(main).len(), 1);
        assert_eq!(desk.state(outside.id), WorkItemState::Pending);
        // One that took in the person's words goes on.
        desk.talk.say("and good day");
        drop(desk.talk.claim().unwrap());
        desk.talk.clock.advance_ms(60_000);
        assert_eq!(desk.would_run(), [main]);
        assert!(desk.turn(main) > 0);
        assert_eq!(desk.would_run(), []);
        lift(&desk);
        assert!(desk.turn(main) > 0);
        assert_eq!(desk.state(outside.id), WorkItemState::Done);
    }
}
