//! A fake vendor of prices: an MCP server over stdio, so that connectors meet a real process.
//!
//! The vendor is a pure state machine ([`PriceFeed`]); [`serve_stdio`] hosts it as a process. Prices
//! are a function of the date alone, so a story can say beforehand on which day something happens.

use std::sync::{Mutex, PoisonError};

use jiff::ToSpan as _;
use jiff::civil::{Date, date};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ServerHandler, ServiceExt as _};
use serde_json::{Map, Value, json};

/// What the tools of the price feed do to the world.
pub const PRICE_MANIFEST: &str = r#"
[tool.price]
effect      = "read"
description = "The closing price of one day, in euros."

[tool.history]
effect      = "read"
description = "The closing prices of at most 31 days, in euros."

[tool.buy]
effect      = "paid"
description = "Buys units at the price of one day."
card        = ["quantity", "date"]
operation   = "client_ref"
receipt     = "receipt"
"#;

/// The first day of the fortnight that [`FORTNIGHT_TENTHS`] describes, a Monday.
const FIRST_DAY: Date = date(2027, 3, 1);
/// The prices of the fortnight from [`FIRST_DAY`], Monday to Sunday twice, in tenths of a euro. Under
/// 100 are the first Wednesday and the second Tuesday; a weekend keeps its Friday's price.
const FORTNIGHT_TENTHS: [i64; 14] =
    [1042, 1013, 975, 1006, 1038, 1038, 1038, 1021, 984, 1012, 1000, 1047, 1047, 1047];
/// What is added in each of six fortnights in turn, in tenths of a euro.
const DRIFT_TENTHS: [i64; 6] = [0, 12, -8, 25, -15, 5];
/// Days that one `history` may span.
const HISTORY_DAYS_MAX: i32 = 31;
/// Units that one `buy` may take.
const QUANTITY_MAX: u64 = 1_000;
/// Purchases that one process remembers.
const PURCHASES_MAX: usize = 10_000;

/// The price of a day in euros, as decimal text with one digit after the point.
///
/// The rule: the fortnight from Monday 2027-03-01 is a fixed list, and every fortnight before and
/// after it repeats the list, shifted by a drift that takes six fortnights to come round.
pub fn price_on(day: Date) -> String {
    let days = FIRST_DAY.duration_until(day).as_hours() / 24;
    let fortnight = days.div_euclid(14).rem_euclid(6);
    let at = |list: &[i64], index: i64| {
        usize::try_from(index).ok().and_then(|i| list.get(i)).copied().unwrap_or_default()
    };
    let tenths = at(&FORTNIGHT_TENTHS, days.rem_euclid(14)) + at(&DRIFT_TENTHS, fortnight);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// The vendor's state: what was bought, in order.
#[derive(Debug, Default)]
pub struct PriceFeed {
    purchases: Vec<Purchase>,
}

/// One purchase, under the buyer's own reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purchase {
    /// The buyer's operation id.
    pub client_ref: String,
    /// Units bought.
    pub quantity: u64,
    /// The day whose price was paid.
    pub date: Date,
}

impl PriceFeed {
    /// What was bought, in order.
    pub fn purchases(&self) -> &[Purchase] {
        &self.purchases
    }

    /// Answers one call with JSON text.
    ///
    /// # Errors
    /// The text that the vendor shows for wrong arguments or an unknown tool.
    pub fn answer(&mut self, tool: &str, arguments: &Map<String, Value>) -> Result<String, String> {
        match tool {
            "price" => Ok(quote(day(arguments, "date")?)),
            "history" => history(day(arguments, "from")?, day(arguments, "to")?),
            "buy" => self.buy(arguments),
            _ => Err(format!("there is no tool `{tool}`; there are price, history and buy")),
        }
    }

    /// Buys once per `client_ref`; a repeated reference gives the first receipt.
    fn buy(&mut self, arguments: &Map<String, Value>) -> Result<String, String> {
        let quantity = arguments.get("quantity").and_then(Value::as_u64);
        let quantity = quantity
            .filter(|quantity| (1..=QUANTITY_MAX).contains(quantity))
            .ok_or_else(|| format!("`quantity` must be a number from 1 to {QUANTITY_MAX}"))?;
        let client_ref = text(arguments, "client_ref")?.to_owned();
        let purchase = Purchase { client_ref, quantity, date: day(arguments, "date")? };
        let known = self.purchases.iter().position(|p| p.client_ref == purchase.client_ref);
        let index = match known {
            Some(index) => index,
            None if self.purchases.len() >= PURCHASES_MAX => return Err("sold out".to_owned()),
            None => {
                self.purchases.push(purchase);
                self.purchases.len() - 1
            }
        };
        let bought = &self.purchases[index];
        Ok(json!({
            "receipt": format!("B-{}", index + 1),
            "client_ref": bought.client_ref,
            "quantity": bought.quantity,
            "date": bought.date.to_string(),
        })
        .to_string())
    }
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    arguments.get(name).and_then(Value::as_str).ok_or_else(|| format!("`{name}` must be a text"))
}

fn day(arguments: &Map<String, Value>, name: &str) -> Result<Date, String> {
    let wrong = || format!("`{name}` must be a day as in 2027-03-01");
    let text = text(arguments, name)?;
    text.parse().ok().filter(|day: &Date| day.to_string() == text).ok_or_else(wrong)
}

/// `{"date":"2027-03-01","price":104.2}`, written out so that the price keeps its digit.
fn quote(day: Date) -> String {
    format!(r#"{{"date":"{day}","price":{}}}"#, price_on(day))
}

fn history(from: Date, to: Date) -> Result<String, String> {
    let days = (to - from).get_days() + 1;
    if !(1..=HISTORY_DAYS_MAX).contains(&days) {
        return Err(format!("`from` to `to` must span 1 to {HISTORY_DAYS_MAX} days, not {days}"));
    }
    let days = from.series(1.day()).take_while(|day| *day <= to);
    Ok(format!("[{}]", days.map(quote).collect::<Vec<_>>().join(",")))
}

/// Hosts a [`PriceFeed`] behind the protocol.
struct Host {
    /// The SDK answers calls at the same time; one call changes the state at once and never awaits.
    feed: Mutex<PriceFeed>,
}

impl ServerHandler for Host {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("price-feed", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(offered()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let mut feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match feed.answer(&request.name, &arguments) {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        }
        .into())
    }
}

/// The tools as the server describes them.
fn offered() -> Vec<Tool> {
    let tool = |name: &'static str, description: &'static str, properties: Value| {
        let required: Vec<&String> =
            properties.as_object().into_iter().flat_map(Map::keys).collect();
        let schema = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("required".to_owned(), json!(required)),
            ("properties".to_owned(), properties),
        ]);
        Tool::new(name, description, schema)
    };
    let day = json!({ "type": "string", "description": "YYYY-MM-DD" });
    let quantity = json!({ "type": "integer", "minimum": 1, "maximum": QUANTITY_MAX });
    let reference = json!({ "type": "string", "description": "your own reference" });
    vec![
        tool("price", "The closing price of one day.", json!({ "date": day })),
        tool("history", "Closing prices, at most 31 days.", json!({ "from": day, "to": day })),
        tool(
            "buy",
            "Buys units.",
            json!({ "quantity": quantity, "date": day, "client_ref": reference }),
        ),
    ]
}

/// Serves the price feed on the standard streams until the input ends.
///
/// # Errors
/// When the other side does not open the connection as MCP asks.
pub async fn serve_stdio() -> std::io::Result<()> {
    let host = Host { feed: Mutex::default() };
    let service = host.serve(rmcp::transport::stdio()).await.map_err(std::io::Error::other)?;
    service.waiting().await.map_err(std::io::Error::other)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The prices of the days from `from` on which the price is under 100, within `days`.
    fn under_100(from: Date, days: usize) -> Vec<String> {
        from.series(1.day())
            .take(days)
            .filter(|day| price_on(*day).parse::<f64>().unwrap() < 100.0)
            .map(|day| format!("{day} {}", price_on(day)))
            .collect()
    }

    #[test]
    fn the_fortnight_of_the_story_is_as_written() {
        assert_eq!(under_100(FIRST_DAY, 14), ["2027-03-03 97.5", "2027-03-09 98.4"]);
        let fridays = [date(2027, 3, 5), date(2027, 3, 12)].map(price_on);
        assert_eq!(fridays, ["103.8", "104.7"]);
        assert_eq!(price_on(date(2027, 3, 11)), "100.0");
    }

    #[test]
    fn other_fortnights_drift_and_dip_too() {
        assert_eq!(price_on(date(2027, 2, 28)), "105.2");
        assert_eq!(under_100(date(2027, 3, 15), 14), ["2027-03-17 98.7", "2027-03-23 99.6"]);
        assert_eq!(under_100(date(2026, 11, 30), 90).len(), 17);
    }

    #[test]
    fn a_purchase_happens_once_per_reference() {
        let mut feed = PriceFeed::default();
        let order = |quantity: u64| {
            let order = json!({ "quantity": quantity, "date": "2027-03-03", "client_ref": "op-1" });
            order.as_object().cloned().unwrap()
        };
        let first = feed.answer("buy", &order(3));
        assert_eq!(feed.answer("buy", &order(4)), first);
        let bought =
            Purchase { client_ref: "op-1".to_owned(), quantity: 3, date: date(2027, 3, 3) };
        assert_eq!(feed.purchases(), [bought]);
    }

    #[test]
    fn wrong_arguments_are_named() {
        let answer = |tool: &str, arguments: Value| {
            PriceFeed::default().answer(tool, arguments.as_object().unwrap()).unwrap_err()
        };
        let day = "`date` must be a day as in 2027-03-01";
        assert_eq!(answer("price", json!({ "date": "2027-02-30" })), day);
        assert_eq!(answer("price", json!({ "date": "2027-03-01T10:00" })), day);
        assert_eq!(
            answer("history", json!({ "from": "2027-03-01", "to": "2027-04-01" })),
            "`from` to `to` must span 1 to 31 days, not 32"
        );
        assert_eq!(
            answer("buy", json!({ "quantity": 0 })),
            "`quantity` must be a number from 1 to 1000"
        );
    }
}
