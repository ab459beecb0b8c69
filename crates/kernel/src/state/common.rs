//! The state that every operation reads: the latest time, permits, the state of each rule, and the general numbers.

use crate::request::AcquireRequest;
use crate::time::{Nanos, Time};
use crate::{MAX_RULES, MAX_UNITS};
use bytemuck::{Pod, Zeroable};

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
    #[inline]
    pub const fn since(self) -> Time {
        Time(self.0[RULE_WORDS - 1])
    }

    /// The same, with all charges made until now beyond refunding.
    #[must_use]
    #[inline]
    pub const fn forgetful(mut self, now: Time) -> RuleState {
        // A call granted later in this very nanosecond loses its refund too: less is safe.
        self.0[RULE_WORDS - 1] = now.0.saturating_add(1);
        self
    }
}

/// What a rule wants to see again when a charge is taken back; what it means is the algorithm's business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge(pub u64);

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
    /// With these permits out, too.
    #[inline(always)]
    pub(crate) fn taken(self, permits: Held) -> Core {
        Core {
            in_flight: self.in_flight.saturating_add(permits.total),
            in_flight_background: self.in_flight_background.saturating_add(permits.background),
            ..self
        }
    }

    /// With these permits back.
    #[inline(always)]
    pub(crate) fn given_back(self, permits: Held) -> Core {
        Core {
            in_flight: self.in_flight.saturating_sub(permits.total),
            in_flight_background: self.in_flight_background.saturating_sub(permits.background),
            ..self
        }
    }

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
    /// The sum; saturates.
    #[inline(always)]
    pub(crate) fn plus(self, other: Held) -> Held {
        Held {
            total: self.total.saturating_add(other.total),
            background: self.background.saturating_add(other.background),
        }
    }

    /// The difference; saturates.
    #[inline(always)]
    pub(crate) fn minus(self, other: Held) -> Held {
        Held {
            total: self.total.saturating_sub(other.total),
            background: self.background.saturating_sub(other.background),
        }
    }

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
    /// Rules in use; at most [`crate::MAX_RULES`].
    pub rules: usize,
    /// Units in use; at most [`crate::MAX_UNITS`].
    pub units: usize,
    /// Most permits out at a time; nothing = [`crate::MAX_PERMITS`].
    pub concurrency: Option<u32>,
    /// Most permits background may hold (R108); nothing = as many as any.
    pub concurrency_background: Option<u32>,
}

/// Stored is how many rules are *not* in use. Zero, which damage leaves, then stands for all of them, and of those that the
/// policy does not have no terms are stored: they admit nothing.
const ALL_RULES: u8 = crate::MAX_RULES as u8;

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

/// A grant, as much of it as is needed to take it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// When it was granted, by the limiter's time.
    pub granted_at: Time,
    /// What was charged.
    pub cost: [u64; MAX_UNITS],
    /// The permit it holds: one, or none for a peek. A whole word, because a ticket is copied on the fast path.
    pub permit: Held,
    /// How long from `granted_at` a leaky bucket wants the call held back, so that calls go out evenly (R25).
    pub delay: Nanos,
    pub(crate) charges: [Charge; MAX_RULES],
}

/// A ticket of [`acquire_single_bucket`](crate::decide::acquire_single_bucket), as much of it as is not known from the ask: a whole one is made where it will stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub(crate) granted_at: Time,
    pub(crate) permit: Held,
    pub(crate) charge: Charge,
}

impl Taken {
    /// The ticket for what was asked.
    #[inline(always)]
    pub fn ticket(self, request: &AcquireRequest) -> Ticket {
        let mut charges = [Charge::default(); MAX_RULES];
        charges[0] = self.charge;
        let Taken { granted_at, permit, .. } = self;
        Ticket { granted_at, cost: request.cost, permit, delay: Nanos::ZERO, charges }
    }
}
