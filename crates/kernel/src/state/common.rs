//! The state that every operation reads: the latest time, the permits, the state of each rule, and the general
//! numbers.

use crate::request::AcquireRequest;
use crate::time::{Nanos, Time};
use crate::{MAX_RULES, MAX_UNITS};
use bytemuck::{Pod, Zeroable};

/// The state that every operation reads and every grant changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Core {
    /// The time of the latest change. Time never goes back behind it (R3).
    pub latest: Time,
    /// Permits that are in use.
    pub in_flight: u32,
    /// Those of the permits that background calls hold.
    pub in_flight_background: u32,
}

/// Number of words of [`Core`].
pub const CORE_WORDS: usize = 2;

/// The state of one rule. The algorithm defines the meaning of all words except the last. All zeros is a fresh
/// rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct RuleState(pub [u64; RULE_WORDS]);

/// Number of words of [`RuleState`].
pub const RULE_WORDS: usize = 4;

/// A word of a state that was lost. No operation writes it, and every algorithm treats it as "all used up".
pub const UNKNOWN: u64 = u64::MAX;

impl RuleState {
    /// Charges made before this time cannot be refunded any more. It is the last word of every algorithm's
    /// state.
    #[inline]
    pub const fn since(self) -> Time {
        Time(self.0[RULE_WORDS - 1])
    }

    /// The same state, in which no earlier charge can be refunded any more.
    #[must_use]
    #[inline]
    pub const fn forgetful(mut self, now: Time) -> RuleState {
        // A call granted later in the same nanosecond cannot be refunded either. That is safe, because it only
        // refunds less.
        self.0[RULE_WORDS - 1] = now.0.saturating_add(1);
        self
    }
}

/// The value that a rule needs to refund a charge. The algorithm defines its meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge(pub u64);

/// The permits that one participant holds. If it dies, they are returned for it (R113).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct Held {
    /// All its permits.
    pub total: u32,
    /// Those that background calls hold.
    pub background: u32,
}

impl Core {
    /// The state with these permits also in use.
    #[inline(always)]
    pub(crate) fn taken(self, permits: Held) -> Core {
        Core {
            in_flight: self.in_flight.saturating_add(permits.total),
            in_flight_background: self.in_flight_background.saturating_add(permits.background),
            ..self
        }
    }

    /// The state with these permits returned.
    #[inline(always)]
    pub(crate) fn given_back(self, permits: Held) -> Core {
        Core {
            in_flight: self.in_flight.saturating_sub(permits.total),
            in_flight_background: self.in_flight_background.saturating_sub(permits.background),
            ..self
        }
    }

    /// Decodes stored words.
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
    /// The sum. Saturates.
    #[inline(always)]
    pub(crate) fn plus(self, other: Held) -> Held {
        Held {
            total: self.total.saturating_add(other.total),
            background: self.background.saturating_add(other.background),
        }
    }

    /// The difference. Saturates.
    #[inline(always)]
    pub(crate) fn minus(self, other: Held) -> Held {
        Held {
            total: self.total.saturating_sub(other.total),
            background: self.background.saturating_sub(other.background),
        }
    }

    /// Decodes a stored word.
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

/// The general numbers of a limiter (all except its rules), in the form that decisions need. They come from the
/// policy and from the breaker's state.
#[derive(Clone, Copy, Debug)]
pub struct General {
    /// Number of rules in use, at most [`crate::MAX_RULES`].
    pub rules: usize,
    /// Number of units in use, at most [`crate::MAX_UNITS`].
    pub units: usize,
    /// Maximum number of permits in use at a time. `None` means [`crate::MAX_PERMITS`].
    pub concurrency: Option<u32>,
    /// Maximum number of permits that background calls may hold (R108). `None` means the same as for all calls.
    pub concurrency_background: Option<u32>,
}

/// The stored number is that of the rules that are *not* in use. A zero from damage then stands for all rules.
/// Rules that the policy does not have also have no stored terms, so they admit nothing.
const ALL_RULES: u8 = crate::MAX_RULES as u8;

/// The stored number if there is no bound. It is never reached. It is not zero, because words that were lost
/// must not mean "no bound". As zeros, they admit no call.
const NO_BOUND: u32 = u32::MAX;

impl PartialEq for General {
    /// Equal if decisions cannot distinguish them.
    fn eq(&self, other: &General) -> bool {
        self.to_words() == other.to_words()
    }
}

impl Eq for General {}

/// Number of words of [`General`].
pub const GENERAL_WORDS: usize = 2;

impl General {
    /// Decodes stored words. Any words give values in range.
    #[inline]
    pub fn from_words(words: [u64; GENERAL_WORDS]) -> General {
        General {
            rules: usize::from(ALL_RULES.wrapping_sub(words[0] as u8)).min(crate::MAX_RULES),
            units: ((words[0] >> 8) as u8 as usize).min(crate::MAX_UNITS),
            concurrency: Some(words[1] as u32),
            concurrency_background: Some((words[1] >> 32) as u32),
        }
    }

    /// The words to store.
    #[inline]
    pub fn to_words(self) -> [u64; GENERAL_WORDS] {
        [
            u64::from(ALL_RULES.wrapping_sub(self.rules as u8)) | (self.units as u64) << 8,
            u64::from(self.concurrency.unwrap_or(crate::MAX_PERMITS))
                | u64::from(self.concurrency_background.unwrap_or(NO_BOUND)) << 32,
        ]
    }
}

/// A grant, with the values needed to undo it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The time of the grant on the limiter's clock.
    pub granted_at: Time,
    /// The charged cost.
    pub cost: [u64; MAX_UNITS],
    /// The permit that the grant holds: one, or none for a peek. It is a whole word, because a ticket is copied
    /// on the fast path.
    pub permit: Held,
    /// How long after `granted_at` a leaky bucket holds the call back, so that calls go out evenly (R25).
    pub delay: Nanos,
    pub(crate) charges: [Charge; MAX_RULES],
}

impl Ticket {
    /// A ticket at `now` that holds no permit and was charged to no rule yet.
    #[inline(always)]
    pub const fn uncharged(request: &AcquireRequest, now: Time) -> Ticket {
        Ticket {
            granted_at: now,
            cost: request.cost,
            permit: Held { total: 0, background: 0 },
            delay: Nanos::ZERO,
            charges: [Charge(0); MAX_RULES],
        }
    }
}

/// The state that an operation has read and checked before its decision, so that the decision does not read it again.
#[derive(Clone, Copy, Debug)]
pub struct Checked {
    /// The common state.
    pub core: Core,
    /// The permits of the participant that asks.
    pub held: Held,
}
