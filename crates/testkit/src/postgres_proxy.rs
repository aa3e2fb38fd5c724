//! A proxy in front of PostgreSQL that breaks a connection around one chosen COMMIT, so that tests
//! can show what a commit whose outcome is lost does (P1, P3; DESIGN section 4).
//!
//! It reads the message frames of the wire protocol and knows one request: the simple query
//! `COMMIT`, as the client library sends it. Everything else passes through as it is.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Where the connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server never sees the COMMIT: nothing happened.
    Before,
    /// The server has committed; its answer never reaches the client.
    After,
}

/// A test opens a handful; more than this is a leak.
const CONNECTIONS_MAX: usize = 64;
/// No test sends more in one message.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

const SIMPLE_QUERY: u8 = b'Q';
const COMMAND_COMPLETE: u8 = b'C';
const ERROR_RESPONSE: u8 = b'E';
/// The request code for an encrypted connection; the server's answer is one byte without a frame.
const ENCRYPTION_REQUESTS: [u32; 2] = [80_877_103, 80_877_104];

/// The running proxy; dropping it breaks all its connections.
#[derive(Debug)]
pub struct PostgresProxy {
    address: SocketAddr,
    url: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: String,
    stopped: AtomicBool,
    cuts: AtomicU32,
    /// Armed for the next COMMIT of any connection. A lock, since two connections may race for it.
    next: Mutex<Option<Cut>>,
    /// Both ends of every connection, to break them at the end. A lock: threads add, drop clears.
    open: Mutex<Vec<TcpStream>>,
}

impl PostgresProxy {
    /// Starts a proxy before the server of `url` (`postgres://user:password@host:port/database`).
    ///
    /// # Errors
    /// If the URL names no host and port, or no loopback port is to be had.
    pub fn start(url: &str) -> io::Result<Self> {
        let parts = url.rsplit_once('@').and_then(|(user, rest)| {
            rest.split_once('/').map(|(server, database)| (user, server, database))
        });
        let Some((user, server, database)) = parts else {
            let text = "the URL must read postgres://user:password@host:port/database";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        };
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            server: server.to_owned(),
            stopped: AtomicBool::new(false),
            cuts: AtomicU32::new(0),
            next: Mutex::new(None),
            open: Mutex::new(Vec::new()),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Ok(PostgresProxy { address, url: format!("{user}@{address}/{database}"), shared })
    }

    /// The URL to give to the code under test.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Breaks the connection that sends the next COMMIT, once.
    pub fn cut_next_commit(&self, cut: Cut) {
        *self.shared.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(cut);
    }

    /// How many connections were broken at a COMMIT; a test that arms a cut asserts this.
    pub fn cuts(&self) -> u32 {
        self.shared.cuts.load(Ordering::SeqCst)
    }
}

impl Drop for PostgresProxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then sees that it is over.
        drop(TcpStream::connect(self.address));
        for stream in self.shared.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            cut(&stream);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming().flatten() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        // A connection that cannot be made is closed, which is what its client must handle.
        drop(connect(client, shared));
    }
}

fn connect(client: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    let server = TcpStream::connect(&shared.server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    {
        let mut open = shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|stream| stream.peer_addr().is_ok());
        if open.len() >= 2 * CONNECTIONS_MAX {
            return Err(io::Error::other("too many connections"));
        }
        open.extend([client.try_clone()?, server.try_clone()?]);
    }
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        // An error means that one side is gone; then the other goes too.
        drop(forward(&client, &server, &shared));
        cut(&client);
        cut(&server);
    });
    Ok(())
}

/// Passes the start of the connection, then requests and answers on a thread each.
fn forward(client: &TcpStream, server: &TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    while pass_startup(client, server)? {}
    let (from, to, counting) = (server.try_clone()?, client.try_clone()?, Arc::clone(shared));
    let swallow = Arc::new(AtomicBool::new(false));
    let swallowing = Arc::clone(&swallow);
    let answers = thread::spawn(move || {
        drop(pass_answers(&from, &to, &counting, &swallowing));
        cut(&from);
        cut(&to);
    });
    let passed = pass_requests(client, server, shared, &swallow);
    // The client is gone or cut off: so is its session at the server. After a COMMIT that is to be
    // lost, the client waits, so the answering thread is the one that ends both sides.
    cut(server);
    drop(answers.join());
    passed
}

/// Passes one message of the start; true if it asked for encryption and another one follows.
fn pass_startup(mut client: &TcpStream, mut server: &TcpStream) -> io::Result<bool> {
    let mut header = [0; 8];
    client.read_exact(&mut header)?;
    let length = usize::try_from(u32::from_be_bytes([header[0], header[1], header[2], header[3]]));
    let code = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    let body = read_bytes(client, length.ok().and_then(|length| length.checked_sub(8)))?;
    server.write_all(&[&header[..], &body].concat())?;
    if !ENCRYPTION_REQUESTS.contains(&code) {
        return Ok(false);
    }
    let mut answer = [0];
    server.read_exact(&mut answer)?;
    client.write_all(&answer)?;
    if answer == *b"N" {
        return Ok(true);
    }
    Err(io::Error::other("the proxy reads no encrypted connection; use sslmode=disable"))
}

fn pass_requests(
    client: &TcpStream,
    mut server: &TcpStream,
    shared: &Shared,
    swallow: &AtomicBool,
) -> io::Result<()> {
    loop {
        let message = read_message(client)?;
        let armed = if is_commit(&message) {
            shared.next.lock().unwrap_or_else(PoisonError::into_inner).take()
        } else {
            None
        };
        match armed {
            Some(Cut::Before) => {
                shared.cuts.fetch_add(1, Ordering::SeqCst);
                return Err(io::Error::other("cut before COMMIT"));
            }
            Some(Cut::After) => swallow.store(true, Ordering::SeqCst),
            None => {}
        }
        server.write_all(&message)?;
    }
}

/// Passes answers until the one to a swallowed COMMIT comes. Earlier answers may still be under way
/// when that COMMIT is sent; only its own completion shows that the server has committed.
fn pass_answers(
    server: &TcpStream,
    mut client: &TcpStream,
    shared: &Shared,
    swallow: &AtomicBool,
) -> io::Result<()> {
    loop {
        let message = read_message(server)?;
        if swallow.load(Ordering::SeqCst) && ends_commit(&message) {
            shared.cuts.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
        client.write_all(&message)?;
    }
}

/// A whole message: type, length, body.
fn read_message(mut stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut header = [0; 5];
    stream.read_exact(&mut header)?;
    let length = usize::try_from(u32::from_be_bytes([header[1], header[2], header[3], header[4]]));
    let body = read_bytes(stream, length.ok().and_then(|length| length.checked_sub(4)))?;
    Ok([&header[..], &body].concat())
}

fn read_bytes(mut stream: &TcpStream, length: Option<usize>) -> io::Result<Vec<u8>> {
    match length {
        Some(length) if length <= MESSAGE_BYTES_MAX => {
            let mut body = vec![0; length];
            stream.read_exact(&mut body)?;
            Ok(body)
        }
        Some(_) | None => Err(io::Error::other("a message of an impossible length")),
    }
}

/// A simple query that says COMMIT, or ends with it.
fn is_commit(message: &[u8]) -> bool {
    let Some((&SIMPLE_QUERY, rest)) = message.split_first() else { return false };
    let text = rest.get(4..).unwrap_or_default();
    let text = String::from_utf8_lossy(text.strip_suffix(b"\0").unwrap_or(text));
    let last = text.split(';').map(str::trim).rfind(|statement| !statement.is_empty());
    last.is_some_and(|statement| statement.eq_ignore_ascii_case("COMMIT"))
}

/// The completion of a COMMIT, which says ROLLBACK for a transaction that had failed, or its error.
fn ends_commit(message: &[u8]) -> bool {
    let tag = message.get(5..).unwrap_or_default();
    match message.first() {
        Some(&COMMAND_COMPLETE) => tag == b"COMMIT\0" || tag == b"ROLLBACK\0",
        Some(&ERROR_RESPONSE) => true,
        Some(_) | None => false,
    }
}

fn cut(stream: &TcpStream) {
    // It may be closed already, which is as good.
    drop(stream.shutdown(Shutdown::Both));
}
