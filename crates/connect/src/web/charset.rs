//! Bytes to text, also where a page says the wrong thing about its own encoding.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

/// Bytes at the start of a page in which its own declaration is looked for.
const DECLARATION_BYTES: usize = 4_096;

/// Decodes with the encoding that `label` names, else the one that the text itself declares, else
/// UTF-8, whichever fits first; if none does, with the one that a detector takes it for.
///
/// A label fits if what it can not decode is at most a tenth of what is not ASCII: one broken letter
/// must not turn a whole page into another alphabet.
pub(crate) fn decode(body: &[u8], label: Option<&str>) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(body) {
        return encoding.decode_without_bom_handling(&body[mark..]).0.into_owned();
    }
    let labels = [label.map(str::to_owned), declared(body)];
    let named = labels.iter().flatten().filter_map(|label| Encoding::for_label(label.as_bytes()));
    for encoding in named.chain([UTF_8]) {
        let (text, had_errors) = encoding.decode_without_bom_handling(body);
        if !had_errors || nearly(&text) {
            return text.into_owned();
        }
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(body, true);
    let guess = detector.guess(None, Utf8Detection::Allow);
    guess.decode_without_bom_handling(body).0.into_owned()
}

fn nearly(text: &str) -> bool {
    let count = |wanted: fn(char) -> bool| text.chars().filter(|c| wanted(*c)).count();
    count(|c| c == char::REPLACEMENT_CHARACTER) * 10 <= count(|c| !c.is_ascii())
}

/// The label in `<meta charset=…>`, in a `content="text/html; charset=…"`, or in an XML declaration.
fn declared(body: &[u8]) -> Option<String> {
    let start = &body[..body.len().min(DECLARATION_BYTES)];
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let after = |word: &str| start.split_once(word).map(|(_, rest)| rest);
    let xml = start.starts_with("<?xml").then(|| after("encoding=")).flatten();
    let rest = xml.or_else(|| after("charset="))?.trim_start_matches(['"', '\'', ' ']);
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
    Some(rest.chars().take_while(|c| is_part(*c)).take(40).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_believed_as_far_as_they_fit() {
        let gbk = encoding_rs::GBK.encode("价格是九十七元，明天再看。").0.into_owned();
        let japanese = encoding_rs::SHIFT_JIS.encode("価格は九十七ユーロです。").0.into_owned();
        let text = "价格是九十七元，明天再看。";
        assert_eq!(decode(&gbk, Some("gb2312")), text);
        assert_eq!(decode(&gbk, Some("utf-8")), text);
        assert_eq!(decode(&gbk, None), text);
        assert_eq!(decode(&japanese, Some("utf-8")), "価格は九十七ユーロです。");
        let declared = [b"<meta charset='shift_jis'>".as_slice(), &japanese].concat();
        assert!(decode(&declared, Some("utf-8")).ends_with("価格は九十七ユーロです。"));
        let xml = [b"<?xml version=\"1.0\" encoding=\"GBK\"?>".as_slice(), &gbk].concat();
        assert!(decode(&xml, None).ends_with(text));
        let mut broken = text.as_bytes().to_vec();
        broken.push(0xff);
        assert_eq!(decode(&broken, Some("utf-8")), format!("{text}\u{fffd}"));
        let marked = [b"\xef\xbb\xbf".as_slice(), text.as_bytes()].concat();
        assert_eq!(decode(&marked, Some("windows-1252")), text);
        assert_eq!(decode(b"caf\xe9", Some("iso-8859-1")), "café");
        assert_eq!(decode(b"plain", Some("no-such-label")), "plain");
    }
}
