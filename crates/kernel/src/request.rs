//! Requests of callers, and the refusals they receive.

use super::MAX_UNITS;
use super::time::{Nanos, Time};

crate::named_enum! {
    /// The priority of a call: which waiting call goes first, and which calls may use the reserve (R106).
    ///
    /// Served in this order: webhook, user, background. Webhook and user may use the reserve. A background call goes first
    /// only when it is owed its share (`background_share`).
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
        /// Work that no one is waiting for. Does not use the reserve.
        #[default]
        Background => "background",
        /// A person is waiting for the result.
        User => "user",
        /// Another program is waiting for the result.
        Webhook => "webhook",
    }
    /// All priorities, from the lowest to the highest.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::Priority;
    ///
    /// assert_eq!(Priority::ALL, [Priority::Background, Priority::User, Priority::Webhook]);
    /// ```
    pub const ALL;
    /// The name outside Rust: in C, Python, JSON and logs.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::Priority::User.as_str(), "user");
    /// ```
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
    /// The reason of a refusal: the first layer in the way of the call.
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
        /// The breaker is in the Sleep state. No calls until its timer ends or an operator changes the state.
        Sleep => "sleep",
        /// The breaker is in the CacheOnly state. No calls: use cached answers.
        CacheOnly => "cache_only",
        /// A consecutive breaker is open.
        Open => "open",
        /// The server sent a Retry-After.
        RetryAfter => "retry_after",
        /// Response headers ask for a slower pace.
        Adaptive => "adaptive",
        /// All permits are in use.
        Concurrency => "concurrency",
        /// A rule has no room yet.
        Rate => "rate",
        /// The cost is more than a rule can ever admit (R6).
        CostExceedsLimit => "cost_exceeds_limit",
        /// Other calls are ahead in the queue (R131).
        Queued => "queued",
        /// The queue holds as many calls as it can (R137).
        QueueFull => "queue_full",
        /// An operator has paused the limiter (R148).
        Paused => "paused",
        /// Other processes held the lock of the segment in turn until this call's deadline. Nothing was
        /// decided.
        Busy => "busy",
    }
    /// All reasons.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert!(shmlimit::Reason::ALL.contains(&shmlimit::Reason::Rate));
    /// ```
    pub const ALL;
    /// The name outside Rust: in C, Python, JSON and logs.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::Reason::RetryAfter.as_str(), "retry_after");
    /// ```
    pub const fn as_str;
    impl FromStr;
}

impl Reason {
    /// The reason as a text for people.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// println!("not now: {}", shmlimit::Reason::Rate.explanation());
    /// ```
    pub const fn explanation(self) -> &'static str {
        match self {
            Reason::Sleep => "the breaker was put to sleep, by failures or by an operator",
            Reason::CacheOnly => "the breaker is at cache_only: use cached answers",
            Reason::Open => "the breaker was opened, by failures or by an operator",
            Reason::RetryAfter => "paused by Retry-After",
            Reason::Adaptive => "the API's headers ask for a slower pace",
            Reason::Concurrency => "all calls allowed at a time are in flight",
            Reason::Rate => "the rate is used up",
            Reason::CostExceedsLimit => "the cost is more than a rule ever allows at once",
            Reason::Queued => "other calls wait before this one",
            Reason::QueueFull => "the queue is full",
            Reason::Paused => "an operator has paused the limiter",
            Reason::Busy => "other processes held the limiter's lock until the call's deadline",
        }
    }
}

/// A request for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcquireRequest {
    /// The cost in each unit, by the unit's index. If all are zero, the request is a peek: it takes nothing,
    /// not even a permit.
    pub cost: [u64; MAX_UNITS],
    /// The priority of the call.
    pub priority: Priority,
}

impl AcquireRequest {
    /// A request with the cost of one request.
    #[inline]
    pub const fn one(priority: Priority) -> AcquireRequest {
        AcquireRequest::requests(1, priority)
    }

    /// A request with the cost of that many requests.
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

/// A layer that blocks every call, and the end of the block. `None` if the end is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) reason: Reason,
    pub(crate) until: Option<Time>,
}

/// A refusal: the reason, and the time for the next try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The first layer in the way.
    pub reason: Reason,
    /// The index of the rule that refused, if a rule did. If several did, it is the one with the longest wait; if
    /// their waits are equal, the first of them (R39). With [`Reason::Adaptive`], it is the index of the window of
    /// the response headers.
    pub rule: Option<u8>,
    /// The time at which the layer in `reason` admits the call, if no other call comes first (R4). `None` if
    /// that never happens or cannot be known.
    pub retry_at: Option<Time>,
    /// The earliest time at which the layers with a known end admit the call. A deadline before it cannot be
    /// met (R132). `None` means never.
    pub ready_at: Option<Time>,
    /// The time at which the gate of a Retry-After opens. If it is not after `checked_at`, the gate is open.
    pub gate: Time,
    /// The time of this refusal on the limiter's clock.
    pub checked_at: Time,
}

impl Refusal {
    /// The time until `retry_at`.
    #[inline]
    pub fn retry_after(&self) -> Option<Nanos> {
        self.retry_at.map(|at| at.since(self.checked_at))
    }

    /// The time at which the block of all calls ends. It is like `retry_at`. But if the breaker sleeps and a recorded
    /// Retry-After lasts longer than the sleep, this is the time at which that Retry-After ends (R57).
    pub fn eta(&self) -> Option<Time> {
        if self.reason == Reason::Sleep { self.retry_at.map(|at| at.max(self.gate)) } else { self.retry_at }
    }
}
