//! The loop of a turn as a state machine: a fold over stored steps says what comes next.

use std::collections::BTreeSet;

use base::MicroUsd;
use model::{Answer, Block, Message, ToolCall};

/// What a stored step holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// The run's input.
    Tail,
    /// A model's answer.
    Model,
    /// A tool's result.
    Tool,
}

/// How much a run may use (CTX-15), and has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Steps so far and at most.
    pub steps: (u32, u32),
    /// Tokens in and out so far and at most.
    pub tokens: (u64, u64),
    /// Money so far and at most.
    pub micro_usd: (MicroUsd, MicroUsd),
}

impl Budget {
    /// Which bound is reached, in words.
    fn exhausted(&self) -> Option<String> {
        let (steps, tokens, money) = (self.steps, self.tokens, self.micro_usd);
        if steps.0 >= steps.1 {
            Some(format!("{} of {} steps", steps.0, steps.1))
        } else if tokens.0 >= tokens.1 {
            Some(format!("{} of {} tokens", tokens.0, tokens.1))
        } else if money.0 >= money.1 && money.0 > MicroUsd(0) {
            Some(format!("{} of {}", money.0, money.1))
        } else {
            None
        }
    }
}

/// Characters kept of arguments that cannot be read.
const RAW_CHARS_MAX: usize = 500;

/// What comes next in a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Ask the model with all blocks so far.
    Ask,
    /// Perform or record this call.
    Call(ToolCall),
    /// The turn is over.
    Done(Outcome),
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// As the model wished.
    Completed,
    /// At a budget, in words.
    Budget(String),
}

/// The state of a turn: nothing but what its steps say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    open: Vec<ToolCall>,
    used: BTreeSet<String>,
    wants_end: bool,
    ended: bool,
}

impl Turn {
    /// Folds one stored step in.
    pub fn push(&mut self, kind: StepKind, block: &Block) -> Result<(), model::BlockError> {
        match kind {
            StepKind::Tail => {}
            StepKind::Model => {
                let Message::Assistant { tool_calls, .. } = block.message()? else { return Ok(()) };
                // Text without a call is private and ends the turn, like silence.
                self.ended = tool_calls.is_empty();
                self.wants_end = tool_calls.iter().any(|call| call.name == "finish_quietly");
                self.used.extend(tool_calls.iter().map(|call| call.id.clone()));
                self.open = tool_calls;
            }
            StepKind::Tool => {
                let Message::Tool { call_id, .. } = block.message()? else { return Ok(()) };
                self.open.retain(|call| call.id != call_id);
            }
        }
        Ok(())
    }

    /// The answer as it can be journaled: each call has an id of its own within the run, and arguments
    /// that are JSON. Some servers number their calls anew in each answer or leave the ids out, and an
    /// answer that was cut off ends in half a call; either would make the conversation unreadable for
    /// every later request.
    pub fn sound(&self, answer: Answer, step: u32) -> Answer {
        let mut used = self.used.clone();
        let mut calls = answer.tool_calls.clone();
        for (at, call) in calls.iter_mut().enumerate() {
            if call.id.is_empty() || used.contains(&call.id) {
                call.id = format!("call-{step}-{at}");
            }
            used.insert(call.id.clone());
            let object = serde_json::from_str::<serde_json::Map<_, serde_json::Value>>;
            if !call.arguments.trim().is_empty() && object(&call.arguments).is_err() {
                let raw: String = call.arguments.chars().take(RAW_CHARS_MAX).collect();
                call.arguments = serde_json::json!({ "unreadable": raw }).to_string();
            }
        }
        if calls == answer.tool_calls {
            return answer;
        }
        answer.with_calls(calls)
    }

    /// What comes next.
    pub fn next(&self, budget: &Budget) -> Next {
        if self.ended || (self.open.is_empty() && self.wants_end) {
            return Next::Done(Outcome::Completed);
        }
        match (budget.exhausted(), self.open.first()) {
            (Some(what), _) => Next::Done(Outcome::Budget(what)),
            (None, Some(call)) => Next::Call(call.clone()),
            (None, None) => Next::Ask,
        }
    }

    /// Calls without a result yet. A run that ends early answers them, so that history stays whole.
    pub fn unanswered(&self) -> &[ToolCall] {
        &self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(steps: u32) -> Budget {
        Budget { steps: (steps, 40), tokens: (0, 1), micro_usd: (MicroUsd(0), MicroUsd(1)) }
    }
    fn answer(calls: &[&str]) -> Block {
        let tool_calls = calls
            .iter()
            .map(|name| ToolCall {
                id: format!("id-{name}"),
                name: (*name).into(),
                arguments: "{}".into(),
            })
            .collect();
        Message::Assistant { text: Some("private".into()), tool_calls }.to_block()
    }
    fn result(name: &str) -> Block {
        Message::Tool { call_id: format!("id-{name}"), text: "ok".into() }.to_block()
    }
    fn after(steps: &[(StepKind, Block)]) -> Next {
        let mut turn = Turn::default();
        for (kind, block) in steps {
            turn.push(*kind, block).unwrap();
        }
        turn.next(&budget(steps.len() as u32))
    }
    fn calls(next: Next) -> String {
        match next {
            Next::Call(call) => call.name,
            Next::Ask => "ask".into(),
            Next::Done(outcome) => format!("{outcome:?}"),
        }
    }

    #[test]
    fn every_prefix_of_a_journal_says_what_comes_next() {
        let steps = [
            (StepKind::Tail, Message::User("tail".into()).to_block()),
            (StepKind::Model, answer(&["tool_schema", "read_records"])),
            (StepKind::Tool, result("tool_schema")),
            (StepKind::Tool, result("read_records")),
            (StepKind::Model, answer(&["send_to_user", "finish_quietly"])),
            (StepKind::Tool, result("send_to_user")),
            (StepKind::Tool, result("finish_quietly")),
        ];
        let nexts: Vec<String> = (1..=steps.len()).map(|n| calls(after(&steps[..n]))).collect();
        assert_eq!(
            nexts,
            [
                "ask",
                "tool_schema",
                "read_records",
                "ask",
                "send_to_user",
                "finish_quietly",
                "Completed"
            ]
        );
        assert_eq!(calls(after(&[steps[0].clone(), (StepKind::Model, answer(&[]))])), "Completed");
    }

    #[test]
    fn a_budget_stops_before_the_next_thing_and_an_end_is_an_end() {
        let mut turn = Turn::default();
        turn.push(StepKind::Model, &answer(&["read_records"])).unwrap();
        assert_eq!(turn.next(&budget(40)), Next::Done(Outcome::Budget("40 of 40 steps".into())));
        assert_eq!(turn.unanswered().len(), 1);
        turn.push(StepKind::Model, &answer(&[])).unwrap();
        assert_eq!(turn.next(&budget(40)), Next::Done(Outcome::Completed));
    }

    #[test]
    fn calls_get_ids_of_their_own_and_arguments_that_can_be_read() {
        let call = |id: &str, arguments: &str| ToolCall {
            id: id.into(),
            name: "read_records".into(),
            arguments: arguments.into(),
        };
        let answer = |calls: Vec<ToolCall>| Answer::new(None, calls, model::Finish::ToolCalls);
        let mut turn = Turn::default();
        let first = turn.sound(answer(vec![call("a", "{}"), call("b", "")]), 1);
        assert_eq!(first, answer(vec![call("a", "{}"), call("b", "")]), "sound as it is");
        turn.push(StepKind::Model, &first.block).unwrap();
        let second = turn.sound(
            answer(vec![
                call("a", "{}"),
                call("", "{}"),
                call("c", "{\"what\": \"du"),
                call("c", "[]"),
            ]),
            4,
        );
        let unreadable = |raw: &str| serde_json::json!({ "unreadable": raw }).to_string();
        assert_eq!(
            second.tool_calls,
            [
                call("call-4-0", "{}"),
                call("call-4-1", "{}"),
                call("c", &unreadable("{\"what\": \"du")),
                call("call-4-3", &unreadable("[]")),
            ]
        );
        assert_eq!(second.block, answer(second.tool_calls.clone()).block, "and so it is stored");
        turn.push(StepKind::Model, &second.block).unwrap();
        assert_eq!(calls(turn.next(&budget(5))), "read_records");
    }
}
