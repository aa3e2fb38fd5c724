//! How a source looks to a client: never with its secret.

use std::net::SocketAddr;

use base::{SourceId, Timestamp};
use engine::world::Found;
use serde_json::{Value, json};
use store::source::{Source, SourceKind};
use store::{Result, Tx};

use crate::secrets::Secrets;

/// A source with what the records say of it.
pub(super) struct Seen {
    source: Source,
    duties: Vec<base::DutyId>,
}

/// Reads what belongs to a source: the duties that hear it.
pub(super) fn seen(tx: &mut Tx<'_>, source: Source) -> Result<Seen> {
    let heard = store::subscription::of_source(tx, source.id)?;
    let mut duties: Vec<_> = heard.into_iter().map(|subscription| subscription.duty).collect();
    duties.dedup();
    Ok(Seen { source, duties })
}

/// The sources as a client sees them; whether a webhook has its secret is looked up in its folder.
pub(super) fn shown(
    seen: Vec<Seen>,
    secrets: &dyn Secrets,
    listen: SocketAddr,
    now: Timestamp,
) -> Vec<Value> {
    let one = |seen: Seen| {
        let id = seen.source.id;
        let hook = seen.source.kind == SourceKind::Webhook;
        let secret = hook.then(|| match secrets.read(id, now) {
            Ok(secrets) if secrets.is_empty() => "missing",
            Ok(_) => "kept",
            Err(_) => "unreadable",
        });
        view(&seen, secret, hook.then(|| address(listen, id)), now)
    };
    seen.into_iter().map(one).collect()
}

fn view(seen: &Seen, secret: Option<&str>, address: Option<String>, now: Timestamp) -> Value {
    let source = &seen.source;
    let config: Option<Value> =
        source.config.as_deref().and_then(|config| serde_json::from_str(config).ok());
    let silent = engine::watcher::is_silent(source, now);
    json!({
        "id": source.id,
        "name": source.name,
        "kind": source.kind,
        "config": config,
        "address": address,
        "secret": secret,
        "every_ms": source.every_ms,
        "expect_ms": source.expect_ms,
        "received_at": source.received_at,
        "silent": silent,
        "refused": source.refused,
        "refused_at": source.refused_at,
        "looked_at": source.looked_at,
        "next_look_at": source.next_look_at,
        "failures": source.failures,
        "last_event": source.last_event,
        "duties": seen.duties,
        "created_at": source.created_at,
    })
}

/// What the sender is given.
pub(super) fn address(listen: SocketAddr, id: SourceId) -> String {
    format!("http://{listen}/v1/hooks/{id}")
}

/// One thing that a look found.
pub(super) fn found(found: &Found) -> Value {
    json!({
        "external_id": found.external_id,
        "key": found.key,
        "topic": found.topic,
        "media": found.media,
        "bytes": found.content.len(),
        "links": found.links,
    })
}
