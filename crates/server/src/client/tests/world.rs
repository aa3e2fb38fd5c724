//! Sources, events, pauses and holds: what is sent, and what is shown.

use base::Secret;
use serde_json::{Value, json};

use super::super::sources::{self, NewSource};
use super::super::{
    Repeat, Settle, control, events, lift, observed, pause, settle, system_stop, trace,
};
use super::peer::{Peer, Reply};
use super::{DUTY, Exit, ONCE, client, me, problem, run};

const SHOP: &str = "01900000-0000-7000-8000-000000005001";
const HOLD: &str = "01900000-0000-7000-8000-000000006001";
const PAUSE: &str = "01900000-0000-7000-8000-000000007001";
const EVENT: &str = "01900000-0000-7000-8000-00000000e001";

fn shop() -> Value {
    json!({"id": SHOP, "name": "shop", "kind": "webhook", "config": null,
        "address": "http://127.0.0.1:7177/v1/hooks/1", "secret": "kept", "every_ms": null,
        "expect_ms": null, "received_at": "2026-11-30T01:12:00Z", "silent": true, "refused": 3,
        "refused_at": "2026-11-30T02:01:00Z", "looked_at": null, "next_look_at": null,
        "failures": 0, "last_event": EVENT, "duties": [], "created_at": "2026-11-30T01:00:00Z"})
}

fn news() -> Value {
    json!({"id": EVENT, "name": "news", "kind": "feed", "address": null, "secret": null,
        "every_ms": 300_000, "received_at": null, "looked_at": "2026-11-30T01:12:00Z",
        "next_look_at": "2026-11-30T01:17:00Z", "failures": 2})
}

fn hook(secret: Option<Secret>) -> NewSource {
    NewSource {
        name: "shop".into(),
        config: json!({"kind": "webhook", "scheme": "standard"}),
        every_ms: None,
        expect_ms: Some(3_600_000),
        secret,
    }
}

/// A server with two sources that answers every write the same.
fn peer(answer: Value) -> Peer {
    Peer::start(move |asked| match asked.what.as_str() {
        "GET /v1/me" => me(),
        "GET /v1/sources" => Reply::Json(
            200,
            json!({"sources": [shop(), news()],
                "unknown": {"refused": 2, "refused_at": "2026-11-30T01:00:00Z"}}),
        ),
        _ => Reply::Json(200, answer.clone()),
    })
}

#[test]
fn a_new_webhooks_secret_is_made_here_and_shown_once() {
    let peer = peer(json!({"id": SHOP, "address": "http://127.0.0.1:7177/v1/hooks/1", "seq": 4}));
    let client = client(&peer.url);
    let ended = run(false, None, async |s| sources::add(&client, hook(None), s).await);
    let mut body = peer.asked("POST")[0].body.clone();
    let secret = body["secret"].as_str().expect("a secret").to_owned();
    assert!(secret.starts_with("whsec_") && secret.len() == 50, "{secret}");
    let fields = body.as_object_mut().expect("fields");
    assert!(fields.remove("id").is_some() && fields.remove("secret").is_some());
    let config = json!({"kind": "webhook", "scheme": "standard"});
    assert_eq!(body, json!({"name": "shop", "config": config, "expect_ms": 3_600_000}));
    let wanted = format!(
        "Added shop.\nAddress  http://127.0.0.1:7177/v1/hooks/1\nSecret   {secret}\n\
         Give both to the sender. The secret is not shown again. From the internet the address is \
         reached through a tunnel or a proxy of yours.\nTry it   adjutant source test shop\n"
    );
    assert_eq!((ended.out.as_str(), ended.exit), (wanted.as_str(), Exit::Ok));
    assert!(!ended.err.contains(&secret));

    let json = run(true, None, async |s| sources::add(&client, hook(None), s).await);
    let shown: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(shown["secret"], peer.asked("POST")[1].body["secret"]);
    assert_ne!(shown["secret"], json!(secret), "each has its own");

    // One that the sender chose is sent, and not shown: the person has it.
    let given = Secret::new("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").expect("a secret");
    let ended = run(false, None, async |s| sources::add(&client, hook(Some(given)), s).await);
    assert!(!ended.out.contains("whsec_"), "{}", ended.out);
    assert_eq!(peer.asked("POST")[2].body["secret"], "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
}

#[test]
fn a_secret_that_a_sender_chose_comes_from_a_file() {
    let folder = testkit::stores::TempFolder::new();
    let path = folder.path().join("secret");
    std::fs::write(&path, "  s3cret-of-the-sender\n").expect("a file");
    let read = sources::secret_file(Some(&path)).expect("read").expect("a secret");
    assert_eq!(read.expose(), "s3cret-of-the-sender");
    std::fs::write(&path, "s".repeat(513)).expect("a file");
    let long = sources::secret_file(Some(&path)).expect_err("too long").to_string();
    assert!(long.contains("512 bytes"), "{long}");
    std::fs::write(&path, "\n").expect("a file");
    assert!(sources::secret_file(Some(&path)).is_err());
    assert!(sources::secret_file(Some(&folder.path().join("none"))).is_err());
    assert!(sources::secret_file(None).expect("none").is_none());
}

#[test]
fn health_is_told_by_what_was_received() {
    let peer = peer(json!({}));
    let client = client(&peer.url);
    let ended = run(false, None, async |s| sources::list(&client, s).await);
    let wanted = format!(
        "shop (webhook)\n    last received Mon 30 Nov 09:12\n    silent for longer than you expect\n    \
         3 refused, last Mon 30 Nov 10:01\n    http://127.0.0.1:7177/v1/hooks/1\n    \
         last event: adjutant trace {EVENT}\n\
         news (feed)\n    last received: never\n    \
         last looked at Mon 30 Nov 09:12, next Mon 30 Nov 09:17\n    \
         2 looks in a row failed; see adjutant source test news\n\
         2 deliveries to addresses that are no webhook's, last Mon 30 Nov 09:00\n"
    );
    assert_eq!((ended.out.as_str(), ended.exit), (wanted.as_str(), Exit::Ok));
}

#[test]
fn a_source_is_tried_changed_and_removed_by_its_name() {
    let tried = json!({"ok": true, "status": 202, "found": [], "more": false, "problem": null});
    let peer = peer(tried);
    let one = client(&peer.url);
    let ended = run(false, None, async |s| sources::test(&one, "shop", s).await);
    let wanted = "A signed sample of its own was answered with 202.\n\
                  It works. Nothing was stored, and nobody was woken.\n";
    assert_eq!(ended.out, wanted);
    let ended = run(false, None, async |s| sources::test(&one, "sohp", s).await);
    let wanted = "there is no source sohp; there are: shop, news";
    assert_eq!((ended.error.as_str(), ended.exit), (wanted, Exit::Usage));

    let found = json!([{"external_id": "e-1", "topic": "entry", "bytes": 5}]);
    let wrong = "The server answers 404.";
    let table = [
        (
            json!({"ok": true, "found": found, "more": true}),
            "A look finds 1 and more:\n  - e-1 (entry), 5 bytes\n",
        ),
        (json!({"ok": true, "found": []}), "A look finds nothing new."),
        (json!({"ok": false, "problem": wrong}), "It does not work: The server answers 404.\n"),
    ];
    for (answer, begin) in table {
        let peer = self::peer(answer);
        let client = client(&peer.url);
        let ended = run(false, None, async |s| sources::test(&client, "news", s).await);
        assert!(ended.out.starts_with(begin), "{}", ended.out);
        let works = !begin.starts_with("It does not work");
        assert_eq!(ended.exit, if works { Exit::Ok } else { Exit::Error }, "{begin}");
    }

    let peer = self::peer(json!({"id": SHOP, "former_until": "2026-12-01T01:00:00Z", "seq": 5}));
    let client = client(&peer.url);
    let ended = run(false, None, async |s| sources::rotate(&client, "shop", None, ONCE, s).await);
    let sent = peer.asked("POST")[0].body.clone();
    let [id, secret] = [&sent["id"], &sent["secret"]].map(|text| text.as_str().expect("a text"));
    assert_eq!(ended.err, format!("Request id {id}\nSecret   {secret}\n"));
    let wanted = "The new secret is in force.\nGive it to the sender. It is not shown again.\n\
                  The former secret is valid until Tue 01 Dec 09:00.\n";
    assert_eq!(ended.out, wanted);
    let ended = run(false, None, async |s| sources::remove(&client, "shop", s).await);
    assert!(ended.out.starts_with("Removed, with its secret"), "{}", ended.out);
    let asked = peer.asked("DELETE");
    assert!(asked[0].what.starts_with(&format!("DELETE /v1/sources/{SHOP}?id=")), "{asked:?}");
}

#[test]
fn a_change_of_a_secret_whose_answer_is_lost_is_repeated_with_the_same_id_and_secret() {
    let peer = Peer::start(|asked| match asked.what.as_str() {
        "GET /v1/me" => me(),
        "GET /v1/sources" => Reply::Json(200, json!({"sources": [shop()], "unknown": {}})),
        _ => problem(503, "Unavailable", "No answer in time."),
    });
    let client = client(&peer.url);
    let patient = Repeat { id: None, wait_s: 1 };
    let ended =
        run(false, None, async |s| sources::rotate(&client, "shop", None, patient, s).await);
    let sent = peer.asked("POST");
    assert!(sent.len() > 1, "it was not repeated");
    assert!(sent.iter().all(|asked| asked.body == sent[0].body), "{sent:?}");
    let [id, secret] =
        [&sent[0].body["id"], &sent[0].body["secret"]].map(|text| text.as_str().expect("a text"));
    // Nothing is lost with the answer: both are on the screen, and the way on names the id.
    assert_eq!(ended.err, format!("Request id {id}\nSecret   {secret}\n"));
    let repeat = format!(
        "Repeat it safely with: adjutant source rotate shop --id {id} --secret-file FILE, with the \
         secret above in FILE"
    );
    assert!(ended.error.starts_with("Not known whether it was changed"), "{}", ended.error);
    assert!(ended.error.ends_with(&repeat), "{}", ended.error);
    let again = Repeat { id: Some(client.new_id()), wait_s: 0 };
    let ended = run(false, None, async |s| sources::rotate(&client, "shop", None, again, s).await);
    assert_eq!(ended.exit, Exit::Usage);
}

fn state() -> Value {
    json!({"system_stop": true, "dial": "observe", "seq": 9,
        "pauses": [
            {"id": PAUSE, "duty": null, "title": null, "by": "policy",
                "created_at": "2026-11-30T01:00:00Z"},
            {"id": EVENT, "duty": DUTY, "title": "Kyoto fare", "by": "user",
                "created_at": "2026-11-30T01:00:00Z"}],
        "holds": [{"id": HOLD, "event": EVENT, "text": "wait\na moment", "verdict": null,
            "asked_at": "2026-11-30T01:00:00Z", "created_at": "2026-11-30T01:00:00Z"}]})
}

fn held(state: Value, answer: Value) -> Peer {
    Peer::start(move |asked| match asked.what.as_str() {
        "GET /v1/me" => me(),
        "GET /v1/control" => Reply::Json(200, state.clone()),
        _ => Reply::Json(200, answer.clone()),
    })
}

#[test]
fn what_stands_is_shown_with_the_command_that_ends_it() {
    let peer = held(state(), json!({}));
    let one = client(&peer.url);
    let ended = run(false, None, async |s| control(&one, s).await);
    let wanted = format!(
        "Stopped by the operator: you are answered, nothing else runs, and nothing is done outside. Let it \
         go on: adjutant system-stop off\n\
         Everything is paused, since Mon 30 Nov 09:00, because a message of yours says stop, \
         or the records come from a backup. Go on: adjutant lift\n\
         Paused: Kyoto fare, since Mon 30 Nov 09:00, by you. Go on: adjutant lift {DUTY}\n\
         Held since Mon 30 Nov 09:00 by \"wait a moment\". You are asked: does it mean stop?\n    \
         It means stop: adjutant hold stop {HOLD}\n    \
         Not a stop:    adjutant hold release {HOLD}\n"
    );
    assert_eq!((ended.out.as_str(), ended.exit), (wanted.as_str(), Exit::Ok));
    let calm = json!({"system_stop": false, "pauses": [], "holds": [], "dial": "off"});
    let peer = held(calm, json!({}));
    let one = client(&peer.url);
    let ended = run(false, None, async |s| control(&one, s).await);
    assert_eq!(ended.out, "Nothing is stopped, paused or held.\n");
    let ended = run(false, None, async |s| settle(&one, None, Settle::Stop, ONCE, s).await);
    assert_eq!((ended.error.as_str(), ended.exit), ("nothing is held", Exit::Usage));
    let ended = run(false, None, async |s| lift(&one, None, ONCE, s).await);
    assert_eq!(ended.out, "There is no such pause; nothing was changed.\n");
    assert_eq!(peer.asked("POST").len(), 0);
}

#[test]
fn an_error_of_an_added_source_names_options_and_a_folder_tells_what_comes_in() {
    let refuse = Peer::start(|_| {
        problem(400, "Bad request", "A webhook: config.recheck, config.key; leave every_ms out.")
    });
    let one = client(&refuse.url);
    let ended = run(false, None, async |s| sources::add(&one, hook(None), s).await);
    assert!(ended.error.contains("A webhook: --recheck, --key; leave --every out."), "{ended:?}");
    let taken = Peer::start(|_| Reply::Json(201, json!({"id": SHOP, "address": null})));
    let one = client(&taken.url);
    let folder = NewSource {
        config: json!({"kind": "folder", "path": "/inbox"}),
        expect_ms: None,
        ..hook(None)
    };
    let ended = run(false, None, async |s| sources::add(&one, folder, s).await);
    let wanted = "Added shop.\nIts first look takes in everything that lies there now.\nTry it   \
                  adjutant source test shop\n";
    assert_eq!(ended.out, wanted);
}

#[test]
fn a_lift_tells_what_still_stands_and_a_repeat_what_no_longer_does() {
    let lifted = |before: Value, after: Value, state: &'static str, duty: Option<&'static str>| {
        let looked = std::sync::atomic::AtomicBool::new(false);
        let peer = Peer::start(move |asked| match asked.what.as_str() {
            "GET /v1/control" if !looked.swap(true, std::sync::atomic::Ordering::SeqCst) => {
                Reply::Json(200, before.clone())
            }
            "GET /v1/control" => Reply::Json(200, after.clone()),
            what if what == format!("GET /v1/duties/{DUTY}") => {
                Reply::Json(200, json!({"state": state}))
            }
            what if what.starts_with("GET /v1/duties/") => problem(404, "Not found", "No duty."),
            _ => Reply::Json(200, json!({"seq": 1})),
        });
        let one = client(&peer.url);
        let ended = run(false, None, async |s| lift(&one, duty, ONCE, s).await);
        (ended.out, ended.exit)
    };
    let calm = json!({"system_stop": false, "pauses": [], "holds": []});
    let all = json!({"id": PAUSE, "duty": null, "created_at": "2026-11-30T01:00:00Z"});
    let one = json!({"id": EVENT, "duty": DUTY, "created_at": "2026-11-30T01:00:00Z"});
    let pauses =
        |stop: bool, pauses: Value| json!({"system_stop": stop, "pauses": pauses, "holds": []});
    let said = |text: &str| (text.to_owned(), Exit::Ok);
    let both = pauses(false, json!([all, one]));
    assert_eq!(lifted(both.clone(), calm.clone(), "active", None), said("Lifted. It goes on.\n"));
    assert_eq!(
        lifted(both.clone(), pauses(true, json!([one])), "active", None),
        said(
            "Lifted, but still held back: the operator has stopped everything (adjutant system-stop off); \
             what is paused on its own (adjutant hold).\n"
        )
    );
    assert_eq!(
        lifted(both.clone(), pauses(false, json!([all])), "stopped", Some(DUTY)),
        said(&format!(
            "Lifted, but still held back: everything is paused (adjutant lift); it is stopped \
             (adjutant resume {DUTY}).\n"
        ))
    );
    // A duty without a pause is told from none at all.
    let none = lifted(calm.clone(), calm.clone(), "active", Some(DUTY));
    assert_eq!(none, said("There is no such pause; nothing was changed.\n"));
    assert_eq!(lifted(calm.clone(), calm, "active", Some(SHOP)).1, Exit::Error);

    let over = Peer::start(|_| Reply::Json(200, json!({"state": "lifted", "paused": false})));
    let client = client(&over.url);
    let texts = [
        run(false, None, async |s| pause(&client, None, ONCE, s).await).out,
        run(false, None, async |s| pause(&client, Some(DUTY), ONCE, s).await).out,
        run(false, None, async |s| settle(&client, Some(HOLD), Settle::Stop, ONCE, s).await).out,
    ];
    assert!(texts.iter().all(|text| text.starts_with("Not paused: ")), "{texts:?}");
}

#[test]
fn pauses_holds_and_the_stop_are_written_with_an_id_each() {
    let peer = held(state(), json!({"system_stop": true, "seq": 10}));
    let client = client(&peer.url);
    run(false, None, async |s| pause(&client, None, ONCE, s).await);
    run(false, None, async |s| pause(&client, Some(DUTY), ONCE, s).await);
    run(false, None, async |s| lift(&client, None, ONCE, s).await);
    run(false, None, async |s| lift(&client, Some(DUTY), ONCE, s).await);
    run(false, None, async |s| settle(&client, None, Settle::Release, ONCE, s).await);
    run(false, None, async |s| settle(&client, Some(HOLD), Settle::Stop, ONCE, s).await);
    let ended = run(false, None, async |s| system_stop(&client, true, ONCE, s).await);
    assert!(ended.out.starts_with("Stopped, for everybody"), "{}", ended.out);
    let mut ids = std::collections::BTreeSet::new();
    let sent: Vec<(String, Value)> = peer
        .asked("POST")
        .into_iter()
        .map(|asked| {
            let mut body = asked.body;
            let id = body.as_object_mut().and_then(|body| body.remove("id")).expect("an id");
            assert!(ids.insert(id.to_string()), "an id twice");
            (asked.what, body)
        })
        .collect();
    let wanted = [
        ("POST /v1/pauses".to_owned(), json!({})),
        ("POST /v1/pauses".to_owned(), json!({"duty": DUTY})),
        (format!("POST /v1/pauses/{PAUSE}/lift"), json!({})),
        (format!("POST /v1/pauses/{EVENT}/lift"), json!({})),
        (format!("POST /v1/holds/{HOLD}/release"), json!({})),
        (format!("POST /v1/holds/{HOLD}/promote"), json!({})),
        ("POST /v1/system-stop".to_owned(), json!({"stopped": true})),
    ];
    assert_eq!(sent, wanted);
}

#[test]
fn a_pause_that_did_not_arrive_says_so_and_how_to_repeat_it() {
    let nobody = client("http://127.0.0.1:1");
    let ended = run(false, None, async |s| pause(&nobody, None, ONCE, s).await);
    assert!(ended.error.starts_with("Not paused yet – no connection: no server"), "{ended:?}");
    assert!(ended.error.contains("Repeat it safely with: adjutant pause --id "), "{ended:?}");
    let peer = Peer::start(|_| problem(409, "Conflict", "This duty is closed; nothing runs."));
    let client = client(&peer.url);
    let ended = run(false, None, async |s| pause(&client, Some(DUTY), ONCE, s).await);
    assert_eq!(ended.exit, Exit::Refused);
}

#[test]
fn events_are_listed_and_one_is_traced_in_words() {
    let page = json!({"events": [
        {"id": EVENT, "kind": "webhook", "source": "shop", "topic": "order.paid",
            "received_at": "2026-11-30T01:00:00Z", "state": "done", "disposition": "handled"},
        {"id": SHOP, "kind": "file", "source": "inbox", "topic": null,
            "received_at": "2026-11-30T00:59:00Z", "state": "attributing", "disposition": null}],
        "before": "2026-11-30T00:59:00.000000Z", "more": true});
    let words = json!({"words": ["Received from shop.", "Handled: \u{202e}done\nand more."]});
    let notes = json!({"dial": "observe", "notes": [{"event": EVENT, "situation": "a webhook came",
        "disturb": "never", "reach": "look", "at": "2026-11-30T01:00:00Z"}]});
    let peer = Peer::start(move |asked| match asked.what.split('?').next().unwrap_or("") {
        "GET /v1/me" => me(),
        "GET /v1/events" => Reply::Json(200, page.clone()),
        "GET /v1/observed" => Reply::Json(200, notes.clone()),
        _ => Reply::Json(200, words.clone()),
    });
    let client = client(&peer.url);
    let before = Some("2026-12-01T00:00:00Z");
    let ended = run(false, None, async |s| events(&client, before, 2, s).await);
    let wanted = format!(
        "Mon 30 Nov 09:00  {EVENT}  webhook from shop order.paid\n    handled\n\
         Mon 30 Nov 08:59  {SHOP}  file from inbox\n    not handled yet: attributing\n\
         Older: adjutant events --before 2026-11-30T00:59:00.000000Z\n"
    );
    assert_eq!((ended.out.as_str(), ended.exit), (wanted.as_str(), Exit::Ok));
    let asked = "GET /v1/events?limit=2&before=2026-12-01T00%3A00%3A00Z";
    assert_eq!(peer.asked("GET /v1/events")[0].what, asked);
    let ended = run(false, None, async |s| trace(&client, EVENT, s).await);
    assert_eq!(ended.out, "Received from shop.\nHandled: \u{fffd}done and more.\n");
    let ended = run(false, None, async |s| observed(&client, 5, s).await);
    let wanted = format!(
        "The dial stands on observe; change it with: adjutant set --dial off|observe|auto\n\
         Mon 30 Nov 09:00  a webhook came\n    would: look; disturbs never\n    adjutant trace {EVENT}\n"
    );
    assert_eq!(ended.out, wanted);
}
