//! The health state of the server: breaker, gate, counts, pace.

use super::*;
use shmlimit_kernel::health_state::{
    self, GateNote, HEALTH_STATE_HEAD_WORDS, Health, MAX_ADMISSIONS, ObservedWindow, Pace, Tallies,
};
use shmlimit_kernel::ledger::Ledger;
use shmlimit_kernel::pause::{PAUSE_REASON_BYTES, PAUSE_WORDS, Pause};
use shmlimit_kernel::policy::MAX_OUTCOMES;
use std::mem::{offset_of, size_of};

/// Transitions that are remembered.
pub const SHMLIMIT_SEGMENT_TRANSITIONS: usize = 12;
/// Latencies are counted by so many bounds: up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000,
/// 30000, 60000 milliseconds, and longer.
pub const SHMLIMIT_SEGMENT_LATENCIES: usize = 16;

/// Most bytes of the reason of a pause.
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
    /// Limiter time at which its timer is due, if it has one. Whoever next uses the limiter lets it act.
    pub until: u64,
    /// The effective rate, in billionths of a unit a second; 0 = the full one.
    pub rate: u64,
    /// The gate: no call before this limiter time.
    pub gate_until: u64,
    /// One more than when too many errors began; 0 = there are not too many.
    pub sustained: u64,
    /// While probing: when a probe that has not reported back is written off.
    pub probe_until: u64,
    /// Successive 429.
    pub consec429: u32,
    /// Successes since the state began.
    pub successes: u32,
    /// Evaluations in a row that agreed on a move.
    pub agreed: u32,
    /// Sleeps since the last Normal.
    pub sleeps: u32,
    /// Successive outcomes that call for backing off.
    pub run: u32,
    /// Successive failures, of a consecutive breaker.
    pub failures: u32,
    /// The outcome window: the number of its oldest outcome; number N is at N % SHMLIMIT_SEGMENT_OUTCOMES of the ring.
    pub oldest: u32,
    /// How many there are from that one on. Those that have become too old since the last one are among them.
    pub samples: u32,
    /// Errors in the outcome window.
    pub errors: u64,
    /// Permits granted before this limiter time were written off.
    pub written_at: u64,
    /// Permits of probes that were written off and are still out.
    pub written_off: u32,
    /// Those of them for background calls.
    pub written_off_background: u32,
    /// Transitions so far; the newest is number transitions - 1.
    pub transitions: u64,
    /// While probing: one more than the limiter time of the first call granted since the last outcome that counts; 0 =
    /// every probe is answered.
    pub unanswered: u64,
}

/// How calls ended since the limiter was made.
#[repr(C)]
pub struct shmlimit_segment_tallies {
    /// Well.
    pub ok: u64,
    /// With 429.
    pub throttled: u64,
    /// With 5xx.
    pub server: u64,
    /// Without an answer.
    pub net: u64,
    /// With any other 4xx.
    pub other: u64,
    /// Nanoseconds that all calls took whose time was reported.
    pub latency_sum: u64,
    /// How many of them took how long; see SHMLIMIT_SEGMENT_LATENCIES.
    pub latency: [u64; SHMLIMIT_SEGMENT_LATENCIES],
    /// Zero.
    pub unused: [u64; 2],
}

/// What is counted for people only. Those who are attached count in their slots; that is added here when they leave.
#[repr(C)]
pub struct shmlimit_segment_ledger {
    /// Calls granted to those who have left.
    pub granted: u64,
    /// Calls refused to those who have left.
    pub refused: u64,
    /// Looks of the waiting calls of those who have left.
    pub looked: u64,
    /// Answers that were found in a cache.
    pub cache_hits: u64,
    /// Answers that were not.
    pub cache_misses: u64,
    /// Nanoseconds that callers were told to wait before they try again, all together.
    pub sleep_sum: u64,
    /// How many were told to wait how long; see SHMLIMIT_SEGMENT_LATENCIES.
    pub sleep: [u64; SHMLIMIT_SEGMENT_LATENCIES],
    /// Zero.
    pub unused: [u64; 2],
}

/// Who closed the gate last.
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
    /// Limiter time at which it last became larger.
    pub tightened_at: u64,
    /// Admissions so far; number N is at N % SHMLIMIT_SEGMENT_ADMISSIONS of the ring.
    pub admitted: u64,
    /// One more than the window that the gap is for; 0 = none.
    pub bottleneck: u64,
    /// The same if that window's reset was not believed when the gap was set; 0 = it was.
    pub doubted: u64,
}

/// What headers last said about a window of the policy.
#[repr(C)]
pub struct shmlimit_segment_observed_window {
    /// Its limit in the lower 62 bits; bit 63: headers said it, bit 62: its reset was not believed.
    pub limit: u64,
    /// What is left of it.
    pub remaining: u64,
    /// Limiter time at which it starts anew.
    pub reset_at: u64,
    /// One more than the limiter time at which that was said; 0 = never.
    pub seen: u64,
}

/// A change of the breaker's state; number N is at N % SHMLIMIT_SEGMENT_TRANSITIONS.
#[repr(C)]
pub struct shmlimit_segment_transition {
    /// Limiter time.
    pub at: u64,
    /// From which SHMLIMIT_SEGMENT_STATE_...
    pub from: u8,
    /// To which.
    pub to: u8,
    /// SHMLIMIT_SEGMENT_CAUSE_...
    pub cause: u8,
    /// Zero.
    pub unused: [u8; 5],
}

/// The latest pause of the limiter. Transactions only.
#[repr(C)]
pub struct shmlimit_segment_pause {
    /// Limiter time at which it ends: 0 = it is over, UINT64_MAX = when the limiter is resumed. A limiter is paused
    /// while this is later than now.
    pub until: u64,
    /// Limiter time at which it began.
    pub since: u64,
    /// Process id of the process that paused the limiter, in its own pid namespace.
    pub pid: u64,
    /// Its program name, zero-padded.
    pub program: [u8; SHMLIMIT_SEGMENT_PROGRAM_LENGTH],
    /// Why: UTF-8, zero-padded.
    pub reason: [u8; SHMLIMIT_SEGMENT_PAUSE_REASON_LENGTH],
    /// Zero.
    pub unused: [u64; 3],
}

/// How the server is doing. Transactions only.
#[repr(C)]
pub struct shmlimit_segment_health_state {
    /// The breaker's state and the gate.
    pub health: shmlimit_segment_health,
    /// How calls ended.
    pub tallies: shmlimit_segment_tallies,
    /// Who closed the gate.
    pub gate_note: shmlimit_segment_gate_note,
    /// The rate that a ramp began with, in billionths of a unit per second.
    pub ramp_from: u64,
    /// Zero.
    pub unused_note: [u64; 3],
    /// What headers taught.
    pub pace: shmlimit_segment_pace,
    /// Zero.
    pub unused_pace: [u64; 3],
    /// What headers said about each window.
    pub observed_windows: [shmlimit_segment_observed_window; SHMLIMIT_SEGMENT_WINDOWS],
    /// The newest changes of state.
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
