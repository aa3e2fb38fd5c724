//! What a tool answered, as text: whatever is not text is described by its kind and size.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// A tool's answer as it came.
pub(crate) struct Answer(CallToolResult);

impl Answer {
    pub(crate) fn new(result: CallToolResult) -> Self {
        Answer(result)
    }

    /// Whether the tool reports a failure.
    pub(crate) fn is_error(&self) -> bool {
        self.0.is_error.unwrap_or(false)
    }

    /// The answer as text, of any length.
    pub(crate) fn text(&self) -> String {
        let mut parts: Vec<String> = self.0.content.iter().map(block).collect();
        // Structured content repeats the text, by the protocol; it is shown only where there is none.
        if let (true, Some(structured)) = (parts.is_empty(), &self.0.structured_content) {
            parts.push(structured.to_string());
        }
        if parts.is_empty() {
            parts.push("[the tool answered without any content]".to_owned());
        }
        parts.join("\n")
    }

    /// The answer as data: the structured content, else the first text that is a JSON object or list.
    pub(crate) fn data(&self) -> Option<Value> {
        if let Some(structured) = &self.0.structured_content {
            return Some(structured.clone());
        }
        self.0.content.iter().find_map(|block| {
            let text = block.as_text()?.text.trim_start();
            if !text.starts_with(['{', '[']) {
                return None;
            }
            serde_json::from_str(text).ok()
        })
    }
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => binary("image", Some(&image.mime_type), &image.data),
        ContentBlock::Audio(audio) => binary("audio", Some(&audio.mime_type), &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[resource {uri}]\n{text}")
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                binary(&format!("resource {uri}"), mime_type.as_deref(), blob)
            }
            _ => "[resource of an unknown kind, not shown]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => {
            format!("[link to resource {}: {}]", link.name, link.uri)
        }
        _ => "[content of an unknown kind, not shown]".to_owned(),
    }
}

/// Describes base64 data: four characters carry three bytes, less the padding.
fn binary(kind: &str, mime_type: Option<&str>, base64: &str) -> String {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    let bytes = (base64.len() / 4 * 3).saturating_sub(padding);
    let mime_type = mime_type.unwrap_or("type unknown");
    format!("[{kind}, {mime_type}, {bytes} bytes, not shown]")
}
