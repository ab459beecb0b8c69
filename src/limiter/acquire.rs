//! The ways to acquire a grant: without waiting, waiting, waiting until cancelled, and in an executor.

use super::Limiter;
use super::attempt::Next;
use super::grant::{AcquireError, Grant};
use super::request::Request;
use super::waiter::{LOCK_RETRY_DELAY, Step, Waiter};
use std::time::{Duration, Instant};

/// How often at least a call that can be cancelled checks whether it was.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

impl Limiter {
    /// Asks once and does not wait for its turn. Only the segment's lock can make it wait: for up to a second, or
    /// up to the request's timeout. If other processes hold the lock in turn all that time, the call is refused
    /// ([`Reason::Busy`](crate::Reason)). [`Error::Busy`](crate::Error::Busy) means that one process has held the
    /// lock for a second without progress.
    ///
    /// ```
    /// # use shmlimit::{AcquireError, Limiter, Policy, PolicyDraft, Reason, Request};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let policy = Policy::new(&PolicyDraft { concurrency: Some(1), ..PolicyDraft::default() })?;
    /// # let limiter = Limiter::builder("api").directory(directory.path()).policy(policy).open()?;
    /// let grant = limiter.try_acquire(&Request::new())?; // the only permit
    /// match limiter.try_acquire(&Request::new()) {
    ///     Err(AcquireError::Refused(refusal)) => assert_eq!(refusal.reason(), Reason::Concurrency),
    ///     other => panic!("{other:?}"),
    /// }
    /// drop(grant); // gives it back
    /// assert!(limiter.try_acquire(&Request::new()).is_ok());
    /// # Ok(()) }
    /// ```
    pub fn try_acquire(&self, request: &Request<'_>) -> Result<Grant<'_>, AcquireError> {
        self.attempt(request, Next::Decide)
    }

    /// Waits in the queue of all processes until the call may be made, so that every process gets its turn (R131).
    /// Three kinds of request are refused at once: its deadline cannot be met (R132), it costs more than a rule
    /// ever allows, or the queue is full.
    ///
    /// ```
    /// # use shmlimit::{Limiter, Policy, PolicyDraft, Request};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let policy = Policy::new(&PolicyDraft { concurrency: Some(1), ..PolicyDraft::default() })?;
    /// # let limiter = Limiter::builder("api").directory(directory.path()).policy(policy).open()?;
    /// # use std::time::Duration;
    /// let grant = limiter.acquire(&Request::new().timeout(Duration::from_secs(5)))?;
    /// // … call the API …
    /// grant.release()?;
    /// # Ok(()) }
    /// ```
    pub fn acquire(&self, request: &Request<'_>) -> Result<Grant<'_>, AcquireError> {
        self.attempt(request, Next::Wait)
    }

    /// Waits in the queue for a call that could not be granted at once.
    #[cold]
    #[inline(never)]
    pub(super) fn wait(&self, request: &Request<'_>) -> Result<Grant<'_>, AcquireError> {
        let mut waiter = Waiter::new(self, request, true)?;
        loop {
            match waiter.step()? {
                Step::Done(grant) => return Ok(grant),
                Step::Sleep { link, place, wake_value, limit, .. } => {
                    link.segment.sleep(place, wake_value, limit)
                }
                Step::Again => {}
            }
        }
    }

    /// Does the same as [`acquire`](Self::acquire), but can be cancelled. `stop` is called before each sleep, after
    /// each signal that interrupts the sleep, and at least ten times a second. If it returns true, the call leaves
    /// the queue, takes nothing, and returns `None`.
    ///
    /// ```
    /// # use shmlimit::{Limiter, Policy, PolicyDraft, Request};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let policy = Policy::new(&PolicyDraft { concurrency: Some(1), ..PolicyDraft::default() })?;
    /// # let limiter = Limiter::builder("api").directory(directory.path()).policy(policy).open()?;
    /// let first = limiter.acquire(&Request::new())?;
    /// assert!(limiter.acquire_cancellable(&Request::new(), || true)?.is_none());
    /// # first.release()?;
    /// # Ok(()) }
    /// ```
    pub fn acquire_cancellable(
        &self,
        request: &Request<'_>,
        mut stop: impl FnMut() -> bool,
    ) -> Result<Option<Grant<'_>>, AcquireError> {
        if let Some(grant) = self.attempt_at_once(request) {
            return Ok(Some(grant));
        }
        let mut waiter = Waiter::new(self, request, true)?;
        loop {
            match waiter.step()? {
                Step::Done(grant) => return Ok(Some(grant)),
                Step::Again if stop() => return Ok(None),
                Step::Again => {}
                Step::Sleep { link, place, wake_value, limit, .. } => {
                    // The time that `stop` takes is part of the sleep.
                    let began = Instant::now();
                    if stop() {
                        return Ok(None);
                    }
                    // Checking `stop` is not a reason to take a step. Only the end of the time or a changed wake
                    // word is.
                    loop {
                        let left = limit.saturating_sub(began.elapsed());
                        link.segment.sleep(place, wake_value, left.min(STOP_CHECK_INTERVAL));
                        if stop() {
                            return Ok(None);
                        }
                        if left <= STOP_CHECK_INTERVAL || link.segment.read_wake_word(place) != wake_value {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Does the same as [`acquire`](Self::acquire) for programs with an executor. `sleep` is the executor's timer,
    /// such as `tokio::time::sleep`. The call waits in the same queue. Dropping the future leaves the queue at
    /// once.
    ///
    /// No thread waits, so other processes cannot wake this call. The first call in the queue notices a returned
    /// permit within 2 ms, and each further call 2 ms later.
    ///
    /// ```
    /// # use shmlimit::{AcquireError, Limiter, Policy, PolicyDraft, Request};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let policy = Policy::new(&PolicyDraft { concurrency: Some(4), ..PolicyDraft::default() })?;
    /// # let limiter = Limiter::builder("api").directory(directory.path()).policy(policy).open()?;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// # runtime.block_on(async {
    /// let limiter = limiter.clone(); // cheap: one for each task
    /// let task = tokio::spawn(async move {
    ///     let grant = limiter.acquire_async(&Request::new(), tokio::time::sleep).await?;
    ///     // … call the API …
    ///     grant.release()?;
    ///     Ok::<_, AcquireError>(())
    /// });
    /// # task.await??;
    /// # Ok(()) }) }
    /// ```
    pub async fn acquire_async<S, F>(
        &self,
        request: &Request<'_>,
        sleep: S,
    ) -> Result<Grant<'_>, AcquireError>
    where
        S: Fn(Duration) -> F,
        F: Future<Output = ()>,
    {
        if let Some(grant) = self.attempt_at_once(request) {
            return Ok(grant);
        }
        let mut waiter = Waiter::new(self, request, false)?;
        loop {
            match waiter.step()? {
                Step::Done(grant) => return Ok(grant),
                Step::Sleep { limit, .. } => sleep(limit).await,
                Step::Again => sleep(LOCK_RETRY_DELAY).await,
            }
        }
    }
}
