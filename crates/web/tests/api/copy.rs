//! Copies of the owner's records.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use store::{Database, Store};
use testkit::stores::{block_on, options};

use crate::server::Server;

/// Asks for a copy and reads so much of the answer at least, then hangs up.
fn copy(server: &Server, token: &str, at_least: usize) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let address = server.address;
    let head = "GET /v1/copy HTTP/1.0\r\nhost: ";
    write!(stream, "{head}{address}\r\nauthorization: Bearer {token}\r\n\r\n").unwrap();
    let (mut answer, mut chunk) = (Vec::new(), [0; 4096]);
    while answer.len() < at_least {
        let read = stream.read(&mut chunk).unwrap();
        if read == 0 {
            break;
        }
        answer.extend_from_slice(&chunk[..read]);
    }
    let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    (status, answer.split_off(end + 4))
}

/// Leaves with the head of an answer, long before there is a copy, then asks until it gets a whole one. Also
/// whether it had to wait for the first, which was still being made.
fn left_and_asked_again(server: &Server, token: &str) -> (Vec<u8>, bool) {
    let (status, _) = copy(server, token, 60);
    assert_eq!(status, 200);
    let mut waited = false;
    loop {
        match copy(server, token, usize::MAX) {
            (429, _) => waited = true,
            (status, bytes) => {
                assert_eq!(status, 200);
                return (bytes, waited);
            }
        }
    }
}

#[test]
fn a_client_that_leaves_spoils_no_later_copy() {
    let server = Server::start();
    let token = server.device("phone").token;
    server.notices(4_000);
    for killed in ["copy.db", "copy.db-journal"] {
        std::fs::write(server.folder.path().join(killed), "what a killed process left").unwrap();
    }
    // A machine that is busy with something else may make a copy before the second request is there.
    let tries = (0..10).map(|_| left_and_asked_again(&server, &token));
    let whole = tries.into_iter().find_map(|(whole, waited)| waited.then_some(whole));
    let whole = whole.expect("somebody waits for the copy that is still being made");
    let file = server.folder.path().join("whole.db");
    std::fs::write(&file, whole).unwrap();
    let ids = base::IdSource::new([3; 32]);
    let opened = options(Database::Sqlite(file), server.clock.clone(), &ids, true);
    let (owner, copied) = (server.owner.id, Store::open(opened).unwrap());
    let read = move |tx: &mut store::Tx<'_>| store::message::chat_after(tx, owner, 0, 100_000);
    let there = block_on(copied.read(read)).unwrap();
    assert_eq!(there, block_on(server.cx.store.read(read)).unwrap());
    assert!(there.len() >= 4_000, "{}", there.len());
    let left = std::fs::read_dir(server.folder.path()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("copy.db")), "{left:?}");
}
