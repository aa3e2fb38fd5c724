//! What the vendor does: books, cancels, looks up, and what happens by itself later.

use base::Timestamp;
use serde_json::{Map, Value, json};

use super::fault::Fault;
use super::offers::{draw, text};
use super::record::{Booking, Cancellation, Due, Happening, Party, Truth};
use super::{Call, Hotel, Outcome, Refusal, When, pending};

/// What a client's reference already stands for.
enum Known<T> {
    Made(T),
    Landing,
    New,
}

impl Hotel {
    /// Books once per reference, as long as the vendor promises.
    pub(super) fn book(
        &mut self,
        call: &Call,
        arguments: &Map<String, Value>,
    ) -> Result<Outcome, Refusal> {
        let quote = text(arguments, "quote")?;
        let client_ref = text(arguments, "client_ref")?;
        let guest = text(arguments, "guest")?;
        let repeated = |json: Value| Outcome { answer: Ok(json), truth: Truth::Repeated };
        match self.known_booking(call.now, client_ref, (quote, guest))? {
            Known::Made(booking) => return Ok(repeated(json!({ "booking": booking.shown() }))),
            Known::Landing => return Ok(repeated(pending(call.tool, arguments))),
            Known::New => {}
        }
        let quote = self.quotes.get(quote).ok_or_else(|| {
            Refusal::new("unknown_quote", format!("there is no quote `{quote}`; search again"))
        })?;
        if quote.valid_until <= call.now {
            let message = format!("the quote expired at {}; search again", quote.valid_until);
            return Err(Refusal::new("quote_expired", message));
        }
        let booking = Booking {
            call: call.number,
            made_at: call.now,
            confirmation_number: self.number("HB", call.number),
            client_ref: client_ref.to_owned(),
            guest: guest.to_owned(),
            quote: quote.clone(),
            cancelled_by: None,
            forgotten: false,
        };
        let answer = Ok(json!({ "booking": booking.shown() }));
        let confirmation_number = booking.confirmation_number.clone();
        let truth = match call.when {
            When::Never => Truth::Nothing,
            When::After(ms) => {
                let at = call.now.plus_ms(ms);
                self.later(at, Happening::Booking(booking));
                Truth::WillBook { confirmation_number, at }
            }
            When::Now => {
                self.happen(call.now, Happening::Booking(booking));
                self.strike_booking(call, confirmation_number.clone());
                Truth::Booked { confirmation_number }
            }
        };
        Ok(Outcome { answer, truth })
    }

    /// What a reference already stands for; a refusal if it was something else than is asked now.
    fn known_booking(
        &self,
        now: Timestamp,
        client_ref: &str,
        (quote, guest): (&str, &str),
    ) -> Result<Known<&Booking>, Refusal> {
        let same = |booking: &Booking| match booking.quote.id == quote && booking.guest == guest {
            true => Ok(()),
            false => Err(conflict(client_ref)),
        };
        let landing = self.due.iter().find_map(|due| match &due.what {
            Happening::Booking(booking) if booking.client_ref == client_ref => Some(booking),
            Happening::Booking(_)
            | Happening::Cancellation(_)
            | Happening::HotelCancels { .. }
            | Happening::ForgetsBooking { .. }
            | Happening::ForgetsCancellation { .. } => None,
        });
        if let Some(booking) = landing {
            return same(booking).map(|()| Known::Landing);
        }
        let promised_from = now.minus_ms(self.options.dedupe_ms);
        match self.found_booking(client_ref) {
            Some(booking) if booking.made_at > promised_from => {
                same(booking).map(|()| Known::Made(booking))
            }
            Some(_) | None => Ok(Known::New),
        }
    }

    /// Cancels once per reference, as long as the vendor promises.
    pub(super) fn cancel(
        &mut self,
        call: &Call,
        arguments: &Map<String, Value>,
    ) -> Result<Outcome, Refusal> {
        let number = text(arguments, "confirmation_number")?;
        let client_ref = text(arguments, "client_ref")?;
        let repeated = |json: Value| Outcome { answer: Ok(json), truth: Truth::Repeated };
        match self.known_cancellation(call.now, client_ref, number)? {
            Known::Made(done) => return Ok(repeated(json!({ "cancellation": done.shown() }))),
            Known::Landing => return Ok(repeated(pending(call.tool, arguments))),
            Known::New => {}
        }
        let booking = self.bookings.iter().find(|b| b.confirmation_number == number);
        let booking = booking.filter(|booking| !booking.forgotten).ok_or_else(|| {
            Refusal::new("unknown_booking", format!("there is no booking `{number}`"))
        })?;
        if booking.cancelled_by.is_some() {
            let message = format!("the booking `{number}` is cancelled already");
            return Err(Refusal::new("already_cancelled", message));
        }
        let cancellation = Cancellation {
            call: call.number,
            made_at: call.now,
            id: self.number("HC", call.number),
            client_ref: client_ref.to_owned(),
            confirmation_number: number.to_owned(),
            forgotten: false,
        };
        let answer = Ok(json!({ "cancellation": cancellation.shown() }));
        let id = cancellation.id.clone();
        let truth = match call.when {
            When::Never => Truth::Nothing,
            When::After(ms) => {
                let at = call.now.plus_ms(ms);
                self.later(at, Happening::Cancellation(cancellation));
                Truth::WillCancel { id, at }
            }
            When::Now => {
                self.happen(call.now, Happening::Cancellation(cancellation));
                self.strike_cancellation(call, id.clone());
                Truth::Cancelled { id }
            }
        };
        Ok(Outcome { answer, truth })
    }

    fn known_cancellation(
        &self,
        now: Timestamp,
        client_ref: &str,
        number: &str,
    ) -> Result<Known<&Cancellation>, Refusal> {
        let same = |done: &Cancellation| match done.confirmation_number == number {
            true => Ok(()),
            false => Err(conflict(client_ref)),
        };
        let landing = self.due.iter().find_map(|due| match &due.what {
            Happening::Cancellation(done) if done.client_ref == client_ref => Some(done),
            Happening::Booking(_)
            | Happening::Cancellation(_)
            | Happening::HotelCancels { .. }
            | Happening::ForgetsBooking { .. }
            | Happening::ForgetsCancellation { .. } => None,
        });
        if let Some(done) = landing {
            return same(done).map(|()| Known::Landing);
        }
        let promised_from = now.minus_ms(self.options.dedupe_ms);
        match self.found_cancellation(client_ref) {
            Some(done) if done.made_at > promised_from => same(done).map(|()| Known::Made(done)),
            Some(_) | None => Ok(Known::New),
        }
    }

    pub(super) fn find_booking(
        &mut self,
        call: &Call,
        arguments: &Map<String, Value>,
    ) -> Result<Value, Refusal> {
        let client_ref = text(arguments, "client_ref")?;
        if let Some(found) = self.found_booking(client_ref) {
            let number = found.confirmation_number.clone();
            self.strike_booking(call, number);
        }
        Ok(json!({ "booking": self.found_booking(client_ref).map(Booking::shown) }))
    }

    pub(super) fn find_cancellation(
        &mut self,
        call: &Call,
        arguments: &Map<String, Value>,
    ) -> Result<Value, Refusal> {
        let client_ref = text(arguments, "client_ref")?;
        if let Some(found) = self.found_cancellation(client_ref) {
            let id = found.id.clone();
            self.strike_cancellation(call, id);
        }
        Ok(json!({ "cancellation": self.found_cancellation(client_ref).map(Cancellation::shown) }))
    }

    /// The newest booking of a reference that the vendor still knows.
    fn found_booking(&self, client_ref: &str) -> Option<&Booking> {
        self.bookings.iter().rfind(|b| b.client_ref == client_ref && !b.forgotten)
    }

    fn found_cancellation(&self, client_ref: &str) -> Option<&Cancellation> {
        self.cancellations.iter().rfind(|c| c.client_ref == client_ref && !c.forgotten)
    }

    /// What a fault does to a booking that exists.
    fn strike_booking(&mut self, call: &Call, confirmation_number: String) {
        match call.fault {
            Some(Fault::Forgets { ms }) => {
                let what = Happening::ForgetsBooking { confirmation_number };
                self.later(call.now.plus_ms(ms), what);
            }
            Some(Fault::CancelledByHotel { ms }) => {
                self.later(call.now.plus_ms(ms), Happening::HotelCancels { confirmation_number });
            }
            None
            | Some(
                Fault::AnswerLost
                | Fault::RequestLost
                | Fault::SoldOut
                | Fault::LandsLate { .. }
                | Fault::DuplicateAnswer
                | Fault::TimesOut
                | Fault::Garbage
                | Fault::RefusesYetBooks
                | Fault::Lies,
            ) => {}
        }
        self.settle(call.now);
    }

    fn strike_cancellation(&mut self, call: &Call, id: String) {
        if let Some(Fault::Forgets { ms }) = call.fault {
            self.later(call.now.plus_ms(ms), Happening::ForgetsCancellation { id });
        }
        self.settle(call.now);
    }

    /// Notes what happens by itself at `at`, after what is due then already.
    fn later(&mut self, at: Timestamp, what: Happening) {
        let place = self.due.partition_point(|due| due.at <= at);
        self.due.insert(place, Due { at, what });
    }

    pub(super) fn happen(&mut self, at: Timestamp, what: Happening) {
        match what {
            Happening::Booking(booking) => self.bookings.push(Booking { made_at: at, ..booking }),
            Happening::Cancellation(done) => {
                let open = self.booking_mut(&done.confirmation_number);
                // One that lands after somebody else cancelled has nothing left to do.
                if let Some(booking) = open.filter(|b| b.in_force()) {
                    booking.cancelled_by = Some(Party::Client);
                    self.cancellations.push(Cancellation { made_at: at, ..done });
                }
            }
            Happening::HotelCancels { confirmation_number } => {
                if let Some(booking) = self.booking_mut(&confirmation_number) {
                    booking.cancelled_by.get_or_insert(Party::Hotel);
                }
            }
            Happening::ForgetsBooking { confirmation_number } => {
                if let Some(booking) = self.booking_mut(&confirmation_number) {
                    booking.forgotten = true;
                }
            }
            Happening::ForgetsCancellation { id } => {
                if let Some(done) = self.cancellations.iter_mut().find(|done| done.id == id) {
                    done.forgotten = true;
                }
            }
        }
    }

    fn booking_mut(&mut self, confirmation_number: &str) -> Option<&mut Booking> {
        self.bookings.iter_mut().find(|b| b.confirmation_number == confirmation_number)
    }

    /// A number that no other call gets and that nobody guesses.
    fn number(&self, prefix: &str, call: u64) -> String {
        format!("{prefix}-{call}-{:06x}", draw(self.seed, prefix, call) >> 40)
    }
}

fn conflict(client_ref: &str) -> Refusal {
    let message = format!("`{client_ref}` was used for something else; take a new reference");
    Refusal::new("conflict", message)
}
