//! The commands for what comes in and what is held: from words of the command line to the client.

use std::path::Path;

use serde_json::{Value, json};

use crate::cli::{
    Command, HoldCommand, NewSourceArgs, RepeatArgs, SourceCommand, SourceKind, Turn,
};
use crate::client::sources::{self, NewSource};
use crate::client::{self, Client, ClientError, Repeat, Screen, Settle};

/// Runs one of them; `None` if the command is another.
pub async fn dispatch(
    command: &Command,
    client: &Client,
    screen: &mut Screen<'_>,
) -> Option<Result<(), ClientError>> {
    let repeat = |args: RepeatArgs| Repeat { id: args.id, wait_s: args.wait };
    let words = |id: Option<base::DutyId>| id.map(|id| id.to_string());
    Some(match command {
        Command::Pause(args) => {
            client::pause(client, words(args.duty).as_deref(), repeat(args.repeat), screen).await
        }
        Command::Lift(args) => {
            client::lift(client, words(args.duty).as_deref(), repeat(args.repeat), screen).await
        }
        Command::Hold(args) => match &args.command {
            None => client::control(client, screen).await,
            Some(HoldCommand::Release(args)) => {
                let hold = args.hold.map(|id| id.to_string());
                let (how, repeat) = (Settle::Release, repeat(args.repeat));
                client::settle(client, hold.as_deref(), how, repeat, screen).await
            }
            Some(HoldCommand::Stop(args)) => {
                let hold = args.hold.map(|id| id.to_string());
                let (how, repeat) = (Settle::Stop, repeat(args.repeat));
                client::settle(client, hold.as_deref(), how, repeat, screen).await
            }
        },
        Command::SystemStop(args) => {
            let stopped = args.turn == Turn::On;
            client::system_stop(client, stopped, repeat(args.repeat), screen).await
        }
        Command::Source { command } => source(command, client, screen).await,
        Command::Events(args) => {
            client::events(client, args.before.as_deref(), args.last, screen).await
        }
        Command::Trace(args) => client::trace(client, &args.event.to_string(), screen).await,
        Command::Observed(args) => client::observed(client, args.last, screen).await,
        Command::Serve(_)
        | Command::Send(_)
        | Command::Tail(_)
        | Command::Duties(_)
        | Command::Duty(_)
        | Command::Confirm(_)
        | Command::Decline(_)
        | Command::Stop(_)
        | Command::Resume(_)
        | Command::Doctor(_)
        | Command::Demo(_)
        | Command::Pair(_)
        | Command::Devices(_)
        | Command::Revoke(_)
        | Command::Set(_)
        | Command::Openapi(_)
        | Command::Fake { .. } => return None,
    })
}

async fn source(
    command: &SourceCommand,
    client: &Client,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    match command {
        SourceCommand::Add { kind } => sources::add(client, wanted(kind)?, screen).await,
        SourceCommand::List(_) => sources::list(client, screen).await,
        SourceCommand::Test(args) => sources::test(client, &args.name, screen).await,
        SourceCommand::Rotate(args) => {
            let secret = sources::secret_file(args.secret_file.as_deref())?;
            let repeat = Repeat { id: args.repeat.id, wait_s: args.repeat.wait };
            sources::rotate(client, &args.name, secret, repeat, screen).await
        }
        SourceCommand::Remove(args) => sources::remove(client, &args.name, screen).await,
    }
}

/// The source that a person wants, as the API takes it.
fn wanted(kind: &SourceKind) -> Result<NewSource, ClientError> {
    let new =
        |args: &NewSourceArgs, config: Value, every_ms: Option<u64>, secret: Option<&Path>| {
            Ok(NewSource {
                name: args.name.clone(),
                config,
                every_ms,
                expect_ms: args.expect,
                secret: sources::secret_file(secret)?,
            })
        };
    match kind {
        SourceKind::Webhook(args) => {
            let config = json!({"kind": "webhook", "scheme": "standard", "key": args.key,
                "topic": args.topic, "recheck": args.recheck});
            new(&args.new, config, args.every.every, args.secret_file.as_deref())
        }
        SourceKind::Github(args) => {
            let config = json!({"kind": "webhook", "scheme": "github"});
            new(&args.new, config, None, args.secret_file.as_deref())
        }
        SourceKind::Folder(args) => {
            let config = json!({"kind": "folder", "path": std::path::absolute(&args.path)?});
            new(&args.new, config, args.every.every, None)
        }
        SourceKind::Feed(args) => {
            new(&args.new, json!({"kind": "feed", "url": args.url}), args.every.every, None)
        }
        SourceKind::Url(args) => {
            new(&args.new, json!({"kind": "url", "url": args.url}), args.every.every, None)
        }
    }
}

/// How long one of these commands waits for a server; `None` for another.
pub fn wait_s(command: &Command) -> Option<u64> {
    match command {
        Command::Pause(args) | Command::Lift(args) => Some(args.repeat.wait),
        Command::SystemStop(args) => Some(args.repeat.wait),
        Command::Hold(args) => match &args.command {
            Some(HoldCommand::Release(args) | HoldCommand::Stop(args)) => Some(args.repeat.wait),
            None => None,
        },
        Command::Serve(_)
        | Command::Send(_)
        | Command::Tail(_)
        | Command::Duties(_)
        | Command::Duty(_)
        | Command::Confirm(_)
        | Command::Decline(_)
        | Command::Stop(_)
        | Command::Resume(_)
        | Command::Source { .. }
        | Command::Events(_)
        | Command::Trace(_)
        | Command::Observed(_)
        | Command::Doctor(_)
        | Command::Demo(_)
        | Command::Pair(_)
        | Command::Devices(_)
        | Command::Revoke(_)
        | Command::Set(_)
        | Command::Openapi(_)
        | Command::Fake { .. } => None,
    }
}

/// Whether a command about sources is to answer in JSON.
pub fn source_json(command: &SourceCommand) -> bool {
    match command {
        SourceCommand::List(args) => args.json,
        SourceCommand::Test(args) | SourceCommand::Remove(args) => args.json.json,
        SourceCommand::Rotate(args) => args.json.json,
        SourceCommand::Add { kind } => match kind {
            SourceKind::Webhook(args) => args.new.json.json,
            SourceKind::Github(args) => args.new.json.json,
            SourceKind::Folder(args) => args.new.json.json,
            SourceKind::Feed(args) | SourceKind::Url(args) => args.new.json.json,
        },
    }
}
