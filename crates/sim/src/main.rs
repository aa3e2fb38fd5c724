//! `sim`: runs stories of the simulator.
fn main() {
    let name = std::env::args().nth(1).unwrap_or("all".into());
    let mode = std::env::args().nth(2).unwrap_or("run".into());
    for story in sim::stories::all() {
        if name != "all" && name != story.name {
            continue;
        }
        if mode == "run" {
            let (ran, failure) = sim::crash::one(&story, 1, &[], false, None);
            println!(
                "{} {:?} points {}",
                story.name,
                ran.as_ref().map(|r| r.points),
                failure.map(|f| f.what).unwrap_or_default()
            );
            if let Some(ran) = ran {
                std::fs::write(format!("/dev/shm/{}.jsonl", story.name), ran.history.text())
                    .unwrap();
            }
        } else {
            let tally = sim::crash::every_point(&story, 1, |n, of, ran, f| {
                if let Some(f) = f {
                    println!("{n}/{of} {f:?}");
                    std::fs::write(
                        format!("/dev/shm/{}-{n}.jsonl", story.name),
                        ran.history.text(),
                    )
                    .unwrap();
                }
            });
            println!("{} {} failures", tally.runs, tally.failures.len());
            for f in tally.failures.iter().take(5) {
                println!("{:?} {}", f.crash_at, f.what);
            }
        }
    }
}
