//! Reads `Retry-After`: seconds or a date (R69 to R72).

use super::Header;
use super::calendar::until;
use super::date::http_date;
use super::number::{decimal, trim};
use shmlimit_kernel::time::Nanos;

/// The wait that a value of `Retry-After` means, from now. `wall_now` is in nanoseconds since the Unix epoch.
///
/// Zero, a negative number and a past date give 0. A value that is too long for `Nanos` gives the longest. `None`
/// means malformed (R71). The shortest and longest allowed wait (R70, R71) belong to the policy and are not applied
/// here.
pub fn retry_after(value: &str, wall_now: u64) -> Option<Nanos> {
    let value = trim(value);
    let second = Nanos::from_secs(1);
    if let Some(number) = value.strip_prefix('-') {
        return decimal(number, second).map(|_| Nanos::ZERO);
    }
    let date = || http_date(value, wall_now).map(|at| until(at, Nanos::ZERO, wall_now));
    decimal(value, second).or_else(date)
}

/// The wait of the `Retry-After` among these headers; of several, the longest (R99).
pub fn retry_after_in(headers: &[Header<'_>], wall_now: u64) -> Option<Nanos> {
    let mine = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
    mine.filter_map(|(_, value)| retry_after(value, wall_now)).max()
}

#[cfg(test)]
mod tests {
    //! Tests every rule about `Retry-After` with the samples of the requirements.

    use super::*;

    /// 1994-11-06T08:49:00.5Z
    const NOW: u64 = 784_111_740_500_000_000;

    fn read(value: &str) -> Option<u64> {
        retry_after(value, NOW).map(|wait| wait.0)
    }

    #[test]
    fn r69_seconds_and_all_date_forms_are_read() {
        assert_eq!(read("2"), Some(2_000_000_000));
        assert_eq!(read("120"), Some(120_000_000_000));
        for date in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(read(date), Some(36_500_000_000), "{date}");
        }
    }

    #[test]
    fn r70_zero_negative_and_past_values_give_no_wait() {
        for value in
            ["0", "0.0", "-0", "-5", "-1.5", "-99999999999999999999999", "Sun, 06 Nov 1994 08:49:00 GMT"]
        {
            assert_eq!(read(value), Some(0), "{value}");
        }
        assert_eq!(read("Sun, 06 Nov 1904 08:49:37 GMT"), Some(0));
    }

    #[test]
    fn r71_harmless_deviations_are_accepted() {
        for value in [" 5", "5 ", "\t5\t", "05", "5.0"] {
            assert_eq!(read(value), Some(5_000_000_000), "{value:?}");
        }
        assert_eq!(read("1.5"), Some(1_500_000_000));
        for date in [
            "  sun, 06 nov 1994 08:49:37 gmt  ",
            "Tue, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 10:49:37 +0200",
        ] {
            assert_eq!(read(date), Some(36_500_000_000), "{date}");
        }
    }

    #[test]
    fn r71_malformed_value_gives_none() {
        for value in [
            "",
            " ",
            "-",
            "--5",
            "- 5",
            "+5",
            "5s",
            "5, 6",
            "5,6",
            "5 6",
            "1e3",
            "0x10",
            "1.",
            ".5",
            "1.5.1",
            "NaN",
            "inf",
            "∞",
            "٥",
            "\u{ff15}",
            "−5",
            "5\0",
            "5\r\n",
            "\r\n5",
            "1994-11-06T08:49:37Z",
            "1994-11-06",
            "tomorrow",
            "Sun, 06 Nov 1994 08:49:37",
            "-Sun, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(read(value), None, "{value:?}");
        }
    }

    #[test]
    fn r71_huge_value_saturates_and_is_not_malformed() {
        assert_eq!(read("18446744073"), Some(18_446_744_073_000_000_000));
        for value in ["18446744074", &"9".repeat(19), &"9".repeat(65536), "Fri, 31 Dec 9999 23:59:59 GMT"] {
            assert_eq!(read(value), Some(u64::MAX), "{} characters", value.len());
        }
    }

    #[test]
    fn r72_a_year_of_two_digits_follows_the_clock() {
        let value = "Sunday, 06-Nov-94 08:49:37 GMT";
        // The year is 1994 for a clock in 2026 or 1970, and 2094 for a clock in 2050.
        assert_eq!(retry_after(value, 1_794_823_200_000_000_000), Some(Nanos::ZERO));
        assert_eq!(retry_after(value, 0), Some(Nanos::from_secs(784_111_777)));
        let in_2050 = 2_524_608_000;
        let wait = retry_after(value, in_2050 * 1_000_000_000).unwrap();
        assert_eq!(wait, Nanos::from_secs(784_111_777 + 36_525 * 86_400 - in_2050));
    }

    #[test]
    fn r99_longest_wait_of_several_headers_is_used() {
        let headers = [
            ("Date", "9"),
            ("retry-after", "2"),
            ("Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("RETRY-AFTER", "5 minutes"),
            ("Retry-After", "7"),
            ("X-Retry-After", "9999"),
        ];
        assert_eq!(retry_after_in(&headers, NOW), Some(Nanos(36_500_000_000)));
        assert_eq!(retry_after_in(&headers[..2], NOW), Some(Nanos::from_secs(2)));
        assert_eq!(retry_after_in(&headers[3..4], NOW), None);
        assert_eq!(retry_after_in(&[], NOW), None);
    }
}
