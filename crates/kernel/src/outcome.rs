//! Outcomes of calls, and the window of recent outcomes (R42 to R48).

use super::MAX_UNITS;
use super::health_state::{HealthStateMemory, HealthStateView};
use super::pace::Observation;
use super::policy::StoredWindow;
use super::request::Priority;
use super::state::{Health, Memory, Tallies, View};
use super::time::{Nanos, Time};

crate::named_enum! {
    /// The class of an outcome.
    ///
    /// ```
    /// # use shmlimit_kernel::outcome as shmlimit;
    /// use shmlimit::OutcomeClass;
    ///
    /// assert_eq!(OutcomeClass::of_status(503), Some(OutcomeClass::Server));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum OutcomeClass {
        /// The server answered without an error: 1xx, 2xx, 3xx (R45).
        Ok = 0 => "ok",
        /// 429: the server refused the call because of its rate limit.
        Throttled = 1 => "429",
        /// 5xx: the server failed.
        Server = 2 => "5xx",
        /// No answer: a timeout, a failed name lookup, a failed connection.
        Net = 3 => "net",
        /// Any other 4xx: an error of the caller, which says nothing about the server (R44).
        Ignored = 4 => "ignored",
    }
    /// All classes.
    ///
    /// ```
    /// # use shmlimit_kernel::outcome as shmlimit;
    /// assert!(shmlimit::OutcomeClass::ALL.contains(&shmlimit::OutcomeClass::Net));
    /// ```
    pub const ALL;
    /// The name outside Rust: in C, Python, JSON and logs.
    ///
    /// ```
    /// # use shmlimit_kernel::outcome as shmlimit;
    /// assert_eq!(shmlimit::OutcomeClass::Throttled.as_str(), "429");
    /// ```
    pub const fn as_str;
    impl FromStr;
}

impl OutcomeClass {
    /// The class of an HTTP status. `None` if the number is not an HTTP status.
    ///
    /// ```
    /// # use shmlimit_kernel::outcome as shmlimit;
    /// use shmlimit::OutcomeClass;
    ///
    /// assert_eq!(OutcomeClass::of_status(429), Some(OutcomeClass::Throttled));
    /// assert_eq!(OutcomeClass::of_status(1000), None);
    /// ```
    #[inline]
    pub const fn of_status(status: u16) -> Option<OutcomeClass> {
        match status {
            100..=399 => Some(OutcomeClass::Ok),
            429 => Some(OutcomeClass::Throttled),
            400..=499 => Some(OutcomeClass::Ignored),
            500..=599 => Some(OutcomeClass::Server),
            _ => None,
        }
    }

    /// Whether the caller should wait and retry (R68).
    ///
    /// ```
    /// # use shmlimit_kernel::outcome as shmlimit;
    /// use shmlimit::OutcomeClass;
    ///
    /// assert!(OutcomeClass::Server.is_backoff_target() && !OutcomeClass::Ok.is_backoff_target());
    /// ```
    #[inline]
    pub const fn is_backoff_target(self) -> bool {
        matches!(self, OutcomeClass::Throttled | OutcomeClass::Server | OutcomeClass::Net)
    }
}

/// A report about a call that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report<'r> {
    /// The class of its outcome.
    pub class: OutcomeClass,
    /// The wait from its Retry-After, if there was a readable one. Floor and cap are not yet applied (R70).
    pub retry_after: Option<Nanos>,
    /// The number of this attempt, from 1. `None`: the limiter counts (R77).
    pub attempt: Option<u32>,
    /// The priority of the call.
    pub priority: Priority,
    /// The duration of the call.
    pub latency: Option<Nanos>,
    /// Its actual cost, if known (R129).
    pub actual: Option<[u64; MAX_UNITS]>,
    /// The time of its grant, if known. It distinguishes a late outcome from a probe's outcome (R140).
    pub granted_at: Option<Time>,
    /// The code under which its end is counted: an HTTP status, or the number of an error, from 1 (R116).
    /// `None`: not counted.
    pub code: Option<u16>,
    /// The process that reports. `None`: if this outcome closes the gate, no note is stored.
    pub reporter: Option<Reporter>,
    /// 64 random bits for jitter, because the kernel has no source of randomness.
    pub random: u64,
    /// The readings of response headers, by window name (R92).
    pub readings: &'r [(&'r str, Observation)],
}

/// The process that reports how a call ended, for reports (R142).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// Process id.
    pub pid: u64,
    /// Program name, zero-padded.
    pub program: [u8; 16],
}

impl Report<'_> {
    /// A report with a class and no other information.
    pub const fn new(class: OutcomeClass) -> Self {
        Report {
            class,
            retry_after: None,
            attempt: None,
            priority: Priority::Background,
            latency: None,
            actual: None,
            granted_at: None,
            code: None,
            reporter: None,
            random: 0,
            readings: &[],
        }
    }
}

/// Counts an outcome.
pub(super) fn tally<M: Memory>(m: &mut M, report: &Report<'_>) {
    let mut tallies = m.tallies();
    let Tallies { ok, throttled, server, net, other, .. } = &mut tallies;
    let count = match report.class {
        OutcomeClass::Ok => ok,
        OutcomeClass::Throttled => throttled,
        OutcomeClass::Server => server,
        OutcomeClass::Net => net,
        OutcomeClass::Ignored => other,
    };
    *count = count.wrapping_add(1);
    if let Some(latency) = report.latency {
        tallies.took(latency);
    }
    m.set_tallies(&tallies);
}

/// Bits of an entry that hold the class. The time is in the bits above.
const CLASS_BITS: u32 = 2;

/// Removes outcomes that are too old, or more than the window holds with `room` new ones.
fn drop_old<V: View>(v: &V, window: &StoredWindow, health: &mut Health, room: u32, now: Time) {
    // Brings damaged words into range.
    let most = window.max_count.clamp(1, super::policy::MAX_OUTCOMES);
    health.samples = health.samples.min(super::policy::MAX_OUTCOMES);
    health.errors = health.errors.min(u64::from(health.samples));
    while health.samples > 0 {
        let entry = v.outcome(health.oldest);
        let age = now.since(Time(entry >> CLASS_BITS));
        if age < window.max_age && health.samples.saturating_add(room) <= most {
            break;
        }
        let was_error = entry & 3 != OutcomeClass::Ok as u64;
        health.errors = health.errors.saturating_sub(u64::from(was_error));
        health.oldest = health.oldest.wrapping_add(1);
        health.samples -= 1;
    }
    if health.samples == 0 {
        health.errors = 0;
    }
}

/// The number of outcomes in the window now, and the number of errors among them.
pub fn counted<V: View>(v: &V, now: Time) -> (u32, u64) {
    let mut health = v.health();
    drop_old(v, &v.window_policy(), &mut health, 0, now);
    (health.samples, health.errors)
}

/// The ring entry of an outcome.
#[inline(always)]
pub(super) fn entry(class: OutcomeClass, now: Time) -> u64 {
    now.0 << CLASS_BITS | class as u64 & 3
}

/// The window (oldest, samples) with room for one more outcome. `None` if more than a few outcomes must be
/// removed for that, or an error among them.
#[inline(always)]
pub(super) fn make_room<V: View>(v: &V, (oldest, samples): (u32, u32), now: Time) -> Option<(u32, u32)> {
    let window = v.window_policy();
    let most = window.max_count.clamp(1, super::policy::MAX_OUTCOMES);
    let mut left = (oldest, samples);
    // Usually at most one outcome is too many and one is too old. The slow path handles the rest.
    for _ in 0..3 {
        let (oldest, samples) = left;
        let entry = v.outcome(oldest);
        let stays = now.since(Time(entry >> CLASS_BITS)) < window.max_age && samples < most;
        if samples == 0 || stays {
            return Some(left);
        }
        if entry & 3 != OutcomeClass::Ok as u64 {
            return None;
        }
        left = (oldest.wrapping_add(1), samples - 1);
    }
    None
}

/// Removes outcomes that are too old by now.
pub(super) fn age<V: View>(v: &V, health: &mut Health, now: Time) {
    drop_old(v, &v.window_policy(), health, 0, now);
}

/// Adds an outcome to the window. Returns whether the window was empty before.
pub(super) fn push<M: Memory>(m: &mut M, health: &mut Health, class: OutcomeClass, now: Time) -> bool {
    let window = m.window_policy();
    drop_old(m, &window, health, 0, now);
    let was_empty = health.samples == 0;
    drop_old(m, &window, health, 1, now);
    m.set_outcome(health.oldest.wrapping_add(health.samples), entry(class, now));
    health.samples += 1;
    health.errors += u64::from(class != OutcomeClass::Ok);
    was_empty
}

/// Empties the window.
#[inline]
pub(super) fn clear(health: &mut Health) {
    health.oldest = health.oldest.wrapping_add(health.samples);
    (health.samples, health.errors) = (0, 0);
}

/// Whether the ratio of errors is at least `part` millionths, with enough samples (R47).
#[inline]
pub(super) fn is_at_least(health: &Health, part: u32, min_samples: u32) -> bool {
    health.samples >= min_samples && health.samples > 0 && !is_below(health, part)
}

/// Whether the ratio of errors is below `part` millionths. The ratio of an empty window is 0.
#[inline]
pub(super) fn is_below(health: &Health, part: u32) -> bool {
    let scaled = health.errors.saturating_mul(u64::from(super::policy::MILLION));
    scaled < u64::from(part).saturating_mul(u64::from(health.samples)) || (health.samples == 0 && part > 0)
}
