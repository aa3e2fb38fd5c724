//! The stories in peace, at every crash point, by seed, and on both engines.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use sim::crash;
use sim::judge;
use sim::stories;
use sim::story::Story;

fn story(name: &str) -> Story {
    stories::all().into_iter().find(|story| story.name == name).unwrap()
}

fn assert_held(histories: &str) {
    let verdict = judge::text(histories).unwrap();
    assert!(judge::held(&verdict), "{verdict:#}");
}

/// Every `stride`-th crash point of a story, from the `first`.
///
/// Points come in pairs, before and after a commit or an outside call. What the disk holds and the
/// world knows before the one is what it held after the last, so the odd points alone meet every
/// state; the long test takes all of them.
fn crash_points(name: &str, first: u64, stride: usize) {
    let story = story(name);
    let (peaceful, failure) = crash::one(&story, 1, &[], false, None);
    assert_eq!(failure, None);
    let peaceful = peaceful.unwrap();
    let mut histories = peaceful.history.text();
    for point in (first..peaceful.points).step_by(stride) {
        let (ran, failure) = crash::one(&story, 1, &[point], false, None);
        assert_eq!(failure, None, "crashed at point {point} of {}", peaceful.points);
        let ran = ran.unwrap();
        assert_eq!(ran.crashes, peaceful.crashes + 1, "point {point}");
        histories.push_str(&ran.history.text());
    }
    assert_held(&histories);
}

/// A test for each part of a story's points: (name, story, first point, stride).
macro_rules! crashes {
    ($($name:ident: $story:literal, $first:literal, $stride:literal;)*) => {$(
        #[test]
        fn $name() {
            crash_points($story, $first, $stride);
        }
    )*};
}

crashes! {
    crashes_in_three_days_1: "days", 1, 4;
    crashes_in_three_days_2: "days", 3, 4;
    crashes_in_a_burst: "burst", 0, 1;
    crashes_in_waits_1: "waits", 1, 4;
    crashes_in_waits_2: "waits", 3, 4;
    crashes_in_outages_1: "outages", 1, 4;
    crashes_in_outages_2: "outages", 3, 4;
    crashes_around_a_downtime: "down", 1, 2;
    crashes_at_the_end_of_a_schedule: "ends", 1, 2;
    crashes_beside_poison: "poison", 1, 2;
    crashes_around_a_stop: "stop", 1, 2;
    crashes_in_a_fortnight: "watch", 3, 22;
    crashes_around_callbacks: "callbacks", 1, 2;
    crashes_in_a_typhoon: "typhoon", 0, 1;
    crashes_around_a_hold: "hold", 0, 1;
    crashes_in_attribution_1: "attribution", 1, 4;
    crashes_in_attribution_2: "attribution", 3, 4;
    crashes_in_a_routine: "routine", 1, 2;
    crashes_beside_letters_that_shout: "shout", 1, 2;
}

/// Every variant of the stories with a hotel in peace, and crashed at `each` of its points, spread over the
/// variants so that neighbours crash elsewhere. Of all variants those that are `part` modulo `parts`.
fn hotel_variants((part, parts): (usize, usize), each: usize) {
    let (mut failures, mut histories) = (Vec::new(), String::new());
    let all = ["hotel", "hotel_card"].into_iter().flat_map(stories::variants);
    for (n, story) in all.enumerate().filter(|(n, _)| n % parts == part) {
        let (peaceful, failure) = crash::one(&story, 1, &[], false, None);
        failures.extend(failure);
        let peaceful = peaceful.unwrap();
        histories.push_str(&peaceful.history.text());
        for k in 0..each {
            let point = (n * 17 + k * 61) as u64 % peaceful.points;
            let (ran, failure) = crash::one(&story, 1, &[point], false, None);
            failures.extend(failure);
            // One that did not come to its end is among the failures.
            histories.push_str(&ran.map(|ran| ran.history.text()).unwrap_or_default());
        }
    }
    assert_eq!(failures, []);
    assert_held(&histories);
}

#[test]
fn a_hotel_that_lies_1() {
    hotel_variants((0, 3), 1);
}

#[test]
fn a_hotel_that_lies_2() {
    hotel_variants((1, 3), 1);
}

#[test]
fn a_hotel_that_lies_3() {
    hotel_variants((2, 3), 1);
}

#[test]
#[ignore = "long"]
fn long_every_crash_point_of_every_story() {
    for story in stories::all() {
        // The next test takes all variants of these.
        if story.hotel.is_none() {
            crash_points(story.name, 0, 1);
        }
    }
}

/// Every crash point × every way in which the hotel goes wrong × everything that the person does about it.
#[test]
#[ignore = "long"]
fn long_every_crash_point_of_a_hotel_that_lies() {
    let (mut variants, mut points, mut runs) = (0, 0, 0);
    for story in ["hotel", "hotel_card"].into_iter().flat_map(stories::variants) {
        let mut histories = String::new();
        let mut of = 0;
        let tally = crash::every_point(&story, 1, |_, counted, ran, _| {
            histories.push_str(&ran.history.text());
            of = counted;
        });
        assert_eq!(tally.failures, []);
        assert_held(&histories);
        (variants, points, runs) = (variants + 1, points + of, runs + tally.runs);
    }
    assert_eq!(runs, points + variants, "{variants} variants");
}

/// Every tenth of those points on PostgreSQL.
#[test]
#[ignore = "long"]
fn long_every_tenth_crash_point_of_a_hotel_on_postgres() {
    let Some(server) = testkit::postgres::TestPostgres::start_or_skip() else { return };
    for (n, story) in ["hotel", "hotel_card"].into_iter().flat_map(stories::variants).enumerate() {
        let points = crash::one(&story, 1, &[], false, None).0.unwrap().points;
        let mut histories = String::new();
        for point in (n as u64 % 10..points).step_by(10) {
            let database = server.database().unwrap();
            let (ran, failure) = crash::one(&story, 1, &[point], false, Some(database));
            assert_eq!(failure, None);
            histories.push_str(&ran.unwrap().history.text());
        }
        assert_held(&histories);
    }
}

fn soak(seeds: std::ops::Range<u64>) {
    let mut histories = String::new();
    for story in stories::all() {
        let points = crash::one(&story, 1, &[], false, None).0.map_or(0, |ran| ran.points);
        let variants = stories::variants(story.name);
        // Where there are many variants, each seed plays another one.
        for seed in seeds.clone() {
            let variant = &variants[seed as usize * 29 % variants.len()];
            let (ran, failure) = crash::soak_one(variant, seed, points);
            assert_eq!(failure, None);
            histories.push_str(&ran.unwrap().history.text());
        }
    }
    assert_held(&histories);
}

#[test]
fn a_few_seeds_with_faults_and_several_crashes() {
    soak(1..4);
}

#[test]
#[ignore = "long"]
fn long_soak() {
    soak(100..400);
}

#[test]
fn the_same_seed_gives_the_same_trace_on_both_engines() {
    let Some(server) = testkit::postgres::TestPostgres::start_or_skip() else { return };
    let stories = [
        ("waits", vec![]),
        ("stop", vec![31]),
        ("callbacks", vec![]),
        ("typhoon", vec![40]),
        ("hold", vec![]),
        ("attribution", vec![]),
        ("routine", vec![60]),
        ("shout", vec![]),
        ("hotel", vec![70]),
    ];
    for (name, crash_at) in stories {
        let story = story(name);
        let hash = |faults: bool, seed: u64, postgres: Option<String>| {
            let (ran, failure) = crash::one(&story, seed, &crash_at, faults, postgres);
            assert_eq!(failure, None, "{name}");
            ran.unwrap().history.hash()
        };
        let sqlite = hash(true, 5, None);
        assert_eq!(sqlite, hash(true, 5, None), "{name}: the same engine");
        assert_eq!(sqlite, hash(true, 5, Some(server.database().unwrap())), "{name}");
        assert_ne!(sqlite, hash(true, 6, None), "{name}: another seed");
    }
}
