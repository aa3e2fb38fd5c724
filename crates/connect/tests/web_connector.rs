//! The web among the other connectors: its addresses are objects, its answers say where they are from.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use connect::guard::{Client, GuardLimits, Resolve, Resolving};
use connect::web::{Web, WebLimits};
use connect::{
    Command, ConfigError, ConnectError, ConnectLimits, Connectors, Level, Manifest, Needed, Reach,
    Refusal, ServerConfig, ToolAnswer,
};
use serde_json::Map;
use testkit::site::{Reply, Site};

const LIMIT: Duration = Duration::from_secs(60);

/// Knows no name; the site is reached by address.
struct NoNames;

impl Resolve for NoNames {
    fn resolve<'a>(&'a self, _host: &'a str) -> Resolving<'a> {
        Box::pin(std::future::ready(Err(io::Error::other("no such name"))))
    }
}

/// The web beside a connector of this name.
fn connectors(name: &str, site: &Site) -> Result<Connectors, ConfigError> {
    let program = "/nonexistent".to_owned();
    let config = ServerConfig {
        name: name.to_owned(),
        reach: Reach::Command(Command { program, args: Vec::new(), env: Default::default() }),
        manifest: Manifest::parse("[tool.x]\neffect = \"read\"").unwrap(),
    };
    let allowed = vec![site.address()];
    let guard = Client::new(Arc::new(NoNames), GuardLimits::default(), allowed).unwrap();
    let web = Web::new(guard, None, WebLimits::default()).unwrap();
    Connectors::new(vec![config], ConnectLimits::default()).unwrap().with_web(web)
}

#[tokio::test]
async fn a_page_is_fetched_by_an_address_that_was_issued() {
    let site = Site::start().await.unwrap();
    site.put("/", Reply::redirect("/news"));
    site.put("/news", Reply::page("text/html; charset=utf-8", "<a href='/a'>More</a>"));
    let connectors = connectors("zoo", &site).unwrap();
    let names: Vec<&str> = connectors.tools().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["web.fetch_page", "web.search", "zoo.x"]);

    let wanted = || {
        let arguments = Map::from_iter([("url".to_owned(), site.url("/").into())]);
        connectors.wanted("web.fetch_page", arguments).unwrap()
    };
    let (argument, kind) = ("url".to_owned(), "url".to_owned());
    let id = site.url("/");
    let needed = Needed { argument: argument.clone(), kind: Some(kind.clone()), id: id.clone() };
    assert_eq!(wanted().needs(), [needed]);
    let refusal = Refusal::NotIssued { tool: "web.fetch_page".to_owned(), argument, kind, id };
    assert_eq!(wanted().cleared(|_| false).unwrap_err(), refusal);
    assert_eq!(site.asked().len(), 0);

    let answer = connectors.call(wanted().cleared(|_| true).unwrap(), LIMIT).await.unwrap();
    let (news, more) = (site.url("/news"), site.url("/a"));
    let expected = ToolAnswer {
        text: answer.text.clone(),
        is_error: false,
        provenance: format!("web:{news}"),
        level: Level::Web,
        // A page's own links stand in its text and may not be followed for that.
        issued: Vec::new(),
    };
    assert_eq!(answer, expected);
    assert!(answer.text.contains("More") && answer.text.contains(&more), "{}", answer.text);
    let (of, schema) = ("web.search", connectors.schema("web.search").await.unwrap());
    assert!(schema.name == of && schema.parameters.contains("\"query\""), "{schema:?}");
    let checked = connectors.check().await;
    assert_eq!(checked[0], ("web".to_owned(), Ok(())));
    let wrong = connectors.wanted("web.search", Map::new()).unwrap().cleared(|_| true).unwrap();
    let wrong = connectors.call(wrong, LIMIT).await;
    assert!(matches!(wrong, Err(ConnectError::Rejected { code: -32_602, .. })), "{wrong:?}");
}

#[tokio::test]
async fn nobody_else_is_named_web() {
    let site = Site::start().await.unwrap();
    let twice = ConfigError::Twice { name: "web".to_owned() };
    assert_eq!(connectors("web", &site).unwrap_err(), twice);
}
