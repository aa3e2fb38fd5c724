//! Money as whole numbers. Model usage is counted in millionths of a US dollar.

use std::fmt;

/// Millionths of a US dollar: 1 000 000 is one dollar. Used for the cost of model calls and caps.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct MicroUsd(pub i64);

impl MicroUsd {
    /// The price of `tokens` at `price_per_million_tokens`, rounded up: a budget is never undercounted.
    pub fn for_tokens(tokens: u64, price_per_million_tokens: MicroUsd) -> MicroUsd {
        let exact = i128::from(tokens) * i128::from(price_per_million_tokens.0);
        MicroUsd(i64::try_from((exact + 999_999) / 1_000_000).unwrap_or(i64::MAX))
    }

    /// The sum, held at the largest amount instead of wrapping round.
    pub fn plus(self, other: MicroUsd) -> MicroUsd {
        MicroUsd(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = self.0.div_euclid(10_000);
        write!(f, "US${}.{:02}", cents.div_euclid(100), cents.rem_euclid(100))
    }
}

#[cfg(test)]
mod tests {
    use super::MicroUsd;

    #[test]
    fn costs_round_up_and_print_in_cents() {
        let price = MicroUsd(2_500_000);
        assert_eq!(MicroUsd::for_tokens(1, price), MicroUsd(3));
        assert_eq!(MicroUsd::for_tokens(2_000_000, price), MicroUsd(5_000_000));
        assert_eq!(MicroUsd(5_019_999).to_string(), "US$5.01");
    }
}
