//! Outside effects on the command line: the card before the question, the digest that was shown, and
//! what each word of the person sends.

use serde_json::{Value, json};

use super::super::Answer;
use super::super::actions::{self, Statement};
use super::peer::{Asked, Peer, Reply};
use super::{DUTY, Ended, Exit, ONCE, client, me, plain_answer, problem, run};

const ACTION: &str = "01900000-0000-7000-8000-00000000ac01";

fn action(state: &str) -> Value {
    let words = match state {
        "awaiting_approval" => "waiting for the person",
        "authorized" => "released, not sent yet",
        "unknown" => "sent, being checked",
        _ => "refused by the person",
    };
    json!({"id": ACTION, "duty": DUTY, "title": "A room", "task_version": null, "tool": "hotel.book",
        "effect": "paid", "tier": "r4", "state": state, "words": words,
        "what": "hotel.book for HKD 2 600.00 (hotel Harbour, guest Ann)",
        "card": [{"label": "hotel", "value": "Harbour\nDeadline never"},
            {"label": "guest", "value": "Ann\u{1b}[2J"}],
        "amount": {"minor": 260_000, "currency": "HKD", "text": "HKD 2 600.00"},
        "recipients": ["desk@example.org"], "digest": "d1",
        "reason": "No grant of yours covers it.", "expires_at": "2026-12-01T08:00:00Z",
        "if_nothing": "Nothing is done.", "afterwards": "It is sent 5 s later.", "undo_ms": 5000,
        "not_before": null, "receipt": null, "authority": null, "contradicted": false,
        "escalated_at": "2026-11-30T08:00:00Z", "compensates": null,
        "created_at": "2026-11-30T08:00:00Z", "moved_at": "2026-11-30T08:00:00Z",
        "approvals": [{"id": "y", "state": "granted", "by": "user", "device": "x",
            "device_name": "phone", "reason": null, "template": "action-1",
            "until_at": "2026-12-01T08:00:00Z", "moved_at": "2026-11-30T08:01:00Z"}],
        "attempts": [{"n": 1, "operation_id": ACTION, "state": "unknown", "reason": "no answer",
            "receipt": null, "created_at": "2026-11-30T08:02:00Z",
            "moved_at": "2026-11-30T08:03:00Z"}],
        "seq": 9})
}

const SHOWN_CARD: &str = "\
hotel.book for HKD 2 600.00
  hotel         Harbour Deadline never
  guest         Ann\u{fffd}[2J
  to            desk@example.org
State     waiting for the person
Asked     No grant of yours covers it.
Deadline  Tue 01 Dec 16:00
If you do nothing: Nothing is done.
Afterwards: It is sent 5 s later.
Duty      A room (01900000-0000-7000-8000-00000000d001)
Action    01900000-0000-7000-8000-00000000ac01
Digest    d1
";

/// A server with this one action; what is written moves it to `after`, or is refused.
fn peer(state: &'static str, after: Result<&'static str, &'static str>) -> Peer {
    Peer::start(move |asked| match asked.what.as_str() {
        "GET /v1/me" => me(),
        what if what.starts_with("GET /v1/actions?") => {
            let all = [action(state), action("denied")];
            Reply::Json(200, json!({"actions": all, "seq": 9}))
        }
        what if what.starts_with("GET /v1/actions/") => Reply::Json(200, action(state)),
        _ => match after {
            Ok(after) => Reply::Json(200, action(after)),
            Err(why) => problem(409, "Conflict", why),
        },
    })
}

fn approve(
    state: &'static str,
    after: Result<&'static str, &'static str>,
    person: Option<&str>,
    answer: Answer,
) -> (Ended, Peer) {
    let peer = peer(state, after);
    let client = client(&peer.url);
    let ended = run(false, person, async |s| actions::approve(&client, ACTION, answer, s).await);
    (ended, peer)
}

/// The only write, without its id.
fn sent(peer: &Peer) -> (String, Value) {
    let mut posts = peer.asked("POST");
    assert_eq!(posts.len(), 1, "{posts:?}");
    let Asked { what, mut body, .. } = posts.remove(0);
    let id = body.as_object_mut().and_then(|body| body.remove("id"));
    assert!(id.is_some_and(|id| id.is_string()), "a write has an id");
    (what, body)
}

#[test]
fn the_card_comes_before_the_question_and_its_digest_is_what_is_released() {
    let (ended, peer) = approve("awaiting_approval", Ok("authorized"), Some("y\n"), plain_answer());
    let question = "Release hotel.book for HKD 2 600.00? [y/N] ";
    assert_eq!(ended.err, format!("{SHOWN_CARD}\n{question}"));
    let wanted = format!(
        "hotel.book for HKD 2 600.00: released, not sent yet\n\
         Take it back: adjutant action withdraw {ACTION}\n"
    );
    assert_eq!((ended.out, ended.exit), (wanted, Exit::Ok));
    let path = format!("POST /v1/actions/{ACTION}/approve");
    assert_eq!(sent(&peer), (path, json!({"digest": "d1"})));
}

/// A tool that no manifest describes shows everything that would be sent, and nothing of it can pass for a
/// line of the card.
#[test]
fn a_long_argument_is_folded_and_none_of_it_is_hidden() {
    let long = format!("{}Digest    d9{}", "看 ".repeat(30), "x".repeat(2_000));
    let mut note = action("awaiting_approval");
    let what = "no manifest describes it; what came of it cannot be looked up, you say it";
    note["card"] =
        json!([{"label": "what it does", "value": what}, {"label": "text", "value": long}]);
    let peer = Peer::start(move |asked| match asked.what.as_str() {
        "GET /v1/me" => me(),
        _ => Reply::Json(200, note.clone()),
    });
    let client = client(&peer.url);
    let ended = run(false, None, async |s| actions::show(&client, ACTION, s).await);
    let digests = ended.out.lines().filter(|line| line.starts_with("Digest"));
    assert_eq!(digests.collect::<Vec<_>>(), ["Digest    d1"]);
    assert!(ended.out.lines().all(|line| line.chars().count() <= 80), "{}", ended.out);
    let value: Vec<&str> =
        ended.out.lines().skip_while(|line| !line.starts_with("  text ")).collect();
    let end = value.iter().position(|line| line.starts_with("  to ")).unwrap();
    let whole: String = value[..end].iter().map(|line| line.get(16..).unwrap()).collect();
    assert_eq!(whole, long);
    assert!(ended.out.contains("  what it does  no manifest describes it; what came of it"));
}

#[test]
fn nothing_is_released_without_a_yes_to_this_very_card() {
    let yes = |digest: &str| Answer { yes: true, digest: Some(digest.into()), id: None };
    let table = [
        ("awaiting_approval", Some("\n"), plain_answer(), Exit::Ok, ""),
        (
            "awaiting_approval",
            None,
            plain_answer(),
            Exit::Usage,
            "nobody can be asked here: this is no terminal. Read the card above, then add --yes",
        ),
        (
            "denied",
            None,
            yes("d1"),
            Exit::Refused,
            "This can no longer be decided; nothing was sent. refused by the person.",
        ),
    ];
    for (state, person, answer, exit, error) in table {
        let (ended, peer) = approve(state, Ok("authorized"), person, answer);
        assert_eq!((ended.exit, ended.error.as_str()), (exit, error));
        assert_eq!(peer.asked("POST"), []);
    }
    let paused = "It is paused, so nothing was released. Lift the pause, then release it again.";
    let (ended, _) = approve("awaiting_approval", Err(paused), None, yes("d1"));
    assert_eq!((ended.exit, ended.error), (Exit::Refused, format!("Conflict (409): {paused}")));
    let nobody = client("http://127.0.0.1:1");
    let ended = run(false, None, async |s| {
        actions::deny(&nobody, ACTION, Some("it's dear"), None, s).await
    });
    assert!(ended.error.starts_with("Not refused: no server"), "{}", ended.error);
    assert!(ended.error.ends_with(" --reason 'it'\\''s dear'"), "{}", ended.error);
}

#[test]
fn each_word_of_the_person_is_sent_as_it_is() {
    let peer = peer("unknown", Ok("denied"));
    let said = client(&peer.url);
    let ended =
        run(false, None, async |s| actions::deny(&said, ACTION, Some("too dear"), None, s).await);
    assert_eq!(ended.out, "hotel.book for HKD 2 600.00: refused by the person\n");
    run(false, None, async |s| actions::deny(&said, ACTION, None, None, s).await);
    run(false, None, async |s| actions::withdraw(&said, ACTION, ONCE, s).await);
    for statement in [Statement::Happened, Statement::DidNot, Statement::KeepLooking] {
        run(false, None, async |s| actions::state(&said, ACTION, statement, None, s).await);
    }
    let written: Vec<(String, Value)> = peer
        .asked("POST")
        .into_iter()
        .map(|Asked { what, mut body, .. }| {
            assert!(body.as_object_mut().and_then(|body| body.remove("id")).is_some());
            (what.trim_start_matches("POST /v1/actions/").replace(ACTION, "ID"), body)
        })
        .collect();
    let state = |word: &str| ("ID/state".to_owned(), json!({"statement": word}));
    let wanted = [
        ("ID/deny".to_owned(), json!({"reason": "too dear"})),
        ("ID/deny".to_owned(), json!({})),
        ("ID/withdraw".to_owned(), json!({})),
        state("happened"),
        state("did_not"),
        state("keep_looking"),
    ];
    assert_eq!(written, wanted);
}

#[test]
fn one_is_shown_with_who_released_it_and_what_was_sent() {
    let peer = peer("unknown", Ok("unknown"));
    let client = client(&peer.url);
    let ended = run(false, None, async |s| actions::show(&client, ACTION, s).await);
    let end = "\
Say what you know: adjutant action happened 01900000-0000-7000-8000-00000000ac01, or did-not, \
or keep-looking
Decisions
  - Mon 30 Nov 16:01 [granted] by you on phone
Sent
  - Mon 30 Nov 16:02 [unknown] as 01900000-0000-7000-8000-00000000ac01: no answer
";
    assert!(ended.out.contains("Because   No grant of yours covers it.\n"), "{}", ended.out);
    assert!(!ended.out.contains("Deadline  "), "nothing is decided any more: {}", ended.out);
    assert!(ended.out.ends_with(end), "{}", ended.out);
    let json = run(true, None, async |s| actions::show(&client, ACTION, s).await);
    assert_eq!(serde_json::from_str::<Value>(&json.out).expect("JSON"), action("unknown"));
}

#[test]
fn a_tap_on_an_older_card_is_told_what_changed_and_sees_the_card_that_counts() {
    let peer = Peer::start(|asked| match asked.what.as_str() {
        "GET /v1/me" => me(),
        what if what.starts_with("GET /v1/actions/") => {
            Reply::Json(200, action("awaiting_approval"))
        }
        _ => Reply::Json(
            409,
            json!({"type": "about:blank", "title": "Conflict", "status": 409, "written": "nothing",
                "detail": "已有新的卡片代替它。",
                "stale": {"changes": ["金额：由 HKD 2 600.00 改为 HKD 2 920.00"],
                    "card": action("awaiting_approval")}}),
        ),
    });
    let client = client(&peer.url);
    let older = Answer { yes: false, digest: Some("d0".into()), id: None };
    let ended = run(false, None, async |s| actions::approve(&client, ACTION, older, s).await);
    let wanted = "已有新的卡片代替它。\n  金额：由 HKD 2 600.00 改为 HKD 2 920.00";
    assert_eq!((ended.error.as_str(), ended.exit), (wanted, Exit::Refused));
    assert_eq!(ended.err, format!("{SHOWN_CARD}\n{SHOWN_CARD}\n"));
    assert_eq!(sent(&peer).1, json!({"digest": "d0"}));
}

#[test]
fn the_log_of_decisions_is_one_line_a_tool() {
    let answer = json!({"classes": [
        {"tool": "hotel.book", "shown": 14, "approved": 12, "edited": 1, "refused": 1, "expired": 0,
            "open": 1, "median_seconds": 9},
        {"tool": "mail.send\nx", "shown": 1, "approved": 0, "edited": 0, "refused": 0, "expired": 0,
            "open": 1, "median_seconds": null}]});
    let given = answer.clone();
    let peer = Peer::start(move |_| Reply::Json(200, given.clone()));
    let client = client(&peer.url);
    let shown = run(false, None, async |s| actions::log(&client, s).await);
    let wanted = "   SHOWN  APPROVED    EDITED   REFUSED   EXPIRED    MEDIAN  TOOL\n\
                  \u{20}     14        12         1         1         0       9 s  hotel.book\n\
                  \u{20}      1         0         0         0         0         -  mail.send x\n";
    assert_eq!((shown.out.as_str(), shown.exit), (wanted, Exit::Ok));
    let json = run(true, None, async |s| actions::log(&client, s).await);
    assert_eq!(serde_json::from_str::<Value>(&json.out).expect("JSON"), answer);
    assert_eq!(peer.asked("GET")[0].what, "GET /v1/decisions");
}

#[test]
fn a_question_names_the_card_of_an_action_or_else_of_a_proposal() {
    for (known, kind) in [(true, "action"), (false, "proposal")] {
        let peer = Peer::start(move |asked| match asked.what.as_str() {
            what if what.starts_with("GET /v1/actions/") && known => {
                Reply::Json(200, action("awaiting_approval"))
            }
            what if what.starts_with("GET ") => problem(404, "Not Found", "no such action"),
            _ => Reply::Json(202, json!({"event": "e", "seq": 1})),
        });
        let client = client(&peer.url);
        let about = Some(ACTION);
        let ended = run(false, None, async |s| {
            super::super::send(&client, "Breakfast?", about, ONCE, s).await
        });
        assert_eq!(ended.exit, Exit::Ok, "{}", ended.error);
        let (what, body) = sent(&peer);
        assert_eq!(what, "POST /v1/messages");
        assert_eq!(body, json!({"text": "Breakfast?", "about": {kind: ACTION}}));
    }
}

#[test]
fn the_list_names_the_command_of_each_and_open_leaves_out_the_settled() {
    let peer = peer("awaiting_approval", Ok("denied"));
    let client = client(&peer.url);
    let listed = run(false, None, async |s| actions::list(&client, 20, false, s).await);
    let head = format!("{:36}  {:16}  {:32}  WHAT\n", "ID", "SINCE", "STATE");
    let row = |words: &str| {
        let what = "hotel.book for HKD 2 600.00 (hotel Harbour, guest Ann)";
        format!("{ACTION}  Mon 30 Nov 16:00  {words:32}  {what}\n")
    };
    let open = format!(
        "{head}{}    Needs your decision: adjutant action approve {ACTION}, or deny\n",
        row("waiting for the person")
    );
    assert_eq!(listed.out, format!("{open}{}", row("refused by the person")));
    let listed = run(false, None, async |s| actions::list(&client, 20, true, s).await);
    assert_eq!(listed.out, open);
    assert_eq!(peer.asked("GET /v1/actions")[0].what, "GET /v1/actions?limit=20");
    let json = run(true, None, async |s| actions::list(&client, 20, true, s).await);
    let shown: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(shown, json!({"actions": [action("awaiting_approval")], "seq": 9}));
}
