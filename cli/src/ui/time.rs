//! Formats durations and points in time, for people and for JSON.

use std::time::{Duration, SystemTime};

/// Converts a time to the value of a key that ends in `_ns`.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Formats the time until an event, for people: rounded up, with few digits.
pub fn format_remaining(time: Duration) -> String {
    let (millis, secs) = (time.as_nanos().div_ceil(1_000_000), time.as_nanos().div_ceil(1_000_000_000));
    match millis {
        0..1000 => format!("{millis}ms"),
        1000..=9900 => {
            let tenths = millis.div_ceil(100);
            if tenths % 10 == 0 {
                format!("{}s", tenths / 10)
            } else {
                format!("{}.{}s", tenths / 10, tenths % 10)
            }
        }
        _ if secs < 60 => format!("{secs}s"),
        _ if secs < 3600 => format!("{}m{:02}s", secs / 60, secs % 60),
        _ if secs < 86_400 => format!("{}h{:02}m", secs / 3600, secs / 60 % 60),
        _ => format!("{}d{:02}h", secs / 86_400, secs / 3600 % 24),
    }
}

/// Formats an age in its largest unit.
pub fn format_age(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{}ms", time.as_millis()),
        secs @ 1..60 => format!("{secs}s"),
        secs @ 60..3600 => format!("{}m", secs / 60),
        secs @ 3600..86_400 => format!("{}h", secs / 3600),
        secs => format!("{}d", secs / 86_400),
    }
}

/// Formats a wait. It is rounded up, so that no caller comes too early.
pub fn format_wait(time: Duration) -> String {
    match time.as_secs() {
        0..60 => {
            let millis = time.as_nanos().div_ceil(1_000_000);
            format!("{}.{:03}s", millis / 1000, millis % 1000)
        }
        secs => {
            let secs = secs + u64::from(time.subsec_nanos() > 0);
            let (hours, minutes, secs) = (secs / 3600, secs / 60 % 60, secs % 60);
            if hours > 0 {
                format!("{hours}h{minutes:02}m{secs:02}s")
            } else {
                format!("{minutes}m{secs:02}s")
            }
        }
    }
}

/// Formats a time as `2026-11-16T17:08:35.123Z`. Earlier times than 1970 are shown as 1970.
pub fn format_utc(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, of_day) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// Returns the date of a number of days after 1970-01-01. It counts years that begin in March, so that the leap day
/// is the last day of a year.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + 400 * era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        for (secs, text) in [(0, "0ms"), (59, "59s"), (60, "1m"), (7_199, "1h"), (172_800, "2d")] {
            assert_eq!(format_age(Duration::from_secs(secs)), text);
        }
    }

    #[test]
    fn waits_are_rounded_up() {
        for (nanos, text) in [
            (1, "0.001s"),
            (28_571_429, "0.029s"),
            (59_999_999_999, "60.000s"),
            (719_980_000_000, "12m00s"),
            (3_600_000_000_001, "1h00m01s"),
        ] {
            assert_eq!(format_wait(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn remaining_times_have_few_digits() {
        for (nanos, text) in [
            (1, "1ms"),
            (999_000_001, "1s"),
            (1_901_000_000, "2s"),
            (1_800_000_000, "1.8s"),
            (9_950_000_000, "10s"),
            (59_000_000_001, "1m00s"),
            (3_599_000_000_001, "1h00m"),
            (90_000_000_000_000, "1d01h"),
        ] {
            assert_eq!(format_remaining(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn dates_match_the_calendar() {
        for (secs, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (1_794_848_915, "2026-11-16T17:08:35.000Z"),
        ] {
            assert_eq!(format_utc(SystemTime::UNIX_EPOCH + Duration::from_secs(secs)), text);
        }
    }
}
