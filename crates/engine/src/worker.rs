//! Worker: claims a session, runs its turn, and gives the session back (QUE-01, DUR-01, DUR-10, DUR-12).
//!
//! Every record begins with the lease's fencing token, so that a worker that was overtaken leaves no
//! trace. Nothing is used before it is stored: recovery reads the same steps and goes on.

mod claim;
mod ends;
mod interrupt;
mod record;

use agent::{Budget, Next, Outcome, StepKind, Turn};
use base::MicroUsd;
use model::{Block, Request, ToolCall};
use store::run::Run;
use store::session::Lease;
use store::{Result, StoreError};

use crate::Context;
use crate::tools::{self, Plan};

pub use claim::claim;
pub use interrupt::{Foreseen, foreseen, interruption, renew};
pub use record::{record_answer, record_end, record_failure, record_tool};

/// A run that this worker holds.
#[derive(Debug, Clone)]
pub struct Work {
    /// What every commit must name.
    pub lease: Lease,
    /// The run as it was last recorded.
    pub run: Run,
    /// Whether something in its input is late.
    pub late: bool,
    blocks: Vec<Block>,
    turn: Turn,
}

/// What the worker has to do next.
#[derive(Debug)]
pub enum Action {
    /// Ask the model.
    Ask(Request),
    /// Perform or record a tool call.
    Tool(ToolCall, Plan),
    /// End the run.
    End(Outcome),
}

/// What a record came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// The run goes on.
    Goes,
    /// The run is over and the session given back.
    Over,
}

/// What comes next in a run. Pure: from what was recorded.
pub fn next(cx: &Context, work: &Work) -> Action {
    let run = &work.run;
    let budget = Budget {
        steps: (run.steps, cx.limits.run_steps),
        tokens: (run.tokens + run.output_tokens, cx.limits.run_tokens),
        micro_usd: (run.micro_usd, MicroUsd(cx.limits.run_micro_usd)),
    };
    match work.turn.next(&budget) {
        Next::Done(outcome) => Action::End(outcome),
        Next::Call(call) => {
            let plan = tools::plan(cx, &call);
            Action::Tool(call, plan)
        }
        Next::Ask => {
            let request = Request {
                blocks: work.blocks.clone(),
                tools: agent::definitions(),
                max_output_tokens: cx.max_output_tokens,
            };
            let whole = request.tokens() + u64::from(cx.max_output_tokens);
            if whole > cx.model.context_tokens() {
                let room = cx.model.context_tokens();
                return Action::End(Outcome::Budget(format!(
                    "{whole} of {room} tokens of context"
                )));
            }
            Action::Ask(request)
        }
    }
}

impl Work {
    fn advance(&mut self, kind: StepKind, block: Block, run: Option<Run>) -> Result<Recorded> {
        let Some(run) = run else { return Ok(Recorded::Over) };
        self.turn.push(kind, &block).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        self.blocks.push(block);
        self.run = run;
        Ok(Recorded::Goes)
    }
}
