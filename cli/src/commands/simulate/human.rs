//! Formats times and numbers for people.

/// Formats a duration in nanoseconds: `1h 5m`, `2.5s`, `80ms`, `0s`.
pub fn time(nanos: u64) -> String {
    const SECOND: u64 = 1_000_000_000;
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}µs", number(nanos as f64 / 1e3)),
        1_000_000..SECOND => format!("{}ms", number(nanos as f64 / 1e6)),
        _ if nanos < 60 * SECOND => format!("{}s", number(nanos as f64 / 1e9)),
        _ => {
            let seconds = nanos / SECOND;
            let parts = [
                (seconds / 86_400, "d"),
                (seconds / 3600 % 24, "h"),
                (seconds / 60 % 60, "m"),
                (seconds % 60, "s"),
            ];
            let parts: Vec<_> = parts
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, unit)| format!("{count}{unit}"))
                .collect();
            parts.join(" ")
        }
    }
}

/// Formats a number with at most three decimals; thousands and millions get a letter.
pub fn number(value: f64) -> String {
    let (value, letter) = match value.abs() {
        large if large >= 1e9 => (value / 1e9, "G"),
        large if large >= 1e6 => (value / 1e6, "M"),
        large if large >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_use_a_fitting_unit() {
        let cases = [
            (0, "0s"),
            (999, "999ns"),
            (1_500, "1.5µs"),
            (80_000_000, "80ms"),
            (2_500_000_000, "2.5s"),
            (60_000_000_000, "1m"),
            (3_905_000_000_000, "1h 5m 5s"),
            (90_000_000_000_000, "1d 1h"),
        ];
        for (nanos, text) in cases {
            assert_eq!(time(nanos), text);
        }
    }

    #[test]
    fn numbers_are_short() {
        let cases =
            [(0.0, "0"), (0.25, "0.25"), (35.0, "35"), (1234.0, "1234"), (20_000.0, "20k"), (3.5e6, "3.5M")];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }
}
