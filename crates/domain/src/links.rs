//! Addresses in a text: those of the user's own words become objects that may be fetched (TOOL-15).

/// Bytes of one address.
const BYTES_MAX: usize = 2_000;
/// Addresses taken from one text.
const COUNT_MAX: usize = 30;

/// The `http` and `https` addresses in a text, in order, each once. Punctuation that ends a sentence,
/// also Chinese, does not belong to them.
pub fn urls(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("http") {
        let candidate = &rest[at..];
        let scheme = ["https://", "http://"].into_iter().find(|s| candidate.starts_with(s));
        let Some(scheme) = scheme else {
            rest = &candidate["http".len()..];
            continue;
        };
        let is_end = |c: char| {
            c.is_whitespace() || c.is_control() || "\"<>`{}|\\^".contains(c) || is_wide_mark(c)
        };
        let end = candidate.find(is_end).unwrap_or(candidate.len());
        let address = trimmed(&candidate[..end]);
        if address.len() > scheme.len()
            && address.len() <= BYTES_MAX
            && !found.iter().any(|known| known == address)
        {
            found.push(address.to_owned());
        }
        if found.len() == COUNT_MAX {
            break;
        }
        rest = &candidate[end.max(scheme.len())..];
    }
    found
}

/// Marks of Chinese and Japanese writing: they never stand in an address as it is.
fn is_wide_mark(c: char) -> bool {
    ('\u{3000}'..='\u{303f}').contains(&c) || ('\u{ff00}'..='\u{ff65}').contains(&c)
}

/// Without the punctuation of the sentence around it; a bracket stays if it was opened inside.
fn trimmed(address: &str) -> &str {
    let mut address = address;
    loop {
        let Some(last) = address.chars().next_back() else { return address };
        let opened = |open: char| address.matches(open).count() >= address.matches(last).count();
        let belongs = match last {
            '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '*' | '_' => false,
            ')' => opened('('),
            ']' => opened('['),
            _ => true,
        };
        if belongs {
            return address;
        }
        address = &address[..address.len() - last.len_utf8()];
    }
}

/// The host of an address, in lower case; `None` if it has none.
pub fn host(address: &str) -> Option<String> {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?.split(':').next()?;
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_without_the_sentence_around_them() {
        let text = "See https://a.example/x?y=1, (http://b.example/p_(q)). 看 https://c.example/路。然后 \
                    https://a.example/x?y=1 httpx http:// \"https://d.example\".";
        assert_eq!(
            urls(text),
            [
                "https://a.example/x?y=1",
                "http://b.example/p_(q)",
                "https://c.example/路",
                "https://d.example",
            ]
        );
        assert_eq!(host("https://me@A.Example:8443/x"), Some("a.example".into()));
        assert_eq!(host("ftp://a.example"), None);
    }
}
