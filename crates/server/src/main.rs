//! Adjutant: configuration, wiring, command line and shutdown. Everything else is in its own crate.

mod action;
mod attack;
mod backup;
mod cli;
mod client;
mod config;
mod demo;
mod doctor;
mod fake;
mod listen;
mod log;
mod machine;
mod serve;
mod service;
mod setup;
mod world;

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;

use base::{IdSource, SystemClock};
use clap::Parser as _;
use cli::{Cli, Command, Manner, PersonCommand, TalkCommand, WorldCommand};
use client::{Change, Client, ClientError, Endpoint, Exit, Repeat, Screen, TailOptions, Wish};
use config::Config;

/// Bytes of a key that is piped in.
const KEY_BYTES_MAX: u64 = 16 << 10;

fn main() -> ExitCode {
    // Before anything is understood: also what is refused then is said as it was asked for.
    let json = std::env::args_os().any(|arg| arg == "--json");
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Asked for, as --help is, or no usage.
        Err(shown) => return refused(&shown, json),
    };
    let exit = match run(cli) {
        Ok(exit) => exit,
        Err(error) => {
            // The reason first, its causes after it; nothing more can be done if this fails.
            let text = format!("{error:#}");
            let _ = match json {
                true => print(&in_json("failed", &text)),
                false => writeln!(std::io::stderr().lock(), "adjutant: {text}").map_err(Into::into),
            };
            Exit::Error
        }
    };
    ExitCode::from(exit as u8)
}

/// Says what the command line is not understood for, or the help that it asks for.
fn refused(shown: &clap::Error, json: bool) -> ExitCode {
    let _ = match json && shown.use_stderr() {
        true => {
            let text = shown.render().to_string();
            print(&in_json("usage", text.trim().trim_start_matches("error: ")))
        }
        false => shown.print().map_err(Into::into),
    };
    ExitCode::from(u8::try_from(shown.exit_code()).unwrap_or(Exit::Usage as u8))
}

/// An error as one line of JSON.
fn in_json(error: &str, detail: &str) -> String {
    format!("{}\n", serde_json::json!({"error": error, "detail": detail}))
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    let env = |name: &str| std::env::var(name).ok();
    let config = |path: Option<&std::path::Path>| Config::load(path, &env);
    let ask = |ask: Ask| {
        let config = config(cli.config.as_deref())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (manner, with) = (ask.manner(), (client::http_client()?, IdSource::new(seed()?)));
        on_screen(manner.json, |screen| {
            runtime.block_on(ask_server(ask, manner, (&config, &env), with, screen))
        })
    };
    match cli.command {
        Command::Serve(args) => {
            let config = config(cli.config.as_deref())?;
            log::start(&config)?;
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            let stage = args.stage.as_deref().map(demo::Stage::open).transpose()?;
            runtime.block_on(serve::run(config, stage.map(std::sync::Arc::new)))?;
            Ok(Exit::Ok)
        }
        Command::Setup(args) => set_up(args, cli.config, &env),
        Command::Demo(args) => demo::run(args).map(|()| Exit::Ok),
        Command::Fake { kind } => fake::run(kind).map(|()| Exit::Ok),
        Command::Doctor(args) => {
            let config = config(cli.config.as_deref());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let checks = runtime.block_on(doctor::examine(&config, &env));
            let text = doctor::report(&checks, config.as_ref().ok(), args.json);
            print(&text)?;
            Ok(if checks.iter().any(doctor::Check::failed) { Exit::Error } else { Exit::Ok })
        }
        Command::Backup(args) => {
            print(&backup::back_up(&args, &config(cli.config.as_deref())?)?).map(|()| Exit::Ok)
        }
        Command::Restore(args) => {
            print(&backup::restore(&args, &config(cli.config.as_deref())?)?).map(|()| Exit::Ok)
        }
        Command::Service { command } => {
            let config = config(cli.config.as_deref())?;
            let (text, exit) = service::run(&command, &config, &env)?;
            print(&text).map(|()| exit)
        }
        Command::Openapi(args) => print(&client::openapi(args.json)).map(|()| Exit::Ok),
        Command::Talk(command) => ask(Ask::Talk(command)),
        Command::World(command) => ask(Ask::World(command)),
        Command::Person(command) => ask(Ask::Person(command)),
    }
}

/// Runs the set-up on this terminal.
fn set_up(
    args: cli::SetupArgs,
    file: Option<std::path::PathBuf>,
    env: config::Env<'_>,
) -> anyhow::Result<Exit> {
    let home = "HOME is not set; name the file with --config";
    let file = file.or_else(|| config::default_file(env)).ok_or_else(|| anyhow::anyhow!(home))?;
    let piped = match args.key_stdin {
        false => None,
        true => {
            let mut text = String::new();
            std::io::stdin().take(KEY_BYTES_MAX).read_to_string(&mut text)?;
            Some(base::Secret::new(&text)?)
        }
    };
    let json = args.json.json;
    let machine = setup::Machine { file, env, piped, http: client::http_client()? };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    on_screen(json, |screen| runtime.block_on(setup::run(args, machine, screen)))
}

/// A command that asks the server, from whichever list.
enum Ask {
    Talk(TalkCommand),
    World(WorldCommand),
    Person(PersonCommand),
}

impl Ask {
    fn manner(&self) -> Manner {
        match self {
            Ask::Talk(command) => command.manner(),
            Ask::World(command) => command.manner(),
            Ask::Person(command) => command.manner(),
        }
    }
}

/// Writes to standard output; a reader that has seen enough and left is no error.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Runs one command on this terminal, and turns its error into text and exit code.
fn on_screen(
    json: bool,
    command: impl FnOnce(&mut Screen<'_>) -> Result<(), ClientError>,
) -> anyhow::Result<Exit> {
    let (stdin, mut stdout, mut stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    // Read by the line where a person is asked; held by nobody, since a message may be piped in.
    let mut keyboard = std::io::BufReader::new(std::io::stdin());
    let person = stdin.is_terminal() && stderr.is_terminal();
    let mut screen = Screen {
        out: &mut stdout,
        err: &mut stderr,
        keyboard: person.then_some(&mut keyboard as &mut dyn std::io::BufRead),
        json,
    };
    let Err(error) = command(&mut screen) else { return Ok(Exit::Ok) };
    let (exit, name) = error.class();
    if exit != Exit::Ok && !error.is_shown() {
        if json {
            let line = serde_json::json!({"error": name, "detail": error.to_string()});
            screen.result(&line, "").ok();
        } else {
            screen.note(&format!("adjutant: {error}")).ok();
        }
    }
    Ok(exit)
}

/// Runs one client command against the server.
async fn ask_server(
    ask: Ask,
    manner: Manner,
    (config, env): (&Config, config::Env<'_>),
    (http, ids): (reqwest::Client, IdSource),
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let endpoint = match manner.token_wait_s {
        None => Endpoint::open(config, env),
        Some(wait_s) => client::find_within(config, env, &http, wait_s).await,
    };
    let client = Client::new(endpoint?, http, ids, Box::new(SystemClock));
    match ask {
        Ask::Talk(command) => dispatch_talk(command, &client, config, screen).await,
        Ask::World(command) => world::dispatch(command, &client, screen).await,
        Ask::Person(command) => dispatch_person(command, &client, config, screen).await,
    }
}

/// The decision as the command line gave it.
fn answer(yes: cli::Yes) -> client::Answer {
    let cli::Yes { yes, digest, id } = yes;
    client::Answer { yes, digest, id }
}

fn repeat(args: cli::RepeatArgs) -> Repeat {
    Repeat { id: args.id, wait_s: args.wait }
}

async fn dispatch_talk(
    command: TalkCommand,
    client: &Client,
    config: &Config,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    match command {
        TalkCommand::Send(args) => {
            let text = if args.text == "-" { standard_input(config)? } else { args.text };
            let about = args.about.map(|id| id.to_string());
            client::send(client, &text, about.as_deref(), repeat(args.repeat), screen).await
        }
        TalkCommand::Tail(args) => {
            let options =
                TailOptions { last: args.last, after: args.after, receipts: !args.no_receipts };
            client::tail(client, options, screen).await
        }
        TalkCommand::Duties(_) => client::duties(client, screen).await,
        TalkCommand::Duty(args) => client::duty(client, &args.duty.to_string(), screen).await,
        TalkCommand::Confirm(args) => {
            let answer = answer(args.yes);
            client::confirm(client, &args.proposal.to_string(), answer, screen).await
        }
        TalkCommand::Decline(args) => {
            client::decline(client, &args.proposal.to_string(), args.id, screen).await
        }
        TalkCommand::Action { command } => action::dispatch(command, client, screen).await,
        TalkCommand::Attack(args) => attack::run(&args, client, screen).await,
        TalkCommand::Stop(args) => {
            let (duty, repeat) = (args.duty.to_string(), repeat(args.repeat));
            client::change_duty(client, &duty, Change::Stop, repeat, screen).await
        }
        TalkCommand::Resume(args) => {
            let (duty, repeat) = (args.duty.to_string(), repeat(args.repeat));
            client::change_duty(client, &duty, Change::Resume, repeat, screen).await
        }
    }
}

async fn dispatch_person(
    command: PersonCommand,
    client: &Client,
    config: &Config,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    match command {
        PersonCommand::Pair(args) => match args.code {
            Some(code) => {
                client::pair(client, &code, &args.name, &config.token_file(), screen).await
            }
            None => client::offer_code(client, args.supervisor, screen).await,
        },
        PersonCommand::Devices(_) => client::devices(client, screen).await,
        PersonCommand::Revoke(args) => {
            client::revoke(client, &args.device.to_string(), repeat(args.repeat), screen).await
        }
        PersonCommand::Set(args) => {
            let cli::SetArgs { name, zone, cap_usd: cap, dial, language, repeat: again, .. } = args;
            let wish = Wish { name, zone, cap, dial, language };
            client::set(client, wish, repeat(again), screen).await
        }
        PersonCommand::Rule { command } => client::rules::dispatch(command, client, screen).await,
    }
}

/// A message from a pipe, at most one byte more than the server takes.
fn standard_input(config: &Config) -> Result<String, ClientError> {
    let most = config.limits.message_bytes;
    let mut text = String::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    std::io::stdin().lock().take(limit).read_to_string(&mut text)?;
    if text.len() > most {
        return Err(ClientError::Usage(format!(
            "the message is longer than {most} bytes; send it in parts"
        )));
    }
    Ok(text)
}

/// Random bits from the operating system for ids.
#[expect(clippy::disallowed_methods, reason = "main is the one place that seeds the IdSource")]
fn seed() -> anyhow::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|error| anyhow::anyhow!("the system gives no random bits: {error}"))?;
    Ok(seed)
}
