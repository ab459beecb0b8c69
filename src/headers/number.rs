//! Reads numbers of headers: whole numbers, and decimal fractions of a unit of time.

use shmlimit_kernel::time::Nanos;

/// The maximum number of digits. No real count has more (R99).
pub(super) const MOST_DIGITS: usize = 18;

/// The text without the HTTP blanks around it. Line ends are not blanks.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number of 1 to 18 ASCII digits. Blanks around it are allowed; everything else is malformed (R99).
pub(super) fn number(text: &str) -> Option<u64> {
    let digits = trim(text);
    if digits.len() > MOST_DIGITS || !all_digits(digits) {
        return None;
    }
    digits.parse().ok()
}

/// Exactly `length` ASCII digits.
pub(super) fn digits(text: &str, length: usize) -> Option<i64> {
    if text.len() != length || !all_digits(text) {
        return None;
    }
    text.parse().ok()
}

/// `12` or `1.5` of a unit, with any number of digits. A value that is too long gives the longest duration. The
/// result is rounded up to a nanosecond, so that no call comes too early.
pub(super) fn decimal(text: &str, unit: Nanos) -> Option<Nanos> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if !all_digits(whole) {
        return None;
    }
    let whole =
        whole.bytes().fold(0_u64, |sum, byte| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0')));
    Some(Nanos(whole.saturating_mul(unit.0)).plus(fraction(part, unit)?))
}

/// The digits after a decimal point, as a fraction of a unit of at most a day, rounded up.
pub(super) fn fraction(text: &str, unit: Nanos) -> Option<Nanos> {
    if !all_digits(text) {
        return None;
    }
    // Eighteen digits are enough to distinguish nanoseconds. Of the remaining digits only matters whether one of
    // them is not zero.
    let (kept, rest) = text.split_at(text.len().min(MOST_DIGITS));
    let (mut value, mut scale) = (0_u128, 1_u128);
    for byte in kept.bytes() {
        value = value * 10 + u128::from(byte - b'0');
        scale *= 10;
    }
    let more = u128::from(rest.bytes().any(|byte| byte != b'0'));
    let nanos = (value * u128::from(unit.0) + more).div_ceil(scale);
    Some(Nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    #[test]
    fn r99_a_number_is_one_to_eighteen_ascii_digits() {
        assert_eq!(number("0"), Some(0));
        assert_eq!(number("007"), Some(7));
        assert_eq!(number(" 42\t"), Some(42));
        assert_eq!(number("999999999999999999"), Some(999_999_999_999_999_999));
        for bad in [
            "",
            " ",
            "1000000000000000000",
            "0000000000000000001",
            "-1",
            "+1",
            "1.0",
            "1e3",
            "0x10",
            "1 2",
            "1,2",
            "NaN",
            "inf",
            "4\0",
            "4\r\n",
            "\r\n4",
            "٤٢",
            "\u{ff14}\u{ff12}",
            "\u{a0}4",
        ] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn r71_decimals_are_exact_and_round_up() {
        assert_eq!(decimal("1.5", SECOND), Some(Nanos(1_500_000_000)));
        assert_eq!(decimal("0.000000001", SECOND), Some(Nanos(1)));
        assert_eq!(decimal("0.0000000001", SECOND), Some(Nanos(1)));
        assert_eq!(decimal("0.0000000010", SECOND), Some(Nanos(1)));
        assert_eq!(decimal("0.9999999999", SECOND), Some(SECOND));
        // A one after the eighteenth digit counts, zeros there do not.
        assert_eq!(decimal("2.0000000000000000001", SECOND), Some(Nanos(2_000_000_001)));
        assert_eq!(decimal("2.0000000000000000000", SECOND), Some(Nanos(2_000_000_000)));
        assert_eq!(decimal("0.5", Nanos::from_secs(86_400)), Some(Nanos::from_secs(43_200)));
        assert_eq!(decimal("0.999999999999999999", Nanos::from_secs(86_400)), Some(Nanos::from_secs(86_400)));
    }

    #[test]
    fn r71_decimals_of_any_length_saturate() {
        assert_eq!(decimal("18446744073.709551615", SECOND), Some(Nanos(u64::MAX)));
        assert_eq!(decimal("18446744073.709551614", SECOND), Some(Nanos(u64::MAX - 1)));
        assert_eq!(decimal("18446744074", SECOND), Some(Nanos(u64::MAX)));
        assert_eq!(decimal(&"9".repeat(70_000), SECOND), Some(Nanos(u64::MAX)));
        // A one with zeros, because a number of only nines wraps around to the same number.
        assert_eq!(decimal(&format!("1{}", "0".repeat(70_000)), SECOND), Some(Nanos(u64::MAX)));
        assert_eq!(decimal("20000000000000000000", Nanos(1)), Some(Nanos(u64::MAX)));
        assert_eq!(decimal(&"0".repeat(70_000), SECOND), Some(Nanos::ZERO));
    }

    #[test]
    fn r71_invalid_decimal_is_malformed() {
        for bad in ["", ".", "1.", ".5", "1.5.2", "1,5", "-1", "+1", " 1", "1e3", "1.٥"] {
            assert_eq!(decimal(bad, SECOND), None, "{bad:?}");
        }
    }
}
