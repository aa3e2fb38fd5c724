//! The set-up with and without a person, against an endpoint that knows one key and one model.

use std::path::Path;

use serde_json::{Value, json};
use testkit::stores::TempFolder;

use super::*;
use crate::client::tests::peer::{Peer, Reply};
use crate::client::tests::{Ended, run as on_screen};

/// Lists two models to whoever has the key.
fn endpoint() -> Peer {
    Peer::start(|asked| match (asked.what.as_str(), asked.token.as_deref()) {
        ("GET /v1/models", Some("k-1")) => {
            Reply::Json(200, json!({"data": [{"id": "large"}, {"id": "small"}]}))
        }
        _ => Reply::Json(401, json!({})),
    })
}

fn args(of: &[&str]) -> SetupArgs {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: SetupArgs,
    }
    let line = std::iter::once("setup").chain(of.iter().copied());
    <Line as clap::Parser>::try_parse_from(line).expect("a line").args
}

fn set_up(folder: &Path, of: &[&str], person: Option<&str>, piped: Option<&str>) -> Ended {
    let env = |name: &str| match name {
        "USER" => Some("mei".to_owned()),
        "TZ" => Some("Asia/Hong_Kong".to_owned()),
        "LANG" => Some("zh_HK.UTF-8".to_owned()),
        "HOME" => Some("/home/mei".to_owned()),
        _ => None,
    };
    let machine = Machine {
        file: folder.join("new/adjutant.toml"),
        env: &env,
        piped: piped.map(|key| Secret::new(key).expect("a key")),
        http: crate::client::http_client().expect("a client"),
    };
    let json = person.is_none();
    on_screen(json, person, async |screen| run(args(of), machine, screen).await)
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

const WRITTEN: &str = r##"# Adjutant, as `adjutant setup` wrote it. docs/adjutant.example.toml has every other key.
# It is read at the start: after a change, start the server again.

# The model, and what it speaks: chat, messages or responses.
[model]
wire = "chat"
base_url = "URL"
model = "large"
key_file = "model.key"
context_tokens = 128000
max_output_tokens = 8192

# You. Read at the first start only; later: adjutant set.
[owner]
name = "Mei"
zone = "Asia/Hong_Kong"
language = "zh"

[limits]
# What the models may cost in a calendar month, in millionths of a US dollar; read at the first start
# only, later: adjutant set --cap-usd.
owner_month_micro_usd = 7500000
"##;

#[test]
fn a_person_is_asked_again_until_an_answer_does_and_gets_a_file_that_is_read() {
    let (folder, peer) = (TempFolder::new(), endpoint());
    let url = format!("{}/v1", peer.url);
    // A wrong address, then the right one; a key; a model; the name; a wrong zone and the usual; the
    // usual language; a wrong cap and a right one.
    let typed = format!("ftp://x\n{url}\nk-1\nlarge\nMei\nMars\n\n\nmuch\n7.5\n");
    let ended = set_up(folder.path(), &[], Some(&typed), None);
    assert_eq!((ended.error.as_str(), ended.exit), ("", crate::client::Exit::Ok), "{}", ended.err);
    let said: Vec<&str> = ended.err.lines().filter(|line| line.starts_with("That")).collect();
    assert_eq!(said.len(), 0, "they stand on the line of their question: {}", ended.err);
    assert_eq!(ended.err.matches("That does not do: ").count(), 3, "{}", ended.err);
    assert!(ended.err.contains("It offers: large, small"), "{}", ended.err);
    assert!(!ended.err.contains("k-1") && !ended.out.contains("k-1"), "{}", ended.err);
    let file = folder.path().join("new/adjutant.toml");
    let written = std::fs::read_to_string(&file).expect("the file");
    assert_eq!(written, WRITTEN.replace("URL", &url));
    let key = folder.path().join("new/model.key");
    assert_eq!(
        (std::fs::read_to_string(&key).expect("the key"), mode(&key)),
        ("k-1".into(), 0o600)
    );
    // Nothing that is there is written over.
    let again = set_up(folder.path(), &[], Some(&typed), None);
    assert!(again.error.contains("is there already and stays as it is"), "{}", again.error);
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), written);
}

#[test]
fn without_a_person_each_missing_answer_names_its_option_and_nothing_is_written() {
    let (folder, peer) = (TempFolder::new(), endpoint());
    let url = format!("{}/v1", peer.url);
    let far = ["--base-url", "https://model.invalid/v1", "--model", "large", "--unchecked"];
    let priced = [far.as_slice(), &["--input-usd", "1"]].concat();
    let near = ["--base-url", url.as_str(), "--model", "large"];
    let bad_zone = [near.as_slice(), &["--zone", "Mars"]].concat();
    let table: [(&[&str], Option<&str>, &str); 7] = [
        (&[], None, "Give --base-url"),
        (&["--base-url", "http://8.8.8.8/v1"], None, "--base-url: it must use https"),
        (&far, None, "Give --key-env, --key-file, --key-stdin or --no-key"),
        (&far, Some("k-1"), "Give --input-usd"),
        (&priced, Some("k-1"), "Give --output-usd"),
        (&bad_zone, Some("k-1"), "--zone: "),
        (
            &near,
            Some("k-2"),
            "refused the key (401); put a valid key in its place. Nothing was written",
        ),
    ];
    for (line, piped, wanted) in table {
        let ended = set_up(folder.path(), line, None, piped);
        assert!(ended.error.contains(wanted), "{line:?}: {}", ended.error);
        assert!(!folder.path().join("new").exists(), "{line:?}");
    }
    let ended = set_up(folder.path(), &near, None, Some("k-1"));
    let file = folder.path().join("new/adjutant.toml");
    let done: Value = serde_json::from_str(&ended.out).expect("one object");
    let wanted = json!({"config": file, "key_file": {"file": folder.path().join("new/model.key")},
        "model": "large", "base_url": url, "zone": "Asia/Hong_Kong"});
    assert_eq!((done, ended.error.as_str()), (wanted, ""));
}

#[test]
fn a_vendor_with_a_wire_of_its_own_is_spoken_to_in_it() {
    let of = |url: &str, more: &[&str]| {
        let folder = TempFolder::new();
        let line = ["--base-url", url, "--model", "large", "--unchecked", "--input-usd", "3"];
        let line = [line.as_slice(), &["--output-usd", "15"], more].concat();
        let ended = set_up(folder.path(), &line, None, Some("k-1"));
        assert_eq!(ended.error, "");
        let text = std::fs::read_to_string(folder.path().join("new/adjutant.toml"));
        let wanted = |line: &&str| line.starts_with("wire") || line.starts_with("output_field");
        text.expect("the file").lines().filter(wanted).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of("https://api.anthropic.com/v1", &[]), "wire = \"messages\"");
    let openai = "https://api.openai.com/v1";
    let chat = "wire = \"chat\" output_field = \"max_completion_tokens\"";
    assert_eq!(of(openai, &[]), chat);
    assert_eq!(of(openai, &["--wire", "responses"]), "wire = \"responses\"");
}

#[test]
fn every_answer_is_read_back_as_it_was_given() {
    let answers = Answers {
        wire: Wire::Responses,
        base_url: "https://api.openai.com/v1".into(),
        model: "a \"b\"\n#c".into(),
        key: Key::Env("KEY".into()),
        prices: Some([MicroUsd(250_000), MicroUsd(25_001), MicroUsd(2_000_000)]),
        context_tokens: 4_000,
        max_output_tokens: 1_000,
        name: "ö\u{1f600}".into(),
        zone: "Asia/Tokyo".into(),
        language: Language::En,
        cap: MicroUsd(0),
    };
    let env = |name: &str| (name == "HOME").then(|| "/home/mei".to_owned());
    let config = Config::read(&file::text(&answers), Path::new("/etc/a.toml"), &env);
    let config = config.expect("a file that is read");
    let model = config.model.expect("a model");
    assert_eq!((model.wire, model.base_url), (answers.wire, answers.base_url));
    assert_eq!(model.model, answers.model);
    assert_eq!(model.key, config::KeySource::Env("KEY".into()));
    let prices = [model.input_per_million, model.cached_per_million, model.output_per_million];
    assert_eq!(Some(prices), answers.prices);
    assert_eq!((model.context_tokens, model.max_output_tokens), (4_000, 1_000));
    assert_eq!((config.owner.name, config.owner.zone), (Some(answers.name), Some(answers.zone)));
    assert_eq!(
        (config.owner.language, config.limits.owner_month_micro_usd),
        (Some(Language::En), 0)
    );
    assert_eq!(["0.25", "0.025001", "2.00"].map(String::from), prices.map(file::decimal));
}
