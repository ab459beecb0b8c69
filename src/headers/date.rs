//! Reads dates of headers: the three HTTP forms, leniently, and RFC 3339.

use super::calendar::Civil;
use super::number::{digits, fraction, trim};
use shmlimit_kernel::time::Nanos;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// An HTTP-date in seconds since the epoch (R69). Case, blanks between the words and a wrong day of the week are
/// accepted. The zone may be `UTC` or a number (R71).
pub(super) fn http_date(text: &str, wall_now: u64) -> Option<i64> {
    let words = text.split([' ', '\t']).filter(|word| !word.is_empty());
    // One word more than any form has, so that a long text is not read to its end.
    let words: Vec<&str> = words.take(7).collect();
    match words[..] {
        // IMF-fixdate: Sun, 06 Nov 1994 08:49:37 GMT
        [weekday, day, month, year, time, zone] => {
            let date = Date { year: digits(year, 4)?, month: month_of(month)?, day: digits(day, 2)? };
            weekday_with_comma(weekday)?;
            date.at(time_of(time)?, zone_of(zone)?)
        }
        // RFC 850: Sunday, 06-Nov-94 08:49:37 GMT
        [weekday, date, time, zone] => {
            let (day, month_year) = date.split_once('-')?;
            let (month, year) = month_year.split_once('-')?;
            let date = Date { year: digits(year, 2)?, month: month_of(month)?, day: digits(day, 2)? };
            weekday_with_comma(weekday)?;
            date.in_its_century(time_of(time)?, zone_of(zone)?, wall_now)
        }
        // asctime: Sun Nov  6 08:49:37 1994
        [weekday, month, day, time, year] => {
            let day = digits(day, 2).or_else(|| digits(day, 1))?;
            let date = Date { year: digits(year, 4)?, month: month_of(month)?, day };
            is_word(weekday).then_some(())?;
            date.at(time_of(time)?, 0)
        }
        _ => None,
    }
}

/// An RFC 3339 timestamp, `2026-01-31T23:59:59.5Z`, in seconds and nanoseconds since the epoch.
pub(super) fn rfc3339(text: &str) -> Option<(i64, Nanos)> {
    let (date, time) = trim(text).split_at_checked(10)?;
    let mut parts = date.split('-');
    let (year, month, day) =
        (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let time = time.strip_prefix(['T', 't', ' '])?;
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = time.split_at(zone);
    let offset = match zone.split_at(1) {
        ("+" | "-", hours) => offset_of(&zone[..1], hours.get(..2)?, hours.get(2..)?.strip_prefix(':')?)?,
        (_, "") => 0,
        _ => return None,
    };
    let (time, part) = time.split_once('.').unwrap_or((time, "0"));
    let nanos = fraction(part, Nanos::from_secs(1))?;
    Some((Date { year, month, day }.at(time_of(time)?, offset)?, nanos))
}

#[derive(Clone, Copy)]
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

impl Date {
    fn with(self, [hour, minute, second]: [i64; 3]) -> Civil {
        Civil { year: self.year, month: self.month, day: self.day, hour, minute, second }
    }

    /// Seconds since the epoch; `None` if the date or the time does not exist.
    fn at(self, time: [i64; 3], offset: i64) -> Option<i64> {
        let civil = self.with(time);
        civil.exists().then(|| civil.seconds() - offset)
    }

    /// The same for a year of two digits: the latest matching year that is at most 50 years ahead (R72).
    fn in_its_century(mut self, time: [i64; 3], offset: i64, wall_now: u64) -> Option<i64> {
        let mut latest = Civil::at((wall_now / 1_000_000_000) as i64);
        latest.year += 50;
        self.year += latest.year - latest.year % 100 + 100;
        while self.with(time).seconds() - offset > latest.seconds() {
            self.year -= 100;
        }
        self.at(time, offset)
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Accepts any day of the week, because the date determines it (R71).
fn weekday_with_comma(text: &str) -> Option<()> {
    is_word(text.strip_suffix(',')?).then_some(())
}

fn month_of(text: &str) -> Option<i64> {
    let index = MONTHS.iter().position(|month| month.eq_ignore_ascii_case(text))?;
    i64::try_from(index + 1).ok()
}

fn time_of(text: &str) -> Option<[i64; 3]> {
    let (hour, rest) = text.split_once(':')?;
    let (minute, second) = rest.split_once(':')?;
    Some([digits(hour, 2)?, digits(minute, 2)?, digits(second, 2)?])
}

/// The offset of a zone from UTC, in seconds.
fn zone_of(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("GMT") || text.eq_ignore_ascii_case("UTC") {
        return Some(0);
    }
    offset_of(text.get(..1)?, text.get(1..3)?, text.get(3..)?)
}

fn offset_of(sign: &str, hours: &str, minutes: &str) -> Option<i64> {
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = hours * 3600 + minutes * 60;
    match sign {
        "+" => Some(seconds),
        "-" => Some(-seconds),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
