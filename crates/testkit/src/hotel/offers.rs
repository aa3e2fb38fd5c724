//! What the vendor offers: hotels, rooms and prices, drawn from the seed and the number of the search.

use base::{Digest, Timestamp};
use jiff::civil::Date;
use serde_json::{Map, Value};

use super::Refusal;
use super::record::Quote;

/// Offers of one search.
const OFFERS: usize = 3;
/// Nights of one stay.
const NIGHTS_MAX: i32 = 30;
/// Guests of one room.
const GUESTS_MAX: u64 = 6;
/// Bytes of one text in a call.
const TEXT_BYTES_MAX: usize = 200;
/// Hotels, each with the price of a night in the cheapest room, in whole units.
const HOTELS: [(&str, u64); 5] = [
    ("Harbour House", 1_150),
    ("Lantern Court", 980),
    ("The Old Pier", 1_240),
    ("Garden Terrace", 890),
    ("Station Hotel", 760),
];
/// Rooms, each with what it costs more.
const ROOMS: [(&str, u64); 3] = [("Single", 0), ("Twin", 140), ("Double, sea view", 320)];
/// A search shifts the price of a night by at most this, in whole units.
const SHIFT_MAX: u64 = 200;
/// Prices are given in this currency.
const CURRENCY: &str = "HKD";

/// A number that looks random and depends on nothing but the seed, a purpose and a call's number.
pub(super) fn draw(seed: u64, purpose: &str, call: u64) -> u64 {
    let parts: [&[u8]; 3] = [&seed.to_be_bytes(), purpose.as_bytes(), &call.to_be_bytes()];
    let digest = Digest::of_parts(parts);
    digest.as_bytes().iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// A text argument that is not empty.
pub(super) fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, Refusal> {
    let text = arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    match text.len() {
        1..=TEXT_BYTES_MAX => Ok(text),
        _ => Err(Refusal::bad(format!("`{name}` must be a text of 1 to {TEXT_BYTES_MAX} bytes"))),
    }
}

fn day(arguments: &Map<String, Value>, name: &str) -> Result<Date, Refusal> {
    let text = text(arguments, name)?;
    let day = text.parse().ok().filter(|day: &Date| day.to_string() == text);
    day.ok_or_else(|| Refusal::bad(format!("`{name}` must be a day as in 2026-12-10")))
}

/// The offers that answer the `call`-th call, the cheapest first.
pub(super) fn offers(
    seed: u64,
    call: u64,
    arguments: &Map<String, Value>,
    valid_until: Timestamp,
) -> Result<Vec<Quote>, Refusal> {
    let city = text(arguments, "city")?;
    let (from, to) = (day(arguments, "check_in")?, day(arguments, "check_out")?);
    let nights = (to - from).get_days();
    let guests = arguments.get("guests").and_then(Value::as_u64).unwrap_or(0);
    if !(1..=NIGHTS_MAX).contains(&nights) {
        let reason = format!("`check_in` to `check_out` must be 1 to {NIGHTS_MAX} nights");
        return Err(Refusal::bad(reason));
    }
    if !(1..=GUESTS_MAX).contains(&guests) {
        return Err(Refusal::bad(format!("`guests` must be a number from 1 to {GUESTS_MAX}")));
    }
    let nights = u64::from(nights.unsigned_abs());
    let first = draw(seed, "first hotel", call) % HOTELS.len() as u64;
    let mut offers: Vec<(u64, Quote)> = (0..OFFERS)
        .map(|index| {
            let (hotel, night) = HOTELS[(first as usize + index) % HOTELS.len()];
            let number = draw(seed, hotel, call);
            let (room, more) = ROOMS[(number % ROOMS.len() as u64) as usize];
            let night = night + more + 50 * (guests - 1) + (number >> 8) % (SHIFT_MAX + 1);
            let quote = Quote {
                id: format!("q-{call}-{index}-{:06x}", number >> 40),
                hotel: format!("{hotel}, {city}"),
                room: room.to_owned(),
                dates: format!("{from} to {to}"),
                total: format!("{}.00", nights * night),
                currency: CURRENCY.to_owned(),
                valid_until,
            };
            (nights * night, quote)
        })
        .collect();
    offers.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.id.cmp(&other.id)));
    Ok(offers.into_iter().map(|(_, quote)| quote).collect())
}
