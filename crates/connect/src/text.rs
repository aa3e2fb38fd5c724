//! Bounded text: nothing from outside enters a context at full length.

/// Cuts `text` to at most `bytes_max` bytes, the note about the cut included.
///
/// The cut is made between characters. A limit too small for the note gives the bare cut.
pub(crate) fn cut(text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    // The note's length depends on the number it shows; the total is never longer than itself.
    let note =
        |shown: usize| format!("\n[cut: the first {shown} of {} bytes; ask for less]", text.len());
    let room = bytes_max.saturating_sub(note(text.len()).len());
    if room == 0 {
        return text[..floor(&text, bytes_max)].to_owned();
    }
    let shown = floor(&text, room);
    format!("{}{}", &text[..shown], note(shown))
}

/// The greatest character boundary that is not behind `index`.
fn floor(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

/// A key or topic without what commands a screen and without what is not seen: control characters,
/// characters without width and those that turn the direction of writing. Two names that look the same
/// to a reader are the same.
pub(crate) fn visible(text: &str) -> String {
    text.chars().filter(|c| !is_unseen(*c)).collect()
}

/// Whether [`visible`] takes a character out.
pub(crate) fn is_unseen(c: char) -> bool {
    let turns = matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{061C}' | '\u{FEFF}');
    turns || c.is_control()
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_cut_says_so_and_keeps_the_limit() {
        assert_eq!(cut("short".to_owned(), 5), "short");
        assert_eq!(
            cut("abcdefgh".repeat(10), 60),
            "abcdefghabcdef\n[cut: the first 14 of 80 bytes; ask for less]"
        );
        assert_eq!(cut("äöü".to_owned(), 3), "ä");
        for bytes_max in 0..120 {
            assert!(cut("価格は九十七".repeat(9), bytes_max).len() <= bytes_max);
        }
    }
}
