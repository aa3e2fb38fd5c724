//! The context of a turn: the same records give the same bytes, the prefix changes only at recorded
//! causes, and no conversation ever grows out of its model (CTX-03, CTX-05, CTX-06).

use std::path::PathBuf;
use std::process::Command;

use crate::support::{Talk, now, start};
use base::{Clock as _, Digest, Limits};
use engine::worker::{self, Action};
use testkit::stores::TempFolder;

fn open_talk(file: PathBuf, at: base::Timestamp, seed: u8, tools: &[&str]) -> Talk {
    let limits =
        Limits { window_tokens: 12_000, owner_month_micro_usd: i64::MAX, ..Limits::default() };
    Talk::open(file, at, seed, SCRIPT, limits).with_tools(tools)
}

fn causes(talk: &Talk) -> Vec<store::session::PrefixChange> {
    let main = talk.main;
    talk.read(move |tx, _| store::session::prefix_changes(tx, main))
}

const SCRIPT: &str = r#"
name = "talker"
context_tokens = 16_000

[[rule]]
user = 'from the user: look (?<what>.*)'
not_called = "read_records"
call = [{ tool = "read_records", arguments = { what = "messages" } }]

[[rule]]
user = 'from the user: (?<what>.*)'
not_called = "send_to_user"
call = [
  { tool = "send_to_user", arguments = { text = "noted: $what" } },
  { tool = "finish_quietly", arguments = { reason = "said" } },
]
"#;

/// The system message at the head of a request body.
fn prefix(body: &[u8]) -> Vec<u8> {
    let request = model::Request::from_body(body).unwrap();
    request.blocks[0].bytes.as_bytes().to_vec()
}

/// The bytes of `body` up to the end of its last message.
fn open(body: &[u8]) -> &[u8] {
    body.strip_suffix(b"]}").unwrap()
}

#[test]
fn over_two_hundred_turns_the_prefix_changes_only_at_recorded_causes() {
    let folder = TempFolder::new();
    let file = folder.path().join("talk.db");
    let mut talk = open_talk(file.clone(), start(), 1, &["feed.price"]);
    let (mut last, mut digests): (Option<Vec<u8>>, Vec<Digest>) = (None, Vec::new());
    for n in 0..200 {
        if n == 120 {
            // A connector is added while the program is down: the one cause beside the window's.
            let at = talk.clock.now();
            talk = open_talk(file.clone(), at, 2, &["feed.price", "mail.search"]);
        }
        talk.say(&format!("look {n} {}", "更多的话 and more ".repeat(n % 7)));
        for body in talk.turn() {
            let session = talk.session();
            let digest = Digest::of(&prefix(&body));
            assert_eq!(Some(digest), session.prefix_digest, "the stored prefix is the one sent");
            let window = session.window_start;
            if let Some(last) = &last
                && digests.last() == Some(&digest)
                && causes(&talk).iter().all(|c| c.run_n != session.runs - 1)
            {
                assert!(
                    body.starts_with(open(last)),
                    "history only grows, window {window}, turn {n}"
                );
            }
            digests.push(digest);
            last = Some(body);
        }
    }
    digests.dedup();
    assert_eq!(digests.len(), 2, "one prefix before the new connector and one after");
    let causes: Vec<String> = causes(&talk).into_iter().map(|change| change.cause).collect();
    assert_eq!(causes[0], "first run");
    assert_eq!(causes.iter().filter(|c| c.contains("tools changed")).count(), 1, "{causes:?}");
    let known = ["first run", "tools changed", "history window moved"];
    assert!(causes.iter().all(|cause| cause.split(", ").all(|part| known.contains(&part))));
}

#[test]
fn five_thousand_turns_never_end_in_context_too_long() {
    let folder = TempFolder::in_memory().unwrap();
    let file = folder.path().join("talk.db");
    let talk = open_talk(file, start(), 3, &[]);
    for n in 0..5_000 {
        talk.say(&format!("turn {n} {}", "x".repeat(n * 37 % 900)));
        assert_eq!(talk.turn().len(), 1, "turn {n} asks once and is answered");
    }
    let owner = talk.device.owner;
    let (faults, notices, runs) = now(talk.cx.store.read(move |tx| {
        let faults = store::fault::all_open(tx, owner)?;
        let said = store::message::chat_after(tx, owner, 0, 20_000)?;
        let notices = said.iter().filter(|entry| entry.kind == "notice").count();
        let main = store::owner::get(tx, owner)?.main_session;
        let runs = store::run::recent(tx, main, 10_000)?;
        Ok((faults, notices, runs))
    }))
    .unwrap();
    assert_eq!((faults, notices, runs.len()), (vec![], 0, 5_000));
    let ended = runs.iter().filter(|run| run.state == domain::state::RunState::Completed).count();
    assert_eq!(ended, 5_000);
    let moves = causes(&talk).len() - 1;
    // About ten of these runs fill the half of the window that a jump frees.
    assert!((250..1_000).contains(&moves), "the window moved {moves} times");
}

#[test]
fn the_same_records_give_the_same_request_in_every_process() {
    const CHILD: &str = "ADJUTANT_TEST_CONTEXT_FILE";
    let ask = |talk: &Talk| match worker::next(&talk.cx, &talk.claim().unwrap()) {
        Action::Ask(request) => Digest::of(&request.body("m")).to_string(),
        other @ (Action::Tool(..) | Action::End(_)) => panic!("{other:?} instead of a question"),
    };
    // A lease of a process that is gone is over after this.
    let later = |n: u64| start().plus_ms(3_600_000 * n);
    if let Ok(file) = std::env::var(CHILD) {
        let n: u64 = std::env::var("ADJUTANT_TEST_CONTEXT_AT").unwrap().parse().unwrap();
        let talk = open_talk(file.into(), later(n), n as u8, &["b.two", "a.one"]);
        eprintln!("digest {}", ask(&talk));
        return;
    }
    let folder = TempFolder::new();
    let file = folder.path().join("talk.db");
    let talk = open_talk(file.clone(), start(), 9, &["a.one", "b.two"]);
    for n in 0..12 {
        talk.say(&format!("look at {n}"));
        talk.turn();
    }
    talk.say("and now?");
    let mine = ask(&talk);
    drop(talk);
    let child = |n: u64| {
        let out = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "context::the_same_records_give_the_same_request_in_every_process"])
            .arg("--nocapture")
            .env(CHILD, &file)
            .env("ADJUTANT_TEST_CONTEXT_AT", n.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        text.lines().find_map(|l| l.strip_prefix("digest ").map(str::to_owned)).expect(&text)
    };
    assert_eq!([child(2), child(3)], [mine.clone(), mine]);
}
