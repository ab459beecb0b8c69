//! The mutable state of a limiter as plain words, and the kernel's only window on it.

use bytemuck::{Pod, Zeroable};

use super::policy::{Fairness, PolicyWords};
use super::queue::{Entry, Places, Progress, Standing, Turn, Waiting};
use super::terms::Terms;
use super::time::Time;

/// What every operation reads and every grant changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Core {
    /// The latest time a change was made at; time never goes back behind it (R3).
    pub latest: Time,
    /// Permits that are out.
    pub in_flight: u32,
    /// Those of them that background calls hold.
    pub in_flight_background: u32,
}

/// How many words [`Core`] takes.
pub const CORE_WORDS: usize = 2;

/// The state of one rule. What the words mean is the algorithm's business, but for the last; all zero
/// is a fresh rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct RuleState(pub [u64; RULE_WORDS]);

/// How many words [`RuleState`] takes.
pub const RULE_WORDS: usize = 4;

/// A word of a state that was lost. No operation makes it; every algorithm takes it for "all used up".
pub const UNKNOWN: u64 = u64::MAX;

impl RuleState {
    /// Charges made before this are not refunded any more. The last word of every algorithm's state.
    pub const fn since(self) -> Time {
        Time(self.0[RULE_WORDS - 1])
    }

    /// The same, with all charges made until now beyond refunding.
    #[must_use]
    pub const fn forgetful(mut self, now: Time) -> RuleState {
        // A call granted later in this very nanosecond loses its refund too: less is safe.
        self.0[RULE_WORDS - 1] = now.0.saturating_add(1);
        self
    }
}

/// The permits one participant holds, given back for it when it dies (R113).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct Held {
    /// All of them.
    pub total: u32,
    /// Those that background calls hold.
    pub background: u32,
}

impl Core {
    /// From stored words.
    #[inline]
    pub fn from_words(words: [u64; CORE_WORDS]) -> Core {
        Core {
            latest: Time(words[0]),
            in_flight: words[1] as u32,
            in_flight_background: (words[1] >> 32) as u32,
        }
    }

    /// The words to store.
    #[inline]
    pub fn to_words(self) -> [u64; CORE_WORDS] {
        [self.latest.0, u64::from(self.in_flight) | u64::from(self.in_flight_background) << 32]
    }
}

impl Held {
    /// From a stored word.
    #[inline]
    pub fn from_word(word: u64) -> Held {
        Held { total: word as u32, background: (word >> 32) as u32 }
    }

    /// The word to store.
    #[inline]
    pub fn to_word(self) -> u64 {
        u64::from(self.total) | u64::from(self.background) << 32
    }
}

/// What is not about one rule, as decisions need it: from the policy, and from the breaker's state.
#[derive(Clone, Copy, Debug)]
pub struct General {
    /// Rules in use; at most [`super::MAX_RULES`].
    pub rules: usize,
    /// Units in use; at most [`super::MAX_UNITS`].
    pub units: usize,
    /// Most permits out at a time; nothing = [`super::MAX_PERMITS`].
    pub concurrency: Option<u32>,
    /// Most permits background may hold (R108); nothing = as many as any.
    pub concurrency_background: Option<u32>,
}

/// Stored is how many rules are *not* in use. Zero, which damage leaves, then stands for all of them, and of those that the
/// policy does not have no terms are stored: they admit nothing.
const ALL_RULES: u8 = super::MAX_RULES as u8;

/// Where there is no bound a number is stored that is never met. Not zero: words that were lost must not stand for "no
/// bound", and as they are admit nobody.
const NO_BOUND: u32 = u32::MAX;

impl PartialEq for General {
    /// Equal if decisions cannot tell them apart.
    fn eq(&self, other: &General) -> bool {
        self.to_words() == other.to_words()
    }
}

impl Eq for General {}

/// How many words [`General`] takes.
pub const GENERAL_WORDS: usize = 2;

impl General {
    /// From stored words; any words give values in range.
    #[inline]
    pub fn from_words(words: [u64; GENERAL_WORDS]) -> General {
        General {
            rules: usize::from(ALL_RULES.wrapping_sub(words[0] as u8)).min(super::MAX_RULES),
            units: ((words[0] >> 8) as u8 as usize).min(super::MAX_UNITS),
            concurrency: Some(words[1] as u32),
            concurrency_background: Some((words[1] >> 32) as u32),
        }
    }

    /// The words to store.
    #[inline]
    pub fn to_words(self) -> [u64; GENERAL_WORDS] {
        [
            u64::from(ALL_RULES.wrapping_sub(self.rules as u8)) | (self.units as u64) << 8,
            u64::from(self.concurrency.unwrap_or(super::MAX_PERMITS))
                | u64::from(self.concurrency_background.unwrap_or(NO_BOUND)) << 32,
        ]
    }
}

/// How those who wait are served, as decisions need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queueing {
    /// Whose turn it is within a priority.
    pub fairness: Fairness,
    /// What the background gets even under a flood of higher priorities, in millionths.
    pub background_share: u32,
    /// Whether there are priorities at all; else all calls are the background's, and there is no reserve.
    pub priorities: bool,
}

/// All of the budget, as a share in millionths.
pub const WHOLE_SHARE: u32 = 1_000_000;

impl Queueing {
    /// From its word of an encoded policy; any word gives values in range.
    #[inline]
    pub fn from_word(word: u64) -> Queueing {
        Queueing {
            fairness: if word & 1 == 1 { Fairness::Fifo } else { Fairness::Process },
            background_share: ((word >> 32) as u32).min(WHOLE_SHARE),
            priorities: word & 2 == 0,
        }
    }

    /// The word for an encoded policy.
    #[inline]
    pub fn to_word(self) -> u64 {
        u64::from(self.fairness == Fairness::Fifo)
            | u64::from(!self.priorities) << 1
            | u64::from(self.background_share) << 32
    }
}

/// Reading a limiter: a consistent picture of its policy and state.
///
/// Each call gives a copy. The kernel decides on the copies and reads nothing twice, so that words which
/// change under its hands (a damaged segment) cannot make it contradict itself.
pub trait View: PolicyWords {
    /// What is in force besides the rules.
    fn general(&self) -> General;
    /// Before this time nothing but rules, permits and the queue need be looked at: no breaker, gate or pace is in the
    /// way, and no timer of theirs is due.
    fn attention(&self) -> Time;
    /// The terms in force of rule `rule`, which is below `general().rules`.
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
    fn waiting(&self) -> Waiting;
    /// How those who wait are served.
    fn queueing(&self) -> Queueing;
    /// How far the queue has come.
    fn progress(&self) -> Progress;
    /// Which places of the queue are taken: 64 of them, from `64 * block` on.
    fn places(&self, block: usize) -> Places;
    /// What the order rests on, of the entry at `place`.
    fn standing(&self, place: usize) -> Standing;
    /// The entry at `place`.
    fn entry(&self, place: usize) -> Entry;
    /// What a group's turns have come to.
    fn turn(&self, index: usize) -> Turn;
    /// Words of the state of breaker, gate and pace; see [`super::sheet`].
    fn sheet<const N: usize>(&self, at: usize) -> [u64; N];
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
    /// Puts other general numbers in force.
    fn set_general(&mut self, general: General);
    /// Stores when attention is needed.
    fn set_attention(&mut self, attention: Time);
    /// Puts other terms of rule `rule` in force.
    fn set_terms(&mut self, rule: usize, terms: Terms);
    /// Stores how those who wait are served.
    fn set_queueing(&mut self, queueing: Queueing);
    /// Stores words of the state of breaker, gate and pace.
    fn set_sheet<const N: usize>(&mut self, at: usize, words: [u64; N]);
    /// Stores a word of the logs.
    fn set_log(&mut self, index: usize, word: u64);
    /// Stores the common state.
    fn set_core(&mut self, core: Core);
    /// Stores the state of rule `rule`.
    fn set_rule(&mut self, rule: usize, state: RuleState);
    /// Stores the permits of the participant in `slot`.
    fn set_held(&mut self, slot: usize, held: Held);
    /// Stores how many wait.
    fn set_waiting(&mut self, waiting: Waiting);
    /// Stores how far the queue has come.
    fn set_progress(&mut self, progress: Progress);
    /// Stores which places are taken.
    fn set_places(&mut self, block: usize, places: Places);
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
