//! Cards of questions on the command line: shown, asked about, and decided by their digest.

use serde_json::{Value, json};

use super::peer::{Asked, Peer, Reply};
use super::{Answer, CARD, Ended, Exit, client, me, plain_answer, problem, run};

fn card(state: &str) -> Value {
    json!({"id": CARD, "kind": "new_duty", "duty": null, "title": "Kyoto fare",
        "goal": "Know when the fare drops", "conditions": [{"text": "below 300",
        "evidence": "a quote", "authority": "the airline"}], "schedules": [{
        "words": "every day at 9", "prompt": "Look at the fare.\nNothing else.",
        "first": "2026-12-01T01:00:00Z", "run_missed": "skip", "check": {"tool": "web.fetch",
        "arguments": "{\"url\":\"https://example.org/?q=1\"}", "words": "its answer has changed"}}],
        "subscriptions": [{"source": "mail", "topic": "fares.*", "mode": "background",
        "prompt": "Note it.", "words": "events of mail (fares.*), only read along"}],
        "grants": ["fare.book, at most once, USD 300.00 in all"], "reach": "At most USD 300.00",
        "ends_at": "2026-12-24T10:00:00Z", "until": null, "if_nothing": "nothing is watched",
        "digest": "d1", "state": state, "created_at": "2026-11-30T08:00:00Z"})
}

const SHOWN_CARD: &str = "\
Take on a duty: Kyoto fare
Goal     Know when the fare drops
Done when
  - below 300; evidence: a quote; authority: the airline
Wakes    every day at 9, first Tue 01 Dec 09:00
         A time that is missed is left out
         Calls: web.fetch with {\"url\":\"https://example.org/?q=1\"}
         Only if: its answer has changed
         Task: Look at the fare.
               Nothing else.
Hears    events of mail (fares.*), only read along
         Task: Note it.
May do   fare.book, at most once, USD 300.00 in all
Reach    At most USD 300.00
Ends     Thu 24 Dec 18:00
Deadline -
If you do nothing: nothing is watched
Card     01900000-0000-7000-8000-00000000c001 [open]
Digest   d1
";

fn decide(state: &'static str, status: u16, person: Option<&str>, answer: Answer) -> (Ended, Peer) {
    let peer = Peer::start(move |asked| match asked.what.as_str() {
        "GET /v1/me" => me(),
        what if what.starts_with("GET /v1/proposals/") => Reply::Json(200, card(state)),
        _ if status == 200 => Reply::Json(200, card("confirmed")),
        _ => problem(status, "The card changed", "its title was edited; read it again"),
    });
    let client = client(&peer.url);
    let ended = run(false, person, async |s| super::super::confirm(&client, CARD, answer, s).await);
    (ended, peer)
}

#[test]
fn a_card_is_shown_asked_about_and_confirmed_by_its_digest() {
    let (ended, peer) = decide("open", 200, Some("y\n"), plain_answer());
    assert_eq!(ended.err, format!("{SHOWN_CARD}\nTake on this duty? [y/N] "));
    assert_eq!((ended.out.as_str(), ended.exit), ("confirmed: Kyoto fare\n", Exit::Ok));
    let posts = peer.asked("POST");
    let id = posts.first().and_then(|post| post.body.get("id")).cloned().expect("an id");
    let wanted = Asked {
        what: format!("POST /v1/proposals/{CARD}/confirm"),
        token: Some("token-1".into()),
        body: json!({"id": id, "digest": "d1"}),
    };
    assert_eq!(posts, [wanted]);
}

#[test]
fn a_card_is_never_confirmed_without_a_yes_to_this_very_card() {
    let yes =
        |digest: Option<&str>| Answer { yes: true, digest: digest.map(str::to_string), id: None };
    let table = [
        ("open", Some("\n"), plain_answer(), Exit::Ok, ""),
        ("open", Some("sure\n"), plain_answer(), Exit::Ok, ""),
        (
            "open",
            None,
            plain_answer(),
            Exit::Usage,
            "nobody can be asked here: this is no \
          terminal. Read the card above, then add --yes",
        ),
        (
            "declined",
            None,
            yes(None),
            Exit::Refused,
            "This card is declined already. Nothing was sent.",
        ),
    ];
    for (state, person, answer, exit, error) in table {
        let (ended, peer) = decide(state, 200, person, answer);
        assert_eq!((ended.exit, ended.error.as_str()), (exit, error));
        assert_eq!(peer.asked("POST"), []);
    }
    // What was seen before is the server's to refuse: it knows what changed.
    for digest in ["d1", "d0"] {
        let (ended, peer) = decide("open", 409, None, yes(Some(digest)));
        let wanted = "The card changed (409): its title was edited; read it again";
        assert_eq!((ended.exit, ended.error.as_str()), (Exit::Refused, wanted));
        assert_eq!(peer.asked("POST").len(), 1);
        assert_eq!(peer.asked("POST")[0].body["digest"], digest);
    }
}
