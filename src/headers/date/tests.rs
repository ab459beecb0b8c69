//! Tests dates of every form. `tests/config/retry_after.rs` compares the results with another parser.

use super::*;

/// 2026-11-16T10:00:00Z
const NOW: u64 = 1_794_823_200_000_000_000;
/// The moment that RFC 9110 writes in all three forms.
const EXAMPLE: i64 = 784_111_777;

fn read(text: &str) -> Option<i64> {
    http_date(text, NOW)
}

#[test]
fn r69_all_three_forms_are_read() {
    assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(EXAMPLE));
    assert_eq!(read("Sunday, 06-Nov-94 08:49:37 GMT"), Some(EXAMPLE));
    assert_eq!(read("Sun Nov  6 08:49:37 1994"), Some(EXAMPLE));
    assert_eq!(read("Sun Nov 06 08:49:37 1994"), Some(EXAMPLE));
    assert_eq!(read("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    assert_eq!(read("Fri, 31 Dec 9999 23:59:59 GMT"), Some(253_402_300_799));
    assert!(read("Sat, 01 Jan 0000 00:00:00 GMT").unwrap() < 0);
}

#[test]
fn r71_dates_are_read_leniently() {
    for text in [
        "sun, 06 nov 1994 08:49:37 gmt",
        "SUN, 06 NOV 1994 08:49:37 GMT",
        "Fri, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Xxx, 06 Nov 1994 08:49:37 GMT",
        "Sun,  06\tNov 1994   08:49:37  GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 utc",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37 -0000",
        "Sun, 06 Nov 1994 09:49:37 +0100",
        "Sun, 06 Nov 1994 14:19:37 +0530",
        "Sat, 05 Nov 1994 23:49:37 -0900",
        "sunday, 06-nov-94 08:49:37 utc",
        "Sunday, 06-Nov-94 03:49:37 -0500",
        "sun nov 6 08:49:37 1994",
        "Mon Nov  6 08:49:37 1994",
    ] {
        assert_eq!(read(text), Some(EXAMPLE), "{text}");
    }
    assert_eq!(read("Sat, 31 Dec 2016 23:59:60 GMT"), Some(1_483_228_800), "a leap second");
    assert_eq!(read("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
    assert_eq!(read("Tue, 29 Feb 2000 00:00:00 GMT"), Some(951_782_400));
}

#[test]
fn r71_invalid_date_is_malformed() {
    for text in [
        "",
        "soon",
        "Sun, 06 Nov 1994",
        "Sun, 06 Nov 1994 08:49:37",
        "06 Nov 1994 08:49:37 GMT",
        "Sun 06 Nov 1994 08:49:37 GMT",
        "Sun,06 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06 November 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 1994 08:49:37:00 GMT",
        "Sun, 06 Nov 1994 08:49:37.5 GMT",
        "Sun, 06 Nov 1994 08:49:37 EST",
        "Sun, 06 Nov 1994 08:49:37 Z",
        "Sun, 06 Nov 1994 08:49:37 0000",
        "Sun, 06 Nov 1994 08:49:37 +00",
        "Sun, 06 Nov 1994 08:49:37 +00:00",
        "Sun, 06 Nov 1994 08:49:37 +2400",
        "Sun, 06 Nov 1994 08:49:37 +0060",
        "Sun, 06 Nov 1994 08:49:37 é000",
        "Sun, 06 Nov 1994 08:49:37 GMT GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Wed, 29 Feb 2023 00:00:00 GMT",
        "Thu, 29 Feb 1900 00:00:00 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov -994 08:49:37 GMT",
        "Sun, +6 Nov 1994 08:49:37 GMT",
        "Sun, ٠٦ Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37",
        "Sunday, 06-Nov 08:49:37 GMT",
        "Sun Nov  6 08:49:37 94",
        "Sun, Nov  6 08:49:37 1994",
        "Sun Nov  6 08:49:37 1994 GMT",
        "1994-11-06T08:49:37Z",
        "1994-11-06 08:49:37 +0000",
        "784111777 GMT",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
    assert_eq!(read(&"a ".repeat(32768)), None);
}

#[test]
fn r72_a_year_of_two_digits_is_at_most_50_years_ahead() {
    let year = |text: &str, now| http_date(text, now).map(|at| Civil::at(at).year);
    // The limit is exact to the second: 50 years from 2026-11-16T10:00:00.
    assert_eq!(year("Monday, 16-Nov-76 10:00:00 GMT", NOW), Some(2076));
    assert_eq!(year("Monday, 16-Nov-76 10:00:01 GMT", NOW), Some(1976));
    assert_eq!(year("Monday, 16-Nov-76 11:00:00 +0100", NOW), Some(2076));
    assert_eq!(year("Monday, 16-Nov-76 10:00:00 -0001", NOW), Some(1976));
    assert_eq!(year("Monday, 01-Jan-76 00:00:00 GMT", NOW), Some(2076));
    assert_eq!(year("Monday, 01-Jan-77 00:00:00 GMT", NOW), Some(1977));
    assert_eq!(year("Monday, 01-Jan-26 00:00:00 GMT", NOW), Some(2026));
    assert_eq!(year("Monday, 01-Jan-00 00:00:00 GMT", NOW), Some(2000));
    assert_eq!(year("Monday, 01-Jan-99 00:00:00 GMT", NOW), Some(1999));
    // Near the end of a century the year may be in the next one. At the epoch the same rule applies.
    let in_1999 = 946_684_799_000_000_000;
    assert_eq!(year("Saturday, 01-Jan-00 00:00:00 GMT", in_1999), Some(2000));
    assert_eq!(year("Saturday, 01-Jan-49 00:00:00 GMT", in_1999), Some(2049));
    assert_eq!(year("Saturday, 01-Jan-50 00:00:00 GMT", in_1999), Some(1950));
    assert_eq!(year("Saturday, 01-Jan-20 00:00:00 GMT", 0), Some(2020));
    assert_eq!(year("Saturday, 02-Jan-20 00:00:00 GMT", 0), Some(1920));
    // In UTC this moment is still in 2099, less than 50 years after the last hour of 2049.
    assert_eq!(year("Friday, 01-Jan-00 00:30:00 +0200", 2_524_604_400_000_000_000), Some(2099));
    assert_eq!(year("Saturday, 01-Jan-99 00:00:00 GMT", u64::MAX), Some(2599));
    // The day must exist in that year: 2100 and 1900 have no 29 February, 2000 has one.
    assert_eq!(year("Tuesday, 29-Feb-00 00:00:00 GMT", NOW), Some(2000));
    assert_eq!(year("Tuesday, 29-Feb-00 00:00:00 GMT", 3_000_000_000_000_000_000), None);
}

#[test]
fn r138_rfc3339_timestamps_are_read_to_the_nanosecond() {
    let at = |seconds| Some((seconds, Nanos::ZERO));
    assert_eq!(rfc3339("1994-11-06T08:49:37Z"), at(EXAMPLE));
    assert_eq!(rfc3339("1994-11-06t08:49:37z"), at(EXAMPLE));
    assert_eq!(rfc3339(" 1994-11-06 08:49:37Z\t"), at(EXAMPLE));
    assert_eq!(rfc3339("1994-11-06T09:49:37+01:00"), at(EXAMPLE));
    assert_eq!(rfc3339("1994-11-06T03:19:37-05:30"), at(EXAMPLE));
    assert_eq!(rfc3339("1994-11-06T08:49:37.5Z"), Some((EXAMPLE, Nanos(500_000_000))));
    assert_eq!(rfc3339("1994-11-06T08:49:37.000000001+00:00"), Some((EXAMPLE, Nanos(1))));
    for bad in [
        "",
        "1994-11-06",
        "1994-11-06T08:49:37",
        "1994-11-06T08:49:37ZZ",
        "1994-11-06T08:49:37+0100",
        "1994-11-06T08:49:37+1:00",
        "1994-11-06T08:49:37+24:00",
        "1994-11-06T08:49:37.Z",
        "1994-11-06T08:49Z",
        "1994-11-06T8:49:37Z",
        "1994-13-06T08:49:37Z",
        "1994-02-29T08:49:37Z",
        "1994/11/06T08:49:37Z",
        "94-11-06T08:49:37Z",
        "1994-11-06X08:49:37Z",
        "1994-11-0éT08:49:37Z",
        "1994-11-06T08:49:37+é0:00",
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "784111777",
    ] {
        assert_eq!(rfc3339(bad), None, "{bad:?}");
    }
}
