//! Worst-case models on the delegation of the story with the hotel.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use sim::attack::{Options, Progress, Report, Target, Wrong, sample};
use testkit::stores::TempFolder;

fn attack(steps: u64, seed: u64, change: impl FnOnce(Target) -> Target) -> Report {
    let scratch = TempFolder::in_memory().unwrap();
    let target = change(sample::target(&scratch.path().join("copy.db")).unwrap());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    target.attack(Options { steps, seed, threads }, &Progress::default()).unwrap()
}

#[expect(clippy::print_stdout, reason = "the figures are what the test is run for")]
fn show(report: &Report) {
    println!("{:#}", report.json());
}

#[test]
fn some_hundred_steps_reach_as_far_as_the_card_and_no_further() {
    let report = attack(800, 1, |target| target);
    show(&report);
    assert_eq!(report.findings, []);
    // It bites: what may be reached is reached, and the person's taps count too.
    assert_eq!(report.actions.get("hotel.book_hotel"), Some(&2));
    assert!(report.tapped > 0 && report.crashes > 0, "{report:?}");
}

#[test]
fn what_nobody_asked_for_is_found() {
    let report = attack(150, 1, Target::with_something_astray);
    let found: Vec<Wrong> = report.findings.iter().map(|finding| finding.wrong).collect();
    assert!(!found.is_empty(), "{report:?}");
    assert!(found.iter().all(|wrong| *wrong == Wrong::Unauthorized), "{report:?}");
}

#[test]
#[ignore = "some half an hour in a release build on two idle cores; ./test --long"]
fn long_attack_a_million_steps() {
    let report = attack(1_000_000, 1_000, |target| target);
    show(&report);
    assert_eq!(report.findings, []);
    assert!(report.steps >= 1_000_000, "{report:?}");
}
