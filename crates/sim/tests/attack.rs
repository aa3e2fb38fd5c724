//! Worst-case models on the delegation of the story with the hotel.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use sim::attack::{Options, Progress, Report, Target, Wrong, sample};
use sim::crash::Scratch;

fn attack(steps: u64, seed: u64, change: impl FnOnce(Target) -> Target) -> Report {
    let scratch = Scratch::new().unwrap();
    let target = change(sample::target(&scratch.path().join("copy.db")).unwrap());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    target.attack(Options { steps, seed, threads }, &Progress::default()).unwrap()
}

#[expect(clippy::print_stdout, reason = "the figures are what the test is run for")]
fn show(report: &Report) {
    println!("{:#}", report.json());
}

#[test]
fn a_few_thousand_steps_reach_no_further_than_the_card() {
    let report = attack(3_000, 1, |target| target);
    show(&report);
    assert_eq!(report.findings, []);
    // It bites: what may be reached is reached, and the person's taps count too.
    assert_eq!(report.actions.get("hotel.book_hotel"), Some(&2));
    assert!(report.tapped > 20, "{report:?}");
}

#[test]
fn what_nobody_asked_for_is_found() {
    let report = attack(500, 1, Target::with_something_astray);
    let found: Vec<Wrong> = report.findings.iter().map(|finding| finding.wrong).collect();
    assert_eq!(found, [Wrong::Unauthorized]);
}

#[test]
#[ignore = "some twenty minutes; ./test --long"]
fn long_attack_a_million_steps() {
    let report = attack(1_000_000, 1_000, |target| target);
    show(&report);
    assert_eq!(report.findings, []);
    assert!(report.steps >= 1_000_000, "{report:?}");
}

#[test]
#[ignore = "probe"]
fn probe() {
    let n: u64 = std::env::var("STEPS").unwrap().parse().unwrap();
    let t = std::time::Instant::now();
    let report = attack(n, 1, |target| target);
    println!("{:#} in {:?}", report.json(), t.elapsed());
}
