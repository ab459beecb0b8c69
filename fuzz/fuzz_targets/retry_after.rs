//! R71: parses any text as Retry-After. Nothing panics, and a value that a strict parser accepts has the same
//! meaning here.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shmlimit_kernel::Nanos;
use shmlimit::headers::retry_after;
use std::time::SystemTime;

fuzz_target!(|input: (u64, &str)| {
    let (wall_now, text) = input;
    let wait = retry_after(text, wall_now);
    assert_eq!(retry_after(&format!(" {text}\t"), wall_now), wait);
    if let Ok(seconds) = text.parse::<u32>()
        && !text.starts_with('+')
    {
        assert_eq!(wait, Some(Nanos::from_secs(seconds.into())));
    }
    // `httpdate` treats line ends as blanks, which they are not in a header. Two-digit years are tested elsewhere
    // (R72).
    if let Ok(date) = httpdate::parse_http_date(text)
        && text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'-')
    {
        let at = date.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
        let expected = at.saturating_sub(wall_now.into()).min(u64::MAX.into());
        assert_eq!(u128::from(wait.unwrap().0), expected);
    }
});
