//! Captured words filled into the texts of a rule: `$name` or `${name}`; `$$` is a dollar sign.

use std::collections::BTreeMap;

use serde_json::Value;

/// What the named groups of a rule's patterns found.
pub(super) type Captures = BTreeMap<String, String>;

/// `"$name:number"` as a whole string becomes a JSON number.
const NUMBER_MARK: &str = ":number";

enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        pieces.push(Piece::Text(before));
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let length = name_length(after);
        rest = if let Some(tail) = after.strip_prefix('$') {
            pieces.push(Piece::Text("$"));
            tail
        } else if let Some((name, tail)) = braced.filter(|(n, _)| name_length(n) == n.len()) {
            pieces.push(Piece::Name(name));
            tail
        } else if length > 0 {
            pieces.push(Piece::Name(&after[..length]));
            &after[length..]
        } else {
            // "$5" is money, not a name.
            pieces.push(Piece::Text("$"));
            after
        };
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// The bytes at the start of `text` that form a group's name; zero if it starts otherwise.
fn name_length(text: &str) -> usize {
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    match text.chars().next() {
        Some(first) if is_part(first) && !first.is_ascii_digit() => {
            text.find(|c| !is_part(c)).unwrap_or(text.len())
        }
        Some(_) | None => 0,
    }
}

/// The names that `text` refers to.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Name(name) => Some(name),
        Piece::Text(_) => None,
    })
}

/// The names that any string inside `value` refers to.
pub(super) fn names_inside(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => names(text).collect(),
        Value::Array(items) => items.iter().flat_map(names_inside).collect(),
        Value::Object(fields) => fields.values().flat_map(names_inside).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// `text` with every name replaced by what it captured.
pub(super) fn text(text: &str, captures: &Captures) -> String {
    let found = |piece| match piece {
        Piece::Text(text) => text,
        Piece::Name(name) => captures.get(name).map_or("", String::as_str),
    };
    pieces(text).into_iter().map(found).collect()
}

/// `value` with the strings inside it filled.
pub(super) fn value(template: &Value, captures: &Captures) -> Value {
    match template {
        Value::String(template) => string(template, captures),
        Value::Array(items) => items.iter().map(|item| value(item, captures)).collect(),
        Value::Object(fields) => {
            let filled = fields.iter().map(|(key, item)| (key.clone(), value(item, captures)));
            Value::Object(filled.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }
}

fn string(template: &str, captures: &Captures) -> Value {
    let number = template.strip_suffix(NUMBER_MARK).and_then(|name| name.strip_prefix('$'));
    let number = number.filter(|name| !name.is_empty() && name_length(name) == name.len());
    let number = number.and_then(|name| captures.get(name)?.parse::<serde_json::Number>().ok());
    number.map_or_else(|| Value::String(text(template, captures)), Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Captures, names, value};

    #[test]
    fn names_are_filled_and_all_else_stays() {
        let captures =
            Captures::from([("a", "1.5"), ("day", "Friday")].map(|(k, v)| (k.into(), v.into())));
        let template =
            json!({"t": ["$day at ${a}0$$, $5, $", "$a", "$a:number", "$day:number"], "n": 7});
        let filled = json!({"t": ["Friday at 1.50$, $5, $", "1.5", 1.5, "Friday:number"], "n": 7});
        assert_eq!(value(&template, &captures), filled);
        assert_eq!(names("$day, ${a} $$x $5").collect::<Vec<_>>(), ["day", "a"]);
    }
}
