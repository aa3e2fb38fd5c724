//! The hotel vendor as a state machine: what it promises, and every way in which it goes wrong.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeSet;

use base::Timestamp;
use serde_json::{Map, Value, json};
use testkit::hotel::{
    Booking, Fault, Faults, HOTEL_MANIFEST, Hotel, HotelOptions, Party, Reply, SETTLED_AFTER_MS,
    Tool, Truth,
};

const START: Timestamp = Timestamp::from_micros(1_796_025_600_000_000);
const MINUTE_MS: u64 = 60_000;

/// A vendor, a clock that the test moves, and one quote to book.
struct Desk {
    hotel: Hotel,
    now: Timestamp,
    quote: String,
}

impl Desk {
    fn new(seed: u64) -> Desk {
        let hotel = Hotel::new(seed, HotelOptions::default());
        let mut desk = Desk { hotel, now: START, quote: String::new() };
        desk.quote = desk.search()[0]["id"].as_str().unwrap().to_owned();
        desk
    }

    fn faulty(seed: u64, tool: Tool, fault: Fault) -> Desk {
        let mut desk = Desk::new(seed);
        desk.hotel.set_faults(Faults::once(tool, 1, fault));
        desk
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        self.hotel.call(self.now, tool, arguments.as_object().unwrap())
    }

    fn search(&mut self) -> Vec<Value> {
        let stay = json!({ "city": "Hong Kong", "check_in": "2026-12-10", "check_out": "2026-12-12",
            "guests": 1 });
        let Reply::Answer { json, is_error: false } = self.call("search_hotels", stay) else {
            panic!("no offers")
        };
        json["offers"].as_array().unwrap().clone()
    }

    fn book(&mut self, client_ref: &str) -> Reply {
        let quote = self.quote.clone();
        self.call("book_hotel", json!({ "quote": quote, "client_ref": client_ref, "guest": "Ada" }))
    }

    fn cancel(&mut self, number: &str, client_ref: &str) -> Reply {
        let what = json!({ "confirmation_number": number, "client_ref": client_ref });
        self.call("cancel_booking", what)
    }

    /// What a look-up finds after so many minutes: status, or null.
    fn found(&mut self, minutes: u64, tool: &str, client_ref: &str) -> Value {
        self.now = self.now.plus_ms(minutes * MINUTE_MS);
        let Reply::Answer { json, is_error: false } =
            self.call(tool, json!({ "client_ref": client_ref }))
        else {
            panic!("{tool} failed")
        };
        json.as_object().unwrap().values().next().unwrap()["status"].clone()
    }

    fn find(&mut self, minutes: u64, client_ref: &str) -> Value {
        self.found(minutes, "find_booking", client_ref)
    }

    /// Books under `b` and gives the number.
    fn booked(&mut self) -> String {
        self.book("b");
        self.hotel.bookings()[0].confirmation_number.clone()
    }

    /// Bookings that were really made, and those of them in force.
    fn real(&self) -> (usize, usize) {
        let all = self.hotel.bookings();
        (all.len(), all.iter().filter(|booking| booking.in_force()).count())
    }

    fn last_truth(&self) -> &Truth {
        &self.hotel.requests().last().unwrap().truth
    }
}

/// A reply in a few words: the error's code, the status, or what else came.
fn words(reply: &Reply) -> String {
    let Reply::Answer { json, is_error } = reply else {
        return match reply {
            Reply::Lost => "lost".to_owned(),
            Reply::Garbage(_) | Reply::Answer { .. } => "garbage".to_owned(),
        };
    };
    assert_eq!(*is_error, json.get("error").is_some());
    let inner = json.as_object().unwrap().values().next().unwrap();
    let word = inner.get("code").or(inner.get("status")).unwrap_or(inner);
    word.as_str().unwrap().to_owned()
}

#[test]
fn a_quote_is_booked_found_and_cancelled() {
    let mut desk = Desk::new(1);
    let offer = desk.search()[0].clone();
    desk.quote = offer["id"].as_str().unwrap().to_owned();
    assert_eq!(offer["currency"], "HKD");
    assert_eq!(offer["dates"], "2026-12-10 to 2026-12-12");
    assert_eq!(offer["valid_until"], START.plus_ms(20 * MINUTE_MS).to_string());

    let Reply::Answer { json: answer, is_error: false } = desk.book("op-1") else { panic!() };
    let number = answer["booking"]["confirmation_number"].clone();
    let booking = json!({ "booking": { "confirmation_number": number, "status": "confirmed",
        "client_ref": "op-1", "hotel": offer["hotel"], "room": offer["room"],
        "dates": offer["dates"], "total": offer["total"], "currency": "HKD" } });
    assert_eq!(answer, booking);
    let found = desk.call("find_booking", json!({ "client_ref": "op-1" }));
    assert_eq!(found, Reply::Answer { json: booking, is_error: false });

    let Reply::Answer { json: answer, .. } = desk.cancel(number.as_str().unwrap(), "op-2") else {
        panic!()
    };
    let id = answer["cancellation"]["id"].clone();
    let cancellation = json!({ "cancellation": { "id": id, "confirmation_number": number, "status": "cancelled" } });
    assert_eq!(answer, cancellation);
    let found = desk.call("find_cancellation", json!({ "client_ref": "op-2" }));
    assert_eq!(found, Reply::Answer { json: cancellation, is_error: false });
    assert_eq!(desk.find(0, "op-1"), "cancelled");
    assert_eq!(desk.found(0, "find_cancellation", "op-1"), Value::Null);
    assert_eq!(words(&desk.cancel(number.as_str().unwrap(), "op-3")), "already_cancelled");
    assert_eq!(desk.real(), (1, 0));
}

#[test]
fn prices_differ_per_search_and_follow_the_seed() {
    let totals = |offers: Vec<Value>| -> Vec<Value> {
        offers.into_iter().map(|offer| offer["total"].clone()).collect()
    };
    let mut desk = Desk::new(1);
    let (first, second) = (totals(desk.search()), totals(desk.search()));
    assert_ne!(first, second);
    assert_eq!(totals(Desk::new(1).search()), first);
    assert_ne!(totals(Desk::new(2).search()), first);
}

#[test]
fn a_quote_expires() {
    let mut desk = Desk::new(1);
    desk.now = START.plus_ms(20 * MINUTE_MS).minus_ms(1);
    assert_eq!(words(&desk.book("in-time")), "confirmed");
    desk.now = START.plus_ms(20 * MINUTE_MS);
    assert_eq!(words(&desk.book("late")), "quote_expired");
    desk.now = START.plus_ms(26 * 60 * MINUTE_MS);
    desk.search();
    assert_eq!(words(&desk.book("very-late")), "unknown_quote");
    assert_eq!(desk.real(), (1, 1));
}

#[test]
fn a_reference_books_once_while_the_promise_holds() {
    let mut desk = Desk::new(1);
    let first = desk.book("op-1");
    assert_eq!(desk.book("op-1"), first);
    assert_eq!(desk.last_truth(), &Truth::Repeated);
    // The promise outlives the quote.
    desk.now = START.plus_ms(23 * 60 * MINUTE_MS);
    assert_eq!(desk.book("op-1"), first);
    let other = json!({ "quote": desk.quote, "client_ref": "op-1", "guest": "Bob" });
    assert_eq!(words(&desk.call("book_hotel", other)), "conflict");
    assert_eq!(desk.real(), (1, 1));

    let number = desk.hotel.bookings()[0].confirmation_number.clone();
    let first = desk.cancel(&number, "op-2");
    assert_eq!(desk.cancel(&number, "op-2"), first);
    assert_eq!(words(&desk.cancel("HB-0", "op-2")), "conflict");
    assert_eq!(desk.hotel.cancellations().len(), 1);
}

#[test]
fn after_the_promise_a_reference_books_again() {
    let options = HotelOptions { dedupe_ms: MINUTE_MS, ..HotelOptions::default() };
    let mut desk = Desk { hotel: Hotel::new(1, options), ..Desk::new(1) };
    desk.quote = desk.search()[0]["id"].as_str().unwrap().to_owned();
    desk.book("op-1");
    desk.now = START.plus_ms(MINUTE_MS);
    assert_eq!(words(&desk.book("op-1")), "confirmed");
    assert_eq!(desk.real(), (2, 2));
}

#[test]
fn two_references_book_twice() {
    let mut desk = Desk::new(1);
    desk.book("op-1");
    desk.book("op-1.2");
    assert_eq!(desk.real(), (2, 2));
}

#[test]
fn wrong_calls_are_refused_and_do_nothing() {
    let mut desk = Desk::new(1);
    let mut refused = |tool: &str, arguments: Value| words(&desk.call(tool, arguments));
    let stay = |from: &str, to: &str, guests: u64| {
        json!({ "city": "Hong Kong", "check_in": from,
            "check_out": to, "guests": guests })
    };
    for arguments in [
        stay("2026-12-10", "2026-12-10", 1),
        stay("2026-12-12", "2026-12-10", 1),
        stay("2026-12-10", "2027-12-10", 1),
        stay("2026-02-30", "2026-12-10", 1),
        stay("2026-12-10", "2026-12-12", 0),
        json!({}),
    ] {
        assert_eq!(refused("search_hotels", arguments), "bad_request");
    }
    assert_eq!(refused("book_hotel", json!({ "quote": "q", "guest": "Ada" })), "bad_request");
    let booking = json!({ "quote": "q", "client_ref": "a", "guest": "Ada" });
    assert_eq!(refused("book_hotel", booking), "unknown_quote");
    let cancellation = json!({ "confirmation_number": "HB-1", "client_ref": "a" });
    assert_eq!(refused("cancel_booking", cancellation), "unknown_booking");
    assert_eq!(refused("find_booking", json!({ "client_ref": 7 })), "bad_request");
    assert_eq!(refused("burn_hotel", json!({})), "bad_request");
    assert!(desk.hotel.requests().iter().all(|request| request.truth == Truth::Nothing));
}

/// What each fault does to one booking: the answer, what really exists and what is in force right
/// after it, and what a look-up finds then, after a few minutes and after the promised time.
#[test]
fn every_fault_of_a_booking_does_what_it_says() {
    let ms = 3 * MINUTE_MS;
    let late_ms = SETTLED_AFTER_MS + 5 * MINUTE_MS;
    let lands = |ms, says_pending| Fault::LandsLate { ms, says_pending };
    let (yes, gone, none) = (json!("confirmed"), json!("cancelled"), Value::Null);
    for (fault, answer, real, found, promises) in [
        (Fault::AnswerLost, "lost", (1, 1), [&yes, &yes, &yes], true),
        (Fault::RequestLost, "lost", (0, 0), [&none, &none, &none], true),
        (Fault::SoldOut, "sold_out", (0, 0), [&none, &none, &none], true),
        (lands(ms, false), "lost", (0, 0), [&none, &yes, &yes], true),
        (lands(ms, true), "pending", (0, 0), [&none, &yes, &yes], true),
        (lands(late_ms, false), "lost", (0, 0), [&none, &none, &none], false),
        (Fault::DuplicateAnswer, "confirmed", (1, 1), [&yes, &yes, &yes], true),
        (Fault::RefusesYetBooks, "sold_out", (1, 1), [&yes, &yes, &yes], false),
        (Fault::Lies, "confirmed", (0, 0), [&none, &none, &none], false),
        (Fault::Forgets { ms }, "confirmed", (1, 1), [&yes, &none, &none], false),
        (Fault::CancelledByHotel { ms }, "confirmed", (1, 1), [&yes, &gone, &gone], true),
    ] {
        let mut desk = Desk::faulty(1, Tool::BookHotel, fault);
        assert_eq!(words(&desk.book("b")), answer, "{fault:?}");
        assert_eq!(desk.real(), real, "{fault:?}");
        let look = [desk.find(0, "b"), desk.find(5, "b"), desk.find(25, "b")];
        assert_eq!([&look[0], &look[1], &look[2]], found, "{fault:?}");
        assert_eq!(fault.keeps_promises(), promises, "{fault:?}");
        assert_eq!(desk.hotel.requests()[1].fault, Some(fault));
    }
}

#[test]
fn every_fault_of_a_cancellation_does_what_it_says() {
    let ms = 3 * MINUTE_MS;
    let lands = |says_pending| Fault::LandsLate { ms, says_pending };
    let (gone, none) = (json!("cancelled"), Value::Null);
    for (fault, answer, in_force, found) in [
        (Fault::AnswerLost, "lost", 0, [&gone, &gone]),
        (Fault::RequestLost, "lost", 1, [&none, &none]),
        (lands(false), "lost", 1, [&none, &gone]),
        (lands(true), "pending", 1, [&none, &gone]),
        (Fault::DuplicateAnswer, "cancelled", 0, [&gone, &gone]),
        (Fault::RefusesYetBooks, "not_cancellable", 0, [&gone, &gone]),
        (Fault::Lies, "cancelled", 1, [&none, &none]),
        (Fault::Forgets { ms }, "cancelled", 0, [&gone, &none]),
    ] {
        let mut desk = Desk::faulty(1, Tool::CancelBooking, fault);
        let number = desk.booked();
        assert_eq!(words(&desk.cancel(&number, "c")), answer, "{fault:?}");
        assert_eq!(desk.real(), (1, in_force), "{fault:?}");
        let mut look = |minutes| desk.found(minutes, "find_cancellation", "c");
        assert_eq!([&look(0), &look(5)], found, "{fault:?}");
    }
}

/// Whether it happened is drawn: over some seeds both are seen, under one and the same answer.
#[test]
fn what_times_out_or_answers_garbage_may_have_happened() {
    for (fault, answers) in [
        (Fault::TimesOut, BTreeSet::from(["timeout".to_owned()])),
        (Fault::Garbage, BTreeSet::from(["garbage".to_owned(), "ok".to_owned()])),
    ] {
        let mut seen = BTreeSet::new();
        for seed in 0..40 {
            let mut desk = Desk::faulty(seed, Tool::BookHotel, fault);
            let answer = words(&desk.book("b"));
            let exists = desk.find(0, "b") == "confirmed";
            assert_eq!(desk.real(), (usize::from(exists), usize::from(exists)));
            seen.insert((answer, exists));
        }
        let both = |answer: &String| [(answer.clone(), false), (answer.clone(), true)];
        assert_eq!(seen, answers.iter().flat_map(both).collect(), "{fault:?}");
    }
}

#[test]
fn a_booking_that_lands_later_than_promised_is_there_in_the_end() {
    let ms = SETTLED_AFTER_MS + 5 * MINUTE_MS;
    let fault = Fault::LandsLate { ms, says_pending: false };
    let mut desk = Desk::faulty(1, Tool::BookHotel, fault);
    desk.book("b");
    let at = START.plus_ms(ms);
    let Truth::WillBook { confirmation_number, at: promised } = desk.last_truth().clone() else {
        panic!("{:?}", desk.last_truth())
    };
    assert_eq!((desk.hotel.next_due(), promised), (Some(at), at));
    // A repeated reference makes no second one while the first is on its way.
    assert_eq!(words(&desk.book("b")), "pending");
    desk.hotel.settle(at.minus_ms(1));
    assert_eq!(desk.real(), (0, 0));
    desk.hotel.settle(at);
    let made: Vec<(&str, Timestamp)> = desk
        .hotel
        .bookings()
        .iter()
        .map(|booking: &Booking| (booking.confirmation_number.as_str(), booking.made_at))
        .collect();
    assert_eq!(made, [(confirmation_number.as_str(), at)]);
    assert_eq!(desk.hotel.next_due(), None);
}

#[test]
fn a_cancellation_that_lands_after_the_hotels_own_does_nothing() {
    let mut desk = Desk::new(1);
    let number = desk.booked();
    let late = Fault::LandsLate { ms: 2 * MINUTE_MS, says_pending: false };
    desk.hotel.set_faults(Faults::always(Tool::CancelBooking, late));
    desk.cancel(&number, "c");
    let by_hotel = Fault::CancelledByHotel { ms: MINUTE_MS };
    desk.hotel.set_faults(Faults::always(Tool::FindBooking, by_hotel));
    assert_eq!(desk.find(0, "b"), "confirmed");
    assert_eq!(desk.found(5, "find_cancellation", "c"), Value::Null);
    assert_eq!(desk.hotel.bookings()[0].cancelled_by, Some(Party::Hotel));
}

#[test]
fn a_look_up_can_be_struck_too() {
    for (fault, answer) in [
        (Fault::AnswerLost, "lost"),
        (Fault::RequestLost, "lost"),
        (Fault::TimesOut, "timeout"),
        (Fault::DuplicateAnswer, "confirmed"),
        (Fault::CancelledByHotel { ms: 0 }, "cancelled"),
    ] {
        let mut desk = Desk::faulty(1, Tool::FindBooking, fault);
        desk.book("b");
        let reply = desk.call("find_booking", json!({ "client_ref": "b" }));
        assert_eq!(words(&reply), answer, "{fault:?}");
    }
    let mut desk = Desk::faulty(1, Tool::FindBooking, Fault::Forgets { ms: 0 });
    desk.book("b");
    assert_eq!((desk.find(0, "b"), desk.real()), (Value::Null, (1, 0)));
}

#[test]
fn an_earlier_answer_comes_again_beside_the_right_one() {
    let mut desk = Desk::new(1);
    desk.hotel.set_faults(Faults::once(Tool::BookHotel, 2, Fault::DuplicateAnswer));
    let first = desk.book("op-1");
    assert_eq!(desk.hotel.take_repeated(), None);
    assert_ne!(desk.book("op-2"), first);
    let repeated = desk.hotel.take_repeated().unwrap();
    assert_eq!((repeated.call, repeated.client_ref.as_deref()), (2, Some("op-1")));
    assert_eq!(repeated.reply, first);
    assert_eq!(desk.hotel.take_repeated(), None);
    assert_eq!(desk.real(), (2, 2));
}

#[test]
fn an_honest_refusal_is_never_given_where_a_booking_exists() {
    let mut desk = Desk::new(1);
    let first = desk.book("b");
    desk.hotel.set_faults(Faults::always(Tool::BookHotel, Fault::SoldOut));
    assert_eq!(desk.book("b"), first);
    desk.hotel.set_faults(Faults::always(Tool::BookHotel, Fault::RefusesYetBooks));
    assert_eq!(words(&desk.book("b")), "sold_out");
}

/// A long run of calls with all faults, as the simulator would make it.
fn long_run(seed: u64) -> Hotel {
    let mut desk = Desk::new(seed);
    desk.hotel.set_faults(Faults::random(60, &Fault::ALL));
    let mut quotes = vec![desk.quote.clone()];
    for round in 0..60_u64 {
        desk.now = desk.now.plus_ms(MINUTE_MS);
        let stay = json!({ "city": "Macau", "check_in": "2026-12-10", "check_out": "2026-12-11",
            "guests": 2 });
        if let Reply::Answer { json, .. } = desk.call("search_hotels", stay) {
            quotes.extend(json["offers"][0]["id"].as_str().map(str::to_owned));
        }
        desk.quote.clone_from(quotes.last().unwrap());
        let reference = format!("op-{}", round / 2);
        desk.book(&reference);
        let number = desk.hotel.bookings().last().map(|b| b.confirmation_number.clone());
        desk.cancel(&number.unwrap_or_default(), &format!("{reference}-c"));
        desk.call("find_booking", json!({ "client_ref": reference }));
    }
    desk.hotel
}

#[test]
fn the_same_seed_and_calls_give_the_same_state() {
    let hotel = long_run(3);
    assert_eq!(long_run(3).state().to_string(), hotel.state().to_string());
    assert_ne!(long_run(4).state().to_string(), hotel.state().to_string());
    let struck: BTreeSet<String> =
        hotel.requests().iter().filter_map(|r| r.fault).map(|f| format!("{f:?}")).collect();
    assert_eq!(struck.len(), Fault::ALL.len(), "{struck:?}");

    // A vendor that is read back goes on as the same one.
    let mut back: Hotel = serde_json::from_str(&hotel.state().to_string()).unwrap();
    let mut hotel = hotel;
    hotel.set_faults(Faults::default());
    assert_eq!(back, hotel);
    let now = START.plus_ms(SETTLED_AFTER_MS * 4);
    let ask = Map::from_iter([("client_ref".to_owned(), json!("op-3"))]);
    assert_eq!(back.call(now, "find_booking", &ask), hotel.call(now, "find_booking", &ask));
    assert_eq!(back.state(), hotel.state());
}

#[test]
fn the_log_agrees_with_the_world() {
    for seed in 0..20 {
        let mut hotel = long_run(seed);
        hotel.settle(START.plus_ms(SETTLED_AFTER_MS * 10));
        let numbers = |hotel: &Hotel| -> BTreeSet<String> {
            hotel.bookings().iter().map(|b| b.confirmation_number.clone()).collect()
        };
        let logged: BTreeSet<String> = hotel
            .requests()
            .iter()
            .filter_map(|request| match &request.truth {
                Truth::Booked { confirmation_number }
                | Truth::WillBook { confirmation_number, .. } => Some(confirmation_number.clone()),
                Truth::Nothing
                | Truth::Repeated
                | Truth::Cancelled { .. }
                | Truth::WillCancel { .. } => None,
            })
            .collect();
        assert_eq!((numbers(&hotel), numbers(&hotel).len()), (logged, hotel.bookings().len()));
    }
}

#[test]
fn plans_of_faults_are_read_strictly() {
    let text = r#"{"rules":[{"tool":"book_hotel","call":2,"fault":"answer_lost"},
        {"per_mille":50,"fault":{"lands_late":{"ms":60000}}}]}"#;
    let mut plan = Faults::once(Tool::BookHotel, 2, Fault::AnswerLost);
    let late = Fault::LandsLate { ms: 60_000, says_pending: false };
    plan.rules.extend(Faults::random(50, &[late]).rules);
    assert_eq!(Faults::parse(text), Ok(plan));
    for wrong in ["[]", "{}", r#"{"rules":[{"fault":"sleeps"}]}"#, r#"{"rules":[],"more":1}"#] {
        assert!(Faults::parse(wrong).is_err(), "{wrong}");
    }
    assert!(
        Faults::parse(&json!({ "rules": vec![json!({ "fault": "lies" }); 1_001] }).to_string())
            .is_err()
    );
}

#[test]
fn a_rule_strikes_its_call_only() {
    let mut desk = Desk::faulty(1, Tool::BookHotel, Fault::AnswerLost);
    let replies = [desk.book("a"), desk.book("b")].map(|reply| words(&reply));
    assert_eq!(replies, ["lost", "confirmed"]);
    // A fault that cannot strike a tool leaves it alone.
    desk.hotel.set_faults(Faults::random(1_000, &[Fault::Lies]));
    assert_eq!(desk.search().len(), 3);
    assert_eq!(words(&desk.book("c")), "confirmed");
    assert_eq!(desk.find(0, "c"), Value::Null);
}

/// The manifest says about each tool what the vendor does.
#[test]
fn the_manifest_is_true() {
    let manifest: toml::Table = toml::from_str(HOTEL_MANIFEST).unwrap();
    let tools = manifest["tool"].as_table().unwrap();
    let names: BTreeSet<&str> = tools.keys().map(String::as_str).collect();
    assert_eq!(names, Tool::ALL.map(Tool::as_str).into_iter().collect());
    let options = HotelOptions::default();
    for tool in Tool::ALL {
        let entry = &tools[tool.as_str()];
        assert_eq!(entry["effect"].as_str() != Some("read"), tool.is_effect());
        if !tool.is_effect() {
            continue;
        }
        let hours = options.dedupe_ms / 3_600_000;
        assert_eq!(entry["idempotent"]["window"].as_str(), Some(&*format!("{hours}h")));
        let minutes = SETTLED_AFTER_MS / MINUTE_MS;
        assert_eq!(entry["reconcile"]["settled_after"].as_str(), Some(&*format!("{minutes}m")));
    }
}
