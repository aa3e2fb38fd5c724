//! However much came from outside, a person's message is in the very next run (QUE-03, QUE-06, QUE-14).

use crate::chance::Rng;
use crate::support::{Talk, now, start};
use base::{Clock as _, EventId, Limits, SourceId, Timestamp};
use domain::event::{Class, EventKind, Trust};
use engine::control::{self, Changed, NewSource};
use engine::intake::{self, Receipt};
use engine::worker::{self, Action, Recorded, Work};
use model::{Answer, Finish, ToolCall};
use testkit::stores::TempFolder;

const EVENTS: usize = 10_000;
const MESSAGES: usize = 200;

/// A message with the time at which its burst window closes.
struct Message {
    event: EventId,
    at: Timestamp,
    closes: Timestamp,
    /// When the run began that has it in its input.
    read: Option<Timestamp>,
}

struct Flood {
    talk: Talk,
    rng: Rng,
    messages: Vec<Message>,
    /// When each step was recorded.
    steps: Vec<Timestamp>,
    _scratch: TempFolder,
}

fn limits() -> Limits {
    Limits {
        window_tokens: 1_500,
        owner_month_micro_usd: i64::MAX,
        unrouted_max: 2 * EVENTS as u64,
        ..Limits::default()
    }
}

impl Flood {
    /// All events wait in the person's own conversation, which is the worst place.
    fn begin() -> Flood {
        let scratch = TempFolder::in_memory().unwrap();
        let talk =
            Talk::open(scratch.path().join("f.db"), start(), 9, "name = \"flood\"", limits());
        let (device, hub): (_, SourceId) = (talk.device.clone(), talk.cx.id());
        let (kind, name) = (store::source::SourceKind::Webhook, "hub".into());
        let new = NewSource { kind, name, config: "{}".into(), every_ms: None, expect_ms: None };
        let by = device.clone();
        let added =
            now(talk.cx.write(by.owner, move |_, tx| control::add_source(tx, &by, hub, new)));
        assert_eq!(added, Ok(Changed::Done));
        let main = talk.main;
        now(talk.cx.write(device.owner, move |cx, tx| {
            for n in 0..EVENTS {
                let incoming = intake::Incoming {
                    source: hub,
                    external_id: n.to_string(),
                    kind: EventKind::Webhook,
                    key: None,
                    topic: None,
                    trust: Trust::Outside,
                    content: intake::Content::text("more", "source:hub"),
                    links: Vec::new(),
                    session: None,
                    duty: None,
                    late: false,
                };
                let Receipt::New { item, .. } = intake::accept(cx, tx, incoming)? else { continue };
                store::work_item::enqueue(tx, item, main, Class::External)?;
            }
            Ok(())
        }))
        .unwrap();
        let (messages, steps) = (Vec::new(), Vec::new());
        Flood { talk, rng: Rng::new(17), messages, steps, _scratch: scratch }
    }

    /// Something takes this long; a message may come meanwhile.
    fn takes(&mut self, low: u64, high: u64) {
        let ms = self.rng.between(low, high);
        let before = self.rng.below(ms);
        self.talk.clock.advance_ms(before);
        if self.messages.len() < MESSAGES && self.rng.one_in(5) {
            self.say();
        }
        self.talk.clock.advance_ms(ms - before);
    }

    fn say(&mut self) {
        let (device, id) = (self.talk.device.clone(), self.talk.cx.uuid());
        let said = now(self.talk.cx.write(device.owner, move |cx, tx| {
            intake::message(cx, tx, &device, id, "and what of this?")
        }));
        let Ok(Receipt::New { event, .. }) = said else { panic!("{said:?}") };
        let at = self.talk.clock.now();
        // The window of the first of a burst is not extended by the others.
        let first = self.messages.iter().find(|message| message.read.is_none());
        let closes = first.map_or(at.plus_ms(limits().burst_ms), |first| first.closes);
        self.messages.push(Message { event, at, closes, read: None });
    }

    fn claim(&mut self) -> Work {
        let work = self.talk.claim().unwrap();
        let (id, began) = (work.run.id, self.talk.clock.now());
        let items = self.talk.read(move |tx, _| store::work_item::claimed(tx, id));
        assert_eq!(items.len(), limits().items_per_run as usize, "and as many events as fit");
        for message in self.messages.iter_mut().filter(|message| message.read.is_none()) {
            let inside = items.iter().any(|item| item.event == message.event);
            assert!(inside, "what was said before a run begins is in its input");
            message.read = Some(began);
        }
        work
    }

    /// One run, of up to ten answers with a call each; a message ends it early.
    fn run(&mut self) {
        let mut work = self.claim();
        let length = self.rng.between(1, 10);
        loop {
            let recorded = match worker::next(&self.talk.cx, &work) {
                Action::End(outcome) => now(worker::record_end(&self.talk.cx, &work, outcome)),
                Action::Tool(call, plan) => {
                    self.takes(5, 800);
                    let done = now(engine::tools::perform(&self.talk.cx, plan));
                    self.steps.push(self.talk.clock.now());
                    now(worker::record_tool(&self.talk.cx, &mut work, call, done))
                }
                Action::Ask(request) => {
                    self.takes(200, 6_000);
                    let answer = answer(work.run.steps, u64::from(work.run.steps) / 2 >= length);
                    self.steps.push(self.talk.clock.now());
                    let digest = request.digest();
                    now(worker::record_answer(&self.talk.cx, &mut work, digest, answer))
                }
            };
            if recorded.unwrap() == Recorded::Over {
                return;
            }
        }
    }

    /// How many steps were recorded between an instant and the run that read a message, sorted.
    fn counts(&self, from: impl Fn(&Message) -> Timestamp) -> Vec<usize> {
        let count = |message: &Message| {
            let (from, until) = (from(message), message.read.unwrap());
            self.steps.iter().filter(|at| **at >= from && **at <= until).count()
        };
        let mut counts: Vec<usize> = self.messages.iter().map(count).collect();
        counts.sort_unstable();
        counts
    }
}

fn answer(step: u32, last: bool) -> Answer {
    let call = |name: &str, arguments: &str| ToolCall {
        id: format!("call-{step}"),
        name: name.into(),
        arguments: arguments.into(),
    };
    let calls = match (step, last) {
        (1, _) => vec![call("settle_message", "{\"stop\":false}")],
        (_, false) => vec![call("read_records", "{\"what\":\"spending\"}")],
        (_, true) => Vec::new(),
    };
    Answer::new(None, calls, Finish::ToolCalls)
}

#[test]
fn a_message_is_read_within_one_step_while_ten_thousand_events_wait() {
    let mut flood = Flood::begin();
    while flood.messages.len() < MESSAGES {
        flood.run();
    }
    flood.run();
    let main = flood.talk.main;
    let left = flood.talk.read(move |tx, _| store::work_item::pending(tx, main, 100)).len();
    assert_eq!(left, 100, "the flood is still there");
    let at = |counts: &[usize], percent: usize| counts[(counts.len() - 1) * percent / 100];
    let (waits, steps) = (flood.counts(|m| m.closes), flood.counts(|m| m.at));
    let said = |counts: &[usize]| {
        format!("p50 {}, p99 {}, most {}", at(counts, 50), at(counts, 99), at(counts, 100))
    };
    eprintln!(
        "{MESSAGES} messages among {EVENTS} events: steps before a message was read, after its burst \
         window: {}; with the window of {} ms: {}",
        said(&waits),
        limits().burst_ms,
        said(&steps)
    );
    assert!(at(&waits, 99) <= 1, "{}", said(&waits));
    assert!(at(&waits, 100) >= 1, "some message came while a step was under way");
}
