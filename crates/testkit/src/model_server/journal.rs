//! One JSON line per question, for whoever judges a run afterwards.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;

use base::{Digest, Timestamp};
use model::ToolCall;
use serde::{Deserialize, Serialize};

use super::Fault;

/// One question, as it was asked and answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Counted from one, over all processes that wrote to this journal.
    pub n: u64,
    /// When it was answered, by the server's clock.
    pub at: Timestamp,
    /// [`model::Request::digest`] of the question; `None` if the body is no request.
    pub request_digest: Option<Digest>,
    /// Of the body's bytes.
    pub body_digest: Digest,
    /// The answer's id; `None` if the script refused or a refusal was ordered.
    pub answer_id: Option<String>,
    /// The calls in the answer.
    pub tool_calls: Vec<ToolCall>,
    /// The address that was asked.
    pub path: String,
    /// The class of the script's refusal.
    pub error: Option<String>,
    /// The ordered failure that this question met; after a cut the answer did not arrive whole.
    pub fault: Option<Fault>,
}

/// The file, if one is kept.
pub(super) struct Journal {
    file: Option<File>,
    lines: u64,
    bytes: u64,
    bytes_max: u64,
}

impl Journal {
    /// Opens for appending and counts the lines that are there.
    pub(super) fn open(path: Option<&Path>, bytes_max: u64) -> io::Result<Journal> {
        let mut journal = Journal { file: None, lines: 0, bytes: 0, bytes_max };
        let Some(path) = path else { return Ok(journal) };
        let file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        let mut torn = false;
        while reader.read_until(b'\n', &mut line)? > 0 {
            journal.bytes += line.len() as u64;
            journal.lines += 1;
            torn = !line.ends_with(b"\n");
            line.clear();
        }
        if torn {
            // The process was killed inside a line: the next one must not join it.
            (&file).write_all(b"\n")?;
            journal.bytes += 1;
        }
        journal.file = Some(file);
        Ok(journal)
    }

    /// The number of the next line, counted also where none is kept.
    pub(super) fn next(&self) -> u64 {
        self.lines + 1
    }

    /// Appends one line in one write; `n` is set here.
    pub(super) fn add(&mut self, mut asked: Asked) -> io::Result<()> {
        asked.n = self.next();
        let Some(file) = &mut self.file else {
            self.lines = asked.n;
            return Ok(());
        };
        let mut line = serde_json::to_vec(&asked)?;
        line.push(b'\n');
        let bytes = self.bytes + line.len() as u64;
        if bytes > self.bytes_max {
            let full = format!("it would be longer than {} bytes; move it away", self.bytes_max);
            return Err(io::Error::new(io::ErrorKind::StorageFull, full));
        }
        file.write_all(&line)?;
        file.flush()?;
        self.lines = asked.n;
        self.bytes = bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use base::{Digest, Timestamp};

    use super::{Asked, Journal};

    fn asked(n: u64) -> Asked {
        Asked {
            n,
            at: Timestamp::from_micros(0),
            request_digest: Some(Digest::ZERO),
            body_digest: Digest::ZERO,
            answer_id: None,
            tool_calls: Vec::new(),
            path: "/v1/chat/completions".to_owned(),
            error: Some("retry".to_owned()),
            fault: None,
        }
    }

    #[test]
    fn lines_are_counted_on_after_a_kill_and_have_an_end() {
        let name = format!("adjutant-journal-{}.jsonl", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let mut journal = Journal::open(Some(&path), 10_000).unwrap();
        journal.add(asked(0)).unwrap();
        journal.add(asked(0)).unwrap();
        // Killed inside the third line.
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"n\":3,");
        std::fs::write(&path, &text).unwrap();
        let line = text.find('\n').unwrap() + 1;
        let room_for_one = (text.len() + 1 + line) as u64;
        let mut journal = Journal::open(Some(&path), room_for_one).unwrap();
        let added = (0..3).filter(|_| journal.add(asked(0)).is_ok()).count();
        let text = std::fs::read_to_string(&path).unwrap();
        let read = |line: &str| serde_json::from_str::<Asked>(line).ok();
        let expected = [Some(asked(1)), Some(asked(2)), None, Some(asked(4))];
        assert_eq!((text.lines().map(read).collect::<Vec<_>>(), added), (expected.to_vec(), 1));
        std::fs::remove_file(&path).unwrap();
    }
}
