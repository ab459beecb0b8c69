//! Tests of damage under attached handles: zeroing any words never grants more than was left.

use super::*;
use shmlimit_kernel::backoff::Random;
use shmlimit_kernel::breaker::{BreakerCommand, terms_range};
use shmlimit_kernel::policy::{Algorithm, Breaker, BreakerKind, BurstMode, PolicyDraft, RuleDraft};
use shmlimit_segment::layout;
use shmlimit_segment::words::Words;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The limit of each limiter, how much is used before the damage, and how much is left.
const LIMIT: u64 = 10;
const USED: u64 = 7;
const LEFT: usize = (LIMIT - USED) as usize;
/// Words of a cache line: every sector and page is a multiple of one.
const LINE: usize = 8;
/// The test tries one of this many cases: all on Linux, a sample on Windows, because of Wine. Wine's server keeps
/// each description of a file open until the last lock of that file is released, and a limiter in use always holds
/// one. A limiter whose file is checked with each call opens its file each time. With all cases the server reached
/// 17,000 descriptions, while the program had 21, and took more than four minutes. With this sample it reaches
/// about 600.
const ONE_OF: usize = if cfg!(windows) { 61 } else { 1 };
const NEVER: Duration = Duration::from_secs(36_000);

/// Long enough that no window ends and no unit is refilled during a test.
const PERIOD: Duration = Duration::from_secs(100 * 365 * 86_400);

fn of(algorithm: Algorithm, burst_mode: BurstMode) -> Policy {
    let rule = RuleDraft { burst_mode, ..RuleDraft::new(algorithm, LIMIT, PERIOD) };
    Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).unwrap()
}

/// Policies with every algorithm, with two rules of two units and a breaker, and with permits.
fn policies() -> Vec<Policy> {
    use Algorithm::{FixedWindow, Gcra, LeakyBucket, SlidingCounter, SlidingLog, TokenBucket};
    let all = [TokenBucket, Gcra, LeakyBucket, FixedWindow, SlidingLog, SlidingCounter];
    let mut policies: Vec<Policy> = all.map(|algorithm| of(algorithm, BurstMode::GcraTau)).into();
    policies.push(of(Gcra, BurstMode::FixedWindow));
    let tokens = RuleDraft { unit: Some("tokens"), ..RuleDraft::new(SlidingCounter, 1000, PERIOD) };
    let rules = [RuleDraft::new(TokenBucket, LIMIT, PERIOD), tokens, RuleDraft::new(Gcra, LIMIT, PERIOD)];
    let breaker = Breaker::of(BreakerKind::Fsm);
    policies.push(Policy::new(&PolicyDraft { rules: &rules, breaker, ..PolicyDraft::default() }).unwrap());
    policies.push(Policy::new(&PolicyDraft { concurrency: Some(LIMIT), ..PolicyDraft::default() }).unwrap());
    policies
}

/// A policy with a rule for a unit other than requests, and calls that cost only that unit.
fn of_tokens() -> Policy {
    let tokens =
        RuleDraft { unit: Some("tokens"), ..RuleDraft::new(Algorithm::SlidingCounter, LIMIT, PERIOD) };
    let rules = [RuleDraft::new(Algorithm::TokenBucket, LIMIT, PERIOD), tokens];
    Policy::new(&PolicyDraft { rules: &rules, ..PolicyDraft::default() }).unwrap()
}

fn one_token() -> Request<'static> {
    Request::new().cost("requests", 0).cost("tokens", 1)
}

struct Fixture {
    directory: tempfile::TempDir,
    limiter: Limiter,
    /// The request of each call.
    kernel_request: fn() -> Request<'static>,
    used: u64,
    /// Permits that stay in flight.
    _held: Vec<OwnedGrant>,
    image: Vec<u64>,
}

impl Fixture {
    fn new(policy: Policy, place: Duration) -> Fixture {
        Fixture::used(policy, place, USED, Request::new)
    }

    fn used(policy: Policy, place: Duration, used: u64, kernel_request: fn() -> Request<'static>) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let bounds = AttachOptions { lock: Duration::from_millis(1), place, ..AttachOptions::default() };
        let limiter =
            Limiter::builder("api").directory(directory.path()).policy(policy).bounds(bounds).create();
        let limiter = limiter.unwrap();
        let take = |_| limiter.try_acquire(&kernel_request()).unwrap().into_owned();
        let held: Vec<OwnedGrant> = (0..used).map(take).collect();
        let image = words(&limiter).iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
        Fixture { directory, limiter, kernel_request, used, _held: held, image }
    }

    fn restore(&self) {
        for (cell, word) in words(&self.limiter).into_iter().zip(&self.image) {
            cell.store(*word, Ordering::Relaxed);
        }
    }

    /// How many more calls may be granted. GCRA's older burst mode grants one more than the limit, because it paces
    /// calls after its free passes.
    fn left(&self) -> usize {
        let paced =
            self.limiter.policy().unwrap().rules().iter().any(|r| r.burst_mode == BurstMode::FixedWindow);
        (LIMIT - self.used) as usize + usize::from(paced)
    }

    /// How many more calls are granted while these words are zero.
    fn granted_without(&self, zeroed: Range<usize>) -> usize {
        words(&self.limiter)[zeroed].iter().for_each(|cell| cell.store(0, Ordering::Relaxed));
        self.drain()
    }

    fn drain(&self) -> usize {
        let request = (self.kernel_request)().timeout(Duration::ZERO);
        let mut granted = Vec::new();
        for i in 0..3 * LIMIT as usize {
            // Uses each way to acquire.
            let grant = match i % 3 {
                0 => self.limiter.acquire(&request).ok(),
                1 => self.limiter.acquire_at_once(&request),
                _ => self.limiter.try_acquire(&request).ok(),
            };
            granted.extend(grant);
        }
        let count = granted.len();
        // The grants must be released only after the words are restored, because the zeroed segment no longer
        // counts their permits.
        granted.into_iter().for_each(std::mem::forget);
        count
    }
}

/// All words of the segment that a limiter uses.
fn words(limiter: &Limiter) -> Vec<&shmlimit_segment::sync::AtomicU64> {
    let words: &Words = limiter.newest().segment.words();
    (0..words.cells().count()).map(|word| words.cells().at_any(word)).collect()
}

/// Each line, blocks of every size up to a page, and random ranges.
fn ranges(lines: Range<usize>) -> Vec<Range<usize>> {
    let mut random = Random::new(0x5eed);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for size in (0..7).map(|log| 1 << log) {
        let aligned = lines.clone().filter(|line| line % size == 0);
        ranges.extend(aligned.map(|line| line..(line + size).min(lines.end)));
    }
    let count = lines.len() as u64;
    ranges.extend((0..60).map(|_| {
        let [a, b] = [(); 2].map(|()| lines.start + (random.bits() % count) as usize);
        a.min(b)..a.max(b) + 1
    }));
    ranges.into_iter().step_by(ONE_OF).map(|lines| lines.start * LINE..lines.end * LINE).collect()
}

#[test]
fn zeroed_lines_of_the_first_page_never_grant_more_than_was_left() {
    // Starts at the lock, because attached processes do not read the header.
    never_grants_more(&ranges(layout::LOCK / LINE..layout::JOURNAL / LINE));
}

#[test]
fn any_zeroed_word_of_the_first_page_never_grants_more_than_was_left() {
    never_grants_more(&(layout::LOCK..layout::JOURNAL).map(|word| word..word + 1).collect::<Vec<_>>());
}

/// Zeroes each range under each kind of limiter, unused and partly used.
fn never_grants_more(ranges: &[Range<usize>]) {
    let plain = policies().into_iter().map(|policy| (policy, Request::new as fn() -> Request<'static>));
    for (policy, kernel_request) in plain.chain([(of_tokens(), one_token as fn() -> Request<'static>)]) {
        for (place, used) in [(NEVER, USED), (NEVER, 0), (Duration::ZERO, USED)] {
            let fixture = Fixture::used(policy, place, used, kernel_request);
            let left = fixture.left();
            for range in ranges {
                let granted = fixture.granted_without(range.clone());
                let bytes = range.start * 8..range.end * 8;
                assert!(
                    granted <= left,
                    "bytes {bytes:#x?} zeroed after {used} calls: {granted} granted of {:?}",
                    policy.rules()
                );
                fixture.restore();
            }
            let least = (LIMIT - used) as usize;
            assert!((least..=left).contains(&fixture.drain()), "the restored limiter grants what it had");
            fixture.restore();
        }
    }
}

#[test]
fn zeroed_lines_and_words_of_a_log_never_grant_more_than_was_left() {
    let fixture = Fixture::new(of(Algorithm::SlidingLog, BurstMode::GcraTau), NEVER);
    let lines = layout::WORDS / LINE..fixture.image.len() / LINE;
    let words = layout::WORDS..fixture.image.len();
    for range in ranges(lines).into_iter().chain(words.map(|word| word..word + 1)) {
        let granted = fixture.granted_without(range.clone());
        assert!(granted <= LEFT, "words {range:?} zeroed: {granted} granted");
        fixture.restore();
    }
    assert_eq!(fixture.drain(), LEFT);
}

/// Zeroing bytes 576 to 1151 (the effective terms) once gave a million grants.
#[test]
fn limiter_with_zeroed_effective_limits_is_repaired_and_starts_used_up() {
    let fixture = Fixture::new(of(Algorithm::TokenBucket, BurstMode::GcraTau), NEVER);
    assert_eq!(fixture.granted_without(576 / 8..1152 / 8), 0);
    fixture.restore();
    // A handle checks its file, and all words that decisions read, once a second.
    let fixture = Fixture::new(of(Algorithm::TokenBucket, BurstMode::GcraTau), Duration::ZERO);
    assert_eq!(fixture.granted_without(576 / 8..1152 / 8), 0);
    let snapshot = fixture.limiter.snapshot().unwrap();
    assert_eq!((snapshot.resets, snapshot.rules[0].remaining), (1, 0));
    assert_eq!(snapshot.in_flight, USED as u32, "permits are counted again");
}

#[test]
fn any_changed_bit_in_effective_limits_or_policy_is_found_by_the_file_check() {
    for policy in policies() {
        let fixture = Fixture::new(policy, Duration::ZERO);
        let left = fixture.left();
        let changed = (layout::EFFECTIVE..layout::POLICY_CHECKSUM + 1).step_by(3);
        let changed = changed.flat_map(|word| (word % 5..64).step_by(9).map(move |bit| (word, bit)));
        for (word, bit) in changed.step_by(ONE_OF) {
            words(&fixture.limiter)[word].fetch_xor(1 << bit, Ordering::Relaxed);
            let granted = fixture.drain();
            assert!(granted <= left, "bit {bit} of word {word}: {granted} granted");
            fixture.restore();
        }
        assert!((LEFT..=left).contains(&fixture.drain()), "the restored limiter grants what it had");
        fixture.restore();
    }
}

/// A damaged policy must not become effective when the breaker's state changes.
#[test]
fn state_change_over_a_zeroed_policy_keeps_the_permits() {
    let rule = RuleDraft::new(Algorithm::TokenBucket, 1000, PERIOD);
    let breaker = Breaker::of(BreakerKind::Fsm);
    let draft = PolicyDraft { rules: &[rule], breaker, concurrency: Some(LIMIT), ..PolicyDraft::default() };
    let fixture = Fixture::new(Policy::new(&draft).unwrap(), NEVER);
    words(&fixture.limiter)[layout::POLICY..layout::POLICY_CHECKSUM]
        .iter()
        .for_each(|cell| cell.store(0, Ordering::Relaxed));
    for state in [BreakerCommand::Throttle, BreakerCommand::Normal] {
        let _ = fixture.limiter.force(state);
    }
    assert!(fixture.drain() <= LEFT);
    fixture.restore();
}

/// A lost count is not kept for the rest of the window and the window after it.
#[test]
fn rule_state_with_a_zeroed_word_is_reset_by_the_file_check() {
    for algorithm in [Algorithm::FixedWindow, Algorithm::SlidingCounter, Algorithm::SlidingLog] {
        for word in 0..3 {
            let fixture = Fixture::new(of(algorithm, BurstMode::GcraTau), Duration::ZERO);
            words(&fixture.limiter)[layout::RULES + word].store(0, Ordering::Relaxed);
            assert!(fixture.limiter.try_acquire(&Request::new()).is_err());
            assert_eq!(fixture.limiter.snapshot().unwrap().resets, 1, "word {word} of {algorithm:?}");
        }
    }
}

#[test]
fn log_with_zeroed_room_admits_nothing() {
    let fixture = Fixture::new(of(Algorithm::SlidingLog, BurstMode::GcraTau), NEVER);
    let room = layout::EFFECTIVE + terms_range(0).end - 1;
    assert_eq!(fixture.granted_without(room..room + 1), 0);
    fixture.restore();
}

/// The count of permits is zeroed, and the calling handle holds none of them.
#[test]
fn permits_of_other_participants_are_recounted_by_the_file_check() {
    let draft = PolicyDraft { concurrency: Some(LIMIT), ..PolicyDraft::default() };
    let fixture = Fixture::new(Policy::new(&draft).unwrap(), Duration::ZERO);
    let bounds = AttachOptions { place: Duration::ZERO, ..AttachOptions::default() };
    let place = fixture.directory.path();
    let other = Limiter::builder("api").directory(place).bounds(bounds).open_existing().unwrap();
    words(&fixture.limiter)[layout::CORE + 1].store(0, Ordering::Relaxed);
    let granted: Vec<_> = (0..3 * LIMIT).map_while(|_| other.try_acquire(&Request::new()).ok()).collect();
    assert_eq!(granted.len(), LEFT);
    assert_eq!(other.snapshot().unwrap().in_flight, LIMIT as u32);
}
