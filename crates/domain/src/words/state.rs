//! Words for states. Sent is not done, and confirmed is not in force (UX rule 1).

use base::Timestamp;
use jiff::tz::TimeZone;

use super::{Language, at};
use crate::state::{ActionState, ApprovalState, AttemptState, DutyState, ProposalState};

/// What is known of a duty when its one-line state is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DutyFacts {
    /// Its state.
    pub state: DutyState,
    /// Whether a run of its session is under way.
    pub running: bool,
    /// Its next wake-up, by schedule or due wait.
    pub next_wake: Option<Timestamp>,
    /// When it last looked.
    pub last_run: Option<Timestamp>,
}

/// One line on where a duty stands.
pub fn duty_line(facts: DutyFacts, zone: &TimeZone, language: Language) -> String {
    let at = |instant| at(language, zone, instant);
    let fixed = match facts.state {
        DutyState::CloseProposed => {
            ("Waiting for your decision: is it done?", "等你决定：是否已完成？")
        }
        DutyState::Stopped => (
            "Stopped by you. It wakes no more; resume it to go on.",
            "你已停止。不再唤醒；要继续请恢复。",
        ),
        DutyState::Closed => ("Closed. You confirmed that it is done.", "已结束。你已确认完成。"),
        DutyState::Active if facts.running => ("Working on it now.", "正在处理。"),
        DutyState::Active => match (facts.last_run, facts.next_wake, language) {
            (Some(last), Some(next), Language::En) => {
                return format!("Checked {} · next {}", at(last), at(next));
            }
            (Some(last), Some(next), Language::Zh) => {
                return format!("{} 看过 · 下次 {}", at(last), at(next));
            }
            (None, Some(next), Language::En) => {
                return format!("Waiting · first look {}", at(next));
            }
            (None, Some(next), Language::Zh) => return format!("等待中 · 首次 {}", at(next)),
            (Some(last), None, Language::En) => {
                return format!("Checked {} · no further wake-up is set", at(last));
            }
            (Some(last), None, Language::Zh) => {
                return format!("{} 看过 · 没有计划中的唤醒", at(last));
            }
            (None, None, _) => ("Waiting for your next message.", "等你的下一条消息。"),
        },
    };
    language.pick(fixed.0, fixed.1).into()
}

/// Where an action stands, in a few words of English, for a model and inside other sentences.
pub fn action_state(state: ActionState) -> &'static str {
    match state {
        ActionState::Proposed => "being looked at",
        ActionState::AwaitingApproval => "waiting for the person",
        ActionState::Authorized => "released, not sent yet",
        ActionState::Admitted => "about to be sent",
        ActionState::Dispatched => "sent, no answer yet",
        ActionState::Unknown => "sent, being checked",
        ActionState::Accepted => "confirmed, evidence is looked for",
        ActionState::Effective => "in force",
        ActionState::Blocked => "did not happen",
        ActionState::Denied => "refused by the person",
        ActionState::Expired => "expired, nothing happened",
        ActionState::Superseded => "no longer wanted, nothing happened",
        ActionState::Withdrawn => "withdrawn, nothing happened",
        ActionState::Cancelled => "stopped before it was sent",
        ActionState::Abandoned => "given up, nothing happened",
    }
}

/// What a person is told an action's state by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionFacts {
    /// Its state.
    pub state: ActionState,
    /// Whether looking has come to its end and the person was asked.
    pub escalated: bool,
    /// Whether the person said what became of it.
    pub said_by_user: bool,
}

/// Where an action stands, for the person whose it is.
pub fn action_line(facts: ActionFacts, language: Language) -> &'static str {
    let (english, chinese) = match facts.state {
        ActionState::Unknown if facts.escalated => (
            "Still unknown · it may or may not have happened",
            "仍无法确认 · 可能发生了，也可能没有",
        ),
        ActionState::Accepted if facts.said_by_user => {
            ("You said that it happened", "你说已经发生")
        }
        ActionState::Blocked if facts.said_by_user => {
            ("You said that it did not happen", "你说没有发生")
        }
        ActionState::Proposed => ("Prepared, not sent", "已拟好，未发出"),
        ActionState::AwaitingApproval => ("Waiting for your decision", "等你决定"),
        ActionState::Authorized => ("Released, not sent yet", "已放行，尚未发出"),
        ActionState::Admitted => ("About to be sent", "即将发出"),
        ActionState::Dispatched => ("Sent · no answer yet", "已提交请求 · 尚无答复"),
        ActionState::Unknown => ("Sent · outcome being checked", "已提交请求 · 结果核对中"),
        ActionState::Accepted => {
            ("Confirmed by the other side · not verified yet", "对方已确认 · 尚未核实")
        }
        ActionState::Effective => ("In force · verified", "已生效 · 已核实"),
        ActionState::Blocked => ("Did not happen", "没有发生"),
        ActionState::Denied => ("You said no · nothing sent", "你已否决 · 未发出"),
        ActionState::Expired => ("Its time passed · nothing sent", "时限已过 · 未发出"),
        ActionState::Superseded => ("No longer applies · nothing sent", "已不适用 · 未发出"),
        ActionState::Withdrawn => ("Taken back · nothing sent", "已撤回 · 未发出"),
        ActionState::Cancelled => ("Stopped in time · not sent", "及时停下 · 没有发出"),
        ActionState::Abandoned => ("Given up · nothing happened", "已放弃 · 没有发生"),
    };
    language.pick(english, chinese)
}

/// Where an approval stands.
pub fn approval_line(state: ApprovalState, language: Language) -> &'static str {
    let (english, chinese) = match state {
        ApprovalState::Requested => ("Asked", "已提出"),
        ApprovalState::Granted => ("Released", "已放行"),
        ApprovalState::Denied => ("Refused", "已否决"),
        ApprovalState::Expired => ("Its time passed", "时限已过"),
        ApprovalState::Cancelled => ("No longer asked", "已不再询问"),
        ApprovalState::Consumed => ("Released and used", "已放行并使用"),
        ApprovalState::Voided => ("Released, no longer counts", "放行已失效"),
    };
    language.pick(english, chinese)
}

/// Where one sending stands.
pub fn attempt_line(state: AttemptState, language: Language) -> &'static str {
    let (english, chinese) = match state {
        AttemptState::Registered => ("Sent · no answer yet", "已提交请求 · 尚无答复"),
        AttemptState::Accepted => ("Confirmed", "对方已确认"),
        AttemptState::Blocked => ("Not sent, or refused", "未发出，或对方已拒绝"),
        AttemptState::Unknown => ("Outcome being checked", "结果核对中"),
    };
    language.pick(english, chinese)
}

/// Where a question about a duty stands. Silence is not a no.
pub fn proposal_line(
    asked: super::Question,
    state: ProposalState,
    language: Language,
) -> &'static str {
    use super::Question::{Change, Close, Start};
    let (english, chinese) = match (state, asked) {
        (ProposalState::Open, _) => ("Waiting for your decision", "等你决定"),
        (ProposalState::Confirmed, Start) => {
            ("You agreed · the duty has started", "你已同意 · 事务已开始")
        }
        (ProposalState::Confirmed, Change) => {
            ("You agreed · the duty has changed", "你已同意 · 事务已更改")
        }
        (ProposalState::Confirmed, Close) => {
            ("You agreed · the duty has ended", "你已同意 · 事务已结束")
        }
        (ProposalState::Declined, Start) => {
            ("You said no · nothing started", "你已否决 · 没有开始")
        }
        (ProposalState::Declined, Change) => {
            ("You said no · the duty is as before", "你已否决 · 事务不变")
        }
        (ProposalState::Declined, Close) => {
            ("You said no · the duty goes on", "你已否决 · 事务继续")
        }
        (ProposalState::Withdrawn, _) => {
            ("No longer applies · nothing started or ended", "已不适用 · 没有开始或结束任何事务")
        }
        (ProposalState::Expired, _) => (
            "Its time passed without your answer · nothing started or ended",
            "期限已过，未收到你的决定 · 没有开始或结束任何事务",
        ),
    };
    language.pick(english, chinese)
}
