//! Manifests are read strictly, and their digests depend on meaning only.

use connect::{Effect, Manifest, Reconcile};

const HOTELS: &str = r#"
[tool.book_hotel]
effect     = "paid"
objects    = { quote = "quote" }
amount     = "quote.total"
once_per   = []
card       = ["quote.hotel", "quote.total"]
operation  = "client_ref"
reconcile  = { tool = "find_booking", by = "client_ref", settled_after = "30m" }
idempotent = { window = "24h" }
undo       = "cancel_booking"
receipt    = "confirmation_number"

[tool.cancel_booking]
effect = "reversible"

[tool.find_booking]
effect  = "read"
reveals = []

[tool.search_hotels]
effect = "read"
issues = { quote = "offers[].id" }
"#;

#[test]
fn every_key_is_kept() {
    let manifest = Manifest::parse(HOTELS).unwrap();
    let names: Vec<&str> = manifest.tools().map(|(name, _)| name).collect();
    assert_eq!(names, ["book_hotel", "cancel_booking", "find_booking", "search_hotels"]);
    let book = manifest.tool("book_hotel").unwrap();
    assert_eq!(book.effect, Effect::Paid);
    assert_eq!(book.objects["quote"], "quote");
    assert_eq!(book.amount.as_deref(), Some("quote.total"));
    assert_eq!(book.card, ["quote.hotel", "quote.total"]);
    assert_eq!(
        book.reconcile,
        Some(Reconcile {
            tool: "find_booking".to_owned(),
            by: "client_ref".to_owned(),
            settled_after: Some("30m".to_owned()),
        })
    );
    assert_eq!(book.idempotent.as_ref().unwrap().window, "24h");
    assert_eq!(manifest.tool("search_hotels").unwrap().issues["quote"], "offers[].id");
    assert_eq!(manifest.tool("pay_taxes"), None);
}

#[test]
fn complaints_name_the_whole_path() {
    let complaint = |text: &str| Manifest::parse(text).unwrap_err().to_string();
    let effects = "unknown variant `write`, expected one of `read`, `reversible`, `paid`, \
                   `commitment`, `outward`, `authority`, `human`";
    for (text, expected) in [
        ("[tool.a]\neffect = \"write\"", format!("`tool.a` in the manifest: {effects}")),
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
             `settled_after`. Correct or remove it"
                .to_owned(),
        ),
        (
            "[tool.a]\neffect = \"paid\"\nundo = \"b\"",
            "`tool.a.undo` in the manifest: there is no [tool.b]; add its entry".to_owned(),
        ),
        (
            "[tool.a]\neffect = \"paid\"\nreconcile = { tool = \"a\", by = \"c\" }",
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
