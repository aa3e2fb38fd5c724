//! The stories in peace, at every crash point, by seed, and on both engines.

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
        assert_eq!(ran.crashes, 1 + u32::from(name == "down"), "point {point}");
        histories.push_str(&ran.history.text());
    }
    assert_held(&histories);
}

#[test]
fn three_days_survive_a_crash_at_every_point() {
    crash_points("days", 0, 1);
}

#[test]
fn a_burst_survives_a_crash_at_every_point() {
    crash_points("burst", 0, 1);
}

#[test]
fn waits_survive_a_crash_at_every_point() {
    crash_points("waits", 0, 1);
}

#[test]
fn outages_survive_a_crash_at_every_point() {
    crash_points("outages", 0, 1);
}

#[test]
fn an_outage_over_slots_survives_a_crash_at_every_point() {
    crash_points("down", 0, 1);
}

#[test]
fn poison_survives_a_crash_at_every_point() {
    crash_points("poison", 0, 1);
}

#[test]
fn a_stop_survives_a_crash_at_every_point() {
    crash_points("stop", 0, 1);
}

/// The fortnight repeats the points of its days; the long test takes them all.
#[test]
fn a_fortnight_survives_crashes() {
    crash_points("watch", 3, 23);
}

#[test]
#[ignore = "long"]
fn long_a_fortnight_survives_a_crash_at_every_point() {
    crash_points("watch", 0, 1);
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
    for (name, crash_at) in [("waits", vec![]), ("stop", vec![31])] {
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
