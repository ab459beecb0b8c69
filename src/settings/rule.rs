//! One rule as it was written, and what holds where nothing was (R9).

use crate::quantity::Rate;
use shmlimit_kernel::policy::{BurstFrom, MAX_AMOUNT};
use shmlimit_kernel::{Algorithm, BurstMode, MAX_LOG, Nanos, Rule, RuleDraft};

/// What a bucket of which nothing is said does: ten at once, one a second.
const BUCKET: (u64, Nanos) = (1, Nanos::from_secs(1));
const BUCKET_BURST: u64 = 10;
/// What a window of which nothing is said does: ten a minute.
const WINDOW: (u64, Nanos) = (10, Nanos::from_secs(60));

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleSettings {
    pub name: Option<String>,
    pub algorithm: Algorithm,
    pub unit: Option<String>,
    pub limit: Option<u64>,
    pub period: Option<Nanos>,
    pub burst: Option<u64>,
    /// Who chose that burst.
    pub burst_from: BurstFrom,
    pub tau: Option<Nanos>,
    pub burst_mode: Option<BurstMode>,
    pub reserve: u64,
}

impl Default for RuleSettings {
    fn default() -> Self {
        RuleSettings {
            name: None,
            algorithm: Algorithm::SlidingCounter,
            unit: None,
            limit: None,
            period: None,
            burst: None,
            burst_from: BurstFrom::Given,
            tau: None,
            burst_mode: None,
            reserve: 0,
        }
    }
}

impl RuleSettings {
    pub fn of(rule: &Rule, unit: &str) -> RuleSettings {
        let draft = rule.draft(unit);
        RuleSettings {
            name: draft.name.map(str::to_owned),
            algorithm: draft.algorithm,
            unit: draft.unit.map(str::to_owned),
            limit: Some(draft.limit),
            period: Some(draft.period),
            burst: draft.burst,
            burst_from: draft.burst_from,
            tau: draft.tau,
            burst_mode: (draft.algorithm == Algorithm::Gcra).then_some(draft.burst_mode),
            reserve: draft.reserve,
        }
    }

    pub fn draft(&self) -> RuleDraft<'_> {
        let (limit, period) = if self.algorithm.has_burst() { BUCKET } else { WINDOW };
        let said_nothing = self.algorithm.has_burst() && self.limit.is_none() && self.tau.is_none();
        RuleDraft {
            name: self.name.as_deref(),
            algorithm: self.algorithm,
            unit: self.unit.as_deref(),
            limit: self.limit.unwrap_or(limit),
            period: self.period.unwrap_or(period),
            burst: self.burst.or(said_nothing.then_some(BUCKET_BURST)),
            burst_from: if self.burst.is_none() { BurstFrom::Limit } else { self.burst_from },
            tau: self.tau,
            burst_mode: self.burst_mode.unwrap_or_default(),
            reserve: self.reserve,
            // That of the log there is; of a new one the usual.
            log_room: None,
        }
    }

    /// Admits at most the limit of `rate` in any one period (R147): each unit is remembered, up to as many as a log holds.
    /// Beyond that a bucket is refilled more slowly, by as much as it gives at once: burst + (limit − burst) = limit.
    pub fn within_rate(&mut self, rate: Rate) {
        self.period = Some(rate.period);
        if rate.limit <= MAX_LOG {
            self.count_by(Algorithm::SlidingLog);
            self.limit = Some(rate.limit);
        } else {
            self.count_by(Algorithm::TokenBucket);
            self.part_burst(rate.limit);
        }
    }

    /// Gives the hundredth part of a limit to the burst, and the rest to the refill.
    fn part_burst(&mut self, limit: u64) {
        // One that is too large is refused as it was written.
        let burst = if limit > MAX_AMOUNT { 0 } else { (limit / 100).max(1) };
        (self.limit, self.burst) = (Some((limit - burst).max(1)), Some(burst.max(1)));
        (self.burst_from, self.tau) = (BurstFrom::Rate, None);
    }

    /// Another rate in a rule that is in use: it counts as before. A burst that somebody chose stays.
    pub fn change_rate(&mut self, rate: Rate) {
        self.period = Some(rate.period);
        match self.burst_from {
            BurstFrom::Rate if self.burst.is_some() => self.part_burst(rate.limit),
            _ => self.change_limit(rate.limit),
        }
    }

    /// Another limit in a valid rule. The burst follows if it was the limit, or if nobody chose it.
    pub fn change_limit(&mut self, limit: u64) {
        let was_limit = self.burst.is_some() && self.burst == self.limit;
        self.limit = Some(limit);
        let from = if was_limit { BurstFrom::Limit } else { self.burst_from };
        if let (Some(_), Some(burst)) = (self.burst, from.burst_beside(limit)) {
            self.burst = Some(burst);
        }
    }

    /// Counts in another way. A capacity of its own goes where the new way has none.
    pub fn count_by(&mut self, algorithm: Algorithm) {
        self.algorithm = algorithm;
        if !algorithm.has_burst() {
            (self.burst, self.tau) = (None, None);
            self.burst_from = BurstFrom::Given;
        }
        if algorithm != Algorithm::Gcra {
            self.burst_mode = None;
        }
    }
}
