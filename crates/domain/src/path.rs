//! Paths through JSON: names of fields and numbers of items, with dots between.

use serde_json::Value;

/// The value at a path such as `booking.rooms.0.id`.
pub fn get<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |at, step| match at {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}
