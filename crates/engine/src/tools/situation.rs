//! Situations: a judgement goes on record together with the wait that follows it up (PRO-02, PRO-05).

use agent::SituationNote;
use base::{EventId, Timestamp};
use domain::event::Trust;
use domain::schedule::local_words;
use domain::situation::{self, SET_VERSION};
use domain::words::Language;
use model::ToolCall;
use store::event::NewBody;
use store::situation::Situation;
use store::{OwnerTx, Result, StoreError, Tx};

use super::waits::{self, Awaited, Registered};
use crate::Context;
use crate::worker::Work;

/// The texts of a judgement, as they are stored.
#[derive(serde::Serialize, serde::Deserialize)]
struct Texts {
    matter: String,
    taken_on_by: Option<String>,
}

/// Writes a judgement down. It reminds, asks or prepares; it authorizes nothing (PRO-07).
pub(super) fn note(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    note: SituationNote,
) -> Result<String> {
    if let Err(why) = situation::check(note.stands, note.step, note.taken_on_by.as_deref()) {
        return Ok(format!("Not noted: {why}."));
    }
    let due_at = match Timestamp::parse(&note.due_at) {
        Ok(due_at) => due_at,
        Err(error) => return Ok(format!("Not noted: {error}.")),
    };
    let event = match source_of(tx, work, note.event.as_deref())? {
        Ok(event) => event,
        Err(why) => return Ok(why),
    };
    let kind = note.wait_kind.unwrap_or_else(|| "timer".into());
    let key = note.wait_key.unwrap_or_else(|| format!("situation:{}", call.id));
    let registered = waits::register(cx, tx, work, call, Awaited { kind, key, due_at })?;
    let wait = match &registered {
        Registered::Open { wait, .. } | Registered::Met { wait, .. } => *wait,
        Registered::Past { .. } => return Ok(format!("Not noted: {due_at} has passed.")),
    };
    let texts = Texts { matter: note.matter, taken_on_by: note.taken_on_by };
    let body = NewBody {
        id: cx.id(),
        bytes: serde_json::to_vec(&texts).map_err(|e| StoreError::Corrupt(e.to_string()))?,
        media: "application/json".into(),
        provenance: format!("run:{}:situation", work.run.id),
        trust: Trust::Outside,
    };
    let situation = Situation {
        id: cx.id(),
        owner: tx.owner(),
        session: work.run.session,
        duty: work.run.duty,
        task_version: work.run.task_version,
        run: work.run.id,
        call_id: call.id.clone(),
        event,
        body: body.id,
        stands: note.stands,
        part: note.part,
        step: note.step,
        set_version: SET_VERSION,
        due_at,
        wait,
        created_at: tx.now(),
    };
    store::event::put_body(tx, body)?;
    store::situation::insert(tx, &situation)?;
    let line = situation::line(note.stands, texts.taken_on_by.as_deref(), Language::En);
    Ok(format!("Noted: {line}. {}", registered.said()))
}

/// The event that shows it: one of the owner's, else the first of this run.
fn source_of(
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    named: Option<&str>,
) -> Result<std::result::Result<Option<EventId>, String>> {
    let Some(named) = named.filter(|id| !id.trim().is_empty()) else {
        let first = store::work_item::claimed(tx, work.run.id)?.first().map(|item| item.event);
        return Ok(Ok(first));
    };
    let unknown =
        || format!("Not noted: there is no event {named}. Name one that was shown to you.");
    let Ok(id) = named.parse::<EventId>() else { return Ok(Err(unknown())) };
    match store::event::get(tx, id) {
        Ok(event) if event.owner == tx.owner() => Ok(Ok(Some(id))),
        Ok(_) | Err(StoreError::Missing(_)) => Ok(Err(unknown())),
        Err(error) => Err(error),
    }
}

/// One judgement as a line, in honest words.
pub(super) fn line(
    tx: &mut Tx<'_>,
    zone: &jiff::tz::TimeZone,
    judged: &Situation,
) -> Result<String> {
    let bytes = store::event::body(tx, judged.body)?.unwrap_or_default();
    let texts: Texts = serde_json::from_slice(&bytes)
        .unwrap_or(Texts { matter: "(erased)".into(), taken_on_by: None });
    Ok(format!(
        "{}: {} (your part: {}; wanted: {}; looked at again {})",
        texts.matter,
        situation::line(judged.stands, texts.taken_on_by.as_deref(), Language::En),
        judged.part.word(),
        judged.step.word(),
        local_words(zone, judged.due_at)
    ))
}
