//! `adjutant tail`: the conversation as it happens.
//!
//! The stream only says "changed, now at 43". What changed is fetched by sequence number, so a lost
//! signal, a broken connection or a gap costs nothing but a reread (CLI-04 to CLI-06).

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use base::EventId;
use serde_json::{Value, json};

use super::error::ClientError;
use super::http::Client;
use super::show::{self, Screen, Times};
use super::wire::{Action, Changes, Chat, Entry, Me, Proposal, Speaker};
use super::{actions, fetch, understand};

/// First wait before a new connection; doubles up to the longest.
const RETRY_FIRST_MS: u64 = 100;
const RETRY_MAX_MS: u64 = 1_000;
/// Entries whose state is remembered; older ones may be shown once more.
const REMEMBERED_MAX: usize = 10_000;
/// Entries that one page or one receipt may hold.
const PAGE: i64 = 100;
/// Changes that one page may hold.
const CHANGES_PAGE: i64 = 500;

/// What to show at first, and whether the server is told what was shown.
#[derive(Debug, Clone, Copy)]
pub struct TailOptions {
    /// How many of the newest entries to begin with.
    pub last: u32,
    /// Begin after this change instead.
    pub after: Option<i64>,
    /// Whether shown messages are acknowledged, which makes them delivered.
    pub receipts: bool,
}

/// Shows entries for ever; returns only when the output is closed or the server refuses the token.
pub async fn tail(
    client: &Client,
    options: TailOptions,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let mut tail = Tail {
        client,
        options,
        cursor: options.after,
        times: Times::new("UTC"),
        shown: Shown::default(),
        unreceipted: Vec::new(),
        receipt: None,
        lost: false,
        retry_ms: RETRY_FIRST_MS,
    };
    loop {
        let error = match tail.connected(screen).await {
            Ok(never) => match never {},
            Err(error) if error.is_passing() || matches!(error, ClientError::Server { .. }) => {
                error
            }
            Err(error) => return Err(error),
        };
        if !tail.lost {
            tail.lost = true;
            tail.connection(screen, "lost", &format!("{error}\nTrying again …"))?;
        }
        tokio::time::sleep(Duration::from_millis(tail.retry_ms)).await;
        tail.retry_ms = (tail.retry_ms * 2).min(RETRY_MAX_MS);
    }
}

struct Tail<'a> {
    client: &'a Client,
    options: TailOptions,
    /// Everything up to this change has been shown; `None` before the first connection.
    cursor: Option<i64>,
    times: Times,
    shown: Shown,
    /// Messages on the screen that the server does not know to be there.
    unreceipted: Vec<String>,
    /// A receipt under way: kept with its id until the server has it.
    receipt: Option<(EventId, Vec<String>)>,
    lost: bool,
    retry_ms: u64,
}

impl Tail<'_> {
    /// One connection, from opening to its loss. The stream is opened before the record is read, so
    /// that no change falls between the two.
    async fn connected(&mut self, screen: &mut Screen<'_>) -> Result<Infallible, ClientError> {
        let mut signals = self.client.stream().await?;
        let me: Me = fetch(self.client, &["v1", "me"], &[]).await?;
        self.times = Times::new(&me.zone);
        if self.lost {
            self.lost = false;
            self.connection(screen, "regained", "Connected again.")?;
        }
        match self.cursor {
            Some(cursor) if cursor <= me.seq => self.catch_up(screen, cursor).await?,
            Some(cursor) => {
                // The record is older than what was shown: it was restored from a copy.
                let detail =
                    format!("The record went back from {cursor} to {}; rereading.", me.seq);
                self.connection(screen, "reread", &detail)?;
                self.newest(screen, PAGE).await?;
                self.cursor = Some(me.seq);
            }
            None => {
                self.newest(screen, i64::from(self.options.last)).await?;
                self.cursor = Some(me.seq);
            }
        }
        self.send_receipts(screen).await?;
        self.retry_ms = RETRY_FIRST_MS;
        loop {
            let seq = signals.next().await?;
            let cursor = self.cursor.unwrap_or(0);
            if seq > cursor {
                self.catch_up(screen, cursor).await?;
            }
        }
    }

    async fn newest(&mut self, screen: &mut Screen<'_>, limit: i64) -> Result<(), ClientError> {
        if limit == 0 {
            return Ok(());
        }
        let page: Chat = fetch(self.client, &["v1", "chat"], &[("limit", limit)]).await?;
        for entry in page.entries {
            self.show(screen, entry).await?;
        }
        Ok(())
    }

    /// Fetches what changed after `cursor`, page by page; the cursor moves once a page is shown.
    async fn catch_up(
        &mut self,
        screen: &mut Screen<'_>,
        mut cursor: i64,
    ) -> Result<(), ClientError> {
        loop {
            let query = [("after", cursor), ("limit", CHANGES_PAGE)];
            let page: Changes = fetch(self.client, &["v1", "changes"], &query).await?;
            let Some(last) = page.changes.last().map(|change| change.seq) else {
                // Numbers without changes: the list was cut short behind us, which is a gap too.
                if page.seq > cursor {
                    self.reread(screen, cursor).await?;
                    self.cursor = Some(page.seq);
                }
                return self.send_receipts(screen).await;
            };
            if page.changes.first().is_some_and(|first| first.seq > cursor + 1) {
                self.reread(screen, cursor).await?;
            }
            let mut seen: Vec<(&str, &str)> = Vec::new();
            for change in &page.changes {
                let key = (change.noun.as_str(), change.id.as_str());
                if !seen.contains(&key) {
                    seen.push(key);
                    self.look(screen, key.0, key.1).await?;
                }
            }
            self.send_receipts(screen).await?;
            if last <= cursor {
                return Err(ClientError::Garbled {
                    path: "/v1/changes".into(),
                    reason: format!("change {last} came after {cursor}"),
                });
            }
            cursor = last;
            self.cursor = Some(cursor);
            if !page.more {
                return Ok(());
            }
        }
    }

    /// A gap in the numbers: the conversation itself is read from there (CLI-06).
    async fn reread(&mut self, screen: &mut Screen<'_>, after: i64) -> Result<(), ClientError> {
        let mut from = after;
        loop {
            let query = [("after", from), ("limit", PAGE)];
            let page: Chat = fetch(self.client, &["v1", "chat"], &query).await?;
            let last = page.entries.last().and_then(|entry| entry.get("seq")?.as_i64());
            for entry in page.entries {
                self.show(screen, entry).await?;
            }
            self.send_receipts(screen).await?;
            match last {
                Some(last) if page.more && last > from => from = last,
                Some(_) | None => return Ok(()),
            }
        }
    }

    async fn look(
        &mut self,
        screen: &mut Screen<'_>,
        noun: &str,
        id: &str,
    ) -> Result<(), ClientError> {
        match noun {
            "message" | "event" => match self.client.get(&["v1", "chat", id], &[]).await {
                Ok(value) => self.show(screen, value).await,
                // Most events are no part of the conversation.
                Err(ClientError::Refused { status: 404, .. }) => Ok(()),
                Err(error) => Err(error),
            },
            _ => Ok(()),
        }
    }

    /// How the card of an entry is decided. One that cannot be any more asks for nothing.
    async fn way(&self, entry: &Entry) -> Result<Option<String>, ClientError> {
        let found = match (&entry.proposal, &entry.action) {
            (Some(id), _) => self.proposal_way(id).await,
            (None, Some(id)) => {
                let action: Action = fetch(self.client, &["v1", "actions", id], &[]).await?;
                Ok(Some(action).filter(Action::asks).and_then(|action| actions::way(&action)))
            }
            (None, None) => Ok(None),
        };
        match found {
            Err(ClientError::Refused { status: 404, .. }) => Ok(None),
            found => found,
        }
    }

    async fn proposal_way(&self, id: &str) -> Result<Option<String>, ClientError> {
        let card: Proposal = fetch(self.client, &["v1", "proposals", id], &[]).await?;
        let id = show::plain(id);
        Ok((card.state == "open").then(|| format!("Needs your decision: adjutant confirm {id}")))
    }

    async fn show(&mut self, screen: &mut Screen<'_>, value: Value) -> Result<(), ClientError> {
        let entry: Entry = understand("/v1/chat", value.clone())?;
        // Asked before the entry counts as shown: if this fails, it is shown after a new connection.
        let way = match !screen.json && !self.shown.knows(&entry.id) {
            true => self.way(&entry).await?,
            false => None,
        };
        let before = self.shown.put(&entry.id, &entry.state);
        let ours = matches!(entry.kind, Speaker::Agent | Speaker::Notice);
        let worth_showing = match before.as_deref() {
            None => true,
            Some(state) if state == entry.state => false,
            // "delivered" is our own receipt coming back.
            Some(_) => screen.json || !ours || entry.state != "delivered",
        };
        if worth_showing {
            let text = show::entry(&entry, &self.times, before.is_some(), way.as_deref());
            screen.result(&value, &text)?;
        }
        let settled = matches!(entry.state.as_str(), "delivered" | "dropped");
        if ours && !settled && before.is_none() && self.options.receipts {
            self.unreceipted.push(entry.id);
        }
        Ok(())
    }

    /// Tells the server what is on the screen. A receipt whose answer was lost goes again
    /// unchanged.
    async fn send_receipts(&mut self, screen: &mut Screen<'_>) -> Result<(), ClientError> {
        loop {
            if self.receipt.is_none() && !self.unreceipted.is_empty() {
                let count = self.unreceipted.len().min(usize::try_from(PAGE).unwrap_or(1));
                let messages = self.unreceipted.drain(..count).collect();
                self.receipt = Some((self.client.new_id(), messages));
            }
            let Some((id, messages)) = &self.receipt else { return Ok(()) };
            let body = json!({"id": id, "messages": messages});
            match self.client.post(&["v1", "receipts"], &body).await {
                Ok(_) => {}
                // The messages are readable all the same; a refused receipt must not end the tail.
                Err(error @ ClientError::Refused { .. }) if !error.is_passing() => {
                    screen.note(&format!("A receipt was refused: {error}"))?;
                }
                Err(error) => return Err(error),
            }
            self.receipt = None;
        }
    }

    fn connection(
        &self,
        screen: &mut Screen<'_>,
        state: &str,
        detail: &str,
    ) -> Result<(), ClientError> {
        if screen.json {
            let line = json!({"kind": "connection", "state": state, "detail": detail});
            return screen.result(&line, "");
        }
        screen.note(detail)
    }
}

/// The last state shown of each entry, oldest forgotten first.
#[derive(Default)]
struct Shown {
    states: HashMap<String, String>,
    order: VecDeque<String>,
}

impl Shown {
    fn knows(&self, id: &str) -> bool {
        self.states.contains_key(id)
    }

    /// Remembers the state; returns the one before, if the entry was shown.
    fn put(&mut self, id: &str, state: &str) -> Option<String> {
        let before = self.states.insert(id.to_string(), state.to_string());
        if before.is_none() {
            self.order.push_back(id.to_string());
        }
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.states.remove(&oldest);
        }
        before
    }
}
