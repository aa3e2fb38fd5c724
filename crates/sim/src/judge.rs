//! Hands histories to the independent judge, a Python program that shares no code with this one.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testkit::stores::TempFolder;

/// Its files, by name; the first is the one that is started.
const JUDGE: [(&str, &str); 3] = [
    ("judge.py", include_str!("../judge/judge.py")),
    ("history.py", include_str!("../judge/history.py")),
    ("effects.py", include_str!("../judge/effects.py")),
];

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// Python could not be started, or a file not be written.
    #[error("the judge could not be asked: {0}; it needs python3")]
    Unasked(#[from] std::io::Error),
    /// It said something that is no verdict.
    #[error("the judge's words make no sense: {0}")]
    Unclear(String),
}

/// What the judge says of a file of histories.
///
/// # Errors
/// When Python is missing or the answer is no JSON.
pub fn file(history: &Path) -> Result<Value, JudgeError> {
    let scratch = TempFolder::in_memory()?;
    for (name, text) in JUDGE {
        std::fs::write(scratch.path().join(name), text)?;
    }
    let program = scratch.path().join(JUDGE[0].0);
    let output = Command::new("python3").arg(&program).arg(history).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(said.trim()).map_err(|_| {
        JudgeError::Unclear(format!("{said}{}", String::from_utf8_lossy(&output.stderr)))
    })
}

/// What the judge says of histories in memory.
///
/// # Errors
/// As [`file()`].
pub fn text(histories: &str) -> Result<Value, JudgeError> {
    let scratch = TempFolder::in_memory()?;
    let path = scratch.path().join("histories.jsonl");
    std::fs::write(&path, histories)?;
    file(&path)
}

/// Whether the verdict is that every rule held.
pub fn held(verdict: &Value) -> bool {
    verdict["verdict"] == "held"
}
