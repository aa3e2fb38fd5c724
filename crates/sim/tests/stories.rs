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

#[test]
#[ignore = "long"]
fn long_every_crash_point_of_every_story() {
    for story in stories::all() {
        crash_points(story.name, 0, 1);
    }
}

fn soak(seeds: std::ops::Range<u64>) {
    let mut histories = String::new();
    for story in stories::all() {
        let points = crash::one(&story, 1, &[], false, None).0.map_or(0, |ran| ran.points);
        for seed in seeds.clone() {
            let (ran, failure) = crash::soak_one(&story, seed, points);
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
