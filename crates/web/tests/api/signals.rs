//! The stream: at once, after each change, after a reconnection, and no longer than it may.

use serde_json::json;

use crate::client::{Ask, send};
use crate::server::Server;

#[test]
fn a_stream_tells_the_number_at_once_and_after_each_change() {
    let server = Server::start();
    let device = server.device("phone");
    let mut first = server.stream(&device.token);
    assert_eq!(first.next(), Some(1));
    let say = json!({"id": server.id(), "text": "hello"});
    assert_eq!(server.post(&device.token, "/v1/messages", &say).json()["seq"], 2);
    assert_eq!(first.next(), Some(2));
    // A repeat changes nothing and signals nothing; the next change does.
    server.post(&device.token, "/v1/messages", &say);
    server.notices(3);
    assert_eq!(first.next(), Some(3));
    drop(first);
    server.notices(1);
    let mut second = server.stream(&device.token);
    assert_eq!(second.next(), Some(4));
}

#[test]
fn a_stream_ends_when_its_device_is_revoked_and_when_the_server_stops() {
    let server = Server::start();
    let (phone, lost) = (server.device("phone"), server.device("lost phone"));
    let (mut stays, mut ends) = (server.stream(&phone.token), server.stream(&lost.token));
    assert_eq!((stays.next(), ends.next()), (Some(2), Some(2)));
    server.revoke(lost.id);
    assert_eq!((stays.next(), ends.next()), (Some(3), None));
    server.stop();
    assert_eq!(stays.next(), None);
}

#[test]
fn streams_are_bounded_and_a_closed_one_makes_room() {
    let server = Server::start();
    let device = server.device("phone");
    let mut open: Vec<_> = (0..64).map(|_| server.stream(&device.token)).collect();
    let one_more = || send(server.address, &Ask::get("/v1/stream").token(&device.token));
    let refused = one_more();
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("5")));
    server.revoke(device.id);
    for stream in &mut open {
        while stream.next().is_some() {}
    }
    let other = server.device("tablet");
    assert_eq!(server.stream(&other.token).next(), Some(3));
}
