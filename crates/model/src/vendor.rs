//! What an answer holds besides its text and calls: thinking that only its own vendor can read.
//!
//! It is stored as it came, in the assistant block, beside the wire and the model it came from, and
//! goes back to those alone. Everybody else is sent the message without it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Block, ToolCall, Wire};

/// Whose thinking it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin<'a> {
    pub(crate) wire: Wire,
    /// As configured.
    pub(crate) model: &'a str,
}

/// The last field of a stored assistant message, there only if the vendor sent more than text and
/// calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Vendor {
    wire: Wire,
    model: String,
    parts: Vec<Part>,
}

/// The order in which an answer came.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    /// So many further bytes of the message's text.
    Text {
        bytes: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    /// The message's next call.
    Call,
    /// An item of the vendor, as it came.
    Item(Box<RawValue>),
}

/// One piece of an answer, in the order it came.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Text {
        text: String,
        /// The vendor's mark of what the text is for.
        phase: Option<String>,
    },
    Call(ToolCall),
    Item(Box<RawValue>),
}

impl Piece {
    pub(crate) fn text(text: String) -> Piece {
        Piece::Text { text, phase: None }
    }
}

/// The message that pieces make up, and what of them only `origin` can read.
pub(crate) fn split(
    pieces: Vec<Piece>,
    origin: Origin<'_>,
) -> (Option<String>, Vec<ToolCall>, Option<Vendor>) {
    let (mut said, mut calls, mut parts) = (String::new(), Vec::new(), Vec::new());
    let mut own = false;
    for piece in pieces {
        parts.push(match piece {
            Piece::Text { text, phase } => {
                own |= phase.is_some();
                said.push_str(&text);
                Part::Text { bytes: text.len(), phase }
            }
            Piece::Call(call) => {
                calls.push(call);
                Part::Call
            }
            Piece::Item(item) => {
                own = true;
                Part::Item(item)
            }
        });
    }
    let vendor = Vendor { wire: origin.wire, model: origin.model.to_owned(), parts };
    (Some(said).filter(|said| !said.is_empty()), calls, own.then_some(vendor))
}

/// An answer's pieces for `origin`: as they came if it gave them, else its text and its calls. Texts
/// of nothing but blanks are left out, which no wire takes.
pub(crate) fn pieces(
    block: &Block,
    text: Option<String>,
    calls: Vec<ToolCall>,
    origin: Origin<'_>,
) -> Vec<Piece> {
    let own = block.vendor().filter(|own| own.is_of(origin));
    let in_order = own.and_then(|own| own.in_order(text.as_deref().unwrap_or_default(), &calls));
    let mut pieces = in_order.unwrap_or_else(|| {
        let text = text.map(Piece::text);
        text.into_iter().chain(calls.into_iter().map(Piece::Call)).collect()
    });
    pieces.retain(|piece| !matches!(piece, Piece::Text { text, .. } if text.trim().is_empty()));
    pieces
}

impl Vendor {
    fn is_of(&self, origin: Origin<'_>) -> bool {
        self.wire == origin.wire && self.model == origin.model
    }

    /// The one item that an answer on [`Wire::Chat`] has.
    pub(crate) fn first_item(self, origin: Origin<'_>) -> Option<Box<RawValue>> {
        let mut parts = self.is_of(origin).then_some(self.parts)?.into_iter();
        parts.find_map(|part| match part {
            Part::Item(item) => Some(item),
            Part::Text { .. } | Part::Call => None,
        })
    }

    /// `None` if the message is another one than the parts were made for.
    fn in_order(self, text: &str, calls: &[ToolCall]) -> Option<Vec<Piece>> {
        let (mut text, mut calls) = (text, calls.iter());
        let mut pieces = Vec::new();
        for part in self.parts {
            pieces.push(match part {
                Part::Text { bytes, phase } => {
                    let (first, rest) = text.split_at_checked(bytes)?;
                    text = rest;
                    Piece::Text { text: first.to_owned(), phase }
                }
                Part::Call => Piece::Call(calls.next()?.clone()),
                Part::Item(item) => Piece::Item(item),
            });
        }
        (text.is_empty() && calls.next().is_none()).then_some(pieces)
    }
}

/// A name or id as every vendor takes it. One with other characters, of another vendor or made up, gets
/// blanks in their place and a digest, so that two stay two.
pub(crate) fn plain_name(name: &str) -> String {
    const LENGTH_MAX: usize = 64;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= LENGTH_MAX && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let digest = base::Digest::of(name.as_bytes()).to_string();
    let start = name.chars().take(LENGTH_MAX - 9).map(|c| if is_plain(c) { c } else { '_' });
    format!("{}-{}", start.collect::<String>(), &digest[..8])
}

/// A tool definition as it stands in the array of a request.
#[derive(Deserialize)]
pub(crate) struct Tool<'a> {
    #[serde(borrow)]
    pub(crate) function: Function<'a>,
}

#[derive(Deserialize)]
pub(crate) struct Function<'a> {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(borrow, default)]
    pub(crate) parameters: Option<&'a RawValue>,
}
