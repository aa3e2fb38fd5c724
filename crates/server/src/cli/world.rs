//! Words of the command line for what comes in, what is held, and what was made of it.

use std::path::PathBuf;

use base::{ActionId, DutyId, EventId, HoldId};
use clap::{Args, Subcommand, ValueEnum};

use super::{Json, Manner, RepeatArgs};

/// Commands for what comes in, what is held, and what was made of it.
#[derive(Debug, Subcommand)]
pub enum WorldCommand {
    /// Hold everything, or pause one duty, until you lift it
    #[command(after_help = "What was already sent stands.\n\nExample:\n  adjutant pause\n  \
adjutant pause 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    Pause(PauseArgs),
    /// Lift the pause of everything, or of one duty
    #[command(after_help = "Example:\n  adjutant lift\n  \
adjutant lift 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    Lift(PauseArgs),
    /// Show what is stopped, paused and held, or settle a held message
    #[command(after_help = "Example:\n  adjutant hold\n  adjutant hold release")]
    Hold(HoldArgs),
    /// Stop everything of everyone who uses this server, or let it go on
    #[command(after_help = "Example:\n  adjutant system-stop on\n  adjutant system-stop off")]
    SystemStop(StopArgs),
    /// The ways in by which the world wakes the agent
    #[command(after_help = "Example:\n  adjutant source add webhook shop\n  \
adjutant source list")]
    Source {
        /// What to do.
        #[command(subcommand)]
        command: SourceCommand,
    },
    /// List what came in, newest first
    #[command(after_help = "Example:\n  adjutant events --last 50")]
    Events(EventsArgs),
    /// Show the whole chain of one event: where it came from, what it concerned, what was done
    #[command(after_help = "Example:\n  \
adjutant trace 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    Trace(TraceArgs),
    /// Explain an action: from your words to the outside's evidence
    #[command(after_help = "Example:\n  \
adjutant explain 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    Explain(ExplainArgs),
    /// Recompute the chain of everything that was decided
    #[command(after_help = "Example:\n  adjutant audit verify")]
    Audit {
        /// What to do.
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Show what the agent did by itself, or would have, as the dial says
    #[command(after_help = "Example:\n  adjutant observed")]
    Observed(ObservedArgs),
}

impl WorldCommand {
    /// How it asks.
    pub fn manner(&self) -> Manner {
        match self {
            WorldCommand::Pause(args) | WorldCommand::Lift(args) => {
                args.json.within(args.repeat.wait)
            }
            WorldCommand::Hold(hold) => match &hold.command {
                None => hold.json.at_once(),
                Some(HoldCommand::Release(args) | HoldCommand::Stop(args)) => {
                    Json { json: hold.json.json || args.json.json }.within(args.repeat.wait)
                }
            },
            WorldCommand::SystemStop(args) => args.json.within(args.repeat.wait),
            WorldCommand::Source { command } => command.json().at_once(),
            WorldCommand::Events(args) => args.json.at_once(),
            WorldCommand::Trace(args) => args.json.at_once(),
            WorldCommand::Explain(args) => args.json.at_once(),
            WorldCommand::Audit { command: AuditCommand::Verify(json) } => json.at_once(),
            WorldCommand::Observed(args) => args.json.at_once(),
        }
    }
}

/// What to do with the audit chain.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Recompute every entry's hash, and say which one is not what was written
    #[command(
        after_help = "Ends with 1 if the chain is broken.\n\nExample:\n  adjutant audit verify --json"
    )]
    Verify(Json),
}

/// What to do with the ways in.
#[derive(Debug, Subcommand)]
pub enum SourceCommand {
    /// Add a way in
    #[command(after_help = "Example:\n  adjutant source add webhook shop --key data.order.id\n  \
adjutant source add feed news https://example.com/feed.xml --every 15m")]
    Add {
        /// Which kind.
        #[command(subcommand)]
        kind: SourceKind,
    },
    /// List the ways in, with what each received
    #[command(after_help = "Example:\n  adjutant source list --json")]
    List(Json),
    /// Try one without storing anything: a look, or a signed sample of the server's own
    #[command(after_help = "Example:\n  adjutant source test shop")]
    Test(SourceArgs),
    /// Give a webhook a new secret; the former one stays valid for 24 hours
    #[command(after_help = "Example:\n  adjutant source rotate shop\n  \
adjutant source rotate shop --secret-file ./secret")]
    Rotate(RotateArgs),
    /// Take one out of use; its events stay
    #[command(after_help = "Example:\n  adjutant source remove shop")]
    Remove(SourceArgs),
}

impl SourceCommand {
    fn json(&self) -> Json {
        match self {
            SourceCommand::List(json) => *json,
            SourceCommand::Test(args) | SourceCommand::Remove(args) => args.json,
            SourceCommand::Rotate(args) => args.json,
            SourceCommand::Add { kind } => match kind {
                SourceKind::Webhook(args) => args.new.json,
                SourceKind::Github(args) => args.new.json,
                SourceKind::Folder(args) => args.new.json,
                SourceKind::Feed(args) | SourceKind::Url(args) => args.new.json,
            },
        }
    }
}

/// The kinds of sources.
#[derive(Debug, Subcommand)]
pub enum SourceKind {
    /// A sender that signs by Standard Webhooks 1.0
    #[command(after_help = "The secret is shown once; give it to the sender with the \
address.\n\nExample:\n  adjutant source add webhook shop --key data.order.id --expect 1d")]
    Webhook(WebhookArgs),
    /// A repository or organization at GitHub
    #[command(after_help = "At GitHub choose the content type application/json.\n\nExample:\n  \
adjutant source add github repo")]
    Github(GithubArgs),
    /// A folder whose new files are events
    #[command(after_help = "Example:\n  adjutant source add folder inbox ~/inbox --every 1m")]
    Folder(FolderArgs),
    /// An RSS or Atom feed
    #[command(after_help = "Example:\n  \
adjutant source add feed news https://example.com/feed.xml")]
    Feed(AddressArgs),
    /// A page whose change is an event
    #[command(after_help = "Example:\n  \
adjutant source add url status https://example.com/status")]
    Url(AddressArgs),
}

/// What every new source has.
#[derive(Debug, Args)]
pub struct NewSourceArgs {
    /// How you call it: letters, digits, - and _
    pub name: String,
    /// Tell you if nothing comes for this long, such as 6h or 2d
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    pub expect: Option<u64>,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// How often a source is looked at.
#[derive(Debug, Clone, Copy, Args)]
pub struct EveryArgs {
    /// Look this often, such as 30s, 15m or 1h
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    pub every: Option<u64>,
}

/// Arguments of `source add webhook`.
#[derive(Debug, Args)]
pub struct WebhookArgs {
    /// The source.
    #[command(flatten)]
    pub new: NewSourceArgs,
    /// Where the payload says what it is about, as a dotted path: data.order.id
    #[arg(long, value_name = "PATH")]
    pub key: Option<String>,
    /// Where the payload says what happened [default: type]
    #[arg(long, value_name = "PATH")]
    pub topic: Option<String>,
    /// An address that is looked at too, for deliveries that never arrived
    #[arg(long, value_name = "URL")]
    pub recheck: Option<String>,
    /// How often the address of --recheck is looked at.
    #[command(flatten)]
    pub every: EveryArgs,
    /// A file with the secret that the sender chose; without it one is made
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
}

/// Arguments of `source add github`.
#[derive(Debug, Args)]
pub struct GithubArgs {
    /// The source.
    #[command(flatten)]
    pub new: NewSourceArgs,
    /// A file with the secret that stands at GitHub; without it one is made
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
}

/// Arguments of `source add folder`.
#[derive(Debug, Args)]
pub struct FolderArgs {
    /// The source.
    #[command(flatten)]
    pub new: NewSourceArgs,
    /// The folder, on the machine that serves
    pub path: PathBuf,
    /// How often it is looked at.
    #[command(flatten)]
    pub every: EveryArgs,
}

/// Arguments of `source add feed` and `source add url`.
#[derive(Debug, Args)]
pub struct AddressArgs {
    /// The source.
    #[command(flatten)]
    pub new: NewSourceArgs,
    /// The address
    pub url: String,
    /// How often it is looked at.
    #[command(flatten)]
    pub every: EveryArgs,
}

/// A source that is there.
#[derive(Debug, Args)]
pub struct SourceArgs {
    /// Its name, as `adjutant source list` shows it
    pub name: String,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `source rotate`.
#[derive(Debug, Args)]
pub struct RotateArgs {
    /// Its name, as `adjutant source list` shows it
    pub name: String,
    /// A file with the secret that the sender chose; without it one is made
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// How it is repeated.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `events`.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Only what came before this time, as an earlier list says at its end
    #[arg(long, value_name = "TIME")]
    pub before: Option<String>,
    /// How many
    #[arg(long, value_name = "COUNT", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..=500))]
    pub last: u32,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Id of the event, as `adjutant events` shows it
    pub event: EventId,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Id of the action, as `adjutant action list` shows it
    pub action: ActionId,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `observed`.
#[derive(Debug, Args)]
pub struct ObservedArgs {
    /// How many
    #[arg(long, value_name = "COUNT", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..=500))]
    pub last: u32,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `pause` and `lift`.
#[derive(Debug, Args)]
pub struct PauseArgs {
    /// Id of the duty, as `adjutant duties` shows it; without it everything
    pub duty: Option<DutyId>,
    /// How it is repeated.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `hold`.
#[derive(Debug, Args)]
pub struct HoldArgs {
    /// What to do with one.
    #[command(subcommand)]
    pub command: Option<HoldCommand>,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// What a person says of a held message.
#[derive(Debug, Subcommand)]
pub enum HoldCommand {
    /// It is not a stop
    #[command(after_help = "Example:\n  adjutant hold release")]
    Release(SettleArgs),
    /// It means stop: everything is paused
    #[command(after_help = "Example:\n  adjutant hold stop")]
    Stop(SettleArgs),
}

/// Arguments of `hold release` and `hold stop`.
#[derive(Debug, Args)]
pub struct SettleArgs {
    /// Id of the hold, as `adjutant hold` shows it; needed only if there are several
    pub hold: Option<HoldId>,
    /// How it is repeated.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `system-stop`.
#[derive(Debug, Args)]
pub struct StopArgs {
    /// on stops everything of everyone who uses this server; off lets it go on
    pub turn: Turn,
    /// How it is repeated.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Turn {
    /// Stopped.
    On,
    /// Going on.
    Off,
}

/// Reads 30s, 15m, 6h or 2d as milliseconds.
pub fn duration_ms(text: &str) -> Result<u64, String> {
    let wrong = || "write a whole number with s, m, h or d, such as 15m or 2d".to_owned();
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let unit_ms: u64 = match unit {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return Err(wrong()),
    };
    let number = text.strip_suffix(unit).unwrap_or_default();
    let count: u64 = number.parse().map_err(|_| wrong())?;
    count.checked_mul(unit_ms).filter(|ms| *ms > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::duration_ms;

    #[test]
    fn a_time_is_a_number_with_its_unit() {
        let read = ["30s", "15m", "6h", "2d"].map(|text| duration_ms(text).ok());
        assert_eq!(read, [30_000, 900_000, 21_600_000, 172_800_000].map(Some));
        for text in ["", "m", "15", "0s", "-1m", "1.5h", "1 h", "9分", "99999999999999999d"] {
            assert!(duration_ms(text).is_err(), "{text}");
        }
    }
}
