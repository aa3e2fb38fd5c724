//! What comes back from a model, in the form the journal keeps.

use base::MicroUsd;
use serde::{Deserialize, Serialize};

use crate::vendor::{self, Origin, Piece, Vendor};
use crate::{Block, Message, ToolCall};

/// A complete answer. It is journaled before anything derives from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The assistant message, serialised once: what later requests carry as history.
    pub block: Block,
    /// Private text of the model; never an empty string.
    pub text: Option<String>,
    /// The calls it asks for, in order. When `finish` is [`Finish::Length`] the last one may be
    /// cut.
    pub tool_calls: Vec<ToolCall>,
    /// What it cost in tokens.
    pub usage: Usage,
    /// The model that answered, as the server names it.
    pub model: String,
    /// The server's name for this answer.
    pub answer_id: String,
    /// Why the answer ended.
    pub finish: Finish,
}

impl Answer {
    /// Puts an answer together and serialises its message. An empty text counts as none.
    pub fn new(text: Option<String>, tool_calls: Vec<ToolCall>, finish: Finish) -> Answer {
        let text = text.filter(|text| !text.is_empty());
        let block =
            Message::Assistant { text: text.clone(), tool_calls: tool_calls.clone() }.to_block();
        Answer {
            block,
            text,
            tool_calls,
            usage: Usage::default(),
            model: String::new(),
            answer_id: String::new(),
            finish,
        }
    }

    /// Puts an answer together from the pieces that its vendor sent.
    pub(crate) fn of_pieces(pieces: Vec<Piece>, origin: Origin<'_>, finish: Finish) -> Answer {
        let (text, tool_calls, vendor) = vendor::split(pieces, origin);
        let answer = Answer::new(text, tool_calls, finish);
        answer.serialised(vendor)
    }

    /// The same answer with other calls in the place of its own, as many of them; what only its vendor
    /// can read stays.
    pub fn with_calls(self, tool_calls: Vec<ToolCall>) -> Answer {
        let vendor = self.block.vendor();
        Answer { tool_calls, ..self }.serialised(vendor)
    }

    /// Serialises the message anew.
    fn serialised(self, vendor: Option<Vendor>) -> Answer {
        let (text, tool_calls) = (self.text.clone(), self.tool_calls.clone());
        let block = Message::Assistant { text, tool_calls }.with_vendor(vendor);
        Answer { block, ..self }
    }
}

/// The tokens of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All tokens of the request, the cached ones included.
    pub input_tokens: u64,
    /// Those of `input_tokens` that the provider had in its prefix cache.
    pub cached_tokens: u64,
    /// The tokens of the answer.
    pub output_tokens: u64,
}

impl Usage {
    /// The same, with no figure above what one call to a model of this context can have. A server may
    /// report anything, and a figure that no sum can hold would stop every later account.
    pub fn bounded(self, context_tokens: u64) -> Usage {
        let input_tokens = self.input_tokens.min(context_tokens);
        Usage {
            input_tokens,
            cached_tokens: self.cached_tokens.min(input_tokens),
            output_tokens: self.output_tokens.min(context_tokens),
        }
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model had no more to say.
    Stop,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The output limit was reached; the answer is cut.
    Length,
    /// The provider withheld the rest.
    ContentFilter,
}

/// What a model costs, each per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Of input that was not cached.
    pub input: MicroUsd,
    /// Of cached input.
    pub cached: MicroUsd,
    /// Of output.
    pub output: MicroUsd,
}

impl Prices {
    /// The cost of one call, each part rounded up.
    pub fn cost(&self, usage: Usage) -> MicroUsd {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        MicroUsd::for_tokens(usage.input_tokens - cached, self.input)
            .plus(MicroUsd::for_tokens(cached, self.cached))
            .plus(MicroUsd::for_tokens(usage.output_tokens, self.output))
    }
}

#[cfg(test)]
mod tests {
    use base::MicroUsd;

    use super::{Answer, Finish, Prices, Usage};

    #[test]
    fn cached_input_has_its_own_price() {
        let prices = Prices {
            input: MicroUsd(2_000_000),
            cached: MicroUsd(500_000),
            output: MicroUsd(8_000_000),
        };
        let usage = Usage { input_tokens: 1_000, cached_tokens: 800, output_tokens: 10 };
        assert_eq!(prices.cost(usage), MicroUsd(400 + 400 + 80));
        let odd = Usage { input_tokens: 1, cached_tokens: 5, output_tokens: 0 };
        assert_eq!(prices.cost(odd), MicroUsd(1));
    }

    #[test]
    fn no_server_can_report_more_than_a_context_holds() {
        let absurd =
            Usage { input_tokens: u64::MAX, cached_tokens: u64::MAX, output_tokens: u64::MAX };
        let most = Usage { input_tokens: 8_000, cached_tokens: 8_000, output_tokens: 8_000 };
        assert_eq!(absurd.bounded(8_000), most);
        let usual = Usage { input_tokens: 10, cached_tokens: 4, output_tokens: 3 };
        assert_eq!(usual.bounded(8_000), usual);
    }

    #[test]
    fn an_answer_survives_the_journal() {
        let answer = Answer::new(Some("知道了".into()), vec![], Finish::Stop);
        let stored = serde_json::to_string(&answer).unwrap();
        assert_eq!(serde_json::from_str::<Answer>(&stored).unwrap(), answer);
    }
}
