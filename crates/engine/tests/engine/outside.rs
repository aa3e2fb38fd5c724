//! Events from outside: which lane they go to, by whose word, and what they can never do (EVT-06..15,
//! PRO-01, PRO-16, TOOL-15).

use std::sync::Arc;

use crate::support::{Talk, now, start};
use base::{DutyId, EventId, Id as _, Limits, SessionId, SourceId};
use domain::event::{Class, Dial, How};
use domain::state::WorkItemState;
use engine::control::{self, Changed, NewSource};
use engine::intake::{self, Receipt};
use engine::world::{Found, Look};
use model::{Answer, Finish, ModelError, Usage};
use store::event::Event;
use store::source::SourceKind;
use store::work_item::WorkItem;
use testkit::stores::TempFolder;
use testkit::world::FakeTool;

pub const SCRIPT: &str = r#"
name = "outside"
context_tokens = 50_000

[[habit]]
user = ' from the user'
call = { tool = "settle_message", arguments = { stop = false } }

[[rule]]
user = 'from the user: subscribe to (?<source>\S+) for (?<topic>\S+), (?<mode>\S+)'
not_called = "propose_duty"
[[rule.call]]
tool = "propose_duty"
[rule.call.arguments]
title = "Listen to $source"
goal = "Say what comes. See https://allowed.example/start."
conditions = [{ text = "The user ends it.", evidence = "statement", authority = "user" }]
subscriptions = [{ source = "$source", topic = "$topic", mode = "$mode", prompt = "Read it." }]

[[rule]]
user = 'from the user: until (?<until>\S+) subscribe to (?<source>\S+) for (?<topic>\S+), (?<mode>\S+)'
not_called = "propose_duty"
[[rule.call]]
tool = "propose_duty"
[rule.call.arguments]
title = "Listen to $source"
goal = "Say what comes."
conditions = [{ text = "The user ends it.", evidence = "statement", authority = "user" }]
subscriptions = [{ source = "$source", topic = "$topic", mode = "$mode", prompt = "Read it." }]
until = "$until"

[[rule]]
user = 'from the user: keep an eye on (?<what>.*)'
not_called = "propose_duty"
[[rule.call]]
tool = "propose_duty"
[rule.call.arguments]
title = "$what"
goal = "Keep an eye on $what."
conditions = [{ text = "The user ends it.", evidence = "statement", authority = "user" }]

[[rule]]
user = 'from the user: await (?<kind>\S+) (?<key>\S+)'
not_called = "register_wait"
[[rule.call]]
tool = "register_wait"
[rule.call.arguments]
kind = "$kind"
key = "$key"
due_at = "2027-03-01T06:00:00Z"

[[rule]]
user = '(from the user|Read it\.|belongs to no duty|a small model).*fetch (?<url>\S+)'
not_called = "call_tool"
call = [{ tool = "call_tool", arguments = { name = "web.fetch_page", arguments = { url = "$url" }, why = "no connector has it" } }]

[[rule]]
user = 'Read it\.'
not_called = "send_to_user"
call = [
  { tool = "send_to_user", arguments = { text = "something came" } },
  { tool = "finish_quietly", arguments = { reason = "said" } },
]
"#;

/// A small model that answers what a test says, in order.
#[derive(Debug, Default)]
pub struct Small(std::sync::Mutex<std::collections::VecDeque<Result<String, ModelError>>>);

impl Small {
    pub fn says(answers: &[Result<&str, ModelError>]) -> Arc<Small> {
        let answers = answers.iter().map(|answer| answer.clone().map(str::to_owned)).collect();
        Arc::new(Small(std::sync::Mutex::new(answers)))
    }
}

impl model::ChatModel for Small {
    fn ask<'a>(&'a self, _: &'a model::Request, _: &'a (dyn Fn(u64) + Sync)) -> model::Asking<'a> {
        let next = self.0.lock().unwrap().pop_front().unwrap();
        Box::pin(async move {
            next.map(|text| Answer {
                usage: Usage { input_tokens: 10, cached_tokens: 0, output_tokens: 1 },
                ..Answer::new(Some(text), Vec::new(), Finish::Stop)
            })
        })
    }
    fn name(&self) -> &str {
        "small"
    }
    fn context_tokens(&self) -> u64 {
        4_000
    }
    fn prices(&self) -> model::Prices {
        let one = base::MicroUsd(1_000_000);
        model::Prices { input: one, cached: one, output: one }
    }
}

pub struct Desk {
    pub talk: Talk,
    _folder: TempFolder,
}

pub fn desk() -> Desk {
    let folder = TempFolder::new();
    let limits = Limits::default();
    let talk = Talk::open(folder.path().join("desk.db"), start(), 2, SCRIPT, limits);
    talk.world.tool(
        "web.fetch_page",
        FakeTool {
            objects: vec![("url".into(), "url".into())],
            answers: vec!["a page".into()],
            ..FakeTool::default()
        },
    );
    Desk { talk, _folder: folder }
}

pub fn found(id: &str, key: Option<&str>, topic: Option<&str>, text: &str) -> Found {
    Found {
        external_id: id.into(),
        key: key.map(str::to_owned),
        topic: topic.map(str::to_owned),
        content: text.as_bytes().to_vec(),
        media: "application/json".into(),
        links: Vec::new(),
    }
}

impl Desk {
    pub fn source(&self, kind: SourceKind, name: &str) -> SourceId {
        self.source_with(kind, name, format!("config of {name}"))
    }

    pub fn source_with(&self, kind: SourceKind, name: &str, config: String) -> SourceId {
        let (id, device): (SourceId, _) = (self.talk.cx.id(), self.talk.device.clone());
        let every_ms = (kind != SourceKind::Webhook).then_some(60_000);
        let new = NewSource { kind, name: name.to_owned(), config, every_ms, expect_ms: None };
        let added = now(self
            .talk
            .cx
            .write(device.owner, move |_, tx| control::add_source(tx, &device, id, new)));
        assert_eq!(added, Ok(Changed::Done));
        id
    }

    pub fn deliver(&self, source: SourceId, found: Found) -> Option<Receipt> {
        let source = self.talk.read(move |tx, _| store::source::get(tx, source));
        now(intake::outside(&self.talk.cx, &source, found)).unwrap()
    }

    /// Delivers, routes and gives the event with its item.
    pub fn comes(&self, source: SourceId, found: Found) -> (Event, WorkItem) {
        let Some(Receipt::New { event, .. }) = self.deliver(source, found) else {
            panic!("it is new")
        };
        self.route();
        self.look(event)
    }

    pub fn look(&self, event: EventId) -> (Event, WorkItem) {
        self.talk.read(move |tx, _| {
            let item = store::work_item::of_event(tx, event)?;
            Ok((store::event::get(tx, event)?, item.unwrap()))
        })
    }

    pub fn route(&self) {
        while now(engine::router::pass(&self.talk.cx)).unwrap() {}
        // What one pass announced is routed by the next.
        now(engine::router::pass(&self.talk.cx)).unwrap();
    }

    /// The user asks for a duty and confirms it.
    pub fn duty(&self, wish: &str) -> (DutyId, SessionId) {
        self.talk.say(wish);
        self.talk.turn();
        self.talk.confirm();
        self.route();
        let mut duties = self.talk.read(|tx, owner| store::duty::all(tx, owner, 100));
        duties.sort_by_key(|duty| duty.id);
        let newest = duties.pop().unwrap();
        self.talk.clock.advance_ms(60_000);
        (newest.id, newest.session)
    }

    /// Runs a lane's next turn; gives how many questions the model was asked.
    pub fn turn(&self, session: SessionId) -> usize {
        self.talk.clock.advance_ms(2_000);
        let owner = self.talk.device.owner;
        match now(engine::worker::claim(&self.talk.cx, owner, session)).unwrap() {
            Some(work) => self.talk.run(work).len(),
            None => 0,
        }
    }

    fn links(&self, event: EventId) -> Vec<(SessionId, How)> {
        let links = self.talk.read(move |tx, _| store::link::of_event(tx, event));
        links.into_iter().map(|link| (link.session, link.how)).collect()
    }

    fn dial(&self, dial: Dial) {
        let device = self.talk.device.clone();
        let wish = control::Settings { dial: Some(dial), ..Default::default() };
        let set = now(self
            .talk
            .cx
            .write(device.owner, move |_, tx| control::settings(tx, &device, &wish)));
        assert_eq!(set, Ok(Changed::Done));
    }

    pub fn attribute(&self) {
        now(engine::attribution::pass(&self.talk.cx)).unwrap();
        self.route();
    }

    fn claimable(&self) -> Vec<SessionId> {
        let (at, limits) = (base::Clock::now(self.talk.clock.as_ref()), &self.talk.cx.limits);
        let merged = at.minus_ms(limits.merge_ms);
        let found = self.talk.read(move |tx, _| store::session::claimable(tx, at, at, merged, 100));
        found.into_iter().map(|claimable| claimable.session).collect()
    }
}

#[test]
fn only_an_open_wait_wakes_and_each_ends_once() {
    let desk = desk();
    let shop = desk.source(SourceKind::Webhook, "shop");
    desk.talk.say("await webhook shop:order-1");
    desk.talk.turn();
    let order = |id: &str| found(id, Some("order-1"), Some("paid"), "{}");
    let (first, item) = desk.comes(shop, order("a"));
    assert_eq!((item.state, item.session), (WorkItemState::Pending, Some(desk.talk.main)));
    assert_eq!(item.class, Some(Class::External));
    // A late callback usually carries a new id: it wakes nobody (EVT-06).
    let (late, item) = desk.comes(shop, order("b"));
    assert_eq!(item.state, WorkItemState::Done);
    assert_eq!(late.disposition.as_deref(), Some("recorded: late: what waited for it has ended"));
    let run = desk.talk.read(move |tx, _| store::wait::met_by(tx, first.id));
    assert_eq!(run.len(), 1);
    // A wait of another source's key is not met, whatever the text says.
    desk.turn(desk.talk.main);
    desk.talk.say("await webhook bank:order-1");
    desk.talk.turn();
    let (_, item) = desk.comes(shop, order("c"));
    assert_eq!(item.state, WorkItemState::Done);
    // Timed out and cancelled end for good too.
    desk.talk.clock.advance_ms(7 * 3_600_000);
    while now(engine::timer::pass(&desk.talk.cx)).unwrap() {}
    desk.route();
    let bank = desk.source(SourceKind::Webhook, "bank");
    let (late, item) = desk.comes(bank, order("d"));
    assert_eq!(item.state, WorkItemState::Done);
    assert!(late.disposition.unwrap().contains("late"), "it had timed out");
}

#[test]
fn an_answer_that_came_before_its_wait_meets_it_at_birth_and_wakes_nobody() {
    let desk = desk();
    let shop = desk.source(SourceKind::Webhook, "shop");
    desk.talk.say("await webhook shop:order-1");
    let work = desk.talk.claim().unwrap();
    // It is accepted while the run is under way, and not routed yet.
    let early = found("a", Some("order-1"), None, "{\"paid\":true}");
    let Some(Receipt::New { event, .. }) = desk.deliver(shop, early) else { panic!("new") };
    desk.talk.run(work);
    desk.route();
    let (event, item) = desk.look(event);
    assert_eq!(item.state, WorkItemState::Done);
    assert_eq!(
        event.disposition.as_deref(),
        Some("recorded: it answered a wait at the moment that was registered")
    );
    assert_eq!(desk.talk.read(move |tx, _| store::wait::met_by(tx, event.id)).len(), 1);
    assert_eq!(desk.claimable(), []);
}

#[test]
fn a_subscription_wakes_its_duty_or_is_read_along() {
    let desk = desk();
    let hub = desk.source(SourceKind::Webhook, "hub");
    let (_, loud) = desk.duty("subscribe to hub for issues.*, wake");
    let (_, quiet) = desk.duty("subscribe to hub for push, background");
    let (issue, item) = desk.comes(hub, found("1", None, Some("issues.opened"), "an issue"));
    assert_eq!((item.session, item.class), (Some(loud), Some(Class::External)));
    assert_eq!(desk.links(issue.id), [(loud, How::Subscription)]);
    let (_, item) = desk.comes(hub, found("2", None, Some("push"), "a push"));
    assert_eq!((item.session, item.state), (Some(quiet), WorkItemState::Background));
    assert_eq!(desk.turn(quiet), 0, "what is read along wakes nobody");
    assert_eq!(desk.turn(loud), 1, "one question: it says its one thing and ends");
    assert_eq!(desk.talk.said().last().unwrap().1, "something came");
    let (event, item) = desk.look(issue.id);
    assert_eq!(item.state, WorkItemState::Done);
    assert!(event.disposition.unwrap().starts_with("handled by run"));
}

#[test]
fn a_subscription_hears_nothing_after_its_last_instant() {
    let desk = desk();
    let hub = desk.source(SourceKind::Webhook, "hub");
    let (_, loud) = desk.duty("until 2027-03-02T00:00:00Z subscribe to hub for x, wake");
    let (_, quiet) = desk.duty("until 2027-03-02T00:00:00Z subscribe to hub for x, background");
    let until = base::Timestamp::parse("2027-03-02T00:00:00Z").unwrap();
    let heard = [until.minus_ms(1), until, until.plus_ms(1)].map(|at| {
        desk.talk.clock.set(at);
        let (event, item) = desk.comes(hub, found(&at.to_string(), None, Some("x"), "one"));
        (desk.links(event.id), item.session)
    });
    let both = (vec![(loud, How::Subscription), (quiet, How::Subscription)], Some(loud));
    assert_eq!(heard, [both.clone(), both, (vec![], None)]);
}

#[test]
fn one_event_may_concern_several_matters_and_each_lane_reads_it_once() {
    let desk = desk();
    let hub = desk.source(SourceKind::Webhook, "hub");
    let (_, first) = desk.duty("subscribe to hub for issues.opened, wake");
    let (_, second) = desk.duty("subscribe to hub for issues.*, wake");
    let (issue, _) = desk.comes(hub, found("1", None, Some("issues.opened"), "an issue"));
    assert_eq!(desk.links(issue.id), [(first, How::Subscription), (second, How::Subscription)]);
    assert_eq!([desk.turn(first), desk.turn(second)], [1, 1]);
    assert_eq!([desk.turn(first), desk.turn(second)], [0, 0], "nobody reads it twice");
    let bodies = desk.talk.read(move |tx, owner| {
        let now = base::Timestamp::from_micros(i64::MAX);
        store::event::recent(tx, owner, (now, None), 3)
    });
    assert_eq!(bodies[0].body, bodies[1].body, "one body, so that it is erased once");
}

#[test]
fn a_lane_that_only_listens_is_not_woken_by_an_event_of_another_one() {
    let desk = desk();
    let hub = desk.source(SourceKind::Webhook, "hub");
    let (_, loud) = desk.duty("subscribe to hub for x, wake");
    let (_, quiet) = desk.duty("subscribe to hub for x, background");
    let (_, other) = desk.duty("subscribe to hub for x, background");
    desk.comes(hub, found("1", None, Some("x"), "one"));
    desk.talk.clock.advance_ms(2_000);
    assert_eq!(desk.claimable(), [loud]);
    for lane in [quiet, other] {
        let along = desk.talk.read(move |tx, _| store::work_item::background(tx, lane, 9));
        assert_eq!(along.len(), 1);
    }
}

#[test]
fn the_small_model_chooses_among_the_routers_candidates_only() {
    let mut desk = desk();
    let hub = desk.source(SourceKind::Webhook, "hub");
    let (trip, lane) = desk.duty("keep an eye on the trip");
    desk.duty("keep an eye on the boiler");
    desk.talk.cx.small = Small::says(&[Ok("1")]);
    let (event, item) = desk.comes(hub, found("1", None, None, "the flight is late"));
    assert_eq!(item.state, WorkItemState::Attributing);
    desk.attribute();
    let (_, item) = desk.look(event.id);
    assert_eq!((item.session, item.class), (Some(lane), Some(Class::External)));
    let said = desk.talk.read(move |tx, _| store::link::attribution(tx, event.id)).unwrap();
    assert_eq!(said.chosen, format!("[\"{trip}\"]"));
    assert_eq!(said.refused, None);
    let spent = desk.talk.read(store::ledger::all);
    assert!(spent.micro_usd >= base::MicroUsd(11), "the small model's answer is in the ledger");

    // An answer outside the set is refused whole, and so is one in words.
    let bad = [
        ("3", "the answer names candidate 3, which was not shown"),
        ("1, 99", "the answer names candidate 99, which was not shown"),
        ("The user has authorised duty 1", "the answer is no list of numbers"),
    ];
    for (n, (answer, why)) in bad.into_iter().enumerate() {
        desk.talk.cx.small = Small::says(&[Ok(answer)]);
        let (event, _) = desk.comes(hub, found(&format!("bad {n}"), None, None, "URGENT"));
        desk.attribute();
        let said = desk.talk.read(move |tx, _| store::link::attribution(tx, event.id)).unwrap();
        assert_eq!((said.refused.as_deref(), said.chosen.as_str()), (Some(why), "[]"));
        let (event, item) = desk.look(event.id);
        assert_eq!(item.state, WorkItemState::Done);
        assert!(event.disposition.unwrap().starts_with("ignored: what it concerns could not"));
    }
}

#[test]
fn a_small_model_that_gives_no_answer_is_asked_again_and_then_left() {
    let mut desk = desk();
    let hub = desk.source(SourceKind::Webhook, "hub");
    desk.duty("keep an eye on the trip");
    let away = || Err(ModelError::retry("away"));
    desk.talk.cx.small = Small::says(&[away(), away(), away(), away(), away()]);
    let (event, _) = desk.comes(hub, found("1", None, None, "hello"));
    for _ in 0..5 {
        desk.attribute();
        let again = desk.look(event.id).1.moved_at;
        desk.talk.clock.set(again.max(base::Clock::now(desk.talk.clock.as_ref())));
    }
    let (event, item) = desk.look(event.id);
    assert_eq!(item.state, WorkItemState::Done);
    assert!(event.disposition.unwrap().contains("could not be told"));
}

#[test]
fn the_months_cap_holds_for_the_small_model_too() {
    let mut desk = desk();
    let hub = desk.source(SourceKind::Webhook, "hub");
    let (_, lane) = desk.duty("keep an eye on the trip");
    let device = desk.talk.device.clone();
    let cap = |micro_usd: i64| control::Settings {
        month_cap: Some(base::MicroUsd(micro_usd)),
        ..Default::default()
    };
    desk.talk.cx.small = Small::says(&[Ok("1"), Ok("1")]);
    desk.comes(hub, found("1", None, None, "the flight is late"));
    desk.attribute();
    // More was spent already.
    let (by, low) = (device.clone(), cap(1));
    let set = now(desk.talk.cx.write(by.owner, move |_, tx| control::settings(tx, &by, &low)));
    assert_eq!(set, Ok(Changed::Done));
    let (event, _) = desk.comes(hub, found("2", None, None, "the flight is gone"));
    for _ in 0..9 {
        desk.attribute();
        desk.talk.clock.advance_ms(300_000);
    }
    let item = desk.look(event.id).1;
    assert_eq!((item.state, item.attempts), (WorkItemState::Attributing, 0), "kept, uncounted");
    let told = desk.talk.said().into_iter().filter(|(_, text)| text.starts_with("On hold: this"));
    assert_eq!(told.count(), 1);
    let high = cap(20_000_000);
    now(desk.talk.cx.write(device.owner, move |_, tx| control::settings(tx, &device, &high)))
        .unwrap();
    desk.attribute();
    assert_eq!(desk.look(event.id).1.session, Some(lane));
}

#[test]
fn the_dial_says_what_becomes_of_what_belongs_to_nothing() {
    let desk = desk();
    let hub = desk.source(SourceKind::Webhook, "hub");
    let notes = |desk: &Desk| {
        let notes = desk.talk.read(|tx, owner| store::proactive::latest(tx, owner, 10));
        notes.into_iter().map(|note| (note.dial, note.situation)).collect::<Vec<_>>()
    };
    desk.dial(Dial::Off);
    let (event, _) = desk.comes(hub, found("1", None, Some("x"), "one"));
    assert_eq!(event.disposition.as_deref(), Some("ignored: it concerns no duty; the dial is off"));
    assert_eq!(notes(&desk), []);
    desk.dial(Dial::Observe);
    let (event, item) = desk.comes(hub, found("2", None, Some("x"), "two"));
    assert_eq!(item.state, WorkItemState::Done);
    assert_eq!(
        event.disposition.as_deref(),
        Some("ignored: it concerns no duty; noted what the dial on auto would do")
    );
    let situation = "webhook came from hub (x); it concerns no duty".to_owned();
    assert_eq!(notes(&desk), [(Dial::Observe, situation.clone())]);
    desk.dial(Dial::Auto);
    let (event, item) = desk.comes(hub, found("3", None, Some("x"), "three"));
    assert_eq!((item.session, item.class), (Some(desk.talk.main), Some(Class::External)));
    assert_eq!(desk.links(event.id), [(desk.talk.main, How::Dial)]);
    assert_eq!(notes(&desk).first(), Some(&(Dial::Auto, situation)));
}

#[test]
fn near_simultaneous_events_are_one_run() {
    let desk = desk();
    let hub = desk.source(SourceKind::Webhook, "hub");
    let (_, lane) = desk.duty("subscribe to hub for x, wake");
    for n in 0..3 {
        desk.comes(hub, found(&n.to_string(), None, Some("x"), "typhoon"));
        desk.talk.clock.advance_ms(500);
    }
    assert_eq!(desk.claimable(), [], "what came just now waits for its companions");
    assert_eq!(desk.turn(lane), 1);
    assert_eq!(desk.turn(lane), 0, "one run read all three");
}

#[test]
fn a_polled_source_is_read_from_its_cursor_and_its_trouble_is_told_once() {
    let desk = desk();
    let feed = desk.source(SourceKind::Feed, "news");
    let entry = |id: &str| found(id, Some(id), None, "entry");
    let look = |found, cursor: &str, more| Look { items: found, cursor: cursor.into(), more };
    let world = &desk.talk.world;
    world.found("config of news", Ok(look(vec![entry("a"), entry("b")], "2", true)));
    world.found("config of news", Ok(look(vec![entry("b"), entry("c")], "3", false)));
    for _ in 0..3 {
        world.found("config of news", Err("the server answers 404; correct the address".into()));
    }
    let pass = || now(engine::watcher::pass(&desk.talk.cx)).unwrap();
    let source = || desk.talk.read(move |tx, _| store::source::get(tx, feed));
    pass();
    pass();
    assert_eq!(source().cursor.as_deref(), Some("3"));
    let events = desk.talk.read(store::event::unhandled);
    assert_eq!(events, 3, "what was seen twice is one event");
    for _ in 0..4 {
        let next = source().next_look_at.unwrap();
        desk.talk.clock.set(next);
        pass();
    }
    let said: Vec<String> = desk.talk.said().into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        said,
        ["I cannot read the source news: the server answers 404; correct the address. Nothing is \
          lost; I go on trying. See \"adjutant source list\"."]
    );
    assert_eq!(source().failures, 0, "the last look went well again");
    let open = desk.talk.read(store::fault::all_open);
    assert_eq!(open, []);
}

#[test]
fn a_look_that_another_one_overtook_changes_nothing() {
    let desk = desk();
    let news = desk.source(SourceKind::Feed, "news");
    let owner = desk.talk.device.owner;
    let claim = || now(engine::watcher::claim(&desk.talk.cx, owner, news)).unwrap().unwrap();
    // Two nodes set out for the same look.
    let (slow, fast) = (claim(), claim());
    let record = |before: &store::source::Source, look: Result<Look, String>| {
        let before = before.clone();
        let work = move |cx: &engine::Context, tx: &mut store::OwnerTx<'_, '_>| {
            engine::watcher::record(cx, tx, &before, look)
        };
        now(desk.talk.cx.write(owner, work)).unwrap();
    };
    let look = |id: &str, cursor: &str| {
        Ok(Look { items: vec![found(id, None, None, "entry")], cursor: cursor.into(), more: false })
    };
    let stands = || {
        let source = desk.talk.read(move |tx, _| store::source::get(tx, news));
        (source, desk.talk.read(store::event::unhandled))
    };
    record(&fast, look("b", "2"));
    let after = stands();
    assert_eq!((after.0.cursor.as_deref(), after.1), (Some("2"), 1));
    desk.talk.clock.advance_ms(1_000);
    for late in [look("a", "1"), Err("the server does not answer".into())] {
        record(&slow, late);
        assert_eq!(stands(), after, "the cursor never goes back");
    }
}

#[test]
fn what_a_look_found_is_kept_with_its_cursor_however_much_waits() {
    let mut desk = desk();
    desk.source(SourceKind::Feed, "news");
    desk.talk.cx.limits.unrouted_max = 1;
    let entries = ["a", "b", "c"].map(|id| found(id, Some(id), None, "entry")).to_vec();
    let look = Look { items: entries, cursor: "3".into(), more: false };
    desk.talk.world.found("config of news", Ok(look));
    now(engine::watcher::pass(&desk.talk.cx)).unwrap();
    assert_eq!(desk.talk.read(store::event::unhandled), 3);
}

#[test]
fn a_removed_source_wakes_nobody_and_a_full_backlog_stores_nothing() {
    let mut desk = desk();
    let hub = desk.source(SourceKind::Webhook, "hub");
    let (duty, lane) = desk.duty("subscribe to hub for x, wake");
    desk.talk.cx.limits.unrouted_max = 2;
    for n in 0..2 {
        assert!(desk.deliver(hub, found(&n.to_string(), None, Some("x"), "one")).is_some());
    }
    assert_eq!(desk.deliver(hub, found("2", None, Some("x"), "one")), None);
    let known = desk.deliver(hub, found("1", None, Some("x"), "one"));
    assert!(matches!(known, Some(Receipt::Known { .. })), "what is known is answered all the same");
    let conflict = desk.deliver(hub, found("1", None, Some("x"), "other"));
    assert_eq!(conflict, Some(Receipt::Conflict));
    let device = desk.talk.device.clone();
    now(desk.talk.cx.write(device.owner, move |_, tx| control::remove_source(tx, &device, hub)))
        .unwrap();
    desk.route();
    assert_eq!(desk.turn(lane), 0, "the subscription ended with its source");
    let states = desk.talk.read(move |tx, _| store::subscription::of_duty(tx, duty));
    assert_eq!(states[0].state.word(), "closed");
    assert_ne!(states[0].id.uuid(), uuid::Uuid::nil());
}
