//! English, and Chinese typed in Latin letters.

use std::sync::LazyLock;

use super::entries;
use super::fold::Clause;

/// An entry of a lexicon, cut into words.
type Phrase = (&'static str, Vec<&'static str>);

/// How many words a `*` stands for at most.
const GAP_WORDS_MAX: usize = 4;
/// Words of the longest phrase that is looked for across the edge of something harmless.
const PHRASE_WORDS_MAX: usize = 6;
/// What a `%` stands for: how a day that is yet to come begins; any number does too.
const DAYS: [&str; 29] = [
    "next",
    "tomorrow",
    "later",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "spring",
    "summer",
    "autumn",
    "winter",
    "new",
    "end",
    "weekend",
];

fn phrases(file: &'static str) -> Vec<Phrase> {
    entries(file).map(|entry| (entry, entry.split(' ').collect())).collect()
}

static STOPS: LazyLock<Vec<Phrase>> = LazyLock::new(|| phrases(include_str!("english_stops.txt")));
static WEAK: LazyLock<Vec<Phrase>> = LazyLock::new(|| phrases(include_str!("english_weak.txt")));
static QUESTIONS: LazyLock<Vec<Phrase>> =
    LazyLock::new(|| phrases(include_str!("english_questions.txt")));
static PINYIN: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| entries(include_str!("pinyin_stops.txt")).collect());
/// The longest first, so that the most exact one is taken.
static HARMLESS: LazyLock<Vec<Phrase>> = LazyLock::new(|| {
    let mut all = phrases(include_str!("english_harmless.txt"));
    all.sort_by_key(|(_, words)| std::cmp::Reverse(words.len()));
    all
});

/// The first entry found in `clauses`.
pub(super) fn find(clauses: &[Clause]) -> Option<&'static str> {
    let kept: Vec<Vec<&str>> =
        clauses.iter().map(|clause| without_harmless(&clause.words)).collect();
    let all: Vec<&str> = kept.iter().flatten().copied().collect();
    kept.iter()
        .find_map(|words| in_clause(words))
        .or_else(|| {
            STOPS
                .iter()
                .find(|(_, phrase)| phrase.len() > 1 && occurs(phrase, &all))
                .map(|(entry, _)| *entry)
        })
        .or_else(|| misspelt(&all))
        .or_else(|| pinyin(&all))
}

/// Words of one clause, with an empty word wherever something harmless was taken out.
fn without_harmless(words: &[String]) -> Vec<&str> {
    let mut kept = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        let rest = words.get(at..).unwrap_or_default();
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let orders = before.is_none_or(|word| ORDER_AFTER.contains(&word.as_str()));
        let harmless = HARMLESS.iter().find_map(|(_, phrase)| match phrase.as_slice() {
            ["^", phrase @ ..] if at == 0 => is_at(phrase, rest),
            ["^", ..] => None,
            ["~", phrase @ ..] if !orders => is_at(phrase, rest),
            ["~", ..] => None,
            phrase => is_at(phrase, rest),
        });
        // "Drop the delay notice": an order that only ends in something harmless stays one.
        let harmless = harmless.filter(|_| !is_crossed(words, at));
        kept.push(if harmless.is_some() { "" } else { words.get(at).map_or("", String::as_str) });
        at += harmless.unwrap_or(1);
    }
    kept
}

/// Words after which an order may stand, besides the beginning of a clause.
const ORDER_AFTER: [&str; 20] = [
    "please",
    "pls",
    "plz",
    "kindly",
    "just",
    "now",
    "then",
    "and",
    "so",
    "ok",
    "okay",
    "lets",
    "you",
    "better",
    "must",
    "should",
    "immediately",
    "quickly",
    "hey",
    "to",
];

/// The number of words that `phrase` takes at the beginning of `words`. Letter by letter: what is harmless is
/// never guessed at ("hold off" is no "hold of").
fn is_at(phrase: &[&str], words: &[String]) -> Option<usize> {
    match phrase {
        [phrase @ .., "$"] => is_at(phrase, words).filter(|length| *length == words.len()),
        phrase => {
            let fits = phrase.len() <= words.len() && phrase.iter().zip(words).all(|(a, b)| a == b);
            fits.then_some(phrase.len())
        }
    }
}

/// Whether a phrase that means a stop begins before the harmless words at `at` and reaches into them.
fn is_crossed(words: &[String], at: usize) -> bool {
    (1..=at).take(PHRASE_WORDS_MAX).any(|back| {
        let from = words.get(at - back..).unwrap_or_default();
        STOPS.iter().any(|(_, phrase)| {
            let plain = !phrase.iter().any(|word| matches!(*word, "*" | "%" | "^" | "$"));
            plain && phrase.len() > back && begins(phrase, from)
        })
    })
}

fn in_clause(words: &[&str]) -> Option<&'static str> {
    let asks = is_question(words);
    let weak = |entry: &str| WEAK.iter().any(|(weak, _)| *weak == entry);
    STOPS
        .iter()
        .chain(WEAK.iter())
        .find(|(entry, phrase)| occurs(phrase, words) && !(asks && weak(entry)))
        .map(|(entry, _)| *entry)
}

/// Whether a clause begins as a question does. "How about" and "what if" propose.
fn is_question(words: &[&str]) -> bool {
    !matches!(words.get(1), Some(&("about" | "if")))
        && QUESTIONS.iter().any(|(_, phrase)| begins(phrase, words))
}

fn occurs<W: AsRef<str>>(phrase: &[&str], words: &[W]) -> bool {
    match phrase {
        ["^", phrase @ ..] => begins(phrase, words),
        phrase => (0..words.len()).any(|at| begins(phrase, words.get(at..).unwrap_or_default())),
    }
}

/// Whether `words` begin with `phrase`.
fn begins<W: AsRef<str>>(phrase: &[&str], words: &[W]) -> bool {
    match phrase {
        [] => true,
        ["$"] => words.is_empty(),
        ["*", rest @ ..] => (1..=GAP_WORDS_MAX.min(words.len()))
            .any(|gap| begins(rest, words.get(gap..).unwrap_or_default())),
        ["%", rest @ ..] => words.split_first().is_some_and(|(word, words)| {
            let word = word.as_ref();
            (DAYS.contains(&word) || word.starts_with(|c: char| c.is_ascii_digit()))
                && begins(rest, words)
        }),
        [first, rest @ ..] => words.split_first().is_some_and(|(word, words)| {
            !word.as_ref().is_empty() && same(first, word.as_ref()) && begins(rest, words)
        }),
    }
}

/// The same word, also when letters were drawn out ("waaait", "noooo").
fn same(entry: &str, word: &str) -> bool {
    let drawn_out = || word.len() > entry.len() && is_drawn_out(word);
    entry.as_bytes().first() == word.as_bytes().first()
        && (entry == word || drawn_out() && squeezed(word) == squeezed(entry))
}

fn is_drawn_out(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.windows(3).any(|three| matches!(three, [a, b, c] if a == b && b == c))
        || matches!(bytes, [.., a, b] if a == b)
}

fn squeezed(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        if !out.ends_with(c) {
            out.push(c);
        }
    }
    out
}

/// Words that matter most, and real words that look like them.
const CLOSE_TO: [(&str, &[&str]); 8] = [
    (
        "stop",
        &["shop", "step", "top", "stops", "slop", "swop", "atop", "stoop", "strop", "stow", "sop"],
    ),
    (
        "wait",
        &[
            "want", "waits", "waist", "bait", "wit", "await", "gait", "wart", "watt", "waif",
            "wail", "writ",
        ],
    ),
    ("cancel", &["cancer", "cancels"]),
    ("pause", &["cause", "pulse", "pauses", "paused", "pass"]),
    ("nevermind", &[]),
    ("postpone", &["postpones"]),
    ("unsubscribe", &["subscribe"]),
    ("terminate", &["terminates", "germinate"]),
];
/// Words where only swapped letters count: too many real words are one letter away.
const SWAPPED: [&str; 12] = [
    "hold", "halt", "abort", "dont", "undo", "leave", "forget", "later", "revert", "freeze",
    "never", "not",
];
/// What is written without a blank: "stopit", "dontbook".
const GLUED: [(&str, &[&str]); 4] = [
    (
        "stop",
        &[
            "stopover",
            "stopovers",
            "stopwatch",
            "stopper",
            "stopgap",
            "stopped",
            "stops",
            "stopping",
        ],
    ),
    ("dont", &[]),
    ("cancelt", &[]),
    ("waitwait", &[]),
];

fn misspelt(words: &[&str]) -> Option<&'static str> {
    let spelled_out: String =
        words.iter().map(|word| if word.chars().count() == 1 { *word } else { " " }).collect();
    let whole: String = if words.len() <= 3 { words.concat() } else { String::new() };
    let joined = || spelled_out.split(' ').chain([whole.as_str()]);
    let candidates = words.iter().copied().chain(joined());
    candidates
        .filter(|word| (3..20).contains(&word.len()))
        .find_map(|word| {
            let close = CLOSE_TO.iter().find(|(stop, real)| {
                !real.contains(&word) && strsim::osa_distance(stop, word) <= 1
            });
            let swapped = || SWAPPED.into_iter().find(|stop| is_swapped(stop, word));
            let glued = || {
                GLUED.iter().find(|(stop, real)| {
                    word.len() > stop.len() && word.starts_with(stop) && !real.contains(&word)
                })
            };
            close.map(|(stop, _)| *stop).or_else(swapped).or_else(|| glued().map(|(stop, _)| *stop))
        })
        .or_else(|| joined().filter(|word| word.len() > 1).find_map(|word| in_clause(&[word])))
}

/// Two neighbouring letters changed places.
fn is_swapped(stop: &str, word: &str) -> bool {
    stop.len() == word.len() && stop != word && {
        let differing: Vec<usize> = stop
            .bytes()
            .zip(word.bytes())
            .enumerate()
            .filter(|(_, (a, b))| a != b)
            .map(|(at, _)| at)
            .collect();
        let (stop, word) = (stop.as_bytes(), word.as_bytes());
        matches!(differing.as_slice(), [a, b] if a + 1 == *b
            && stop.get(*a) == word.get(*b) && stop.get(*b) == word.get(*a))
    }
}

fn pinyin(words: &[&str]) -> Option<&'static str> {
    (0..words.len()).find_map(|at| {
        (1..=4).find_map(|count| {
            let glued = words.get(at..at + count)?.concat();
            PINYIN.iter().find(|entry| **entry == glued).copied()
        })
    })
}
