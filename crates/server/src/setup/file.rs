//! The file that a set-up writes: few keys, each with what it is for.

use std::path::PathBuf;

use base::{MicroUsd, Secret};
use domain::words::Language;
use model::Wire;

use crate::config::KeySource;

/// The key's file, beside the configuration.
pub const KEY_FILE: &str = "model.key";

/// Where the key comes from.
pub enum Key {
    /// None is needed.
    None,
    /// A variable that is there.
    Env(String),
    /// A file that is there.
    File(PathBuf),
    /// Typed or piped; it goes into [`KEY_FILE`].
    New(Secret),
}

impl Key {
    /// How the configuration names it.
    pub fn source(&self) -> KeySource {
        match self {
            Key::None => KeySource::None,
            Key::Env(name) => KeySource::Env(name.clone()),
            Key::File(path) => KeySource::File(path.clone()),
            Key::New(_) => KeySource::File(KEY_FILE.into()),
        }
    }
}

/// Everything that was asked.
pub struct Answers {
    /// What the model speaks.
    pub wire: Wire,
    /// Address of the model.
    pub base_url: String,
    /// Its name there.
    pub model: String,
    /// Its key.
    pub key: Key,
    /// What a million tokens cost: read, read from the cache, written; `None`: it is free.
    pub prices: Option<[MicroUsd; 3]>,
    /// What it holds.
    pub context_tokens: u64,
    /// What one answer holds.
    pub max_output_tokens: u64,
    /// How the person is called.
    pub name: String,
    /// Where they live, as an IANA zone.
    pub zone: String,
    /// How they are spoken to.
    pub language: Language,
    /// What the models may cost in a month.
    pub cap: MicroUsd,
}

/// The whole file.
pub fn text(of: &Answers) -> String {
    let mut text = String::from(
        "# Adjutant, as `adjutant setup` wrote it. docs/adjutant.example.toml has every other key.\n\
         # It is read at the start: after a change, start the server again.\n\n\
         # The model, and what it speaks: chat, messages or responses.\n[model]\n",
    );
    let mut line = |key: &str, value: toml::Value| text.push_str(&format!("{key} = {value}\n"));
    let number = |n: u64| toml::Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
    line("wire", of.wire.word().into());
    line("base_url", of.base_url.as_str().into());
    line("model", of.model.as_str().into());
    match of.key.source() {
        KeySource::None => {}
        KeySource::Env(name) => line("key_env", name.into()),
        KeySource::File(path) => line("key_file", path.to_string_lossy().into_owned().into()),
    }
    line("context_tokens", number(of.context_tokens));
    line("max_output_tokens", number(of.max_output_tokens));
    // Its newer models take the limit under this name only.
    if of.wire == Wire::Chat && of.base_url.contains("://api.openai.com/") {
        line("output_field", "max_completion_tokens".into());
    }
    if let Some([input, cached, output]) = of.prices {
        text.push_str("# US dollars per million tokens; budgets are counted with them.\n");
        let mut line =
            |key: &str, price| text.push_str(&format!("{key} = \"{}\"\n", decimal(price)));
        line("input_usd_per_million", input);
        line("cached_usd_per_million", cached);
        line("output_usd_per_million", output);
    }
    text.push_str("\n# You. Read at the first start only; later: adjutant set.\n[owner]\n");
    let mut line = |key: &str, value: &str| {
        text.push_str(&format!("{key} = {}\n", toml::Value::from(value)));
    };
    line("name", &of.name);
    line("zone", &of.zone);
    line("language", of.language.word());
    text.push_str(&format!(
        "\n[limits]\n# What the models may cost in a calendar month, in millionths of a US dollar; read at the \
         first start\n# only, later: adjutant set --cap-usd.\nowner_month_micro_usd = {}\n",
        of.cap.0
    ));
    text
}

/// US dollars with as many places as it takes, at least two.
pub fn decimal(amount: MicroUsd) -> String {
    let text = format!("{}.{:06}", amount.0.div_euclid(1_000_000), amount.0.rem_euclid(1_000_000));
    let places = text.trim_end_matches('0').len().max(text.len() - 4);
    text[..places].to_owned()
}
