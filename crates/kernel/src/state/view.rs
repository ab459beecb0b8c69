//! The kernel's only access to a limiter: traits that read and change its words.

use super::common::{Core, General, Held, RuleState};
use super::queue::{Entry, EntryHead, PlaceSet, Progress, Turn, WaiterCounts};
use crate::policy::{PolicyWords, Queueing};
use crate::terms::Terms;
use crate::time::Time;

/// Read access to a limiter: a consistent view of its policy and state.
///
/// Each function returns a copy. The kernel decides on these copies and reads nothing twice. Therefore words
/// that change during a decision (in a damaged segment) cannot make the decision contradict itself.
pub trait View: PolicyWords {
    /// The effective general numbers.
    fn general(&self) -> General;
    /// The next check time. Before it, only rules, permits and the queue matter: no breaker, gate or pace is in
    /// the way, and none of their timers is due.
    fn next_check(&self) -> Time;
    /// `N` words of the effective terms of rule `rule` from word `from` on. The rule is below `general().rules`.
    fn terms_words<const N: usize>(&self, rule: usize, from: usize) -> [u64; N];
    /// The effective terms of rule `rule`.
    #[inline(always)]
    fn terms(&self, rule: usize) -> Terms {
        Terms::from_words(self.terms_words(rule, 0))
    }
    /// The common state.
    fn core(&self) -> Core;
    /// The first `N` words of the state of rule `rule`.
    fn rule_words<const N: usize>(&self, rule: usize) -> [u64; N];
    /// The state of rule `rule`.
    #[inline(always)]
    fn rule(&self, rule: usize) -> RuleState {
        RuleState(self.rule_words(rule))
    }
    /// The permits of the participant in `slot`.
    fn held(&self, slot: usize) -> Held;
    /// The time since which the participant has held at least one permit without interruption. Zero if that is
    /// not known.
    fn held_since(&self, slot: usize) -> Time {
        let _ = slot;
        Time::ZERO
    }
    /// The numbers of waiting calls.
    fn waiting(&self) -> WaiterCounts;
    /// The settings of the queue.
    fn queueing(&self) -> Queueing;
    /// The progress of the queue.
    fn progress(&self) -> Progress;
    /// The occupied ones of 64 places of the queue, from `64 * block` on.
    fn places(&self, block: usize) -> PlaceSet;
    /// The part of the entry at `place` that determines the order.
    fn entry_head(&self, place: usize) -> EntryHead;
    /// The entry at `place`.
    fn entry(&self, place: usize) -> Entry;
    /// A remembered turn of a group.
    fn turn(&self, index: usize) -> Turn;
    /// Words of the health state; see [`crate::health_state`].
    fn health_state<const N: usize>(&self, at: usize) -> [u64; N];
    /// A word of the sliding logs.
    fn log(&self, index: usize) -> u64;
    /// The wall time at a time on the limiter's clock, in nanoseconds since the Unix epoch.
    fn wall(&self, now: Time) -> u64;
    /// Whether the words of the policy are those that were stored. The kernel asks this before it derives
    /// effective limits from them.
    fn is_policy_whole(&self) -> bool {
        true
    }
    /// The time at which the wall clock was last corrected. Zero if it was not corrected since the limiter was
    /// created. Later than all times if the clock has lost the time. Calendar windows end only at boundaries
    /// that the clock has shown since.
    fn wall_set_at(&self) -> Time;
}

/// Write access to a limiter. All changes of one operation take effect together or not at all.
pub trait Memory: View {
    /// Stores the effective general numbers.
    fn set_general(&mut self, general: General);
    /// Stores the next check time.
    fn set_next_check(&mut self, next_check: Time);
    /// Stores the effective terms of rule `rule`.
    fn set_terms(&mut self, rule: usize, terms: Terms);
    /// Stores the settings of the queue.
    fn set_queueing(&mut self, queueing: Queueing);
    /// Stores words of the health state.
    fn set_health_state<const N: usize>(&mut self, at: usize, words: [u64; N]);
    /// Stores a word of the sliding logs.
    fn set_log(&mut self, index: usize, word: u64);
    /// Stores the common state.
    fn set_core(&mut self, core: Core);
    /// Stores the state of rule `rule`.
    fn set_rule(&mut self, rule: usize, state: RuleState);
    /// Stores the permits of the participant in `slot`.
    fn set_held(&mut self, slot: usize, held: Held);
    /// Stores the common state. `before` is what the caller has read, so that only the changed words are written and
    /// no word is read twice.
    #[inline(always)]
    fn replace_core(&mut self, before: Core, after: Core) {
        let _ = before;
        self.set_core(after);
    }
    /// Stores those words of the state of rule `rule` that differ between `before` and `after`. A caller that has not
    /// read a word gives any value for it, the same in both.
    #[inline(always)]
    fn replace_rule(&mut self, rule: usize, before: RuleState, after: RuleState) {
        let RuleState(mut words) = self.rule(rule);
        for (i, word) in words.iter_mut().enumerate().filter(|(i, _)| before.0[*i] != after.0[*i]) {
            *word = after.0[i];
        }
        self.set_rule(rule, RuleState(words));
    }
    /// Stores the permits of the participant in `slot` at `now`, in the same way.
    #[inline(always)]
    fn replace_held(&mut self, slot: usize, before: Held, after: Held, now: Time) {
        let _ = (before, now);
        self.set_held(slot, after);
    }
    /// Stores the numbers of waiting calls.
    fn set_waiting(&mut self, waiting: WaiterCounts);
    /// Stores the progress of the queue.
    fn set_progress(&mut self, progress: Progress);
    /// Stores a set of occupied places.
    fn set_places(&mut self, block: usize, places: PlaceSet);
    /// Stores an entry.
    fn set_entry(&mut self, place: usize, entry: &Entry);
    /// Stores the wake-up time of an entry.
    fn set_wake_at(&mut self, place: usize, wake_at: Time);
    /// Stores the tag of an entry.
    fn set_tag(&mut self, place: usize, tag: u64);
    /// Stores a turn of a group.
    fn set_turn(&mut self, index: usize, turn: Turn);
    /// How many more words this operation may change.
    fn room(&self) -> usize;
}
