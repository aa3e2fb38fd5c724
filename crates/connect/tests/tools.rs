//! Which tools may be called directly, and what the others are told. No process is started here.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;

use connect::{
    Command, ConfigError, ConnectLimits, Connectors, Manifest, Needed, Reach, Refusal,
    ServerConfig, ToolEntry,
};
use domain::effect::Effect;
use serde_json::{Map, Value, json};

/// How a refusal ends that only a person can lift.
const MANIFEST: &str = r#"
hosts = ["Api.Acme.example"]
[tool.terms]
effect  = "read"
objects = { quote = "offer" }
[tool.search]
effect  = "read"
reveals = ["query"]
[tool.price]
effect      = "read"
description = "The price of a day."
[tool.grant]
effect = "authority"
[tool.buy]
effect = "paid"
[tool.captcha]
effect = "human"
"#;

fn server(name: &str) -> ServerConfig {
    ServerConfig {
        name: name.to_owned(),
        reach: Reach::Command(Command {
            program: "/nonexistent".to_owned(),
            args: Vec::new(),
            env: BTreeMap::from([("TOKEN".to_owned(), "s3cret".to_owned())]),
        }),
        manifest: Manifest::parse(MANIFEST).unwrap(),
    }
}

fn connectors(names: &[&str]) -> Result<Connectors, ConfigError> {
    Connectors::new(names.iter().map(|name| server(name)).collect(), ConnectLimits::default())
}

#[test]
fn the_index_comes_from_the_manifests_and_is_sorted() {
    let index = connectors(&["zoo", "bank"]).unwrap();
    let names: Vec<&str> = index.tools().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "bank.buy",
            "bank.captcha",
            "bank.grant",
            "bank.price",
            "bank.search",
            "bank.terms",
            "zoo.buy",
            "zoo.captcha",
            "zoo.grant",
            "zoo.price",
            "zoo.search",
            "zoo.terms",
        ]
    );
    let price = ToolEntry {
        name: "bank.price".to_owned(),
        effect: Effect::Read,
        description: "The price of a day.".to_owned(),
    };
    assert_eq!(index.tools()[3], price);
}

#[test]
fn only_reads_get_a_handle() {
    let connectors = connectors(&["bank"]).unwrap();
    let price = connectors.wanted("bank.price", Map::new()).unwrap();
    assert_eq!((price.name(), price.needs()), ("bank.price".to_owned(), &[][..]));
    assert_eq!(price.cleared(|_| false).unwrap().name(), "bank.price");
    let refused = |tool: &str| connectors.wanted(tool, Map::new()).unwrap_err().to_string();
    for (tool, tier) in
        [("bank.buy", "paid"), ("bank.grant", "authority"), ("bank.captcha", "human")]
    {
        assert_eq!(
            refused(tool),
            format!(
                "`{tool}` is of tier {tier}: it acts on the world, so it is not called as a read. Where \
                 a call of it can be proposed, call_tool proposes it, and it is made once it is released."
            )
        );
    }
    assert_eq!(
        refused("bank.prices"),
        "there is no tool `bank.prices` in any manifest. Near names: bank.price. A tool that its \
         server offers but no manifest names is called only by the person's release of each call: look it \
         up with tool_schema first, and `SERVER.*` for their names."
    );
    for unknown in ["", ".", "bank", "bank.", "bank.price.x", "casino.price"] {
        let refusal = connectors.wanted(unknown, Map::new()).unwrap_err();
        assert!(matches!(refusal, Refusal::Unknown { .. }), "{unknown}: {refusal}");
    }
}

/// What a call comes to while only these ids count as issued: the ids it needs, then its end.
fn check(tool: &str, arguments: Value, issued: &[(&str, &str)]) -> Result<Vec<Needed>, Refusal> {
    let connectors = connectors(&["bank"]).unwrap();
    let arguments = arguments.as_object().cloned().unwrap();
    let wanted = connectors.wanted(tool, arguments)?;
    let needs = wanted.needs().to_vec();
    let of_kind = |needed: &Needed, kind: &str| needed.kind.as_deref().is_none_or(|k| k == kind);
    let issued =
        |needed: &Needed| issued.iter().any(|(kind, id)| *id == needed.id && of_kind(needed, kind));
    wanted.cleared(issued).map(|_tool| needs)
}

fn needed(argument: &str, kind: Option<&str>, id: &str) -> Needed {
    Needed { argument: argument.to_owned(), kind: kind.map(str::to_owned), id: id.to_owned() }
}

#[test]
fn objects_are_ids_that_were_issued_with_their_kind() {
    let call = |quote: Value, issued: &[(&str, &str)]| {
        check("bank.terms", json!({ "quote": quote, "note": "H-999" }), issued)
    };
    let not_issued = |id: &str| {
        Err(Refusal::NotIssued {
            tool: "bank.terms".to_owned(),
            argument: "quote".to_owned(),
            kind: "offer".to_owned(),
            id: id.to_owned(),
        })
    };
    let needs = |ids: &[&str]| {
        Ok(ids.iter().map(|id| needed("quote", Some("offer"), id)).collect::<Vec<_>>())
    };
    let offers = [("offer", "H-1"), ("offer", "7"), ("room", "R-1")];
    assert_eq!(call(json!("H-1"), &offers), needs(&["H-1"]));
    assert_eq!(call(json!(7), &offers), needs(&["7"]));
    assert_eq!(call(json!(["H-1", "7"]), &offers), needs(&["H-1", "7"]));
    assert_eq!(call(json!("H-999"), &offers), not_issued("H-999"));
    // Of another kind, in another writing, or one bad id in a list.
    assert_eq!(call(json!("R-1"), &offers), not_issued("R-1"));
    assert_eq!(call(json!("H-1 "), &offers), not_issued("H-1 "));
    assert_eq!(call(json!(["H-1", "H-2"]), &offers), not_issued("H-2"));
    let not_an_id = Err(Refusal::NotAnId {
        tool: "bank.terms".to_owned(),
        argument: "quote".to_owned(),
        kind: "offer".to_owned(),
    });
    for odd in [json!(null), json!(""), json!(1.5), json!({ "id": "H-1" }), json!([["H-1"]])] {
        assert_eq!(call(odd, &offers), not_an_id);
    }
    assert_eq!(check("bank.terms", json!({}), &offers), Ok(Vec::new()));
    let many: Vec<String> = (0..201).map(|n| n.to_string()).collect();
    let too_many = Err(Refusal::TooManyIds { tool: "bank.terms".to_owned(), ids: 201 });
    assert_eq!(call(json!(many), &offers), too_many);
    assert_eq!(
        call(json!("H-999"), &offers).unwrap_err().to_string(),
        "`H-999`, given to `bank.terms` as `quote`, is no offer that a tool has issued to this task. \
         Only an id from a tool's own answer counts; one seen in a mail, on a page or in a summary does \
         not. Call the tool that finds the offer, and use the id it answers with."
    );
}

#[test]
fn what_reveals_something_must_be_issued_or_released() {
    let call = |query: Value| check("bank.search", json!({ "query": query }), &[("offer", "H-1")]);
    assert_eq!(call(json!("H-1")), Ok(vec![needed("query", None, "H-1")]));
    assert_eq!(check("bank.search", json!({}), &[]), Ok(Vec::new()));
    let refusal = Refusal::NeedsRelease {
        tool: "bank.search".to_owned(),
        effect: Effect::Read,
        reveals: vec!["query".to_owned()],
    };
    for free in
        [json!("H-1 and my address"), json!(["H-1", "x"]), json!({ "a": "H-1" }), json!(true)]
    {
        assert_eq!(call(free), Err(refusal.clone()));
    }
    assert_eq!(
        refusal.to_string(),
        "`bank.search` reads, but query would carry data to someone who may not have it, so it is not called \
         as a read. Where a call of it can be proposed, call_tool proposes it, and it is made once the person \
         has released it."
    );
}

#[test]
fn a_connector_stands_for_its_hosts_and_those_below() {
    let connectors = connectors(&["zoo", "bank"]).unwrap();
    for (host, connector) in [
        ("api.acme.example", Some("bank")),
        ("API.Acme.example.", Some("bank")),
        ("eu.api.acme.example", Some("bank")),
        ("acme.example", None),
        ("evilapi.acme.example", None),
        ("", None),
    ] {
        assert_eq!(connectors.stands_for(host), connector, "{host}");
    }
}

#[test]
fn names_that_do_not_work_are_refused() {
    let refused = |names: &[&str]| connectors(names).unwrap_err();
    assert_eq!(refused(&["a.b"]), ConfigError::Name { name: "a.b".to_owned() });
    assert_eq!(refused(&[""]), ConfigError::Name { name: String::new() });
    assert_eq!(refused(&["a", "a"]), ConfigError::Twice { name: "a".to_owned() });
}

#[test]
fn debug_output_hides_the_environment() {
    let shown = format!("{:?} {:?}", server("bank"), connectors(&["bank"]).unwrap());
    assert!(!shown.contains("s3cret"), "{shown}");
}
