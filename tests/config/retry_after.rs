//! Dates in `Retry-After` against `httpdate`, which is strict: every date that it accepts means the same here
//! (R69).

use proptest::prelude::*;
use shmlimit::headers::retry_after;
use shmlimit_kernel::Nanos;
use std::time::{Duration, SystemTime};

/// Seconds since the epoch. With the epoch as the current time, the wait is the date.
fn ours(text: &str) -> Option<u64> {
    retry_after(text, 0).map(|Nanos(wait)| wait / 1_000_000_000)
}

fn theirs(text: &str) -> Option<u64> {
    let at = httpdate::parse_http_date(text).ok()?;
    Some(at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs())
}

/// The date `Sun, 06 Nov 1994 08:49:37 GMT` in asctime format.
fn asctime(imf: &str) -> String {
    let words: Vec<&str> = imf.split(' ').collect();
    let day: u8 = words[1].parse().unwrap();
    format!("{} {} {day:2} {} {}", words[0].trim_end_matches(','), words[2], words[4], words[3])
}

/// The same date in RFC 850 format.
fn rfc850(imf: &str) -> String {
    let words: Vec<&str> = imf.split(' ').collect();
    format!(
        "{}day, {}-{}-{} {} GMT",
        words[0].trim_end_matches(','),
        words[1],
        words[2],
        &words[3][2..],
        words[4]
    )
}

#[test]
fn the_samples_are_written_as_rfc_9110_does() {
    let imf = "Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(asctime(imf), "Sun Nov  6 08:49:37 1994");
    assert_eq!(rfc850(imf), "Sunday, 06-Nov-94 08:49:37 GMT");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Up to the year 2554, in which 64-bit nanoseconds end.
    #[test]
    fn r69_every_date_is_read(seconds in 0_u64..18_446_744_073) {
        let imf = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        prop_assert_eq!(ours(&imf), Some(seconds), "{}", imf);
        let asctime = asctime(&imf);
        prop_assert_eq!(theirs(&asctime), Some(seconds), "{}", &asctime);
        prop_assert_eq!(ours(&asctime), Some(seconds), "{}", asctime);
    }

    /// R72: a two-digit year is read correctly less than 50 years before or after the date.
    #[test]
    fn r72_every_date_near_now_is_read(seconds in 1_577_836_800_u64..18_446_744_073, off in -1_577_836_000_i64..1_577_836_000) {
        let now = seconds.checked_add_signed(off).unwrap().min(18_446_744_073);
        let imf = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let text = rfc850(&imf);
        let wait = retry_after(&text, now * 1_000_000_000);
        prop_assert_eq!(wait, Some(Nanos::from_secs(seconds.saturating_sub(now))), "{} at {}", text, now);
    }

    /// Dates that are almost valid, in the two formats with an unambiguous century.
    #[test]
    fn r69_every_date_that_httpdate_accepts_is_accepted(
        weekday in "(Mon|Tue|Wed|Thu|Fri|Sat|Sun)", day in 0..33_u8, month in "(Jan|Feb|Apr|Dec)",
        year in 1969..2030_u16, hour in 0..25_u8, minute in 0..61_u8, second in 0..61_u8,
    ) {
        for text in [
            format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT"),
            format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} {year}"),
        ] {
            if let Some(at) = theirs(&text) {
                prop_assert_eq!(ours(&text), Some(at), "{}", text);
            }
        }
    }
}
