//! What a new version of a duty changes, in plain words, and what outside events may change (DEL-21, DEL-22).

use super::{Condition, Draft, Subscription, Wakeup};
use crate::effect::GrantDraft;

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
    pub fn between(old: &Draft, new: &Draft) -> Self {
        let mut lines = Vec::new();
        if old.title != new.title {
            lines.push(format!("Title: \"{}\" becomes \"{}\"", old.title, new.title));
        }
        if old.goal != new.goal {
            lines.push(format!("Goal: \"{}\" becomes \"{}\"", old.goal, new.goal));
        }
        let facts = lines.len();
        let condition = |c: &Condition| format!("{} ({}, {})", c.text, c.evidence, c.authority);
        list("Done when", &old.conditions, &new.conditions, condition, &mut lines);
        let wakeup = |w: &Wakeup| format!("{}: {}", w.words(), w.prompt);
        list("Wake-up", &old.schedules, &new.schedules, wakeup, &mut lines);
        let heard = |s: &Subscription| format!("{}: {}", s.words(), s.prompt);
        list("Listens to", &old.subscriptions, &new.subscriptions, heard, &mut lines);
        list("May, without asking", &old.grants, &new.grants, GrantDraft::words, &mut lines);
        if old.until != new.until {
            let end = |until: &Option<String>| until.clone().unwrap_or_else(|| "no end".into());
            lines.push(format!("Until: {} becomes {}", end(&old.until), end(&new.until)));
        }
        Change { beyond_facts: lines.len() > facts, lines }
    }

    /// Whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

fn list<T: PartialEq>(
    what: &str,
    old: &[T],
    new: &[T],
    words: impl Fn(&T) -> String,
    lines: &mut Vec<String>,
) {
    let gone = old.iter().filter(|one| !new.contains(one));
    lines.extend(gone.map(|one| format!("{what}, no longer: {}", words(one))));
    let added = new.iter().filter(|one| !old.contains(one));
    lines.extend(added.map(|one| format!("{what}, new: {}", words(one))));
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
        assert!(Change::between(&plain, &plain).is_empty());
        let moved = Change::between(&plain, &draft("Meet at ten", ""));
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
        let widened = Change::between(&plain, &wide);
        assert_eq!(
            widened.lines,
            [
                "Wake-up, new: every day at 08:00: Look",
                "May, without asking, new: hotel.book, at most twice, HKD 100.00 in all",
                "Until: no end becomes 2027-05-01T00:00:00Z",
            ]
        );
        assert!(widened.beyond_facts && Change::between(&wide, &plain).beyond_facts);
        assert_eq!(
            Change::between(&wide, &plain).lines[1],
            "May, without asking, no longer: hotel.book, at most twice, HKD 100.00 in all"
        );
    }
}
