//! Webhooks that others signed: PyPI's and npm's `standardwebhooks`, and GitHub's payloads as npm's
//! `@octokit/webhooks-examples` has them, signed by Node. Installed, pinned, under target/.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base::{Secret, Timestamp};
use connect::source::webhook::{Headers, HookError, verify};
use connect::source::{Item, Scheme};
use serde_json::{Value, json};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/webhook");
const NOW_S: i64 = 1_796_054_400;
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET: &str = "whsec_c2VjcmV0IHdpdGggdHdlbnR5LWZvdXIgYnl0ZXM=";

/// Runs a command; what it wrote, or why it is not possible here.
fn run(command: &mut Command, input: &str) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    child.stdin.take().unwrap().write_all(input.as_bytes()).map_err(|error| error.to_string())?;
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let wrote = String::from_utf8(output.stdout).map_err(|error| error.to_string())?;
    output.status.success().then_some(wrote).ok_or_else(|| format!("{program} says: {said}"))
}

/// A folder with what `list` names, installed once: tests run at the same time, in processes of
/// their own.
fn installed(list: &str, install: impl Fn(&Path) -> Result<(), String>) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("webhook").join(list);
    fs::create_dir_all(&folder).unwrap();
    let lock = fs::File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let wanted = fs::read_to_string(Path::new(SCRIPTS).join(list)).unwrap();
    let done = folder.join("done");
    if fs::read_to_string(&done).ok().as_ref() != Some(&wanted) {
        install(&folder)?;
        fs::write(done, wanted).unwrap();
    }
    Ok(folder)
}

fn node_folder() -> Result<PathBuf, String> {
    installed("package-lock.json", |folder| {
        for file in ["package.json", "package-lock.json"] {
            fs::copy(Path::new(SCRIPTS).join(file), folder.join(file)).unwrap();
        }
        let install = ["ci", "--no-audit", "--no-fund", "--silent"];
        run(Command::new("npm").args(install).current_dir(folder), "").map(|_| ())
    })
}

fn python() -> Result<PathBuf, String> {
    let folder = installed("requirements.txt", |folder| {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")), "")?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        let python = folder.join("venv/bin/python");
        let list = Path::new(SCRIPTS).join("requirements.txt");
        run(Command::new(python).args(install).arg(list), "").map(|_| ())
    })?;
    Ok(folder.join("venv/bin/python"))
}

#[expect(
    clippy::print_stdout,
    reason = "whoever reads the test's output must see what was not run"
)]
fn skipped(reason: &str) {
    println!("skipped: {reason}");
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

/// A message for the other program to sign.
struct Message {
    id: &'static str,
    body: &'static str,
    seconds: i64,
    signature: String,
}

impl Message {
    fn sent(&self, secrets: &[&str], now_s: i64) -> Result<Item, HookError> {
        let seconds = self.seconds.to_string();
        let headers = Headers::new([
            ("webhook-id", self.id.as_bytes()),
            ("webhook-timestamp", seconds.as_bytes()),
            ("webhook-signature", self.signature.as_bytes()),
        ]);
        let secrets: Vec<Secret> = secrets.iter().map(|text| Secret::new(text).unwrap()).collect();
        verify(Scheme::Standard, &secrets, &headers, self.body.as_bytes(), at(now_s), None, None)
    }
}

/// Lets `sign` sign two messages and tries what is to be taken and what is to be refused.
fn check_signer(sign: impl Fn(&str) -> Result<String, String>) {
    const FIRST: &str = r#"{"type":"invoice.paid","data":{"id":"in_1","who":"张伟 🛑"}}"#;
    const SECOND: &str = "{\n  \"type\": \"invoice.void\"\n}";
    let wanted =
        [("msg_1", FIRST, SECRET), ("msg_2", SECOND, SECRET), ("msg_1", FIRST, OTHER_SECRET)];
    let input = wanted.map(
        |(id, body, secret)| json!({ "secret": secret, "id": id, "seconds": NOW_S, "body": body }),
    );
    let signatures: Vec<String> =
        serde_json::from_str(&sign(&json!(input).to_string()).unwrap()).unwrap();
    let message = |at: usize| {
        let (id, body, _) = wanted[at];
        Message { id, body, seconds: NOW_S, signature: signatures[at].clone() }
    };
    let item = message(0).sent(&[SECRET], NOW_S).unwrap();
    assert_eq!((item.external_id.as_str(), item.topic.as_deref()), ("msg_1", Some("invoice.paid")));
    assert_eq!(item.content, FIRST.as_bytes());
    let item = message(1).sent(&[SECRET], NOW_S + 299).unwrap();
    assert_eq!((item.external_id.as_str(), item.topic.as_deref()), ("msg_2", Some("invoice.void")));
    assert!(message(2).sent(&[SECRET, OTHER_SECRET], NOW_S).is_ok());

    let refused = |message: Message| message.sent(&[SECRET], NOW_S).unwrap_err();
    assert_eq!(message(0).sent(&[SECRET], NOW_S + 301), Err(HookError::TooOld { apart_s: 301 }));
    assert_eq!(refused(message(2)), HookError::BadSignature);
    // The id and the signature of one message with the body of another, and the other way round.
    assert_eq!(refused(Message { body: SECOND, ..message(0) }), HookError::BadSignature);
    assert_eq!(refused(Message { id: "msg_2", ..message(0) }), HookError::BadSignature);
    assert_eq!(refused(Message { seconds: NOW_S + 1, ..message(0) }), HookError::BadSignature);
    let flipped = FIRST.replacen("in_1", "in_0", 1).leak();
    assert_eq!(refused(Message { body: flipped, ..message(0) }), HookError::BadSignature);
}

#[test]
fn what_pypis_package_signs_is_taken() {
    let python = match python() {
        Ok(python) => python,
        Err(reason) => return skipped(&format!("PyPI's standardwebhooks because {reason}")),
    };
    let script = Path::new(SCRIPTS).join("sign.py");
    check_signer(|input| run(Command::new(&python).arg(&script), input));
}

#[test]
fn what_npms_package_signs_is_taken() {
    let folder = match node_folder() {
        Ok(folder) => folder,
        Err(reason) => return skipped(&format!("npm's standardwebhooks because {reason}")),
    };
    let script = Path::new(SCRIPTS).join("sign.cjs");
    check_signer(|input| run(Command::new("node").arg(&script).arg(&folder), input));
}

/// Payloads that concern one issue, pull request or discussion, and where its number stands.
const NUMBERED: [(&str, &str); 8] = [
    ("discussion", "discussion"),
    ("discussion_comment", "discussion"),
    ("issue_comment", "issue"),
    ("issues", "issue"),
    ("pull_request", "pull_request"),
    ("pull_request_review", "pull_request"),
    ("pull_request_review_comment", "pull_request"),
    ("pull_request_review_thread", "pull_request"),
];

/// Sends one payload as GitHub does, then once more with a changed byte.
fn deliver(event: &str, body: &str, signature: &str) -> Item {
    let secret = [Secret::new(SECRET).unwrap()];
    let headers = || {
        Headers::new([
            ("X-GitHub-Event", event.as_bytes()),
            ("X-GitHub-Delivery", b"72d3162e-cc78-11e3-81ab-4c9367dc0958".as_slice()),
            ("X-Hub-Signature-256", signature.as_bytes()),
        ])
    };
    let send =
        |body: &[u8]| verify(Scheme::Github, &secret, &headers(), body, at(NOW_S), None, None);
    let mut changed = body.as_bytes().to_vec();
    changed[body.len() / 2] ^= 1;
    assert_eq!(send(&changed), Err(HookError::BadSignature), "{event}");
    send(body.as_bytes()).unwrap()
}

#[test]
fn every_payload_of_github_has_a_topic_and_a_key_where_it_should() {
    let folder = match node_folder() {
        Ok(folder) => folder,
        Err(reason) => return skipped(&format!("GitHub's payloads because {reason}")),
    };
    let script = Path::new(SCRIPTS).join("examples.cjs");
    let written = run(Command::new("node").arg(script).arg(folder).arg(SECRET), "").unwrap();
    let examples: Vec<BTreeMap<String, String>> = serde_json::from_str(&written).unwrap();
    let (mut events, mut topics) = (BTreeSet::new(), BTreeSet::new());
    for example in &examples {
        let (event, body) = (&example["event"], &example["body"]);
        let item = deliver(event, body, &example["signature"]);
        let payload: Value = serde_json::from_str(body).unwrap();
        let topic = match payload["action"].as_str() {
            Some(action) => format!("{event}.{action}"),
            None => event.clone(),
        };
        let repository = payload["repository"]["full_name"].as_str();
        let key = match NUMBERED.iter().find(|(numbered, _)| numbered == event) {
            Some((_, kind)) => repository.map(|name| format!("{name}#{}", payload[kind]["number"])),
            None => repository.map(str::to_owned),
        };
        assert_eq!((&item.key, item.topic.as_ref()), (&key, Some(&topic)));
        let home = payload["repository"]["html_url"].as_str().unwrap_or("-");
        assert!(item.links.iter().all(|link| link.starts_with(home)), "{:?}", item.links);
        events.insert(event);
        topics.insert(topic);
    }
    assert_eq!((examples.len(), events.len(), topics.len()), (329, 58, 161));
}
