//! Many runs of one story: at every crash point, and by many seeds.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use testkit::stores::TempFolder;

use crate::sim::{Plan, Ran, SimError, run};
use crate::story::Story;

/// One run that did not come out as it must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Of which story.
    pub story: &'static str,
    /// With which seed.
    pub seed: u64,
    /// Crashed at these points.
    pub crash_at: Vec<u64>,
    /// What was wrong.
    pub what: String,
}

/// What many runs came to.
#[derive(Debug, Default)]
pub struct Tally {
    /// Runs.
    pub runs: u64,
    /// Crashes in all of them.
    pub crashes: u64,
    /// Those that failed, by themselves or by the story's oracle.
    pub failures: Vec<Failure>,
}

/// A database with the schema and nothing else: made once, since every run begins with it.
fn template() -> Option<&'static Path> {
    static MADE: OnceLock<Option<(TempFolder, PathBuf)>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let scratch = TempFolder::in_memory().ok()?;
        let file = scratch.path().join("adjutant.db");
        crate::sim::prepare(&file).ok()?;
        Some((scratch, file))
    });
    made.as_ref().map(|(_, file)| file.as_path())
}

/// One run in a folder of its own, with the story's oracle. `None`: it failed before the oracle.
pub fn one(
    story: &Story,
    seed: u64,
    crash_at: &[u64],
    faults: bool,
    postgres: Option<String>,
) -> (Option<Ran>, Option<Failure>) {
    let variant = story.hotel.map(|case| format!("{case}: ")).unwrap_or_default();
    let failure = |what: String| Failure {
        story: story.name,
        seed,
        crash_at: crash_at.to_vec(),
        what: format!("{variant}{what}"),
    };
    let scratch = match TempFolder::in_memory() {
        Ok(scratch) => scratch,
        Err(error) => return (None, Some(failure(error.to_string()))),
    };
    let folder = scratch.path().to_owned();
    let template = postgres.is_none().then(|| template().map(Path::to_owned)).flatten();
    let plan = Plan { seed, crash_at: crash_at.to_vec(), faults, postgres, folder, template };
    match run(story, plan) {
        Ok(ran) => {
            let failed = (story.check)(&ran.outcome).err().map(failure);
            (Some(ran), failed)
        }
        Err(error) => {
            let error: SimError = error;
            (None, Some(failure(error.to_string())))
        }
    }
}

/// Runs a story once in peace and once for each of its crash points. Every run, and its failure if it
/// has one, goes to `each`, as it ends.
pub fn every_point(
    story: &Story,
    seed: u64,
    mut each: impl FnMut(u64, u64, &Ran, Option<&Failure>),
) -> Tally {
    let mut tally = Tally::default();
    let (peaceful, failure) = one(story, seed, &[], false, None);
    let points = peaceful.as_ref().map_or(0, |ran| ran.points);
    tally.add(peaceful, failure, |ran, failure| each(0, points, ran, failure));
    for point in 0..points {
        let (ran, failure) = one(story, seed, &[point], false, None);
        tally.add(ran, failure, |ran, failure| each(point + 1, points, ran, failure));
    }
    tally
}

/// One run of a soak: faults, and up to two crashes at points of the seed's choice, one of them
/// perhaps in the middle of the recovery from another. The points were counted in a peaceful run.
pub fn soak_one(story: &Story, seed: u64, points: u64) -> (Option<Ran>, Option<Failure>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x50a1);
    let mut crash_at = Vec::new();
    // Where a deadly word counts deaths, more than one crash could make a good item look deadly.
    let crashes = if story.deadly.is_some() { 1 } else { rng.next_u64() % 3 };
    for _ in 0..crashes {
        let near = crash_at.last().map_or(0, |last: &u64| last + 1 + rng.next_u64() % 6);
        let far = rng.next_u64() % (points + points / 4).max(1);
        crash_at.push(if near > 0 && rng.next_u64() % 2 == 0 { near } else { far });
    }
    one(story, seed, &crash_at, true, None)
}

impl Tally {
    /// Counts one run.
    pub fn add(
        &mut self,
        ran: Option<Ran>,
        failure: Option<Failure>,
        each: impl FnOnce(&Ran, Option<&Failure>),
    ) {
        self.runs += 1;
        if let Some(ran) = &ran {
            self.crashes += u64::from(ran.crashes);
            each(ran, failure.as_ref());
        }
        self.failures.extend(failure);
    }
}
