//! A web site that misbehaves on command: it redirects, never ends, drips, lies about its charset.
//!
//! It speaks HTTP/1.1 byte by byte, so that a test decides what goes over the wire and when. It counts
//! connections, which is how a test shows that nobody came; and it keeps what was asked.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Requests that are kept; later ones are only answered.
const ASKED_MAX: usize = 10_000;
/// Bytes of one piece of an endless body.
const PIECE_BYTES: usize = 64 * 1024;

/// What stands at a path.
#[derive(Debug)]
pub enum Reply {
    /// An answer with its length. With an `ETag` among the headers, a request that names it gets 304.
    Page {
        /// The status.
        status: u16,
        /// Further headers.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// A page of so many bytes, sent without saying how many.
    Huge {
        /// Its media type.
        media: String,
        /// Its length.
        bytes: u64,
    },
    /// A page whose pieces come from a channel and that ends with it. It can be asked for once.
    Paced(mpsc::Receiver<Vec<u8>>),
    /// No answer; the connection stays open until the asker closes it.
    Silence,
    /// Bytes as they are, instead of an answer.
    Raw(Vec<u8>),
    /// A search engine of SearXNG's kind: `q` and `format=json` in the query.
    Searxng(Vec<Found>),
    /// A search engine of Brave's kind: `q` in the query, the key in `X-Subscription-Token`.
    Brave {
        /// The key that must be brought.
        key: String,
        /// What it knows.
        found: Vec<Found>,
    },
}

/// An entry of a search engine; found by every word of a query that its title or text holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The title.
    pub title: String,
    /// The address.
    pub url: String,
    /// A piece of the text.
    pub content: String,
}

impl Reply {
    /// A page with status 200.
    pub fn page(media: &str, body: impl Into<Vec<u8>>) -> Reply {
        let headers = vec![("Content-Type".to_owned(), media.to_owned())];
        Reply::Page { status: 200, headers, body: body.into() }
    }

    /// The same page with one more header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Reply {
        if let Reply::Page { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// A redirect with status 302.
    pub fn redirect(to: &str) -> Reply {
        let headers = vec![("Location".to_owned(), to.to_owned())];
        Reply::Page { status: 302, headers, body: b"moved".to_vec() }
    }
}

/// One request as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The path and query.
    pub target: String,
    /// The headers, names in lower case, in their order.
    pub headers: Vec<(String, String)>,
}

impl Asked {
    /// The first header of that name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// A value of the query, with `+` and `%20` as blanks; nothing else is decoded.
    fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        Some(value.replace('+', " ").replace("%20", " "))
    }
}

#[derive(Debug, Default)]
struct Seen {
    connections: usize,
    asked: Vec<Asked>,
    replies: BTreeMap<String, Reply>,
}

/// The running site; it stops when it is dropped.
#[derive(Debug)]
pub struct Site {
    address: SocketAddr,
    /// Held for one look or change only, never across a wait.
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    /// Serves on a free port of `127.0.0.1`. Every path is 404 until it is given a [`Reply`].
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start() -> io::Result<Site> {
        Site::start_at("127.0.0.1:0").await
    }

    /// Serves at an address, such as `[::1]:0`.
    ///
    /// # Errors
    /// When the address can not be had.
    pub async fn start_at(address: &str) -> io::Result<Site> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let task = tokio::spawn(accept(listener, seen.clone()));
        Ok(Site { address, seen, task })
    }

    /// Where it serves.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path, by address.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Puts something at a path, instead of what was there.
    pub fn put(&self, path: &str, reply: Reply) {
        look(&self.seen).replies.insert(path.to_owned(), reply);
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        look(&self.seen).connections
    }

    /// What was asked so far, in order.
    pub fn asked(&self) -> Vec<Asked> {
        look(&self.seen).asked.clone()
    }
}

fn look(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, seen: Arc<Mutex<Seen>>) {
    while let Ok((stream, _)) = listener.accept().await {
        look(&seen).connections += 1;
        // An asker that goes away in the middle is what many tests are about.
        tokio::spawn(serve(stream, seen.clone()));
    }
}

/// Answers one request and closes the connection.
async fn serve(mut stream: TcpStream, seen: Arc<Mutex<Seen>>) -> io::Result<()> {
    let Some(asked) = read_head(&mut stream).await? else { return Ok(()) };
    let answer = answer(&mut look(&seen), &asked);
    match answer {
        Answer::Bytes(bytes) => stream.write_all(&bytes).await?,
        Answer::Huge { head, mut bytes } => {
            stream.write_all(&head).await?;
            let piece = vec![b'x'; PIECE_BYTES];
            while bytes > 0 {
                let length = usize::try_from(bytes).map_or(PIECE_BYTES, |n| n.min(PIECE_BYTES));
                stream.write_all(&piece[..length]).await?;
                bytes -= length as u64;
            }
        }
        Answer::Paced { head, mut pieces } => {
            stream.write_all(&head).await?;
            while let Some(piece) = pieces.recv().await {
                stream.write_all(&piece).await?;
                stream.flush().await?;
            }
        }
        Answer::Silence => {
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await?;
        }
    }
    stream.shutdown().await
}

async fn read_head(stream: &mut TcpStream) -> io::Result<Option<Asked>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD_BYTES_MAX || stream.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let target = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    Ok(Some(Asked { target: target.to_owned(), headers: headers.collect() }))
}

/// What goes over the wire.
enum Answer {
    Bytes(Vec<u8>),
    Huge { head: Vec<u8>, bytes: u64 },
    Paced { head: Vec<u8>, pieces: mpsc::Receiver<Vec<u8>> },
    Silence,
}

fn answer(seen: &mut Seen, asked: &Asked) -> Answer {
    if seen.asked.len() < ASKED_MAX {
        seen.asked.push(asked.clone());
    }
    let text = |media: &str| vec![("Content-Type".to_owned(), media.to_owned())];
    let missing = || page(404, &text("text/plain"), b"there is nothing here");
    let Some(reply) = seen.replies.get(asked.path()) else { return Answer::Bytes(missing()) };
    match reply {
        Reply::Page { status, headers, body } => {
            let etag = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("etag"));
            let known = etag.is_some_and(|(_, etag)| asked.header("if-none-match") == Some(etag));
            Answer::Bytes(if known {
                page(304, headers, b"")
            } else {
                page(*status, headers, body)
            })
        }
        Reply::Huge { media, bytes } => {
            Answer::Huge { head: head(200, &text(media), None), bytes: *bytes }
        }
        Reply::Silence => Answer::Silence,
        Reply::Raw(bytes) => Answer::Bytes(bytes.clone()),
        Reply::Searxng(found) => Answer::Bytes(searxng(asked, found)),
        Reply::Brave { key, found } => Answer::Bytes(brave(asked, key, found)),
        Reply::Paced(_) => match seen.replies.remove(asked.path()) {
            Some(Reply::Paced(pieces)) => {
                Answer::Paced { head: head(200, &text("text/html"), None), pieces }
            }
            Some(_) | None => Answer::Bytes(missing()),
        },
    }
}

/// The head of an answer; without a length it ends with the connection.
fn head(status: u16, headers: &[(String, String)], length: Option<usize>) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Said\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(length) = length {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

fn page(status: u16, headers: &[(String, String)], body: &[u8]) -> Vec<u8> {
    let length = (status != 304).then_some(body.len());
    [head(status, headers, length).as_slice(), body].concat()
}

fn json_page(status: u16, body: &Value) -> Vec<u8> {
    let media = ("Content-Type".to_owned(), "application/json".to_owned());
    page(status, &[media], body.to_string().as_bytes())
}

/// The entries that hold every word of the query `q`.
fn matching<'a>(asked: &Asked, found: &'a [Found]) -> Vec<&'a Found> {
    let query = asked.query("q").unwrap_or_default().to_lowercase();
    let holds = |found: &Found, word: &str| {
        [&found.title, &found.content].iter().any(|text| text.to_lowercase().contains(word))
    };
    found.iter().filter(|found| query.split_whitespace().all(|word| holds(found, word))).collect()
}

/// `GET /search?q=…&format=json`; another format is refused as SearXNG does by default.
fn searxng(asked: &Asked, found: &[Found]) -> Vec<u8> {
    if asked.query("format").as_deref() != Some("json") {
        return page(403, &[], b"Forbidden");
    }
    let results: Vec<Value> = matching(asked, found)
        .into_iter()
        .map(|found| {
            json!({
                "title": found.title, "url": found.url, "content": found.content,
                "engine": "local", "score": 1.0, "category": "general",
            })
        })
        .collect();
    let query = asked.query("q");
    let body = json!({
        "query": query, "number_of_results": results.len(), "results": results,
        "answers": [], "suggestions": [], "unresponsive_engines": [],
    });
    json_page(200, &body)
}

/// `GET /res/v1/web/search?q=…&count=…`.
fn brave(asked: &Asked, key: &str, found: &[Found]) -> Vec<u8> {
    if asked.header("x-subscription-token") != Some(key) {
        let error = json!({"code": "SUBSCRIPTION_TOKEN_INVALID", "status": 422});
        return json_page(422, &json!({"type": "ErrorResponse", "error": error}));
    }
    let results: Vec<Value> = matching(asked, found)
        .into_iter()
        .map(|found| {
            json!({
                "type": "search_result", "title": found.title, "url": found.url,
                "description": found.content,
            })
        })
        .collect();
    let web = json!({"type": "search", "results": results});
    json_page(200, &json!({"type": "search", "query": {"original": asked.query("q")}, "web": web}))
}
