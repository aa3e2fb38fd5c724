//! A plain HTTP client with every header in the test's hand. Each answer is held against
//! `openapi.json`: a status that the document does not name, or a body of another form, fails the test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::contract;
use crate::server::Server;

/// Long enough for a busy machine; an answer that takes longer fails the test.
const PATIENCE: Duration = Duration::from_secs(20);

/// One request.
#[derive(Debug, Clone)]
pub struct Ask {
    pub method: &'static str,
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Ask {
    pub fn get(path: impl Into<String>) -> Self {
        Ask { method: "GET", path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    pub fn post(path: impl Into<String>, body: &Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        let body = body.to_string().into_bytes();
        Ask { method: "POST", path: path.into(), headers, body }
    }

    pub fn raw(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    /// The same header once more.
    pub fn also(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn token(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }
}

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub text: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub fn detail(&self) -> String {
        self.json()["detail"].as_str().expect("a problem").to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

fn open(address: SocketAddr, ask: &Ask) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut head = format!("{} {} HTTP/1.1\r\nconnection: close\r\n", ask.method, ask.path);
    if !ask.headers.iter().any(|(name, _)| *name == "host") {
        head.push_str(&format!("host: {address}\r\n"));
    }
    for (name, value) in ask.headers.iter().filter(|(_, value)| !value.is_empty()) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !ask.headers.iter().any(|(name, _)| *name == "content-length") {
        head.push_str(&format!("content-length: {}\r\n", ask.body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).expect("a request");
    if !ask.headers.iter().any(|(name, _)| *name == "expect") {
        // A server that refuses by the head alone may not take the body.
        drop(stream.write_all(&ask.body));
    }
    BufReader::new(stream)
}

fn head(reader: &mut BufReader<TcpStream>) -> (u16, String) {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        let read = reader.read_line(&mut line).expect("a line of the head");
        if read == 0 || line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    (status.unwrap_or_else(|| panic!("no status in {head:?}")), head)
}

/// Sends a request as it is and reads the whole answer.
pub fn send(address: SocketAddr, ask: &Ask) -> Reply {
    rest(&mut open(address, ask))
}

fn rest(reader: &mut BufReader<TcpStream>) -> Reply {
    let (status, head) = head(reader);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).expect("a body");
    Reply { status, head, text: String::from_utf8_lossy(&bytes).into_owned() }
}

/// A request whose body the server has asked for and not got yet.
pub struct Half(BufReader<TcpStream>);

impl Half {
    pub fn open(address: SocketAddr, ask: &Ask) -> Self {
        let mut reader = open(address, ask);
        assert_eq!(head(&mut reader).0, 100);
        Half(reader)
    }

    pub fn finish(&mut self, body: &[u8]) -> Reply {
        self.0.get_mut().write_all(body).expect("a body");
        rest(&mut self.0)
    }
}

impl Server {
    /// Sends a request and holds the answer against the document.
    pub fn ask(&self, ask: &Ask) -> Reply {
        let reply = send(self.address, ask);
        contract::check(ask, &reply);
        reply
    }

    pub fn get(&self, token: &str, path: &str) -> Reply {
        self.ask(&Ask::get(path).token(token))
    }

    pub fn post(&self, token: &str, path: &str, body: &Value) -> Reply {
        self.ask(&Ask::post(path, body).token(token))
    }

    /// Opens the stream of signals.
    pub fn stream(&self, token: &str) -> Signals {
        let mut reader = open(self.address, &Ask::get("/v1/stream").token(token));
        let (status, head) = head(&mut reader);
        assert_eq!(status, 200, "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        Signals(reader)
    }

    /// Reads again after each signal until `wanted` finds what it waits for.
    pub fn wait_for<T>(&self, token: &str, mut wanted: impl FnMut() -> Option<T>) -> T {
        let mut signals = self.stream(token);
        loop {
            signals.next().expect("a signal");
            if let Some(found) = wanted() {
                return found;
            }
        }
    }
}

/// An open stream.
pub struct Signals(BufReader<TcpStream>);

impl Signals {
    /// The next number; `None` when the server ended the stream.
    pub fn next(&mut self) -> Option<i64> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).expect("a line of the stream") == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data:") {
                let data: Value = serde_json::from_str(data.trim()).expect("JSON");
                return Some(data["seq"].as_i64().expect("a number"));
            }
        }
    }
}
