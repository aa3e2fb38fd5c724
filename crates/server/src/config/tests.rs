//! The configuration file: what is refused and in which words, the defaults, and the example file.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base::{Limits, MicroUsd};

use super::{
    Config, ConfigError, Database, KeySource, LogFormat, McpServer, OwnerSeed, Problem, known_keys,
    parse,
};

const MODEL: &str = "[model]\nbase_url = \"https://api.example.com/v1\"\nmodel = \"m\"\n";

fn home(name: &str) -> Option<String> {
    (name == "HOME").then(|| "/home/mei".to_string())
}

fn read(text: &str) -> Result<Config, Problem> {
    parse(text, None, Path::new("/etc/adjutant"), &home)
}

fn refused(text: &str) -> String {
    match read(text) {
        Ok(config) => format!("accepted: {config:?}"),
        Err(problem) => problem.to_string(),
    }
}

#[test]
fn bad_files_are_refused_with_the_key_and_the_remedy() {
    let model = |more: &str| format!("{MODEL}key_env = \"K\"\n{more}");
    let table = [
        ("listen = ", "line 1: string values must be quoted, expected literal string"),
        ("lsten = \"127.0.0.1:1\"", "unknown key lsten; near names: listen"),
        (
            "base_url = \"https://h\"",
            "unknown key base_url; near names: model.base_url, reviewer.base_url, \
             search.base_url, small.base_url",
        ),
        (
            "[model]\nkey_fiel = \"k\"",
            "unknown key model.key_fiel; near names: model.key_file, mcp.key_file, \
             reviewer.key_file, search.key_file, small.key_file",
        ),
        (
            "[limits]\nlease = 1",
            "unknown key limits.lease; near names: limits.lease_ms, limits.lease_renew_ms",
        ),
        (
            "[owner]\nquiet = \"22:00\"",
            "unknown key owner.quiet; near names: owner.name, owner.zone, owner.language",
        ),
        ("listen = 7177", "listen must be a text in quotes, but it is a whole number"),
        ("listen = \"localhost\"", "listen must be an address and a port such as 127.0.0.1:7177"),
        (
            "listen = \"0.0.0.0:7177\"",
            "listen is not a loopback address, and this build has no TLS; write 127.0.0.1:PORT \
             and reach it from elsewhere through an SSH tunnel",
        ),
        ("data_dir = \"\"", "data_dir is empty; give a value or leave the line out"),
        ("log = \"a=b=c\"", "log must be a filter such as info or info,engine=debug"),
        ("log_format = \"xml\"", "log_format must be \"text\" or \"json\""),
        ("database = 1", "database must be a section [database], but it is a whole number"),
        (
            "[database]\nurl = \"mysql://h/d\"",
            "database.url must start with postgresql://; leave it out for SQLite in data_dir",
        ),
        (
            "[database]\nnode = \"attic\"",
            "database.node is for PostgreSQL only; give database.url too",
        ),
        (
            "[model]\nmodel = \"m\"",
            "model.base_url is missing; give the endpoint's address, such as \
             https://api.example.com/v1",
        ),
        (
            "[model]\nbase_url = \"http://api.example.com\"\nmodel = \"m\"",
            "model.base_url must use https; http is for private networks only",
        ),
        (
            "[model]\nbase_url = \"http://10.0.0.5/v1\"\nmodel = \"m\"\nkey_env = \"K\"",
            "model.base_url would carry the key in the clear; use https",
        ),
        (
            MODEL,
            "model.key_env is missing; name the variable that holds the key, or give \
             model.key_file",
        ),
        (&model("key_file = \"k\""), "model.key_env and model.key_file are both given; keep one"),
        (
            &model(""),
            "model.input_usd_per_million is missing; give the price per million tokens, such as \
             \"0.28\"",
        ),
        (
            &model("input_usd_per_million = 0.28"),
            "model.input_usd_per_million must be a decimal text such as \"0.28\" (US dollars per \
             million tokens), but it is a number with a point",
        ),
        (
            &model("input_usd_per_million = \"0.28$\""),
            "model.input_usd_per_million is \"0.28$\"; write a decimal text such as \"0.28\" (US \
             dollars per million tokens)",
        ),
        (
            &model("input_usd_per_million = \"1\"\ncontext_tokens = 0"),
            "model.context_tokens must be a whole number of at least 1",
        ),
        (
            &model("input_usd_per_million = \"1\"\ncontext_tokens = 8192"),
            "model.max_output_tokens must be below model.context_tokens (8192)",
        ),
        ("[limits]\nworkers = 0", "limits.workers must be a whole number of at least 1"),
        ("[limits]\nworkers = \"4\"", "limits.workers must be a whole number, but it is a text"),
        (
            "[limits]\npoison_attempts = 5000000000",
            "limits invalid value: integer `5000000000`, expected u32",
        ),
        (
            "[limits]\nlease_ms = 1000\nlease_renew_ms = 600",
            "limits.lease_renew_ms must be at most half of limits.lease_ms, so that one renewal \
             may be missed",
        ),
        (
            "[owner]\nzone = \"Hongkong Time\"",
            "owner.zone \"Hongkong Time\" is no time zone; write an IANA name: Asia/Hong_Kong",
        ),
    ];
    for (text, error) in table {
        assert_eq!((text, refused(text).as_str()), (text, error));
    }
}

#[test]
fn bad_sections_of_servers_and_the_web_are_refused_with_the_remedy() {
    let mcp = |more: &str| format!("[[mcp]]\nname = \"files\"\n{more}");
    let table = [
        (
            "[reviewer]\nbase_url = \"http://127.0.0.1:1\"\nmodel = \"m\"\nwire = \"claude\"",
            "reviewer.wire must be \"chat\", \"messages\" or \"responses\"",
        ),
        (
            "[small]\nbase_url = \"http://127.0.0.1:1\"\nmodel = \"m\"\nwire = \"messages\"\n\
             output_field = \"max_tokens\"",
            "small.output_field is for wire = \"chat\" only; leave the line out",
        ),
        (
            "[small]\nbase_url = \"http://127.0.0.1:1\"\nmodel = \"m\"\neffort = \"Very high\"",
            "small.effort must be one word of the vendor, such as low, medium or high, or off",
        ),
        (
            "[small]\nbase_url = \"https://h/v1\"\nmodel = \"m\"",
            "small.key_env is missing; name the variable that holds the key, or give \
             small.key_file",
        ),
        ("[search]\nprovider = \"bing\"", "search.provider must be \"searxng\" or \"brave\""),
        (
            "[search]\nprovider = \"searxng\"",
            "search.base_url is missing; give its address, such as http://127.0.0.1:8888",
        ),
        (
            "[search]\nprovider = \"searxng\"\nbase_url = \"http://127.0.0.1:1\"\nkey_env = \"K\"",
            "search.provider searxng takes no key; leave search.key_* out",
        ),
        (
            "[search]\nprovider = \"brave\"",
            "search.key_env is missing; name the variable that holds the key, or give \
             search.key_file",
        ),
        (
            "[search]\nprovider = \"brave\"\nbase_url = \"http://10.0.0.5\"\nkey_env = \"K\"",
            "search.base_url would carry the key in the clear; use https",
        ),
        (
            "[fetch]\nallow = [\"localhost:80\"]",
            "fetch.allow takes addresses with a port, such as \"127.0.0.1:8888\"",
        ),
        (
            "[mcp]\nname = \"files\"",
            "mcp must be sections [[mcp]] in double brackets, but it is a section",
        ),
        (
            &mcp(""),
            "mcp.command is missing; give the program to start, or the address of a running server \
             as mcp.url",
        ),
        (
            &mcp("command = \"a\"\nurl = \"https://tools.example/mcp\""),
            "mcp.command and mcp.url are both given; keep one of program and address",
        ),
        (
            &mcp("url = \"https://tools.example/mcp\"\nenv = { TOKEN = \"t\" }"),
            "mcp.env and mcp.url are both given; keep one of program and address",
        ),
        (
            &mcp("command = \"a\"\nkey_env = \"K\""),
            "mcp.key_env goes with mcp.url; give a program its key in mcp.env",
        ),
        (
            &mcp("url = \"https://tools.example/mcp\"\nkey_env = \"K\"\nkey_file = \"k\""),
            "mcp.key_env and mcp.key_file are both given; keep one",
        ),
        (
            &mcp("url = \"http://tools.example/mcp\""),
            "mcp.url must use https; http is for private networks only",
        ),
        (
            &mcp("url = \"http://10.0.0.5/mcp\"\nkey_env = \"K\""),
            "mcp.url would carry the key in the clear; use https",
        ),
        (
            &mcp("url = \"https://me:s3cret@tools.example/mcp\""),
            "mcp.url must hold no user and no password; use mcp.key_file",
        ),
        (&mcp("url = \"tools.example\""), "mcp.url must be an address such as https://host/v1"),
        (
            &mcp("command = \"a\"\nargs = \"b\""),
            "mcp.args must be a list of texts such as [\"a\", \"b\"], but it is a text",
        ),
        (
            &mcp("command = \"a\"\nenv = { TOKEN = 7 }"),
            "mcp.env.TOKEN must be a text in quotes, but it is a whole number",
        ),
        (
            &format!("{}{}", mcp("command = \"a\"\n"), mcp("command = \"b\"\n")),
            "mcp.name \"files\" is given twice; rename one",
        ),
        (
            "[[mcp]]\nname = \"My Files\"\ncommand = \"a\"",
            "mcp.name takes at most 32 of a-z, 0-9 and -",
        ),
    ];
    for (text, error) in table {
        assert_eq!((text, refused(text).as_str()), (text, error));
    }
}

#[test]
fn an_empty_file_gives_the_documented_defaults() {
    let config = read("").expect("empty is fine");
    assert_eq!(config.data_dir, PathBuf::from("/home/mei/.local/share/adjutant"));
    assert_eq!(config.listen.to_string(), "127.0.0.1:7177");
    assert!(matches!(config.database, Database::Sqlite));
    assert!(config.model.is_none() && config.mcp.is_empty());
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.owner, OwnerSeed { name: None, zone: None, language: None });
    assert_eq!((config.log.as_str(), config.log_format), ("info", LogFormat::Text));
    let nobody = parse("", None, Path::new("/"), &|_| None).map_err(|p| p.to_string());
    let wanted = "HOME is not set, so data_dir has no default; set HOME or give it";
    assert_eq!(nobody.err().as_deref(), Some(wanted));
}

#[test]
fn paths_start_at_the_folder_of_the_file_and_a_near_model_needs_neither_key_nor_price() {
    let text = "data_dir = \"data\"\n[database]\nurl = \"postgresql://u:secret@h/d\"\n\
                [model]\nbase_url = \"http://127.0.0.1:8080/v1/\"\nmodel = \"local\"\n\
                [[mcp]]\nname = \"files\"\ncommand = \"./run\"\nargs = [\"./a.js\", \"-v\"]\n\
                env = { TOKEN = \"secret\" }\nmanifest = \"~/m.toml\"\n\
                [limits]\nworkers = 2\nburst_ms = 0\n";
    let config = read(text).expect("all fine");
    assert_eq!(config.data_dir, PathBuf::from("/etc/adjutant/data"));
    assert_eq!(config.limits, Limits { workers: 2, burst_ms: 0, ..Limits::default() });
    let model = config.model.as_ref().expect("a model");
    assert_eq!(
        (&model.key, model.base_url.as_str()),
        (&KeySource::None, "http://127.0.0.1:8080/v1")
    );
    assert_eq!((model.input_per_million, model.output_per_million), (MicroUsd(0), MicroUsd(0)));
    let server = config.mcp.first().expect("one server");
    let McpServer::Program { command, args, env } = &server.server else { panic!("a program") };
    assert_eq!(*command, PathBuf::from("/etc/adjutant/./run"));
    assert_eq!(*args, ["/etc/adjutant/a.js", "-v"]);
    assert_eq!(env.get("TOKEN").map(|secret| secret.expose()), Some("secret"));
    assert_eq!(server.manifest, Some(PathBuf::from("/home/mei/m.toml")));
    let shown = serde_json::to_string(&config).expect("it can be shown");
    assert!(!shown.contains("secret"), "a secret is shown: {shown}");
    assert!(shown.contains("\"engine\":\"postgresql\"") && shown.contains("\"env\":[\"TOKEN\"]"));
}

#[test]
fn a_tool_server_may_be_an_address_with_a_key_of_its_own() {
    let text = "[[mcp]]\nname = \"shop\"\nurl = \"https://tools.example/mcp?k=s3cret\"\n\
                key_env = \"SHOP_KEY\"\n\
                [[mcp]]\nname = \"near\"\nurl = \"http://10.0.0.5:8080/mcp\"\n\
                [[mcp]]\nname = \"here\"\nurl = \"http://127.0.0.1:3001/mcp\"\nkey_file = \"k\"\n";
    let config = read(text).expect("all fine");
    let keys: Vec<_> = config
        .mcp
        .iter()
        .map(|server| match &server.server {
            McpServer::Address { key, .. } => key.clone(),
            McpServer::Program { .. } => panic!("an address"),
        })
        .collect();
    let file = KeySource::File(PathBuf::from("/etc/adjutant/k"));
    assert_eq!(keys, [KeySource::Env("SHOP_KEY".into()), KeySource::None, file]);
    let shown = serde_json::to_string(&config.mcp).expect("it can be shown");
    assert!(!shown.contains("s3cret"), "a secret is shown: {shown}");
    assert!(
        shown.starts_with(r#"[{"name":"shop","url":"https://tools.example/mcp","key":{"env":"#)
    );
    let missing = keys[0].fetch("mcp", &|_| None).map(|_| ()).map_err(|p| p.to_string());
    let wanted = "the environment variable SHOP_KEY (mcp.key_env) is not set; export it before the \
                  start";
    assert_eq!(missing.err().as_deref(), Some(wanted));
    let given = keys[0].fetch("mcp", &|_| Some("sk-1\n".into())).expect("it is set");
    assert_eq!(given.map(|key| key.expose().to_owned()).as_deref(), Some("sk-1"));
}

#[test]
fn a_key_is_taken_from_a_file_that_nobody_else_can_read() {
    let folder = std::env::temp_dir().join(format!("adjutant-key-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (file, toml) = (folder.join("key"), folder.join("a.toml"));
    let prices = "input_usd_per_million = \"1\"\noutput_usd_per_million = \"2.5\"\n";
    std::fs::write(&toml, format!("{MODEL}key_file = \"key\"\n{prices}")).expect("written");
    let config = Config::load(Some(&toml), &home).expect("readable");
    let model = config.model.expect("a model");
    assert_eq!(model.cached_per_million, MicroUsd(1_000_000), "the cache costs as the input");
    assert_eq!(model.output_per_million, MicroUsd(2_500_000));
    let key = || model.key(&home).map(|key| key.map(|key| key.expose().to_string()));
    let text = |problem: Problem| problem.to_string();
    let path = file.display();
    assert_eq!(
        key().map_err(text),
        Err(format!(
            "model.key_file {path}: No such file or directory (os error 2); write the key alone \
             into it"
        ))
    );
    std::fs::write(&file, "sk-1\n").expect("written");
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode));
    mode(0o640).expect("mode");
    assert_eq!(
        key().map_err(text),
        Err(format!(
            "model.key_file {path} has mode 0640, others can read it; run: chmod 600 {path}"
        ))
    );
    mode(0o600).expect("mode");
    assert_eq!(key(), Ok(Some("sk-1".to_string())));
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_missing_file_is_an_error_only_if_it_was_named() {
    let path = Path::new("/nonexistent/adjutant.toml");
    let problem = "No such file or directory (os error 2)".to_string();
    let wanted = ConfigError { file: Some(path.into()), problem: Problem::Unreadable(problem) };
    assert_eq!(Config::load(Some(path), &home).map(|_| ()), Err(wanted));
    let text = Config::load(Some(path), &home).map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(
        text,
        Err(
            "/nonexistent/adjutant.toml: cannot be read (No such file or directory (os error 2)); \
             check the path given to --config"
                .to_string()
        )
    );
    assert!(Config::load(None, &home).is_ok_and(|config| config.file.is_none()));
}

fn example() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/adjutant.example.toml");
    std::fs::read_to_string(file).expect("the example file is there")
}

#[test]
fn the_example_file_is_accepted_and_shows_the_default_limits() {
    let config = read(&example()).expect("the example is accepted");
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.small.map(|small| small.model), Some("example-small".to_owned()));
    let reviewer = config.reviewer.map(|reviewer| reviewer.model);
    assert_eq!(reviewer, Some("example-reviewer".to_owned()));
    assert_eq!(config.search.map(|search| search.provider), Some(super::SearchProvider::Brave));
    let model = config.model.expect("a model");
    assert_eq!((model.context_tokens, model.max_output_tokens), (128_000, 8_192));
    assert_eq!(model.cached_per_million, MicroUsd(28_000));
}

#[test]
fn the_example_file_names_every_key_and_no_other() {
    let mut section = String::new();
    let mut named: Vec<String> = Vec::new();
    for line in example().lines() {
        let line = line.strip_prefix('#').unwrap_or(line);
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_start_matches('[').trim_end_matches(']').to_string();
            named.push(section.clone());
        } else if let Some((key, _)) = line.split_once(" = ")
            && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        {
            named.push(super::join(&section, key));
        }
    }
    let mut known = known_keys().expect("keys");
    named.sort();
    known.sort();
    assert_eq!(named, known);
}
