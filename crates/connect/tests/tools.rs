//! Which tools may be called directly, and what the others are told. No process is started here.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;

use connect::{
    ConfigError, ConnectLimits, Connectors, Effect, Manifest, Refusal, ServerConfig, ToolEntry,
};

const MANIFEST: &str = r#"
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
        command: "/nonexistent".to_owned(),
        args: Vec::new(),
        env: BTreeMap::from([("TOKEN".to_owned(), "s3cret".to_owned())]),
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
            "zoo.buy",
            "zoo.captcha",
            "zoo.grant",
            "zoo.price",
            "zoo.search",
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
fn only_reads_that_reveal_nothing_get_a_handle() {
    let connectors = connectors(&["bank"]).unwrap();
    assert_eq!(connectors.read_tool("bank.price").unwrap().name(), "bank.price");
    let refused = |tool: &str| connectors.read_tool(tool).unwrap_err().to_string();
    let next = "It needs a release by the person, which this version cannot ask for yet. Tell the \
                person with send_to_user what you would do, with all its details, and let them do it.";
    let carries = "`bank.search` reads, but query would carry data to someone who may not have it.";
    for (tool, fact) in [
        ("bank.buy", "`bank.buy` is of tier paid: it acts on the world."),
        ("bank.search", carries),
        ("bank.grant", "`bank.grant` is of tier authority: it acts on the world."),
        ("bank.captcha", "`bank.captcha` is of tier human: only a person may do it."),
    ] {
        assert_eq!(refused(tool), format!("{fact} {next}"));
    }
    assert_eq!(
        refused("bank.prices"),
        "there is no tool `bank.prices` in any manifest. Near names: bank.price. A tool that its \
         server offers but no manifest names is of tier human: ask the user to add an entry."
    );
    for unknown in ["", ".", "bank", "bank.", "bank.price.x", "casino.price"] {
        let refusal = connectors.read_tool(unknown).unwrap_err();
        assert!(matches!(refusal, Refusal::Unknown { .. }), "{unknown}: {refusal}");
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
