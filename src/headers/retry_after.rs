//! `Retry-After`: seconds or a date (R69 to R72).

use super::Header;
use super::calendar::until;
use super::date::http_date;
use super::number::{decimal, trim};
use shmlimit_kernel::time::Nanos;

/// What a value of `Retry-After` means: how long to wait from now. `wall_now` is in nanoseconds since the Unix epoch.
///
/// Zero, a negative number and a date that is past give 0; too long for a `Nanos` gives the longest; `None` is
/// malformed (R71). The least and the longest wait (R70, R71) are the policy's, and are not applied here.
pub fn retry_after(value: &str, wall_now: u64) -> Option<Nanos> {
    let value = trim(value);
    let second = Nanos::from_secs(1);
    if let Some(number) = value.strip_prefix('-') {
        return decimal(number, second).map(|_| Nanos::ZERO);
    }
    let date = || http_date(value, wall_now).map(|at| until(at, Nanos::ZERO, wall_now));
    decimal(value, second).or_else(date)
}

/// What the `Retry-After` among these headers means; of several, the longest wait (R99).
pub fn retry_after_in(headers: &[Header<'_>], wall_now: u64) -> Option<Nanos> {
    let mine = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
    mine.filter_map(|(_, value)| retry_after(value, wall_now)).max()
}

#[cfg(test)]
mod tests;
