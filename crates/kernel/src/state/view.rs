//! The kernel's only access to a limiter: reading its words, and changing them.

use super::common::{Core, General, Held, RuleState};
use super::queue::{Entry, EntryHead, PlaceSet, Progress, Turn, WaiterCounts};
use crate::policy::{PolicyWords, Queueing};
use crate::terms::Terms;
use crate::time::Time;

/// Reading a limiter: a consistent picture of its policy and state.
///
/// Each call gives a copy. The kernel decides on the copies and reads nothing twice, so that words which
/// change under its hands (a damaged segment) cannot make it contradict itself.
pub trait View: PolicyWords {
    /// What is effective besides the rules.
    fn general(&self) -> General;
    /// Before this time nothing but rules, permits and the queue need be looked at: no breaker, gate or pace is in the
    /// way, and no timer of theirs is due.
    fn next_check(&self) -> Time;
    /// The effective terms of rule `rule`, which is below `general().rules`.
    fn terms(&self, rule: usize) -> Terms;
    /// The common state.
    fn core(&self) -> Core;
    /// The state of rule `rule`.
    fn rule(&self, rule: usize) -> RuleState;
    /// The permits of the participant in `slot`.
    fn held(&self, slot: usize) -> Held;
    /// Since when it has held at least one without a break; the beginning of time if that is not known.
    fn held_since(&self, slot: usize) -> Time {
        let _ = slot;
        Time::ZERO
    }
    /// How many wait.
    fn waiting(&self) -> WaiterCounts;
    /// How those who wait are served.
    fn queueing(&self) -> Queueing;
    /// How far the queue has come.
    fn progress(&self) -> Progress;
    /// Which places of the queue are taken: 64 of them, from `64 * block` on.
    fn places(&self, block: usize) -> PlaceSet;
    /// What the order rests on, of the entry at `place`.
    fn entry_head(&self, place: usize) -> EntryHead;
    /// The entry at `place`.
    fn entry(&self, place: usize) -> Entry;
    /// What a group's turns have come to.
    fn turn(&self, index: usize) -> Turn;
    /// Words of the state of breaker, gate and pace; see [`crate::health_state`].
    fn health_state<const N: usize>(&self, at: usize) -> [u64; N];
    /// A word of the logs.
    fn log(&self, index: usize) -> u64;
    /// Nanoseconds since the Unix epoch at a time on the limiter's clock.
    fn wall(&self, now: Time) -> u64;
    /// Whether the words of the policy are those that were stored. Asked before something is derived from them that
    /// decisions then run on.
    fn is_policy_whole(&self) -> bool {
        true
    }
    /// When the wall clock was last put right; zero if it was not, since the limiter was made; later than all times if it
    /// has lost the time. Calendar windows end only at boundaries that the clock has shown since.
    fn wall_set_at(&self) -> Time;
}

/// Changing a limiter. All changes of one operation take effect together or not at all.
pub trait Memory: View {
    /// Puts other general numbers effective.
    fn set_general(&mut self, general: General);
    /// Stores when attention is needed.
    fn set_next_check(&mut self, next_check: Time);
    /// Puts other terms of rule `rule` effective.
    fn set_terms(&mut self, rule: usize, terms: Terms);
    /// Stores how those who wait are served.
    fn set_queueing(&mut self, queueing: Queueing);
    /// Stores words of the state of breaker, gate and pace.
    fn set_health_state<const N: usize>(&mut self, at: usize, words: [u64; N]);
    /// Stores a word of the logs.
    fn set_log(&mut self, index: usize, word: u64);
    /// Stores the common state.
    fn set_core(&mut self, core: Core);
    /// Stores the state of rule `rule`.
    fn set_rule(&mut self, rule: usize, state: RuleState);
    /// Stores the permits of the participant in `slot`.
    fn set_held(&mut self, slot: usize, held: Held);
    /// Stores how many wait.
    fn set_waiting(&mut self, waiting: WaiterCounts);
    /// Stores how far the queue has come.
    fn set_progress(&mut self, progress: Progress);
    /// Stores which places are taken.
    fn set_places(&mut self, block: usize, places: PlaceSet);
    /// Stores an entry.
    fn set_entry(&mut self, place: usize, entry: &Entry);
    /// Stores when an entry will look again by itself.
    fn set_wake_at(&mut self, place: usize, wake_at: Time);
    /// Stores an entry's place in the order.
    fn set_tag(&mut self, place: usize, tag: u64);
    /// Stores what a group's turns have come to.
    fn set_turn(&mut self, index: usize, turn: Turn);
    /// How many more words this operation may change.
    fn room(&self) -> usize;
}
