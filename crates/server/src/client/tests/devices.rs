//! Codes, devices, settings, and what a card still asks.

use base::MicroUsd;
use serde_json::{Value, json};

use super::super::{TailOptions, Wish};
use super::peer::{Peer, Reply};
use super::{CARD, Exit, ONCE, UntilEnd, client, me, run, runtime};

const PHONE: &str = "01900000-0000-7000-8000-00000000a001";

#[test]
fn a_code_is_shown_with_its_link_its_end_and_the_way_there() {
    let peer = Peer::start(|asked| match asked.what.as_str() {
        "GET /v1/me" => me(),
        _ => Reply::Json(
            201,
            json!({"code": "K7PM-Q3XT", "link": "http://127.0.0.1:7177/#code=K7PM-Q3XT",
                "expires_at": "2026-11-30T08:15:00Z"}),
        ),
    });
    let client = client(&peer.url);
    let ended =
        run(false, None, async |screen| super::super::offer_code(&client, false, screen).await);
    let wanted = "\
Works once, until Mon 30 Nov 16:15; codes before it are void.
Browser       http://127.0.0.1:7177/#code=K7PM-Q3XT
Command line  adjutant pair K7PM-Q3XT
From another machine, open a tunnel there first: ssh -N -L 7177:127.0.0.1:7177 THIS-MACHINE
";
    assert_eq!((ended.out.as_str(), ended.exit), (wanted, Exit::Ok));
    assert_eq!(peer.asked("POST")[0].body, json!({}));
}

#[test]
fn devices_are_a_table_and_revoking_asks_nothing_more_of_the_server() {
    let all = json!({"devices": [
        {"id": PHONE, "name": "phone", "created_at": "2026-11-30T08:00:00Z",
            "revoked_at": "2026-11-30T08:05:00Z", "this": false},
        {"id": CARD, "name": "command line", "created_at": "2026-11-30T08:00:00Z",
            "revoked_at": null, "this": true},
    ]});
    let peer = Peer::start(move |asked| match asked.what.as_str() {
        "GET /v1/me" => me(),
        "GET /v1/devices" => Reply::Json(200, all.clone()),
        _ => Reply::Json(200, json!({"id": PHONE, "revoked_at": "2026-11-30T08:05:00Z", "seq": 4})),
    });
    let client = client(&peer.url);
    let ended = run(false, None, async |screen| super::super::devices(&client, screen).await);
    let wanted = "\
ID                                    PAIRED            STATE                     NAME
01900000-0000-7000-8000-00000000a001  Mon 30 Nov 16:00  revoked Mon 30 Nov 16:05  phone
01900000-0000-7000-8000-00000000c001  Mon 30 Nov 16:00  this device               command line
";
    assert_eq!((ended.out.as_str(), ended.exit), (wanted, Exit::Ok));
    let asked = peer.asked("").len();
    let ended =
        run(false, None, async |screen| super::super::revoke(&client, PHONE, ONCE, screen).await);
    let wanted = "Revoked. Its token is refused from now on; what it sent stands.\n";
    assert_eq!((ended.out.as_str(), ended.exit), (wanted, Exit::Ok));
    let posts = peer.asked("POST");
    assert_eq!(posts[0].what, format!("POST /v1/devices/{PHONE}/revoke"));
    assert_eq!(peer.asked("").len(), asked + 1);
}

#[test]
fn settings_are_sent_as_named_and_shown_as_they_are_then() {
    let peer = Peer::start(|asked| match asked.what.as_str() {
        "GET /v1/me" => Reply::Json(
            200,
            json!({"name": "Mei", "zone": "Asia/Hong_Kong", "seq": 4, "dial": "observe",
                "language": "zh",
                "month": {"micro_usd": 1_240_000, "cap_micro_usd": 30_500_000}}),
        ),
        _ => Reply::Json(200, json!({"seq": 4})),
    });
    let one = client(&peer.url);
    let shown = "Name   Mei\nZone   Asia/Hong_Kong\nMonth  US$1.24 of US$30.50\nDial   observe\nSpeaks zh\n";
    let nothing = Wish::default();
    let ended = run(false, None, async |s| super::super::set(&one, nothing, ONCE, s).await);
    assert_eq!((ended.out.as_str(), peer.asked("POST").len()), (shown, 0));
    let dial = Some(domain::event::Dial::Auto);
    let language = Some(domain::words::Language::Zh);
    let wish = || Wish { cap: Some(MicroUsd(30_500_000)), dial, language, ..Wish::default() };
    let ended = run(false, None, async |s| super::super::set(&one, wish(), ONCE, s).await);
    assert_eq!((ended.out.as_str(), ended.exit), (shown, Exit::Ok));
    let mut body = peer.asked("POST")[0].body.clone();
    assert!(body.as_object_mut().is_some_and(|body| body.remove("id").is_some()));
    assert_eq!(body, json!({"month_cap_micro_usd": 30_500_000, "dial": "auto", "language": "zh"}));

    let nobody = client("http://127.0.0.1:1");
    let wish = Wish { name: Some("it's me".into()), ..wish() };
    let ended = run(false, None, async |s| super::super::set(&nobody, wish, ONCE, s).await);
    assert!(ended.error.starts_with("Not set: no server at"), "{}", ended.error);
    let again =
        "adjutant set --name 'it'\\''s me' --cap-usd 30.500000 --dial auto --language zh --id ";
    assert!(ended.error.contains(again), "{}", ended.error);
}

#[test]
fn the_tail_asks_for_a_decision_only_while_it_is_open() {
    let entry = |id: &str, proposal: &str| {
        json!({"seq": 1, "kind": "notice", "id": id, "text": format!("card {id}"),
            "at": "2026-11-30T08:00:00Z", "state": "delivered", "duty": null, "proposal": proposal,
            "late": false})
    };
    let mut entries = vec![entry("a", "decided"), entry("b", "gone"), entry("c", CARD)];
    let mut booking = entry("d", "none");
    (booking["proposal"], booking["action"]) = (Value::Null, json!("waits"));
    let mut settled = booking.clone();
    (settled["id"], settled["action"]) = (json!("e"), json!("over"));
    entries.extend([booking, settled, entry("the-end", "decided")]);
    let action = |id: &str, state: &str| {
        json!({"id": id, "tool": "hotel.book", "state": state, "words": state, "what": "a room",
            "digest": "d", "moved_at": "2026-11-30T08:00:00Z"})
    };
    let state = |state: &str| {
        json!({"id": "p", "kind": "new_duty", "title": "t", "digest": "d",
        "state": state})
    };
    let peer = Peer::start(move |asked| match asked.what.split('?').next().unwrap_or("") {
        "GET /v1/stream" => Reply::Signals(std::sync::mpsc::channel().1),
        "GET /v1/me" => me(),
        "GET /v1/chat" => Reply::Json(200, json!({"entries": entries, "seq": 10, "more": false})),
        "GET /v1/proposals/decided" => Reply::Json(200, state("confirmed")),
        "GET /v1/actions/waits" => Reply::Json(200, action("waits", "awaiting_approval")),
        "GET /v1/actions/over" => Reply::Json(200, action("over", "admitted")),
        "GET /v1/proposals/gone" => Reply::Json(404, Value::Null),
        _ => Reply::Json(200, state("open")),
    });
    let client = client(&peer.url);
    let (mut out, mut err) = (UntilEnd::default(), Vec::new());
    let mut screen = super::Screen { out: &mut out, err: &mut err, keyboard: None, json: false };
    let options = TailOptions { last: 10, after: None, receipts: false };
    let done = runtime().block_on(super::super::tail(&client, options, &mut screen));
    assert_eq!(done.map_err(|error| error.class().0), Err(Exit::Ok), "ended by the closed screen");
    let wanted = format!(
        "Mon 30 Nov 16:00  notice [delivered]  card a\n\
         Mon 30 Nov 16:00  notice [delivered]  card b\n\
         Mon 30 Nov 16:00  notice [delivered]  card c\n    \
         Needs your decision: adjutant confirm {CARD}\n\
         Mon 30 Nov 16:00  notice [delivered]  card d\n    \
         Needs your decision: adjutant action approve waits, or deny\n\
         Mon 30 Nov 16:00  notice [delivered]  card d\n"
    );
    assert_eq!(String::from_utf8_lossy(&out.0), wanted);
}

#[test]
fn the_document_needs_no_server() {
    let (text, json) = (super::super::openapi(false), super::super::openapi(true));
    assert_eq!(text, web::OPENAPI);
    assert_eq!(json.lines().count(), 1);
    let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    assert_eq!(read(&text), read(&json));
}
