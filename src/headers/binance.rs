//! Reads Binance's `X-MBX-USED-WEIGHT-<n><unit>` and `X-MBX-ORDER-COUNT-<n><unit>` (R95).

use super::number::number;
use super::windows::Windows;
use super::{Header, Parser, Reading, after};

const MINUTE_WEIGHT: &str = "REQUEST_WEIGHT:1M";

/// The used request weight (`REQUEST_WEIGHT:1M`) and the used orders (`ORDERS:10S`). The headers do not contain
/// limits.
#[derive(Clone, Copy, Debug)]
pub struct Binance;

impl Parser for Binance {
    fn parse(&self, headers: &[Header<'_>], _wall_now: u64) -> Vec<(String, Reading)> {
        let (mut windows, mut bare, mut has_minute) = (Windows::default(), Reading::default(), false);
        for (name, value) in headers {
            let Some(used) = number(value) else { continue };
            let reading = Reading { used: Some(used), ..Reading::default() };
            if name.eq_ignore_ascii_case("x-mbx-used-weight") {
                bare.restrict(reading);
            } else if let Some(window) = window(name) {
                has_minute |= window == MINUTE_WEIGHT;
                windows.add(&window, reading);
            }
        }
        // The older header without an interval counts the same minute.
        if !has_minute {
            windows.add(MINUTE_WEIGHT, bare);
        }
        windows.sorted()
    }
}

/// The window that a header's name stands for.
fn window(header: &str) -> Option<String> {
    let weight = after(header, "x-mbx-used-weight-").map(|interval| ("REQUEST_WEIGHT", interval));
    let orders = || after(header, "x-mbx-order-count-").map(|interval| ("ORDERS", interval));
    let (kind, interval) = weight.or_else(orders)?;
    let unit = interval.chars().next_back()?.to_ascii_uppercase();
    if !['S', 'M', 'H', 'D'].contains(&unit) {
        return None;
    }
    let amount = &interval[..interval.len() - 1];
    // A name contains no blanks, but `number` would skip them.
    let amount = number(amount).filter(|n| *n > 0 && amount.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some(format!("{kind}:{amount}{unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(headers: &[Header<'_>]) -> Vec<(String, u64)> {
        let only_used = |(name, reading): (String, Reading)| {
            let used = reading.used.unwrap();
            assert_eq!(reading, Reading { used: Some(used), ..Reading::default() });
            (name, used)
        };
        Binance.parse(headers, 0).into_iter().map(only_used).collect()
    }

    fn is(headers: &[Header<'_>], expected: &[(&str, u64)]) {
        let expected: Vec<_> = expected.iter().map(|(name, used)| (name.to_string(), *used)).collect();
        assert_eq!(used(headers), expected);
    }

    #[test]
    fn r95_weight_and_orders_are_read_for_every_interval() {
        is(
            &[
                ("X-MBX-USED-WEIGHT-1M", "42"),
                ("x-mbx-used-weight-5h", "7"),
                ("X-Mbx-Order-Count-10S", "3"),
                ("X-MBX-ORDER-COUNT-1D", "0"),
            ],
            &[("ORDERS:10S", 3), ("ORDERS:1D", 0), ("REQUEST_WEIGHT:1M", 42), ("REQUEST_WEIGHT:5H", 7)],
        );
    }

    #[test]
    fn r95_header_without_an_interval_counts_the_minute_unless_the_minute_is_present() {
        is(&[("X-MBX-USED-WEIGHT", "9")], &[("REQUEST_WEIGHT:1M", 9)]);
        is(&[("X-MBX-USED-WEIGHT", "9"), ("X-MBX-USED-WEIGHT-1M", "5")], &[("REQUEST_WEIGHT:1M", 5)]);
        is(&[("X-MBX-USED-WEIGHT-1M", "5"), ("X-MBX-USED-WEIGHT", "9")], &[("REQUEST_WEIGHT:1M", 5)]);
        is(
            &[("X-MBX-USED-WEIGHT", "9"), ("X-MBX-USED-WEIGHT-1S", "5")],
            &[("REQUEST_WEIGHT:1M", 9), ("REQUEST_WEIGHT:1S", 5)],
        );
        // The malformed header is ignored, so the header without an interval counts.
        is(&[("X-MBX-USED-WEIGHT", "9"), ("X-MBX-USED-WEIGHT-1M", "x")], &[("REQUEST_WEIGHT:1M", 9)]);
    }

    #[test]
    fn r99_largest_use_of_duplicates_is_kept() {
        is(
            &[("X-MBX-USED-WEIGHT-1M", "5"), ("x-mbx-used-weight-1m", "8"), ("X-MBX-USED-WEIGHT-1M", "6")],
            &[("REQUEST_WEIGHT:1M", 8)],
        );
        is(&[("X-MBX-USED-WEIGHT", "5"), ("X-MBX-USED-WEIGHT", "3")], &[("REQUEST_WEIGHT:1M", 5)]);
    }

    #[test]
    fn r94_other_names_and_malformed_values_are_ignored() {
        is(
            &[
                ("X-MBX-USED-WEIGHT-", "1"),
                ("X-MBX-USED-WEIGHT-M", "1"),
                ("X-MBX-USED-WEIGHT-0M", "1"),
                ("X-MBX-USED-WEIGHT-1W", "1"),
                ("X-MBX-USED-WEIGHT-1é", "1"),
                ("X-MBX-USED-WEIGHT- 1M", "1"),
                ("X-MBX-USED-WEIGHT--1M", "1"),
                ("X-MBX-USED-WEIGHT-1M ", "1"),
                ("X-MBX-ORDER-COUNT", "1"),
                ("X-MBX-UUID", "1"),
                ("", "1"),
                ("X-MBX-USED-WEIGHT-1M", "-1"),
                ("X-MBX-USED-WEIGHT-1M", ""),
                ("X-MBX-USED-WEIGHT-1M", "1.5"),
            ],
            &[],
        );
    }
}
