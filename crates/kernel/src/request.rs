//! What callers ask for and what they are told.

use super::MAX_UNITS;
use super::time::{Nanos, Time};

crate::named_enum! {
    /// Who goes first, and who may use the reserve (R106).
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::Priority;
    ///
    /// assert_eq!("user".parse(), Ok(Priority::User));
    /// assert_eq!(Priority::default(), Priority::Background);
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum Priority {
        /// Work nobody waits for; leaves the reserve alone.
        #[default]
        Background => "background",
        /// Somebody waits.
        User => "user",
        /// Another program waits.
        Webhook => "webhook",
    }
    /// All of them, the last to be served first.
    pub const ALL;
    /// The name everywhere outside of Rust.
    pub const fn as_str;
    impl FromStr;
}

impl Priority {
    #[inline]
    pub(crate) const fn is_background(self) -> bool {
        matches!(self, Priority::Background)
    }
}

crate::named_enum! {
    /// The first layer that stands in the way.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::Reason;
    ///
    /// assert_eq!(Reason::QueueFull.as_str(), "queue_full");
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Reason {
        /// The breaker sleeps: no call until its timer is over, or an operator says so.
        Sleep => "sleep",
        /// The breaker lets nothing through: use what is cached.
        CacheOnly => "cache_only",
        /// A consecutive breaker is open.
        Open => "open",
        /// The server said when to come again.
        RetryAfter => "retry_after",
        /// Response headers taught a slower pace.
        Adaptive => "adaptive",
        /// All permits are out.
        Concurrency => "concurrency",
        /// A rule has no room yet.
        Rate => "rate",
        /// A rule never has that much room (R6).
        CostExceedsLimit => "cost_exceeds_limit",
        /// Others wait whose turn is before (R131).
        Queued => "queued",
        /// As many calls wait as the queue holds (R137).
        QueueFull => "queue_full",
        /// An operator has paused the limiter (R148).
        Paused => "paused",
        /// Other processes held the lock of the segment in turn until this call's time was over; nothing was decided.
        Busy => "busy",
    }
    /// All of them.
    pub const ALL;
    /// The name everywhere outside of Rust.
    pub const fn as_str;
    impl FromStr;
}

impl Reason {
    /// Why the call may not go, for people.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// println!("not now: {}", shmlimit::Reason::Rate.explanation());
    /// ```
    pub const fn explanation(self) -> &'static str {
        match self {
            Reason::Sleep => "the breaker sleeps, after failures or by an operator",
            Reason::CacheOnly => "the breaker is at cache_only: use what is cached",
            Reason::Open => "the breaker is open, after failures or by an operator",
            Reason::RetryAfter => "the server sent a Retry-After",
            Reason::Adaptive => "the server's headers ask for a slower pace",
            Reason::Concurrency => "all permits are out",
            Reason::Rate => "the rate is used up",
            Reason::CostExceedsLimit => "the cost is more than a rule ever allows",
            Reason::Queued => "others wait whose turn is before",
            Reason::QueueFull => "the queue is full",
            Reason::Paused => "an operator has paused the limiter",
            Reason::Busy => "other processes held the limiter's lock until the time was over",
        }
    }
}

/// What a caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcquireRequest {
    /// How much of each unit, by the unit's index. All zero is a peek: it takes nothing, not even a permit.
    pub cost: [u64; MAX_UNITS],
    /// For whom.
    pub priority: Priority,
}

impl AcquireRequest {
    /// One request.
    #[inline]
    pub const fn one(priority: Priority) -> AcquireRequest {
        AcquireRequest::requests(1, priority)
    }

    /// That many requests.
    #[inline]
    pub const fn requests(cost: u64, priority: Priority) -> AcquireRequest {
        AcquireRequest { cost: [cost, 0, 0, 0], priority }
    }

    #[inline]
    pub(crate) const fn is_peek(&self) -> bool {
        let [a, b, c, d] = self.cost;
        a | b | c | d == 0
    }
}

/// What stands in the way of every call, and until when; nothing = nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) reason: Reason,
    pub(crate) until: Option<Time>,
}

/// Why not, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The first layer that stands in the way.
    pub reason: Reason,
    /// Which rule, if it was one: the one with the longest wait, the first of equals (R39). With [`Reason::Adaptive`],
    /// which window of the headers.
    pub rule: Option<u8>,
    /// When the layer in `reason` admits, absent other traffic (R4); nothing = never, or nobody can know.
    pub retry_at: Option<Time>,
    /// Before this no layer that knows its time would let it pass; a deadline before it cannot be met (R132).
    /// Nothing = never.
    pub ready_at: Option<Time>,
    /// When the gate of a Retry-After opens; not after `checked_at` = it is open.
    pub gate: Time,
    /// The limiter's time of this judgement.
    pub checked_at: Time,
}

impl Refusal {
    /// How long until `retry_at`.
    #[inline]
    pub fn retry_after(&self) -> Option<Nanos> {
        self.retry_at.map(|at| at.since(self.checked_at))
    }

    /// When what blocks every call ends: `retry_at`, but of a Sleep not before the gate opens (R57).
    pub fn eta(&self) -> Option<Time> {
        if self.reason == Reason::Sleep { self.retry_at.map(|at| at.max(self.gate)) } else { self.retry_at }
    }
}
