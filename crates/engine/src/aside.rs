//! A question to a model outside any turn: a text, a short answer, and what it cost. The small model and the
//! reviewer are asked so.

use base::DutyId;
use model::{Answer, Block, ChatModel, Message, ModelError, Request};
use store::ledger::{LedgerEntry, LedgerKind};
use store::{OwnerTx, Result};

use crate::world::within;
use crate::{Context, assemble};

/// The question: no tools, no history.
pub(crate) fn question(text: String, max_output_tokens: u32) -> Request {
    Request {
        blocks: vec![Message::User(text).to_block()],
        tools: Block::from_stored("[]".to_owned()),
        max_output_tokens,
    }
}

/// Asks, for as long as that may take.
pub(crate) async fn ask(
    model: &dyn ChatModel,
    request: &Request,
    limit_ms: u64,
) -> std::result::Result<Answer, ModelError> {
    let heard = |_bytes: u64| {};
    let asked = within(limit_ms, model.ask(request, &heard)).await;
    asked.unwrap_or_else(|| Err(ModelError::retry("no answer in time")))
}

/// Writes down what the answer cost.
pub(crate) fn spend(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    model: &dyn ChatModel,
    (kind, duty): (LedgerKind, Option<DutyId>),
    answer: &Answer,
) -> Result<()> {
    let usage = answer.usage.bounded(model.context_tokens());
    let entry = LedgerEntry {
        id: cx.uuid(),
        owner: tx.owner(),
        month: assemble::month(&store::owner::locked(tx)?, tx.now())?,
        run: None,
        duty,
        kind,
        model: model.name().to_owned(),
        input_tokens: usage.input_tokens,
        cached_tokens: usage.cached_tokens,
        output_tokens: usage.output_tokens,
        micro_usd: model.prices().cost(usage),
        at: tx.now(),
    };
    store::ledger::add(tx, &entry)
}
