//! Objects: which ids in a tool's answer count as issued, and what is kept of what they name.

use std::collections::BTreeSet;

use base::Timestamp;
use serde_json::Value;

use crate::manifest::ToolRule;
use crate::text::cut;
use crate::tools::Issued;

/// Ids that one answer may issue.
const ISSUED_MAX: usize = 200;
/// Bytes of one id; addresses of pages are ids too.
pub(crate) const ID_BYTES_MAX: usize = 2_048;
/// Bytes of one snapshot, as JSON.
const SNAPSHOT_BYTES_MAX: usize = 16 * 1024;
/// Bytes of all snapshots of one answer together.
const SNAPSHOTS_BYTES_MAX: usize = 1024 * 1024;
/// Steps of a path.
pub(crate) const STEPS_MAX: usize = 16;
/// For an id whose expiry can not be read: it counts no more.
const AT_ONCE: Timestamp = Timestamp::from_micros(0);

/// One step of a path through an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// Into the field of this name.
    Key(&'a str),
    /// Into every item of a list.
    Each,
}

/// Reads a path such as `offers[].id`, `links[]` or `[].id`.
///
/// # Errors
/// A clause that says what is wrong and how a path looks.
pub(crate) fn steps(path: &str) -> Result<Vec<Step<'_>>, String> {
    let wrong = || {
        format!(
            "`{path}` is no path: names with dots between them and [] after a list, as in \
             offers[].id; at most {STEPS_MAX} steps"
        )
    };
    let mut found = Vec::new();
    for (at, part) in path.split('.').enumerate() {
        let name = part.trim_end_matches("[]");
        // Only a whole answer that is a list has no name before its brackets.
        if name.contains(['[', ']']) || (name.is_empty() && (at > 0 || part.is_empty())) {
            return Err(wrong());
        }
        if !name.is_empty() {
            found.push(Step::Key(name));
        }
        found.extend(std::iter::repeat_n(Step::Each, (part.len() - name.len()) / 2));
    }
    if found.len() > STEPS_MAX {
        return Err(wrong());
    }
    Ok(found)
}

/// An id: a text that is not empty, or a whole number as its decimal digits.
pub(crate) fn id_of(value: &Value) -> Option<String> {
    let id = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_i64() || number.is_u64() => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            return None;
        }
    };
    (!id.is_empty()).then_some(id)
}

/// What an answer issued.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) issued: Vec<Issued>,
    /// Empty, or lines about what was left out, to stand after the answer's text.
    pub(crate) notes: String,
}

impl Found {
    /// The answer's text within its limit, the notes after it, and what it issued.
    pub(crate) fn beside(self, text: String, text_bytes_max: usize) -> (String, Vec<Issued>) {
        let room = text_bytes_max.saturating_sub(self.notes.len());
        (cut(text, room) + &self.notes, self.issued)
    }
}

/// The ids of an answer that its manifest entry issues, each once, with the object around it.
pub(crate) fn issued(rule: &ToolRule, data: Option<&Value>) -> Found {
    let ToolRule { issues, expires, .. } = rule;
    if issues.is_empty() {
        return Found::default();
    }
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    let mut long = 0;
    for (kind, path) in issues {
        // The manifest was checked when it was read; a path that is none finds nothing.
        let (Ok(steps), Some(data)) = (steps(path), data) else { continue };
        let mut places = Vec::new();
        walk(data, None, &steps, &mut places);
        for (id, object) in places {
            if id.len() > ID_BYTES_MAX {
                long += 1;
            } else if seen.insert((kind, id.clone())) {
                all.push((kind, id, object));
            }
        }
    }
    let mut notes = String::new();
    if data.is_none() {
        notes += "\n[the answer is not JSON, so none of its ids is issued]";
    }
    if all.len() > ISSUED_MAX {
        let count = all.len();
        notes += &format!("\n[the first {ISSUED_MAX} of {count} ids are issued; ask for less]");
        all.truncate(ISSUED_MAX);
    }
    if long > 0 {
        notes += &format!("\n[{long} ids of more than {ID_BYTES_MAX} bytes are not issued]");
    }
    let mut snapshots = Snapshots::default();
    let issued: Vec<Issued> = all
        .into_iter()
        .map(|(kind, id, object)| Issued {
            kind: kind.clone(),
            id,
            snapshot: snapshots.of(object),
            expires_at: expires.get(kind).map(|path| expiry(object, path)),
        })
        .collect();
    let unreadable = issued.iter().filter(|id| id.expires_at == Some(AT_ONCE)).count();
    if unreadable > 0 {
        notes +=
            &format!("\n[{unreadable} ids count no more: until when they hold can not be read]");
    }
    if snapshots.dropped > 0 {
        let dropped = snapshots.dropped;
        notes += &format!("\n[the details of {dropped} ids are too long to be kept; ask for less]");
    }
    Found { issued, notes }
}

/// Until when an id counts, by the object around it; in doubt it counts no more.
fn expiry(object: Option<&Value>, path: &str) -> Timestamp {
    let text = object.and_then(|object| domain::path::get(object, path)).and_then(Value::as_str);
    text.and_then(|text| Timestamp::parse(text).ok()).unwrap_or(AT_ONCE)
}

/// Goes down `steps` from `value`; `around` is the nearest object above it.
fn walk<'a>(
    value: &'a Value,
    around: Option<&'a Value>,
    steps: &[Step<'_>],
    places: &mut Vec<(String, Option<&'a Value>)>,
) {
    match steps.split_first() {
        None => places.extend(id_of(value).map(|id| (id, around))),
        Some((Step::Key(name), rest)) => {
            if let Some(child) = value.as_object().and_then(|object| object.get(*name)) {
                walk(child, Some(value), rest, places);
            }
        }
        Some((Step::Each, rest)) => {
            for item in value.as_array().into_iter().flatten() {
                walk(item, around, rest, places);
            }
        }
    }
}

/// Copies objects while there is room for them.
#[derive(Default)]
struct Snapshots<'a> {
    bytes: usize,
    dropped: usize,
    /// The object of the id before and its size: ids of one list often share it.
    last: Option<(&'a Value, usize)>,
}

impl<'a> Snapshots<'a> {
    fn of(&mut self, object: Option<&'a Value>) -> Value {
        let Some(object) = object else { return Value::Null };
        let bytes = match self.last {
            Some((last, bytes)) if std::ptr::eq(last, object) => bytes,
            _ => object.to_string().len(),
        };
        self.last = Some((object, bytes));
        if bytes > SNAPSHOT_BYTES_MAX || self.bytes + bytes > SNAPSHOTS_BYTES_MAX {
            self.dropped += 1;
            return Value::Null;
        }
        self.bytes += bytes;
        object.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::Manifest;

    /// Kind and id of what is issued, with the snapshot as text; then the notes.
    fn found(issues: &[(&str, &str)], data: &Value) -> (Vec<String>, String) {
        let issues: Vec<String> =
            issues.iter().map(|(kind, path)| format!("{kind} = \"{path}\"")).collect();
        let text = format!("[tool.t]\neffect = \"read\"\nissues = {{ {} }}", issues.join(", "));
        let manifest = Manifest::parse(&text).unwrap();
        let Found { issued, notes } = issued(manifest.tool("t").unwrap(), Some(data));
        let line = |issued: Issued| format!("{} {} {}", issued.kind, issued.id, issued.snapshot);
        (issued.into_iter().map(line).collect(), notes)
    }

    #[test]
    fn paths_are_names_and_brackets() {
        use Step::{Each, Key};
        assert_eq!(steps("id"), Ok(vec![Key("id")]));
        assert_eq!(steps("offers[].id"), Ok(vec![Key("offers"), Each, Key("id")]));
        assert_eq!(steps("[].links[][]"), Ok(vec![Each, Key("links"), Each, Each]));
        for odd in ["", ".", "a.", ".a", "a..b", "a[0]", "a[", "a.[]", &"a.".repeat(17)] {
            assert!(steps(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn an_id_is_issued_with_the_object_around_it() {
        let data = json!({ "hotel": "X", "offers": [
            { "id": "H-1", "total": "97.50" },
            { "id": 7, "room": { "key": "R-1" } },
            { "id": "H-1", "total": "0.01" },
            { "id": "" }, { "id": 1.5 }, { "id": null }, { "no": "id" }, "H-9",
        ]});
        let issues =
            [("offer", "offers[].id"), ("room", "offers[].room.key"), ("hotel", "hotel.id")];
        let expected = [
            r#"offer H-1 {"id":"H-1","total":"97.50"}"#,
            r#"offer 7 {"id":7,"room":{"key":"R-1"}}"#,
            r#"room R-1 {"key":"R-1"}"#,
        ];
        let expected = expected.map(str::to_owned).to_vec();
        assert_eq!(found(&issues, &data), (expected, String::new()));
        let links = json!([["a"], ["b"]]);
        let expected = vec!["url a null".to_owned(), "url b null".to_owned()];
        assert_eq!(found(&[("url", "[][]")], &links), (expected, String::new()));
    }

    #[test]
    fn an_expiry_that_cannot_be_read_has_passed() {
        let text = "[tool.t]\neffect = \"read\"\nissues = { offer = \"[].id\", room = \"[].room\" }\n\
                    expires = { offer = \"valid.until\" }";
        let manifest = Manifest::parse(text).unwrap();
        let at = |until: Value| json!({ "id": "H", "room": "R", "valid": { "until": until } });
        let expiries = |data: Value| {
            let Found { issued, notes } = issued(manifest.tool("t").unwrap(), Some(&json!([data])));
            let expiries: Vec<_> =
                issued.iter().map(|id| (id.kind.as_str(), id.expires_at)).collect();
            assert_eq!(expiries[1], ("room", None));
            assert_eq!(expiries.len(), 2);
            (issued[0].expires_at.unwrap().to_string(), notes)
        };
        let known = |text: &str| (text.to_owned(), String::new());
        assert_eq!(
            expiries(at(json!("2026-11-30T10:00:00+02:00"))),
            known("2026-11-30T08:00:00.000000Z")
        );
        // The object is too large to be kept, its expiry is not.
        let mut large = at(json!("2026-11-30T08:00:00Z"));
        large["text"] = json!("x".repeat(SNAPSHOT_BYTES_MAX));
        let (until, notes) = expiries(large);
        assert_eq!(until, "2026-11-30T08:00:00.000000Z");
        assert!(notes.starts_with("\n[the details of"), "{notes}");

        let over = (
            "1970-01-01T00:00:00.000000Z".to_owned(),
            "\n[1 ids count no more: until when they hold can not be read]".to_owned(),
        );
        for odd in
            [json!("soon"), json!("2026-11-30"), json!(1_796_025_600), json!(null), json!("")]
        {
            assert_eq!(expiries(at(odd)), over);
        }
        assert_eq!(expiries(json!({ "id": "H", "room": "R" })), over);
    }

    #[test]
    fn what_is_too_much_is_left_out_and_said() {
        let many: Vec<Value> = (0..250).map(|id| json!({ "id": id })).collect();
        let (issued, notes) = found(&[("row", "[].id")], &json!(many));
        assert_eq!((issued.len(), issued[199].as_str()), (200, r#"row 199 {"id":199}"#));
        assert_eq!(notes, "\n[the first 200 of 250 ids are issued; ask for less]");

        let rows = json!([
            { "id": "a", "text": "x".repeat(SNAPSHOT_BYTES_MAX) },
            { "id": "y".repeat(ID_BYTES_MAX + 1) },
        ]);
        let notes = "\n[1 ids of more than 2048 bytes are not issued]\
                     \n[the details of 1 ids are too long to be kept; ask for less]";
        assert_eq!(found(&[("row", "[].id")], &rows), (vec!["row a null".into()], notes.into()));

        // Each snapshot is small enough, all together are not.
        let row = |id: usize| json!({ "id": id, "text": "x".repeat(15_000) });
        let (issued, notes) =
            found(&[("row", "[].id")], &json!((0..80).map(row).collect::<Vec<_>>()));
        assert_eq!(issued.iter().filter(|line| line.ends_with(" null")).count(), 11);
        assert_eq!(notes, "\n[the details of 11 ids are too long to be kept; ask for less]");
    }
}
