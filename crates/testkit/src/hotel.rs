//! A fake vendor of hotel rooms that may lie: quotes that expire, bookings and cancellations by the
//! client's own reference, and every way in which a vendor goes wrong.
//!
//! The vendor is a pure state machine ([`Hotel`]): time comes with each call, randomness is drawn from
//! a seed and the call's number, so the same seed and the same calls give the same state. The simulator
//! calls it in-process; [`process`] hosts it as an MCP server. [`HOTEL_MANIFEST`] is what a user would
//! write about it.

mod effects;
mod fault;
mod offers;
pub mod process;
mod record;

use std::collections::BTreeMap;

use base::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use fault::{Fault, FaultRule, Faults, FaultsError, SETTLED_AFTER_MS};
use offers::draw;
use record::Due;
pub use record::{Booking, Cancellation, Note, Party, Quote, Request, Tool, Truth};

/// What the tools of the hotel vendor do to the world, as its user writes it.
pub const HOTEL_MANIFEST: &str = include_str!("../manifests/hotel.toml");

/// The tool that the vendor offers and [`HOTEL_MANIFEST`] says nothing of: it leaves a note at the desk.
pub const UNDESCRIBED: &str = "leave_note";
/// Calls that one vendor answers; after them it is too busy for any.
const CALLS_MAX: usize = 200_000;
/// How long the vendor knows an expired quote, so that it can say so, in milliseconds.
const EXPIRED_QUOTE_MS: u64 = 24 * 60 * 60 * 1_000;

/// What a vendor promises, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HotelOptions {
    /// How long a quote holds.
    pub quote_ms: u64,
    /// How long a repeated reference gives the first booking or cancellation.
    pub dedupe_ms: u64,
}

impl Default for HotelOptions {
    fn default() -> Self {
        HotelOptions { quote_ms: 20 * 60 * 1_000, dedupe_ms: 24 * 60 * 60 * 1_000 }
    }
}

/// What a caller gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// An answer, true or not.
    Answer {
        /// What it says.
        json: Value,
        /// Whether the vendor calls it a failure.
        is_error: bool,
    },
    /// An answer that is no JSON.
    Garbage(String),
    /// No answer comes.
    Lost,
}

/// The second coming of an answer that was given before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeated {
    /// The number of the call that it answers, among all calls.
    pub call: u64,
    /// The tool of that call.
    pub tool: Tool,
    /// The client's reference in that call.
    pub client_ref: Option<String>,
    /// What was answered then.
    pub reply: Reply,
}

/// A refusal in the vendor's words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    code: &'static str,
    message: String,
}

impl Refusal {
    fn new(code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }

    fn bad(message: String) -> Refusal {
        Refusal::new("bad_request", message)
    }

    fn reply(self) -> Reply {
        let json = json!({ "error": { "code": self.code, "message": self.message } });
        Reply::Answer { json, is_error: true }
    }
}

/// When what was asked happens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Now,
    After(u64),
    Never,
}

/// What the caller is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    Plainly,
    Nothing,
    Pending,
    Refusal,
    TimedOut,
    Garbage,
}

/// One call with what was drawn for it.
struct Call {
    number: u64,
    now: Timestamp,
    tool: Tool,
    fault: Option<Fault>,
    when: When,
    says: Says,
}

/// What a call comes to before its fault has bent the answer.
struct Outcome {
    answer: Result<Value, Refusal>,
    truth: Truth,
}

impl Outcome {
    fn nothing(answer: Result<Value, Refusal>) -> Outcome {
        Outcome { answer, truth: Truth::Nothing }
    }
}

/// The vendor. As JSON it is its whole state in a stable order, without the plan of faults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hotel {
    seed: u64,
    options: HotelOptions,
    calls: u64,
    calls_of: BTreeMap<Tool, u64>,
    quotes: BTreeMap<String, Quote>,
    bookings: Vec<Booking>,
    cancellations: Vec<Cancellation>,
    /// What happens by itself later, the earliest first.
    due: Vec<Due>,
    log: Vec<Request>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<Note>,
    /// The last answer to an effect, which may come again.
    answered: Option<Repeated>,
    #[serde(skip)]
    repeated: Option<Repeated>,
    #[serde(skip)]
    faults: Faults,
}

impl Hotel {
    /// An honest vendor without bookings.
    pub fn new(seed: u64, options: HotelOptions) -> Hotel {
        Hotel {
            seed,
            options,
            calls: 0,
            calls_of: BTreeMap::new(),
            quotes: BTreeMap::new(),
            bookings: Vec::new(),
            cancellations: Vec::new(),
            due: Vec::new(),
            log: Vec::new(),
            notes: Vec::new(),
            answered: None,
            repeated: None,
            faults: Faults::default(),
        }
    }

    /// From now on calls go wrong as planned here. What is under way already still happens.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// Every booking that was really made, in the order in which they began to exist. None is ever
    /// removed: see [`Booking::in_force`].
    pub fn bookings(&self) -> &[Booking] {
        &self.bookings
    }

    /// Every cancellation that was really made, in the order in which they began to exist.
    pub fn cancellations(&self) -> &[Cancellation] {
        &self.cancellations
    }

    /// Every request, in order, with what it truly did.
    pub fn requests(&self) -> &[Request] {
        &self.log
    }

    /// Every note that was left, in order.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// When the next thing happens by itself; `None` if nothing is under way.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|due| due.at)
    }

    /// The answer that came once more with the last call, if one did: to whom it answers, and what.
    pub fn take_repeated(&mut self) -> Option<Repeated> {
        self.repeated.take()
    }

    /// The whole state as one JSON value, for a hash: equal states give equal text.
    pub fn state(&self) -> Value {
        // Keys are texts and numbers are whole, so that nothing of this can fail to be JSON.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Lets everything happen that is due until `now`. Each call begins with it.
    pub fn settle(&mut self, now: Timestamp) {
        while self.next_due().is_some_and(|at| at <= now) {
            let Due { at, what } = self.due.remove(0);
            self.happen(at, what);
        }
    }

    /// Answers one call at `now`. `tool` is a name of [`Tool`], without that of a server.
    pub fn call(&mut self, now: Timestamp, tool: &str, arguments: &Map<String, Value>) -> Reply {
        self.settle(now);
        self.repeated = None;
        if tool == UNDESCRIBED && self.notes.len() < CALLS_MAX {
            return self.leave_note(now, arguments).unwrap_or_else(Refusal::reply);
        }
        let Some(tool) = Tool::named(tool) else {
            let tools = Tool::ALL.map(Tool::as_str).join(", ");
            return Refusal::bad(format!("there is no tool `{tool}`; there are {tools}")).reply();
        };
        if self.log.len() >= CALLS_MAX {
            let message = format!("this vendor answers {CALLS_MAX} calls; start another");
            return Refusal::new("too_busy", message).reply();
        }
        let call = self.begin(now, tool);
        let outcome = self.perform(&call, arguments);
        let truth = outcome.truth.clone();
        let reply = self.worded(&call, outcome, arguments);
        let client_ref = arguments.get("client_ref").and_then(Value::as_str).map(str::to_owned);
        if call.fault == Some(Fault::DuplicateAnswer) {
            self.repeated.clone_from(&self.answered);
        }
        if tool.is_effect() && reply != Reply::Lost {
            let (client_ref, reply) = (client_ref.clone(), reply.clone());
            self.answered = Some(Repeated { call: call.number, tool, client_ref, reply });
        }
        let fault = call.fault;
        self.log.push(Request { call: call.number, at: now, tool, client_ref, fault, truth });
        reply
    }

    fn leave_note(
        &mut self,
        at: Timestamp,
        arguments: &Map<String, Value>,
    ) -> Result<Reply, Refusal> {
        let text = offers::text(arguments, "text")?.to_owned();
        self.notes.push(Note { at, text });
        Ok(Reply::Answer { json: json!({ "left": self.notes.len() }), is_error: false })
    }

    /// Counts the call and draws what goes wrong with it.
    fn begin(&mut self, now: Timestamp, tool: Tool) -> Call {
        self.calls += 1;
        let of_tool = self.calls_of.entry(tool).or_default();
        *of_tool += 1;
        let (seed, number) = (self.seed, self.calls);
        let chance = |rule: usize| draw(seed, &format!("fault {rule}"), number);
        let fault = self.faults.strike(tool, (number, *of_tool), chance);
        let either = match draw(seed, "happens", number) % 2 {
            0 => When::Now,
            _ => When::Never,
        };
        let (when, says) = match fault {
            None
            | Some(
                Fault::DuplicateAnswer | Fault::Forgets { .. } | Fault::CancelledByHotel { .. },
            ) => (When::Now, Says::Plainly),
            Some(Fault::AnswerLost) => (When::Now, Says::Nothing),
            Some(Fault::RequestLost) => (When::Never, Says::Nothing),
            Some(Fault::SoldOut) => (When::Never, Says::Refusal),
            Some(Fault::LandsLate { ms, says_pending: true }) => (When::After(ms), Says::Pending),
            Some(Fault::LandsLate { ms, says_pending: false }) => (When::After(ms), Says::Nothing),
            Some(Fault::TimesOut) => (either, Says::TimedOut),
            Some(Fault::Garbage) => (either, Says::Garbage),
            Some(Fault::RefusesYetBooks) => (When::Now, Says::Refusal),
            Some(Fault::Lies) => (When::Never, Says::Plainly),
        };
        Call { number, now, tool, fault, when, says }
    }

    fn perform(&mut self, call: &Call, arguments: &Map<String, Value>) -> Outcome {
        match call.tool {
            Tool::SearchHotels => self.search(call, arguments),
            Tool::BookHotel => {
                self.book(call, arguments).unwrap_or_else(|no| Outcome::nothing(Err(no)))
            }
            Tool::CancelBooking => {
                self.cancel(call, arguments).unwrap_or_else(|no| Outcome::nothing(Err(no)))
            }
            Tool::FindBooking => Outcome::nothing(self.find_booking(call, arguments)),
            Tool::FindCancellation => Outcome::nothing(self.find_cancellation(call, arguments)),
        }
    }

    /// What the caller gets: the outcome, bent by the call's fault.
    fn worded(&self, call: &Call, outcome: Outcome, arguments: &Map<String, Value>) -> Reply {
        let repeated = outcome.truth == Truth::Repeated;
        let lies = call.fault == Some(Fault::RefusesYetBooks);
        match call.says {
            Says::Nothing => Reply::Lost,
            Says::TimedOut => {
                Refusal::new("timeout", "our booking system did not answer in time").reply()
            }
            Says::Garbage => match draw(self.seed, "garbage", call.number) % 3 {
                0 => Reply::Garbage("<html><body>502 Bad Gateway</body></html>".to_owned()),
                1 => Reply::Garbage(r#"{"booking":{"confirmation_num"#.to_owned()),
                _ => Reply::Answer { json: json!({ "status": "ok" }), is_error: false },
            },
            Says::Plainly | Says::Pending | Says::Refusal => match outcome.answer {
                Err(refusal) => refusal.reply(),
                // An honest refusal is no answer to a reference that stands for something already.
                Ok(_) if call.says == Says::Refusal && (lies || !repeated) => {
                    refusal(call.tool).reply()
                }
                Ok(_) if call.says == Says::Pending && !repeated => {
                    let json = pending(call.tool, arguments);
                    Reply::Answer { json, is_error: false }
                }
                Ok(json) => Reply::Answer { json, is_error: false },
            },
        }
    }

    fn search(&mut self, call: &Call, arguments: &Map<String, Value>) -> Outcome {
        let valid_until = call.now.plus_ms(self.options.quote_ms);
        let offers = match offers::offers(self.seed, call.number, arguments, valid_until) {
            Ok(offers) => offers,
            Err(refusal) => return Outcome::nothing(Err(refusal)),
        };
        let known_from = call.now.minus_ms(EXPIRED_QUOTE_MS);
        self.quotes.retain(|_, quote| quote.valid_until >= known_from);
        if call.when == When::Now {
            self.quotes.extend(offers.iter().map(|quote| (quote.id.clone(), quote.clone())));
        }
        Outcome::nothing(Ok(json!({ "offers": offers })))
    }
}

/// How the vendor refuses what it could do.
fn refusal(tool: Tool) -> Refusal {
    match tool {
        Tool::CancelBooking => Refusal::new("not_cancellable", "this rate cannot be cancelled"),
        Tool::SearchHotels | Tool::BookHotel | Tool::FindBooking | Tool::FindCancellation => {
            Refusal::new("sold_out", "the last room went to somebody else")
        }
    }
}

/// The answer to an operation that was taken but is not done.
fn pending(tool: Tool, arguments: &Map<String, Value>) -> Value {
    let noun = if tool == Tool::CancelBooking { "cancellation" } else { "booking" };
    json!({ noun: { "status": "pending", "client_ref": arguments.get("client_ref") } })
}
