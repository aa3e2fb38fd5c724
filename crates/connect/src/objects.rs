//! Objects: which ids in a tool's answer count as issued, and what is kept of what they name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::tools::Issued;

/// Ids that one answer may issue.
const ISSUED_MAX: usize = 200;
/// Bytes of one id; addresses of pages are ids too.
const ID_BYTES_MAX: usize = 2_048;
/// Bytes of one snapshot, as JSON.
const SNAPSHOT_BYTES_MAX: usize = 16 * 1024;
/// Bytes of all snapshots of one answer together.
const SNAPSHOTS_BYTES_MAX: usize = 1024 * 1024;
/// Steps of a path.
const STEPS_MAX: usize = 16;

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
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Found {
    pub(crate) issued: Vec<Issued>,
    /// Empty, or lines about what was left out, to stand after the answer's text.
    pub(crate) notes: String,
}

/// The ids of an answer that its manifest entry issues, each once, with the object around it.
pub(crate) fn issued(issues: &BTreeMap<String, String>, data: Option<&Value>) -> Found {
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
        .map(|(kind, id, object)| Issued { kind: kind.clone(), id, snapshot: snapshots.of(object) })
        .collect();
    if snapshots.dropped > 0 {
        let dropped = snapshots.dropped;
        notes += &format!("\n[the details of {dropped} ids are too long to be kept; ask for less]");
    }
    Found { issued, notes }
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

    /// Kind and id of what is issued, with the snapshot as text; then the notes.
    fn found(issues: &[(&str, &str)], data: &Value) -> (Vec<String>, String) {
        let issues = issues.iter().map(|(kind, path)| ((*kind).into(), (*path).into())).collect();
        let Found { issued, notes } = issued(&issues, Some(data));
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
