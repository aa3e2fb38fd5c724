//! Words of the command line for outside effects: what waits for the person, and their word on it.

use base::{ActionId, EventId};
use clap::{Args, Subcommand};

use super::{Json, Manner, RepeatArgs, Yes};

/// What to do with actions.
#[derive(Debug, Subcommand)]
pub enum ActionCommand {
    /// List them with their state, newest first
    #[command(after_help = "Example:\n  adjutant action list\n  adjutant action list --open")]
    List(ListArgs),
    /// Show one: its card, who released it, and what was sent for it
    #[command(after_help = "Example:\n  \
adjutant action show 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    Show(ShowArgs),
    /// How you decided on the cards of each tool, and how fast
    #[command(after_help = "Example:\n  adjutant action log")]
    Log(LogArgs),
    /// Read a card and release exactly what it says
    #[command(
        after_help = "Asks first on a terminal; elsewhere --yes is needed. --digest refuses \
any card but the one you saw.\n\nExample:\n  \
adjutant action approve 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01\n  \
adjutant action approve 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01 --yes --digest 7f83b165…"
    )]
    Approve(ApproveArgs),
    /// Refuse one: nothing is sent
    #[command(after_help = "Example:\n  \
adjutant action deny 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01 --reason \"too dear\"")]
    Deny(DenyArgs),
    /// Take one back that has not been sent
    #[command(
        after_help = "What was sent can only be undone by an action of its own.\n\nExample:\n  \
adjutant action withdraw 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01"
    )]
    Withdraw(WithdrawArgs),
    /// Say of one that could not be found out about: it happened
    #[command(after_help = "Example:\n  \
adjutant action happened 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    Happened(StateArgs),
    /// Say of one that could not be found out about: it did not happen
    #[command(after_help = "Example:\n  \
adjutant action did-not 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    DidNot(StateArgs),
    /// Say of one that could not be found out about: keep looking
    #[command(after_help = "Example:\n  \
adjutant action keep-looking 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    KeepLooking(StateArgs),
}

impl ActionCommand {
    /// How it asks.
    pub fn manner(&self) -> Manner {
        match self {
            ActionCommand::List(args) => args.json.at_once(),
            ActionCommand::Show(args) => args.json.at_once(),
            ActionCommand::Log(args) => args.json.at_once(),
            ActionCommand::Approve(args) => args.json.at_once(),
            ActionCommand::Deny(args) => args.json.at_once(),
            ActionCommand::Withdraw(args) => args.json.within(args.repeat.wait),
            ActionCommand::Happened(args)
            | ActionCommand::DidNot(args)
            | ActionCommand::KeepLooking(args) => args.json.at_once(),
        }
    }
}

/// Arguments of `action list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// How many of the newest to look at
    #[arg(long, value_name = "COUNT", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..=500))]
    pub last: u32,
    /// Only those that wait for you or are not settled yet
    #[arg(long)]
    pub open: bool,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `action log`.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `action show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Id of the action, as `adjutant action list` shows it
    pub action: ActionId,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `action approve`.
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// Id of the action, as `adjutant tail` and `adjutant action list` show it
    pub action: ActionId,
    /// How.
    #[command(flatten)]
    pub yes: Yes,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `action deny`.
#[derive(Debug, Args)]
pub struct DenyArgs {
    /// Id of the action, as `adjutant tail` and `adjutant action list` show it
    pub action: ActionId,
    /// Why not; the agent reads it
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Id of a decision whose answer was lost
    #[arg(long, value_name = "ID")]
    pub id: Option<EventId>,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `action withdraw`.
#[derive(Debug, Args)]
pub struct WithdrawArgs {
    /// Id of the action, as `adjutant action list` shows it
    pub action: ActionId,
    /// How it is repeated.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `action happened`, `did-not` and `keep-looking`.
#[derive(Debug, Args)]
pub struct StateArgs {
    /// Id of the action, as `adjutant tail` and `adjutant action list` show it
    pub action: ActionId,
    /// Id of a statement whose answer was lost
    #[arg(long, value_name = "ID")]
    pub id: Option<EventId>,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}
