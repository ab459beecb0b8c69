//! Checks the clocks that all limiters of the machine share.

use super::finding::Finding;
use crate::platform::texts;
use crate::ui::time;
use shmlimit::ClockFacts;
use std::time::Duration;

const CHECK: &str = "clock";
/// The first day of 2024, in Unix seconds. No clock that is set correctly shows an earlier time.
const LONG_AGO: u64 = 1_704_067_200;

pub fn check() -> Finding {
    let facts = match ClockFacts::read() {
        Ok(facts) => facts,
        Err(error) => {
            return Finding::bad(CHECK, "clock", format!("the machine's clock cannot be read: {error}"))
                .advice(texts::CLOCK_UNREADABLE);
        }
    };
    if facts.wall < Duration::from_secs(LONG_AGO) {
        return Finding::warn(
            CHECK,
            "clock",
            "the wall clock is years behind, so calendar windows begin at wrong times",
        )
        .advice(texts::SET_THE_CLOCK);
    }
    let shift = match facts.namespace_shift {
        0 => String::new(),
        shift => {
            let by = time::format_age(Duration::from_nanos(shift.unsigned_abs()));
            format!("; this time namespace has an offset of {by}, which shmlimit corrects")
        }
    };
    Finding::ok(
        CHECK,
        "clock",
        format!("booted {} ago, time in suspend included{shift}", time::format_age(facts.since_boot)),
    )
}
