//! The hotel vendor in the world of a story: the pure state machine of the test kit behind its manifest, with a
//! log of what reached it that shares nothing with the records.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::{Digest, Timestamp};
use domain::effect::{Effect, Observation, Sight, Spec};
use domain::path;
use engine::world::{Acted, Intended, Issued, Need};
use serde_json::{Map, Value, json};
use store::Permit;
use testkit::hotel::{
    Booking, Faults, HOTEL_MANIFEST, Hotel, HotelOptions, Reply, SETTLED_AFTER_MS, Tool,
};

use crate::story::Case;

/// The server's name, as it stands before a tool's.
const SERVER: &str = "hotel.";
/// How long the vendor promises that a repeated reference has no second effect.
const IDEMPOTENT_MS: u64 = 24 * 60 * 60 * 1_000;

/// A request for an effect that reached the vendor.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    /// When.
    pub at: Timestamp,
    /// Under which operation id.
    pub operation: String,
    /// With exactly these arguments.
    pub arguments: Map<String, Value>,
}

/// A look at an operation, with what was true then.
#[derive(Debug, Clone, PartialEq)]
pub struct Looked {
    /// When.
    pub at: Timestamp,
    /// At which operation.
    pub operation: String,
    /// What was seen.
    pub sight: Sight,
    /// Whether there really was a booking in force.
    pub exists: bool,
}

/// What the vendor and its log came to.
#[derive(Debug, Clone)]
pub struct HotelEnd {
    /// Which variant was played.
    pub case: Case,
    /// Every booking that was really made.
    pub bookings: Vec<Booking>,
    /// Every request for an effect.
    pub reached: Vec<Reached>,
    /// Every look at an operation.
    pub looked: Vec<Looked>,
}

/// The vendor with its log.
#[derive(Debug)]
pub(crate) struct Vendor {
    case: Case,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    hotel: Hotel,
    reached: Vec<Reached>,
    looked: Vec<Looked>,
}

impl Vendor {
    pub(crate) fn new(case: Case) -> Vendor {
        let mut hotel = Hotel::new(7, HotelOptions::default());
        if let Some((tool, fault)) = case.fault {
            hotel.set_faults(Faults::once(tool, 1, fault));
        }
        let inner = Inner { hotel, reached: Vec::new(), looked: Vec::new() };
        Vendor { case, inner: Mutex::new(inner) }
    }

    // Held for one call of the vendor only; a panic in between leaves a valid log.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn end(&self, now: Timestamp) -> HotelEnd {
        let mut inner = self.inner();
        inner.hotel.settle(now);
        HotelEnd {
            case: self.case,
            bookings: inner.hotel.bookings().to_vec(),
            reached: inner.reached.clone(),
            looked: inner.looked.clone(),
        }
    }

    /// Whether an operation's booking is in force, as the person sees who goes there.
    pub(crate) fn in_force(&self, operation: &str, now: Timestamp) -> bool {
        let mut inner = self.inner();
        inner.hotel.settle(now);
        inner.hotel.bookings().iter().any(|b| b.client_ref == operation && b.in_force())
    }

    pub(crate) fn tools() -> Vec<String> {
        Tool::ALL.map(|tool| format!("{SERVER}{}", tool.as_str())).to_vec()
    }

    /// The vendor's tool of this full name.
    pub(crate) fn tool(name: &str) -> Option<Tool> {
        Tool::named(name.strip_prefix(SERVER)?)
    }

    pub(crate) fn intended(tool: &str, arguments: &Map<String, Value>) -> Option<Intended> {
        let spec = spec(tool)?;
        let need = |(argument, kind): (&String, &String)| {
            let id = arguments.get(argument)?.as_str()?.to_owned();
            Some(Need { argument: argument.clone(), kind: Some(kind.clone()), id })
        };
        let needs = spec.objects.iter().filter_map(need).collect();
        Some(Intended { spec, needs })
    }

    /// Answers a call that only reads: its text, and the ids in it.
    pub(crate) fn read(
        &self,
        tool: Tool,
        arguments: &Map<String, Value>,
        now: Timestamp,
    ) -> (String, Vec<Issued>) {
        match self.inner().hotel.call(now, tool.as_str(), arguments) {
            Reply::Answer { json, is_error: false } => (json.to_string(), issued(tool, &json)),
            Reply::Answer { json, is_error: true } => (format!("The tool failed: {json}"), vec![]),
            Reply::Garbage(text) => (text, Vec::new()),
            Reply::Lost => ("The tool failed: no answer came".to_owned(), Vec::new()),
        }
    }

    pub(crate) fn act(&self, permit: &Permit, now: Timestamp) -> Acted {
        let unsent = |why: &str| Acted {
            seen: Observation::NotSent(why.to_owned()),
            answer: String::new(),
            issued: Vec::new(),
            refused_key: None,
        };
        let (Some(spec), Some(tool)) = (spec(permit.tool()), Vendor::tool(permit.tool())) else {
            return unsent("there is no such tool");
        };
        if spec.entry != permit.entry() {
            return unsent("the manifest says something else now");
        }
        if now > permit.send_by() {
            return unsent("its time was over");
        }
        let arguments = permit.arguments(spec.operation.as_deref());
        let mut inner = self.inner();
        let operation = permit.operation_id().to_owned();
        inner.reached.push(Reached { at: now, operation, arguments: arguments.clone() });
        let reply = inner.hotel.call(now, tool.as_str(), &arguments);
        acted(tool, reply)
    }

    pub(crate) fn find(&self, tool: &str, operation: &str, now: Timestamp) -> Sight {
        let (by, receipt) = match Vendor::tool(tool) {
            Some(Tool::BookHotel) => (Tool::FindBooking, "booking.confirmation_number"),
            Some(Tool::CancelBooking) => (Tool::FindCancellation, "cancellation.id"),
            Some(Tool::SearchHotels | Tool::FindBooking | Tool::FindCancellation) | None => {
                return Sight::Unreadable("it cannot be looked up".into());
            }
        };
        let arguments = Map::from_iter([("client_ref".to_owned(), json!(operation))]);
        let mut inner = self.inner();
        let reply = inner.hotel.call(now, by.as_str(), &arguments);
        let sight = match reply {
            Reply::Answer { json, is_error: false } => sight(&json, receipt),
            Reply::Answer { json, is_error: true } => Sight::Unreadable(json.to_string()),
            Reply::Garbage(text) => Sight::Unreadable(text),
            Reply::Lost => Sight::Unreadable("no answer".into()),
        };
        let mut own = inner.hotel.bookings().iter().filter(|b| b.client_ref == operation);
        let exists = own.any(Booking::in_force);
        let operation = operation.to_owned();
        inner.looked.push(Looked { at: now, operation, sight: sight.clone(), exists });
        sight
    }
}

/// What the manifest says of a tool with an effect.
///
/// Written by hand from [`HOTEL_MANIFEST`] until the reader of `connect` knows all of its keys; nothing else
/// here depends on how it is made.
pub(crate) fn spec(tool: &str) -> Option<Spec> {
    let kind = Vendor::tool(tool)?;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let object = |argument: &str, kind: &str| BTreeMap::from([(argument.into(), kind.into())]);
    let (books, effect) = match kind {
        Tool::BookHotel => (true, Effect::Paid),
        Tool::CancelBooking => (false, Effect::Commitment),
        Tool::SearchHotels | Tool::FindBooking | Tool::FindCancellation => return None,
    };
    let card: &[&str] = match books {
        true => {
            &["quote.hotel", "quote.room", "quote.dates", "quote.total", "quote.currency", "guest"]
        }
        false => &["confirmation_number"],
    };
    let (argument, of) =
        if books { ("quote", "quote") } else { ("confirmation_number", "booking") };
    Some(Spec {
        tool: tool.to_owned(),
        effect,
        entry: Digest::of_parts([HOTEL_MANIFEST.as_bytes(), tool.as_bytes()]),
        objects: object(argument, of),
        amount: books.then(|| "quote.total".into()),
        currency: books.then(|| "quote.currency".into()),
        recipients: Vec::new(),
        once_per: Vec::new(),
        card: words(card),
        operation: Some("client_ref".into()),
        undo: books.then(|| "hotel.cancel_booking".into()),
        can_look_up: true,
        settled_after_ms: Some(SETTLED_AFTER_MS),
        idempotent_ms: Some(IDEMPOTENT_MS),
    })
}

fn text_at(json: &Value, at: &str) -> Option<String> {
    path::get(json, at).and_then(Value::as_str).map(str::to_owned)
}

/// What an answer proves, by the manifest.
fn acted(tool: Tool, reply: Reply) -> Acted {
    let (receipt, refused): (_, &[&str]) = match tool {
        Tool::CancelBooking => {
            ("cancellation.id", &["unknown_booking", "already_cancelled", "not_cancellable"])
        }
        Tool::BookHotel | Tool::SearchHotels | Tool::FindBooking | Tool::FindCancellation => {
            ("booking.confirmation_number", &["sold_out", "quote_expired", "unknown_quote"])
        }
    };
    let other = |why: &str| Observation::Other(why.to_owned());
    let (seen, answer, ids) = match reply {
        Reply::Lost => (Observation::Lost("no answer came".into()), String::new(), Vec::new()),
        Reply::Garbage(text) => (other("it answered without a receipt"), text, Vec::new()),
        Reply::Answer { json, is_error } => {
            let code = text_at(&json, "error.code");
            let no = code.filter(|code| refused.contains(&code.as_str()));
            let seen = match (text_at(&json, receipt), no, is_error) {
                (None, Some(code), _) => Observation::Refused(format!("error.code is {code}")),
                (Some(receipt), None, false) => Observation::Receipt(receipt),
                (None, None, _) => other("it answered without a receipt"),
                (Some(_), _, _) => other("it answered with a receipt and with a failure"),
            };
            let ids = match &seen {
                Observation::Receipt(_) => issued(tool, &json),
                Observation::NotSent(_)
                | Observation::Answered
                | Observation::Refused(_)
                | Observation::Other(_)
                | Observation::Lost(_) => Vec::new(),
            };
            (seen, json.to_string(), ids)
        }
    };
    Acted { seen, answer, issued: ids, refused_key: None }
}

fn sight(json: &Value, receipt: &str) -> Sight {
    match text_at(json, receipt) {
        Some(receipt) => {
            let ended = text_at(json, "booking.status").as_deref() == Some("cancelled");
            Sight::Found { receipt, ended }
        }
        None => Sight::Absent,
    }
}

/// The ids in an answer, by the manifest.
fn issued(tool: Tool, json: &Value) -> Vec<Issued> {
    let one = |kind: &str, id: &str, snapshot: &Value| {
        let id = snapshot.get(id)?.as_str()?.to_owned();
        let until = snapshot.get("valid_until").and_then(Value::as_str);
        let expires_at = until.and_then(|until| Timestamp::parse(until).ok());
        Some(Issued { kind: kind.to_owned(), id, snapshot: snapshot.clone(), expires_at })
    };
    match tool {
        Tool::SearchHotels => {
            let offers = json.get("offers").and_then(Value::as_array);
            offers.into_iter().flatten().filter_map(|offer| one("quote", "id", offer)).collect()
        }
        Tool::BookHotel | Tool::FindBooking => {
            let booking = json.get("booking");
            booking.and_then(|b| one("booking", "confirmation_number", b)).into_iter().collect()
        }
        Tool::CancelBooking | Tool::FindCancellation => Vec::new(),
    }
}
