//! SHA-256 digests of bytes: the identity of a body, a context block, a card, an audit entry.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes. Shown and stored as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest before the first entry of a chain.
    pub const ZERO: Digest = Digest([0; 32]);

    /// Hashes one byte string.
    pub fn of(bytes: &[u8]) -> Self {
        Digest(Sha256::digest(bytes).into())
    }

    /// Hashes several parts, each preceded by its length, so that no two lists of parts collide.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Digest(hasher.finalize().into())
    }

    /// The raw 32 bytes, as a column of the store holds them.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads a digest back from a column; `None` unless it has exactly 32 bytes.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Digest)
    }

    /// Reads the 64 hexadecimal digits that [`fmt::Display`] writes.
    pub fn from_hex(text: &str) -> Option<Self> {
        Self::from_slice(&hex::decode(text).ok()?)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", hex::encode(&self.0[..4]))
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Digest::from_hex(&text)
            .ok_or_else(|| serde::de::Error::custom("a digest is 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn parts_do_not_run_into_each_other() {
        let split = |parts: &[&str]| Digest::of_parts(parts.iter().map(|p| p.as_bytes()));
        assert_ne!(split(&["ab", "c"]), split(&["a", "bc"]));
        assert_eq!(
            Digest::of(b"abc").to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(Digest::from_hex(&Digest::ZERO.to_string()), Some(Digest::ZERO));
        assert_eq!(Digest::from_hex("ba"), None);
    }
}
