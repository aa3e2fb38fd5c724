//! Adjutant: configuration, wiring, command line and shutdown. Everything else is in its own crate.

mod cli;
mod client;
mod config;
mod demo;
mod doctor;
mod fake;
mod log;
mod serve;
mod world;

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;

use base::{IdSource, SystemClock};
use clap::Parser as _;
use cli::{Cli, Command};
use client::{Change, Client, ClientError, Endpoint, Exit, Repeat, Screen, TailOptions, Wish};
use config::Config;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let exit = match run(cli) {
        Ok(exit) => exit,
        Err(error) => {
            // The reason first, its causes after it; nothing more can be done if this fails.
            let _ = writeln!(std::io::stderr().lock(), "adjutant: {error:#}");
            Exit::Error
        }
    };
    ExitCode::from(exit as u8)
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    let env = |name: &str| std::env::var(name).ok();
    let config = |path: Option<&std::path::Path>| Config::load(path, &env);
    match cli.command {
        Command::Serve(args) => {
            let config = config(cli.config.as_deref())?;
            log::start(&config)?;
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            let stage = args.stage.as_deref().map(demo::Stage::open).transpose()?;
            runtime.block_on(serve::run(config, stage.map(std::sync::Arc::new)))?;
            Ok(Exit::Ok)
        }
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
        Command::Openapi(args) => print(&client::openapi(args.json)).map(|()| Exit::Ok),
        command @ (Command::Send(_)
        | Command::Tail(_)
        | Command::Duties(_)
        | Command::Duty(_)
        | Command::Confirm(_)
        | Command::Decline(_)
        | Command::Stop(_)
        | Command::Resume(_)
        | Command::Pause(_)
        | Command::Lift(_)
        | Command::Hold(_)
        | Command::SystemStop(_)
        | Command::Source { .. }
        | Command::Events(_)
        | Command::Trace(_)
        | Command::Observed(_)
        | Command::Pair(_)
        | Command::Devices(_)
        | Command::Revoke(_)
        | Command::Set(_)) => {
            let config = config(cli.config.as_deref())?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(ask_server(command, &config, &env))
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

/// Runs one client command against the server and turns its error into text and exit code.
async fn ask_server(
    command: Command,
    config: &Config,
    env: config::Env<'_>,
) -> anyhow::Result<Exit> {
    let json = wants_json(&command);
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
    let http = client::http_client()?;
    let without_token = matches!(&command, Command::Pair(args) if args.code.is_some());
    let endpoint = match without_token {
        true => Endpoint::open(config, env),
        false => client::find_within(config, env, &http, wait_s(&command)).await,
    };
    let done = match endpoint {
        Ok(endpoint) => {
            let client = Client::new(endpoint, http, IdSource::new(seed()?), Box::new(SystemClock));
            dispatch(command, &client, config, &mut screen).await
        }
        Err(error) => Err(error),
    };
    let Err(error) = done else { return Ok(Exit::Ok) };
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

async fn dispatch(
    command: Command,
    client: &Client,
    config: &Config,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let repeat = |args: cli::RepeatArgs| Repeat { id: args.id, wait_s: args.wait };
    match command {
        Command::Send(args) => {
            let text = if args.text == "-" { standard_input(config)? } else { args.text };
            client::send(client, &text, repeat(args.repeat), screen).await
        }
        Command::Tail(args) => {
            let options =
                TailOptions { last: args.last, after: args.after, receipts: !args.no_receipts };
            client::tail(client, options, screen).await
        }
        Command::Duties(_) => client::duties(client, screen).await,
        Command::Duty(args) => client::duty(client, &args.duty.to_string(), screen).await,
        Command::Confirm(args) => {
            let answer = client::Answer { yes: args.yes, digest: args.digest, id: args.id };
            client::confirm(client, &args.proposal.to_string(), answer, screen).await
        }
        Command::Decline(args) => {
            client::decline(client, &args.proposal.to_string(), args.id, screen).await
        }
        Command::Stop(args) => {
            let (duty, repeat) = (args.duty.to_string(), repeat(args.repeat));
            client::change_duty(client, &duty, Change::Stop, repeat, screen).await
        }
        Command::Resume(args) => {
            let (duty, repeat) = (args.duty.to_string(), repeat(args.repeat));
            client::change_duty(client, &duty, Change::Resume, repeat, screen).await
        }
        Command::Pair(args) => match args.code {
            Some(code) => {
                client::pair(client, &code, &args.name, &config.token_file(), screen).await
            }
            None => client::offer_code(client, screen).await,
        },
        Command::Devices(_) => client::devices(client, screen).await,
        Command::Revoke(args) => {
            client::revoke(client, &args.device.to_string(), repeat(args.repeat), screen).await
        }
        Command::Set(args) => {
            let cli::SetArgs { name, zone, cap_usd: cap, dial, repeat: again, .. } = args;
            let wish = Wish { name, zone, cap, dial };
            client::set(client, wish, repeat(again), screen).await
        }
        command @ (Command::Pause(_)
        | Command::Lift(_)
        | Command::Hold(_)
        | Command::SystemStop(_)
        | Command::Source { .. }
        | Command::Events(_)
        | Command::Trace(_)
        | Command::Observed(_)
        | Command::Serve(_)
        | Command::Demo(_)
        | Command::Fake { .. }
        | Command::Doctor(_)
        | Command::Openapi(_)) => {
            world::dispatch(&command, client, screen).await.unwrap_or_else(|| {
                Err(ClientError::Usage("this command does not ask the server".into()))
            })
        }
    }
}

/// How long a command waits for a server at its first start to write the token.
fn wait_s(command: &Command) -> u64 {
    match command {
        Command::Send(args) => args.repeat.wait,
        Command::Stop(args) | Command::Resume(args) => args.repeat.wait,
        Command::Revoke(args) => args.repeat.wait,
        Command::Set(args) => args.repeat.wait,
        Command::Tail(_) => cli::WAIT_S,
        command @ (Command::Pause(_)
        | Command::Lift(_)
        | Command::Hold(_)
        | Command::SystemStop(_)) => world::wait_s(command).unwrap_or_default(),
        Command::Source { .. } | Command::Events(_) | Command::Trace(_) | Command::Observed(_) => 0,
        Command::Duties(_)
        | Command::Duty(_)
        | Command::Confirm(_)
        | Command::Decline(_)
        | Command::Pair(_)
        | Command::Devices(_)
        | Command::Openapi(_)
        | Command::Doctor(_)
        | Command::Demo(_)
        | Command::Serve(_)
        | Command::Fake { .. } => 0,
    }
}

fn wants_json(command: &Command) -> bool {
    match command {
        Command::Send(args) => args.json.json,
        Command::Tail(args) => args.json.json,
        Command::Duties(args)
        | Command::Devices(args)
        | Command::Doctor(args)
        | Command::Openapi(args) => args.json,
        Command::Revoke(args) => args.json.json,
        Command::Set(args) => args.json.json,
        Command::Duty(args) => args.json.json,
        Command::Confirm(args) => args.json.json,
        Command::Decline(args) => args.json.json,
        Command::Stop(args) | Command::Resume(args) => args.json.json,
        Command::Pair(args) => args.json.json,
        Command::Pause(args) | Command::Lift(args) => args.json.json,
        Command::SystemStop(args) => args.json.json,
        Command::Hold(args) => {
            let below = match &args.command {
                Some(cli::HoldCommand::Release(args) | cli::HoldCommand::Stop(args)) => {
                    args.json.json
                }
                None => false,
            };
            below || args.json.json
        }
        Command::Source { command } => world::source_json(command),
        Command::Events(args) => args.json.json,
        Command::Trace(args) => args.json.json,
        Command::Observed(args) => args.json.json,
        Command::Demo(args) => args.json,
        Command::Serve(_) | Command::Fake { .. } => false,
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
