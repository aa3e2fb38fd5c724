//! Manifests are read strictly, and their digests depend on meaning only.

use std::collections::BTreeMap;

use connect::{Idempotent, Manifest, OneOf, Reconcile, ToolRule};
use domain::effect::Effect;

const HOTELS: &str = r#"
[tool.book_hotel]
effect     = "paid"
objects    = { quote = "quote" }
amount     = "quote.total"
currency   = "quote.currency"
recipients = ["guest"]
once_per   = []
card       = ["quote.hotel", "quote.total"]
operation  = "client_ref"
refused    = { path = "error.code", values = ["sold_out", "409"] }
idempotent = { window = "24h" }
undo       = "cancel_booking"
receipt    = "confirmation_number"

[tool.book_hotel.reconcile]
tool          = "find_booking"
by            = "client_ref"
settled_after = "30m"
receipt       = "bookings.0.number"
ended         = { path = "bookings.0.status", values = ["cancelled"] }

[tool.cancel_booking]
effect = "reversible"

[tool.find_booking]
effect  = "read"
reveals = []

[tool.search_hotels]
effect = "read"
issues = { quote = "offers[].id" }
expires = { quote = "valid_until" }
"#;

#[test]
fn every_key_is_kept() {
    let manifest = Manifest::parse(HOTELS).unwrap();
    let names: Vec<&str> = manifest.tools().map(|(name, _)| name).collect();
    assert_eq!(names, ["book_hotel", "cancel_booking", "find_booking", "search_hotels"]);
    let book = manifest.tool("book_hotel").unwrap();
    let one_of = |path: &str, values: &[&str]| OneOf {
        path: path.to_owned(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
    };
    let text = str::to_owned;
    let quote = |path: &str| BTreeMap::from([(text("quote"), text(path))]);
    let expected = ToolRule {
        effect: Effect::Paid,
        description: String::new(),
        objects: quote("quote"),
        amount: Some(text("quote.total")),
        currency: Some(text("quote.currency")),
        recipients: vec![text("guest")],
        once_per: Vec::new(),
        card: vec![text("quote.hotel"), text("quote.total")],
        operation: Some(text("client_ref")),
        reconcile: Some(Reconcile {
            tool: text("find_booking"),
            by: text("client_ref"),
            settled_after: Some(text("30m")),
            receipt: Some(text("bookings.0.number")),
            ended: Some(one_of("bookings.0.status", &["cancelled"])),
        }),
        idempotent: Some(Idempotent { window: text("24h") }),
        undo: Some(text("cancel_booking")),
        receipt: Some(text("confirmation_number")),
        refused: Some(one_of("error.code", &["sold_out", "409"])),
        issues: BTreeMap::new(),
        expires: BTreeMap::new(),
        reveals: Vec::new(),
    };
    assert_eq!(book, &expected);
    let search = manifest.tool("search_hotels").unwrap();
    assert_eq!((&search.issues, &search.expires), (&quote("offers[].id"), &quote("valid_until")));
    assert_eq!(manifest.tool("pay_taxes"), None);
}

#[test]
fn a_whole_manifest_as_a_user_writes_it_is_taken() {
    let manifest = Manifest::parse(testkit::hotel::HOTEL_MANIFEST).unwrap();
    let with_effect = |(_, rule): &(&str, &ToolRule)| rule.effect != Effect::Read;
    let names: Vec<&str> = manifest.tools().filter(with_effect).map(|(name, _)| name).collect();
    assert_eq!(names, ["book_hotel", "cancel_booking"]);
}

#[test]
fn complaints_name_the_whole_path() {
    let complaint = |text: &str| Manifest::parse(text).unwrap_err().to_string();
    let effects = "unknown variant `write`, expected one of `read`, `reversible`, `paid`, \
                   `commitment`, `outward`, `authority`, `human`";
    for (text, expected) in [
        ("[tool.a]\neffect = \"write\"", format!("`tool.a.effect` in the manifest: {effects}")),
        ("[tool.a]\n", "`tool.a` in the manifest: missing field `effect`".to_owned()),
        (
            "title = \"x\"",
            "unknown key `title` in the manifest; at the top only `hosts` and [tool.NAME] tables \
             are known. Correct or remove it"
                .to_owned(),
        ),
        (
            "[tool.a]\neffect = \"read\"\nreconcile = { tool = \"b\", by = \"c\", after = \"1m\" }",
            "unknown key `tool.a.reconcile.after` in the manifest; expected one of `tool`, `by`, \
             `settled_after`, `receipt`, `ended`. Correct or remove it"
                .to_owned(),
        ),
        (
            "[tool.a]\neffect = \"paid\"\nundo = \"b\"",
            "`tool.a.undo` in the manifest: there is no [tool.b]; add its entry".to_owned(),
        ),
        (
            "[tool.a]\neffect = \"paid\"\noperation = \"c\"\nreceipt = \"r\"\n\
             reconcile = { tool = \"a\", by = \"c\" }",
            "`tool.a.reconcile.tool` in the manifest: [tool.a] must be an entry with effect = \
             \"read\""
                .to_owned(),
        ),
    ] {
        assert_eq!(complaint(text), expected);
    }
    let misspelt = complaint("[tool.a]\neffect = \"read\"\nreveal = [\"q\"]");
    assert!(misspelt.starts_with("unknown key `tool.a.reveal` in the manifest; expected one of"));
    assert!(complaint("[tool.a").starts_with("the manifest is not valid TOML"));
}

#[test]
fn digests_follow_the_meaning() {
    let manifest = Manifest::parse(HOTELS).unwrap();
    let commented = Manifest::parse(&format!("# checked by hand\n{HOTELS}")).unwrap();
    assert_eq!(commented.digest(), manifest.digest());
    let loosened = HOTELS.replace("\"paid\"", "\"read\"");
    let loosened = Manifest::parse(&loosened).unwrap();
    assert_ne!(loosened.digest(), manifest.digest());
    assert_ne!(loosened.entry_digest("book_hotel"), manifest.entry_digest("book_hotel"));
    assert_eq!(loosened.entry_digest("find_booking"), manifest.entry_digest("find_booking"));
}

/// The complaint about an entry that says this beside its effect, after `tool.a.`.
fn complaint(keys: &str) -> Option<String> {
    let found = "[tool.find]\neffect = \"read\"";
    let text = format!("[tool.a]\neffect = \"paid\"\n{keys}\n{found}");
    let error = Manifest::parse(&text).err()?.to_string();
    Some(error.strip_prefix("`tool.a.").unwrap_or(&error).to_owned())
}

/// Asserts that each of these is refused, in words that begin like this.
fn refused(cases: &[(&str, &str)]) {
    for (keys, expected) in cases {
        let complaint = complaint(keys).unwrap_or_default();
        assert!(complaint.starts_with(expected), "{keys}\n gave: {complaint}");
    }
}

fn taken(cases: &[&str]) {
    for keys in cases {
        assert_eq!(complaint(keys), None, "{keys}");
    }
}

#[test]
fn amounts_come_from_objects_that_were_issued() {
    const QUOTE: &str = "objects = { quote = \"offer\" }\n";
    let with = |keys: &str| format!("{QUOTE}{keys}");
    taken(&[
        "",
        &with("amount = \"quote.total\"\ncurrency = \"EUR\""),
        &with("amount = \"quote.rooms.0.total\"\ncurrency = \"quote.currency\""),
        "card = [\"quote\", \"quote.total\"]",
        "recipients = [\"to\", \"copy_to\"]",
    ]);
    let object = "must begin with an argument of `objects` and go on into the snapshot";
    let no_path = "is no path to one value: names, or numbers of items from 0";
    refused(&[
        (
            &with("amount = \"total\"\ncurrency = \"EUR\""),
            &format!("amount` in the manifest: `total` {object}"),
        ),
        (
            &with("amount = \"quote\"\ncurrency = \"EUR\""),
            &format!("amount` in the manifest: `quote` {object}"),
        ),
        (
            "amount = \"quote.total\"\ncurrency = \"EUR\"",
            &format!("amount` in the manifest: `quote.total` {object}"),
        ),
        (
            &with("amount = \"quote.offers[].total\"\ncurrency = \"EUR\""),
            &format!("amount` in the manifest: `quote.offers[].total` {no_path}"),
        ),
        // The currency could be the model's own word.
        (
            &with("amount = \"quote.total\"\ncurrency = \"currency\""),
            &format!("currency` in the manifest: `currency` {object}"),
        ),
        (
            &with("amount = \"quote.total\"\ncurrency = \"other.currency\""),
            &format!("currency` in the manifest: `other.currency` {object}"),
        ),
        (
            &with("amount = \"quote.total\""),
            "currency` in the manifest: missing beside `amount`: say where the currency stands",
        ),
        ("currency = \"EUR\"", "amount` in the manifest: missing beside `currency`"),
        ("currency = 7", "currency` in the manifest: invalid type: integer `7`, expected a string"),
        ("card = [\"quote..total\"]", &format!("card` in the manifest: `quote..total` {no_path}")),
        ("card = [\"\"]", &format!("card` in the manifest: `` {no_path}")),
        ("recipients = \"to\"", "recipients` in the manifest: invalid type: string \"to\""),
        ("recipients = [\"\"]", "recipients` in the manifest: must be names of arguments"),
    ]);
}

#[test]
fn expiries_belong_to_what_is_issued() {
    taken(&["issues = { quote = \"offers[].id\" }\nexpires = { quote = \"valid.until\" }"]);
    refused(&[
        (
            "issues = { quote = \"id\" }\nexpires = { offer = \"until\" }",
            "expires.offer` in the manifest: there is no `offer` in `issues`; add its path",
        ),
        (
            "issues = { quote = \"id\" }\nexpires = { quote = \"[].until\" }",
            "expires.quote` in the manifest: `[].until` is no path to one value",
        ),
        (
            "issues = { quote = \"id\" }\nexpires = { quote = 20 }",
            "expires.quote` in the manifest: invalid type: integer `20`, expected a string",
        ),
    ]);
}

#[test]
fn answers_and_promises_are_told_exactly() {
    let look = |keys: &str| {
        format!("operation = \"ref\"\n[tool.a.reconcile]\ntool = \"find\"\nby = \"ref\"\n{keys}")
    };
    taken(&[
        "refused = { path = \"status\", values = [\"declined\"] }",
        &look("receipt = \"booking.number\""),
        &look("receipt = \"n\"\nended = { path = \"status\", values = [\"gone\"] }"),
        &format!("receipt = \"number\"\n{}", look("settled_after = \"30m\"")),
        "operation = \"ref\"\nidempotent = { window = \"24h\" }",
    ]);
    for good in ["1s", "90s", "007m", "24h", "366d"] {
        taken(&[&look(&format!("receipt = \"n\"\nsettled_after = \"{good}\""))]);
    }
    for odd in [
        "",
        "m",
        "0s",
        "30",
        "30 m",
        "-1m",
        "+5m",
        "1.5h",
        "30min",
        "367d",
        "99999999999999999999d",
    ] {
        let expected =
            format!("`{odd}` is no length of time: a whole number and s, m, h or d, as in");
        refused(&[
            (
                &look(&format!("receipt = \"n\"\nsettled_after = \"{odd}\"")),
                &format!("reconcile.settled_after` in the manifest: {expected}"),
            ),
            (
                &format!("operation = \"ref\"\nidempotent = {{ window = \"{odd}\" }}"),
                &format!("idempotent.window` in the manifest: {expected}"),
            ),
        ]);
    }
    refused(&[
        ("receipt = \"a[]\"", "receipt` in the manifest: `a[]` is no path to one value"),
        (
            "refused = { path = \"a.\", values = [\"x\"] }",
            "refused.path` in the manifest: `a.` is no path to one value",
        ),
        (
            "refused = { path = \"a\", values = [] }",
            "refused.values` in the manifest: must name at least one value",
        ),
        ("refused = { path = \"a\" }", "refused` in the manifest: missing field `values`"),
        (
            "refused = { path = \"a\", values = [409] }",
            "refused.values` in the manifest: invalid type: integer `409`, expected a string",
        ),
        (
            "refused = { path = \"a\", value = [\"x\"] }",
            "unknown key `tool.a.refused.value` in the manifest; expected `path` or `values`",
        ),
        (
            &look("receipt = \"a..b\""),
            "reconcile.receipt` in the manifest: `a..b` is no path to one value",
        ),
        (&look(""), "reconcile.receipt` in the manifest: missing"),
        (
            &look("receipt = \"n\"\nended = { path = \"\", values = [\"x\"] }"),
            "reconcile.ended.path` in the manifest: `` is no path to one value",
        ),
        (
            &look("receipt = \"n\"\nended = { path = \"a\", values = [] }"),
            "reconcile.ended.values` in the manifest: must name at least one value",
        ),
        (
            &look("receipt = \"n\"\nended = { path = \"a\", values = [\"x\"], not = 1 }"),
            "unknown key `tool.a.reconcile.ended.not` in the manifest; expected `path` or `values`",
        ),
        // Without our id in the call a look would find nothing and prove nothing.
        (
            "receipt = \"n\"\nreconcile = { tool = \"find\", by = \"ref\" }",
            "reconcile` in the manifest: needs `operation`",
        ),
        ("idempotent = { window = \"1h\" }", "idempotent` in the manifest: needs `operation`"),
        (
            "objects = { quote = \"offer\" }\noperation = \"quote\"",
            "operation` in the manifest: must be an argument of its own",
        ),
        ("operation = \"\"", "operation` in the manifest: must be an argument of its own"),
    ]);
}
