//! Waiting calls in odd circumstances: clocks set back, limiters replaced, the lock out of reach, crowds that die.

mod common;

use common::queued::{poll, queued};
use common::raw::Raw;
use common::{builder, directory, permits, segment_path};
use shmlimit::Request;
use shmlimit::internals::layout;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// As if the limiter was made a second after a boot, and then the machine booted again with a wall clock that had gone
/// back: its time begins where it was, behind the machine's.
#[test]
fn r132_r134_a_timeout_ends_also_where_the_limiters_clock_is_behind_the_machines() {
    let directory = directory();
    drop(builder(directory.path()).policy(permits(1)).open().unwrap());
    let raw = Raw::map(&segment_path(directory.path()));
    let second = 1_000_000_000;
    raw.word(layout::BOOT).fetch_xor(1, Ordering::Relaxed);
    for (word, value) in
        [(layout::ANCHOR_TIME, second), (layout::ANCHOR_WALL, u64::MAX / 2), (layout::CORE, second)]
    {
        raw.word(word).store(value, Ordering::Relaxed);
    }
    let limiter = builder(directory.path()).policy(permits(1)).open().unwrap();
    assert!(raw.word(layout::CLOCK_OFFSET).load(Ordering::Relaxed).cast_signed() < 0, "the machine is young");
    let _permit = limiter.acquire(&Request::new()).unwrap();

    let timeout = Duration::from_secs(3600);
    let (request, awake) = (Request::new().timeout(timeout), Cell::new(false));
    let mut call = queued(&limiter, &request, &awake);
    assert!(poll(&mut call).is_pending());
    let left = limiter.snapshot().unwrap().queue[0].gives_up_in;
    assert!(left.is_some_and(|left| left <= timeout), "{left:?}");
}
