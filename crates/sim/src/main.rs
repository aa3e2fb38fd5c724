//! `sim`: runs stories of the simulator.
fn main() {
    let folder = std::path::PathBuf::from(std::env::args().nth(1).unwrap_or_default());
    for story in sim::stories::all() {
        let plan = sim::sim::Plan {
            seed: 1,
            crash_at: vec![],
            faults: false,
            postgres: None,
            folder: folder.clone(),
        };
        match sim::sim::run(&story, plan) {
            Ok(ran) => {
                std::fs::write(folder.join("history.jsonl"), ran.history.text()).unwrap();
                println!("{} {} {:?}", ran.points, ran.history.hash(), (story.check)(&ran.outcome));
            }
            Err(error) => println!("{error}"),
        }
    }
}
