//! How a segment handles dead processes, damage and another boot, on real files.

use super::*;
use crate::directory::{Allowances, Directory};
use crate::file::create;
use crate::file::initial_state::InitialState;
use crate::layout::SLOTS;
use crate::layout::{slot, slot_base};
use crate::paths::{Candidate, LimiterName};
use crate::sys;
use shmlimit_kernel::health_state::{HealthStateView, RAMPING};
use shmlimit_kernel::outcome::{OutcomeClass, Report};
use shmlimit_kernel::policy::{
    AdaptiveDraft, Algorithm, Breaker, BreakerKind, LEAST_RAMP_FACTOR, PaceWindowDraft, PerSecond,
    PolicyDraft, RuleDraft, WindowKind,
};
use shmlimit_kernel::state::{Held, Memory, View};
use shmlimit_kernel::time::Nanos;
use shmlimit_kernel::{LocalMemory, decide, rule};
use std::time::Duration;

pub fn segment(directory: &tempfile::TempDir) -> Segment {
    let daily = RuleDraft::new(Algorithm::Gcra, 10, Duration::from_secs(86_400));
    make(directory, Policy::new(&PolicyDraft { rules: &[daily], ..PolicyDraft::default() }).unwrap())
}

fn make(directory: &tempfile::TempDir, policy: Policy) -> Segment {
    let candidate = Candidate::chosen(directory.path());
    let directory = Directory::find(&[candidate], Allowances::default()).unwrap();
    let name = LimiterName::new("tmdb").unwrap();
    assert!(create::create(&directory, &name, policy, Duration::ZERO).unwrap());
    let bounds =
        AttachOptions { lock: Duration::from_millis(200), stall: Duration::ZERO, ..AttachOptions::default() };
    Segment::attach(crate::file::open(&directory, &name).unwrap().unwrap(), bounds).unwrap()
}

pub fn attach_again(directory: &tempfile::TempDir) -> Segment {
    let candidate = Candidate::chosen(directory.path());
    let found = Directory::find(&[candidate], Allowances::default()).unwrap();
    let verified = crate::file::open(&found, &LimiterName::new("tmdb").unwrap()).unwrap().unwrap();
    Segment::attach(verified, AttachOptions::default()).unwrap()
}

/// Makes a slot without a living owner that holds permits, and counts them as in flight.
fn dead_with_permits(segment: &Segment, permits: u32) -> usize {
    let dead = (segment.attachment().unwrap().slot + 1) % SLOTS;
    let held = Held { total: permits, background: permits }.to_word();
    segment.words.store(slot_base(dead) + slot::HELD, held);
    segment.words.store(layout::CORE + 1, held);
    dead
}

/// The reclaimer must not wait for the lock of the process that it reclaims: no other process could take the lock
/// over meanwhile.
#[test]
fn r113_process_that_died_with_permits_and_the_lock_is_reclaimed_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let segment = segment(&directory);
    let attachment = segment.attachment().unwrap();
    let dead = dead_with_permits(&segment, 1);
    segment.words.store(slot_base(dead) + slot::STATE, 1);
    segment.words.lock().store((dead as u32 + 1) << 20, Ordering::Relaxed);

    let _ = segment.reclaim_slot(&attachment, dead, &Deadline::within(Duration::ZERO)).unwrap();
    assert!(!slots::is_owned(&segment.words, dead));
    assert_eq!(segment.look(|view| view.core().in_flight).unwrap(), 0);
}

/// The liveness locks of a deleted file cannot be tested, so no process could take over the lock of its last holder
/// either.
#[test]
fn deleted_segment_whose_lock_holder_died_passes_on_its_policy_and_an_empty_budget() {
    let directory = tempfile::tempdir().unwrap();
    let segment = segment(&directory);
    let dead = (segment.attachment().unwrap().slot + 1) % SLOTS;
    let whole = segment.seed().unwrap();
    segment.words.lock().store((dead as u32 + 1) << 20, Ordering::Relaxed);
    segment.words.store(layout::VERSION, 7);
    std::fs::remove_file(segment.path()).unwrap();

    let seed = segment.seed().unwrap();
    assert_eq!(seed.policy, whole.policy);
    let now = Time(Clock::discover().unwrap().now());
    let left = |seed: &InitialState| {
        let memory = LocalMemory::new(&seed.policy);
        rule::available(&memory, &rule::RuleContext::of(&memory, 0, now), seed.rule(0), false)
    };
    assert_eq!((left(&whole), left(&seed)), (10, 0));
}

/// The wall clock decides which window is used up. A window of the limiter's own clock would be over long ago.
#[test]
fn deleted_segment_whose_lock_holder_died_passes_on_used_up_calendar_windows() {
    let directory = tempfile::tempdir().unwrap();
    let segment = segment(&directory);
    // A window that began around the year 2001 and does not end during this test.
    let window = RuleDraft::new(Algorithm::FixedWindow, 10, Duration::from_secs(1_000_000_000));
    let policy = Policy::new(&PolicyDraft { rules: &[window], ..PolicyDraft::default() }).unwrap();
    segment.change_policy(|_| Ok(policy)).unwrap();
    segment.words.store(layout::VERSION, 7);
    std::fs::remove_file(segment.path()).unwrap();

    let seed = segment.seed().unwrap();
    let [until, count, ..] = seed.rule(0).0;
    let left = Nanos::of(window.period).0 - sys::wall_now() % Nanos::of(window.period).0;
    let ends_in = until - segment.now(&segment.attachment().unwrap()).0;
    assert!(ends_in.abs_diff(left) < 60_000_000_000, "the window that is used up is the one of now");
    assert_eq!(count, 10);
}

/// A caller that never has time to sleep must still get past the lock of a dead holder.
#[test]
fn p2_caller_with_no_time_left_takes_over_the_lock_of_a_dead_process() {
    let directory = tempfile::tempdir().unwrap();
    let segment = segment(&directory);
    let attachment = segment.attachment().unwrap();
    let dead = (attachment.slot + 1) % SLOTS;
    segment.words.lock().store((dead as u32 + 1) << 20, Ordering::Relaxed);
    segment.transact(&attachment, &Deadline::within(Duration::ZERO), |_, _| ()).unwrap();

    segment.words.lock().store((attachment.slot as u32 + 1) << 20, Ordering::Relaxed);
    let busy = segment.transact(&attachment, &Deadline::within(Duration::ZERO), |_, _| ()).unwrap_err();
    assert!(matches!(*busy, Error::Busy { .. }), "nothing is taken over from a living process: {busy}");
    segment.words.lock().store(0, Ordering::Relaxed);
}

#[test]
fn r136_a_participant_does_not_inherit_the_counts_of_its_predecessor() {
    let directory = tempfile::tempdir().unwrap();
    let segment = segment(&directory);
    for slot in 0..SLOTS {
        segment.words.store(slot_base(slot) + slot::GRANTED, u64::MAX);
        segment.words.store(slot_base(slot) + slot::REFUSED, 1);
    }
    let other = attach_again(&directory);
    let newcomer = slots::participant(&other.words, other.attachment().unwrap().slot).unwrap();
    assert_eq!((newcomer.granted, newcomer.refused), (0, 0));
}

/// A reset counts what every slot says it holds, so permits in a slot without an owner must come back as well.
#[test]
fn p3_permits_in_a_slot_whose_owner_mark_was_damaged_are_reclaimed() {
    let directory = tempfile::tempdir().unwrap();
    let segment = segment(&directory);
    let attachment = segment.attachment().unwrap();
    dead_with_permits(&segment, 3);
    assert!(segment.reclaim(&attachment, &Deadline::within(Duration::ZERO)).unwrap());
    assert_eq!(segment.look(|view| view.core().in_flight).unwrap(), 0);
}

/// R132: a caller with no time left is refused immediately, although dead processes cannot be reclaimed while a
/// living process holds the lock.
#[test]
fn r132_reclaiming_exited_processes_ends_at_the_deadline_of_the_caller() {
    let directory = tempfile::tempdir().unwrap();
    let segment = segment(&directory);
    let attachment = segment.attachment().unwrap();
    let dead = dead_with_permits(&segment, 1);
    segment.words.store(slot_base(dead) + slot::STATE, 1);
    // To this call it looks as if another thread of this process holds the lock.
    segment.words.lock().store((attachment.slot as u32 + 1) << 20, Ordering::Relaxed);
    match segment.reclaim(&attachment, &Deadline::within(Duration::ZERO)) {
        Err(Error::Busy { waited, pid, .. }) => {
            assert_eq!((waited, pid), (Duration::ZERO, std::process::id()))
        }
        other => panic!("{other:?}"),
    }
    segment.words.lock().store(0, Ordering::Relaxed);
}

/// Some containers have a boot identity of their own. The clock is still the machine's clock, and a wall clock that
/// was set meanwhile must not become the limiter's time.
#[test]
fn r135_different_boot_identity_is_not_a_reboot_while_other_participants_live() {
    let directory = tempfile::tempdir().unwrap();
    let segment = segment(&directory);
    let attachment = segment.attachment().unwrap();
    let day = 86_400_000_000_000;
    segment.words.store(layout::BOOT, !segment.words.load(layout::BOOT));
    for wall in [layout::ANCHOR_WALL, layout::LATEST_WALL] {
        segment.words.store(wall, segment.words.load(wall) - day);
    }
    let before = segment.now(&attachment);

    let again = attach_again(&directory);
    assert!(segment.now(&attachment).since(before).0 < day / 2, "a day was given away");
    drop(again);

    // After a reboot the machine's clock starts again from zero.
    segment.words.store(layout::CLOCK_OFFSET, 0_u64.wrapping_sub(3 * day));
    let before = segment.words.load(layout::ANCHOR_TIME);
    for wall in [layout::ANCHOR_WALL, layout::LATEST_WALL] {
        segment.words.store(wall, segment.words.load(wall) - day);
    }
    let again = attach_again(&directory);
    assert!(segment.now(&again.attachment().unwrap()).0 >= before + day, "the time it was off has passed");
}

/// A policy whose breaker raises the rate after recovery in the smallest possible steps: about 700 of them.
fn with_a_slow_ramp() -> Policy {
    let rule = RuleDraft::new(Algorithm::TokenBucket, 1000, Duration::from_secs(1));
    let mut breaker = Breaker::of(BreakerKind::Fsm);
    (breaker.ramp_factor, breaker.s_probe_ok) = (LEAST_RAMP_FACTOR, 1);
    Policy::new(&PolicyDraft { rules: &[rule], breaker, ..PolicyDraft::default() }).unwrap()
}

fn recover_by_a_probe(m: &mut impl Memory, now: Time) {
    assert!(decide::force(m, decide::BreakerCommand::HalfOpen, now));
    decide::record(m, 0, None, &Report::new(OutcomeClass::Ok), now);
    assert!(m.health().has(RAMPING));
}

const A_YEAR: Nanos = Nanos::from_secs(365 * 86_400);

/// The ramp has more overdue steps than a journal holds words. If each step were journaled, no call on this limiter
/// could ever succeed again.
#[test]
fn r62_long_overdue_ramp_catches_up_in_one_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let segment = segment(&directory);
    let attachment = segment.attachment().unwrap();
    segment.change_policy(|_| Ok(with_a_slow_ramp())).unwrap();
    let transact = |work: &dyn Fn(&mut Tx<'_>, Time)| {
        let done = segment.transact(&attachment, &segment.deadline(), |tx, now| {
            work(tx, now);
            segment.commit(tx)
        });
        done.unwrap().unwrap();
    };
    transact(&|tx, now| recover_by_a_probe(tx, now));
    transact(&|tx, now| decide::tick(tx, now.plus(A_YEAR)));
    let health = segment.look(|view| view.health()).unwrap();
    assert!(!health.has(RAMPING) && health.rate == PerSecond(0), "the full rate");
}

#[test]
fn r62_result_of_a_ramp_does_not_depend_on_how_often_it_is_checked() {
    let policy = with_a_slow_ramp();
    let [mut seldom, mut often] = [(); 2].map(|()| LocalMemory::new(&policy));
    let start = Time(1_000_000_000_000);
    for m in [&mut seldom, &mut often] {
        recover_by_a_probe(m, start);
    }
    for minutes in (0..5 * 200).step_by(5) {
        decide::tick(&mut often, start.plus(Nanos::from_secs(60 * minutes)));
        assert!(often.health().has(RAMPING));
    }
    decide::tick(&mut seldom, start.plus(Nanos::from_secs(60 * 995)));
    assert_eq!(seldom, often);
}

/// A long policy. Policies with different `salt` differ in nearly everything that can be changed.
fn longest_policy(salt: u64) -> Policy {
    let names: Vec<String> = (0..16).map(|i| format!("n{i:x}-{}", salt.to_string().repeat(27))).collect();
    let units = ["requests", "unit-b", "unit-c", "unit-d"];
    let algorithms = [Algorithm::TokenBucket, Algorithm::Gcra];
    let rules: [RuleDraft<'_>; 8] = std::array::from_fn(|i| RuleDraft {
        name: Some(&names[i]),
        unit: Some(units[i % 4]),
        burst: Some(1_000_003 + salt),
        reserve: 1 + salt,
        ..RuleDraft::new(
            algorithms[salt as usize % 2],
            7 + salt,
            Duration::from_nanos(3_600_000_000_001 + salt),
        )
    });
    let windows: [PaceWindowDraft<'_>; 8] = std::array::from_fn(|i| PaceWindowDraft {
        name: &names[8 + i],
        limit: 100 + salt,
        interval: Duration::from_secs(60 + salt),
        kind: [WindowKind::Fixed, WindowKind::Sliding][salt as usize % 2],
    });
    let kinds = [BreakerKind::Consecutive, BreakerKind::Fsm];
    let mut breaker = Breaker::of(kinds[salt as usize % 2]).with_network_errors(salt.is_multiple_of(2));
    for number in [&mut breaker.n_throttle, &mut breaker.n_cacheonly, &mut breaker.s_recover] {
        *number += salt as u32;
    }
    for number in [&mut breaker.p_throttle, &mut breaker.p_recover, &mut breaker.p_sleep] {
        *number += salt as u32;
    }
    for time in
        [&mut breaker.sleep_after, &mut breaker.sleep_min, &mut breaker.sleep_max, &mut breaker.ramp_every]
    {
        *time += Duration::from_nanos(salt);
    }
    let draft = PolicyDraft {
        provider: &names[0],
        concurrency: Some(100 + salt),
        concurrency_background: Some(50 + salt),
        background_share: 1000 + salt,
        rules: &rules,
        breaker,
        adaptive: Some(AdaptiveDraft { windows: &windows, ..AdaptiveDraft::default() }),
        ..PolicyDraft::default()
    };
    Policy::new(&draft).unwrap()
}

/// The journal must hold the change even if, in the same transaction, timers are due and the breaker's state ends.
#[test]
fn r110_changing_nearly_all_of_a_long_policy_is_one_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let limiter = make(&directory, longest_policy(1));
    let attachment = limiter.attachment().unwrap();
    for _ in 0..3 {
        let recorded = limiter.transact(&attachment, &limiter.deadline(), |tx, now| {
            decide::force(tx, decide::BreakerCommand::Sleep, now);
            limiter.commit(tx)
        });
        recorded.unwrap().unwrap();
    }
    let (before, words) = (limiter.words.load(layout::VERSION), |at| limiter.words.load(at));
    limiter.change_policy(|_| Ok(longest_policy(2))).unwrap();
    assert_eq!(words(layout::VERSION), before + 2, "one transaction");
    let used = words(layout::JOURNAL_LEN);
    assert!(used > 168 && used < layout::JOURNAL_ENTRIES as u64, "{used} words");
}
