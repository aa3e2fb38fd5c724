//! Words of the command line for the set-up.

use std::path::PathBuf;

use base::MicroUsd;
use clap::Args;
use domain::words::Language;
use model::Wire;

use super::{Json, dollars, language};

/// Arguments of `setup`: whatever is not given is asked for on a terminal.
#[derive(Debug, Args)]
pub struct SetupArgs {
    /// Address of the model, up to and without /chat/completions, /messages or /responses
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// What it speaks: chat, messages or responses [default: messages at api.anthropic.com, else chat]
    #[arg(long, value_parser = wire)]
    pub wire: Option<Wire>,
    /// Name of the model at that address
    #[arg(long)]
    pub model: Option<String>,
    /// Environment variable that holds the key
    #[arg(long, value_name = "NAME", conflicts_with_all = ["key_file", "key_stdin", "no_key"])]
    pub key_env: Option<String>,
    /// File of mode 0600 that holds the key alone
    #[arg(long, value_name = "PATH", conflicts_with_all = ["key_stdin", "no_key"])]
    pub key_file: Option<PathBuf>,
    /// Read the key from standard input and keep it in a file of mode 0600
    #[arg(long, conflicts_with = "no_key")]
    pub key_stdin: bool,
    /// The model is on this machine or in a private network and wants no key
    #[arg(long)]
    pub no_key: bool,
    /// Price of a million tokens that it reads, in US dollars
    #[arg(long, value_name = "AMOUNT", value_parser = dollars)]
    pub input_usd: Option<MicroUsd>,
    /// The same for tokens from its cache [default: as the others]
    #[arg(long, value_name = "AMOUNT", value_parser = dollars)]
    pub cached_usd: Option<MicroUsd>,
    /// Price of a million tokens that it writes, in US dollars
    #[arg(long, value_name = "AMOUNT", value_parser = dollars)]
    pub output_usd: Option<MicroUsd>,
    /// Tokens that a request and its answer may hold together [default: 128000]
    #[arg(long, value_name = "N")]
    pub context_tokens: Option<u64>,
    /// How the agent addresses you
    #[arg(long)]
    pub name: Option<String>,
    /// IANA time zone [default: this machine's]
    #[arg(long)]
    pub zone: Option<String>,
    /// In which language the server speaks to you: en or zh [default: this machine's]
    #[arg(long, value_parser = language)]
    pub language: Option<Language>,
    /// What the models may cost in a calendar month, in US dollars [default: 20]
    #[arg(long, value_name = "AMOUNT", value_parser = dollars)]
    pub cap_usd: Option<MicroUsd>,
    /// Write the file even where the model does not answer
    #[arg(long)]
    pub unchecked: bool,
    /// Output.
    #[command(flatten)]
    pub json: Json,
}

fn wire(text: &str) -> Result<Wire, String> {
    Wire::parse(text).ok_or_else(|| "write chat, messages or responses".to_owned())
}
