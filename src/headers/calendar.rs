//! Converts between dates and seconds since the Unix epoch, in the calendar that HTTP uses.

use shmlimit_kernel::time::Nanos;

const DAY: i64 = 86_400;

/// A date and a time of day; `second` may be 60.
#[derive(Clone, Copy)]
pub(super) struct Civil {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
}

impl Civil {
    /// Whether this date and time exist. A leap second is accepted on any date.
    pub(super) fn exists(&self) -> bool {
        (1..=12).contains(&self.month)
            && (1..=days_in(self.year, self.month)).contains(&self.day)
            && (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..=60).contains(&self.second)
    }

    /// Seconds since the Unix epoch. A leap second counts as the first second of the next minute. 29 February of a
    /// year without a leap day counts as 1 March.
    pub(super) fn seconds(&self) -> i64 {
        days_until(self.year, self.month, self.day) * DAY + self.hour * 3600 + self.minute * 60 + self.second
    }

    /// The date and time at this number of seconds since the Unix epoch.
    pub(super) fn at(seconds: i64) -> Civil {
        let (days, rest) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        // The average year is a little shorter than 366 days, so this is the year itself or a year shortly before
        // it.
        let mut year = 1970 + days.div_euclid(366);
        while days_until(year + 1, 1, 1) <= days {
            year += 1;
        }
        let mut month = 12;
        while days_until(year, month, 1) > days {
            month -= 1;
        }
        let day = days - days_until(year, month, 1) + 1;
        Civil { year, month, day, hour: rest / 3600, minute: rest / 60 % 60, second: rest % 60 }
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The number of days from the Unix epoch to a date.
fn days_until(year: i64, month: i64, day: i64) -> i64 {
    let before = year - 1;
    let leap_days = before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400);
    let months: i64 = (1..month).map(|month| days_in(year, month)).sum();
    // There are 719 162 days between 1 January of year 1 and the epoch.
    before * 365 + leap_days - 719_162 + months + day - 1
}

/// The time from now until a point given in seconds and nanoseconds since the epoch; zero if that point is past.
pub(super) fn until(seconds: i64, nanos: Nanos, wall_now: u64) -> Nanos {
    let at = i128::from(seconds) * 1_000_000_000 + i128::from(nanos.0);
    let wait = (at - i128::from(wall_now)).max(0);
    Nanos(u64::try_from(wait).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r69_days_agree_with_the_calendar() {
        // Counts every day from year 0 to 2600 one by one, so that the test does not repeat an error of the
        // formula.
        let (mut year, mut month, mut day) = (0, 1, 1);
        let mut days = days_until(0, 1, 1);
        assert_eq!(days, -719_528);
        while year < 2600 {
            assert_eq!(days_until(year, month, day), days, "{year}-{month}-{day}");
            if year >= 1970 {
                let back = Civil::at(days * DAY + 86_399);
                assert_eq!((back.year, back.month, back.day), (year, month, day));
                assert_eq!((back.hour, back.minute, back.second), (23, 59, 59));
            }
            days += 1;
            let long = [1, 3, 5, 7, 8, 10, 12].contains(&month);
            let february = if year % 400 == 0 || (year % 4 == 0 && year % 100 != 0) { 29 } else { 28 };
            let last = if month == 2 { february } else { 30 + i64::from(long) };
            day += 1;
            if day > last {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!(days_until(1970, 1, 1), 0);
    }

    #[test]
    fn r70_past_time_gives_no_wait_and_distant_time_saturates() {
        assert_eq!(until(5, Nanos(1), 2_000_000_000), Nanos(3_000_000_001));
        assert_eq!(until(5, Nanos(1), 5_000_000_001), Nanos::ZERO);
        assert_eq!(until(5, Nanos::ZERO, u64::MAX), Nanos::ZERO);
        assert_eq!(until(-1, Nanos::ZERO, 0), Nanos::ZERO);
        assert_eq!(until(253_402_300_799, Nanos::ZERO, 0), Nanos(u64::MAX));
    }
}
