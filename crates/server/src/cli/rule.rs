//! Words of the command line for the supervisor's rules.

use base::{EventId, RuleId};
use clap::{Args, Subcommand};
use domain::effect::{Demand, Effect};

use super::{Json, Manner};

/// What to do with rules.
#[derive(Debug, Subcommand)]
pub enum RuleCommand {
    /// List them: what the supervisor asks of bookings, payments and messages
    #[command(after_help = "Example:\n  adjutant rule list\n  adjutant rule list --ended --json")]
    List(ListArgs),
    /// Lay one; only a supervisor's device does. It holds at once, and it can only tighten
    #[command(
        after_help = "TOOL is a full name (hotel.book), all of a connector (hotel.*) or all there are (*).\n\
DEMAND is person (they decide on each, whatever a grant says), supervisor (you approve each besides) or \
forbid.\nWith --above it is about what costs more, or costs what nobody knows, or another currency.\n\n\
Example:\n  adjutant rule add 'hotel.*' supervisor --above 500.00 --currency HKD\n  \
adjutant rule add '*' person --effect outward"
    )]
    Add(AddArgs),
    /// End one; only a supervisor's device does
    #[command(after_help = "Example:\n  adjutant rule end 0190f3c4-8a51-7c3e-9b1d-2f6a7c8d9e01")]
    End(EndArgs),
}

impl RuleCommand {
    /// How it asks.
    pub fn manner(&self) -> Manner {
        match self {
            RuleCommand::List(args) => args.json.at_once(),
            RuleCommand::Add(args) => args.json.at_once(),
            RuleCommand::End(args) => args.json.at_once(),
        }
    }
}

/// Arguments of `rule list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Those that were ended, too
    #[arg(long)]
    pub ended: bool,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

/// Arguments of `rule add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// Which tools
    #[arg(value_name = "TOOL")]
    pub tool: String,
    /// What is asked of them: person, supervisor or forbid
    #[arg(value_name = "DEMAND", value_parser = demand)]
    pub demand: Demand,
    /// Only calls that do this: reversible, paid, commitment, outward, authority, human or read
    #[arg(long, value_name = "EFFECT", value_parser = effect)]
    pub effect: Option<Effect>,
    /// Only calls that cost more than this
    #[arg(long, value_name = "AMOUNT", requires = "currency")]
    pub above: Option<String>,
    /// The currency of that, such as HKD
    #[arg(long, value_name = "CODE", requires = "above")]
    pub currency: Option<String>,
    /// Id of a rule whose answer was lost
    #[arg(long, value_name = "ID")]
    pub id: Option<EventId>,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

fn demand(word: &str) -> Result<Demand, String> {
    Demand::parse(word).ok_or_else(|| "say person, supervisor or forbid".to_owned())
}

fn effect(word: &str) -> Result<Effect, String> {
    Effect::parse(word).ok_or_else(|| {
        "say reversible, paid, commitment, outward, authority, human or read".to_owned()
    })
}

/// Arguments of `rule end`.
#[derive(Debug, Args)]
pub struct EndArgs {
    /// Id of the rule, as `adjutant rule list` shows it
    pub rule: RuleId,
    /// Id of an end whose answer was lost
    #[arg(long, value_name = "ID")]
    pub id: Option<EventId>,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}
