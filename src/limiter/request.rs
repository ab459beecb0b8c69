//! What a caller asks for.

use crate::error::Error;
use crate::kernel::policy::{Name, REQUESTS};
use crate::kernel::{Ask, MAX_UNITS, Priority};
use std::time::Duration;

/// A call that wants to be made: its cost, its priority, and how long it may wait.
///
/// ```
/// use shmlimit::{Priority, Request};
/// use std::time::Duration;
///
/// let one = Request::new();
/// let chat = Request::new().cost("tokens", 900).priority(Priority::User).timeout(Duration::from_secs(5));
/// # let _ = (one, chat);
/// ```
#[derive(Debug, Clone)]
pub struct Request<'u> {
    /// The cost in `requests`, and the priority: all there is to most requests.
    ask: Ask,
    others: [Option<(&'u str, u64)>; MAX_UNITS - 1],
    /// A unit too many for any limiter; reported when the request is used.
    excess: Option<&'u str>,
    timeout: Option<Duration>,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Request::new()
    }
}

impl<'u> Request<'u> {
    /// One request, for the background, waiting as long as it takes.
    #[inline]
    pub const fn new() -> Request<'u> {
        Request {
            ask: Ask::one(Priority::Background),
            others: [None; MAX_UNITS - 1],
            excess: None,
            timeout: None,
        }
    }

    /// How much of a unit the call needs. Units not named cost nothing, except `requests`, which costs 1.
    #[must_use]
    pub fn cost(mut self, unit: &'u str, amount: u64) -> Request<'u> {
        if unit == REQUESTS {
            self.ask.cost[0] = amount;
            return self;
        }
        let same = |other: &&mut Option<(&str, u64)>| other.is_none_or(|(name, _)| name == unit);
        match self.others.iter_mut().find(same) {
            Some(place) => *place = Some((unit, amount)),
            None => self.excess = Some(unit),
        }
        self
    }

    /// For whom the call is made.
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Request<'u> {
        self.ask.priority = priority;
        self
    }

    /// How long [`acquire`](crate::Limiter::acquire) may wait. What cannot be had in time is refused at once.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Request<'u> {
        self.timeout = Some(timeout);
        self
    }

    pub(super) fn patience(&self) -> Option<Duration> {
        self.timeout
    }

    /// The cost by unit index, if it is in `requests` alone.
    #[inline(always)]
    pub(super) fn plain(&self) -> Option<&Ask> {
        if self.others[0].is_none() { Some(&self.ask) } else { None }
    }

    /// The cost by unit index, as the limiter with these units counts them.
    pub(super) fn ask(&self, limiter: &str, units: &[Name]) -> Result<Ask, Box<Error>> {
        let mut ask = self.ask;
        for (unit, amount) in self.others.iter().flatten() {
            let index = units.iter().position(|known| known.as_str() == *unit);
            ask.cost[index.ok_or_else(|| unknown_unit(limiter, unit, units))?] = *amount;
        }
        match self.excess {
            Some(unit) => Err(unknown_unit(limiter, unit, units)),
            None => Ok(ask),
        }
    }
}

fn unknown_unit(limiter: &str, unit: &str, units: &[Name]) -> Box<Error> {
    let known: Vec<&str> = units.iter().map(Name::as_str).collect();
    Box::new(Error::UnknownUnit { name: limiter.to_owned(), unit: unit.to_owned(), known: known.join(", ") })
}
