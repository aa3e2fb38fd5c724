//! Text as the lexicons see it: clauses of folded words and of Chinese characters.

use super::look_alike;

/// What stands between two marks of punctuation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Clause {
    /// Runs of Latin letters and digits: lower case, no apostrophes, "do not" written as "dont".
    pub(super) words: Vec<String>,
    /// The characters without blanks and in simplified form; `a` for each Latin word, `0` for each
    /// number.
    pub(super) han: Vec<char>,
}

/// Cuts `text` into clauses.
pub(super) fn clauses(text: &str) -> Vec<Clause> {
    let visible = text.chars().filter(|c| !is_invisible(*c));
    let letters: Vec<char> = visible.map(narrow).map(look_alike::latin).collect();
    let mut clauses = vec![Clause::default()];
    let mut word = String::new();
    let close = |word: &mut String, clause: &mut Clause| {
        if !word.is_empty() {
            let number = word.chars().all(|c| c.is_ascii_digit());
            clause.han.push(if number { '0' } else { 'a' });
            clause.words.push(std::mem::take(word));
        }
    };
    for (at, &letter) in letters.iter().enumerate() {
        let Some(clause) = clauses.last_mut() else { break };
        match letter {
            _ if is_han(letter) => {
                close(&mut word, clause);
                clause.han.push(super::chinese::simplified(letter));
            }
            _ if letter.is_alphanumeric() => {
                word.extend(letter.to_lowercase().filter(|c| c.is_alphanumeric()))
            }
            '\'' => {}
            // A slip of the finger: "don;t".
            ';' if word.ends_with('n')
                && letters.get(at + 1).is_some_and(|c| matches!(c, 't' | 'T')) => {}
            ' ' | '\t' | '-' | '_' | '*' | '~' => close(&mut word, clause),
            _ => {
                close(&mut word, clause);
                clauses.push(Clause::default());
            }
        }
    }
    if let Some(clause) = clauses.last_mut() {
        close(&mut word, clause);
    }
    clauses.retain(|clause| !clause.words.is_empty() || !clause.han.is_empty());
    for clause in &mut clauses {
        clause.words = contracted(&clause.words);
    }
    clauses
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// Marks that sit on other characters, and characters without width: joiners, and those that turn the
/// direction of writing.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{0300}'..='\u{036F}' | '\u{200B}'..='\u{200F}' | '\u{FE00}'..='\u{FE0F}')
        || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}')
        || matches!(c, '\u{AD}' | '\u{061C}' | '\u{FEFF}')
}

/// Full-width forms become ASCII, every kind of apostrophe `'`, every kind of blank ` `.
fn narrow(c: char) -> char {
    match c {
        '\u{FF01}'..='\u{FF5E}' => narrow(char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c)),
        '’' | '‘' | '`' | '´' | 'ʼ' | '′' | '‛' => '\'',
        '–' | '—' | '‐' | '‑' => ',',
        '\n' | '\r' => ',',
        c if c.is_whitespace() => ' ',
        c => c,
    }
}

/// "do not" as "dont", "can not" and "cannot" as "cant", and so on.
fn contracted(words: &[String]) -> Vec<String> {
    const VERBS: [&str; 20] = [
        "do", "does", "did", "is", "are", "was", "were", "has", "have", "had", "can", "could",
        "will", "would", "should", "must", "need", "may", "might", "shall",
    ];
    let mut out: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        match (out.last_mut(), word.as_str()) {
            (Some(verb), "not") if VERBS.contains(&verb.as_str()) => {
                let negated = match verb.as_str() {
                    "will" => "wont".to_owned(),
                    "can" => "cant".to_owned(),
                    other => format!("{other}nt"),
                };
                *verb = negated;
            }
            (_, "cannot") => out.push("cant".to_owned()),
            (_, word) => out.push(word.to_owned()),
        }
    }
    out
}
