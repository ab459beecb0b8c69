//! Durations, amounts and shares as people write them, read and written exactly: no number passes through a float.

use shmlimit_kernel::policy::WHOLE_SHARE;
use shmlimit_kernel::policy::{decimal_text, duration_text};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
/// Every spelling of a unit of time, and its length in nanoseconds.
const UNITS: [(&str, u64); 25] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("sec", SECOND),
    ("secs", SECOND),
    ("second", SECOND),
    ("seconds", SECOND),
    ("m", 60 * SECOND),
    ("min", 60 * SECOND),
    ("mins", 60 * SECOND),
    ("minute", 60 * SECOND),
    ("minutes", 60 * SECOND),
    ("h", 3_600 * SECOND),
    ("hr", 3_600 * SECOND),
    ("hrs", 3_600 * SECOND),
    ("hour", 3_600 * SECOND),
    ("hours", 3_600 * SECOND),
    ("d", 86_400 * SECOND),
    ("day", 86_400 * SECOND),
    ("days", 86_400 * SECOND),
    ("w", 604_800 * SECOND),
    ("week", 604_800 * SECOND),
    ("weeks", 604_800 * SECOND),
];
/// Every spelling of a multiple, for amounts such as `10k` and `64KiB`.
const MULTIPLES: [(&str, u64); 17] = [
    ("", 1),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("KiB", 1 << 10),
    ("kiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// A share is a multiple of `10^-SHARE_DIGITS`.
const SHARE_DIGITS: usize = 6;

/// Reads a duration: `250ms`, `30s`, `1.5h`, `1h30m`, `1d`, or a plain number of seconds.
///
/// ```
/// use shmlimit::config::duration;
/// use std::time::Duration;
/// assert_eq!(duration("0.1"), Ok(Duration::from_millis(100)));
/// assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
/// assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
/// assert!(duration("soon").is_err());
/// ```
pub fn duration(text: &str) -> Result<Duration, String> {
    let (first, size, mut rest) = part(text.trim())?;
    let (mut total, mut size) = (decimal_times(first, size.unwrap_or(SECOND))?, size);
    // Several parts go from large to small units, and each has a unit. Anything else is probably a mistake.
    while !rest.is_empty() {
        let (number, next, after) = part(rest)?;
        let (Some(larger), Some(smaller)) = (size, next) else { return Err(not_a_duration()) };
        if smaller >= larger {
            return Err(not_a_duration());
        }
        total = total.checked_add(decimal_times(number, smaller)?).ok_or_else(too_large)?;
        (size, rest) = (next, after);
    }
    Ok(Duration::from_nanos(total))
}

/// The number at the start of a text, the size of its unit if it has one, and the rest.
fn part(text: &str) -> Result<(&str, Option<u64>, &str), String> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (number, rest) = text.split_at(text.find(|c| !is_number(c)).unwrap_or(text.len()));
    let rest = rest.trim_start();
    let (unit, after) = rest.split_at(rest.find(is_number).unwrap_or(rest.len()));
    let size = match unit.trim_end() {
        "" => None,
        unit => Some(unit_size(unit).ok_or_else(not_a_duration)?),
    };
    Ok((number, size, after))
}

/// Reads a whole amount: `900`, `10_000`, `10k`, `1.5M`, `10MB`, `64KiB`.
///
/// ```
/// use shmlimit::config::amount;
/// assert_eq!((amount("10k"), amount("1.5MB"), amount("64KiB")), (Ok(10_000), Ok(1_500_000), Ok(65_536)));
/// assert!(amount("35.0").is_err() && amount("-1").is_err() && amount("10x").is_err());
/// ```
pub fn amount(text: &str) -> Result<u64, String> {
    let wanted = || "must be a whole number of 0 or more, such as 900, 10k or 64KiB".to_owned();
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let multiple = MULTIPLES.iter().find(|(name, _)| *name == unit.trim_start());
    let (_, size) = multiple.ok_or_else(wanted)?;
    // A fraction with a multiple can be whole (`1.5k`). Without a multiple it is an error, even if it looks whole
    // (`35.0`).
    let fraction = unit.is_empty() && number.contains('.');
    if fraction || number.starts_with(['_', '.']) || number.ends_with(['_', '.']) || number.contains("__") {
        return Err(wanted());
    }
    match decimal_times(&number.replace('_', ""), *size) {
        Err(problem) if problem == too_large() => Err(format!("is too large; the maximum is {}", u64::MAX)),
        Err(_) => Err(wanted()),
        Ok(amount) => Ok(amount),
    }
}

/// Reads a share, from 0 to 1, in millionths.
///
/// ```
/// use shmlimit::config::share;
/// assert_eq!(share("0.1"), Ok(100_000));
/// assert!(share("0.1234567").is_err() && share("1.5").is_err());
/// ```
pub fn share(text: &str) -> Result<u64, String> {
    const WANTED: &str = "a number from 0 to 1, such as 0.1";
    let parts = decimal(text, SHARE_DIGITS, WANTED)?;
    if parts <= u64::from(WHOLE_SHARE) { Ok(parts) } else { Err(format!("must be {WANTED}")) }
}

/// Reads a decimal as a whole multiple of `10^-digits`. `wanted` describes the allowed values for the error.
pub(crate) fn decimal(text: &str, digits: usize, wanted: &str) -> Result<u64, String> {
    let (whole, frac) = split(text).ok_or_else(|| format!("must be {wanted}"))?;
    if frac.len() > digits {
        return Err(format!("has more than {digits} digits after the point; must be {wanted}"));
    }
    let parts = format!("{whole}{frac:0<digits$}");
    parts.parse().map_err(|_| format!("is too large; must be {wanted}"))
}

/// The digits of a decimal before and after the point, without trailing zeros.
fn split(number: &str) -> Option<(&str, &str)> {
    let (whole, frac) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = !(whole.is_empty() && frac.is_empty()) && digits(whole) && digits(frac);
    is_number.then(|| (whole, frac.trim_end_matches('0')))
}

/// A multiple of `10^-digits` as people write it.
pub(crate) fn written(parts: u64, digits: usize) -> String {
    decimal_text(u128::from(parts), digits)
}

/// A duration as people write it.
pub(crate) fn span(duration: Duration) -> String {
    duration_text(duration.as_nanos())
}

/// The length of a unit of time in nanoseconds.
pub(crate) fn unit_size(unit: &str) -> Option<u64> {
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size)
}

/// `number * size`, exactly, or the error.
fn decimal_times(number: &str, size: u64) -> Result<u64, String> {
    let (whole, frac) = split(number).ok_or_else(not_a_duration)?;
    let scale = u32::try_from(frac.len()).ok().and_then(|len| 10_u128.checked_pow(len));
    let scale = scale.filter(|scale| *scale <= u128::from(u64::MAX)).ok_or_else(too_fine)?;
    let parse =
        |part: &str| if part.is_empty() { Ok(0) } else { part.parse::<u64>().map_err(|_| too_large()) };
    // Both products fit: each factor is below 2^64.
    let parts = u128::from(parse(frac)?) * u128::from(size);
    if parts % scale != 0 {
        return Err(too_fine());
    }
    let total = u128::from(parse(whole)?) * u128::from(size) + parts / scale;
    u64::try_from(total).map_err(|_| too_large())
}

pub(crate) fn not_a_duration() -> String {
    "must be a duration such as \"250ms\", \"30s\", \"5m\", \"1h30m\", \"1d\", or a number of seconds".into()
}

fn too_fine() -> String {
    "is finer than a nanosecond".into()
}

fn too_large() -> String {
    format!("is too large; the maximum is {}ns", u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_exactly() {
        for (text, nanos) in [
            ("250ms", 250_000_000),
            ("30s", 30 * SECOND),
            ("5m", 300 * SECOND),
            ("24h", 86_400 * SECOND),
            ("1d", 86_400 * SECOND),
            ("100ns", 100),
            ("1.5s", 1_500_000_000),
            ("0.1", 100_000_000),
            ("0.3", 300_000_000),
            (".5s", SECOND / 2),
            ("2", 2 * SECOND),
            ("0.000000001", 1),
            ("0", 0),
            (" 5 min ", 300 * SECOND),
            ("15mins", 900 * SECOND),
            ("1h30m", 5_400 * SECOND),
            ("1h 30m", 5_400 * SECOND),
            ("1 day 2 hours", 93_600 * SECOND),
            ("1m0.5s", 60 * SECOND + SECOND / 2),
            ("18446744073709551615ns", u64::MAX),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn invalid_duration_is_an_error() {
        for text in [
            "",
            "s",
            ".",
            "1.2.3s",
            "-1s",
            "+1s",
            "1e3",
            "NaN",
            "inf",
            "5 parsecs",
            "1s2",
            "٣s",
            "30m1h",
            "1m1m",
            "1 2s",
            "1h30",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(duration("0.5ns"), Err(too_fine()));
        assert_eq!(duration("18446744073709551616ns"), Err(too_large()));
        assert_eq!(duration("99999999999999999999d"), Err(too_large()));
        assert_eq!(duration("0.00000000000000000000000000000000000000001"), Err(too_fine()));
    }

    #[test]
    fn shares_are_read_exactly() {
        for (text, millionths) in [
            ("0", 0),
            ("1", 1_000_000),
            ("1.000", 1_000_000),
            ("0.1", 100_000),
            (".25", 250_000),
            ("0.000001", 1),
            ("0.999999", 999_999),
            ("00.50000000000", 500_000),
        ] {
            assert_eq!(share(text), Ok(millionths), "{text}");
        }
        for text in ["", ".", "-0.1", "1.000001", "2", "10", "NaN", "inf", "1e-3", "0,5", "50%", "+0.5"] {
            assert!(share(text).is_err_and(|why| why.contains("from 0 to 1")), "{text}");
        }
        assert!(share("0.0000001").is_err_and(|why| why.contains("more than 6 digits")));
    }
}
