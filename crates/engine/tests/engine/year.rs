//! A year of routines in zones that change their clocks, with restarts, outages, crashes between the
//! stages and late ticks: no slot missed, none doubled, each late one marked (SKL-03, SKL-04, OPS-14).
//!
//! What should happen is computed here from civil times, by jiff alone and not by the rules under test.

mod civil;

use std::collections::{BTreeMap, VecDeque};

use crate::chance::Rng;
use crate::support::{Talk, now};
use base::{Clock as _, Limits, ScheduleId, Timestamp};
use domain::event::EventKind;
use domain::state::{CheckState, RunState, WorkItemState};
use engine::control::{self, Changed};
use engine::worker::{self, Action, Recorded, Work};
use jiff::tz::TimeZone;
use testkit::stores::TempFolder;
use testkit::world::FakeTool;

use civil::{BERLIN, HONG_KONG, HONG_KONG_1979, LORD_HOWE, NEW_YORK, SAO_PAULO};
use civil::{Place, Routine, routines, slots};

const SCRIPT: &str = r#"
name = "year"

[[habit]]
user = ' from the user'
call = { tool = "settle_message", arguments = { stop = false } }

[[rule]]
user = 'from the user: routine (?<name>\w+), (?<missed>once|skip), at (?<when>[^;]+);'
not_called = "propose_routine"
[[rule.call]]
tool = "propose_routine"
[rule.call.arguments]
name = "$name"
prompt = "Do $name."
when = "$when"
run_missed = "$missed"

[[rule]]
user = 'from the user: watch (?<name>\w+), at (?<when>[^;]+);'
not_called = "propose_routine"
[[rule.call]]
tool = "propose_routine"
[rule.call.arguments]
name = "$name"
prompt = "Do $name."
when = "$when"
check = { tool = "feed.price", path = "price", when = "changed" }
"#;

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;

/// What should be on record of a slot that wakes: how many it stands for, and whether it is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    missed: usize,
    late: bool,
}

/// A look that should be taken.
struct Look {
    routine: usize,
    slot: Timestamp,
    wanted: Wanted,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    slots: usize,
    odd: usize,
    on_time: usize,
    late: usize,
    stood_for: usize,
    skipped: usize,
    looks: usize,
    unchanged: usize,
    restarts: usize,
    outages: usize,
    away_hours: u64,
    crashes: usize,
    late_ticks: usize,
}

/// The program was ended between two transactions: everything not on record is lost.
struct Crashed;

struct Year {
    talk: Option<Talk>,
    folder: TempFolder,
    rng: Rng,
    opened: u8,
    zone: TimeZone,
    end: Timestamp,
    routines: Vec<Routine>,
    wanted: BTreeMap<(usize, Timestamp), Wanted>,
    looks: VecDeque<Look>,
    price: u32,
    known_price: Option<u32>,
    tally: Tally,
}

fn limits() -> Limits {
    Limits {
        // A short history keeps a turn cheap; nothing here depends on it.
        window_tokens: 1_500,
        owner_month_micro_usd: 1_000_000_000,
        ..Limits::default()
    }
}

impl Year {
    fn begin(place: &Place, seed: u64, dense: bool) -> Year {
        let at = |text: String| Timestamp::parse(&text).unwrap();
        let mut year = Year {
            talk: None,
            folder: TempFolder::in_memory().unwrap(),
            rng: Rng::new(seed),
            opened: 0,
            zone: TimeZone::get(place.zone).unwrap(),
            end: at(format!("{}-01-01T00:00:00Z", place.year + 1)),
            routines: routines(place, dense),
            wanted: BTreeMap::new(),
            looks: VecDeque::new(),
            price: 100,
            known_price: None,
            tally: Tally::default(),
        };
        year.open(at(format!("{}-01-01T00:00:00Z", place.year)));
        year.move_to(place.zone);
        for n in 0..year.routines.len() {
            year.confirm(n);
        }
        year
    }

    fn talk(&self) -> &Talk {
        self.talk.as_ref().unwrap()
    }

    fn at(&self) -> Timestamp {
        self.talk().clock.now()
    }

    /// Starts the program, as another process than the one before.
    fn open(&mut self, at: Timestamp) {
        self.talk = None;
        self.opened = self.opened.wrapping_add(1);
        let file = self.folder.path().join("year.db");
        self.talk = Some(Talk::open(file, at, self.opened, SCRIPT, limits()));
        self.feed();
    }

    /// What a look at the price would read now.
    fn feed(&self) {
        let answers = vec![format!("{{\"price\":{}}}", self.price)];
        self.talk().world.tool("feed.price", FakeTool { answers, ..FakeTool::default() });
    }

    fn move_to(&self, zone: &str) {
        let wish = control::Settings { zone: Some(zone.into()), ..Default::default() };
        let (talk, device) = (self.talk(), self.talk().device.clone());
        let set =
            now(talk.cx.write(device.owner, move |_, tx| control::settings(tx, &device, &wish)));
        assert_eq!(set, Ok(Changed::Done));
    }

    /// The user asks for a routine and confirms its card.
    fn confirm(&mut self, n: usize) {
        let talk = self.talk();
        talk.say(&self.routines[n].words());
        talk.turn();
        talk.clock.advance_ms(1_000);
        talk.confirm();
        let (lane, schedule) = talk.read(|tx, owner| {
            let duty = store::duty::all(tx, owner, 100)?.pop().unwrap();
            Ok((duty.session, store::schedule::of_duty(tx, duty.id)?.remove(0).id))
        });
        // What an outage at the end of the year may yet make late.
        let horizon = self.end.plus_ms(40 * DAY);
        let (all, odd) = slots(&self.routines[n], &self.zone, (self.at(), horizon));
        self.tally.slots += all.len();
        self.tally.odd += odd;
        let routine = &mut self.routines[n];
        (routine.lane, routine.schedule, routine.slots) = (Some(lane), Some(schedule), all);
    }

    /// By chance the process ends here, and another one starts at once, later, or much later.
    fn may_crash(&mut self, of: u64) -> Result<(), Crashed> {
        if !self.rng.one_in(of) {
            return Ok(());
        }
        self.tally.crashes += 1;
        let pause = if self.rng.one_in(8) { self.outage() } else { self.rng.below(20_000) };
        self.open(self.at().plus_ms(pause));
        Err(Crashed)
    }

    /// How long nobody runs the program: minutes, hours, days or weeks.
    fn outage(&mut self) -> u64 {
        let ms = match self.rng.below(20) {
            0..9 => self.rng.between(2 * MINUTE, 50 * MINUTE),
            9..16 => self.rng.between(60 * MINUTE, 20 * 60 * MINUTE),
            16..19 => self.rng.between(DAY, 6 * DAY),
            _ => self.rng.between(7 * DAY, 25 * DAY),
        };
        self.tally.outages += 1;
        self.tally.away_hours += ms / (60 * MINUTE);
        ms
    }

    /// Lets time pass to the next thing that is due, or beyond it.
    fn pass_time(&mut self) -> bool {
        let next = self.talk().read(|tx, _| {
            let due = [store::schedule::next_due(tx)?, store::check::next_due(tx)?];
            Ok(due.into_iter().flatten().min())
        });
        let next = next.unwrap().max(self.at());
        if next > self.end {
            return false;
        }
        let at = match self.rng.below(100) {
            0..2 => {
                let before = self.at();
                let ms = self.outage();
                self.open(before.plus_ms(ms));
                return true;
            }
            2..6 => {
                self.tally.restarts += 1;
                let after = next.plus_ms(self.rng.below(2_000));
                self.open(after);
                return true;
            }
            6..16 => next.plus_ms(self.rng.between(2_000, MINUTE)),
            16..18 => {
                self.tally.late_ticks += 1;
                next.plus_ms(self.rng.between(MINUTE + 1, 20 * MINUTE))
            }
            _ => next.plus_ms(self.rng.below(1_000)),
        };
        self.talk().clock.set(at);
        true
    }

    /// All stages once; a crash leaves the rest to the next process.
    fn stages(&mut self) -> Result<(), Crashed> {
        let due = self.talk().read({
            let at = self.at();
            move |tx, _| store::schedule::due(tx, at, 64)
        });
        for (owner, id) in due {
            self.may_crash(300)?;
            let cx = &self.talk().cx;
            now(cx.write(owner, move |cx, tx| engine::timer::fire(cx, tx, id))).unwrap();
            self.fired(id);
        }
        self.may_crash(300)?;
        self.look()?;
        while now(engine::router::pass(&self.talk().cx)).unwrap() {}
        self.may_crash(300)?;
        self.work()
    }

    /// What a schedule that fires now should do: the newest of its slots that have come stands for all.
    fn fired(&mut self, id: ScheduleId) {
        let at = self.at();
        let n = self.routines.iter().position(|r| r.schedule == Some(id)).unwrap();
        let routine = &mut self.routines[n];
        let come = routine.slots.iter().take_while(|slot| **slot <= at).count();
        assert!(come > 0, "{} fired at {at} and has no slot then", routine.name);
        let slot = routine.slots.drain(..come).next_back().unwrap();
        let itself_late = slot.plus_ms(MINUTE) < at;
        let wanted = Wanted { missed: come - 1, late: come > 1 || itself_late };
        self.tally.stood_for += come - 1;
        match (routine.skip && itself_late, wanted.late) {
            (true, _) => {
                self.tally.skipped += 1;
                return;
            }
            (false, true) => self.tally.late += 1,
            (false, false) => self.tally.on_time += 1,
        }
        match routine.check {
            true => self.looks.push_back(Look { routine: n, slot, wanted }),
            false => assert_eq!(self.wanted.insert((n, slot), wanted), None),
        }
    }

    /// Takes the looks that are due. The price changes now and then.
    fn look(&mut self) -> Result<(), Crashed> {
        self.price += u32::from(self.rng.one_in(12));
        self.feed();
        let at = self.at();
        let due = self.talk().read(move |tx, _| store::check::due(tx, at, 64));
        for (owner, id) in due {
            let cx = &self.talk().cx;
            let look = now(engine::checker::claim(cx, owner, id)).unwrap().unwrap();
            let read = now(engine::checker::perform(cx, &look));
            self.may_crash(60)?;
            let cx = &self.talk().cx;
            now(cx.write(owner, move |cx, tx| engine::checker::record(cx, tx, &look, read)))
                .unwrap();
            let taken = self.looks.pop_front().unwrap();
            self.tally.looks += 1;
            if self.known_price.replace(self.price).is_some_and(|known| known != self.price) {
                let key = (taken.routine, taken.slot);
                assert_eq!(self.wanted.insert(key, taken.wanted), None);
            } else {
                self.tally.unchanged += 1;
            }
        }
        Ok(())
    }

    /// Workers run all that waits.
    fn work(&mut self) -> Result<(), Crashed> {
        loop {
            let at = self.at();
            let waiting =
                self.talk().read(move |tx, _| store::session::claimable(tx, at, at, at, 64));
            let Some(first) = waiting.first() else { return Ok(()) };
            let claimed = now(worker::claim(&self.talk().cx, first.owner, first.session)).unwrap();
            let Some(work) = claimed else { continue };
            self.may_crash(200)?;
            self.run(work)?;
        }
    }

    fn run(&mut self, mut work: Work) -> Result<(), Crashed> {
        loop {
            let cx = &self.talk().cx;
            let recorded = match worker::next(cx, &work) {
                Action::End(outcome) => now(worker::record_end(cx, &work, outcome)),
                Action::Tool(call, plan) => {
                    let done = now(engine::tools::perform(cx, plan));
                    now(worker::record_tool(cx, &mut work, call, done))
                }
                Action::Ask(request) => {
                    let answer = now(cx.model.ask(&request, &|_| {})).unwrap();
                    now(worker::record_answer(cx, &mut work, request.digest(), answer))
                }
            };
            if recorded.unwrap() == Recorded::Over {
                return Ok(());
            }
            self.may_crash(200)?;
        }
    }

    /// Walks to the end of the year, then lets everything that was begun be finished.
    fn walk(&mut self) {
        while self.pass_time() {
            while self.stages().is_err() {}
        }
        while self.stages().is_err() {}
    }

    /// Compares what is on record with what should be.
    fn judge(&self) {
        let mut seen = BTreeMap::new();
        for (n, routine) in self.routines.iter().enumerate() {
            let id = routine.schedule.unwrap();
            let left = routine.slots.iter().filter(|slot| **slot <= self.at()).count();
            assert_eq!(left, 0, "{} has slots that came and did not fire", routine.name);
            for (slot, wanted) in self.events(routine) {
                assert_eq!(seen.insert((n, slot), wanted), None, "{id} at {slot} came twice");
            }
        }
        let missed: Vec<_> = self.wanted.keys().filter(|key| !seen.contains_key(key)).collect();
        let doubled: Vec<_> = seen.keys().filter(|key| !self.wanted.contains_key(key)).collect();
        assert_eq!((missed, doubled), (vec![], vec![]), "slots without an event, and the reverse");
        assert_eq!(seen, self.wanted);
        assert!(self.looks.is_empty());
        let Tally { slots, on_time, late, stood_for, skipped, .. } = self.tally;
        let to_come: usize = self.routines.iter().map(|r| r.slots.len()).sum();
        assert_eq!(slots, on_time + late + stood_for + skipped + to_come);
    }

    /// The slots that a routine's lane has read, from its runs' inputs: each by one run that completed,
    /// as the event says.
    fn events(&self, routine: &Routine) -> Vec<(Timestamp, Wanted)> {
        let (lane, schedule) = (routine.lane.unwrap(), routine.schedule.unwrap());
        let runs = self.talk().read(move |tx, _| store::run::recent(tx, lane, 100_000));
        let mut found = Vec::new();
        for run in runs.into_iter().filter(|run| run.state == RunState::Completed) {
            let tail = self.talk().read(move |tx, _| {
                Ok(store::run::blocks(tx, run.id)?.remove(0).bytes.unwrap_or_default())
            });
            let tail: serde_json::Value = serde_json::from_slice(&tail).unwrap();
            let text = tail["content"].as_str().unwrap();
            let (_, new) = text.split_once("\nNew:\n").unwrap();
            for line in new.lines().filter(|line| line.starts_with("- schedule of duty")) {
                found.push((line.to_owned(), run.id));
            }
        }
        let source = self.talk().read(|tx, owner| Ok(store::owner::get(tx, owner)?.timer_source));
        let read = found.into_iter().map(|(line, run)| {
            let (_, rest) = line.split_once("slot ").unwrap();
            let missed = rest
                .split_once("(stands for ")
                .map_or(0, |(_, after)| after.split_once(' ').unwrap().0.parse().unwrap());
            let end = rest.find(" (stands").or(rest.find(": Do")).unwrap();
            let slot = self.slot_of(routine, &rest[..end]);
            let external = format!("schedule:{schedule}:{}", slot.micros());
            let (event, item) = self.talk().read(move |tx, _| {
                let event = store::event::by_external(tx, source, &external)?.unwrap();
                let item = store::work_item::of_event(tx, event.id)?.unwrap();
                Ok((event, item))
            });
            assert_eq!((item.state, item.run), (WorkItemState::Done, Some(run)));
            assert_eq!(event.disposition, Some(format!("handled by run {run}")));
            assert_eq!(event.late, line.contains(" [late: "), "{line}");
            (slot, Wanted { missed, late: event.late })
        });
        read.collect()
    }

    /// Local words back to the instant: those that come twice mean the first.
    fn slot_of(&self, routine: &Routine, words: &str) -> Timestamp {
        let all = self.wanted.keys().filter(|(n, _)| self.routines[*n].name == routine.name);
        let mut same = all.map(|(_, slot)| *slot).filter(|slot| self.words(*slot) == words);
        same.next().unwrap_or_else(|| panic!("{} at {words} was not due", routine.name))
    }

    fn words(&self, at: Timestamp) -> String {
        let at = jiff::Timestamp::from_microsecond(at.micros()).unwrap();
        self.zone.to_datetime(at).strftime("%A %Y-%m-%d %H:%M").to_string()
    }

    /// Every event of a schedule on record, also one that no run has read.
    fn recorded(&self) -> usize {
        let (mut count, mut before) = (0, Timestamp::from_micros(i64::MAX));
        loop {
            let page = self
                .talk()
                .read(move |tx, owner| store::event::recent(tx, owner, (before, None), 2_000));
            let Some(last) = page.last() else { return count };
            before = last.received_at;
            count += page.iter().filter(|event| event.kind == EventKind::ScheduleDue).count();
        }
    }
}

/// Lives one year and gives its figures.
fn live(place: &Place, seed: u64, dense: bool) -> Tally {
    let mut year = Year::begin(place, seed, dense);
    year.walk();
    year.judge();
    assert_eq!(year.recorded(), year.wanted.len(), "events that no run has read, or twice read");
    let checks = year.talk().read({
        let schedule = year.routines.last().and_then(|routine| routine.schedule).unwrap();
        move |tx, _| store::check::of_schedule(tx, schedule, 10_000)
    });
    let unchanged = checks.iter().filter(|check| check.state == CheckState::Unchanged).count();
    assert_eq!((checks.len(), unchanged), (year.tally.looks, year.tally.unchanged));
    if !dense {
        assert_eq!(year.tally.odd, place.odd, "the clock's changes are among the slots");
    }
    eprintln!("{} {}, seed {seed}: {:?}", place.zone, place.year, year.tally);
    year.tally
}

fn one_year(place: &Place) {
    let tally = live(place, u64::from(place.year.unsigned_abs()), false);
    assert!(tally.outages > 0 && tally.late > 0 && tally.stood_for > 0, "{tally:?}");
    assert!(tally.on_time > tally.slots / 2, "{tally:?}");
}

#[test]
fn a_year_of_routines_in_hong_kong() {
    one_year(&HONG_KONG);
}

#[test]
fn a_year_of_routines_in_hong_kong_when_it_had_summer_time() {
    one_year(&HONG_KONG_1979);
}

#[test]
fn a_year_of_routines_in_new_york() {
    one_year(&NEW_YORK);
}

#[test]
fn a_year_of_routines_in_berlin() {
    one_year(&BERLIN);
}

#[test]
fn a_year_of_routines_on_lord_howe_where_the_clock_jumps_by_half_an_hour() {
    one_year(&LORD_HOWE);
}

#[test]
fn a_year_of_routines_in_sao_paulo_where_summer_time_began_at_midnight() {
    one_year(&SAO_PAULO);
}

#[test]
#[ignore = "long: years of denser routines, from many seeds"]
fn long_years_of_routines() {
    for place in [HONG_KONG, HONG_KONG_1979, NEW_YORK, BERLIN, LORD_HOWE, SAO_PAULO] {
        for seed in 0..2 {
            live(&place, seed, true);
        }
    }
}
