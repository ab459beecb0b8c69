//! The request of a caller.

use shmlimit_kernel::policy::{Name, REQUESTS};
use shmlimit_kernel::{AcquireRequest, MAX_UNITS, Priority};
use shmlimit_segment::Error;
use std::time::{Duration, SystemTime};

/// A request for a call: its cost, its priority, and how long it may wait.
///
/// ```
/// use shmlimit::{Priority, Request};
/// use std::time::{Duration, SystemTime};
///
/// let one = Request::new();
/// let chat = Request::new().cost("tokens", 900).priority(Priority::User).timeout(Duration::from_secs(5));
/// # let _ = (one, chat);
/// ```
#[derive(Debug, Clone)]
pub struct Request<'u> {
    /// The cost in `requests`, and the priority. Most requests need no more.
    kernel_request: AcquireRequest,
    others: [Option<(&'u str, u64)>; MAX_UNITS - 1],
    /// A unit beyond the maximum number of any limiter. It is reported when the request is used.
    excess: Option<&'u str>,
    timeout: Option<Duration>,
    deadline: Option<SystemTime>,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Request::new()
    }
}

impl<'u> Request<'u> {
    /// A request that costs 1 of `requests`, has background priority, and waits without a timeout.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// limiter.acquire(&shmlimit::Request::new())?.release()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub const fn new() -> Request<'u> {
        Request {
            kernel_request: AcquireRequest::one(Priority::Background),
            others: [None; MAX_UNITS - 1],
            excess: None,
            timeout: None,
            deadline: None,
        }
    }

    /// How much of a unit the call costs. The default is 1 for `requests` and 0 for all other units.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Limiter, Request};
    ///
    /// let limiter = Limiter::builder("llm").directory(directory.path()).rate("tokens=1000/h").open()?;
    /// limiter.acquire(&Request::new().cost("tokens", 900))?.release()?;
    /// assert_eq!(limiter.snapshot()?.rules[0].remaining, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cost(mut self, unit: &'u str, amount: u64) -> Request<'u> {
        if unit == REQUESTS {
            self.kernel_request.cost[0] = amount;
            return self;
        }
        let same = |other: &&mut Option<(&str, u64)>| other.is_none_or(|(name, _)| name == unit);
        match self.others.iter_mut().find(same) {
            Some(other) => *other = Some((unit, amount)),
            None => self.excess = Some(unit),
        }
        self
    }

    /// The priority of the call.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// use shmlimit::{Priority, Request};
    ///
    /// limiter.acquire(&Request::new().priority(Priority::User))?.release()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Request<'u> {
        self.kernel_request.priority = priority;
        self
    }

    /// How long [`acquire`](crate::Limiter::acquire) may wait. A call that cannot be served in time is refused at
    /// once.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// use shmlimit::Request;
    /// use std::time::Duration;
    ///
    /// limiter.acquire(&Request::new().timeout(Duration::from_secs(5)))?.release()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Request<'u> {
        self.timeout = Some(timeout);
        self
    }

    /// Until when [`acquire`](crate::Limiter::acquire) may wait. If a [`timeout`](Self::timeout) is set too, the
    /// earlier end is used.
    ///
    /// With a test clock, it is a time on that clock.
    ///
    /// The deadline becomes a duration when the call asks, and time during suspend counts. A later change of the
    /// machine's clock does not move it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// use shmlimit::Request;
    /// use std::time::{Duration, SystemTime};
    ///
    /// limiter.acquire(&Request::new().deadline(SystemTime::now() + Duration::from_secs(5)))?.release()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn deadline(mut self, deadline: SystemTime) -> Request<'u> {
        self.deadline = Some(deadline);
        self
    }

    /// How long the call may wait if it asks now; `None` if it has no limit.
    pub(super) fn time_left(&self, now: impl FnOnce() -> SystemTime) -> Option<Duration> {
        let left = self.deadline.map(|deadline| deadline.duration_since(now()).unwrap_or(Duration::ZERO));
        match (self.timeout, left) {
            (Some(timeout), Some(left)) => Some(timeout.min(left)),
            (timeout, left) => timeout.or(left),
        }
    }

    /// [`by_unit`](Self::by_unit) by reference. `place` holds the cost if other units than `requests` have one.
    #[inline(always)]
    pub(super) fn by_index<'a>(
        &'a self,
        units: &[Name],
        place: &'a mut Option<AcquireRequest>,
    ) -> Option<&'a AcquireRequest> {
        if self.others[0].is_none() {
            return Some(&self.kernel_request);
        }
        *place = self.by_unit(units);
        place.as_ref()
    }

    /// The cost by unit index, or `None` if the limiter does not have one of the units.
    #[inline]
    pub(super) fn by_unit(&self, units: &[Name]) -> Option<AcquireRequest> {
        let mut kernel_request = self.kernel_request;
        for (unit, amount) in self.others.iter().map_while(|other| *other) {
            let index = units.iter().position(|known| known.is(unit))?;
            *kernel_request.cost.get_mut(index)? = amount;
        }
        if self.excess.is_some() { None } else { Some(kernel_request) }
    }

    /// The cost by unit index, in the units of this limiter.
    pub(super) fn kernel_request(&self, limiter: &str, units: &[Name]) -> Result<AcquireRequest, Box<Error>> {
        if let Some(kernel_request) = self.by_unit(units) {
            return Ok(kernel_request);
        }
        let is_unknown = |unit: &&str| !units.iter().any(|known| known.is(unit));
        let unknown = self.others.iter().flatten().map(|(unit, _)| *unit).find(is_unknown);
        Err(unknown_unit(limiter, unknown.or(self.excess).unwrap_or_default(), units))
    }
}

/// A [`Request`] without a borrow.
#[derive(Debug, Clone)]
pub(super) struct OwnedRequest {
    plain: Request<'static>,
    costs: Vec<(String, u64)>,
}

impl Request<'_> {
    pub(super) fn to_owned(&self) -> OwnedRequest {
        let costs = self.others.iter().flatten().copied().chain(self.excess.map(|unit| (unit, 0)));
        OwnedRequest {
            costs: costs.map(|(unit, amount)| (unit.to_owned(), amount)).collect(),
            plain: Request {
                kernel_request: self.kernel_request,
                timeout: self.timeout,
                deadline: self.deadline,
                ..Request::new()
            },
        }
    }
}

impl OwnedRequest {
    pub(super) fn borrow(&self) -> Request<'_> {
        self.costs.iter().fold(self.plain.clone(), |request, (unit, amount)| request.cost(unit, *amount))
    }
}

pub(super) fn unknown_unit(limiter: &str, unit: &str, units: &[Name]) -> Box<Error> {
    let known: Vec<&str> = units.iter().map(Name::as_str).collect();
    Box::new(Error::UnknownUnit { name: limiter.to_owned(), unit: unit.to_owned(), known: known.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;
    const YEAR: Duration = Duration::from_secs(365 * 86_400);

    #[test]
    fn r132_earlier_of_timeout_and_deadline_is_used() {
        let (short, long) = (Duration::from_secs(1), Duration::from_secs(2));
        let request = Request::new;
        assert_eq!(request().time_left(|| NOW), None);
        assert_eq!(request().timeout(short).time_left(|| NOW), Some(short));
        assert_eq!(request().deadline(NOW + long).time_left(|| NOW), Some(long));
        assert_eq!(request().timeout(short).deadline(NOW + long).time_left(|| NOW), Some(short));
        assert_eq!(request().timeout(long).deadline(NOW + short).time_left(|| NOW), Some(short));
    }

    #[test]
    fn r132_deadline_is_converted_when_the_call_asks_and_a_past_one_leaves_no_time() {
        let request = Request::new().deadline(NOW + YEAR);
        assert_eq!(request.time_left(|| NOW), Some(YEAR));
        assert_eq!(request.time_left(|| NOW + YEAR / 2), Some(YEAR - YEAR / 2));
        assert_eq!(request.time_left(|| NOW + 2 * YEAR), Some(Duration::ZERO));
    }
}
