//! Writes that are safe to repeat: the client-made id with the digest of what was asked and the answer
//! it got, in the same transaction as the write (DESIGN section 5, CLI-03).
//!
//! A refusal writes nothing and is not kept: asked again, it is decided again.

use base::{ActionId, BodyId, Digest, Id, OwnerId};
use domain::words;
use engine::Context;
use engine::control::Changed;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::device::{self, Device, Request};
use store::{OwnerTx, Result, StoreError};
use uuid::Uuid;

use crate::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::stale::Stale;
use crate::views::{self, Reader};

/// An answer as it is kept: a frame of ids, states, times and numbers, and the bodies that hold the
/// words. Content stands in its body alone, so that erasing that erases it here too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// All of the answer but its content.
    pub frame: Value,
    /// The draft whose words belong in it.
    pub draft: Option<BodyId>,
    /// The version that a draft would take the place of: their difference belongs in it.
    #[serde(default)]
    pub before: Option<BodyId>,
    /// The reason to close whose words belong in it.
    pub reason: Option<BodyId>,
    /// What the agent is told at each of its schedules, in their order. Without them the draft has it.
    #[serde(default)]
    pub prompts: Vec<BodyId>,
    /// The action whose words belong in it.
    #[serde(default)]
    pub action: Option<ActionId>,
}

impl Answer {
    /// An answer without content of anybody.
    pub(crate) fn plain(frame: Value) -> Self {
        let (draft, before, reason) = (None, None, None);
        Answer { frame, draft, before, reason, prompts: Vec::new(), action: None }
    }
}

/// What a write came to.
pub(crate) enum Outcome {
    /// Done, with this answer.
    Done(Answer),
    /// Not possible, and what happened instead, in English. Nothing may have been written.
    Conflict(String),
    /// The same for a card that is not what was shown any more, with what changed.
    Stale(String, Stale),
    /// Not for this device to do, and whose it is. Nothing may have been written.
    Forbidden(&'static str),
}

impl Outcome {
    /// What a change came to: this answer, if it was done.
    pub(crate) fn of(changed: Changed, answer: Answer) -> Self {
        match changed {
            Changed::Done => Outcome::Done(answer),
            Changed::Conflict(what) => Outcome::Conflict(what),
            Changed::NotYours(whose) => Outcome::Forbidden(whose),
        }
    }
}

/// What a client asked, for the digest: a repeat under the same id must be the same in all of it.
pub(crate) struct Ask<'a> {
    /// The client-made id.
    pub id: Uuid,
    /// Which operation.
    pub operation: &'static str,
    /// On which record.
    pub target: Option<Uuid>,
    /// With what content.
    pub content: Vec<&'a [u8]>,
}

impl Ask<'_> {
    fn digest(&self) -> Digest {
        let target = self.target.unwrap_or_default();
        let head = [self.operation.as_bytes(), target.as_bytes().as_slice()];
        Digest::of_parts(head.into_iter().chain(self.content.iter().copied()))
    }
}

/// An answer, and whether this request is the one that did it.
pub(crate) struct Answered {
    /// Whether it was done now and not before.
    pub first: bool,
    /// The answer.
    pub body: Value,
}

enum Came {
    To(Answered),
    Conflict(String, Option<Stale>),
    Forbidden(&'static str),
    Revoked,
}

/// Where in the queue of writes it goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// After what came before.
    InTurn,
    /// To the head: a stop waits for nothing (P8).
    First,
    /// To the head, with the installation's row held: the operator's stop.
    Operator,
}

/// Does a write of a device once per client-made id.
pub(crate) async fn write<F>(
    app: &App,
    caller: Caller,
    order: Order,
    ask: Ask<'_>,
    work: F,
) -> std::result::Result<Answered, Problem>
where
    F: FnOnce(&Context, &mut OwnerTx<'_, '_>, &Device) -> Result<Outcome> + Send + 'static,
{
    let (id, digest) = (ask.id, ask.digest());
    let owner: OwnerId = caller.device.owner;
    let cx = app.web.cx.clone();
    let (store, txn) = (cx.store.clone(), cx.uuid());
    let once = move |tx: &mut OwnerTx<'_, '_>| once(&cx, tx, &caller, id, digest, work);
    let came = match order {
        Order::InTurn => store.write(owner, txn, once).await,
        Order::First => store.write_urgent(owner, txn, once).await,
        Order::Operator => store.operate(owner, txn, once).await,
    };
    match came? {
        Came::To(answered) => Ok(answered),
        Came::Conflict(detail, stale) => Err(Problem::conflict(detail).with_stale(stale)),
        Came::Forbidden(detail) => Err(Problem::forbidden(detail)),
        Came::Revoked => Err(Problem::unauthorized()),
    }
}

fn once<F>(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    caller: &Caller,
    id: Uuid,
    digest: Digest,
    work: F,
) -> Result<Came>
where
    F: FnOnce(&Context, &mut OwnerTx<'_, '_>, &Device) -> Result<Outcome>,
{
    // What a reader saw may be shown, never decided on: the token may have been revoked since.
    let Some(device) = device::by_token(tx, caller.token)? else { return Ok(Came::Revoked) };
    if let Some(known) = device::request(tx, device.id, id)? {
        if known.digest != digest {
            let used = "This id was used for another request. Nothing was changed; send this one \
                        under a new id.";
            return conflict(tx, used, None);
        }
        let answer: Answer = serde_json::from_str(&known.answer).map_err(|e| unreadable(&e))?;
        return Ok(Came::To(Answered { first: false, body: read_by(tx, &device, answer)? }));
    }
    let answer = match work(cx, tx, &device)? {
        Outcome::Done(answer) => answer,
        Outcome::Conflict(detail) => return conflict(tx, &detail, None),
        Outcome::Stale(detail, stale) => return conflict(tx, &detail, Some(stale)),
        Outcome::Forbidden(detail) => return Ok(Came::Forbidden(detail)),
    };
    let kept = serde_json::to_string(&answer).map_err(|e| unreadable(&e))?;
    device::answered(tx, device.id, id, &Request { digest, answer: kept })?;
    Ok(Came::To(Answered { first: true, body: read_by(tx, &device, answer)? }))
}

/// What happened instead, in the owner's language.
fn conflict(tx: &mut OwnerTx<'_, '_>, detail: &str, stale: Option<Stale>) -> Result<Came> {
    let language = store::owner::locked(tx)?.language();
    Ok(Came::Conflict(words::said(detail, language), stale))
}

/// The answer as this device reads it. Most have no words, and need not know in which language.
fn read_by(tx: &mut OwnerTx<'_, '_>, device: &Device, answer: Answer) -> Result<Value> {
    if answer.draft.is_none() && answer.action.is_none() {
        return Ok(answer.frame);
    }
    let owner = store::owner::locked(tx)?;
    views::with_words(tx, answer, Reader::of(&owner, device.kind))
}

fn unreadable(error: &serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("a kept answer: {error}"))
}

/// The uuid of an id, for [`Ask::target`].
pub(crate) fn target<T: Id>(id: T) -> Option<Uuid> {
    Some(id.uuid())
}
