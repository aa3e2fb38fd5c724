//! Amounts of money of the outside world: minor units with their currency, never a float.

use std::fmt;

/// An ISO 4217 code: three capital letters, as `HKD`.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Currency([u8; 3]);

/// So much of one currency, in minor units: `HKD 2 600.00` is 260 000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Amount {
    /// Minor units; never negative.
    pub minor: i64,
    /// Of which currency.
    pub currency: Currency,
}

/// A text that is no amount of money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Not a code of three letters.
    #[error("\"{0}\" is no currency; write its code of three capital letters, as HKD")]
    Currency(String),
    /// Not a decimal number of that currency.
    #[error("\"{text}\" is no amount of {currency}; write it as {example}")]
    Number {
        /// What was written.
        text: String,
        /// Of which currency.
        currency: Currency,
        /// How it looks.
        example: &'static str,
    },
}

impl Currency {
    /// Reads a code.
    pub fn parse(code: &str) -> Result<Self, AmountError> {
        match <[u8; 3]>::try_from(code.as_bytes()) {
            Ok(bytes) if bytes.iter().all(u8::is_ascii_uppercase) => Ok(Currency(bytes)),
            Ok(_) | Err(_) => Err(AmountError::Currency(code.chars().take(20).collect())),
        }
    }

    /// The code.
    pub fn code(&self) -> &str {
        // Three capital letters by construction.
        std::str::from_utf8(&self.0).unwrap_or("???")
    }

    /// Digits after the decimal point, by ISO 4217.
    pub fn digits(&self) -> u32 {
        match self.code() {
            "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF"
            | "UGX" | "UYI" | "VND" | "VUV" | "XAF" | "XOF" | "XPF" => 0,
            "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
            "CLF" | "UYW" => 4,
            _ => 2,
        }
    }
}

impl Amount {
    /// Reads a plain decimal, as `2600`, `2600.5` or `2600.00`: no sign, no grouping, no exponent, and no
    /// more digits than the currency has.
    pub fn parse(text: &str, currency: Currency) -> Result<Self, AmountError> {
        let digits = currency.digits();
        let wrong = || AmountError::Number {
            text: text.chars().take(40).collect(),
            currency,
            example: match digits {
                0 => "2600",
                3 => "2600.000",
                4 => "2600.0000",
                _ => "2600.00",
            },
        };
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let plain = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        let has_point = text.contains('.');
        if whole.is_empty() || !plain(whole) || !plain(part) || (has_point && part.is_empty()) {
            return Err(wrong());
        }
        let missing = digits.checked_sub(u32::try_from(part.len()).unwrap_or(u32::MAX));
        let missing = missing.ok_or_else(wrong)?;
        let minor = format!("{whole}{part}").parse::<i64>().ok();
        let minor = minor.and_then(|minor| minor.checked_mul(10_i64.pow(missing)));
        Ok(Amount { minor: minor.ok_or_else(wrong)?, currency })
    }
}

impl fmt::Display for Amount {
    /// As `HKD 2 600.00`: thin spaces would be lost in a terminal, so plain ones group the digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.currency.digits();
        let unit = 10_i64.pow(digits);
        let (whole, part) = (self.minor / unit, (self.minor % unit).abs());
        let plain = whole.to_string();
        let mut grouped = String::new();
        for (at, digit) in plain.chars().enumerate() {
            let left = plain.len() - at;
            if at > 0 && left % 3 == 0 && !grouped.ends_with('-') {
                grouped.push(' ');
            }
            grouped.push(digit);
        }
        match digits {
            0 => write!(f, "{} {grouped}", self.currency),
            _ => write!(f, "{} {grouped}.{part:0width$}", self.currency, width = digits as usize),
        }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}
impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}
impl TryFrom<String> for Currency {
    type Error = AmountError;
    fn try_from(code: String) -> Result<Self, AmountError> {
        Currency::parse(&code)
    }
}
impl From<Currency> for String {
    fn from(currency: Currency) -> String {
        currency.code().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_whole_minor_units() {
        let read = |text: &str, code: &str| -> Result<(i64, String), String> {
            let currency = Currency::parse(code).map_err(|e| e.to_string())?;
            let amount = Amount::parse(text, currency).map_err(|e| e.to_string())?;
            Ok((amount.minor, amount.to_string()))
        };
        assert_eq!(read("2600", "HKD"), Ok((260_000, "HKD 2 600.00".into())));
        assert_eq!(read("2600.5", "HKD"), Ok((260_050, "HKD 2 600.50".into())));
        assert_eq!(read("1234567", "JPY"), Ok((1_234_567, "JPY 1 234 567".into())));
        assert_eq!(read("1.005", "KWD"), Ok((1_005, "KWD 1.005".into())));
        assert_eq!(read("0", "EUR"), Ok((0, "EUR 0.00".into())));
        for wrong in [
            "",
            "-1",
            "+1",
            "1e3",
            "1,000",
            "1.",
            ".5",
            "2600.001",
            " 1",
            "１",
            "9".repeat(30).as_str(),
        ] {
            let error = read(wrong, "HKD").unwrap_err();
            assert!(error.ends_with("is no amount of HKD; write it as 2600.00"), "{error}");
        }
        for wrong in ["hkd", "HK", "HK$D", "港币"] {
            assert!(read("1", wrong).unwrap_err().contains("three capital letters"));
        }
    }
}
