//! `[model]`, `[small]` and `[reviewer]`: which models are asked, how, and for how much (DESIGN 8).

use std::path::Path;

use base::{MicroUsd, Secret};
use model::{OutputField, Wire};
use serde::Serialize;

use super::section::Section;
use super::{Env, KeySource, Problem, is_near, keep_in_private, url};

/// A model behind an HTTP endpoint.
#[derive(Debug, Serialize)]
pub struct ModelConfig {
    /// The section that it stands in, for errors: `model`, `small` or `reviewer`.
    #[serde(skip)]
    pub section: &'static str,
    /// The protocol that the endpoint speaks.
    pub wire: Wire,
    /// Address up to and without the wire's own path, such as `/chat/completions`.
    pub base_url: String,
    /// Name of the model as the endpoint knows it.
    pub model: String,
    /// Where the key is found.
    pub key: KeySource,
    /// Tokens that a request and its answer may hold together.
    pub context_tokens: u64,
    /// Tokens that one answer may hold.
    pub max_output_tokens: u64,
    /// The name under which the endpoint wants the output limit.
    #[serde(serialize_with = "output_field_name")]
    pub output_field: OutputField,
    /// How much the model should think, in the vendor's word; without one the vendor decides.
    pub effort: Option<String>,
    /// Price of a million tokens read anew.
    pub input_per_million: MicroUsd,
    /// Price of a million tokens read from the endpoint's cache; default: as read anew.
    pub cached_per_million: MicroUsd,
    /// Price of a million tokens written.
    pub output_per_million: MicroUsd,
}

impl ModelConfig {
    /// Fetches the key, checking that nobody else can read its file. `None` for a keyless endpoint.
    pub fn key(&self, env: Env<'_>) -> Result<Option<Secret>, Problem> {
        self.key.fetch(self.section, env)
    }
}

/// A model's section; `None` if the file has none of that name.
pub(super) fn model(
    name: &'static str,
    top: &Section<'_>,
    section: &Section<'_>,
    home: Option<&Path>,
) -> Result<Option<ModelConfig>, Problem> {
    if !top.has(name) {
        return Ok(None);
    }
    let remedy = "give the endpoint's address, such as https://api.example.com/v1";
    let address = section.required("base_url", remedy)?;
    let base_url = url(section, "base_url", &address)?;
    let near = is_near(&base_url);
    let wire = wire(section)?;
    let key = KeySource::of(section, home)?;
    if key == KeySource::None && !near {
        let remedy = format!("name the variable that holds the key, or give {name}.key_file");
        return Err(Problem::Missing { key: section.full("key_env"), remedy });
    }
    keep_in_private(section, "base_url", &base_url, &key)?;
    // Without prices a budget would never be used up, so only a model of one's own is free.
    let price = |key: &str| match section.usd(key)? {
        Some(price) => Ok(price),
        None if near => Ok(MicroUsd(0)),
        None => {
            let remedy = "give the price per million tokens, such as \"0.28\"".into();
            Err(Problem::Missing { key: section.full(key), remedy })
        }
    };
    let input_per_million = price("input_usd_per_million")?;
    let context_tokens = section.count("context_tokens")?.unwrap_or(128_000);
    let max_output_tokens = section.count("max_output_tokens")?.unwrap_or(8_192);
    if max_output_tokens >= context_tokens {
        let remedy = format!("must be below {name}.context_tokens ({context_tokens})");
        return Err(section.bad("max_output_tokens", &remedy));
    }
    Ok(Some(ModelConfig {
        section: name,
        wire,
        base_url: address.trim_end_matches('/').to_string(),
        model: section.required("model", "give the model's name at that endpoint")?,
        key,
        context_tokens,
        max_output_tokens,
        output_field: output_field(section, wire)?,
        effort: effort(section)?,
        input_per_million,
        cached_per_million: section.usd("cached_usd_per_million")?.unwrap_or(input_per_million),
        output_per_million: price("output_usd_per_million")?,
    }))
}

/// Which protocol; the most common one if the file does not say.
fn wire(section: &Section<'_>) -> Result<Wire, Problem> {
    let Some(word) = section.text("wire")? else { return Ok(Wire::default()) };
    let wrong = || section.bad("wire", "must be \"chat\", \"messages\" or \"responses\"");
    Wire::parse(&word).ok_or_else(wrong)
}

fn output_field(section: &Section<'_>, wire: Wire) -> Result<OutputField, Problem> {
    let text = section.text("output_field")?;
    if text.is_some() && wire != Wire::Chat {
        let remedy = "is for wire = \"chat\" only; leave the line out";
        return Err(section.bad("output_field", remedy));
    }
    match text.as_deref() {
        None | Some("max_tokens") => Ok(OutputField::MaxTokens),
        Some("max_completion_tokens") => Ok(OutputField::MaxCompletionTokens),
        Some(_) => {
            let remedy = "must be \"max_tokens\" or \"max_completion_tokens\"";
            Err(section.bad("output_field", remedy))
        }
    }
}

fn effort(section: &Section<'_>) -> Result<Option<String>, Problem> {
    match section.text("effort")? {
        Some(word) if !word.chars().all(|c| c.is_ascii_lowercase()) => {
            let remedy = "must be one word of the vendor, such as low, medium or high, or off";
            Err(section.bad("effort", remedy))
        }
        word => Ok(word),
    }
}

fn output_field_name<S: serde::Serializer>(
    field: &OutputField,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(field.name())
}
