//! What the hotel vendor keeps: quotes, bookings, cancellations, and the log of requests.

use base::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fault::Fault;

/// The vendor's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// Offers rooms at a price that holds for a while.
    SearchHotels,
    /// Books a quoted room. Costs money.
    BookHotel,
    /// Finds a booking by the client's reference.
    FindBooking,
    /// Cancels a booking.
    CancelBooking,
    /// Finds a cancellation by the client's reference.
    FindCancellation,
}

impl Tool {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Tool; 5] = [
        Tool::SearchHotels,
        Tool::BookHotel,
        Tool::FindBooking,
        Tool::CancelBooking,
        Tool::FindCancellation,
    ];

    /// The name, without that of a server.
    pub fn as_str(self) -> &'static str {
        match self {
            Tool::SearchHotels => "search_hotels",
            Tool::BookHotel => "book_hotel",
            Tool::FindBooking => "find_booking",
            Tool::CancelBooking => "cancel_booking",
            Tool::FindCancellation => "find_cancellation",
        }
    }

    /// The tool of this name.
    pub fn named(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.as_str() == name)
    }

    /// Whether it changes the world.
    pub fn is_effect(self) -> bool {
        matches!(self, Tool::BookHotel | Tool::CancelBooking)
    }

    /// Whether it looks up what an effect did.
    pub fn is_find(self) -> bool {
        matches!(self, Tool::FindBooking | Tool::FindCancellation)
    }
}

/// A note that was left at the desk, by the one tool that no manifest describes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// When.
    pub at: Timestamp,
    /// What it says.
    pub text: String,
}

/// A price that holds until `valid_until`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// The id with which it is booked.
    pub id: String,
    /// The hotel's name with its city.
    pub hotel: String,
    /// The kind of room.
    pub room: String,
    /// The nights, as in `2026-12-10 to 2026-12-12`.
    pub dates: String,
    /// The price of the whole stay, as decimal text with two digits after the point.
    pub total: String,
    /// The currency of `total`.
    pub currency: String,
    /// From when on it cannot be booked any more.
    pub valid_until: Timestamp,
}

/// Who cancelled a booking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The client, by `cancel_booking`.
    Client,
    /// The hotel, by itself.
    Hotel,
}

/// A booking that was really made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booking {
    /// The number of the call that made it, among all calls.
    pub call: u64,
    /// When it began to exist; later than its call if it landed late.
    pub made_at: Timestamp,
    /// Its number.
    pub confirmation_number: String,
    /// The client's operation id.
    pub client_ref: String,
    /// Who sleeps there.
    pub guest: String,
    /// What was booked, at which price.
    pub quote: Quote,
    /// Who cancelled it; `None` while it is in force.
    pub cancelled_by: Option<Party>,
    /// The vendor has lost it: no look-up finds it, and no bed is kept.
    pub forgotten: bool,
}

impl Booking {
    /// Whether a bed is kept and has to be paid for.
    pub fn in_force(&self) -> bool {
        self.cancelled_by.is_none() && !self.forgotten
    }

    /// The booking as the vendor shows it.
    pub(super) fn shown(&self) -> Value {
        json!({
            "confirmation_number": self.confirmation_number,
            "status": if self.cancelled_by.is_some() { "cancelled" } else { "confirmed" },
            "client_ref": self.client_ref,
            "hotel": self.quote.hotel,
            "room": self.quote.room,
            "dates": self.quote.dates,
            "total": self.quote.total,
            "currency": self.quote.currency,
        })
    }
}

/// A cancellation that the client really got done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancellation {
    /// The number of the call that made it, among all calls.
    pub call: u64,
    /// When it began to exist; later than its call if it landed late.
    pub made_at: Timestamp,
    /// Its number.
    pub id: String,
    /// The client's operation id of the cancellation, not of the booking.
    pub client_ref: String,
    /// The booking that it ended.
    pub confirmation_number: String,
    /// The vendor has lost it: no look-up finds it. The booking stays cancelled.
    pub forgotten: bool,
}

impl Cancellation {
    /// The cancellation as the vendor shows it.
    pub(super) fn shown(&self) -> Value {
        json!({
            "id": self.id,
            "confirmation_number": self.confirmation_number,
            "status": "cancelled",
        })
    }
}

/// One request that reached the vendor's door or got lost before it, and what truly happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its number among all calls, from 1.
    pub call: u64,
    /// When it came.
    pub at: Timestamp,
    /// What it called.
    pub tool: Tool,
    /// The client's reference in it.
    pub client_ref: Option<String>,
    /// What went wrong with it.
    pub fault: Option<Fault>,
    /// What it did to the world, whatever the answer said.
    pub truth: Truth,
}

/// What a call did to the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truth {
    /// Nothing: a look-up, a search, a refusal, a lost request or a lie.
    Nothing,
    /// Nothing more: the same reference had done it before, or is about to.
    Repeated,
    /// It made this booking.
    Booked {
        /// The booking's number.
        confirmation_number: String,
    },
    /// It will make this booking.
    WillBook {
        /// The booking's number.
        confirmation_number: String,
        /// When.
        at: Timestamp,
    },
    /// It made this cancellation.
    Cancelled {
        /// The cancellation's id.
        id: String,
    },
    /// It will make this cancellation, if nobody cancels the booking before.
    WillCancel {
        /// The cancellation's id.
        id: String,
        /// When.
        at: Timestamp,
    },
}

/// Something that happens by itself later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Due {
    pub(super) at: Timestamp,
    pub(super) what: Happening,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Happening {
    Booking(Booking),
    Cancellation(Cancellation),
    HotelCancels { confirmation_number: String },
    ForgetsBooking { confirmation_number: String },
    ForgetsCancellation { id: String },
}
