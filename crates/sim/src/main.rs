//! `sim`: runs stories of the simulator, crashes them, and asks the judge.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, bail};
use base::{Clock as _, SystemClock, Timestamp};
use clap::{Parser, Subcommand};
use serde_json::{Value, json};
use sim::crash::{self, Failure, Tally};
use sim::judge;
use sim::sim::Ran;
use sim::stories;
use sim::story::Story;

/// The simulator: the real stages on one thread, by a seed, in virtual time.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// One JSON object a line instead of words.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Lists the stories.
    List,
    /// Runs a story once and prints its trace hash.
    Run {
        /// Which; `all` for each.
        #[arg(long, default_value = "all")]
        story: String,
        /// Of a story with a hotel, the variant as a failure names it: "SoldOut on book_hotel × Again".
        #[arg(long)]
        variant: Option<String>,
        /// The seed of ids, order and faults.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// On a PostgreSQL of its own instead of SQLite.
        #[arg(long)]
        postgres: bool,
        /// With lost and late answers, dying workers and a bad network.
        #[arg(long)]
        faults: bool,
        /// Crash at these points, counted from zero.
        #[arg(long, value_delimiter = ',')]
        crash_at: Vec<u64>,
        /// Keep the history in this file.
        #[arg(long)]
        history: Option<PathBuf>,
    },
    /// Runs a story once for each of its crash points.
    Crash {
        /// Which; `all` for each.
        #[arg(long, default_value = "all")]
        story: String,
        /// The seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Runs stories by many seeds, with faults and several crashes.
    Soak {
        /// Which; `all` for each.
        #[arg(long, default_value = "all")]
        story: String,
        /// How many seeds.
        #[arg(long, default_value_t = 100)]
        seeds: u64,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        from: u64,
    },
    /// Asks the judge about a file of histories.
    Judge {
        /// The file.
        history: PathBuf,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    let Arguments { command, json } = Arguments::parse();
    let mut out = Out { json, said_at: SystemClock.now() };
    let fine = match command {
        Command::List => {
            for story in stories::all() {
                out.line(
                    &format!("{:10} {}", story.name, story.about),
                    || json!({"story": story.name, "about": story.about}),
                )?;
            }
            true
        }
        Command::Run { story, variant, seed, postgres, faults, crash_at, history } => {
            let one =
                |story: &Story, database| crash::one(story, seed, &crash_at, faults, database);
            let stories = match variant {
                None => chosen(&story)?,
                Some(variant) => vec![named(&story, &variant)?],
            };
            run(&out, stories, postgres, history, one)?
        }
        Command::Crash { story, seed } => {
            let mut fine = true;
            for story in chosen(&story)? {
                fine &= crash(&mut out, story.name, seed)?;
            }
            fine
        }
        Command::Soak { story, seeds, from } => soak(&mut out, &story, from, seeds)?,
        Command::Judge { history } => {
            let verdict = judge::file(&history)?;
            out.line(&verdict.to_string(), || verdict.clone())?;
            judge::held(&verdict)
        }
    };
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs stories once each, prints their hashes, and keeps the histories if that is wanted.
fn run(
    out: &Out,
    stories: Vec<Story>,
    postgres: bool,
    history: Option<PathBuf>,
    one: impl Fn(&Story, Option<String>) -> (Option<Ran>, Option<Failure>),
) -> anyhow::Result<bool> {
    let server = postgres.then(testkit::postgres::TestPostgres::start).transpose()?;
    let (mut fine, mut kept) = (true, String::new());
    for story in stories {
        let database = server.as_ref().map(|server| server.database()).transpose()?;
        let (ran, failure) = one(&story, database);
        let text = ran.as_ref().map(|ran| ran.history.text()).unwrap_or_default();
        kept.push_str(&text);
        let verdict = if text.is_empty() { Value::Null } else { judge::text(&text)? };
        fine &= failure.is_none() && judge::held(&verdict);
        let hash = ran.as_ref().map(|ran| ran.history.hash().to_string());
        let points = ran.as_ref().map_or(0, |ran| ran.points);
        let what = failure.map(|failure| failure.what);
        let words = format!(
            "{:10} hash {} points {points} judge {} {}",
            story.name,
            hash.as_deref().unwrap_or("none"),
            verdict["verdict"],
            what.as_deref().unwrap_or("as told"),
        );
        out.line(&words, || {
            json!({"story": story.name, "hash": hash, "points": points, "failure": what,
                "verdict": verdict})
        })?;
    }
    if let Some(path) = history {
        std::fs::write(&path, kept).with_context(|| path.display().to_string())?;
    }
    Ok(fine)
}

/// What all crash points of some variants of a story came to.
#[derive(Default)]
struct Crashed {
    tally: Tally,
    points: u64,
    /// The first verdict that does not hold, or else the last one.
    verdict: Value,
}

impl Crashed {
    fn add(&mut self, tally: Tally, points: u64, verdict: Value) {
        self.points += points;
        self.tally.runs += tally.runs;
        self.tally.crashes += tally.crashes;
        self.tally.failures.extend(tally.failures);
        if self.verdict.is_null() || judge::held(&self.verdict) {
            self.verdict = verdict;
        }
    }
}

/// All crash points of all variants of a story, each variant judged by itself, on all processors.
fn crash(out: &mut Out, name: &'static str, seed: u64) -> anyhow::Result<bool> {
    let (began, json) = (SystemClock.now(), out.json);
    let variants = stories::variants(name);
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Crashed::default()));
    let work = || -> anyhow::Result<()> {
        let mut out = Out { json, said_at: began };
        while let Some(story) = variants.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (mut histories, mut points) = (String::new(), 0);
            let tally = crash::every_point(story, seed, |point, of, ran, _| {
                histories.push_str(&ran.history.text());
                points = of;
                let n = next.load(Ordering::Relaxed).min(variants.len());
                let variant = format!("variant {n} of {}", variants.len());
                out.progress(&format!("{name}: {variant}, {point} of {of} points"));
            });
            let verdict = if histories.is_empty() { Value::Null } else { judge::text(&histories)? };
            all.lock().unwrap_or_else(PoisonError::into_inner).add(tally, points, verdict);
        }
        Ok(())
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads.min(variants.len())).map(|_| scope.spawn(work)).collect();
        let joined = started.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread of the crash runs panicked")))
        });
        joined.collect::<anyhow::Result<Vec<()>>>()
    })?;
    let Crashed { tally, points, verdict } =
        all.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seconds = SystemClock.now().since(began).as_secs_f64();
    let words = format!("{name:10} {} variants, {points} points, {seconds:.1} s", variants.len());
    out.line(
        &words,
        || json!({"story": name, "variants": variants.len(), "points": points, "seconds": seconds}),
    )?;
    Ok(out.tally(name, &tally, &verdict)?)
}

fn soak(out: &mut Out, story: &str, from: u64, seeds: u64) -> anyhow::Result<bool> {
    let mut fine = true;
    for story in chosen(story)? {
        let (mut tally, mut histories) = (Tally::default(), String::new());
        let (peaceful, _) = crash::one(&story, from, &[], false, None);
        let points = peaceful.map_or(0, |ran| ran.points);
        let variants = stories::variants(story.name);
        // Where there are many variants, each seed plays another one.
        let seeded = (from..from.saturating_add(seeds)).zip(variants.iter().cycle());
        for (seed, story) in seeded {
            let (ran, failure) = crash::soak_one(story, seed, points);
            tally.add(ran, failure, |ran, _| histories.push_str(&ran.history.text()));
            out.progress(&format!("{}: {} of {seeds} seeds", story.name, tally.runs));
        }
        fine &= out.tally(story.name, &tally, &judge::text(&histories)?)?;
    }
    Ok(fine)
}

fn chosen(name: &str) -> anyhow::Result<Vec<Story>> {
    let all = stories::all();
    let names: Vec<&str> = all.iter().map(|story| story.name).collect();
    if name != "all" && !names.contains(&name) {
        bail!("there is no story \"{name}\"; there are all, {}", names.join(", "));
    }
    Ok(all.into_iter().filter(|story| name == "all" || story.name == name).collect())
}

/// One variant of a story.
fn named(story: &str, variant: &str) -> anyhow::Result<Story> {
    let words = |story: &Story| story.hotel.as_ref().map(ToString::to_string);
    let mut all = stories::variants(story);
    let names: Vec<String> = all.iter().filter_map(words).collect();
    match all.iter().position(|story| words(story).as_deref() == Some(variant)) {
        Some(at) => Ok(all.swap_remove(at)),
        None => {
            bail!("story \"{story}\" has no variant \"{variant}\"; it has {}", names.join(", "))
        }
    }
}

/// Where results and progress go.
struct Out {
    json: bool,
    said_at: Timestamp,
}

/// Milliseconds between two lines of progress.
const PROGRESS_MS: u128 = 2_000;

impl Out {
    fn line(&self, words: &str, json: impl FnOnce() -> Value) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        if self.json { writeln!(out, "{}", json()) } else { writeln!(out, "{words}") }
    }

    fn progress(&mut self, words: &str) {
        let at = SystemClock.now();
        if at.since(self.said_at).as_millis() >= PROGRESS_MS {
            self.said_at = at;
            // Progress that nobody can read is no failure.
            drop(writeln!(std::io::stderr(), "{words}"));
        }
    }

    fn tally(&self, story: &str, tally: &Tally, verdict: &Value) -> std::io::Result<bool> {
        let failures: Vec<Value> = tally
            .failures
            .iter()
            .take(20)
            .map(|f| json!({"seed": f.seed, "crash_at": f.crash_at, "what": f.what}))
            .collect();
        let words = format!(
            "{story:10} {} runs, {} crashes, {} failures, judge {}{}{}",
            tally.runs,
            tally.crashes,
            tally.failures.len(),
            verdict["verdict"],
            failures.iter().map(|f| format!("\n  {f}")).collect::<String>(),
            if judge::held(verdict) { String::new() } else { format!("\n  {}", verdict["first"]) },
        );
        self.line(&words, || {
            json!({"story": story, "runs": tally.runs, "crashes": tally.crashes,
                "failures": failures, "verdict": verdict})
        })?;
        Ok(tally.failures.is_empty() && judge::held(verdict))
    }
}
