//! The commands for what comes in and what is held: from words of the command line to the client.

use std::path::Path;

use serde_json::{Value, json};

use crate::cli::{
    AuditCommand, HoldCommand, NewSourceArgs, SourceCommand, SourceKind, Turn, WorldCommand,
};
use crate::client::sources::{self, NewSource};
use crate::client::{self, Client, ClientError, Screen, Settle};
use crate::repeat;

/// Runs one of them.
pub async fn dispatch(
    command: WorldCommand,
    client: &Client,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    let words = |id: Option<base::DutyId>| id.map(|id| id.to_string());
    match command {
        WorldCommand::Pause(args) => {
            client::pause(client, words(args.duty).as_deref(), repeat(args.repeat), screen).await
        }
        WorldCommand::Lift(args) => {
            client::lift(client, words(args.duty).as_deref(), repeat(args.repeat), screen).await
        }
        WorldCommand::Hold(args) => match args.command {
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
        WorldCommand::SystemStop(args) => {
            let stopped = args.turn == Turn::On;
            client::system_stop(client, stopped, repeat(args.repeat), screen).await
        }
        WorldCommand::Source { command } => source(&command, client, screen).await,
        WorldCommand::Events(args) => {
            client::events(client, args.before.as_deref(), args.last, screen).await
        }
        WorldCommand::Trace(args) => client::trace(client, &args.event.to_string(), screen).await,
        WorldCommand::Explain(args) => {
            client::explain(client, &args.action.to_string(), screen).await
        }
        WorldCommand::Audit { command: AuditCommand::Verify(_) } => {
            client::verify_audit(client, screen).await
        }
        WorldCommand::Observed(args) => client::observed(client, args.last, screen).await,
    }
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
            sources::rotate(client, &args.name, secret, repeat(args.repeat), screen).await
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
