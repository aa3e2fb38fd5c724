//! The price watch: what is asked, what must be heard, and by which configuration.

use std::net::SocketAddr;
use std::path::Path;

use jiff::civil::{Date, Weekday};

/// Early on a Monday in Hong Kong.
pub const START: &str = "2027-02-28T22:00:00Z";
/// Two weeks.
pub const DAYS: u32 = 14;
/// What the person says at the beginning.
pub const REQUEST: &str = "Look at the price feed each morning; tell me only when it falls under \
                           100; on Friday tell me in any case.";

/// Everything that the agent may say in these two weeks, in order: the oracle of the demo, computed from
/// the feed's prices alone.
pub fn expected() -> Vec<String> {
    let monday: Date = jiff::civil::date(2027, 3, 1);
    let mornings = (0..DAYS).filter_map(|day| monday.checked_add(jiff::Span::new().days(day)).ok());
    mornings.filter_map(said_on).collect()
}

fn said_on(day: Date) -> Option<String> {
    let price = testkit::price_feed::price_on(day);
    let under = price.parse::<f64>().is_ok_and(|price| price < 100.0);
    match day.weekday() {
        Weekday::Saturday | Weekday::Sunday => None,
        Weekday::Friday if !under => Some(format!("It is Friday: the price is {price}.")),
        Weekday::Monday
        | Weekday::Tuesday
        | Weekday::Wednesday
        | Weekday::Thursday
        | Weekday::Friday => under.then(|| format!("The price is {price}, under 100.")),
    }
}

/// The configuration file of the demo's server.
pub fn config(program: &Path, listen: SocketAddr, model: SocketAddr) -> String {
    format!(
        "data_dir = \"data\"\nlisten = \"{listen}\"\nlog = \"warn\"\n\n\
         [owner]\nname = \"you\"\nzone = \"Asia/Hong_Kong\"\n\n\
         [model]\nbase_url = \"http://{model}/v1\"\nmodel = \"scripted-price\"\n\
         context_tokens = 100000\n\n\
         [limits]\ntick_ms = 200\n\n\
         [[mcp]]\nname = \"feed\"\ncommand = {program:?}\nargs = [\"fake\", \"price-feed\"]\n\
         manifest = \"feed.toml\"\n"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_weeks_have_two_dips_and_two_fridays() {
        assert_eq!(
            super::expected(),
            [
                "The price is 97.5, under 100.",
                "It is Friday: the price is 103.8.",
                "The price is 98.4, under 100.",
                "It is Friday: the price is 104.7.",
            ]
        );
    }
}
