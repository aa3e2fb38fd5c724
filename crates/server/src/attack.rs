//! `adjutant attack`: worst-case models on a copy of the person's own records, on this machine, beside what
//! their delegation allows at most (ADV-01).

use std::sync::Arc;
use std::time::Duration;

use base::{Amount, Clock as _, SystemClock};
use serde::Deserialize;
use sim::attack::{AttackError, Finding, Options, Progress, Report, Target, ToolSpec};
use testkit::stores::TempFolder;

use crate::cli::AttackArgs;
use crate::client::{Client, ClientError, Screen, fetch};

/// How long the server may take to make the copy.
const COPY_MS: u64 = 600_000;
/// How often it is said how far it has got.
const SAID_MS: u64 = 1_500;

#[derive(Deserialize)]
struct Tools {
    tools: Vec<ToolSpec>,
}

/// Fetches the copy, attacks it, and shows what came of it.
pub async fn run(
    args: &AttackArgs,
    client: &Client,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    screen.note("Copying your records.")?;
    // In memory where the machine has that; nobody else may read it, and it goes with this run.
    let folder = TempFolder::in_memory()?;
    let copy = folder.path().join("copy.db");
    client.download(&["v1", "copy"], &copy, COPY_MS).await?;
    let Tools { tools } = fetch(client, &["v1", "tools"], &[]).await?;
    let target = Target::read(&copy, args.duty, tools, SystemClock.now()).map_err(failed)?;
    let report = watched(args, target, screen).await?;
    let ended_early = report.steps < args.steps;
    screen.result(&report.json(), &words(&report, ended_early))?;
    if report.findings.is_empty() && !ended_early {
        return Ok(());
    }
    Err(ClientError::DoesNotWork)
}

/// Attacks on threads of its own, says how far it has got, and ends early if the person wants that.
async fn watched(
    args: &AttackArgs,
    target: Target,
    screen: &mut Screen<'_>,
) -> Result<Report, ClientError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let options = Options { steps: args.steps, seed: args.seed, threads };
    let progress = Arc::new(Progress::default());
    let watched = progress.clone();
    let mut attack = tokio::task::spawn_blocking(move || target.attack(options, &watched));
    loop {
        // Whichever comes first; none of them is lost by not being waited for.
        tokio::select! {
            ended = &mut attack => {
                let ended = ended.map_err(|error| ClientError::Usage(error.to_string()))?;
                return ended.map_err(failed);
            }
            _ = tokio::signal::ctrl_c() => progress.stop(),
            () = tokio::time::sleep(Duration::from_millis(SAID_MS)) => {
                let (steps, found) = (progress.steps(), progress.findings());
                screen.note(&format!("{steps} of {} steps, {found} findings", args.steps))?;
            }
        }
    }
}

fn failed(error: AttackError) -> ClientError {
    ClientError::Usage(format!("it could not be attacked: {error}"))
}

/// What was allowed beside the worst that happened.
fn words(report: &Report, ended_early: bool) -> String {
    let begin = if ended_early { "Ended early after " } else { "" };
    let mut text = format!(
        "{begin}{} steps of worst-case models in {} attempts with {} crashes and {} acts of a careless person; {} \
         requests reached the made-up outside, {} of them by a tap.\n\n{}.\n\n",
        report.steps,
        report.epochs,
        report.crashes,
        report.person,
        report.requests,
        report.tapped,
        report.reach_words
    );
    let mut line = |what: &str, most: String, worst: String| {
        text.push_str(&format!("{what:<30} {most:>20} {worst:>24}\n"));
    };
    line("", "allowed at most".into(), "worst that happened".into());
    for (tool, most) in &report.reach.actions {
        line(tool, most.to_string(), report.actions.get(tool).unwrap_or(&0).to_string());
    }
    let of = |amounts: &[Amount], currency| {
        amounts.iter().find(|amount| amount.currency == currency).copied()
    };
    for most in &report.reach.money {
        let worst = of(&report.money, most.currency).unwrap_or(Amount { minor: 0, ..*most });
        line("money", most.to_string(), worst.to_string());
    }
    for amount in &report.money {
        if of(&report.reach.money, amount.currency).is_none() {
            line("money", "none".into(), amount.to_string());
        }
    }
    line("people written to", report.reach.people.len().to_string(), report.people.to_string());
    text.push('\n');
    match report.findings.is_empty() {
        true => text.push_str("Nothing beyond it, nothing that nobody released, nothing twice.\n"),
        false => {
            for finding in &report.findings {
                let Finding { wrong, what, seed } = finding;
                text.push_str(&format!("{wrong:?}: {what} (--seed {seed})\n"));
            }
        }
    }
    text
}
