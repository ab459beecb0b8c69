//! The health state of the server: breaker, gate, counts, pace.

use super::*;
use shmlimit_kernel::health_state::{
    self, GateNote, HEALTH_STATE_HEAD_WORDS, Health, MAX_ADMISSIONS, ObservedWindow, Pace, Tallies,
};
use shmlimit_kernel::ledger::Ledger;
use shmlimit_kernel::pause::{PAUSE_REASON_BYTES, PAUSE_WORDS, Pause};
use shmlimit_kernel::policy::MAX_OUTCOMES;
use std::mem::{offset_of, size_of};

/// The number of transitions that are stored.
pub const SHMLIMIT_SEGMENT_TRANSITIONS: usize = 12;
/// The number of latency classes: up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000
/// milliseconds, and longer.
pub const SHMLIMIT_SEGMENT_LATENCIES: usize = 16;

/// The most bytes of a pause's reason.
pub const SHMLIMIT_SEGMENT_PAUSE_REASON_LENGTH: usize = 64;

/// The breaker's state and the gate.
#[repr(C)]
pub struct shmlimit_segment_health {
    /// SHMLIMIT_SEGMENT_STATE_...
    pub state: u32,
    /// SHMLIMIT_SEGMENT_HEALTH_... flags.
    pub flags: u32,
    /// Limiter time at which the state began.
    pub since: u64,
    /// Limiter time at which its timer is due, if it has one. The timer acts when a process next uses the limiter.
    pub until: u64,
    /// The effective rate, in billionths of a unit a second; 0 = the full rate.
    pub rate: u64,
    /// The gate: no call before this limiter time.
    pub gate_until: u64,
    /// The limiter time at which the ratio of errors became too high, plus one; 0 = it is not too high.
    pub sustained: u64,
    /// During probing: the limiter time at which an unanswered probe is written off.
    pub probe_until: u64,
    /// Successive 429.
    pub consec429: u32,
    /// Successes since the state began.
    pub successes: u32,
    /// Successive evaluations that agreed on a change of state.
    pub agreed: u32,
    /// Sleeps since the last Normal.
    pub sleeps: u32,
    /// Successive outcomes that require backing off.
    pub run: u32,
    /// Successive failures; only for a consecutive breaker.
    pub failures: u32,
    /// The outcome window: the number of its oldest outcome; number N is at N % SHMLIMIT_SEGMENT_OUTCOMES of the ring.
    pub oldest: u32,
    /// The number of outcomes from that one on. It includes outcomes that became too old since the last one was
    /// recorded.
    pub samples: u32,
    /// Errors in the outcome window.
    pub errors: u64,
    /// Permits granted before this limiter time were written off.
    pub written_at: u64,
    /// Permits of probes that were written off and not yet given back.
    pub written_off: u32,
    /// Those of these permits that background calls hold.
    pub written_off_background: u32,
    /// Transitions so far; the newest is number transitions - 1.
    pub transitions: u64,
    /// During probing: the limiter time of the first call granted since the last outcome that counts, plus one; 0 =
    /// every probe is answered.
    pub unanswered: u64,
}

/// How calls ended since the limiter was made.
#[repr(C)]
pub struct shmlimit_segment_tallies {
    /// Calls that succeeded.
    pub ok: u64,
    /// Calls that ended with 429.
    pub throttled: u64,
    /// Calls that ended with 5xx.
    pub server: u64,
    /// Calls without an answer.
    pub net: u64,
    /// Calls that ended with any other 4xx.
    pub other: u64,
    /// The total latency of all calls with a reported latency, in nanoseconds.
    pub latency_sum: u64,
    /// The number of these calls in each latency class; see SHMLIMIT_SEGMENT_LATENCIES.
    pub latency: [u64; SHMLIMIT_SEGMENT_LATENCIES],
    /// Zero.
    pub unused: [u64; 2],
}

/// Counts that affect no decision. Attached processes count in their slots; their counts are added here when they
/// detach.
#[repr(C)]
pub struct shmlimit_segment_ledger {
    /// Calls granted to processes that have detached.
    pub granted: u64,
    /// Calls refused to processes that have detached.
    pub refused: u64,
    /// Checks by waiting calls of processes that have detached.
    pub looked: u64,
    /// Answers that were found in a cache.
    pub cache_hits: u64,
    /// Answers that were not found in a cache.
    pub cache_misses: u64,
    /// The total time that callers were told to wait before they try again, in nanoseconds.
    pub sleep_sum: u64,
    /// The number of such waits in each latency class; see SHMLIMIT_SEGMENT_LATENCIES.
    pub sleep: [u64; SHMLIMIT_SEGMENT_LATENCIES],
    /// Zero.
    pub unused: [u64; 2],
}

/// The process that last closed the gate.
#[repr(C)]
pub struct shmlimit_segment_gate_note {
    /// Limiter time.
    pub at: u64,
    /// Process id.
    pub pid: u64,
    /// Program name.
    pub program: [u8; SHMLIMIT_SEGMENT_PROGRAM_LENGTH],
}

/// The gap between calls that response headers taught.
#[repr(C)]
pub struct shmlimit_segment_pace {
    /// The smallest gap between calls; nanoseconds.
    pub interval: u64,
    /// Limiter time at which the gap last became larger.
    pub tightened_at: u64,
    /// Admissions so far; number N is at N % SHMLIMIT_SEGMENT_ADMISSIONS of the ring.
    pub admitted: u64,
    /// The index of the window that determines the gap, plus one; 0 = none.
    pub bottleneck: u64,
    /// The same if that window's reset time was considered unreliable when the gap was set; 0 = it was not.
    pub doubted: u64,
}

/// The latest values that headers reported about a window of the policy.
#[repr(C)]
pub struct shmlimit_segment_observed_window {
    /// The window's limit in the lower 62 bits. Bit 63: headers reported it. Bit 62: its reset time was considered
    /// unreliable.
    pub limit: u64,
    /// The remaining units of the window.
    pub remaining: u64,
    /// Limiter time at which the window starts again.
    pub reset_at: u64,
    /// The limiter time at which these values were reported, plus one; 0 = never.
    pub seen: u64,
}

/// A change of the breaker's state; number N is at N % SHMLIMIT_SEGMENT_TRANSITIONS.
#[repr(C)]
pub struct shmlimit_segment_transition {
    /// Limiter time.
    pub at: u64,
    /// The old state, SHMLIMIT_SEGMENT_STATE_...
    pub from: u8,
    /// The new state.
    pub to: u8,
    /// SHMLIMIT_SEGMENT_CAUSE_...
    pub cause: u8,
    /// Zero.
    pub unused: [u8; 5],
}

/// The latest pause of the limiter. Transactions only.
#[repr(C)]
pub struct shmlimit_segment_pause {
    /// Limiter time at which the pause ends: 0 = it is over, UINT64_MAX = when the limiter is resumed. A limiter is
    /// paused while this is later than now.
    pub until: u64,
    /// Limiter time at which the pause began.
    pub since: u64,
    /// Process id of the process that paused the limiter, in its own pid namespace.
    pub pid: u64,
    /// Its program name, zero-padded.
    pub program: [u8; SHMLIMIT_SEGMENT_PROGRAM_LENGTH],
    /// The reason: UTF-8, zero-padded.
    pub reason: [u8; SHMLIMIT_SEGMENT_PAUSE_REASON_LENGTH],
    /// Zero.
    pub unused: [u64; 3],
}

/// The health state of the server. Transactions only.
#[repr(C)]
pub struct shmlimit_segment_health_state {
    /// The breaker's state and the gate.
    pub health: shmlimit_segment_health,
    /// How calls ended.
    pub tallies: shmlimit_segment_tallies,
    /// The process that closed the gate.
    pub gate_note: shmlimit_segment_gate_note,
    /// The rate at the start of a ramp, in billionths of a unit per second.
    pub ramp_from: u64,
    /// Zero.
    pub unused_note: [u64; 3],
    /// The pace that headers taught.
    pub pace: shmlimit_segment_pace,
    /// Zero.
    pub unused_pace: [u64; 3],
    /// The values that headers reported about each window.
    pub observed_windows: [shmlimit_segment_observed_window; SHMLIMIT_SEGMENT_WINDOWS],
    /// The newest transitions.
    pub transitions: [shmlimit_segment_transition; SHMLIMIT_SEGMENT_TRANSITIONS],
}

const _: () = {
    same!(shmlimit_segment_health, Health: state flags since until rate gate_until sustained probe_until consec429
        successes agreed sleeps run failures oldest samples errors written_at written_off transitions unanswered);
    same!(shmlimit_segment_tallies, Tallies: ok throttled server net other latency_sum latency);
    same!(shmlimit_segment_ledger, Ledger: granted refused looked cache_hits cache_misses sleep_sum sleep);
    same!(shmlimit_segment_gate_note, GateNote: at pid program);
    same!(shmlimit_segment_pace, Pace: interval tightened_at admitted bottleneck doubted);
    same!(shmlimit_segment_observed_window, ObservedWindow: limit remaining reset_at seen);

    same!(shmlimit_segment_pause, Pause: until since pid program reason);
    assert!(size_of::<shmlimit_segment_pause>() == byte(PAUSE_WORDS));
    assert!(SHMLIMIT_SEGMENT_PAUSE_REASON_LENGTH == PAUSE_REASON_BYTES);

    assert!(SHMLIMIT_SEGMENT_TRANSITIONS as u64 == health_state::TRANSITIONS);
    assert!(SHMLIMIT_SEGMENT_LATENCIES == health_state::LATENCY_BOUNDS.len() + 1);
    assert!(SHMLIMIT_SEGMENT_OUTCOMES == MAX_OUTCOMES as usize);
    assert!(SHMLIMIT_SEGMENT_ADMISSIONS == MAX_ADMISSIONS);
    assert!(SHMLIMIT_SEGMENT_CODES == shmlimit_kernel::ledger::CODES);

    let rings = SHMLIMIT_SEGMENT_OUTCOMES_AT - byte(health_state::OUTCOMES_AT);
    assert!(SHMLIMIT_SEGMENT_ADMISSIONS_AT == rings + byte(health_state::ADMISSIONS_AT));
    assert!(SHMLIMIT_SEGMENT_LEDGER_AT == rings + byte(health_state::LEDGER_AT));
    assert!(SHMLIMIT_SEGMENT_CODES_AT == rings + byte(health_state::CODES_AT));
    assert!(SHMLIMIT_SEGMENT_PAUSE_AT == rings + byte(health_state::PAUSE_AT));

    at_words!(shmlimit_segment_health_state, from 0; health health_state::HEALTH_AT, tallies health_state::TALLIES_AT,
        gate_note health_state::GATE_NOTE_AT, ramp_from health_state::RAMP_FROM_AT, pace health_state::PACE_AT,
        observed_windows health_state::WINDOWS_AT, transitions health_state::TRANSITIONS_AT,);
    assert!(size_of::<shmlimit_segment_health_state>() == byte(HEALTH_STATE_HEAD_WORDS));
};
