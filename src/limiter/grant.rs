//! The answers: a grant, a refusal, or a failure.

use super::outcome::{Advice, Outcome};
use super::owned::OwnedGrant;
use super::segment_chain::LimiterSegment;
use shmlimit_kernel::queue::WAITERS;
use shmlimit_kernel::{self, Held, Reason, Ticket};
use shmlimit_segment::Error;
use std::fmt;
use std::time::Duration;

/// The right to make one call. It holds a permit until it is released, cancelled or dropped.
///
/// A grant belongs to the process that got it: after a fork the child's copy does nothing.
#[derive(Debug)]
#[must_use = "dropping a grant gives its permit back at once"]
pub struct Grant<'l> {
    link: &'l LimiterSegment,
    attachment_id: u64,
    ticket: Ticket,
}

impl<'l> Grant<'l> {
    #[inline]
    pub(super) fn new(link: &'l LimiterSegment, attachment_id: u64, ticket: Ticket) -> Grant<'l> {
        Grant { link, attachment_id, ticket }
    }

    /// The call is over: gives the permit back. Dropping does the same but cannot report a failure.
    pub fn release(self) -> Result<(), Error> {
        let (link, attachment_id, ticket) = self.disarm();
        Ok(link.release(attachment_id, &ticket)?)
    }

    /// The call was never sent: gives the permit back, and to every rule what it can still take back (R129).
    ///
    /// ```
    /// # use shmlimit::{Limiter, Request};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = Limiter::builder("api").directory(directory.path()).rate("100/day").open()?;
    /// let grant = limiter.acquire(&Request::new())?;
    /// assert_eq!(limiter.snapshot()?.rules[0].remaining, 99);
    /// grant.cancel()?; // the answer was in the cache after all
    /// assert_eq!(limiter.snapshot()?.rules[0].remaining, 100);
    /// # Ok(()) }
    /// ```
    pub fn cancel(self) -> Result<(), Error> {
        let (link, attachment_id, ticket) = self.disarm();
        Ok(link.cancel(attachment_id, &ticket)?)
    }

    /// The call is over, and this is how it ended: gives the permit back, and tells all who share the limiter (R130).
    ///
    /// ```no_run
    /// # use shmlimit::{Limiter, Outcome, Request};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = Limiter::open("tmdb")?;
    /// let grant = limiter.acquire(&Request::new())?;
    /// // … call the API: it says 429, Retry-After: 30 …
    /// let advice = grant.record(&Outcome::http(429, &[("Retry-After", "30")]))?;
    /// assert!(advice.retry && advice.wait.as_secs() == 30); // and nobody calls for 30 seconds
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn record(mut self, outcome: &Outcome<'_>) -> Result<Advice, Error> {
        // In place: a ticket is fifteen words.
        let recorded = self.link.record_call(self.attachment_id, &self.ticket, outcome)?;
        self.ticket.permit = Held::default();
        Ok(recorded)
    }

    /// How long from now a leaky bucket wants the call held back, so that calls go out evenly (R25); zero for all other
    /// rules.
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.ticket.delay.0)
    }

    /// The same grant without the borrow of its limiter: to be stored, returned, or given to another task or thread.
    ///
    /// ```
    /// # use shmlimit::{AcquireError, Limiter, OwnedGrant, Policy, PolicyDraft, Request};
    /// async fn next_permit(limiter: Limiter) -> Result<OwnedGrant, AcquireError> {
    ///     Ok(limiter.acquire_async(&Request::new(), tokio::time::sleep).await?.into_owned())
    /// }
    /// ```
    pub fn into_owned(self) -> OwnedGrant {
        let (link, attachment_id, ticket) = self.disarm();
        OwnedGrant::new(link, attachment_id, ticket)
    }

    fn disarm(mut self) -> (&'l LimiterSegment, u64, Ticket) {
        let parts = (self.link, self.attachment_id, self.ticket);
        self.ticket.permit = Held::default();
        parts
    }
}

impl Drop for Grant<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.ticket.permit.total > 0 {
            // A failure leaves the permit to be found when this process ends; there is nobody to tell here.
            let _ = self.link.release(self.attachment_id, &self.ticket);
        }
    }
}

/// Not now: why, and when to ask again. Nothing was taken.
///
/// ```
/// # use shmlimit::{AcquireError, Limiter, Reason, Request};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let limiter = Limiter::builder("api").directory(directory.path()).rate("1/day").open()?;
/// # limiter.acquire(&Request::new())?.release()?;
/// let Err(AcquireError::Refused(refusal)) = limiter.try_acquire(&Request::new()) else { panic!() };
/// assert_eq!(refusal.reason(), Reason::Rate);
/// assert!(refusal.retry_after().is_some_and(|wait| wait.as_secs() > 86_000));
/// println!("{refusal}"); // the rate is used up; try again in …
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal(shmlimit_kernel::Refusal);

impl Refusal {
    /// The first layer that stands in the way.
    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    /// Which rule, by its place in the policy, if it was one.
    pub fn rule(&self) -> Option<usize> {
        self.0.rule.map(usize::from)
    }

    /// In how long to ask again: until then [`reason`](Self::reason) refuses the call. Another reason, or the calls of
    /// other programs, may still refuse it then. `None` = never, or unknown.
    pub fn retry_after(&self) -> Option<Duration> {
        self.after(self.0.retry_at)
    }

    /// The shortest timeout that could succeed: all reasons and the calls ahead in the queue are counted. `None` = never,
    /// or unknown, as with a pause without an end or where all permits are in use.
    pub fn ready_after(&self) -> Option<Duration> {
        self.after(self.0.ready_at).filter(|wait| !wait.is_zero())
    }

    /// In how long calls are made again where the breaker or the gate blocks them all: as
    /// [`retry_after`](Self::retry_after), but a Sleep is not over before the gate of a longer Retry-After opens. `None` =
    /// never, or nobody knows.
    pub fn eta(&self) -> Option<Duration> {
        self.after(self.0.eta())
    }

    fn after(&self, at: Option<shmlimit_kernel::Time>) -> Option<Duration> {
        at.map(|at| Duration::from_nanos(at.since(self.0.checked_at).0))
    }
}

impl From<shmlimit_kernel::Refusal> for Refusal {
    #[inline(always)]
    fn from(refusal: shmlimit_kernel::Refusal) -> Refusal {
        Refusal(refusal)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Reason::CostExceedsLimit => return f.write_str(Reason::CostExceedsLimit.explanation()),
            Reason::QueueFull => {
                write!(f, "{WAITERS} calls wait already, more than that the queue does not hold")?
            }
            Reason::Paused if self.0.retry_at.is_none() => {
                return write!(f, "an operator has paused the limiter, until it is resumed");
            }
            reason => f.write_str(reason.explanation())?,
        }
        match self.eta() {
            Some(after) => write!(f, ", try again in {after:.3?}"),
            None => Ok(()),
        }
    }
}

/// Why there is no grant.
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// The limiter says: not now.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// The limiter could not be asked.
    #[error(transparent)]
    Failed(Box<Error>),
}

impl From<Error> for AcquireError {
    #[cold]
    fn from(error: Error) -> AcquireError {
        AcquireError::Failed(Box::new(error))
    }
}

impl From<shmlimit_kernel::Refusal> for AcquireError {
    #[inline]
    fn from(refusal: shmlimit_kernel::Refusal) -> AcquireError {
        AcquireError::Refused(refusal.into())
    }
}

impl From<Box<Error>> for AcquireError {
    #[cold]
    fn from(error: Box<Error>) -> AcquireError {
        AcquireError::Failed(error)
    }
}
