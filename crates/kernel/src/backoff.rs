//! Computes how long the caller of a failed call should wait, and whether it should retry (R68 to R77).

use super::growth::grown;
use super::outcome::Report;
use super::policy::{Jitter, StoredBackoff};
use super::request::Priority;
use super::state::Health;
use super::time::Nanos;

crate::named_enum! {
    /// The source of a wait.
    ///
    /// ```
    /// # use shmlimit_kernel::backoff as shmlimit;
    /// use shmlimit::WaitSource;
    ///
    /// assert_eq!("retry_after".parse(), Ok(WaitSource::RetryAfter));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum WaitSource {
        /// The server asked for it with Retry-After.
        RetryAfter => "retry_after",
        /// The limiter computed it.
        Backoff => "backoff",
    }
    /// All sources.
    ///
    /// ```
    /// # use shmlimit_kernel::backoff as shmlimit;
    /// use shmlimit::WaitSource;
    ///
    /// assert_eq!(WaitSource::ALL, [WaitSource::RetryAfter, WaitSource::Backoff]);
    /// ```
    pub const ALL;
    /// The name outside Rust: in C, Python, JSON and logs.
    ///
    /// ```
    /// # use shmlimit_kernel::backoff as shmlimit;
    /// assert_eq!(shmlimit::WaitSource::Backoff.as_str(), "backoff");
    /// ```
    pub const fn as_str;
    impl FromStr;
}

/// Advice to the caller after a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackoffAdvice {
    /// The source of the wait. `None` if there is no wait.
    pub source: Option<WaitSource>,
    /// The longest wait.
    pub ceiling: Nanos,
    /// Whether the wait is drawn at random between 0 and the ceiling. Otherwise the wait is the ceiling.
    pub drawn: bool,
    /// Whether to retry at all (R76).
    pub retry: bool,
}

impl BackoffAdvice {
    /// The wait, drawn with 64 random bits.
    pub fn wait(&self, random: u64) -> Nanos {
        if !self.drawn {
            return self.ceiling;
        }
        // From 0 to the ceiling, both included. The bias is below one nanosecond in 2^64.
        let parts = u128::from(self.ceiling.0) + 1;
        Nanos(((u128::from(random) * parts) >> 64) as u64)
    }
}

/// The wait for a Retry-After after floor and cap are applied (R70, R71).
pub(super) fn retry_after(backoff: &StoredBackoff, said: Nanos) -> Nanos {
    said.max(backoff.min_sleep).min(backoff.retry_after_max.max(backoff.min_sleep))
}

/// Computes the advice after the reported call, which `health` already counts. `wait` is the wait that follows
/// from its Retry-After.
pub(super) fn advise(
    backoff: &StoredBackoff,
    health: &Health,
    report: &Report<'_>,
    wait: Option<Nanos>,
) -> BackoffAdvice {
    if !report.class.is_backoff_target() {
        return BackoffAdvice::default();
    }
    let attempt = report.attempt.unwrap_or(health.run).max(1);
    let retries = match report.priority {
        Priority::Background => backoff.retries_background,
        Priority::User | Priority::Webhook => backoff.retries_user,
    };
    let retry = attempt <= retries;
    match wait {
        Some(ceiling) => BackoffAdvice { source: Some(WaitSource::RetryAfter), ceiling, drawn: false, retry },
        None => BackoffAdvice {
            source: Some(WaitSource::Backoff),
            ceiling: Nanos(grown(backoff.base.0, backoff.factor, attempt - 1, backoff.cap.0)),
            drawn: backoff.jitter() == Jitter::Full,
            retry,
        },
    }
}

/// A seedable random number generator for jitter: SplitMix64. It passes the common statistical tests, and every
/// seed is equally good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// Starts the generator. Equal seeds give equal numbers.
    #[inline]
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are the first numbers of the published generator for seed 1234567.
    #[test]
    fn random_numbers_match_the_published_generator() {
        let mut random = Random::new(1_234_567);
        let bits: [u64; 3] = std::array::from_fn(|_| random.bits());
        assert_eq!(bits, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
