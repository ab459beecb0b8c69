//! Rates as people write them: `35/s`, `1000/day`. Here the text of `--rate` is read.

use crate::quantity::{amount, duration, unit_size};
use shmlimit_kernel::Nanos;

/// So many units per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Units.
    pub limit: u64,
    /// The period.
    pub period: Nanos,
}

/// Reads a rate: `35/s`, `1000/day`, `40/10s`, `10k/h`, `35 per second`.
///
/// ```
/// use shmlimit::{Nanos, config::{Rate, rate}};
/// assert_eq!(rate("40/10s"), Ok(Rate { limit: 40, period: Nanos::from_secs(10) }));
/// assert_eq!(rate("1000/day"), Ok(Rate { limit: 1000, period: Nanos::from_secs(86_400) }));
/// ```
pub fn rate(text: &str) -> Result<Rate, String> {
    let wanted = || "must be a whole number per time, such as 35/s, 1000/day or 40/10s".to_owned();
    let (limit, period) = text.split_once('/').or_else(|| text.split_once(" per ")).ok_or_else(wanted)?;
    let period = period.trim();
    let limit =
        amount(limit).map_err(|problem| if problem.contains("too large") { problem } else { wanted() })?;
    let period = match unit_size(period) {
        Some(size) => Nanos(size),
        None if period.ends_with(|c: char| c.is_ascii_digit()) => return Err(wanted()),
        None => duration(period).map_err(|_| wanted())?,
    };
    match (limit, period.0) {
        (0, _) | (_, 0) => Err("must be more than nothing".into()),
        _ => Ok(Rate { limit, period }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, limit, seconds) in [
            ("35/s", 35, 1),
            ("1000/day", 1000, 86_400),
            ("5000/h", 5000, 3_600),
            ("40/10s", 40, 10),
            ("1 / min", 1, 60),
            ("35 per second", 35, 1),
            ("10k/day", 10_000, 86_400),
            ("2/2weeks", 2, 2 * 604_800),
        ] {
            assert_eq!(rate(text), Ok(Rate { limit, period: Nanos::from_secs(seconds) }), "{text}");
        }
        for text in
            ["35", "35/", "/s", "0/s", "5/0s", "-1/s", "1.5/s", "NaN/s", "5/10", "5/fortnight", "1/s/s"]
        {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
