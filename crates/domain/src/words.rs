//! The server's own words, in the languages that a person reads: fact first, then time, then the next step
//! (UX rules 1 and 2). What a model reads stays English.

mod card;
mod notice;
mod said;
mod state;
#[cfg(test)]
mod tests;

use base::Timestamp;
use jiff::civil::Weekday;
use jiff::tz::TimeZone;

pub use card::{
    Asked, Question, Standing, action_card, action_template, asks, decided_elsewhere,
    did_it_happen, differences, forbidden, lapsed, named, newer_card, operation, proposal_asks,
    proposal_card, proposal_if_nothing, proposal_lapsed, takes_place,
};
pub use notice::Notice;
pub use said::said;
pub use state::{
    ActionFacts, DutyFacts, action_line, action_state, approval_line, attempt_line, duty_line,
    proposal_line,
};

use crate::schedule::local_words;

/// A language that a person reads.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
pub enum Language {
    /// English.
    #[default]
    #[serde(rename = "en")]
    En,
    /// Chinese, simplified.
    #[serde(rename = "zh")]
    Zh,
}

impl Language {
    /// Both.
    pub const ALL: [Language; 2] = [Language::En, Language::Zh];

    /// The word that is stored, shown in JSON and written in settings.
    pub const fn word(self) -> &'static str {
        match self {
            Language::En => "en",
            Language::Zh => "zh",
        }
    }

    /// Reads the stored word.
    pub fn parse(word: &str) -> Option<Self> {
        Language::ALL.into_iter().find(|language| language.word() == word)
    }

    /// The language of a locale such as `zh_HK.UTF-8`; English for all that is not Chinese.
    pub fn of_locale(locale: &str) -> Self {
        if locale.to_ascii_lowercase().starts_with("zh") { Language::Zh } else { Language::En }
    }

    /// What stands between the parts of a list.
    pub const fn comma(self) -> &'static str {
        self.pick(", ", "、")
    }

    /// The text in this language.
    pub const fn pick(self, english: &'static str, chinese: &'static str) -> &'static str {
        match self {
            Language::En => english,
            Language::Zh => chinese,
        }
    }
}

/// An instant as people of that zone write it: `Monday 2027-03-01 08:00`, `2027-03-01 星期一 08:00`.
pub fn at(language: Language, zone: &TimeZone, instant: Timestamp) -> String {
    match (language, jiff::Timestamp::from_microsecond(instant.micros())) {
        (Language::Zh, Ok(time)) => {
            let local = zone.to_datetime(time);
            let (date, clock) = (local.strftime("%Y-%m-%d"), local.strftime("%H:%M"));
            format!("{date} 星期{} {clock}", weekday(local.weekday()))
        }
        (Language::En, _) | (Language::Zh, Err(_)) => local_words(zone, instant),
    }
}

/// The last character of a weekday's name in Chinese.
pub(crate) const fn weekday(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "一",
        Weekday::Tuesday => "二",
        Weekday::Wednesday => "三",
        Weekday::Thursday => "四",
        Weekday::Friday => "五",
        Weekday::Saturday => "六",
        Weekday::Sunday => "日",
    }
}

/// Whether a character commands a screen, draws lines of its own, turns the reading direction, or shows nothing or
/// what only one machine knows: in
/// what a person decides by it could hide or fake something.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0100}'..='\u{e01ef}')
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// A text of others in one line of a card: at most so many characters, with what could hide something
/// shown as `\u{200b}`.
pub fn on_one_line(text: &str, max: usize) -> String {
    let mut shown = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == max {
            shown.push('…');
            break;
        }
        match c {
            '\n' | '\t' => shown.push(' '),
            c if is_harmful(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}
