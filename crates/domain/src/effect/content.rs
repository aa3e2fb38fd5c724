//! The content of an action: frozen as bytes once, hashed once, and never written again (DEL-08, ADM-08).
//!
//! Card, checks and request are made from these bytes. What they name was issued to this version, and
//! what they cost comes from the snapshot of an issued object, never from the model's own arithmetic.

use std::collections::BTreeMap;

use base::{ActionId, Amount, Currency, Digest, TaskVersionId, Timestamp};
use serde_json::{Map, Value};

use super::Effect;

/// Bytes of one frozen content.
const CONTENT_BYTES_MAX: usize = 64 * 1024;
/// Up to here every whole number is a 64-bit float of its own.
const EXACT_MAX: u64 = (1 << 53) - 1;
/// What a card says of a call that nobody has described. No operation id travels with it.
const UNDESCRIBED: &str =
    "no manifest describes it; what came of it cannot be looked up, you say it";
/// Characters of one line's label.
const CARD_LABEL_MAX: usize = 80;

/// What a connector's manifest says of a tool with an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The full name.
    pub tool: String,
    /// What it does to the world.
    pub effect: Effect,
    /// The digest of the manifest's entry.
    pub entry: Digest,
    /// Arguments that must be ids we issued: argument → kind.
    pub objects: BTreeMap<String, String>,
    /// Where the amount stands: `ARGUMENT.path` in the snapshot of the object that the argument names.
    pub amount: Option<String>,
    /// Where its currency stands, in the same form, or the code itself.
    pub currency: Option<String>,
    /// Arguments that name who receives it.
    pub recipients: Vec<String>,
    /// Arguments that make a call another errand.
    pub once_per: Vec<String>,
    /// What the card shows: `ARGUMENT`, or `ARGUMENT.path` in an object's snapshot.
    pub card: Vec<String>,
    /// The argument in which our operation id travels.
    pub operation: Option<String>,
    /// The tool that undoes it.
    pub undo: Option<String>,
    /// Whether an operation can be looked up.
    pub can_look_up: bool,
    /// After this time "not found" means that nothing happened.
    pub settled_after_ms: Option<u64>,
    /// For this long a repeated operation id has no second effect.
    pub idempotent_ms: Option<u64>,
}

/// An issued object that a call names.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// The argument that names it.
    pub argument: String,
    /// Its kind.
    pub kind: String,
    /// The id.
    pub id: String,
    /// What was known of it when it was issued.
    pub snapshot: Value,
    /// Digest of that.
    pub digest: Digest,
    /// It counts until then.
    pub expires_at: Option<Timestamp>,
}

/// An object as the content names it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectRef {
    /// The argument that names it.
    pub argument: String,
    /// Its kind.
    pub kind: String,
    /// The id.
    pub id: String,
    /// The digest of its snapshot.
    pub digest: Digest,
}

/// One line of the card that releases it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardLine {
    /// What it is, from the manifest.
    pub label: String,
    /// The value, from the snapshot or the arguments.
    pub value: String,
}

/// What is frozen.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// The tool's full name.
    pub operation: String,
    /// What it does to the world.
    pub effect: Effect,
    /// All arguments but our operation id.
    pub arguments: Map<String, Value>,
    /// The objects among them.
    pub objects: Vec<ObjectRef>,
    /// Minor units, as text.
    pub minor: Option<String>,
    /// Of this currency.
    pub currency: Option<Currency>,
    /// Who receives it.
    pub recipients: Vec<String>,
    /// What makes it another errand than the same call with other values there.
    pub errand: String,
    /// The version that it serves; none in the owner's own conversation.
    pub task_version: Option<TaskVersionId>,
    /// The action that it undoes.
    pub compensates: Option<ActionId>,
    /// The digest of the manifest's entry.
    pub entry: Digest,
    /// What the card shows.
    pub card: Vec<CardLine>,
}

/// A content as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Frozen {
    /// RFC 8785 bytes.
    pub bytes: Vec<u8>,
    /// Their digest.
    pub digest: Digest,
    /// The same, read.
    pub content: Content,
    /// When the first of its objects stops counting.
    pub expires_at: Option<Timestamp>,
}

/// Why a call cannot become an action. The model reads these and calls again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// An object is missing among the arguments.
    #[error("`{argument}` must be the id of a {kind}, copied from the answer of a tool")]
    Missing {
        /// The argument.
        argument: String,
        /// The kind of object it names.
        kind: String,
    },
    /// The operation id is ours.
    #[error("leave `{0}` out: it is the operation's own id, which the program sets")]
    Operation(String),
    /// A number that the frozen form would change.
    #[error("`{0}` has a whole number of more digits than JSON keeps; write it as a text")]
    Number(String),
    /// The snapshot has no amount where the manifest says.
    #[error(
        "the answer that issued it has no amount at `{0}`, so it cannot be checked; search again, \
         or tell the person that the connector's manifest does not fit its server"
    )]
    Amount(String),
    /// A recipient that is no text.
    #[error("`{0}` must be a text, or a list of texts, that says who receives it")]
    Recipient(String),
    /// Too much.
    #[error("it has {0} bytes; at most {CONTENT_BYTES_MAX} can be released at once")]
    Long(usize),
}

impl Content {
    /// Reads frozen bytes; an error means that they were not written by this program.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }

    /// The amount.
    pub fn amount(&self) -> Option<Amount> {
        let minor = self.minor.as_deref()?.parse().ok()?;
        Some(Amount { minor, currency: self.currency? })
    }

    /// The arguments of the call that is sent under `operation_id`.
    pub fn call(&self, operation: Option<&str>, operation_id: &str) -> Map<String, Value> {
        let mut arguments = self.arguments.clone();
        if let Some(argument) = operation {
            arguments.insert(argument.to_owned(), Value::String(operation_id.to_owned()));
        }
        arguments
    }
}

/// Freezes a call. `objects` are the issued ones that its arguments name, by the records.
///
/// # Errors
/// [`ContentError`], in words for the model.
pub fn freeze(
    spec: &Spec,
    arguments: &Map<String, Value>,
    objects: &[Object],
    task_version: Option<TaskVersionId>,
    compensates: Option<ActionId>,
) -> Result<Frozen, ContentError> {
    if let Some(argument) = spec.operation.as_ref().filter(|name| arguments.contains_key(*name)) {
        return Err(ContentError::Operation(argument.clone()));
    }
    for (argument, kind) in &spec.objects {
        if !names_one(arguments, objects, argument, kind) {
            let (argument, kind) = (argument.clone(), kind.clone());
            return Err(ContentError::Missing { argument, kind });
        }
    }
    if let Some((argument, _)) = arguments.iter().find(|(_, value)| !is_exact(value)) {
        return Err(ContentError::Number(argument.clone()));
    }
    // The same call has the same bytes, however its numbers are written and in whatever order the records
    // gave its objects.
    let arguments = &canonical(arguments)?;
    let mut objects = objects.to_vec();
    objects.sort_by(|a, b| (&a.argument, &a.kind, &a.id).cmp(&(&b.argument, &b.kind, &b.id)));
    let at = |path: &str| value_at(arguments, &objects, path);
    let amount = amount(spec, &at)?;
    let errand: BTreeMap<&String, &Value> =
        spec.once_per.iter().filter_map(|name| Some((name, arguments.get(name)?))).collect();
    let content = Content {
        operation: spec.tool.clone(),
        effect: spec.effect,
        arguments: arguments.clone(),
        objects: objects
            .iter()
            .map(|object| ObjectRef {
                argument: object.argument.clone(),
                kind: object.kind.clone(),
                id: object.id.clone(),
                digest: object.digest,
            })
            .collect(),
        minor: amount.map(|amount| amount.minor.to_string()),
        currency: amount.map(|amount| amount.currency),
        recipients: recipients(spec, arguments)?,
        errand: Digest::of(&serde_jcs::to_vec(&errand).unwrap_or_default()).to_string(),
        task_version,
        compensates,
        entry: spec.entry,
        card: card(spec, arguments, &at),
    };
    let bytes = serde_jcs::to_vec(&content).unwrap_or_default();
    if bytes.is_empty() || bytes.len() > CONTENT_BYTES_MAX {
        return Err(ContentError::Long(bytes.len()));
    }
    let expires_at = objects.iter().filter_map(|object| object.expires_at).min();
    // From here on only the bytes count: what is handed out is what they say.
    let content = Content::read(&bytes).map_err(|_| ContentError::Long(bytes.len()))?;
    Ok(Frozen { digest: Digest::of(&bytes), bytes, content, expires_at })
}

/// The arguments as their RFC 8785 bytes say them: `1.0` is `1`, on the card as in the request.
fn canonical(arguments: &Map<String, Value>) -> Result<Map<String, Value>, ContentError> {
    let bytes = serde_jcs::to_vec(arguments).unwrap_or_default();
    serde_json::from_slice(&bytes).map_err(|_| ContentError::Long(bytes.len()))
}

/// Whether the argument is one id, and that of exactly one of the objects, of this kind. Of a list of ids
/// only the first would be priced and shown.
fn names_one(
    arguments: &Map<String, Value>,
    objects: &[Object],
    argument: &str,
    kind: &str,
) -> bool {
    let id = match arguments.get(argument) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {
            return false;
        }
    };
    let mut named = objects.iter().filter(|object| object.argument == argument);
    let one = named.next().is_some_and(|object| object.kind == kind && object.id == id);
    one && named.next().is_none()
}

/// Whether RFC 8785, whose numbers are 64-bit floats, writes every number in it as it is.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => whole.unsigned_abs() <= EXACT_MAX,
            (None, Some(_)) => false,
            (None, None) => true,
        },
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(fields) => fields.values().all(is_exact),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// `ARGUMENT`, or `ARGUMENT.path` in the snapshot of the object that it names.
fn value_at(arguments: &Map<String, Value>, objects: &[Object], path: &str) -> Option<Value> {
    let (argument, rest) = path.split_once('.').map_or((path, None), |(a, r)| (a, Some(r)));
    let Some(rest) = rest else { return arguments.get(argument).cloned() };
    match objects.iter().find(|object| object.argument == argument) {
        Some(object) => crate::path::get(&object.snapshot, rest).cloned(),
        None => crate::path::get(arguments.get(argument)?, rest).cloned(),
    }
}

fn amount(
    spec: &Spec,
    at: &impl Fn(&str) -> Option<Value>,
) -> Result<Option<Amount>, ContentError> {
    let Some(path) = &spec.amount else { return Ok(None) };
    let missing = || ContentError::Amount(path.clone());
    // Only a snapshot is believed, of the amount and of its currency: an argument is the model's own word.
    let issued = |path: &str| {
        let argument = path.split_once('.').map(|(argument, _)| argument);
        argument.filter(|name| spec.objects.contains_key(*name)).and_then(|_| at(path))
    };
    let currency = spec.currency.as_deref().ok_or_else(missing)?;
    let currency = match Currency::parse(currency) {
        Ok(currency) => currency,
        Err(_) => {
            let code = issued(currency).and_then(|code| code.as_str().map(str::to_owned));
            Currency::parse(&code.ok_or_else(missing)?).map_err(|_| missing())?
        }
    };
    let text = match issued(path) {
        Some(Value::String(text)) => text,
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {
            return Err(missing());
        }
    };
    Amount::parse(&text, currency).map(Some).map_err(|_| missing())
}

fn recipients(spec: &Spec, arguments: &Map<String, Value>) -> Result<Vec<String>, ContentError> {
    let mut all = Vec::new();
    for name in &spec.recipients {
        match arguments.get(name) {
            None => {}
            Some(Value::String(one)) => all.push(one.clone()),
            Some(Value::Array(many)) => {
                for one in many {
                    let one = one.as_str().ok_or_else(|| ContentError::Recipient(name.clone()))?;
                    all.push(one.to_owned());
                }
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
                return Err(ContentError::Recipient(name.clone()));
            }
        }
    }
    Ok(all)
}

/// The lines that a person decides by, whole: whoever shows them may fold a long one and hides none. Without
/// any in the manifest, every argument is one, as it always is of what only people release. The names of
/// arguments are the model's words where nobody wrote down which there are.
fn card(
    spec: &Spec,
    arguments: &Map<String, Value>,
    at: &impl Fn(&str) -> Option<Value>,
) -> Vec<CardLine> {
    let line = |name: &str, value: Option<Value>| {
        let value = match value {
            Some(Value::String(text)) => text,
            Some(Value::Null) | None => "not given".to_owned(),
            Some(value) => value.to_string(),
        };
        let label = crate::words::on_one_line(&name.replace('_', " "), CARD_LABEL_MAX);
        CardLine { label, value: crate::words::on_one_line(&value, usize::MAX) }
    };
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let mut lines: Vec<CardLine> = spec.card.iter().map(|p| line(&last(p), at(p))).collect();
    let by_hand = spec.effect == Effect::Human;
    if by_hand && lines.is_empty() {
        lines.push(CardLine { label: "what it does".into(), value: UNDESCRIBED.into() });
    }
    if by_hand || spec.card.is_empty() {
        let unnamed = arguments.iter().filter(|(name, _)| !spec.card.contains(name));
        lines.extend(unnamed.map(|(name, value)| line(name, Some(value.clone()))));
    }
    lines
}
