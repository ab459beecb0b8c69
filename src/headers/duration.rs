//! Reads durations with units, such as `6m0s`.

use super::number::{MOST_DIGITS, decimal, trim};
use shmlimit_kernel::time::Nanos;

/// `1s`, `6m0s`, `120ms`, `1h2m3.5s`: numbers with units, added up. A number without a unit is in seconds, because
/// some services that imitate these headers send it so.
pub(super) fn duration(text: &str) -> Option<Nanos> {
    let text = trim(text);
    if let Some(seconds) = amount(text, "s") {
        return Some(seconds);
    }
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (mut sum, mut rest) = (Nanos::ZERO, text);
    loop {
        let (number, behind) = rest.split_at(rest.find(|c| !is_number(c))?);
        let (unit, next) = behind.split_at(behind.find(is_number).unwrap_or(behind.len()));
        sum = sum.plus(amount(number, unit)?);
        if next.is_empty() {
            return Some(sum);
        }
        rest = next;
    }
}

fn amount(number: &str, unit: &str) -> Option<Nanos> {
    let unit = match unit {
        "ns" => Nanos(1),
        // Services use both characters that look like a small mu.
        "us" | "\u{b5}s" | "\u{3bc}s" => Nanos(1000),
        "ms" => Nanos::from_millis(1),
        "s" => Nanos::from_secs(1),
        "m" => Nanos::from_secs(60),
        "h" => Nanos::from_secs(3600),
        "d" => Nanos::from_secs(86_400),
        _ => return None,
    };
    // The limit of R99 applies to the digits on both sides of the point.
    if number.split('.').any(|digits| digits.len() > MOST_DIGITS) {
        return None;
    }
    decimal(number, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r138_durations_add_up() {
        for (text, nanos) in [
            ("0s", 0),
            ("1s", 1_000_000_000),
            ("6m0s", 360_000_000_000),
            ("120ms", 120_000_000),
            ("1h2m3.5s", 3_723_500_000_000),
            ("7.66s", 7_660_000_000),
            ("2m59.56s", 179_560_000_000),
            ("1d", 86_400_000_000_000),
            ("20us", 20_000),
            ("20µs", 20_000),
            ("20μs", 20_000),
            ("1.5ns", 2),
            (" 12ms ", 12_000_000),
            ("0", 0),
            ("59", 59_000_000_000),
            ("33011.382867", 33_011_382_867_000),
        ] {
            assert_eq!(duration(text), Some(Nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn r138_long_durations_saturate_one_by_one_and_in_sum() {
        assert_eq!(duration("999999999999999999s"), Some(Nanos(u64::MAX)));
        assert_eq!(duration(&"999999999999h".repeat(9)), Some(Nanos(u64::MAX)));
    }

    #[test]
    fn r99b_invalid_duration_is_malformed() {
        for bad in [
            "",
            " ",
            "s",
            "ms5",
            "-1s",
            "+1s",
            "1 s",
            "1s 2m",
            "1s2",
            "1x",
            "1.s",
            ".5s",
            "1..5s",
            "1S",
            "1s\0",
            "NaN",
            "1h2m\r\n",
            "1000000000000000000s",
            "0.1000000000000000000s",
            "٥s",
            "5é",
        ] {
            assert_eq!(duration(bad), None, "{bad:?}");
        }
    }
}
