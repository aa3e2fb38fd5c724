//! The part of the outside world that a turn may read. Nothing here can cause an effect (P5).

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Map, Value};

/// A reading under way. Dropping it gives it up.
pub type Reading<'a> = Pin<Box<dyn Future<Output = String> + Send + 'a>>;

/// Connectors as the worker sees them: names, schemas and reads. Every answer is text for the model; a
/// failure is a text that says what to do next.
pub trait World: Send + Sync {
    /// The full names of all tools, from the manifests alone.
    fn tools(&self) -> Vec<String>;
    /// Why this tool cannot be called by a turn, if it cannot: it has an effect, or does not exist.
    fn refusal(&self, tool: &str) -> Option<String>;
    /// How a tool is called.
    fn schema<'a>(&'a self, tool: &'a str) -> Reading<'a>;
    /// Calls a tool that only reads.
    fn read<'a>(
        &'a self,
        tool: &'a str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Reading<'a>;
}

impl World for connect::Connectors {
    fn tools(&self) -> Vec<String> {
        connect::Connectors::tools(self).iter().map(|entry| entry.name.clone()).collect()
    }

    fn refusal(&self, tool: &str) -> Option<String> {
        self.wanted(tool, Map::new()).err().map(|refusal| refusal.to_string())
    }

    fn schema<'a>(&'a self, tool: &'a str) -> Reading<'a> {
        Box::pin(async move {
            match connect::Connectors::schema(self, tool).await {
                Ok(schema) => {
                    format!(
                        "{}: {}\nArguments: {}",
                        schema.name, schema.description, schema.parameters
                    )
                }
                Err(error) => error.to_string(),
            }
        })
    }

    fn read<'a>(
        &'a self,
        tool: &'a str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Reading<'a> {
        Box::pin(async move {
            // Issued ids are not on record yet, so no id counts as issued.
            let cleared = self.wanted(tool, arguments).and_then(|wanted| wanted.cleared(|_| false));
            let handle = match cleared {
                Ok(handle) => handle,
                Err(refusal) => return refusal.to_string(),
            };
            match self.call(handle, limit).await {
                Ok(answer) if answer.is_error => format!("The tool failed: {}", answer.text),
                Ok(answer) => answer.text,
                Err(error) => error.to_string(),
            }
        })
    }
}
