//! Those outside who send something and send it again until it is acknowledged: late, twice and out of
//! order where faults are played.

use base::{Clock as _, Timestamp};
use engine::intake::{self, Receipt};
use serde_json::json;

use crate::sim::{Crash, Sim, now};
use crate::story::Parcel;

/// Milliseconds after which a sender sends again what got no answer.
const RETRY_MS: u64 = 1_000;

/// A parcel under way.
pub(crate) struct Sent {
    parcel: Parcel,
    pub(crate) due: Timestamp,
    acked: bool,
}

impl Sim<'_> {
    /// Somebody sends a parcel; a fault may hold it up on its way.
    pub(crate) fn send_parcel(&mut self, parcel: Parcel) {
        let held_up_ms = if self.fault(4) { 1_000 + self.random(20_000) } else { 0 };
        let due = self.clock.now().plus_ms(held_up_ms);
        self.sent.push(Sent { parcel, due, acked: false });
    }

    /// A parcel arrives. Only a receipt that came back ends its sending.
    pub(crate) fn arrive(&mut self, n: usize) -> Result<(), Crash> {
        let at = self.clock.now();
        let Some(sent) = self.sent.get_mut(n) else { return Ok(()) };
        sent.due = at.plus_ms(RETRY_MS);
        let (parcel, acked, owner) = (sent.parcel, sent.acked, self.owner);
        let cx = self.cx();
        let fields = json!({"source": parcel.source, "id": parcel.id});
        let found = now(cx.store.read(move |tx| store::source::by_name(tx, owner, parcel.source)));
        let Some(source) = self.outcome("sender", found)? else {
            self.note("unknown_source", fields);
            return Ok(());
        };
        self.note("deliver", fields.clone());
        if self.fault(8) {
            self.note("lost", json!({"what": "a delivery"}));
            return Ok(());
        }
        let taken = now(intake::outside(&cx, &source, parcel.found()));
        let receipt = self.outcome("intake", taken)?;
        // It goes without the owner's change number, so no signal tells of it.
        self.dirty.router = true;
        if self.fault(8) {
            self.note("lost", json!({"what": "an acknowledgement"}));
            return Ok(());
        }
        let event = match receipt {
            None => return Ok(()),
            Some(Receipt::New { event, .. } | Receipt::Known { event }) => event,
            Some(Receipt::Conflict) => {
                self.note("conflict", fields);
                self.sent.swap_remove(n);
                return Ok(());
            }
        };
        let mut fields = fields;
        fields["event"] = json!(event);
        self.note("delivered", fields);
        // A network may deliver it again after it was answered.
        if !acked && self.fault(6) {
            if let Some(sent) = self.sent.get_mut(n) {
                sent.acked = true;
            }
        } else {
            self.sent.swap_remove(n);
        }
        Ok(())
    }
}
