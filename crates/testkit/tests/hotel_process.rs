//! The hotel vendor as a process: what it answered outlives a kill, and faults are switched from outside.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use testkit::hotel::process::read_state;
use testkit::hotel::{Fault, Faults, Hotel, Tool, Truth};
use testkit::stores::TempFolder;

/// The program that hosts the vendor.
const PROGRAM: &str = env!("CARGO_BIN_EXE_hotel");

/// A folder with the vendor's state and its plan of faults.
struct Place(TempFolder);

impl Place {
    fn new() -> Place {
        Place(TempFolder::new())
    }

    fn state(&self) -> PathBuf {
        self.0.path().join("hotel.json")
    }

    fn faults(&self) -> PathBuf {
        self.0.path().join("faults.json")
    }

    fn plan(&self, faults: &Faults) {
        fs::write(self.faults(), serde_json::to_string(faults).unwrap()).unwrap();
    }

    fn honest(&self) {
        fs::remove_file(self.faults()).unwrap();
    }

    /// The vendor as it is on the disk.
    fn vendor(&self) -> Hotel {
        read_state(&self.state()).unwrap().unwrap()
    }

    fn open(&self) -> Client {
        let mut child = Command::new(PROGRAM)
            .args(["--seed", "7", "--state"])
            .arg(self.state())
            .arg("--faults")
            .arg(self.faults())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut client = Client { child, to, from, requests: 0 };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
        client.ask("initialize", &hello);
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }
}

/// A client that shows every line.
struct Client {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    requests: u64,
}

impl Client {
    fn write(&mut self, message: &Value) {
        writeln!(self.to, "{message}").unwrap();
    }

    /// Sends a request and gives its id.
    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.requests += 1;
        let (id, method) = (self.requests, method.to_owned());
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.next();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool: whether it is an error, and its text.
    fn tool(&mut self, name: &str, arguments: &Value) -> (bool, String) {
        let answer = self.ask("tools/call", &json!({ "name": name, "arguments": arguments }));
        said(&answer)
    }

    fn quote(&mut self) -> String {
        let stay = json!({ "city": "Hong Kong", "check_in": "2026-12-10",
            "check_out": "2026-12-12", "guests": 1 });
        let (_, text) = self.tool("search_hotels", &stay);
        let offers: Value = serde_json::from_str(&text).unwrap();
        offers["offers"][0]["id"].as_str().unwrap().to_owned()
    }

    fn find(&mut self, client_ref: &str) -> Value {
        let (is_error, text) = self.tool("find_booking", &json!({ "client_ref": client_ref }));
        assert!(!is_error, "{text}");
        serde_json::from_str::<Value>(&text).unwrap()["booking"].clone()
    }

    /// Ends it with SIGKILL.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn said(answer: &Value) -> (bool, String) {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (result["isError"] == true, text.to_owned())
}

fn order(quote: &str, client_ref: &str) -> Value {
    json!({ "quote": quote, "client_ref": client_ref, "guest": "Ada" })
}

#[test]
fn a_booking_outlives_a_kill() {
    let place = Place::new();
    let mut client = place.open();
    let quote = client.quote();
    let (is_error, first) = client.tool("book_hotel", &order(&quote, "op-1"));
    assert!(!is_error, "{first}");
    client.kill();

    let mut client = place.open();
    let booking: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(client.find("op-1"), booking["booking"]);
    assert_eq!(client.find("op-2"), Value::Null);
    assert_eq!(client.tool("book_hotel", &order(&quote, "op-1")), (false, first));
    client.kill();
    let made: Vec<String> =
        place.vendor().bookings().iter().map(|booking| booking.client_ref.clone()).collect();
    assert_eq!(made, ["op-1"]);
}

/// The answer never comes, the process dies while the client waits, and the booking is there.
#[test]
fn a_lost_answer_hangs_and_its_booking_is_found_after_a_kill() {
    let place = Place::new();
    place.plan(&Faults::once(Tool::BookHotel, 1, Fault::AnswerLost));
    let mut client = place.open();
    let quote = client.quote();
    let asked = json!({ "name": "book_hotel", "arguments": order(&quote, "op-1") });
    client.send("tools/call", &asked);
    // The SDK may take up calls in any order, but a look-up is never kept waiting by one that hangs.
    let mut booking = Value::Null;
    while booking.is_null() {
        booking = client.find("op-1");
    }
    assert_eq!(booking["status"], "confirmed");
    client.kill();
    let mut client = place.open();
    assert_eq!(client.find("op-1"), booking);
    client.kill();
}

#[test]
fn faults_are_switched_from_outside() {
    let place = Place::new();
    let mut client = place.open();
    let quote = client.quote();
    place.plan(&Faults::always(Tool::BookHotel, Fault::RefusesYetBooks));
    let (is_error, text) = client.tool("book_hotel", &order(&quote, "op-1"));
    let refusal: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((is_error, &refusal["error"]["code"]), (true, &json!("sold_out")));
    assert_eq!(client.find("op-1")["status"], "confirmed");

    place.plan(&Faults::always(Tool::BookHotel, Fault::Lies));
    assert!(!client.tool("book_hotel", &order(&quote, "op-2")).0);
    assert_eq!(client.find("op-2"), Value::Null);

    fs::write(place.faults(), "{").unwrap();
    let call = json!({ "name": "book_hotel", "arguments": order(&quote, "op-3") });
    let answer = client.ask("tools/call", &call);
    let complaint = answer["error"]["message"].as_str().unwrap();
    assert!(complaint.starts_with("no plan of faults: "), "{complaint}");
    place.honest();
    assert_eq!(client.find("op-3"), Value::Null);
    client.kill();

    let vendor = place.vendor();
    let truths: Vec<(Option<&str>, bool)> = vendor
        .requests()
        .iter()
        .filter(|request| request.tool == Tool::BookHotel)
        .map(|request| (request.client_ref.as_deref(), request.truth == Truth::Nothing))
        .collect();
    assert_eq!(truths, [(Some("op-1"), false), (Some("op-2"), true)]);
}

#[test]
fn an_answer_comes_twice_on_the_wire() {
    let place = Place::new();
    let mut client = place.open();
    let quote = client.quote();
    let first = client
        .ask("tools/call", &json!({ "name": "book_hotel", "arguments": order(&quote, "op-1") }));
    place.plan(&Faults::always(Tool::FindBooking, Fault::DuplicateAnswer));
    let id = client.send(
        "tools/call",
        &json!({ "name": "find_booking", "arguments": { "client_ref": "op-1" } }),
    );
    let both = [client.next(), client.next()];
    assert_eq!(said(&both[0]), said(&first));
    assert_eq!([&both[0]["id"], &both[1]["id"]], [&first["id"], &json!(id)]);
    client.kill();
}

/// A process that outlives its client, and its successor: neither undoes what the other did.
#[test]
fn two_processes_with_one_state_are_one_vendor() {
    let place = Place::new();
    let (mut one, mut other) = (place.open(), place.open());
    let quote = one.quote();
    assert!(!one.tool("book_hotel", &order(&quote, "op-1")).0);
    assert!(!other.tool("book_hotel", &order(&quote, "op-2")).0);
    assert_eq!(one.find("op-2")["status"], "confirmed");
    assert_eq!(other.find("op-1")["status"], "confirmed");
    one.kill();
    other.kill();
    assert_eq!(place.vendor().bookings().len(), 2);
}

#[test]
fn a_file_that_is_no_state_is_left_alone() {
    let place = Place::new();
    fs::write(place.state(), "my diary").unwrap();
    let child = Command::new(PROGRAM).arg("--state").arg(place.state()).output().unwrap();
    assert!(!child.status.success());
    let complaint = String::from_utf8(child.stderr).unwrap();
    assert!(complaint.contains("holds no hotel vendor"), "{complaint}");
    assert_eq!(fs::read_to_string(place.state()).unwrap(), "my diary");
    let child = Command::new(PROGRAM).arg("--stat").output().unwrap();
    assert!(String::from_utf8(child.stderr).unwrap().contains("write --seed NUMBER"));
}
