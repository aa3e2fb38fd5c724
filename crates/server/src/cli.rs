//! The command line: every word, option and help text. What the words do is in `main` and `client`.

mod action;
mod rule;
mod setup;
mod world;

use std::net::SocketAddr;
use std::path::PathBuf;

use base::{DeviceId, DutyId, EventId, MicroUsd, ProposalId};
use clap::{Args, Parser, Subcommand};
use domain::event::Dial;
use domain::words::Language;

pub use action::ActionCommand;
pub use rule::{AddArgs as RuleAddArgs, EndArgs as RuleEndArgs, RuleCommand};
pub use setup::SetupArgs;
pub use world::{
    AuditCommand, HoldCommand, NewSourceArgs, SourceCommand, SourceKind, Turn, WorldCommand,
};

const CODES: &str = "Exit codes: 0 ok, 1 error, 2 wrong usage, 3 server not reachable, \
4 refused or in conflict.\n
Example:
  adjutant serve &
  adjutant send \"Tell me when the fare to Kyoto drops below 300 dollars\"
  adjutant tail";

/// Seconds for which a command tries while there is no connection.
pub const WAIT_S: u64 = 10;

/// An always-on personal agent you can leave alone.
#[derive(Debug, Parser)]
#[command(name = "adjutant", version, after_help = CODES)]
pub struct Cli {
    /// Configuration file [default: ~/.config/adjutant/adjutant.toml]
    #[arg(long, global = true, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Every command, in the order of the help. Those that ask the server are in three lists of their
/// own, so that what handles one list names no command of another.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write the configuration file by a few questions, before the first start
    #[command(
        after_help = "Asks on a terminal for what is not given. The key goes into a file of its own that \
only you can read. Nothing that is there is written over.\n\n\
Example:\n  adjutant setup\n  adjutant setup --base-url http://127.0.0.1:11434/v1 --model qwen3 --no-key\n  \
pass show openai | adjutant setup --base-url https://api.openai.com/v1 --model gpt-5-mini --key-stdin \
--input-usd 0.25 --cached-usd 0.025 --output-usd 2.00"
    )]
    Setup(SetupArgs),
    /// Run the agent, its page and its HTTP API in the foreground
    #[command(after_help = "Example:\n  adjutant serve --config ./adjutant.toml")]
    Serve(ServeArgs),
    /// The conversation and its duties.
    #[command(flatten)]
    Talk(TalkCommand),
    /// What comes in and what is held.
    #[command(flatten)]
    World(WorldCommand),
    /// Check the set-up, one line and a remedy each
    #[command(after_help = "Example:\n  adjutant doctor\n  adjutant doctor --json")]
    Doctor(Json),
    /// Write everything into one file, also while the server runs, and check it
    #[command(
        after_help = "Works on the files of this machine; no server is asked. The file holds all \
records and the secrets of sources; keys and the configuration are not in it and are named.\n\nExample:\n  \
adjutant backup /media/disk/adjutant-monday.backup"
    )]
    Backup(BackupArgs),
    /// Put a backup into an empty data folder
    #[command(
        after_help = "The server must be down, and the data folder without a database. The next \
start pauses everything, since what was done after the backup may have happened all the same.\n\nExample:\n  \
adjutant restore /media/disk/adjutant-monday.backup --check\n  \
adjutant restore /media/disk/adjutant-monday.backup"
    )]
    Restore(RestoreArgs),
    /// Have systemd start the server with this machine and keep it running
    #[command(after_help = "Example:\n  adjutant service install\n  adjutant service status")]
    Service {
        /// What to do.
        #[command(subcommand)]
        command: ServiceCommand,
    },
    /// Live through two weeks of a duty in half a minute, with crashes, without any account
    #[command(after_help = "Example:\n  adjutant demo\n  adjutant demo --unattended --kills 5")]
    Demo(DemoArgs),
    /// The person's devices and settings.
    #[command(flatten)]
    Person(PersonCommand),
    /// Print the OpenAPI document of the HTTP API; no server is needed
    #[command(after_help = "Example:\n  adjutant openapi > openapi.json")]
    Openapi(Json),
    /// Fake vendors for tests and the demo
    #[command(hide = true, after_help = "Example:\n  adjutant fake model --listen 127.0.0.1:7280")]
    Fake {
        /// Which one.
        #[command(subcommand)]
        kind: FakeKind,
    },
}

/// Commands about the conversation and its duties.
#[derive(Debug, Subcommand)]
pub enum TalkCommand {
    /// Say something to the agent
    #[command(after_help = "Safe to repeat: the message id is shown first, and the same id is \
taken once only.\n\nExample:\n  adjutant send \"Stop looking at night\"\n  \
adjutant send - < letter.txt")]
    Send(SendArgs),
    /// Show the conversation as it happens, for ever
    #[command(after_help = "Messages shown here count as delivered, unless --no-receipts is \
given.\n\nExample:\n  adjutant tail --last 20\n  adjutant tail --json | jq .text")]
    Tail(TailArgs),
    /// List the duties with their state
    #[command(after_help = "Example:\n  adjutant duties --json")]
    Duties(Json),
    /// Show one duty with its conditions, wake-ups, waits, runs and cost
    #[command(after_help = "Example:\n  adjutant duty 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    Duty(DutyArgs),
    /// Read a card and confirm exactly what it says
    #[command(
        after_help = "Asks first on a terminal; elsewhere --yes is needed. --digest refuses \
any card but the one you saw.\n\nExample:\n  \
adjutant confirm 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01\n  \
adjutant confirm 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01 --yes --digest 7f83b165…"
    )]
    Confirm(ConfirmArgs),
    /// Decline a card
    #[command(after_help = "Example:\n  adjutant decline 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    Decline(DeclineArgs),
    /// Bookings, payments, messages: what waits for you, and your word on it
    #[command(after_help = "Example:\n  adjutant action list\n  \
adjutant action approve 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    Action {
        /// What to do.
        #[command(subcommand)]
        command: ActionCommand,
    },
    /// Let worst-case models loose on a copy of a duty, beside what it allows
    #[command(
        after_help = "Works on a copy of your records with made-up vendors: connectors are asked what \
their tools take, none is called, and nothing real is touched. Ends with 1 if anything went beyond what you \
allowed, or if it ended before its last step.\n\nExample:\n  \
adjutant attack 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01 --steps 100000"
    )]
    Attack(AttackArgs),
    /// Stop a duty: no further run starts
    #[command(after_help = "Example:\n  adjutant stop 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    Stop(ChangeArgs),
    /// Go on with a stopped duty
    #[command(after_help = "Example:\n  adjutant resume 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    Resume(ChangeArgs),
}

impl TalkCommand {
    /// How it asks.
    pub fn manner(&self) -> Manner {
        match self {
            TalkCommand::Send(args) => args.json.within(args.repeat.wait),
            TalkCommand::Tail(args) => args.json.within(WAIT_S),
            TalkCommand::Duties(json) => json.at_once(),
            TalkCommand::Duty(args) => args.json.at_once(),
            TalkCommand::Confirm(args) => args.json.at_once(),
            TalkCommand::Decline(args) => args.json.at_once(),
            TalkCommand::Action { command } => command.manner(),
            TalkCommand::Attack(args) => args.json.at_once(),
            TalkCommand::Stop(args) | TalkCommand::Resume(args) => {
                args.json.within(args.repeat.wait)
            }
        }
    }
}

/// Commands about the person's devices and settings.
#[derive(Debug, Subcommand)]
pub enum PersonCommand {
    /// Make a code for one more device, or pair this command line by a code
    #[command(after_help = "Without CODE it prints a link and a code that work once, for 15 \
minutes. With CODE it pairs this command line; on the machine that serves that is not needed: the \
token is in the data folder.\n\nExample:\n  adjutant pair\n  \
adjutant pair ABCD-EFGH --name laptop\n  adjutant pair --supervisor")]
    Pair(PairArgs),
    /// List the devices that may speak for you
    #[command(after_help = "Example:\n  adjutant devices --json")]
    Devices(Json),
    /// End a device's access at once
    #[command(after_help = "Example:\n  adjutant revoke 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    Revoke(RevokeArgs),
    /// Show or change your name, time zone, the month's cap, the dial and the language
    #[command(after_help = "Without options it shows them.\n\nExample:\n  adjutant set\n  \
adjutant set --zone Asia/Hong_Kong --cap-usd 30")]
    Set(SetArgs),
    /// What a supervisor asks of what is done outside
    #[command(after_help = "Example:\n  adjutant rule list\n  \
adjutant rule add 'hotel.*' supervisor --above 500.00 --currency HKD")]
    Rule {
        /// What to do.
        #[command(subcommand)]
        command: RuleCommand,
    },
}

impl PersonCommand {
    /// How it asks.
    pub fn manner(&self) -> Manner {
        match self {
            PersonCommand::Pair(args) => match args.code {
                Some(_) => args.json.unknown(),
                None => args.json.at_once(),
            },
            PersonCommand::Devices(json) => json.at_once(),
            PersonCommand::Revoke(args) => args.json.within(args.repeat.wait),
            PersonCommand::Set(args) => args.json.within(args.repeat.wait),
            PersonCommand::Rule { command } => command.manner(),
        }
    }
}

/// How a command asks the server.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Whether the answer is for programs.
    pub json: bool,
    /// For how many seconds it waits for the token of a server at its first start; `None` for what
    /// needs no token.
    pub token_wait_s: Option<u64>,
}

/// Output for programs.
#[derive(Debug, Clone, Copy, Args)]
pub struct Json {
    /// Print JSON: one object, or one a line where it goes on
    #[arg(long)]
    pub json: bool,
}

impl Json {
    /// Asks with a token, waiting up to `wait_s` seconds for it.
    fn within(self, wait_s: u64) -> Manner {
        Manner { json: self.json, token_wait_s: Some(wait_s) }
    }

    /// Asks with the token that is there.
    fn at_once(self) -> Manner {
        self.within(0)
    }

    /// Asks as one whom the server does not know yet.
    fn unknown(self) -> Manner {
        Manner { json: self.json, token_wait_s: None }
    }
}

/// A write that may be repeated.
#[derive(Debug, Clone, Copy, Args)]
pub struct RepeatArgs {
    /// Id of a write that was given up; the same id is never carried out twice
    #[arg(long, value_name = "ID")]
    pub id: Option<EventId>,
    /// How long to try while there is no connection
    #[arg(long, value_name = "SECONDS", default_value_t = WAIT_S)]
    pub wait: u64,
}

/// Arguments of `send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// The message; - reads it from standard input
    pub text: String,
    /// Id of a card, of an action or a proposal, that it asks about; the card stays undecided
    #[arg(long, value_name = "ID")]
    pub about: Option<EventId>,
    /// How it is repeated.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `tail`.
#[derive(Debug, Args)]
pub struct TailArgs {
    /// Begin with the newest COUNT entries
    #[arg(long, value_name = "COUNT", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    pub last: u32,
    /// Begin after this change number instead
    #[arg(long, value_name = "SEQ", conflicts_with = "last")]
    pub after: Option<i64>,
    /// Only look: do not tell the server that the messages were shown
    #[arg(long)]
    pub no_receipts: bool,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `duty`.
#[derive(Debug, Args)]
pub struct DutyArgs {
    /// Id of the duty, as `adjutant duties` shows it
    pub duty: DutyId,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `attack`.
#[derive(Debug, Args)]
pub struct AttackArgs {
    /// Id of the duty, as `adjutant duties` shows it
    pub duty: DutyId,
    /// Answers that the worst-case models give
    #[arg(long, value_name = "COUNT", default_value_t = 20_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: u64,
    /// What makes it another attack; of the same copy the same seed makes the same one
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `stop` and `resume`.
#[derive(Debug, Args)]
pub struct ChangeArgs {
    /// Id of the duty, as `adjutant duties` shows it
    pub duty: DutyId,
    /// How it is repeated.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `revoke`.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// Id of the device, as `adjutant devices` shows it
    pub device: DeviceId,
    /// How it is repeated.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// How the agent addresses you
    #[arg(long)]
    pub name: Option<String>,
    /// IANA time zone; schedules move to it from now on
    #[arg(long)]
    pub zone: Option<String>,
    /// What the models may cost in a calendar month, in US dollars; 0 allows only what is free
    #[arg(long, value_name = "AMOUNT", value_parser = dollars)]
    pub cap_usd: Option<MicroUsd>,
    /// How far the agent goes by itself where no duty asks for it: off, observe or auto
    #[arg(long, value_parser = dial)]
    pub dial: Option<Dial>,
    /// In which language the server speaks to you: en or zh
    #[arg(long, value_parser = language)]
    pub language: Option<Language>,
    /// How it is repeated.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

fn dollars(text: &str) -> Result<MicroUsd, String> {
    let wrong = || "write US dollars with at most six decimals, such as 30 or 2.50".to_owned();
    crate::config::micro_usd(text).ok_or_else(wrong)
}

fn dial(text: &str) -> Result<Dial, String> {
    Dial::parse(text).ok_or_else(|| "write off, observe or auto".to_owned())
}

fn language(text: &str) -> Result<Language, String> {
    Language::parse(text).ok_or_else(|| "write en or zh".to_owned())
}

/// Arguments of `confirm`.
#[derive(Debug, Args)]
pub struct ConfirmArgs {
    /// Id of the card, as `adjutant tail` shows it
    pub proposal: ProposalId,
    /// How.
    #[command(flatten)]
    pub yes: Yes,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// How a person says yes to a card.
#[derive(Debug, Args)]
pub struct Yes {
    /// Say yes without being asked
    #[arg(long)]
    pub yes: bool,
    /// Refuse unless the card still has this digest
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
    /// Id of a decision whose answer was lost
    #[arg(long, value_name = "ID")]
    pub id: Option<EventId>,
}

/// Arguments of `decline`.
#[derive(Debug, Args)]
pub struct DeclineArgs {
    /// Id of the card, as `adjutant tail` shows it
    pub proposal: ProposalId,
    /// Id of a decision whose answer was lost
    #[arg(long, value_name = "ID")]
    pub id: Option<EventId>,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The demo's folder; set by the demo itself
    #[arg(long, hide = true)]
    pub stage: Option<std::path::PathBuf>,
}

/// Arguments of `backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The file to make; it must not be there
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// A file that `adjutant backup` made
    pub file: PathBuf,
    /// Only check the file; nothing is put back
    #[arg(long)]
    pub check: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What to do with the unit of systemd.
#[derive(Debug, Subcommand)]
pub enum ServiceCommand {
    /// Write the unit and start it; where systemd does not take it, print it and the commands
    #[command(
        after_help = "The unit may write into the data folder alone, and so may the tool servers that it \
starts.\n\nExample:\n  adjutant service install\n  adjutant service install --print\n  \
adjutant --config /home/mei/adjutant.toml service install --system-as mei"
    )]
    Install(ServiceArgs),
    /// Stop the unit and take it away; the records stay
    #[command(after_help = "Example:\n  adjutant service uninstall")]
    Uninstall(ServiceArgs),
    /// Show whether the unit is there and runs; ends with 1 if it does not run
    #[command(after_help = "Example:\n  adjutant service status --json")]
    Status(ServiceArgs),
}

/// Arguments of `service`.
#[derive(Debug, Args)]
pub struct ServiceArgs {
    /// The machine's systemd instead of your own; the server runs as this user
    #[arg(long, value_name = "USER")]
    pub system_as: Option<String>,
    /// Only print what would be written or run
    #[arg(long)]
    pub print: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Play the person too, and end with a summary
    #[arg(long)]
    pub unattended: bool,
    /// How often the server is killed without warning
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub kills: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Address of the page
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
}

/// Arguments of `pair`.
#[derive(Debug, Args)]
pub struct PairArgs {
    /// The code that a paired device or the server shows; without it a new one is made
    pub code: Option<String>,
    /// How this device is called in the list of devices
    #[arg(long, default_value = "command line", requires = "code")]
    pub name: String,
    /// The new code is for a supervisor's device: for whoever runs the machine, with the server's own token
    #[arg(long, conflicts_with = "code")]
    pub supervisor: bool,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// The fake vendors.
#[derive(Debug, Subcommand)]
pub enum FakeKind {
    /// A scripted model behind the chat completions format
    #[command(
        after_help = "Example:\n  adjutant fake model --listen 127.0.0.1:7280 --script rules.toml"
    )]
    Model {
        /// Address to listen on
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<SocketAddr>,
        /// Its rules; without it, those of the price watch
        #[arg(long, value_name = "FILE")]
        script: Option<PathBuf>,
    },
    /// An MCP server with prices that move
    #[command(after_help = "Example:\n  adjutant fake price-feed")]
    PriceFeed,
    /// An MCP server that sells hotel rooms and may lie
    #[command(
        after_help = "Example:\n  adjutant fake hotel --state hotel.json --faults faults.json"
    )]
    Hotel {
        /// What its prices and numbers are drawn from, if the state file does not say
        #[arg(long, default_value_t = 0, value_name = "NUMBER")]
        seed: u64,
        /// Where it keeps its bookings; without it they are gone with the process
        #[arg(long, value_name = "FILE")]
        state: Option<PathBuf>,
        /// A plan of what goes wrong, as JSON, read anew at each call
        #[arg(long, value_name = "FILE")]
        faults: Option<PathBuf>,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    fn check(command: &mut clap::Command, path: &str, seen: &mut Vec<String>) {
        let help = command.render_long_help().to_string();
        assert!(help.contains("Example:"), "{path} has no example in its help:\n{help}");
        assert!(!help.contains('!'), "{path} exclaims:\n{help}");
        assert!(help.contains("Usage:"), "{path} has no usage line:\n{help}");
        assert!(command.get_about().is_some(), "{path} does not say what it does");
        for argument in command.get_arguments() {
            let name = argument.get_id();
            assert!(argument.get_help().is_some(), "{path} {name} has no help");
        }
        seen.push(path.to_string());
        let below: Vec<String> = command
            .get_subcommands()
            .map(|below| below.get_name().to_string())
            .filter(|name| name != "help")
            .collect();
        for name in below {
            if let Some(inner) = command.find_subcommand_mut(&name) {
                check(inner, format!("{path} {name}").trim(), seen);
            }
        }
    }

    #[test]
    fn every_command_has_help_with_an_example() {
        let mut cli = Cli::command();
        cli.clone().debug_assert();
        let mut seen = Vec::new();
        check(&mut cli, "", &mut seen);
        let wanted = [
            "",
            "setup",
            "serve",
            "send",
            "tail",
            "duties",
            "duty",
            "confirm",
            "decline",
            "action",
            "action list",
            "action show",
            "action log",
            "action approve",
            "action deny",
            "action withdraw",
            "action happened",
            "action did-not",
            "action keep-looking",
            "attack",
            "stop",
            "resume",
            "pause",
            "lift",
            "hold",
            "hold release",
            "hold stop",
            "system-stop",
            "source",
            "source add",
            "source add webhook",
            "source add github",
            "source add folder",
            "source add feed",
            "source add url",
            "source list",
            "source test",
            "source rotate",
            "source remove",
            "events",
            "trace",
            "explain",
            "audit",
            "audit verify",
            "observed",
            "doctor",
            "backup",
            "restore",
            "service",
            "service install",
            "service uninstall",
            "service status",
            "demo",
            "pair",
            "devices",
            "revoke",
            "set",
            "rule",
            "rule list",
            "rule add",
            "rule end",
            "openapi",
            "fake",
            "fake model",
            "fake price-feed",
            "fake hotel",
        ];
        assert_eq!(seen, wanted);
    }
}
