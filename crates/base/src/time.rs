//! Time as whole microseconds in UTC, and the clock as a parameter (OPS-14).

use std::fmt;
use std::time::Duration;

/// An instant: microseconds since 1970-01-01 UTC. As text it is RFC 3339, as `1970-01-01T00:00:00.000000Z`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// A text that is no instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no time; write it as 2026-11-30T08:00:00Z")]
pub struct TimeError(pub String);

impl Timestamp {
    /// From microseconds since 1970, as the store keeps them.
    pub const fn from_micros(micros: i64) -> Self {
        Timestamp(micros)
    }

    /// Microseconds since 1970.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// This instant, later by `millis` milliseconds.
    pub const fn plus_ms(self, millis: u64) -> Self {
        Timestamp(self.0.saturating_add_unsigned(millis.saturating_mul(1_000)))
    }

    /// This instant, earlier by `millis` milliseconds.
    pub const fn minus_ms(self, millis: u64) -> Self {
        Timestamp(self.0.saturating_sub_unsigned(millis.saturating_mul(1_000)))
    }

    /// How long after `earlier` this is; zero if it is before.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads RFC 3339.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let fail = || TimeError(text.chars().take(80).collect());
        let parsed: jiff::Timestamp = text.parse().map_err(|_| fail())?;
        Ok(Timestamp(parsed.as_microsecond()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(at) => write!(f, "{at:.6}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Timestamp::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Where the time comes from. Only [`SystemClock`] asks the machine; tests and the demo have their own.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The wall clock, in UTC.
    fn now(&self) -> Timestamp;
}

/// The machine's own wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp(since.map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn text_and_micros_agree() {
        let at = Timestamp::from_micros(1_764_489_600_000_001);
        assert_eq!(at.to_string(), "2025-11-30T08:00:00.000001Z");
        assert_eq!(Timestamp::parse("2025-11-30T08:00:00.000001Z"), Ok(at));
        assert_eq!(at.plus_ms(1_500).since(at), std::time::Duration::from_millis(1_500));
        assert_eq!(at.since(at.plus_ms(1)), std::time::Duration::ZERO);
        assert!(Timestamp::parse("tomorrow").is_err());
    }
}
