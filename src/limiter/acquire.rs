//! Asking for a call: once, waiting, waiting until called off, and waiting in an executor.

use super::Limiter;
use super::grant::{AcquireError, Grant};
use super::request::Request;
use super::waiter::{LOCK_RETRY_DELAY, Step, Waiter};
use std::time::{Duration, Instant};

/// Who may be called off is asked at least this often.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

impl Limiter {
    /// Asks once and never waits, except for the lock of the segment: a second at most, or as long as the request's
    /// timeout says. If other processes held it in turn all that time, the call is refused ([`Reason::Busy`](crate::Reason)).
    /// [`Error::Busy`](crate::Error::Busy) means that one of them has held it for a second without going on.
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
        self.attempt(request)
    }

    /// Asks, and waits until the call may be made: in the queue of all processes, so that everybody has its turn (R131).
    /// A request whose deadline cannot be met is refused at once (R132); so is one that costs more than a rule ever
    /// allows, and one more than the queue holds.
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
        if let Some(grant) = self.grant_single(request) {
            return Ok(grant);
        }
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

    /// [`acquire`](Self::acquire) that can be called off: `stop` is asked before each sleep, whenever a signal interrupts
    /// the sleep, and at least ten times a second. `None` if it said so: the call has left the queue, and nothing was taken.
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
        if let Some(grant) = self.grant_single(request) {
            return Ok(Some(grant));
        }
        let mut waiter = Waiter::new(self, request, true)?;
        loop {
            match waiter.step()? {
                Step::Done(grant) => return Ok(Some(grant)),
                Step::Again if stop() => return Ok(None),
                Step::Again => {}
                Step::Sleep { link, place, wake_value, limit, .. } => {
                    if stop() {
                        return Ok(None);
                    }
                    let began = Instant::now();
                    // Asking is no reason to look: only its time or its wake word is.
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

    /// [`acquire`](Self::acquire) for programs with an executor: `sleep` is its way to let time pass, such as
    /// `tokio::time::sleep`. The call waits in the same queue. Dropping the future leaves the queue at once.
    ///
    /// No thread waits, so nobody can be woken from outside: that a permit came back is noticed within 2 ms by the first
    /// in the queue, and 2 ms later for each call ahead.
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
        if let Some(grant) = self.grant_single(request) {
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
