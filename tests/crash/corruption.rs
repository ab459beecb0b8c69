//! An attached limiter whose bytes are changed before a call and restored after it.

use crate::util::raw::Raw;
use crate::util::{self, NAME, segment_path};
use shmlimit::headers::HeaderFormat;
use shmlimit::{Algorithm, BreakerCommand, Limiter, Outcome, Policy, PolicyDraft, Request, RuleDraft};
use shmlimit_kernel::policy::{AdaptiveDraft, Breaker, BreakerKind, PaceWindowDraft, WindowKind};
use shmlimit_segment::{AttachOptions, layout};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tempfile::TempDir;

/// The end of everything before the slots: header, control, rules, effective limits, policy, health state, journal.
pub const FIRST: usize = layout::SLOT_TABLE * 8;
/// The end of the words that calls read. The journal, which begins here, is read only after a death.
pub const STATE: usize = layout::JOURNAL * 8;
/// Each single bit, and all bits.
pub const BITS: [u8; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 255];
pub const TIMEOUT: Duration = Duration::from_micros(200);

/// The lock is given up soon; the file's place is checked only when a call must.
pub const BOUNDS: AttachOptions = AttachOptions {
    lock: Duration::from_micros(200),
    stall: Duration::from_micros(200),
    reclaim: Duration::from_secs(3600),
    place: Duration::from_secs(3600),
    program: [0; 16],
    role: shmlimit_segment::Role::Participant,
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Call {
    TryAcquire,
    Acquire,
    Release,
    Cancel,
    DropGrant,
    Snapshot,
    Policy,
    SetPolicy,
    /// Records a 429 for a grant, with Retry-After and with headers that teach a pace.
    Record,
    /// Records a success of a call without a grant.
    RecordOther,
    Force,
    Open,
    DropHandle,
}

pub use Call::{
    Acquire, Cancel, DropGrant, DropHandle, Open, Record, RecordOther, Release, SetPolicy, Snapshot,
    TryAcquire,
};

pub const ATTACHED: [Call; 11] = [
    TryAcquire,
    Acquire,
    Release,
    Cancel,
    DropGrant,
    Snapshot,
    Call::Policy,
    SetPolicy,
    Record,
    RecordOther,
    Call::Force,
];

pub const HEADERS: [(&str, &str); 4] = [
    ("Retry-After", "30"),
    ("X-RateLimit-Limit", "100"),
    ("X-RateLimit-Remaining", "3"),
    ("X-RateLimit-Reset", "60"),
];

/// An attached limiter, a second mapping of it, and the image to restore.
pub struct Fixture {
    pub directory: TempDir,
    pub limiter: Limiter,
    pub raw: Raw,
    pub image: Vec<u64>,
    pub slot: usize,
    pub watched: bool,
    pub policies: [Policy; 2],
    /// The current attempt, for the message of a panic.
    pub trying: (Call, usize, u8),
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (call, byte, flip) = self.trying;
            eprintln!("while trying {call:?} with byte {byte:#x} changed by ^{flip:#04x}");
        }
    }
}

/// Rules of both algorithms, with fractions of a nanosecond, a reserve, and room for every call of this test.
pub fn rules(count: usize) -> Policy {
    let rule = |i: usize| RuleDraft {
        burst: Some(1_000_000 + i as u64),
        reserve: 3,
        ..RuleDraft::new(
            [Algorithm::TokenBucket, Algorithm::Gcra][i % 2],
            7 + i as u64,
            Duration::from_secs(3600),
        )
    };
    let rules: [RuleDraft<'_>; 8] = std::array::from_fn(rule);
    let permits = 40 + count as u64;
    let draft = PolicyDraft { concurrency: Some(permits), rules: &rules[..count], ..PolicyDraft::default() };
    Policy::new(&draft).unwrap()
}

/// A policy with everything else: a breaker, a pace that headers teach, a log.
pub fn watched() -> Policy {
    let hour = Duration::from_secs(3600);
    let rules = [
        RuleDraft::new(Algorithm::TokenBucket, 3_600_000, hour),
        RuleDraft::new(Algorithm::SlidingLog, 500, hour),
        RuleDraft::new(Algorithm::FixedWindow, 1_000_000, hour),
        RuleDraft::new(Algorithm::SlidingCounter, 1_000_000, hour),
    ];
    let mut breaker = Breaker::of(BreakerKind::Fsm);
    (breaker.n_throttle, breaker.s_probe_ok, breaker.ramp_every) = (1, 1, Duration::from_millis(1));
    let window = PaceWindowDraft {
        name: "default",
        limit: 100,
        interval: Duration::from_secs(60),
        kind: WindowKind::Sliding,
    };
    let parser = Some(HeaderFormat::XRateLimit.code());
    let adaptive = Some(AdaptiveDraft { parser, windows: &[window], ..AdaptiveDraft::default() });
    let concurrency = Some(40);
    Policy::new(&PolicyDraft { concurrency, rules: &rules, breaker, adaptive, ..PolicyDraft::default() })
        .unwrap()
}

pub fn open(directory: &Path) -> Result<Limiter, shmlimit::Error> {
    Limiter::builder(NAME).directory(directory).bounds(BOUNDS).open_existing()
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture::with(false)
    }

    pub fn with(watched: bool) -> Fixture {
        let directory = util::directory();
        let policies = if watched { [self::watched(), rules(1)] } else { [rules(2), rules(8)] };
        let limiter = Limiter::builder(NAME)
            .directory(directory.path())
            .policy(policies[0])
            .bounds(BOUNDS)
            .open()
            .unwrap();
        if watched {
            // Make the rate rise, one step at each look.
            limiter.force(BreakerCommand::HalfOpen).unwrap();
            limiter.record(&Outcome::http(200, &[])).unwrap();
        }
        let raw = Raw::map(&segment_path(directory.path()));
        let owned = |slot: &usize| raw.word(layout::slot_base(*slot)).load(Ordering::Relaxed) & 1 != 0;
        let slot = (0..layout::SLOTS).find(owned).unwrap();
        let image = raw.image();
        Fixture { directory, limiter, raw, image, slot, watched, policies, trying: (TryAcquire, 0, 0) }
    }

    /// The bytes of the attached process's slot.
    pub fn own_slot(&self) -> Range<usize> {
        let start = layout::slot_base(self.slot) * 8;
        start..start + layout::SLOT_WORDS * 8
    }

    /// Leaves the segment like a lock holder that was killed just before it committed a change of the policy.
    pub fn die_in_the_middle(&mut self) {
        self.limiter.set_policy(&self.policies[1]).unwrap();
        let version = self.raw.word(layout::VERSION);
        version.store(version.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        assert!(self.raw.word(layout::JOURNAL_LEN).load(Ordering::Relaxed) > 60);
        self.image = self.raw.image();
    }

    /// Makes one call on the image with one byte changed.
    pub fn try_one(&mut self, call: Call, byte: usize, flip: u8) {
        self.trying = (call, byte, flip);
        let scribble = |raw: &Raw| {
            raw.byte(byte).fetch_xor(flip, Ordering::Relaxed);
        };
        self.run(call, scribble);
        self.restore_quickly();
    }

    /// Makes one call after `scribble` has changed words. Any answer is accepted; the call must return.
    pub fn run(&self, call: Call, scribble: impl Fn(&Raw)) {
        let request = Request::new().timeout(TIMEOUT);
        if matches!(call, Release | Cancel | DropGrant | Record) {
            let Ok(grant) = self.limiter.try_acquire(&request) else { return };
            scribble(&self.raw);
            match call {
                Release => drop(grant.release()),
                Cancel => drop(grant.cancel()),
                Record => drop(grant.record(&Outcome::http(429, &HEADERS).latency(TIMEOUT))),
                _ => drop(grant),
            }
            return;
        }
        if call == DropHandle {
            let handle = open(self.directory.path()).unwrap();
            scribble(&self.raw);
            return drop(handle);
        }
        scribble(&self.raw);
        match call {
            TryAcquire => self.limiter.try_acquire(&request).map_or((), std::mem::forget),
            Acquire => self.limiter.acquire(&request).map_or((), std::mem::forget),
            Snapshot => drop(self.limiter.snapshot()),
            Call::Policy => drop(self.limiter.policy()),
            SetPolicy => drop(self.limiter.set_policy(&self.policies[1])),
            RecordOther => drop(self.limiter.record(&Outcome::http(200, &HEADERS))),
            Call::Force => [BreakerCommand::Sleep, BreakerCommand::Normal]
                .map(|what| drop(self.limiter.force(what)))
                .into_iter()
                .collect(),
            _ => drop(open(self.directory.path())),
        }
    }

    /// Restores what calls of this process change. Replaces a limiter that followed a retired segment with a new one.
    pub fn restore_quickly(&mut self) {
        if layout::is_retired(self.raw.word(layout::RETIRED).load(Ordering::Relaxed)) {
            let dead_in_the_middle = self.image[layout::VERSION] & 1 != 0;
            *self = Fixture::with(self.watched);
            if dead_in_the_middle {
                self.die_in_the_middle();
            }
            return;
        }
        self.raw.restore(&self.image, 0..FIRST / 8);
        let own = self.own_slot();
        self.raw.restore(&self.image, own.start / 8..own.end / 8);
        if self.watched {
            self.raw.restore(&self.image, layout::RINGS..self.image.len());
        }
    }

    pub fn restore_all(&self) {
        self.raw.restore(&self.image, 0..self.image.len());
    }

    pub fn still_works(&self) {
        self.restore_all();
        self.limiter.try_acquire(&Request::new()).expect("the restored limiter grants").release().unwrap();
        assert_eq!(self.limiter.snapshot().unwrap().in_flight, 0);
        self.restore_all();
    }
}
