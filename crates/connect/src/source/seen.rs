//! What a cursor remembers: short digests of the things seen, as one line of text.

use base::Digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of a stamp. Among 8 000 stamps a new thing is taken for a known one once in 10^10 times, and
/// 8 000 stamps fit into a cursor.
const STAMP_BYTES: usize = 6;

/// A short digest of one thing seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Stamp([u8; STAMP_BYTES]);

impl Stamp {
    pub(super) fn of(digest: &Digest) -> Stamp {
        let mut stamp = [0; STAMP_BYTES];
        stamp.copy_from_slice(&digest.as_bytes()[..STAMP_BYTES]);
        Stamp(stamp)
    }

    pub(super) fn bytes(&self) -> [u8; STAMP_BYTES] {
        self.0
    }
}

/// Stamps in an order that their user gives a meaning.
#[derive(Default, PartialEq, Eq, Clone, Debug)]
pub(super) struct Stamps(pub(super) Vec<Stamp>);

impl Serialize for Stamps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = self.0.iter().flat_map(|stamp| stamp.0).collect();
        serializer.serialize_str(&STANDARD_NO_PAD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Stamps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("stamps are base64 of whole stamps");
        let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| wrong())?;
        let (stamps, rest) = bytes.as_chunks::<STAMP_BYTES>();
        if rest.is_empty() {
            Ok(Stamps(stamps.iter().copied().map(Stamp).collect()))
        } else {
            Err(wrong())
        }
    }
}
