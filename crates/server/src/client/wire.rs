//! The parts of the API's answers that the command line shows. Unknown fields are passed over, so
//! that an older program can read a newer server; `--json` prints what came, whole.

use base::{MicroUsd, Timestamp};
use serde::Deserialize;

/// Who is asking, and where the owner's record stands.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Me {
    /// IANA zone in which times are shown.
    #[serde(default)]
    pub zone: String,
    /// Latest change.
    pub seq: i64,
    /// How the agent addresses the person.
    #[serde(default)]
    pub name: String,
    /// What the month has cost so far.
    #[serde(default)]
    pub month: Month,
    /// off, observe or auto.
    #[serde(default)]
    pub dial: String,
    /// In which language the server speaks.
    #[serde(default)]
    pub language: String,
}

/// A month's cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Month {
    /// So far.
    #[serde(default)]
    pub micro_usd: MicroUsd,
    /// At most.
    #[serde(default)]
    pub cap_micro_usd: Option<MicroUsd>,
}

/// Something that may speak for the person.
#[derive(Debug, Deserialize)]
pub struct Device {
    /// Its id.
    pub id: String,
    /// As the person named it.
    pub name: String,
    /// When it was paired.
    pub created_at: Timestamp,
    /// When its access ended.
    #[serde(default)]
    pub revoked_at: Option<Timestamp>,
    /// For whom it speaks: user or supervisor.
    #[serde(default)]
    pub of: String,
    /// Whether it is this one.
    #[serde(default)]
    pub this: bool,
}

/// One line of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Entry {
    /// Change that last touched it.
    pub seq: i64,
    /// Who speaks.
    pub kind: Speaker,
    /// Message or event id.
    pub id: String,
    /// What is said.
    #[serde(default)]
    pub text: String,
    /// When.
    pub at: Timestamp,
    /// State word of the record, shown as it is (USR-07).
    pub state: String,
    /// A card to decide on.
    #[serde(default)]
    pub proposal: Option<String>,
    /// An action's card.
    #[serde(default)]
    pub action: Option<String>,
    /// Whether it came later than it was due.
    #[serde(default)]
    pub late: bool,
}

/// Who speaks in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The person.
    User,
    /// The agent.
    Agent,
    /// The system itself.
    Notice,
    /// A kind that this program does not know yet.
    #[serde(other)]
    Other,
}

/// A page of the conversation.
#[derive(Debug, Deserialize)]
pub struct Chat {
    /// Oldest first.
    pub entries: Vec<serde_json::Value>,
    /// Whether there is more behind it.
    #[serde(default)]
    pub more: bool,
}

/// A page of changes.
#[derive(Debug, Deserialize)]
pub struct Changes {
    /// Oldest first.
    pub changes: Vec<Change>,
    /// Latest change of all.
    #[serde(default)]
    pub seq: i64,
    /// Whether there is more behind it.
    #[serde(default)]
    pub more: bool,
}

/// "This record changed"; no content.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Change {
    /// Its number.
    pub seq: i64,
    /// Which kind of record.
    pub noun: String,
    /// Which one.
    pub id: String,
}

/// What must be so before a duty is over.
#[derive(Debug, Deserialize)]
pub struct Condition {
    /// The condition in words.
    pub text: String,
    /// What proves it.
    #[serde(default)]
    pub evidence: Option<String>,
    /// Who says so.
    #[serde(default)]
    pub authority: Option<String>,
}

/// A delegation with all that a person may ask about it.
#[derive(Debug, Deserialize)]
pub struct Duty {
    /// Its id.
    pub id: String,
    /// Short name.
    pub title: String,
    /// active, close_proposed, stopped, closed.
    pub state: String,
    /// The server's words for that state (UX rule 1).
    #[serde(default)]
    pub state_line: String,
    /// Version of its terms.
    pub version: i64,
    /// What it is for.
    #[serde(default)]
    pub goal: String,
    /// When it is over.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// Since when.
    pub created_at: Timestamp,
    /// Next planned wake-up.
    #[serde(default)]
    pub next_wake: Option<Timestamp>,
    /// What it waits for.
    #[serde(default)]
    pub waits: Vec<Wait>,
    /// When it wakes by itself.
    #[serde(default)]
    pub schedules: Vec<Schedule>,
    /// After this it wakes no more.
    #[serde(default)]
    pub ends_at: Option<Timestamp>,
    /// The pause that covers it.
    #[serde(default)]
    pub pause: Option<DutyPause>,
    /// What it hears.
    #[serde(default)]
    pub subscriptions: Vec<Subscription>,
    /// What it may do without asking again.
    #[serde(default)]
    pub grants: Vec<Grant>,
    /// Where its matters stand, newest first.
    #[serde(default)]
    pub situations: Vec<Situation>,
    /// Newest runs.
    #[serde(default)]
    pub runs: Vec<Run>,
    /// Cost of its model calls so far.
    #[serde(default)]
    pub spent_micro_usd: MicroUsd,
}

/// Something a duty waits for.
#[derive(Debug, Deserialize)]
pub struct Wait {
    /// Reply, time, change and so on.
    pub kind: String,
    /// What exactly.
    #[serde(default)]
    pub key: Option<String>,
    /// Until when.
    #[serde(default)]
    pub due_at: Option<Timestamp>,
    /// Its state.
    pub state: String,
}

/// A wake-up that repeats.
#[derive(Debug, Deserialize)]
pub struct Schedule {
    /// In words.
    pub words: String,
    /// What the agent is told then.
    #[serde(default)]
    pub prompt: String,
    /// The next one.
    #[serde(default)]
    pub next_slot: Option<Timestamp>,
    /// Its state.
    pub state: String,
    /// Whether the last one came late.
    #[serde(default)]
    pub late_last: bool,
    /// What a program looked at for it.
    #[serde(default)]
    pub check: Option<Check>,
}

/// The looks of a schedule.
#[derive(Debug, Deserialize)]
pub struct Check {
    /// That ended.
    pub looked: u64,
    /// Whose condition held.
    pub woke: u64,
    /// That could not be read.
    #[serde(default)]
    pub failed: u64,
    /// When the last one ended.
    #[serde(default)]
    pub last: Option<Timestamp>,
}

/// A pause that covers a duty.
#[derive(Debug, Deserialize)]
pub struct DutyPause {
    /// It covers all duties.
    pub everything: bool,
}

/// A standing wait for events of a source.
#[derive(Debug, Deserialize)]
pub struct Subscription {
    /// The source.
    pub name: String,
    /// Which events of it; `None`: all.
    #[serde(default)]
    pub topic: Option<String>,
    /// wake or background.
    #[serde(default)]
    pub mode: String,
    /// What the agent is to do.
    #[serde(default)]
    pub prompt: String,
    /// Its state.
    pub state: String,
}

/// A judgement of where a matter stands.
#[derive(Debug, Deserialize)]
pub struct Situation {
    /// The matter.
    pub matter: String,
    /// Where it stands.
    pub words: String,
    /// When it is looked at again.
    pub due_at: Timestamp,
}

/// What a duty may do without asking again.
#[derive(Debug, Deserialize)]
pub struct Grant {
    /// With its limits.
    pub words: String,
    /// active or ended.
    pub state: String,
    /// Kept for what may have happened.
    pub reserved: GrantUse,
    /// What happened.
    pub spent: GrantUse,
    /// What is left of it.
    pub left: GrantUse,
}

/// Part of a grant.
#[derive(Debug, Deserialize)]
pub struct GrantUse {
    /// Actions.
    pub count: i64,
    /// Their money.
    #[serde(default)]
    pub amount: Option<Money>,
}

/// An amount, as the server writes it.
#[derive(Debug, Deserialize)]
pub struct Money {
    /// Such as `HKD 2 600.00`.
    pub text: String,
}

/// An outside effect that is or was intended.
#[derive(Debug, Deserialize)]
pub struct Action {
    /// Its id.
    pub id: String,
    /// For which duty.
    #[serde(default)]
    pub duty: Option<String>,
    /// That duty's title.
    #[serde(default)]
    pub title: Option<String>,
    /// The tool's full name.
    pub tool: String,
    /// Its state.
    pub state: String,
    /// The same in the server's words.
    pub words: String,
    /// What it does, in one line.
    pub what: String,
    /// The frozen fields.
    #[serde(default)]
    pub card: Vec<CardLine>,
    /// What it costs.
    #[serde(default)]
    pub amount: Option<Money>,
    /// Who receives it.
    #[serde(default)]
    pub recipients: Vec<String>,
    /// Digest of exactly what is shown.
    pub digest: String,
    /// The template that words the card, its version and the language.
    #[serde(default)]
    pub template: Option<String>,
    /// Why it stands where it does, or why the person is asked.
    #[serde(default)]
    pub reason: Option<String>,
    /// Until when it can be decided.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// What happens if nobody answers.
    #[serde(default)]
    pub if_nothing: Option<String>,
    /// What happens after the tap.
    #[serde(default)]
    pub afterwards: Option<String>,
    /// What the outside gave as proof.
    #[serde(default)]
    pub receipt: Option<String>,
    /// When the person was asked what became of it.
    #[serde(default)]
    pub escalated_at: Option<Timestamp>,
    /// When its state last moved.
    pub moved_at: Timestamp,
    /// Who released it or did not.
    #[serde(default)]
    pub approvals: Vec<Approval>,
    /// Whose word is asked for: user, supervisor or both.
    #[serde(default)]
    pub asked: Vec<String>,
    /// What was sent for it.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
}

impl Action {
    /// Whether it may still move by itself or by the person's word.
    pub fn is_unsettled(&self) -> bool {
        let open =
            ["proposed", "awaiting_approval", "authorized", "admitted", "dispatched", "unknown"];
        open.contains(&self.state.as_str())
    }

    /// Whether the person is asked something: to release it, or what became of it.
    pub fn asks(&self) -> bool {
        match self.state.as_str() {
            "awaiting_approval" => true,
            "unknown" => self.escalated_at.is_some(),
            _ => false,
        }
    }
}

/// One frozen field.
#[derive(Debug, Deserialize)]
pub struct CardLine {
    /// What it is.
    pub label: String,
    /// The value.
    pub value: String,
}

/// A release, or the question for one.
#[derive(Debug, Deserialize)]
pub struct Approval {
    /// Its state.
    pub state: String,
    /// Whose it is: user, policy or supervisor.
    #[serde(default)]
    pub of: String,
    /// The same once they decided.
    #[serde(default)]
    pub by: Option<String>,
    /// From which device.
    #[serde(default)]
    pub device_name: Option<String>,
    /// What the reviewer found, or why not.
    #[serde(default)]
    pub reason: Option<String>,
    /// When it was decided.
    pub moved_at: Timestamp,
}

/// One sending.
#[derive(Debug, Deserialize)]
pub struct Attempt {
    /// Under which id the outside knows it.
    pub operation_id: String,
    /// Its state.
    pub state: String,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// When.
    pub created_at: Timestamp,
}

/// One wake-up that took place.
#[derive(Debug, Deserialize)]
pub struct Run {
    /// Its state.
    pub state: String,
    /// When it began.
    pub started_at: Timestamp,
    /// Model answers and tool results.
    #[serde(default)]
    pub steps: i64,
    /// Tokens read.
    #[serde(default)]
    pub input_tokens: i64,
    /// Tokens written.
    #[serde(default)]
    pub output_tokens: i64,
    /// Its cost.
    #[serde(default)]
    pub micro_usd: MicroUsd,
}

/// A draft that only a person can turn into a duty, or into the end of one.
#[derive(Debug, Deserialize)]
pub struct Proposal {
    /// Its id.
    pub id: String,
    /// new_duty, change_duty or close_duty.
    pub kind: String,
    /// Short name.
    pub title: String,
    /// What it is for.
    #[serde(default)]
    pub goal: String,
    /// When it is over.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// When it wakes.
    #[serde(default)]
    pub schedules: Vec<PlannedSchedule>,
    /// What it hears.
    #[serde(default)]
    pub subscriptions: Vec<PlannedSubscription>,
    /// What it may do without asking again, in words.
    #[serde(default)]
    pub grants: Vec<String>,
    /// The most that could ever happen without asking again.
    #[serde(default)]
    pub reach: Option<String>,
    /// What a new version would change, in words.
    #[serde(default)]
    pub changes: Vec<String>,
    /// After this the duty would wake no more.
    #[serde(default)]
    pub ends_at: Option<Timestamp>,
    /// When the question ends.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// What happens if nobody answers.
    #[serde(default)]
    pub if_nothing: String,
    /// Why the person is asked.
    #[serde(default)]
    pub why: String,
    /// What follows a yes.
    #[serde(default)]
    pub afterwards: String,
    /// Digest of exactly what is shown.
    pub digest: String,
    /// open, confirmed, declined, withdrawn.
    pub state: String,
}

/// A wake-up as a card shows it.
#[derive(Debug, Deserialize)]
pub struct PlannedSchedule {
    /// In words.
    pub words: String,
    /// What the agent is told then.
    #[serde(default)]
    pub prompt: String,
    /// The first one.
    #[serde(default)]
    pub first: Option<Timestamp>,
    /// once or skip.
    #[serde(default)]
    pub run_missed: String,
    /// What a program looks at first.
    #[serde(default)]
    pub check: Option<PlannedCheck>,
}

/// A look as a card shows it.
#[derive(Debug, Deserialize)]
pub struct PlannedCheck {
    /// The tool that is called.
    pub tool: String,
    /// With these arguments, as JSON text.
    pub arguments: String,
    /// The look and its test in words.
    pub words: String,
}

/// Events that a duty would hear, as a card shows them.
#[derive(Debug, Deserialize)]
pub struct PlannedSubscription {
    /// The source, its topic and its mode in words.
    pub words: String,
    /// What the agent is told with each event.
    #[serde(default)]
    pub prompt: String,
}
