//! The person: says things until they are acknowledged, reads what comes back and confirms receipt.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::stage::{Dice, Stage, millis};

/// What the person knows, for the judge and the killer to read.
#[derive(Debug, Default)]
pub struct Known {
    /// The texts that were acknowledged, by the client's id.
    pub acknowledged: BTreeMap<String, String>,
    /// How many notes were acknowledged.
    pub notes: u64,
    /// What the agent said, with how often and whether it was late.
    pub heard: BTreeMap<String, (u32, bool)>,
    pub confirmed: bool,
}

impl Known {
    /// Whether an answer to an acknowledged note was not heard yet.
    pub fn waits(&self) -> bool {
        (1..=self.notes).any(|n| !self.heard.contains_key(&noted(n)))
    }
}

pub fn noted(n: u64) -> String {
    format!("noted {n}")
}

/// What the person is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Talk,
    Listen,
    Leave,
}

/// After this many tries in a row a request is taken for refused for good: about a minute.
const TRIES_MAX: u32 = 6_000;

pub struct Person {
    stage: Arc<Stage>,
    dice: Dice,
    seen: i64,
    known: Arc<Mutex<Known>>,
}

impl Person {
    pub fn new(stage: Arc<Stage>, seed: u64) -> Person {
        Person { stage, dice: Dice::new(seed), seen: 0, known: Arc::default() }
    }

    pub fn known(&self) -> Arc<Mutex<Known>> {
        self.known.clone()
    }

    fn knows(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap()
    }

    /// Wants the price watched, then says notes in little bursts and waits for the answers.
    pub async fn live(mut self, mood: watch::Receiver<Mood>) {
        self.say("watch the price").await;
        let now = || *mood.borrow();
        while now() != Mood::Leave {
            self.listen().await;
            if !self.knows().confirmed {
                self.confirm().await;
            }
            if now() == Mood::Talk && !self.knows().waits() {
                tokio::time::sleep(millis(self.dice.under(150))).await;
                for _ in 0..=self.dice.under(3) {
                    self.note().await;
                }
            }
            tokio::time::sleep(millis(10)).await;
        }
    }

    pub async fn note(&mut self) {
        let n = self.knows().notes + 1;
        self.say(&format!("note {n}")).await;
        self.knows().notes = n;
    }

    /// Sends one message until it is acknowledged; now and then once more, as a client does that
    /// did not hear the answer.
    pub async fn say(&mut self, text: &str) {
        let id = self.dice.id();
        let message = json!({"id": id, "text": text});
        self.post("/v1/messages", &message).await;
        self.knows().acknowledged.insert(id, text.to_owned());
        if self.dice.under(4) == 0 {
            self.post("/v1/messages", &message).await;
        }
    }

    /// One try. `None`: no answer, which says nothing about what happened.
    pub async fn try_say(&mut self, text: &str) -> Option<()> {
        let id = self.dice.id();
        let message = json!({"id": id, "text": text});
        let answer = self.ask("/v1/messages", Some(&message)).await?;
        assert!(answer.0.is_success(), "{answer:?}");
        self.knows().acknowledged.insert(id, text.to_owned());
        Some(())
    }

    pub async fn confirm(&mut self) {
        let open = self.get("/v1/proposals?state=open").await;
        for card in open["proposals"].as_array().unwrap() {
            let path = format!("/v1/proposals/{}/confirm", card["id"].as_str().unwrap());
            // The card's own id makes the tap repeatable.
            self.post(&path, &json!({"id": card["id"], "digest": card["digest"]})).await;
            self.knows().confirmed = true;
        }
    }

    /// Reads what is new and confirms that it is here.
    pub async fn listen(&mut self) {
        let chat = self.get(&format!("/v1/chat?after={}&limit=100", self.seen)).await;
        let mut here = Vec::new();
        for entry in chat["entries"].as_array().unwrap() {
            if entry["kind"] != "user" {
                here.push(entry["id"].clone());
            }
        }
        if !here.is_empty() {
            self.post("/v1/receipts", &json!({"id": self.dice.id(), "messages": here})).await;
        }
        for entry in chat["entries"].as_array().unwrap() {
            self.seen = self.seen.max(entry["seq"].as_i64().unwrap());
            if entry["kind"] == "agent" {
                let text = entry["text"].as_str().unwrap().to_owned();
                let mut known = self.knows();
                let heard = known.heard.entry(text).or_insert((0, false));
                *heard = (heard.0 + 1, heard.1 || entry["late"] == true);
            }
        }
    }

    async fn get(&self, path: &str) -> Value {
        self.until_answered(path, None).await
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        self.until_answered(path, Some(body)).await
    }

    async fn until_answered(&self, path: &str, body: Option<&Value>) -> Value {
        let mut last = None;
        for _ in 0..TRIES_MAX {
            if let Some((status, answer)) = self.ask(path, body).await {
                if status.is_success() {
                    return answer;
                }
                let again = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
                assert!(again.contains(&status), "{path} {body:?}: {status} {answer}");
                last = Some((status, answer));
            }
            tokio::time::sleep(millis(10)).await;
        }
        panic!("{path} {body:?} was never answered; the last refusal: {last:?}");
    }

    async fn ask(&self, path: &str, body: Option<&Value>) -> Option<(StatusCode, Value)> {
        let token = std::fs::read_to_string(self.stage.token_file()).ok()?;
        let url = self.stage.url(path);
        let request = match body {
            None => self.stage.http.get(url),
            Some(body) => self.stage.http.post(url).json(body),
        };
        let answer = request.bearer_auth(token).send().await.ok()?;
        let status = answer.status();
        // An answer that breaks off was not heard.
        Some((status, answer.json().await.ok()?))
    }
}
