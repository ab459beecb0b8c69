//! The possible answers to a call: a grant, a refusal, or a failure.

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
/// A grant belongs to the process that acquired it. After a fork, the child's copy does nothing.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// let grant = limiter.acquire(&shmlimit::Request::new())?;
/// // … call the API …
/// grant.record(&shmlimit::Outcome::http(200, &[]))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

    /// Ends the call and returns the permit. Dropping the grant does the same, but cannot report a failure.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// # let grant = limiter.acquire(&shmlimit::Request::new())?;
    /// grant.release()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release(self) -> Result<(), Error> {
        let (link, attachment_id, ticket) = self.disarm();
        Ok(link.release(attachment_id, &ticket)?)
    }

    /// Cancels a call that was never sent. It returns the permit, and gives back the units of each rule that can
    /// still take them (R129).
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

    /// Ends the call, returns the permit, and records how the call ended for all processes that share the limiter
    /// (R130).
    ///
    /// ```no_run
    /// # use shmlimit::{Limiter, Outcome, Request};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = Limiter::open("tmdb")?;
    /// let grant = limiter.acquire(&Request::new())?;
    /// // … call the API: it says 429, Retry-After: 30 …
    /// let advice = grant.record(&Outcome::http(429, &[("Retry-After", "30")]))?;
    /// assert!(advice.retry && advice.wait.as_secs() == 30); // no program calls for 30 seconds
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn record(mut self, outcome: &Outcome<'_>) -> Result<Advice, Error> {
        // The ticket is passed by reference, because it is fifteen words long.
        let recorded = self.link.record_call(self.attachment_id, &self.ticket, outcome)?;
        self.ticket.permit = Held::default();
        Ok(recorded)
    }

    /// How long from now the call should be delayed, so that a leaky bucket sends calls at even intervals (R25).
    /// Zero for all other rules.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// # let grant = limiter.acquire(&shmlimit::Request::new())?;
    /// std::thread::sleep(grant.delay()); // zero for all rules except leaky buckets
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.ticket.delay.0)
    }

    /// The same grant without the borrow of its limiter. It can be stored, returned, or moved to another task or
    /// thread.
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
            // `drop` cannot report a failure. If the release fails, the permit is reclaimed when this process
            // exits.
            let _ = self.link.release(self.attachment_id, &self.ticket);
        }
    }
}

/// The answer "not now", with the reason and the time for the next try. Nothing was taken.
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
    /// The kernel's refusal.
    #[inline(always)]
    pub(super) const fn of(refusal: shmlimit_kernel::Refusal) -> Refusal {
        Refusal(refusal)
    }

    /// The first layer that refused the call.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # use shmlimit::{AcquireError, Limiter, Request};
    /// # let limiter = Limiter::builder("api").directory(directory.path()).rate("1/day").open()?;
    /// # limiter.acquire(&Request::new())?.release()?;
    /// let Err(AcquireError::Refused(refusal)) = limiter.try_acquire(&Request::new()) else { panic!() };
    /// assert_eq!(refusal.reason(), shmlimit::Reason::Rate);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    /// The index of the rule in the policy, if a rule refused the call.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # use shmlimit::{AcquireError, Limiter, Request};
    /// # let limiter = Limiter::builder("api").directory(directory.path()).rate("1/day").open()?;
    /// # limiter.acquire(&Request::new())?.release()?;
    /// let Err(AcquireError::Refused(refusal)) = limiter.try_acquire(&Request::new()) else { panic!() };
    /// assert_eq!(refusal.rule(), Some(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rule(&self) -> Option<usize> {
        self.0.rule.map(usize::from)
    }

    /// The time to wait before the next try: until then [`reason`](Self::reason) refuses the call. Another reason, or
    /// the calls of other programs, may still refuse it then. `None` = never, or unknown.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # use shmlimit::{AcquireError, Limiter, Request};
    /// # let limiter = Limiter::builder("api").directory(directory.path()).rate("1/day").open()?;
    /// # limiter.acquire(&Request::new())?.release()?;
    /// let Err(AcquireError::Refused(refusal)) = limiter.try_acquire(&Request::new()) else { panic!() };
    /// assert!(refusal.retry_after().unwrap().as_secs() > 86_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retry_after(&self) -> Option<Duration> {
        self.after(self.0.retry_at)
    }

    /// The shortest timeout that could succeed: all reasons and the calls ahead in the queue are counted. `None` =
    /// never, or unknown, for example for a pause without an end or while all permits are in use.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # use shmlimit::{AcquireError, Limiter, Request};
    /// # let limiter = Limiter::builder("api").directory(directory.path()).rate("1/day").open()?;
    /// # limiter.acquire(&Request::new())?.release()?;
    /// let Err(AcquireError::Refused(refusal)) = limiter.try_acquire(&Request::new()) else { panic!() };
    /// assert!(refusal.ready_after() >= refusal.retry_after());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ready_after(&self) -> Option<Duration> {
        self.after(self.0.ready_at).filter(|wait| !wait.is_zero())
    }

    /// The time until calls are possible again if the breaker or the gate blocks all of them. It is like
    /// [`retry_after`](Self::retry_after). But if the breaker sleeps and a recorded Retry-After lasts longer than the
    /// sleep, this is the time until that Retry-After ends. `None` = never, or unknown.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # use shmlimit::{AcquireError, Limiter, Request};
    /// # let limiter = Limiter::builder("api").directory(directory.path()).rate("1/day").open()?;
    /// # limiter.acquire(&Request::new())?.release()?;
    /// let Err(AcquireError::Refused(refusal)) = limiter.try_acquire(&Request::new()) else { panic!() };
    /// assert!(refusal.eta().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn eta(&self) -> Option<Duration> {
        self.after(self.0.eta())
    }

    fn after(&self, at: Option<shmlimit_kernel::Time>) -> Option<Duration> {
        at.map(|at| Duration::from_nanos(at.since(self.0.checked_at).0))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Reason::CostExceedsLimit => return f.write_str(Reason::CostExceedsLimit.explanation()),
            Reason::QueueFull => write!(f, "the queue is full: {WAITERS} calls wait already")?,
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

/// Why a call has no grant.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// use shmlimit::{AcquireError, Limiter, Request};
///
/// let limiter = Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// match limiter.try_acquire(&Request::new()) {
///     Ok(grant) => grant.release()?,
///     Err(AcquireError::Refused(refusal)) => println!("not now: {refusal}"),
///     Err(AcquireError::Failed(error)) => return Err(error.into()),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// The limiter refused the call for now.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// The limiter failed, so there is no decision.
    #[error(transparent)]
    Failed(Box<Error>),
}

impl From<Error> for AcquireError {
    #[cold]
    fn from(error: Error) -> AcquireError {
        AcquireError::Failed(Box::new(error))
    }
}

impl AcquireError {
    /// The kernel's refusal as an error.
    #[inline]
    pub(super) const fn refused(refusal: shmlimit_kernel::Refusal) -> AcquireError {
        AcquireError::Refused(Refusal::of(refusal))
    }
}

impl From<Box<Error>> for AcquireError {
    #[cold]
    fn from(error: Box<Error>) -> AcquireError {
        AcquireError::Failed(error)
    }
}
