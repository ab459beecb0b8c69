//! The header's structs read from a segment what the library wrote there, also where several numbers share a word.

use shmlimit::headers::HeaderFormat;
use shmlimit::{Algorithm, Fairness, Limiter, Policy, PolicyDraft, RuleDraft};
use shmlimit_ffi::layout::*;
use shmlimit_kernel::policy::{
    AdaptiveDraft, Backoff, Breaker, BreakerKind, Jitter, PaceWindowDraft, WindowKind,
};
use std::time::Duration;

fn segment(directory: &std::path::Path) -> Box<shmlimit_segment> {
    let bytes = std::fs::read(directory.join("full.shm")).unwrap();
    assert!(bytes.len() >= size_of::<shmlimit_segment>());
    // SAFETY: the struct contains only integers, and there are enough bytes; they need not be aligned.
    Box::new(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}

#[test]
fn a_policy_reads_the_same_through_the_header() {
    let windows = [
        PaceWindowDraft { name: "one", limit: 7, interval: Duration::from_secs(9), kind: WindowKind::Fixed },
        PaceWindowDraft {
            name: "two",
            limit: 8,
            interval: Duration::from_secs(60),
            kind: WindowKind::Sliding,
        },
    ];
    let adaptive = AdaptiveDraft {
        parser: Some(HeaderFormat::Upbit.code()),
        threshold: 123_456,
        history: 40,
        min_samples: 4,
        short_window: Duration::from_nanos(77),
        windows: &windows,
    };
    let rule = RuleDraft {
        unit: Some("tokens"),
        ..RuleDraft::new(Algorithm::FixedWindow, 11, Duration::from_secs(3))
    };
    let policy = Policy::new(&PolicyDraft {
        provider: "somebody",
        concurrency: Some(5),
        concurrency_background: Some(3),
        fairness: Fairness::Fifo,
        background_share: 250_000,
        priorities: false,
        passthrough: true,
        rules: &[RuleDraft::new(Algorithm::Gcra, 5, Duration::from_secs(1)), rule],
        breaker: Breaker::of(BreakerKind::Consecutive).with_network_errors(false),
        backoff: Backoff::DEFAULT.with_jitter(Jitter::None),
        adaptive: Some(adaptive),
        ..PolicyDraft::default()
    })
    .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let limiter = Limiter::builder("full").directory(directory.path()).policy(policy).create().unwrap();
    let all = segment(directory.path());
    let stored = &all.policy;

    let name =
        |bytes: &[u8]| String::from_utf8(bytes.iter().copied().take_while(|b| *b != 0).collect()).unwrap();
    assert_eq!((stored.rule_count, stored.unit_count, stored.passthrough), (2, 2, 1));
    assert_eq!((stored.concurrency, stored.concurrency_background), (5, 3));
    let flags = SHMLIMIT_SEGMENT_QUEUEING_FIFO | SHMLIMIT_SEGMENT_QUEUEING_NO_PRIORITIES;
    for queueing in [&stored.queueing, &all.effective.queueing] {
        assert_eq!((queueing.flags, queueing.background_share), (flags, 250_000));
    }
    assert_eq!((all.effective.spare_rules, all.effective.unit_count, all.effective.concurrency), (6, 2, 5));
    let breaker = &stored.breaker;
    assert_eq!((breaker.kind, breaker.net_ignored), (SHMLIMIT_SEGMENT_BREAKER_CONSECUTIVE, 1));
    assert_eq!((breaker.required_successes, breaker.probe_timeout), (2, 60_000_000_000));
    assert_eq!(
        (stored.backoff.steady, stored.backoff.factor, stored.backoff.retries_background),
        (1, 2_000_000, 5)
    );
    let taught = &stored.adaptive;
    assert_eq!((taught.on, u32::from(taught.parser)), (1, HeaderFormat::Upbit as u32));
    assert_eq!((taught.window_count, taught.threshold), (2, 123_456));
    assert_eq!((taught.history, taught.min_samples, taught.short_window), (40, 4, 77));
    let [one, two, ..] = &stored.windows;
    assert_eq!((name(&one.name), one.limit, one.interval, one.sliding), ("one".into(), 7, 9_000_000_000, 0));
    assert_eq!((name(&two.name), two.limit, two.sliding), ("two".into(), 8, 1));
    assert_eq!(name(&stored.provider), "somebody");
    assert_eq!([&stored.units[0], &stored.units[1]].map(|unit| name(unit)), ["requests", "tokens"]);
    let [_, second, ..] = &stored.rules;
    assert_eq!((u32::from(second.algorithm), second.unit), (Algorithm::FixedWindow as u32, 1));
    assert_eq!((second.limit, second.period, second.window_bursts), (11, 3_000_000_000, 0));

    let slot = all.slots.iter().find(|slot| slot.owned == 1).expect("this test has opened it");
    assert_eq!(slot.pid, u64::from(std::process::id()));
    assert_eq!(all.header.size, std::fs::metadata(directory.path().join("full.shm")).unwrap().len());
    drop(limiter);
    assert!(segment(directory.path()).slots.iter().all(|slot| slot.owned == 0));
}

#[test]
fn unused_fields_are_zero() {
    let directory = tempfile::tempdir().unwrap();
    let _limiter = Limiter::builder("full")
        .directory(directory.path())
        .policy(Policy::new(&PolicyDraft::default()).unwrap())
        .create()
        .unwrap();
    let all = segment(directory.path());
    assert_eq!(all.header.unused, [0; 9]);
    assert_eq!((all.core_unused, all.origin.unused, all.effective.unused), ([0; 8], [0; 2], [0; 4]));
    assert_eq!((all.policy.unused, all.policy.unused_words, all.policy.unused_counts), (0, [0; 67], [0; 5]));
    assert_eq!(all.pause.unused, [0; 3]);
    assert_eq!((all.health_state.unused_note, all.health_state.unused_pace), ([0; 3], [0; 3]));
    assert!(all.slots.iter().all(|slot| slot.inherited == 0 && slot.unused_counts == [0; 5]));
    assert_eq!((all.queue.unused, all.queue.unused_places, all.unused), ([0; 3], [0; 8], [0; 352]));
}
