//! The pace that the kernel learns from response headers (R82 to R93).

use super::*;
use shmlimit_kernel::pace::{self, Observation};
use shmlimit_kernel::policy::{AdaptiveDraft, PaceWindowDraft, WindowKind};

fn window(name: &'static str, interval: u64, kind: WindowKind) -> PaceWindowDraft<'static> {
    PaceWindowDraft { name, limit: 100, interval: Duration::from_nanos(interval), kind }
}

fn rig(windows: &[PaceWindowDraft<'_>]) -> Rig {
    let adaptive = Some(AdaptiveDraft { windows, ..AdaptiveDraft::default() });
    Rig::new(&PolicyDraft { adaptive, ..PolicyDraft::default() })
}

fn fixed() -> Rig {
    rig(&[window("w", MINUTE, WindowKind::Fixed)])
}

/// Records headers that say that `remaining` calls are left in this window. Returns the pace interval.
fn left(rig: &mut Rig, name: &str, remaining: u64) -> u64 {
    let said = Observation { remaining: Some(remaining), ..Observation::default() };
    decide::observe(&mut rig.m, |asked| (asked == name).then_some(said), Time(rig.now));
    rig.m.pace().interval.0
}

#[test]
fn r82_invalid_numbers_are_refused_at_construction() {
    let good = AdaptiveDraft::default();
    let zero = [window("w", 0, WindowKind::Fixed)];
    let empty = [PaceWindowDraft { limit: 0, ..window("w", 1, WindowKind::Fixed) }];
    for bad in [
        AdaptiveDraft { threshold: 0, ..good },
        AdaptiveDraft { threshold: 1_000_001, ..good },
        AdaptiveDraft { history: 0, ..good },
        AdaptiveDraft { min_samples: 0, ..good },
        AdaptiveDraft { min_samples: 101, ..good },
        AdaptiveDraft { windows: &zero, ..good },
        AdaptiveDraft { windows: &empty, ..good },
    ] {
        assert!(
            Policy::new(&PolicyDraft { adaptive: Some(bad), ..PolicyDraft::default() }).is_err(),
            "{bad:?}"
        );
    }
    assert_eq!(
        (good.threshold, good.history, good.min_samples, good.short_window),
        (500_000, 100, 10, Duration::from_nanos(10 * SECOND))
    );
}

#[test]
fn r83_reaching_the_threshold_throttles() {
    assert_eq!(left(&mut fixed(), "w", 51), 0);
    assert_eq!(left(&mut fixed(), "w", 50), 1_200_000_000);
    assert_eq!(left(&mut fixed(), "w", 1000), 0, "more than the limit is no use");
}

#[test]
fn r84_r85_the_safe_interval_is_the_time_left_over_the_calls_left() {
    let mut rig = fixed();
    rig.now = 15 * SECOND;
    assert_eq!(left(&mut rig, "w", 7), (45 * SECOND).div_ceil(7), "until the minute is over");
    assert_eq!(left(&mut rig, "w", 0), 45 * SECOND);
    let mut sliding = self::rig(&[window("w", MINUTE, WindowKind::Sliding)]);
    sliding.now = 15 * SECOND;
    assert_eq!(left(&mut sliding, "w", 10), 6 * SECOND, "the whole window");
}

#[test]
fn r86_short_windows_wait_for_the_reset_or_half_of_it() {
    let mut rig = rig(&[window("w", 10 * SECOND, WindowKind::Fixed)]);
    rig.now = 3 * SECOND;
    assert_eq!(left(&mut rig, "w", 50), 7 * SECOND, "ten seconds are short");
    let mut sliding = self::rig(&[window("w", 10 * SECOND, WindowKind::Sliding)]);
    assert_eq!(left(&mut sliding, "w", 50), 5 * SECOND);
}

#[test]
fn r87_calls_that_are_slow_enough_are_not_slowed() {
    for (calls, interval) in [(10, 100_000_000), (11, 0)] {
        let mut rig =
            self::rig(&[PaceWindowDraft { limit: 1000, ..window("w", MINUTE, WindowKind::Sliding) }]);
        for _ in 0..calls {
            rig.acquire().expect("free");
            rig.now += SECOND / 10;
        }
        // 60 s / 0.1 s = 600 expected calls.
        assert_eq!(left(&mut rig, "w", 599), 0, "below the threshold");
        assert_eq!(left(&mut rig, "w", 500), 120_000_000);
        let mut rig =
            self::rig(&[PaceWindowDraft { limit: 1200, ..window("w", MINUTE, WindowKind::Sliding) }]);
        for _ in 0..calls {
            rig.acquire().expect("free");
            rig.now += SECOND / 10;
        }
        assert_eq!(left(&mut rig, "w", 600), interval, "{calls} calls");
    }
}

#[test]
fn r88_the_longest_interval_is_the_bottleneck() {
    let mut rig =
        rig(&[window("a", MINUTE, WindowKind::Sliding), window("b", 2 * MINUTE, WindowKind::Sliding)]);
    assert_eq!(left(&mut rig, "a", 30), 2 * SECOND);
    assert_eq!(left(&mut rig, "b", 30), 4 * SECOND);
    rig.acquire().expect("the first");
    let refusal = rig.acquire().expect_err("paced");
    assert_eq!(
        (refusal.reason, refusal.rule, refusal.retry_at),
        (Reason::Adaptive, Some(1), Some(Time(4 * SECOND)))
    );
}

#[test]
fn r89_r92_r127_the_ratchet_tightens_at_once_and_relaxes_after_the_interval() {
    let mut rig = rig(&[window("w", MINUTE, WindowKind::Sliding)]);
    assert_eq!(left(&mut rig, "w", 10), 6 * SECOND);
    rig.now = SECOND;
    assert_eq!(left(&mut rig, "w", 5), 12 * SECOND, "at once");
    rig.now = 13 * SECOND - 1;
    assert_eq!(left(&mut rig, "w", 5), 12 * SECOND, "equal, and not stamped again");
    assert_eq!(left(&mut rig, "w", 30), 12 * SECOND, "an older response does not relax it");
    rig.now += 1;
    assert_eq!(left(&mut rig, "w", 30), 2 * SECOND, "directly to the new value");
}

#[test]
fn r90_the_interval_is_a_gap_between_admissions() {
    let mut rig = rig(&[window("w", MINUTE, WindowKind::Sliding)]);
    left(&mut rig, "w", 30);
    rig.acquire().expect("the first");
    rig.now = SECOND;
    assert_eq!(rig.refused(), (Reason::Adaptive, Some(SECOND)));
    rig.now = 2 * SECOND;
    assert!(rig.acquire().is_ok());
}

#[test]
fn r91_r93_an_expired_window_counts_as_unused() {
    for kind in [WindowKind::Fixed, WindowKind::Sliding] {
        let mut rig = rig(&[window("w", MINUTE, kind)]);
        left(&mut rig, "w", 10);
        let status = |rig: &Rig, now| {
            let window = *rig.policy.adaptive().expect("on").windows().next().expect("one");
            pace::status(&rig.m, 0, &window, Time(now))
        };
        let now = status(&rig, 0);
        let reset = (kind == WindowKind::Fixed).then_some(Time(MINUTE));
        assert_eq!((now.limit, now.remaining, now.reset_at), (100, 10, reset));
        let last = if kind == WindowKind::Fixed { MINUTE - 1 } else { MINUTE };
        assert_eq!((status(&rig, last).remaining, status(&rig, last + 1).remaining), (10, 100));
    }
}
