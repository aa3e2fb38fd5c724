//! The judge of a case: what is on record of its waits, its events and its messages.

use base::{EventId, SessionId, Timestamp};
use domain::event::{Class, How};
use domain::state::{WaitState, WorkItemState};
use store::event::Event;
use store::wait::Wait;
use store::work_item::WorkItem;

use super::Table;

/// An event with what became of it.
#[derive(Debug)]
struct Judged {
    event: Event,
    item: WorkItem,
    links: Vec<(SessionId, How, Timestamp)>,
}

impl Judged {
    /// Whether a run of this lane had it in its input, and the model read that.
    fn was_read_in(&self, lane: SessionId) -> bool {
        let WorkItem { state, session, run, read_at, .. } = &self.item;
        *state == WorkItemState::Done
            && *session == Some(lane)
            && run.is_some()
            && read_at.is_some()
    }
}

impl Table {
    pub(super) fn judge(&mut self) {
        let case = self.case;
        let all: Vec<Judged> = self.events.iter().map(|event| self.look(*event)).collect();
        let waits: Vec<Wait> = self.known.values().cloned().collect();
        for wait in &waits {
            self.judge_wait(wait, &all);
        }
        for judged in &all {
            self.judge_event(judged, &waits);
        }
        for message in self.messages.clone() {
            let Judged { item, .. } = self.look(message);
            assert_eq!(
                (item.state, item.read_at.is_some()),
                (WorkItemState::Done, true),
                "case {case}"
            );
        }
    }

    /// Every event of all cases has a disposition.
    pub(super) fn judge_all(&self) {
        let unhandled = self.talk.read(store::event::unhandled);
        assert_eq!(unhandled, 0, "events without a disposition");
    }

    fn look(&self, event: EventId) -> Judged {
        self.talk.read(move |tx, _| {
            let item = store::work_item::of_event(tx, event)?.unwrap();
            let links = store::link::of_event(tx, event)?;
            Ok(Judged {
                event: store::event::get(tx, event)?,
                item,
                links: links.into_iter().map(|link| (link.session, link.how, link.at)).collect(),
            })
        })
    }

    /// Since when an event counts for a wait: since its cause.
    fn since(&self, wait: &Wait) -> Timestamp {
        let cause = wait.cause_event.unwrap();
        self.look(cause).event.received_at
    }

    /// The event of the timer's about a wait.
    fn time_out(&self, wait: &Wait) -> Option<Judged> {
        let external = format!("wait:{}", wait.id);
        let found = self.talk.read(move |tx, owner| {
            let timer = store::owner::get(tx, owner)?.timer_source;
            store::event::by_external(tx, timer, &external)
        });
        found.map(|event| self.look(event.id))
    }

    fn judge_wait(&mut self, wait: &Wait, all: &[Judged]) {
        let case = self.case;
        self.tally.waits += 1;
        let told = self.time_out(wait);
        match wait.state {
            WaitState::Open => panic!("case {case}: {wait:?} never ended"),
            WaitState::Cancelled => {
                self.tally.cancelled += 1;
                assert!(told.is_none() && wait.satisfied_by.is_none(), "case {case}: {wait:?}");
            }
            WaitState::TimedOut => {
                self.tally.timed_out += 1;
                let told = told.unwrap_or_else(|| panic!("case {case}: nobody heard of {wait:?}"));
                assert!(told.was_read_in(wait.session), "case {case}: {told:?}");
                assert_eq!(wait.satisfied_by, None, "case {case}");
                let since = self.since(wait);
                let own = &self.inputs[&wait.run];
                let lost = all.iter().find(|judged| {
                    let Event { id, key, received_at, .. } = &judged.event;
                    let answers = key.as_ref() == Some(&wait.key) && !own.contains(id);
                    answers && *received_at >= since && *received_at < wait.moved_at
                });
                assert!(lost.is_none(), "case {case}: {wait:?} lost its answer {lost:?}");
            }
            WaitState::Satisfied => {
                assert!(told.is_none(), "case {case}: {wait:?} was met, and {told:?}");
                self.judge_met(wait, all);
            }
        }
    }

    fn judge_met(&mut self, wait: &Wait, all: &[Judged]) {
        let case = self.case;
        let by = wait.satisfied_by.unwrap();
        let judged = all.iter().find(|judged| judged.event.id == by);
        let judged =
            judged.unwrap_or_else(|| panic!("case {case}: {wait:?} met by another case's"));
        let event = &judged.event;
        assert_eq!((event.kind.word(), event.key.as_ref()), (&*wait.kind, Some(&wait.key)));
        if wait.moved_at == wait.created_at {
            self.tally.born_met += 1;
            assert!(event.received_at >= self.since(wait), "case {case}: {wait:?} by an older one");
            assert!(
                !self.inputs[&wait.run].contains(&by),
                "case {case}: {wait:?} by its own cause"
            );
            assert!(self.was_told(wait, by), "case {case}: the run of {wait:?} was not told");
            return;
        }
        self.tally.met += 1;
        // What came before its cause but was not routed yet meets it too: it is news to the lane.
        let routed = judged.links.iter().find(|(lane, how, at)| {
            (*lane, *how) == (wait.session, How::Wait) && *at == wait.moved_at
        });
        assert!(routed.is_some(), "case {case}: {wait:?} by {judged:?}");
        let (lane, external) = (wait.session, format!("related:{by}:{}", wait.session));
        let related = self.talk.read(move |tx, owner| {
            let timer = store::owner::get(tx, owner)?.timer_source;
            store::event::by_external(tx, timer, &external)
        });
        let read = judged.was_read_in(lane)
            || related.is_some_and(|event| self.look(event.id).was_read_in(lane));
        assert!(read, "case {case}: the lane of {wait:?} has not read {judged:?}");
    }

    /// Whether the call that registered a wait was answered with the event that had met it.
    fn was_told(&self, wait: &Wait, by: EventId) -> bool {
        let run = wait.run;
        let blocks = self.talk.read(move |tx, _| store::run::blocks(tx, run));
        let answers = blocks.into_iter().filter(|b| b.call_id.as_ref() == Some(&wait.call_id));
        answers.into_iter().any(|block| {
            let text = String::from_utf8(block.bytes.unwrap()).unwrap();
            text.contains("is met already, by event") && text.contains(&by.to_string())
        })
    }

    fn judge_event(&mut self, judged: &Judged, waits: &[Wait]) {
        let case = self.case;
        let Judged { event, item, links } = judged;
        assert_eq!(item.state, WorkItemState::Done, "case {case}: {judged:?}");
        let disposition = event.disposition.as_deref().unwrap();
        let born = |at: Timestamp| {
            waits.iter().any(|wait| {
                wait.satisfied_by == Some(event.id)
                    && wait.moved_at == wait.created_at
                    && wait.created_at < at
            })
        };
        if disposition.starts_with("recorded: ") || disposition.starts_with("ignored: ") {
            self.tally.late += u64::from(disposition.starts_with("recorded: late"));
            assert_eq!((item.run, links.len()), (None, 0), "case {case}: {judged:?}");
            let inside = self.inputs.values().any(|input| input.contains(&event.id));
            assert!(!inside, "case {case}: {judged:?} was in a run's input");
            return;
        }
        assert!(disposition.starts_with("handled by run "), "case {case}: {judged:?}");
        assert_eq!(item.class, Some(Class::External));
        assert!(!links.is_empty(), "case {case}: {judged:?} woke a lane that it does not concern");
        for (lane, how, at) in links {
            match how {
                How::Wait => {
                    let met = waits.iter().filter(|wait| {
                        wait.session == *lane && wait.satisfied_by == Some(event.id)
                    });
                    assert!(met.count() > 0, "case {case}: {judged:?} woke for a finished wait");
                }
                How::Attribution => {
                    assert!(!born(*at), "case {case}: {judged:?} had answered a wait already");
                }
                How::Subscription | How::Dial => panic!("case {case}: {judged:?}"),
            }
        }
    }
}
