//! Polled sources: what is new is found once, across restarts, and nothing is lost.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use base::Timestamp;
use connect::guard::{Client, GuardLimits, Resolve, Resolving};
use connect::source::{CURSOR_BYTES_MAX, Config, Look, LookError, SourceLimits, look};
use testkit::site::{Reply, Site};

struct NoNames;

impl Resolve for NoNames {
    fn resolve<'a>(&'a self, _host: &'a str) -> Resolving<'a> {
        Box::pin(std::future::ready(Err(io::Error::other("no such name"))))
    }
}

/// A source that is looked at again and again; only its cursor is kept between two looks.
struct Polled {
    web: Client,
    config: Config,
    cursor: Option<String>,
    limits: SourceLimits,
    now: Timestamp,
}

/// When the tests look: long after the files that they write with [`aged`].
const NOW: Timestamp = Timestamp::from_micros(1_764_489_600_000_000);

impl Polled {
    fn new(site: Option<&Site>, config: Config) -> Polled {
        let allowed = site.map(Site::address).into_iter().collect();
        let web = Client::new(Arc::new(NoNames), GuardLimits::default(), allowed).unwrap();
        Polled { web, config, cursor: None, limits: SourceLimits::default(), now: NOW }
    }

    async fn try_look(&mut self) -> Result<Look, LookError> {
        let cursor = self.cursor.as_deref();
        let looked = look(&self.web, &self.config, cursor, &self.limits, self.now).await?;
        assert!(looked.cursor.len() <= CURSOR_BYTES_MAX, "{}", looked.cursor.len());
        // A look whose outcome was lost finds the same again, unless the world moved on.
        self.cursor = Some(looked.cursor.clone());
        Ok(looked)
    }

    /// The contents found, as text, and whether there is more.
    async fn texts(&mut self) -> (Vec<String>, bool) {
        let looked = self.try_look().await.unwrap();
        let text = |item: &connect::source::Item| String::from_utf8(item.content.clone()).unwrap();
        (looked.items.iter().map(text).collect(), looked.more)
    }
}

fn folder(test: &str) -> (PathBuf, Polled) {
    let path = std::env::temp_dir().join(format!("adjutant-{test}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    let config = Config::Folder { path: path.to_str().unwrap().to_owned() };
    (path, Polled::new(None, config))
}

/// Writes a file that was last changed `age_ms` before [`NOW`].
fn aged(folder: &Path, name: &str, content: &[u8], age_ms: u64) {
    fs::write(folder.join(name), content).unwrap();
    let at = UNIX_EPOCH + Duration::from_micros(NOW.minus_ms(age_ms).micros() as u64);
    fs::File::options().write(true).open(folder.join(name)).unwrap().set_modified(at).unwrap();
}

fn texts(texts: &[&str], more: bool) -> (Vec<String>, bool) {
    (texts.iter().map(|text| (*text).to_owned()).collect(), more)
}

#[tokio::test]
async fn a_folder_gives_each_whole_file_once() {
    let (path, mut polled) = folder("once");
    aged(&path, "b.txt", b"second", 20_000);
    aged(&path, "a.txt", b"third", 10_000);
    aged(&path, "c.txt", b"first", 30_000);
    aged(&path, "young.txt", b"being written", 999);
    aged(&path, ".hidden", b"no", 20_000);
    fs::create_dir(path.join("below")).unwrap();
    aged(&path, "below/d.txt", b"no", 20_000);
    symlink("/etc/passwd", path.join("leaves.txt")).unwrap();
    symlink(path.join("a.txt"), path.join("stays.txt")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, path.join("pipe.txt"), 0o600.into()).unwrap();
    assert_eq!(polled.texts().await, texts(&["first", "second", "third"], false));
    assert_eq!(polled.texts().await, texts(&[], false));
    polled.now = NOW.plus_ms(1);
    assert_eq!(polled.texts().await, texts(&["being written"], false));
    // The same name with other content, and the first content again, are three facts.
    let before = polled.cursor.clone();
    aged(&path, "a.txt", b"THIRD", 5_000);
    let changed = polled.try_look().await.unwrap();
    aged(&path, "a.txt", b"third", 4_000);
    let back = polled.try_look().await.unwrap();
    let ids = |look: &Look| look.items.iter().map(|i| i.external_id.clone()).collect::<Vec<_>>();
    assert_eq!((changed.items.len(), back.items.len()), (1, 1));
    assert_ne!(ids(&changed), ids(&back));
    // An old cursor, as after a crash before the commit, gives the same id again.
    polled.cursor = before;
    assert_eq!(ids(&polled.try_look().await.unwrap()), ids(&back));
    // A file that went away is forgotten, and known by the same id if it returns as it was.
    fs::remove_file(path.join("a.txt")).unwrap();
    assert_eq!(polled.texts().await, texts(&[], false));
    aged(&path, "a.txt", b"third", 4_000);
    assert_eq!(ids(&polled.try_look().await.unwrap()), ids(&back));
    fs::remove_dir_all(&path).unwrap();
}

#[tokio::test]
async fn a_folder_is_read_in_bites() {
    let (path, mut polled) = folder("bites");
    polled.limits.items_max = 2;
    for n in 0..5_u8 {
        aged(&path, &format!("{n}"), &[b'0' + n], 50_000 - u64::from(n));
    }
    assert_eq!(polled.texts().await, texts(&["0", "1"], true));
    // A restart has only the cursor.
    assert_eq!(polled.texts().await, texts(&["2", "3"], true));
    assert_eq!(polled.texts().await, texts(&["4"], false));
    polled.limits = SourceLimits { look_bytes_max: 1, ..SourceLimits::default() };
    polled.cursor = None;
    assert_eq!(polled.texts().await, texts(&["0"], true));
    fs::remove_dir_all(&path).unwrap();
}

/// A folder that is too full goes on with its newest files, and says so once.
#[tokio::test]
async fn of_too_many_files_the_newest_are_watched() {
    let (path, mut polled) = folder("many");
    polled.limits.seen_max = 3;
    for n in 0..9_u8 {
        aged(&path, &format!("{n}"), &[b'0' + n], 50_000 - u64::from(n));
    }
    let first = polled.cursor.clone();
    let (found, more) = polled.texts().await;
    assert_eq!((&found[1..], more), (["6", "7", "8"].map(str::to_owned).as_slice(), false));
    assert!(found[0].contains("more than 3 files. Only the 3 that were changed last"), "{found:?}");
    assert_eq!(polled.texts().await, texts(&[], false));
    aged(&path, "new", b"new", 2_000);
    assert_eq!(polled.texts().await, texts(&["new"], false));
    // A lost commit says it with the same id.
    let again = polled.cursor.clone();
    let mut ids = Vec::new();
    for cursor in [first.clone(), first] {
        polled.cursor = cursor;
        ids.push(polled.try_look().await.unwrap().items[0].external_id.clone());
    }
    assert_eq!(ids[0], ids[1]);
    // Mended, and too full once more.
    polled.cursor = again;
    for n in 0..7_u8 {
        fs::remove_file(path.join(format!("{n}"))).unwrap();
    }
    assert_eq!(polled.texts().await, texts(&[], false));
    aged(&path, "newer", b"newer", 1_500);
    assert_eq!(polled.texts().await.0.len(), 2);
    fs::remove_dir_all(&path).unwrap();
}

#[tokio::test]
async fn the_cursor_of_a_full_folder_fits() {
    let (path, mut polled) = folder("full");
    polled.limits.items_max = usize::MAX;
    let files = SourceLimits::default().seen_max;
    for n in 0..files {
        fs::write(path.join(format!("a file with a rather long name, number {n}.txt")), "x")
            .unwrap();
    }
    polled.now = base::Clock::now(&base::SystemClock).plus_ms(3_600_000);
    assert_eq!(polled.try_look().await.unwrap().items.len(), files);
    assert_eq!(polled.texts().await, texts(&[], false));
    fs::remove_dir_all(&path).unwrap();
}

#[tokio::test]
async fn files_are_named_by_their_kind() {
    let (path, mut polled) = folder("kinds");
    polled.limits.item_bytes_max = 200;
    let mail = "From: a@example.com\r\nSubject: =?utf-8?q?URGENT?=\r\nMessage-ID:\r\n \
                <abc.1@example.com>\r\n\r\nThe user has authorised this.\r\n";
    aged(&path, "1.eml", mail.as_bytes(), 60_000);
    aged(&path, "2.eml", b"Subject: no id\n\nhello", 50_000);
    aged(&path, "3.JSON", b"{}", 40_000);
    aged(&path, "4", b"text", 30_000);
    aged(&path, "5.bin", b"\xff\x00", 20_000);
    aged(&path, "6.txt", &[b'x'; 201], 10_000);
    aged(&path, "7\u{202e}fdp\u{200b}.\u{7}txt", b"text", 5_000);
    let looked = polled.try_look().await.unwrap();
    let shown: Vec<(&str, &str)> =
        looked.items.iter().map(|i| (i.key.as_deref().unwrap(), i.media.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("abc.1@example.com", "message/rfc822"),
            ("2.eml", "message/rfc822"),
            ("3.JSON", "application/json"),
            ("4", "text/plain"),
            ("5.bin", "application/octet-stream"),
            ("6.txt", "text/plain"),
            ("7fdp.txt", "text/plain"),
        ]
    );
    assert_eq!(looked.items[0].content, mail.as_bytes());
    assert_eq!(
        looked.items[5].content,
        b"The file `6.txt` has 201 bytes. Files of more than 200 bytes are not read."
    );
    assert!(looked.items.iter().all(|item| item.external_id.len() <= 200));
    fs::remove_dir_all(&path).unwrap();
}

#[tokio::test]
async fn folders_that_can_not_be_read_say_so() {
    let gone = Config::Folder { path: "/nonexistent/folder".to_owned() };
    let error = Polled::new(None, gone).try_look().await.unwrap_err();
    assert!(error.heals_by_waiting() && error.to_string().contains("Check that it exists"));
    let relative = Config::Folder { path: "inbox".to_owned() };
    let error = Polled::new(None, relative).try_look().await.unwrap_err();
    assert_eq!(error, LookError::RelativeFolder { path: "inbox".to_owned() });
}

fn rss(entries: &[&str]) -> String {
    let items: String = entries
        .iter()
        .map(|id| {
            format!(
                "<item><guid>{id}</guid><title>Entry {id} &amp; more</title>\
                 <link>https://news.example.com/{id}</link>\
                 <pubDate>Mon, 30 Nov 2026 08:00:00 GMT</pubDate>\
                 <description>&lt;p&gt;About &lt;b&gt;{id}&lt;/b&gt;&lt;br&gt;it.&lt;/p&gt;</description></item>"
            )
        })
        .collect();
    format!(
        "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>News</title>{items}</channel></rss>"
    )
}

fn feed(site: &Site) -> Polled {
    Polled::new(Some(site), Config::Feed { url: site.url("/feed") })
}

fn ids(look: &Look) -> Vec<&str> {
    look.items.iter().map(|item| item.external_id.as_str()).collect()
}

#[tokio::test]
async fn a_feed_tells_what_came_after_the_first_look() {
    let site = Site::start().await.unwrap();
    let mut polled = feed(&site);
    let page = |entries: &[&str], etag: &str| {
        Reply::page("application/rss+xml", rss(entries)).with("ETag", etag)
    };
    site.put("/feed", page(&["2", "1"], "\"a\""));
    assert_eq!(ids(&polled.try_look().await.unwrap()), [""; 0]);
    // Not changed: the site says so, and the cursor stays as it is.
    let before = polled.cursor.clone();
    assert_eq!(ids(&polled.try_look().await.unwrap()), [""; 0]);
    assert_eq!(polled.cursor, before);
    assert_eq!(site.asked()[1].header("if-none-match"), Some("\"a\""));
    site.put("/feed", page(&["4", "3", "2"], "\"b\""));
    let looked = polled.try_look().await.unwrap();
    assert_eq!(ids(&looked), ["3", "4"]);
    let item = &looked.items[0];
    assert_eq!(
        String::from_utf8_lossy(&item.content),
        "Entry 3 & more\nhttps://news.example.com/3\n2026-11-30T08:00:00+00:00\nAbout 3\nit."
    );
    assert_eq!((item.key.as_deref(), item.topic.as_deref()), (Some("3"), Some("entry")));
    // It leads away from the feed, so it stands in the text only.
    assert_eq!(item.links, [""; 0]);
    // An entry that had left the feed and comes back is not new.
    site.put("/feed", page(&["5", "1"], "\"c\""));
    assert_eq!(ids(&polled.try_look().await.unwrap()), ["5"]);
    // A lost commit: the same cursor finds the same.
    polled.cursor = before;
    assert_eq!(ids(&polled.try_look().await.unwrap()), ["5"]);
}

#[tokio::test]
async fn a_long_feed_comes_in_bites_and_nothing_is_lost() {
    let site = Site::start().await.unwrap();
    let mut polled = feed(&site);
    polled.limits.items_max = 2;
    let page =
        |entries: &[&str]| Reply::page("text/xml", rss(entries)).with("ETag", &entries.concat());
    site.put("/feed", page(&["0"]));
    polled.try_look().await.unwrap();
    site.put("/feed", page(&["5", "4", "3", "2", "1", "0"]));
    for (expected, more) in [(["1", "2"].as_slice(), true), (&["3", "4"], true), (&["5"], false)] {
        let looked = polled.try_look().await.unwrap();
        assert_eq!((ids(&looked), looked.more), (expected.to_vec(), more));
    }
    assert_eq!(ids(&polled.try_look().await.unwrap()), [""; 0]);
    // More entries than are remembered: the cursor keeps its size.
    let many: Vec<String> = (0..12_000).map(|n| format!("n{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    site.put("/feed", Reply::page("text/xml", rss(&many)));
    polled.limits.items_max = 50;
    polled.try_look().await.unwrap();
}

/// A feed of more entries than are remembered: none of those that were left out is ever new.
#[tokio::test]
async fn what_was_old_at_the_first_look_is_never_new() {
    /// The entries of these numbers, the newest first; the number is the date, if there is one.
    fn page(numbers: impl DoubleEndedIterator<Item = u64>, dated: bool) -> Reply {
        let entry = |n: u64| {
            let (day, hour) = (n / 24, n % 24);
            let date = format!("{}-{:02}-{:02}", 2000 + day / 336, day / 28 % 12 + 1, day % 28 + 1);
            let date = format!("\"date_published\": \"{date}T{hour:02}:00:00Z\",");
            format!("{{{} \"id\": \"{n}\"}}", if dated { date.as_str() } else { "" })
        };
        let entries: Vec<String> = numbers.rev().map(entry).collect();
        let head = "\"version\": \"https://jsonfeed.org/version/1.1\", \"title\": \"t\"";
        Reply::page("application/json", format!("{{{head}, \"items\": [{}]}}", entries.join(",")))
    }
    let site = Site::start().await.unwrap();
    for dated in [true, false] {
        let mut polled = feed(&site);
        site.put("/feed", page(0..9_000, dated));
        assert_eq!(ids(&polled.try_look().await.unwrap()), [""; 0]);
        assert_eq!(ids(&polled.try_look().await.unwrap()), [""; 0], "dated: {dated}");
        // Some are taken away at the top, and what was left out moves up.
        site.put("/feed", page(0..8_500, dated));
        assert_eq!(ids(&polled.try_look().await.unwrap()), [""; 0], "dated: {dated}");
        site.put("/feed", page((0..8_500).chain(9_001..9_003), dated));
        assert_eq!(ids(&polled.try_look().await.unwrap()), ["9001", "9002"], "dated: {dated}");
        assert_eq!(ids(&polled.try_look().await.unwrap()), [""; 0], "dated: {dated}");
    }
    // Listed the oldest first, a dated feed is read by its dates.
    let mut polled = feed(&site);
    polled.limits.seen_max = 5;
    let turned =
        |numbers: std::ops::Range<u64>| page(numbers.collect::<Vec<_>>().into_iter().rev(), true);
    site.put("/feed", turned(0..20));
    assert_eq!(ids(&polled.try_look().await.unwrap()), [""; 0]);
    site.put("/feed", turned(0..21));
    assert_eq!(ids(&polled.try_look().await.unwrap()), ["20"]);
}

#[tokio::test]
async fn an_entry_names_its_own_address_only_where_the_feed_lies() {
    let site = Site::start().await.unwrap();
    let mut polled = feed(&site);
    let page = |entries: &str| {
        let head = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>t</title><id>f</id>";
        Reply::page("application/xml", format!("{head}{entries}</feed>"))
    };
    site.put("/feed", page(""));
    polled.try_look().await.unwrap();
    let entry = |id: &str, links: &str| format!("<entry><id>{id}</id>{links}</entry>");
    let address = site.address();
    let entries = [
        entry(
            "own",
            "<link rel=\"related\" href=\"/about\"/><link href=\"/own\"/><link href=\"/2\"/>",
        ),
        entry("other", "<link href=\"https://evil.example/?leak\"/>"),
        entry("port", "<link href=\"http://127.0.0.1:1/\"/>"),
        entry("credentials", &format!("<link href=\"http://a:b@{address}/\"/>")),
        entry("un\u{202e}seen\u{200b}", ""),
    ];
    site.put("/feed", page(&entries.concat()));
    let looked = polled.try_look().await.unwrap();
    let links: Vec<(&str, &[String])> =
        looked.items.iter().map(|i| (i.key.as_deref().unwrap(), i.links.as_slice())).collect();
    let own = [site.url("/own")];
    let none = [].as_slice();
    let expected =
        [("unseen", none), ("credentials", none), ("port", none), ("other", none), ("own", &own)];
    assert_eq!(links, expected);
    assert!(String::from_utf8_lossy(&looked.items[3].content).contains("https://evil.example/"));
}

#[tokio::test]
async fn feeds_of_other_forms_are_read() {
    let atom = |id: &str| {
        format!(
            "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>t</title><id>f</id>\
             <entry><id>{id}</id><title>An entry</title><link href=\"/relative\"/></entry></feed>"
        )
    };
    let json = |id: &str| {
        format!(
            "{{\"version\": \"https://jsonfeed.org/version/1.1\", \"title\": \"t\", \"items\": \
             [{{\"id\": \"{id}\", \"content_text\": \"hello\"}}]}}"
        )
    };
    let bare = |text: &str| {
        format!(
            "<rss version=\"2.0\"><channel><title>t</title><item><title>{text}</title></item>\
             </channel></rss>"
        )
    };
    let long = "x".repeat(500);
    /// A feed with one entry of that id.
    type Form<'a> = &'a dyn Fn(&str) -> String;
    let forms: [(Form<'_>, &str); 4] = [(&atom, "2"), (&json, "2"), (&bare, "2"), (&atom, &long)];
    for (form, id) in forms {
        let site = Site::start().await.unwrap();
        let mut polled = feed(&site);
        site.put("/feed", Reply::page("application/xml", form("1")));
        polled.try_look().await.unwrap();
        site.put("/feed", Reply::page("application/xml", form(id)));
        let looked = polled.try_look().await.unwrap();
        assert_eq!(looked.items.len(), 1, "{}", form("2"));
        assert!(looked.items[0].external_id.len() <= 200);
        assert_eq!(polled.try_look().await.unwrap().items, []);
    }
}

#[tokio::test]
async fn a_broken_feed_says_so_and_goes_on_when_mended() {
    let site = Site::start().await.unwrap();
    let mut polled = feed(&site);
    site.put("/feed", Reply::page("application/xml", rss(&["1"])));
    polled.try_look().await.unwrap();
    let before = polled.cursor.clone();
    let deep = format!("<rss version=\"2.0\"><channel>{}", "<a>".repeat(200_000));
    for broken in ["<rss version=\"2.0\"><channel><item><title>x</it", "<html><p>hi", "", &deep] {
        site.put("/feed", Reply::page("application/xml", broken));
        let error = polled.try_look().await.unwrap_err();
        assert!(error.heals_by_waiting());
        assert!(error.to_string().contains("is no feed that can be read"), "{error}");
    }
    for (status, heals) in [(404, false), (401, false), (500, true), (429, true)] {
        let headers = vec![("Retry-After".to_owned(), "120".to_owned())];
        site.put("/feed", Reply::Page { status, headers, body: Vec::new() });
        let error = polled.try_look().await.unwrap_err();
        let retry_after = Some("120".to_owned());
        assert_eq!(error, LookError::Status { url: site.url("/feed"), status, retry_after });
        assert_eq!(error.heals_by_waiting(), heals);
    }
    assert_eq!(polled.cursor, before);
    site.put("/feed", Reply::page("application/xml", rss(&["2", "1"])));
    assert_eq!(ids(&polled.try_look().await.unwrap()), ["2"]);
    polled.cursor = Some("{\"seen\":\"!\"}".to_owned());
    assert_eq!(polled.try_look().await, Err(LookError::Cursor));
    polled.config = Config::Feed { url: "http://10.0.0.1/feed".to_owned() };
    polled.cursor = None;
    assert!(!polled.try_look().await.unwrap_err().heals_by_waiting());
}

#[tokio::test]
async fn a_page_tells_each_change_once() {
    let site = Site::start().await.unwrap();
    let url = site.url("/page");
    let mut polled = Polled::new(Some(&site), Config::Url { url: url.clone() });
    let page = |price: &str, script: &str| {
        let html = format!(
            "<title>Shop</title><script>{script}</script><p>Bicycle</p><p>{price} euros</p>"
        );
        Reply::page("text/html", html)
    };
    site.put("/page", page("97", "1"));
    assert_eq!(polled.texts().await, texts(&[], false));
    // What is not text is no change.
    site.put("/page", page("97", "2"));
    assert_eq!(polled.texts().await, texts(&[], false));
    let first = polled.cursor.clone();
    site.put("/page", page("95", "2"));
    let there = polled.try_look().await.unwrap();
    let change = format!("{url} has changed.\n+ 95 euros\n- 97 euros");
    assert_eq!(String::from_utf8_lossy(&there.items[0].content), change);
    assert_eq!(there.items[0].links, [url]);
    assert_eq!(polled.texts().await, texts(&[], false));
    site.put("/page", page("97", "2"));
    let back = polled.try_look().await.unwrap();
    site.put("/page", page("95", "2"));
    let again = polled.try_look().await.unwrap();
    // There, back and there again are three facts.
    let all = [ids(&there)[0], ids(&back)[0], ids(&again)[0]];
    let distinct: std::collections::BTreeSet<&str> = all.into_iter().collect();
    assert_eq!(distinct.len(), 3, "{all:?}");
    // A lost commit finds the same fact.
    polled.cursor = first;
    assert_eq!(ids(&polled.try_look().await.unwrap()), ids(&there));
}

#[tokio::test]
async fn a_large_change_is_told_in_short() {
    let site = Site::start().await.unwrap();
    let recheck = Some(site.url("/page"));
    let scheme = connect::source::Scheme::Standard;
    let config = Config::Webhook { scheme, key: None, topic: None, recheck };
    let mut polled = Polled::new(Some(&site), config);
    let page = |word: &str, end: &str| {
        let lines: String = (0..20_000).map(|n| format!("{word} \"{n}\" 価格\n")).collect();
        Reply::page("text/plain", format!("{lines}{end}"))
    };
    site.put("/page", page("a", ""));
    polled.try_look().await.unwrap();
    site.put("/page", page("b", ""));
    let looked = polled.try_look().await.unwrap();
    assert!(looked.items[0].content.len() <= 4 * 1024);
    // Behind what the cursor keeps, a change is noticed but not told.
    site.put("/page", page("b", "the end"));
    let (found, _) = polled.texts().await;
    assert!(found[0].ends_with("lines moved, or what follows changed."), "{found:?}");
    // A PDF is compared by its bytes.
    for (bytes, items) in [("%PDF-1", 1), ("%PDF-1", 0), ("%PDF-2", 1)] {
        site.put("/page", Reply::page("application/pdf", bytes));
        assert_eq!(polled.try_look().await.unwrap().items.len(), items);
    }
    let config = Config::Webhook { scheme, key: None, topic: None, recheck: None };
    polled.config = config;
    assert_eq!(polled.try_look().await, Err(LookError::NotPolled));
}
