//! What a limiter remembers besides rules, permits and the queue, as plain words: how calls ended, what that led to, and
//! what response headers said.
//!
//! ```text
//! word
//!    0..16    health       the breaker's state, the gate, counters
//!   16..40    tallies      how calls ended, and how long they took
//!   40..44    gate note    who closed the gate
//!   44        ramp         the rate that a ramp began with
//!   48..53    pace         the gap between calls that headers taught
//!   56..88    windows      four words for each of eight windows
//!   88..112   transitions  the newest twelve, two words each
//!  112..1136  outcomes     a ring: time << 2 | class
//! 1136..2160  admissions   a ring of times
//! 2160..2184  ledger       what is counted for people only (kernel/ledger.rs)
//! 2184..2248  codes        how often calls ended with which code: code << 48 | count
//! 2248..2264  pause        until when, since when, by which process, why (kernel/pause.rs)
//! ```
//!
//! All zero is a fresh health state, and any words are one: what is read is brought into range where it is used.

use super::policy::{MAX_OUTCOMES, PerSecond};
use super::state::{BreakerState, CODES, LEDGER_WORDS, Memory, PAUSE_WORDS, TransitionCause, View, bucket};
use super::time::{Nanos, Time};

pub use super::state::{
    ATTEMPT, GateNote, Health, LATENCY_BOUNDS, OFFLINE, ObservedWindow, Pace, Pause, RAMPING, Tallies,
    Transition,
};

/// How many words a health state takes.
pub const HEALTH_STATE_WORDS: usize = PAUSE_AT + PAUSE_WORDS;
/// How many of them come before the rings.
pub const HEALTH_STATE_HEAD_WORDS: usize = OUTCOMES_AT;

/// Where the breaker's state and the gate are.
pub const HEALTH_AT: usize = 0;
const WRITTEN_OFF_AT: usize = HEALTH_AT + 13;
const _: () = {
    assert!(std::mem::offset_of!(Health, written_off) == 8 * WRITTEN_OFF_AT);
    // Where `healthy_window` looks.
    assert!(
        std::mem::offset_of!(Health, sustained) == 8 * 5 && std::mem::offset_of!(Health, consec429) == 8 * 7
    );
    assert!(std::mem::offset_of!(Health, agreed) == 8 * 8 && std::mem::offset_of!(Health, run) == 8 * 9);
    assert!(std::mem::offset_of!(Health, oldest) == 8 * 10 && std::mem::offset_of!(Health, errors) == 8 * 11);
    assert!(std::mem::offset_of!(Tallies, ok) == 0);
    assert!(std::mem::offset_of!(Tallies, latency_sum) == 8 * LATENCY_SUM_AT);
    assert!(std::mem::offset_of!(Tallies, latency) == 8 * LATENCY_AT);
};
/// Where the tallies are.
pub const TALLIES_AT: usize = 16;
const LATENCY_SUM_AT: usize = 5;
const LATENCY_AT: usize = 6;
/// Where the gate note is.
pub const GATE_NOTE_AT: usize = 40;
/// Where the rate is that a ramp began with.
pub const RAMP_FROM_AT: usize = 44;
/// Where the pace is.
pub const PACE_AT: usize = 48;
/// Where the windows are.
pub const WINDOWS_AT: usize = 56;
/// Where the transitions are.
pub const TRANSITIONS_AT: usize = 88;
/// Where the ring of outcomes is.
pub const OUTCOMES_AT: usize = 112;
/// Where the ring of admissions is.
pub const ADMISSIONS_AT: usize = OUTCOMES_AT + MAX_OUTCOMES as usize;
/// Where the ledger is.
pub const LEDGER_AT: usize = ADMISSIONS_AT + MAX_ADMISSIONS;
/// Where the codes are.
pub const CODES_AT: usize = LEDGER_AT + LEDGER_WORDS;
/// Where the pause is.
pub const PAUSE_AT: usize = CODES_AT + CODES;
/// Times of admissions that are remembered at most: one more than gaps between them.
pub const MAX_ADMISSIONS: usize = 1024;
/// Transitions that are remembered.
pub const TRANSITIONS: u64 = 12;

/// Reading the health state.
pub trait HealthStateView: View {
    /// The breaker's state and the gate.
    fn health(&self) -> Health {
        bytemuck::cast::<[u64; 16], _>(self.health_state(HEALTH_AT))
    }

    /// The outcome window (oldest, samples), if no failure is remembered and the state is Normal: then a success changes
    /// nothing but the window.
    #[inline(always)]
    fn healthy_window(&self) -> Option<(u32, u32)> {
        // Word by word: state and flags, sustained, 429 and successes, agreed and sleeps, run and failures, the window,
        // errors.
        let [state] = self.health_state::<1>(HEALTH_AT);
        let [sustained] = self.health_state::<1>(HEALTH_AT + 5);
        let [throttled, agreed, run, window, errors] = self.health_state(HEALTH_AT + 7);
        let halves = |word: u64| bytemuck::cast::<u64, [u32; 2]>(word);
        let ([state, _], [agreed, _]) = (halves(state), halves(agreed));
        let healthy = u64::from(state) | sustained | throttled | u64::from(agreed) | run | errors == 0;
        let [oldest, samples] = halves(window);
        if healthy { Some((oldest, samples)) } else { None }
    }

    /// How many permits of probes were written off and are still out; a hint, the health has it all.
    #[inline(always)]
    fn has_written_off(&self) -> bool {
        let [word] = self.health_state(WRITTEN_OFF_AT);
        word != 0
    }

    /// How calls ended.
    fn tallies(&self) -> Tallies {
        bytemuck::cast::<[u64; 24], _>(self.health_state(TALLIES_AT))
    }

    /// Who closed the gate.
    fn gate_note(&self) -> GateNote {
        bytemuck::cast::<[u64; 4], _>(self.health_state(GATE_NOTE_AT))
    }

    /// The rate that a ramp began with: each step is computed from it, so that roundings do not add up (R62).
    fn ramp_from(&self) -> PerSecond {
        let [rate] = self.health_state(RAMP_FROM_AT);
        PerSecond(rate)
    }

    /// The latest pause, which may be over.
    fn pause(&self) -> Pause {
        bytemuck::cast::<[u64; PAUSE_WORDS], _>(self.health_state(PAUSE_AT))
    }

    /// The pace.
    fn pace(&self) -> Pace {
        bytemuck::cast::<[u64; 5], _>(self.health_state(PACE_AT))
    }

    /// What headers said about a window.
    fn observed_window(&self, window: usize) -> ObservedWindow {
        bytemuck::cast::<[u64; 4], _>(self.health_state(WINDOWS_AT + 4 * (window % 8)))
    }

    /// The transition of that number, which must be among the newest [`TRANSITIONS`].
    fn transition(&self, number: u64) -> Transition {
        let [at, what] = self.health_state(TRANSITIONS_AT + 2 * (number % TRANSITIONS) as usize);
        Transition {
            at: Time(at),
            from: BreakerState::from_code(u32::from(what as u8)),
            to: BreakerState::from_code(u32::from((what >> 8) as u8)),
            cause: TransitionCause::from_code((what >> 16) as u8),
        }
    }

    /// An entry of the ring of outcomes.
    fn outcome(&self, index: u32) -> u64 {
        let [word] = self.health_state(OUTCOMES_AT + (index % MAX_OUTCOMES) as usize);
        word
    }

    /// When the admission of that number was, which must be among the newest [`MAX_ADMISSIONS`].
    fn admission(&self, number: u64) -> Time {
        let [time] = self.health_state(ADMISSIONS_AT + (number % MAX_ADMISSIONS as u64) as usize);
        Time(time)
    }
}

impl<V: View> HealthStateView for V {}

/// Changing the health state.
pub trait HealthStateMemory: Memory {
    /// Stores the breaker's state and the gate.
    fn set_health(&mut self, health: &Health) {
        self.set_health_state(HEALTH_AT, bytemuck::cast::<_, [u64; 16]>(*health));
    }

    /// Stores the outcome window alone.
    #[inline(always)]
    fn set_healthy_window(&mut self, oldest: u32, samples: u32) {
        self.set_health_state(HEALTH_AT + 10, [bytemuck::cast::<[u32; 2], u64>([oldest, samples])]);
    }

    /// Counts a call that ended well.
    #[inline(always)]
    fn add_ok(&mut self) {
        let [ok] = self.health_state(TALLIES_AT);
        self.set_health_state(TALLIES_AT, [u64::wrapping_add(ok, 1)]);
    }

    /// Counts how long a call took.
    fn add_latency(&mut self, latency: Nanos) {
        let (sum, count) = (TALLIES_AT + LATENCY_SUM_AT, TALLIES_AT + LATENCY_AT + bucket(latency));
        for (word, more) in [(sum, latency.0), (count, 1)] {
            let [before] = self.health_state(word);
            self.set_health_state(word, [u64::wrapping_add(before, more)]);
        }
    }

    /// Stores how calls ended.
    fn set_tallies(&mut self, tallies: &Tallies) {
        self.set_health_state(TALLIES_AT, bytemuck::cast::<_, [u64; 24]>(*tallies));
    }

    /// Stores who closed the gate.
    fn set_gate_note(&mut self, note: &GateNote) {
        self.set_health_state(GATE_NOTE_AT, bytemuck::cast::<_, [u64; 4]>(*note));
    }

    /// Stores the rate that a ramp begins with.
    fn set_ramp_from(&mut self, rate: PerSecond) {
        self.set_health_state(RAMP_FROM_AT, [rate.0]);
    }

    /// Stores the pace.
    fn set_pace(&mut self, pace: &Pace) {
        self.set_health_state(PACE_AT, bytemuck::cast::<_, [u64; 5]>(*pace));
    }

    /// Stores what headers said about a window.
    fn set_observed_window(&mut self, window: usize, observed_window: &ObservedWindow) {
        self.set_health_state(WINDOWS_AT + 4 * (window % 8), bytemuck::cast::<_, [u64; 4]>(*observed_window));
    }

    /// Stores a transition under its number.
    fn set_transition(&mut self, number: u64, transition: &Transition) {
        let Transition { at, from, to, cause } = *transition;
        let what = from as u64 | (to as u64) << 8 | (cause as u64) << 16;
        self.set_health_state(TRANSITIONS_AT + 2 * (number % TRANSITIONS) as usize, [at.0, what]);
    }

    /// Stores an entry of the ring of outcomes.
    fn set_outcome(&mut self, index: u32, word: u64) {
        self.set_health_state(OUTCOMES_AT + (index % MAX_OUTCOMES) as usize, [word]);
    }

    /// Stores when an admission was.
    fn set_admission(&mut self, number: u64, at: Time) {
        self.set_health_state(ADMISSIONS_AT + (number % MAX_ADMISSIONS as u64) as usize, [at.0]);
    }
}

impl<M: Memory> HealthStateMemory for M {}
