//! The guarded client reaches public addresses and nothing else, whatever a URL, a resolver or a
//! redirect says. A local site counts who came; a refused address is never connected to.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use connect::guard::{Client, Conditions, GuardError, GuardLimits, Resolve, Resolving};
use testkit::site::{Reply, Site};
use tokio::sync::mpsc;

/// Answers from a table; a name with several lists gives them in turn and then stays with the last.
#[derive(Default)]
struct Table {
    /// Held for one look-up.
    names: Mutex<BTreeMap<String, Vec<Vec<IpAddr>>>>,
    /// Held to note one question.
    asked: Mutex<Vec<String>>,
}

impl Table {
    fn put(&self, name: &str, answers: &[&[&str]]) {
        let parse = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
        let answers = answers.iter().map(parse).collect();
        self.names.lock().unwrap().insert(name.to_owned(), answers);
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Resolve for Table {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        self.asked.lock().unwrap().push(host.to_owned());
        let mut names = self.names.lock().unwrap();
        let answer = match names.get_mut(host) {
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers[0].clone()),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
        };
        Box::pin(std::future::ready(answer))
    }
}

fn client(table: &Arc<Table>, limits: GuardLimits, allowed: &[SocketAddr]) -> Client {
    Client::new(table.clone(), limits, allowed.to_vec()).unwrap()
}

async fn get(client: &Client, url: &str) -> Result<String, GuardError> {
    let fetched = client.get(url, &Conditions::default()).await?;
    Ok(String::from_utf8(fetched.body).unwrap())
}

/// What a case must be refused for.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    /// Without asking the resolver: the literal address is of this kind.
    Literal(&'static str),
    /// After one question: an address of the name is of this kind.
    Resolved(&'static str),
    Local,
    Port,
    Credentials,
    Scheme,
    NotAUrl,
}

/// (name, URL with `PORT` for the site's, why it is refused).
const CASES: &[(&str, &str, Refused)] = &[
    ("loopback", "http://127.0.0.1:PORT/", Refused::Literal("loopback")),
    ("loopback, another one", "http://127.8.9.10:PORT/", Refused::Literal("loopback")),
    ("decimal", "http://2130706433:PORT/", Refused::Literal("loopback")),
    ("octal", "http://0177.0.0.1:PORT/", Refused::Literal("loopback")),
    ("octal in one number", "http://017700000001:PORT/", Refused::Literal("loopback")),
    ("hex", "http://0x7f.1:PORT/", Refused::Literal("loopback")),
    ("hex in one number", "http://0x7f000001:PORT/", Refused::Literal("loopback")),
    ("short form", "http://127.1:PORT/", Refused::Literal("loopback")),
    ("final dot", "http://127.0.0.1.:PORT/", Refused::Literal("loopback")),
    ("percent-encoded", "http://%31%32%37.0.0.1:PORT/", Refused::Literal("loopback")),
    ("full-width digits", "http://127.0.0.1:PORT/", Refused::Literal("loopback")),
    ("circled digits", "http://①②⑦.⓪.⓪.①:PORT/", Refused::Literal("loopback")),
    ("ideographic dots", "http://127。0。0。1:PORT/", Refused::Literal("loopback")),
    ("this network", "http://0.0.0.0:PORT/", Refused::Literal("this network")),
    ("zero", "http://0:PORT/", Refused::Literal("this network")),
    ("private 10", "http://10.0.0.1/", Refused::Literal("private")),
    ("private 172, first", "http://172.16.0.1/", Refused::Literal("private")),
    ("private 172, last", "http://172.31.255.255/", Refused::Literal("private")),
    ("private 192", "https://192.168.1.1/", Refused::Literal("private")),
    ("carrier NAT", "http://100.64.0.1/", Refused::Literal("carrier NAT")),
    ("a cloud in carrier NAT", "http://100.100.100.200/", Refused::Literal("carrier NAT")),
    ("metadata", "http://169.254.169.254/latest/", Refused::Literal("cloud metadata")),
    ("metadata in decimal", "http://2852039166/", Refused::Literal("cloud metadata")),
    ("metadata outside", "http://168.63.129.16/", Refused::Literal("cloud metadata")),
    ("link-local", "http://169.254.1.1/", Refused::Literal("link-local")),
    ("protocol", "http://192.0.0.192/", Refused::Literal("protocol assignments")),
    ("documentation", "http://192.0.2.1/", Refused::Literal("documentation")),
    ("documentation 2", "http://198.51.100.7/", Refused::Literal("documentation")),
    ("documentation 3", "http://203.0.113.7/", Refused::Literal("documentation")),
    ("benchmarking", "http://198.19.255.255/", Refused::Literal("benchmarking")),
    ("6to4 relay", "http://192.88.99.1/", Refused::Literal("6to4 relay")),
    ("multicast", "http://224.0.0.1/", Refused::Literal("multicast")),
    ("reserved", "http://240.0.0.1/", Refused::Literal("reserved")),
    ("broadcast", "http://255.255.255.255/", Refused::Literal("reserved")),
    ("v6 loopback", "http://[::1]:PORT/", Refused::Literal("loopback")),
    ("v6 loopback, long", "http://[0:0:0:0:0:0:0:1]:PORT/", Refused::Literal("loopback")),
    ("v6 unspecified", "http://[::]:PORT/", Refused::Literal("unspecified")),
    ("v6 mapped", "http://[::ffff:127.0.0.1]:PORT/", Refused::Literal("loopback")),
    ("v6 mapped in hex", "http://[::ffff:7f00:1]:PORT/", Refused::Literal("loopback")),
    ("v6 mapped private", "http://[::ffff:10.1.2.3]/", Refused::Literal("private")),
    ("v6 compatible", "http://[::127.0.0.1]:PORT/", Refused::Literal("IPv4-compatible")),
    ("NAT64", "http://[64:ff9b::7f00:1]:PORT/", Refused::Literal("loopback")),
    ("NAT64 metadata", "http://[64:ff9b::a9fe:a9fe]/", Refused::Literal("cloud metadata")),
    ("NAT64, local", "http://[64:ff9b:1::a00:1]/", Refused::Literal("local NAT64")),
    ("6to4", "http://[2002:7f00:1::]/", Refused::Literal("6to4")),
    ("Teredo", "http://[2001:0:7f00:1::]/", Refused::Literal("Teredo")),
    ("ISATAP", "http://[2606:4700::5efe:10.0.0.1]/", Refused::Literal("private")),
    ("unique local", "http://[fd00:ec2::254]/", Refused::Literal("unique local")),
    ("v6 link-local", "http://[fe80::1]/", Refused::Literal("link-local")),
    ("site-local", "http://[fec0::1]/", Refused::Literal("site-local")),
    ("v6 multicast", "http://[ff02::1]/", Refused::Literal("multicast")),
    ("v6 documentation", "http://[2001:db8::1]/", Refused::Literal("documentation")),
    ("v6 documentation 2", "http://[3fff:123::1]/", Refused::Literal("documentation")),
    ("v6 benchmarking", "http://[2001:2::1]/", Refused::Literal("benchmarking")),
    ("ORCHID", "http://[2001:20::1]/", Refused::Literal("protocol assignments")),
    ("discard", "http://[100::1]/", Refused::Literal("discard")),
    ("segment routing", "http://[5f00::1]/", Refused::Literal("not global unicast")),
    ("v6 with a zone", "http://[fe80::1%25eth0]/", Refused::NotAUrl),
    ("v7", "http://[v7.x]/", Refused::NotAUrl),
    ("too large a number", "http://256.0.0.1/", Refused::NotAUrl),
    ("file", "file:///etc/passwd", Refused::Scheme),
    ("file with a host", "file://127.0.0.1/etc/passwd", Refused::Scheme),
    ("ftp", "ftp://files.example.com/", Refused::Scheme),
    ("gopher", "gopher://127.0.0.1:PORT/_x", Refused::Scheme),
    ("data", "data:text/html,hello", Refused::Scheme),
    ("javascript", "javascript:alert(1)", Refused::Scheme),
    ("unix socket", "unix:///run/docker.sock", Refused::Scheme),
    ("websocket", "ws://pages.example.com/", Refused::Scheme),
    ("user and password", "http://user:pass@pages.example.com/", Refused::Credentials),
    ("user that looks like a host", "http://pages.example.com@127.0.0.1/", Refused::Credentials),
    ("password alone", "http://:x@pages.example.com/", Refused::Credentials),
    ("backslash", "http://pages.example.com\\@127.0.0.1/", Refused::NotAUrl),
    ("line end in the host", "http://127.0.0.1\n.example.com/", Refused::NotAUrl),
    ("tab in the scheme", "ht\ttp://127.0.0.1:PORT/", Refused::NotAUrl),
    ("no host", "http:///", Refused::NotAUrl),
    ("no scheme", "127.0.0.1:PORT/", Refused::NotAUrl),
    ("localhost", "http://localhost:PORT/", Refused::Local),
    ("localhost, shouted", "http://LocalHost.:PORT/", Refused::Local),
    ("localhost in circles", "http://ⓛocalhost:PORT/", Refused::Local),
    ("below localhost", "http://a.localhost:PORT/", Refused::Local),
    ("mDNS", "http://printer.local/", Refused::Local),
    ("metadata by name", "http://metadata.google.internal/", Refused::Local),
    ("home", "http://router.home.arpa/", Refused::Local),
    ("single label", "http://intranet/", Refused::Local),
    ("SSH", "http://pages.example.com:22/", Refused::Port),
    ("mail", "http://pages.example.com:25/", Refused::Port),
    ("Redis", "http://pages.example.com:6379/", Refused::Port),
    ("container daemon", "http://93.184.215.14:2375/", Refused::Port),
    ("port zero", "http://pages.example.com:0/", Refused::Port),
    ("name of loopback", "http://loopback.example.com:PORT/", Refused::Resolved("loopback")),
    ("its final dot", "http://loopback.example.com.:PORT/", Refused::Resolved("loopback")),
    ("name of v6 loopback", "http://six.example.com:PORT/", Refused::Resolved("loopback")),
    ("name of mapped", "http://mapped.example.com:PORT/", Refused::Resolved("loopback")),
    ("name of metadata", "http://meta.example.com/", Refused::Resolved("cloud metadata")),
    ("public and private", "http://mixed.example.com:PORT/", Refused::Resolved("private")),
    ("IDNA name", "http://bücher.example.com/", Refused::Resolved("private")),
];

/// A table with the names of [`CASES`].
fn names() -> Arc<Table> {
    let table = Arc::new(Table::default());
    table.put("loopback.example.com", &[&["127.0.0.1"]]);
    table.put("six.example.com", &[&["::1"]]);
    table.put("mapped.example.com", &[&["::ffff:127.0.0.1"]]);
    table.put("meta.example.com", &[&["169.254.169.254"]]);
    table.put("mixed.example.com", &[&["93.184.215.14", "10.0.0.1"]]);
    table.put("xn--bcher-kva.example.com", &[&["10.0.0.1"]]);
    table
}

/// The kind of a refusal, and whether the resolver was asked for it.
fn refused(result: Result<String, GuardError>, asked: &[String]) -> Option<Refused> {
    Some(match (result.err()?, asked.len()) {
        (GuardError::NotPublic { what, .. }, 0) => Refused::Literal(what),
        (GuardError::NotPublic { what, .. }, 1) => Refused::Resolved(what),
        (GuardError::LocalName { .. }, 0) => Refused::Local,
        (GuardError::Port { .. }, 0) => Refused::Port,
        (GuardError::Credentials, 0) => Refused::Credentials,
        (GuardError::Scheme { .. }, 0) => Refused::Scheme,
        (GuardError::NotAUrl { .. }, 0) => Refused::NotAUrl,
        _ => return None,
    })
}

#[tokio::test]
async fn nothing_private_is_reached() {
    let table = names();
    let four = Site::start().await.unwrap();
    let port = four.address().port();
    // The same port on the IPv6 side, where it is free.
    let six = Site::start_at(&format!("[::1]:{port}")).await.ok();
    four.put("/", Reply::page("text/plain", "secret"));
    let guarded = client(&table, GuardLimits::default(), &[]);
    let port = port.to_string();
    for (name, url, why) in CASES {
        let url = url.replace("PORT", &port);
        let result = get(&guarded, &url).await;
        let text = format!("{name}: {result:?}");
        assert_eq!(refused(result, &table.asked()).as_ref(), Some(why), "{text}");
    }
    assert_eq!((four.connections(), six.map_or(0, |six| six.connections())), (0, 0));
    // The site does answer where it is allowed, so the zero above means something.
    let open = client(&table, GuardLimits::default(), &[four.address()]);
    let url = format!("http://loopback.example.com:{port}/");
    assert_eq!(get(&open, &url).await, Ok("secret".to_owned()));
    assert_eq!(four.connections(), 1);
}

#[tokio::test]
async fn a_second_answer_of_the_resolver_is_not_asked_for() {
    let table = Arc::new(Table::default());
    let site = Site::start().await.unwrap();
    let port = site.address().port();
    // Stands for a public address: the only one that may be reached.
    let public = Site::start_at(&format!("127.0.0.2:{port}")).await.unwrap();
    public.put("/", Reply::page("text/plain", "public"));
    public.put("/again", Reply::redirect("/"));
    site.put("/", Reply::page("text/plain", "secret"));
    let guarded = client(&table, GuardLimits::default(), &[public.address()]);
    let url = |path: &str| format!("http://rebind.example.com:{port}{path}");
    let rebind: &[&[&str]] = &[&["127.0.0.2"], &["127.0.0.1"]];

    // Checked and connected with the one answer.
    table.put("rebind.example.com", rebind);
    assert_eq!(get(&guarded, &url("/")).await, Ok("public".to_owned()));
    assert_eq!(table.asked(), ["rebind.example.com"]);
    // A redirect to the same name is looked up and checked anew.
    table.put("rebind.example.com", rebind);
    let error = GuardError::NotPublic { host: "rebind.example.com".to_owned(), what: "loopback" };
    assert_eq!(get(&guarded, &url("/again")).await, Err(error.clone()));
    assert_eq!(table.asked(), ["rebind.example.com", "rebind.example.com"]);
    // And so is the next fetch.
    assert_eq!(get(&guarded, &url("/")).await, Err(error));
    assert_eq!((public.connections(), site.connections()), (2, 0));
}

#[tokio::test]
async fn a_redirect_is_checked_like_a_url() {
    let table = names();
    let secret = Site::start().await.unwrap();
    let site = Site::start().await.unwrap();
    let guarded = client(&table, GuardLimits::default(), &[site.address()]);
    let port = secret.address().port().to_string();
    for (name, url, _) in CASES {
        // A line end can not stand in a header, a name without a scheme is a path.
        if url.contains('\n') || url.starts_with("127") || !url.is_ascii() || *name == "no host" {
            continue;
        }
        site.put("/here", Reply::redirect(&url.replace("PORT", &port)));
        site.put("/", Reply::redirect("/here"));
        let result = get(&guarded, &site.url("/")).await;
        let error = result.unwrap_err();
        assert!(!error.heals_by_waiting(), "{name}: {error}");
    }
    assert_eq!(secret.connections(), 0);
}

#[tokio::test]
async fn redirects_are_followed_so_far() {
    let table = names();
    let site = Site::start().await.unwrap();
    let guarded = client(&table, GuardLimits::default(), &[site.address()]);
    for n in 0..6 {
        site.put(&format!("/{n}"), Reply::redirect(&format!("{}#part", n + 1)));
    }
    site.put("/6", Reply::page("text/plain", "arrived"));
    site.put("/loop", Reply::redirect("/loop"));
    site.put("/nowhere", Reply::Page { status: 301, headers: Vec::new(), body: Vec::new() });
    let fetched = guarded.get(&site.url("/1"), &Conditions::default()).await.unwrap();
    assert_eq!((fetched.final_url.as_str(), fetched.status), (site.url("/6").as_str(), 200));
    let too_many = Err(GuardError::Redirects { redirects_max: 5 });
    assert_eq!(get(&guarded, &site.url("/0")).await, too_many);
    assert_eq!(get(&guarded, &site.url("/loop")).await, too_many);
    let nowhere = GuardError::Location { host: "127.0.0.1".to_owned() };
    assert_eq!(get(&guarded, &site.url("/nowhere")).await, Err(nowhere));
}

#[tokio::test]
async fn sizes_have_limits() {
    let table = names();
    let site = Site::start().await.unwrap();
    let guarded = client(&table, GuardLimits::default(), &[site.address()]);
    let host = || "127.0.0.1".to_owned();
    let limit_bytes = 4 * 1024 * 1024;
    let too_large = Err(GuardError::BodyTooLarge { host: host(), limit_bytes });
    site.put("/huge", Reply::Huge { media: "text/html".to_owned(), bytes: 50 * 1024 * 1024 });
    assert_eq!(get(&guarded, &site.url("/huge")).await, too_large);
    // Refused by its announced length, before a byte of it is read.
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 52428800\r\n\r\n";
    site.put("/announced", Reply::Raw(head.to_vec()));
    assert_eq!(get(&guarded, &site.url("/announced")).await, too_large);
    site.put("/fits", Reply::Huge { media: "text/html".to_owned(), bytes: limit_bytes as u64 });
    assert_eq!(get(&guarded, &site.url("/fits")).await.map(|text| text.len()), Ok(limit_bytes));

    let long = "x".repeat(40_000);
    site.put("/headers", Reply::page("text/plain", "x").with("X-Long", &long));
    let limit_bytes = 32 * 1024;
    let error = GuardError::HeadersTooLarge { host: host(), limit_bytes };
    assert_eq!(get(&guarded, &site.url("/headers")).await, Err(error));
    site.put("/endless", Reply::page("text/plain", "x").with("X-Long", &long.repeat(100)));
    let error = get(&guarded, &site.url("/endless")).await.unwrap_err();
    assert!(matches!(error, GuardError::Broken { .. }), "{error}");

    let bomb = Reply::page("text/html", vec![0x1f, 0x8b, 8, 0]).with("Content-Encoding", "gzip");
    site.put("/bomb", bomb);
    assert_eq!(get(&guarded, &site.url("/bomb")).await, Err(GuardError::Encoded { host: host() }));
    let encodings: Vec<_> = site
        .asked()
        .iter()
        .map(|asked| asked.header("accept-encoding") == Some("identity"))
        .collect();
    assert_eq!(encodings, [true; 6]);
}

#[tokio::test(start_paused = true)]
async fn time_has_a_limit_even_for_a_slow_drip() {
    let table = names();
    let site = Site::start().await.unwrap();
    let limits = GuardLimits { total_ms: 5_000, connect_ms: 1_000, ..GuardLimits::default() };
    let guarded = client(&table, limits, &[site.address()]);
    let (pace, pieces) = mpsc::channel(1);
    site.put("/drip", Reply::Paced(pieces));
    // A byte a second for as long as anyone listens.
    let drip = tokio::spawn(async move {
        let mut tick = tokio::time::interval(std::time::Duration::from_secs(1));
        let mut sent = 0_u32;
        while pace.send(b"x".to_vec()).await.is_ok() && sent < 1_000 {
            sent += 1;
            tick.tick().await;
        }
        sent
    });
    let timed_out = GuardError::TimedOut { host: "127.0.0.1".to_owned(), limit_ms: 5_000 };
    assert_eq!(get(&guarded, &site.url("/drip")).await, Err(timed_out.clone()));
    assert!(drip.await.unwrap() < 1_000);
    site.put("/silent", Reply::Silence);
    assert_eq!(get(&guarded, &site.url("/silent")).await, Err(timed_out));
    // A handshake that never ends is part of connecting.
    let error = get(&guarded, &site.url("/").replace("http:", "https:")).await.unwrap_err();
    assert!(matches!(error, GuardError::Connect { .. }), "{error}");
    // So is a look-up.
    struct Never;
    impl Resolve for Never {
        fn resolve<'a>(&'a self, _host: &'a str) -> Resolving<'a> {
            Box::pin(std::future::pending())
        }
    }
    let limits = guarded.limits().clone();
    let never = Client::new(Arc::new(Never), limits, Vec::new()).unwrap();
    let timed_out = GuardError::TimedOut { host: "a.example.com".to_owned(), limit_ms: 1_000 };
    assert_eq!(get(&never, "http://a.example.com").await, Err(timed_out));
}

#[tokio::test]
async fn a_request_says_little_and_an_answer_is_kept_in_part() {
    let table = names();
    let site = Site::start().await.unwrap();
    let guarded = client(&table, GuardLimits::default(), &[site.address()]);
    let page = Reply::page("Text/HTML; charset=\"GBK\"", "hello")
        .with("ETag", "\"1\"")
        .with("Last-Modified", "Mon, 30 Nov 2026 08:00:00 GMT")
        .with("Set-Cookie", "a=b");
    site.put("/", page);
    let fetched = guarded.get(&site.url("/#f"), &Conditions::default()).await.unwrap();
    let marks = Conditions {
        etag: Some("\"1\"".to_owned()),
        last_modified: Some("Mon, 30 Nov 2026 08:00:00 GMT".to_owned()),
    };
    assert_eq!(fetched.final_url.as_str(), site.url("/"));
    assert_eq!((fetched.media.as_str(), fetched.charset.as_deref()), ("text/html", Some("gbk")));
    assert_eq!((&fetched.marks, fetched.body.as_slice()), (&marks, b"hello".as_slice()));
    let again = guarded.get(&site.url("/"), &marks).await.unwrap();
    assert_eq!((again.status, again.body.len()), (304, 0));

    let asked = site.asked();
    let names: Vec<&str> = asked[0].headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["accept", "accept-encoding", "user-agent", "host"]);
    let names: Vec<&str> = asked[1].headers.iter().map(|(name, _)| name.as_str()).collect();
    let conditional = ["if-none-match", "if-modified-since"];
    assert_eq!(
        names,
        ["accept", "accept-encoding", conditional[0], conditional[1], "user-agent", "host"]
    );
}

#[tokio::test]
async fn what_may_heal_says_so() {
    let table = names();
    let guarded = client(&table, GuardLimits::default(), &[]);
    let error = get(&guarded, "http://gone.example.com").await.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.heals_by_waiting()),
        (
            "`gone.example.com` could not be looked up: no such name. Check the spelling, or try \
             again later",
            true
        )
    );
    let site = Site::start().await.unwrap();
    let guarded = client(&table, GuardLimits::default(), &[site.address()]);
    site.put("/", Reply::Raw(b"SSH-2.0-OpenSSH_9.2 internal banner\r\n".to_vec()));
    let error = get(&guarded, &site.url("/")).await.unwrap_err();
    assert!(error.heals_by_waiting(), "{error:?}");
    assert!(!error.to_string().contains("banner"), "{error}");
}
