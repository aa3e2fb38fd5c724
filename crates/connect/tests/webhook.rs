//! Webhooks through `verify`: what is taken, and what each refusal says. The signatures are made
//! here; `webhook_signers.rs` lets others make them.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use base::{Secret, Timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use connect::source::webhook::{BODY_BYTES_MAX, Headers, HookError, check_secret, verify};
use connect::source::{Item, Scheme};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

const NOW_S: i64 = 1_796_054_400;
const KEY: &[u8] = b"twenty-six bytes for a key";
const OLD_KEY: &[u8] = b"the key before this one!";

fn hmac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

fn whsec(key: &[u8]) -> Secret {
    secret(&format!("whsec_{}", STANDARD.encode(key)))
}

/// A request, to be changed by each case before it is sent.
#[derive(Clone)]
struct Request {
    scheme: Scheme,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    secrets: Vec<Secret>,
    now_s: i64,
    key_path: Option<&'static str>,
    topic_path: Option<&'static str>,
}

impl Request {
    fn standard(body: &str) -> Self {
        let seconds = NOW_S.to_string();
        let signed = [b"msg_1.", seconds.as_bytes(), b".", body.as_bytes()];
        let signature = format!("v1,{}", STANDARD.encode(hmac(KEY, &signed)));
        Request {
            scheme: Scheme::Standard,
            headers: vec![
                ("Webhook-Id", "msg_1".to_owned()),
                ("webhook-timestamp", seconds),
                ("webhook-signature", signature),
            ],
            body: body.into(),
            secrets: vec![whsec(KEY)],
            now_s: NOW_S,
            key_path: None,
            topic_path: None,
        }
    }

    fn github(event: &str, body: &str) -> Self {
        let signature = format!("sha256={}", hex::encode(hmac(KEY, &[body.as_bytes()])));
        Request {
            scheme: Scheme::Github,
            headers: vec![
                ("X-GitHub-Event", event.to_owned()),
                ("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958".to_owned()),
                ("X-Hub-Signature-256", signature),
            ],
            secrets: vec![secret(std::str::from_utf8(KEY).unwrap())],
            ..Request::standard(body)
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The value of a header, to be read or changed.
    fn header(&mut self, name: &str) -> &mut String {
        let found = |(n, _): &&mut (&str, String)| n.eq_ignore_ascii_case(name);
        self.headers.iter_mut().find(found).map(|(_, value)| value).unwrap()
    }

    fn without(self, name: &str) -> Self {
        self.with(|r| r.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name)))
    }

    fn send(&self) -> Result<Item, HookError> {
        let pairs = self.headers.iter().map(|(name, value)| (*name, value.as_bytes()));
        verify(
            self.scheme,
            &self.secrets,
            &Headers::new(pairs),
            &self.body,
            Timestamp::from_micros(self.now_s * 1_000_000),
            self.key_path,
            self.topic_path,
        )
    }
}

const ORDER: &str = r#"{"type":"order.paid","data":{"order":{"id":4711,
"page":"https://shop.example/o/4711"},"items":[{"sku":"tea"}],"paid":true,"note":"see https://a.example","empty":"","nothing":null}}"#;

#[test]
fn a_signed_request_becomes_an_item() {
    let item = Item {
        external_id: "msg_1".to_owned(),
        key: None,
        topic: Some("order.paid".to_owned()),
        content: ORDER.into(),
        media: "application/json".to_owned(),
        // Whoever orders at the shop could have written it.
        links: Vec::new(),
    };
    assert_eq!(Request::standard(ORDER).send(), Ok(item));
    let body = r#"{"action":"opened","issue":{"number":7,"url":"https://api.example/7",
        "html_url":"https://forge.example/o/r/issues/7"},"repository":{"full_name":"o/r",
        "html_url":"https://forge.example/o/r"},"sender":{"html_url":"https://forge.example/o"}}"#;
    let item = Item {
        external_id: "72d3162e-cc78-11e3-81ab-4c9367dc0958".to_owned(),
        key: Some("o/r#7".to_owned()),
        topic: Some("issues.opened".to_owned()),
        content: body.into(),
        media: "application/json".to_owned(),
        links: vec![
            "https://forge.example/o/r/issues/7".to_owned(),
            "https://forge.example/o/r".to_owned(),
        ],
    };
    assert_eq!(Request::github("issues", body).send(), Ok(item));
}

/// The example in GitHub's own documentation. Its body is no JSON, so what is refused is the body.
#[test]
fn the_documented_signature_of_github_is_taken() {
    let digits = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let mut request = Request::github("push", "Hello, World!").with(|r| {
        r.secrets = vec![secret("It's a Secret to Everybody")];
        *r.header("x-hub-signature-256") = format!("sha256={digits}");
    });
    assert!(matches!(request.send(), Err(HookError::BadJson { .. })));
    request.body.push(b'!');
    assert_eq!(request.send(), Err(HookError::BadSignature));
}

#[test]
fn paths_lead_to_the_topic_and_the_key() {
    let at = |key, topic| {
        let request = Request::standard(ORDER).with(|r| (r.key_path, r.topic_path) = (key, topic));
        let item = request.send().unwrap();
        (item.key, item.topic)
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(at(Some("data.order.id"), None), (text("4711"), text("order.paid")));
    assert_eq!(at(Some("data.items.0.sku"), Some("data.paid")), (text("tea"), text("true")));
    for nowhere in
        ["data", "data.items.1.sku", "data.items.x", "data.empty", "data.nothing", "type.x", ""]
    {
        assert_eq!(at(Some(nowhere), Some(nowhere)), (None, None), "{nowhere}");
    }
    let long = format!(r#"{{"type":"{}"}}"#, "x".repeat(401));
    assert_eq!(Request::standard(&long).send().unwrap().topic, None);
    // What a screen would obey or nobody would see is in no name.
    let unseen =
        r#"{"type":"a\u0000\u202eb\u2066\u200b","data":"\u202a\u202c\u0007","action":"x\u200f"}"#;
    let item = Request::standard(unseen).with(|r| r.key_path = Some("data")).send().unwrap();
    assert_eq!((item.key, item.topic), (None, text("ab")));
    assert_eq!(Request::github("push", unseen).send().unwrap().topic, text("push.x"));
    let request = Request::github("push", r#"{"repository":{"full_name":"o/r"},"ref":"main"}"#);
    let of = |request: Request| request.send().map(|item| (item.key, item.topic)).unwrap();
    assert_eq!(of(request.clone()), (text("o/r"), text("push")));
    let changed = request.with(|r| (r.key_path, r.topic_path) = (Some("ref"), Some("repository")));
    assert_eq!(of(changed), (text("main"), None));
    assert_eq!(of(Request::github("meta", "{}")), (None, text("meta")));
}

#[test]
fn either_secret_may_sign_while_they_are_changed() {
    let both = Request::standard(ORDER).with(|r| r.secrets = vec![whsec(OLD_KEY), whsec(KEY)]);
    assert!(both.send().is_ok());
    let both = both.with(|r| r.secrets.reverse());
    assert!(both.send().is_ok());
    let mistyped = both.clone().with(|r| r.secrets = vec![secret("whsec_!!"), whsec(KEY)]);
    assert!(mistyped.send().is_ok());
    let gone = both.clone().with(|r| r.secrets = vec![whsec(OLD_KEY)]);
    assert_eq!(gone.send(), Err(HookError::BadSignature));
    // A sender in rotation signs with both; other versions are passed over.
    let several = both.with(|r| {
        r.secrets = vec![whsec(KEY)];
        let good = r.header("webhook-signature").clone();
        *r.header("webhook-signature") = format!("v1a,AAAA v1,AAAA {good} v2,x");
    });
    assert!(several.send().is_ok());
    let unprefixed = STANDARD.encode(KEY).trim_end_matches('=').to_owned();
    assert!(several.with(|r| r.secrets = vec![secret(&unprefixed)]).send().is_ok());
}

#[test]
fn five_minutes_either_way_are_allowed() {
    let at =
        |apart_s| Request::standard(ORDER).with(|r| r.now_s = NOW_S + apart_s).send().map(|_| ());
    assert_eq!([-300, 0, 300].map(at), [Ok(()), Ok(()), Ok(())]);
    assert_eq!(at(301), Err(HookError::TooOld { apart_s: 301 }));
    assert_eq!(at(-301), Err(HookError::TooOld { apart_s: -301 }));
    let said = |apart_s| HookError::TooOld { apart_s }.to_string();
    assert!(said(301).contains("was signed 301 s before now, and"), "{}", said(301));
    assert!(said(-301).contains("was signed 301 s in the future, and"), "{}", said(-301));
    // GitHub signs no time.
    let years_later = Request::github("push", "{}").with(|r| r.now_s += 100_000_000);
    assert!(years_later.send().is_ok());
}

#[test]
fn a_limit_is_a_limit() {
    let of_size = |bytes: usize| format!(r#"{{"type":"{}"}}"#, "x".repeat(bytes - 11));
    assert!(Request::standard(&of_size(BODY_BYTES_MAX)).send().is_ok());
    let refused = Request::standard(&of_size(BODY_BYTES_MAX + 1)).send();
    assert_eq!(
        refused,
        Err(HookError::TooLarge { bytes: BODY_BYTES_MAX + 1, max: BODY_BYTES_MAX })
    );
    let with_id =
        |id: String| Request::github("push", "{}").with(|r| *r.header("x-github-delivery") = id);
    assert!(with_id("x".repeat(200)).send().is_ok());
    assert!(with_id("x".repeat(201)).send().is_err());
    let shown = |n: i32| format!(r#""{n}":{{"html_url":"https://a.example/o/r/{n}"}}"#);
    let many: Vec<String> = (0..50).map(shown).collect();
    let repository = r#""repository":{"html_url":"https://a.example/o/r"}"#;
    let body = format!("{{{repository},{}}}", many.join(","));
    assert_eq!(Request::github("push", &body).send().unwrap().links.len(), 20);
    let signed = |count: usize| {
        Request::standard(ORDER).with(|r| {
            let good = r.header("webhook-signature").clone();
            *r.header("webhook-signature") = format!("{}{good}", "v1,AAAA ".repeat(count - 1));
        })
    };
    assert!(signed(16).send().is_ok());
    let refused = signed(17).send().unwrap_err();
    assert_eq!((&refused, refused.status()), (&HookError::TooManySignatures { max: 16 }, 400));
    assert!(refused.to_string().contains("more than 16 signatures"), "{refused}");
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(Request::standard(&deep).send(), Err(HookError::BadJson { .. })));
}

/// An address that a stranger wrote into a payload is fetched by nobody (TOOL-15).
#[test]
fn only_addresses_of_github_below_the_repository_are_taken() {
    let links = |body: &str| Request::github("issues", body).send().unwrap().links;
    let of = |repository: &str, address: &str| {
        let body = serde_json::json!({
            "repository": { "html_url": repository },
            "issue": { "html_url": address, "body": address, "user": { "html_url": address } },
            "pull_request": { "head": { "repo": { "html_url": address } } },
        });
        links(&body.to_string())
    };
    let home = "https://github.com/o/r";
    let own = "https://github.com/o/r/issues/7#issuecomment-1";
    assert_eq!(of(home, own), [own, home]);
    assert_eq!(of("https://git.corp.example/o/r/", "https://git.corp.example/o/r/pull/1").len(), 2);
    for strange in [
        "https://evil.example/o/r/issues/7",
        "https://github.com.evil.example/o/r/issues/7",
        "https://github.com/o/r2",
        "https://github.com/o/r/../../stranger/leak",
        "https://github.com/o/r/%2e%2e/%2e%2e/stranger/leak",
        "https://github.com:8443/o/r/issues/7",
        "https://secret@github.com/o/r/issues/7",
        "https://github.com/o/r/issues/7?q=secret",
        "https://github.com@evil.example/o/r/issues/7",
        "https:\\\\evil.example/o/r",
        "javascript:alert(1)",
        "/o/r/issues/7",
    ] {
        assert_eq!(of(home, strange), [home], "{strange}");
    }
    // Without a repository, or one that is a whole host, there is no own address.
    let lone = r#"{"issue":{"html_url":"https://github.com/o/r/issues/7"}}"#;
    assert_eq!(links(lone), [""; 0]);
    assert_eq!(of("https://github.com/", own), [""; 0]);
    assert_eq!(of("github.com/o/r", own), [""; 0]);
    let standard = Request::standard(r#"{"type":"x","html_url":"https://github.com/o/r"}"#);
    assert_eq!(standard.send().unwrap().links, [""; 0]);
}

/// What is refused, why, and with which status.
#[test]
fn every_refusal_has_its_reason_and_its_status() {
    let standard = || Request::standard(ORDER);
    let github = || Request::github("push", "{}");
    let no_id = |header| HookError::NoId { header };
    let bad_json = |at: &str| HookError::BadJson { at: at.to_owned() };
    let set = |name: &'static str, value: &'static str| {
        move |r: &mut Request| *r.header(name) = value.to_owned()
    };
    let cases = [
        ("id", 400, standard().without("webhook-id"), no_id("webhook-id")),
        ("blank in the id", 400, standard().with(set("webhook-id", "a b")), no_id("webhook-id")),
        ("letter in the id", 400, standard().with(set("webhook-id", "é")), no_id("webhook-id")),
        ("delivery", 400, github().without("x-github-delivery"), no_id("x-github-delivery")),
        ("event", 400, github().without("x-github-event"), HookError::NoEvent),
        ("odd event", 400, github().with(set("x-github-event", "a.b")), HookError::NoEvent),
        ("time", 400, standard().without("webhook-timestamp"), HookError::NoTimestamp),
        ("no time", 400, standard().with(set("webhook-timestamp", "-1")), HookError::NoTimestamp),
        (
            "huge time",
            400,
            standard().with(set("webhook-timestamp", "9999999999999")),
            HookError::NoTimestamp,
        ),
        ("signature", 401, standard().without("webhook-signature"), HookError::BadSignature),
        (
            "no v1",
            401,
            standard().with(set("webhook-signature", "v1a,AAAA")),
            HookError::BadSignature,
        ),
        (
            "empty v1",
            401,
            standard().with(set("webhook-signature", "v1,")),
            HookError::BadSignature,
        ),
        (
            "other time",
            401,
            standard().with(set("webhook-timestamp", "1796054401")),
            HookError::BadSignature,
        ),
        ("other id", 401, standard().with(set("webhook-id", "msg_2")), HookError::BadSignature),
        ("other body", 401, standard().with(|r| r.body = b"{}".into()), HookError::BadSignature),
        ("unsigned", 401, github().without("x-hub-signature-256"), HookError::BadSignature),
        (
            "sha1",
            401,
            github().with(set("x-hub-signature-256", "sha1=00")),
            HookError::BadSignature,
        ),
        (
            "short",
            401,
            github().with(set("x-hub-signature-256", "sha256=")),
            HookError::BadSignature,
        ),
        (
            "twice",
            400,
            standard().with(|r| r.headers.push(("WEBHOOK-ID", "x".to_owned()))),
            HookError::Repeated { header: "webhook-id" },
        ),
        ("no secret", 503, standard().with(|r| r.secrets.clear()), HookError::NoSecret),
        (
            "weak secret",
            503,
            github().with(|r| r.secrets = vec![secret("hunter2")]),
            HookError::BadSecret { scheme: Scheme::Github },
        ),
        (
            "no base64",
            503,
            standard().with(|r| r.secrets = vec![secret("whsec_hunter2 hunter2 hunter2")]),
            HookError::BadSecret { scheme: Scheme::Standard },
        ),
        ("form", 400, Request::github("push", "payload=%7B%7D"), bad_json("line 1, column 1")),
        ("list", 400, Request::standard("[]"), bad_json("it begins with something else")),
        ("no end", 400, Request::standard("{"), bad_json("line 1, column 1")),
        ("two", 400, Request::standard("{} {}"), bad_json("line 1, column 4")),
    ];
    for (name, status, request, error) in cases {
        assert_eq!(request.send(), Err(error.clone()), "{name}");
        assert_eq!(error.status(), status, "{name}");
    }
    let latin = hmac(KEY, &[b"{\"a\":\"\xE9\"}"]);
    let latin = github().with(|r| {
        *r.header("x-hub-signature-256") = format!("sha256={}", hex::encode(latin));
        r.body = b"{\"a\":\"\xE9\"}".into();
    });
    assert!(matches!(latin.send(), Err(HookError::BadJson { .. })));
}

#[test]
fn a_flipped_bit_anywhere_is_refused() {
    for request in [Request::standard(ORDER), Request::github("push", ORDER)] {
        assert!(request.send().is_ok());
        for bit in 0..ORDER.len() * 8 {
            let flipped = request.clone().with(|r| r.body[bit / 8] ^= 1 << (bit % 8));
            assert_eq!(flipped.send(), Err(HookError::BadSignature), "bit {bit} of the body");
        }
    }
    let mut request = Request::standard(ORDER);
    let signature = STANDARD.decode(&request.header("webhook-signature")[3..]).unwrap();
    for bit in 0..signature.len() * 8 {
        let mut other = signature.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        *request.header("webhook-signature") = format!("v1,{}", STANDARD.encode(other));
        assert_eq!(request.send(), Err(HookError::BadSignature), "bit {bit} of the signature");
    }
    *request.header("webhook-signature") = format!("v1,{}", STANDARD.encode(&signature[..31]));
    assert_eq!(request.send(), Err(HookError::BadSignature), "a shorter one");
    let key_bits = KEY.len() * 8;
    for bit in 0..key_bits {
        let mut key = KEY.to_vec();
        key[bit / 8] ^= 1 << (bit % 8);
        let other = Request::standard(ORDER).with(|r| r.secrets = vec![whsec(&key)]);
        assert_eq!(other.send(), Err(HookError::BadSignature), "bit {bit} of the key");
    }
}

#[test]
fn secrets_are_checked_when_they_are_entered_and_never_shown() {
    let check = |scheme, text: &str| check_secret(scheme, &secret(text));
    assert_eq!(check(Scheme::Standard, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), Ok(()));
    assert_eq!(check(Scheme::Github, "correct horse battery"), Ok(()));
    let refused = check(Scheme::Standard, "whsec_hunter2").unwrap_err();
    assert!(!format!("{refused} {refused:?}").contains("hunter2"));
    assert!(refused.to_string().contains("whsec_"), "{refused}");
    let mut request = Request::standard(ORDER);
    let signature = request.header("webhook-signature").clone();
    let pairs = [("webhook-signature", signature.as_bytes())];
    assert_eq!(format!("{:?}", Headers::new(pairs)), r#"["webhook-signature"]"#);
    request.now_s += 1_000;
    let refused = request.send().unwrap_err();
    assert!(!format!("{refused} {refused:?}").contains(&signature));
}
