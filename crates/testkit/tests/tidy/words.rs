//! What a person reads of a decision that could not be taken, or of why an action is where it is, stands in
//! the table of both languages (UX rule 1).

use domain::words::{Language, said};

use crate::{SourceFile, assert_none, files};

/// Files whose whole sentences are answers to a person.
const ANSWERS: [&str; 3] =
    ["crates/engine/src/control", "crates/web/src/idempotent.rs", "crates/web/src/messages.rs"];
/// What stands before a reason that goes on record.
const REASONS: [&str; 5] = ["why = ", "why: ", "reason = Some(", "unsent(", "other("];
/// Where such reasons are made.
const STAGES: [&str; 3] =
    ["crates/engine/src/", "crates/domain/src/effect/outcome.rs", "crates/connect/src/effect.rs"];
/// How a reason begins, wherever it stands in a file that only decides what became of an effect.
const BEGINS: [&str; 5] = ["it ", "its ", "no ", "nobody ", "the person "];
/// Those files.
const OUTCOMES: [&str; 5] = [
    "crates/domain/src/effect/outcome.rs",
    "crates/engine/src/dispatcher.rs",
    "crates/engine/src/reconciler.rs",
    "crates/engine/src/control/actions.rs",
    "crates/connect/src/effect.rs",
];

/// The texts of a source file with what stands before each on its line; comments and tests are left out.
fn texts(file: &SourceFile) -> Vec<(String, String)> {
    let code = file.text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(['"', '/', '\'']) {
        let (before, from) = rest.split_at(start);
        if from.starts_with("//") {
            rest = from.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(after) = from.strip_prefix("'\"'") {
            rest = after;
        } else if let Some(text) = from.strip_prefix('"') {
            let end = end_of(text);
            let line = before.rsplit('\n').next().unwrap_or_default();
            found.push((line.to_owned(), plain(&text[..end])));
            rest = text.get(end + 1..).unwrap_or_default();
        } else {
            rest = &from[1..];
        }
    }
    found
}

fn end_of(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => return at,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// The text as it is said, with something in each of its places.
fn plain(literal: &str) -> String {
    let mut joined = String::new();
    for (at, line) in literal.split("\\\n").enumerate() {
        joined.push_str(if at == 0 { line } else { line.trim_start() });
    }
    let mut said = String::new();
    for (at, piece) in joined.replace("\\\"", "\"").split('{').enumerate() {
        let piece =
            if at == 0 { piece } else { piece.split_once('}').map_or(piece, |(_, end)| end) };
        said.push_str(if at == 0 { "" } else { "in force" });
        said.push_str(piece);
    }
    said
}

fn missing(file: &SourceFile) -> Vec<String> {
    let answers = ANSWERS.iter().any(|path| file.path.starts_with(path));
    let stage = STAGES.iter().any(|path| file.path.starts_with(path));
    let mut found = Vec::new();
    for (before, text) in texts(file) {
        let sentence = text.starts_with(|c: char| c.is_uppercase()) && text.ends_with('.');
        let reason = stage && REASONS.iter().any(|start| before.ends_with(start));
        let outcome = OUTCOMES.contains(&file.path.as_str())
            && BEGINS.iter().any(|start| text.starts_with(start));
        let counts = (answers && sentence) || ((reason || outcome) && text.contains(' '));
        if counts && said(&text, Language::Zh) == text {
            found.push(format!("{}: no Chinese in domain/src/words/said.rs: {text}", file.path));
        }
    }
    found
}

#[test]
fn every_answer_and_reason_is_in_both_languages() {
    let found: Vec<String> = files().iter().flat_map(missing).collect();
    assert_none(&found, "Add each with its Chinese to domain/src/words/said.rs.");
}

#[test]
fn a_sentence_without_chinese_is_found() {
    let sample =
        |text: &str| missing(&SourceFile::sample("crates/engine/src/control/x.rs", text)).len();
    assert_eq!(sample("Conflict(\"Nobody has ever said this {what} \\\n    before.\".into())"), 1);
    assert_eq!(sample("let why = \"nobody has ever said this\";"), 1);
    let arm =
        SourceFile::sample("crates/engine/src/reconciler.rs", "true => \"it never said this\",");
    assert_eq!(missing(&arm).len(), 1);
    assert_eq!(sample("let why = \"nobody decided in time\"; // \"Not this one.\""), 0);
    assert_eq!(sample("Conflict(format!(\"This can no longer be decided: it is {}.\", words))"), 0);
}
