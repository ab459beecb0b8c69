//! The layout of the health state, word by word: outcomes, breaker, gate, the readings of response headers,
//! statistics and the pause. It holds all state of a limiter except rules, permits and the queue.
//!
//! ```text
//! word
//!    0..16    health       the breaker's state, the gate, counters
//!   16..40    tallies      how calls ended, and how long they took
//!   40..44    gate note    which process closed the gate
//!   44        ramp         the rate at which a ramp began
//!   48..53    pace         the gap between calls, from response headers
//!   56..88    windows      four words for each of eight windows
//!   88..112   transitions  the newest twelve, two words each
//!  112..1136  outcomes     a ring: time << 2 | class
//! 1136..2160  admissions   a ring of times
//! 2160..2184  ledger       counts for reports only (kernel/ledger.rs)
//! 2184..2248  codes        number of calls per result code: code << 48 | count
//! 2248..2264  pause        end, begin, process and reason (kernel/pause.rs)
//! ```
//!
//! All zeros is a fresh health state. Any words are a valid health state: values are brought into range where
//! they are used.

use super::policy::{MAX_OUTCOMES, PerSecond};
use super::state::{BreakerState, CODES, LEDGER_WORDS, Memory, PAUSE_WORDS, TransitionCause, View, bucket};
use super::time::{Nanos, Time};

pub use super::state::{
    ATTEMPT, GateNote, Health, LATENCY_BOUNDS, OFFLINE, ObservedWindow, Pace, Pause, RAMPING, Tallies,
    Transition,
};

/// Number of words of a health state.
pub const HEALTH_STATE_WORDS: usize = PAUSE_AT + PAUSE_WORDS;
/// Number of these words before the rings.
pub const HEALTH_STATE_HEAD_WORDS: usize = OUTCOMES_AT;

/// Word index of the breaker's state and the gate.
pub const HEALTH_AT: usize = 0;
const WRITTEN_OFF_AT: usize = HEALTH_AT + 13;
const _: () = {
    assert!(std::mem::offset_of!(Health, written_off) == 8 * WRITTEN_OFF_AT);
    // The words that `healthy_window` reads.
    assert!(
        std::mem::offset_of!(Health, sustained) == 8 * 5 && std::mem::offset_of!(Health, consec429) == 8 * 7
    );
    assert!(std::mem::offset_of!(Health, agreed) == 8 * 8 && std::mem::offset_of!(Health, run) == 8 * 9);
    assert!(std::mem::offset_of!(Health, oldest) == 8 * 10 && std::mem::offset_of!(Health, errors) == 8 * 11);
    assert!(std::mem::offset_of!(Tallies, ok) == 0);
    assert!(std::mem::offset_of!(Tallies, latency_sum) == 8 * LATENCY_SUM_AT);
    assert!(std::mem::offset_of!(Tallies, latency) == 8 * LATENCY_AT);
};
/// Word index of the tallies.
pub const TALLIES_AT: usize = 16;
const LATENCY_SUM_AT: usize = 5;
const LATENCY_AT: usize = 6;
/// Word index of the gate note.
pub const GATE_NOTE_AT: usize = 40;
/// Word index of the rate at which a ramp began.
pub const RAMP_FROM_AT: usize = 44;
/// Word index of the pace.
pub const PACE_AT: usize = 48;
/// Word index of the observed windows.
pub const WINDOWS_AT: usize = 56;
/// Word index of the transitions.
pub const TRANSITIONS_AT: usize = 88;
/// Word index of the ring of outcomes.
pub const OUTCOMES_AT: usize = 112;
/// Word index of the ring of admissions.
pub const ADMISSIONS_AT: usize = OUTCOMES_AT + MAX_OUTCOMES as usize;
/// Word index of the ledger.
pub const LEDGER_AT: usize = ADMISSIONS_AT + MAX_ADMISSIONS;
/// Word index of the codes.
pub const CODES_AT: usize = LEDGER_AT + LEDGER_WORDS;
/// Word index of the pause.
pub const PAUSE_AT: usize = CODES_AT + CODES;
/// Number of admission times that are remembered: one more than the gaps between them.
pub const MAX_ADMISSIONS: usize = 1024;
/// Number of transitions that are remembered.
pub const TRANSITIONS: u64 = 12;

/// Reads the health state.
pub trait HealthStateView: View {
    /// The breaker's state and the gate.
    fn health(&self) -> Health {
        bytemuck::cast::<[u64; 16], _>(self.health_state(HEALTH_AT))
    }

    /// The outcome window (oldest, samples), if no failure is stored and the state is Normal. A success then
    /// changes only the window.
    #[inline(always)]
    fn healthy_window(&self) -> Option<(u32, u32)> {
        // The words in order: state and flags; sustained; 429 count and successes; agreed and sleeps; run and
        // failures; the window; errors.
        let [state] = self.health_state::<1>(HEALTH_AT);
        let [sustained] = self.health_state::<1>(HEALTH_AT + 5);
        let [throttled, agreed, run, window, errors] = self.health_state(HEALTH_AT + 7);
        let halves = |word: u64| bytemuck::cast::<u64, [u32; 2]>(word);
        let ([state, _], [agreed, _]) = (halves(state), halves(agreed));
        let healthy = u64::from(state) | sustained | throttled | u64::from(agreed) | run | errors == 0;
        let [oldest, samples] = halves(window);
        if healthy { Some((oldest, samples)) } else { None }
    }

    /// Whether probe permits were written off and are still out. Reads a single word, for the fast path. The
    /// full count is in [`Health`].
    #[inline(always)]
    fn has_written_off(&self) -> bool {
        let [word] = self.health_state(WRITTEN_OFF_AT);
        word != 0
    }

    /// The counts of how calls ended.
    fn tallies(&self) -> Tallies {
        bytemuck::cast::<[u64; 24], _>(self.health_state(TALLIES_AT))
    }

    /// The note about the process that closed the gate.
    fn gate_note(&self) -> GateNote {
        bytemuck::cast::<[u64; 4], _>(self.health_state(GATE_NOTE_AT))
    }

    /// The rate at which a ramp began. Each step is computed from it, so that rounding errors do not add up
    /// (R62).
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

    /// The last readings of one window from response headers.
    fn observed_window(&self, window: usize) -> ObservedWindow {
        bytemuck::cast::<[u64; 4], _>(self.health_state(WINDOWS_AT + 4 * (window % 8)))
    }

    /// The transition with that number, which must be among the newest [`TRANSITIONS`].
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

    /// The time of the admission with that number, which must be among the newest [`MAX_ADMISSIONS`].
    fn admission(&self, number: u64) -> Time {
        let [time] = self.health_state(ADMISSIONS_AT + (number % MAX_ADMISSIONS as u64) as usize);
        Time(time)
    }
}

impl<V: View> HealthStateView for V {}

/// Changes the health state.
pub trait HealthStateMemory: Memory {
    /// Stores the breaker's state and the gate.
    fn set_health(&mut self, health: &Health) {
        self.set_health_state(HEALTH_AT, bytemuck::cast::<_, [u64; 16]>(*health));
    }

    /// Stores only the outcome window.
    #[inline(always)]
    fn set_healthy_window(&mut self, oldest: u32, samples: u32) {
        self.set_health_state(HEALTH_AT + 10, [bytemuck::cast::<[u32; 2], u64>([oldest, samples])]);
    }

    /// Counts a call that succeeded.
    #[inline(always)]
    fn add_ok(&mut self) {
        let [ok] = self.health_state(TALLIES_AT);
        self.set_health_state(TALLIES_AT, [u64::wrapping_add(ok, 1)]);
    }

    /// Counts the duration of a call.
    fn add_latency(&mut self, latency: Nanos) {
        let (sum, count) = (TALLIES_AT + LATENCY_SUM_AT, TALLIES_AT + LATENCY_AT + bucket(latency));
        for (word, more) in [(sum, latency.0), (count, 1)] {
            let [before] = self.health_state(word);
            self.set_health_state(word, [u64::wrapping_add(before, more)]);
        }
    }

    /// Stores the counts of how calls ended.
    fn set_tallies(&mut self, tallies: &Tallies) {
        self.set_health_state(TALLIES_AT, bytemuck::cast::<_, [u64; 24]>(*tallies));
    }

    /// Stores the note about the process that closed the gate.
    fn set_gate_note(&mut self, note: &GateNote) {
        self.set_health_state(GATE_NOTE_AT, bytemuck::cast::<_, [u64; 4]>(*note));
    }

    /// Stores the rate at which a ramp begins.
    fn set_ramp_from(&mut self, rate: PerSecond) {
        self.set_health_state(RAMP_FROM_AT, [rate.0]);
    }

    /// Stores the pace.
    fn set_pace(&mut self, pace: &Pace) {
        self.set_health_state(PACE_AT, bytemuck::cast::<_, [u64; 5]>(*pace));
    }

    /// Stores the readings of one window from response headers.
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
    #[inline(always)]
    fn set_outcome(&mut self, index: u32, word: u64) {
        self.set_health_state(OUTCOMES_AT + (index % MAX_OUTCOMES) as usize, [word]);
    }

    /// Stores the time of an admission.
    fn set_admission(&mut self, number: u64, at: Time) {
        self.set_health_state(ADMISSIONS_AT + (number % MAX_ADMISSIONS as u64) as usize, [at.0]);
    }
}

impl<M: Memory> HealthStateMemory for M {}
