//! Delivery: decides what a person hears, when and where (USR-17).
//!
//! There is one channel by now, the person's own devices, and no reason to hold anything back; each
//! message still passes generated → queued → sending, and only a device's receipt makes it delivered.

use base::{DeviceId, MessageId};
use domain::state::MessageState;
use store::{OwnerTx, Result, StoreError};

use crate::Context;
use crate::pump::each;

const BATCH: i64 = 64;

/// Moves messages one state on. `true`: there may be more.
pub async fn pass(cx: &Context) -> Result<bool> {
    let found = cx.store.read(|tx| store::message::undelivered(tx, BATCH)).await?;
    let more = !found.is_empty();
    let one = |message: store::message::Message| async move {
        let (id, state) = (message.id, message.state);
        cx.write(message.owner, move |_, tx| match state {
            MessageState::Generated => store::message::queue(tx, id),
            MessageState::Queued => store::message::send(tx, id),
            MessageState::Sending
            | MessageState::Uncertain
            | MessageState::Delivered
            | MessageState::Dropped => Ok(false),
        })
        .await
        .map(|_| ())
    };
    each(found, one).await?;
    Ok(more)
}

/// A device confirms messages that it has. Unknown ones are ignored: a receipt is never an error.
///
/// A device reads the chat by itself and may be quicker than this stage: what it has, it has, and the
/// moves up to there are made up for.
pub fn receipts(tx: &mut OwnerTx<'_, '_>, device: DeviceId, ids: &[MessageId]) -> Result<()> {
    let owner = tx.owner();
    for id in ids {
        match store::message::get(tx, *id) {
            Ok(message) if message.owner == owner => {
                store::message::queue(tx, *id)?;
                store::message::send(tx, *id)?;
                store::message::delivered(tx, *id, device)?;
            }
            Ok(_) | Err(StoreError::Missing(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
