//! A guess at the number of tokens that needs no vendor's tokenizer and errs on the high side.

/// Parts of a token that one character counts for; six parts are one token.
const PARTS_PER_TOKEN: u64 = 6;

/// How many tokens `text` takes at most, as a budget may assume (CTX-14, CTX-19).
///
/// A deterministic over-estimate: three ASCII letters or blanks per token (real tokenizers: about
/// four), two digits or signs per token, one token for each other character of the basic plane (so
/// Chinese, Japanese and Korean count one per character), three for each character beyond it, such
/// as emoji. Text made to be hard on tokenizers can still take more.
pub fn estimate_tokens(text: &str) -> u64 {
    let parts: u64 = text.chars().map(parts_of).sum();
    parts.div_ceil(PARTS_PER_TOKEN)
}

fn parts_of(character: char) -> u64 {
    match character {
        'a'..='z' | 'A'..='Z' | ' ' => 2,
        '\0'..='\u{7f}' => 3,
        '\u{80}'..='\u{ffff}' => PARTS_PER_TOKEN,
        '\u{10000}'.. => 3 * PARTS_PER_TOKEN,
    }
}

#[cfg(test)]
mod tests {
    use super::estimate_tokens;

    #[test]
    fn counts_by_kind_of_character() {
        let counts = ["", "a", "abc def", "2027-03-01", "看价格", "é", "🙂"].map(estimate_tokens);
        assert_eq!(counts, [0, 1, 3, 5, 3, 1, 3]);
    }
}
