//! The person of the demo, and the hand at the plug.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use base::{Clock as _, IdSource, SystemClock, Timestamp};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::{DAY_MS, Notes, Play, Summary, story};
use crate::cli::DemoArgs;

/// A server that dies by itself this often in a row is broken, and the demo says so.
const DEATHS_MAX: u32 = 3;
const LOOK_MS: u64 = 20;

/// Watches the server, starts it again, speaks and listens as the person would.
pub struct Audience {
    args: DemoArgs,
    folder: PathBuf,
    program: PathBuf,
    origin: String,
    http: reqwest::Client,
    ids: IdSource,
    message: base::EventId,
    end: Timestamp,
    seen: i64,
    heard: Vec<String>,
    cards: usize,
    notes: Notes,
    /// When, in the story's time, the plug is still to be pulled.
    pulls: Vec<Timestamp>,
    linked: bool,
}

impl Audience {
    pub fn new(
        args: DemoArgs,
        folder: &Path,
        program: PathBuf,
        listen: SocketAddr,
        play: &Play,
    ) -> anyhow::Result<Self> {
        let ids = IdSource::new(crate::seed()?);
        let message = ids.next(SystemClock.now());
        let whole_ms = u64::from(play.days) * DAY_MS;
        let mut pulls: Vec<Timestamp> = (0..args.kills.unwrap_or(0))
            .map(|_| play.start.plus_ms(u64::from_be_bytes(ids.bytes()) % whole_ms))
            .collect();
        pulls.sort_unstable();
        pulls.reverse();
        Ok(Audience {
            args,
            folder: folder.to_owned(),
            program,
            origin: format!("http://{listen}"),
            http: model::http_client(Duration::from_secs(2))?,
            ids,
            message,
            end: play.start.plus_ms(whole_ms),
            seen: 0,
            heard: Vec::new(),
            cards: 0,
            notes: Notes::default(),
            pulls,
            linked: false,
        })
    }

    /// Plays to the end. A viewer's page stays open until they stop the demo.
    pub async fn watch(&mut self) -> anyhow::Result<()> {
        self.notes.write(&self.folder)?;
        let mut server = self.start().await?;
        let mut deaths = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
            if let Some(status) = server.try_wait()? {
                deaths = self.count(status, deaths)?;
                server = self.start().await?;
                continue;
            }
            // The server may be down at any moment: what fails now is asked again.
            let Ok(now) = self.look().await else { continue };
            deaths = 0;
            if self.pulls.last().is_some_and(|due| *due <= now) {
                let pause = u64::from_be_bytes(self.ids.bytes()) % 60;
                tokio::time::sleep(Duration::from_millis(pause)).await;
                self.pulls.pop();
                server.start_kill()?;
                continue;
            }
            if now >= self.end && self.pulls.is_empty() && !self.notes.done {
                let summary = self.finish().await?;
                if self.args.unattended {
                    server.start_kill()?;
                    server.wait().await?;
                    return verdict(&summary);
                }
            }
        }
    }

    async fn start(&mut self) -> anyhow::Result<Child> {
        // Only the first start says something that a viewer needs: the pairing link.
        let link = !self.linked && !self.args.unattended;
        let mut server = Command::new(&self.program)
            .arg("--config")
            .arg(self.folder.join("adjutant.toml"))
            .args(["serve", "--stage"])
            .arg(&self.folder)
            .stdin(Stdio::null())
            .stdout(if link { Stdio::piped() } else { Stdio::null() })
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the server")?;
        if let Some(out) = server.stdout.take() {
            self.show_link(out).await?;
            self.linked = true;
        }
        Ok(server)
    }

    /// Hands on what the server says at its first start, up to the pairing link; the rest is drained.
    async fn show_link(&self, out: tokio::process::ChildStdout) -> anyhow::Result<()> {
        use tokio::io::{AsyncBufReadExt as _, BufReader};
        let mut lines = BufReader::new(out).lines();
        while let Some(line) = lines.next_line().await? {
            self.say(&line)?;
            if line.starts_with("open: ") {
                break;
            }
        }
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        self.say(
            "Two weeks pass in half a minute. Confirm the duty on the page, and pull the plug there \
             whenever you like.",
        )
    }

    fn count(&mut self, status: ExitStatus, deaths: u32) -> anyhow::Result<u32> {
        use std::os::unix::process::ExitStatusExt as _;
        if status.signal() == Some(rustix::process::Signal::KILL.as_raw()) {
            self.notes.plugs += 1;
            self.notes.write(&self.folder)?;
            self.say(&format!("-- plug pulled ({}) --", self.notes.plugs))?;
            return Ok(0);
        }
        anyhow::ensure!(deaths < DEATHS_MAX, "the server ended by itself ({status}); see above");
        Ok(deaths + 1)
    }

    fn token(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.folder.join("data/cli.token"))?)
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let url = format!("{}{path}", self.origin);
        let answer = self.http.get(url).bearer_auth(self.token()?).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    }

    async fn post(&self, path: &str, body: Value) -> anyhow::Result<Value> {
        let url = format!("{}{path}", self.origin);
        let answer = self.http.post(url).bearer_auth(self.token()?).json(&body).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    }

    /// One look at the server, as a client: speak, decide, listen, confirm receipt.
    async fn look(&mut self) -> anyhow::Result<Timestamp> {
        let health = self.get("/health").await?;
        let now = Timestamp::parse(health["now"].as_str().unwrap_or_default())?;
        // The same id each time: however often it is sent, it is one message.
        if self.seen == 0 {
            let message = json!({"id": self.message, "text": story::REQUEST});
            self.post("/v1/messages", message).await?;
        }
        if self.args.unattended && self.heard.is_empty() {
            self.confirm().await?;
        }
        self.listen(now).await?;
        Ok(now)
    }

    async fn confirm(&self) -> anyhow::Result<()> {
        let open = self.get("/v1/proposals?state=open").await?;
        for card in open["proposals"].as_array().into_iter().flatten() {
            let path = format!("/v1/proposals/{}/confirm", card["id"].as_str().unwrap_or_default());
            // The card's own id makes the tap repeatable.
            self.post(&path, json!({"id": card["id"], "digest": card["digest"]})).await?;
        }
        Ok(())
    }

    async fn listen(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let chat = self.get(&format!("/v1/chat?after={}&limit=100", self.seen)).await?;
        let mut receipts = Vec::new();
        for entry in chat["entries"].as_array().into_iter().flatten() {
            let text = entry["text"].as_str().unwrap_or_default().to_owned();
            self.seen = self.seen.max(entry["seq"].as_i64().unwrap_or(0));
            match entry["kind"].as_str() {
                Some("agent") => {
                    self.tell(now, &text)?;
                    self.heard.push(text);
                    receipts.push(entry["id"].clone());
                }
                Some("notice") => {
                    self.tell(now, &text)?;
                    self.cards += 1;
                    receipts.push(entry["id"].clone());
                }
                _ => self.tell(now, &format!("you: {text}"))?,
            }
        }
        if !receipts.is_empty() {
            let id: base::EventId = self.ids.next(SystemClock.now());
            self.post("/v1/receipts", json!({"id": id, "messages": receipts})).await?;
        }
        Ok(())
    }

    fn tell(&self, now: Timestamp, text: &str) -> anyhow::Result<()> {
        let zone = domain::schedule::zone("Asia/Hong_Kong")?;
        self.say(&format!("{}  {text}", domain::schedule::local_words(&zone, now)))
    }

    fn say(&self, text: &str) -> anyhow::Result<()> {
        if !self.args.json {
            writeln!(std::io::stdout().lock(), "{text}")?;
        }
        Ok(())
    }

    /// Compares what was heard with what the feed's prices call for, and shows the numbers.
    async fn finish(&mut self) -> anyhow::Result<Summary> {
        let me = self.get("/v1/me").await?;
        let count = |name: &str| me["month"][name].as_u64().unwrap_or(0);
        let (lost, doubled) = compare(&story::expected(), &self.heard);
        let summary = Summary {
            wakeups: count("wakeups"),
            model_calls: count("model_calls"),
            messages: self.heard.len(),
            plugs: self.notes.plugs,
            lost: lost + usize::from(self.cards == 0),
            doubled: doubled + self.cards.saturating_sub(1),
        };
        self.notes.done = true;
        self.notes.summary = Some(summary);
        self.notes.write(&self.folder)?;
        let mut line = serde_json::to_value(summary)?;
        line["virtual_days"] = json!(story::DAYS);
        if self.args.json {
            writeln!(std::io::stdout().lock(), "{line}")?;
        } else {
            self.say(&format!(
                "\n{} days: {} wake-ups, {} model calls, {} messages, {} plugs pulled, lost {}, doubled {}",
                story::DAYS,
                summary.wakeups,
                summary.model_calls,
                summary.messages,
                summary.plugs,
                summary.lost,
                summary.doubled
            ))?;
            if !self.args.unattended {
                self.say("The page stays open. End the demo with Ctrl-C.")?;
            }
        }
        Ok(summary)
    }
}

/// How many of the expected are missing, and how many of the heard are too many.
fn compare(expected: &[String], heard: &[String]) -> (usize, usize) {
    let mut left = heard.to_vec();
    let mut lost = 0;
    for text in expected {
        match left.iter().position(|found| found == text) {
            Some(at) => drop(left.swap_remove(at)),
            None => lost += 1,
        }
    }
    (lost, left.len())
}

fn verdict(summary: &Summary) -> anyhow::Result<()> {
    anyhow::ensure!(
        summary.lost == 0 && summary.doubled == 0,
        "lost {}, doubled {}: this is a defect",
        summary.lost,
        summary.doubled
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn the_comparison_counts_what_is_missing_and_what_is_too_many() {
        let all = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        let expected = all(&["a", "b"]);
        assert_eq!(compare(&expected, &all(&["b", "a"])), (0, 0));
        assert_eq!(compare(&expected, &all(&["a", "a"])), (1, 1));
        assert_eq!(compare(&expected, &all(&["a", "b", "b", "c"])), (0, 2));
        assert_eq!(compare(&expected, &[]), (2, 0));
    }
}
