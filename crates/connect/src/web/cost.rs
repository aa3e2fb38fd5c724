//! What HTML would cost to parse, estimated from its text before the parser sees it.
//!
//! The standard's own algorithm takes quadratic time for deep nesting, and clones every open
//! formatting element into every paragraph, so a small text can become a very large tree.

/// Tags of a page, opening and closing.
const TAGS_MAX: usize = 120_000;
/// Elements that are open at once.
const OPEN_MAX: usize = 300;
/// Formatting elements that are open at once; each is cloned into every later paragraph.
const FORMATTING_MAX: usize = 32;

const FORMATTING: &[&str] = &[
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];

/// Tags that close themselves. Only drawings heed that, elsewhere they stay open.
const SLASHED_MAX: usize = 3_000;

/// Elements without an end tag, or whose end tag may be left out: the next of their kind ends them.
const UNPAIRED: &[&str] = &[
    "area", "base", "body", "br", "col", "colgroup", "dd", "dt", "embed", "head", "hr", "html",
    "img", "input", "li", "link", "meta", "option", "p", "param", "source", "tbody", "td", "tfoot",
    "th", "thead", "tr", "track", "wbr",
];

/// What is too much about `html`, if anything. Scripts and comments are counted as if they were markup,
/// which errs on the safe side.
pub(super) fn excess(html: &str) -> Option<String> {
    let (mut tags, mut open, mut formatting, mut slashed) = (0_usize, 0_usize, 0_usize, 0_usize);
    for piece in html.split('<').skip(1) {
        let is_end = piece.starts_with('/');
        let name = piece.strip_prefix('/').unwrap_or(piece);
        let length = name.bytes().take_while(u8::is_ascii_alphanumeric).count();
        if length == 0 {
            continue;
        }
        tags += 1;
        // A longer name stands in no list.
        let name = name[..length.min(16)].to_ascii_lowercase();
        let is_closed = piece.split('>').next().is_some_and(|tag| tag.ends_with('/'));
        if UNPAIRED.contains(&name.as_str()) {
            continue;
        }
        let is_formatting = FORMATTING.contains(&name.as_str());
        match is_end {
            true => open = open.saturating_sub(1),
            false if is_closed && !is_formatting => slashed += 1,
            false => open += 1,
        }
        match (is_formatting, is_end) {
            (true, true) => formatting = formatting.saturating_sub(1),
            (true, false) => formatting += 1,
            (false, _) => {}
        }
        if open > OPEN_MAX || formatting > FORMATTING_MAX || slashed > SLASHED_MAX {
            return Some("its elements are nested too deeply".to_owned());
        }
    }
    (tags > TAGS_MAX).then(|| format!("more than {TAGS_MAX} tags"))
}
