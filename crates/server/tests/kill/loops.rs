//! The kill loop: SIGKILL at random moments, a restart at once, again and again.

use std::sync::{Arc, Mutex};

use base::{Clock as _, SystemClock, Timestamp};
use tokio::sync::watch;

use crate::judge;
use crate::person::{Known, Mood, Person};
use crate::stage::{Dice, Engine, Health, Server, Stage, millis, since_ms};

const SEED_VARIABLE: &str = "ADJUTANT_KILL_SEED";
/// The longest life of a program that answers; a start is cut short within as much.
const LIFE_MS: u64 = 400;
const START_MS: u64 = 150;
/// How long a patient killer waits for progress.
const PATIENCE_MS: u64 = 5_000;

/// Kills the program `kills` times and judges what is on record then.
pub fn kill(engine: Engine, kills: u32) {
    let seed = std::env::var(SEED_VARIABLE).ok().map(|text| text.parse().unwrap());
    let seed = seed.unwrap_or_else(|| SystemClock.now().micros().unsigned_abs());
    eprintln!("{SEED_VARIABLE}={seed} repeats these kill times");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some((stage, known)) = runtime.block_on(play(engine, kills, seed)) else { return };
    judge::kills(&stage, &known.lock().unwrap());
    runtime.shutdown_timeout(millis(1_000));
}

/// When one life of the program ends.
#[derive(Debug, Clone, Copy)]
enum End {
    /// While it starts.
    InStart { after_ms: u64 },
    /// So long after its first answer.
    After { ms: u64 },
    /// So long after its first progress: without these a program that never gets anywhere in time
    /// would look as if it were always killed too soon.
    AfterProgress { ms: u64 },
}

fn draw(dice: &Dice) -> End {
    match dice.under(8) {
        0 | 1 => End::InStart { after_ms: dice.under(START_MS) },
        2 | 3 => End::AfterProgress { ms: dice.under(LIFE_MS) },
        _ => End::After { ms: dice.under(LIFE_MS) },
    }
}

/// From the start of the process, in milliseconds.
#[derive(Debug, Default)]
struct Measured {
    answers: Vec<u64>,
    progress: Vec<u64>,
}

async fn play(engine: Engine, kills: u32, seed: u64) -> Option<(Arc<Stage>, Arc<Mutex<Known>>)> {
    let stage = Arc::new(Stage::set(engine, 0).await?);
    let person = Person::new(stage.clone(), seed);
    let (known, dice) = (person.known(), Dice::new(seed ^ 1));
    let (mood, moods) = watch::channel(Mood::Talk);
    let living = tokio::spawn(person.live(moods));
    let mut measured = Measured::default();
    for _ in 0..kills {
        life(&stage, &known, draw(&dice), &mut measured).await;
        assert!(!living.is_finished(), "{:?}", living.await);
    }
    let server = drain(&stage, &known, &mood).await;
    mood.send_replace(Mood::Leave);
    living.await.unwrap();
    server.stop().await;
    eprintln!("{engine:?}, {kills} kills");
    report("start to first answer", &mut measured.answers);
    report("start to first progress, with work waiting", &mut measured.progress);
    Some((stage, known))
}

/// One life of the program, from its start to SIGKILL.
async fn life(stage: &Stage, known: &Mutex<Known>, end: End, measured: &mut Measured) {
    let (waits, asked) = (known.lock().unwrap().waits(), stage.asked_bytes());
    let born = SystemClock.now();
    let mut server = stage.start();
    let (life_ms, patient) = match end {
        End::InStart { after_ms } => {
            tokio::time::sleep(millis(after_ms)).await;
            return server.kill();
        }
        End::After { ms } => (ms, false),
        End::AfterProgress { ms } => (ms, true),
    };
    let first = stage.ready(&mut server).await;
    measured.answers.push(since_ms(born));
    let until = SystemClock.now().plus_ms(if patient { PATIENCE_MS } else { life_ms });
    let progress = watch_progress(stage, &mut server, asked, first, born, until).await;
    match progress {
        Some(ms) if waits => measured.progress.push(ms),
        None if waits && patient => {
            eprintln!("no progress in {PATIENCE_MS} ms: {}", server.log_end());
            measured.progress.push(PATIENCE_MS);
        }
        Some(_) | None => {}
    }
    let left = if patient { SystemClock.now().plus_ms(life_ms) } else { until };
    tokio::time::sleep(left.since(SystemClock.now())).await;
    server.kill();
}

/// Milliseconds from `born` to a question to the model or a change of any record.
async fn watch_progress(
    stage: &Stage,
    server: &mut Server,
    asked: u64,
    first: Health,
    born: Timestamp,
    until: Timestamp,
) -> Option<u64> {
    while SystemClock.now() < until {
        let moved = stage.health().await.is_some_and(|health| health.seq > first.seq);
        if moved || stage.asked_bytes() > asked {
            return Some(since_ms(born));
        }
        server.must_run();
        tokio::time::sleep(millis(2)).await;
    }
    None
}

/// Lets the program live, end its days and come to rest.
async fn drain(stage: &Stage, known: &Mutex<Known>, mood: &watch::Sender<Mood>) -> Server {
    let (end, days) = stage.end_soon();
    stage.play(days, 0);
    let mut server = stage.start();
    let mut still = (0, 0);
    for _ in 0..600 {
        let health = stage.ready(&mut server).await;
        if health.now > end {
            mood.send_replace(Mood::Listen);
        }
        let rests = health.now > end && health.seq == still.0 && !known.lock().unwrap().waits();
        still = (health.seq, if rests { still.1 + 1 } else { 0 });
        // Half a second without any change, with nothing left to say.
        if still.1 >= 10 {
            return server;
        }
        tokio::time::sleep(millis(50)).await;
    }
    panic!("no rest: {:?}; the log ends: {}", known.lock().unwrap(), server.log_end());
}

fn report(what: &str, ms: &mut [u64]) {
    ms.sort_unstable();
    let last = ms.len().saturating_sub(1);
    let at = |part: usize| ms.get((ms.len() * part / 100).min(last)).copied().unwrap_or_default();
    let (min, median, p95, max) = (at(0), at(50), at(95), at(100));
    eprintln!("  {what}: {} times, min {min}, median {median}, p95 {p95}, max {max} ms", ms.len());
}
