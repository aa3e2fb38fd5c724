//! What a new version of a duty changes, in plain words, and what outside events may change (DEL-21, DEL-22).

use super::{Condition, Draft, Subscription, Wakeup};
use crate::effect::GrantDraft;
use crate::words::Language;

/// The difference between two versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// One line for each difference.
    pub lines: Vec<String>,
    /// Whether anything but title and goal differs: what may be done, when, until when, and when it is done.
    pub beyond_facts: bool,
}

impl Change {
    /// Compares two versions.
    pub fn between(old: &Draft, new: &Draft, language: Language) -> Self {
        let mut lines = Vec::new();
        if old.title != new.title {
            let (old, new) = (quoted(&old.title, language), quoted(&new.title, language));
            lines.push(becomes(language.pick("Title", "名称"), &old, &new, language));
        }
        if old.goal != new.goal {
            let (old, new) = (quoted(&old.goal, language), quoted(&new.goal, language));
            lines.push(becomes(language.pick("Goal", "委托内容"), &old, &new, language));
        }
        let facts = lines.len();
        let mut list = Lines { lines: &mut lines, language };
        let condition = |c: &Condition| format!("{} ({}, {})", c.text, c.evidence, c.authority);
        list.of(("Done when", "完成条件"), &old.conditions, &new.conditions, condition);
        let wakeup = |w: &Wakeup| format!("{}: {}", w.words(language), w.prompt);
        list.of(("Wake-up", "唤醒"), &old.schedules, &new.schedules, wakeup);
        let heard = |s: &Subscription| format!("{}: {}", s.words(language), s.prompt);
        list.of(("Listens to", "接收"), &old.subscriptions, &new.subscriptions, heard);
        let grant = |g: &GrantDraft| g.words(language);
        list.of(("May, without asking", "无需再问即可做"), &old.grants, &new.grants, grant);
        if old.until != new.until {
            let none = language.pick("no end", "没有终点");
            let end = |until: &Option<String>| until.clone().unwrap_or_else(|| none.into());
            let what = language.pick("Until", "到期");
            lines.push(becomes(what, &end(&old.until), &end(&new.until), language));
        }
        Change { beyond_facts: lines.len() > facts, lines }
    }

    /// Whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

fn quoted(text: &str, language: Language) -> String {
    match language {
        Language::En => format!("\"{text}\""),
        Language::Zh => format!("“{text}”"),
    }
}

/// One difference: what stood there, and what stands there now.
pub fn becomes(what: &str, old: &str, new: &str, language: Language) -> String {
    match language {
        Language::En => format!("{what}: {old} becomes {new}"),
        Language::Zh => format!("{what}：由 {old} 改为 {new}"),
    }
}

/// The differences of lists.
struct Lines<'a> {
    lines: &'a mut Vec<String>,
    language: Language,
}

impl Lines<'_> {
    fn of<T: PartialEq>(
        &mut self,
        what: (&'static str, &'static str),
        old: &[T],
        new: &[T],
        words: impl Fn(&T) -> String,
    ) {
        let what = self.language.pick(what.0, what.1);
        let line = |kind: (&'static str, &'static str), one: &T| {
            format!("{what}{}{}", self.language.pick(kind.0, kind.1), words(one))
        };
        let gone = old.iter().filter(|one| !new.contains(one));
        self.lines.extend(gone.map(|one| line((", no longer: ", "，不再："), one)));
        let added = new.iter().filter(|one| !old.contains(one));
        self.lines.extend(added.map(|one| line((", new: ", "，新增："), one)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_one_line_and_only_words_are_facts() {
        let draft = |goal: &str, rest: &str| -> Draft {
            serde_json::from_str(&format!(
                r#"{{"title":"Trip","goal":"{goal}","conditions":[
                    {{"text":"Booked","evidence":"receipt","authority":"hotel"}}]{rest}}}"#
            ))
            .unwrap()
        };
        let plain = draft("Meet at nine", "");
        assert!(Change::between(&plain, &plain, Language::En).is_empty());
        let moved = Change::between(&plain, &draft("Meet at ten", ""), Language::En);
        assert_eq!(
            moved,
            Change {
                lines: vec!["Goal: \"Meet at nine\" becomes \"Meet at ten\"".into()],
                beyond_facts: false,
            }
        );
        let wide = draft(
            "Meet at nine",
            r#","schedules":[{"when":"daily 8:00","prompt":"Look"}],
               "grants":[{"tool":"hotel.book","times":2,"currency":"HKD","total":"100"}],
               "until":"2027-05-01T00:00:00Z""#,
        );
        let widened = Change::between(&plain, &wide, Language::En);
        assert_eq!(
            widened.lines,
            [
                "Wake-up, new: every day at 08:00: Look",
                "May, without asking, new: hotel.book, at most twice, HKD 100.00 in all",
                "Until: no end becomes 2027-05-01T00:00:00Z",
            ]
        );
        assert!(widened.beyond_facts && Change::between(&wide, &plain, Language::En).beyond_facts);
        assert_eq!(
            Change::between(&wide, &plain, Language::En).lines[1],
            "May, without asking, no longer: hotel.book, at most twice, HKD 100.00 in all"
        );
    }
}
