//! What is frozen, what a grant covers, and what a person is told of both. The decisions are in `decisions`.

use std::collections::BTreeMap;

use base::{Amount, Currency, Digest, TaskVersionId, Timestamp};
use serde_json::{Map, Value, json};

use super::*;

mod decisions;
mod rules;

/// The time of every test here.
const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fn id<T: base::Id>(n: u32) -> T {
    base::parse_id(&format!("00000000-0000-0000-0000-{n:012}")).unwrap()
}

fn hkd() -> Currency {
    Currency::parse("HKD").unwrap()
}

fn hkd_amount(minor: i64) -> Amount {
    Amount { minor, currency: hkd() }
}

/// A tool that pays for an offer which was issued before.
fn spec() -> Spec {
    Spec {
        tool: "hotel.book_hotel".into(),
        effect: Effect::Paid,
        entry: Digest::of(b"entry"),
        objects: [("quote".to_owned(), "quote".to_owned())].into(),
        amount: Some("quote.price.total".into()),
        currency: Some("quote.price.currency".into()),
        recipients: vec!["guest".into()],
        once_per: vec!["guest".into()],
        card: ["quote.hotel", "quote.price.total", "guest", "late_arrival"].map(Into::into).into(),
        operation: Some("client_ref".into()),
        undo: Some("hotel.cancel".into()),
        can_look_up: true,
        settled_after_ms: Some(60_000),
        idempotent_ms: None,
    }
}

fn offer() -> Object {
    let snapshot =
        json!({"hotel": "Harbour View", "price": {"total": "2600.00", "currency": "HKD"}});
    Object {
        argument: "quote".into(),
        kind: "quote".into(),
        id: "q-3".into(),
        digest: Digest::of(snapshot.to_string().as_bytes()),
        snapshot,
        expires_at: Some(NOW.plus_ms(60_000)),
    }
}

fn arguments() -> Map<String, Value> {
    map(json!({"quote": "q-3", "guest": "Ada Lovelace"}))
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn version() -> TaskVersionId {
    id(2)
}

fn frozen() -> Frozen {
    freeze(&spec(), &arguments(), &[offer()], Some(version()), None).unwrap()
}

/// The content of the story, or why there is none, in words for the model.
fn told(spec: &Spec, arguments: Value, objects: &[Object]) -> Result<Content, String> {
    let frozen = freeze(spec, &map(arguments), objects, None, None).map_err(|e| e.to_string())?;
    // Whatever is frozen is what its bytes say.
    assert_eq!(Content::read(&frozen.bytes), Ok(frozen.content.clone()));
    assert_eq!(Digest::of(&frozen.bytes), frozen.digest);
    Ok(frozen.content)
}

#[test]
fn a_call_is_frozen_as_rfc_8785_bytes() {
    let frozen = frozen();
    let (offer, entry) = (offer().digest, Digest::of(b"entry"));
    let errand = Digest::of(br#"{"guest":"Ada Lovelace"}"#);
    let wanted = format!(
        concat!(
            r#"{{"arguments":{{"guest":"Ada Lovelace","quote":"q-3"}},"#,
            r#""card":[{{"label":"hotel","value":"Harbour View"}},"#,
            r#"{{"label":"total","value":"2600.00"}},"#,
            r#"{{"label":"guest","value":"Ada Lovelace"}},"#,
            r#"{{"label":"late arrival","value":"not given"}}],"#,
            r#""compensates":null,"currency":"HKD","effect":"paid","entry":"{entry}","#,
            r#""errand":"{errand}","minor":"260000","#,
            r#""objects":[{{"argument":"quote","digest":"{offer}","id":"q-3","kind":"quote"}}],"#,
            r#""operation":"hotel.book_hotel","recipients":["Ada Lovelace"],"#,
            r#""task_version":"00000000-0000-0000-0000-000000000002"}}"#
        ),
        entry = entry,
        errand = errand,
        offer = offer,
    );
    assert_eq!(String::from_utf8(frozen.bytes.clone()).unwrap(), wanted);
    assert_eq!(frozen.digest, Digest::of(wanted.as_bytes()));
    assert_eq!(Content::read(&frozen.bytes), Ok(frozen.content.clone()));
    assert_eq!(frozen.content.amount(), Some(hkd_amount(260_000)));
    assert_eq!(frozen.expires_at, Some(NOW.plus_ms(60_000)));
    let call = frozen.content.call(Some("client_ref"), "op-1");
    let sent = json!({"client_ref": "op-1", "guest": "Ada Lovelace", "quote": "q-3"});
    assert_eq!(Value::Object(call), sent);
    assert_eq!(frozen.content.call(None, "op-1"), arguments());
    assert!(Content::read(&frozen.bytes[1..]).is_err());
}

#[test]
fn the_same_call_has_the_same_digest_and_another_call_another() {
    let spec =
        Spec { objects: [("a".into(), "x".into()), ("b".into(), "y".into())].into(), ..plain() };
    let object = |argument: &str, kind: &str, expires_ms| Object {
        argument: argument.into(),
        kind: kind.into(),
        id: format!("{argument}-1"),
        expires_at: Some(NOW.plus_ms(expires_ms)),
        ..offer()
    };
    let (a, b) = (object("a", "x", 9), object("b", "y", 5));
    let digest = |arguments: Value, objects: &[Object], version: Option<TaskVersionId>| {
        freeze(&spec, &map(arguments), objects, version, None).unwrap()
    };
    let call = json!({"a": "a-1", "b": "b-1", "n": 1, "deep": {"p": 1.5, "q": [2]}});
    let first = digest(call.clone(), &[a.clone(), b.clone()], None);
    assert_eq!(first.expires_at, Some(NOW.plus_ms(5)));
    let reordered: Value =
        serde_json::from_str(r#"{"deep":{"q":[2.0],"p":15e-1},"n":1.0,"b":"b-1","a":"a-1"}"#)
            .unwrap();
    assert_eq!(digest(reordered, &[b.clone(), a.clone()], None), first);

    let other = Object { digest: Digest::of(b"later"), ..b.clone() };
    let others = [
        digest(
            json!({"a": "a-1", "b": "b-1", "n": 2, "deep": {"p": 1.5, "q": [2]}}),
            &[a.clone(), b.clone()],
            None,
        ),
        digest(call.clone(), &[a.clone(), other], None),
        digest(call.clone(), &[a.clone(), b.clone()], Some(version())),
        freeze(&spec, &map(call), &[a, b], None, Some(id(7))).unwrap(),
    ];
    let mut digests: Vec<Digest> = others.iter().map(|frozen| frozen.digest).collect();
    digests.push(first.digest);
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 5);
}

/// A tool of which the manifest says little.
fn plain() -> Spec {
    Spec {
        effect: Effect::Reversible,
        objects: BTreeMap::new(),
        amount: None,
        currency: None,
        recipients: Vec::new(),
        once_per: Vec::new(),
        card: Vec::new(),
        operation: None,
        ..spec()
    }
}

#[test]
fn an_errand_is_the_values_that_the_manifest_names_and_nothing_else() {
    let spec = Spec { once_per: vec!["to".into(), "day".into()], ..plain() };
    let errand = |arguments: Value| told(&spec, arguments, &[]).unwrap().errand;
    let first = errand(json!({"to": {"b": 1, "a": 2}, "day": "1", "text": "x"}));
    let same = r#"{"text":"y","day":"1","to":{"a":2.0,"b":1}}"#;
    assert_eq!(errand(serde_json::from_str(same).unwrap()), first);
    assert_ne!(errand(json!({"to": {"b": 1, "a": 2}, "text": "x"})), first);
    assert_ne!(errand(json!({"to": {"b": 1, "a": 3}, "day": "1"})), first);
    // A manifest that names none makes all calls of the tool one errand.
    let one = told(&plain(), json!({"to": 1}), &[]).unwrap().errand;
    assert_eq!(told(&plain(), json!({"to": 2}), &[]).unwrap().errand, one);
}

#[test]
fn the_amount_and_its_currency_come_from_a_snapshot_only() {
    let priced = |price: Value| Object { snapshot: json!({"price": price}), ..offer() };
    let amount = |spec: &Spec, arguments: Value, price: Value| {
        told(spec, arguments, &[priced(price)]).map(|content| (content.minor, content.currency))
    };
    let call =
        || json!({"quote": "q-3", "price": {"total": "1.00", "currency": "USD"}, "code": "USD"});
    let good = || json!({"total": "2600.00", "currency": "HKD"});
    let is = |minor: &str, code: &str| {
        Ok((Some(minor.to_owned()), Some(Currency::parse(code).unwrap())))
    };
    assert_eq!(amount(&spec(), call(), good()), is("260000", "HKD"));
    assert_eq!(
        amount(&spec(), call(), json!({"total": 2600, "currency": "HKD"})),
        is("260000", "HKD")
    );
    assert_eq!(
        amount(&spec(), call(), json!({"total": 2600.5, "currency": "HKD"})),
        is("260050", "HKD")
    );
    assert_eq!(
        amount(&spec(), call(), json!({"total": 2600, "currency": "JPY"})),
        is("2600", "JPY")
    );
    let written = Spec { currency: Some("KWD".into()), ..spec() };
    assert_eq!(amount(&written, call(), json!({"total": "1.005"})), is("1005", "KWD"));
    let none = Spec { amount: None, ..spec() };
    assert_eq!(amount(&none, call(), good()), Ok((None, None)));

    let refused = Err(ContentError::Amount("quote.price.total".into()).to_string());
    for price in [
        json!({"currency": "HKD"}),
        json!({"total": "2600.00"}),
        json!({"total": "2600.00", "currency": "hkd"}),
        json!({"total": "2600.00", "currency": 344}),
        json!({"total": "-1", "currency": "HKD"}),
        json!({"total": -1, "currency": "HKD"}),
        json!({"total": 1e30, "currency": "HKD"}),
        json!({"total": 0.001, "currency": "HKD"}),
        json!({"total": "2,600", "currency": "HKD"}),
        json!({"total": "2600.001", "currency": "HKD"}),
        json!({"total": true, "currency": "HKD"}),
        json!({"total": ["2600.00"], "currency": "HKD"}),
        json!({"total": null, "currency": "HKD"}),
        json!("2600.00"),
    ] {
        assert_eq!(amount(&spec(), call(), price.clone()), refused, "{price}");
    }
    // What the model wrote is believed of neither, wherever a manifest points.
    for (at, currency) in [
        ("price.total", "HKD"),
        ("quote", "HKD"),
        ("quote.price.total", "price.currency"),
        ("quote.price.total", "code"),
        ("quote.price.total", "quote"),
    ] {
        let spec = Spec { amount: Some(at.into()), currency: Some(currency.into()), ..spec() };
        let told = amount(&spec, call(), good());
        assert_eq!(told, Err(ContentError::Amount(at.into()).to_string()), "{at} {currency}");
    }
    let unsaid = Spec { currency: None, ..spec() };
    assert_eq!(amount(&unsaid, call(), good()), refused);
}

#[test]
fn an_argument_that_must_be_an_issued_id_is_exactly_one() {
    let missing = Err("`quote` must be the id of a quote, copied from the answer of a tool".into());
    let call = |quote: Value| json!({"quote": quote, "guest": "Ada"});
    let wrong = |object: Object| told(&spec(), call(json!("q-3")), &[object]).map(|_| ());
    assert_eq!(told(&spec(), call(json!("q-3")), &[]).map(|_| ()), missing);
    assert_eq!(wrong(Object { argument: "guest".into(), ..offer() }), missing);
    assert_eq!(wrong(Object { kind: "room".into(), ..offer() }), missing);
    // An object other than the one that the call names would lend it its price.
    assert_eq!(wrong(Object { id: "q-4".into(), ..offer() }), missing);
    for quote in [json!(["q-3"]), json!({"id": "q-3"}), json!(null), json!(true)] {
        assert_eq!(told(&spec(), call(quote), &[offer()]).map(|_| ()), missing);
    }
    assert_eq!(told(&spec(), json!({"guest": "Ada"}), &[offer()]).map(|_| ()), missing);
    let cheap = Object { id: "q-4".into(), kind: "room".into(), ..offer() };
    assert_eq!(told(&spec(), call(json!("q-3")), &[cheap, offer()]).map(|_| ()), missing);
    assert_eq!(wrong(offer()), Ok(()));
    // Servers number what they issue too.
    let numbered = Object { id: "42".into(), ..offer() };
    assert!(told(&spec(), call(json!(42)), &[numbered]).is_ok());
}

#[test]
fn recipients_are_texts() {
    let spec = Spec { recipients: vec!["to".into(), "copy".into()], ..plain() };
    let recipients =
        |arguments: Value| told(&spec, arguments, &[]).map(|content| content.recipients);
    assert_eq!(recipients(json!({})), Ok(vec![]));
    let both = json!({"copy": ["b@example.org", "c@example.org"], "to": "a@example.org"});
    let all = ["a@example.org", "b@example.org", "c@example.org"].map(str::to_owned).to_vec();
    assert_eq!(recipients(both), Ok(all));
    let refused =
        Err("`copy` must be a text, or a list of texts, that says who receives it".into());
    for copy in [json!(1), json!(null), json!(true), json!({}), json!(["a", 1]), json!([["a"]])] {
        assert_eq!(recipients(json!({"to": "a", "copy": copy})), refused);
    }
}

#[test]
fn a_card_shows_what_could_hide_something_and_leaves_nothing_out_in_silence() {
    let lines = |spec: &Spec, arguments: Value, objects: &[Object]| -> Vec<(String, String)> {
        let card = told(spec, arguments, objects).unwrap().card;
        card.into_iter().map(|line| (line.label, line.value)).collect()
    };
    let pair = |label: &str, value: &str| (label.to_owned(), value.to_owned());
    let mut offer = offer();
    offer.snapshot["hotel"] = json!("Harbour\u{202e}weiV\u{0} \u{200b}\n3");
    let call = json!({"quote": "q-3", "guest": "A\u{1b}[2Kda", "late_arrival": {"at": [1, null]}});
    let wanted = vec![
        pair("hotel", "Harbour\\u{202e}weiV\\u{0} \\u{200b} 3"),
        pair("total", "2600.00"),
        pair("guest", "A\\u{1b}[2Kda"),
        pair("late arrival", r#"{"at":[1,null]}"#),
    ];
    assert_eq!(lines(&spec(), call, &[offer]), wanted);

    // Without a manifest's word every argument is shown whole, under the name that the model gave it.
    let long = "é".repeat(3_000);
    let call = json!({"to": "b", "a.b": "hidden?", "x\u{202e}y": 1, "none": null, "text": long});
    let every = vec![
        pair("a.b", "hidden?"),
        pair("none", "not given"),
        pair("text", &long),
        pair("to", "b"),
        pair("x\\u{202e}y", "1"),
    ];
    assert_eq!(lines(&plain(), call.clone(), &[]), every);
    let many = |n: usize| -> Value {
        Value::Object((0..n).map(|n| (format!("a{n:02}"), json!(n))).collect())
    };
    assert_eq!(lines(&plain(), many(300), &[]).len(), 300);

    // What only people release says whether anybody described it, and hides nothing beside its card.
    let by_hand = Spec { effect: Effect::Human, ..plain() };
    let nobody = "no manifest describes it; what came of it cannot be looked up, you say it";
    let wanted: Vec<_> = [pair("what it does", nobody)].into_iter().chain(every.clone()).collect();
    assert_eq!(lines(&by_hand, call.clone(), &[]), wanted);
    let named = Spec { card: vec!["to".into()], ..by_hand };
    let wanted = vec![every[3].clone(), every[0].clone(), every[1].clone(), every[2].clone()];
    assert_eq!(lines(&named, call.clone(), &[])[..4], wanted);

    // A sentence about it is folded, and says so.
    let told = |call| {
        crate::words::operation(&told(&plain(), call, &[]).unwrap(), crate::words::Language::En)
    };
    let said = told(call);
    assert!(said.contains(&format!("text {}…, to b", "é".repeat(400))), "{said}");
    let said = told(many(23));
    assert!(said.ends_with("a19 19, 3 more on its card)"), "{said}");
}

#[test]
fn the_operation_id_is_ours_and_numbers_are_kept_or_refused() {
    let ours = json!({"quote": "q-3", "guest": "Ada", "client_ref": "mine"});
    assert_eq!(
        told(&spec(), ours, &[offer()]),
        Err("leave `client_ref` out: it is the operation's own id, which the program sets".into())
    );
    // RFC 8785 writes a number as a 64-bit float: an account number must not become its neighbour.
    let exact = json!({"n": 9_007_199_254_740_991_i64, "m": -9_007_199_254_740_991_i64, "x": 0.1});
    assert_eq!(told(&plain(), exact.clone(), &[]).map(|c| Value::Object(c.arguments)), Ok(exact));
    for n in [json!(9_007_199_254_740_993_u64), json!(u64::MAX), json!(i64::MIN)] {
        assert_eq!(
            told(&plain(), json!({"to": [{"account": n}]}), &[]),
            Err("`to` has a whole number of more digits than JSON keeps; write it as a text".into())
        );
    }
}

#[test]
fn a_content_has_a_bound() {
    let of =
        |bytes: usize| freeze(&plain(), &map(json!({"t": "x".repeat(bytes)})), &[], None, None);
    // It stands there twice: in the arguments, and whole on the card.
    let rest = of(1_000).unwrap().bytes.len() - 2_000;
    let most = (64 * 1024 - rest) / 2;
    let long = of(most + 1).unwrap_err();
    assert_eq!(long, ContentError::Long(rest + 2 * most + 2));
    assert_eq!(of(most).map(|frozen| frozen.bytes.len()), Ok(rest + 2 * most));
    assert!(long.to_string().ends_with(" bytes; at most 65536 can be released at once"), "{long}");
}

/// The grant that covers the story's content, with something used of it.
fn grant() -> Grant {
    Grant {
        tool: "hotel.book_hotel".into(),
        times: 3,
        currency: Some(hkd()),
        each: Some(300_000),
        total: Some(820_000),
        to: vec!["Ada Lovelace".into()],
        until: Some(NOW.plus_ms(1)),
        used: Used { count: 2, minor: 560_000 },
    }
}

#[test]
fn a_grant_covers_what_is_within_every_bound_and_says_which_it_is_not() {
    let content = frozen().content;
    assert_eq!(grant().covers(&content, NOW), Ok(()));
    let open = Grant { each: None, until: None, used: Used::default(), ..grant() };
    assert_eq!(open.covers(&content, NOW), Ok(()));

    let usd = Currency::parse("USD").unwrap();
    let times = |n: &str| Limit::Times(n.into());
    let amount = hkd_amount(260_000);
    let flipped = [
        (Grant { until: Some(NOW), ..grant() }, Limit::Ended),
        (Grant { tool: "hotel.book_suite".into(), ..grant() }, Limit::Ended),
        (Grant { times: 2, ..grant() }, times("twice")),
        (Grant { times: 1, ..grant() }, times("once")),
        (Grant { times: 0, ..grant() }, times("0 times")),
        (Grant { to: vec![], ..grant() }, Limit::Recipient("Ada Lovelace".into())),
        (
            Grant { to: vec!["ada lovelace".into()], ..grant() },
            Limit::Recipient("Ada Lovelace".into()),
        ),
        (Grant { currency: Some(usd), ..grant() }, Limit::Currency(hkd())),
        (Grant { currency: None, each: None, total: None, ..grant() }, Limit::Currency(hkd())),
        (Grant { each: Some(259_999), ..grant() }, Limit::Each(amount)),
        (
            Grant { used: Used { count: 2, minor: 560_001 }, ..grant() },
            Limit::Total { amount, left: hkd_amount(259_999) },
        ),
        (
            Grant { used: Used { count: 2, minor: i64::MAX }, ..grant() },
            Limit::Total { amount, left: hkd_amount(0) },
        ),
    ];
    for (grant, limit) in flipped {
        assert_eq!(grant.covers(&content, NOW), Err(limit), "{grant:?}");
    }
}

#[test]
fn what_a_grant_covers_depends_on_the_effect_too() {
    let whoever = || Limit::Recipient("whoever receives it".into());
    let of = |effect, minor: Option<&str>, recipients: &[&str]| Content {
        effect,
        minor: minor.map(Into::into),
        currency: minor.map(|_| hkd()),
        recipients: recipients.iter().map(|name| (*name).to_owned()).collect(),
        ..frozen().content
    };
    let ada = ["Ada Lovelace"];
    let table = [
        (of(Effect::Paid, Some("1"), &[]), Ok(())),
        (of(Effect::Paid, None, &ada), Err(Limit::NoAmount)),
        (of(Effect::Paid, Some("not a number"), &ada), Err(Limit::NoAmount)),
        (of(Effect::Reversible, Some("x"), &ada), Err(Limit::NoAmount)),
        (of(Effect::Reversible, None, &[]), Ok(())),
        (of(Effect::Reversible, Some("300001"), &[]), Err(Limit::Each(hkd_amount(300_001)))),
        (of(Effect::Outward, None, &ada), Ok(())),
        (of(Effect::Outward, None, &[]), Err(whoever())),
        // A price makes nobody a recipient.
        (of(Effect::Outward, Some("1"), &[]), Err(whoever())),
        (of(Effect::Outward, Some("1"), &ada), Ok(())),
        (of(Effect::Outward, None, &["Ada Lovelace", "Eve"]), Err(Limit::Recipient("Eve".into()))),
    ];
    for (content, wanted) in table {
        assert_eq!(grant().covers(&content, NOW), wanted, "{content:?}");
    }
}

#[test]
fn limits_are_told_in_words() {
    let told = [
        Limit::Ended,
        Limit::Times("3 times".into()),
        Limit::Currency(hkd()),
        Limit::NoAmount,
        Limit::Each(hkd_amount(260_000)),
        Limit::Total { amount: hkd_amount(260_000), left: hkd_amount(1) },
        Limit::Recipient("Eve".into()),
    ]
    .map(|limit| limit.to_string());
    let wanted = [
        "the grant has ended",
        "the grant was for 3 times only, and that is used up",
        "the grant is not in HKD",
        "what it costs is not known from the connector's answers",
        "HKD 2 600.00 is more than the grant allows at once",
        "HKD 2 600.00 is more than the HKD 0.01 that the grant has left",
        "the grant does not name Eve",
    ];
    assert_eq!(told, wanted);
}

fn draft() -> GrantDraft {
    GrantDraft {
        tool: "hotel.book_hotel".into(),
        times: 3,
        currency: Some(hkd()),
        each: Some("3000.00".into()),
        total: Some("8200.00".into()),
        to: vec!["Ada".into(), "Bob".into()],
    }
}

#[test]
fn a_drafted_grant_is_within_bounds_or_says_what_to_write() {
    let names = |n: usize| vec!["a".to_owned(); n];
    let good = [
        draft(),
        GrantDraft { times: 1_000, ..draft() },
        GrantDraft { times: 1, each: None, ..draft() },
        GrantDraft { each: Some("8200".into()), ..draft() },
        GrantDraft { currency: None, each: None, total: None, ..draft() },
        GrantDraft { to: names(20), ..draft() },
        GrantDraft { to: vec!["é".repeat(200)], ..draft() },
    ];
    for draft in good {
        assert_eq!(draft.check(), Ok(()), "{draft:?}");
    }
    let number = |text: &str| Amount::parse(text, hkd()).map_err(GrantError::Amount).unwrap_err();
    let bad = [
        (GrantDraft { times: 0, ..draft() }, GrantError::Times),
        (GrantDraft { times: 1_001, ..draft() }, GrantError::Times),
        (GrantDraft { to: names(21), ..draft() }, GrantError::People),
        (GrantDraft { to: vec!["é".repeat(201)], ..draft() }, GrantError::People),
        (GrantDraft { to: vec![" ".into()], ..draft() }, GrantError::People),
        (GrantDraft { to: vec!["a\nb".into()], ..draft() }, GrantError::People),
        (GrantDraft { to: vec!["a\u{202e}b".into()], ..draft() }, GrantError::People),
        (GrantDraft { currency: None, ..draft() }, GrantError::Money),
        (GrantDraft { currency: None, each: None, ..draft() }, GrantError::Money),
        (GrantDraft { total: None, ..draft() }, GrantError::Money),
        (GrantDraft { each: None, total: None, ..draft() }, GrantError::Money),
        (GrantDraft { each: Some("8200.01".into()), ..draft() }, GrantError::Money),
        (GrantDraft { each: Some("3,000".into()), ..draft() }, number("3,000")),
        (GrantDraft { total: Some("-1".into()), ..draft() }, number("-1")),
    ];
    for (draft, error) in bad {
        assert_eq!(draft.check(), Err(error), "{draft:?}");
    }
}

#[test]
fn a_grant_is_told_in_plain_words() {
    let told = [
        draft(),
        GrantDraft { times: 2, each: None, to: vec![], ..draft() },
        GrantDraft {
            times: 1,
            currency: None,
            each: None,
            total: None,
            to: vec!["Ada".into()],
            ..draft()
        },
    ]
    .map(|draft| draft.words(crate::words::Language::En));
    let wanted = [
        "hotel.book_hotel, at most 3 times, HKD 3 000.00 each, HKD 8 200.00 in all, only to Ada, Bob",
        "hotel.book_hotel, at most twice, HKD 8 200.00 in all",
        "hotel.book_hotel, at most once, only to Ada",
    ];
    assert_eq!(told, wanted);
}
