//! A server in the test's own process that follows the HTTP contract and can break connections.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// One request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Method and path with query, such as `GET /v1/me`.
    pub what: String,
    /// The bearer token.
    pub token: Option<String>,
    /// JSON body, or null.
    pub body: Value,
}

/// What the server does with a request.
pub enum Reply {
    /// Status and JSON.
    Json(u16, Value),
    /// Takes the request and closes the connection without an answer.
    Drop,
    /// A stream of signals that ends when the sender is dropped.
    Signals(Receiver<i64>),
}

/// The address of the server and everything it was asked.
pub struct Peer {
    /// Root of the API.
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Peer {
    /// Starts a server whose every answer is made by `handler`, one request at a time.
    pub fn start(handler: impl FnMut(&Asked) -> Reply + Send + 'static) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (handler, log) = (Arc::new(Mutex::new(handler)), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (handler, log) = (handler.clone(), log.clone());
                std::thread::spawn(move || {
                    let Some(request) = read(&stream) else { return };
                    log.lock().expect("log").push(request.clone());
                    let reply = (handler.lock().expect("handler"))(&request);
                    // A client that went away is no matter of the server.
                    let _ = answer(stream, reply);
                });
            }
        });
        Peer { url, asked }
    }

    /// Everything that was asked so far whose `what` begins with `prefix`.
    pub fn asked(&self, prefix: &str) -> Vec<Asked> {
        let asked = self.asked.lock().expect("log");
        asked.iter().filter(|asked| asked.what.starts_with(prefix)).cloned().collect()
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let what = format!("{} {}", words.next()?, words.next()?);
    let (mut token, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => token = value.strip_prefix("Bearer ").map(str::to_string),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { what, token, body: serde_json::from_slice(&body).unwrap_or(Value::Null) })
}

fn answer(mut stream: TcpStream, reply: Reply) -> std::io::Result<()> {
    match reply {
        Reply::Drop => Ok(()),
        Reply::Json(status, value) => {
            let body = value.to_string();
            write!(
                stream,
                "HTTP/1.1 {status} Any\r\ncontent-type: application/json\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            )
        }
        Reply::Signals(signals) => {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
                 : heartbeat\n\n"
            )?;
            // Split in the middle of a line, as a network may.
            for seq in signals {
                write!(stream, "event: changed\nda")?;
                stream.flush()?;
                write!(stream, "ta: {{\"seq\":{seq}}}\n\n")?;
            }
            Ok(())
        }
    }
}
