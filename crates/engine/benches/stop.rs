//! From a tap on stop to its commit, while the records are written to as fast as they can be:
//! `cargo bench -p engine --bench stop`. Prints the percentiles beside those of a bare fsync in the same
//! folder, since a machine's disk decides most of it. The aim: p99 below 20 ms and 10 fsyncs.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark fails by panicking")]

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base::{Clock, IdSource, Limits, SystemClock};
use engine::{Context, control, intake, setup};
use model::{Prices, Script, ScriptedModel};
use store::{Database, Store};
use testkit::stores::TempFolder;

/// Taps that are measured.
const TAPS: usize = 500;
/// Writers that never rest.
const WRITERS: usize = 8;

fn percentile(sorted: &[Duration], of: usize) -> Duration {
    sorted[(sorted.len() * of / 100).min(sorted.len() - 1)]
}

fn fsyncs(folder: &TempFolder) -> Vec<Duration> {
    let mut file = std::fs::File::create(folder.path().join("fsync")).unwrap();
    let mut taken = Vec::new();
    for _ in 0..200 {
        file.write_all(&[7; 4_096]).unwrap();
        let begin = Instant::now();
        file.sync_data().unwrap();
        taken.push(begin.elapsed());
    }
    taken.sort_unstable();
    taken
}

async fn context(folder: &TempFolder) -> Context {
    let ids = IdSource::new([9; 32]);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let fake = Arc::new(testkit::clock::FakeClock::new(clock.now()));
    let database = Database::Sqlite(folder.path().join("adjutant.db"));
    let mut options = testkit::stores::options(database, fake, &ids, false);
    options.clock = clock.clone();
    let model =
        Arc::new(ScriptedModel::new(Script::parse("name = 'none'").unwrap(), Prices::default()));
    Context {
        incarnation: options.incarnation,
        store: tokio::task::spawn_blocking(move || Store::open(options)).await.unwrap().unwrap(),
        clock,
        ids: Arc::new(ids),
        limits: Limits::default(),
        model: model.clone(),
        small: model.clone(),
        reviewer: model,
        max_output_tokens: 500,
        world: Arc::new(testkit::world::FakeWorld::default()),
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let folder = TempFolder::new();
    let alone = fsyncs(&folder);
    let cx = context(&folder).await;
    let seed = setup::Seed { name: "Ann".into(), zone: "UTC".into(), language: None };
    let owner = setup::owner(&cx, seed).await.unwrap();
    let paired = cx.write(owner.id, |cx, tx| setup::add_device(cx, tx, "bench")).await.unwrap();
    let device = paired.device;
    let ended = Arc::new(AtomicBool::new(false));
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        let (cx, device, ended) = (cx.clone(), device.clone(), ended.clone());
        writers.spawn(async move {
            let mut written = 0_u64;
            while !ended.load(Ordering::Relaxed) {
                let (by, id) = (device.clone(), cx.uuid());
                cx.write(by.owner, move |cx, tx| intake::message(cx, tx, &by, id, "more"))
                    .await
                    .unwrap();
                written += 1;
            }
            written
        });
    }
    let mut taken = Vec::new();
    for _ in 0..TAPS {
        let (by, with, txn) = (device.clone(), cx.clone(), cx.uuid());
        let begin = Instant::now();
        let stop =
            cx.store.write_urgent(by.owner, txn, move |tx| control::pause(&with, tx, &by, None));
        stop.await.unwrap();
        taken.push(begin.elapsed());
        let by = device.clone();
        cx.write(by.owner, move |_, tx| {
            let pause = store::hold::pauses(tx, by.owner)?.remove(0).id;
            control::lift(tx, &by, pause)
        })
        .await
        .unwrap();
    }
    ended.store(true, Ordering::Relaxed);
    let mut written = 0;
    while let Some(writer) = writers.join_next().await {
        written += writer.unwrap();
    }
    taken.sort_unstable();
    let [p50, p99] = [50, 99].map(|of| percentile(&taken, of));
    let fsync = percentile(&alone, 50);
    println!(
        "stop to commit: p50 {p50:?}, p99 {p99:?}, max {:?} over {TAPS} taps beside {WRITERS} writers \
         ({written} messages); fsync p50 {fsync:?}; aim for p99: {:?}",
        taken[taken.len() - 1],
        Duration::from_millis(20) + fsync * 10
    );
}
