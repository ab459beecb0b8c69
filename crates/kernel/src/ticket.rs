//! Grants, as callers hold them.

use super::request::AcquireRequest;
use super::state::{Charge, Held};
use super::time::{Nanos, Time};
use super::{MAX_RULES, MAX_UNITS};

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
