//! Whether a message may mean "stop", said by words alone and not by a model (QUE-10, G-07).
//!
//! A person's message places a hold. A model then reads it and says "a stop" or "not a stop", and a
//! model can be wrong; so the policy releases the hold only if this check agrees. It errs on one
//! side: a stop that is missed costs safety, a false alarm costs the person one question. What it
//! knows are lists (the `.txt` files of this folder): words that mean or may mean a stop, and
//! harmless phrases in which the same words mean something else. Both are in English and Chinese,
//! with some Cantonese.
//!
//! What is absent: grammar, who said it, what is under way, other languages. A stop that uses none
//! of the listed words ("I would be happier at home") is for the model to see.

mod chinese;
mod english;
mod fold;
mod look_alike;

/// What [`stop_check`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCheck {
    /// Nothing in it may mean a stop.
    Clear,
    /// It may mean a stop: the hold stays until a person has said what was meant.
    Stop {
        /// The entry of the lexicon that was found, for the log and for the question.
        found: &'static str,
    },
}

/// Signs that need no words.
const SIGNS: [(char, &str); 17] = [
    ('✋', "✋"),
    ('🤚', "🤚"),
    ('🖐', "🖐"),
    ('🛑', "🛑"),
    ('⛔', "⛔"),
    ('🚫', "🚫"),
    ('🙅', "🙅"),
    ('❌', "❌"),
    ('✖', "✖"),
    ('❎', "❎"),
    ('👎', "👎"),
    ('⏸', "⏸"),
    ('⏹', "⏹"),
    ('🚨', "🚨"),
    ('🙈', "🙈"),
    ('😱', "😱"),
    ('🆘', "🆘"),
];

/// Whether `text` may mean "stop", "wait" or "not that" (QUE-10). Pure; the cost grows linearly
/// with the length of the text, which its channel bounds (32 KiB take about 80 ms).
pub fn stop_check(text: &str) -> StopCheck {
    let sign = || {
        let known = |c: char| SIGNS.iter().find(|(sign, _)| *sign == c);
        text.chars().find_map(known).map(|(_, name)| *name)
    };
    let clauses = fold::clauses(text);
    match sign().or_else(|| chinese::find(&clauses)).or_else(|| english::find(&clauses)) {
        Some(found) => StopCheck::Stop { found },
        None => StopCheck::Clear,
    }
}

/// The entries of a lexicon file: separated by commas or line ends, `#` begins a comment line.
fn entries(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}
