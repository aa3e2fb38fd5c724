//! The commands for outside effects: from words of the command line to the client.

use crate::answer;
use crate::cli::ActionCommand;
use crate::client::actions::{self, Statement};
use crate::client::{Client, ClientError, Screen};
use crate::repeat;

/// Runs one of them.
pub async fn dispatch(
    command: ActionCommand,
    client: &Client,
    screen: &mut Screen<'_>,
) -> Result<(), ClientError> {
    match command {
        ActionCommand::List(args) => actions::list(client, args.last, args.open, screen).await,
        ActionCommand::Log(_) => actions::log(client, screen).await,
        ActionCommand::Show(args) => actions::show(client, &args.action.to_string(), screen).await,
        ActionCommand::Approve(args) => {
            let answer = answer(args.yes);
            actions::approve(client, &args.action.to_string(), answer, screen).await
        }
        ActionCommand::Deny(args) => {
            let (action, reason) = (args.action.to_string(), args.reason.as_deref());
            actions::deny(client, &action, reason, args.id, screen).await
        }
        ActionCommand::Withdraw(args) => {
            actions::withdraw(client, &args.action.to_string(), repeat(args.repeat), screen).await
        }
        ActionCommand::Happened(args) => {
            let action = args.action.to_string();
            actions::state(client, &action, Statement::Happened, args.id, screen).await
        }
        ActionCommand::DidNot(args) => {
            let action = args.action.to_string();
            actions::state(client, &action, Statement::DidNot, args.id, screen).await
        }
        ActionCommand::KeepLooking(args) => {
            let action = args.action.to_string();
            actions::state(client, &action, Statement::KeepLooking, args.id, screen).await
        }
    }
}
