//! `adjutant setup`: the few questions before the first start, and the one file that comes of them.
//!
//! Each answer is looked at as it is given, the whole file is read as the server will read it, and the model is
//! asked whether it knows the key. Nothing is written before that, and nothing that is there is written over.

mod file;
#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base::{MicroUsd, Secret};
use domain::words::Language;
use model::Wire;
use serde_json::json;

use crate::cli::SetupArgs;
use crate::client::{ClientError, Screen};
use crate::config::{self, Config, Env};
use crate::doctor::{self, Verdict};
use file::{Answers, KEY_FILE, Key};

const CONTEXT_TOKENS: u64 = 128_000;
/// An answer may hold this many tokens, and at most a quarter of what the model holds.
const OUTPUT_TOKENS_MAX: u64 = 8_192;
/// Models that are named where there are many.
const NAMED_MAX: usize = 24;

/// What the machine is told by its user and does not have to be asked.
pub struct Machine<'a> {
    /// Where the file goes.
    pub file: PathBuf,
    /// Environment variables.
    pub env: Env<'a>,
    /// The key that came by standard input.
    pub piped: Option<Secret>,
    /// The client that asks the model.
    pub http: reqwest::Client,
}

/// Asks for what is not given, and writes the configuration file and, where there is one, the key's.
///
/// # Errors
/// When a file is there already, an answer does not do, or the model refuses.
pub async fn run(
    args: SetupArgs,
    machine: Machine<'_>,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let file = std::path::absolute(&machine.file)?;
    let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
    let at_stake = if args.key_file.is_some() || args.key_env.is_some() || args.no_key {
        vec![file.clone()]
    } else {
        vec![file.clone(), folder.join(KEY_FILE)]
    };
    if let Some(there) = at_stake.iter().find(|path| path.exists()) {
        return Err(ClientError::Usage(format!(
            "{} is there already and stays as it is; edit it (docs/adjutant.example.toml has every key), \
             or name another file with --config",
            there.display()
        )));
    }
    let answers = gather(args, &machine, screen).await?;
    let (answers, unchecked) = answers;
    let text = file::text(&answers);
    let config = Config::read(&text, &file, machine.env)
        .map_err(|error| ClientError::Usage(error.to_string()))?;
    check(&answers, &config, &machine, unchecked, screen).await?;
    if let Key::New(key) = &answers.key {
        create(&folder.join(KEY_FILE), key.expose(), 0o600)?;
    }
    create(&file, &text, 0o644)?;
    let mut done = format!("Written: {}\n", file.display());
    if let Key::New(_) = &answers.key {
        done.push_str(&format!("The key is in {KEY_FILE} beside it, readable by you alone.\n"));
    }
    done.push_str("\nNext:\n  adjutant doctor   is everything in place?\n");
    done.push_str("  adjutant serve    start it; it prints the address of its page\n");
    let written = json!({"config": file, "key_file": config.model.as_ref().map(|model| &model.key),
        "model": answers.model, "base_url": answers.base_url, "zone": answers.zone});
    screen.result(&written, &done)
}

/// Every answer, from the line or from the person.
async fn gather(
    args: SetupArgs,
    machine: &Machine<'_>,
    screen: &mut Screen<'_>,
) -> Result<(Answers, bool), ClientError> {
    let mut asked = Asking { screen, option: "" };
    asked.option = "--base-url";
    let at = "Address of the model, up to and without /chat/completions or /messages (such as\n\
              https://api.openai.com/v1, https://api.anthropic.com/v1 or http://127.0.0.1:11434/v1)";
    let base_url = asked.text(args.base_url, at, None, &|text| {
        config::address(text).map(|_| ()).map_err(|problem| format!("it {problem}"))
    })?;
    let near = config::address(&base_url).is_ok_and(|near| near);
    // That vendor speaks nothing else as well as its own.
    let own = if base_url.contains("://api.anthropic.com/") { Wire::Messages } else { Wire::Chat };
    let wire = args.wire.unwrap_or(own);
    let key = match (args.key_env, args.key_file, &machine.piped) {
        (Some(name), _, _) => Key::Env(name),
        (None, Some(path), _) => Key::File(std::path::absolute(path)?),
        (None, None, Some(key)) => Key::New(key.clone()),
        (None, None, None) if args.no_key => Key::None,
        (None, None, None) => asked.key(near)?,
    };
    let known = known_key(&key, machine.env)?;
    let mut names = match args.model {
        None => doctor::models(wire, &base_url, known.as_ref(), &machine.http).await,
        Some(_) => Vec::new(),
    };
    names.sort();
    if !names.is_empty() {
        let more = if names.len() > NAMED_MAX { ", …" } else { "" };
        let list = names.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        asked.screen.note(&format!("It offers: {list}{more}"))?;
    }
    asked.option = "--model";
    let only = if names.len() == 1 { names.pop() } else { None };
    let model = asked.text(args.model, "Name of the model", only, &not_empty)?;
    let prices = asked.prices((args.input_usd, args.cached_usd, args.output_usd), near)?;
    let context_tokens = args.context_tokens.unwrap_or(CONTEXT_TOKENS);
    let env = machine.env;
    asked.option = "--name";
    let name = asked.text(args.name, "What shall it call you?", Some(user(env)), &not_empty)?;
    asked.option = "--zone";
    let zone = asked.text(args.zone, "Your time zone", Some(zone_here(env)), &|text| {
        domain::schedule::zone(text).map(|_| ()).map_err(|error| error.to_string())
    })?;
    asked.option = "--language";
    let here = language_here(env);
    let language = match args.language {
        Some(language) => language,
        None => {
            let is_one = |text: &str| match Language::parse(text) {
                Some(_) => Ok(()),
                None => Err("write en or zh".to_owned()),
            };
            let word = Some(here.word().to_owned());
            let word = asked.text(None, "Its language: en or zh", word, &is_one)?;
            Language::parse(&word).unwrap_or(here)
        }
    };
    asked.option = "--cap-usd";
    let usual = MicroUsd(base::Limits::default().owner_month_micro_usd);
    let cap = asked.money(
        args.cap_usd,
        "What the models may cost in a month, in US dollars",
        Some(usual),
    )?;
    let max_output_tokens = OUTPUT_TOKENS_MAX.min(context_tokens / 4).max(1);
    let answers = Answers {
        wire,
        base_url,
        model,
        key,
        prices,
        context_tokens,
        max_output_tokens,
        name,
        zone,
        language,
        cap,
    };
    Ok((answers, args.unchecked))
}

/// Asks the model, so that what does not work is known before anything is written.
async fn check(
    answers: &Answers,
    config: &Config,
    machine: &Machine<'_>,
    unchecked: bool,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let (Some(model), false) = (&config.model, unchecked) else { return Ok(()) };
    let key = known_key(&answers.key, machine.env)?;
    let seen = doctor::ask_model(model, key.as_ref(), &machine.http).await;
    match seen.verdict {
        Verdict::Ok | Verdict::Skipped => screen.note(&format!("{}.", seen.found)),
        Verdict::Warning => screen.note(&format!("{}. Do: {}", seen.found, seen.remedy)),
        Verdict::Failed => Err(ClientError::Usage(format!(
            "{}; {}. Nothing was written; --unchecked writes it all the same",
            seen.found, seen.remedy
        ))),
    }
}

/// The key itself, where it is there already.
fn known_key(key: &Key, env: Env<'_>) -> Result<Option<Secret>, ClientError> {
    match key {
        Key::New(key) => Ok(Some(key.clone())),
        Key::None | Key::Env(_) | Key::File(_) => {
            let wrong = |problem: config::Problem| ClientError::Usage(problem.to_string());
            key.source().fetch("model", env).map_err(wrong)
        }
    }
}

/// Writes a file that was not there.
fn create(path: &Path, text: &str, mode: u32) -> Result<(), ClientError> {
    let named = |error: std::io::Error| {
        ClientError::Usage(format!(
            "cannot write {} ({error}); name another file with --config",
            path.display()
        ))
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(named)?;
    }
    let options = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = options.map_err(named)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(named)
}

fn not_empty(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("it is empty".into()) } else { Ok(()) }
}

fn user(env: Env<'_>) -> String {
    env("USER").filter(|name| !name.is_empty() && name != "root").unwrap_or_else(|| "you".into())
}

/// The zone of this machine; UTC where it does not say.
fn zone_here(env: Env<'_>) -> String {
    let linked = std::fs::read_link("/etc/localtime").ok();
    let linked = linked.as_deref().and_then(Path::to_str);
    let linked =
        linked.and_then(|path| path.split_once("zoneinfo/")).map(|(_, zone)| zone.to_owned());
    let zone = env("TZ").or(linked).unwrap_or_default();
    if domain::schedule::zone(&zone).is_ok() { zone } else { "UTC".into() }
}

fn language_here(env: Env<'_>) -> Language {
    let locale = env("LC_ALL").or_else(|| env("LANG")).unwrap_or_default();
    if locale.starts_with("zh") { Language::Zh } else { Language::En }
}

/// The person, if there is one, and the option that stands for their answer.
struct Asking<'a, 'b> {
    screen: &'a mut Screen<'b>,
    option: &'static str,
}

impl Asking<'_, '_> {
    /// The answer that was given, else the person's, else the usual one; each as long as it does.
    fn text(
        &mut self,
        given: Option<String>,
        question: &str,
        usual: Option<String>,
        does: &dyn Fn(&str) -> Result<(), String>,
    ) -> Result<String, ClientError> {
        if let Some(given) = given {
            let wrong = |problem| ClientError::Usage(format!("{}: {problem}", self.option));
            return does(&given).map(|()| given).map_err(wrong);
        }
        loop {
            let line = match (self.screen.keyboard.is_some(), &usual) {
                (false, Some(usual)) => return Ok(usual.clone()),
                (false, None) => return Err(self.nobody()),
                (true, Some(usual)) => self.line(&format!("{question} [{usual}]"))?,
                (true, None) => self.line(question)?,
            };
            let answer = match (line.is_empty(), &usual) {
                (true, Some(usual)) => usual.clone(),
                (true, None) | (false, _) => line,
            };
            match does(&answer) {
                Ok(()) => return Ok(answer),
                Err(problem) => self.screen.note(&format!("That does not do: {problem}."))?,
            }
        }
    }

    fn money(
        &mut self,
        given: Option<MicroUsd>,
        question: &str,
        usual: Option<MicroUsd>,
    ) -> Result<MicroUsd, ClientError> {
        if let Some(given) = given {
            return Ok(given);
        }
        let does = |text: &str| match config::micro_usd(text) {
            Some(_) => Ok(()),
            None => Err("write an amount such as 0.28".to_owned()),
        };
        let text = self.text(None, question, usual.map(file::decimal), &does)?;
        Ok(config::micro_usd(&text).unwrap_or(MicroUsd(0)))
    }

    /// What a million tokens cost: read, read from the cache, written. A model of one's own is free.
    fn prices(
        &mut self,
        given: (Option<MicroUsd>, Option<MicroUsd>, Option<MicroUsd>),
        near: bool,
    ) -> Result<Option<[MicroUsd; 3]>, ClientError> {
        let (input, cached, output) = given;
        if near && input.is_none() && output.is_none() {
            return Ok(None);
        }
        self.option = "--input-usd";
        let ask = "US dollars for a million tokens that it reads (its price list says so)";
        let input = self.money(input, ask, None)?;
        self.option = "--cached-usd";
        let ask = "The same for tokens from its cache";
        let cached = self.money(cached, ask, Some(input))?;
        self.option = "--output-usd";
        let output = self.money(output, "And for a million tokens that it writes", None)?;
        Ok(Some([input, cached, output]))
    }

    /// The key, unseen; none for a model nearby.
    fn key(&mut self, near: bool) -> Result<Key, ClientError> {
        self.option = "--key-env, --key-file, --key-stdin or --no-key";
        if self.screen.keyboard.is_none() {
            return if near { Ok(Key::None) } else { Err(self.nobody()) };
        }
        loop {
            let none = if near { " [none]" } else { "" };
            let quiet = Quiet::begin();
            let line = self.line(&format!("Its key, which is not shown{none}"));
            if quiet.is_some() {
                self.screen.note("")?;
            }
            drop(quiet);
            match Secret::new(&line?) {
                Ok(key) => return Ok(Key::New(key)),
                Err(_) if near => return Ok(Key::None),
                Err(error) => self.screen.note(&format!("That does not do: {error}."))?,
            }
        }
    }

    fn nobody(&self) -> ClientError {
        let option = self.option;
        ClientError::Usage(format!("nobody can be asked here: this is no terminal. Give {option}"))
    }

    /// One line of the person's.
    fn line(&mut self, question: &str) -> Result<String, ClientError> {
        let Some(keyboard) = self.screen.keyboard.as_mut() else { return Err(self.nobody()) };
        write!(self.screen.err, "{question}: ")?;
        self.screen.err.flush()?;
        let mut line = String::new();
        if keyboard.read_line(&mut line)? == 0 {
            let ended = "the input ended before every question was answered; nothing was written";
            return Err(ClientError::Usage(ended.into()));
        }
        Ok(line.trim().to_owned())
    }
}

/// A terminal that does not show what is typed, until this is dropped.
struct Quiet(rustix::termios::Termios);

impl Quiet {
    /// `None` where the input is no terminal.
    fn begin() -> Option<Quiet> {
        let was = rustix::termios::tcgetattr(std::io::stdin()).ok()?;
        let mut quiet = was.clone();
        quiet.local_modes.remove(rustix::termios::LocalModes::ECHO);
        set(&quiet)?;
        Some(Quiet(was))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that is gone needs none of its manners back.
        let _ = set(&self.0);
    }
}

fn set(to: &rustix::termios::Termios) -> Option<()> {
    let now = rustix::termios::OptionalActions::Now;
    rustix::termios::tcsetattr(std::io::stdin(), now, to).ok()
}
