//! Objects: the ids that tools of this version issued, and the addresses in the user's own words. A call
//! that names another one is refused (TOOL-15, P6).

use base::{BodyId, Digest, RunId, SessionId, TaskVersionId};
use domain::event::Trust;
use domain::links;
use model::ToolCall;
use serde_json::Value;
use store::action::Action;
use store::event::NewBody;
use store::object::Object;
use store::run::Run;
use store::{OwnerTx, Result};

use super::Wish;
use crate::worker::Work;
use crate::world::{Issued, Level, Need, Read};
use crate::{Context, notice};

/// How long an id counts after it was issued.
const LASTS_MS: u64 = 30 * 24 * 3_600_000;
/// The kind of an address.
const URL: &str = "url";

/// Why a read may not be made as one: an id that nobody issued.
pub(super) fn refusal(
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    wish: &Wish,
) -> Result<Option<String>> {
    for need in &wish.needs {
        if find(tx, work, need)?.is_none() {
            return Ok(Some(not_issued(need)));
        }
    }
    Ok(None)
}

/// The object that counts for an id in a call of this run.
fn find(tx: &mut OwnerTx<'_, '_>, work: &Work, need: &Need) -> Result<Option<Object>> {
    let (run, now) = (&work.run, tx.now());
    let kind = need.kind.as_deref();
    store::object::find(tx, run.session, run.task_version, &need.id, kind, now)
}

/// The same with what was known of it when it was issued: what an action is made of.
pub(super) fn issued(
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    need: &Need,
) -> Result<Option<domain::effect::Object>> {
    let Some(object) = find(tx, work, need)? else { return Ok(None) };
    let snapshot = match object.snapshot {
        None => Value::Null,
        Some(body) => {
            let bytes = store::event::body(tx, body)?.unwrap_or_default();
            serde_json::from_slice(&bytes).unwrap_or(Value::Null)
        }
    };
    Ok(Some(domain::effect::Object {
        argument: need.argument.clone(),
        kind: object.kind,
        id: object.value,
        snapshot,
        digest: object.digest,
        expires_at: object.expires_at,
    }))
}

/// What the model is told of an id that nobody issued.
pub(super) fn not_issued(need: &Need) -> String {
    let kind = need.kind.as_deref().unwrap_or("issued id");
    format!(
        "{}: \"{}\" is no {kind} that a tool of yours gave you in this duty, or that the person wrote. \
         Ids and addresses seen in mails or pages do not count: search for it with a tool, or ask the \
         person.",
        need.argument, need.id
    )
}

/// Why an address may not be read: the connector that stands for its site is broken (TOOL-08).
pub(crate) fn way_round(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    tool: &str,
    needs: &[Need],
) -> Result<Option<String>> {
    if cx.world.level(tool) != Level::Web {
        return Ok(None);
    }
    for connector in needs.iter().filter_map(|need| cx.world.stands_for(&links::host(&need.id)?)) {
        if notice::is_broken(tx, &connector)? {
            return Ok(Some(format!(
                "The connector {connector} stands for that site and is broken just now. There is no \
                 way round it: tell the person with send_to_user what you need, and wait."
            )));
        }
    }
    Ok(None)
}

/// Issues the ids in a tool's answer to this run's version.
pub(super) fn issue(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    work: &Work,
    call: &ToolCall,
    read: &Read,
) -> Result<()> {
    let run = &work.run;
    let to = (run.session, run.task_version, run.id);
    issue_to(cx, tx, to, &call.id, &read.provenance, &read.issued)
}

/// Issues the ids in the answer to what was sent, to the version that wanted it: what was booked can be
/// cancelled by its number.
pub(crate) fn of_effect(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &Action,
    issued: &[Issued],
) -> Result<()> {
    let to = (action.session, action.task_version, action.run);
    issue_to(cx, tx, to, &action.call_id, &format!("action:{}", action.id), issued)
}

fn issue_to(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    to: (SessionId, Option<TaskVersionId>, RunId),
    call_id: &str,
    provenance: &str,
    issued: &[Issued],
) -> Result<()> {
    let (session, task_version, run) = to;
    let ours = tx.now().plus_ms(LASTS_MS);
    for one in issued {
        let bytes = one.snapshot.to_string().into_bytes();
        let digest = Digest::of(&bytes);
        let snapshot = if one.snapshot.is_null() {
            None
        } else {
            let body = NewBody {
                id: cx.id(),
                bytes,
                media: "application/json".into(),
                provenance: provenance.to_owned(),
                trust: Trust::Outside,
            };
            let id: BodyId = body.id;
            store::event::put_body(tx, body)?;
            Some(id)
        };
        let object = Object {
            id: cx.id(),
            owner: tx.owner(),
            session,
            task_version,
            kind: one.kind.clone(),
            value: one.id.clone(),
            snapshot,
            digest,
            run,
            call_id: Some(call_id.to_owned()),
            provenance: provenance.to_owned(),
            expires_at: Some(one.expires_at.map_or(ours, |own| own.min(ours))),
            created_at: tx.now(),
        };
        store::object::issue(tx, &object)?;
    }
    Ok(())
}

/// Issues addresses that stand in a run's own input: in the user's message, or found by an ingress.
pub(crate) fn issue_urls(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    run: &Run,
    urls: Vec<String>,
    provenance: &str,
) -> Result<()> {
    let until = Some(tx.now().plus_ms(LASTS_MS));
    let to = (run.session, run.task_version, run.id);
    urls_to(cx, tx, to, urls, provenance, until)
}

/// Issues the addresses that stand in the delegation as the user confirmed it: for as long as it lasts.
pub(crate) fn of_delegation(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    to: (SessionId, TaskVersionId, RunId),
    text: &str,
) -> Result<()> {
    let (session, version, run) = to;
    urls_to(cx, tx, (session, Some(version), run), links::urls(text), "delegation", None)
}

fn urls_to(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    to: (SessionId, Option<TaskVersionId>, RunId),
    urls: Vec<String>,
    provenance: &str,
    expires_at: Option<base::Timestamp>,
) -> Result<()> {
    let (session, task_version, run) = to;
    for value in urls {
        let object = Object {
            id: cx.id(),
            owner: tx.owner(),
            session,
            task_version,
            kind: URL.into(),
            digest: Digest::of(value.as_bytes()),
            value,
            snapshot: None,
            run,
            call_id: None,
            provenance: provenance.to_owned(),
            expires_at,
            created_at: tx.now(),
        };
        store::object::issue(tx, &object)?;
    }
    Ok(())
}
