//! Messages to a person, with separately confirmed delivery states (USR-01, USR-17), and the chat.

use base::{
    ActionId, BodyId, DeviceId, DutyId, MessageId, OwnerId, ProposalId, RunId, SessionId,
    TaskVersionId, Timestamp,
};
use domain::state::{MessageState, WorkItemState};

use crate::error::{Result, StoreError};
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{Row, params, record, words};

words! {
    /// Who speaks.
    pub enum MessageKind {
        /// The model, through `send_to_user`.
        Agent = "agent",
        /// The server itself, from a template.
        Notice = "notice",
    }
}

record! {
    /// What a person is told.
    pub struct Message in "message" {
        /// Its id.
        pub id: MessageId,
        /// Whose.
        pub owner: OwnerId,
        /// From which lane.
        pub session: SessionId,
        /// Who speaks.
        pub kind: MessageKind,
        /// By which run.
        pub run: Option<RunId>,
        /// By which call: a call speaks once.
        pub call_id: Option<String>,
        /// About which duty.
        pub duty: Option<DutyId>,
        /// About which version of it.
        pub task_version: Option<TaskVersionId>,
        /// The proposal whose card goes with it.
        pub proposal: Option<ProposalId>,
        /// The action whose card goes with it.
        pub action: Option<ActionId>,
        /// Whether what it tells is late.
        pub late: bool,
        /// The text.
        pub body: BodyId,
        /// Where it stands.
        pub state: MessageState,
        /// Why it was dropped.
        pub reason: Option<String>,
        /// The owner's change number when it was written: its place in the chat.
        pub seq: i64,
        /// Generated.
        pub created_at: Timestamp,
        /// Queued.
        pub queued_at: Option<Timestamp>,
        /// Offered to the channel.
        pub sent_at: Option<Timestamp>,
        /// Confirmed.
        pub delivered_at: Option<Timestamp>,
        /// By which device.
        pub delivered_to: Option<DeviceId>,
        /// When its state last moved.
        pub moved_at: Timestamp,
    }
}

statements! { "message":
    INSERT = hot insert Message, "";
    BY_ID = hot select Message, "WHERE id = $1";
    OF_RUN = hot select Message, "WHERE run = $1 AND owner = $2 ORDER BY created_at, id";
    UNDELIVERED = hot select Message, "WHERE state IN ('generated', 'queued', 'sending', 'uncertain')
        AND state IN ('generated', 'queued') ORDER BY created_at, id LIMIT $1";
    QUEUE = hot "UPDATE message SET state = 'queued', queued_at = $2, moved_at = $2
        WHERE id = $1 AND state = 'generated'";
    SEND = hot "UPDATE message SET state = 'sending', sent_at = $2, moved_at = $2
        WHERE id = $1 AND state = 'queued'";
    DELIVER = hot "UPDATE message SET state = 'delivered', delivered_at = $2, delivered_to = $3, moved_at = $2
        WHERE id = $1 AND owner = $4 AND state = 'sending'";
    CHAT = hot "SELECT e.seq, 'user', e.id, b.bytes, e.received_at, w.state, w.read_at, e.duty, NULL, e.late, NULL, e.about
        FROM event e JOIN body b ON b.id = e.body LEFT JOIN work_item w ON w.event = e.id
        WHERE e.owner = $1 AND e.kind = 'user_message' AND e.seq > $2
        ORDER BY e.seq LIMIT $3";
    SAID = hot "SELECT m.seq, m.kind, m.id, b.bytes, m.created_at, m.state, NULL, m.duty, m.proposal, m.late, m.action, NULL
        FROM message m JOIN body b ON b.id = m.body
        WHERE m.owner = $1 AND m.seq > $2 ORDER BY m.seq LIMIT $3";
    CHAT_BEFORE = hot "SELECT e.seq, 'user', e.id, b.bytes, e.received_at, w.state, w.read_at, e.duty, NULL, e.late, NULL, e.about
        FROM event e JOIN body b ON b.id = e.body LEFT JOIN work_item w ON w.event = e.id
        WHERE e.owner = $1 AND e.kind = 'user_message' AND e.seq < $2
        ORDER BY e.seq DESC LIMIT $3";
    SAID_BEFORE = hot "SELECT m.seq, m.kind, m.id, b.bytes, m.created_at, m.state, NULL, m.duty, m.proposal, m.late, m.action, NULL
        FROM message m JOIN body b ON b.id = m.body
        WHERE m.owner = $1 AND m.seq < $2 ORDER BY m.seq DESC LIMIT $3";
    ONE_EVENT = hot "SELECT e.seq, 'user', e.id, b.bytes, e.received_at, w.state, w.read_at, e.duty, NULL, e.late, NULL, e.about
        FROM event e JOIN body b ON b.id = e.body LEFT JOIN work_item w ON w.event = e.id
        WHERE e.id = $2 AND e.owner = $1 AND e.kind = 'user_message'";
    ONE_MESSAGE = hot "SELECT m.seq, m.kind, m.id, b.bytes, m.created_at, m.state, NULL, m.duty, m.proposal, m.late, m.action, NULL
        FROM message m JOIN body b ON b.id = m.body WHERE m.id = $2 AND m.owner = $1";
}

/// Adds a message.
pub fn insert(tx: &mut OwnerTx<'_, '_>, message: &Message) -> Result<()> {
    tx.insert(&INSERT, message)?;
    tx.changed(message.id);
    Ok(())
}

/// One message.
pub fn get(tx: &mut Tx<'_>, id: MessageId) -> Result<Message> {
    tx.one(&BY_ID, params![id])?.ok_or(StoreError::Missing("message"))
}

/// What a run said, in order.
pub fn of_run(tx: &mut Tx<'_>, owner: OwnerId, run: RunId) -> Result<Vec<Message>> {
    tx.all(&OF_RUN, params![run, owner])
}

/// Messages that the delivery stage has to move, oldest first.
pub fn undelivered(tx: &mut Tx<'_>, limit: i64) -> Result<Vec<Message>> {
    tx.all(&UNDELIVERED, params![limit])
}

/// The delivery gate chose to let it out now.
pub fn queue(tx: &mut OwnerTx<'_, '_>, id: MessageId) -> Result<bool> {
    step(tx, &QUEUE, id)
}

/// It is offered to the person's devices.
pub fn send(tx: &mut OwnerTx<'_, '_>, id: MessageId) -> Result<bool> {
    step(tx, &SEND, id)
}

fn step(tx: &mut OwnerTx<'_, '_>, sql: &'static crate::Sql, id: MessageId) -> Result<bool> {
    let now = tx.now();
    let moved = tx.run(sql, params![id, now])? == 1;
    if moved {
        tx.changed(id);
    }
    Ok(moved)
}

/// A device confirms that it has the message. A second confirmation changes nothing.
pub fn delivered(tx: &mut OwnerTx<'_, '_>, id: MessageId, to: DeviceId) -> Result<bool> {
    let (now, owner) = (tx.now(), tx.owner());
    let moved = tx.run(&DELIVER, params![id, now, to, owner])? == 1;
    if moved {
        tx.changed(id);
    }
    Ok(moved)
}

/// One line of the chat, the person's or the agent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place.
    pub seq: i64,
    /// `user`, `agent` or `notice`.
    pub kind: String,
    /// Event or message.
    pub id: uuid::Uuid,
    /// The text.
    pub text: String,
    /// When.
    pub at: Timestamp,
    /// The words of DUR-24 for a user's message, of USR-17 for others.
    pub state: String,
    /// About which duty.
    pub duty: Option<DutyId>,
    /// With which card.
    pub proposal: Option<ProposalId>,
    /// With which action's card.
    pub action: Option<ActionId>,
    /// Whether it is late.
    pub late: bool,
    /// The card that the person asks about, as `action:<id>` or `proposal:<id>`.
    pub about: Option<String>,
}

fn entry(row: &Row) -> Result<Entry> {
    let kind: String = row.get(1)?;
    let bytes: Option<Vec<u8>> = row.get(3)?;
    let state = if kind == "user" {
        let read: Option<Timestamp> = row.get(6)?;
        let item: Option<WorkItemState> = row.get(5)?;
        user_state(item, read.is_some()).to_owned()
    } else {
        row.get::<MessageState>(5)?.word().to_owned()
    };
    Ok(Entry {
        seq: row.get(0)?,
        kind,
        id: row.get(2)?,
        text: bytes.map_or_else(|| "(erased)".into(), |b| String::from_utf8_lossy(&b).into_owned()),
        at: row.get(4)?,
        state,
        duty: row.get(7)?,
        proposal: row.get(8)?,
        late: row.get(9)?,
        action: row.get(10)?,
        about: row.get(11)?,
    })
}

/// The four points of an input's way, never equated (DUR-24).
fn user_state(item: Option<WorkItemState>, read: bool) -> &'static str {
    match item {
        None | Some(WorkItemState::Done) => "handled",
        Some(WorkItemState::Failed) => "failed",
        Some(WorkItemState::Claimed) if read => "read",
        Some(WorkItemState::Claimed) => "delivered",
        Some(
            WorkItemState::Pending
            | WorkItemState::Unrouted
            | WorkItemState::Attributing
            | WorkItemState::Background,
        ) => "received",
    }
}

/// The chat after a change number, oldest first.
pub fn chat_after(tx: &mut Tx<'_>, owner: OwnerId, after: i64, limit: i64) -> Result<Vec<Entry>> {
    merge(tx, [&CHAT, &SAID], owner, after, limit, false)
}

/// The newest of the chat before a change number, oldest first.
pub fn chat_before(tx: &mut Tx<'_>, owner: OwnerId, before: i64, limit: i64) -> Result<Vec<Entry>> {
    let mut newest = merge(tx, [&CHAT_BEFORE, &SAID_BEFORE], owner, before, limit, true)?;
    newest.reverse();
    Ok(newest)
}

fn merge(
    tx: &mut Tx<'_>,
    parts: [&'static crate::Sql; 2],
    owner: OwnerId,
    seq: i64,
    limit: i64,
    newest_first: bool,
) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for sql in parts {
        for row in tx.rows(sql, params![owner, seq, limit])? {
            entries.push(entry(&row)?);
        }
    }
    entries.sort_by_key(|entry| (entry.seq, entry.id));
    if newest_first {
        entries.reverse();
    }
    entries.truncate(usize::try_from(limit).unwrap_or(0));
    Ok(entries)
}

/// One line of the chat.
pub fn chat_entry(tx: &mut Tx<'_>, owner: OwnerId, id: uuid::Uuid) -> Result<Entry> {
    let row = match tx.row(&ONE_MESSAGE, params![owner, id])? {
        Some(row) => Some(row),
        None => tx.row(&ONE_EVENT, params![owner, id])?,
    };
    row.as_ref().map(entry).transpose()?.ok_or(StoreError::Missing("message"))
}
