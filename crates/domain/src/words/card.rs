//! What cards say: what would happen, why it is asked, what happens without an answer, and afterwards
//! (UX rule 3).

use base::{SessionId, Timestamp};

use super::{Language, on_one_line, said};
use crate::draft::becomes;
use crate::effect::{CardLine, Content};
use crate::state::ActionState;

/// What a card about a duty asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// To take one on.
    Start,
    /// To put a new version in the place of one.
    Change,
    /// To close one.
    Close,
}

/// The template of an action's card with its version, and the language in which it is worded (DESIGN section 5).
pub fn action_template(language: Language) -> String {
    format!("action-2 {}", language.word())
}

/// The operation with its price.
pub fn named(content: &Content, language: Language) -> String {
    match (content.amount(), language) {
        (None, _) => content.operation.clone(),
        (Some(amount), Language::En) => format!("{} for {amount}", content.operation),
        (Some(amount), Language::Zh) => format!("{}，{amount}", content.operation),
    }
}

/// Lines of a card that a sentence about it repeats.
const FOLDED_LINES_MAX: usize = 20;
/// Characters of one of their values; the card has the whole.
const FOLDED_VALUE_MAX: usize = 400;

/// One line on what an action would do or has done: the operation, and what its card shows, folded.
pub fn operation(content: &Content, language: Language) -> String {
    let folded =
        |line: &CardLine| format!("{} {}", line.label, on_one_line(&line.value, FOLDED_VALUE_MAX));
    let mut lines: Vec<String> = content.card.iter().take(FOLDED_LINES_MAX).map(folded).collect();
    if let more @ 1.. = content.card.len().saturating_sub(FOLDED_LINES_MAX) {
        lines.push(match language {
            Language::En => format!("{more} more on its card"),
            Language::Zh => format!("卡片上还有 {more} 项"),
        });
    }
    let (named, lines) = (named(content, language), lines.join(language.pick(", ", "，")));
    match (lines.is_empty(), language) {
        (true, _) => named,
        (false, Language::En) => format!("{named} ({lines})"),
        (false, Language::Zh) => format!("{named}（{lines}）"),
    }
}

/// What a card for a release says above its buttons. `why` is in English, as it is on record.
pub fn asks(content: &Content, why: &str, language: Language) -> String {
    let (what, why) = (operation(content, language), said(why, language));
    match language {
        Language::En => {
            format!("Release this? {what}. {why} If you do nothing, nothing happens.")
        }
        Language::Zh => format!("放行这件事吗？{what}。{why}如果你不处理，什么都不会发生。"),
    }
}

/// A request that nobody decided.
pub fn lapsed(content: &Content, language: Language) -> String {
    let what = operation(content, language);
    match language {
        Language::En => format!(
            "The time to decide has passed: {what}. Nothing was done. Ask again whenever you like."
        ),
        Language::Zh => format!("决定的时限已过：{what}。什么都没有做。需要时可以再提。"),
    }
}

/// An action that a rule of the supervisor ended.
pub fn forbidden(content: &Content, language: Language) -> String {
    let what = operation(content, language);
    match language {
        Language::En => format!("Not done: {what}. A rule of your supervisor forbids it."),
        Language::Zh => format!("没有做：{what}。你主管的一条规则不允许。"),
    }
}

/// The card at the end of looking: a person says what they know.
pub fn did_it_happen(content: &Content, contradiction: Option<&str>, language: Language) -> String {
    let what = operation(content, language);
    match (contradiction.map(|what| said(what, language)), language) {
        (None, Language::En) => format!(
            "Did this happen? {what}. I could not find out. I do not send it again. Say that it \
             happened, that it did not, or let me keep looking; if you do nothing, I keep looking."
        ),
        (Some(differs), Language::En) => format!(
            "Did this happen? {what}. What I was told and what is there do not fit: {differs}. I do \
             not send it again. Say that it happened, that it did not, or let me keep looking; if you \
             do nothing, I keep looking."
        ),
        (None, Language::Zh) => format!(
            "这件事发生了吗？{what}。我无法查明，不会再次提交。请说已经发生、没有发生，或让我继续核对；如果你\
             不处理，我会继续核对。"
        ),
        (Some(differs), Language::Zh) => format!(
            "这件事发生了吗？{what}。对方的答复与实际查到的不一致：{differs}。我不会再次提交。请说已经发生、没\
             有发生，或让我继续核对；如果你不处理，我会继续核对。"
        ),
    }
}

/// What is known of an action when its card is written; the times are written out.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// Its state.
    pub state: ActionState,
    /// Whether the person was asked what became of it.
    pub escalated: bool,
    /// When the question ends.
    pub until: Option<&'a str>,
    /// When it is sent.
    pub not_before: Option<&'a str>,
    /// For how many seconds a release can still be taken back.
    pub seconds: u64,
}

/// What comes of an action if the person does nothing, and what happens after the tap that is asked for; `None`
/// where nothing is asked of them.
pub fn action_card(of: Standing<'_>, language: Language) -> Option<(String, String)> {
    let english = language == Language::En;
    let later = language.pick(
        "After that it can be undone by an action of its own, if at all.",
        "发出之后只能用另一项操作撤销，也可能无法撤销。",
    );
    let back = language.pick("You can take it back until it is sent. ", "发出之前可以撤回。");
    let (nothing, first) = match of.state {
        ActionState::AwaitingApproval => {
            let nothing = match of.until {
                Some(until) if english => {
                    format!("Nothing is done. The question ends on {until}.")
                }
                Some(until) => format!("不会执行。这个问题于 {until} 到期作废。"),
                None => language.pick("Nothing is done.", "不会执行。").into(),
            };
            let first = match of.seconds {
                0 => language.pick("It is sent at once. ", "立即发出。").into(),
                seconds if english => {
                    format!("It is sent {seconds} s later; until then you can take it back. ")
                }
                seconds => format!("{seconds} 秒后发出，在此之前可以撤回。"),
            };
            (nothing, first)
        }
        ActionState::Authorized => {
            let soon = "It is sent as soon as nothing holds it back.";
            (language.pick(soon, "一旦没有阻碍就会发出。").into(), back.into())
        }
        ActionState::Admitted => {
            let nothing = match of.not_before {
                Some(at) if english => format!("It is sent on {at}."),
                Some(at) => format!("会在 {at} 发出。"),
                None => language.pick("It is sent.", "会发出。").into(),
            };
            (nothing, back.into())
        }
        ActionState::Unknown if of.escalated => {
            let nothing = language.pick(
                "It is looked up again and again. It is not sent again.",
                "会反复核对，不会再次提交。",
            );
            let settles = language.pick(
                "Your word settles it; evidence against it opens it again.",
                "以你说的为准；若有相反的证据会重新核对。",
            );
            return Some((nothing.into(), settles.into()));
        }
        ActionState::Proposed
        | ActionState::Dispatched
        | ActionState::Unknown
        | ActionState::Accepted
        | ActionState::Effective
        | ActionState::Blocked
        | ActionState::Denied
        | ActionState::Expired
        | ActionState::Superseded
        | ActionState::Withdrawn
        | ActionState::Cancelled
        | ActionState::Abandoned => return None,
    };
    Some((nothing, format!("{first}{later}")))
}

/// The message that comes with a card about a duty. `what`: the goal of a new one, the differences of a
/// new version, the reason of a closing.
pub fn proposal_asks(asked: Question, title: &str, what: &str, language: Language) -> String {
    match (asked, language) {
        (Question::Start, Language::En) => format!("Start this duty? {title}: {what}"),
        (Question::Start, Language::Zh) => format!("开始这项事务吗？{title}：{what}"),
        (Question::Change, Language::En) => format!("Change \"{title}\"? {what}."),
        (Question::Change, Language::Zh) => format!("更改“{title}”吗？{what}。"),
        (Question::Close, Language::En) => format!("Is \"{title}\" done? {what}"),
        (Question::Close, Language::Zh) => format!("“{title}”完成了吗？{what}"),
    }
}

/// A question about a duty that nobody decided.
pub fn proposal_lapsed(language: Language) -> &'static str {
    language.pick(
        "The time for your decision passed without an answer. Nothing was changed. Ask again whenever \
         you like.",
        "决定的时限已过，没有收到答复。什么都没有改变。需要时可以再提。",
    )
}

/// Why a person is asked about a duty, and what follows a yes.
pub fn proposal_card(asked: Question, language: Language) -> (&'static str, &'static str) {
    match asked {
        Question::Start => (
            language.pick(
                "A duty wakes up by itself, so it starts only if you agree.",
                "事务会自行唤醒，所以要你同意才会开始。",
            ),
            language.pick("You can stop it under Duties at any time.", "随时可以在“事务”里停止。"),
        ),
        Question::Change => (
            language.pick(
                "What a duty is asked changes only if you agree.",
                "只有你同意，事务的要求才会改变。",
            ),
            language.pick(
                "The new version holds from now on. What was sent before is still followed up.",
                "新版本立即生效。之前已发出的继续核对。",
            ),
        ),
        Question::Close => (
            language.pick("A duty ends only if you agree.", "只有你同意，事务才会结束。"),
            language.pick("It wakes no more. Its records stay.", "不再唤醒。记录会保留。"),
        ),
    }
}

/// What comes of a question about a duty that the person leaves alone; `until` is written out.
pub fn proposal_if_nothing(asked: Question, until: &str, language: Language) -> String {
    let first = match asked {
        Question::Start => language.pick("Nothing starts.", "不会开始。"),
        Question::Change => language.pick("The duty goes on as it is.", "事务照旧进行。"),
        Question::Close => {
            language.pick("The duty stays as it is and goes on.", "事务不变，继续进行。")
        }
    };
    match language {
        Language::En => format!("{first} The question ends on {until}."),
        Language::Zh => format!("{first}这个问题于 {until} 到期作废。"),
    }
}

/// What differs between two actions, a line each: the operation, the price, the fields, who receives it.
pub fn differences(old: &Content, new: &Content, language: Language) -> Vec<String> {
    let mut lines = Vec::new();
    let none = "–".to_owned();
    let mut compare = |what: &str, old: Option<String>, new: Option<String>| {
        if old != new {
            let (old, new) =
                (old.unwrap_or_else(|| none.clone()), new.unwrap_or_else(|| none.clone()));
            lines.push(becomes(what, &old, &new, language));
        }
    };
    let operation = language.pick("What is done", "做什么");
    compare(operation, Some(old.operation.clone()), Some(new.operation.clone()));
    let amount = |content: &Content| content.amount().map(|amount| amount.to_string());
    compare(language.pick("Amount", "金额"), amount(old), amount(new));
    let value = |content: &Content, label: &str| {
        content.card.iter().find(|line| line.label == label).map(|line| line.value.clone())
    };
    for line in &old.card {
        compare(&line.label, Some(line.value.clone()), value(new, &line.label));
    }
    for line in new.card.iter().filter(|line| value(old, &line.label).is_none()) {
        compare(&line.label, None, Some(line.value.clone()));
    }
    let people = |content: &Content| {
        let named = content.recipients.join(language.comma());
        Some(named).filter(|named| !named.is_empty())
    };
    compare(language.pick("Receives it", "接收方"), people(old), people(new));
    lines
}

/// Who decided a card before, where and when; `state` is its line now.
pub fn decided_elsewhere(device: &str, at: &str, state: &str, language: Language) -> String {
    match language {
        Language::En => format!("Decided on {device}, {at}: {state}."),
        Language::Zh => format!("已于 {at} 在 {device} 上决定：{state}。"),
    }
}

/// What a card asks about, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// In which lane.
    pub session: SessionId,
    /// With which tool.
    pub tool: String,
    /// On which errand of that tool.
    pub errand: String,
    /// Since when.
    pub at: Timestamp,
}

/// Whether a card asks anew what an older one asked: the same errand in the same lane, later.
pub fn takes_place(new: &Asked, old: &Asked) -> bool {
    new.at > old.at
        && new.session == old.session
        && (&new.tool, &new.errand) == (&old.tool, &old.errand)
}

/// A newer card that took the place of the one that was tapped.
pub fn newer_card(language: Language) -> &'static str {
    language.pick("A newer card has taken its place.", "已有新的卡片代替它。")
}
